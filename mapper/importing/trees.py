"""A stranger's JSON or YAML as plain values, with the line of each key. Nothing of it is executed.

Rules: both give what JSON can hold, and nothing else: YAML's own types of text (`yes`, dates) stay text, a tag makes no
object, a key is text. What is bounded is what the values unfold to, so that aliases cost what they would written out.
A key twice, a nesting without end, an alias that holds itself are errors with a line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mapper.importing.document_files import Broken, Source

MAX_YAML = 12_000_000  # characters; as JSON, the same document is read ten times as fast
MAX_DEPTH = 200
MAX_NODES = 3_000_000  # values, each alias counted as all that it stands for

_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|\n|[^\s"{}\[\]:,]+')
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")
_CORE = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Tree:
    """The values of a document, and what was odd about it: (line, what). Lines are found by `lines`."""

    value: Any
    text: str
    odd: list[tuple[int, str]] = field(default_factory=list)
    parts: dict[str, Tree] = field(default_factory=dict)  # of a joined document, the other files by their names
    marks: dict[int, list[int]] | None = None  # of a container, by its id, the lines of its keys or items; None: JSON

    def lines(self, wanted: Sequence[tuple[str, ...]]) -> list[int]:
        """For each list of keys the line (1-based) of the last one, or of the longest beginning that is there."""
        if self.marks is None:
            return json_lines(self.text, wanted)
        return [self._marked(keys) for keys in wanted]

    def _marked(self, keys: tuple[str, ...]) -> int:
        value, line = self.value, 1
        for key in keys:
            lines = (self.marks or {}).get(id(value), [])
            if isinstance(value, dict) and key in value:
                place = list(value).index(key)
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                place = int(key)
                value = value[place]
            else:
                break
            line = lines[place] if place < len(lines) else line
        return line


def read(source: Source) -> Tree:
    """The values of a file that is JSON or YAML. Raises Broken, with the line."""
    text = source.text.removeprefix("\ufeff")
    if not text.strip():
        raise Broken("is empty", 1)
    looks = text.lstrip()[:1] in ("{", "[")
    if source.name.endswith((".json", ".jsonl")) or looks:
        try:
            return Tree(read_json(text), text)
        except Broken:
            if not (looks and source.name.endswith((".yaml", ".yml"))):
                raise
    return _Yaml(text).read()


def read_json(text: str, line: int = 1) -> Any:
    """The value of a JSON text that begins on this line of its file. Raises Broken."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refused, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise Broken(f"isn't JSON: {error.msg}", line + error.lineno - 1) from error
    except RecursionError as error:
        raise Broken(f"is nested deeper than {MAX_DEPTH} levels", line + _deep_line(text) - 1) from error
    except _Twice as error:
        raise Broken(f"the key {error.key[:60]!r} stands twice in one object", line + _twice_line(text) - 1) from error
    except ValueError as error:
        raise Broken(f"isn't JSON: {str(error)[:100]}", line) from error
    if _too_deep(value):
        raise Broken(f"is nested deeper than {MAX_DEPTH} levels", line + _deep_line(text) - 1)
    half = _HALF.search(text)
    if half is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise Broken("holds half a character", line + text.count("\n", 0, half.start())) from error
    return value


