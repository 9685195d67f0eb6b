"""Edits of a JSON file that a person keeps: what isn't changed stays as it is written, comments and order included.

Rules: JSON as these clients take it, with `//` and `/* */` comments and trailing commas; anything else is refused, and
the text isn't touched. Each edit returns a new text, in which what is added has the file's own indentation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from policies.errors import InvalidInput

Path = tuple[str | int, ...]
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')
_DEEPEST = 60


@dataclass(slots=True)
class _Node:
    start: int  # of a member: where its key begins
    value: Any = None
    end: int = 0
    inner: int = 0  # of an object or a list: after its bracket
    children: dict[str | int, _Node] = field(default_factory=dict)
    content: int = 0  # where the value begins


def read(text: str) -> Any:
    """The value that a text holds; {} where it is empty. Raises InvalidInput."""
    return _parse(text).value if text.strip() else {}


def put(text: str, path: Path, value: Any) -> str:
    """The text with that member; objects on the way are made where they are missing. Raises InvalidInput."""
    text = text if text.strip() else "{}\n"
    node, depth = _parse(text), 0
    for key in path[:-1]:
        if key not in node.children:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert(text, node, path[depth], value, depth)
        node, depth = node.children[key], depth + 1
    if not isinstance(node.value, dict):
        raise InvalidInput(f"{'.'.join(map(str, path[:-1]))} isn't an object.", next_step="Mend the file first.")
    found = node.children.get(path[-1])
    if found is None:
        return _insert(text, node, path[-1], value, depth)
    if found.value == value:
        return text
    return text[: found.content] + _shown(text, value, depth + 1) + text[found.end :]


def append(text: str, path: Path, value: Any) -> str:
    """The text with one more item in that list, which is made where it is missing. Raises InvalidInput."""
    node = _parse(text if text.strip() else "{}\n")
    for key in path:
        if key not in node.children:
            return put(text, path, [value])
        node = node.children[key]
    if not isinstance(node.value, list):
        raise InvalidInput(f"{'.'.join(map(str, path))} isn't a list.", next_step="Mend the file first.")
    return _insert(text, node, None, value, len(path))


def remove(text: str, path: Path) -> str:
    """The text without that member or item, and without what is empty above it then. Raises InvalidInput, also where
    the rest wouldn't stay what it is."""
    node, above = _parse(text), []
    for key in path:
        if key not in node.children:
            return text
        above.append(node)
        node = node.children[key]
    while len(above) > 1 and _alone(text, node, above[-1]):
        node = above.pop()
    made = _without(text, above[-1], node)
    del above[-1].value[path[len(above) - 1]]
    try:
        stays = _parse(made).value == above[0].value
    except InvalidInput:
        stays = False
    if not stays:
        raise InvalidInput("It can't be removed so that the rest stays.", next_step="Remove it by hand.")
    return made


def _without(text: str, holder: _Node, node: _Node) -> str:
    siblings = sorted(holder.children.values(), key=lambda each: each.start)
    at = next(index for index, each in enumerate(siblings) if each is node)
    after = _space(text, node.end)
    if text[after : after + 1] == ",":
        end = after + 1
        line = re.compile(r"[ \t]*(?:\r?\n)?").match(text, end)
        end = line.end() if line is not None else end
        start = node.start
        while start > holder.inner and text[start - 1] in " \t":
            start -= 1
        if text[end - 1 : end] != "\n":
            start = node.start
        return text[:start] + text[end:]
    start = siblings[at - 1].end if at else holder.inner
    if at:  # its comma goes with it, a comment before it stays
        comma = text.index(",", _space(text, start))
        return _joined(text[:comma], text[comma + 1 : node.start], text[node.end :])
    return _joined(text[:start], text[start : node.start], text[node.end :].lstrip(" \t\r\n"))


def _joined(before: str, comments: str, after: str) -> str:
    """These, with the comments in the middle, and without the blanks that end them; the newline that ends a line
    comment isn't one of those."""
    kept = comments.rstrip()
    last = max(_COMMENT.finditer(kept), key=lambda found: found.end(), default=None)
    if last is not None and last[0].startswith("//") and not re.match(r"[ \t]*\r?\n", after):
        kept += "\r\n" if comments[len(kept) :].startswith("\r") else "\n"
    return before + kept + after


def _alone(text: str, node: _Node, holder: _Node) -> bool:
    """Whether there is nothing else in what holds it, not even a comment."""
    around = text[holder.inner : node.start] + text[node.end : holder.end - 1]
    return len(holder.children) == 1 and not around.strip(" \t\r\n,")


def _insert(text: str, holder: _Node, key: str | int | None, value: Any, depth: int) -> str:
    if key is not None and not isinstance(holder.value, dict):
        raise InvalidInput(f"What {key!r} belongs into isn't an object.", next_step="Mend the file first.")
    unit = _unit(text)
    new = _shown(text, value, depth + 1)
    if key is not None:
        new = f"{json.dumps(key)}: {new}"
    line = f"\n{unit * (depth + 1)}{new}"
    if not holder.children:
        comments = text[holder.inner : holder.end - 1].rstrip()
        return f"{text[: holder.inner]}{comments}{line}\n{unit * depth}{text[holder.end - 1 :]}"
    last = max(holder.children.values(), key=lambda each: each.end)
    after = _space(text, last.end)
    if text[after : after + 1] == ",":  # a trailing one
        return text[: after + 1] + line + "," + text[after + 1 :]
    return text[: last.end] + "," + line + text[last.end :]


def _shown(text: str, value: Any, depth: int) -> str:
    unit = _unit(text)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"\n{unit * depth}".join(lines)


def _unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _parse(text: str) -> _Node:
    at = _space(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, at, at, 0)
    if _space(text, node.end) != len(text):
        raise _wrong(text, node.end)
    return node


def _value(text: str, start: int, at: int, depth: int) -> _Node:
    made = _Node(start, content=at)
    sign = text[at : at + 1]
    if sign not in ("{", "[") or depth > _DEEPEST:
        found = _SCALAR.match(text, at)
        if found is None:
            raise _wrong(text, at)
        try:
            made.value, made.end = json.loads(found[0]), found.end()
        except ValueError as error:
            raise _wrong(text, at) from error
        return made
    closing = "}" if sign == "{" else "]"
    made.value = {} if sign == "{" else []
    made.inner = at + 1
    at = _space(text, at + 1)
    while text[at : at + 1] != closing:
        begin = at
        key: str | int = len(made.children)
        if sign == "{":
            named = _value(text, at, at, depth + 1)
            at = _space(text, named.end)
            if not isinstance(named.value, str) or text[at : at + 1] != ":" or named.value in made.children:
                raise _wrong(text, at)
            key, at = named.value, _space(text, at + 1)
        child = _value(text, begin, at, depth + 1)
        made.children[key] = child
        if sign == "{":
            made.value[key] = child.value
        else:
            made.value.append(child.value)
        at = _space(text, child.end)
        if text[at : at + 1] == ",":
            at = _space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _wrong(text, at)
    made.end = at + 1
    return made


def _wrong(text: str, at: int) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    return InvalidInput(f"It isn't JSON at line {line}.", next_step="Mend the file, or move it away, then try again.")
