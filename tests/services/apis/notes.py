"""Notes, stars and members: a service that keeps state, as the documents `notes` and `forge` of the labelled set
describe one. Ids are the service's own; times count up with each change; a key makes a repetition harmless."""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import unquote

from tests.runtimes.rest.support import Hit, Service

WRITES = frozenset({"title", "text", "labels"})


class Notes(Service):
    """`notes` by id, `stars` as (owner, repository); `seen` holds the keys of requests that were carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[str, dict[str, Any]] = {}
        self.stars: set[tuple[str, str]] = set()
        self.seen: dict[str, tuple[int, Any]] = {}
        self.clock = 0
        self.made = 0
        self.lies: dict[str, Any] = {}  # fields that every answer of a note gets

    def state(self) -> Any:
        """All that can be seen from outside, without ids and times."""
        kept = [{k: v for k, v in note.items() if k not in ("id", "updated_at")} for note in self.notes.values()]
        return copy.deepcopy((sorted(kept, key=repr), sorted(self.stars)))

    def add(self, **fields: Any) -> str:
        """As somebody else would."""
        self.made += 1
        id = f"n{self.made}"
        self.notes[id] = {"id": id, "archived": False, "updated_at": self._now(), **fields}
        return id

    def change(self, id: str, **fields: Any) -> None:
        """As somebody else would."""
        self.notes[id].update(fields, updated_at=self._now())

    def handle(self, hit: Hit) -> tuple[int, Any]:
        key = hit.headers.get("idempotency-key", "")
        if key and key in self.seen:
            return self.seen[key]
        said = copy.deepcopy(self._handle(hit, unquote(hit.path).strip("/").split("/")))
        if isinstance(said[1], dict) and "id" in said[1]:
            said[1].update(self.lies)
        if key:
            self.seen[key] = said
        return said

    def _handle(self, hit: Hit, parts: list[str]) -> tuple[int, Any]:
        match hit.method, parts:
            case method, ["user", "starred", owner, repo]:
                return self._star(method, (owner, repo))
            case "POST", ["notes"]:
                return 201, self.notes[self.add(**{k: v for k, v in hit.body.items() if k in WRITES})]
            case "POST", ["notes", id, "archive" | "unarchive" as verb] if id in self.notes:
                self.change(id, archived=verb == "archive")
                return 200, self.notes[id]
            case method, ["notes", id] if id in self.notes:
                return self._one(method, id, hit.body)
        return 404, {"error": "not found"}

    def _one(self, method: str, id: str, body: Any) -> tuple[int, Any]:
        note = self.notes[id]
        match method:
            case "PATCH":
                self.change(id, **{k: v for k, v in body.items() if k in WRITES and v is not None})
                for name in [name for name, value in body.items() if value is None]:
                    note.pop(name, None)
            case "PUT":
                self.notes[id] = {k: note[k] for k in ("id", "archived")} | {
                    k: v for k, v in body.items() if k in WRITES
                }
                self.change(id)
            case "DELETE":
                del self.notes[id]
                return 204, None
        return 200, self.notes[id]

    def _star(self, method: str, name: tuple[str, str]) -> tuple[int, Any]:
        if method == "GET":
            return (204, None) if name in self.stars else (404, {"error": "not found"})
        (self.stars.add if method == "PUT" else self.stars.discard)(name)
        return 204, None

    def _now(self) -> str:
        self.clock += 1
        return f"2026-01-01T00:00:{self.clock:05d}Z"
