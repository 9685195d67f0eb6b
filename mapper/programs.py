"""From words to a program (statements, or a script): asked of the model several times, the reading of most is taken.

There is no proposer without a model here: what a program does can't be ranked by words. Every sample is untrusted and
is checked by a callable of the caller's, which gives it back in one normal form: what is written differently and means
the same is one reading. Votes and stopping are those of calls (`mapper.vote`, `mapper.stopping_rule`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from mapper.prompts import Mode
from mapper.stopping_rule import Experience, Plan
from mapper.vote import MAX_ALTERNATIVES, REJECTIONS
from policies.actions import Rejected
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import JsonValue, parse

MAX_PROGRAM = 100_000  # characters
NOTHING = "nothing"

_FENCE = re.compile(r"```[ \t]*([A-Za-z0-9_+-]*)[^\n]*\n(.*?)```", re.DOTALL)


@runtime_checkable
class Sampler(Protocol):
    """The part of `mapper.model.ModelProposer` that is needed."""

    name: str

    async def sample(
        self, body: Callable[[Mode], dict[str, Any]], more: Callable[[Sequence[JsonValue]], int]
    ) -> tuple[JsonValue, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program as a model wrote it. `undo` is what it claims takes it back, "" when it says none."""

    code: str
    undo: str = ""
    language: Literal["sql", "shell", "python"] = "sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A reading that passed its check: its normal form, and how many samples said it."""

    program: Program
    votes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The vote's result. `candidates` best first; `sure`: enough of the samples agree on the first."""

    candidates: tuple[Candidate, ...]
    samples: int
    agreement: float
    sure: bool
    nothing: int  # how many said that nothing fits
    rejected: tuple[Rejected, ...]
    ballots: tuple[str, ...]
    proposer: str


async def choose(
    model: Sampler,
    plan: Plan,
    experience: Experience,
    body: Callable[[Mode], dict[str, Any]],
    read: Callable[[JsonValue], Program | None],
    check: Callable[[Program], Program],
) -> Choice:
    """Ask until the vote is settled. `read` takes a message apart (None: the model says that nothing fits); `check`
    gives a program's normal form, and raises a GoexError for one that can't be. Raises ModelUnavailable."""
    habit = experience.habit
    seen: list[Program | Rejected | None] = []

    def tally(made: Sequence[JsonValue]) -> Choice:
        for number in range(len(seen), len(made)):
            seen.append(_sample(made[number], number, read, check))
        return _counted(seen, plan.threshold, model.name)

    def more(made: Sequence[JsonValue]) -> int:
        return plan.more(_leading(tally(made)), len(made), habit)

    choice = tally(await model.sample(body, more))
    experience.observe(_leading(choice), choice.ballots, REJECTIONS)
    return choice


def _leading(choice: Choice) -> int:
    return max([choice.nothing, *(candidate.votes for candidate in choice.candidates[:1])])


def _sample(
    message: JsonValue, number: int, read: Callable[[JsonValue], Program | None], check: Callable[[Program], Program]
) -> Program | Rejected | None:
    if message is None:
        return Rejected(sample=number, reason="The model gave no answer.", klass="lost")
    try:
        program = read(message)
        return check(program) if program is not None else None
    except Unreadable as error:
        return Rejected(sample=number, reason=error.message, klass="format")
    except GoexError as error:
        return Rejected(sample=number, reason=error.message[:300], klass="arguments")


def _counted(seen: Sequence[Program | Rejected | None], threshold: float, proposer: str) -> Choice:
    votes = Counter(one for one in seen if isinstance(one, Program))
    nothing = sum(one is None for one in seen)
    ranked = sorted(votes, key=lambda one: (-votes[one], one.code, one.undo, one.language))
    best = votes[ranked[0]] if ranked else 0
    tie = sum(count == best for count in votes.values()) > 1 or nothing == best
    return Choice(
        candidates=tuple(Candidate(program=one, votes=votes[one]) for one in ranked[:MAX_ALTERNATIVES]),
        samples=len(seen),
        agreement=best / len(seen) if seen else 0.0,
        sure=bool(ranked) and not tie and nothing < best and best >= threshold * len(seen) - 1e-9,
        nothing=nothing,
        rejected=tuple(one for one in seen if isinstance(one, Rejected)),
        ballots=tuple(_ballot(one) for one in seen),
        proposer=proposer,
    )


def _ballot(one: Program | Rejected | None) -> str:
    if one is None:
        return NOTHING
    if isinstance(one, Rejected):
        return one.klass
    said = "\0".join((one.language, one.code, one.undo))
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


# ---- reading an answer: a tool call, JSON, fenced blocks, or the program itself


class Unreadable(InvalidInput):
    """An answer that isn't of any form that is read."""


def answering(mode: Mode, tool: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request to a model says in which form it has to answer."""
    if mode == "tools":
        function = {"name": tool, "description": description, "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": tool}},
        }
    if mode == "schema":
        form = {"name": tool, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    return {}


def answered(message: JsonValue, tool: str) -> dict[str, JsonValue] | str:
    """The arguments of the one call of `tool`, a JSON object of the text, or else the text. Raises Unreadable."""
    if not isinstance(message, dict):
        raise Unreadable("The answer isn't a message.")
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        if len(calls) != 1:
            raise Unreadable("The answer calls several tools.")
        function = calls[0].get("function") if isinstance(calls[0], dict) else None
        if not isinstance(function, dict) or function.get("name") != tool:
            raise Unreadable("The answer calls a tool that there isn't.")
        return _object(str(function.get("arguments") or ""))
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        raise Unreadable("The answer is empty.")
    text = content.strip()
    if len(text) > MAX_PROGRAM:
        raise Unreadable(f"The answer is longer than {MAX_PROGRAM} characters.")
    if text.startswith("{"):
        return _object(text)
    blocks = fenced(text)
    if len(blocks) == 1 and blocks[0][0] in ("json", "") and blocks[0][1].lstrip().startswith("{"):
        return _object(blocks[0][1])
    return text


def fenced(text: str) -> list[tuple[str, str]]:
    """(language, content) of each block between ``` lines."""
    return [(match[1].lower(), match[2].strip()) for match in _FENCE.finditer(text)]


def text_of(values: dict[str, JsonValue], *names: str) -> str:
    """The first of these that is there and text; "" without any. Raises Unreadable for one that isn't text."""
    for name in names:
        value = values.get(name)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return ";\n".join(str(each).rstrip().rstrip(";") for each in value)
        if value is not None and not isinstance(value, str):
            raise Unreadable(f"{name} isn't text.")
        if value is not None:
            return str(value).strip()
    return ""


def _object(text: str) -> dict[str, JsonValue]:
    try:
        value = parse(text.strip(), limit=MAX_PROGRAM, what="The answer")
    except InvalidInput as error:
        raise Unreadable(error.message) from error
    if not isinstance(value, dict):
        raise Unreadable("The answer isn't a JSON object.")
    return value


def data(**values: JsonValue) -> str:
    """Values as JSON inside of a user message: they can't close their own quotation."""
    return json.dumps(values, ensure_ascii=False)