class _Twice(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return made


def _refused(name: str) -> Any:
    raise ValueError(f"{name} isn't a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is too large a number")
    return number


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _deep_line(text: str) -> int:
    depth, line = 0, 1
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece in ("{", "["):
            depth += 1
            if depth > MAX_DEPTH:
                return line
        elif piece in ("}", "]"):
            depth -= 1
    return line


def _twice_line(text: str) -> int:
    stack: list[set[str]] = []
    pending, line = "", 1
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece in ("{", "["):
            stack.append(set())
        elif piece in ("}", "]") and stack:
            stack.pop()
        elif piece == ":" and stack:
            if pending in stack[-1]:
                return line
            stack[-1].add(pending)
        else:
            pending = piece
    return line


@dataclass(slots=True)
class _Wanted:
    below: dict[str, _Wanted] = field(default_factory=dict)
    line: int = 0


def json_lines(text: str, wanted: Sequence[tuple[str, ...]]) -> list[int]:
    """One pass over the text for all of them."""
    if not wanted:
        return []
    root = _Wanted(line=1)
    for keys in wanted:
        node = root
        for key in keys:
            node = node.below.setdefault(key, _Wanted())
    stack: list[tuple[bool, _Wanted | None, list[int]]] = []
    now: _Wanted | None = root
    pending, line = "", 1
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
            continue
        if piece == ":":
            holder = stack[-1][1] if stack else None
            now = holder.below.get(_key(pending)) if holder is not None else None
        elif piece in ("}", "]"):
            if stack:
                stack.pop()
            now = None
            continue
        elif piece == ",":
            now = None
            if stack and stack[-1][0]:
                stack[-1][2][0] += 1
                holder = stack[-1][1]
                now = holder.below.get(str(stack[-1][2][0])) if holder is not None else None
            continue
        else:
            pending = piece
        if now is not None and not now.line:
            now.line = line
        if piece in ("{", "["):
            stack.append((piece == "[", now, [0]))
            now = now.below.get("0") if piece == "[" and now is not None else None
    found = []
    for keys in wanted:
        node, best = root, 1
        for key in keys:
            node = node.below[key]
            best = node.line or best
        found.append(best)
    return found


def _key(piece: str) -> str:
    try:
        return str(json.loads(piece))
    except ValueError:
        return ""


@dataclass(slots=True)
class _Open:
    """A container that is being read."""

    value: Any
    lines: list[int]
    anchor: str | None
    size: int = 1
    key: str | None = None  # of a mapping, where a value comes next
    key_line: int = 0
    merged: list[Any] = field(default_factory=list)


class _Yaml:
    """YAML's events into values; a loop, so that no nesting is too deep for the stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._total = 0
        self._root: list[Any] = []
        self.tree = Tree(None, text, marks={})

    def read(self) -> Tree:
        import yaml  # heavy, and JSON needs none of it

        if len(self._text) > MAX_YAML:
            raise Broken(
                f"is {len(self._text):,} characters of YAML; at most {MAX_YAML:,} are read. Write it as JSON", 1
            )
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            for event in yaml.parse(self._text, Loader=loader):
                self._take(event, yaml)
        except yaml.reader.ReaderError as error:
            place = error.position if isinstance(error.position, int) else 0
            raise Broken(f"isn't YAML: {error.reason}", self._text.count("\n", 0, place) + 1) from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise Broken(f"isn't YAML: {error.problem or error.context}", mark.line + 1 if mark else 1) from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise Broken(f"isn't YAML: {str(error)[:100]}", 1) from error
        if not self._root:
            raise Broken("is empty", 1)
        self.tree.value = self._root[0]
        return self.tree

    def _take(self, event: Any, yaml: Any) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.ScalarEvent):
            self._tag(event.tag, line)
            plain = event.implicit[0] and event.style in (None, "")
            if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
                self._key(event.value, line, merge=plain and event.value == "<<")
                if event.anchor:
                    self._anchors[event.anchor] = (event.value, 1)
                return
            value = _plain(event.value) if plain or (event.tag or "").startswith(_CORE) else event.value
            if event.tag == _CORE + "str":
                value = event.value
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._add(value, 1, line)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._tag(event.tag, line)
            if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
                raise Broken("a key must be text", line)
            if len(self._stack) >= MAX_DEPTH:
                raise Broken(f"is nested deeper than {MAX_DEPTH} levels", line)
            value = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._stack.append(_Open(value, [], event.anchor, key_line=line))
            if event.anchor:
                self._open.add(event.anchor)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._close(line)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in self._open:
                raise Broken(f"the alias {event.anchor[:40]!r} holds itself", line)
            if event.anchor not in self._anchors:
                raise Broken(f"the alias {event.anchor[:40]!r} has no anchor", line)
            value, size = self._anchors[event.anchor]
            if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
                if not isinstance(value, str):
                    raise Broken("a key must be text", line)
                self._key(value, line, merge=False)
            else:
                self._add(value, size, line)
        elif isinstance(event, yaml.DocumentStartEvent) and self._root:
            raise Broken("holds a second document; one is read", line)

    def _tag(self, tag: str | None, line: int) -> None:
        known = ("str", "int", "float", "bool", "null", "map", "seq")
        if tag and tag != "!" and tag not in (_CORE + name for name in known):
            shown = tag.replace(_CORE, "!!")[:60]
            self.tree.odd.append((line, f"the tag {shown!r} isn't taken: its value is read as plain text or a table"))

    def _key(self, text: str, line: int, *, merge: bool) -> None:
        top = self._stack[-1]
        if text in top.value and not merge:
            raise Broken(f"the key {text[:60]!r} stands twice in one table", line)
        top.key, top.key_line = ("\0<<" if merge else text), line

    def _add(self, value: Any, size: int, line: int) -> None:
        self._total += size
        if self._total > MAX_NODES:
            raise Broken(f"unfolds to more than {MAX_NODES:,} values", line)
        if not self._stack:
            self._root.append(value)
            return
        top = self._stack[-1]
        top.size += size
        if isinstance(top.value, list):
            top.value.append(value)
            top.lines.append(line)
        elif top.key == "\0<<":
            top.merged.extend(value if isinstance(value, list) else [value])
            top.key = None
        else:
            top.value[top.key] = value
            top.lines.append(top.key_line)
            top.key = None

    def _close(self, line: int) -> None:
        done = self._stack.pop()
        for other in done.merged:
            if not isinstance(other, dict):
                raise Broken("what is merged with << must be a table", line)
            self._total += len(other)
            done.size += len(other)
            for key, value in other.items():
                if key not in done.value:
                    done.value[key] = value
                    done.lines.append(line)
        if self.tree.marks is not None:
            self.tree.marks[id(done.value)] = done.lines
        if done.anchor:
            self._open.discard(done.anchor)
            self._anchors[done.anchor] = (done.value, done.size)
        # Its own values were counted as they came; the container is one more.
        self._total -= done.size - 1
        self._add(done.value, done.size, line)


def _plain(text: str) -> Any:
    """A plain scalar as YAML 1.2's core schema has it; what JSON can't hold stays text."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text
