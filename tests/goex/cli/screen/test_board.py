"""What may be decided, and when: the screen's rules without a screen."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.cli.screen.board import MOMENT, Board, clock, remaining
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.fake import approval
from tests.goex.cli.screen.support import brief

TODAY = datetime(2026, 1, 1, tzinfo=UTC)


def ready(**changes: object) -> Board:
    """A board on which the question q-1 can be allowed at time 10."""
    board = Board(connected=True)
    board.put(approval(**{"id": "q-1", **changes}))
    board.select("q-1")
    board.stands("q-1", 0.0, end=True)
    return board


def test_a_question_that_was_seen_to_its_end_can_be_allowed() -> None:
    assert ready().why_not(10.0, TODAY, allow=True) == ""


def test_nothing_can_be_decided_without_a_selection_or_a_daemon() -> None:
    assert "Choose" in Board(connected=True).why_not(10.0, TODAY, allow=False)
    board = ready()
    board.connected = False
    assert "away" in board.why_not(10.0, TODAY, allow=False)


@pytest.mark.promise(27)
@pytest.mark.parametrize("allow", [True, False])
def test_a_key_counts_only_after_a_moment(allow: bool) -> None:
    board = ready()
    assert "just appeared" in board.why_not(MOMENT - 0.01, TODAY, allow=allow)
    assert board.why_not(MOMENT, TODAY, allow=allow) == ""


def test_what_was_not_read_to_its_end_can_only_be_denied() -> None:
    board = Board(connected=True)
    board.put(approval(id="q-1"))
    board.select("q-1")
    board.stands("q-1", 0.0, end=False)
    assert "end" in board.why_not(10.0, TODAY, allow=True)
    assert board.why_not(10.0, TODAY, allow=False) == ""
    board.stands("q-1", 5.0, end=True)
    assert board.why_not(10.0, TODAY, allow=True) == ""


def test_what_was_cut_cannot_be_decided_at_all() -> None:
    board = Board(connected=True)
    board.put(brief(approval(id="q-1")))
    board.select("q-1")
    board.stands("q-1", 0.0, end=True)
    assert "isn't on the screen" in board.why_not(10.0, TODAY, allow=True)
    board.fetched(brief(approval(id="q-1")))
    board.stands("q-1", 0.0, end=True)
    assert board.why_not(10.0, TODAY, allow=True) != ""


def test_another_text_under_the_same_id_counts_as_not_seen() -> None:
    board = ready()
    board.put(approval(id="q-1", digest="e" * 64))
    assert "isn't on the screen" in board.why_not(10.0, TODAY, allow=True)


def test_what_only_moved_in_the_queue_stays_seen() -> None:
    board = ready()
    board.put(brief(approval(id="q-1", place=2, count=3, same_as=["q-7"])))
    assert board.why_not(10.0, TODAY, allow=True) == ""
    item = board.current
    assert item is not None and item.whole is not None
    assert (item.whole.count, list(item.whole.same_as)) == (3, ["q-7"])
    assert item.whole.digest == "d" * 64


def test_what_ran_out_cannot_be_decided() -> None:
    assert "run out" in ready(deadline="2025-12-31T23:59:59+00:00").why_not(10.0, TODAY, allow=False)


def test_what_is_being_decided_is_not_decided_twice() -> None:
    board = ready()
    board.mine.add("q-1")
    assert "being decided" in board.why_not(10.0, TODAY, allow=True)


def test_selecting_anew_begins_the_moment_anew_and_keeps_what_was_read() -> None:
    board = ready()
    board.put(approval(id="q-2"))
    board.select("q-2")
    board.select("q-1")
    assert "isn't on the screen" in board.why_not(10.0, TODAY, allow=True)
    board.stands("q-1", 10.0, end=False)
    assert "just appeared" in board.why_not(10.1, TODAY, allow=True)
    assert board.why_not(11.0, TODAY, allow=True) == ""


def test_an_end_says_how_and_by_whom() -> None:
    board = ready()
    word = board.put(pb.Approval(id="q-1", state="denied", settled_by="user.sock \x1b[31m"))
    assert word == "q-1: denied by user.sock \\u{1b}[31m (settled elsewhere)."
    assert (board.selected, board.ended) == ("", word)
    assert board.why_not(10.0, TODAY, allow=True) == word
    assert board.put(pb.Approval(id="q-1", state="denied")) == ""


def test_what_was_missed_while_the_daemon_was_away_has_ended() -> None:
    board = ready()
    board.put(approval(id="q-2"))
    board.connected = False
    assert board.resync([brief(approval(id="q-2"))]) == "1 ended while the daemon was away."
    assert board.connected and board.selected == "" and "goex log" in board.ended
    assert [item.id for item in board.queue] == ["q-2"]


def test_identical_ones_are_one() -> None:
    board = ready()
    board.put(approval(id="q-0", same_as=["q-1"], count=2))
    assert [item.id for item in board.queue] == ["q-0"]
    assert board.selected == "" and "q-0" in board.ended


def test_the_queue_is_the_daemons() -> None:
    board = Board(connected=True)
    for id, place in (("a", 3), ("b", 1), ("c", 0), ("d", 2)):
        board.put(approval(id=id, place=place))
    assert [item.id for item in board.queue] == ["b", "d", "a", "c"]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["put", "brief", "end", "resync", "fetched", "stands"]),
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@pytest.mark.promise(27)
@given(EVENTS, st.sampled_from(["", "a", "b", "c"]))
def test_nothing_but_the_person_ever_selects(happened: list[tuple[str, str, int]], chosen: str) -> None:
    board = Board(connected=True)
    for id in ("a", "b", "c"):
        board.put(approval(id=id))
    board.select(chosen)
    for what, id, place in happened:
        made = approval(id=id, place=place, digest=str(place) * 64)
        if what == "put":
            board.put(made)
        elif what == "brief":
            board.put(brief(made))
        elif what == "end":
            board.put(pb.Approval(id=id, state="expired"))
        elif what == "resync":
            board.resync([made])
        elif what == "fetched":
            board.fetched(made)
        else:
            board.stands(id, 0.0, end=True)
        assert board.selected in ("", chosen)
        if not board.selected:
            chosen = ""


@pytest.mark.parametrize(
    ("deadline", "said"),
    [
        ("2026-01-01T00:04:07+00:00", "4:07"),
        ("2026-01-01T02:05:00+00:00", "2 h 05"),
        ("2025-01-01T00:00:00+00:00", "0:00"),
        ("soon", "?"),
        ("2026-01-01T00:04:07", "?"),
        ("", "?"),
    ],
)
def test_time_left(deadline: str, said: str) -> None:
    assert clock(remaining(deadline, TODAY)) == said
