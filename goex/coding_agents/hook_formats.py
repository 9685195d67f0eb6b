"""The hooks of coding agents: what each sends about a tool that it is about to run, and how each is answered.

Rules: "allow" is said for the verdict `permit` alone; whatever can't be read or judged is left to the client's own
question. An answer never changes a tool's arguments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goex.rpc import goex_pb2 as pb
from policies.errors import InvalidInput
from policies.jsonvalue import parse as parse_json

LONGEST = 4 * 2**20  # characters of one event
_MOST_PATHS = 16
# GoEx's own tools, as each client names those of the MCP server `goex`: the daemon asks about them itself.
_GOEX = re.compile(r"mcp__goex__|mcp_goex_|goex[-/]goex_")
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)

# tool -> kind; the argument that holds what it works on comes from `_PATHS`.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("Bash", "PowerShell", "run_shell_command", "bash", "powershell", "shell"), "shell"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"), "write"),
    **dict.fromkeys(("write_file", "replace", "edit", "create", "str_replace_editor"), "write"),
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "read_file", "read_many_files", "list_directory"), "read"),
    **dict.fromkeys(("glob", "search_file_content", "grep_search", "view", "grep"), "read"),
    **dict.fromkeys(("WebFetch", "WebSearch", "web_fetch", "google_web_search"), "fetch"),
}
_PATHS = ("file_path", "notebook_path", "absolute_path", "path", "dir_path")
_CHANGING = ("shell", "write", "fetch")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a tool, as a hook tells it. `client`: whose terms the answer is in."""

    client: str  # "claude", "codex", "gemini" or "copilot"
    event: str
    request: pb.JudgeRequest


def read_event(text: str) -> Use | None:
    """The use of a tool that an event is about; None for another event and for GoEx's own tools. Raises
    InvalidInput."""
    if len(text) > LONGEST:
        raise InvalidInput("The event is too large to be judged.", next_step="Answer the client's own question.")
    event = parse_json(text, limit=LONGEST, what="The event")
    if not isinstance(event, dict):
        raise InvalidInput("A hook's event is a JSON object.", next_step="See: goex hook --help")
    name = str(event.get("hook_event_name", ""))
    if "toolName" in event:
        client, name, tool, given = "copilot", "preToolUse", event["toolName"], event.get("toolArgs")
    elif name == "BeforeTool":
        client, tool, given = "gemini", event.get("tool_name"), event.get("tool_input")
    elif name in ("PreToolUse", "PermissionRequest"):
        client = "codex" if "turn_id" in event else "claude"
        tool, given = event.get("tool_name"), event.get("tool_input")
    else:
        return None
    if isinstance(given, str):
        given = parse_json(given or "{}", limit=LONGEST, what="The tool's arguments")
    if not isinstance(tool, str) or not tool or not isinstance(given, dict):
        raise InvalidInput("The event doesn't say which tool is used how.", next_step="See: goex hook --help")
    if _GOEX.match(tool):
        return None
    return Use(client, name, _request(tool, given, str(event.get("cwd") or Path.cwd())))


def answer(use: Use, verdict: str, reason: str) -> dict[str, Any] | None:
    """What the client reads for this verdict; None: nothing is printed, and it decides by itself."""
    said = {"permit": "allow", "forbid": "deny", "instead": "deny", "ask": "ask"}.get(verdict)
    if said is None:
        return None
    if use.event == "PermissionRequest":
        if said == "ask":
            return None
        decision = {"behavior": said, **({"message": reason} if said == "deny" else {})}
        return {"hookSpecificOutput": {"hookEventName": use.event, "decision": decision}}
    if use.client == "codex" and said != "deny":
        return None  # it takes nothing else before a tool; a permit is told when it asks
    if use.client == "gemini":
        return {"decision": said, "reason": reason}
    made = {"permissionDecision": said, "permissionDecisionReason": reason}
    if use.client == "copilot":
        return made
    return {"hookSpecificOutput": {"hookEventName": use.event, **made}}


def unjudged(use: Use, why: str) -> dict[str, Any] | None:
    """What the client reads when the daemon didn't answer: ask, for what may change something or reach out."""
    return answer(use, "ask" if use.request.kind in _CHANGING else "", f"GoEx didn't judge this: {why}")


def _request(tool: str, given: Mapping[str, Any], folder: str) -> pb.JudgeRequest:
    kind = _KINDS.get(tool, "other")
    made = pb.JudgeRequest(tool=tool[:300], kind=kind, folder=_absolute(folder, "/"))
    command = given.get("command")
    if isinstance(command, list):
        command = " ".join(map(str, command))
    if kind == "shell":
        made.program = command if isinstance(command, str) else ""
        for name in ("directory", "dir_path", "workdir"):
            if isinstance(given.get(name), str) and given[name]:
                made.folder = _absolute(given[name], made.folder)
        return made
    if kind == "fetch":
        made.host = _host(given.get("url"))
        return made
    if tool == "apply_patch" and isinstance(command, str):
        named = _PATCHED.findall(command)
    else:
        named = [given[name] for name in _PATHS if isinstance(given.get(name), str) and given[name]]
    paths: dict[str, None] = {}
    for path in named:
        written = _absolute(path, made.folder)
        paths |= dict.fromkeys((written, os.path.realpath(written)))  # a link is judged as both
    if len(paths) > _MOST_PATHS:
        raise InvalidInput(f"{tool} works on more than {_MOST_PATHS} paths.", next_step="Do it in smaller steps.")
    made.paths.extend(paths)
    return made


def _absolute(path: str, folder: str) -> str:
    made = os.path.normpath(str(Path(folder) / Path(path).expanduser()))
    return "/" + made.lstrip("/")


def _host(url: object) -> str:
    try:
        return (urlsplit(url).hostname or "")[:300] if isinstance(url, str) else ""
    except ValueError:
        return ""
