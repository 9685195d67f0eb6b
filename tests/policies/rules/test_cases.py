"""Rules, grants and requests as a table: what comes of each, and by which rule."""

from __future__ import annotations

import pytest

from tests.policies.rules.table import Case, cases, decided, rules


@pytest.mark.promise(13)
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.line}")
def test_the_table(case: Case) -> None:
    came, by, reason = decided(case)
    assert came == case.expect, (by, reason)
    if case.rule:
        assert case.rule in by, (by, reason)
    else:
        assert by == (), (by, reason)


def test_the_table_is_long_and_has_every_rule_in_it() -> None:
    assert len(cases()) >= 150
    assert {expect: sum(case.expect == expect for case in cases()) > 40 for expect in ("allow", "ask", "deny")} == {
        "allow": True,
        "ask": True,
        "deny": True,
    }
    assert {name for case in cases() for name in case.rules} == set(rules())
