"""A file of rules, read into single policies with their places.

Rules: every policy is bounded before Cedar sees it, because its parser recurses (tried: a few hundred brackets in each
other end the process); each is parsed alone, so that an error has a line and column; a name stands once in all files.

A policy's effect is Cedar's own, but for `@effect("ask")` on a forbid: what it matches is asked for each time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from policies.display_text import escape
from policies.errors import InvalidInput

MAX_BYTES = 4_000_000  # of one file
MAX_POLICIES = 20_000  # of all files
MAX_TOKENS = 2_000  # of one policy; Cedar recurses over chains of operators, and ends the process at some 3,000 levels
MAX_BRACKETS = 50  # within each other
MAX_NAME = 80
EVERYTHING = "*"  # among the facts of a policy that takes the whole context
ANNOTATIONS = ("id", "effect", "note")

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+|//[^\r\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>;)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d+)|(?P<sign>::|==|!=|<=|>=|&&|\|\||.)",
    re.DOTALL,
)
# What may end a line, to Cedar or to a reader, where the other sees none: a comment would hide a condition.
_INVISIBLE = re.compile(r"(?!\r\n)[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class Effect(Enum):
    """What a rule says of what it matches. ASK is written `@effect("ask") forbid (…)`."""

    PERMIT = "permit"
    FORBID = "forbid"
    ASK = "ask"


class BadRule(InvalidInput):
    """A rule can't be read. `file`, `line` and `column` (from 1) say where."""

    code = "rule"

    def __init__(self, says: str, *, file: str, line: int, column: int, next_step: str = "") -> None:
        super().__init__(f"{escape(file)}:{line}:{column}: {says}", next_step=next_step)
        self.says, self.file, self.line, self.column = says, file, line, column


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one policy as it stands in its file, from its first token to its semicolon."""

    file: str
    text: str
    line: int
    column: int

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column in the file of that offset in the text."""
        before = self.text[:offset]
        down = before.count("\n")
        return self.line + down, len(before) - before.rfind("\n") if down else self.column + offset

    def wrong(self, says: str, offset: int = 0, next_step: str = "") -> BadRule:
        line, column = self.place(offset)
        return BadRule(says, file=self.file, line=line, column=column, next_step=next_step)


@dataclass(frozen=True, slots=True)
class Head:
    """Who, what and on what a policy is about: exactly what it says before `when`. "" is any.

    `principal` and `resource` are (how, type, id) with how one of "", "eq", "in", "is", "is in"; `actions` holds names,
    and `action_how` is "", "eq" or "in".
    """

    principal: tuple[str, str, str] = ("", "", "")
    action_how: str = ""
    actions: tuple[str, ...] = ()
    resource: tuple[str, str, str] = ("", "", "")


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule. `reads` are the names of the arguments that it looks at; None is any of them."""

    name: str
    effect: Effect
    chunk: Chunk
    head: Head
    reads: frozenset[str] | None
    facts: frozenset[str]  # of the context, by their first name
    named: bool  # by @id
    node: Any = field(compare=False, repr=False)  # cedarpy.pst.Template

    @property
    def text(self) -> str:
        return self.chunk.text


def split(file: str, text: str) -> Iterator[Chunk]:
    """The policies of a file, in order. Raises BadRule for what can't be told apart or is out of bounds."""
    start, depth, tokens, position = -1, 0, 0, 0
    line, counted = 1, 0
    opened: list[int] = []
    if hidden := _INVISIBLE.search(text):
        said = f"U+{ord(hidden.group()):04X} is a control character or ends lines: readers and Cedar differ on it."
        raise _wrong(file, text, hidden.start(), said, "Remove it.")
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last sign matches anything
        kind, position = match.lastgroup, match.end()
        if kind == "space":
            continue
        if start < 0:
            start = match.start()
        tokens += 1
        if tokens > MAX_TOKENS:
            raise _wrong(file, text, start, f"This rule is too long: at most {MAX_TOKENS} words and signs are read.",
                         "Make several rules of it.")  # fmt: skip
        if kind == "sign" and match.group() == '"':
            raise _wrong(file, text, match.start(), "This text in quotation marks has no end.", "Close it.")
        if kind == "open":
            depth += 1
            opened.append(match.start())
            if depth > MAX_BRACKETS:
                raise _wrong(file, text, match.start(), f"More than {MAX_BRACKETS} brackets within each other.",
                             "Make several rules of it.")  # fmt: skip
        elif kind == "close":
            depth -= 1
            if depth < 0:
                raise _wrong(file, text, match.start(), f"This {match.group()} closes nothing.", "Remove it.")
            opened.pop()
        elif kind == "end":
            if depth:
                raise _wrong(file, text, opened[-1], f"This {text[opened[-1]]} isn't closed.", "Close it before the ;")
            line, counted = line + text.count("\n", counted, start), start
            yield Chunk(file, text[start:position], line, start - text.rfind("\n", 0, start))
            start, tokens = -1, 0
    if start >= 0:
        raise _wrong(file, text, start, "This rule has no end.", "End it with a semicolon.")


