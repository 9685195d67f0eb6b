"""Draws docs/approve-screen.svg and docs/approve-dry-run.svg: the screen itself, before questions made up for it.

python -m tests.goex.cli.screen.picture
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from goex.rpc import goex_pb2 as pb
from tests.goex.cli.fake import serve
from tests.goex.cli.screen.support import Daemon, Screen, screen

DOCS = Path(__file__).parents[4] / "docs"
SIZE = (110, 34)
CELL = 12.2  # how wide textual draws a cell
PROGRAM = "sed -i 's/2025/2026/' README.md && rm -f *.tmp"


def daemon() -> Daemon:
    made = Daemon()
    made.pending.clear()
    now = datetime.now(UTC)
    folder = "/home/me/notes"
    need = pb.NeedView(
        service="files",
        account=folder,
        scope="files.write",
        risk="delete",
        description=f"Run a program that can read, change and delete everything in {folder}.",
        methods=["files.run"],
    )
    made.ask(
        id="q-7c1f0a4be2d9",
        action_id="a-51d2c07e9b3a",
        agent="tidy",
        risk="delete",
        intent="",
        lines=[
            f"Folder: {folder}",
            "Owner: 1000:1000; 14 files, 61.2 kB",
            "Runs as: 1000:1000, in a container with no network, for at most 60 s",
            "It can read, change and delete everything in this folder, and reach nothing else.",
            "Program (shell):",
            f"  {PROGRAM}",
        ],
        needs=[need],
        undo_class="exact",
        undo_text="Undo puts the folder back exactly as it was: contents, names, modes, owners, times, links.",
        reason="files:files.write is not granted to tidy.",
        deadline=(now + timedelta(minutes=4, seconds=12)).isoformat(),
        source="user 1000, process 4711 (python3), on the agent socket",
        widths=["once", "session", "arguments", "permanent"],
        place=1,
    )
    made.ask(
        id="q-1b77de09c5a4",
        agent="helper",
        count=3,
        lines=["slack.chat.postMessage as work → POST https://slack.com/api/chat.postMessage"],
        deadline=(now + timedelta(minutes=3, seconds=40)).isoformat(),
        place=2,
    )
    made.ask(
        id="q-90aa41f3b6e7",
        agent="anonymous",
        risk="read",
        lines=["github.repos.list as me → GET https://api.github.com/user/repos"],
        deadline=(now + timedelta(minutes=1, seconds=5)).isoformat(),
        place=3,
    )
    found = [
        ("note", f"This is what happened on a copy at {now:%Y-%m-%d %H:%M:%S} UTC. Your folder wasn't touched."),
        ("change", "changed README.md"),
        ("hunk", "@@ -3,4 +3,4 @@"),
        ("same", "## Plans"),
        ("same", ""),
        ("removed", "What we want to have done by the end of 2025:"),
        ("added", "What we want to have done by the end of 2026:"),
        ("same", ""),
        ("change", "deleted draft.tmp"),
        ("hunk", "@@ -1,2 +0,0 @@"),
        ("removed", "an idea that isn't one yet"),
        ("removed", "and another"),
        ("change", "deleted photo.tmp"),
        ("note", f"not compared line by line: 48.1 kB, SHA-256 {'4f0c' * 16}"),
    ]
    lines = [pb.DryLine(kind=kind, text=text) for kind, text in found]
    made.dry[-1].done.CopyFrom(
        pb.DryRunReply(ok=True, summary="The program ended well: 1 changed, 2 deleted.", lines=lines)
    )
    return made


def draw(seen: Screen, name: str, title: str) -> None:
    drawn = seen.app.export_screenshot(title=title)
    # Fonts of somebody else's server: a picture in a repository loads nothing, and any monospaced font will do.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"font-family: Fira Code", "font-family: monospace", drawn)
    drawn = re.sub(r'x="([\d.]+)"([^>]*) textLength="([\d.]+)"([^>]*)>((?:&#160;)+)', _moved, drawn)
    (DOCS / name).write_text(re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE), encoding="utf-8")


def _moved(found: re.Match[str]) -> str:
    """A text that begins with blanks, begun after them: some viewers drop them."""
    x, before, length, after, blanks = found.groups()
    shift = len(blanks) / len("&#160;") * CELL
    return f'x="{float(x) + shift:g}"{before} textLength="{max(float(length) - shift, 0):g}"{after}>'


async def pictures() -> None:
    with tempfile.TemporaryDirectory() as place:
        made = daemon()
        server = serve(Path(place) / "user.sock", made)
        try:
            async with screen(Path(place) / "user.sock", size=SIZE) as seen:
                await seen.until("Answer within")
                await seen.moment()
                draw(seen, "approve-screen.svg", "goex approve --screen")
                await seen.press("y")
                await seen.until("photo.tmp")
                draw(seen, "approve-dry-run.svg", "goex approve --screen")
        finally:
            server.stop(0).wait()


if __name__ == "__main__":
    asyncio.run(pictures())
