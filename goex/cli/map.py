"""`goex map`: a dry run of the mapping. Nothing is asked for, and nothing runs."""

from __future__ import annotations

from typing import Annotated

import typer

from goex.cli.output import Json, Output, shown
from policies.errors import ExitStatus

_LIKELY = 0.05  # of a candidate's score; 1 is certain


def run(
    words: Annotated[list[str], typer.Argument(help="What you want, in words.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which words point to which services and methods.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show which calls your words become, with which scopes, and how sure that is. Runs nothing."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.exec import Statements, build
    from goex.cli.follow import show_candidates, show_clarification

    intent = build(words, [], "", None, None, None, "", Statements()).intent
    with connect(out) as client:
        out.progress("Mapping.")
        reply = client.map(intent, explain=explain)
    out.message(reply)
    if not out.as_json:
        if reply.sure:  # nobody would be asked to choose the others: those that are no reading of the words aren't told
            likely = [one for one in reply.candidates[1:] if one.score >= _LIKELY]
            del reply.candidates[1:]
            reply.candidates.extend(likely)
        if len(reply.candidates) > 1:
            which = "goex exec takes the first" if reply.sure else "one would run"
            out.say(f"Alternatives, of which {which}:", "dim")
        show_candidates(out, reply, all_of_them=True)
        if reply.HasField("clarification"):
            show_clarification(out, reply.clarification)
        for line in reply.explanation:
            out.say(shown(line), "dim")
    if not reply.candidates and not reply.HasField("clarification"):
        out.progress("See what there is: goex catalog list")
    elif not reply.sure:
        out.progress("It isn't sure enough: goex exec would ask you to choose.")
    raise typer.Exit(0 if reply.candidates and reply.sure else int(ExitStatus.AMBIGUOUS))
