"""The stopping rule: counts in, how many more out."""

from __future__ import annotations

from itertools import pairwise, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.stopping_rule import LEAST_VOTES, Experience, Habit, Plan
from policies.errors import InvalidInput

PLAN = Plan()
STEADY = Habit(0.87, 0.5)


def test_three_that_agree_settle_it_for_a_steady_model_and_not_for_a_wavering_one() -> None:
    assert PLAN.more(0, 0, STEADY) == 3
    assert PLAN.settled(3, 3, STEADY) and PLAN.why(3, 3, STEADY) == "settled"
    wavering = Habit(0.6, 0.5)
    assert not PLAN.settled(3, 3, wavering) and PLAN.more(3, 3, wavering) > 0


def test_nothing_is_settled_that_would_not_be_taken() -> None:
    strict, steady = Plan(threshold=0.9), Habit(0.99, 0.1)
    assert strict.probability(8, 9, steady) >= strict.confidence
    assert not strict.settled(8, 9, steady) and strict.settled(9, 9, steady)


def test_no_history_makes_a_model_believed_or_never_believed() -> None:
    always, never = Experience(), Experience()
    for _ in range(500):
        always.observe(10, ["a"] * 10)
        never.observe(0, ["format"] * 10, frozenset({"format"}))
    assert always.habit.winner == 0.99 and never.habit.winner == 0.5
    assert 0.1 <= never.habit.rival <= 1.0


def test_what_errs_alike_is_asked_more_often() -> None:
    assert PLAN.settled(3, 4, Habit(0.85, 0.3)) and not PLAN.settled(3, 4, Habit(0.85, 1.0))


@pytest.mark.parametrize(
    ("k", "threshold", "majority"), [(10, 0.6, 6), (10, 0.3, 6), (5, 0.6, 3), (4, 0.5, 3), (1, 1.0, 1)]
)
def test_a_majority_leaves_no_room_for_another(k: int, threshold: float, majority: int) -> None:
    plan = Plan(k=k, threshold=threshold)
    assert plan.majority == majority and 2 * majority > k
    assert plan.probability(majority, majority, STEADY) == 1.0
    assert plan.probability(0, k - majority + 1, STEADY) == 0.0


def test_the_probability_is_the_share_of_outcomes() -> None:
    """By enumeration: all that is left is drawn, under each of the two priors, and counted."""
    from mapper.stopping_rule import _STRENGTH

    def rising(x: float, n: int) -> float:
        made = 1.0
        for i in range(n):
            made *= x + i
        return made

    def chance(x: float, y: float, ones: int, zeros: int) -> float:  # of one sequence, beta-binomial
        return rising(x, ones) * rising(y, zeros) / rising(x + y, ones + zeros)

    habit, votes, asked = Habit(0.8, 0.4), 2, 3
    priors = [(_STRENGTH * q, _STRENGTH * (1 - q)) for q in (0.8, 0.2 * 0.4)]
    seen = [chance(x, y, votes, asked - votes) for x, y in priors]
    reached = [
        sum(
            chance(x, y, votes + sum(rest), asked - votes + 7 - sum(rest))
            for rest in product((0, 1), repeat=7)
            if votes + sum(rest) >= 6
        )
        for x, y in priors
    ]
    assert PLAN.probability(votes, asked, habit) == pytest.approx(sum(reached) / sum(seen))
    assert sum(comb(7, j) for j in range(8)) == 2**7


@given(
    st.integers(1, 30), st.floats(0.5, 0.99), st.floats(0.1, 1), st.floats(0.05, 1), st.floats(0.5, 0.99),
    st.integers(0, 30), st.integers(0, 30),
)  # fmt: skip
def test_sampling_always_ends_and_never_asks_for_too_many(
    k: int, winner: float, rival: float, threshold: float, confidence: float, votes: int, others: int
) -> None:
    plan, habit = Plan(k=k, threshold=threshold, confidence=confidence), Habit(winner, rival)
    asked = min(votes + others, k)
    votes = min(votes, asked)
    more = plan.more(votes, asked, habit)
    assert 0 <= more <= k - asked
    assert 0 <= plan.probability(votes, asked, habit) <= 1 + 1e-9
    assert (more == 0) == (plan.why(votes, asked, habit) != "")
    if more == 0 and asked < k:
        assert votes >= min(LEAST_VOTES, plan.majority) and votes >= threshold * asked - 1e-6


@given(st.integers(0, 9), st.floats(0.5, 0.99))
def test_another_vote_for_the_leader_never_makes_it_less_likely(others: int, winner: float) -> None:
    chances = [PLAN.probability(votes, votes + others, Habit(round(winner, 3), 0.5)) for votes in range(11 - others)]
    assert all(later >= sooner - 1e-9 for sooner, later in pairwise(chances))


def test_a_fixed_plan_asks_for_all_at_once() -> None:
    plan = Plan(k=5, adaptive=False)
    assert plan.more(0, 0, STEADY) == 5 and plan.more(3, 3, STEADY) == 2 and plan.more(5, 5, STEADY) == 0
    assert plan.why(3, 3, STEADY) == "" and plan.why(5, 5, STEADY) == "all asked"


def test_experience_follows_the_model_and_forgets() -> None:
    experience = Experience()
    first = experience.habit
    assert first.winner == 0.87 and first.rival == 0.5
    for _ in range(300):
        experience.observe(5, ["a"] * 5 + ["b", "b", "c", "format", "format"], frozenset({"format"}))
    wavering = experience.habit
    assert wavering.winner == pytest.approx(0.5, abs=0.02)
    assert wavering.rival == pytest.approx((1 / 10) ** 0.5, abs=0.02)  # one pair of the ten says the same
    for _ in range(3_000):
        experience.observe(9, ["a"] * 8 + ["b", "b"])
    assert experience.habit.winner > 0.85 and experience.habit.rival > 0.9
    assert Experience().habit == first


def test_votes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="votes"):
        Experience().observe(3, ["a"])


@pytest.mark.parametrize(
    "settings",
    [{"k": 0}, {"k": 101}, {"confidence": 0.4}, {"confidence": 1.0}, {"threshold": 0.0}, {"threshold": 1.1}],
)
def test_plans_that_cannot_be_meant(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="Sampling needs"):
        Plan(**settings)  # type: ignore[arg-type]
