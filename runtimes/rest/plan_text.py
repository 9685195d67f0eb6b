"""A plan in plain words: what the person reads before deciding.

Rules: every argument stands whole on lines of its own, never cut; all of it passes `policies.display_text.escape`; a
text of several lines is drawn with a bar before each line, so that none of them can pass for a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from policies.actions import Plan, UndoClass
from policies.display_text import escape, escape_name, escape_value
from policies.graphql import operation_of, paths_of
from policies.jsonpath import is_filter
from policies.reversions import Standing
from policies.services import Service
from policies.typed_json import from_json
from runtimes.gateway.plan import PlannedRequest, Ref
from runtimes.rest.planner import PlannedCall, PlannedCalls
from runtimes.rest.steps import Step
from runtimes.servers.definition import HOST

MOST_PATHS = 12  # of a GraphQL answer that are named
_ROLE = {
    "pre": "first reads",
    "call": "",
    "after": "then reads",
    "guard": "compares first:",
    "undo": "takes back by",
    "verify": "reads back:",
    "probe": "looks whether it happened:",
}


def target(request: PlannedRequest) -> str:
    """Method and URL of a request as a person reads it: without query, references as {…}. A tool of an MCP server has
    no address."""
    if request.origin.host.endswith(HOST):
        return f"the MCP server {request.origin.host.removesuffix(HOST)}"
    segments = [*(_segment(part) for part in request.base_path), *(_segment(part) for part in request.path)]
    return f"{request.method} {request.origin}/{'/'.join(segments)}"


def call_lines(calls: PlannedCalls) -> tuple[str, ...]:
    """Everything that executing sends, and what undo would send."""
    lines: list[str] = []
    several = len(calls.calls) > 1
    for call in calls.calls:
        number = f"{call.index + 1}. " if several else ""
        lines += step_lines(call.step, before=number)
        if call.pre is not None:
            lines += _indented(step_lines(call.pre))
        if call.undo is not None:
            for step in call.undo.steps:
                said = step_lines(step, before="undo ")
                lines += _indented(said if step.role == "undo" else said[:1])
    return tuple(lines)


def payload_lines(plan: Plan) -> tuple[str, ...]:
    """The calls of a plan with every argument: what is sent, without what is read before and what takes it back."""
    planned = from_json(tuple[Step, ...], plan.resolved.get("steps", []), "The requests of this plan")
    steps = [step for step in planned if step.role == "call"]
    numbers = [f"{number}. " for number in range(1, len(steps) + 1)] if len(steps) > 1 else [""]
    return tuple(line for number, step in zip(numbers, steps, strict=True) for line in step_lines(step, before=number))


def source_lines(services: Iterable[Service]) -> tuple[str, ...]:
    """Which of these services GoEx knows from somebody's document alone: what it says of them was never tried."""
    return tuple(
        escape(
            f"{service.name} was imported ({service.provider}: {service.provider_name} {service.version}): what its"
            " calls do and need is its document's word, not GoEx's."
        )
        for service in services
        if service.source == "imported"
    )


def step_lines(step: Step, *, before: str = "") -> list[str]:
    """One request: its heading, then each argument."""
    lines = [before + heading(step)]
    for name, value in step.arguments.items():
        lines += _argument(name, value)
    return [*lines, *_asked_for(step)]


def _asked_for(step: Step) -> list[str]:
    """What a GraphQL call's answer will hold, by its paths; nothing for other calls."""
    body = step.request.body
    document = body.get("query") if isinstance(body, Mapping) else None
    if not isinstance(document, str) or body != {"query": document, "variables": step.arguments}:
        return []
    paths = paths_of(document) if operation_of(document) else ()
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return [f"    answers with: {', '.join(paths[:MOST_PATHS])}{more}"] if paths else []


