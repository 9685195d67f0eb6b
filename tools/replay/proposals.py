"""How an agent that knows no answer proposes a task, and how it bundles what the task leaves out.

The rule. The agent knows the user's words, the tools' document, and which tools it means to call and how often. It
proposes one line a tool:

* An argument whose every value stands in the user's words is held to those values.
* A read's other arguments may be anything (`open_reads`), so often as it means to read, unless one is an address to
  fetch; without `open_reads` the read is left out.
* A change's other arguments may be anything only where they say what, where or when in something of the user's own
  (`FREE`): never whom it reaches, what it is called, an amount, an address, or a password. Else it is left out. (A free
  title of an event without guests would save three questions, and let an injection goal of AgentDojo write one.)
* A change that nothing takes back is left out, since it is asked for whatever a task says.

It proposes nothing that would save no question. Calls that it leaves out and that follow each other are one action, as
far as none has a value that only the answer of one before it could have given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.replay.house import House, Made, Tool, proposal

FREE = frozenset({"description", "content", "body", "location", "start_time", "end_time", "event_id", "file_id"})
FETCHED = frozenset({"url"})  # what a read with it fetches is a stranger's, and told what it asks for
MOST_LINES = 20


def said(value: Any, words: str) -> bool:
    """Whether a value stands in these words."""
    if isinstance(value, list):
        return bool(value) and all(said(one, words) for one in value)
    if isinstance(value, Mapping):
        return bool(value) and all(said(one, words) for one in value.values())
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return bool(text) and (text.lower() in words.lower() if len(text) > 2 else text.lower() in words.lower().split())


def line(tool: Tool, calls: Sequence[Made], words: str, house: House, *, open_reads: bool) -> dict[str, Any] | None:
    """What the task says of one tool; None where it is left out."""
    if not tool.reads and tool.undo is None:
        return None
    bounds: dict[str, Any] = {}
    for name in sorted({name for call in calls for name in call.arguments}):
        values = [call.arguments[name] for call in calls if name in call.arguments]
        everywhere = len(values) == len(calls)
        if everywhere and all(said(value, words) for value in values):
            given = [house.given(Made(tool.name, {name: value})) for value in values]
            flat = [one[name] if tool.reads else one["body"][name] for one in given]
            lists = any(isinstance(one, list) for one in flat)
            bounds[name] = {"is": flat[0]} if len(set(map(str, flat))) == 1 or lists else {"in": flat}
            if lists and len(set(map(str, flat))) > 1:
                return None
        elif (tool.reads and open_reads and name not in FETCHED) or (not tool.reads and name in FREE):
            bounds[name] = {"any": True}
        else:
            return None
    return {
        "service": house.service,
        "method": tool.name,
        "account": "main",
        "arguments": bounds if tool.reads else {f"body.{name}": bound for name, bound in bounds.items()},
        "times": len(calls),
    }


def task_for(
    title: str, calls: Sequence[Made], words: str, tools: Mapping[str, Tool], house: House, *, open_reads: bool
) -> tuple[Any, frozenset[str]]:
    """The task that is proposed (None where it would save no question), and the tools in it."""
    by_tool: dict[str, list[Made]] = {}
    for call in calls:
        by_tool.setdefault(call.tool, []).append(call)
    lines = {
        name: made
        for name, each in by_tool.items()
        if (made := line(tools[name], each, words, house, open_reads=open_reads)) is not None
    }
    if not 0 < len(lines) <= MOST_LINES:
        return None, frozenset()
    inside = frozenset(lines)
    if len(bundled(calls, words, inside, tools)) + 1 >= len(bundled(calls, words, frozenset(), tools)):
        return None, frozenset()
    return proposal(title, lines.values()), inside


def floor(calls: Sequence[Made], words: str, tools: Mapping[str, Tool]) -> int:
    """The fewest questions that any task could leave, whatever it allowed: what nothing takes back is asked for, and
    the task is one question more where there is anything else."""
    coverable = frozenset(call.tool for call in calls if tools[call.tool].reads or tools[call.tool].undo is not None)
    lasting = len(bundled(calls, words, coverable, tools))
    return min(len(bundled(calls, words, frozenset(), tools)), lasting + bool(coverable))


def bundled(calls: Sequence[Made], words: str, inside: frozenset[str], tools: Mapping[str, Tool]) -> list[list[Made]]:
    """The calls that no task covers, in actions: those in a row whose values were all known before the first. What a
    read answers may give any later value, what a change answers an id."""
    bundles: list[list[Made]] = []
    row = False
    for call in calls:
        if call.tool in inside:
            row = False
            continue
        unsaid = [name for name, value in call.arguments.items() if not said(value, words)]
        if not row or (unsaid and (_read_in(bundles[-1], tools) or any(name.endswith("id") for name in unsaid))):
            bundles.append([])
        bundles[-1].append(call)
        row = True
    return bundles


def _read_in(calls: Sequence[Made], tools: Mapping[str, Tool]) -> bool:
    return any(tools[one.tool].reads for one in calls)
