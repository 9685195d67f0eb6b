"""The person's own profiles: the image `code` with more libraries and packages, built before anything runs in it.

Rules: a profile is a folder of files: `packages` (Debian's, one a line), `requirements.txt` (every Python library with
version and hash, `code`'s among them) and, where it has packages of npm, their lock; its image is made from those and
from `code`'s recipe, so it is out of date when one of them changes. No profile takes the name of one of ours. Nothing
is added while a program runs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from policies.display_text import escape
from policies.errors import Conflict, InvalidInput, Unavailable
from policies.regular_file import folder_below, read_regular
from runtimes.sandbox import libraries, node_modules

BELOW = "code"  # the image that a profile adds to
PACKAGES, REQUIREMENTS, WANTED = "packages", "requirements.txt", "requirements.in"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}\Z")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]{1,80}\Z")

Progress = Callable[[str], None]


def names(own: Path | None) -> tuple[str, ...]:
    """The profiles in the folder `own`."""
    found = () if own is None else (file.parent.name for file in own.glob(f"*/{REQUIREMENTS}"))
    return tuple(sorted(name for name in found if _NAME.match(name)))


def content(own: Path | None, name: str) -> dict[str, bytes] | None:
    """What the profile puts over `code`'s files; None when there is no such profile. Raises Unavailable."""
    if own is None or not _NAME.match(name) or not (own / name / REQUIREMENTS).exists():
        return None
    files = [PACKAGES, REQUIREMENTS, WANTED]
    if (own / name / node_modules.LOCK).exists():
        files.append(node_modules.LOCK)
    try:
        return {file: read_regular(folder_below(own, name) / file) for file in files}
    except OSError as error:
        raise Unavailable(
            f"The profile {name} can't be read: {escape(str(error.filename))}: {error.strerror}.",
            next_step=f"Remove it, then add it anew: goex images remove {name}",
        ) from error


def check_packages(packages: Iterable[str]) -> None:
    """Raise InvalidInput for what isn't the name of a Debian package: apt takes options among them."""
    for package in packages:
        if not _PACKAGE.match(package):
            raise InvalidInput(
                f"{escape(package[:60])!r} isn't the name of a Debian package.",
                next_step="Name it as apt does, like: --package jq",
            )


def add(
    own: Path,
    name: str,
    wanted: str,
    packages: Sequence[str],
    below: dict[str, bytes],
    taken: Sequence[str],
    progress: Progress = lambda line: None,
    *,
    npm: Sequence[str] = (),
) -> None:
    """Write the profile: `wanted` is the text of a requirements file, `below` are `code`'s files, `npm` are packages of
    npm's (NAME[@VERSION]).

    Raises InvalidInput for a name, package or library that can't be, Conflict for a name that is taken, Unavailable
    when the libraries can't be found.
    """
    if not _NAME.match(name):
        raise InvalidInput(
            f"{escape(name[:60])!r} can't be a profile's name.", next_step="Use small letters, digits and hyphens."
        )
    if name in taken or (own / name).exists():
        raise Conflict(f"There is a profile {name!r} already.", next_step="Take another name, or remove it first.")
    check_packages(packages)
    lines = libraries.lines_of(wanted)
    known = libraries.lines_of(below[WANTED].decode())
    for package in npm:
        node_modules.named(package)  # before anything is asked for
    pinned = libraries.resolve((*lines, *known), progress)
    every = sorted({*below[PACKAGES].decode().split(), *packages})
    made = {
        PACKAGES: "".join(f"{package}\n" for package in every).encode(),
        REQUIREMENTS: pinned,
        WANTED: "".join(f"{line}\n" for line in lines).encode(),
        **({node_modules.LOCK: node_modules.lock(npm, progress)} if npm else {}),
    }
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        (own / name).mkdir(mode=0o700)
        for file, data in made.items():
            (own / name / file).write_bytes(data)
    except OSError as error:
        shutil.rmtree(own / name, ignore_errors=True)
        raise Unavailable(f"The profile can't be written to {own}: {error.strerror}.") from error


def remove(own: Path, name: str) -> None:
    """Forget the profile. Raises InvalidInput when there is none of that name."""
    if name not in names(own):
        raise InvalidInput(
            f"There is no profile {escape(name[:60])!r} of yours.", next_step="They are listed by: goex images list"
        )
    if (own / name).is_symlink():
        (own / name).unlink()  # what it leads to isn't ours
    else:
        shutil.rmtree(own / name)
