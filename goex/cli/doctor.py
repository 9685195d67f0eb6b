"""`goex doctor`: what is missing, and the command that mends it.

Rules: it changes nothing and starts nothing, and it works without the daemon. Each check is a function that returns
a `Check`; one that fails in an unforeseen way is a failed check, not the end of the others.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.output import Json, Output, fold, shown
from policies.errors import ExitStatus, GoexError

if TYPE_CHECKING:
    from goex.paths import Paths
    from goex.rpc import goex_pb2 as pb

_KEYRING_SECONDS = 5.0
_DAEMON_ERROR = " ERROR goex.daemon "
_DOCKER_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that GoEx needs. `mend` is the command, or what to do; `needed` False: nice to have."""

    name: str
    ok: bool
    says: str
    mend: str = ""
    needed: bool = True


def run(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what may take seconds (Docker, keyring).")] = False,
    as_json: Json = False,
) -> None:
    """Check what GoEx needs, and name the command that mends what is missing. Changes nothing."""
    out = Output(as_json)
    found = checks(os.environ, quick=quick)
    well = all(check.ok or not check.needed for check in found)
    if as_json:
        from dataclasses import asdict

        out.json({"ok": well, "checks": [asdict(check) for check in found]})
    else:
        _print(out, found)
    raise typer.Exit(int(ExitStatus.OK if well else ExitStatus.UNAVAILABLE))


def checks(env: Mapping[str, str], *, quick: bool = False) -> list[Check]:
    """All of them, in the order in which one would mend them."""
    from goex.paths import Paths

    found = [_guard("python", _python), _guard("git", _git)]
    if not quick:
        found += _guarded("docker", _docker)
    try:
        paths = Paths.from_env(env)
    except GoexError as error:
        return [*found, Check(name="folders", ok=False, says=error.message, mend=error.next_step)]
    found += [_guard("folders", lambda: _folders(paths)), _guard("config", lambda: _config(paths))]
    docker = any(one.name == "docker" and one.ok for one in found)
    if found[-1].ok and docker:
        found += _guarded("profiles", lambda: _profiles(paths))
    if paths.snapshots.is_dir():
        found.append(_guard("snapshots", lambda: _snapshots(paths)))
    status: list[pb.StatusReply] = []
    found.append(_guard("daemon", lambda: _daemon(paths, status, docker=docker)))
    found.append(_guard("vault", lambda: _vault(paths, status[0] if status else None)))
    if status and status[0].sealing:
        found.append(_guard("sealing", lambda: _sealing(status[0])))
    if status and status[0].warnings:
        says = " ".join(status[0].warnings)
        found.append(Check(name="passkeys", ok=False, says=says, mend="goex passkey reset --cancel", needed=False))
    found.append(_guard("polkit", lambda: _polkit(paths)))
    if status and status[0].vault == "unsealed":
        found.append(_guard("rules", lambda: _rules(paths)))
        found += _guarded("databases", lambda: _databases(paths))
    if not quick:
        keyed = status[0].keyed_by if status else ""
        found.append(_guard("keyring", lambda: _keyring_for(keyed)))
    found += [_guard("model", lambda: _model(paths)), _guard("terminal", _terminal)]
    return _once(found)


def _once(found: list[Check]) -> list[Check]:
    """The checks without those that failed for the configuration alone: that is said where it is."""
    config = next(one for one in found if one.name == "config")
    if config.ok:
        return found
    shown_by = [one for one in found if one is config or one.says != config.says]
    ended = "isn't running; config.toml stops it"
    return [replace(one, says=ended) if one.name == "daemon" and config.says in one.says else one for one in shown_by]


def keyring() -> Check:
    """Whether the system's keyring can hold the master key. Asks it for an entry that isn't there."""
    from vault.errors import KeyringError
    from vault.keyring_client import look

    try:
        name = look("goex", "doctor", timeout=_KEYRING_SECONDS)
    except KeyringError as error:
        return Check(name="keyring", ok=False, says=error.message, mend=error.next_step, needed=False)
    return Check(name="keyring", ok=True, says=f"{name} answers, and keeps secrets", needed=False)


def _keyring_for(keyed_by: str) -> Check:
    """As `keyring`, seen by the vault that there is: needed by one that it keys, idle beside a passphrase."""
    found = keyring()
    if found.ok:
        return found
    if keyed_by == "passphrase":
        return replace(found, ok=True, says="none, and not needed: a passphrase keys the vault")
    return replace(found, needed=keyed_by == "keyring")


