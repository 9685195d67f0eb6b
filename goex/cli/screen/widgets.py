"""What draws on the screen: the queue, and a text of whole lines that says when its end was drawn.

Rules: lines are drawn as plain segments, never as markup, after every foreign part went through
`policies.display_text.escape`; nothing here decides or moves a selection.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from goex.cli.output import fold
from goex.cli.question_text import Line
from goex.cli.screen.board import Board, Item, clock, remaining
from policies.display_text import escape

STYLES = {
    "": RichStyle(),
    "bold": RichStyle(bold=True),
    "dim": RichStyle(dim=True),
    "warn": RichStyle(bold=True, color="yellow"),
    "added": RichStyle(color="green"),
    "removed": RichStyle(color="red"),
}
_ROWS = 2  # lines that a question takes in the queue

Content = Callable[[int], list[Line]]


class Text(ScrollView, can_focus=True):
    """Lines, folded to the width there is. `drawn(key, end)` is called when some of them were drawn; `end`: the last
    one, too."""

    def __init__(self, id: str, drawn: Callable[[str, bool], None] = lambda key, end: None) -> None:
        super().__init__(id=id)
        self.key = ""  # of what is shown
        self._drawn = drawn
        self._content: Content = lambda width: []
        self._lines: list[Line] = []
        self._width = 0
        self._said: tuple[str, bool] = ("", False)

    def show(self, key: str, content: Content, *, keep_place: bool = False) -> None:
        """Show `content`, from its beginning unless `keep_place`."""
        self.key, self._content, self._said = key, content, ("", False)
        self._fold()
        if not keep_place:
            self.scroll_to(0, 0, animate=False)

    def _fold(self) -> None:
        self._width = self.scrollable_content_region.width
        self._lines = self._content(self._width) if self._width > 0 else []
        self.virtual_size = Size(self._width, len(self._lines))
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        if self.scrollable_content_region.width != self._width:
            self._fold()

    def render_line(self, y: int) -> Strip:
        index = self.scroll_offset.y + y
        if index >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        line = self._lines[index]
        said = (self.key, index == len(self._lines) - 1 or self._said == (self.key, True))
        if self.key and said != self._said:
            self._said = said
            self._drawn(*said)
        strip = Strip([Segment(line.text, self.rich_style + STYLES[line.style])])
        return strip.adjust_cell_length(self.size.width, self.rich_style)


class Queue(ScrollView, can_focus=True, inherit_bindings=False):
    """What waits, two lines each. A click asks for a selection; who waits how long is drawn anew each second."""

    class Chosen(Message):
        """The person clicked at a question."""

        def __init__(self, id: str) -> None:
            super().__init__()
            self.chosen = id

    def __init__(self, board: Board) -> None:
        super().__init__(id="queue")
        self._board = board
        self._order: list[Item] = []

    def redraw(self) -> None:
        self._order = self._board.queue
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._order) * _ROWS)
        self.refresh()

    def reveal(self, id: str) -> None:
        """Scroll so that a question can be seen."""
        for place, item in enumerate(self._order):
            if item.id == id:
                self.scroll_to_region(Region(0, place * _ROWS, 1, _ROWS), animate=False)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        place, part = divmod(self.scroll_offset.y + y, _ROWS)
        if place >= len(self._order):
            return Strip.blank(width, self.rich_style)
        item = self._order[place]
        chosen = item.id == self._board.selected
        text = _head(item) if part == 0 else f"  {_what(item)}"
        mark = ("▶ " if chosen else "  ") if part == 0 else ""
        style = self.rich_style + RichStyle(bold=part == 0, dim=part == 1 and not chosen, reverse=chosen)
        return Strip([Segment(_cut(mark + text, width), style)]).adjust_cell_length(width, style)

    def on_click(self, event: events.Click) -> None:
        place = (self.scroll_offset.y + event.y) // _ROWS
        if 0 <= place < len(self._order):
            self.post_message(self.Chosen(self._order[place].id))


def _head(item: Item) -> str:
    approval = item.brief
    who = "you" if approval.agent == "person" else escape(approval.agent)
    twins = f" ×{approval.count}" if approval.count > 1 else ""
    left = clock(remaining(approval.deadline, datetime.now(UTC)))
    return f"{left} {escape(approval.risk) or 'unknown'}{twins} {who}"


def _what(item: Item) -> str:
    approval = item.brief
    return escape(approval.lines[0] if approval.lines else approval.intent) or "(nothing is said)"


def _cut(text: str, width: int) -> str:
    """The beginning of `text` in `width` cells. Only for the queue, from which nothing can be decided."""
    pieces = fold(text, width)
    return text if len(pieces) < 2 else fold(text, max(width - 1, 1))[0].rstrip() + "…"
