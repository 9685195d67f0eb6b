"""Tasks: what an agent may do without being asked again, as one list with bounds, counts and an end.

Rules: a line names one method on one account, never a pattern. An argument that a line doesn't name can't be there;
one that it names is bounded by what was shown, and is there unless it may be anything; `body.title` names a member.
Only a read may be used any number of times, or with any arguments. What is proposed is untrusted: sizes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from policies.databases import SERVICE as DATABASE
from policies.display_text import escape, escape_name, escape_value
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical
from policies.typed_json import to_json

LONGEST_TITLE = 200  # characters
MOST_LINES = 20
MOST_ARGUMENTS = 24  # of one line
MOST_TIMES = 1000
LARGEST = 20_000  # bytes of all bounds
SHORTEST_SECONDS, LONGEST_SECONDS = 60, 8 * 3600
DEFAULT_SECONDS = 30 * 60
OWN = "goex"  # the service of what GoEx itself does, and of the permission to begin a task
BEGIN, UNDO = "task", "undo"
FILES, READ_SCOPE = "files", "files.read"  # as runtimes.files.plans has them

_FORMS = (frozenset({"is"}), frozenset({"in"}), frozenset({"any"}), frozenset({"least"}), frozenset({"most"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One line of a task. `arguments` None: any (of a read alone). `times` 0: any number (the same).

    `service` and `method` are the catalog's; for a folder `files` and its scope, whose `account` is the path; for a
    database `db` and like `orders:update`, whose `account` is the entry's name and whose argument is `rows`.
    """

    service: str
    method: str
    account: str = ""
    arguments: Mapping[str, JsonObject] | None = None
    times: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.times <= MOST_TIMES:
            raise InvalidInput(f"A line is used at most {MOST_TIMES} times.", next_step="Say how often.")
        if self.arguments is not None and len(self.arguments) > MOST_ARGUMENTS:
            raise InvalidInput(f"A line bounds at most {MOST_ARGUMENTS} arguments, by name.")
        for bound in (self.arguments or {}).values():
            _check_bound(bound)

    @property
    def text(self) -> str:
        """It in words: what, on which account, with what, how often."""
        often = f"at most {self.times} times" if self.times > 1 else "once" if self.times else "any number of times"
        as_account = f" as {escape_name(self.account)}" if self.account else ""
        return escape(f"{self.service}.{self.method}{as_account}, {often}: {escape_value(self._bounds_text)}")

    @property
    def _bounds_text(self) -> str:
        if self.service == FILES:  # it has no arguments: whatever the program is, the folder is its own
            does = "read" if self.method == READ_SCOPE else "read, change and delete"
            return f"by any program, which can {does} everything there"
        if self.arguments is None:
            return "any arguments"
        if not self.arguments:
            return "nothing, since it doesn't say how many rows" if self.service == DATABASE else "no arguments"
        return "; ".join(f"{name} {_bound_text(bound)}" for name, bound in self.arguments.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A proposal. `agent`: whom the person gives it to; "": whoever proposes it, in this session alone."""

    title: str
    allows: tuple[Allowance, ...]
    seconds: int = DEFAULT_SECONDS
    agent: str = ""
    kind: Literal["task"] = "task"

    def __post_init__(self) -> None:
        if len(self.title) > LONGEST_TITLE:
            raise InvalidInput(f"A task's title has at most {LONGEST_TITLE} characters.", next_step="Say it shorter.")
        if not 1 <= len(self.allows) <= MOST_LINES:
            step = "Make several tasks of it." if self.allows else 'Name what it allows: "allows": [{"method": "…"}].'
            raise InvalidInput(f"A task has 1 to {MOST_LINES} lines, and this one {len(self.allows)}.", next_step=step)
        if len(canonical([to_json(one) for one in self.allows])) > LARGEST:
            raise InvalidInput(f"A task's bounds are at most {LARGEST} bytes.", next_step="Make it smaller.")
        if not SHORTEST_SECONDS <= self.seconds <= LONGEST_SECONDS:
            raise InvalidInput("A task lasts 1 minute to 8 hours.", next_step="Say for how many seconds.")


def holds(bound: JsonObject, value: JsonValue) -> bool:
    """Whether a value is within a bound; of a list with `in`, each element, and there is one: an empty list
    may stand for all. A number below 0 may stand for all, too, or turn what is done around: only `least` allows it."""
    if "any" in bound:
        return True
    if "is" in bound:
        return canonical(value) == canonical(bound["is"])
    if "in" in bound:
        among = {canonical(one) for one in bound["in"]}
        several = value if isinstance(value, list | tuple) else (value,)
        return bool(several) and all(canonical(one) in among for one in several)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(bound.get("least", 0) <= value <= bound.get("most", value))


def within(bounds: Mapping[str, JsonObject] | None, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether a call's arguments are within a line's bounds: no others, and none missing but those that may be
    anything (the service's own value for it could be a wider one)."""
    if bounds is None:
        return True
    found = list(_parts(bounds, arguments))
    names = {name for name, _ in found}
    needed = {name for name, bound in bounds.items() if "any" not in bound}
    return needed <= names <= bounds.keys() and all(holds(bounds[name], value) for name, value in found)


def _parts(
    bounds: Mapping[str, JsonObject], arguments: Mapping[str, JsonValue], above: str = ""
) -> Iterator[tuple[str, JsonValue]]:
    """Each argument; of an object that is bounded by its members (`body.title`) each member."""
    for key, value in arguments.items():
        name = f"{above}{key}"
        if above and "." in key:  # or it would pass for a member of a member
            name = f"{above}[{key}]"
        inside = any(one.startswith(f"{name}.") for one in bounds)
        if name not in bounds and inside and isinstance(value, Mapping):
            yield from _parts(bounds, value, f"{name}.")
        else:
            yield name, value


def _check_bound(value: JsonObject) -> None:
    numbers = set(value) <= {"least", "most"} and bool(value)
    if not (numbers or frozenset(value) in _FORMS):
        raise InvalidInput(
            "An argument's bound is one of is, in, least and most, any.",
            next_step='Like {"channel": {"is": "#ops"}, "text": {"any": true}}.',
        )
    if "any" in value and value["any"] is not True:
        raise InvalidInput('An argument that may be anything is {"any": true}.')
    if "in" in value and (not isinstance(value["in"], list | tuple) or not value["in"]):
        raise InvalidInput("`in` is a list of values.")
    if numbers and any(isinstance(one, bool) or not isinstance(one, int | float) for one in value.values()):
        raise InvalidInput("`least` and `most` are numbers.")


def _bound_text(bound: JsonObject) -> str:
    if "any" in bound:
        return "may be anything"
    if "is" in bound:
        return f"is {_said(bound['is'])}"
    if "in" in bound:
        return f"is among {_said(bound['in'])}"
    return " and ".join(f"at {name} {bound[name]}" for name in ("least", "most") if name in bound)


def _said(value: JsonValue) -> str:
    return canonical(value).decode("utf-8")
