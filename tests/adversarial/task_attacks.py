"""Attacks on tasks: what runs unasked that is outside of what was allowed."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_TESTS = "tests/adversarial/test_tasks.py"


def _row(name: str, tries: str, *refused_by: str) -> Attack:
    return Attack(
        name=f"task_{name}",
        tries=tries,
        where=Where.GRANTS,
        refused_by=refused_by,
        test=f"{_TESTS}::test_nothing_outside_of_a_task_runs_unasked[{name}]",
        control=f"{_TESTS}::test_control[{name}]",
    )


_COUNTS, _BOUNDS = "a task's lines are counted, durably, before the effect", "each argument is within its bound"

ROWS: tuple[Attack, ...] = (
    _row("count", "post once more than a task allows", _COUNTS),
    _row("two_at_once", "take the last count of a task twice, at the same time", _COUNTS),
    _row("two_in_one", "make more calls in one action than a task allows", _COUNTS),
    _row("restart", "have a restart forget what was used", _COUNTS),
    _row("older_log", "put back the log of a moment ago after a kill", "what the vault knows of the log"),
    _row("undone", "get a count back by having the call undone", _COUNTS),
    _row("argument", "post to another channel than a task allows", _BOUNDS),
    _row("further_argument", "add an argument that a task doesn't name", _BOUNDS),
    _row("left_out_argument", "leave a bounded argument out", _BOUNDS),
    _row("account", "use another account than a task's", "a line is for one account"),
    _row("agent", "use another agent's task", "a task is its agent's"),
    _row("session", "use a task in another session", "a task is its session's"),
    _row("late", "use a task after its time", "a task ends"),
    _row("revoked", "use a task that was revoked", "a revoked grant isn't there"),
    _row("irreversible", "delete within a task", "what can't be undone is within no task", "the default rules"),
    _row("reference", "have an answer fill in what a task lets be anything", "what an answer fills in is in no task"),
    _row("widened", "propose it again, wider, once it was allowed", "each task is asked for"),
    _row("replayed", "propose the same again when it is used up", "each task is asked for"),
    _row("wildcard", "name all methods of a service in a line", "a line names a method of the catalog"),
)
