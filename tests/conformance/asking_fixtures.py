"""The suite's tools that ask the client: by a request of their own, or by an answer that requires input.

GoEx's own tools never ask for what a form holds; these show that the transport and the seal of `requestState` do what
the specification says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from goex.mcp.person_page import Context

Schema = dict[str, Any]
_NAME: Schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_COLOR: Schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
_OK: Schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
_PERSON: Schema = {
    "type": "object",
    "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
    "required": ["username", "email"],
}
_DEFAULTS: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}


def _titled(*names: str) -> list[Schema]:
    return [{"const": f"value{each}", "title": name} for each, name in enumerate(names, 1)]


_ENUMS: Schema = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled("First Option", "Second Option", "Third Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")}},
    },
}


def form(message: str, schema: Schema) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def _words(text: str, tokens: int) -> types.CreateMessageRequest:
    content = types.TextContent(type="text", text=text)
    message = types.SamplingMessage(role="user", content=content)
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


_ROOTS = types.ListRootsRequest()
_ASK_NAME = form("What is your name?", _NAME)
_ASK_OK = form("Please confirm", _OK)
_SAMPLE = _words("What is the capital of France?", 100)
# What each tool asks for, round by round, and whether it keeps a state between them.
ROUNDS: dict[str, tuple[bool, tuple[dict[str, types.InputRequest], ...]]] = {
    "test_input_required_result_elicitation": (False, ({"user_name": _ASK_NAME},)),
    "test_input_required_result_sampling": (False, ({"capital_question": _SAMPLE},)),
    "test_input_required_result_list_roots": (False, ({"client_roots": _ROOTS},)),
    "test_input_required_result_request_state": (True, ({"confirm": _ASK_OK},)),
    "test_input_required_result_tampered_state": (True, ({"confirm": _ASK_OK},)),
    "test_input_required_result_multiple_inputs": (
        True,
        ({"user_name": _ASK_NAME, "greeting": _words("Generate a greeting", 50), "client_roots": _ROOTS},),
    ),
    "test_input_required_result_multi_round": (
        True,
        ({"step1": form("Step 1: your name?", _NAME)}, {"step2": form("Step 2: your favorite color?", _COLOR)}),
    ),
    "test_input_required_result_capabilities": (False, ({"capital_question": _SAMPLE},)),
}
PROMPT = "test_input_required_result_prompt"
PROMPT_ASKS: dict[str, types.InputRequest] = {"user_context": form("What context should the prompt use?", _NAME)}
ASKING = (
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_sampling",
    "test_tool_with_logging",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
)


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


def required(params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    """The next round of a tool of ROUNDS, or its end."""
    keeps, rounds = ROUNDS[params.name]
    given: Mapping[str, Any] = params.input_responses or {}
    so_far = int(params.request_state or "0")
    if so_far < len(rounds) and rounds[so_far].keys() <= given.keys():
        so_far += 1
    if so_far == len(rounds):
        return text(f"state-ok: {', '.join(sorted(given))}")
    return types.InputRequiredResult(input_requests=rounds[so_far], request_state=str(so_far) if keeps else None)


async def asking(context: Context, params: types.CallToolRequestParams) -> Any:
    """A tool that sends the client something while it runs."""
    arguments = params.arguments or {}
    match params.name:
        case "test_missing_capability":
            raise MCPError(
                code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="This tool needs sampling.",
                data={"requiredCapabilities": {"sampling": {}}},
            )
        case "test_streaming_elicitation":
            return types.InputRequiredResult(input_requests={"user_name": _ASK_NAME})
        case "test_tool_with_logging" | "test_logging_tool":
            for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await context.session.send_log_message("info", said, related_request_id=context.request_id)
            return text("It was told.")
        case "test_sampling":
            content = types.TextContent(type="text", text=arguments["prompt"])
            answer = await context.session.create_message(
                [types.SamplingMessage(role="user", content=content)],
                max_tokens=100,
                related_request_id=context.request_id,
            )
            return text(f"LLM response: {getattr(answer.content, 'text', '')}")
    schemas = {"test_elicitation_sep1034_defaults": _DEFAULTS, "test_elicitation_sep1330_enums": _ENUMS}
    schema = schemas.get(params.name, _PERSON)
    given = await context.session.elicit_form(arguments.get("message", "Please"), schema, context.request_id)
    return text(f"Elicitation completed: action={given.action}, content={given.content}")