def read(files: Mapping[str, str]) -> tuple[Policy, ...]:
    """Every policy of these files (name -> text). Raises BadRule at the first that can't be one."""
    found: list[Policy] = []
    for policy in each(files):
        if isinstance(policy, BadRule):
            raise policy
        found.append(policy)
    return tuple(found)


def each(files: Mapping[str, str]) -> Iterator[Policy | BadRule]:
    """As `read`, but every fault in its place, to be shown together."""
    names: dict[str, Chunk] = {}
    total = 0
    for file in sorted(files):
        text = files[file]
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            yield BadRule(f"This file is longer than {MAX_BYTES} bytes.", file=file, line=1, column=1)
            continue
        chunks = split(file, text)
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except BadRule as wrong:
                yield wrong
                break
            total += 1
            if total > MAX_POLICIES:
                yield chunk.wrong(f"There are more than {MAX_POLICIES} rules.")
                return
            try:
                policy = parse(chunk)
            except BadRule as wrong:
                yield wrong
                continue
            if policy.name in names:
                other = names[policy.name]
                yield chunk.wrong(
                    f"Another rule is called {escape(policy.name)} already ({escape(other.file)}:{other.line}).",
                    next_step="Give each rule an @id of its own.",
                )
                continue
            names[policy.name] = chunk
            yield policy


def parse(chunk: Chunk) -> Policy:
    """One policy. Raises BadRule with the place."""
    import cedarpy

    try:
        made = cedarpy.PolicySet.from_str(chunk.text)
    except ValueError as error:
        raise _parse_error(chunk, str(error)) from None
    try:
        nodes = made.to_pst()
    except ValueError:
        raise chunk.wrong("This rule is nested too deeply.", next_step="Make several rules of it.") from None
    if nodes.templates or len(nodes.static_policies) != 1:
        raise chunk.wrong("?principal and ?resource aren't filled by anything here.", next_step="Write whom it is for.")
    node = next(iter(nodes.static_policies.values()))
    named = "id" in node.annotations
    name = node.annotations.get("id") or f"{chunk.file}:{chunk.line}"
    if named and (not name.isprintable() or not name.strip() or len(name) > MAX_NAME):
        raise chunk.wrong(f"An @id is 1 to {MAX_NAME} visible characters.")
    reads, facts = _reads(node)
    return Policy(name, _effect(chunk, node), chunk, _head(node), reads, facts, named, node)


def _effect(chunk: Chunk, node: Any) -> Effect:
    for name in node.annotations:
        if name not in ANNOTATIONS:
            close = difflib.get_close_matches(name, ANNOTATIONS, n=1)
            raise chunk.wrong(
                f"@{escape(name)} means nothing here.",
                chunk.text.find(f"@{name}") if f"@{name}" in chunk.text else 0,
                next_step=f"Did you mean @{close[0]}?" if close else "There are @id, @effect and @note.",
            )
    if "effect" not in node.annotations:
        return Effect(node.effect)
    said = node.annotations["effect"]
    if said != "ask" or node.effect != "forbid":
        raise chunk.wrong(
            f'@effect is written on a forbid, and only as @effect("ask"), not {escape(repr(said))} on a {node.effect}.',
            max(chunk.text.find("@effect"), 0),
            next_step='@effect("ask") forbid (…) asks each time; a permit or forbid alone needs no @effect.',
        )
    return Effect.ASK


def _head(node: Any) -> Head:
    action = node.action
    how = ""
    actions: tuple[str, ...] = ()
    match type(action).__name__:
        case "ActionEq":
            how, actions = "eq", (action.entity.id,)
        case "ActionIn":
            how, actions = "in", tuple(entity.id for entity in action.entities)
    return Head(_constraint(node.principal), how, actions, _constraint(node.resource))


