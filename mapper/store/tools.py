"""The names by which models know methods."""

from __future__ import annotations

import hashlib


def tool_name(method_id: str) -> str:
    """The method's name as function-calling models take it: letters, digits, `_` and `-`, at most 64."""
    name = method_id.replace(".", "-")
    if len(name) <= 64:
        return name
    digest = hashlib.sha256(method_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:51]}-{digest[:12]}"


def tool_number(name: str) -> int:
    """A number to find a method by its tool name; rarely, two methods share one."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:4], "big")
