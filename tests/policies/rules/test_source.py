"""Texts of rules that aren't rules, or that are meant to break who reads them: an error in its place, and the process
goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.rules.book import RuleBook
from policies.rules.source import BadRule, Policy, each, read

WRONG: dict[str, tuple[str, str]] = {
    "two dots": ("permit (principal, action, resource) when { context.. };", "1:56: unexpected token '.'"),
    "a comma is missing": ("permit (principal, action resource);", "1:27: unexpected token 'resource'"),
    "no such sign": (
        "permit (principal, action, resource);\n\n  forbid (principal, action, resource) when { $x };",
        "3:47: invalid token",
    ),
    "an @id twice": ('@id("a")\n@id("b") permit (principal, action, resource);', "duplicate annotation: @id"),
    "a template": ("permit (principal == ?principal, action, resource);", "1:1: ?principal and ?resource"),
    "no end": ("// one\npermit (principal, action, resource)", "2:1: This rule has no end."),
    "an open text": ('permit (principal, action, resource) when { "a };', "1:45: This text in quotation marks"),
    "an open bracket": ("permit (principal, action, resource;", "1:8: This ( isn't closed."),
    "a closing bracket": ("permit principal);", "1:17: This ) closes nothing."),
    "a mistyped annotation": ('@efect("ask") forbid (principal, action, resource);', "1:1: @efect means nothing"),
    "ask on a permit": ('@effect("ask") permit (principal, action, resource);', "1:1: @effect is written on a forbid"),
    "another effect": ('@effect("deny") forbid (principal, action, resource);', "1:1: @effect is written on"),
    "an empty name": ('@id("  ") forbid (principal, action, resource);', "1:1: An @id is 1 to 80 visible"),
    "a hidden name": ('@id("a\\u{202e}b") forbid (principal, action, resource);', "1:1: An @id is 1 to 80 visible"),
    "a long name": (f'@id("{"a" * 81}") forbid (principal, action, resource);', "1:1: An @id is 1 to 80"),
    "a name twice": (
        '@id("a") permit (principal, action, resource);\n@id("a") forbid (principal, action, resource);',
        "2:1: Another rule is called a already (f.cedar:1).",
    ),
    "only a semicolon": (";", "1:1: unexpected token ';'"),
    "another language": ("if user == 'ann' then allow", "1:1: This rule has no end."),
    "SQL": ("DROP TABLE grants;", "1:6: unexpected token 'TABLE'"),
    "a NUL": ("permit (principal, action, resource) when { \0 };", "1:45: U+0000 is a control character"),
    "a byte order mark": ("\ufeffpermit (principal, action, resource);", "1:1: invalid token"),
    "letters of another alphabet": ("реrmit (principal, action, resource);", "1:1: invalid token"),
    "a number too large": (
        "permit (principal, action, resource) when { 99999999999999999999 == 1 };",
        "number too large",
    ),
    "an unknown function": ('permit (principal, action, resource) when { sudo("x") };', "sudo"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_text_has_its_place(name: str) -> None:
    text, says = WRONG[name]
    with pytest.raises(BadRule) as caught:
        read({"f.cedar": text})
    assert str(caught.value).startswith("f.cedar:")
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.promise(14)
@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r", "\x1b"])
def test_no_line_ends_where_cedar_sees_no_end_or_the_other_way_round(sign: str) -> None:
    """A condition that looks like a line of its own is part of the comment; what a comment seems to hold is read."""
    text = f'permit (principal, action, resource) when {{ true // why{sign} && context.account == "work"\n}};'
    with pytest.raises(BadRule) as caught:
        read({"f.cedar": text})
    assert f"f.cedar:1:56: U+{ord(sign):04X} is a control character" in str(caught.value)
    read({"f.cedar": text.replace(sign, "\r\n")})


def test_every_fault_is_found_and_the_good_ones_are_kept() -> None:
    text = '@id("a") permit (principal, action, resource);\npermit ();\n@id("b") forbid (principal, action, resource);'
    found = list(each({"f.cedar": text, "g.cedar": "permit"}))
    assert [one.name for one in found if isinstance(one, Policy)] == ["a", "b"]
    assert [(one.file, one.line) for one in found if isinstance(one, BadRule)] == [("f.cedar", 2), ("g.cedar", 1)]


def test_comments_and_texts_may_hold_anything() -> None:
    text = '// ; { ( "\n@note("; } // \\" {") permit (principal, action, resource) when { "; //" == "\\"" };// end'
    (policy,) = read({"f.cedar": text})
    assert (policy.chunk.line, policy.name) == (2, "f.cedar:2")


# Cedar's parser and evaluator recurse, and end the process on what is deep enough; so this runs in one of its own.
DEEP = {
    "brackets": '"(" * n + "true" + ")" * n',
    "lists": '"[" * n + "]" * n + ".contains(1)"',
    "records": '"{a:" * n + "1" + "}" * n + " == 1"',
    "a chain of and": '" && ".join(["true"] * n)',
    "a chain of or": '" || ".join(["true"] * n)',
    "a chain of plus": '" + ".join(["1"] * n) + " == 1"',
    "a chain of attributes": '"context" + ".a" * n + " == 1"',
    "a chain of indices": '"context" + "[\\"a\\"]" * n + " == 1"',
    "a chain of calls": '"context" + ".isEmpty()" * n',
    "a chain of else": '"if true then true else " * n + "true"',
    "a chain of not": '"!" * n + "true"',
    "not in brackets": '"!(" * n + "true" + ")" * n',
    "behind a comment": '"// \\r" + "(" * n + "true" + ")" * n',
    "a long list": '"[" + ",".join(["1"] * n) + "].contains(3)"',
    "a long text": '"\\"" + "a" * n + "\\" == \\"\\""',
}


@pytest.mark.sampled(5)
@pytest.mark.promise(13)
@pytest.mark.parametrize("name", DEEP)
def test_deep_and_long_rules_never_end_the_process(name: str) -> None:
    """Each depth is either read and judged, or refused with words; the process ends by itself."""
    program = f"""