def _python() -> Check:
    version = platform.python_version()
    missing = [name for name in ("grpc", "docker", "cryptography", "sqlalchemy") if not importlib.util.find_spec(name)]
    if missing:
        return Check(
            name="python",
            ok=False,
            says=f"{version}, without {', '.join(missing)}",
            mend="Install GoEx again, from its wheel or its folder: pipx reinstall goex, or make setup",
        )
    good = (3, 11) <= sys.version_info < (3, 14)
    return Check(name="python", ok=good, says=version, mend="" if good else "Install Python 3.11, 3.12 or 3.13.")


def _git() -> Check:
    program = shutil.which("git")
    if program is None:
        return Check(name="git", ok=False, says="isn't installed", mend=_install("git"))
    said = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False)
    return Check(
        name="git",
        ok=said.returncode == 0,
        says=said.stdout.decode("utf-8", "replace").strip() or "doesn't run",
        mend="" if said.returncode == 0 else _install("git"),
    )


def _docker() -> list[Check]:
    from runtimes.sandbox import images
    from runtimes.sandbox.engine import connect

    try:
        client = connect(_DOCKER_SECONDS)
    except GoexError as error:
        return [Check(name="docker", ok=False, says=error.message, mend=_mend_docker())]
    try:
        version = str(client.version().get("Version", "?"))
        found = [Check(name="docker", ok=True, says=f"answers, version {version}"), _users(client.info())]
        try:
            image = images.find(client, "base")
            found.append(Check(name="image", ok=True, says=f"base is built ({image[7:19]})"))
        except GoexError as error:
            found.append(Check(name="image", ok=False, says=error.message, mend="goex images build"))
        return found
    finally:
        client.close()


def _users(info: Mapping[str, object]) -> Check:
    """Whether the engine maps users (`userns-remap`): then a container's users are nobody of this machine's."""
    options = info.get("SecurityOptions")
    mapped = isinstance(options, list) and any(str(option).startswith("name=userns") for option in options)
    return Check(
        name="users",
        ok=True,
        says=(
            "mapped: a container without a folder runs as nobody of this machine's"
            if mapped
            else "not mapped: a container runs as nobody (65534), one on a folder as the folder's owner"
        ),
        mend="" if mapped else 'To map them: "userns-remap": "default" in /etc/docker/daemon.json, and restart Docker.',
        needed=False,
    )


def _mend_docker() -> str:
    socket = Path("/var/run/docker.sock")
    if host := os.environ.get("DOCKER_HOST"):
        return f"Start the Docker engine at {host}, or unset DOCKER_HOST to use this machine's own."
    if shutil.which("dockerd") is None and not socket.exists():
        return _install("docker.io")
    if socket.exists() and not os.access(socket, os.W_OK):
        then = "then log in anew, and run goex daemon stop; that group is as powerful as root"
        return f"sudo usermod -aG docker $USER   ({then})"
    return f"{_sudo()}systemctl start docker   (without systemd: {_sudo()}service docker start)"


def _folders(paths: Paths) -> Check:
    paths.check()
    there = [folder for folder in paths.folders if folder.exists()]
    parent = next(folder for folder in (paths.state_dir, *paths.state_dir.parents) if folder.exists())
    if not os.access(parent, os.W_OK):
        return Check(name="folders", ok=False, says=f"{parent} can't be written", mend=f"{_sudo()}chown $USER {parent}")
    free = shutil.disk_usage(parent).free
    if free < 100 * 2**20:
        return Check(name="folders", ok=False, says=f"only {free >> 20} MiB are free in {parent}", mend="Free some.")
    says = f"private; state in {paths.state_dir}" if there else "not made yet; the first command makes them"
    return Check(name="folders", ok=True, says=says)


def _config(paths: Paths) -> Check:
    from goex.config import load
    from goex.paths import check_held

    for socket in load(paths.config_file).agent_sockets:
        if socket.path.parent.exists():
            check_held(socket.path.parent)
    return Check(
        name="config", ok=True, says=str(paths.config_file) if paths.config_file.exists() else "none: the defaults"
    )


def _profiles(paths: Paths) -> list[Check]:
    """Whether programs for services have their image, and the settings of profiles mean something here."""
    from goex.config import load
    from runtimes.sandbox import images
    from runtimes.sandbox.docker import require_runtime
    from runtimes.sandbox.engine import connect

    sandbox = load(paths.config_file).sandbox
    known = images.names(paths.profiles)
    found = [
        Check(
            name="profiles",
            ok=False,
            says=f"[sandbox.profiles.{shown(name)}] in config.toml is of no image",
            mend="See which there are: goex images list",
        )
        for name in sandbox.profiles
        if name not in known
    ]
    client = connect(_DOCKER_SECONDS)
    try:
        for runtime in sorted({sandbox.runtime, *(runtime for runtime, _ in sandbox.profiles.values())} - {"runc"}):
            try:
                require_runtime(runtime, client.info().get("Runtimes") or {}, with_socket=True)
            except GoexError as error:
                found.append(Check(name="profiles", ok=False, says=error.message, mend=error.next_step))
        try:
            images.find(client, "code", paths.profiles)
            found.append(Check(name="code", ok=True, says="the image for programs is built"))
        except GoexError as error:
            found.append(Check(name="code", ok=False, says=error.message, mend="goex images build code", needed=False))
        return found
    finally:
        client.close()


