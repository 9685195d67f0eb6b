"""`make replay`: how many questions a task takes, and whether an injected call runs unasked. Writes replay.json.

`once`: each call of the ground truth by itself, each question answered once. `bundles`: calls whose values are known
are one action. `tasks`: tasks are proposed, by the rule in `proposals.py`; `tasks_open` is the same with reads left
open; `tasks_whole`, which GoEx doesn't do, with what nothing takes back shown whole within a task; `tasks_floor` what
no task could go below, since what nothing takes back is always asked for. `rules`: what `goex rules suggest` makes of
one half of the cases, each on a day of its own, put in force and tried on the other half, call by call.

An injected call runs unasked where a call of an injection goal of the suite, asked for by the same agent in the same
session, meets no question: under `once` after all of a case was allowed, under tasks as soon as one began and nothing
of it is used. Where a case itself makes that very call, or the person approved that very call before a rule was made
of it, it isn't counted but listed (`needed_calls`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from goex.engine.answers import answers
from policies.rules.suggestions import FILE, Suggested, suggested
from tools.replay import bfcl_cases
from tools.replay.house import House, Made, Tool, house
from tools.replay.proposals import Agent, Step, floor, task

ROOT = Path(__file__).resolve().parents[2]
GOAL = 1.3  # questions a task
WAYS = ("once", "bundles", "tasks", "tasks_open", "rules")
SHIPPED = ("once", "bundles", "tasks", "rules")  # the ways that are recommended
_READS = ("get_", "search_", "read_", "list_", "check_")
# Which tool of a suite takes back what another did, with what it said and was answered.
_UNDO: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "create_calendar_event": ("cancel_calendar_event", {"event_id": "$response.id"}),
    "create_file": ("delete_file", {"file_id": "$response.id"}),
    "invite_user_to_slack": ("remove_user_from_slack", {"user": "$request.body.user"}),
    "mkdir": ("rmdir", {"dir_name": "$request.body.dir_name"}),
    "touch": ("rm", {"file_name": "$request.body.file_name"}),
    "place_order": ("cancel_order", {"order_id": "$response.id"}),
    "add_to_watchlist": ("remove_stock_from_watchlist", {"symbol": "$request.body.stock"}),
    "book_flight": ("cancel_booking", {"access_token": "$request.body.access_token", "booking_id": "$response.id"}),
    "follow_user": ("unfollow_user", {"username_to_unfollow": "$request.body.username_to_follow"}),
}


@dataclass(frozen=True)
class Case:
    """One task of the ground truth, or one goal of an injection."""

    id: str
    words: str
    calls: tuple[Made, ...]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Case:
        calls = tuple(Made(each["tool"], each["arguments"], each.get("answer", "")) for each in found["calls"])
        return cls(found["id"], found.get("prompt", ""), calls)


@dataclass
class Suite:
    """One suite's cases, goals and tools, and what came of them."""

    name: str
    cases: list[Case]
    goals: list[Case]
    tools: dict[str, Tool]
    counts: dict[str, list[int]] = field(default_factory=lambda: {way: [] for way in WAYS})
    through: dict[str, set[str]] = field(default_factory=lambda: {way: set() for way in WAYS})
    needed: dict[str, set[str]] = field(default_factory=lambda: {way: set() for way in WAYS})
    refused: set[str] = field(default_factory=set)  # calls that GoEx doesn't take: neither asked for nor run
    without_task: int = 0
    why: dict[str, int] = field(default_factory=dict)
    suggested: Suggested | None = None


def _agent(suite: Suite, case: Case, way: str) -> Agent:
    return Agent(case.calls, case.words, suite.tools, tasks=way.startswith("tasks"), open_reads=way == "tasks_open")


def _steps(suite: Suite, case: Case, way: str) -> tuple[Step, ...]:
    if way in ("once", "rules"):
        return tuple(("action", (place,)) for place in range(len(case.calls)))
    return _agent(suite, case, way).steps()


