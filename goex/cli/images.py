"""`goex images`: what actions run in. Talks to Docker itself; the daemon isn't needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, shown
from policies.display_text import counted
from policies.errors import GoexError, InvalidInput

app = App(help="What actions run in.")


@app.command("build")
def build(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Which image.")] = "base",
    as_json: Json = False,
) -> None:
    """Build an image, where it isn't built yet."""
    out = Output(as_json)
    from goex.cli.connect import paths
    from runtimes.sandbox import images

    own = paths().profiles
    image = images.build(name, out.progress, own)
    out.json({"name": name, "tag": images.tag(name, own), "image": image})
    if not as_json:
        out.say(shown(f"Built {images.tag(name, own)} ({image[7:19]})."))


@app.command("list")
def list_images(as_json: Json = False) -> None:
    """The images, and whether each is built."""
    out = Output(as_json)
    from goex.cli.connect import paths
    from runtimes.sandbox import images, profiles
    from runtimes.sandbox.engine import connect

    own = paths().profiles
    mine = profiles.names(own)
    client = connect()
    rows: list[dict[str, str]] = []
    try:
        for name in images.names(own):
            try:
                built = images.find(client, name, own)
            except GoexError:
                built = ""
            whose = "yours" if name in mine else "GoEx"
            rows.append({"name": name, "of": whose, "tag": images.tag(name, own), "image": built})
    finally:
        client.close()
    out.json({"images": rows})
    if not as_json:
        cells = [(row["name"], row["of"], row["tag"], row["image"][7:19] or "no") for row in rows]
        out.table(("image", "of", "tag", "built"), cells)
        if not all(row["image"] for row in rows):
            out.progress("Build one with: goex images build NAME")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the profile is to be called.")],
    requirements: Annotated[
        Path | None, typer.Option("--requirements", metavar="FILE", help="Python libraries, one a line.")
    ] = None,
    library: Annotated[
        list[str] | None, typer.Option("--library", metavar="NAME", help="A Python library; can be repeated.")
    ] = None,
    npm: Annotated[
        list[str] | None,
        typer.Option("--npm", metavar="NAME[@VERSION]", help="A package of npm's, for JavaScript; can be repeated."),
    ] = None,
    package: Annotated[
        list[str] | None, typer.Option("--package", metavar="NAME", help="A Debian package; can be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a profile of your own: the image `code` with more libraries, for: goex exec --code … --profile NAME.

    The libraries are found now, by this machine's pip (as wheels alone) and npm, and kept by version and hash; nothing
    is ever installed while a program runs.
    """
    out = Output(as_json)
    from goex.cli.connect import paths
    from runtimes.sandbox import images, profiles

    if requirements is None and not (library or npm or package):
        raise InvalidInput(
            "There is nothing to add.",
            next_step="Name libraries with --library, --npm or --requirements FILE, Debian's packages with --package.",
        )
    own = paths().profiles
    wanted = "".join(f"{line}\n" for line in library or ())
    wanted += _read(requirements) if requirements is not None else ""
    below = images.content(profiles.BELOW)
    profiles.add(own, name, wanted, package or (), below, images.names(), out.progress, npm=npm or ())
    image = images.build(name, out.progress, own)
    pinned = images.content(name, own)[profiles.REQUIREMENTS].count(b"==")
    out.json({"name": name, "tag": images.tag(name, own), "image": image, "libraries": pinned})
    if not as_json:
        out.say(shown(f"Built {images.tag(name, own)} ({image[7:19]}) with {counted(pinned, 'Python library')}."))


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which profile of yours.")],
    as_json: Json = False,
) -> None:
    """Forget a profile of your own, and remove its image. Programs that were approved for it don't run any more."""
    out = Output(as_json)
    from goex.cli.connect import paths
    from runtimes.sandbox import image_removal, profiles
    from runtimes.servers.definition import Servers

    place = paths()
    profiles.remove(place.profiles, name)
    removed = image_removal.forget(name, place.run_dir / "waiting", Servers(place.servers).images())
    for image in removed.left:
        out.progress(shown(f"The image {image} stays: a container uses it. Remove it later: docker image rm {image}"))
    out.json({"name": name, "images": removed.gone, "left": removed.left})
    if not as_json:
        out.say(shown(f"Removed {name} and {counted(removed.gone, 'image')}."))


def _read(file: Path) -> str:
    from goex.cli.input_text import read_text

    return read_text(file, "The requirements file")
