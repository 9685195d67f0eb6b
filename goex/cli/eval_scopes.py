"""`goex eval scopes`: does a request get the right methods, and no scope too many? Offline, over Google's catalog."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.output import Json, Output
from policies.display_text import counted
from policies.errors import InvalidInput

if TYPE_CHECKING:
    from mapper.evaluation.alone import Alone
    from mapper.prompts import Mode
    from mapper.techniques import Technique

_EVERY = 2.0  # seconds between two lines of progress

_COLUMNS = (
    ("requests", "n", 0),
    ("excessive %", "scope_excessive_pct", 2),
    ("not sufficient %", "scope_not_sufficient_pct", 2),
    ("right at once %", "accuracy_at_once_pct", 2),
    ("after asking %", "accuracy_after_asking_pct", 2),
    ("right %", "accuracy_total_pct", 2),
)
_BY_CLASS = (
    ("requests", "n", 0),
    ("right at once %", "accuracy_at_once_pct", 2),
    ("right %", "accuracy_total_pct", 2),
    ("executed %", "executed_pct", 2),
    ("asked %", "asked_pct", 2),
    ("declined %", "declined_pct", 2),
    ("excessive %", "excessive_executed_pct", 2),
)
_MORE = (
    ("asked", "ask_pct", "%"),
    ("executed without asking", "executed_pct", "%"),
    ("of these, of all, with wrong methods", "wrong_method_executed_pct", "%"),
    ("declined, of what nothing serves", "declined_pct", "%"),
    ("declined, of what something serves", "declined_wrongly_pct", "%"),
    ("no completion could be taken", "failed_pct", "%"),
    ("right method first", "method_first_pct", "%"),
    ("right service first", "service_top1_pct", "%"),
    ("samples a request", "samples_mean", ""),
    ("prompt tokens a request", "prompt_tokens", ""),
    ("completion tokens a request", "completion_tokens", ""),
)


def scopes(
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Requests with methods and least scopes.")],
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="NAME", help="embedded; oracle (the right methods given); or a way to ask a model."
        ),
    ] = "embedded",
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses", metavar="FILE", help='A model\'s completions: {"id", "sample", "completion"} a line.'
        ),
    ] = None,
    dump_prompts: Annotated[
        Path | None, typer.Option("--dump-prompts", metavar="FILE", help="Write every prompt that a model would get.")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="How a model is told the methods: tools, schema or plain.")
    ] = "tools",
    rounds: Annotated[
        Path | None,
        typer.Option(
            "--rounds", metavar="DIR", help="Conversations: write the next prompts to DIR, read the answers there."
        ),
    ] = None,
    now: Annotated[
        str, typer.Option("--now", metavar="TIME", help="With --rounds: the time that a model is told, ISO 8601.")
    ] = "",
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=1, max=50, help="With --rounds: conversations at most.")
    ] = 1,
    catalog: Annotated[
        Path | None,
        typer.Option("--catalog", metavar="FILE", help="A catalog's file, not the one that is built for this."),
    ] = None,
    details: Annotated[
        Path | None, typer.Option("--details", metavar="FILE", help="Write what came of each request, JSON lines.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score a way of mapping: are the methods right, and the scopes neither too wide nor too narrow?

    The catalog holds Google's services and no others. It is built once, from the package google-api-python-client.
    No model is called: --dump-prompts writes the prompts, --responses reads the completions.
    """
    out = Output(as_json)
    from mapper.evaluation import recorded, request_sets
    from mapper.evaluation import scope_evaluation as evaluation

    if rounds is not None:
        if responses is not None or dump_prompts is not None or method not in ("embedded", "conversation"):
            raise InvalidInput(
                "--rounds is for conversations alone.", next_step="Leave --method, --responses and --dump-prompts out."
            )
        _in_rounds(out, data, rounds, now, samples, _mode(mode), catalog, details)
        return
    technique, told_how = _technique(method, responses, dump_prompts), _mode(mode)
    found = request_sets.read(data)
    told = recorded.read(responses, {one.id for one in found}) if responses is not None else {}
    rows: list[dict[str, Any]] = []
    with _open(out, catalog) as alone:
        if technique is not None and dump_prompts is not None:
            written = _write(dump_prompts, recorded.prompts(alone, found, technique, told_how))
            out.progress(f"{counted(written, 'prompt')} in {dump_prompts}")
            if responses is None:
                out.json({"method": technique.name, "prompts": written})
                return
        if method == evaluation.ORACLE:
            report, rows = evaluation.rule(alone, found)
        else:
            counting = _counting(out, len(found), "requests mapped")
            made = (
                evaluation.embedded(alone, found, counting)
                if technique is None
                else recorded.rows(alone, found, technique, told, told_how, counting)
            )
            ranking = evaluation.retrieved(alone, found, _counting(out, len(found), "requests ranked"))
            report, rows = evaluation.report(method, made, ranking), [row.to_json() for row in made]
    _finish(out, report, details, rows)


