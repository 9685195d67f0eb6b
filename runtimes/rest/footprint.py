"""What calls that have run read and wrote, told by the ids that they used and that were answered. Pure.

Rules: whatever a call named is read: each of its values, and of a name with slashes each name above it. What it wrote
is what it made (the id in its answer that its undo is aimed at, or the answer's own ids, as far as they weren't in the
request), else what it was aimed at: the last name in its path, or the values that its undo is aimed at. What a read
showed is read by the ids in it. What can't be told is the whole service at that host: a call without a known answer,
one that made something and didn't say what, an answer too large to have been kept. Accounts aren't told apart: two of
them may see the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from mapper.catalog import Catalog
from policies.actions import Plan
from policies.errors import GoexError
from policies.jsonvalue import MissingValue
from policies.services import Risk
from runtimes.base import Footprint
from runtimes.gateway.plan import Ref
from runtimes.rest.planner import PlannedUndo, read_undos
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import literal, refs_in
from runtimes.rest.steps import Step
from runtimes.rest.undo import planned_steps

LONGEST = 512  # characters of what can be an id
MOST = 5000  # ids in one answer; beyond it the whole service was read

_ID = re.compile(r"(?:^|_)(?:ids?|key|name|number|ts|uri|uid|uuid|slug)$|(?:Id|Ids|Key|Name|Number|Uri|Uid)$")
_HOLE = re.compile(r"\{\+?([^{}]+)\}")


def footprint(plan: Plan, call_record: CallRecord | None, catalog: Catalog) -> Footprint:
    """The footprint of an action of calls. `call_record` None: nothing of it is recorded (any more)."""
    steps = planned_steps(plan)
    if call_record is None:
        return Footprint(
            reads=frozenset(map(_place, steps)), writes=frozenset(_place(step) for step in steps if not step.read)
        )
    undos = read_undos(call_record.undo or plan.undo.get("calls", []))
    return footprint_of(steps, call_record, undos, catalog)


def footprint_of(
    steps: Iterable[Step], call_record: CallRecord, undos: Iterable[PlannedUndo], catalog: Catalog
) -> Footprint:
    """The footprint of those of `steps` that left. `undos`: how its calls are taken back, as far as that is known."""
    found = _Prints(call_record, undos, catalog)
    for step in steps:
        if step.role in ("pre", "after"):
            found.named(step, step.arguments)
        elif step.id in call_record.answers or step.id in call_record.sent:
            found.add(step)
    return Footprint(reads=frozenset(found.reads), writes=frozenset(found.writes))


class _Prints:
    def __init__(self, call_record: CallRecord, undos: Iterable[PlannedUndo], catalog: Catalog) -> None:
        self._call_record = call_record
        self._catalog = catalog
        self._undos = {undo.call: undo for undo in undos}
        self.reads: set[str] = set()
        self.writes: set[str] = set()

    def add(self, step: Step) -> None:
        """A call that left."""
        answer = self._call_record.answers.get(step.id)
        if answer is not None and not answer.well and not answer.doubtful:
            self.named(step, step.arguments)  # refused: it changed nothing
            return
        if not self.named(step, step.arguments):
            self.all_of(step, writes=not step.read)
        elif step.read:
            self._shown(step, answer)
        elif answer is None or answer.doubtful:
            self.all_of(step, writes=True)
        else:
            self._wrote(step, answer)

    def all_of(self, step: Step, *, writes: bool) -> None:
        """The whole service, as far as that host goes."""
        self.reads.add(_place(step))
        if writes:
            self.writes.add(_place(step))

    def named(self, step: Step, arguments: Mapping[str, Any]) -> bool:
        """Note what a request names; False where a value of it isn't known."""
        filled = self._filled(arguments)
        self.reads |= {f"{_place(step)}/{name}" for value in _leaves(filled) for name in _above(value)}
        return not refs_in(filled)

    def _shown(self, step: Step, answer: Answer | None) -> None:
        ids = list(_ids(answer.body)) if answer is not None and answer.whole and answer.body is not None else None
        if ids is None or len(ids) > MOST:
            self.all_of(step, writes=False)
        else:
            self.reads |= {f"{_place(step)}/{name}" for id in ids for name in _above(id)}

    def _wrote(self, step: Step, answer: Answer) -> None:
        if not answer.whole:
            self.all_of(step, writes=True)
            return
        named = {str(value) for value in _leaves(self._filled(step.arguments))}
        own, around = self._answered(step)
        own = own or {str(id) for id in _own_ids(answer.body)}
        self.reads |= {_name(step, id) for id in around}
        told = {str(id) for id in _ids(answer.body)}
        aim = own - named if self._makes(step) else self._aim(step, told)
        if aim:
            self.writes |= {_name(step, id) for id in aim}
        else:
            self.all_of(step, writes=True)

    def _makes(self, step: Step) -> bool:
        """Whether what it did is undone by what only its answer named: it made that."""
        undo = self._undos.get(step.call)
        if undo is not None:
            return any(ref.request == step.id for each in undo.calls for ref in refs_in(each.arguments))
        method = self._catalog.method(step.method_id)
        on_collection = method.http == "POST" and not _HOLE.search(method.path.rpartition("/")[2])
        return on_collection and method.risk <= Risk.WRITE

    def _aim(self, step: Step, told: set[str]) -> set[str]:
        """What a call that makes nothing is about; empty where that can't be told."""
        method = self._catalog.method(step.method_id)
        holes = _HOLE.findall(method.path)
        filled = self._filled(step.arguments)
        if holes:
            value = str(filled.get(holes[-1], ""))
            ends = bool(_HOLE.search(method.path.rpartition("/")[2]))
            return {value} if value and (ends or value in told or step.call in self._undos) else set()
        undo = self._undos.get(step.call)
        if undo is None:
            return {str(value) for value in _leaves(filled)}
        given = {str(value) for value in _leaves(filled)}
        aimed = {str(value) for each in undo.calls for value in _leaves(self._filled(each.arguments))}
        return given & aimed

    def _answered(self, step: Step) -> tuple[set[str], set[str]]:
        """Of the values of its answer that its undo is filled with: the one that names what is undone, and the rest."""
        own: set[str] = set()
        rest: set[str] = set()
        undo = self._undos.get(step.call)
        for each in undo.calls if undo is not None else ():
            method = self._catalog.method(each.method_id)
            order = _HOLE.findall(method.path) or list(method.parameters.get("required", ()))
            from_answer = [
                name for name in order if any(ref.request == step.id for ref in refs_in(each.arguments.get(name)))
            ]
            for name in from_answer:
                told = {str(value) for value in _leaves(self._filled(each.arguments[name]))}
                (own if name == from_answer[-1] else rest).update(told)
        return own, rest

    def _filled(self, value: Any) -> Any:
        """`value` with what was answered; what wasn't stays a reference."""
        if isinstance(value, Ref):
            try:
                return literal(value, self._call_record.answers)
            except (MissingValue, GoexError):
                return value
        if isinstance(value, Mapping):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._filled(item) for item in value]
        return value


