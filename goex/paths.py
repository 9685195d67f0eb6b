"""Where GoEx keeps its things, and whether those places are private.

Rules: the places follow the XDG variables, and a relative one is ignored, as that standard says. Every folder of
ours is 0700, owned by us, and no symlink; `create` makes what is missing and refuses what isn't so, rather than
mending it silently: a folder that was open may have been read or prepared by somebody else. Nothing here reads
`os.environ`; the environment is passed in.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.errors import Unavailable

# sun_path holds 108 bytes with its final NUL.
MAX_SOCKET_PATH = 107
_MOST_LINKS = 40  # that the kernel follows


class UnsafePlace(Unavailable):
    """A folder, file or socket of GoEx's isn't private, or isn't ours."""

    code = "unsafe-place"


class OpenToOthers(UnsafePlace):
    """A file's mode lets others in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Every place on disk, all absolute."""

    config_dir: Path
    state_dir: Path
    run_dir: Path

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Paths:
        """The places for this environment. Touches nothing. Raises UnsafePlace when a socket's path is too long."""
        home = _absolute(env.get("HOME", "")) or Path(pwd.getpwuid(os.geteuid()).pw_dir)
        config = _absolute(env.get("XDG_CONFIG_HOME", "")) or home / ".config"
        state = _absolute(env.get("XDG_STATE_HOME", "")) or home / ".local" / "state"
        runtime = _absolute(env.get("XDG_RUNTIME_DIR", ""))
        made = cls(
            config_dir=config / "goex",
            state_dir=state / "goex",
            run_dir=runtime / "goex" if runtime else state / "goex" / "run",
        )
        longest = max(made.agent_socket, made.user_socket, key=lambda path: len(os.fsencode(path)))
        if len(os.fsencode(longest)) > MAX_SOCKET_PATH:
            raise UnsafePlace(
                f"{longest} is too long for a socket: {len(os.fsencode(longest))} bytes, at most {MAX_SOCKET_PATH}.",
                next_step="Point XDG_RUNTIME_DIR at a private folder with a shorter path.",
            )
        return made

    @property
    def config_file(self) -> Path:
        return self.config_dir / "config.toml"

    @property
    def rules(self) -> Path:
        """The person's drafts of rules; what is in force is in `state_db`."""
        return self.config_dir / "rules"

    @property
    def state_db(self) -> Path:
        return self.state_dir / "state.db"

    @property
    def vault_db(self) -> Path:
        return self.state_dir / "vault.db"

    @property
    def catalog(self) -> Path:
        """The imported services."""
        return self.state_dir / "catalog.db"

    @property
    def snapshots(self) -> Path:
        return self.state_dir / "snapshots"

    @property
    def profiles(self) -> Path:
        """The person's own sandbox profiles, a folder each."""
        return self.state_dir / "images"

    @property
    def servers(self) -> Path:
        """The MCP servers that were added, a folder each."""
        return self.state_dir / "servers"

    @property
    def journal_head(self) -> Path:
        return self.state_dir / "journal.head"

    @property
    def state_id(self) -> Path:
        """Holds the random id that this state folder's containers are labelled with."""
        return self.state_dir / "id"

    @property
    def stays_sealed(self) -> Path:
        """There while the vault stays sealed until the person opens it; says why."""
        return self.state_dir / "sealed"

    @property
    def web_key(self) -> Path:
        """Where the page that runs keeps the key of its links."""
        return self.run_dir / "web.key"

    @property
    def web_opening(self) -> Path:
        """The document that leads a browser to the page."""
        return self.run_dir / "web.html"

    @property
    def login_opening(self) -> Path:
        """The document that leads a browser to the login of this process."""
        return self.run_dir / f"login-{os.getpid()}.html"

    @property
    def log_file(self) -> Path:
        return self.state_dir / "daemon.log"

    @property
    def lock_file(self) -> Path:
        """Held by the daemon that listens on the sockets; holds its process id."""
        return self.run_dir / "daemon.pid"

    @property
    def state_lock(self) -> Path:
        """The same of the daemon that works on the state folder, wherever it listens."""
        return self.state_dir / "daemon.pid"

    @property
    def agent_socket(self) -> Path:
        return self.run_dir / "agent.sock"

    @property
    def user_socket(self) -> Path:
        return self.run_dir / "user.sock"

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that must be private, outermost first."""
        return (self.config_dir, self.state_dir, self.snapshots, self.run_dir)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that must be private where they are there. The vault and the catalog themselves are looked at when
        they are opened."""
        beside = (*_with_logs(self.vault_db)[1:], *_with_logs(self.catalog)[1:])
        locks = (self.lock_file, self.state_lock)
        marks = (self.state_id, self.stays_sealed, self.web_key)
        return (*_with_logs(self.state_db), *beside, self.journal_head, self.log_file, *locks, *marks)

    def create(self) -> None:
        """Make every folder that is missing, and check all of them and the files in them.

        Raises UnsafePlace for what isn't private, Unavailable for a folder that can't be made.
        """
        for folder in self.folders:
            _make(folder)
        check_files(self.files)

    def check(self) -> None:
        """Check every folder and file that exists, the vault's and the catalog's too. Raises UnsafePlace."""
        for folder in self.folders:
            if os.path.lexists(folder):
                check_folder(folder)
        check_files((*self.files, self.vault_db, self.catalog))


