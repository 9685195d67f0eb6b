"""What a script of sed runs and may name, as GNU sed reads it, which alone runs anything. It is parsed, and never run.

Rules: `e` runs a command that the script writes out, or what a line holds, which is unknown; so is what a script runs
that can't be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

PLAIN_SED = re.compile(r"s/[^/]*/[^/]*/[gpIi0-9]*")  # a script that names nothing
_ELSEWHERE = re.compile(r"(?:^|[^A-Za-z])[gpIiMme\d]*[rRwW]\s*(?:[/~]|(?:\S*/)?\.\.(?:/|$))")
_NUMBER = re.compile(r"\d+")
_LABEL = re.compile(r"[ \t]*[^\s;}]*")
_LINE = re.compile(r"[^\n]*")
_TEXT = re.compile(r"(?:[^\n\\]|\\.|\\$)*", re.DOTALL)
_FIRST = re.compile(r"\^?\]?")  # of what stands in brackets
_FLAGS = re.compile(r"[gpIiMm0-9]*")
_WITH_VALUE = re.compile(r"-[nrEsuz]*l|--line-length")
_PLAIN = re.compile(
    r"-[nrEsuz]+|-[nrEsuz]*i.*|-[nrEsuz]*l\d+|--(?:in-place|line-length)=.*"
    r"|--(?:in-place|quiet|silent|debug|regexp-extended|separate|unbuffered|null-data|zero-terminated|posix|sandbox|"
    r"follow-symlinks|help|version)",
    re.DOTALL,
)
_SCRIPT = re.compile(r"-[nrEsuz]*e(.*)|--expression(?:=(.*))?", re.DOTALL)
_FILE = re.compile(r"-[nrEsuz]*f.*|--file(?:=.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SedScript:
    """`changes`: it changes the files that it reads; `outside`: it names files elsewhere; `files`: what its commands
    may name; `opens`: they do name one; `runs`: programs that a shell is given; `unknown`: it may run others."""

    changes: bool = False
    outside: bool = False
    files: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    unknown: bool = False
    opens: bool = False


class _Brackets(Enum):
    """How a version reads what stands in the brackets of a pattern, where a delimiter may be itself."""

    PLAIN = 0
    HOLD_MARKS = 1
    HOLD_MARKS_AND_ESCAPES = 2


class _Odd(Exception):
    """A script that can't be read."""


def read_sed(words: list[str]) -> SedScript:
    """What sed, given these words, does."""
    found = list[str | None]()
    understood = opens = False
    for brackets in _Brackets:  # what one version can't read, it doesn't run
        try:
            parser = _Parser("\n".join(_scripts(words)), brackets)
            found += parser.commands()
            opens = opens or parser.opens
            understood = True
        except _Odd:
            continue
    runs = tuple(dict.fromkeys(each for each in found if each is not None))
    # Commands and a flag, which take the rest of their line.
    rests = (said[at.end() :] for said in words for at in re.finditer("[rRwW]", said))
    return SedScript(
        changes=any(each.startswith(("-i", "--in-place")) for each in words),
        outside=any(_ELSEWHERE.search(each) for each in words),
        files=tuple(dict.fromkeys(file for each in rests if (file := each.partition("\n")[0].strip()))),
        runs=runs,
        unknown=not understood or None in found,
        opens=opens,
    )


def is_plain(words: list[str]) -> bool:
    """Whether sed, given these words, runs nothing and names no file in its script, which isn't a file's."""
    read = read_sed(words)
    from_file = any(re.match(r"-[nrEsuz]*f|--fi", each) for each in words)
    return not (read.unknown or read.runs or read.opens or from_file)


def _scripts(words: list[str]) -> Iterator[str]:
    """The scripts that are given: by options, or else the first word that is none. Raises _Odd."""
    left, plain, given = list(words), list[str](), False
    while left:
        said = left.pop(0)
        if said == "--":
            plain += left
            break
        if (found := _SCRIPT.fullmatch(said)) is not None:
            given = True
            value = found[1] or found[2]
            if not value and not left and "=" not in said:
                raise _Odd
            yield value or ("" if "=" in said else left.pop(0))
        elif _FILE.fullmatch(said):
            given = True  # of which nothing is known here, as of any other program in a file
            left = left[said[-1] == "f" or said == "--file" :]
        elif _WITH_VALUE.fullmatch(said):
            left = left[1:]
        elif said.startswith("-") and said != "-" and not _PLAIN.fullmatch(said):
            raise _Odd
        elif not said.startswith("-") or said == "-":
            plain.append(said)
    if not given:
        # To BSD's sed an empty word behind -i is its suffix.
        yield from plain[:1]
        yield from plain[1:2] if plain[:1] == [""] else []


