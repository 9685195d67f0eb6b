"""Our server object with the tools, prompts and resources that the conformance suite's scenarios ask for by name.

`python -m tests.conformance.fixtures` serves it on a free port of 127.0.0.1, which it prints. The transport, the
dispatch of tools and the checks of their arguments are the shipped ones.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from goex.loopback import listening
from goex.mcp import mcp_tasks, transports
from goex.mcp.daemon_link import DaemonLink
from goex.mcp.person_page import Context
from goex.mcp.server import Door, server
from tests.conformance.asking_fixtures import ASKING, PROMPT, PROMPT_ASKS, ROUNDS, asking, required, text
from tests.conformance.task_fixtures import TOOLS, Jobs

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00").decode()
TEMPLATE = "test://template/"


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _held(uri: str, text: str, kind: str = "text/plain") -> types.EmbeddedResource:
    held = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=held)


IMAGE = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
CONTENT: dict[str, list[Any]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")],
    "test_embedded_resource": [_held("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        IMAGE,
        _held("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "test_error_handling": [_text("This tool intentionally returns an error for testing")],
    "test_tool_with_progress": [_text("Progress was told.")],
    "json_schema_2020_12_tool": [_text("JSON Schema 2020-12 tool called.")],
}
ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", **ADDRESS}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    PROMPT: [],
}


HEADER: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


class Fixtures(Door):
    """The shipped tools and the suite's."""

    def __init__(self, link: DaemonLink) -> None:
        super().__init__(link, transports.bearer, {})
        schemas: dict[str, dict[str, Any]] = {"test_header": HEADER, "json_schema_2020_12_tool": SCHEMA}
        schemas |= {name: {"type": "object", "properties": properties} for name, properties in TOOLS.items()}
        made = [
            types.Tool(
                name=name,
                description=f"A tool of the suite: {name}",
                input_schema=schemas.get(name, {"type": "object"}),
            )
            for name in (*CONTENT, *ROUNDS, *ASKING, *TOOLS, "test_header")
        ]
        self.tools = (*self.tools, *made)
        self.jobs = Jobs()

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        if params.name in ROUNDS:
            return required(params)
        if params.name in ASKING:
            return await asking(context, params)
        if params.name in TOOLS:
            return await self.jobs.call(context, params)
        if params.name == "test_header":
            return text("It was read.")
        if params.name not in CONTENT:
            return await super().call_tool(context, params)
        if params.name == "test_tool_with_progress":
            for done in (0, 50, 100):
                await context.session.report_progress(done, 100)
        return types.CallToolResult(content=CONTENT[params.name], is_error=params.name == "test_error_handling")


async def _prompts(_: Context, __: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=f"A prompt of the suite: {name}",
                arguments=[types.PromptArgument(name=each, description=each, required=True) for each in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def _prompt(
    _: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    if params.name == PROMPT and not params.input_responses:
        return types.InputRequiredResult(input_requests=PROMPT_ASKS)
    content: dict[str, list[Any]] = {
        "test_simple_prompt": [_text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            _text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            _held(given.get("resourceUri", "test://none"), "Embedded resource content for testing."),
            _text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, _text("Please analyze the image above.")],
        PROMPT: [_text("It was asked.")],
    }
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=each) for each in content[params.name]]
    )


async def _resources(_: Context, __: Any) -> types.ListResourcesResult:
    listed = (("test://static-text", "text/plain"), ("test://static-binary", "image/png"))
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri, mime_type=kind) for uri, kind in listed]
    )


async def _templates(_: Context, __: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template=f"{TEMPLATE}{{id}}/data", name="data", mime_type="application/json")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        return types.ReadResourceResult(
            contents=[types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)]
        )
    if uri.startswith(TEMPLATE):
        id = uri.removeprefix(TEMPLATE).partition("/")[0]
        text = f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        )
    if uri != "test://static-text":
        from mcp.shared.exceptions import MCPError

        raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})
    text = "This is the content of the static text resource."
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)])


async def _empty(_: Context, __: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def _complete(_: Context, __: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


def made(link: DaemonLink) -> Server[Any]:
    """The server object with what the suite asks for."""
    door = Fixtures(link)
    found = server(door)
    mcp_tasks.offer(found, door.jobs)
    handlers: tuple[tuple[str, Any, Any], ...] = (
        ("prompts/list", types.PaginatedRequestParams, _prompts),
        ("prompts/get", types.GetPromptRequestParams, _prompt),
        ("resources/list", types.PaginatedRequestParams, _resources),
        ("resources/templates/list", types.PaginatedRequestParams, _templates),
        ("resources/read", types.ReadResourceRequestParams, _resource),
        ("completion/complete", types.CompleteRequestParams, _complete),
        ("logging/setLevel", types.SetLevelRequestParams, _empty),
        ("resources/subscribe", types.SubscribeRequestParams, _empty),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, _empty),
    )
    for method, params, handler in handlers:
        found.add_request_handler(method, params, handler)
    return found


async def main(socket: str) -> None:
    link = DaemonLink(Path(socket))
    with listening(0) as listener:
        await transports.serve(made(link), link, listener, transports.say)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
