"""One sample as a conversation: a model looks into the catalog, and ends with calls, a question, or "nothing fits".

Rules: it has at most `TURNS` turns, each of bounded size; the tools are the same for every request, so that a server
may keep what comes first; what a tool answers is the catalog's, as JSON, and no tool reaches anything else. A plan that
fails validation comes back with the reasons `MENDS` times. A person is asked once: after an answer there is no `ask`.
Native tool calls and plain text (`{"tool": …, "arguments": …}`, or a proposal in any form) are read alike; calls of a
method by its own name are a proposal. All that a model writes is untrusted; `hear` never raises for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mapper import conversation_prompts as says
from mapper.catalog import Catalog, UnknownName
from mapper.context import Context
from mapper.least_scopes import least_scopes
from mapper.prompts import Mode, Prompt
from mapper.proposals import (
    MAX_NESTING,
    MAX_PROPOSAL,
    Malformed,
    nesting,
    parse_proposal,
    parse_tool_calls,
    rejected,
    unfenced,
)
from mapper.readings import Reading, message_of, tool_pairs
from mapper.signatures import line, signature
from mapper.techniques import TURNS
from policies.actions import Call, Clarification, Option, Rejected
from policies.display_text import escape, shorten
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonValue, canonical, parse
from policies.services import Method

MENDS = 2  # refused plans and misused tools that come back
AT_ONCE = 4  # tool calls in one turn
DESCRIBED = 8  # methods in a whole conversation, beside those shown at first
FINDS, FOUND = 3, 8  # searches, and methods that each adds
MAX_WORDS = 200  # characters of a search
MAX_SAID = 6_000  # characters of one turn that are kept and sent back
MAX_QUESTION, MAX_CHOICE, MAX_CHOICES = 300, 120, 5
MAX_REASON = 300
_ROOM = 2_500  # characters of a described method's arguments
_PLACEHOLDER = re.compile(r"goex-[\w-]*[A-Za-z0-9_-]{16}")

Find = Callable[[str], Iterable[Method]]


@dataclass(slots=True)
class Conversation:
    """One sample. Ask `prompt` for what the model gets, give its completion to `hear`, until there is a `reading`.

    `methods` are the likeliest, best first; `find` looks for others by words.
    """

    catalog: Catalog
    find: Find
    intent: str
    methods: Sequence[Method]
    context: Context
    number: int = 0
    reading: Reading | None = None
    turns: list[says.Turn] = field(default_factory=list)
    _asked: str = ""
    _known: set[str] = field(default_factory=set)
    _described: int = 0
    _finds: int = 0
    _mends: int = 0

    def __post_init__(self) -> None:
        self.methods = [method for method in self.methods if not method.unsupported]
        self._known.update(method.id for method in self.methods)

    def prompt(self, mode: Mode = "tools") -> Prompt:
        """What the model is asked next, a pure function of what was said."""
        if not self._asked:
            self._asked = says.request(self.intent, self.methods, self.context)
        return says.prompt(self._asked, self.turns, mode)

    def hear(self, completion: JsonValue) -> None:
        """Take one completion: it ends the conversation, or gets an answer."""
        said, pairs = self._tools(completion)
        if self.reading is not None:
            return
        size = len(said) + sum(len(name) + len(arguments) for name, arguments in pairs)
        if size > MAX_SAID or len(pairs) > AT_ONCE:
            self._mend(said[:MAX_SAID], [], Malformed("A turn is too long, or has too many tool calls.", "limits"))
        elif not pairs:
            self._propose(said, [], lambda: parse_proposal(said, self.catalog, self.number))
        elif all(name not in says.TOOLS for name, _ in pairs):
            self._propose(said, pairs, lambda: parse_tool_calls(pairs, self.catalog, self.number))
        elif len(pairs) > 1 and any(name not in ("describe", "find") for name, _ in pairs):
            self._mend(said, pairs, Malformed("propose, ask and nothing_fits each stand alone in a turn."))
        else:
            self._use(said, pairs)
        if self.reading is None and len(self.turns) >= TURNS:
            self._end(rejected(Malformed(f"It came to no end within {TURNS} turns.", "limits"), self.number, said))

    # ---- what was said

    def _tools(self, completion: JsonValue) -> tuple[str, list[tuple[str, str]]]:
        """The words and the tool calls of a completion. One that can't be read at all ends the conversation."""
        message = message_of(completion)
        tool_calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        if isinstance(tool_calls, list) and tool_calls:
            pairs = tool_pairs(tool_calls)
            if isinstance(pairs, Malformed):
                self._end(rejected(pairs, self.number, ""))
                return "", []
            return "", pairs
        content = (
            message if isinstance(message, str) else message.get("content") if isinstance(message, Mapping) else ""
        )
        if not isinstance(content, str) or not content.strip():
            self._end(rejected(Malformed("The model said nothing."), self.number, ""))
            return "", []
        tool = _spoken(content)
        return (content, [tool]) if tool is not None else (content, [])

    def _use(self, said: str, pairs: list[tuple[str, str]]) -> None:
        answers = []
        for name, text in pairs:
            try:
                given = _arguments(text)
                match name:
                    case "describe":
                        answers.append(self._describe(given))
                    case "find":
                        answers.append(self._find(given))
                    case "ask":
                        self._end(self._ask(given))
                    case "nothing_fits":
                        self._end((), _line(given.get("reason"), MAX_REASON))
                    case "propose":
                        calls = {"calls": given.get("calls")}
                        self._propose(said, pairs, lambda calls=calls: self._parsed(calls))  # type: ignore[misc] # bound
                        return
                    case _:
                        raise Malformed(f"There is no tool {name[:40]!r} beside these methods.", "unknown tool")
            except Malformed as error:
                self._mend(said, pairs, error)
                return
        if self.reading is None:
            self.turns.append(says.Turn(said, tuple(pairs), tuple(answers)))

    def _parsed(self, calls: JsonValue) -> tuple[Call, ...] | Rejected:
        try:
            text = canonical(calls).decode("utf-8")
        except InvalidInput as error:
            return rejected(Malformed(error.message, "arguments"), self.number, "")
        return parse_proposal(text, self.catalog, self.number)

    # ---- ends

    def _end(self, sample: tuple[Call, ...] | Rejected | Clarification, reason: str = "") -> None:
        self.reading = Reading(sample=sample, reason=reason)

    def _propose(
        self, said: str, pairs: list[tuple[str, str]], read: Callable[[], tuple[Call, ...] | Rejected]
    ) -> None:
        made = read()
        if made and not isinstance(made, Rejected):
            try:
                least_scopes(self.catalog, made, frozenset(), words=self.intent)
            except (InvalidInput, Unsupported) as error:
                made = rejected(Malformed(error.message, "arguments"), self.number, said)
        if isinstance(made, Rejected):
            self._mend(said, pairs, Malformed(made.reason, made.klass), made)
        else:
            self._end(made)

    def _mend(self, said: str, pairs: list[tuple[str, str]], why: Malformed, whole: Rejected | None = None) -> None:
        """Say why it wasn't taken, or end with that."""
        self._mends += 1
        if self._mends > MENDS:
            self._end(whole or rejected(why, self.number, said or json.dumps(pairs)))
            return
        answer = {"rejected": why.reason, "do": "Mend it, and say it again."}
        self.turns.append(says.Turn(said, tuple(pairs), (answer,) * max(len(pairs), 1)))

    # ---- tools

    def _describe(self, given: Mapping[str, Any]) -> Any:
        names = given.get("methods")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise Malformed('describe takes {"methods": ["service.method"]}.')
        found: dict[str, Any] = {}
        for name in names[:AT_ONCE]:
            method = self._method(name)
            if method is None:
                found[name[:120]] = {"error": "No such method; find looks for others."}
            elif self._described >= DESCRIBED:
                found[name[:120]] = {"error": f"{DESCRIBED} were described; decide now."}
            else:
                self._described += 1
                self._known.add(method.id)
                found[method.id] = signature(method, _ROOM)
        return {"methods": found}

    def _find(self, given: Mapping[str, Any]) -> Any:
        words = given.get("words")
        if not isinstance(words, str) or not any(char.isalnum() for char in words) or len(words) > MAX_WORDS:
            raise Malformed(f"find takes some words, at most {MAX_WORDS} characters.")
        if _PLACEHOLDER.search(words):
            raise Malformed("A credential's placeholder isn't looked for.", "limits")
        if self._finds >= FINDS:
            return {"error": f"{FINDS} searches were made; decide now."}
        self._finds += 1
        new = (method for method in self.find(words) if not method.unsupported and method.id not in self._known)
        found = list(islice(new, FOUND))
        self._known.update(method.id for method in found)
        return {"methods": {method.id: line(method) for method in found}}

    def _ask(self, given: Mapping[str, Any]) -> Clarification:
        if self.context.asked is not None:
            raise Malformed("The person was asked already and answered; propose, or say nothing_fits.")
        question, choices = given.get("question"), given.get("choices", [])
        if not isinstance(question, str) or not question.strip() or not isinstance(choices, list):
            raise Malformed('ask takes {"question": "…", "choices": [{"answer": "…", "methods": ["…"]}]}.')
        if len(choices) > MAX_CHOICES or len(choices) == 1:
            raise Malformed(f"A question has 2 to {MAX_CHOICES} choices, or none where any value may be the answer.")
        options = [self._option(choice) for choice in choices]
        if len({option.answer for option in options}) < len(options):
            raise Malformed("The choices must differ.")
        return Clarification(
            text=_line(question, MAX_QUESTION), options=tuple(options), methods=self._named(given.get("methods", []))
        )

    def _option(self, choice: Any) -> Option:
        if isinstance(choice, str):
            choice = {"answer": choice}
        answer = choice.get("answer") if isinstance(choice, Mapping) else None
        if not isinstance(answer, str) or not answer.strip():
            raise Malformed("Each choice has an answer.")
        return Option(answer=_line(answer, MAX_CHOICE), methods=self._named(choice.get("methods", [])))

    def _named(self, names: Any) -> tuple[str, ...]:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Malformed("methods is a list of names.")
        found = [self._method(name) for name in names[:AT_ONCE]]
        unknown = next((name for name, method in zip(names, found, strict=False) if method is None), None)
        if unknown is not None:
            raise Malformed(f"There is no method {unknown[:80]!r}.", "unknown tool")
        return tuple(method.id for method in found if method is not None)

    def _method(self, name: str) -> Method | None:
        known = self.catalog.by_tool_name(name)
        if known is not None:
            return known
        try:
            return self.catalog.method(name)
        except UnknownName:
            return None


