"""MongoDB's runtime, crashed at every call of the server and every record: against the fake that can fail anywhere."""

from __future__ import annotations

from collections.abc import Callable

from tests.crash.databases import Outcome
from tests.runtimes.mongo.fake import Crash, Documents, Server
from tests.runtimes.mongo.support import Ground
from tests.runtimes.mongo.test_crashes import Points, crash, executed, over, planned, scene, shape

STEPS = ("do", "undo", "redo")


async def ready(step: str, transactions: bool) -> tuple[Server, Ground, Points, Documents]:
    """Everything before the step is done; the documents as they were at first come with it."""
    server, ground, points, before = scene(transactions)
    await planned(ground, points)
    if step != "do":
        await executed(ground)
    if step == "redo":
        await ground.rerun("undo")
    points.seen.clear()
    return server, ground, points, before


async def perform(ground: Ground, step: str) -> None:
    if step == "do":
        await executed(ground)
    else:
        await ground.rerun(step)


async def count(step: str, transactions: bool) -> tuple[int, Documents]:
    """How many points the step has, and what it ends with."""
    server, ground, points, _ = await ready(step, transactions)
    await perform(ground, step)
    return len(points.seen), server.all()


async def crashed(step: str, transactions: bool, at: int, goal: Documents) -> Outcome:
    """One point. After a revert the same revert is run again, as the engine does."""
    server, ground, points, before = await ready(step, transactions)
    points.at, points.act = at, crash
    problems: list[str] = []
    try:
        await perform(ground, step)
        problems.append("it wasn't crashed")
    except Crash:
        pass
    over(server, points)
    check: Callable[[str], None] = problems.append
    if step != "do":
        if not (await ground.rerun(step)).ok or shape(server.all()) != shape(goal):
            check(f"the {step}, run again, didn't finish")
        return Outcome("undone" if step == "undo" else "done", problems)
    found = (await ground.settle()).outcome
    if found is None:
        return Outcome("unknown", [*problems, "it can't be known"])
    if not found.touched:
        if server.all() != before:
            check("nothing was touched, it says, but the documents aren't as they were")
        return Outcome("nothing", problems)
    if transactions and shape(server.all()) != shape(goal):
        check("done, it says, but the documents aren't what it leaves")
    if not (await ground.revert("undo")).ok or server.all() != before:
        check("undo didn't bring the documents back")
    return Outcome("done" if found.ok else "part", problems)
