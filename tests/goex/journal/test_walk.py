"""The quick way over the chain is the same check as a row's own hash, and takes nothing that isn't a row."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.journal.chain import Journal, Row
from goex.journal.errors import JournalBroken
from goex.journal.search import Wanted, find_rows
from goex.journal.walk import GENESIS, Walk, body, sealed
from policies.jsonvalue import canonical

KEY = b"k" * 32
texts = st.text(max_size=30).filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text))


@given(st.integers(0, 2**62), st.tuples(*[texts] * 7))
def test_what_is_hashed_is_the_canonical_form(number: int, columns: tuple[str, ...]) -> None:
    assert body(number, *columns) == canonical([number, *columns])


@given(st.integers(1, 2**40), texts, texts, st.binary(min_size=32, max_size=32))
def test_a_row_is_sealed_alike_both_ways(number: int, agent: str, facts: str, previous: bytes) -> None:
    row = Row(number, "2026", "a-1", agent, "note", "", "", facts, b"")
    raw = (number, "2026", "a-1", agent, "note", "", "", facts, b"")
    assert sealed(previous, raw) == row.seal(previous)


@pytest.mark.parametrize("column", range(1, 8))
@pytest.mark.parametrize("wrong", [None, 7, 1.5, b"bytes", "\ud800"])
def test_a_column_that_is_no_text_has_no_hash(column: int, wrong: Any) -> None:
    raw: list[Any] = [1, "", "", "", "", "", "", "{}", b""]
    raw[column] = wrong
    assert sealed(GENESIS, tuple(raw)) == b""


def test_a_row_of_the_wrong_types_is_not_good_because_it_has_no_hash() -> None:
    assert Walk().over([(1, "t", "", "", "note", "", "", b"{}", b"")]) == "Row 1 isn't what was written."


def test_a_row_that_is_gone_is_named() -> None:
    first = (1, "t", "", "", "note", "", "", "{}", b"")
    hash = sealed(GENESIS, first)
    third = (3, "t", "", "", "note", "", "", "{}", b"")
    rows = [(*first[:8], hash), (*third[:8], sealed(hash, third))]
    assert Walk().over(rows) == "Row 2 is missing: row 3 follows."


def test_two_columns_that_share_their_letters_are_not_alike() -> None:
    one = sealed(GENESIS, (1, "", "ab", "c", "", "", "", "", b""))
    assert one != sealed(GENESIS, (1, "", "a", "bc", "", "", "", "", b""))
    assert one != sealed(GENESIS, (1, "", 'ab","c', "", "", "", "", "", b""))


@given(st.integers(0, 8), st.integers(0, 2), st.data())
def test_any_change_of_any_row_is_found(place: int, where: int, data: st.DataObject) -> None:
    rows: list[tuple[Any, ...]] = []
    last = GENESIS
    for number in range(1, 10):
        raw = (number, "t", "a-1", "me", "note", "", "", json.dumps({"n": number}), b"")
        last = sealed(last, raw)
        rows.append((*raw[:8], last))
    assert Walk().over(rows) == ""
    changed = rows.copy()
    if where == 0:
        del changed[place]
        if place == 8:
            return  # a cut tail is the head's to notice
    elif where == 1:
        other = data.draw(st.integers(0, 8).filter(lambda each: each != place))
        changed[place], changed[other] = changed[other], changed[place]
    else:
        column = data.draw(st.integers(1, 8))
        wrong = data.draw(texts | st.binary() | st.none())
        if wrong == changed[place][column]:
            return
        changed[place] = (*changed[place][:column], wrong, *changed[place][column + 1 :])
    assert Walk().over(changed) != ""


@pytest.mark.parametrize("value", ["cast(x'ff' as text)", "x'7b7d'", "7"])
def test_what_was_never_written_is_said_to_be_altered_everywhere(tmp_path: Path, value: str) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(KEY)
    for _ in range(3):
        journal.append("note")
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute(f"update journal set facts = {value} where number = 2")
    found = journal.verify()
    assert not found.good and "isn't what was written" in found.problem
    with pytest.raises(JournalBroken):
        journal.authentic(1)
    if "ff" in value:
        with pytest.raises(JournalBroken, match="never wrote"):
            find_rows(journal, Wanted())


def test_it_tells_how_far_it_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(KEY)
    with journal.transaction() as transaction:
        for _ in range(2500):
            transaction.append("note")
    told: list[int] = []
    assert journal.verify(told.append).rows == 2500
    assert told[-1] == 2500
    assert told == sorted(told) and len(told) >= 3
