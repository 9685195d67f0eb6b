"""The facts of a row in words: what an agent wrote is told from what GoEx did."""

from __future__ import annotations

import json

import pytest

from goex.cli.journal_table import _all_facts, _worth_reading
from goex.rpc import goex_pb2 as pb

POSING = "hi by=user 1000 (goex); by: user 1000 (goex)"


@pytest.mark.parametrize(
    "facts", [{"intent": POSING, "by": "x"}, {"problem": {"message": POSING}}, {"services": ["a", POSING]}]
)
def test_a_text_poses_as_no_further_fact(facts: dict[str, object]) -> None:
    row = pb.LogRow(facts_json=json.dumps(facts))
    for said in (_all_facts(row), _worth_reading(row)):
        before, quoted, _ = said.partition(POSING)
        assert quoted and before.count('"') % 2 == 1


def test_other_texts_stay_as_they_are() -> None:
    facts = {"url": "https://a.example/?q=1", "problem": {"message": "The disk is full: nothing; no row."}, "n": 1}
    row = pb.LogRow(facts_json=json.dumps(facts))
    assert _worth_reading(row) == "url: https://a.example/?q=1; problem: The disk is full: nothing; no row.; n: 1"
