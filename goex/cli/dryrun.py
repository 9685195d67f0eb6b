"""Dry runs on the terminal: what an action would do, before anything is decided.

Rules: foreign text stands behind a bar, as in a question; added and removed lines say so by a sign, not by colour
alone. A dry run decides nothing, whatever it shows.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from goex.cli.output import Output, fold
from goex.cli.question_text import Line, Style
from policies.display_text import escape, escape_name
from policies.errors import ExitStatus, GoexError

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

_SIGNS: dict[str, tuple[str, Style]] = {
    "note": ("", "dim"),
    "warning": ("", "warn"),
    "change": ("• ", "bold"),
    "hunk": ("    ", "dim"),
    "same": ("    │ ", ""),
    "added": ("  + │ ", "added"),
    "removed": ("  - │ ", "removed"),
    "output": ("    │ ", ""),
    "errors": ("    │ ", ""),
}
_UNKNOWN: tuple[str, Style] = ("    │ ", "")


def lines_of(reply: pb.DryRunReply, width: int) -> list[Line]:
    """Everything that a dry run found, folded to `width` columns. Pure."""
    lines = [Line(piece, "bold") for piece in fold(escape(reply.summary), width)]
    for line in reply.lines:
        sign, style = _SIGNS.get(line.kind, _UNKNOWN)
        shows = escape_name if line.kind == "change" else escape
        again = sign.replace("│", "┊") if "│" in sign else " " * len(sign)
        pieces = fold(shows(line.text), max(width - len(sign), 10))
        lines += [Line((again if index else sign) + piece, style) for index, piece in enumerate(pieces)]
    return lines


def show(client: Client, request: pb.DryRunRequest, out: Output) -> int:
    """Make a dry run and show it. Returns the exit status."""
    from goex.rpc import goex_pb2 as pb

    done = None
    with closing(client.streamed("Person/DryRun", request, pb.DryRunEvent)) as events:
        for event in events:
            out.message(event)
            if event.HasField("done"):
                done = event.done
                break
            out.progress(event.progress)
    if done is None:
        raise GoexError("The daemon ended the dry run without a word.", next_step="Ask for it again.")
    if not out.as_json:
        _say(out, done)
    return int(ExitStatus.OK if done.ok else ExitStatus.FAILED)


def _say(out: Output, done: pb.DryRunReply) -> None:
    if done.plan:
        out.say("What would run", "bold")
        for text in done.plan:
            out.barred(text)
        out.say("")
    styles = {"added": "green", "removed": "red", "warn": "bold yellow"}
    width = out.console.width if out.on_terminal else 100_000
    for line in lines_of(done, width):
        out.say(line.text, styles.get(line.style, line.style))
    out.progress("Nothing was decided, and nothing was changed.")
    if done.preview:
        out.progress(f"To apply exactly this within an hour, ask for the same with: --apply {done.preview}")
