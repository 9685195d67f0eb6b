"""Attacks through the MCP server."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_mcp.py::"


def _row(name: str, tries: str, refused_by: str, test: str, of: str = "", control: str = "") -> Attack:
    return Attack(
        name=name,
        tries=tries,
        where=Where.MCP,
        refused_by=(refused_by,),
        test=f"{_HERE}test_{test}" + (f"[{of}]" if of else ""),
        control=f"{_HERE}test_control_{test}" + (f"[{control}]" if control else ""),
    )


def _own(verb: str, tool: str) -> Attack:
    tries = f"{verb} another agent's action on the same HTTP server"
    return _row(f"mcp-{tool}-of-another", tries, "an action is its agent's, by token", "neighbour", tool, tool)


ROWS: tuple[Attack, ...] = (
    _own("follow", "goex_wait"),
    _own("read the answer of", "goex_result"),
    _own("undo", "goex_undo"),
    _own("cancel", "goex_cancel"),
    _row("mcp-list-of-another", "list what another agent asked for", "a list is its agent's", "listing"),
    _row(
        "mcp-grant-of-session",
        "use what was allowed for another client's session",
        "a session is its id's",
        "grant_of_session",
    ),
    _row("mcp-session-of-another", "speak in another agent's MCP session", "a session is its agent's", "session"),
    _row("mcp-guessed-token", "guess an agent's token", "the daemon knows each token", "token", "goex_guessed"),
    _row("mcp-person-token", "claim to be the person", "the daemon knows each token", "token", "person"),
    _row("mcp-no-name", "ask without a name over HTTP", "a token for each request", "token", "anonymous"),
    _row("mcp-rebinding", "lead a browser there by DNS", "Host is this machine's", "rebinding", "headers0-421"),
    _row("mcp-page", "send requests from a web page", "Origin is this machine's", "rebinding", "headers2-403"),
    _row("mcp-size", "send 10 MB of arguments", "4 MB a request", "size"),
    _row("mcp-approve", "approve by an argument of a tool", "the schemas of tools", "approval", "approve"),
    _row("mcp-width", "claim a decision with a width", "the schemas of tools", "approval", "decision"),
    _row("mcp-decide", "call a tool that decides", "there is none", "tool_name", "goex_decide"),
    _row("mcp-path", "reach the person's service by a name", "tools are a list", "tool_name", "../Person/Decide"),
    _row("mcp-death", "leave a question behind and die", "a question ends with its stream", "death"),
    _row("mcp-garbage", "end the server with half a message", "requests are parsed", "garbage", "cut"),
    _row("mcp-depth", "end the server with deep nesting", "requests are parsed", "garbage", "deep"),
)
