"""The sandbox images: where their folders are, how they are named, how they are built.

Rules: an image is named by the hash of everything that it is made of, so an image that was built from other
content is not found, never used by mistake; building sends the folder's plain files with fixed modes, owner and
times, so that the same content gives the same layers; nothing is fetched when the container runs. An image whose folder
has a file `packages` stands on our base image, and what it names is fetched from Debian when it is built. One that has
`requirements.txt` gets those Python libraries, which this machine's pip fetches hash by hash, as `site/`; one that has
npm's lock gets its packages as `lib/node_modules/` in the same way. One whose folder has a file `below` stands on the
image that it names. The person's own profiles (`own`, a folder) are `code` with more of these. A name with a colon is
that of an image which was built for one server (`runtimes.servers`): it says the hash of what it was made of itself.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from policies.display_text import escape
from policies.errors import InvalidInput, Unavailable
from runtimes.sandbox import base, libraries, node_modules, profiles
from runtimes.sandbox.docker_sdk import APIClient, docker
from runtimes.sandbox.engine import LIBRARY_ERRORS, connect, translate

LABEL = "org.goex.image"
PACKAGES, REQUIREMENTS, BELOW = profiles.PACKAGES, profiles.REQUIREMENTS, "below"
BUILD = "Run `goex images build`."

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}\Z")
_PRELOAD = "lib/preload.txt"
_HERE = Path(__file__).resolve().parent
# A checkout has the folders at its top; an installed package has them beside this file.
_PLACES = (_HERE.parents[1] / "sandbox-images", _HERE / "images")

Progress = Callable[[str], None]


def names(own: Path | None = None) -> tuple[str, ...]:
    """The images that can be built: ours, and the person's own profiles in the folder `own`."""
    ours = {file.parent.name for place in _PLACES for file in place.glob("*/Dockerfile")}
    return tuple(sorted(ours | set(profiles.names(own))))


def folder(name: str) -> Path:
    """The folder that the image is built from. Raises InvalidInput when there is no such image."""
    if _NAME.match(name):
        for place in _PLACES:
            if (place / name / "Dockerfile").is_file():
                return place / name
    raise InvalidInput(
        f"There is no sandbox image {escape(name[:60])!r}.", next_step=f"There are: {', '.join(names()) or 'none'}."
    )


def content(name: str, own: Path | None = None) -> dict[str, bytes]:
    """What the image is built from: relative path to bytes. Hidden files, caches and links aren't part of it. Raises
    InvalidInput when there is no such image."""
    added = _added(name, own)
    if added is not None:
        # Process 1 of a container that waits loads what that names, before anything is allowed: no library of others.
        below = content(profiles.BELOW)
        return {path: data for path, data in below.items() if path != _PRELOAD} | added
    top = folder(name)
    return {path: (top / path).read_bytes() for path in _files(str(top)) if path and not path.endswith("/")}


def _added(name: str, own: Path | None) -> dict[str, bytes] | None:
    """What the person's profile puts over `code`'s files; None where there is none. The name of one of ours is ours,
    also where a folder of that name lies among the profiles."""
    added = profiles.content(own, name)
    return (
        added if added is not None and not any((place / name / "Dockerfile").is_file() for place in _PLACES) else None
    )


