"""What models write, turned into validated calls or a classed rejection. All of it is untrusted text.

Rules: nothing is ever evaluated or imported; sizes and nesting are bounded before anything is parsed; a proposal is
taken whole or not at all, since half of a plan is another plan, and of two plans neither is taken; what stands inside a
quotation is data, in whatever form it is written; a key that isn't part of a call (a host, a header, a scope) rejects
it, because what a model tries to add must be seen, not dropped; so does a character that hides itself or turns the
direction of writing. A sample may also say that nothing fits: an empty list of calls.

The classes of a rejection:

* format: it can't be read (GPT4Tools, table 5, for this and the next two);
* unknown tool: it can, and names a method that the catalog doesn't have;
* arguments: the method is there, and the arguments aren't its own;
* hallucination and error, for code, as APIBench tells them apart: a call is in the database when an entry is a sub-tree
  of it. An entry of this catalog is a method whose arguments are free, so a call that contains none is a hallucination,
  and one that contains one and still can't be made is an error;
* limits: too long, too deep, too many.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeVar

from mapper import python_calls, text_protocol
from mapper.catalog import Catalog, UnknownName
from mapper.validation import InvalidArguments
from policies.actions import Call, Klass, Rejected
from policies.display_text import escape, shorten
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonValue, parse
from policies.services import Method

MAX_PROPOSAL = 200_000  # characters
MAX_NESTING = 60
MAX_CALLS = 50  # that are looked at; an action may have fewer
MAX_FENCES = 5  # fenced blocks
MAX_REASON = 1_500  # characters
MAX_EXCERPT = 500  # characters of a rejected proposal that are kept

_Item = TypeVar("_Item")

_FENCE = re.compile(r"```[ \t]*+([A-Za-z0-9_+-]*+)[ \t]*+\r?\n(.*?)(?:```|\Z)", re.DOTALL)
_NAME_KEYS = ("method", "name", "tool", "function")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")
_CALL_KEYS = {"service", *_NAME_KEYS, *_ARGUMENT_KEYS, "account"}
_QUOTED_BEFORE = re.compile(r"""["'(\[{=,]\s*\Z""")
_ANOTHER = re.compile(r'\{\s*"')
# What function-calling formats wrap around a call, and what models like to say beside it.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+("?)', re.DOTALL)  # what doesn't end isn't looked at from each of its quotes
_BRACKET = re.compile(r"[\[\](){}]")
_IGNORED = {"id", "type", "index", "thought", "reason", "reasoning", "explanation", "call_id"}
_WRAPPERS = ("calls", "tool_calls", "actions")
_AS_CODE: Mapping[Klass, Klass] = {"unknown tool": "hallucination", "arguments": "error"}
# Controls other than tab and line ends, halves of characters, and what turns the direction of writing around. Marks
# that languages and emoji need (joiners, left-to-right marks) aren't among them.
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Malformed(Exception):
    """A proposal that can't be taken, with its class."""

    def __init__(self, reason: str, klass: Klass = "format") -> None:
        super().__init__(reason)
        self.reason = reason
        self.klass: Klass = klass


def parse_proposal(text: str, catalog: Catalog, sample: int = 0) -> tuple[Call, ...] | Rejected:
    """The calls that `text` proposes, in order; () when it says that nothing fits; else why it was rejected.

    Understands JSON (an object, a list, fenced or not, with words around it), function-calling objects, Python calls
    (`slack.chat.postMessage(channel="#ops", text="hi")`), by their syntax alone, and the Thought/Action protocol.
    """
    try:
        return _read(text, catalog)
    except Malformed as error:
        return rejected(error, sample, text)


def parse_tool_calls(
    tool_calls: Iterable[tuple[str, str]], catalog: Catalog, sample: int = 0
) -> tuple[Call, ...] | Rejected:
    """The same for native tool calls: each a name and its arguments as JSON text."""
    written: list[str] = []
    size = 0
    try:
        calls: list[Call] = []
        for name, arguments in tool_calls:
            size += len(name) + len(arguments)
            written.append(f"{name[:80]} {arguments[:MAX_EXCERPT]}")
            if len(calls) >= MAX_CALLS:
                raise Malformed("More tool calls than an action may have.", "limits")
            if len(name) + len(arguments) > MAX_PROPOSAL:
                raise Malformed(f"The arguments are {len(arguments)} characters long.", "limits")
            if _HIDDEN.search(name) or _HIDDEN.search(arguments):
                raise _hidden()
            if nesting(arguments) > MAX_NESTING:
                raise Malformed(f"The arguments are nested deeper than {MAX_NESTING} levels.", "limits")
            calls.append(_call({"name": name, "arguments": arguments}, catalog))
        return _checked(calls, catalog)
    except Malformed as error:
        return rejected(error, sample, "\n".join(written), size)


