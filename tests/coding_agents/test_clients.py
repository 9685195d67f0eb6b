"""Claude Code and Codex themselves, with a scripted model, connected by what `goex connect` wrote: a shell command of
their own is turned to GoEx, which asks the person on a terminal, runs it, and takes it back."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon, folder
from tests.coding_agents.installed import client
from tests.coding_agents.scripted_model import Seen, Step, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.hooks import apply_rules
from tests.support.person import approve

__all__ = ["daemon", "folder"]
pytestmark = [pytest.mark.docker, pytest.mark.thorough]
SECONDS = 200


def journey(daemon: Daemon, folder: Path, shell: str, argument: str, prefix: str) -> list[Step]:
    """What the model does. `shell`: the client's own tool, whose command is this argument; `prefix`: of the names of
    GoEx's tools."""
    file = folder / "old.txt"
    action = ""

    def id_of(seen: Seen) -> str:
        nonlocal action
        found = re.search(r"\ba-[0-9a-f]{12,}\b", seen.result)
        assert found, seen.result
        action = found[0]
        return action

    def yes(seen: Seen) -> str:
        """The person allows what waits, on a terminal."""
        id = id_of(seen)
        waiting = daemon.person("WatchApprovals", pb.ApprovalsRequest())
        asked = next(each for each in waiting if each.action_id == id and each.state == "pending")
        waiting.cancel()
        approve([str(GOEX)], asked.id, APPROVAL_PASSPHRASE, env=daemon.env)
        return id

    def by_itself(_: Seen) -> tuple[str, dict[str, object]]:
        return shell, {argument: "rm old.txt", **({"description": "remove it"} if shell == "Bash" else {})}

    def as_it_was_told(seen: Seen) -> tuple[str, dict[str, object]]:
        assert "goex_program" in seen.result, seen.result
        assert file.exists()
        arguments = {"language": "shell", "program": "rm old.txt; echo removed", "folders": [str(folder)]}
        return f"{prefix}goex_program", {**arguments, "wait_seconds": 0}

    def wait(seen: Seen) -> tuple[str, dict[str, object]]:
        assert file.exists()
        return f"{prefix}goex_wait", {"action": yes(seen), "seconds": 50}

    first = ""

    def back(seen: Seen) -> tuple[str, dict[str, object]]:
        nonlocal first
        assert "done" in seen.result and "removed" in seen.result and "exact" in seen.result, seen.result
        assert not file.exists()
        first = action
        return f"{prefix}goex_undo", {"action": first, "wait_seconds": 0}

    def wait_again(seen: Seen) -> tuple[str, dict[str, object]]:
        return f"{prefix}goex_wait", {"action": yes(seen), "seconds": 50}

    def end(seen: Seen) -> str:
        assert "done" in seen.result, seen.result
        assert file.read_text() == "kept"
        assert daemon.person_action(first) == "undone"
        return "It is back."

    return [by_itself, as_it_was_told, wait, back, wait_again, end]


def connected(daemon: Daemon, name: str) -> dict[str, str]:
    """The environment of a client after `goex connect`, its agent named and its token kept."""
    with daemon.terminal("connect", name) as terminal:
        terminal.expect(r"\[y/N\] ")
        terminal.type("y")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0, terminal.text
    # What a client passes on to a server that it starts isn't the whole environment.
    kept = {name: value for name, value in daemon.env.items() if name != "PYTHON_KEYRING_BACKEND"}
    return {**kept, "PATH": os.environ["PATH"]}


def run(command: list[str], env: dict[str, str], folder: Path) -> str:
    given = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": SECONDS}
    said = subprocess.run(command, env=env, cwd=folder, check=False, **given)
    return str(said.stdout + said.stderr)


def test_claude_code(daemon: Daemon, folder: Path) -> None:
    command = client("claude")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "claude")
    # Its first turn doesn't wait for servers; a model is told to call this where one isn't there yet.
    steps: list[Step] = [lambda _: ("WaitForMcpServers", {})]
    steps += journey(daemon, folder, "Bash", "command", "mcp__goex__")
    with serving(steps) as script:
        env |= {"ANTHROPIC_BASE_URL": script.address, "ANTHROPIC_API_KEY": "sk-scripted", "MCP_TIMEOUT": "60000"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        said = run([command, "-p", "Remove old.txt, then take it back."], env, folder)
    script.check()
    assert "It is back." in said


def test_codex(daemon: Daemon, folder: Path) -> None:
    command = client("codex")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "codex")
    steps = journey(daemon, folder, "exec_command", "cmd", "mcp__goex/")
    config = Path(env["HOME"]) / ".codex" / "config.toml"
    written = config.read_text()
    with serving(steps) as script:
        provider = f'name = "s"\nbase_url = "{script.address}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n'
        top = 'model = "gpt-5"\nmodel_provider = "scripted"\napproval_policy = "never"\n'
        config.write_text(f"{top}{written}\n[model_providers.scripted]\n{provider}")
        env |= {"SCRIPTED_KEY": "k"}
        options = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s", "danger-full-access"]
        said = run([command, "exec", *options, "Remove old.txt, then take it back."], env, folder)
    script.check()
    assert "It is back." in said


@pytest.mark.parametrize("rule", ["forbid", "permit"])
def test_claude_code_does_what_the_rules_say(daemon: Daemon, folder: Path, rule: str) -> None:
    """A command is run without any question where a rule permits it, and never where one forbids it."""
    command = client("claude")
    effect = f'@id("made") {rule} (principal, action == Action::"tool", resource in Folder::"{folder}")'
    apply_rules(daemon, effect + ' when { context.arguments has program && context.arguments.program like "make *" };')
    (folder / "Makefile").write_text("it:\n\ttouch made\n")
    token = daemon.add_agent(f"bot-{rule}")
    (daemon.home / "token").write_text(token)
    assert daemon.goex("connect", "claude", "--write", "--token-file", str(daemon.home / "token")).returncode == 0
    told: list[str] = []

    def make(_: Seen) -> tuple[str, dict[str, object]]:
        return "Bash", {"command": "make it", "description": "make it"}

    def end(seen: Seen) -> str:
        told.append(seen.result)
        return "Ended."

    with serving([make, end]) as script:
        env = {**daemon.env, "ANTHROPIC_BASE_URL": script.address, "ANTHROPIC_API_KEY": "sk-scripted"}
        run([command, "-p", "Make it."], {**env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, folder)
    script.check()
    assert (folder / "made").exists() == (rule == "permit")
    assert ("made" in told[0] and "forbid" in told[0]) == (rule == "forbid")
