"""The hooks of coding agents: what each sends about a tool that it is about to run, and how each is answered.

Rules: "allow" is said for the verdict `permit` alone; whatever can't be read or judged is left to the client's own
question, which is wanted where it may change something or reach out. What a tool works on is read as the client reads
it; an address that the two could read differently names no host. An answer never changes a tool's arguments.
GoEx's own tools aren't judged here, where their whole name is one of theirs. A client makes a name of a server's and a
tool's without saying where one ends, so any other name is judged, those of GoEx's tools of one method too.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from goex.rpc import goex_pb2 as pb
from policies.errors import InvalidInput
from policies.jsonvalue import parse as parse_json

LONGEST = 4 * 2**20  # characters of one event
_MOST_PATHS = 16
_SERVER = "goex"  # what GoEx's own MCP server is called in each client's configuration
OWN_TOOLS = frozenset(  # of that server, as goex/mcp/tools.py has them; the daemon asks about their use itself
    (
        *("goex_find", "goex_read", "goex_call", "goex_program", "goex_sql", "goex_task", "goex_preview"),
        *("goex_undo", "goex_wait", "goex_result", "goex_actions", "goex_cancel"),
    )
)
# How each client names a tool of that server, before the tool's own name.
_PREFIXES = ("mcp__goex__", "mcp_goex_", "goex-", "goex/")
_PATCH = "*** Begin Patch"
# Codex takes such a line with blanks around it.
_PATCHED = re.compile(r"^\s*\*\*\* (?:Add File|Update File|Delete File|Move to):(.+)$", re.MULTILINE | re.IGNORECASE)
_PATCHES = ("command", "input", "patch")
_WILD = re.compile(r"[*?\[{]")  # from here on a pattern names no one place
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_LIKE_PATH = re.compile(r"(?:/|~/|\.\.?/)[^\n]*|~|\.\.?|(?:[^\n]*/)?\.\.(?:/[^\n]*)?")
_FILE_ADDRESS = re.compile(r"\s*(?:[a-z][a-z0-9.-]*[:+])*file:(?://[^/]*(?=/))?", re.IGNORECASE)
_MOST_DECODED = 4  # times
_LONGEST_PATH = 4096
_DEEPEST = 10  # lists and objects in each other
_PLAIN_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")

# tool -> kind; the argument that holds what it works on comes from `_PATHS`.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("Bash", "PowerShell", "run_shell_command", "bash", "powershell", "shell"), "shell"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch"), "write"),
    **dict.fromkeys(("write_file", "replace", "edit", "create", "str_replace_editor"), "write"),
    **dict.fromkeys(("Read", "Glob", "Grep", "LS", "read_file", "read_many_files", "list_directory"), "read"),
    **dict.fromkeys(("glob", "search_file_content", "grep_search", "view", "grep"), "read"),
    **dict.fromkeys(("WebFetch", "WebSearch", "web_fetch", "google_web_search"), "fetch"),
    # What is typed into a shell that runs: Copilot's, and Codex'.
    **dict.fromkeys(("write_bash", "write_powershell", "write_stdin"), "shell"),
    # Those of VS Code.
    "run_in_terminal": "shell",
    **dict.fromkeys(("create_file", "create_directory", "insert_edit_into_file", "edit_notebook_file"), "write"),
    **dict.fromkeys(("replace_string_in_file", "multi_replace_string_in_file"), "write"),
    **dict.fromkeys(("list_dir", "file_search"), "read"),
    "fetch_webpage": "fetch",
}
_PATHS = ("file_path", "notebook_path", "absolute_path", "path", "dir_path", "filePath", "dirPath")
_SEVERAL = ("paths", "include")  # each may be a pattern
_PATTERNS = ("Glob", "glob")  # whose `pattern` is of paths
_CHANGING = ("shell", "write", "fetch")
_TYPED = {"write_bash": "input", "write_powershell": "input", "write_stdin": "chars"}
# Where a shell runs, as each client reads it; Claude Code and Copilot read none of these.
_FOLDERS = {"gemini": ("dir_path", "directory"), "codex": ("workdir",)}
_ALL_FOLDERS = ("dir_path", "directory", "workdir", "cwd", "working_directory")
# Words in the names of arguments, of tools that aren't known here, that hold a command or a program; and those of a
# text that a person reads, in which a command is no more than that.
_COMMANDS = frozenset(
    (
        *("command", "commands", "cmd", "cmds", "input", "stdin", "script", "scripts", "code", "program", "programs"),
        *("args", "argv", "arguments", "steps", "shell", "bash", "sh", "exec", "execute", "eval", "run", "keys"),
        *("expression", "snippet", "function", "javascript", "js", "python", "powershell"),
    )
)
_PROSE = frozenset(
    (
        *("text", "body", "message", "content", "title", "description", "query", "prompt", "summary", "comment"),
        *("subject", "note", "notes", "question", "reason", "explanation", "thought", "thoughts", "plan", "pattern"),
        *("label", "html", "markdown"),
    )
)
_NAME_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_REACHES = re.compile(r"(?:^|[\s'\"`(=<>,;|&:\[{])(?:/|~|\.\.)")  # a text that names what lies elsewhere


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a tool, as a hook tells it. `client`: whose terms the answer is in. `unread`: why what it works on
    can't be told; ""."""

    client: str  # "claude" (VS Code, too), "codex", "gemini" or "copilot"
    event: str
    request: pb.JudgeRequest
    unread: str = ""


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
        given = _arguments(given)
    if not isinstance(tool, str) or not tool or not isinstance(given, dict):
        raise InvalidInput("The event doesn't say which tool is used how.", next_step="See: goex hook --help")
    if _is_own(tool, event.get("mcp_context")):
        return None
    request = _request(tool, str(event.get("cwd") or Path.cwd()))
    try:
        _fill(request, given, _FOLDERS.get(client, ()))
    except InvalidInput as error:
        return Use(client, name, request, unread=error.message)
    return Use(client, name, request)


