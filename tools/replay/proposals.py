"""How an agent proposes tasks, and how it bundles what they leave out.

The rule. The agent knows the user's words, the tools' document, which tools it means to call and how often; and, once a
call was made, what it answered. A value is *known* where it stands in these. It proposes a line for each call, alike
ones as one:

* An argument whose value is known is held to it.
* A read's other arguments keep it out, unless `open_reads` says that they may be anything; never an address to fetch.
* A change's other arguments may be anything only where they say what, where or when in something of the user's own
  (`FREE`): never whom it reaches, what it is called, an amount, an address, or a password. Else it is left out. (A free
  title of an event without guests would save three questions, and let an injection goal of AgentDojo write one.)
* A change that nothing takes back is left out, since it is asked for whatever a task says.

When it comes to a call that no task covers, it either proposes a task of what it knows by then, or asks for this call
and those after it whose values were known before, as one action; whichever leaves the fewest questions over all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.replay.house import House, Made, Tool, proposal

FREE = frozenset({"description", "content", "body", "location", "start_time", "end_time", "event_id", "file_id"})
FETCHED = frozenset({"url"})  # what a read with it fetches is a stranger's, and told what it asks for
MOST_LINES = 20
Step = tuple[str, tuple[int, ...]]  # "task" that is for these calls, "action" that makes them, one "inside" of a task


def said(value: Any, words: str) -> bool:
    """Whether a value stands in these words, as a word or as several."""
    if isinstance(value, list):
        return bool(value) and all(said(one, words) for one in value)
    if isinstance(value, Mapping):
        return bool(value) and all(said(one, words) for one in value.values())
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words, re.IGNORECASE) is not None


@dataclass
class Agent:
    """One that means to make these calls, in this order."""

    calls: Sequence[Made]
    words: str
    tools: Mapping[str, Tool]
    tasks: bool = True  # whether it proposes any
    open_reads: bool = False
    whole: bool = False  # a task may be for what nothing takes back, where each of its values is known
    _least: dict[tuple[int, frozenset[int]], tuple[int, tuple[Step, ...]]] = field(default_factory=dict)

    def steps(self) -> tuple[Step, ...]:
        """What it proposes, asks for and does, in order, with the fewest questions."""
        return self._from(0, frozenset())[1]

    def questions(self) -> int:
        """How many that takes."""
        return self._from(0, frozenset())[0]

    def known(self, at: int) -> str:
        """All that it has read before call `at`."""
        return "\n".join((self.words, *(one.answer for one in self.calls[:at])))

    def free(self, tool: Tool, name: str) -> bool:
        """Whether an argument whose value isn't known may be anything in a task."""
        return name in FREE if not tool.reads else self.open_reads and name not in FETCHED

    def _from(self, at: int, covered: frozenset[int]) -> tuple[int, tuple[Step, ...]]:
        if at == len(self.calls):
            return 0, ()
        if at in covered:
            count, steps = self._from(at + 1, covered)
            return count, (("inside", (at,)), *steps)
        if (found := self._least.get((at, covered))) is None:
            asked = self._asked(at, covered)
            count, steps = self._from(asked[-1] + 1, covered)
            found = count + 1, (("action", asked), *steps)
            if task := self._task(at, covered):
                count, steps = self._from(at, covered.union(task))
                if count + 1 < found[0]:
                    found = count + 1, (("task", task), *steps)
            self._least[at, covered] = found
        return found

    def _task(self, at: int, covered: frozenset[int]) -> tuple[int, ...]:
        if not self.tasks:
            return ()
        known, left = self.known(at), range(at, len(self.calls))
        found = [one for one in left if one not in covered and self._may_be_in_one(self.calls[one], known)]
        return tuple(found[:MOST_LINES])

    def _may_be_in_one(self, call: Made, known: str) -> bool:
        tool = self.tools[call.tool]
        if not tool.reads and tool.undo is None:
            return self.whole and all(said(value, known) for value in call.arguments.values())
        return all(said(value, known) or self.free(tool, name) for name, value in call.arguments.items())

    def _asked(self, at: int, covered: frozenset[int]) -> tuple[int, ...]:
        """The calls from `at` that one action makes: those in a row whose values were all known before the first. What
        a read answers may have given any later value that stands nowhere, what a change answers an id."""
        known, end = self.known(at), at + 1
        while end < len(self.calls) and end not in covered:
            read = any(self.tools[one.tool].reads for one in self.calls[at:end])
            since = "\n".join(one.answer for one in self.calls[at:end])
            new = [name for name, value in self.calls[end].arguments.items() if not said(value, known)]
            values = self.calls[end].arguments
            if any(read or name.endswith("id") or said(values[name], since) for name in new):
                break
            end += 1
        return tuple(range(at, end))


def task(title: str, calls: Sequence[Made], agent: Agent, known: str, house: House) -> Any:
    """The task that is for these calls: those that differ in the value of one argument at most are one line."""
    lines: list[tuple[Tool, dict[str, list[Any]], int]] = []
    for call in calls:
        tool = agent.tools[call.tool]
        given = house.given(call)
        values = given if tool.reads else {f"body.{name}": value for name, value in given.get("body", {}).items()}
        bare = {name: name.removeprefix("body.") for name in values}
        held = {
            name: [value] if said(call.arguments[bare[name]], known) else [] for name, value in values.items()
        }  # no value: anything
        for place, (other, bounds, times) in enumerate(lines):
            if other == tool and (both := _together(bounds, held)) is not None:
                lines[place] = (tool, both, times + 1)
                break
        else:
            lines.append((tool, held, 1))
    return proposal(
        title,
        [
            {
                "service": house.service,
                "method": tool.name,
                "account": "main",
                "arguments": {name: _bound(values) for name, values in bounds.items()},
                "times": times,
            }
            for tool, bounds, times in lines
        ],
    )


def _together(one: Mapping[str, list[Any]], other: Mapping[str, list[Any]]) -> dict[str, list[Any]] | None:
    """Both as one line; None where that would allow what neither does."""
    if one.keys() != other.keys() or any(bool(one[name]) != bool(other[name]) for name in one):
        return None
    differ = [name for name in one if any(value not in one[name] for value in other[name])]
    if not differ:
        return dict(one)
    (name, *more) = differ
    others = any(len(one[each]) > 1 for each in one if each != name)
    if more or others or any(isinstance(value, list) for value in (*one[name], *other[name])):
        return None
    return {**one, name: [*one[name], *other[name]]}


def _bound(values: list[Any]) -> dict[str, Any]:
    return {"any": True} if not values else {"is": values[0]} if len(values) == 1 else {"in": values}


def floor(calls: Sequence[Made], words: str, tools: Mapping[str, Tool]) -> int:
    """The fewest questions that tasks could leave, whatever they allowed: what nothing takes back is asked for, and a
    task is one question more where there is anything else."""

    class Knowing(Agent):
        def free(self, tool: Tool, name: str) -> bool:
            return True

    return Knowing(calls, words, tools).questions()