def _in_rounds(
    out: Output, data: Path, folder: Path, now: str, samples: int, mode: Mode, file: Path | None, details: Path | None
) -> None:
    """One step of all conversations, or the figures when they have ended."""
    from datetime import datetime

    from mapper.context import Context
    from mapper.evaluation import request_sets
    from mapper.evaluation import rounds as conversations
    from mapper.evaluation import scope_evaluation as evaluation
    from mapper.techniques import CONVERSATION, Technique

    try:
        told = datetime.fromisoformat(now) if now else None
        context = Context(now=told.astimezone() if told and told.tzinfo is None else told)
    except ValueError as error:
        raise InvalidInput(f"{now[:60]!r} isn't a time.", next_step="Write it like 2026-11-23T09:00+01:00.") from error
    found = request_sets.read(data)
    technique = Technique.named(CONVERSATION, samples=samples)
    with _open(out, file) as alone:
        counting = _counting(out, len(found), "requests mapped")
        made, waiting = conversations.rows(alone, found, technique, folder, mode, context, counting)
        if waiting is not None:
            out.json({"method": CONVERSATION, "decided": len(made), "prompts": str(waiting)})
            answers = waiting.with_name(waiting.name.replace(".prompts.", ".answers."))
            out.progress(f"{len(made)} of {len(found)} are decided. The next prompts are in {waiting}.")
            out.progress(f"Put the answers into {answers}, and run this again.")
            return
        report = evaluation.report(CONVERSATION, made, evaluation.retrieved(alone, found, counting))
    _finish(out, report, details, [row.to_json() for row in made])


def _technique(method: str, responses: Path | None, dump_prompts: Path | None) -> Technique | None:
    """The way of asking a model; None where none is asked. Raises InvalidInput for options that don't go together."""
    from mapper.evaluation.scope_evaluation import EMBEDDED, ORACLE
    from mapper.techniques import CONVERSATION, NAMES, Technique

    if method in (EMBEDDED, ORACLE):
        if responses is not None or dump_prompts is not None:
            raise InvalidInput(
                f"The method {method} asks no model, so it has no prompts and no responses.",
                next_step=f"Name a way to ask one: --method {'|'.join(NAMES)}",
            )
        return None
    if method == CONVERSATION:
        raise InvalidInput("A conversation goes in rounds.", next_step="Give --rounds DIR.")
    if method not in NAMES:
        raise InvalidInput(
            f"There is no method {method[:60]!r}.", next_step=f"There are: {', '.join((EMBEDDED, ORACLE, *NAMES))}."
        )
    if responses is None and dump_prompts is None:
        raise InvalidInput(
            f"The method {method} needs a model's completions.",
            next_step="Write the prompts with --dump-prompts FILE, have a model answer, then give --responses FILE.",
        )
    return Technique.named(method)


def _mode(name: str) -> Mode:
    modes: tuple[Mode, ...] = ("tools", "schema", "plain")
    for mode in modes:
        if mode == name:
            return mode
    raise InvalidInput(f"There is no mode {name[:60]!r}.", next_step=f"There are: {', '.join(modes)}.")


def _open(out: Output, file: Path | None) -> Alone:
    from goex.paths import cache_folder
    from mapper.evaluation import alone

    if file is not None:
        out.progress(f"Making an index of {file} in memory; that takes a while.")
        return alone.of_file(file)
    last = time.monotonic() - _EVERY

    def progress(done: int, total: int, what: str) -> None:
        nonlocal last
        if what and time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            out.progress(f"building Google's catalog, once: {done} of {total}: {what}")

    return alone.of_package(cache_folder(os.environ), progress)


def _counting(out: Output, total: int, what: str) -> Callable[[int], None]:
    last = time.monotonic()

    def progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            out.progress(f"{done} of {total} {what}")

    return progress


def _write(file: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Lines of JSON, replacing what was in the file. Returns how many."""
    import json

    written = 0
    try:
        with file.open("w", encoding="ascii") as stream:
            for row in rows:
                stream.write(json.dumps(row, ensure_ascii=True) + "\n")
                written += 1
    except OSError as error:
        raise InvalidInput(f"{file} can't be written: {error.strerror}.", next_step="Check the path.") from error
    return written


def _finish(out: Output, report: dict[str, Any], details: Path | None, rows: Iterable[dict[str, Any]]) -> None:
    """Write what came of each request, and show the figures: the columns as a table, the rest below it."""
    if details is not None:
        _write(details, rows)
    out.json(report)
    if out.as_json:
        return
    out.table(
        ("method", *(name for name, _, _ in _COLUMNS)),
        [(report["method"], *(_number(report[key], places) for _, key, places in _COLUMNS))],
    )
    out.say()
    latency = report["latency_ms"] or {"p50": None}
    recall = report["recall_at"] or {}
    out.fields(
        (
            *((name, _number(report[key], 2, unit)) for name, key, unit in _MORE),
            ("all methods within the first", ", ".join(f"{at}: {share} %" for at, share in recall.items())),
            ("milliseconds a request", _number(latency["p50"], 1)),
        )
    )
    if classes := report["by_class"]:
        out.say()
        out.table(
            ("class", *(name for name, _, _ in _BY_CLASS)),
            [(name, *(_number(of[key], places) for _, key, places in _BY_CLASS)) for name, of in classes.items()],
        )
    if report.get("tokens_estimated"):
        out.progress("Tokens are estimated from the characters, since the responses don't say them.")


def _number(value: float | None, places: int, unit: str = "") -> str:
    return "" if value is None else f"{value:.{places}f} {unit}".strip()
