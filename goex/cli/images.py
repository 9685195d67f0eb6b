"""`goex images`: what actions run in. Talks to Docker itself; the daemon isn't needed."""

from __future__ import annotations

from typing import Annotated

import typer

from goex.cli.output import Json, Output, shown
from policies.errors import GoexError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What actions run in.")


@app.command("build")
def build(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Which image.")] = "base",
    as_json: Json = False,
) -> None:
    """Build an image, where it isn't built yet."""
    out = Output(as_json)
    from runtimes.sandbox import images

    image = images.build(name, out.progress)
    out.json({"name": name, "tag": images.tag(name), "image": image})
    if not as_json:
        out.say(shown(f"Built {images.tag(name)} ({image[7:19]})."))


@app.command("list")
def list_images(as_json: Json = False) -> None:
    """The images, and whether each is built."""
    out = Output(as_json)
    from runtimes.sandbox import images
    from runtimes.sandbox.engine import connect

    client = connect()
    rows: list[dict[str, str]] = []
    try:
        for name in images.names():
            try:
                built = images.find(client, name)
            except GoexError:
                built = ""
            rows.append({"name": name, "tag": images.tag(name), "image": built})
    finally:
        client.close()
    out.json({"images": rows})
    if not as_json:
        out.table(("image", "tag", "built"), [(row["name"], row["tag"], row["image"][7:19] or "no") for row in rows])
        if not all(row["image"] for row in rows):
            out.progress("Build one with: goex images build NAME")