import asyncio
from mapper.catalog import Catalog
from policies.rules.book import RuleBook
from policies.rules.rule_errors import check
from policies.rules.cases import read
from policies.rules.source import BadRule
from policies.decisions import decide

request, _, now = read({{"call": "slack.users.list"}}, Catalog.bundled())

def go():
    for n in (10, 45, 90, 150, 400, 990, 1900, 2500, 30000, 400000):
        text = "permit (principal, action, resource) when {{ " + ({DEEP[name]}) + " }};"
        try:
            book = RuleBook.of({{"f.cedar": text}})
        except BadRule as error:
            assert len(str(error)) < 500
            print(n, "refused")
            continue
        check({{"f.cedar": text}}, Catalog.bundled())
        print(n, type(decide(request, [], book, now)).__name__)

asyncio.run(asyncio.to_thread(go))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 10


def test_files_and_numbers_of_rules_are_bounded() -> None:
    with pytest.raises(BadRule, match="longer than"):
        read({"f.cedar": "//" + "x" * 4_000_001})
    with pytest.raises(BadRule, match="more than 20000 rules"):
        read({"f.cedar": "permit (principal, action, resource);\n" * 20_001})


@pytest.mark.thorough
def test_ten_thousand_rules_are_read_and_judged() -> None:
    from mapper.catalog import Catalog
    from policies.decisions import Allow, decide
    from policies.rules.cases import read as read_case

    texts = [
        f'@id("r{n}") forbid (principal == Agent::"a{n % 97}", action, resource in Service::"s{n % 89}")'
        f' when {{ context.arguments has channel && context.arguments.channel == "#{n}" }};'
        for n in range(9_999)
    ]
    book = RuleBook.of({"f.cedar": "\n".join([*texts, '@id("yes") permit (principal, action, resource);'])})
    request, _, now = read_case({"call": "slack.users.list"}, Catalog.bundled())
    assert decide(request, [], book, now) == Allow((), ("yes",))


SOUP = st.text(
    st.one_of(
        st.sampled_from(list('(){}[];:.,"\\@=!<>&|?/*\n ')),
        st.characters(codec="utf-8"),
    ),
    max_size=120,
)
WORDS = st.lists(
    st.sampled_from(
        ["permit", "forbid", "(", ")", "principal", "action", "resource", ",", "when", "unless", "{", "}", ";",
         "context", ".", "has", "like", "is", "in", "==", '"x"', '"', "//", "\n", "@id",
         '@effect("ask")', "1", "-", "!", "true",
         'Agent::"bot"', "?principal", "[", "]", "if", "then", "else", 'decimal("1")', 'ip("::1")']
    ),
    max_size=40,
).map(" ".join)  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(SOUP, WORDS))
@example("\ud800;")
@example('"\\u{d800}";')
@example('permit(principal,action,resource)when{"\\u{110000}"==""};')
def test_any_text_is_rules_or_errors(text: str) -> None:
    for one in each({"f.cedar": text}):
        if isinstance(one, BadRule):
            assert one.line >= 1
            assert one.column >= 1
            assert str(one).isprintable()
        else:
            assert one.text in text
