"""Attacks on grants, rules and prompts."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_TESTS = "tests/adversarial/test_grants.py"
_REFERENCES = ("no width but once for what an answer fills in",)
_EARLIER = f"{_TESTS}::test_a_grant_of_an_earlier_version_covers_no_reference_any_more"


def _row(name: str, tries: str, refused_by: tuple[str, ...] = _REFERENCES, test: str = "", control: str = "") -> Attack:
    return Attack(
        name=f"grant_{name}",
        tries=tries,
        where=Where.GRANTS,
        refused_by=refused_by,
        test=test or f"{_TESTS}::test_what_an_answer_fills_in_is_not_covered[{name}]",
        control=control or f"{_TESTS}::test_control[{name}]",
    )


ROWS: tuple[Attack, ...] = (
    _row("same_arguments", "post another channel's words on a grant with exactly these arguments"),
    _row("session", "post another channel's words on a grant for the session"),
    _row("permanent", "post another channel's words on a permanent grant that was asked for with a reference"),
    _row("bad_one_first", "have the yes to a good action settle a bad one, which waits before it"),
    _row("seen_values", "post words that nobody saw on a grant that was given for words that were seen"),
    _row("recipient", "have an answer choose who gets it"),
    _row("in_the_query", "have an answer choose what is read, by a query"),
    _row("in_the_path", "have an answer choose what is changed, by a path"),
    _row("in_a_list", "hide a reference within a list of an argument"),
    _row("permit", "have a rule permit what an answer fills in", ("no rule permits what an answer fills in",)),
    _row(
        "permit_of_another_argument",
        "have a rule permit it that looks at another argument",
        ("no rule permits what an answer fills in",),
    ),
    _row(
        "forbidden_value",
        "have an answer fill in a value that a rule forbids",
        ("what a rule can't judge denies",),
    ),
    _row("made_again", "make calls again on a grant, with other answers"),
    _row("earlier_version", "use a grant for references that an earlier version gave", test=_EARLIER, control=_EARLIER),
    *(
        Attack(
            name=f"name_again_{way}",
            tries=f"have what an earlier agent of its name asked for, by {what}",
            where=Where.GRANTS,
            refused_by=("an action is of whoever had the name then",),
            test=f"tests/adversarial/test_names_again.py::test_what_the_first_had_is_not_the_seconds[{way}]",
            control=f"tests/adversarial/test_names_again.py::test_control[{way}]",
        )
        for way, what in {
            "get": "its id",
            "list": "a list",
            "watch": "following it",
            "cancel": "cancelling it",
            "key": "the same key",
        }.items()
    ),
)
