"""The table of cases, read: tests/vectors/rules/cases.txt over tests/vectors/rules/rules.cedar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mapper.catalog import Catalog
from policies.decisions import Decision, decide
from policies.rules.book import RuleBook, default_text
from policies.rules.cases import outcome, read
from policies.rules.source import Policy, each

FOLDER = Path(__file__).parents[2] / "vectors" / "rules"
CATALOG = Catalog.bundled()
MANY = [f"p{number}@example.org" for number in range(21)]
_WORD = re.compile(r'(\S+?)=("[^"]*"|\{.*?\}+(?= |$)|\[.*?\](?= |$)|\S+)')


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    line: int
    rules: tuple[str, ...]
    case: Mapping[str, Any]
    expect: str
    rule: str


@cache
def rules() -> dict[str, Policy]:
    """The rules of the table, by name."""
    found = {}
    for policy in each({"rules.cedar": (FOLDER / "rules.cedar").read_text(encoding="utf-8")}):
        assert isinstance(policy, Policy), policy
        found[policy.name] = policy
    return found


@cache
def book(names: tuple[str, ...]) -> RuleBook:
    """The default rules and those of these names."""
    return RuleBook.of({"table.cedar": "\n".join(rules()[name].text for name in names)}, CATALOG)


def decided(case: Case, names: tuple[str, ...] | None = None) -> tuple[str, tuple[str, ...], str]:
    """What comes of a case: the word, the rules that made it, the reason."""
    return outcome(decision(case, book(case.rules if names is None else names)))


def decision(case: Case, by: RuleBook) -> Decision:
    request, grants, now = read(case.case, CATALOG)
    return decide(request, grants, by, now)


@cache
def cases() -> tuple[Case, ...]:
    """Every line of the table."""
    return tuple(_cases((FOLDER / "cases.txt").read_text(encoding="utf-8")))


def _cases(text: str) -> Iterator[Case]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        cells += [""] * (7 - len(cells))
        names, agent, what, facts, granted, expect, rule = cells
        case: dict[str, Any] = {"agent": agent, **_what(what), **_facts(facts)}
        if "host" in case:
            case["hosts"] = [case.pop("host")]
        if granted:
            case["granted"] = granted.split()
        yield Case(number, tuple(name for name in names.split() if name != "-"), case, expect, rule)


def _what(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    first, _, rest = text.partition(" ")
    if first in ("undo", "redo", "commit"):
        made["kind"], text = first, rest
    if text.startswith("files "):
        _, folder, *_ = text.split(" ")
        return {**made, "folder": folder, **_pairs(text)}
    several = [{"call": one.split(" ")[0], "arguments": _pairs(one)} for one in text.split(" + ")]
    return {**made, "calls": several}


def _pairs(text: str) -> dict[str, Any]:
    return {name: _value(value) for name, value in _WORD.findall(text)}


def _value(text: str) -> Any:
    if text == "MANY":
        return MANY
    try:
        return json.loads(text) if text[0] in '{["' or text in ("true", "false", "null") or _is_number(text) else text
    except ValueError:
        return text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{2,}(\.\d+)?", text) is not None


def _facts(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pair in text.split():
        name, _, value = pair.partition("=")
        match name.partition("."):
            case ("rate", _, _):
                made["rate"] = {"minute": int(value)}
            case ("hour", _, _):
                made["rate"] = {"hour": int(value)}
            case ("seconds" | "actions", _, _):
                made["session"] = {name: int(value)}
            case ("bounds", _, bound):
                made["bounds"] = {bound: int(value)}
            case ("databases" | "tables", _, _):
                made[name] = value.split(",")
            case _:
                made[name] = value
    return made


def default_names() -> tuple[str, ...]:
    return tuple(policy.name for policy in each({"d": default_text()}) if isinstance(policy, Policy))
