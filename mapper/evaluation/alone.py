"""Google's catalog alone: what the evaluation of scopes maps over, independent of what anybody has imported.

It is built once, in a folder for caches, from the discovery documents of the installed package, and named by what it
is made of: the documents, the code that imports them, the search index's format and words. A file is never changed
after it has its name, so that a process which reads one is never disturbed; whoever builds holds a lock, and the others
wait for the result. Files that nobody reads any more are removed by the next build.

No service that comes with GoEx takes part: none takes a name, hides an imported one, or can be meant by a request.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from mapper.catalog import Catalog
from mapper.importing import google
from mapper.importing.import_report import Progress
from mapper.store import database
from policies.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from mapper.embedded import EmbeddedProposer
    from mapper.ranking.index import Index

_IMPORTERS = ("importing", "store")  # whose code decides what a catalog holds


@dataclass(slots=True)
class Alone:
    """An imported catalog without the bundled services, and its ranking. Use it in a `with`."""

    catalog: Catalog
    index: Index
    _held: int = -1

    def __enter__(self) -> Alone:
        return self

    def __exit__(self, *error: object) -> None:
        if self.catalog.store is not None:
            self.catalog.store.close()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def proposer(self) -> EmbeddedProposer:
        """The embedded proposer over this catalog."""
        from mapper.embedded import EmbeddedProposer

        return EmbeddedProposer(self.catalog, self.index)


def of_file(path: Path) -> Alone:
    """The imported services of any catalog's file, which isn't changed; their index is made in memory (seconds).

    Raises InvalidInput where there is no such file, or nothing is in it; StoreUnreadable.
    """
    import sqlite3

    from mapper.ranking import index_tables
    from mapper.ranking.index import Index
    from mapper.ranking.method_documents import gather

    if not path.exists():
        raise InvalidInput(f"There is no catalog at {path}.", next_step="Leave --catalog out, and one is built.")
    catalog = Catalog.open(path, alone=True)
    store = catalog.store
    if store is None or not store.names():
        raise InvalidInput(f"{path} holds no imported service.", next_step="Import them: goex catalog import google")
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    index_tables.write(db, index_tables.Made.of(gather(store, ())), "")
    return Alone(catalog, Index(db))


def of_package(folder: Path, progress: Progress = lambda *_: None) -> Alone:
    """Google's services from the installed package, cached in `folder`, which must be there and private.

    Raises Unavailable without the package, or where the folder can't be written.
    """
    from mapper.ranking.index import Index

    imported, indexed = _imported_stamp(), ""
    with _locked(folder / "google.lock"):
        _sweep(folder)
        indexed = _indexed_stamp()
        path = folder / f"google-{imported}-{indexed}.db"
        if not path.exists():
            _build(path, imported, progress)
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_SH)
    try:
        return Alone(Catalog.open(path, alone=True), Index(database.open_reading(path)), held)
    except BaseException:
        os.close(held)
        raise


def _build(path: Path, imported: str, progress: Progress) -> None:
    """Make the file at `path`; it has its name only when it is whole."""
    from mapper.importing.install import import_google

    made = path.with_name(f"building-{os.getpid()}.db")
    try:
        twin = next(iter(path.parent.glob(f"google-{imported}-*.db")), None)
        if twin is not None:
            _copy(twin, made)
        else:
            import_google(made, None, progress, index=False, alone=True)
        _index(made, progress)
        made.replace(path)
    except OSError as error:
        raise Unavailable(
            f"The catalog for the evaluation can't be written to {path.parent}: {error.strerror}.",
            next_step="Make room there, or point XDG_CACHE_HOME at another place.",
        ) from error
    finally:
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                made.with_name(made.name + end).unlink()


def _copy(source: Path, target: Path) -> None:
    """Copy a database through SQLite: closing a descriptor of our own would drop this process's locks on it."""
    reading, writing = database.open_reading(source), database.open_writing(target)
    with closing(reading), closing(writing):
        reading.backup(writing)


def _index(path: Path, progress: Progress) -> None:
    from mapper.ranking import index_tables
    from mapper.ranking.method_documents import gather
    from mapper.store.catalog_reader import Store

    progress(0, 2, "reading the methods")
    store = Store(path)
    made = index_tables.Made.of(gather(store, ()))
    store.close()
    progress(1, 2, "writing the search index")
    db = database.open_writing(path)
    try:
        with database.translated(path):
            db.execute("BEGIN IMMEDIATE")
            index_tables.write(db, made, "alone")
            db.execute("COMMIT")
            # A file alone, without a log beside it: it is about to get another name, and nobody writes it again.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode=DELETE")
    finally:
        db.close()
    progress(2, 2, "")


def _sweep(folder: Path) -> None:
    """Remove what is left of builds that were stopped, and the catalogs of other versions that nobody reads."""
    current = f"google-{_imported_stamp()}-{_indexed_stamp()}.db"
    keep = {current, next((file.name for file in folder.glob(f"google-{_imported_stamp()}-*.db")), current)}
    for file in (*folder.glob("building-*.db*"), *folder.glob("google-*.db")):
        if file.name in keep:
            continue
        with suppress(OSError):
            held = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody reads it
                for end in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        file.with_name(file.name + end).unlink()
            finally:
                os.close(held)


def _imported_stamp() -> str:
    """Equal when an import would give an equal catalog. Raises Unavailable without the package."""
    digest = hashlib.sha256(f"{database.FORMAT}\n".encode())
    for file in sorted(google.package_folder().iterdir(), key=lambda each: each.name):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
    package = files("mapper")
    for folder in _IMPORTERS:
        for entry in sorted(package.joinpath(folder).iterdir(), key=lambda each: each.name):
            if entry.name.endswith(".py"):
                digest.update(hashlib.sha256(entry.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _indexed_stamp() -> str:
    """Equal when the search index would be equal, the catalog being so."""
    from mapper.ranking import index_tables

    code = files("mapper").joinpath("ranking")
    digest = hashlib.sha256(index_tables.stamp(0).encode())
    for entry in sorted(code.iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".py"):
            digest.update(hashlib.sha256(entry.read_bytes()).digest())
    return digest.hexdigest()[:12]


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    try:
        held = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(
            f"{file} can't be opened: {error.strerror}.", next_step="Point XDG_CACHE_HOME at a place of your own."
        ) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


__all__ = ("Alone", "of_file", "of_package")
