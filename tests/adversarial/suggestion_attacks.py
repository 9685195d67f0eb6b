"""Attacks on suggested rules: what makes one wider than what the person approved."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_TESTS = "tests/adversarial/test_suggestions.py"


def _row(name: str, tries: str, *refused_by: str) -> Attack:
    return Attack(
        name=f"suggested_{name}",
        tries=tries,
        where=Where.GRANTS,
        refused_by=refused_by,
        test=f"{_TESTS}::test_no_suggestion_is_wider_than_what_was_approved[{name}]",
        control=f"{_TESTS}::test_control[{name}]",
    )


_DENIED = "a rule that permits a call of a denied action isn't suggested"

ROWS: tuple[Attack, ...] = (
    _row("flood", "have many tiny variants approved, so that any text is suggested", "several days open an argument"),
    _row("flood_of_recipients", "the same with whom a change reaches", "who is reached is never open"),
    _row("denied_variant", "hide a denied value among approved ones", _DENIED),
    _row("denied_and_approved", "have the same approved that was denied", _DENIED),
    _row("denied_among_several", "have a call suggested that was denied together with another", _DENIED),
    _row("hostile_value", "end a rule's text with a value, and begin another", "values are written as code points"),
)
