"""Parses what a caller asks for, sizes first: `goex.v1` messages become the engine's requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast, get_args

from goex.engine.core import Principal, Request, unknown_action
from goex.engine.engine import Engine
from goex.engine.timeline import MOST_STEPS
from goex.journal.actions import ActionRow
from goex.rpc import goex_pb2 as pb
from policies.actions import (
    LANGUAGES,
    Action,
    ApiCalls,
    Call,
    Code,
    Files,
    FilesLanguage,
    Mongo,
    Revert,
    Sql,
    UndoPolicy,
    Verb,
)
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, parse
from policies.stages import earlier_actions
from policies.tasks import DEFAULT_SECONDS, LARGEST, LONGEST_TITLE, MOST_LINES, Task
from policies.typed_json import from_json, to_json

LONGEST_INTENT = 10_000  # characters
LONGEST_PROPOSAL = 1_000_000
LONGEST_PROGRAM = 200_000
LONGEST_NAME = 300
LONGEST_FOLDER = 4096
LONGEST_ANSWER = 1000
LONGEST_KEY = 200
MOST_FOLDERS = 8
MOST_SERVICES = 16  # that are named for one program
MOST_METHODS = 64
MOST_CALLS = 32
MOST_VALUES = 20_000  # in all that is written as JSON: many small ones take far longer to look at than their size says

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_VALUE = re.compile(r"[,\[{]")


def owned(engine: Engine, id: str, principal: Principal) -> ActionRow:
    """An action that the principal may see. Raises InvalidInput, the same for another's and for none, and as soon."""
    found = engine.core.actions.find(id, principal.own)
    if found is None or not principal.owns(found):
        raise unknown_action(id, principal)
    return found


@dataclass(frozen=True, slots=True)
class Earlier:
    """A program that is asked for once more, and the methods that were found in it: it is held to what it writes out
    in their calls, so naming one of them again doesn't free its arguments."""

    action: Code
    found: frozenset[str] = frozenset()


_ANY_PROGRAM = Earlier(Code(language="python", program="", services=()))


def earlier_program(engine: Engine, request: pb.ExecuteRequest, principal: Principal) -> Earlier | None:
    """The program that is asked for once more, as it was; None where none is. Raises InvalidInput."""
    if not request.code.again:
        return None
    _check_again(request.code)
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


def _check_again(code: pb.CodeProgram) -> None:
    checked_names(code.again)
    if code.program or code.language or code.profile:
        raise InvalidInput(
            "A program that is run again is as it was.", next_step="Leave out its text, language and profile."
        )


def checked_intent(text: str) -> str:
    if len(text) > LONGEST_INTENT:
        raise InvalidInput(
            f"The request is {len(text)} characters long; at most {LONGEST_INTENT} are read.",
            next_step="Say it shorter, or send finished calls.",
        )
    if "\0" in text:
        raise InvalidInput("The request holds a NUL character.", next_step="Remove it.")
    return text


def parse_revert(request: pb.RevertRequest) -> Request:
    """Parse an undo, redo or commit. Raises InvalidInput."""
    checked_names(request.verb, request.action_id)
    if len(request.also) > MOST_STEPS:
        raise InvalidInput(f"One commit is of at most {MOST_STEPS} actions.", next_step="Name fewer.")
    checked_names(*request.also)
    if request.verb not in get_args(Verb):
        raise InvalidInput(f"Unknown verb {request.verb!r}.", next_step="undo, redo or commit.")
    action = Revert(
        verb=cast(Verb, request.verb),
        target=request.action_id,
        also=tuple(request.also),
        regardless=request.regardless,
    )
    _keyed(request.key)
    return Request(action=action, detach=request.detach, ask_seconds=request.ask_seconds, key=request.key)


