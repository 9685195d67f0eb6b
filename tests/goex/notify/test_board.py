"""Which questions have room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.notify.board import Board
from goex.rpc import goex_pb2 as pb


def ask(board: Board, id: str, agent: str = "a", *same: str) -> None:
    board.asked(pb.Approval(id=id, agent=agent, same_as=same))


def shown(board: Board, most: int = 4) -> tuple[list[str], int]:
    entries, more = board.wanted(most)
    return [entry.first.id for entry in entries], more


def test_the_oldest_have_room_and_the_rest_is_counted() -> None:
    board = Board()
    for number in range(10):
        ask(board, f"q{number}")
    assert shown(board) == (["q0", "q1", "q2", "q3"], 6)
    board.ended("q1")
    assert shown(board) == (["q0", "q2", "q3", "q4"], 5)


@pytest.mark.promise(26)
def test_agents_take_turns() -> None:
    board = Board()
    for number in range(50):
        ask(board, f"flood{number}", "flooding")
    ask(board, "quiet", "other")
    assert "quiet" in shown(board)[0]


def test_identical_ones_are_one_and_end_one_by_one() -> None:
    board = Board()
    ask(board, "q1")
    ask(board, "q2", "a", "q1")
    ask(board, "q3", "a", "q1", "q2")
    (entry,), more = board.wanted(4)
    assert (entry.ids, more) == (("q1", "q2", "q3"), 0)
    assert board.ended("q1") is entry
    assert entry.ids == ("q2", "q3")
    board.ended("q2")
    board.ended("q3")
    assert (len(board), board.ended("q3")) == (0, None)


def test_what_was_closed_stays_away_until_there_is_another_server() -> None:
    board = Board()
    ask(board, "q1")
    ask(board, "q2")
    entry = board.of("q1")
    assert entry is not None
    entry.closed = True
    ask(board, "q1")  # news of it don't open it again
    assert shown(board) == (["q2"], 0)
    board.reopen()
    assert shown(board) == (["q1", "q2"], 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.integers(0, 3)), max_size=60), st.integers(1, 5))
def test_each_question_that_waits_is_shown_or_counted(steps: list[tuple[bool, int, int]], most: int) -> None:
    board, waiting = Board(), set()
    for comes, number, agent in steps:
        id = f"q{number}"
        if comes:
            ask(board, id, f"agent{agent}")
            waiting.add(id)
        else:
            board.ended(id)
            waiting.discard(id)
        entries, more = board.wanted(most)
        assert len(entries) <= most
        assert len(entries) + more == len(waiting)
        assert {entry.first.id for entry in entries} <= waiting
        assert (more > 0) == (len(waiting) > most)
