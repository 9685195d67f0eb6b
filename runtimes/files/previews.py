"""What a dry run made of its copy, kept for a while, so that exactly that can be applied.

Rules: only where the person asks for it, and for an hour. Kept are the two states and what the later one has of
contents that the folder hasn't. Applying runs no program: the folder must be what the copy was made of, and becomes
what the copy became, by the same steps, and with the same undo, as any other action.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from policies.actions import Files
from policies.errors import Conflict, Unavailable
from policies.jsonvalue import canonical, parse
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


def keep(repository: Repository, id: str, program: str, before: Manifest, after: Manifest) -> None:
    """Keep a dry run's states as `id`. The contents that the later one needs are stored already."""
    made = Preview(
        id=id,
        before=repository.keep(f"{id}/before", before, latest=False),
        after=repository.keep(f"{id}/after", after, latest=False),
        program=program,
        made=int(time.time()),
    )
    folder = repository.path / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    noted = {"before": made.before, "after": made.after, "program": made.program, "made": made.made}
    (folder / plain(id)).write_bytes(canonical(noted))


def find(repository: Repository, id: str, action: Files, program: str) -> Preview:
    """The preview of that id. Raises Unavailable when it isn't kept any more, Conflict when another program made it."""
    path = repository.path / _FOLDER / plain(id)
    try:
        noted = parse(path.read_bytes(), what="The preview")
    except OSError as error:
        raise _gone(id) from error
    if not isinstance(noted, dict) or time.time() - noted["made"] > KEPT_SECONDS:
        raise _gone(id)
    if noted["program"] != program:
        raise Conflict(
            f"{id[:40]} is the preview of another program on {action.folder[:200]}.",
            next_step="Give the same program, or make a dry run of this one.",
        )
    return Preview(id=id, before=noted["before"], after=noted["after"], program=program, made=noted["made"])


def expire(repository: Repository) -> None:
    """Forget the previews that are too old. Idempotent."""
    folder = repository.path / _FOLDER
    old = [
        path
        for path in (list(folder.iterdir()) if folder.is_dir() else ())
        if time.time() - path.stat().st_mtime > KEPT_SECONDS
    ]
    for path in old:
        repository.drop(path.name)
        path.unlink(missing_ok=True)
    if old:
        with suppress(Unavailable):  # on a full disk it takes its room until the next time
            repository.collect()


def _gone(id: str) -> Unavailable:
    return Unavailable(
        f"There is no preview {id[:40]!r} of this folder (any more: they are kept for an hour).",
        next_step="Make one: goex exec --dry-run --keep …",
    )