def cache_folder(env: Mapping[str, str]) -> Path:
    """The folder for what can be made anew at any time; made, private, where it is missing.

    Raises UnsafePlace for one that isn't private, Unavailable for one that can't be made.
    """
    home = _absolute(env.get("HOME", "")) or Path(pwd.getpwuid(os.geteuid()).pw_dir)
    folder = (_absolute(env.get("XDG_CACHE_HOME", "")) or home / ".cache") / "goex"
    _make(folder)
    return folder


def check_folder(folder: Path) -> None:
    """Raise UnsafePlace unless `folder` is a real folder of ours that nobody else can enter."""
    found = _lstat(folder)
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePlace(
            f"{folder} is a symlink, and GoEx keeps its things in real folders only.",
            next_step=f"Remove the link, or move its target to {folder}.",
        )
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafePlace(f"{folder} isn't a folder.", next_step="Move it away.")
    _check_owner(folder, found)
    if found.st_mode & 0o077:
        raise UnsafePlace(
            f"{folder} is open to others (mode {stat.S_IMODE(found.st_mode):04o}).",
            next_step=f"Close it with: chmod 700 {folder}",
        )


def check_files(files: Iterable[Path]) -> None:
    """Raise UnsafePlace unless each is a regular file of ours that nobody else can open, or isn't there. All that are
    open are named at once: whoever copied a state folder has to close each."""
    loose: list[UnsafePlace] = []
    names: list[str] = []
    for file in files:
        try:
            check_file(file)
        except OpenToOthers as error:
            loose.append(error)
            names.append(shlex.quote(str(file)))
    if loose:
        more = (
            f" So {'is another file' if len(loose) == 2 else f'are {len(loose) - 1} other files'}." if loose[1:] else ""
        )
        raise OpenToOthers(f"{loose[0].message}{more}", next_step=_close(names))


def check_file(file: Path) -> None:
    """Raise UnsafePlace unless `file` is a regular file of ours, with one name, that nobody else can open; or isn't
    there."""
    try:
        found = file.lstat()
    except FileNotFoundError:  # SQLite's own come and go
        return
    except OSError as error:
        raise _unseen(file, error) from error
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePlace(f"{file} isn't a regular file.", next_step="Move it away, or put the file back itself.")
    _check_owner(file, found)
    if found.st_mode & 0o077:
        raise OpenToOthers(
            f"{file} is open to others (mode {stat.S_IMODE(found.st_mode):04o}).",
            next_step=_close([shlex.quote(str(file))]),
        )
    if found.st_nlink > 1:  # what is written to it would be in the other one too
        name = shlex.quote(str(file))
        raise UnsafePlace(
            f"{file} has another name elsewhere (a hard link).",
            next_step=f"If it is GoEx's own, part them with: cp -p {name} {name}.own && mv {name}.own {name}",
        )


