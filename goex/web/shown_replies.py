"""What the page only shows of the daemon's replies, made fit for a person's eyes.

Rules: of the calls in SHOWN the page sends nothing back but ids, hashes and suggested rules, which are written in plain
ASCII, so each text in their replies is escaped; an outcome becomes the lines of it. The replies of all other calls are
left as they are.
"""

from __future__ import annotations

import json
from typing import Any

from goex.json_text import json_lines
from policies.display_text import escape, escape_name

SHOWN = frozenset({
    "Person/Status", "Person/DryRun", "Accounts/ListAccounts", "Databases/ListDatabases", "Rules/InForce",
    "Rules/SuggestRules", "Audit/Actions", "Audit/Story", "Audit/Scopes", "Actions/WayBack", "Actions/Cancel",
    "Actions/Revert", "Passkeys/List",
})  # fmt: skip


def shown(value: Any) -> Any:
    """The same with each text escaped, and `outcome_lines` in the place of `outcome_json`."""
    if isinstance(value, str):
        return escape(value, newlines=True)
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        # Other JSON in it isn't shown.
        made = {name: each if name.endswith("_json") else shown(each) for name, each in value.items()}
        if "free" in value:  # names of arguments
            made["free"] = [escape_name(name) for name in value["free"]]
        if (outcome := made.pop("outcome_json", None)) is not None:
            made["outcome_lines"] = _outcome(outcome)
        return made
    return value


def _outcome(text: str) -> list[str]:
    if not text:
        return []
    try:
        return json_lines(json.loads(text))
    except (ValueError, RecursionError):
        return escape(text, newlines=True).split("\n")
