"""What `goex connect` writes into the configuration of each coding agent, and takes out of it again.

Rules: only what is GoEx's own is added, replaced or removed, and what else a file holds stays as it is written; a token
stands in a file of its own, never in a configuration. A file is replaced in one step.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goex.coding_agents import json_text
from policies.errors import InvalidInput, Unavailable

NAME = "goex"  # of the MCP server
_OURS = re.compile(r"(?:^|[/'\s])goex'? hook(?:\s|$)")
_LARGEST = 16 * 2**20
Edit = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a client starts GoEx: the command, and what both `goex mcp` and `goex hook` are given."""

    command: str
    arguments: tuple[str, ...]

    @property
    def mcp(self) -> list[str]:
        return ["mcp", *self.arguments]

    @property
    def hook(self) -> str:
        return shlex.join((self.command, "hook", *self.arguments))


@dataclass(frozen=True, slots=True)
class Change:
    """One file, as it is and as it would be. `before` is None for a file that isn't there; `after` "" removes one that
    held nothing else."""

    file: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    connect: Edit
    remove: Edit


def changes(
    client: str, program: Program, env: Mapping[str, str], project: Path | None, *, remove: bool
) -> list[Change]:
    """The files of a client that would change, whole. Raises InvalidInput, Unavailable."""
    made = []
    for file in CLIENTS[client](program, env, project):
        before = _read(file.path)
        try:
            edit = file.remove if remove else file.connect
            after = edit(before or "") if before or not remove else ""
        except InvalidInput as error:
            raise InvalidInput(f"{file.path}: {error.message}", next_step=error.next_step) from error
        if after != (before or ""):
            made.append(Change(file.path, before, after))
    return made


def write(change: Change) -> None:
    """Put a file's new text in its place, in one step; a link is followed. Raises Unavailable when it was changed
    since it was read, or can't be written."""
    place = Path(os.path.realpath(change.file))
    if _read(place) != change.before:
        raise Unavailable(f"{change.file} was changed meanwhile.", next_step="Run the command again.")
    try:
        if not change.after:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if change.before is not None else 0o600
        handle, fresh = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(change.after)
                out.flush()
                os.fsync(out.fileno())
            Path(fresh).chmod(mode)
            Path(fresh).replace(place)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Unavailable(
            f"{change.file} can't be written: {error.strerror}.", next_step="Check the folder and the disk."
        ) from error


# ---- each client


