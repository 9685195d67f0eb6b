"""What the commands print.

Rules: with `--json`, stdout holds exactly one JSON document (streams: one JSON object a line) in plain ASCII, and
words for people go to stderr. Without it, words go to stdout. Text from outside (agents, services, providers, file
names) passes `shown` before a person sees it, and no markup is ever interpreted: only `Text` objects and plain
strings with markup off reach the console.

JSON shapes are the messages of goex.proto: field names as they are there, absent values included, and a field
`x_json` appears as `x`, parsed (or as `x_json`, a string, when it isn't JSON).
"""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policies.display_text import escape
from policies.errors import GoexError

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from rich.console import Console
    from rich.text import Text

_NAME_WIDTH = 24  # cells; a longer name in a table is folded

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, words on stderr.")]


def shown(text: str, *, newlines: bool = False) -> str:
    """Foreign text, fit for a terminal."""
    return escape(text, newlines=newlines)


_BESIDE = "\u0e33\u0eb3"  # vowels of Thai and Lao, letters that no row begins with
_WIDEST = 8  # cells of a sign with all that living orthographies draw beside it
_LONGEST = 16  # characters of such a sign
_ERROR_INDENT = 6  # of what stands below "goex: "


def fold(text: str, width: int) -> list[str]:
    """`text` in pieces of at most `width` cells, broken after a blank where there is one. Nothing is dropped. A sign
    that is drawn on the one before it or beside it, as the display likes, counts as beside it, and stays with it."""
    pieces: list[str] = []
    line = ""
    for word in re.findall(r"[^ ]* *", text):
        if _cells(line + word) <= width:
            line += word
        elif _cells(word) <= width:
            pieces.append(line)
            line = word
        else:
            *full, line = _chop(line + word, width)
            pieces += full
    return [*pieces, line] if line or not pieces else pieces


def _chop(text: str, width: int) -> list[str]:
    """`text` in pieces of at most `width` cells, broken between signs."""
    pieces, line, left = [], "", width
    for sign in _signs(text, min(width, _WIDEST)):
        cells = _of_sign(sign)
        if cells > left and line:
            pieces.append(line)
            line, left = "", width
        line, left = line + sign, left - cells
    return [*pieces, line]


def _signs(text: str, most: int) -> Iterator[str]:
    """Each sign with what is drawn on it or beside it, of at most so many cells."""
    sign = ""
    for char in text:
        if sign and (_begins(char) or len(sign) >= _LONGEST or _of_sign(sign + char) > most):
            yield sign
            sign = ""
        sign += char
    yield sign


@lru_cache(maxsize=4096)
def _begins(char: str) -> bool:
    """Whether `char` is a sign by itself, and neither drawn on the one before it nor beside it."""
    return _widest(char) == char and _cells(char) > 0 and char not in _BESIDE


@lru_cache(maxsize=4096)
def _of_sign(sign: str) -> int:
    return _cells(sign)


def _cells(text: str) -> int:
    """The most cells that a display gives `text`."""
    from rich.cells import cell_len

    return cell_len(text if text.isascii() else text.translate({ord(char): _widest(char) for char in set(text)}))


def _widest(char: str) -> str:
    """A sign of the most cells that a display gives `char`, which Rich may count as none."""
    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7ff" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return "\u4e00"  # a vowel or an end of a Korean syllable, a colour of skin
    if unicodedata.category(char) != "Mc":
        return char
    return "\u4e00" if unicodedata.east_asian_width(char) == "W" else "x"