def _constraint(node: Any) -> tuple[str, str, str]:
    match type(node).__name__:
        case "ScopeEq":
            return "eq", type_name(node.entity.type), node.entity.id
        case "ScopeIn":
            return "in", type_name(node.entity.type), node.entity.id
        case "ScopeIs":
            return "is", type_name(node.entity_type), ""
        case "ScopeIsIn":
            return "is in", type_name(node.entity.type), node.entity.id
    return "", "", ""


def type_name(kind: Any) -> str:
    """An entity type as it is written."""
    return "::".join((*kind.namespace, kind.basename))


def nodes_of(root: Any) -> Iterator[Any]:
    """Every node of a policy's tree, without recursing."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(node)
        elif isinstance(node, Mapping):
            stack.extend(node.values())
        elif hasattr(node, "__dataclass_fields__"):
            yield node
            stack.extend(getattr(node, name) for name in node.__dataclass_fields__)


def agents_of(policy: Policy) -> frozenset[str]:
    """The names of the agents that a policy names, wherever it does."""
    uids = (node for node in nodes_of(policy.node) if type(node).__name__ == "EntityUid")
    return frozenset(uid.id for uid in uids if type_name(uid.type) == "Agent")


def services_of(policy: Policy) -> frozenset[str]:
    """The services that a policy names, themselves or by a method, wherever it does."""
    uids = (node for node in nodes_of(policy.node) if type(node).__name__ == "EntityUid")
    return frozenset(uid.id.partition(".")[0] for uid in uids if type_name(uid.type) in ("Service", "Method"))


def path_of(node: Any) -> tuple[str, ...] | None:
    """`context.a.b` as ("a", "b"); None for anything that isn't such a path."""
    names: list[str] = []
    while type(node).__name__ == "GetAttr":
        names.append(node.attr)
        node = node.base
    if type(node).__name__ == "Var" and node.name == "context":
        return tuple(reversed(names))
    return None


def _reads(template: Any) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Which arguments and which facts a policy looks at. What isn't plainly a path reads everything."""
    arguments: set[str] | None = set()
    facts: set[str] = set()
    inner: set[int] = set()  # nodes that were accounted for as the beginning of a longer path
    for node in nodes_of(template.clauses):
        kind = type(node).__name__
        if kind == "HasAttr":
            base = path_of(node.base)
            if base is None:
                continue
            inner.add(id(node.base))
            path = (*base, *node.attrs)
        elif kind in ("GetAttr", "Var"):
            found = path_of(node)
            if found is None:
                continue
            if kind == "GetAttr":
                inner.add(id(node.base))
            if id(node) in inner:
                continue
            path = found
        else:
            continue
        if not path:
            return None, frozenset({EVERYTHING})
        facts.add(path[0])
        if path[0] == "arguments" and arguments is not None:
            if len(path) > 1:
                arguments.add(path[1])
            elif kind != "HasAttr":
                arguments = None
    return (None if arguments is None else frozenset(arguments)), frozenset(facts)


def _parse_error(chunk: Chunk, says: str) -> BadRule:
    """Cedar says what is wrong, not where: the place is the end of the shortest beginning that it already refuses for
    more than being unfinished."""
    import cedarpy

    ends = [match.end() for match in _TOKEN.finditer(chunk.text) if match.lastgroup != "space"]

    def refused(index: int) -> bool:
        try:
            cedarpy.PolicySet.from_str(chunk.text[: ends[index]])
        except ValueError as error:
            return "unexpected end of input" not in str(error)
        return False

    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if refused(middle):
            high = middle
        else:
            low = middle + 1
    starts = [match.start() for match in _TOKEN.finditer(chunk.text) if match.lastgroup != "space"]
    text = says.replace("`", "'").strip()
    step = "Rules are written as in https://docs.cedarpolicy.com/policies/syntax-policy.html"
    return chunk.wrong(f"{escape(text[:200])}.", starts[low] if starts else 0, next_step=step)


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _wrong(file: str, text: str, offset: int, says: str, next_step: str) -> BadRule:
    line, column = _place(text, offset)
    return BadRule(says, file=file, line=line, column=column, next_step=next_step)


def joined(policies: Iterable[Policy]) -> str:
    """One text that holds these policies, in this order."""
    return "\n".join(policy.text for policy in policies)
