"""Attacks by texts that take long to read, while which nobody else is answered."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_HERE = "tests/adversarial/test_long_texts.py"
_LINEAR = "readers whose time grows with the text"

# The text, as `long_texts.LONG` names it, and what it is for.
TRIES = {
    "filtered_answer": "have a filter with .* look at a long text in an answer",
    "fence_of_a_proposal": "propose a code fence that a long blank follows",
    "string_of_a_proposal": "propose quotes that never end",
    "format_in_a_program": "have a program read that formats a brace without an end",
    "percent_in_a_program": "the same with names in parentheses behind percent signs",
    "module_of_a_program": "have a program of empty lines looked at for its kind",
    "identifier_in_words": "ask in a row of dashes, any of which could begin an identifier",
    "second_wish_in_words": "ask with a long blank, anywhere in which a second wish could begin",
    "dashes_in_words": "ask in dashes, any of which could begin a name",
    "quotes_in_words": "ask with opening quotes alone",
}

ROWS: tuple[Attack, ...] = tuple(
    Attack(
        name=f"long_{name}",
        tries=tries,
        where=Where.LIMITS,
        refused_by=(_LINEAR,),
        test=f"{_HERE}::test_read_to_its_end[{name}]",
        control=f"{_HERE}::test_control[{name}]",
    )
    for name, tries in TRIES.items()
)