class _Parser:
    def __init__(self, script: str, brackets: _Brackets) -> None:
        self._text = script
        self._brackets = brackets
        self._at = 0
        self.opens = False

    def commands(self) -> Iterator[str | None]:
        """Each command that it runs; None for one that isn't written out. Raises _Odd."""
        open_ = 0
        while True:
            self._blanks(";")
            if not self._next():
                if open_:
                    raise _Odd
                return
            self._addresses()
            match self._take():
                case "{":
                    open_ += 1
                    continue
                case "}":
                    open_ -= 1
                    if open_ < 0:
                        raise _Odd
                case "#":
                    self._match(_LINE)
                case "s":
                    if self._substitutes():
                        yield None
                case "y":
                    self._delimited(self._delimited(self._delimiter()))
                case "e":
                    said = self._lines().strip()
                    yield said or None
                    if "\\" in said:
                        yield None
                case "a" | "i" | "c":
                    self._lines()
                case "r" | "R" | "w" | "W":
                    self._opened()
                case ":" | "b" | "t" | "T" | "v":
                    self._match(_LABEL)
                    continue  # another command may stand behind a blank
                case "q" | "Q" | "l" | "L":
                    self._blanks()
                    self._match(_NUMBER)
                case "=" | "d" | "D" | "F" | "g" | "G" | "h" | "H" | "n" | "N" | "p" | "P" | "x" | "z":
                    pass
                case _:
                    raise _Odd
            self._blanks()
            if self._next() not in ("", ";", "\n", "}", "#"):
                raise _Odd

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._text[self._at - 1 : self._at]

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found is not None else self._at
        return found[0] if found is not None else ""

    def _blanks(self, more: str = "") -> None:
        while self._next() and (self._next() in f" \t{more}" or (more and self._next() == "\n")):
            self._at += 1

    def _addresses(self) -> None:
        if self._address():
            self._blanks()
            if self._next() == ",":
                self._at += 1
                self._blanks()
                if self._next() in ("+", "~"):
                    self._at += 1
                if not self._address():
                    raise _Odd
            self._blanks()
        while self._next() == "!":
            self._at += 1
            self._blanks()

    def _address(self) -> bool:
        match self._next():
            case "$":
                self._at += 1
            case "/":
                self._delimited(self._take(), pattern=True)
            case "\\":
                self._at += 1
                self._delimited(self._delimiter(), pattern=True)
            case digit if digit.isdecimal() and digit.isascii():
                self._match(_NUMBER)
                if self._next() == "~":
                    self._at += 1
                    self._match(_NUMBER)
                return True
            case _:
                return False
        while self._next() and self._next() in "IM":
            self._at += 1
        return True

    def _delimiter(self) -> str:
        mark = self._take()
        if mark in ("", "\n", "\\"):
            raise _Odd
        return mark

    def _delimited(self, mark: str, *, pattern: bool = False) -> str:
        """Pass what ends with `mark`, but for one behind a backslash, and give `mark` back."""
        while (sign := self._take()) != mark:
            if sign in ("", "\n"):
                raise _Odd
            if sign == "\\":
                self._at += 1
            if sign == "[" and pattern and self._brackets is not _Brackets.PLAIN:
                self._bracketed()
        return mark

    def _bracketed(self) -> None:
        self._match(_FIRST)
        while (sign := self._take()) != "]":
            if sign in ("", "\n"):
                raise _Odd
            if sign == "\\" and self._brackets is _Brackets.HOLD_MARKS_AND_ESCAPES:
                self._at += 1
            if sign == "[" and (kind := self._next()) and kind in ":.=":
                end = self._text.find(f"{kind}]", self._at + 1)
                self._at = end + 2 if end > 0 else self._at

    def _substitutes(self) -> bool:
        """Whether a substitution runs what it made."""
        self._delimited(self._delimited(self._delimiter(), pattern=True))
        runs = False
        while True:
            self._match(_FLAGS)
            if self._next() == "e":
                self._at += 1
                runs = True
            elif self._next() == "w":
                self._at += 1
                self._opened()
                return runs
            else:
                return runs

    def _opened(self) -> None:
        self.opens = self._match(_LINE).strip() not in ("/dev/stdout", "/dev/stderr") or self.opens

    def _lines(self) -> str:
        """A text, which goes on behind a line that ends with a backslash."""
        return self._match(_TEXT)
