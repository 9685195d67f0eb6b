"""NFKC of hostile texts, in what it takes to read them."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest

from policies.normal_form import is_mark, nfkc
from policies.rules.audience import Recipients
from runtimes.gateway.bodies import _plain
from runtimes.gateway.routes import _folded
from runtimes.gateway.urls import is_dots
from runtimes.rest.path_owner import _spelled

pytestmark = pytest.mark.timeout(300)  # which only a text that takes hours reaches

HOSTILE = "a" + "\u0315\u0300" * 300_000


def test_each_character_that_becomes_marks_alone_is_one() -> None:
    marks = {
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if all(map(unicodedata.combining, unicodedata.normalize("NFKD", char)))
    }
    assert all(map(is_mark, marks))


@pytest.mark.parametrize("text", ["", "a＠b", "e\u0301\u0327" * 40, "\u0315\u0300" * 15, "ｶﾞ" * 40, "각" * 40, "ﬁ" * 40])
def test_a_text_that_somebody_wrote_is_what_python_makes_of_it(text: str) -> None:
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "read",
    [nfkc, is_dots, _plain, _folded, _spelled, lambda text: list(Recipients(frozenset({text})).spellings())],
    ids=["nfkc", "path", "body", "route", "owner", "recipients"],
)
@pytest.mark.parametrize("text", [HOSTILE, "\u0f73" * 300_000], ids=["marks", "double marks"])
def test_a_text_of_marks_alone_is_read_at_once(read: Callable[[str], object], text: str) -> None:
    read(text)
