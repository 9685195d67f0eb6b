"""Plans and outcomes of files actions, in words and in fields. Nothing here looks at the disk."""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from policies.actions import Ended, Files, Need, Outcome, Plan, Revert, UndoClass
from policies.display_text import counted, escape, escape_name
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from policies.services import Risk
from policies.typed_json import to_json
from runtimes.files import automatic, plan_text, rights, workcopy
from runtimes.files.folder import Folder
from runtimes.files.manifest import equal
from runtimes.files.tree import Bounds, Manifest
from runtimes.sandbox import open_files_hint
from runtimes.sandbox.contract import Profile, Result

SERVICE = "files"
SCOPE = "files.write"
READ_SCOPE = "files.read"
MAX_PROGRAM = 200_000  # bytes
_NOBODY = 65534
_PATHS_SHOWN = 8

_GRANTED = " It granted rights to others."
_RUNS = " It changed what git or another tool may run by itself."
_ONLY_READS = "It only reads: there is nothing to take back."
_NOT_RESTORED = (
    "Not restored: inode numbers, access, change and birth times, chattr flags, where a file has holes, hard links "
    "with names outside the folder."
)


def check_program(action: Files) -> None:
    """Raise InvalidInput for a program that can't be one."""
    if action.language not in ("shell", "python"):
        raise InvalidInput(
            f"{action.language[:40]!r} isn't a language that runs here.", next_step="Use shell or python."
        )
    for text, what in ((action.program, "program"), (action.undo, "proposed undo")):
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise InvalidInput(f"The {what} isn't UTF-8 text.") from error
        if size > MAX_PROGRAM:
            raise InvalidInput(f"The {what} is {size} bytes long; at most {MAX_PROGRAM} are run.")
        if "\0" in text:
            raise InvalidInput(f"The {what} holds a NUL.")
    if not action.program.strip():
        raise InvalidInput("The program is empty.")


def command(action: Files) -> tuple[str, tuple[str, ...]]:
    """The file name that the program gets, and what runs it."""
    if action.language == "python":
        return "program.py", ("python3", "-I", "/goex/job/program.py")
    return "program.sh", ("sh", "/goex/job/program.sh")


def plan(
    action: Files,
    folder: Folder,
    found: Manifest,
    profile: Profile,
    image_id: str,
    bounds: Bounds,
    keep_days: int = 0,
) -> Plan:
    """The plan of an action whose folder was looked at. Its undo is kept for `keep_days` (0: until it is committed)."""
    kept = f" It is kept for {counted(keep_days, 'day')}." if keep_days else ""
    program = _hash(action)
    why = (
        "the folder belongs to root"
        if folder.uid == 0
        else "the folder's group is root's"
        if folder.gid == 0
        else f"within {profile.runtime} a folder can't be told from another that was put in its place"
        if profile.runtime != "runc"  # it numbers inodes anew
        else workcopy.special(found)
    )
    uid, gid = folder.uid or _NOBODY, folder.gid or _NOBODY
    if action.reads:
        how = f"It works on a copy, because {why}." if why else "The folder is mounted read-only."
        kept = ""
    elif why:
        how = (
            f"The program works on a copy, because {why}; GoEx then applies its changes to the folder, but no rights "
            "that it grants to others."
        )
    else:
        how = (
            "The program works on the folder itself, and can grant others rights to it: the outcome names each. What "
            "others change in it meanwhile counts as the program's doing."
        )
    reach = "read" if action.reads else "read, change and delete"
    lines = (
        _folder_line(folder),
        f"Owner: {folder.uid}:{folder.gid}; {counted(found.files, 'file')}, {plan_text.size(found.bytes)}",
        f"Runs as: {uid}:{gid}, in a container with no network, for at most {profile.limits.seconds:g} s",
        f"It can {reach} everything in this folder, and reach nothing else.",
        how,
        f"Program ({action.language}):",
        *(f"  {escape(line)}" for line in action.program.split("\n")),
        *(_said_undo(action) if action.undo else ()),
    )
    return Plan(
        action=action,
        needs=(_need(folder.path, {"program_sha256": program, "language": action.language}, reads=action.reads),),
        undo_class=UndoClass.NOTHING if action.reads else UndoClass.EXACT,
        undo_text=_ONLY_READS
        if action.reads
        else (
            "Undo puts the folder back exactly as it was: contents, names, modes, owners, times, links, attributes. "
            "It needs the folder as the program left it, and is refused when someone changed it since."
            f"{kept} {_NOT_RESTORED}"
        ),
        resolved={
            "folder": folder.path,
            **_pinned(folder),
            "owner": [folder.uid, folder.gid],
            "mode": "copy" if why else "direct",
            "uid": uid,
            "gid": gid,
            "language": action.language,
            "program_sha256": program,
            **({"undo_sha256": hashlib.sha256(action.undo.encode("utf-8")).hexdigest()} if action.undo else {}),
        },
        bounds={"files": bounds.files, "bytes": bounds.bytes, "depth": bounds.depth},
        catalog_hash="",
        image_id=image_id,
        limits={**to_json(profile.limits), "runtime": profile.runtime, "image": profile.image},
        lines=lines,
        undo={} if action.reads else {"strategy": "snapshot", **({"keep_days": keep_days} if keep_days else {})},
    )