def heading(step: Step) -> str:
    """`slack.chat.postMessage as work → POST https://slack.com/api/chat.postMessage`."""
    words = f"{_ROLE[step.role]} {step.method_id} as {escape_name(step.account)} → {target(step.request)}"
    return escape(words.strip())


def undo_text(calls: PlannedCalls) -> str:
    """What undo will do and need, or which call can't be taken back."""
    match calls.undo_class:
        case UndoClass.NOTHING:
            return "It only reads: there is nothing to take back."
        case UndoClass.IRREVERSIBLE:
            stuck = [call for call in calls.calls if not call.step.read and call.undo is None]
            said = [f"{_named(call)} can't be taken back: {call.no_undo}." for call in stuck]
            return escape(" ".join(said))
        case _:
            return escape(" ".join(_undo_words(call) for call in reversed(calls.calls) if call.undo is not None))


def _undo_words(call: PlannedCall) -> str:
    assert call.undo is not None
    by = ", then ".join(dict.fromkeys(step.method_id for step in call.undo.calls))
    before = "compared first" if call.undo.guard is not None else "nothing is compared first"
    after = "read back after" if call.undo.verify is not None else "nothing is read back after"
    if call.undo.absent:
        by += f", or by {call.undo.absent[0].method_id} if nothing was there before"
    words = f"{_named(call)} is taken back by {by} ({before}, {after})."
    if call.undo.note:
        words += f" What remains: {call.undo.note.rstrip('.')}."
    return words + said_of(call.undo.source, call.undo.standing)


def said_of(source: str, standing: str) -> str:
    """Who says that this takes it back, and whether it ever did here; "" for what comes with GoEx and wasn't used."""
    proven = standing == Standing.PROVEN
    who = _WHO.get(source, "")
    if not who:
        return " This way back is proven: it was used here, and read back." if proven else ""
    return f" This way back was {who}, {'and is proven: it was used here, and read back' if proven else 'unproven'}."


_WHO = {
    "derived": "derived from the service's document",
    "developer": "added by you",
    "imported": "imported",
    "model": "written by a model",
}


def _named(call: PlannedCall) -> str:
    return f"{call.step.method_id} (call {call.index + 1})"


def _argument(name: str, value: Any) -> list[str]:
    shown = _value(value)
    first, *rest = escape(shown, newlines=True).split("\n")
    if not rest:
        return [f"    {escape_name(name)}: {escape_value(shown)}"]
    return [f"    {escape_name(name)}:", *(f"    | {line}" for line in (first, *rest))]


def _value(value: Any) -> str:
    if isinstance(value, Ref):
        return reference(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if _needs_quotes(value) else value
    return json.dumps(spoken(value), ensure_ascii=False)


def spoken(value: Any) -> Any:
    """`value` with each reference in it as a text that says where it comes from."""
    if isinstance(value, Ref):
        return f"← {reference(value)}"
    if isinstance(value, Mapping):
        return {key: spoken(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spoken(item) for item in value]
    return value


def reference(ref: Ref) -> str:
    """`from the answer to call 1, at $.ts`; of a filter that exactly one value fits."""
    role, number = ref.request.split("-")[:2]
    source = _SOURCES.get(role, "what was read before")
    return f"from {source} call {int(number) + 1}, at {ref.path}{_how(ref)}"


def _how(ref: Ref) -> str:
    if ref.optional:
        return " (if it is there)"
    return " (exactly one must fit)" if is_filter(ref.path) else ""


_SOURCES = {
    "call": "the answer to",
    "made": "what its list shows to be new after",
    "undo": "the answer to the undo of",
}


def _needs_quotes(text: str) -> bool:
    """Whether the bare text could be taken for something else: a number, a reference, nothing, spaces at its ends."""
    if not text or text != text.strip() or text.startswith(("from the answer", "from what was read")):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _segment(part: str | Ref) -> str:
    return "{…}" if isinstance(part, Ref) else quote(part, safe="!$&'()*+,;=:@")


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