def _snapshots(paths: Paths) -> Check:
    """What the snapshots of folders take, beside what they may."""
    from goex.config import load
    from runtimes.files.plan_text import size
    from runtimes.files.quota import Quota

    quota = Quota(snapshots=paths.snapshots, most=load(paths.config_file).files.quota)
    used = quota.used()
    says = f"they take {size(used)}" + (f" of at most {size(quota.most)}" if quota.most else "")
    tight = bool(quota.most) and used * 10 > quota.most * 9
    mend = "goex commit ID   (of what you won't take back; or raise [files] quota)" if tight else ""
    return Check(name="snapshots", ok=not tight, says=says, mend=mend, needed=False)


def _daemon(paths: Paths, status: list[pb.StatusReply], *, docker: bool) -> Check:
    """`docker`: whether Docker answers here. A daemon keeps the groups and DOCKER_HOST that it was started with."""
    from goex.client import NotRunning, connect

    try:
        with connect(paths, start=False) as client:
            status.append(client.status())
    except NotRunning as error:
        if not os.path.lexists(paths.user_socket):
            if said := _last_error(paths):
                mend = "Do what it says, then: goex daemon start"
                return Check(name="daemon", ok=False, says=f"isn't running; its log ends with: {said}", mend=mend)
            return Check(name="daemon", ok=False, says="isn't running", mend="goex daemon start", needed=False)
        return Check(name="daemon", ok=False, says=error.message, mend="goex daemon start", needed=False)
    reply = status[0]
    if docker and reply.docker:
        return Check(
            name="daemon",
            ok=False,
            says=f"process {reply.pid} can't reach Docker, which answers here: its groups or DOCKER_HOST are others",
            mend="goex daemon stop   (the next command starts it anew)",
        )
    return Check(name="daemon", ok=True, says=f"process {reply.pid}, {reply.pending} waiting, {paths.user_socket}")


def _last_error(paths: Paths) -> str:
    """Why the daemon ended, where that is the last that its log says; else ""."""
    from goex.client import log_tail
    from goex.paths import check_file

    check_file(paths.log_file)  # nothing else is opened
    last = log_tail(paths.log_file).rpartition("\n")[2]
    return shown(last.partition(_DAEMON_ERROR)[2])


def _vault(paths: Paths, status: pb.StatusReply | None) -> Check:
    from goex.paths import check_file

    check_file(paths.vault_db)
    if status is None:
        there = paths.vault_db.exists()
        return Check(
            name="vault",
            ok=there,
            says="is there" if there else "isn't made yet",
            mend="" if there else "goex vault init",
        )
    if status.vault == "unsealed":
        return Check(name="vault", ok=True, says=f"unsealed, keyed by {status.keyed_by}")
    mend = {
        "sealed": "goex vault unlock",
        "broken": "goex vault restore FILE --replace   (a backup; the file that is there is kept aside)",
    }.get(status.vault, "goex vault init")
    state = "isn't made yet" if status.vault == "absent" else status.vault or "unknown"
    says = state + (f": {status.vault_trouble}" if status.vault_trouble else "")
    return Check(name="vault", ok=False, says=says, mend=mend)


def _sealing(status: pb.StatusReply) -> Check:
    """When the vault seals itself; without logind it can't know of the lock and of sleep, which is no error."""
    return Check(name="sealing", ok="; not " not in status.sealing, says=status.sealing, needed=False)


def _polkit(paths: Paths) -> Check:
    """Whether polkit knows what GoEx asks it, where config.toml wants that."""
    from goex.config import load

    mode = load(paths.config_file).ask.polkit
    if mode == "off":
        return Check(name="polkit", ok=True, says="not used: the approval passphrase shows presence", needed=False)
    from goex.units.places import POLICY, POLICY_PLACE

    if _is_root():
        return Check(
            name="polkit",
            ok=False,
            says="says yes to root whatever is asked, so it isn't asked: the approval passphrase is due",
            mend="Run GoEx as an ordinary user.",
            needed=mode == "also",
        )
    if not POLICY_PLACE.exists():
        return Check(
            name="polkit",
            ok=False,
            says="doesn't know GoEx's question, so the approval passphrase is due",
            mend=f"{_sudo()}install -m 644 {POLICY} {POLICY_PLACE}",
            needed=mode == "also",
        )
    return Check(name="polkit", ok=True, says=f"asked {'instead of' if mode == 'instead' else 'beside'} the passphrase")