def _is_own(tool: str, server: object) -> bool:
    """Whether a tool is one of GoEx's own. `server`: what Gemini says beside the name of whose tool it is."""
    if isinstance(server, dict) and server.get("server_name") != _SERVER:
        return False
    return any(tool.startswith(prefix) and tool.removeprefix(prefix) in OWN_TOOLS for prefix in _PREFIXES)


def _arguments(text: str) -> Any:
    """A tool's arguments that came as text: JSON, or a patch as it is."""
    if text.lstrip().startswith(_PATCH):
        return {"input": text}
    return parse_json(text or "{}", limit=LONGEST, what="The tool's arguments")


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


def judged(use: Use, verdict: str, reason: str) -> dict[str, Any] | None:
    """What the client reads for the daemon's verdict, which for a use that wasn't read whole can't permit anything."""
    if use.unread and verdict not in ("forbid", "ask"):
        # What is read may be forbidden, and this isn't known to be all of it.
        return unjudged(use, use.unread, asks=use.request.kind == "read")
    return answer(use, verdict, reason)


def unjudged(use: Use, why: str, *, asks: bool = False) -> dict[str, Any] | None:
    """What the client reads when the daemon didn't answer: ask, for what may change something or reach out."""
    asks = asks or use.request.kind in _CHANGING
    return answer(use, "ask" if asks else "", f"GoEx didn't judge this: {why}")


def _request(tool: str, folder: str) -> pb.JudgeRequest:
    kind = _KINDS.get(tool, "other")
    home = os.path.expanduser("~")  # noqa: PTH111 - where there is none it stays as it is
    home = os.path.normpath(home) if home.startswith("/") else ""
    return pb.JudgeRequest(tool=tool[:300], kind=kind, folder=_absolute(folder, "/"), home=home)


