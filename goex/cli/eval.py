"""`goex eval`: how good answers are, measured offline against published questions: no daemon, no model, no service.

`export` alone needs the daemon: it gives what the person decided, to learn from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from goex.cli.eval_export import export
from goex.cli.eval_scopes import scopes
from goex.cli.help_text import App
from goex.cli.output import Json, Output

app = App(help="Measure answers against published questions.")

app.command("scopes", short_help="Methods and scopes: right, too wide, too narrow.")(scopes)

app.command("export", short_help="Your own decisions as fine-tuning data.")(export)

_EVERY = 1000  # answers between two lines of progress


@app.command("apibench", short_help="APIBench: right call, wrong call, or invented.")
def apibench(
    api: Annotated[Path, typer.Option("--api", metavar="FILE", help="The API database, JSON lines.")],
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="The questions, JSON lines.")],
    responses: Annotated[Path, typer.Option("--responses", metavar="FILE", help="A model's completions, JSON lines.")],
    as_json: Json = False,
) -> None:
    """Score completions against APIBench: accuracy, hallucination and error, which sum to 100 %."""
    out = Output(as_json)
    from dataclasses import asdict

    from mapper.evaluation.apibench import evaluate

    score = evaluate(api, questions, responses, _progress(out, "completions read"))
    out.json(asdict(score))
    if not as_json:
        out.table(
            ("responses", "accuracy %", "hallucination %", "error %"),
            [(str(score.n), *(f"{x:.2f}" for x in (score.accuracy_pct, score.hallucination_pct, score.error_pct)))],
        )


@app.command("bfcl", short_help="The Berkeley function-calling questions.")
def bfcl(
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with their functions.")],
    outputs: Annotated[Path, typer.Option("--outputs", metavar="FILE", help='Lines {"id", "output"}.')],
    answers: Annotated[
        Path | None,
        typer.Option("--answers", metavar="FILE", help="Possible answers; without them no function fits any question."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a model's calls against the possible answers: function, arguments, types and values."""
    out = Output(as_json)
    from mapper.evaluation.bfcl import evaluate

    verdicts = evaluate(questions, answers, outputs, _progress(out, "outputs checked"))
    accepted = sum(verdict.accepted for verdict in verdicts)
    share = 100 * accepted / len(verdicts)
    out.json(
        {
            "accepted_pct": share,
            "accepted": accepted,
            "n": len(verdicts),
            "results": [{"id": one.id, "accepted": one.accepted, "reason": one.reason} for one in verdicts],
        }
    )
    if not as_json:
        out.table(("questions", "accepted", "%"), [(str(len(verdicts)), str(accepted), f"{share:.2f}")])
        why = Counter(one.reason.partition(":")[0] for one in verdicts if not one.accepted)
        if why:
            out.say()
            out.table(("rejected", "why"), [(str(count), reason) for reason, count in why.most_common(10)])


def _progress(out: Output, what: str) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if done % _EVERY == 0:
            out.progress(f"{done} {what}")

    return progress
