"""What a dry run made of its copy, kept for a while, so that exactly that can be applied.

Rules: only where the person asks for it, and for an hour. Kept are the two states and what the later one has of
contents that the folder hasn't. Applying runs no program: the folder must be what the copy was made of, and becomes
what the copy became, by the same steps, and with the same undo, as any other action.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from policies.actions import Files
from policies.errors import Conflict, GoexError, Unavailable
from policies.jsonvalue import canonical, parse
from policies.regular_file import read_regular
from runtimes.files.large import replace_file
from runtimes.files.location import is_absolute
from runtimes.files.snapshot import Repository, plain
from runtimes.files.tree import Manifest

KEPT_SECONDS = 3600
_FOLDER = "previews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One of them: the manifests' object ids before and after, of which program, and when (seconds since 1970)."""

    id: str
    before: str
    after: str
    program: str
    made: int


def keep(repository: Repository, id: str, of: str, program: str, before: Manifest, after: Manifest) -> None:
    """Keep a dry run's states of the folder `of` as `id`. The contents that the later one needs are stored already."""
    made = Preview(
        id=id,
        before=repository.keep(f"{id}/before", before, latest=False),
        after=repository.keep(f"{id}/after", after, latest=False),
        program=program,
        made=int(time.time()),
    )
    folder = repository.path / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    noted = {"before": made.before, "after": made.after, "program": made.program, "made": made.made, "folder": of}
    replace_file(folder / plain(id), canonical(noted))


def find(repository: Repository, id: str, action: Files, program: str) -> Preview:
    """The preview of that id. Raises Unavailable when it isn't kept any more, Conflict when another program made it."""
    path = repository.path / _FOLDER / plain(id)
    try:
        noted = parse(read_regular(path), what="The preview")
    except OSError as error:
        raise _gone(id) from error
    told = noted if isinstance(noted, dict) else {}
    made, before, after = (told.get(name) for name in ("made", "before", "after"))
    if not (isinstance(made, int) and isinstance(before, str) and isinstance(after, str)):
        raise _gone(id)
    if time.time() - made > KEPT_SECONDS:
        raise _gone(id)
    if told.get("program") != program:
        raise Conflict(
            f"{id[:40]} is the preview of another program on {action.folder[:200]}.",
            next_step="Give the same program, or make a dry run of this one.",
        )
    return Preview(id=id, before=before, after=after, program=program, made=made)


def overdue(snapshots: Path) -> set[str]:
    """The folders of which previews are kept that are too old, in all repositories below `snapshots`."""
    found = set()
    for path in snapshots.glob(f"*.git/{_FOLDER}/*"):
        with suppress(OSError, GoexError):  # whoever holds its folder takes it away
            noted = parse(read_regular(path), what="The preview") if _is_old(path) else None
            if isinstance(noted, dict) and is_absolute(noted.get("folder")):  # an older GoEx noted none
                found.add(noted["folder"])
    return found


def expire(repository: Repository) -> None:
    """Forget the previews that are too old. Idempotent."""
    folder = repository.path / _FOLDER
    old = [path for path in (list(folder.iterdir()) if folder.is_dir() else ()) if _is_old(path)]
    with suppress(Unavailable):  # on a full disk, or where somebody changed the repository, they stay until later
        for path in old:
            repository.drop(path.name)
            path.unlink(missing_ok=True)
        if old:
            repository.collect()


def _is_old(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > KEPT_SECONDS


def _gone(id: str) -> Unavailable:
    return Unavailable(
        f"There is no preview {id[:40]!r} of this folder (any more: they are kept for an hour).",
        next_step="Make one: goex exec --dry-run --keep …",
    )
