"""Something else in the place of a file of the state folder: refused at once, by everything that opens one.

A pipe that nobody writes to keeps whoever opens it waiting, a link leads elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goex.client import log_tail
from goex.daemon.main import lock
from goex.daemon.process_state import state_id
from goex.daemon.vault_state import VaultState
from goex.journal.chain import Journal
from goex.journal.head import Head, Mark
from goex.page_address import page_origin
from goex.paths import Paths, UnsafePlace
from goex.web.access import KeyFile
from mapper.store import database
from policies.errors import Conflict, GoexError, Unavailable
from policies.regular_file import open_regular, read_regular
from runtimes.files.gitprocess import Git
from runtimes.files.large import Large
from runtimes.files.snapshot import Repository
from runtimes.sandbox import profiles
from runtimes.servers.definition import Server, Servers
from tests.support.sqlite_journal import naming
from tests.vault.support import account, create, protector
from vault.errors import VaultUnwritable
from vault.oauth import deposits
from vault.secret import Secret
from vault.store import Vault

pytestmark = pytest.mark.timeout(300)  # which only a hang reaches

KEY = b"k" * 32
KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": lambda file: os.mkfifo(file, 0o600),
    "socket": lambda file: os.mknod(file, stat.S_IFSOCK | 0o600),
    "folder": lambda file: file.mkdir(mode=0o700),
    "link to nothing": lambda file: file.symlink_to("nothing"),
    "link to a device": lambda file: file.symlink_to("/dev/null"),
    "link to a file": lambda file: file.symlink_to(__file__),
}


@pytest.fixture(params=KINDS)
def put(request: pytest.FixtureRequest) -> Callable[[Path], Path]:
    def made(file: Path) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            file.unlink()
        KINDS[request.param](file)
        return file

    return made


Put = Callable[[Path], Path]


def test_it_isnt_opened(tmp_path: Path, put: Put) -> None:
    file = put(tmp_path / "file")
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        with pytest.raises(OSError, match="Not a regular file"):
            open_regular(file, flags)
    with pytest.raises(OSError, match="Not a regular file"):
        read_regular(file)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(OSError):
            open_regular(file)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_a_regular_file_is_made_and_read(tmp_path: Path) -> None:
    with os.fdopen(open_regular(tmp_path / "file", os.O_WRONLY | os.O_CREAT), "wb") as file:
        file.write(b"\0\r\n\xff")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    assert read_regular(tmp_path / "file") == b"\0\r\n\xff"
    assert read_regular(tmp_path / "file", 2) == b"\0\r"
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "nothing")


def test_no_daemon_starts(tmp_path: Path, put: Put) -> None:
    places = Paths.from_env({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    places.create()
    for file in places.files:
        put(file)
        with pytest.raises(UnsafePlace, match=f"{file.name} isn't a regular file"):
            places.create()
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
    assert {"id", "sealed", "web.key"} <= {file.name for file in places.files}


def test_the_mark_of_a_sealed_vault_still_keeps_it_sealed(tmp_path: Path, put: Put) -> None:
    state = VaultState(tmp_path / "vault.db")
    mark = put(tmp_path / "sealed")
    assert state.stays_sealed == f"{mark} can't be read: Not a regular file"
    state.seal("the screen was locked")
    assert state.stays_sealed


def test_the_head_of_the_log(tmp_path: Path, put: Put) -> None:
    head = Head(tmp_path / "journal.head")
    put(tmp_path / "journal.head")
    with pytest.raises(Unavailable, match="can't be read: Not a regular file"):
        head.read(KEY)
    with pytest.raises(Unavailable, match="can't be written: Not a regular file"):
        head.write(Mark(1, KEY), KEY, sync=True)


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
class TestBesideADatabase:
    def test_the_log(self, tmp_path: Path, put: Put, end: str) -> None:
        def opened() -> Journal:
            return Journal(tmp_path / "state.db", tmp_path / "journal.head")

        opened().close()
        put(tmp_path / f"state.db{end}")
        with pytest.raises(Unavailable, match=f"state.db{end} isn't a regular file"):
            opened()

    @pytest.mark.sampled(2)
    def test_the_vault(self, tmp_path: Path, put: Put, end: str) -> None:
        """Between two uses of one that is open, too."""
        vault = create(tmp_path / "vault" / "vault.db")
        file = put(tmp_path / "vault" / f"vault.db{end}")
        for use in (
            lambda: vault.put(account(), Secret("x")),
            lambda: vault.records(),
            lambda: Vault.open(vault.path),
            lambda: vault.unlock(protector()),
        ):
            with pytest.raises(VaultUnwritable, match=f"vault.db{end} isn't a regular file"):
                use()
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
        vault.put(account(), Secret("x"))

    def test_the_catalog(self, tmp_path: Path, put: Put, end: str) -> None:
        catalog = tmp_path / "catalog.db"
        database.open_writing(catalog).close()
        put(tmp_path / f"catalog.db{end}")
        for opened in (database.open_reading, database.open_writing):
            with pytest.raises(database.StoreUnreadable, match=f"catalog.db{end} isn't a regular file"):
                opened(catalog)


class TestAJournalThatNamesAFile:
    """SQLite deletes that file when it has played the journal back, whatever it is."""

    @pytest.fixture
    def named(self, tmp_path: Path) -> Iterator[Callable[[Path], None]]:
        """Puts such a journal beside a database. What it names must be there afterwards."""
        precious = tmp_path / "precious"
        precious.write_text("precious")

        def put_beside(file: Path) -> None:
            journal = file.with_name(f"{file.name}-journal")
            journal.write_bytes(naming(precious, file.stat().st_size // 4096))
            journal.chmod(0o600)

        yield put_beside
        assert precious.exists()

    def test_the_log(self, tmp_path: Path, named: Callable[[Path], None]) -> None:
        Journal(tmp_path / "state.db", tmp_path / "journal.head").close()
        named(tmp_path / "state.db")
        with pytest.raises(Unavailable, match=r"state\.db-journal names a file"):
            Journal(tmp_path / "state.db", tmp_path / "journal.head")

    @pytest.mark.sampled(2)
    def test_the_vault(self, tmp_path: Path, named: Callable[[Path], None]) -> None:
        vault = create(tmp_path / "vault" / "vault.db")
        named(vault.path)
        with pytest.raises(VaultUnwritable, match=r"vault\.db-journal names a file"):
            vault.put(account(), Secret("x"))
        with pytest.raises(VaultUnwritable, match=r"vault\.db-journal names a file"):
            Vault.open(vault.path)

    def test_the_catalog(self, tmp_path: Path, named: Callable[[Path], None]) -> None:
        catalog = tmp_path / "catalog.db"
        database.open_writing(catalog).close()
        named(catalog)
        for opened in (database.open_reading, database.open_writing):
            with pytest.raises(database.StoreUnreadable, match=r"catalog\.db-journal names a file"):
                opened(catalog)


def test_an_answer_that_was_put_beside_the_vault(tmp_path: Path, put: Put) -> None:
    vault = tmp_path / "vault.db"
    late = put(tmp_path / "vault.db.late-abc")
    if late.is_symlink():
        assert deposits.take(vault, "abc", Secret(KEY)) is None
    else:
        with pytest.raises(Unavailable, match="Not a regular file"):
            deposits.take(vault, "abc", Secret(KEY))


def test_an_answer_that_is_a_pipe_which_somebody_writes_to(tmp_path: Path) -> None:
    late = tmp_path / "vault.db.late-abc"
    os.mkfifo(late)
    writer = os.open(late, os.O_RDWR)
    try:
        with pytest.raises(Unavailable, match="Not a regular file"):
            deposits.take(tmp_path / "vault.db", "abc", Secret(KEY))
    finally:
        os.close(writer)


def test_the_folders_id_the_lock_and_the_daemons_log(tmp_path: Path, put: Put) -> None:
    places = Paths.from_env({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    put(places.state_id)
    with pytest.raises(OSError, match="Not a regular file"):
        state_id(places)
    with pytest.raises(Unavailable, match="Not a regular file"):
        lock(put(places.lock_file))
    assert log_tail(put(places.log_file)) == ""


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"0" * 15, b"id=" + b"0" * 16])
def test_a_damaged_id_labels_nothing(tmp_path: Path, content: bytes) -> None:
    places = Paths.from_env({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    places.create()
    places.state_id.write_bytes(content)
    with pytest.raises(Unavailable, match="is damaged"):
        state_id(places)
    places.state_id.unlink()
    assert state_id(places) == state_id(places) != ""


def test_the_pages_key(tmp_path: Path, put: Put) -> None:
    file = put(tmp_path / "web.key")
    assert page_origin(file) == ""
    assert KeyFile(file).of_running() is None
    with pytest.raises(Unavailable, match="Not a regular file"):
        KeyFile(file).take("http://localhost:1")


def test_a_server_and_a_profile(tmp_path: Path, put: Put) -> None:
    put(tmp_path / "servers" / "notes" / "server.json")
    put(tmp_path / "servers" / "notes" / "seen.json")
    with pytest.raises(Conflict):
        Servers(tmp_path / "servers").get("notes")
    assert Servers(tmp_path / "servers").seen("notes") is None
    assert Servers(tmp_path / "servers").files("notes") == {}, "so adding it anew puts nothing of them back"
    (tmp_path / "images" / "mine").mkdir(parents=True)
    (tmp_path / "images" / "mine" / "requirements.txt").touch()
    put(tmp_path / "images" / "mine" / "packages")
    with pytest.raises(Unavailable, match="Not a regular file"):
        profiles.content(tmp_path / "images", "mine")


@pytest.mark.parametrize("linked", ["servers", "servers/notes"])
def test_a_link_in_the_place_of_a_servers_folder(tmp_path: Path, linked: str) -> None:
    """What it leads to is neither read nor written nor removed."""
    notes = Server(name="notes", command=("x",), argv=("x",), image="code", lock="", tools=())
    servers, away = Servers(tmp_path / "servers"), tmp_path / "away"
    servers.put(notes, b"lock")
    servers.note_seen("notes", ({"name": "x"},))
    (tmp_path / linked).rename(away)
    (tmp_path / linked).symlink_to(away)
    before = {file: file.stat() for file in away.rglob("*")}
    assert (servers.names(), servers.images(), servers.seen("notes"), servers.files("notes")) == ((), set(), None, {})
    with pytest.raises(Conflict):
        servers.get("notes")
    for write in (lambda: servers.put(notes), lambda: servers.note_seen("notes", ())):
        with pytest.raises(Unavailable, match="A link, not a folder"):
            write()
    servers.forget_seen("notes")
    servers.put_back("notes", {"server.json": b"{}"})
    if linked != "servers":
        servers.remove("notes")
        assert not (tmp_path / linked).is_symlink()
    assert {file: file.stat() for file in away.rglob("*")} == before


def test_a_link_in_the_place_of_a_profiles_folder(tmp_path: Path) -> None:
    images, away = tmp_path / "images", tmp_path / "away"
    images.mkdir()
    away.mkdir()
    for file in ("packages", "requirements.txt", "requirements.in"):
        (away / file).touch()
    (images / "mine").symlink_to(away)
    with pytest.raises(Unavailable, match="A link, not a folder"):
        profiles.content(images, "mine")
    profiles.remove(images, "mine")
    assert (list(images.iterdir()), len(list(away.iterdir()))) == ([], 3)


def test_a_profile_that_cannot_be_read_is_removed(tmp_path: Path, put: Put) -> None:
    (tmp_path / "images" / "mine").mkdir(parents=True)
    (tmp_path / "images" / "mine" / "requirements.txt").touch()
    put(tmp_path / "images" / "mine" / "packages")
    profiles.remove(tmp_path / "images", "mine")
    assert not (tmp_path / "images" / "mine").exists()


def test_a_repository_of_snapshots(tmp_path: Path, put: Put) -> None:
    repository = Repository(tmp_path / "a.git", large=17)
    put(tmp_path / "a.git" / "large")
    assert repository.large == 17
    put(tmp_path / "a.git" / "latest")
    assert repository._latest() is None
    put(tmp_path / "b.git" / "config")
    with pytest.raises(GoexError):
        Git(tmp_path / "b.git").check()
    large = Large(tmp_path / "lfs")
    oid = "L" + "0" * 64
    put(large.path(oid))
    with pytest.raises(OSError, match="Not a regular file"):
        large._open(oid)