def _fill(request: pb.JudgeRequest, given: Mapping[str, Any], folders: tuple[str, ...]) -> None:
    """Say what the tool works on, as far as it is known. `folders`: the names by which the client reads where a shell
    runs. Raises InvalidInput where not all of that can be told."""
    if request.kind == "fetch":
        request.host = _fetched(given)
        return
    paths: dict[str, None] = {}
    try:
        named = _run(request, given, folders) if request.kind == "shell" else _named(request, given)
        for path in named:
            written = _absolute(path, request.folder)
            # A link is judged as both, and `..` behind one as either reads it.
            leads = (os.path.realpath(each) for each in (written, _joined(path, request.folder)))
            paths |= dict.fromkeys((written, *leads))
    finally:
        request.paths.extend([*paths][:_MOST_PATHS])
    if len(paths) > _MOST_PATHS:
        raise InvalidInput(
            f"{request.tool} works on more than {_MOST_PATHS} paths.", next_step="Do it in smaller steps."
        )
    if request.kind == "write" and not paths:
        raise InvalidInput(f"{request.tool} names no file that is known here.", next_step="Answer the client yourself.")
    if request.kind == "other" and _commands(given):
        raise InvalidInput(f"{request.tool} is given a command.", next_step="Answer the client yourself.")


def _run(request: pb.JudgeRequest, given: Mapping[str, Any], folders: tuple[str, ...]) -> Iterator[str]:
    """Say what a shell runs, and where; the paths that are judged beside its words. Raises InvalidInput where the
    client may read that otherwise."""
    typed = _TYPED.get(request.tool)
    command = given.get(typed or "command")
    request.program = shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")
    named = {name: _absolute(said, request.folder) for name in _ALL_FOLDERS for said in _texts(given.get(name))[:1]}
    known = named.keys() <= {*folders}
    where = {*named.values()} if known else {request.folder, *named.values()}
    if len(where) > 1:
        yield from (request.folder, *named.values())
    request.folder = next(iter(named.values()), request.folder)
    if os.path.realpath(request.folder) != request.folder:
        yield request.folder
    if _PATCH in request.program:
        yield from (path.strip() for path in _PATCHED.findall(request.program))
    if len(where) > 1:
        raise InvalidInput("Where it runs can be read as more than one.", next_step="Answer the client yourself.")
    if typed:
        raise InvalidInput("It is typed into a shell that runs.", next_step="Answer the client yourself.")


def _named(request: pb.JudgeRequest, given: Mapping[str, Any]) -> Iterator[str]:
    """The paths that a tool names: of a pattern, the folder that all it fits is in."""
    patches = ["\n".join(_texts(given.get(name))) for name in _PATCHES]
    # Copilot calls it Edit where a hook is written as for Claude Code.
    if request.tool == "apply_patch" or any(text.lstrip().startswith(_PATCH) for text in patches):
        for text in patches:
            yield from (path.strip() for path in _PATCHED.findall(text))
        return
    parts = [given, *(one for one in _listed(given.get("replacements")) if isinstance(one, dict))]
    found = [one for part in parts for name in _PATHS for one in _texts(part.get(name))]
    yield from found
    patterns = [one for name in _SEVERAL for one in _texts(given.get(name))]
    if request.tool in _PATTERNS:
        patterns += [str(Path(*found[:1], one)) for one in _texts(given.get("pattern"))]
    yield from map(_plain, patterns)
    if request.kind == "other":
        yield from _like_paths(given, request.folder)
    if any(_goes_up(each) for each in patterns):
        raise InvalidInput("The pattern may lead anywhere.", next_step="Answer the client yourself.")


def _like_paths(value: object, folder: str, depth: int = 0) -> Iterator[str]:
    """What is written like a path and is there, or could be made there, in the arguments of a tool that isn't known
    here. Raises InvalidInput where they are too deep."""
    if depth > _DEEPEST:
        raise InvalidInput("Its arguments are too deep.", next_step="Answer the client yourself.")
    if isinstance(value, str):
        for said in _readings(value):
            for place in dict.fromkeys((_absolute(said, folder), _joined(said, folder))):
                above = place.rpartition("/")[0]
                if os.path.lexists(place) or (above and Path(above).is_dir()):
                    yield said
    elif isinstance(value, (list, dict)):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _like_paths(each, folder, depth + 1)


