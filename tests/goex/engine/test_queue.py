"""Who is asked about next: first in, first out a session; agents and sessions take turns; duplicates stand together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.engine.queue import Queue, Waiting, alike
from goex.journal.actions import ActionRow
from goex.journal.states import State
from runtimes.idempotency import action_key


def waiting(id: str, agent: str = "a", session: str = "", alike: str = "") -> Waiting:
    return Waiting(id, f"action-{id}", agent, session or f"{agent}-1", alike or id)


def queue(*found: Waiting) -> Queue:
    made = Queue()
    for each in found:
        made.enter(each)
    return made


def test_a_sessions_questions_stand_as_they_came() -> None:
    assert queue(*(waiting(id) for id in "cab")).order() == ("c", "a", "b")


@pytest.mark.promise(17)
def test_a_flood_of_one_agent_does_not_bury_anothers_single_question() -> None:
    flood = [waiting(f"a{n}", "flood") for n in range(500)]
    made = queue(*flood, waiting("one", "other"))
    assert made.order().index("one") == 1
    assert made.place("one") == 2


def test_a_flood_of_one_session_does_not_bury_the_same_agents_other_session() -> None:
    made = queue(*(waiting(f"a{n}", session="s1") for n in range(50)), waiting("one", session="s2"))
    assert made.order().index("one") == 1


def test_many_sessions_of_one_agent_get_no_more_turns_than_one() -> None:
    """A new connection is a new session: opening many must not put others back."""
    made = queue(*(waiting(f"a{n}", "flood", f"s{n}") for n in range(50)), waiting("one", "other"))
    assert made.order().index("one") == 1


def test_whoever_had_a_turn_is_behind_who_had_none() -> None:
    """Else the first of the order would always be the flood's, who was there earlier, and the other never come up."""
    made = queue(*(waiting(f"a{n}", "flood") for n in range(10)), waiting("b0", "other"), waiting("b1", "other"))
    answered = []
    for _ in range(4):
        answered.append(made.order()[0])
        made.leave(answered[-1])
    assert answered == ["a0", "b0", "a1", "b1"]


@pytest.mark.promise(17)
@pytest.mark.parametrize("agent", ["anonymous", "named"])
def test_a_new_session_for_each_question_keeps_no_other_session_waiting(agent: str) -> None:
    """Three sessions flood, and each is replaced by a new one as soon as its question is answered."""
    made = queue(*(waiting(f"v{n}", agent, "victim") for n in range(3)))
    for number in range(3):
        made.enter(waiting(f"f{number}", agent, f"flood-{number}"))
    answered = []
    for number in range(3, 14):
        answered.append(made.order()[0])
        made.leave(answered[-1])
        if answered[-1].startswith("f"):
            made.enter(waiting(f"f{number}", agent, f"flood-{number}"))
    places = [answered.index(f"v{number}") for number in range(3)]
    assert places == [0, 4, 8]


def test_a_session_that_comes_back_stands_behind_those_that_waited() -> None:
    made = queue(waiting("a0", session="s1"), waiting("b0", session="s2"), waiting("b1", session="s2"))
    made.leave("a0")
    made.leave("b0")
    made.enter(waiting("a1", session="s1"))
    assert made.order() == ("b1", "a1")


def test_identical_ones_stand_in_one_place_that_of_the_oldest() -> None:
    made = queue(waiting("a", alike="x"), waiting("b"), waiting("c", alike="x"), waiting("d", alike="x"))
    assert made.order() == ("a", "b")
    assert made.duplicates("c") == made.duplicates("a") == ("a", "c", "d")
    assert (len(made), made.count(), made.place("d")) == (2, 4, 1)


def test_when_the_oldest_is_answered_the_next_stands_where_its_own_age_puts_it() -> None:
    made = queue(waiting("a", alike="x"), waiting("b"), waiting("c", alike="x"), waiting("d"))
    made.leave("a")
    assert made.order() == ("b", "c", "d")


