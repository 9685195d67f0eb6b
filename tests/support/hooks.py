"""`goex hook` as a coding agent runs it, and rules put in force for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support import command
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon


def hook(daemon: Daemon, token: str, event: dict[str, Any] | str) -> dict[str, Any] | None:
    """What the hook printed; None for nothing."""
    told = event if isinstance(event, str) else json.dumps(event)
    env = {**daemon.env, "GOEX_AGENT_TOKEN": token}
    said = command.run([str(command.GOEX), "hook"], env=env, folder=Path.cwd(), stdin=told.encode(), seconds=60)
    if said.returncode:
        assert not said.stdout  # a client reads an answer from the output alone
    return json.loads(said.stdout) if said.stdout else None


def before(tool: str, folder: Path | str, **arguments: Any) -> dict[str, Any]:
    """Claude Code's event before a tool."""
    return {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments, "cwd": str(folder)}


def decision(said: dict[str, Any] | None) -> str:
    """What an answer comes to, in any client's terms; "" where the client decides."""
    if said is None:
        return ""
    inner = said.get("hookSpecificOutput", said)
    return str(
        inner.get("permissionDecision") or inner.get("decision", {}).get("behavior")
        if isinstance(inner.get("decision", {}), dict)
        else inner["decision"]
    )


def apply_rules(daemon: Daemon, text: str) -> None:
    """Put these rules in force, as the person does."""
    folder = daemon.config_dir / "rules"
    folder.mkdir(exist_ok=True)
    (folder / "own.cedar").write_text(text)
    with daemon.terminal("rules", "apply") as terminal:
        found = terminal.expect(r"\[y/N\] |passphrase: ")
        if found[0].startswith("[y"):
            terminal.type("y")
            terminal.expect("passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