def _files(top: str, below: str = "") -> Iterator[str]:
    """Each file that an image is built from, and each folder (its path ends in /), relative to `top`."""
    yield below
    with os.scandir(f"{top}/{below}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name == "__pycache__" or entry.is_symlink():
                continue
            if entry.is_dir():
                yield from _files(top, f"{below}{entry.name}/")
            elif entry.is_file() and not entry.name.endswith(".pyc"):
                yield f"{below}{entry.name}"


@dataclass(frozen=True, slots=True)
class _Named:
    """An image's name, the recipe of the base, and what it is made of, as it looked when that was read."""

    tag: str
    recipe: str
    paths: tuple[str, ...]
    looked: tuple[tuple[int, int, int], ...]


_named: dict[str, _Named] = {}  # by folder; the name is asked for all the time


def _looks(paths: Iterable[str]) -> tuple[tuple[int, int, int], ...]:
    """Inode, size and time of change of each, a folder's being those of what is in it. Empty when one has gone."""
    try:
        return tuple((found.st_ino, found.st_size, found.st_mtime_ns) for found in map(os.stat, paths))
    except OSError:
        return ()


def content_hash(files: dict[str, bytes]) -> str:
    """16 hex digits over the base's recipe, the content of the image that it stands on, and every path with its
    bytes."""
    digest = hashlib.sha256(base.RECIPE.encode())
    if below := _below(files):
        digest.update(content_hash(content(below)).encode())
    for path, data in sorted(files.items()):
        for part in (path.encode(), data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def _below(files: dict[str, bytes]) -> str:
    """The image of ours that one stands on; "" for the Debian base."""
    return files[BELOW].decode().strip() if BELOW in files else "base" if PACKAGES in files else ""


def tag(name: str, own: Path | None = None) -> str:
    """The image's full name, `goex/<name>:<hash of its content>`."""
    if ":" in name:
        return f"goex/{name}"
    if _added(name, own) is not None:
        return f"goex/{name}:{content_hash(content(name, own))}"
    top = str(folder(name))
    known = _named.get(top)
    if known is None or known.recipe != base.RECIPE or not known.looked or _looks(known.paths) != known.looked:
        paths: tuple[str, ...] = ()
        stands = name
        while stands:
            place = str(folder(stands))
            paths += tuple(f"{place}/{path}" for path in _files(place))
            stands = _below(content(stands))
        looked = _looks(paths)  # before they are read
        known = _named[top] = _Named(f"goex/{name}:{content_hash(content(name))}", base.RECIPE, paths, looked)
    return known.tag


def find(client: APIClient, name: str, own: Path | None = None) -> str:
    """The content id of the built image. Raises InvalidInput when there is no such image, Unavailable naming the
    command that builds it."""
    wanted = tag(name, own)
    try:
        image = client.inspect_image(wanted)  # type: ignore[no-untyped-call] # the stubs lack it
    except docker.errors.ImageNotFound as error:
        raise Unavailable(
            f"The sandbox image {name!r} isn't built, or is out of date.", next_step=_building(name)
        ) from error
    labels = (image.get("Config") or {}).get("Labels") or {}
    # A tag can be moved by hand; the label is part of what was built.
    if labels.get(LABEL) != wanted.partition(":")[2]:
        raise Unavailable(f"The image {wanted} isn't one that GoEx built.", next_step=_building(name))
    return str(image["Id"])


def build_on(
    below: str, name: str, files: dict[str, bytes], app: Path, packages: tuple[str, ...], progress: Progress
) -> str:
    """Build an image of its own on `below`, one of ours, with what lies in `app` as `app/`, and Debian's `packages`.
    Returns its name with its hash, which is over `files` and `below`. Blocks; raises Unavailable."""
    build(below, progress)
    digest = content_hash({**files, BELOW: below.encode()})
    client = connect()
    try:
        with tempfile.TemporaryFile() as context:
            pack(files, context, {"app": app})
            network = "host" if packages else "none"
            _send(client, context, (name, digest), tag(below), packages, network, progress)
    except LIBRARY_ERRORS as error:
        raise translate(error, f"build the image {name!r}") from error
    finally:
        client.close()
    return f"{name}:{digest}"


def builds(name: str) -> frozenset[str]:
    """The images that were built by that name and are there, each as `name:hash`. Blocks; raises SandboxFailed."""
    client = connect()
    try:
        found = client.images(name=f"goex/{name}", filters={"label": LABEL})
        return frozenset(full.removeprefix("goex/") for image in found for full in image.get("RepoTags") or ())
    except LIBRARY_ERRORS as error:
        raise translate(error, f"look at the image {name!r}") from error
    finally:
        client.close()


def _building(name: str) -> str:
    if ":" in name:
        return f"Add the server again: goex mcp add {name.partition(':')[0].removeprefix('mcp-')} --replace -- …"
    return BUILD if name == "base" else f"Run `goex images build {name}`."


def build(name: str = "base", progress: Progress = lambda line: None, own: Path | None = None) -> str:
    """Build the image where it isn't built yet, and return its content id. Blocks; `progress` gets lines to show.

    Raises InvalidInput for an unknown name, Unavailable when Docker, pip, the base or a build step fails.
    """
    files = content(name, own)
    client = connect()
    try:
        try:
            return find(client, name, own)
        except Unavailable:
            progress(f"Building {tag(name, own)}.")
        if stands := _below(files):
            build(stands, progress)
            _run(client, files, name, tag(stands), "host" if PACKAGES in files else "none", progress)
        else:
            below, complete = base.ensure(client, progress)
            _run(client, files, name, below, "none" if complete else "host", progress)
        return find(client, name, own)
    except LIBRARY_ERRORS as error:
        raise translate(error, f"build the image {name!r}") from error
    finally:
        client.close()


def _run(client: APIClient, files: dict[str, bytes], name: str, below: str, network: str, progress: Progress) -> None:
    packages = files[PACKAGES].decode("utf-8", "replace").split() if PACKAGES in files else base.PACKAGES
    with tempfile.TemporaryDirectory(prefix="goex-image-") as scratch, tempfile.TemporaryFile() as context:
        added: dict[str, Path] = {}
        try:
            profiles.check_packages(packages)
            if REQUIREMENTS in files:
                added["site"] = Path(scratch, "site")
                libraries.fetch(files[REQUIREMENTS], added["site"], progress)
            if (lock := files.get(node_modules.LOCK)) is not None:
                added[f"lib/{node_modules.FOLDER}"] = node_modules.fetch(lock, Path(scratch), progress)
        except InvalidInput as error:
            raise InvalidInput(
                f"The image {name!r} isn't built, since GoEx wrote no such profile: {error.message}",
                next_step=f"Make it again: goex images remove {name}, then: goex images add {name} …",
            ) from error
        pack(files, context, added)
        _send(client, context, (name, content_hash(files)), below, packages, network, progress)


def _send(
    client: APIClient,
    context: IO[bytes],
    called: tuple[str, str],
    below: str,
    packages: Iterable[str],
    network: str,
    progress: Progress,
) -> None:
    """Have the engine build a context. Raises Unavailable."""
    name, digest = called
    events = client.build(
        fileobj=context,
        custom_context=True,
        tag=f"goex/{name}:{digest}",
        buildargs={"BASE": below, "PACKAGES": " ".join(packages)},
        labels={LABEL: digest},
        network_mode=network,
        rm=True,
        forcerm=True,
        decode=True,
        timeout=900,
    )
    for event in events:
        if "error" in event:
            said = escape(str(event["error"]).strip())[:300]
            raise Unavailable(
                f"Building the image {name!r} failed: {said}",
                next_step=f"Mend what it says, then run `goex images build {name}` again.",
            )
        line = escape(str(event.get("stream", "")).strip())[:200]
        if line:
            progress(line)


def pack(files: Mapping[str, bytes], into: IO[bytes], folders: Mapping[str, Path] = MappingProxyType({})) -> None:
    """Write the build context as a tar: equal content gives equal bytes, whatever the modes and times on disk are.
    `folders` are further ones by the name that each has in it; links there are left out."""
    added = {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for name, folder in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as made:
        for path in sorted({*files, *added}):
            member = tarfile.TarInfo(path)
            member.mode = 0o444
            if path in added:
                member.size = added[path].stat().st_size
                with added[path].open("rb") as file:
                    made.addfile(member, file)
            else:
                member.size = len(files[path])
                made.addfile(member, io.BytesIO(files[path]))
    into.seek(0)
