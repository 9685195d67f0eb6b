"""Claude Code, Codex, Gemini CLI and Copilot CLI, by the pins of package-lock.json, in .cache/coding-agents."""

from __future__ import annotations

from pathlib import Path

from tests.support.npm import node_modules


def client(name: str) -> str:
    """The command of a client, installed when it is missing. Skips the test where that can't be."""
    modules = node_modules(Path(__file__).parent, "coding-agents")
    # Claude's own script, which would link the program of this platform, isn't run.
    own = next((modules / "@anthropic-ai").glob("claude-code-*/claude"), None)
    return str(own if name == "claude" and own else modules / ".bin" / name)
