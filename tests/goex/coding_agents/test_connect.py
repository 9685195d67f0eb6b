"""`goex connect` shows what it would write, keeps what is there, and takes itself out again."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.coding_agents.configurations import Program, changes
from policies.errors import InvalidInput
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

SETTINGS = """{
  // the team's own
  "permissions": {"allow": ["Bash(ls)"]},
  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}]}
}
"""
TOML = '# mine\nmodel = "o"  # fast\n\n[mcp_servers.other]\ncommand = "a"\n'
CLIENTS = ["claude", "codex", "gemini", "copilot", "vscode", "cursor"]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        token = made.home / "token"
        token.write_text(made.add_agent("bot"))
        yield made


def snapshot(home: Path) -> dict[str, str]:
    ours = ("config/goex", "state", "run", "cache")
    return {
        str(file.relative_to(home)): file.read_text()
        for file in home.rglob("*")
        if file.is_file() and not str(file.relative_to(home)).startswith(ours) and file.suffix in (".json", ".toml")
    }


def connect(daemon: Daemon, *arguments: str) -> str:
    said = daemon.goex("connect", *arguments, "--token-file", str(daemon.home / "token"))
    assert said.returncode == 0, said.stderr
    return said.stdout


@pytest.mark.sampled(4)
@pytest.mark.parametrize("client", CLIENTS)
def test_connect_twice_and_remove(daemon: Daemon, client: str) -> None:
    (daemon.home / ".claude").mkdir(exist_ok=True)
    (daemon.home / ".claude" / "settings.json").write_text(SETTINGS)
    (daemon.home / ".codex").mkdir(exist_ok=True)
    (daemon.home / ".codex" / "config.toml").write_text(TOML)
    before = snapshot(daemon.home)
    shown = connect(daemon, client, "--write")
    after = snapshot(daemon.home)
    assert after != before
    assert "\n+" in shown
    assert (daemon.home / "token").read_text() not in json.dumps(after)
    assert connect(daemon, client, "--write") == "Nothing to change.\n"
    assert snapshot(daemon.home) == after
    connect(daemon, client, "--write", "--remove")
    assert snapshot(daemon.home) == before
    assert connect(daemon, client, "--write", "--remove") == "Nothing to change.\n"


def test_what_is_there_stays(daemon: Daemon) -> None:
    file = daemon.home / ".claude" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(SETTINGS)
    file.chmod(0o640)
    connect(daemon, "claude", "--write")
    text = file.read_text()
    assert "// the team's own" in text and "guard.sh" in text and "mcp__goex" in text
    assert file.stat().st_mode & 0o777 == 0o640
    connect(daemon, "claude", "--write", "--remove")
    config = daemon.home / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(TOML)
    connect(daemon, "codex", "--write")
    assert config.read_text().startswith(TOML)
    assert set(tomllib.loads(config.read_text())["mcp_servers"]) == {"other", "goex"}
    connect(daemon, "codex", "--write", "--remove")
    assert config.read_text() == TOML


def test_nothing_is_written_without_a_yes(daemon: Daemon) -> None:
    before = snapshot(daemon.home)
    said = daemon.goex("connect", "cursor", "--token-file", str(daemon.home / "token"))
    assert said.returncode != 0
    assert '+    "goex": {' in said.stdout and "--write" in said.stderr
    with daemon.terminal("connect", "cursor", "--token-file", str(daemon.home / "token")) as terminal:
        terminal.expect(r"\[y/N\] ")
        terminal.type()
        assert terminal.wait() != 0
    assert snapshot(daemon.home) == before


def test_a_broken_file_is_left_alone(daemon: Daemon) -> None:
    file = daemon.home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"mcpServers": {')
    said = daemon.goex("connect", "cursor", "--write", "--token-file", str(daemon.home / "token"))
    assert said.returncode == 2 and str(file) in said.stderr
    assert file.read_text() == '{"mcpServers": {'
    file.unlink()


@pytest.mark.parametrize("remove", [False, True])
def test_a_projects_link_to_a_device_is_left_alone(tmp_path: Path, remove: bool) -> None:
    """Its text would have no end; or the device would be replaced, by root."""
    (tmp_path / ".mcp.json").symlink_to("/dev/null")
    program = Program(command="/usr/bin/goex", arguments=())
    with pytest.raises(InvalidInput, match="no file"):
        changes("claude", program, {"HOME": str(tmp_path)}, tmp_path, remove=remove)


def test_json_is_all_that_is_printed(daemon: Daemon) -> None:
    said = daemon.goex("connect", "codex", "--json", "--write", "--token-file", str(daemon.home / "token"))
    assert (said.returncode, said.stderr) == (0, "")
    assert "/hooks in Codex" in json.loads(said.stdout)["next"][0]
    said = daemon.goex("connect", "codex", "--json", "--write", "--remove")
    assert (said.returncode, said.stderr) == (0, "")
    assert json.loads(said.stdout)["next"] == []


def test_an_agent_is_named_with_presence_and_its_token_kept_private(daemon: Daemon) -> None:
    with daemon.terminal("connect", "gemini") as terminal:
        terminal.expect(r"\[y/N\] ")
        terminal.type("y")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    token = daemon.config_dir / "agents" / "gemini.token"
    assert token.stat().st_mode & 0o777 == 0o600
    settings = json.loads((daemon.home / ".gemini" / "settings.json").read_text())
    assert settings["mcpServers"]["goex"]["args"] == [
        "mcp", "--token-file", str(token), "--socket", str(daemon.agent_socket)
    ]  # fmt: skip
    listed = daemon.goex("agents", "list").stdout
    assert "gemini" in listed