def _arguments(text: str) -> Mapping[str, Any]:
    if nesting(text) > MAX_NESTING:
        raise Malformed("The arguments are nested too deeply.", "limits")
    try:
        given = parse(text or "{}", limit=MAX_PROPOSAL, what="The arguments")
    except InvalidInput as error:
        raise Malformed(error.message) from error
    if not isinstance(given, Mapping):
        raise Malformed("The arguments must be an object.")
    return given


def _spoken(content: str) -> tuple[str, str] | None:
    """A tool's use written as text; None for anything else, which is a proposal."""
    if len(content) > MAX_PROPOSAL or nesting(content) > MAX_NESTING:
        return None
    try:
        value = parse(unfenced(content), limit=MAX_PROPOSAL, what="The answer")
        tool = value.get("tool") if isinstance(value, dict) else None
        if not isinstance(tool, str) or tool not in says.TOOLS:
            return None
        given = value.get("arguments", {key: item for key, item in value.items() if key != "tool"})
        return tool, canonical(given).decode("utf-8")
    except InvalidInput:
        return None


def _line(text: Any, most: int) -> str:
    """A text of the model's, fit to be shown on a line: escaped, bounded."""
    shown, left_out = shorten(escape(" ".join(text.split())), most) if isinstance(text, str) else ("", 0)
    return f"{shown}…" if left_out else shown
