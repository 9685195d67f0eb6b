"""Attacks on what comes between a question, its yes and its use."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_FILE = "tests/adversarial/test_between.py"
_END = "tests/goex/web/test_page.py::test_an_end_below_the_screen_was_not_on_it"


def _row(name: str, tries: str, refused_by: str) -> Attack:
    return Attack(
        name=f"between_{name}",
        tries=tries,
        where=Where.GRANTS,
        refused_by=(refused_by,),
        test=f"{_FILE}::test_what_came_between_runs_unasked[{name}]",
        control=f"{_FILE}::test_control[{name}]",
    )


_CATALOG = "a standing yes is for the catalog as it was when it was asked"
_PLACE = "a standing yes is for the account where it led when it was asked"

ROWS: tuple[Attack, ...] = (
    _row("changed_for_good", "have a document imported anew while its question waits for a permanent yes", _CATALOG),
    _row("changed_for_the_session", "the same with a yes for the session", _CATALOG),
    _row(
        "moved_account", "use what was allowed on an account where that leads to another address", "grants end with it"
    ),
    _row("moved_before_a_yes", "have an account lead elsewhere while a permanent yes on it is awaited", _PLACE),
    _row("moved_before_a_task", "the same with a task", _PLACE),
    Attack(
        name="end_below_the_screen",
        tries="have a payload approved whose end is in its box, and below the screen",
        where=Where.PAGE,
        refused_by=("the end of a payload is looked for in the window",),
        test=_END,
        control=_END,
    ),
)
