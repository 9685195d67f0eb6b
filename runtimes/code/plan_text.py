"""A program and what it may call, in plain words: what the person reads before deciding.

Rules: the program stands whole, each line behind an indent; all of it passes `policies.display_text.escape`; what the
gateway doesn't hold a request to is said to be free, never left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from mapper.code.found_calls import Finding
from policies.actions import Code, Plan
from policies.display_text import counted, escape, escape_name, escape_value, shorten
from runtimes.code.permits import Permit
from runtimes.gateway.plan import Slot
from runtimes.sandbox.contract import Profile

MOST_SAID = 12  # of what wasn't understood in a program
MOST_NAMED = 10  # free arguments of one call that are named
_LONGEST = 160
NO_CALLS = "No call that GoEx knows was found in it, and none was named: every request that it makes is refused."


def program_lines(action: Code, profile: Profile) -> tuple[str, ...]:
    """What runs, and where."""
    kind = "" if profile.image == "code" else f" (image {escape(profile.image)})"
    return (
        f"Program ({action.language}), in a container of its own{kind}, for at most {profile.limits.seconds:g} s:",
        *(f"  {escape(line)}" for line in action.program.split("\n")),
    )


def payload_lines(plan: Plan) -> tuple[str, ...]:
    """The program, and each call that it may make."""
    return plan.lines


def permit_lines(permits: Sequence[Permit], finding: Finding) -> tuple[str, ...]:
    """What it may call, what it is held to, and what is refused although it is there."""
    lines: list[str] = []
    if permits:
        lines.append("It has no network and no token. The gateway lets it make these requests, and no other:")
    else:
        lines.append(f"It has no network and no token. {NO_CALLS}")
    for permit in permits:
        lines += [permit_line(permit), *(f"    {line}" for line in argument_lines(permit))]
    lines += unread_lines(finding, also_named=any(not permit.lines for permit in permits))
    return tuple(lines)


def permit_line(permit: Permit) -> str:
    """`slack.chat.postMessage as work → POST https://slack.com/api/chat.postMessage, up to 100 times (line 4)`."""
    where = f"line{'s' if len(permit.lines) > 1 else ''} {', '.join(map(str, permit.lines[:6]))}"
    if len(permit.lines) > 6:
        where += f" and {len(permit.lines) - 6} more"
    found = where if permit.lines else "named for it"
    often = counted(permit.rule.calls, "time")
    said = f"{permit.method_id} as {escape_name(permit.account)} → {target(permit)}, up to {often} ({found})"
    return escape(said)


def target(permit: Permit) -> str:
    """Method and URL of what a permit is for: places that aren't fixed as {name}."""
    rule = permit.rule
    parts = [*(quote(part) for part in rule.base_path), *(_segment(part) for part in rule.path)]
    return f"{rule.method} {rule.origin}/{'/'.join(parts)}"


def argument_lines(permit: Permit) -> list[str]:
    """The arguments that it is held to, and those that it isn't."""
    lines: list[str] = []
    for name, values in permit.held.items():
        said = " or ".join(_value(value) for value in values)
        lines.append(escape_value(f"{name}: {said}{', or left out' if name in permit.optional else ''}"))
    rule = permit.rule
    for name, values in permit.parts.items():
        said = " or ".join(_value(value) for value in values)
        lines.append(escape_value(f"{name}: {said}{', or left out' if name in permit.optional else ''}"))
    # What must be there may stand in the query: then nobody looks at the body.
    if rule.body_format == "any" and set(rule.must) <= rule.query.keys() and not any(rule.fields.values()):
        said = "a file, or a body in parts: whatever the program makes it, passed on unread, but for JSON and forms"
        lines.append(said)
    if len(permit.free) > MOST_NAMED or (permit.free and not permit.lines):
        return [*lines, "any other argument: whatever the program makes it" if lines else "whatever its arguments are"]
    return [*lines, *(escape(f"{name}: whatever the program makes it") for name in permit.free)]


def unread_lines(finding: Finding, *, also_named: bool = False) -> list[str]:
    """What reading the program didn't settle: it isn't allowed by it. `also_named`: methods were named beside."""
    refused = "it is refused unless it is what was named" if also_named else "it is refused"
    lines = [
        f"Line {call.line} calls {call.method_id}, of a service that wasn't named for it: it is refused."
        for call in finding.others
    ]
    lines += [f"Line {one.line} isn't known to be a call, so {refused}: {one.text}" for one in finding.unknown]
    lines += list(finding.notes)
    left = len(lines) - MOST_SAID
    cut = [_short(line) for line in lines[:MOST_SAID]]
    return cut if left <= 0 else [*cut, f"… and {left} more places that weren't understood."]


def named(ids: Iterable[str]) -> str:
    """`slack.chat.postMessage, slack.pins.add`."""
    return ", ".join(dict.fromkeys(ids))


def _segment(part: str | Slot) -> str:
    if isinstance(part, str):
        return quote(part, safe="!$&'()*+,;=:@")
    value = part.values[0] if len(part.values) == 1 else ""
    return (quote(value, safe="!$&'()*+,;=:@") if value else f"{{{part.name.partition('/')[0]}}}") + part.end


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    cut, left = shorten(" ".join(text.split()), _LONGEST)
    return escape(f"{cut}… ({counted(left, 'more character')})" if left else cut)
