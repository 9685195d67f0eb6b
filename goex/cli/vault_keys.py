"""`goex vault rotate`, `passphrase`, `approval`, `backup`, `restore` and `leases`: the vault's own keys.

Each passphrase is typed without echo, piped to stdin, or read from --passphrase-fd, a line each in the order of the
questions. The approval passphrase comes from the terminal alone.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, local, shown
from goex.cli.vault_app import PassphraseFd, app, chosen_key, require_keyring, say_status
from policies.display_text import counted
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import vault_pb2 as vpb

_SECONDS = 300.0  # Argon2id, the keyring, and whoever answers a dialog


@app.command("rotate")
def rotate(
    anew: Annotated[
        bool, typer.Option("--reencrypt", help="Also seal every record, and what undo needs, with new keys.")
    ] = False,
    keyring: Annotated[bool, typer.Option("--keyring", help="From now on the system's keyring keeps the key.")] = False,
    passphrase: Annotated[bool, typer.Option("--passphrase", help="From now on a new passphrase keeps it.")] = False,
    passphrase_fd: PassphraseFd = -1,
    as_json: Json = False,
) -> None:
    """Make a new master key, and wrap every record's key with it.

    Asks for the present passphrase when the key moves away from it, and for the new one with --passphrase.
    """
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.vault_state import require_open

    if keyring and passphrase:
        raise InvalidInput("--keyring and --passphrase exclude each other.", next_step="Choose one.")
    with connect(out) as client:
        before = require_open(client, out).keyed_by
        if keyring:
            require_keyring(out)
        _rotate(
            out,
            client,
            anew=anew,
            keyed_by="keyring" if keyring else "passphrase" if passphrase else "",
            ask_current=before == "passphrase" and (keyring or passphrase),
            ask_new=passphrase,
            descriptor=passphrase_fd,
        )


@app.command("passphrase")
def change_passphrase(passphrase_fd: PassphraseFd = -1, as_json: Json = False) -> None:
    """Change the vault's passphrase. The master key is rotated with it."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.vault_state import require_open

    with connect(out) as client:
        if require_open(client, out).keyed_by == "keyring":
            raise InvalidInput(
                "This vault is keyed by the keyring, so it has no passphrase to change.",
                next_step="Give it one instead: goex vault rotate --passphrase",
            )
        _rotate(
            out, client, anew=False, keyed_by="passphrase", ask_current=True, ask_new=True, descriptor=passphrase_fd
        )


def _rotate(
    out: Output, client: Client, *, anew: bool, keyed_by: str, ask_current: bool, ask_new: bool, descriptor: int
) -> None:
    from goex.cli.prompt import with_presence
    from goex.cli.secretinput import new_passphrase, read_passphrase
    from goex.rpc import vault_pb2 as vpb

    request = vpb.RotateRequest(anew=anew, keyed_by=keyed_by)
    if ask_current:
        request.current_passphrase = read_passphrase(
            "Present vault passphrase: ", what="The vault's passphrase", descriptor=descriptor
        )
    if ask_new:
        request.passphrase = read_passphrase(
            "New vault passphrase (another one than the approval passphrase): ",
            what="The new passphrase",
            confirm=True,
            descriptor=descriptor,
            rule=new_passphrase("vault passphrase"),
        )

    def send(approval: str) -> pb.VaultStatus:
        request.approval_passphrase = approval
        return _follow(out, client, request)

    say_status(out, with_presence(send))


def _follow(out: Output, client: Client, request: vpb.RotateRequest) -> pb.VaultStatus:
    """The stream of a rotation, with its progress, to its end. Raises GoexError."""
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import vault_pb2 as vpb

    reply, told = pb.VaultStatus(), time.monotonic()
    for step in client.streamed("Vault/Rotate", request, vpb.RotateStep):
        if step.HasField("done"):
            reply = step.done
        elif request.anew and (step.progress.done == step.progress.total or time.monotonic() - told > 1):
            told = time.monotonic()
            done, total = step.progress.done, step.progress.total
            out.progress(shown(f"Sealed anew: {done} of {total} {step.progress.of}."))
    return reply