def place_of(service: str, host: str) -> str:
    """The name of a whole service at a host."""
    return f"calls/{quote(service, safe='')}/{quote(host, safe='')}"


def _place(step: Step) -> str:
    return place_of(step.service, step.request.origin.host)


def _name(step: Step, id: str) -> str:
    return f"{_place(step)}/{quote(id, safe='')}"


def _above(value: Any) -> Iterator[str]:
    """A value as a name, and those above it where it has slashes; of a URL each part. Above what begins with a slash is
    the whole service: services write such paths in several ways, as in other cases."""
    text = str(value)
    yield quote(text, safe="")
    if "://" in text:
        yield from (quote(part, safe="") for part in _path(text).split("/") if part)
    elif "/" in text:
        parts = text.split("/")
        yield from (quote("/".join(parts[:end]), safe="") for end in range(1, len(parts)))


def _path(url: str) -> str:
    """The path of a URL, or of a text that only begins like one, such as `https://x.example [1]`."""
    try:
        return urlsplit(url).path
    except ValueError:
        return url.partition("://")[2].partition("/")[2]


def _leaves(value: Any) -> Iterator[Any]:
    """What can be an id among the values of a request."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif not isinstance(value, bool | float | Ref) and value not in (None, "") and len(str(value)) <= LONGEST:
        yield value


def _own_ids(body: Any) -> Iterator[Any]:
    """What names the thing that an answer is about: not what is within it."""
    for name, item in body.items() if isinstance(body, Mapping) else ():
        if _ID.search(str(name)) and not isinstance(item, Mapping | list | tuple):
            yield from _leaves(item)


def _ids(body: Any, key: str = "") -> Iterator[Any]:
    """What is called like an id in an answer, at any depth."""
    if isinstance(body, Mapping):
        for name, item in body.items():
            yield from _ids(item, str(name))
    elif isinstance(body, list | tuple):
        for item in body:
            yield from _ids(item, key)
    elif _ID.search(key):
        yield from _leaves(body)
