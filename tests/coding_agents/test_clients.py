"""Claude Code, Codex, Gemini CLI and Copilot CLI themselves, with a scripted model, connected by what `goex connect`
wrote: a shell command of their own is turned to GoEx, which asks the person on a terminal, runs it, and takes it back;
then a message to a homeserver, asked for, sent, read and taken back in the same way."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.conftest import daemon, folder
from tests.coding_agents.installed import client
from tests.coding_agents.scripted_model import Seen, Step, serving
from tests.services.synapse import Synapse
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.hooks import apply_rules
from tests.support.person import approve

__all__ = ["daemon", "folder"]
pytestmark = [pytest.mark.docker, pytest.mark.synapse, pytest.mark.thorough, pytest.mark.timeout(700)]
SECONDS = 400


@dataclass
class Room:
    """A room of the homeserver, and the token of its owner."""

    server: Synapse
    token: str
    id: str

    @property
    def texts(self) -> list[str]:
        return self.server.texts(self.token, self.id)


@pytest.fixture(scope="module")
def room(daemon: Daemon, synapse: Synapse) -> Room:
    """A room whose owner's token is in the vault."""
    token = synapse.register("coding-agents")
    request = pb.VaultPutRequest(service="matrix", account="home", secret=token.encode(), base_url=synapse.url)
    request.private, request.passphrase = True, APPROVAL_PASSPHRASE
    daemon.person("VaultPut", request)
    return Room(synapse, token, synapse.create_room(token, "Coding agents"))