def rejected(error: Malformed, sample: int, text: str, size: int | None = None) -> Rejected:
    """The rejection of a proposal, with the beginning of it; both are fit to be shown and kept. `size`: of all of it in
    characters, where `text` isn't all."""
    excerpt, left_out = shorten(escape(text[: MAX_EXCERPT + 1], newlines=True), MAX_EXCERPT)
    reason, _ = shorten(escape(error.reason, newlines=True), MAX_REASON)
    return Rejected(
        sample=sample,
        reason=reason,
        klass=error.klass,
        excerpt=f"{excerpt}…" if left_out else excerpt,
        size=len(text) if size is None else size,
    )


def _hidden() -> Malformed:
    return Malformed("It holds control characters, or such as turn the direction of writing.")


def _checked(calls: list[Call], catalog: Catalog) -> tuple[Call, ...]:
    if not calls:
        return ()
    if any(_hides(call.arguments) for call in calls):
        raise Malformed("An argument holds control characters, or such as turn the direction of writing.", "arguments")
    try:
        return catalog.validate_all(calls)
    except (InvalidInput, Unsupported) as error:
        # Whoever has to mend the proposal wants to hear of everything at once.
        _each(calls, lambda call: _valid(call, catalog))
        raise Malformed(str(error), "arguments") from error


def _hides(value: JsonValue) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _HIDDEN.search(item):
                return True
        elif isinstance(item, Mapping):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def _valid(call: Call, catalog: Catalog) -> Call:
    try:
        return catalog.validate(call)
    except (UnknownName, Unsupported) as error:  # what can't be called here is no tool here
        raise Malformed(str(error), "unknown tool") from error
    except InvalidArguments as error:
        raise Malformed(str(error), "arguments") from error


def _each(items: Sequence[_Item], make: Callable[[_Item], Call]) -> list[Call]:
    """`make` for every item; one Malformed for all that fail, of the class of the first."""
    made: list[Call] = []
    failed: list[Malformed] = []
    for item in items:
        try:
            made.append(make(item))
        except Malformed as error:
            failed.append(error)
    if failed:
        more = f" And {len(failed) - 5} more." if len(failed) > 5 else ""
        raise Malformed(" ".join(error.reason for error in failed[:5]) + more, failed[0].klass)
    return made


def _read(text: str, catalog: Catalog) -> tuple[Call, ...]:
    if len(text) > MAX_PROPOSAL:
        raise Malformed(f"The proposal is {len(text)} characters long; at most {MAX_PROPOSAL} are read.", "limits")
    if "\0" in text:
        raise Malformed("The proposal holds a NUL character.")
    if _HIDDEN.search(text):
        raise _hidden()
    if not text.strip():
        raise Malformed("The proposal is empty.")
    text = text.replace("\r\n", "\n")
    reason = "There is neither JSON nor a call in it."
    for kind, candidate in _candidates(text):
        if nesting(candidate) > MAX_NESTING:
            raise Malformed(f"The proposal is nested deeper than {MAX_NESTING} levels.", "limits")
        if kind == "protocol":
            return _checked(_actions(candidate, catalog), catalog)
        if kind == "json":
            try:
                value = parse(candidate, limit=MAX_PROPOSAL, what="The proposal")
            except InvalidInput as error:
                reason = error.message
                continue
            return _checked(_calls(value, catalog), catalog)
        try:
            written = python_calls.parse(candidate)
        except python_calls.NotCalls as error:
            reason = str(error)
            continue
        return _code(written, catalog)
    raise Malformed(reason)


def _code(written: list[tuple[str, dict[str, Any]]], catalog: Catalog) -> tuple[Call, ...]:
    """Calls written as code, with APIBench's classes for what is wrong with them."""
    try:
        return _checked(_each(written, lambda pair: _call({"name": pair[0], "arguments": pair[1]}, catalog)), catalog)
    except Malformed as error:
        raise Malformed(error.reason, _AS_CODE.get(error.klass, error.klass)) from error


def _actions(text: str, catalog: Catalog) -> list[Call]:
    """The calls of the Thought/Action protocol."""

    def call(action: text_protocol.Action) -> Call:
        method = _known(action.name, catalog)
        written = action.input
        if written.startswith("```"):
            fenced = _FENCE.fullmatch(written)
            if fenced is None:
                raise Malformed(f"{method.id}: there is more in the input than its values.", "arguments")
            written = fenced[2].strip()
        try:
            given = text_protocol.arguments(written, method)
        except text_protocol.NotProtocol as error:
            raise Malformed(f"{method.id}: {error}", "arguments") from error
        return Call(service=method.service, method=method.name, arguments=given)

    try:
        actions = text_protocol.read(text)
    except text_protocol.NotProtocol as error:
        raise Malformed(str(error)) from error
    return _each(actions, call)


def _candidates(text: str) -> Iterator[tuple[Literal["json", "python", "protocol"], str]]:
    """The parts of `text` that may be the proposal, likeliest first: fenced blocks, the whole, JSON among words."""
    parts = [match[2].strip() for match in islice(_FENCE.finditer(text), MAX_FENCES + 1)] or [text.strip()]
    spoken = next((part for part in (*parts, text.strip()) if text_protocol.speaks(part)), None)
    if spoken is not None and text.lstrip()[:1] not in ("{", "[") and not _is_code(spoken):
        yield "protocol", spoken
        return
    if len(parts) > MAX_FENCES or sum(part[:1] in ("{", "[") or _is_code(part) for part in parts) > 1:
        raise Malformed("It holds several proposals, and only one can be taken.")
    for part in parts:
        if part[:1] in ("{", "["):
            yield "json", part
    for part in parts:
        if part[:1] not in ("{", "["):
            yield "python", part
    inner = _embedded_json(text)
    if inner is not None:
        yield "json", inner