def _rules(paths: Paths) -> Check:
    """Whether the rules in force are believed, are those of the person's files, and let every agent ask."""
    from goex.client import connect
    from goex.rpc import rules_pb2 as rules

    with connect(paths, start=False) as client:
        reply = client.call("Rules/InForce", rules.InForceRequest(), rules.InForceReply, seconds=600.0)
    if reply.trouble:
        return Check(name="rules", ok=False, says=reply.trouble, mend="goex rules apply")
    if reply.drafts_trouble:
        return Check(name="rules", ok=False, says=reply.drafts_trouble, mend="goex rules check", needed=False)
    if reply.drafts:
        says = f"your files in {reply.folder} differ from what is in force"
        return Check(name="rules", ok=False, says=says, mend="goex rules diff, then goex rules apply", needed=False)
    if reply.resting:
        names = ", ".join(one.agent for one in reply.resting)
        return Check(name="rules", ok=False, says=f"{names} rests after many denials", mend="goex rules", needed=False)
    return Check(name="rules", ok=True, says=f"{len(reply.rules)} in force")


def _databases(paths: Paths) -> list[Check]:
    """What is held, and whether it could be rolled back when its time was over; nothing without a database."""
    from goex.client import connect
    from goex.rpc import databases_pb2 as db

    with connect(paths, start=False) as client:
        reply = client.call("Databases/ListDatabases", db.ListDatabasesRequest(), db.ListDatabasesReply)
    if not reply.databases:
        return []
    held = [each for one in reply.databases for each in one.held]
    stuck = [each for each in held if each.trouble]
    if stuck:
        says = f"{stuck[0].action_id} is held, and couldn't be rolled back: {stuck[0].trouble}"
        return [Check(name="databases", ok=False, says=says, mend="goex db list", needed=False)]
    waiting = f", {len(held)} held transaction{'s' * (len(held) != 1)}: goex db list" if held else ""
    names = f"{len(reply.databases)} entr{'y' if len(reply.databases) == 1 else 'ies'}"
    return [Check(name="databases", ok=True, says=names + waiting, needed=False)]


def _model(paths: Paths) -> Check:
    from goex.config import load

    model = load(paths.config_file).model
    if model.configured and not importlib.util.find_spec("openai"):
        says = "requests in words can't be mapped: the Python package openai isn't installed"
        return Check(name="model", ok=False, says=says, mend="pipx inject goex openai", needed=False)
    if model.configured:
        return Check(name="model", ok=True, says=f"{model.name} at {model.base_url}", needed=False)
    return Check(name="model", ok=True, says="none: the embedded proposer maps catalogued calls", needed=False)


def _terminal() -> Check:
    from goex.cli.prompt import Terminal

    if Terminal.find() is None:
        return Check(
            name="terminal",
            ok=False,
            says="none here, so nothing can be approved from here",
            mend="Run goex approve in a terminal.",
            needed=False,
        )
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    if encoding != "utf8":
        return Check(name="terminal", ok=False, says=f"{encoding}, not UTF-8", mend="export LANG=C.UTF-8", needed=False)
    return Check(name="terminal", ok=True, says="yes, UTF-8", needed=False)


def _guard(name: str, check: Callable[[], Check]) -> Check:
    return _guarded(name, lambda: [check()])[0]


def _guarded(name: str, check: Callable[[], list[Check]]) -> list[Check]:
    try:
        return [replace(found, mend="" if found.ok else found.mend) for found in check()]
    except GoexError as error:
        # Whoever reads this ran doctor: that is no step.
        step = "" if "goex doctor" in error.next_step else error.next_step
        return [Check(name=name, ok=False, says=error.message, mend=step)]
    except Exception as error:  # noqa: BLE001  a check that breaks is a finding
        return [Check(name=name, ok=False, says=f"can't be checked: {type(error).__name__}: {error}")]


def _install(package: str) -> str:
    if shutil.which("apt-get"):
        return f"{_sudo()}apt-get install {package}"
    return f"Install {package} with your system's package manager."


def _is_root() -> bool:
    return os.geteuid() == 0


def _sudo() -> str:
    return "" if _is_root() else "sudo "


def _print(out: Output, found: list[Check]) -> None:
    from rich.text import Text

    width = max(len(check.name) for check in found)
    for check in found:
        mark, style = ("ok", "green") if check.ok else ("missing", "bold red") if check.needed else ("note", "yellow")
        line = Text(f"{check.name:<{width}}  ")
        line.append(f"{mark:<7}", style=style)
        first, *rest = fold(shown(check.says), max(out.console.width - width - 11, 20))
        line.append("  " + first)
        out.say(line)
        for piece in rest:
            out.say(" " * (width + 11) + piece)
        if check.mend:
            out.block(f"mend it: {check.mend}", indent=width + 11, style="")
