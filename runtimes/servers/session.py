"""One conversation with an MCP server in a container of its own: what it is told, and what came of it.

Rules: a container serves one action of one account, and is thrown away; it has no network, but where its account names
origins, and those through the gateway alone. All that comes out of it is a stranger's, bounded, and read strictly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policies.actions import Ended
from policies.display_text import escape
from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject, JsonValue, canonical, parse
from runtimes.code import environment
from runtimes.sandbox.contract import WORK, Job, Limits, Profile, Result
from runtimes.servers.definition import Server

DRIVE = ("/usr/bin/python3", "-I", "-S", "/goex/mcp/drive.py")
FILE = "mcp.json"
LONGEST = 4_000_000  # bytes of all that a session gives
_MEMORY, _PIDS = 512 * 2**20, 128  # node takes no less
_LEAST = 3.0  # seconds that a server has less than its container, so that it is said what it didn't answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What came of a session: the tools of a server that aren't (or weren't yet) agreed on, the answers by call, which
    calls began, and why it broke off ("": it didn't)."""

    tools: tuple[JsonObject, ...] | None = None
    answers: Mapping[int, JsonObject] = field(default_factory=dict)
    begun: frozenset[int] = frozenset()
    failed: str = ""


def profile_of(server: Server, profile: Profile) -> Profile:
    """The profile of a server's container: that of MCP servers with its image, and what one needs at least."""
    limits = profile.limits
    made = replace(
        limits, memory=max(limits.memory, _MEMORY), pids=max(limits.pids, _PIDS), output=max(limits.output, LONGEST)
    )
    return replace(profile, image=server.image, limits=made)


def told(
    server: Server,
    calls: Sequence[JsonObject],
    limits: Limits,
    *,
    agreed: str,
    env: Mapping[str, str],
    headers: Mapping[str, str] | None = None,
) -> Any:
    """What `drive.py` is told. `agreed`: the hash of the tools without which it makes no call; "" to list them.
    `headers`: what it sends with each request to a server at an address."""
    return {
        "url": server.url,
        "headers": dict(headers or {}),
        "argv": list(server.argv),
        "env": {"HOME": "/tmp", **server.env, **env},  # noqa: S108  # the container's own
        "folder": WORK if server.folder else "/tmp",  # noqa: S108
        "seconds": max(1.0, limits.seconds - _LEAST),
        "tools": agreed,
        "calls": list(calls),
    }


def job(action_id: str, what: Mapping[str, Any], *, socket_dir: str | None = None, ca_pem: str = "") -> Job:
    """The job of a session; with a way out where there is a socket."""
    if socket_dir is not None:
        usual = environment.VARIABLES
        if what["argv"][:1] == ["node"]:
            # Its own way to the proxy (proxy.cjs) is for every library; axios, told of one, would send it plain text.
            usual = {name: value for name, value in usual.items() if not name.lower().endswith("_proxy")}
        env = {**usual, **what["env"]}
        what = {**what, "env": env, "port": environment.PORT}
    files = {FILE: json.dumps(what).encode()}
    if socket_dir is not None:
        files[environment.CA_FILE] = ca_pem.encode()
    return Job(action_id=action_id, argv=DRIVE, files=files, socket_dir=socket_dir)


def call_of(method: str, arguments: JsonObject) -> JsonObject:
    """A call as a server gets it."""
    return {"name": method, "arguments": dict(arguments)}


def read(result: Result) -> Said:
    """What a session's container said."""
    why = "" if result.ended is Ended.EXITED else f"its container was ended: {result.ended.value}"
    return said(result.stdout, why or ("it sent more than is read" if result.cut else ""))


def said(stdout: bytes, why: str = "") -> Said:
    """What the lines say. A line that isn't one of ours breaks it off."""
    tools: tuple[JsonObject, ...] | None = None
    answers: dict[int, JsonObject] = {}
    begun: set[int] = set()
    for line in stdout.splitlines():
        try:
            value: Any = parse(line.decode(), limit=LONGEST, what="An answer")
            if not isinstance(value, dict):
                raise InvalidInput("An answer is an object.")
            if isinstance(value.get("tools"), list):
                canonical(value["tools"])  # what couldn't be kept couldn't be reviewed
                tools = tuple(one for one in value["tools"] if isinstance(one, dict))
            if isinstance(value.get("begun"), int):
                begun.add(value["begun"])
            if isinstance(value.get("answer"), int):
                answers.setdefault(value["answer"], value)
            if "failed" in value:
                why = why or escape(str(value["failed"]))[:500]
        except (InvalidInput, UnicodeDecodeError):
            why = why or "what it said can't be read"
    return Said(tools=tools, answers=answers, begun=frozenset(begun), failed=why)


def body_of(answer: JsonObject) -> tuple[int, JsonValue]:
    """The status and body that a call's answer amounts to: what it gave as structured content, as the JSON of its only
    text, or as its content; 422 for what the tool says went wrong, 400 for what the protocol refused. In the place of
    half a character, as of a text that was cut anywhere, stands U+FFFD."""
    answer = _whole(answer)
    result = answer.get("result")
    if not isinstance(result, dict):
        return 400, answer.get("error")
    content = result.get("content")
    status = 422 if result.get("isError") else 200
    if isinstance(result.get("structuredContent"), dict):
        return status, result["structuredContent"]
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        text = content[0].get("text")
        if isinstance(text, str):
            try:
                value = _whole(parse(text, limit=LONGEST, what="A text"))
                canonical(value)  # it will be kept in this form
            except InvalidInput:
                value = None
            return status, value if isinstance(value, dict | list) else {"text": text}
    return status, {"content": content}


def _whole(value: Any) -> Any:
    """The same with U+FFFD for each half of a character."""
    units = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(units.decode("utf-16", "replace"))
