"""What changed between two lists of tools, in escaped lines. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence

from policies.display_text import escape
from policies.jsonvalue import JsonObject

_MOST = 40_000  # comparisons of lines of one tool


def difference(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> tuple[str, ...]:
    """A line for each tool that came or went, and of each that says something else what it says."""
    old = {str(tool.get("name")): tool for tool in before}
    new = {str(tool.get("name")): tool for tool in after}
    lines: list[str] = []
    for name in sorted({*old, *new}):
        if name not in new:
            lines.append(f"gone: {name}")
        elif name not in old:
            lines += [f"new: {name}", *(f"  + {line}" for line in _written(new[name]))]
        elif found := _changed(_written(old[name]), _written(new[name])):
            lines += [f"changed: {name}", *(f"  {line}" for line in found)]
    return tuple(escape(line) for line in lines)


def _changed(before: list[str], after: list[str]) -> list[str]:
    if before != after and len(before) * len(after) > _MOST:
        return [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    return list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]


def _written(tool: JsonObject) -> list[str]:
    return json.dumps(tool, indent=1, sort_keys=True, ensure_ascii=False).split("\n")
