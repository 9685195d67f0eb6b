"""Calls in two stages: what is read first, and then the calls that take values of those answers. Pure.

The calls that read and stand first are a stage of their own when later ones take values of their answers: the later
ones are made of the values before anybody is asked about them. `{"$each": N, "path": …, "most": K}` in the arguments of
a later call makes one call for each item of an answer, K at most. What an answer brings fills values and says how often
a call is made; never which method is called, or as whom. How many references an action has, how much they look at and
how much they fill in are bounded, all of them together: each is a few letters, and stands for a long text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies.actions import ApiCalls, Call
from policies.errors import InvalidInput
from policies.jsonvalue import JsonValue, canonical, find
from policies.late import Late

if TYPE_CHECKING:
    from policies import jsonpath
else:
    jsonpath = Late("policies.jsonpath")  # its library is needed where one call takes a value of another's answer

MAX_VALUE = 65_536  # characters of one text that an answer supplies
MOST_REFERENCES = 200  # of one action
MOST_FILLED = 1_000_000  # bytes that answers supply for one action

MOST_EACH = 50  # calls that one call becomes
_EACH = frozenset({"$each", "path", "most"})

Picks = Mapping[tuple[int, str], str]  # (call, path up to its filter): the place of the item that the person chose


@dataclass(frozen=True, slots=True)
class Unclear(Exception):
    """A filter that fits none or several, and what may be chosen instead."""

    source: int
    head: str  # the path up to its filter
    method: str  # of the call that was read
    error: jsonpath.NoMatch | jsonpath.SeveralValues

    @property
    def choices(self) -> tuple[jsonpath.Choice, ...]:
        return self.error.choices


def first_stage(calls: Sequence[Call], is_read: Callable[[Call], bool]) -> int:
    """How many calls are read first, on their own; 0 where all run together. Raises InvalidInput for an `$each` that
    isn't over one of these, or whose calls a later one refers to."""
    _check_count(calls)
    lead = 0
    while lead < len(calls) and is_read(calls[lead]) and not any(_eaches(calls[lead].arguments)):
        lead += 1
    multiplied = set()
    staged = False
    for position, call in enumerate(calls[lead:], lead):
        for source, _, _ in _eaches(call.arguments):
            if source >= lead:
                raise InvalidInput(
                    f"{call.id} is made for each item of the answer to call {source}, which isn't read first.",
                    next_step="Let the calls that only read stand first.",
                )
            multiplied.add(position)
            staged = True
        for source, _ in _references(call.arguments):
            if source in multiplied:
                raise InvalidInput(f"Call {source} is made for each of several items, so it has no one answer.")
            staged = staged or source < lead
    return lead if staged else 0


def with_values(calls: Sequence[Call], lead: int, answers: Sequence[JsonValue], picks: Picks) -> tuple[Call, ...]:
    """The calls after the first `lead`, with what the answers to these hold in place of what refers to them. Raises
    Unclear, MissingValue, InvalidInput."""
    made: list[Call] = []
    moved: dict[int, int] = {}
    taken = _Taken()
    for position, call in enumerate(calls[lead:], lead):
        found = _Values(calls, lead, answers, picks, moved, taken)
        moved[position] = len(made)
        names = tuple(name for name, value in call.arguments.items() if _takes(value, lead))
        for item in found.items(call):
            arguments = {name: found.fill(value, item) for name, value in call.arguments.items()}
            made.append(replace(call, arguments=arguments, filled=tuple(dict.fromkeys((*call.filled, *names)))))
        if len(made) > MOST_EACH:
            raise InvalidInput(f"These are more than {MOST_EACH} calls, which is too many for one action.")
    return tuple(made)


def earlier_actions(calls: Sequence[Call]) -> tuple[str, ...]:
    """The ids of the earlier actions whose answers calls refer to: `{"$from": "a-…", "path": …}`. Raises InvalidInput
    for too many references."""
    _check_count(calls)
    return tuple(dict.fromkeys(found["$from"] for call in calls for found in _of_actions(call.arguments)))