async def _play(suite: Suite, case: Case, made: House, way: str) -> None:
    """Count the questions of one case, and try each injected call."""
    steps, agent = _steps(suite, case, way), _agent(suite, case, way)

    async def until(end: int) -> None:
        made.begin()
        for number, (kind, places) in enumerate(steps[:end]):
            calls = [case.calls[place] for place in places]
            known = agent.known(_next(steps[:number]))
            action = task(case.id, calls, agent, known, made) if kind == "task" else made.calls(calls)
            if not await made.done(action):
                names = [one.tool for one in calls]
                suite.refused.add(f"{suite.name}/{case.id}: {kind} {names}: {made.problem[:200]}")

    own = frozenset(one.key for one in case.calls)
    for place, (kind, _) in enumerate(steps, 1):
        if kind == "task":
            await until(place)
            await _inject(suite, case.id, own, made, way, partial(until, place))
    await until(len(steps))
    suite.counts[way].append(made.questions)
    if way == "tasks":
        suite.without_task += not any(kind == "task" for kind, _ in steps)
        for _, places in [one for one in steps if one[0] == "action"]:
            tools = [suite.tools[case.calls[place].tool] for place in places]
            lasting = any(not tool.reads and tool.undo is None for tool in tools)
            changes = any(not tool.reads for tool in tools)
            why = "nothing takes it back" if lasting else "a change's values" if changes else "reads alone"
            suite.why[why] = suite.why.get(why, 0) + 1
    if way == "once":
        await _inject(suite, case.id, own, made, way, None)


def _next(steps: Sequence[Step]) -> int:
    """The place of the call that comes after these steps."""
    return max((places[-1] + 1 for kind, places in steps if kind != "task"), default=0)


async def _inject(
    suite: Suite, where: str, own: frozenset[str], made: House, way: str, again: Callable[[], Awaitable[None]] | None
) -> None:
    for goal in suite.goals:
        for call in goal.calls:
            if await made.unasked(made.calls((call,))):
                kind = "read" if suite.tools[call.tool].reads else "change"
                found = suite.needed if call.key in own else suite.through
                found[way].add(f"{suite.name}/{goal.id}: {kind} {call.tool} {json.dumps(call.arguments)[:100]}"
                               f" in {where}")  # fmt: skip
                if again is not None:
                    await again()


async def played(suite: Suite) -> Suite:
    """All ways for one suite, each in an engine of its own."""
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="goex-r-", dir="/tmp") as folder:
            async with house(Path(folder), f"replay-{suite.name}", suite.tools.values()) as made:
                tried = suite.cases
                if way == "rules":
                    for case in suite.cases[::2]:
                        made.begin()
                        for call in case.calls:
                            await made.done(made.calls((call,)))
                    core = made.app.engine.core
                    suite.suggested = suggested(answers(core), {}, core.catalog)
                    core.rules.apply({FILE: suite.suggested.text}, by="the replay")
                    made.begin()
                    approved = frozenset(one.key for case in suite.cases[::2] for one in case.calls)
                    await _inject(suite, "the rules", approved, made, way, None)
                    tried = suite.cases[1::2]
                for case in tried:
                    await _play(suite, case, made, way)
    _print(suite)
    return suite


def _print(suite: Suite) -> None:
    means = "  ".join(f"{way} {_mean(counts):5.2f}" for way, counts in suite.counts.items())
    print(f"{suite.name:<10} {len(suite.cases):>4} tasks   {means}", flush=True)


def _mean(counts: Sequence[int]) -> float:
    return round(sum(counts) / len(counts), 3) if counts else 0.0


