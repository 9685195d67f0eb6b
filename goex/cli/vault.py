"""`goex vault`: credentials, sealed.

A secret is typed without echo, piped to stdin, or read from a file with --file; it never stands in the command.
Adding, replacing and removing a credential ask for the approval passphrase, at a terminal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goex.cli.output import Json, Output, local, shown
from goex.cli.vault_app import DEFAULT_ACCOUNT, AccountName, PassphraseFd, app, chosen_key, say_status
from policies.errors import InvalidInput

Service = Annotated[str, typer.Argument(metavar="SERVICE", help="A service of the catalog, or: model.")]
__all__ = ["app"]  # with the commands of this module and of vault_keys


@app.command("init")
def init(
    keyring: Annotated[bool, typer.Option("--keyring", help="Keep the master key in the system's keyring.")] = False,
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Derive the master key from a passphrase.")] = False,
    passphrase_fd: PassphraseFd = -1,
    as_json: Json = False,
) -> None:
    """Make the vault, and set the approval passphrase.

    Piped to stdin, or from --passphrase-fd: one line for the vault's passphrase (with --passphrase), then one for the
    approval passphrase.
    """
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.secretinput import new_passphrase, read_passphrase
    from goex.rpc import goex_pb2 as pb
    from vault.errors import VaultExists

    if keyring and passphrase:
        raise InvalidInput("--keyring and --passphrase exclude each other.", next_step="Choose one.")
    with connect(out) as client:
        # Said before anything is typed; the daemon refuses it as well.
        found = client.status()
        if found.vault == "broken":
            raise VaultExists(
                f"There is a vault that can't be used: {found.vault_trouble}",
                next_step="Come back from a backup with: goex vault restore FILE --replace; or move vault.db away.",
            )
        if found.vault in ("sealed", "unsealed"):
            raise VaultExists(
                "There is a vault already.",
                next_step="Open it with: goex vault unlock; change its key with: goex vault rotate",
            )
        keyed_by = chosen_key(out, keyring, passphrase)
        request = pb.VaultInitRequest(keyed_by=keyed_by)
        if keyed_by == "passphrase":
            out.progress("The vault's passphrase opens it after each start of the daemon.")
            request.passphrase = read_passphrase(
                "Vault passphrase: ",
                what="The vault's passphrase",
                confirm=True,
                descriptor=passphrase_fd,
                rule=new_passphrase("vault passphrase"),
            )
        request.approval_passphrase = read_passphrase(
            "Approval passphrase (asked for when you allow a change): ",
            what="The approval passphrase",
            confirm=True,
            descriptor=passphrase_fd,
            rule=new_passphrase("approval passphrase", other=request.passphrase, of="the vault's passphrase"),
        )
        reply = client.call("Person/VaultInit", request, pb.VaultStatus)
    say_status(out, reply)


@app.command("unlock")
def unlock(
    passphrase_fd: PassphraseFd = -1,
    accept_log: Annotated[
        bool,
        typer.Option(
            "--accept-log",
            help="Go on with a log that is older than the vault knows it, or another one. No grant, agent or rule of "
            "before holds then. Asks for the approval passphrase.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Unseal the vault for the running daemon."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.vault_state import unseal, usable

    with connect(out) as client:
        reply = unseal(client, usable(client), passphrase_fd, accept_log=accept_log)
    say_status(out, reply)


@app.command("seal")
def seal(as_json: Json = False) -> None:
    """Seal the vault: the daemon forgets its keys."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = client.call("Person/VaultSeal", pb.VaultSealRequest(), pb.VaultStatus)
    say_status(out, reply)


