"""`python -m tests.adversarial.table`: the attacks as docs/attacks.md has them; with `--write` it is put there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.adversarial import (
    between_attacks,
    code_attacks,
    combined_attacks,
    container_attacks,
    database_attacks,
    folder_attacks,
    gateway_attacks,
    grant_attacks,
    hook_attacks,
    import_attacks,
    limit_attacks,
    long_text_attacks,
    mcp_attacks,
    pool_attacks,
    recipient_attacks,
    server_attacks,
    state_attacks,
    suggestion_attacks,
    task_attacks,
)
from tests.adversarial.registry import Attack, Where

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "attacks.md"
BEGIN = "<!-- attacks: `python -m tests.adversarial.table --write` -->"
END = "<!-- end of the attacks -->"
COLLECTED = pytest.StashKey[set[str]]()  # the ids of all tests of a run, before any is left out

ATTACKS: tuple[Attack, ...] = (
    *container_attacks.ROWS,
    *gateway_attacks.ROWS,
    *pool_attacks.ROWS,
    *code_attacks.ROWS,
    *grant_attacks.ROWS,
    *task_attacks.ROWS,
    *between_attacks.ROWS,
    *combined_attacks.ROWS,
    *suggestion_attacks.ROWS,
    *recipient_attacks.ROWS,
    *import_attacks.ROWS,
    *database_attacks.ROWS,
    *folder_attacks.ROWS,
    *state_attacks.ROWS,
    *limit_attacks.ROWS,
    *long_text_attacks.ROWS,
    *mcp_attacks.ROWS,
    *server_attacks.ROWS,
    *hook_attacks.ROWS,
)


def render() -> str:
    """The table, one line an attack, by whose wall it is that is attacked."""
    ordered = sorted(ATTACKS, key=lambda attack: list(Where).index(attack.where))
    lines = ["| on | attack | what it tries | refused by | test, and its control |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.where} | {one.name.replace('_', ' ')} | {one.tries} | {'; '.join(one.refused_by)} | {_tests(one)} |"
        for one in ordered
    ]
    return "\n".join(lines) + "\n"


def _tests(attack: Attack) -> str:
    """The file's name once; the parameters are the attack's own and aren't repeated."""
    test, control = (
        each.removeprefix("tests/adversarial/").partition("[")[0] for each in (attack.test, attack.control)
    )
    file = test.partition("::")[0]
    return f"`{test}`" if test == control else f"`{test}`, `{control.removeprefix(file)}`"


def in_page(text: str) -> str:
    """What stands between the marks."""
    return text.partition(BEGIN)[2].partition(END)[0].strip() + "\n"


def main() -> None:
    if "--write" not in sys.argv[1:]:
        print(render(), end="")
        return
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{render()}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
