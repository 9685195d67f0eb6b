"""`goex hook` answers each coding agent in its own terms, by what the daemon's rules say."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from goex.cli import hook as hook_command
from goex.coding_agents import hook_formats
from goex.mcp.tools import TOOLS
from mapper.code.folder_shell import read_folder_shell
from policies.errors import Unavailable
from tests.support.command import GOEX, run
from tests.support.daemon import Daemon
from tests.support.hooks import apply_rules, before, decision, hook

RULES = """
@id("no-prod") forbid (principal, action == Action::"files", resource in Folder::"/srv/prod");
@id("no-fetch") forbid (principal, action == Action::"tool", resource)
when { context.hosts.containsAny(["evil.example", "bücher.example"]) };
@id("tests") permit (principal == Agent::"claude", action == Action::"tool", resource in Folder::"/home/me/x")
when { context.arguments has program && context.arguments.program == "make test" };
@id("edits") permit (principal == Agent::"claude", action == Action::"tool", resource in Folder::"/home/me/x/src")
when { context.arguments has kind && context.arguments.kind == "write" };
@id("deploy") @effect("ask") forbid (principal, action == Action::"tool", resource)
when { context.arguments has program && context.arguments.program like "*deploy*" };
"""
X = "/home/me/x"


@pytest.fixture(scope="module")
def bench() -> Iterator[tuple[Daemon, str]]:
    with Daemon() as daemon:
        token = daemon.add_agent("claude")
        apply_rules(daemon, RULES)
        yield daemon, token


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("Bash", {"command": "make test"}, "allow"),
        ("Bash", {"command": "make all"}, ""),
        ("Bash", {"command": "./deploy now"}, "ask"),
        ("Bash", {"command": "rm -rf build"}, "deny"),  # instead
        ("Bash", {"command": "ls"}, ""),
        ("Bash", {"command": "git push"}, ""),
        ("Bash", {"command": "rm /srv/prod/x"}, "deny"),
        ("Write", {"file_path": f"{X}/src/a.py", "content": ""}, "allow"),
        ("Write", {"file_path": f"{X}/src/../b", "content": ""}, ""),
        ("Edit", {"file_path": "/srv/prod/conf", "old_string": "a", "new_string": "b"}, "deny"),
        ("Read", {"file_path": "/srv/prod/conf"}, "deny"),
        ("WebFetch", {"url": "https://evil.example/x", "prompt": ""}, "deny"),
        ("WebFetch", {"url": "https://xn--bcher-kva.example/x", "prompt": ""}, "deny"),
        ("WebFetch", {"url": "https://example.org/x", "prompt": ""}, ""),
        ("mcp__goex__goex_call", {"calls": []}, ""),
        ("TodoWrite", {"todos": []}, ""),
    ],
)
def test_claude(bench: tuple[Daemon, str], tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert decision(hook(*bench, before(tool, X, **arguments))) == expected


def test_what_goex_can_do_is_named(bench: tuple[Daemon, str]) -> None:
    said = hook(*bench, before("Bash", X, command="sed -i s/a/b/ f && mv f g"))
    assert said is not None
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "goex_program" in reason
    assert json.dumps(X) in reason


COMMANDS = {"permit": "make test", "forbid": "rm /srv/prod/x", "ask": "./deploy now", "instead": "touch new"}


@pytest.mark.parametrize(
    ("verdict", "pre", "permission"),
    [("permit", "", "allow"), ("forbid", "deny", "deny"), ("ask", "", ""), ("instead", "deny", "deny")],
)
def test_codex(bench: tuple[Daemon, str], verdict: str, pre: str, permission: str) -> None:
    event = {**before("Bash", X, command=COMMANDS[verdict]), "turn_id": "1"}
    assert decision(hook(*bench, event)) == pre  # it takes nothing but deny before a tool
    assert decision(hook(*bench, {**event, "hook_event_name": "PermissionRequest"})) == permission


def test_codex_patches(bench: tuple[Daemon, str]) -> None:
    patch = "*** Begin Patch\n*** Update File: ok.txt\n*** Add File: /srv/prod/x\n+a\n*** End Patch"
    assert decision(hook(*bench, {**before("apply_patch", X, command=patch), "turn_id": "1"})) == "deny"


PATCH = "*** Begin Patch\n*** Update File: ok.txt\n*** Add File: /srv/prod/x\n+a\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("apply_patch", {"input": PATCH}, "deny"),
        ("apply_patch", PATCH, "deny"),  # as a model writes it
        ("apply_patch", PATCH.replace("/srv/prod/x", f"{X}/x"), ""),
        ("edit", {"path": "/srv/prod/conf", "old_str": "a", "new_str": "b"}, "deny"),
        ("create", {"path": f"{X}/f", "file_text": "a"}, ""),
        ("grep", {"pattern": "a", "paths": ["/srv/prod", X]}, "deny"),
        ("grep", {"pattern": "a", "paths": X}, ""),
        ("edit", {"old_str": "a"}, "ask"),  # of which file?
        ("goex-goex_call", {"calls": []}, ""),
    ],
)
def test_copilot_s_own_tools(bench: tuple[Daemon, str], tool: str, arguments: Any, expected: str) -> None:
    assert decision(hook(*bench, {"toolName": tool, "toolArgs": arguments, "cwd": X})) == expected


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("run_in_terminal", {"command": "rm -rf build", "explanation": "", "isBackground": False}, "deny"),  # instead
        ("run_in_terminal", {"command": "make test"}, "allow"),
        ("create_file", {"filePath": "/srv/prod/x", "content": ""}, "deny"),
        ("create_file", {"filePath": f"{X}/src/x", "content": ""}, "allow"),
        ("create_directory", {"dirPath": "/srv/prod/d"}, "deny"),
        ("multi_replace_string_in_file", {"replacements": [{"filePath": X}, {"filePath": "/srv/prod/x"}]}, "deny"),
        ("fetch_webpage", {"urls": ["https://evil.example/x"], "query": ""}, "deny"),
        ("fetch_webpage", {"urls": ["https://example.org/x"], "query": ""}, ""),
        ("fetch_webpage", {"urls": ["https://example.org/x", "https://evil.example/x"], "query": ""}, "ask"),
        ("mcp_goex_goex_call", {"calls": []}, ""),
    ],
)
def test_vs_code(bench: tuple[Daemon, str], tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert decision(hook(*bench, before(tool, X, **arguments))) == expected


@pytest.mark.parametrize(
    ("verdict", "expected"), [("permit", "allow"), ("forbid", "deny"), ("ask", "ask"), ("instead", "deny")]
)
def test_gemini_and_copilot(bench: tuple[Daemon, str], verdict: str, expected: str) -> None:
    given = {"command": COMMANDS[verdict]}
    gemini = {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": given, "cwd": X}
    said = hook(*bench, gemini)
    assert said is not None and (said["decision"], bool(said["reason"])) == (expected, True)
    said = hook(*bench, {"toolName": "bash", "toolArgs": json.dumps(given), "cwd": X})
    assert said is not None and said["permissionDecision"] == expected


@pytest.mark.parametrize(
    "event",
    ["", "[]", "{", '{"hook_event_name": "PreToolUse"}', '{"hook_event_name": "PreToolUse", "tool_name": "Bash"}'],
)
def test_what_cannot_be_read_is_refused(bench: tuple[Daemon, str], event: str) -> None:
    """Each client takes the status 2 as a no."""
    daemon, token = bench
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    said = run([str(GOEX), "hook"], env=env, folder=Path.cwd(), stdin=event.encode(), seconds=60)
    assert (said.returncode, said.stdout) == (2, b"") and said.stderr


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Bash", {"command": "rm -rf /home/me/x #\ud800"}),
        ("Bash", {"command": "rm /srv/prod/x", "dir_path": "a\0b"}),
        ("Write\ud800", {"file_path": f"{X}/f"}),
        ("Write", {"file_path": "a\0b"}),
        ("Write", {"file_path": "\ud800"}),
    ],
)
def test_what_nothing_here_can_hold_is_refused(bench: tuple[Daemon, str], tool: str, arguments: dict[str, Any]) -> None:
    """The clients go on after any status but 2."""
    daemon, token = bench
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    event = json.dumps(before(tool, X, **arguments)).encode()
    said = run([str(GOEX), "hook"], env=env, folder=Path.cwd(), stdin=event, seconds=60)
    assert (said.returncode, said.stdout) == (2, b"") and said.stderr


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), Unavailable("no")])
def test_a_fault_of_its_own_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fails(text: str) -> None:
        raise error

    monkeypatch.setattr(hook_formats, "read_event", fails)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    with pytest.raises(typer.Exit) as ended:
        hook_command.run()
    said = capsys.readouterr()
    assert ended.value.exit_code == 2 and not said.out and type(error).__name__ in said.err


@pytest.mark.sampled(4)
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&-"])
@pytest.mark.parametrize("event", ["x", json.dumps(before("Bash", X, command="rm /srv/prod/x"))])
def test_what_cannot_be_said_is_a_refusal_too(bench: tuple[Daemon, str], where: str, event: str) -> None:
    daemon, token = bench
    line = ["sh", "-c", f'exec "{GOEX}" hook {where}']
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    said = run(line, env=env, folder=Path.cwd(), stdin=event.encode(), seconds=60)
    answered = event != "x" and where.startswith("2")
    assert (said.returncode, b'"deny"' in said.stdout) == ((0, True) if answered else (2, False)), said


def test_an_interrupt_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hook_formats, "read_event", fails)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    with pytest.raises(KeyboardInterrupt):
        hook_command.run()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~zz/../../.bashrc", "/home/me/.bashrc"),  # a folder of that name, as clients read it
        ("~root/x", "/home/me/project/~root/x"),
        ("~", str(Path.home())),
        ("~/x", str(Path.home() / "x")),
        ("a/~/b", "/home/me/project/a/~/b"),
    ],
)
def test_a_tilde_is_one_s_own_home_alone(path: str, expected: str) -> None:
    for arguments in ({"file_path": path}, {"paths": [path]}):
        use = hook_formats.read_event(json.dumps(before("Write", "/home/me/project", **arguments)))
        assert use is not None and use.request.paths[0] == expected
    use = hook_formats.read_event(json.dumps(before("Bash", "/home/me/project", command="ls", dir_path=path)))
    assert use is not None and use.request.folder == expected


def test_another_event_says_nothing(bench: tuple[Daemon, str]) -> None:
    assert hook(*bench, {"hook_event_name": "Stop"}) is None


@pytest.mark.parametrize(
    ("command", "changes", "within"),
    [
        ("rm -rf a", True, True),
        ("for f in *.txt; do mv \"$f\" old/; done", True, True),
        ("echo a > b", True, True),
        ("ls 2>/dev/null", False, True),
        ("find . -name '*.o' -delete", True, True),
        ("rm ~/a", True, False),
        ("rm $HOME/a", True, False),
        ("rm ../a", True, False),
        ("cp a --target-directory=/etc", True, False),
        ("find . -exec npm i ;", False, False),
        ("ls | xargs rm", False, False),
        ("rm a; npm test", True, False),
        ("rm a; $(curl x)", True, False),
        ("diff <(ls) b > c", True, False),
        ("rm 'a", True, False),
        ("", False, False),
    ],
)  # fmt: skip
def test_what_stays_within_a_folder(command: str, changes: bool, within: bool) -> None:
    found = read_folder_shell(command, "/work")
    assert found.within == within
    assert found.changes == changes or not within


def test_the_tools_that_are_left_out_are_those_of_the_server() -> None:
    assert {tool.name for tool in TOOLS} == hook_formats.OWN_TOOLS


@pytest.mark.parametrize("prefix", ["mcp__goex__", "mcp_goex_", "goex-", "goex/"])
def test_a_tool_of_one_method_is_judged(prefix: str) -> None:
    """Its name could be another server's, too."""
    found = hook_formats.read_event(json.dumps(before(f"{prefix}slack_chat_postMessage", X)))
    assert found is not None and found.request.kind == "other"