def unseen(action: Files) -> Plan:
    """The plan of an action as far as its text says it: what can be decided on before anything is looked at."""
    folders = [os.path.normpath(folder) for folder in (action.folder, *action.more)]
    arguments = {"program_sha256": _hash(action), "language": action.language}
    return Plan(
        action=action,
        needs=tuple(_need(folder, arguments, reads=action.reads) for folder in folders),
        undo_class=UndoClass.NOTHING if action.reads else UndoClass.EXACT,
        undo_text="",
        resolved={"folder": folders[0], "more": folders[1:], "unseen": True},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
        undo={},
    )


def previewed(plan: Plan, oid: str, made: int, before: Manifest, after: Manifest) -> Plan:
    """The plan of applying what a dry run made; `oid` is that state's manifest, `made` when (seconds since 1970)."""
    when = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    shown, cut = plan_text.capped(told(before, after))
    lines = (
        plan.lines[0],
        plan.lines[1],
        f"What a dry run made of a copy at {when} is applied: exactly that. The program isn't run again.",
        "It is refused when anything in the folder has changed since.",
        *(shown or ("Nothing would change.",)),
        *((f"… and {cut} more",) if cut else ()),
        *plan.lines[5:],
    )
    resolved = {**plan.resolved, "mode": "preview", "preview_after": oid}
    return replace(plan, lines=lines, resolved=resolved, image_id="", limits={})


def revert_plan(revert: Revert, plan: Plan, folder: Folder, changes: Sequence[str]) -> Plan:
    """The plan of an undo or redo. Every path that it will touch is named."""
    undo = revert.verb == "undo"
    goal = "before the action" if undo else "after the action"
    lines = (
        _folder_line(folder),
        f"Everything in it becomes as it was {goal}. No program runs.",
        *(changes or ("Nothing differs but times of folders." if changes is not None else "",)),
    )
    arguments = {"program_sha256": plan.resolved["program_sha256"], "language": plan.resolved["language"]}
    return _reverting(
        revert,
        plan,
        folder,
        needs=(_need(folder.path, arguments),),
        lines=lines,
        undo_class=UndoClass.EXACT,
        undo_text=f"{'Redo' if undo else 'Undo'} of the same action takes this back, as exactly.",
    )


def aside_plan(revert: Revert, plan: Plan, folder: Folder, why: str, changes: Sequence[str], seen: str) -> Plan:
    """The plan of an undo of what was never recorded; `seen` says how the folder looks."""
    made = revert_plan(revert, plan, folder, ())
    lines = (
        made.lines[0],
        f"What the program left was never recorded: {why}",
        "What was there before the action is put back. All else, and what was changed since by anybody, is moved into "
        "one folder in it, .goex-left-…; nothing is deleted.",
        *map(escape_name, changes),
    )
    return replace(
        made,
        lines=lines,
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="It can't be done again; what is moved aside stays in the folder.",
        resolved={**made.resolved, "seen": seen},
    )


def commit_plan(revert: Revert, plan: Plan) -> Plan:
    """The plan of a commit. It touches the snapshots alone."""
    path = str(plan.resolved["folder"])
    return _reverting(
        revert,
        plan,
        None,
        # Not the program's arguments: a grant for one program doesn't cover giving up its undo.
        needs=(_need(path, {"verb": "commit"}),),
        lines=(f"Folder: {escape_name(path)}", "Its snapshots for this action are deleted; the folder isn't touched."),
        undo_class=UndoClass.IRREVERSIBLE,
        undo_text="The action can't be undone or redone after this.",
    )