@app.command("approval")
def change_approval(as_json: Json = False) -> None:
    """Change the approval passphrase. Asks for the present one, at a terminal."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.prompt import Terminal
    from goex.cli.secretinput import new_passphrase, typed_twice
    from goex.cli.vault_state import require_open
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import vault_pb2 as vpb

    terminal = Terminal.controlling()
    if terminal is None:
        raise InvalidInput(
            "The approval passphrase is changed at a terminal, and there is none.",
            next_step="Run the same command in a terminal of your own.",
        )
    with connect(out) as client:
        require_open(client, out)
        request = vpb.ChangeApprovalRequest(current=terminal.secret("Present approval passphrase: "))
        request.passphrase = typed_twice(
            terminal,
            "New approval passphrase (another one than the vault's): ",
            "The new passphrase",
            new_passphrase("approval passphrase"),
        )
        reply = client.call("Vault/ChangeApproval", request, pb.VaultStatus, seconds=_SECONDS)
    out.message(reply)
    if not as_json:
        out.say("The approval passphrase was changed. It is asked for anew on each terminal.")


@app.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; it must not be there yet.")],
    passphrase_fd: PassphraseFd = -1,
    as_json: Json = False,
) -> None:
    """Write the whole vault into one sealed file, under a passphrase of its own."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.secretinput import new_passphrase, read_passphrase
    from goex.cli.vault_state import require_open
    from goex.rpc import vault_pb2 as vpb

    request = vpb.BackupRequest(path=str(_absolute(file)))
    if os.path.lexists(request.path):
        raise InvalidInput(
            f"{file} is there already; a backup overwrites nothing.", next_step="Name another file, or move it away."
        )
    folder = Path(request.path).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise InvalidInput(
            f"{folder} isn't a folder that you can write in.", next_step="Name a file in another folder."
        )
    with connect(out) as client:
        require_open(client, out)
        request.passphrase = read_passphrase(
            "Backup passphrase (another one than the approval passphrase): ",
            what="The backup's passphrase",
            confirm=True,
            descriptor=passphrase_fd,
            rule=new_passphrase("backup passphrase"),
        )
        reply = call_with_presence(client, "Vault/Backup", request, vpb.BackupReply, seconds=_SECONDS)
    out.message(reply)
    if not as_json:
        size = f"{counted(reply.records, 'record')}, {counted(reply.bytes, 'byte')}"
        out.say(shown(f"Backed up: {reply.path} ({size}), read back and opened."))


@app.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What goex vault backup wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of the vault that is there; its file is kept aside.")
    ] = False,
    keyring: Annotated[bool, typer.Option("--keyring", help="Keep the master key in the system's keyring.")] = False,
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Derive the master key from a passphrase.")] = False,
    passphrase_fd: PassphraseFd = -1,
    as_json: Json = False,
) -> None:
    """Make the vault of a backup, on this machine or another.

    Asks for the backup's passphrase, for the restored vault's own (with --passphrase, and where there is no keyring),
    and for the approval passphrase: the present vault's while it is open, else the one that the backup holds.
    """
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.secretinput import new_passphrase, read_passphrase
    from goex.rpc import vault_pb2 as vpb
    from vault.errors import VaultExists

    if keyring and passphrase:
        raise InvalidInput("--keyring and --passphrase exclude each other.", next_step="Choose one.")
    with connect(out) as client:
        if client.status().vault != "absent" and not replace:  # said before anything is typed; the daemon refuses too
            raise VaultExists(
                "There is a vault already.",
                next_step="Use --replace: it is kept aside, and what runs with its credentials is ended.",
            )
        if not os.access(_absolute(file), os.R_OK) or not _absolute(file).is_file():
            raise InvalidInput(
                f"{file} isn't a file that you can read.", next_step="Name what goex vault backup wrote."
            )
        keyed_by = chosen_key(out, keyring, passphrase)
        request = vpb.RestoreRequest(path=str(_absolute(file)), keyed_by=keyed_by, replace=replace)
        request.backup_passphrase = read_passphrase(
            "Backup passphrase: ", what="The backup's passphrase", descriptor=passphrase_fd
        )
        if keyed_by == "passphrase":
            request.passphrase = read_passphrase(
                "New vault passphrase (another one than the approval passphrase): ",
                what="The vault's passphrase",
                confirm=True,
                descriptor=passphrase_fd,
                rule=new_passphrase("vault passphrase"),
            )
        reply = call_with_presence(client, "Vault/Restore", request, vpb.RestoreReply, seconds=_SECONDS)
    out.message(reply)
    if as_json:
        return
    vault = reply.vault
    out.say(
        shown(
            f"Restored the backup of {local(reply.made)}: {counted(vault.records, 'record')}. "
            f"The vault is {vault.state}, keyed by {vault.keyed_by}."
        )
    )
    if reply.kept_aside:
        out.say(shown(f"The vault that was there is kept, sealed under its old key: {reply.kept_aside}"))


@app.command("leases")
def leases(as_json: Json = False) -> None:
    """Which credentials are lent out now, and to which action. Each ends with its action."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import vault_pb2 as vpb

    reply = call(out, "Vault/Leases", vpb.LeasesRequest(), vpb.LeasesReply)
    if as_json:
        return
    if not reply.leases:
        out.say("No credential is lent out.")
        return
    out.table(
        ("action", "account", "until at most"),
        [(one.action_id, f"{one.service}/{one.account}", local(one.expires)) for one in reply.leases],
    )


def _absolute(file: Path) -> Path:
    """The path as the daemon must know it: its current folder isn't ours."""
    return Path.cwd() / file.expanduser()
