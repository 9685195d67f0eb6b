"""A tool's arguments as the daemon's request. Nothing is decided here: whatever is asked for, the daemon looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goex.rpc import goex_pb2 as pb
from goex.task_proposal import proposal
from policies.errors import InvalidInput
from policies.jsonvalue import canonical

Arguments = Mapping[str, Any]


def execute(tool: str, arguments: Arguments) -> pb.ExecuteRequest:
    """What goex_read, goex_call, goex_program, goex_sql or goex_task asks for. Raises InvalidInput."""
    if tool == "goex_task":
        return proposal(arguments, key=arguments.get("key", ""))
    request = pb.ExecuteRequest(key=arguments.get("key", ""))
    if tool == "goex_read":
        request.reads_only = True
        if sum(name in arguments for name in ("calls", "sql", "program")) != 1:
            raise InvalidInput(
                "Give one of calls, database and sql, or folder and program.", next_step="Leave the others out."
            )
    if "calls" in arguments:
        request.calls.calls.extend(_call(each) for each in arguments["calls"])
    elif tool == "goex_read" and "program" in arguments:
        language, program = arguments.get("language", "shell"), arguments["program"]
        folder = arguments.get("folder", "")
        request.files.CopyFrom(pb.FilesProgram(folder=folder, language=language, program=program))
    elif tool == "goex_program":
        _program(request, arguments)
    else:
        sql = arguments.get("statements") or arguments.get("sql", "")
        program = pb.SqlProgram(database=arguments.get("database", ""), statements=sql)
        program.policy = arguments.get("policy", "")
        request.sql.CopyFrom(program)
    return request


def of_method(method: str, arguments: Arguments, *, reads: bool) -> pb.ExecuteRequest:
    """What the tool of one method asks for."""
    call = _call({"method": method, "arguments": arguments})
    return pb.ExecuteRequest(calls=pb.Calls(calls=[call]), reads_only=reads)


def revert(arguments: Arguments) -> pb.RevertRequest:
    return pb.RevertRequest(
        action_id=arguments["action"], verb=arguments.get("verb", "undo"), key=arguments.get("key", "")
    )


def preview(arguments: Arguments) -> pb.PreviewRequest:
    """What goex_preview asks for. Raises InvalidInput."""
    if ("calls" in arguments) == ("action" in arguments):
        raise InvalidInput("Give either calls, or an action.", next_step="Leave the other out.")
    if "calls" in arguments:
        calls = pb.Calls(calls=[_call(each) for each in arguments["calls"]])
        return pb.PreviewRequest(request=pb.ExecuteRequest(calls=calls))
    if "verb" in arguments:
        return pb.PreviewRequest(revert=revert(arguments))
    return pb.PreviewRequest(action_id=arguments["action"])


def _call(written: Arguments) -> pb.Call:
    service, _, method = written["method"].partition(".")
    if not method:
        raise InvalidInput(
            f"{written['method'][:80]!r} isn't a method's name.",
            next_step="Find it: goex_find with what to do in words",
        )
    return pb.Call(
        service=service,
        method=method,
        arguments_json=canonical(written.get("arguments", {})).decode("utf-8"),
        account=written.get("account", ""),
    )


def _program(request: pb.ExecuteRequest, arguments: Arguments) -> None:
    language, program = arguments["language"], arguments["program"]
    folders = arguments.get("folders", [])
    named = arguments.get("services", []), arguments.get("methods", [])
    if folders and any(named):
        raise InvalidInput(
            "A program works on folders or with services, not both.", next_step="Make two actions of it."
        )
    if folders:
        first, *more = folders
        request.files.CopyFrom(pb.FilesProgram(folder=first, language=language, program=program, more=more))
    else:
        services, methods = named
        request.code.CopyFrom(pb.CodeProgram(language=language, program=program, services=services, methods=methods))
