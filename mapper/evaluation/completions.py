"""The API calls in a completion, found by syntax and never run.

Rules, chosen so that the published responses score as their authors scored them:

* Has the completion an `api_call` field, it is what stands between that word and `api_provider`, and the calls are
  looked for there alone, with its escapes resolved; what stands there between two quotes that match is text. A field
  that names the model without calling anything (`model_id = 'https://…'`) offers that literal.
* Without the field, the whole completion is the program, as it stands. The published files hold `\\n` as two
  characters, so a `#` comments out all that follows on the real line, an apostrophe in prose opens a string, and
  `a = f(x)\\nb = …` is no statement. Calls that only a kinder reader would see there aren't counted.
* What can't be parsed (cut off, unbalanced, too long, too deep) is no call. A completion without any is a
  hallucination in APIBench's three classes, since nothing in the database contains it.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect
from collections.abc import Iterable, Iterator

from mapper import syntax

MAX_COMPLETION = 100_000  # characters; what follows isn't read
MAX_CALL = 8_000  # characters
MAX_DEPTH = 30  # brackets
MAX_CANDIDATES = 200

_FIELD, _FIELD_END = "api_call", "api_provider"
_ESCAPED_NEWLINE = re.compile(r"\\{1,8}n")
_ESCAPED_QUOTE = re.compile(r"\\{1,8}(['\"])")
_GLUE = "\x1e"  # stands for an escaped line end while it matters that it was escaped
_ASSIGNED_LITERAL = re.compile(r"\W*[A-Za-z_]\w{0,100} ?= ?('[^'\n]*'|\"[^\"\n]*\")")
_ASSIGNMENT_BEFORE = re.compile(r"=\s*\Z")
_ASSIGNMENT_AFTER = re.compile(rf"[ {_GLUE}]*{_GLUE} *[A-Za-z_]\w*\s*=")
_OPEN, _CLOSE = "([{", ")]}"
_CLOSING = {quote: re.compile(rf"(?:[^\\{quote}\n]|\\.)*+{quote}", re.DOTALL) for quote in "'\""}
_AFTER_NAME = re.compile(r"(?<=[(,])(\s*)(\w+)(\s*)=(?!=)")


class Finder:
    """Finds calls of a fixed set of functions."""

    def __init__(self, functions: Iterable[str]) -> None:
        names = "|".join(re.escape(name) for name in sorted(functions))
        self._start = re.compile(rf"(?<![\w.])(?:{names})\(")

    def find(self, completion: str) -> list[ast.expr]:
        """The calls (and the literal of a field without any), in order, nested ones after what holds them."""
        text = completion[:MAX_COMPLETION]
        _, found, field = text.partition(_FIELD)
        if not found:
            return [call for at in self._statements(text) for call in at]
        nodes = [node for _, root in self._fields(field) for node in _calls_in(root)]
        literal = _ASSIGNED_LITERAL.match(resolve(field.split(_FIELD_END)[0]))
        if literal is not None:
            found_literal = expression(literal[1])
            nodes += [] if found_literal is None else [found_literal]
        return nodes

    def unread(self, completion: str) -> list[str]:
        """The calls of a field that are no Python (`f(\\'a", 'b')`), as text up to where the field's last one ends."""
        _, found, field = completion[:MAX_COMPLETION].partition(_FIELD)
        return [source for source, call in self._fields(field) if source and call is None] if found else []

    def _fields(self, field: str) -> Iterator[tuple[str, ast.expr | None]]:
        """The calls in a field that aren't inside a text, each as written and, where it can be read, as syntax."""
        field = _ESCAPED_NEWLINE.sub(_GLUE, field.split(_FIELD_END)[0])
        end = field.rfind(")") + 1
        quoted = _quoted(field, field.find(":") + 1, end)
        for match in self._matches(field):
            before = bisect(quoted, (match.start(), 0)) - 1
            if before < 0 or match.start() >= quoted[before][1]:
                source = resolve(field[match.start() : match.start() + MAX_CALL]).replace(_GLUE, "\n")
                whole = balanced(source, 0)
                yield field[match.start() : min(end, match.start() + MAX_CALL)], expression(whole) if whole else None

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        for count, match in enumerate(self._start.finditer(text)):
            if count >= MAX_CANDIDATES:
                return
            yield match

    def _statements(self, text: str) -> Iterator[list[ast.expr]]:
        """The calls of each place in a whole program where one may start."""
        code = set(_code_positions(text, (match.start() for match in self._matches(text))))
        for match in self._matches(text):
            if match.start() not in code:
                continue
            rest = resolve(text[match.start() : match.start() + MAX_CALL], _GLUE)
            source = balanced(rest.replace(_GLUE, "\n"), 0)
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            inside = sum(map(line.count, _OPEN)) > sum(map(line.count, _CLOSE))
            glued = _ASSIGNMENT_BEFORE.search(line[-20:]) and _ASSIGNMENT_AFTER.match(rest, len(source))
            if inside or not glued:
                yield _calls(source)