def _claude(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    home = _home(env)
    own = Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else None
    server = {"type": "stdio", "command": program.command, "args": program.mcp}
    events = ("PreToolUse", "PermissionRequest")
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": program.hook, "timeout": 30}]}

    def settings(text: str) -> str:
        text = _hooked(text, events, hook)
        # GoEx asks about its own tools itself.
        allowed = _member(text, "permissions", "allow") or []
        return text if f"mcp__{NAME}" in allowed else json_text.append(text, ("permissions", "allow"), f"mcp__{NAME}")

    def unset(text: str) -> str:
        text = _unhooked(text)
        allowed = _member(text, "permissions", "allow") or []
        if f"mcp__{NAME}" in allowed:
            text = json_text.remove(text, ("permissions", "allow", allowed.index(f"mcp__{NAME}")))
        return _unless_empty(text)

    if project is not None:
        servers, set_ = project / ".mcp.json", project / ".claude" / "settings.json"
    else:
        servers = (own or home) / ".claude.json"
        set_ = (own or home / ".claude") / "settings.json"
    return [_server(servers, ("mcpServers", NAME), server), _File(set_, settings, unset)]


def _codex(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    folder = project / ".codex" if project else Path(env.get("CODEX_HOME") or _home(env) / ".codex")
    hook = {"hooks": [{"type": "command", "command": program.hook, "timeout": 30}]}
    # Without `required` Codex may begin before GoEx's tools are there, and then go on without them.
    server = {"command": program.command, "args": program.mcp, "required": True}
    server |= {"startup_timeout_sec": 60, "tool_timeout_sec": 120}
    return [
        _File(folder / "config.toml", lambda text: _toml(text, server), lambda text: _toml(text, None)),
        _hooks_file(folder / "hooks.json", ("PreToolUse", "PermissionRequest"), hook),
    ]


def _gemini(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    home = Path(env["GEMINI_CLI_HOME"]) if env.get("GEMINI_CLI_HOME") else _home(env)
    file = (project or home) / ".gemini" / "settings.json"
    server = {"command": program.command, "args": program.mcp, "timeout": 120_000, "trust": True}
    hook = {"matcher": "*", "hooks": [{"name": NAME, "type": "command", "command": program.hook, "timeout": 30_000}]}
    servers = _server(file, ("mcpServers", NAME), server)
    return [
        _File(
            file,
            lambda text: _hooked(servers.connect(text), ("BeforeTool",), hook),
            lambda text: servers.remove(_unhooked(text)),
        )
    ]


def _vscode(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    config = Path(env.get("XDG_CONFIG_HOME") or _home(env) / ".config")
    file = project / ".vscode" / "mcp.json" if project else config / "Code" / "User" / "mcp.json"
    found = [_server(file, ("servers", NAME), {"type": "stdio", "command": program.command, "args": program.mcp})]
    if project is not None:  # it reads Copilot's hooks of a project alone
        found.append(_copilot_hooks(project / ".github", program))
    return found


def _copilot(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    own = Path(env["COPILOT_HOME"]) if env.get("COPILOT_HOME") else _home(env) / ".copilot"
    server = {"type": "local", "command": program.command, "args": program.mcp, "tools": ["*"], "timeout": 120_000}
    file = project / ".github" / "mcp.json" if project else own / "mcp-config.json"
    hooks = _copilot_hooks(project / ".github" if project else own, program)
    return [_server(file, ("mcpServers", NAME), server), hooks]


def _copilot_hooks(folder: Path, program: Program) -> _File:
    hook = {"type": "command", "bash": program.hook, "timeoutSec": 30}
    return _File(
        folder / "hooks" / "goex.json",
        lambda text: json_text.put(_hooked(text, ("preToolUse",), hook), ("version",), 1),
        lambda text: "" if json_text.read(_unhooked(text)) == {"version": 1} else _unhooked(text),
    )


def _cursor(program: Program, env: Mapping[str, str], project: Path | None) -> list[_File]:
    file = (project or _home(env)) / ".cursor" / "mcp.json"
    return [_server(file, ("mcpServers", NAME), {"command": program.command, "args": program.mcp})]


CLIENTS: Mapping[str, Callable[[Program, Mapping[str, str], Path | None], list[_File]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "vscode": _vscode,
    "cursor": _cursor,
}


# ---- parts of a file


def _server(file: Path, path: tuple[str, ...], server: dict[str, Any]) -> _File:
    return _File(
        file,
        lambda text: json_text.put(text, path, server),
        lambda text: _unless_empty(json_text.remove(text, path)),
    )


def _hooks_file(file: Path, events: tuple[str, ...], hook: dict[str, Any]) -> _File:
    return _File(file, lambda text: _hooked(text, events, hook), lambda text: _unless_empty(_unhooked(text)))


def _hooked(text: str, events: tuple[str, ...], hook: dict[str, Any]) -> str:
    """With this hook, once, for these events."""
    hooks = _member(text, "hooks") or {}
    present = {event: [each for each in found if _is_ours(each)] for event, found in _lists(hooks)}
    if {event: [hook] for event in events} == {event: found for event, found in present.items() if found}:
        return text
    text = _unhooked(text)
    for event in events:
        text = json_text.append(text, ("hooks", event), hook)
    return text


def _unhooked(text: str) -> str:
    for event, found in _lists(_member(text, "hooks")):
        for index in reversed(range(len(found))):
            if _is_ours(found[index]):
                text = json_text.remove(text, ("hooks", event, index))
    return text


def _lists(hooks: Any) -> list[tuple[str, list[Any]]]:
    found = hooks.items() if isinstance(hooks, dict) else ()
    return [(event, entries) for event, entries in found if isinstance(entries, list)]


def _is_ours(entry: Any) -> bool:
    """Whether an entry holds commands of ours and no other."""
    commands = entry.get("hooks", [entry]) if isinstance(entry, dict) else []
    said = [str(each.get("command") or each.get("bash") or "") for each in commands if isinstance(each, dict)]
    return bool(said) and all(_OURS.search(each) for each in said)


def _toml(text: str, server: dict[str, Any] | None) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        servers = document.get("mcp_servers")
        if server is None:
            if servers is not None:
                servers.pop(NAME, None)
                if not servers:
                    del document["mcp_servers"]
            made = tomlkit.dumps(document)
            return made.rstrip("\n") + "\n" if made.strip() else ""
        if servers is None:
            document["mcp_servers"] = servers = tomlkit.table(is_super_table=True)
        if servers.get(NAME) != server:
            servers[NAME] = server
        return tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, TypeError) as error:
        raise InvalidInput(
            f"It isn't TOML as Codex reads it ({type(error).__name__}).", next_step="Mend the file, then try again."
        ) from error


def _unless_empty(text: str) -> str:
    return "" if re.fullmatch(r"\s*\{\s*\}\s*", text) else text


def _member(text: str, *path: str) -> Any:
    """What stands there; None where nothing does. Raises InvalidInput."""
    value = json_text.read(text)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def _read(file: Path) -> str | None:
    try:
        if not file.exists():
            return None
        if not file.is_file() or file.stat().st_size > _LARGEST:  # a device has no end, and would be replaced
            raise InvalidInput(f"{file} is no file, or too large.", next_step="Look at what it is.")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise Unavailable(f"{file} can't be read: {error.strerror}.", next_step="Look at its mode.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} isn't UTF-8 text.", next_step="Mend it first.") from error