def summary(suites: Sequence[Suite]) -> dict[str, Any]:
    """The figures of several suites together."""
    made: dict[str, Any] = {"cases": sum(len(one.cases) for one in suites)}
    for way in WAYS:
        made[way] = _mean([count for one in suites for count in one.counts[way]])
    every = [count for one in suites for count in one.counts["tasks"]]
    cases = [(one, each) for one in suites for each in one.cases]
    made["tasks_whole"] = _mean(
        [Agent(each.calls, each.words, one.tools, whole=True).questions() for one, each in cases]
    )
    made["tasks_floor"] = _mean([floor(each.calls, each.words, one.tools) for one, each in cases])
    made["tasks_of"] = {str(number): every.count(number) for number in sorted(set(every))}
    made["refused"] = sorted(set().union(*(one.refused for one in suites)))
    made["no_task_proposed"] = sum(one.without_task for one in suites)
    made["asked_beside_tasks"] = {
        why: sum(one.why.get(why, 0) for one in suites) for why in sorted({why for one in suites for why in one.why})
    }
    rules = [one.suggested for one in suites if one.suggested is not None]
    made["rules_learned"] = {
        "rules": sum(len(one.rules) for one in rules),
        "answered": sum(one.answered for one in rules),
        "of": sum(one.asked for one in rules),
    }
    if any(one.goals for one in suites):
        through, needed = (
            {way: sorted(set().union(*(lines[way] for lines in found))) for way in WAYS}
            for found in ([one.through for one in suites], [one.needed for one in suites])
        )
        made["injection_goals"] = sum(len(one.goals) for one in suites)
        made["injected_unasked"] = len(_goals(through, *SHIPPED))
        made["injected_changes_unasked"] = len(_goals(through, *SHIPPED, kind=": change "))
        made["injected_unasked_by_way"] = {way: len(_goals(through, way)) for way in WAYS}
        made["injected_calls"] = through
        made["needed_calls"] = needed
    return made


def _goals(lines: Mapping[str, Sequence[str]], *ways: str, kind: str = "") -> set[str]:
    """The injection goals in these lines."""
    return {line.partition(":")[0] for way in ways for line in lines[way] if kind in line}


def dojo(found: Mapping[str, Any]) -> Iterable[Suite]:
    """AgentDojo's suites, as `agentdojo_cases.py` printed them."""
    for name, each in found.items():
        names = [tool["name"] for tool in each["tools"]]
        tools = {
            tool["name"]: Tool(
                tool["name"],
                tool["name"].startswith(_READS),
                tuple(tool["schema"].get("properties", {})),
                _undo(tool["name"], names),
            )
            for tool in each["tools"]
        }
        yield Suite(
            name, [Case.read(one) for one in each["user"]], [Case.read(one) for one in each["injection"]], tools
        )


def bfcl(wheel: Path) -> Suite:
    """BFCL's multi-turn base cases, a turn each."""
    found, functions = bfcl_cases.cases(wheel)
    tools = {
        name: Tool(name, bfcl_cases.reads(name), tuple(names), _undo(name, functions))
        for name, names in functions.items()
    }
    return Suite("bfcl", [Case.read(one) for one in found], [], tools)


def _undo(name: str, names: Iterable[str]) -> tuple[str, Mapping[str, str]] | None:
    found = _UNDO.get(name)
    return found if found is not None and found[0] in names else None


def _played(suite: Suite) -> Suite:
    return asyncio.run(played(suite))


def main(found: Mapping[str, Any], wheel: Path) -> dict[str, Any]:
    """Replay all of it, two suites at a time."""
    with ProcessPoolExecutor(2) as pool:
        *suites, other = pool.map(_played, [*dojo(found), bfcl(wheel)])
    result = {"agentdojo": summary(suites), "bfcl": summary([other])}
    (ROOT / "replay.json").write_text(json.dumps(result, indent=2) + "\n")
    for name, each in result.items():
        reached = "reached" if each["tasks"] <= GOAL else "not reached"
        print(
            f"{name}: with tasks {each['tasks']} questions a task; the least is {each['tasks_floor']}, since what"
            f" nothing takes back is asked for; the goal of {GOAL} is {reached}"
        )
    one = result["agentdojo"]
    print(
        f"injection goals with a call that runs unasked: {one['injected_unasked']} of {one['injection_goals']},"
        f" {one['injected_changes_unasked']} with a change; by way {one['injected_unasked_by_way']}"
    )
    return result


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