def has_field(completion: str) -> bool:
    """Whether a completion has an `api_call` field."""
    return _FIELD in completion[:MAX_COMPLETION]


def resolve(text: str, newline: str = "\n") -> str:
    """`text` with its escaped line ends and quotes resolved, up to eight backslashes each."""
    return _ESCAPED_QUOTE.sub(r"\1", _ESCAPED_NEWLINE.sub(newline, text))


def balanced(text: str, start: int) -> str:
    """From `start` to the bracket that closes the first one; "" when it isn't closed in bounds."""
    depth, quote, skip = 0, "", False
    for position in range(start, min(len(text), start + MAX_CALL)):
        char = text[position]
        if skip:
            skip = False
        elif quote:
            skip = char == "\\"
            if char in (quote, "\n"):
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
            if depth > MAX_DEPTH:
                return ""
        elif char in _CLOSE:
            depth -= 1
            if depth <= 0:
                return text[start : position + 1]
    return ""


def _quoted(text: str, position: int, end: int) -> list[tuple[int, int]]:
    """Where the texts between quotes that match begin and end. One that is escaped, or without another after it, opens
    nothing."""
    found: list[tuple[int, int]] = []
    opens = "'\""
    while opens and (match := re.compile(rf"(?<!\\)[{opens}]").search(text, position, end)) is not None:
        closing = _CLOSING[match[0]].match(text, match.end(), end)
        if closing is None:
            opens = opens.replace(match[0], "")  # what follows is escaped, or there is none
            position = match.end()
        else:
            found.append((match.start(), closing.end()))
            position = closing.end()
    return found


def _code_positions(text: str, wanted: Iterable[int]) -> Iterator[int]:
    """Which of the ascending positions are outside of comments and strings."""
    quote, comment, position = "", False, 0
    for target in wanted:
        while position < target:
            char = text[position]
            if char == "\n":
                quote, comment = "", False
            elif comment:
                pass
            elif quote:
                if char == "\\":
                    position += 1
                elif char == quote:
                    quote = ""
            elif char == "#":
                comment = True
            elif char in "'\"":
                quote = char
            position += 1
        if not quote and not comment and position == target:
            yield target


def expression(source: str) -> ast.expr | None:
    """One expression, `f(a=1, 2)` among them, which is no Python: its `a` is read as `a := 1`. None for none."""
    found = syntax.expression(source, MAX_CALL)
    return syntax.expression(_AFTER_NAME.sub(r"\1\2\3:=", source), MAX_CALL) if found is None else found


def _calls(source: str) -> list[ast.expr]:
    return _calls_in(expression(source) if source else None)


def _calls_in(root: ast.expr | None) -> list[ast.expr]:
    return [] if root is None else [node for node in ast.walk(root) if isinstance(node, ast.Call)]