def parse_execute(request: pb.ExecuteRequest, earlier: Earlier | None = None) -> Request:
    """Parse what is asked for; sizes first. `earlier` is the program that it asks for again. Raises InvalidInput."""
    action: Action | None = None
    intent = proposal = ""
    match request.WhichOneof("what"):
        case "intent":
            intent = checked_intent(request.intent)
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
            _few_values(call.arguments_json for call in request.calls.calls)
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
    checked_names(request.database, request.account, *request.code_services[:MOST_SERVICES])
    about = [bool(request.database), bool(request.folder), bool(request.code_services)]
    if any(about) and not (intent and sum(about) == 1):
        raise InvalidInput(
            "`database`, `folder` and `code_services` belong to words, one of them at most.",
            next_step="Leave the others out.",
        )
    if request.account and (not intent or any(about)):
        raise InvalidInput(
            "`account` belongs to words that are about services.", next_step="Name the account in each call instead."
        )
    if len(request.code_services) > MOST_SERVICES:
        raise InvalidInput(f"A program uses at most {MOST_SERVICES} services.", next_step="Name fewer.")
    if len(request.folder) > LONGEST_FOLDER or "\0" in request.folder:
        raise InvalidInput("The folder's name is too long, or holds a NUL.", next_step="Name a folder that is there.")
    _keyed(request.key)
    if request.reads_only and isinstance(action, Files):
        if action.more or action.undo or action.preview:
            raise InvalidInput(
                "A program that only reads has one folder, and nothing to take back.", next_step="Leave the rest out."
            )
        action = replace(action, reads=True)
    return Request(
        key=request.key,
        reads_only=request.reads_only,
        intent=intent,
        action=action,
        proposal=proposal,
        choice=request.choice,
        answer=checked_answer(request.answer),
        sent=_sent(request, action) if request.key else None,
        detach=request.detach,
        ask_seconds=request.ask_seconds,
        database=request.database,
        account=request.account,
        folder=request.folder,
        code_services=tuple(request.code_services),
    )


def parse_sent(request: pb.ExecuteRequest | pb.RevertRequest) -> Request:
    """Parse what a request with a key says, whatever the earlier program is that it asks for again. Raises
    InvalidInput."""
    if isinstance(request, pb.RevertRequest):
        return parse_revert(request)
    if not request.code.again:
        return parse_execute(request)
    _check_again(request.code)
    return parse_execute(request, _ANY_PROGRAM)


def _sent(request: pb.ExecuteRequest, action: Action | None) -> JsonObject | None:
    """What a request says of an action that is made of an earlier one; None of one that it says whole."""
    if request.code.again:
        code = request.code
        return {"again": code.again, "services": [*code.services], "methods": [*code.methods]}
    if isinstance(action, ApiCalls) and earlier_actions(action.calls):
        return to_json(action)
    return None


def checked_answer(text: str) -> str:
    if len(text) > LONGEST_ANSWER or "\0" in text:
        raise InvalidInput(f"An answer has at most {LONGEST_ANSWER} characters.", next_step="Make it shorter.")
    return text.strip()


def _keyed(key: str) -> None:
    if len(key) > LONGEST_KEY:
        raise InvalidInput(f"A key has at most {LONGEST_KEY} characters.", next_step="Use a random one of 32.")


def _few_values(texts: Iterable[str]) -> None:
    """Raise InvalidInput for JSON that holds too many values, before it is parsed."""
    found = sum(len(_VALUE.findall(_TEXT.sub("", text))) for text in texts)
    if found > MOST_VALUES:
        raise InvalidInput(
            f"The arguments hold {found} values; at most {MOST_VALUES} are read.",
            next_step="Make several actions of it.",
        )


def checked_names(*names: str) -> None:
    """What is journaled and said back with every error must have the size of a name."""
    for name in names:
        if len(name) > LONGEST_NAME:
            raise InvalidInput(
                f"A name is {len(name)} characters long; at most {LONGEST_NAME} are read.",
                next_step="Write it as it is listed.",
            )


def _call(call: pb.Call) -> Call:
    checked_names(call.service, call.method, call.account)
    arguments = parse(call.arguments_json or "{}", what=f"The arguments of {call.service[:60]}.{call.method[:60]}")
    if not isinstance(arguments, dict):
        raise InvalidInput("A call's arguments are a JSON object.", next_step='Write them like {"channel": "#ops"}.')
    return Call(service=call.service, method=call.method, arguments=arguments, account=call.account)


def _files(files: pb.FilesProgram) -> Action:
    if files.language not in get_args(FilesLanguage):
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
    return Files(
        folder=files.folder,
        language=cast(FilesLanguage, files.language),
        program=files.program,
        undo=files.undo,
        preview=files.preview,
        more=tuple(files.more),
    )