def gemini(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": arguments, "cwd": X}


def copilot(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"toolName": tool, "toolArgs": arguments, "cwd": X}


def codex(tool: str, **arguments: Any) -> dict[str, Any]:
    return {**before(tool, X, **arguments), "turn_id": "1"}


@pytest.mark.parametrize(
    ("event", "folder", "paths", "unread"),
    [
        (gemini("run_shell_command", command="ls", dir_path="/srv/prod"), "/srv/prod", [], False),
        (gemini("run_shell_command", command="ls", directory="sub"), f"{X}/sub", [], False),
        (gemini("run_shell_command", command="ls", dir_path="/srv/prod", workdir=X), "/srv/prod", ["/srv/prod"], True),
        (gemini("run_shell_command", command="ls", workdir="/srv/prod"), "/srv/prod", [X, "/srv/prod"], True),
        (gemini("run_shell_command", command="ls", dir_path="a", directory="b"), f"{X}/a", [f"{X}/a", f"{X}/b"], True),
        (codex("Bash", command="ls", workdir="/srv/prod"), "/srv/prod", [], False),
        (before("Bash", "/srv/prod", command="ls", workdir=X), X, ["/srv/prod", X], True),
        (before("Bash", X, command="ls", cwd=X), X, [], False),
    ],
)
def test_where_a_shell_runs_is_read_as_its_client_does(
    event: dict[str, Any], folder: str, paths: list[str], unread: bool
) -> None:
    use = hook_formats.read_event(json.dumps(event))
    assert use is not None and use.request.folder == folder
    assert {*paths} <= {*use.request.paths} and bool(use.unread) == unread
    assert use.request.home == str(Path.home())


def test_a_command_that_is_a_list_keeps_its_words() -> None:
    use = hook_formats.read_event(json.dumps(codex("shell", command=["cat", "#", "../kept/a b"])))
    assert use is not None and use.request.program == "cat '#' '../kept/a b'"
    use = hook_formats.read_event(json.dumps(codex("shell", command=["make", "test"])))
    assert use is not None and use.request.program == "make test"


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (gemini("search_file_content", pattern="x", dir_path="/srv/prod", include="*{,/}"), "deny"),
        (gemini("read_many_files", include=["/srv/prod/a", *(f"f{number}" for number in range(20))]), "deny"),
        (gemini("read_many_files", include=[f"f{number}" for number in range(20)]), "ask"),
        (gemini("read_many_files", include=["*{a,/}*", "/srv/prod/a"]), "deny"),
        (gemini("read_many_files", include=["src/**/*.{ts,tsx}", "README.md"]), ""),
        (before("Glob", X, path="/srv/prod", pattern="*{a,/}*"), "deny"),
        (before("Glob", X, pattern="*{a,/}*"), "ask"),
        (before("Glob", X, pattern="**/*.{py,pyi}"), ""),
        (copilot("write_bash", sessionId="1", input="rm /srv/prod/x\n"), "deny"),
        (copilot("write_bash", sessionId="1", input="make test"), "ask"),
        (codex("Bash", command="apply_patch <<'EOF'\n" + PATCH + "\nEOF"), "deny"),
        (codex("Bash", command=["apply_patch", PATCH]), "deny"),
        (before("Bash", X, command="cat > p <<'E'\n" + PATCH.replace("/srv/prod/", "") + "\nE"), "deny"),  # instead
        (before("PowerShell", X, command="rm x"), ""),
    ],
)
def test_what_is_not_read_whole_may_be_forbidden(
    bench: tuple[Daemon, str], event: dict[str, Any], expected: str
) -> None:
    assert decision(hook(*bench, event)) == expected