def told(before: Manifest, after: Manifest) -> list[str]:
    """What brings a folder from one state into the other, in lines for the person: what to beware of first."""
    lines = [*beware(before, after)[0], *plan_text.changes(before.entries, after.entries)]
    return [escape_name(line) for line in lines]


def beware(before: Manifest, after: Manifest) -> tuple[list[str], str]:
    """The rights that others get by a change, and what tools run by themselves after it: in lines, and in sentences
    for a summary."""
    granted = rights.told(before.entries, after.entries)
    run = automatic.told(before.entries, after.entries)
    return [*granted, *run], f"{_GRANTED if granted else ''}{_RUNS if run else ''}"


def outcome(result: Result, before: Manifest, after: Manifest, remarks: Sequence[str]) -> Outcome:
    """What a program's end and the two states make."""
    lines = plan_text.changes(before.entries, after.entries)
    first, said = beware(before, after)
    shown, cut = plan_text.capped([*first, *remarks, *lines])
    return replace(
        _ended(result, f"{ending(result)}: {plan_text.tally(lines)}.{said}{_hint(result)}"),
        changes=shown,
        changes_cut=cut,
        touched=not equal(before, after),
    )


def read_outcome(result: Result) -> Outcome:
    """What a program that only reads makes."""
    return replace(_ended(result, f"{ending(result)}. It could change nothing.{_hint(result)}"), touched=False)


def _hint(result: Result) -> str:
    said = open_files_hint.told(result)
    return f" {said}" if said else ""


def _ended(result: Result, summary: str) -> Outcome:
    return Outcome(
        ok=result.ended is Ended.EXITED and result.exit_code == 0,
        summary=summary,
        ended=result.ended,
        exit_code=result.exit_code,
        stdout=result.stdout.decode("utf-8", "replace"),
        stderr=result.stderr.decode("utf-8", "replace"),
        cut=result.cut,
    )


def ending(result: Result) -> str:
    """How a program ended, in words without a full stop."""
    if result.ended is not Ended.EXITED:
        return f"The program was stopped ({result.ended.value})"
    if result.exit_code == 0:
        return "The program ended well"
    return f"The program ended with exit status {result.exit_code}"


def _need(path: str, arguments: JsonObject, *, reads: bool = False) -> Need:
    scope, risk = (READ_SCOPE, Risk.READ) if reads else (SCOPE, Risk.DELETE)
    return Need(service=SERVICE, account=path, scope=scope, risk=risk, methods=("files.run",), arguments=(arguments,))


def _reverting(
    revert: Revert,
    plan: Plan,
    folder: Folder | None,
    *,
    needs: tuple[Need, ...],
    lines: tuple[str, ...],
    undo_class: UndoClass,
    undo_text: str,
) -> Plan:
    # Where it is mounted may have changed since; a commit doesn't look at it.
    old = {name: value for name, value in plan.resolved.items() if name != "also" or folder is None}
    pinned = {} if folder is None else _pinned(folder)
    return Plan(
        action=revert,
        needs=needs,
        undo_class=undo_class,
        undo_text=undo_text,
        resolved={**old, **pinned, "verb": revert.verb, "target": revert.target},
        bounds=plan.bounds,
        catalog_hash="",
        image_id="",
        limits={},
        lines=lines,
        undo={"strategy": "snapshot"},
    )


def _folder_line(folder: Folder) -> str:
    shown = "".join(f", which is {escape_name(path)}, too" for path in folder.also[:_PATHS_SHOWN])
    more = len(folder.also) - _PATHS_SHOWN
    return f"Folder: {escape_name(folder.path)}{shown}{f', and {more} more' if more > 0 else ''}"


def _pinned(folder: Folder) -> JsonObject:
    """What a plan holds of which folder it is, and of where it is reached otherwise."""
    also = [{"folder": folder.path, "mount": folder.mount, "paths": list(folder.also)}]
    return {"device": folder.device, "inode": folder.inode, **({"also": also} if folder.also else {})}


def _said_undo(action: Files) -> tuple[str, ...]:
    return (
        "Said to take it back (a dry run tries it; undo itself puts back the snapshot and never uses it):",
        *(f"  {escape(line)}" for line in action.undo.split("\n")),
    )


def _hash(action: Files) -> str:
    return hashlib.sha256(action.program.encode("utf-8")).hexdigest()
