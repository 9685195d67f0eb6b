"""A dry run of calls: every request as it would leave, in order. Pure: nothing is sent, nothing is leased.

Rules: method, URL, headers and body are written by the functions that the gateway writes them with; a value that only
an answer knows is shown by where it comes from, and the note below a request counts such values, so that no literal
text can pass for one. A credential is named, never used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.actions import Plan
from policies.display_text import counted, escape, shorten
from policies.jsonvalue import canonical
from policies.media_types import FORM, JSON, MULTIPART, OCTETS
from runtimes.base import DryKind, DryLine, DryRun
from runtimes.gateway.plan import PlannedRequest, Ref
from runtimes.gateway.response_values import scalar
from runtimes.gateway.urls import encode_path, encode_query
from runtimes.rest.plan_text import reference, spoken
from runtimes.rest.planner import read_undos
from runtimes.rest.references import refs_in
from runtimes.rest.steps import Step

_USUAL = {"json": JSON, "form": FORM, "multipart": MULTIPART, "text": "text/plain", "bytes": OCTETS}
MOST_OF_A_BODY = 20_000  # characters

_WHY = {
    "pre": "reads first what undo will need",
    "call": "",
    "after": "reads what undo will need",
    "guard": "compares first",
    "undo": "takes back",
    "verify": "reads back",
    "probe": "looks whether it happened",
}


def dry_run(steps: Sequence[Step], *, undo: Sequence[Step] = ()) -> DryRun:
    """What executing `steps` would send; `undo` is what taking it back would send later."""
    lines: list[DryLine] = []
    for number, step in enumerate(steps, 1):
        lines += _request(step, f"{number}. ")
    if undo:
        lines.append(DryLine("note", "Undo would send, once you ask for it and it is allowed:"))
        for number, step in enumerate(undo, 1):
            lines += _request(step, f"undo {number}. ")
    count = f"{len(steps)} request{'' if len(steps) == 1 else 's'}"
    summary = f"{count} would be sent, each only after the one before it was answered well. Nothing was sent."
    note = DryLine(
        "note", "No service was asked, so what they would answer isn't known; no credential was taken from the vault."
    )
    return DryRun(ok=True, summary=summary if steps else "No request would be sent.", lines=(note, *lines))


def undo_of(plan: Plan) -> tuple[Step, ...]:
    """The requests that take calls back, as the plan of these promises them: their values by where they come from."""
    return tuple(step for undo in reversed(read_undos(plan.undo["calls"])) for step in undo.steps)


def dry_undo(plan: Plan) -> DryRun:
    """What taking calls back would send, without what was read or answered."""
    return dry_run(undo_of(plan))


def _request(step: Step, before: str) -> Iterator[DryLine]:
    request = step.request
    why = f"{_WHY[step.role]}: " if _WHY[step.role] else ""
    yield _line("change", f"{before}{why}{step.method_id} as {step.account}")
    yield _line("same", f"{request.method} {url(request)}")
    for name, value in headers(request):
        yield _line("same", f"{name}: {value}")
    text = body(request)
    if text:
        yield _line("same", text)
    known = refs_in([list(request.path), request.query, request.body])
    for ref in dict.fromkeys(known):
        yield _line("note", f"one value of it comes {reference(ref)}")
    if request.attempts > 1:
        yield DryLine("note", f"It is asked up to {request.attempts} times, while the service settles.")


def url(request: PlannedRequest) -> str:
    """The whole URL, with its query; a value of an answer stands in braces."""
    segments = [encode_path((part,))[1:] if isinstance(part, str) else _hole(part) for part in request.path]
    path = "/".join([encode_path(request.base_path)[1:], *segments] if request.base_path else segments)
    query = _encoded(request.query)
    return f"{request.origin}/{path}{'?' if query else ''}{query}"


def headers(request: PlannedRequest) -> list[tuple[str, str]]:
    """The headers that matter to a reader: the service's own, the body's kind, and whose credential is put where."""
    service, account = request.account
    found = list(request.headers.items())
    for at, name, form in request.credential_places:
        credential = form.replace("{secret}", f"‹the credential {service}/{account}›")
        found.append((name if at == "header" else f"{at} {name}", credential))
    if request.body_format != "none" and request.body is not None:
        found.append(("Content-Type", request.body_type or _USUAL[request.body_format]))
    return found


def body(request: PlannedRequest) -> str:
    """The body as text; "" without one."""
    if request.body_format == "none" or request.body is None:
        return ""
    if request.body_format == "form":
        return _encoded(request.body)
    if request.body_format in ("text", "bytes") and isinstance(request.body, str):
        return request.body if request.body_format == "text" else f"(in base64) {request.body}"
    return canonical(spoken(request.body)).decode("utf-8")


def _encoded(mapping: Mapping[str, Any]) -> str:
    pairs = []
    for name, value in mapping.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Ref):
                pairs.append(f"{encode_query([(name, '')])}{_hole(one)}")
            elif one is not None:
                literal = isinstance(one, str | int | float)
                text = scalar(one) if literal else canonical(spoken(one)).decode("utf-8")
                pairs.append(encode_query([(name, text)]))
    return "&".join(pairs)


def _hole(ref: Ref) -> str:
    return f"{{{reference(ref)}}}"


def _line(kind: DryKind, text: str) -> DryLine:
    shown, cut = shorten(escape(text), MOST_OF_A_BODY)
    return DryLine(kind, f"{shown}… ({counted(cut, 'more character')})" if cut else shown)