def with_earlier(calls: Sequence[Call], answers: Mapping[str, JsonValue]) -> tuple[Call, ...]:
    """The calls with what earlier actions answered in place of what refers to them. Raises MissingValue, InvalidInput,
    and NoMatch or SeveralValues of a filter."""

    taken = _Taken()

    def fill(value: JsonValue) -> JsonValue:
        if isinstance(value, Mapping):
            if _of_action(value):
                return taken.filled(taken.value_at(value["$from"], answers[value["$from"]], value["path"]))
            if "$from" in value:
                return value  # nothing within one that is malformed is filled: it is refused as it is
            return {key: fill(each) for key, each in value.items()}
        return [fill(each) for each in value] if isinstance(value, list | tuple) else value

    made = []
    for call in calls:
        names = tuple(name for name, value in call.arguments.items() if any(_of_actions(value)))
        arguments = {name: fill(value) for name, value in call.arguments.items()}
        made.append(replace(call, arguments=arguments, filled=names) if names else call)
    return tuple(made)


def at_once(action: ApiCalls) -> ApiCalls:
    """The action as if each `$each` were about one item: what can be said of them before anything was read."""

    def one(value: JsonValue) -> JsonValue:
        if isinstance(value, Mapping):
            if set(value) == _EACH:
                head, rest = jsonpath.divided(value["path"])
                path = f"{head.removesuffix('[*]')}[0]{rest[1:]}" if head.endswith("[*]") else value["path"]
                return {"$from": value["$each"], "path": path}
            return {key: one(item) for key, item in value.items()}
        return [one(item) for item in value] if isinstance(value, list | tuple) else value

    return ApiCalls(calls=tuple(replace(call, arguments=one(call.arguments)) for call in action.calls))


def is_each(value: JsonValue) -> bool:
    """Whether `value` stands for a value of each item of an answer. A malformed one is none."""
    return isinstance(value, Mapping) and set(value) == _EACH and not wrong_each(value)


def wrong_each(value: Mapping[str, JsonValue]) -> str:
    """Why it isn't a whole `$each`; "" when it is."""
    source, path, most = value.get("$each"), value.get("path"), value.get("most")
    if more := set(value) - _EACH:
        return f"it has no {min(more)[:40]!r}"
    if isinstance(source, bool) or not isinstance(source, int) or source < 0:
        return "$each is the number of an earlier call"
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_EACH:
        return f"most is a number from 1 to {MOST_EACH}"
    if not isinstance(path, str):
        return "a path is a text"
    try:
        jsonpath.check_each(path)
    except InvalidInput as error:
        return error.message.rstrip(".")
    return ""


@dataclass(frozen=True, slots=True)
class _Values:
    """What the answers to the first calls hold."""

    calls: Sequence[Call]
    lead: int
    answers: Sequence[JsonValue]
    picks: Picks
    moved: Mapping[int, int]
    taken: _Taken

    def items(self, call: Call) -> tuple[str, ...]:
        """The places of the items that a call is made for; one empty place where it has no `$each`."""
        lists = dict.fromkeys((source, jsonpath.divided(path)[0]) for source, path, _ in _eaches(call.arguments))
        if not lists:
            return ("",)
        if len(lists) > 1:
            raise InvalidInput(f"{call.id} is about each item of one list, and names {len(lists)}.")
        ((source, head),) = lists
        most = min(most for _, _, most in _eaches(call.arguments))
        return jsonpath.items_at(self.answers[source], head, most, self.taken.work)

    def fill(self, value: JsonValue, item: str) -> JsonValue:
        if isinstance(value, Mapping):
            if set(value) == _EACH:
                there = find(self.answers[value["$each"]], item)
                return self.taken.filled(find(there, jsonpath.divided(value["path"])[1]))
            if set(value) == {"$from", "path"}:
                source, path = value["$from"], value["path"]
                return self._one(source, path) if source < self.lead else {**value, "$from": self.moved[source]}
            return {key: self.fill(each, item) for key, each in value.items()}
        return [self.fill(each, item) for each in value] if isinstance(value, list | tuple) else value

    def _one(self, source: int, path: str) -> JsonValue:
        head, rest = jsonpath.divided(path)
        answer = self.answers[source]
        if head and (source, head) in self.picks:
            return self.taken.filled(find(find(answer, self.picks[source, head]), rest))
        try:
            return self.taken.filled(self.taken.value_at(source, answer, path))
        except (jsonpath.NoMatch, jsonpath.SeveralValues) as error:
            raise Unclear(source, head, self.calls[source].id, error) from error