def check_held(folder: Path) -> None:
    """Raise UnsafePlace where another user could put something in the place of what is ours in `folder`, now or while
    we aren't there: an agent would give its token to whoever listens in our socket's place."""
    for place in _passed(folder):
        found = _lstat(place)
        if stat.S_ISLNK(found.st_mode):
            loose = False  # it can't be changed, and the folder that it is in says who replaces it
        else:
            last = place == folder.resolve()
            loose = bool(found.st_mode & 0o022) and (last or not found.st_mode & stat.S_ISVTX)
        if found.st_uid not in (os.geteuid(), 0) or loose:
            close = f"Close it with: chmod go-w {place}, or name" if loose else "Name"
            raise UnsafePlace(
                f"Other users can change {place}, so a socket below it may be replaced.",
                next_step=f"{close} a place in a folder of your own.",
            )


def _passed(folder: Path) -> Iterator[Path]:
    """Every folder and link on the way to `folder`, as the kernel goes it, and the folder itself."""
    at, rest, links = Path("/"), list(folder.absolute().parts[1:]), 0
    yield at
    while rest:
        part = rest.pop(0)
        at = at.parent if part == ".." else at / part
        yield at
        if at.is_symlink() and links < _MOST_LINKS:
            target = at.readlink()
            at, links = Path("/") if target.is_absolute() else at.parent, links + 1
            rest[:0] = target.parts[1:] if target.is_absolute() else target.parts


def check_socket(socket: Path) -> None:
    """Raise UnsafePlace unless `socket` is a socket of ours in a private folder of ours."""
    check_folder(socket.parent)
    found = _lstat(socket)
    if not stat.S_ISSOCK(found.st_mode):
        raise UnsafePlace(f"{socket} isn't a socket.", next_step="Move it away, then try again.")
    _check_owner(socket, found)


def make_private(folder: Path) -> None:
    """Make `folder` and what is missing above it, each 0700: `parents=True` alone leaves those to the umask, and who
    can write to one of them can put another folder in ours' place. Nothing that is there changes. Raises OSError.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_open(folder: Path) -> None:
    """Make `folder` and what is missing above it so that everybody gets through and only its owner changes it, whatever
    the umask is. Nothing that is there changes. Raises OSError.
    """
    if not folder.parent.exists():
        make_open(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return
    folder.chmod(0o755)


def _make(folder: Path) -> None:
    try:
        make_private(folder)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(
            f"The folder {folder} can't be made: {error.strerror}.",
            next_step=f"Make it with: mkdir -p -m 700 {folder}",
        ) from error
    check_folder(folder)


def _with_logs(database: Path) -> tuple[Path, ...]:
    """A database's file, and what SQLite puts beside it."""
    return (database, *(database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm", "-journal")))


def _close(names: Sequence[str]) -> str:
    return f"If nobody changed {'it' if len(names) == 1 else 'them'}, close with: chmod 600 {' '.join(names)}"


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        take = f" If it should be yours: sudo chown -R {os.geteuid()} {shlex.quote(str(path))}" if os.geteuid() else ""
        raise UnsafePlace(
            f"{path} belongs to user {found.st_uid}, not to you (user {os.geteuid()}).",
            next_step=f"Run goex as its owner, or point the XDG variables at folders of your own.{take}",
        )


def _lstat(path: Path) -> os.stat_result:
    try:
        return path.lstat()
    except OSError as error:
        raise _unseen(path, error) from error


def _unseen(path: Path, error: OSError) -> UnsafePlace:
    return UnsafePlace(f"{path} can't be looked at: {error.strerror}.", next_step="See what is wrong with: goex doctor")


def _absolute(text: str) -> Path | None:
    return Path(text) if text.startswith("/") else None