def _readings(value: str) -> Iterator[str]:
    """A text as the paths that a tool may take it for: as it is, decoded, of a `file:` address, with another slash."""
    for _ in range(_MOST_DECODED if len(value) <= 16 * _LONGEST_PATH else 0):
        for said in dict.fromkeys((value, value.replace("\\", "/"))):
            path = _FILE_ADDRESS.sub("", said, count=1) if _FILE_ADDRESS.match(said) else said
            if (path != said or _LIKE_PATH.fullmatch(path)) and 0 < len(path) <= _LONGEST_PATH and "\0" not in path:
                yield path
        if (value := unquote(before := value)) == before:
            return


def _commands(value: object, name: str = "", depth: int = 0) -> bool:
    """Whether a command may be in the arguments of a tool that isn't known here. `name`: what holds this value."""
    if depth > _DEEPEST:
        return True
    if isinstance(value, dict):
        return any(_commands(each, f"{name} {key}", depth + 1) for key, each in value.items())
    if isinstance(value, list):
        return any(_commands(each, name, depth + 1) for each in value)
    if not isinstance(value, str) or not value:
        return False
    parts = [each.lower() for each in _NAME_PARTS.findall(name)]
    is_prose = bool(parts) and parts[-1] in {*_PROSE, "path"}
    return (parts[-1:] != ["id"] and not _COMMANDS.isdisjoint(parts)) or (
        not is_prose and _REACHES.search(value) is not None and len(value.split()) > 1 and not _ADDRESS.match(value)
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _texts(value: object) -> list[str]:
    return [one for one in _listed(value) if isinstance(one, str) and one]


def _plain(path: str) -> str:
    """A path; of a pattern, what stands before its first wild name."""
    wild = _WILD.search(path)
    if wild is None:
        return path
    return path[: wild.start()].rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _goes_up(pattern: str) -> bool:
    """Whether it may find what isn't in the folder before its first wild name."""
    wild = _WILD.search(pattern)
    return wild is not None and re.search(r"\.\.|[{,]/", pattern[wild.start() :]) is not None


def _absolute(path: str, folder: str) -> str:
    """A path as clients read it: another user's `~name` is a folder of that name to them."""
    return "/" + os.path.normpath(_joined(path, folder)).lstrip("/")


def _joined(path: str, folder: str) -> str:
    home = path == "~" or path.startswith("~/")
    return str(Path(folder) / (Path(path).expanduser() if home else path))


def _fetched(given: Mapping[str, Any]) -> str:
    """The host that is fetched from; "" for a search, which names none. Raises InvalidInput."""
    addresses = [one for name in ("url", "urls") for one in _texts(given.get(name))]
    if "query" in given and not addresses:
        return ""
    found = addresses or [url for one in _texts(given.get("prompt")) for url in _ADDRESS.findall(one)]
    hosts = {_host(url) for url in found}
    if len(hosts) != 1:
        raise InvalidInput("It isn't one host that is fetched from.", next_step="Answer the client yourself.")
    return hosts.pop()


def _host(url: str) -> str:
    """An address's host, where every reader finds the same. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removesuffix(".")
        plain = parts.scheme in ("http", "https") and url.isprintable() and not {"\\", " "} & set(url)
    except ValueError:
        host, plain = "", False
    if not plain or not (_is_ip(host) or (_PLAIN_HOST.fullmatch(host) and not _counts(host))):
        raise InvalidInput("The address can be read as more than one.", next_step="Answer the client yourself.")
    return host[:300]


def _is_ip(host: str) -> bool:
    try:
        return str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False


def _counts(host: str) -> bool:
    """Whether it ends in a number, which a client takes as an address of IPv4."""
    last = host.rpartition(".")[2]
    return last.isdecimal() or re.fullmatch(r"0x[0-9a-f]*", last) is not None
