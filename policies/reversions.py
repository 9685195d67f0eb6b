"""The reversion set: which undo a call gets, who claims that it works, and whether it ever did. Pure.

Rules: an entry is for a method, for some of its arguments, or for one request exactly; the most exact one that fits
wins, and among equally exact ones the developer's, then what comes with GoEx, then what was derived from a document,
then a model's. One that failed once is never chosen again, whoever adds it anew: what it is is its hash. One is proven
once it was read back that it worked here. Where what is known of them can't be believed, only what comes with GoEx
counts, and nothing is proven (thesis, 4.3: "wrong at most once").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, canonical
from policies.services import CallTemplate, Expect, Source, UndoTemplate

_DOMAIN = b"goex.v1.pair\0"
_WORDS = ("mask", "select", "around", "unless", "made")  # of an undo template, as they stand in its JSON form
_NAMES = ("fields", "tags")
_FLAGS = ("shown", "rest", "created")
_CALLS = ("pre", "after", "guard", "verify", "absent")
_RANK: Mapping[Source, int] = {"developer": 4, "bundled": 3, "derived": 2, "imported": 1, "model": 0}


class Standing(StrEnum):
    """What is known of a pair: UNBELIEVED where the record of it was altered."""

    UNPROVEN = "unproven"
    PROVEN = "proven"
    FAILED = "failed"
    UNBELIEVED = "unbelieved"


class Result(StrEnum):
    """What became of one use. OPEN says nothing about the pair: a service failed, someone came in between."""

    WORKED = "worked"  # and was read back
    UNVERIFIED = "unverified"  # every call went well, nothing was read back
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A call and what takes it back. `when` gives patterns (`*`, `?`) for some arguments, by name; `request` is one
    request exactly, its defaults included. `wire` is a hash over how the methods in it are called."""

    service: str
    method: str
    undo: UndoTemplate
    source: Source
    when: Mapping[str, str] = field(default_factory=dict)
    request: JsonObject | None = None
    wire: str = ""

    @property
    def method_id(self) -> str:
        return f"{self.service}.{self.method}"

    @property
    def exactness(self) -> tuple[int, int]:
        """What is compared to find the most exact one."""
        if self.request is not None:
            return 2, 0
        return (1, len(self.when)) if self.when else (0, 0)

    @property
    def hash(self) -> str:
        """What it is: the same for equal ones, whoever says so and with whatever words."""
        body = {
            "service": self.service,
            "method": self.method,
            "when": dict(self.when),
            "request": dict(self.request) if self.request is not None else None,
            "undo": {key: value for key, value in undo_to_json(self.undo).items() if key != "note"},
            "wire": self.wire,
        }
        return hashlib.sha256(_DOMAIN + canonical(body)).hexdigest()

    def fits(self, arguments: JsonObject) -> bool:
        """Whether it is for a call with these arguments."""
        if self.request is not None:
            return canonical(dict(self.request)) == canonical(dict(arguments))
        return all(
            name in arguments and fnmatchcase(_text(arguments[name]), pattern) for name, pattern in self.when.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a pair: the undo action `action` took back call `call` (0-based) of its target with it."""

    pair: str  # its hash
    action: str
    call: int
    result: Result
    why: str = ""


class ReversionSet(Protocol):
    """What is known beyond the catalog: pairs that were added, and how each pair did."""

    def added(self, method_id: str) -> tuple[Pair, ...]:
        """The pairs of the developer and of models for a method."""
        ...

    def standing(self, pair: str) -> Standing:
        """What is known of the pair with that hash."""
        ...

    def used(self, use: Use) -> None:
        """Note a use, durably. The same one again changes nothing."""
        ...


class NoReversions:
    """Nothing was added, nothing is proven, and nothing is kept."""

    def added(self, method_id: str) -> tuple[Pair, ...]:
        return ()

    def standing(self, pair: str) -> Standing:
        return Standing.UNPROVEN

    def used(self, use: Use) -> None:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The pair for one call, None where there is none; `passed` are better fitting ones that failed before."""

    pair: Pair | None
    standing: Standing = Standing.UNPROVEN
    passed: tuple[Pair, ...] = ()
    unbelieved: bool = False  # there is one, and what is known of it can't be believed


def choose(pairs: Iterable[Pair], arguments: JsonObject, known: ReversionSet) -> Chosen:
    """The pair that a call with these arguments gets."""
    fitting = sorted(
        (pair for pair in pairs if pair.fits(arguments)),
        key=lambda pair: (pair.exactness, _RANK[pair.source], pair.hash),
        reverse=True,
    )
    passed: list[Pair] = []
    unbelieved = False
    for pair in fitting:
        standing = known.standing(pair.hash)
        if standing is Standing.FAILED:
            passed.append(pair)
        elif standing is Standing.UNBELIEVED and pair.source != "bundled":
            unbelieved = True
        else:
            return Chosen(pair=pair, standing=standing, passed=tuple(passed))
    return Chosen(pair=None, passed=tuple(passed), unbelieved=unbelieved)


def undo_to_json(undo: UndoTemplate) -> dict[str, Any]:
    """As a manifest would say it, in JSON. Where it comes from isn't in it."""
    made: dict[str, Any] = {"calls": [_call_to_json(call) for call in undo.calls]}
    for name in _CALLS:
        template = getattr(undo, name)
        if template is not None:
            made[name] = _call_to_json(template)
    if undo.guards:
        made["guards"] = [_call_to_json(guard) for guard in undo.guards]
    if undo.restores:
        made |= {"restores": undo.restores, "answered": undo.answered}
    made |= {name: getattr(undo, name) for name in (*_WORDS, *_FLAGS) if getattr(undo, name)}
    made |= {name: list(getattr(undo, name)) for name in _NAMES if getattr(undo, name)}
    if undo.note:
        made["note"] = undo.note
    return made


def undo_from_json(value: Any, source: Source) -> UndoTemplate:
    """What `undo_to_json` wrote, taken by its form alone. Raises InvalidInput."""
    try:
        calls = tuple(_call_from_json(call) for call in value["calls"])
        around: dict[str, Any] = {name: _call_from_json(value[name]) for name in _CALLS if name in value}
        around |= {name: str(value.get(name, "")) for name in ("note", "restores", *_WORDS)}
        around |= {name: value.get(name) is True for name in _FLAGS}
        around |= {name: tuple(str(one) for one in value.get(name, ())) for name in _NAMES}
        made = UndoTemplate(
            calls=calls,
            guards=tuple(_call_from_json(guard) for guard in value.get("guards", ())),
            source=source,
            answered=value.get("answered") is True,
            **around,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(f"This isn't an undo: {error!r}.") from error
    if not made.calls:
        raise InvalidInput("An undo without a call isn't one.")
    return made


def _call_from_json(value: Any) -> CallTemplate:
    expects = [_expect_from_json(one) for one in value.get("expect", ())]
    return CallTemplate(method=str(value["method"]), arguments=dict(value["arguments"]), expect=tuple(expects))


def _expect_from_json(value: Any) -> Expect:
    says = str(value.get("says", ""))
    if "status" in value:
        return Expect(op="status", value=[int(code) for code in value["status"]], says=says)
    for op in _OPS:
        if op in value:
            told = None if op in ("exists", "absent") else value[op]
            return Expect(op=op, path=str(value["path"]), value=told, says=says)
    raise KeyError("an expectation without what is expected")


_OPS: tuple[Literal["equals", "not_equals", "exists", "absent", "contains", "lacks"], ...] = (
    "equals", "not_equals", "exists", "absent", "contains", "lacks",
)  # fmt: skip


def _call_to_json(call: CallTemplate) -> dict[str, Any]:
    made: dict[str, Any] = {"method": call.method, "arguments": dict(call.arguments)}
    if call.expect:
        made["expect"] = [
            {"status": expect.value, "says": expect.says}
            if expect.op == "status"
            else {
                "path": expect.path,
                expect.op: True if expect.op in ("exists", "absent") else expect.value,
                "says": expect.says,
            }
            for expect in call.expect
        ]
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