@pytest.mark.parametrize("other", [waiting("b", agent="z", alike="x"), waiting("b", session="z", alike="x")])
def test_what_another_agent_or_session_asks_is_never_identical(other: Waiting) -> None:
    made = queue(waiting("a", alike="x"), other)
    assert made.duplicates("a") == ("a",)
    assert len(made) == 2


def test_leaving_twice_and_entering_twice_change_nothing() -> None:
    made = queue(waiting("a"), waiting("a"), waiting("b"))
    made.leave("a")
    made.leave("a")
    made.leave("never there")
    assert (made.order(), made.place("a"), made.duplicates("a"), made.count("a")) == (("b",), 0, (), 1)


# ---- what is identical


def row(id: str, **changes: Any) -> ActionRow:
    facts: dict[str, Any] = dict.fromkeys(
        ("agent", "session", "kind", "created", "updated", "intent", "request", "plan", "digest", "outcome", "problem",
         "target", "source"), "same"
    )  # fmt: skip
    return ActionRow(**{**facts, "id": id, "number": 1, "state": State.ASKING, "detached": False, **changes})


def test_sendings_that_differ_in_their_own_key_alone_are_identical() -> None:
    """A service tells two sendings apart by a key that is made of the action's id; a person sees the same request."""
    plans = [f'{{"txn": "{action_key(id, 1)}", "undo": "{action_key(id, 0, "/undo")}"}}' for id in ("a-1", "a-2")]
    assert alike(row("a-1", plan=plans[0])) == alike(row("a-2", plan=plans[1]))
    # Another action's key is a text like any other: it can't make two requests look alike.
    assert alike(row("a-1", plan=plans[0])) != alike(row("a-2", plan=plans[0]))
    assert alike(row("a-1", plan=plans[1])) != alike(row("a-1", plan=plans[0]))


@pytest.mark.parametrize("field", ["agent", "session", "source", "intent", "kind", "target", "plan"])
def test_whatever_is_shown_makes_another_request(field: str) -> None:
    assert alike(row("a-1")) != alike(row("a-2", **{field: "other"}))


@pytest.mark.parametrize("field", ["number", "created", "updated", "digest"])
def test_what_isnt_shown_doesnt(field: str) -> None:
    assert alike(row("a-1")) == alike(row("a-2", **{field: "other"}))


# ---- as properties

ENTER = st.tuples(st.just("enter"), st.sampled_from("abc"), st.sampled_from("12"), st.sampled_from("xyz"))
LEAVE = st.tuples(st.just("leave"), st.integers(0, 30), st.none(), st.none())


@given(st.lists(ENTER | LEAVE, max_size=40))
def test_whatever_comes_and_goes(steps: Sequence[tuple[str, object, object, object]]) -> None:
    """Held against a model that knows nothing of places: all that waits, in the order in which it came."""
    made, model = Queue(), dict[str, Waiting]()
    for number, (kind, first, session, same) in enumerate(steps):
        if kind == "enter":
            each = waiting(f"q{number}", str(first), f"{first}{session}", f"{same}")
            made.enter(each)
            model[each.id] = each
        elif model:
            gone = list(model)[int(str(first)) % len(model)]
            made.leave(gone)
            del model[gone]
    order = made.order()
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in model.values():
        groups.setdefault((each.agent, each.session, each.alike), []).append(each.id)
    assert sorted(order) == sorted(ids[0] for ids in groups.values())  # each group once, by its oldest; none lost
    assert [made.place(id) for id in order] == list(range(1, len(order) + 1))
    for ids in groups.values():
        assert all(made.duplicates(id) == tuple(ids) for id in ids)
    for session in {each.session for each in model.values()}:
        mine = [id for id in order if model[id].session == session]
        assert mine == [id for id in model if id in mine]  # first in, first out
    for place, id in enumerate(order):  # nobody is passed by more than one of an agent in a round
        ahead = [model[other].agent for other in order[:place]]
        mine = ahead.count(model[id].agent)
        assert all(ahead.count(agent) <= mine + 1 for agent in set(ahead))
    assert made.count() == len(model)
    for agent in "abc":
        assert made.of(agent=agent) == tuple(id for id, each in model.items() if each.agent == agent)