@app.command("put")
def put(
    service: Service,
    account: AccountName = DEFAULT_ACCOUNT,
    base_url: Annotated[str, typer.Option(metavar="URL", help="Where the service is; left out, its own place.")] = "",
    origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="One more origin that the credential may be sent to.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="These places are on this machine or network (plain http may be used).")
    ] = False,
    ca: Annotated[Path | None, typer.Option(metavar="FILE", help="Trust this CA (PEM) for these places alone.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The credential is this file's content, not a token.")
    ] = None,
    variable: Annotated[
        str, typer.Option(metavar="NAME", help="Of a file: the environment variable that programs find it by.")
    ] = "",
    file_name: Annotated[str, typer.Option(metavar="NAME", help="Of a file: its name where programs run.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Replace the account's credential.")] = False,
    as_json: Json = False,
) -> None:
    """Seal a credential: typed without echo, piped to stdin, or from --file.

    A file is a Google service account's or user's JSON, a text with its secret marked as [[secret:…]], or nothing but
    the secret. Programs get a stand-in for it.
    """
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.input_text import read_text
    from goex.cli.secretinput import read_secret
    from goex.cli.vault_state import check_first, require_open, say_grants_kept, say_where
    from goex.rpc import goex_pb2 as pb

    request = pb.VaultPutRequest(
        service=service,
        account=account,
        format="file" if file is not None else "string",
        base_url=base_url,
        origins=origin or (),
        private=private,
        ca_pem=read_text(ca, "The CA") if ca is not None else "",
        replace=replace,
        file_name=file_name,
        file_variable=variable,
    )
    if (file_name or variable) and file is None:
        raise InvalidInput("--file-name and --variable are for a credential that is a file.", next_step="Add --file F.")
    _check_connectable(service)
    content = _file(file) if file is not None else b""
    with connect(out) as client:
        label = f"{service}/{account}"
        if not base_url and not replace and file is None:
            request.base_url = imported_base(out, service)
        require_open(client, out)
        say_where(out, "The credential", check_first(client, "Person/VaultPut", request, pb.AccountView))
        if file is not None:
            request.secret = content
        else:
            request.secret = read_secret(f"Credential for {shown(label)}: ", what="The credential").reveal()
        reply = call_with_presence(client, "Person/VaultPut", request, pb.AccountView)
        out.message(reply)
        if not as_json:
            out.say(shown(f"Sealed {reply.service}/{reply.account}, for {', '.join(reply.origins)} only."))
            if replace:
                say_grants_kept(client, out, reply.service, reply.account)


@app.command("list")
def list_accounts(as_json: Json = False) -> None:
    """Which credentials there are, and where each may go. Never the credentials."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.vault_state import no_use
    from goex.rpc import goex_pb2 as pb

    with connect(out) as client:
        reply = client.call("Person/VaultList", pb.VaultListRequest(), pb.VaultListReply)
        unused = no_use(client)
    out.message(reply)
    if as_json:
        return
    if not reply.accounts:
        out.say("The vault holds no credential.")
        out.progress("Seal one with: goex vault put SERVICE")
        return
    out.table(
        ("service", "account", "kind", "goes to", "private", "own CA", "last used"),
        [
            (
                one.service,
                one.account,
                one.format,
                ", ".join(one.origins) or one.base_url,
                "yes" if one.private else "",
                "yes" if one.ca else "",
                local(one.last_used) or unused,
            )
            for one in reply.accounts
        ],
    )


@app.command("remove")
def remove(service: Service, account: AccountName = DEFAULT_ACCOUNT, as_json: Json = False) -> None:
    """Forget a credential."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import goex_pb2 as pb

    request = pb.VaultRemoveRequest(service=service, account=account)
    call(out, "Person/VaultRemove", request, pb.VaultRemoveReply, presence=True)
    if not as_json:
        out.say(shown(f"Removed {service}/{account}."))


def imported_base(out: Output, service: str) -> str:
    """The place of an imported service: it was its document that said so, not GoEx. What is said is what is sent along,
    so that nothing that changes meanwhile leads elsewhere. "" for a service of GoEx's own."""
    from goex.cli.connect import paths
    from mapper.catalog import Catalog

    found = Catalog.open(paths().catalog).services.get(service)
    if found is None or found.source != "imported" or not found.base_url:
        return ""
    out.progress(f"{service} was imported: its document, and not GoEx, names {found.base_url}.")
    return found.base_url


def _check_connectable(service: str) -> None:
    """Raise Unsupported before a secret is asked for that could never be used."""
    from goex.cli.connect import paths
    from mapper.catalog import Catalog

    Catalog.open(paths().catalog).check_connectable(service)


def _file(path: Path) -> bytes:
    """The file's content. Raises InvalidInput for what the daemon wouldn't take, before anything is asked."""
    from goex.cli.input_text import read_file
    from vault.credential_file import LONGEST, decoded

    data = read_file(path, LONGEST + 1)
    if not data:
        raise InvalidInput(f"{path} is empty.", next_step="Name the right file.")
    decoded(data)
    return data


from goex.cli import vault_keys  # noqa: E402, F401  adds its commands to `app`