def _is_code(text: str) -> bool:
    """Whether all of `text` is Python calls: then what its quoted texts look like says nothing."""
    if nesting(text) > MAX_NESTING:
        return False
    try:
        return bool(python_calls.parse(text))
    except python_calls.NotCalls:
        return False


def _embedded_json(text: str) -> str | None:
    """The only balanced `{…}` or `[…]` in running words; None where it is quoted, or part of code. Raises Malformed
    when there are several."""
    start = re.search(r"[\[{]", text)
    if start is None:
        return None
    before = text[: start.start()]
    if _QUOTED_BEFORE.search(before) or before.count("(") > before.count(")"):
        return None
    depth, quoted, skip = 0, False, False
    for position in range(start.start(), len(text)):
        char = text[position]
        if skip:
            skip = False
        elif quoted:
            skip = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth == 0:
                if _ANOTHER.search(text, position + 1):
                    raise Malformed("It holds several proposals, and only one can be taken.")
                return text[start.start() : position + 1]
    return None


def unfenced(text: str) -> str:
    """The first fenced block in `text`, or all of it."""
    match = _FENCE.search(text)
    return (match[2] if match else text).strip()


def nesting(text: str) -> int:
    """How deep brackets nest outside double quotes, as far as one beyond the limit. Parsers keep bounds of their own;
    this one is cheap and clear."""
    depth = most = 0
    for match in _BRACKET.finditer(_STRING.sub(lambda match: "" if match[1] else match[0], text)):
        depth = depth + 1 if match[0] in "[({" else max(depth - 1, 0)
        most = max(most, depth)
        if most > MAX_NESTING:
            break
    return most


def _calls(value: JsonValue, catalog: Catalog) -> list[Call]:
    if isinstance(value, Mapping):
        for wrapper in _WRAPPERS:
            if wrapper in value:
                odd = set(value) - _IGNORED - {wrapper, "role", "content", "intent"}
                if odd:
                    raise Malformed(f"A proposal has no {_names(odd)}.")
                return _calls(value[wrapper], catalog)
        return [_call(value, catalog)]
    if not isinstance(value, list):
        raise Malformed("The proposal must be an object or a list.")
    if len(value) > MAX_CALLS:
        raise Malformed("The proposal has more calls than an action may have.", "limits")
    return _each(value, lambda item: _call(item, catalog))


def _call(item: JsonValue, catalog: Catalog) -> Call:
    if not isinstance(item, Mapping):
        raise Malformed("Each call must be an object.")
    odd = set(item) - _CALL_KEYS - _IGNORED
    if odd:
        raise Malformed(f"A call has no {_names(odd)}: it is a service, a method, arguments and an account.")
    twice = [keys for keys in (_NAME_KEYS, _ARGUMENT_KEYS) if sum(key in item for key in keys) > 1]
    inner = item.get("function")
    if isinstance(inner, Mapping):  # {"type": "function", "function": {"name", "arguments"}}
        if len(_CALL_KEYS & set(item)) > 1:
            raise Malformed("A call has parts beside its function.")
        return _call(inner, catalog)
    if twice:
        raise Malformed(f"A call has only one of {', '.join(twice[0])}.")
    given: Any = next((item[key] for key in _ARGUMENT_KEYS if key in item), {})
    if isinstance(given, str):
        try:
            given = parse(given or "{}", limit=MAX_PROPOSAL, what="The arguments")
        except InvalidInput as error:
            raise Malformed(error.message) from error
    if not isinstance(given, Mapping):
        raise Malformed("The arguments must be an object.", "arguments")
    account = item.get("account", "")
    if not isinstance(account, str):
        raise Malformed("The account must be text.")
    service, method = _resolve(item, catalog)
    return Call(service=service, method=method, arguments=dict(given), account=account)


def _resolve(item: Mapping[str, Any], catalog: Catalog) -> tuple[str, str]:
    service = item.get("service")
    name = next((item[key] for key in _NAME_KEYS if key in item), None)
    if not isinstance(name, str) or not (service is None or isinstance(service, str)):
        raise Malformed("A call needs the name of its method, as text.")
    if service is not None and not name.startswith(f"{service}."):
        name = f"{service}.{name}"
    known = _known(name, catalog)
    return known.service, known.name


def _known(name: str, catalog: Catalog) -> Method:
    """The method of that name, or of that tool name."""
    known = catalog.by_tool_name(name)
    if known is not None:
        return known
    try:
        return catalog.method(name)
    except UnknownName as error:
        raise Malformed(str(error), "unknown tool") from error


def _names(keys: Iterable[object]) -> str:
    return ", ".join(repr(str(key)[:40]) for key in sorted(map(str, keys))[:5])
