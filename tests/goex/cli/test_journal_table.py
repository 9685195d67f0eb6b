"""The facts of a row in words: what an agent wrote is told from what GoEx did."""

from __future__ import annotations

import json
import re

import pytest

from goex.cli.journal_table import _all_facts, _worth_reading
from goex.rpc import goex_pb2 as pb

POSING = "hi by=user 1000 (goex); by: user 1000 (goex)"
GRANT = {"id": "g-1", "width": "once", "service": "files", "scope": POSING}
ALIKE = ("hi\u037e by: user", "hi\uff1bby\uff1a user", "hi by\ua78auser", "hi by\uff1duser")


def is_quoted(said: str, text: str) -> bool:
    before, there, _ = said.partition(text)
    return bool(there) and re.sub(r"\\.", "", before).count('"') % 2 == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"intent": POSING, "by": "x"},
        {"problem": {"message": POSING}},
        {"services": ["a", POSING]},
        {"intent": 'a "', "problem": {"message": POSING}},
        {"grants": [GRANT], "by": "x"},
    ],
)
def test_a_text_poses_as_no_further_fact(facts: dict[str, object]) -> None:
    row = pb.LogRow(facts_json=json.dumps(facts))
    for said in (_all_facts(row), _worth_reading(row)):
        assert is_quoted(said, POSING)


@pytest.mark.parametrize("text", ALIKE, ids=ascii)
def test_nor_does_one_of_lookalikes(text: str) -> None:
    row = pb.LogRow(facts_json=json.dumps({"intent": text, "by": "x"}))
    assert is_quoted(_all_facts(row), text) and is_quoted(_worth_reading(row), text)


def test_an_item_is_told_from_several() -> None:
    grants = [GRANT | {"scope": "/a, g-2 always gmail:/"}, GRANT | {"scope": "/b"}]
    row = pb.LogRow(facts_json=json.dumps({"services": ["a, b", "c"], "grants": grants}))
    assert _worth_reading(row) == (
        'services: "a, b", c; grants: g-1 once files:"/a, g-2 always gmail:/", g-1 once files:/b'
    )


def test_other_texts_stay_as_they_are() -> None:
    facts = {"url": "https://a.example/?q=1", "problem": {"message": "The disk is full: nothing; no row."}, "n": 1}
    row = pb.LogRow(facts_json=json.dumps(facts))
    assert _worth_reading(row) == "url: https://a.example/?q=1; problem: The disk is full: nothing; no row.; n: 1"