class _Taken:
    """What one action takes of answers, all of its references together."""

    def __init__(self) -> None:
        self.work = jsonpath.Work()
        self._left = MOST_FILLED
        self._found: dict[tuple[int | str, str], JsonValue] = {}

    def value_at(self, source: int | str, answer: JsonValue, path: str) -> JsonValue:
        """As `jsonpath.value_at`; what was looked up before costs nothing."""
        if (source, path) not in self._found:
            self._found[source, path] = jsonpath.value_at(answer, path, self.work)
        return self._found[source, path]

    def filled(self, value: JsonValue) -> JsonValue:
        """A value that a service supplied, as it may stand in a call. Raises InvalidInput for one that may not, and
        where there is no room for it."""
        self._left -= len(canonical(_foreign(value)))
        if self._left < 0:
            raise InvalidInput(
                f"Answers fill in more than {MOST_FILLED} bytes of it.",
                next_step="Make several actions of it.",
            )
        return value


def _check_count(calls: Sequence[Call]) -> None:
    found = (1 for call in calls for key in ("$from", "$each") for _ in _marked(call.arguments, key))
    if (count := sum(found)) > MOST_REFERENCES:
        raise InvalidInput(
            f"These calls refer to answers {count} times; {MOST_REFERENCES} at most.",
            next_step="Make several actions of it.",
        )


def _foreign(value: JsonValue) -> JsonValue:
    """A value that a service supplied. Raises InvalidInput for one that may not stand in a call."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str) and len(one) > MAX_VALUE:
            raise InvalidInput(f"A service supplied a value of {len(one)} characters, which is too long.")
        if isinstance(one, Mapping):
            if any(key.startswith("$") for key in one):
                raise InvalidInput("A service supplied something that reads as a reference.")
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)
    return value


def _takes(value: JsonValue, lead: int) -> bool:
    """Whether it takes a value of an answer of the first stage."""
    return any(_eaches(value)) or any(source < lead for source, _ in _references(value))


def _eaches(value: JsonValue) -> Iterator[tuple[int, str, int]]:
    """Every (call, path, most) of an `$each` in `value`, at any depth."""
    for found in _marked(value, "$each"):
        if wrong := wrong_each(found):
            raise InvalidInput(f'An $each is written {{"$each": N, "path": "$.items[*].id", "most": 20}}: {wrong}.')
        yield found["$each"], found["path"], found["most"]


def _references(value: JsonValue) -> Iterator[tuple[int, str]]:
    for found in _marked(value, "$from"):
        if set(found) == {"$from", "path"} and isinstance(found["$from"], int):
            yield found["$from"], found["path"]


def _of_actions(value: JsonValue) -> Iterator[Mapping[str, JsonValue]]:
    return (found for found in _marked(value, "$from") if _of_action(found))


def _of_action(value: Mapping[str, JsonValue]) -> bool:
    return set(value) == {"$from", "path"} and isinstance(value["$from"], str) and isinstance(value["path"], str)


def _marked(value: JsonValue, key: str) -> Iterator[Mapping[str, JsonValue]]:
    if isinstance(value, Mapping):
        if key in value:
            yield value
        else:
            for child in value.values():
                yield from _marked(child, key)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _marked(child, key)
