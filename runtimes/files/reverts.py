"""What undo and redo do with a folder: looked at beforehand, done, or, where what a program left was never recorded,
done by moving aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from policies.actions import Outcome, Plan, Revert
from policies.errors import GoexError, Unsupported
from runtimes.base import Context, DryLine, DryRun, Records
from runtimes.files import aside, plan_text, plans, records
from runtimes.files.action_folder import ActionFolder, Halted, own_sides, stopped
from runtimes.files.difference import Difference
from runtimes.files.original import Kept, Original
from runtimes.files.quota import mark, unmark
from runtimes.files.records import Place
from runtimes.files.snapshot import Repository, plain
from runtimes.files.tree import Bounds, Manifest, TooLarge
from runtimes.files.workers import in_thread


async def dry_run(action_folder: ActionFolder, verb: str, bounds: Bounds, progress: Callable[[str], None]) -> DryRun:
    """What undo or redo would change now. Raises Conflict naming every path that someone changed since."""
    before, after = await in_thread(action_folder.sides)
    # Only looked at: a file that its mode closes, which undo itself would open for a moment, is said to be so.
    state = records.read_state(action_folder.records)
    walk = action_folder.walker(known=None, skip=state.name, force=False)
    walk.bounds = bounds.grown()

    def look() -> Manifest:
        try:
            return walk.run(action_folder.root)
        except TooLarge as error:  # another folder is no choice here
            mend = "Move away what came into it since, or raise [files] max_entries and max_bytes."
            raise TooLarge(error.message, next_step=mend) from error

    now = await in_thread(look, saying="Looking…", progress=progress)
    undo = verb == "undo"
    back: Place = "before" if undo else "after"
    expected = None if state.at == "between" else after if undo else before
    sides = own_sides(now, (before, after), expected, back)
    goal = sides[0] if undo else sides[1]

    def compare() -> tuple[list[DryLine], list[str]]:
        kept = Kept(action_folder.repository.contents, goal)
        return Difference(before=now, after=goal, old=Original(action_folder.root, now), new=kept).run()

    lines, changed = await in_thread(compare, saying="Comparing…", progress=progress)
    which = "The folder" if sides[0] is before else "What the action changed"
    summary = f"{which} would be as it was {back} the action: {plan_text.tally(changed)}."
    note = DryLine("note", "Nothing was touched. It will be refused when someone changes the same until then.")
    warnings = (DryLine("warning", line) for line in plans.beware(now, goal)[0])
    return DryRun(ok=True, summary=summary, lines=(note, *warnings, *lines))


async def execute(action_folder: ActionFolder, verb: str) -> Outcome:
    """Bring the folder to the state before (undo) or after the action, and say what changed."""

    def kept() -> tuple[Manifest, Manifest]:
        refuse_dropped(action_folder.repository, action_folder.action_id)  # since it was asked for
        return action_folder.sides()

    recorded = await in_thread(kept)
    undo = verb == "undo"
    what: Place = "before" if undo else "after"
    now, sides = await action_folder.compare_own(recorded, what)
    state = records.read_state(action_folder.records)
    if state.was == "running":  # from here on it is taken back, and its changes are applied no further
        records.write_state(action_folder.records, replace(state, was="after"))

    def mark_undone() -> None:
        mark(action_folder.repository, action_folder.action_id, action_folder.folder.path)

    await in_thread(lambda: unmark(action_folder.repository, action_folder.action_id))
    try:
        lines = await action_folder.bring(sides[0] if undo else sides[1], now=now, arrive=what)
    except Halted as halted:
        return stopped("It stopped half way; run it again to finish it.", halted.cause)
    except GoexError:
        if records.read_state(action_folder.records).at == "before":
            await in_thread(mark_undone)
        raise
    if undo:
        await in_thread(mark_undone)
    shown, cut = plan_text.capped(lines)
    alone = sides[0] is recorded[0]
    which = "The folder is as it was" if alone else "What the action changed is as it was"
    others = "" if alone else " What others changed since is left as it is."
    return Outcome(
        ok=True,
        summary=f"{which} {what} the action: {plan_text.tally(lines)}.{others}",
        changes=shown,
        changes_cut=cut,
        touched=True,
    )


async def put_aside(action_folder: ActionFolder, recorded: Records, seen: str) -> Outcome:
    """Undo what was never recorded. `seen` is the mark of what the person was shown (`aside.Found`)."""
    lines: list[str] = []
    left = ""
    if records.read_state(recorded).at != "before":  # else it was done, and cut off right after
        before = await in_thread(action_folder.before)
        try:
            lines, left = await aside.put_back(action_folder, before, seen)
        except Halted as halted:
            left = aside.left_in(action_folder.root, records.read_state(recorded).name)
            where = f": look into {left} in the folder." if left else "."
            said = f"The undo stopped half way; run it again to finish it. Nothing was deleted{where}"
            return stopped(said, halted.cause)
    await in_thread(lambda: mark(action_folder.repository, action_folder.action_id, action_folder.folder.path))
    shown, cut = plan_text.capped(lines)
    others = f" What isn't from before is in {left} in the folder; nothing was deleted." if left else ""
    return Outcome(
        ok=True,
        summary=f"What was in the folder before the action is as it was.{others}",
        changes=shown,
        changes_cut=cut,
        touched=True,
    )


def unrecorded(plan: Plan, context: Context) -> bool:
    """Whether a program had the folder itself, and what it left was never recorded."""
    return plan.resolved["mode"] == "direct" and records.read_manifest(context.records, "after") is None


def refuse_dropped(repository: Repository, action_id: str) -> None:
    """Raises Unsupported where the snapshots of an action made room: what is done again could never be undone."""
    if not any(label.startswith(f"refs/goex/{plain(action_id)}/") for label in repository.labels()):
        raise Unsupported("It was undone, and its snapshots have made room for others since.")


def refuse_pointless(revert: Revert, state: records.State) -> None:
    """Raises Unsupported where there is nothing to undo, or to redo."""
    if state.at == "prepared":
        raise Unsupported("This action changed nothing, so there is nothing to take back.")
    if revert.verb == "undo" and state.at == "before":
        raise Unsupported("This action is undone already.")
    if revert.verb == "redo" and state.at in ("after", "running"):
        raise Unsupported("This action isn't undone, so there is nothing to do again.")