def local(stamp: str) -> str:
    """A stored time (UTC) as this machine's local time, to the second; what isn't a time stays as it is."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return stamp


class Output:
    """One command's output."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        """Where words for a person go."""
        return _console(stderr=self.as_json)

    def say(self, text: str | Text = "", style: str = "") -> None:
        """A line of words. Foreign parts must have passed `shown`. Long lines are folded, never cut."""
        _print(self.console, text, style)

    def json(self, value: Any) -> None:
        """One JSON document, on a line of its own. Nothing without `--json`."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, ensure_ascii=True, separators=(", ", ": ")) + "\n")
            sys.stdout.flush()

    def message(self, message: Message) -> None:
        """`message` as the JSON document."""
        if self.as_json:
            self.json(to_json(message))

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads the words on a screen; otherwise one thing stands on one line, to be searched."""
        return self.console.is_terminal

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, whole: bool = False) -> None:
        """A table of foreign text: every cell is escaped here. The first column holds names, which stay whole; another
        that says nothing in any row leaves its place to those that do, unless the table is shown `whole`."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        cells = [[Text(shown(cell)) for cell in row] for row in rows]
        said = [index for index in range(len(columns)) if whole or not index or any(row[index] for row in cells)]
        cells = [[row[index] for index in said] for row in cells]
        for index, column in enumerate(columns[place] for place in said):
            width = 0 if index else min(max((row[0].cell_len for row in cells), default=0), _NAME_WIDTH)
            table.add_column(Text(column), overflow="fold", min_width=width or None)
        for row in cells:
            table.add_row(*row)
        self.console.print(table)

    def block(self, text: str, indent: int = 2, style: str = "dim") -> None:
        """Foreign text below something that it explains: escaped, indented, wrapped at words on a terminal."""
        width = max(self.console.width - indent, 20) if self.on_terminal else 100_000
        for line in fold(shown(text), width):
            self.say(" " * indent + line, style)

    def barred(self, text: str) -> None:
        """A line of foreign text behind its bar: escaped, and on a terminal folded so that no piece leaves the bar."""
        width = max(self.console.width - 4, 20) if self.on_terminal else 100_000
        for index, piece in enumerate(fold(shown(text), width)):
            self.say(f"  {'┊' if index else '│'} {piece}")

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values, one a line. Values are escaped here; empty ones are left out."""
        kept = [(name, value) for name, value in pairs if value]
        width = max((len(name) for name, _ in kept), default=0)
        for name, value in kept:
            hanging = " " in value and self.on_terminal
            # A word alone, like a path, is left to the terminal, so that it is copied whole.
            lines = fold(shown(value), max(self.console.width - width - 2, 20)) if hanging else [shown(value)]
            for index, line in enumerate(lines):
                self.say(f"{'' if index else name:<{width}}  {line}")

    def progress(self, text: str) -> None:
        """A line about what takes time: on stderr, so that stdout stays the result."""
        _print(_console(stderr=True), shown(text), "dim")


def problem_json(error: GoexError) -> dict[str, Any]:
    """The `problem` object of an error: the fields of goex.v1.Problem."""
    details: Iterable[str] = getattr(error, "details", ()) or getattr(error, "difference", ())
    return {
        "code": error.code,
        "message": error.message,
        "next_step": error.next_step,
        "exit_status": int(error.exit_status),
        "details": [str(line) for line in details],
    }


def print_error(error: GoexError, *, as_json: bool) -> None:
    """Two lines on stderr (what is wrong, what to do), then details; with `as_json` also a JSON document."""
    from rich.text import Text

    console = _console(stderr=True)
    problem = problem_json(error)
    # On a terminal a line is broken between words; what a pipe gets is whole.
    width = max(console.width - _ERROR_INDENT, 20) if console.is_terminal else 0
    for number, text in enumerate(_folded(shown(error.message), width)):
        line = Text("goex: " if number == 0 else " " * _ERROR_INDENT, style="bold red")
        line.append(text, style="not bold default")
        _print(console, line)
    for text in _folded(shown(error.next_step), width) if error.next_step else ():
        _print(console, " " * _ERROR_INDENT + text)
    for detail in problem["details"]:
        for text in _folded(shown(detail), width):
            _print(console, " " * _ERROR_INDENT + text, "dim")
    if as_json:
        Output(True).json({"problem": problem})


def _folded(text: str, width: int) -> list[str]:
    return fold(text, width) if width else [text]


def to_json(message: Message) -> dict[str, Any]:
    """A protobuf message as JSON values, by the rules above."""
    return dict(_fields(message))


def _fields(message: Message) -> Iterator[tuple[str, Any]]:
    for field in message.DESCRIPTOR.fields:
        name = field.name
        if field.containing_oneof is not None and not message.HasField(name):
            continue
        value = getattr(message, name)
        if field.message_type is not None and not field.is_repeated:
            yield name, to_json(value) if message.HasField(name) else None
        elif field.is_repeated:
            yield name, [to_json(item) if field.message_type is not None else item for item in value]
        elif isinstance(value, bytes):
            yield name, value.decode("utf-8", "replace")
        elif name.endswith("_json"):
            yield _parsed(name, value)
        else:
            yield name, value


def _parsed(name: str, text: str) -> tuple[str, Any]:
    if not text:
        return name.removesuffix("_json"), None
    try:
        return name.removesuffix("_json"), json.loads(text)
    except ValueError:
        return name, text


def _print(console: Console, text: str | Text, style: str = "") -> None:
    # Soft wrap leaves folding to the terminal: nothing is cut, and a copied line is one line.
    console.print(text, style=style or None, soft_wrap=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    # Not on a terminal, one row of a table is one line, however long, so that it can be searched.
    width = None if terminal else 100_000
    return Console(file=stream, markup=False, highlight=False, emoji=False, force_terminal=terminal, width=width)