def _code(code: pb.CodeProgram, earlier: Earlier | None) -> Action:
    """A program for services; or an earlier one once more, with its services and methods and those named beside."""
    if len(code.services) > MOST_SERVICES or len(code.methods) > MOST_METHODS:
        raise InvalidInput(
            f"A program names at most {MOST_SERVICES} services and {MOST_METHODS} methods.", next_step="Name fewer."
        )
    checked_names(code.language, code.profile, code.again, *code.services, *code.methods)
    if earlier is not None:
        action = earlier.action
        added = [name for name in code.methods if name not in earlier.found]
        services = tuple(dict.fromkeys((*action.services, *code.services)))
        methods = tuple(dict.fromkeys((*action.methods, *added)))
        if len(services) > max(MOST_SERVICES, len(action.services)) or (added and len(methods) > MOST_METHODS):
            raise InvalidInput(
                f"With what it named before these are more than {MOST_SERVICES} services or {MOST_METHODS} methods.",
                next_step="Ask for the program itself: goex exec --code FILE",
            )
        return replace(action, services=services, methods=methods)
    if len(code.program) > LONGEST_PROGRAM:
        raise InvalidInput(
            f"The program is {len(code.program)} characters long; at most {LONGEST_PROGRAM}.",
            next_step="Make it shorter.",
        )
    if "\0" in code.program or not code.program.strip():
        raise InvalidInput("The program is empty, or holds a NUL character.", next_step="Say what is to be run.")
    if code.language not in LANGUAGES:
        raise InvalidInput(
            f"{code.language!r} isn't a language that code runs in.", next_step=f"Use one of: {', '.join(LANGUAGES)}."
        )
    return Code(
        language=code.language,
        program=code.program,
        services=tuple(code.services),
        methods=tuple(code.methods),
        profile=code.profile or "code",
    )


def _sql(program: pb.SqlProgram) -> Action:
    checked_names(program.database)
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
    if program.policy not in get_args(UndoPolicy):
        raise InvalidInput(
            f"{program.policy[:40]!r} isn't a way to take back.", next_step="versioning, reversal and pairs are."
        )
    return Sql(
        database=program.database,
        statements=program.statements,
        policy=cast(UndoPolicy, program.policy),
        undo=program.undo,
    )


def _task(task: pb.Task) -> Action:
    checked_names(task.agent)
    if len(task.title) > LONGEST_TITLE or len(task.allows) > MOST_LINES:
        raise InvalidInput(
            f"A task has at most {MOST_LINES} lines, and a title of {LONGEST_TITLE} characters.",
            next_step="Make it smaller.",
        )
    if sum(len(line.arguments_json) for line in task.allows) > LARGEST:
        raise InvalidInput(f"A task's bounds are at most {LARGEST} characters.", next_step="Make it smaller.")
    _few_values(line.arguments_json for line in task.allows)
    lines = []
    for line in task.allows:
        checked_names(line.service, line.method)
        if len(line.account) > LONGEST_FOLDER:
            raise InvalidInput("An account's name is too long.", next_step="goex auth list")
        bounds = parse(line.arguments_json, what="The bounds of a task") if line.arguments_json else None
        named = {"service": line.service, "method": line.method, "account": line.account}
        lines.append({**named, "arguments": bounds, "times": line.times})
    made = {"title": task.title, "allows": lines, "seconds": task.seconds or DEFAULT_SECONDS, "agent": task.agent}
    return from_json(Task, made, "The task")


def _mongo(program: pb.MongoProgram) -> Action:
    checked_names(program.database)
    if not program.database:
        raise InvalidInput("On which database?", next_step="Name its entry: goex db list")
    size = sum(len(text) for text in program.operations_json)
    if not program.operations_json or size > LONGEST_PROPOSAL:
        raise InvalidInput(
            f"The operations are {size} characters long together: 1 to {LONGEST_PROPOSAL} are read.",
            next_step="Make several actions of them." if size else "Name one.",
        )
    _few_values(program.operations_json)
    return Mongo(database=program.database, operations=tuple(program.operations_json))
