"""`goex.v1.Actions`, on both sockets: what agents may do, and the person too. Nothing here can decide anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from goex import __version__
from goex.daemon.action_views import action_view, mapping_view, problem_view
from goex.daemon.agent_views import shown_action, shown_event
from goex.daemon.approval_views import approval_view, brief_view
from goex.daemon.find_views import by_service, found
from goex.daemon.preview_calls import asked_for, preview
from goex.daemon.result_pages import page
from goex.daemon.rpc_context import Callers, streaming, unary
from goex.daemon.tool_calls import judged
from goex.daemon.undo_to import way_back
from goex.daemon.vault_state import VaultState
from goex.engine.core import Principal, Request
from goex.engine.engine import Engine
from goex.engine.events import Approval, Asked, Event, Finished, Mapped, Printed, Progressed, Stepped
from goex.engine.timeline import MOST_STEPS
from goex.journal.actions import ActionRow
from goex.journal.states import UNDER_WAY, State
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.action_json import action_from_json
from policies.actions import Action, ApiCalls, Call, Code, Files, Mongo, Revert
from policies.errors import InvalidInput
from policies.grants import ANONYMOUS
from policies.jsonvalue import parse
from policies.tasks import LARGEST, LONGEST_TITLE, MOST_LINES

LONGEST_INTENT = 10_000  # characters
LONGEST_PROPOSAL = 1_000_000
LONGEST_PROGRAM = 200_000
LONGEST_NAME = 300
LONGEST_FOLDER = 4096
LONGEST_ANSWER = 1000
LONGEST_KEY = 200
MOST_OUTCOME = 64 * 2**20  # our own texts are read whole
MOST_FOLDERS = 8
MOST_SERVICES = 16  # that are named for one program
MOST_METHODS = 64
MOST_CALLS = 32
MOST_LISTED = 1000


class ActionsService(rpc.ActionsServicer):
    """One instance for each socket's server; who is calling comes with each call."""

    def __init__(self, engine: Engine, callers: Callers, vault_state: VaultState) -> None:
        self._engine = engine
        self._callers = callers
        self._vault_state = vault_state
        self._leaving: set[asyncio.Task[None]] = set()

    @unary
    async def Find(self, request: pb.FindRequest, context: Any) -> pb.FindReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        _short(request.query, request.service, request.method)
        accounts = by_service((one.account.service, one.account.name) for one in self._vault_state.records())
        with core.quotas.doing(principal.agent, principal.session):
            index = await self._engine.mapping.ranking() if request.query else None
            reply = await asyncio.to_thread(found, core.catalog, request, accounts, index)
        reply.vault = self._vault_state.state
        reply.folders.extend(core.settings.confinement.folders)
        return reply

    @unary
    async def Map(self, request: pb.MapRequest, context: Any) -> pb.MapReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        core.rules.counts.refuse_resting(principal.agent, principal.session)
        intent = _intent(request.intent)
        with core.quotas.doing(principal.agent, principal.session):
            reply = mapping_view(await self._engine.mapping.map(intent, principal, _answer(request.answer)))
            if request.explain:
                reply.explanation.extend(await self._engine.mapping.explain(intent))
        return reply

    @streaming
    async def Execute(self, request: pb.ExecuteRequest, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        async for event in self._journey(wish(request, earlier_program(self._engine, request, principal)), principal):
            yield event

    @streaming
    async def Revert(self, request: pb.RevertRequest, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        async for event in self._journey(revert_wish(request), principal):
            yield event

    @unary
    async def WayBack(self, request: pb.WayBackRequest, context: Any) -> pb.WayBackReply:
        principal = self._callers.principal(context)
        return await way_back(self._engine, principal, request)

    @streaming
    async def Watch(self, request: pb.ActionId, context: Any) -> AsyncIterator[pb.Event]:
        principal = self._callers.principal(context)
        row = self._owned(request.id, principal)
        async for event in self._follow(row.id, principal):
            yield event

    @unary
    async def Get(self, request: pb.ActionId, context: Any) -> pb.ActionView:
        principal = self._callers.principal(context)
        return shown_action(self._engine.core, self._owned(request.id, principal), principal)

    @unary
    async def Result(self, request: pb.ResultRequest, context: Any) -> pb.ResultReply:
        principal = self._callers.principal(context)
        self._engine.core.quotas.take(principal.agent, principal.session, request.ByteSize())
        row = self._owned(request.id, principal)
        view = shown_action(self._engine.core, row, principal)
        if not view.outcome_json:
            raise InvalidInput(f"{row.id} has no result; it is {view.state}.", next_step="Get says how it stands.")
        return page(parse(view.outcome_json, limit=MOST_OUTCOME), view.kind, request)

    @unary
    async def List(self, request: pb.ListRequest, context: Any) -> pb.ListReply:
        principal = self._callers.principal(context)
        if request.before:
            self._owned(request.before, principal)
        agent = "" if principal.owns_all else principal.agent
        session = principal.session if principal.agent == ANONYMOUS else ""
        rows = self._engine.core.actions.newest(
            agent=agent, session=session, before=request.before, limit=min(request.limit or 50, MOST_LISTED)
        )
        views = [shown_action(self._engine.core, row, principal) for row in rows]
        for view in views if request.brief else ():
            for name in ("request_json", "lines", "outcome_json", "undo_text"):
                view.ClearField(name)
        return pb.ListReply(actions=views)

    @unary
    async def Cancel(self, request: pb.ActionId, context: Any) -> pb.ActionView:
        principal = self._callers.principal(context)
        row = self._owned(request.id, principal)
        ended = await self._engine.cancel(row.id, why="cancelled by who asked")
        return shown_action(self._engine.core, ended, principal)

    @unary
    async def Whoami(self, request: pb.WhoamiRequest, context: Any) -> pb.WhoamiReply:
        peer, principal = self._callers.peer(context), self._callers.principal(context)
        return pb.WhoamiReply(
            agent=principal.agent,
            session=principal.session,
            uid=peer.uid,
            pid=peer.pid,
            socket=peer.socket,
            version=__version__,
        )

    @unary
    async def Judge(self, request: pb.JudgeRequest, context: Any) -> pb.JudgeReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        with core.quotas.doing(principal.agent, principal.session):
            return await judged(core, request, principal)

    @unary
    async def Preview(self, request: pb.PreviewRequest, context: Any) -> pb.DryRunReply:
        principal = self._callers.principal(context)
        core = self._engine.core
        core.quotas.take(principal.agent, principal.session, request.ByteSize())
        action: Action | None = None
        match request.WhichOneof("what"):
            case "request":
                action = wish(request.request).action
            case "revert":
                action = revert_wish(request.revert).action
            case "action_id":
                action = asked_for(self._owned(request.action_id, principal))
        target = self._owned(action.target, principal) if isinstance(action, Revert) else None
        with core.quotas.doing(principal.agent, principal.session):
            return await preview(self._engine, action, target, principal)

    def _owned(self, id: str, principal: Principal) -> ActionRow:
        return owned(self._engine, id, principal)

    async def _journey(self, wish: Request, principal: Principal) -> AsyncIterator[pb.Event]:
        if id := self._engine.already(wish, principal):
            async for event in self._follow(id, principal):
                yield event
            return
        id = self._engine.begin(wish, principal)
        async for event in self._follow(id, principal, new=True):  # it begins when this first waits
            yield event

    async def _follow(self, id: str, principal: Principal, *, new: bool = False) -> AsyncIterator[pb.Event]:
        """Events until the action has ended: that it was received, or (not `new`) how it stands now, and what comes
        then. Leaving early is told to the engine."""
        hub = self._engine.core.hub
        watcher = hub.watch(id)
        try:
            if new:
                watcher.put(Stepped("", "receive", State.RECEIVED))
            for so_far in () if new else self._so_far(id, principal):
                yield so_far
                if so_far.HasField("finished"):
                    return
            while True:
                event = await watcher.get()
                if (told := self._told(id, event, principal)) is not None:
                    yield told
                if isinstance(event, Finished):
                    return
        finally:
            hub.unwatch(id, watcher)
            task = asyncio.ensure_future(self._engine.left(id))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def _so_far(self, id: str, principal: Principal) -> list[pb.Event]:
        """How an action stands: its state, and its end or the questions that are open."""
        row = self._engine.core.actions.get(id)
        found: list[pb.Event | None] = []
        found.append(self._told(id, Stepped("", "", shown_action(self._engine.core, row, principal).state), principal))
        if not self._engine.is_under_way(id) and row.state not in UNDER_WAY:
            found.append(self._told(id, Finished(row=row, problem=self._engine.problem(row)), principal))
        elif row.state in (State.ALLOWED, State.PREPARED, State.RUNNING) and not self._engine.is_under_way(id):
            # An earlier daemon began it, and its end is found out with the vault's keys: waiting would tell nothing.
            self._engine.core.vault.require_open()
        elif row.state is State.ASKING:
            open_ = [one.id for one in self._engine.core.approvals.of_action(id) if one.state == "pending"]
            found += [self._told(id, Asked(question), principal) for question in open_]
        return [event for event in found if event is not None]

    def _told(self, id: str, event: Event, principal: Principal) -> pb.Event | None:
        """An event for whoever follows; None for one that they aren't told."""
        made = self._event(id, event)
        if principal.owns_all or isinstance(event, Printed | Mapped):
            return made
        core = self._engine.core
        return shown_event(core, made, event.row if isinstance(event, Finished) else core.actions.get(id), principal)

    def _event(self, id: str, event: Event) -> pb.Event:
        made = pb.Event(action_id=id)
        match event:
            case Stepped(before, name, after):
                made.state.CopyFrom(pb.StateChange(event=name, to=after, **{"from": before}))
            case Printed(stream, data):
                made.output.CopyFrom(pb.Output(stream=stream, data=data))
            case Progressed(text):
                made.progress = text
            case Mapped(mapping):
                made.mapped.CopyFrom(mapping_view(mapping))
            case Asked(question):
                made.asking.CopyFrom(self.approval(question))
            case Finished():
                finished = pb.Finished(action=action_view(event.row, event.plan), answer=event.answer)
                if event.problem is not None:
                    finished.problem.CopyFrom(problem_view(event.problem))
                made.finished.CopyFrom(finished)
        return made

    def approval(self, question: str, *, brief: bool = False) -> pb.Approval:
        """A question with all that the person is shown; `brief`: as a list shows it."""
        core = self._engine.core
        approval = core.approvals.get(question)
        row = core.actions.get(approval.action_id)
        return self.approval_of(approval, row, brief=brief)

    def approval_of(self, approval: Approval, row: ActionRow, *, brief: bool = False) -> pb.Approval:
        """The same, of what was read already."""
        plan = row.the_plan() if row.plan else None  # a long one isn't kept of what never ran
        if brief or plan is None:
            return brief_view(self._engine.core, approval, row, plan)
        decision = self._engine.asking.decision(row, plan)
        return approval_view(self._engine.core, approval, row, plan, decision)


def owned(engine: Engine, id: str, principal: Principal) -> ActionRow:
    """An action that the principal may see. Raises InvalidInput, the same for another's and for none."""
    row = engine.core.actions.get(id)
    if not principal.owns(row):
        raise InvalidInput(f"There is no action {id[:60]!r}.", next_step="goex log lists them.")
    return row


@dataclass(frozen=True, slots=True)
class Earlier:
    """A program that is asked for once more, and the methods that were found in it: it is held to what it writes out
    in their calls, so naming one of them again doesn't free its arguments."""

    action: Code
    found: frozenset[str] = frozenset()


def earlier_program(engine: Engine, request: pb.ExecuteRequest, principal: Principal) -> Earlier | None:
    """The program that is asked for once more, as it was; None where none is. Raises InvalidInput."""
    if not request.code.again:
        return None
    _short(request.code.again)
    if request.code.program or request.code.language or request.code.profile:
        raise InvalidInput(
            "A program that is run again is as it was.", next_step="Leave out its text, language and profile."
        )
    row = owned(engine, request.code.again, principal)
    plan = row.the_plan() if row.plan else None
    earlier = plan.action if plan else row.action()
    if not isinstance(earlier, Code):
        raise InvalidInput(f"{row.id} isn't a program.", next_step="goex log --kind code lists those that are.")
    if plan is None and request.code.methods:
        raise InvalidInput(
            f"What {row.id} calls was never found out, so nothing can be named beside it.",
            next_step="Ask for the program itself: goex exec --code FILE",
        )
    permits = plan.resolved["permits"] if plan else ()
    return Earlier(earlier, frozenset(f"{each['service']}.{each['method']}" for each in permits if each["lines"]))


def _intent(text: str) -> str:
    if len(text) > LONGEST_INTENT:
        raise InvalidInput(
            f"The request is {len(text)} characters long; at most {LONGEST_INTENT} are read.",
            next_step="Say it shorter, or send finished calls.",
        )
    if "\0" in text:
        raise InvalidInput("The request holds a NUL character.", next_step="Remove it.")
    return text


def revert_wish(request: pb.RevertRequest) -> Request:
    """Parse an undo, redo or commit. Raises InvalidInput."""
    _short(request.verb, request.action_id)
    if len(request.also) > MOST_STEPS:
        raise InvalidInput(f"One commit is of at most {MOST_STEPS} actions.", next_step="Name fewer.")
    _short(*request.also)
    action = action_from_json(
        {
            "kind": "revert",
            "verb": request.verb,
            "target": request.action_id,
            "also": list(request.also),
            "regardless": request.regardless,
        }
    )
    _keyed(request.key)
    return Request(action=action, detach=request.detach, ask_seconds=request.ask_seconds, key=request.key)


def wish(request: pb.ExecuteRequest, earlier: Earlier | None = None) -> Request:
    """Parse what is asked for; sizes first. `earlier` is the program that it asks for again. Raises InvalidInput."""
    action: Action | None = None
    intent = proposal = ""
    match request.WhichOneof("what"):
        case "intent":
            intent = _intent(request.intent)
        case "calls":
            if len(request.calls.calls) > MOST_CALLS:
                raise InvalidInput(
                    f"{len(request.calls.calls)} calls are too many for one action: {MOST_CALLS} at most.",
                    next_step="Make two actions of it.",
                )
            size = sum(len(call.arguments_json) for call in request.calls.calls)
            if size > LONGEST_PROPOSAL:
                raise InvalidInput(
                    f"The calls' arguments are {size} characters long together; at most {LONGEST_PROPOSAL}.",
                    next_step="Make two actions of it.",
                )
            action = ApiCalls(calls=tuple(_call(call) for call in request.calls.calls))
        case "files":
            action = _files(request.files)
        case "sql":
            action = _sql(request.sql)
        case "mongo":
            action = _mongo(request.mongo)
        case "code":
            action = _code(request.code, earlier)
        case "task":
            action = _task(request.task)
        case "proposal":
            proposal = request.proposal
            if len(proposal) > LONGEST_PROPOSAL:
                raise InvalidInput(
                    f"The proposal is {len(proposal)} characters long; at most {LONGEST_PROPOSAL}.",
                    next_step="Make it shorter.",
                )
        case _:
            raise InvalidInput(
                "The request asks for nothing.",
                next_step="Set intent, calls, files, sql, mongo, code, task or proposal.",
            )
    _short(request.database, *request.code_services[:MOST_SERVICES])
    about = [bool(request.database), bool(request.folder), bool(request.code_services)]
    if any(about) and not (intent and sum(about) == 1):
        raise InvalidInput(
            "`database`, `folder` and `code_services` belong to words, one of them at most.",
            next_step="Leave the others out.",
        )
    if len(request.code_services) > MOST_SERVICES:
        raise InvalidInput(f"A program uses at most {MOST_SERVICES} services.", next_step="Name fewer.")
    if len(request.folder) > LONGEST_FOLDER or "\0" in request.folder:
        raise InvalidInput("The folder's name is too long, or holds a NUL.", next_step="Name a folder that is there.")
    _keyed(request.key)
    if request.reads_only and isinstance(action, Files):
        raise InvalidInput("A program on a folder isn't a read.", next_step="Ask for it as what it is: a change.")
    return Request(
        key=request.key,
        reads_only=request.reads_only,
        intent=intent,
        action=action,
        proposal=proposal,
        choice=request.choice,
        answer=_answer(request.answer),
        detach=request.detach,
        ask_seconds=request.ask_seconds,
        database=request.database,
        folder=request.folder,
        code_services=tuple(request.code_services),
    )


def _answer(text: str) -> str:
    if len(text) > LONGEST_ANSWER or "\0" in text:
        raise InvalidInput(f"An answer has at most {LONGEST_ANSWER} characters.", next_step="Make it shorter.")
    return text.strip()


def _keyed(key: str) -> None:
    if len(key) > LONGEST_KEY:
        raise InvalidInput(f"A key has at most {LONGEST_KEY} characters.", next_step="Use a random one of 32.")


def _short(*names: str) -> None:
    """What is journaled and said back with every error must have the size of a name."""
    for name in names:
        if len(name) > LONGEST_NAME:
            raise InvalidInput(
                f"A name is {len(name)} characters long; at most {LONGEST_NAME} are read.",
                next_step="See what there is: goex catalog list",
            )


def _call(call: pb.Call) -> Call:
    _short(call.service, call.method, call.account)
    arguments = parse(call.arguments_json or "{}", what=f"The arguments of {call.service[:60]}.{call.method[:60]}")
    if not isinstance(arguments, dict):
        raise InvalidInput("A call's arguments are a JSON object.", next_step='Write them like {"channel": "#ops"}.')
    return Call(service=call.service, method=call.method, arguments=arguments, account=call.account)


def _files(files: pb.FilesProgram) -> Action:
    if files.language not in ("shell", "python"):
        raise InvalidInput(
            f"{files.language[:40]!r} isn't a language that runs on files.", next_step="shell or python."
        )
    if len(files.program) > LONGEST_PROGRAM:
        raise InvalidInput(
            f"The program is {len(files.program)} characters long; at most {LONGEST_PROGRAM}.",
            next_step="Put its data into the folder.",
        )
    if "\0" in files.program or "\0" in files.folder:
        raise InvalidInput("There is a NUL character in the program or in the folder's name.", next_step="Remove it.")
    if len(files.folder) > LONGEST_FOLDER:
        raise InvalidInput(
            f"The folder's name is {len(files.folder)} characters long; at most {LONGEST_FOLDER} are read.",
            next_step="Name a folder that is there.",
        )
    if not files.program.strip():
        raise InvalidInput("The program is empty.", next_step="Say what is to be run.")
    if len(files.undo) > LONGEST_PROGRAM or "\0" in files.undo or len(files.preview) > LONGEST_NAME:
        raise InvalidInput("The program's undo, or the dry run's name, is too long.", next_step="Leave it out.")
    if len(files.more) > MOST_FOLDERS or any(len(each) > LONGEST_FOLDER or "\0" in each for each in files.more):
        raise InvalidInput(
            f"A program works on at most {MOST_FOLDERS} folders.", next_step="Name fewer, by their paths."
        )
    made: dict[str, str] = {"kind": "files", "folder": files.folder, "language": files.language}
    made |= {"program": files.program, "undo": files.undo, "preview": files.preview}
    return action_from_json({**made, "more": list(files.more)})


def _code(code: pb.CodeProgram, earlier: Earlier | None) -> Action:
    """A program for services; or an earlier one once more, with its services and methods and those named beside."""
    if len(code.services) > MOST_SERVICES or len(code.methods) > MOST_METHODS:
        raise InvalidInput(
            f"A program names at most {MOST_SERVICES} services and {MOST_METHODS} methods.", next_step="Name fewer."
        )
    _short(code.language, code.profile, code.again, *code.services, *code.methods)
    if earlier is not None:
        action = earlier.action
        added = [name for name in code.methods if name not in earlier.found]
        return replace(
            action,
            services=tuple(dict.fromkeys((*action.services, *code.services))),
            methods=tuple(dict.fromkeys((*action.methods, *added))),
        )
    if len(code.program) > LONGEST_PROGRAM:
        raise InvalidInput(
            f"The program is {len(code.program)} characters long; at most {LONGEST_PROGRAM}.",
            next_step="Make it shorter.",
        )
    if "\0" in code.program or not code.program.strip():
        raise InvalidInput("The program is empty, or holds a NUL character.", next_step="Say what is to be run.")
    made: dict[str, Any] = {"kind": "code", "language": code.language, "program": code.program}
    made |= {"services": list(code.services), "methods": list(code.methods), "profile": code.profile or "code"}
    return action_from_json(made)


def _sql(program: pb.SqlProgram) -> Action:
    _short(program.database)
    if not program.database:
        raise InvalidInput("On which database?", next_step="Name its entry: goex db list")
    for text, what in ((program.statements, "statements"), (program.undo, "statements that take it back")):
        if len(text) > LONGEST_PROGRAM:
            raise InvalidInput(
                f"The {what} are {len(text)} characters long; at most {LONGEST_PROGRAM} are read.",
                next_step="Make several actions of them.",
            )
        if "\0" in text:
            raise InvalidInput(f"There is a NUL character in the {what}.", next_step="Remove it.")
    made: dict[str, str] = {"kind": "sql", "database": program.database, "statements": program.statements}
    return action_from_json({**made, "policy": program.policy, "undo": program.undo})


def _task(task: pb.Task) -> Action:
    _short(task.agent)
    if len(task.title) > LONGEST_TITLE or len(task.allows) > MOST_LINES:
        raise InvalidInput(
            f"A task has at most {MOST_LINES} lines, and a title of {LONGEST_TITLE} characters.",
            next_step="Make it smaller.",
        )
    if sum(len(line.arguments_json) for line in task.allows) > LARGEST:
        raise InvalidInput(f"A task's bounds are at most {LARGEST} characters.", next_step="Make it smaller.")
    lines = []
    for line in task.allows:
        _short(line.service, line.method)
        if len(line.account) > LONGEST_FOLDER:
            raise InvalidInput("An account's name is too long.", next_step="goex auth list")
        bounds = parse(line.arguments_json, what="The bounds of a task") if line.arguments_json else None
        named = {"service": line.service, "method": line.method, "account": line.account}
        lines.append({**named, "arguments": bounds, "times": line.times})
    made = {"kind": "task", "title": task.title, "allows": lines, "seconds": task.seconds, "agent": task.agent}
    return action_from_json(made)


def _mongo(program: pb.MongoProgram) -> Action:
    _short(program.database)
    if not program.database:
        raise InvalidInput("On which database?", next_step="Name its entry: goex db list")
    size = sum(len(text) for text in program.operations_json)
    if not program.operations_json or size > LONGEST_PROPOSAL:
        raise InvalidInput(
            f"The operations are {size} characters long together: 1 to {LONGEST_PROPOSAL} are read.",
            next_step="Make several actions of them." if size else "Name one.",
        )
    return Mongo(database=program.database, operations=tuple(program.operations_json))
