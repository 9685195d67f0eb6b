"""Attacks through the MCP server."""

from __future__ import annotations

from dataclasses import replace

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_mcp.py::"
_WAITING = "tests/adversarial/test_mcp_waiting.py::"


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


def _waits(name: str, tries: str, refused_by: str, test: str, of: str = "", control: str = "") -> Attack:
    return replace(
        _row(f"mcp-{name}", tries, refused_by, test),
        test=f"{_WAITING}test_{test}" + (f"[{of}]" if of else ""),
        control=f"{_WAITING}test_control_{test}" + (f"[{control}]" if control else ""),
    )


_MUTATED = "tests/adversarial/test_mcp_mutations.py::test_"


def _mutated(name: str, tries: str, refused_by: str = "messages are parsed, or answered with an error") -> Attack:
    tests = (f"{_MUTATED}mutated[{name}]", f"{_MUTATED}control")
    return Attack(f"mcp-{name}", tries, Where.MCP, (refused_by,), *tests)


def _foreign(name: str, tries: str) -> Attack:
    tests = (f"{_MUTATED}of_another[{name}]", f"{_MUTATED}control_of_its_own")
    return Attack(f"mcp-{name}", tries, Where.MCP, ("a session is its agent's",), *tests)


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
    _waits("state-changed", "change a requestState", "states are sealed", "forged", "changed"),
    _waits("state-cut", "cut a requestState short", "states are sealed", "forged", "cut"),
    _waits("state-plain", "write a requestState", "states are sealed", "forged", "plain"),
    _waits("state-own-key", "seal a requestState with another key", "the key is the process's", "forged", "own_key"),
    _waits("state-action", "give an action's id for a requestState", "states are sealed", "forged", "action"),
    _waits("state-replayed", "send a requestState twice, also at once", "a state is taken once", "replayed"),
    _waits("state-expired", "keep a requestState for later", "a state holds for an hour", "expired"),
    _waits("state-of-another", "send another agent's requestState", "a state is its agent's", "state_of_another"),
    _waits(
        "state-other-arguments",
        "use a requestState for other arguments",
        "a state is for one call's arguments",
        "state_for_another_call",
        "arguments",
    ),
    _waits(
        "state-other-tool",
        "use a requestState for another tool",
        "a state is for one tool",
        "state_for_another_call",
        "tool",
    ),
    _waits("state-missing", "answer without the state, to begin a second action", "no state, no answer", "no_state"),
    _waits("form-accepted", "approve by what is filled in", "input decides nothing", "program_says_yes", "state"),
    _waits("task-answered", "approve by tasks/update", "input decides nothing", "program_says_yes", "task"),
    _waits("claims", "say that it fills forms", "no form is ever sent", "claimed_capabilities", "can0"),
    _waits("page-address", "open the person's page with what it was told", "the page's own links", "address"),
    *(
        _waits(f"task-{verb}-of-another", f"{verb} another agent's task", "a task is its agent's", test, method, method)
        for verb, test, method in (
            ("follow", "task_of_another", "tasks/get"),
            ("cancel", "task_of_another", "tasks/cancel"),
            ("answer", "task_of_another", "tasks/update"),
        )
    ),
    _waits("task-undeclared", "use tasks without declaring them", "a declaration in each request", "undeclared"),
    _waits("task-routed", "name one task to a filter, another to GoEx", "header and body agree", "routed_elsewhere"),
    _waits(
        "resource-of-another",
        "read another agent's action",
        "an action is its agent's",
        "resource_of_another",
        "/preview",
        "/preview",
    ),
    _waits(
        "preview-of-another", "preview another agent's action", "an action is its agent's", "preview_of_another", "undo"
    ),
    _waits("cancelled-by-another", "cancel another agent's request", "a request is its session's", "cancelled"),
    _waits("result-asks", "speak as GoEx in a service's answer", "answers are one line of JSON", "result_that_asks"),
    _waits("stdio-broken", "end the server with a broken line", "requests are parsed", "broken_line", "cut"),
    _waits("stdio-size", "send 10 MB of arguments on standard input", "the daemon's sizes", "sized"),
    _mutated("several-at-once", "ask for many actions in one message"),
    _mutated("another-version", "speak another version of JSON-RPC"),
    _mutated("parameters-in-a-list", "pass a call by a list of parameters"),
    _mutated("id-of-nothing", "begin an action by a call that expects no answer"),
    _mutated("id-between-numbers", "the same by an id that is no whole number"),
    _mutated("id-of-an-object", "the same by an id that is an object"),
    _mutated("progress-of-an-object", "have progress told to an object"),
    _mutated("method-in-other-letters", "name a method in other letters"),
    _mutated("wide-letters", "hide a call in UTF-16"),
    _mutated("answer-to-no-question", "answer what the server never asked"),
    _foreign("session-ended-by-another", "end another agent's session"),
    _foreign("session-followed-by-another", "follow another agent's session"),
    Attack(
        "mcp-shared-name",
        "have a tool that is said to read stand for a method that deletes, by a name that both would have",
        Where.MCP,
        ("a name that two would have leads to neither",),
        "tests/adversarial/test_mcp_names.py::test_no_tool_is_another_ones",
        "tests/adversarial/test_mcp_names.py::test_control",
    ),
    Attack(
        "mcp-cancelled-when-answered",
        "withdraw an action by cancelling the request that has its answer",
        Where.MCP,
        ("a request is over with its answer",),
        f"{_MUTATED}cancelled_when_it_was_answered",
        f"{_MUTATED}control",
    ),
)
