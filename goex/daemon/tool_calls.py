"""What the rules say of a tool that an agent's client would run by itself, outside of GoEx: for `goex hook`.

Rules: nothing is looked at on disk, begun or asked. What forbids a program in a folder, or wants it asked, holds for
the client's own tools there, too; a permit holds only where its head names `Action::"tool"`, since one of GoEx's
actions runs in a container and can be taken back, and this isn't and can't. What isn't known is never permitted.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import replace

from goex.engine.breaker import resting_text
from goex.engine.core import Core, Principal
from goex.rpc import goex_pb2 as pb
from mapper.code.folder_shell import FolderShell
from policies.actions import Files, Need, Plan, UndoClass
from policies.errors import GoexError, InvalidInput
from policies.grants import ANONYMOUS
from policies.rules.book import Answer
from policies.rules.facts import TOOL, Question, Situation, entity, questions
from policies.rules.source import Effect
from policies.services import Risk
from runtimes.code.reader import Reader

KINDS = ("shell", "write", "read", "fetch", "other")
MOST_PATHS = 16
LONGEST_PATH = 4096
LONGEST_PROGRAM = 200_000
_INSTEAD = (
    "GoEx can do this in a container, with undo: use the tool goex_program of the MCP server goex with"
    ' {{"language": "shell", "folders": [{folder}], "program": the same command}}. Don\'t try it by another tool.'
)


async def judged(core: Core, reader: Reader, request: pb.JudgeRequest, principal: Principal) -> pb.JudgeReply:
    """The verdict on one use of a tool. Raises InvalidInput; JournalLocked; Unavailable."""
    _check(request)
    core.rules.require_read()
    shell = FolderShell()
    if request.kind == "shell":
        shell = await reader.read_folder_shell(request.program, request.folder, principal.agent)
        core.check_named(principal)  # the agent may have been removed meanwhile, and rules name it
    situation = core.rules.counts.situation(principal.agent, principal.session)
    places = tuple(dict.fromkeys((*request.paths, *shell.paths))) or (request.folder,)
    if shell.paths:
        places = (request.folder, *places)
    refused = _bounds(core, request, principal, places, situation)
    if refused is not None:
        return refused
    try:
        book = core.rules.book
    except GoexError as error:
        return pb.JudgeReply(verdict="ask", reason=error.message)
    own: list[Answer] = []
    goex: list[Answer] = []
    for question, kind in _questions(core, request, principal, places, situation):
        (own if kind == TOOL else goex).append(book.answer(question))
    for effect, verdict, text in (
        (Effect.FORBID, "forbid", "{} forbid it."),
        (Effect.ASK, "ask", "{} want each such action asked for."),
    ):
        said = [each for each in (*own, *goex) if each.effect is effect]
        if said:
            names = tuple(dict.fromkeys(name for each in said for name in each.rules))
            why = text.format("Rules of the person (" + ", ".join(names[:3]) + ")")
            return pb.JudgeReply(verdict=verdict, reason=why, rules=names)
    hides = request.kind == "shell" and not shell.names_all
    if hides and core.settings.confinement.folders:
        return pb.JudgeReply(
            verdict="ask",
            reason="Which files this command works on isn't plain from its words, and folders are confined.",
        )
    if all(each.effect is Effect.PERMIT for each in own) and principal.agent != ANONYMOUS and not hides:
        names = tuple(dict.fromkeys(name for each in own for name in each.rules))
        return pb.JudgeReply(verdict="permit", reason=f"Permitted by {', '.join(names[:3])}.", rules=names)
    if shell.changes and shell.within and request.folder != "/" and "files" in core.runtimes:
        return pb.JudgeReply(verdict="instead", reason=_INSTEAD.format(folder=json.dumps(request.folder)))
    return pb.JudgeReply()


def _bounds(
    core: Core, request: pb.JudgeRequest, principal: Principal, places: tuple[str, ...], situation: Situation
) -> pb.JudgeReply | None:
    """A refusal by what comes before any rule: an agent that rests, and what is confined. Reading outside of the
    confined folders is the client's to ask about."""
    agent = principal.agent
    if (until := core.rules.counts.until(agent, principal.session)) is not None:
        return pb.JudgeReply(verdict="forbid", reason=resting_text(agent, until), rules=("breaker",))
    for place in places:
        plan = _plan(request, place, UndoClass.EXACT)
        refusal = core.settings.confinement.refusal(plan, agent=agent, situation=situation, catalog=core.catalog)
        if refusal:
            verdict = "ask" if request.kind == "read" else "forbid"
            return pb.JudgeReply(verdict=verdict, reason=refusal, rules=("confine",))
    if request.host and core.settings.confinement.refuses_host(request.host):
        return pb.JudgeReply(
            verdict="forbid", reason="This host isn't one of those that actions are confined to.", rules=("confine",)
        )
    return None


def _questions(
    core: Core, request: pb.JudgeRequest, principal: Principal, places: tuple[str, ...], situation: Situation
) -> Iterator[tuple[Question, str]]:
    """For each place the tool itself, and what a program of GoEx's there would be asked as."""
    for place in places:
        (program,) = questions(
            _plan(request, place, UndoClass.EXACT),
            agent=principal.agent,
            situation=situation,
            now=core.clock(),
            catalog=core.catalog,
        )
        yield program, program.kind
        undo = UndoClass.NOTHING if request.kind == "read" else UndoClass.IRREVERSIBLE
        arguments = {"tool": request.tool, "kind": request.kind}
        if request.program:
            arguments["program"] = request.program
        context = {**program.context, "undo": entity("Undo", undo.value), "hosts": [request.host][: bool(request.host)]}
        yield replace(program, kind=TOOL, arguments=arguments, context=context), TOOL


def _plan(request: pb.JudgeRequest, place: str, undo: UndoClass) -> Plan:
    risk = Risk.READ if request.kind == "read" else Risk.DELETE
    need = Need(service="files", account=place, scope=f"files.{risk.word}", risk=risk, methods=("files.run",))
    return Plan(
        action=Files(folder=place, language="shell", program=request.program),
        needs=(need,),
        undo_class=undo,
        undo_text="",
        resolved={"folder": place},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


def _check(request: pb.JudgeRequest) -> None:
    if request.kind not in KINDS:
        raise InvalidInput(f"A tool's kind is one of: {', '.join(KINDS)}.", next_step="Say other for what isn't known.")
    if len(request.tool) > 300 or len(request.host) > 300 or len(request.program) > LONGEST_PROGRAM:
        raise InvalidInput("The tool's name, host or program is too long.", next_step="Leave it to the client.")
    if len(request.paths) > MOST_PATHS:
        raise InvalidInput(f"At most {MOST_PATHS} paths are judged at once.", next_step="Leave it to the client.")
    for path in (request.folder, *request.paths):
        if not path.startswith("/") or len(path) > LONGEST_PATH or "\0" in path or posixpath.normpath(path) != path:
            raise InvalidInput("A path is absolute, and without `.` and `..`.", next_step="Write it out.")