@dataclass
class Journey:
    """What the model does. `shell`: the client's own tool, whose command is this argument; `prefix`: of the names of
    GoEx's tools."""

    daemon: Daemon
    folder: Path
    room: Room
    shell: str
    argument: str
    prefix: str
    action: str = ""
    undone: str = ""

    @property
    def steps(self) -> list[Step]:
        message = [self.send, self.wait_for_message, self.message_result, self.message_back, self.wait_again]
        return [self.by_itself, self.as_it_was_told, self.wait, self.back, self.wait_again, *message, self.end]

    def yes(self, seen: Seen) -> tuple[str, dict[str, object]]:
        """The person allows what waits, on a terminal; the model waits for its end."""
        found = re.search(r"\ba-[0-9a-f]{12,}\b", seen.result)
        assert found, seen.result
        self.action = found[0]
        waiting = self.daemon.person("WatchApprovals", pb.ApprovalsRequest())
        asked = next(each for each in waiting if each.action_id == self.action and each.state == "pending")
        waiting.cancel()
        approve([str(GOEX)], asked.id, APPROVAL_PASSPHRASE, env=self.daemon.env)
        return f"{self.prefix}goex_wait", {"action": self.action, "seconds": 50}

    def undo(self) -> tuple[str, dict[str, object]]:
        self.undone = self.action
        return f"{self.prefix}goex_undo", {"action": self.action, "wait_seconds": 0}

    def by_itself(self, _: Seen) -> tuple[str, dict[str, object]]:
        more = {} if self.argument == "cmd" else {"description": "remove it"}
        return self.shell, {self.argument: "rm old.txt", **more}

    def as_it_was_told(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert "goex_program" in seen.result, seen.result
        assert (self.folder / "old.txt").exists()
        arguments = {"language": "shell", "program": "rm old.txt; echo removed", "folders": [str(self.folder)]}
        return f"{self.prefix}goex_program", {**arguments, "wait_seconds": 0}

    def wait(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert (self.folder / "old.txt").exists()
        return self.yes(seen)

    def back(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert "done" in seen.result and "removed" in seen.result and "exact" in seen.result, seen.result
        assert not (self.folder / "old.txt").exists()
        return self.undo()

    def wait_again(self, seen: Seen) -> tuple[str, dict[str, object]]:
        return self.yes(seen)

    def send(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert "done" in seen.result, seen.result
        assert (self.folder / "old.txt").read_text() == "kept"
        assert self.daemon.person_action(self.undone) == "undone"
        call = {"method": "matrix.rooms.send", "arguments": {"roomId": self.room.id, "body": "old.txt is back"}}
        return f"{self.prefix}goex_call", {"calls": [call], "wait_seconds": 0}

    def wait_for_message(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert self.room.texts == []
        return self.yes(seen)

    def message_result(self, seen: Seen) -> tuple[str, dict[str, object]]:
        assert "done" in seen.result and "event_id" in seen.result and "compensating" in seen.result, seen.result
        assert self.room.texts == ["old.txt is back"]
        return f"{self.prefix}goex_result", {"action": self.action, "path": "$.results[0].body.event_id"}

    def message_back(self, seen: Seen) -> tuple[str, dict[str, object]]:
        # The event is the homeserver's own: it has it under this id.
        event = re.search(r"\$[A-Za-z0-9_-]{20,}", seen.result)
        assert event, seen.result
        assert self.room.server.event(self.room.token, self.room.id, event[0])["content"]["body"] == "old.txt is back"
        return self.undo()

    def end(self, seen: Seen) -> str:
        assert "done" in seen.result, seen.result
        assert self.room.texts == []
        assert self.daemon.person_action(self.undone) == "undone"
        return "It is back."


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


def test_claude_code(daemon: Daemon, folder: Path, room: Room) -> None:
    command = client("claude")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "claude")
    # Its first turn doesn't wait for servers; a model is told to call this where one isn't there yet.
    steps: list[Step] = [lambda _: ("WaitForMcpServers", {})]
    steps += Journey(daemon, folder, room, "Bash", "command", "mcp__goex__").steps
    with serving(steps) as script:
        env |= {"ANTHROPIC_BASE_URL": script.address, "ANTHROPIC_API_KEY": "sk-scripted", "MCP_TIMEOUT": "60000"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        said = run([command, "-p", "Remove old.txt, then take it back."], env, folder)
    script.check()
    assert "It is back." in said


def test_codex(daemon: Daemon, folder: Path, room: Room) -> None:
    command = client("codex")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "codex")
    steps = Journey(daemon, folder, room, "exec_command", "cmd", "mcp__goex/").steps
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


def test_gemini_cli(daemon: Daemon, folder: Path, room: Room) -> None:
    command = client("gemini")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "gemini")
    steps = Journey(daemon, folder, room, "run_shell_command", "command", "mcp_goex_").steps
    config = Path(env["HOME"]) / ".gemini" / "settings.json"
    settings = json.loads(config.read_text())
    with serving(steps) as script:
        # With an address of its own it would otherwise take a kind of login that it then refuses.
        config.write_text(json.dumps({**settings, "security": {"auth": {"selectedType": "gemini-api-key"}}}))
        env |= {"GOOGLE_GEMINI_BASE_URL": script.address, "GEMINI_API_KEY": "k"}
        # Headless, it has no shell at all unless its own questions are off; GoEx's hook and questions stand.
        options = ["--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"]
        said = run([command, *options, "-p", "Remove old.txt, then take it back."], env, folder)
    assert not script.failures and not script.steps, f"{script.failures}\n{said[-3000:]}"
    assert "It is back." in said


def test_copilot_cli(daemon: Daemon, folder: Path, room: Room) -> None:
    command = client("copilot")
    (folder / "old.txt").write_text("kept")
    env = connected(daemon, "copilot")
    steps = Journey(daemon, folder, room, "bash", "command", "goex-").steps
    with serving(steps) as script:
        env |= {"COPILOT_PROVIDER_BASE_URL": script.address, "COPILOT_PROVIDER_TYPE": "anthropic"}
        env |= {"COPILOT_PROVIDER_API_KEY": "k", "COPILOT_MODEL": "claude-sonnet-4", "COPILOT_OFFLINE": "true"}
        # Headless, it asks nobody itself; GoEx's hook and questions stand.
        options = ["--trust-folder", "--allow-all-tools", "--allow-all-paths"]
        said = run([command, *options, "-p", "Remove old.txt, then take it back."], env, folder)
    assert not script.failures and not script.steps, f"{script.failures}\n{said[-3000:]}"
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
