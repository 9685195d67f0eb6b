"""Dry runs on the terminal: what an action would do, before anything is decided.

Rules: foreign text stands behind a bar, as in a question; added and removed lines say so by a sign, not by colour
alone. A dry run decides nothing, whatever it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import grpc

from goex.cli.output import Output, fold
from goex.cli.question_text import Line, Style
from policies.display_text import escape
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


class Going:
    """One dry run under way. Iterate it once: progress as text, at last the reply. `cancel` ends it from elsewhere."""

    def __init__(self, client: Client, request: pb.DryRunRequest) -> None:
        from goex.rpc import goex_pb2 as pb

        self._stream = client.stream("Person/DryRun", request, pb.DryRunEvent)
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._stream.cancel()

    def __iter__(self) -> Iterator[pb.DryRunEvent]:
        from goex.client import translate

        try:
            for event in self._stream:
                yield event
                if event.HasField("done"):
                    return
        except grpc.RpcError as error:
            if self._cancelled:
                return
            raise translate(error) from error
        if not self._cancelled:
            raise GoexError("The daemon ended the dry run without a word.", next_step="Ask for it again.")


def lines_of(reply: pb.DryRunReply, width: int) -> list[Line]:
    """Everything that a dry run found, folded to `width` columns. Pure."""
    lines = [Line(piece, "bold") for piece in fold(escape(reply.summary), width)]
    for line in reply.lines:
        sign, style = _SIGNS.get(line.kind, _UNKNOWN)
        again = sign.replace("│", "┊") if "│" in sign else " " * len(sign)
        pieces = fold(escape(line.text), max(width - len(sign), 10))
        lines += [Line((again if index else sign) + piece, style) for index, piece in enumerate(pieces)]
    return lines


def show(client: Client, request: pb.DryRunRequest, out: Output) -> int:
    """Make a dry run and show it. Returns the exit status."""
    going, done = Going(client, request), None
    try:
        for event in going:
            out.message(event)
            if event.HasField("done"):
                done = event.done
            else:
                out.progress(event.progress)
    finally:
        going.cancel()
    if done is None:
        return int(ExitStatus.FAILED)
    if not out.as_json:
        _say(out, done.plan, done)
    return int(ExitStatus.OK if done.ok else ExitStatus.FAILED)


def _say(out: Output, plan: Sequence[str], done: pb.DryRunReply) -> None:
    if plan:
        out.say("What would run", "bold")
        for text in plan:
            out.barred(text)
        out.say("")
    styles = {"added": "green", "removed": "red", "warn": "bold yellow"}
    width = out.console.width if out.on_terminal else 100_000
    for line in lines_of(done, width):
        out.say(line.text, styles.get(line.style, line.style))
    out.progress("Nothing was decided, and nothing was changed.")
    if done.preview:
        out.progress(f"To apply exactly this within an hour, ask for the same with: --apply {done.preview}")
