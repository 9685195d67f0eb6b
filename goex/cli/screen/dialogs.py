"""The dialogs: allowing at one width, and denying with a reason.

Rules: what a choice means is on the dialog, in the daemon's words and whole, before it can be made; the default is no;
the dialog, too, must have stood for a moment before a key counts.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from goex.cli.output import fold
from goex.cli.question_text import WIDTH_WORDS, YOURS, Line
from goex.cli.screen.board import MOMENT
from goex.cli.screen.widgets import Text
from policies.display_text import escape

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

LONGEST_REASON = 500  # characters
NAMES = {
    "once": "this once",
    "session": "for this session",
    "arguments": "always with these arguments",
    "permanent": "always",
}


@dataclass(frozen=True, slots=True)
class Yes:
    """The person allowed it; `seconds` 0 is the usual time."""

    seconds: int = 0


@dataclass(frozen=True, slots=True)
class No:
    """The person denied it."""

    reason: str


class Allow(ModalScreen[Yes | None]):
    """Says what a width means, and asks once more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "back", "no"),
        Binding("y", "yes", "yes"),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self, approval: pb.Approval, width: str) -> None:
        super().__init__()
        self._approval = approval
        self._width = width
        self._since = time.monotonic()
        self._seen = False

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(f"Allow it {NAMES[self._width]}?", id="title", markup=False)
            yield Text("words", self._drawn)
            if self._width != "once":
                yield Input(placeholder="ends after, like 12h or 7d (empty: the usual time)", id="ends")
            yield Static("", id="trouble", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("n No, go back", id="back", compact=True)
                yield Button("y Yes, allow", id="yes", compact=True)

    def on_mount(self) -> None:
        self.query_one("#words", Text).show("words", lambda width: meaning(self._approval, self._width, width))
        self.query_one("#back").focus()

    def _drawn(self, key: str, end: bool) -> None:
        self._seen = self._seen or end

    @on(Button.Pressed, "#back")
    def action_back(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        if time.monotonic() - self._since < MOMENT:
            self._say("It has only just appeared: look at it first.")
        elif not self._seen:
            self._say("Read it to its end first (space, PgDn).")
        else:
            typed = self.query_one("#ends", Input).value.strip() if self._width != "once" else ""
            seconds = span(typed)
            if seconds is None:
                self._say("That isn't a time like 12h or 7d.")
            else:
                self.dismiss(Yes(seconds))

    def action_page(self, by: int) -> None:
        text = self.query_one("#words", Text)
        text.scroll_relative(y=by * max(text.size.height - 1, 1), animate=False)

    def _say(self, text: str) -> None:
        self.query_one("#trouble", Static).update(text)


class Deny(ModalScreen[No | None]):
    """Asks why, which the agent reads. Enter denies: that can only stop something."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "go back")]

    def __init__(self, approval: pb.Approval) -> None:
        super().__init__()
        self._approval = approval

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(f"Deny it? {_twins(self._approval)}".rstrip(), id="title", markup=False)
            yield Static("Why? The agent reads it. Enter denies, Esc goes back.", markup=False)
            yield Input(placeholder="reason (may stay empty)", max_length=LONGEST_REASON, id="reason")
            with Horizontal(classes="buttons"):
                yield Button("Go back", id="back", compact=True)
                yield Button("Deny", id="deny", compact=True)

    def on_mount(self) -> None:
        self.query_one("#reason").focus()

    @on(Button.Pressed, "#back")
    def action_back(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#deny")
    @on(Input.Submitted)
    def _deny(self) -> None:
        self.dismiss(No(self.query_one("#reason", Input).value.strip()))


def meaning(approval: pb.Approval, name: str, width: int) -> list[Line]:
    """What choosing a width means, folded to `width` columns. Pure."""
    choice = next((choice for choice in approval.choices if choice.name == name), None)
    if choice is None:
        words = (YOURS if approval.agent == "person" else WIDTH_WORDS)[name]
        return [Line(piece) for piece in fold(words, width)]
    lines: list[Line] = []
    for text in choice.words:
        lines += [Line(("│ " if index == 0 else "┊ ") + piece) for index, piece in enumerate(_folded(text, width - 2))]
    if choice.warning:
        lines += [Line(piece, "warn") for piece in _folded(choice.warning, width)]
    if approval.count > 1:
        word = "It is for one of them; the others still wait." if name == "once" else "The others are covered, too."
        lines += [Line(piece) for piece in fold(f"{approval.count} identical requests wait. {word}", width)]
    return lines


def span(text: str) -> int | None:
    """`12h`, `7d` in seconds; 0 for nothing, None for what isn't a time."""
    if not text:
        return 0
    match = re.fullmatch(r"([0-9]{1,4}) ?([hd])", text)
    return int(match[1]) * {"h": 3600, "d": 86_400}[match[2]] or None if match else None


def _folded(text: str, width: int) -> list[str]:
    return fold(escape(text), max(width, 10))


def _twins(approval: pb.Approval) -> str:
    return f"All {approval.count} identical ones are denied." if approval.count > 1 else ""
