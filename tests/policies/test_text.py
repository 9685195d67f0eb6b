"""What a person sees is what is there: nothing hidden, nothing that commands a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.text import escape, shorten

TRICKS = {
    "an ANSI colour": "\x1b[31mred",
    "a cursor movement": "safe\x1b[2K\rrm -rf /",
    "an OSC title": "\x1b]0;title\x07",
    "a C1 control": "\x9b31m",
    "a carriage return": "a\rb",
    "a backspace": "rm\b\bls",
    "a bidi override": "\u202etxt.exe",
    "a bidi isolate": "\u2066x\u2069",
    "a zero-width space": "a\u200bb",
    "a zero-width joiner": "a\u200db",
    "a tag character": "a\U000e0041",
    "a no-break space": "a\u00a0b",
    "an ideographic space": "a\u3000b",
    "a Hangul filler": "a\u3164b",
    "a blank braille cell": "a\u2800b",
    "a line separator": "a\u2028b",
    "a private character": "\ue000",
    "a paragraph separator": "a\u2029b",
    "an unassigned code point": "a\u0378b",
    "a noncharacter": "a\uffffb",
    "a Hangul choseong filler": "a\u115fb",
    "a Hangul jungseong filler": "a\u1160b",
    "a halfwidth Hangul filler": "a\uffa0b",
    "a combining grapheme joiner": "a\u034fb",
    "a Khmer inherent vowel": "a\u17b4b",
    "another Khmer inherent vowel": "a\u17b5b",
    "a stack of enclosing marks": "a" + "\u20dd" * 30,
    "a lone surrogate": "\ud800",
    "a NUL": "a\0b",
    "a soft hyphen": "a\u00adb",
    "a stack of marks": "a" + "\u0300" * 30,
}


@pytest.mark.parametrize("name", TRICKS)
def test_each_trick_becomes_visible(name: str) -> None:
    shown = escape(TRICKS[name])
    assert shown != TRICKS[name]
    assert "\\u{" in shown
    assert "\x1b" not in shown


def test_plain_text_stays_as_it_is() -> None:
    for text in ("Grüße an alle 👋", "naïve café", "日本語", "a\\b [bold]x[/bold] <b>&amp;</b>"):
        assert escape(text) == text


def test_newlines_stay_only_where_they_are_asked_for() -> None:
    assert escape("a\n\tb", newlines=True) == "a\n\tb"
    assert "\n" not in escape("a\n\tb")


@given(st.text())
def test_what_is_shown_is_printable_and_escaping_twice_changes_nothing(text: str) -> None:
    shown = escape(text)
    assert all(char.isprintable() for char in shown)
    assert escape(shown) == shown


def test_what_was_cut_is_counted() -> None:
    assert shorten("abcdef", 4) == ("abcd", 2)
    assert shorten("abc", 4) == ("abc", 0)
