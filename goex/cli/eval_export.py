"""`goex eval export`: what the person decided about mappings, as fine-tuning data.

Rules: the journal is the person's, so it is asked for on the person's socket, never an agent's. Only mappings that
somebody decided on count: approved or denied when asked, or chosen among candidates. What was taken back later, and
what standing grants let through unseen, teaches nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.output import Json, Output
from policies.display_text import counted

if TYPE_CHECKING:
    from goex.client import Client
    from mapper.catalog import Catalog
    from mapper.raft import Decided

_PAGE = 1000  # rows of the journal that are asked for at once


@dataclass(slots=True)
class _Seen:
    """What the journal says of one action."""

    mapped: bool = False
    asked: bool = False
    allowed: bool = False
    denied: bool = False  # by the person
    choice: int = 0
    first: tuple[str, ...] = field(default=())  # the methods of the reading that was put first


def export(
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write there, readable by you alone; else to stdout.")
    ] = None,
    with_answer: Annotated[
        int, typer.Option("--with-answer", metavar="P", help="Per cent of the examples that hold the right document.")
    ] = 80,
    distractors: Annotated[int, typer.Option("--distractors", metavar="N", help="Other documents in each.")] = 4,
    denied: Annotated[bool, typer.Option("--denied", help="Denied mappings too, as negatives.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Equal seeds give equal files.")] = 0,
    as_json: Json = False,
) -> None:
    """Mappings that you approved or corrected, as fine-tuning data in RAFT's form: JSON lines, redacted."""
    out = Output(as_json)
    from goex.cli.connect import connect, paths
    from mapper.catalog import Catalog
    from mapper.embedded import EmbeddedProposer
    from mapper.raft import Recipe, examples

    recipe = Recipe(with_answer=with_answer, distractors=distractors, seed=seed)
    catalog = Catalog.open(paths().catalog)
    with connect(out) as client:
        decided, gone = _decided(client, catalog, with_denied=denied)
    proposer = EmbeddedProposer(catalog)
    wanted = distractors + max((len(one.calls) for one in decided), default=0)
    found = list(examples(decided, catalog, lambda words: proposer.candidates(words, limit=wanted), recipe))
    _write(file, found)
    if file is not None:
        out.json({"examples": len(found), "left_out": gone, "file": str(file)})
    out.progress(f"{counted(len(found), 'example')}{f' in {file}' if file is not None else ''}")
    if gone:
        out.progress(f"{counted(gone, 'mapping')} left out: the catalog has their methods no more")


def _decided(client: Client, catalog: Catalog, *, with_denied: bool) -> tuple[list[Decided], int]:
    """The mappings that were decided on, oldest first; and how many name methods that are gone."""
    from mapper.raft import Decided, Label
    from policies.actions import Action, ApiCalls
    from policies.errors import InvalidInput
    from policies.typed_json import from_json

    found: list[Decided] = []
    gone = 0
    for name, seen in _journal(client).items():
        if not seen.mapped or not (seen.denied or (seen.allowed and (seen.asked or seen.choice))):
            continue
        if seen.denied and not with_denied:
            continue
        view = client.get(name)
        if view.state == "undone" or not view.intent or not view.request_json:
            continue
        action = from_json(Action, json.loads(view.request_json), "The request")
        if not isinstance(action, ApiCalls):
            continue
        try:
            for call in action.calls:
                catalog.method(call.id)
        except InvalidInput:
            gone += 1
            continue
        label: Label = "denied" if seen.denied else "corrected" if seen.choice > 1 else "approved"
        instead = seen.first if label == "corrected" else ()
        found.append(Decided(words=view.intent, calls=action.calls, label=label, instead_of=instead))
    return found, gone


def _journal(client: Client) -> dict[str, _Seen]:
    """What the journal says of every action, oldest first."""
    found: dict[str, _Seen] = {}
    for row in reversed(list(_rows(client))):
        if not row.action_id:
            continue
        seen = found.setdefault(row.action_id, _Seen())
        facts = _facts(row.facts_json)
        if row.kind in ("votes", "choice"):
            seen.mapped = True
            candidates = facts.get("candidates")
            if row.kind == "choice" and isinstance(facts.get("choice"), int):
                seen.choice = facts["choice"]
                seen.first = _methods(candidates[0]) if isinstance(candidates, list) and candidates else ()
        elif row.kind == "ask":
            seen.asked = True
        elif row.kind == "allow":
            seen.allowed = True
        elif row.kind == "deny":
            seen.denied = bool(facts.get("by"))
    return found


def _rows(client: Client) -> Iterator[Any]:
    from goex.rpc import goex_pb2 as pb

    before = 0
    while True:
        reply = client.call("Person/Log", pb.LogRequest(limit=_PAGE, before=before), pb.LogReply)
        older = [row for row in reply.rows if not before or row.number < before]
        if not older:
            return
        yield from older
        before = older[-1].number


def _facts(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _methods(candidate: Any) -> tuple[str, ...]:
    calls = candidate.get("calls") if isinstance(candidate, dict) else None
    return tuple(one for one in calls if isinstance(one, str)) if isinstance(calls, list) else ()


def _write(file: Path | None, found: list[dict[str, Any]]) -> None:
    """JSON lines to stdout, or to a file that only its owner can read."""
    from policies.errors import InvalidInput

    text = "".join(json.dumps(one, ensure_ascii=True) + "\n" for one in found)
    if file is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        held = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(held, "w", encoding="ascii") as stream:
            os.fchmod(held, 0o600)
            stream.write(text)
    except OSError as error:
        raise InvalidInput(f"{file} can't be written: {error.strerror}.", next_step="Check the path.") from error
