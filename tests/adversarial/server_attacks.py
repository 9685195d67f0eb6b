"""Attacks by MCP servers that were added as services."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_servers.py::"


def _row(name: str, tries: str, refused_by: str, test: str, of: str = "", *, one_control: bool = False) -> Attack:
    which = f"[{of}]" if of else ""
    return Attack(
        name=name,
        tries=tries,
        where=Where.SERVERS,
        refused_by=(refused_by,),
        test=f"{_HERE}test_{test}{which}",
        control=f"{_HERE}test_control_{test}{'' if one_control else which}",
    )


_PINNED = "tools are pinned by their hash"
ROWS: tuple[Attack, ...] = (
    _row("server-tool-renamed", "offer a tool by another name than was agreed on", _PINNED, "changed", "renamed"),
    _row("server-tool-described", "change a tool's description later", _PINNED, "changed", "described"),
    _row("server-tool-schema", "change a tool's schema later", _PINNED, "changed", "schema"),
    _row("server-tool-annotated", "change a tool's annotations later", _PINNED, "changed", "annotated"),
    _row("server-read-only", "call a tool that changes something a read", "hints aren't believed", "read_only_hint"),
    _row("server-escapes", "answer with control characters and orders", "answers are escaped", "answer_shown"),
    _row("server-huge", "answer with more than fits", "a bound on answers", "size", "answer"),
    _row("server-flood", "flood its output", "a bound on output", "size", "flood"),
    _row("server-silence", "never answer", "a deadline", "silence"),
    _row("server-state", "read what another session left", "a container for each call", "state_of_another_session"),
    _row("server-token", "tell its credential", "a placeholder in its place", "credential"),
    _row("server-elsewhere", "send its credential to another place", "origins are the account's", "other_origin"),
    _row("server-http", "send something out by HTTP", "no network", "http", one_control=True),
    _row("server-datagram", "send something out by DNS and UDP", "no network", "datagram", "steady", one_control=True),
    _row("server-datagram-2", "do so beside the gateway", "no network", "datagram", "connected", one_control=True),
    _row("server-folder", "reach a folder that wasn't named for it", "folders are the definition's", "folder"),
    _row("server-file", "start something else by its file", "the sealed account", "definition_altered", "file"),
    _row("server-catalog", "do so by the catalog, too", "the sealed account", "definition_altered", "catalog"),
)