def test_paths_of_a_tool_that_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "passwd").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "kept")
    told: tuple[dict[str, Any], ...] = (
        {"source": f"{tmp_path}/kept/passwd", "destination": "x"},
        {"files": [f"{tmp_path}/kept/passwd"]},
        {"edits": [{"file": f"{tmp_path}/kept/new"}]},
        {"from": "../kept/passwd"},
        {"name": "no/../../kept/passwd"},
        {"name": "..\\kept\\passwd"},
        {"name": "%2e%2e%2fkept/passwd"},
        {"name": "%252e%252e/kept/passwd"},
        {"name": "link/../kept/passwd"},  # from where the link leads
        {"uri": f"file://{tmp_path}/kept/passwd"},
        {"uri": f" FILE://localhost{tmp_path}/%6bept/passwd"},
        {"uri": f"FILE:{tmp_path}/kept/passwd"},
        {"uri": "file:../kept/passwd"},
        {"uri": f"view-source:file:///{tmp_path}/kept/passwd"},
        {"contents": {f"{tmp_path}/kept/passwd": "x"}},
    )
    for arguments in told:
        use = hook_formats.read_event(json.dumps(before("mcp__filesystem__use", tmp_path / "sub", **arguments)))
        assert use is not None and not use.unread
        assert any(path.startswith(f"{tmp_path}/kept/") for path in use.request.paths)
    told = (
        {"shell_id": "x"},
        {"text": "/remind me"},
        {"url": "/login"},
        {"query": "a/b", "id": 7},
        {"body": "see\n/etc"},
        {},
    )
    for arguments in told:
        use = hook_formats.read_event(json.dumps(before("mcp__web__use", tmp_path, **arguments)))
        assert use is not None and not use.unread and not use.request.paths
    told = (
        *({name: "cat x"} for name in ("command", "cmd", "input", "script", "code", "shellCommand", "run_command")),
        {"task": {"label": "x", "command": "x"}},
        {"steps": [{"do": "x"}]},
        {"args": ["-c", "x"]},
        {"a": [{"b": {"bashScript": ["x"]}}]},
        {"line": "cd ..; cat x"},
        {"job": "cat /x"},
    )
    for arguments in told:
        use = hook_formats.read_event(json.dumps(before("mcp__shell__use", tmp_path, **arguments)))
        assert use is not None and use.unread
        assert hook_formats.judged(use, "permit", "") is None


def test_where_no_home_is_known_none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, for a user of no name: other tools are judged all the same."""
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    use = hook_formats.read_event(json.dumps(before("Bash", X, command="ls")))
    assert use is not None and not use.request.home and not use.unread
