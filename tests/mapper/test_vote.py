"""The vote: majority over structures, then arguments; unsure at ties, below the threshold, and when nothing fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.vote import Sample, Vote, vote
from policies.actions import Call, Rejected
from policies.errors import InvalidInput


def c(name: str = "a", **arguments: Any) -> Call:
    return Call(service="s", method=name, arguments=arguments)


def rejected(number: int = 0) -> Rejected:
    return Rejected(sample=number, reason="bad")


def run(samples: Sequence[Sample], threshold: float = 0.6, *, refuse: bool = False) -> Vote:
    def check(calls: tuple[Call, ...]) -> tuple[Call, ...]:
        if refuse:
            raise InvalidInput("no")
        return calls

    return vote(
        samples,
        scopes_of=lambda calls: tuple(sorted({f"s:{call.method}" for call in calls})),
        check=check,
        is_read=lambda call: call.method.startswith("read"),
        threshold=threshold,
    )


A: tuple[Call, ...] = (c("a", x=1),)
B: tuple[Call, ...] = (c("b", x=1),)

TABLE: list[tuple[Sequence[Sample], tuple[Call, ...] | None, float, bool]] = [
    ([A], A, 1.0, True),
    ([A] * 10, A, 1.0, True),
    ([A] * 6 + [B] * 4, A, 0.6, True),
    ([A] * 5 + [B] * 4, A, 5 / 9, False),
    ([A] * 6 + [rejected()] * 4, A, 0.6, True),
    ([A] * 5 + [rejected()] * 5, A, 0.5, False),
    ([A, B], None, 0.5, False),
    ([], None, 0.0, False),
    ([rejected()] * 3, None, 0.0, False),
    ([()] * 3, None, 1.0, False),
    ([()] * 3 + [A] * 2, None, 0.6, False),
    ([A] * 3 + [()] * 2, A, 0.6, True),
]


@pytest.mark.parametrize(("samples", "winner", "agreement", "sure"), TABLE)
def test_table(samples: Sequence[Sample], winner: tuple[Call, ...] | None, agreement: float, sure: bool) -> None:
    made = run(samples)
    assert made.sure is sure and made.agreement == pytest.approx(agreement) and made.samples == len(samples)
    assert len(made.rejected) == sum(isinstance(sample, Rejected) for sample in samples)
    if winner is not None:
        assert made.alternatives[0].calls == winner
        assert made.alternatives[0].scopes == (f"s:{winner[0].method}",)


def test_calls_that_build_on_each_other_stay_in_their_order() -> None:
    first, second = c("read.z"), c("read.a", id={"$from": 0, "path": "$.id"})
    made = run([(first, second)] * 3)
    assert made.sure and made.alternatives[0].calls == (first, second)
    assert len(set(run([(first, c("read.a")), (c("read.a"), first)]).ballots)) == 1


def test_a_tie_is_never_sure_even_below_any_threshold() -> None:
    made = run([A, B], threshold=0.1)
    assert not made.sure and [alternative.calls for alternative in made.alternatives] in ([A, B], [B, A])
    assert [alternative.votes for alternative in made.alternatives] == [1, 1]


def test_when_nothing_fits_there_is_no_alternative() -> None:
    made = run([()] * 4 + [A])
    assert made.alternatives == () and not made.sure and made.notes


def test_each_argument_is_voted_on() -> None:
    samples: list[Sample] = [
        (c(x=1, y=1),), (c(x=1, y=1),), (c(x=1, y=2),), (c(x=1, y=1),), (c(x=2, y=1),),
    ]  # fmt: skip
    made = run(samples)
    assert made.alternatives[0].calls == (c(x=1, y=1),)
    assert made.agreement == pytest.approx(0.8) and made.sure and made.alternatives[0].votes == 4


def test_arguments_can_win_that_no_sample_wrote_together() -> None:
    samples: list[Sample] = [(c(x=1, y=9),), (c(x=1, y=8),), (c(x=7, y=2),), (c(x=6, y=2),), (c(x=1, y=2, z=1),)]
    made = run(samples, threshold=0.6)
    assert made.alternatives[0].calls == (c(x=1, y=2),) and made.agreement == pytest.approx(0.6)
    refused = run(samples, refuse=True)
    assert refused.alternatives[0].calls in samples and not refused.sure


def test_a_tie_over_an_argument_is_unsure() -> None:
    made = run([(c(x=1),), (c(x=2),)], threshold=0.4)
    assert not made.sure and made.agreement == pytest.approx(0.5)


def test_equal_values_of_another_type_are_not_equal() -> None:
    made = run([(c(x=1),), (c(x=True),), (c(x="1"),)])
    assert made.agreement == pytest.approx(1 / 3) and not made.sure


def test_order_means_nothing_among_reads_and_something_among_writes() -> None:
    reads: list[Sample] = [(c("read1"), c("read2")), (c("read2"), c("read1"))]
    assert run(reads).sure
    writes: list[Sample] = [(c("w1"), c("w2")), (c("w2"), c("w1"))]
    assert not run(writes).sure
    chained: list[Sample] = [
        (c("read1"), c("read2", x={"$from": 0, "path": "$.a"})),
        (c("read2"), c("read1", x={"$from": 0, "path": "$.a"})),
    ]
    assert not run(chained).sure


def test_alternatives_are_few_and_best_first() -> None:
    made = run([(c(x=i),) for i in range(9)] + [(c(x=3),)])
    assert len(made.alternatives) == 5
    assert made.alternatives[0].votes == 2 and [a.votes for a in made.alternatives[1:]] == [1, 1, 1, 1]


def test_ballots_say_what_each_sample_said_in_order() -> None:
    reads: tuple[Call, ...] = (c("read1"), c("read2"))
    made = run([A, B, rejected(2), A, (), reads, tuple(reversed(reads))])
    assert made.ballots[0] == made.ballots[3] != made.ballots[1]
    assert made.ballots[2] == "format" and made.ballots[4] == "nothing" and made.ballots[5] == made.ballots[6]
    assert all(len(ballot) == 16 for n, ballot in enumerate(made.ballots) if n not in (2, 4))


def test_votes_are_those_of_the_weakest_choice() -> None:
    samples: list[Sample] = [(c(x=1, y=1),), (c(x=1, y=2),), (c(x=1, y=1),), rejected()]
    assert run(samples).votes == 2 and run([()] * 3 + [A]).votes == 3 and run([rejected()]).votes == 0


_SAMPLES = st.lists(
    st.sampled_from([A, B, (), (c("a", x=2),), (c("a", x=2, y=[1]),), rejected(), (c("read1"), c("read2"))]), max_size=8
)


@given(_SAMPLES, st.randoms())
def test_the_order_of_samples_does_not_matter(samples: list[Sample], random: Any) -> None:
    shuffled = list(samples)
    random.shuffle(shuffled)
    one, two = run(samples), run(shuffled)
    assert (one.alternatives, one.agreement, one.sure, one.notes) == (
        two.alternatives, two.agreement, two.sure, two.notes,
    )  # fmt: skip
    assert 0 <= one.agreement <= 1 and not (one.sure and not one.alternatives)
