"""What an import did: shared by all importers, and by whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from mapper.store.import_rows import Kept

Progress = Callable[[int, int, str], None]  # done, of how many, what is being done


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a document that couldn't be taken. The rest of the import goes on."""

    file: str
    line: int  # 1-based; 0 where it isn't known
    where: str  # the key, joined by dots; "" for the document as a whole
    what: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.where + ': ' if self.where else ''}{self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One document that is in the catalog now, and the name of the service that it is part of."""

    file: str
    service: str
    version: str
    main: bool
    methods: int
    scopes: int
    moved: str = ""  # the base URL that it had before, where that was another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that wasn't imported, for a reason that is no problem."""

    file: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of an import. `left` names services of the provider that the source doesn't hold any more, `kept`
    those that stay at a version which wouldn't be the main one if it were chosen anew."""

    imported: tuple[Imported, ...]
    skipped: tuple[Skipped, ...]
    problems: tuple[Problem, ...]
    left: tuple[str, ...]
    seconds: float
    kept: tuple[Kept, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "documents": len(self.imported),
            "services": len({one.service for one in self.imported}),
            "methods": sum(one.methods for one in self.imported),
            "seconds": round(self.seconds, 1),
            "imported": [
                {
                    "file": one.file,
                    "service": one.service,
                    "version": one.version,
                    "main": one.main,
                    "methods": one.methods,
                    "scopes": one.scopes,
                    "moved_from": one.moved,
                }
                for one in self.imported
            ],
            "skipped": [{"file": one.file, "why": one.why} for one in self.skipped],
            "problems": [
                {"file": one.file, "line": one.line, "where": one.where, "what": one.what} for one in self.problems
            ],
            "left": list(self.left),
            "kept": [asdict(one) for one in self.kept],
        }


class BadPart(Exception):
    """A part of a document can't be taken: the keys that lead to it from the root, and what is wrong."""

    def __init__(self, what: str, *keys: str) -> None:
        super().__init__(what)
        self.what = what
        self.keys = keys


class CantSend(BadPart):
    """A part that is understood, and can't be sent: an operation that needs it is catalogued, and says so."""
