"""`python -m tests.adversarial.calls`: docs/seccomp.md, the system calls that a job may make, one line each."""

from __future__ import annotations

import sys
from pathlib import Path

from runtimes.sandbox import seccomp

ROOT = Path(__file__).resolve().parents[2]
WORDS = ROOT / "tests/vectors/seccomp-calls.txt"
PAGE = ROOT / "docs/seccomp.md"

_HEAD = """# System calls that a job may make

Everything else fails with EPERM, by the profile that `runtimes/sandbox/seccomp.py` makes. This page is made from it and
from `tests/vectors/seccomp-calls.txt` by `python -m tests.adversarial.calls --write`, and a test holds them together.
Only the machine's own architecture is allowed.

| call | what it does | allowed | because programs need to |
|---|---|---|---|
"""


def words() -> dict[str, str]:
    """What each call does, by its name."""
    return dict(line.split(": ", 1) for line in WORDS.read_text().splitlines())


def render() -> str:
    """The page: a line for each call, in the order of the rules."""
    found: dict[str, list[seccomp.Rule]] = {}
    for rule in seccomp.RULES:
        for name in rule.names.split():
            found.setdefault(name, []).append(rule)
    said = words()
    return _HEAD + "".join(
        f"| {name} | {said[name]} | {_allowed(rules)} | {'; '.join(dict.fromkeys(rule.why for rule in rules))} |\n"
        for name, rules in found.items()
    )


def _allowed(rules: list[seccomp.Rule]) -> str:
    ways = []
    for rule in rules:
        if rule.error is not None:
            return "no: ENOSYS, upon which libraries take the older call"
        conditions = [
            f"argument {arg.index} is {arg.value:#x}"
            if arg.mask is None
            else f"argument {arg.index} & {arg.mask:#x} is {arg.value:#x}"
            for arg in rule.args
        ]
        group = {"": "", "unix": "not with a folder alone", "shared-memory": "for database images"}[rule.group]
        ways.append(" and ".join(filter(None, [*conditions, group])))
    return " or ".join(way for way in ways if way) or "always"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(render())
    else:
        print(render(), end="")
