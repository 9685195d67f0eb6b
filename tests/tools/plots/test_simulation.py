"""A noisy model over the catalog: adaptive votes decide as ten samples do, for a third of them.

The cases and the noise follow from a seed, so the figures are the same each time.
"""

from __future__ import annotations

import functools

import pytest

from mapper.catalog import Catalog
from mapper.proposals import parse_proposal
from mapper.stopping_rule import Habit, Plan
from policies.actions import Call, Rejected
from policies.errors import InvalidInput
from tools.plots.simulation import ADAPTIVE, Noise, NoisyModel, simulate

CATALOG = Catalog.bundled()


@functools.cache
def model() -> NoisyModel:
    return NoisyModel(CATALOG, seed=7)


@functools.cache
def meant() -> list[tuple[Call, ...]]:
    """What people ask for."""
    return model().cases(2_000)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("favourite", [pytest.param(0.0, marks=pytest.mark.thorough), 0.6])
@pytest.mark.parametrize("cases", [300, pytest.param(2_000, marks=pytest.mark.thorough)])
def test_at_fifteen_percent_noise(cases: int, favourite: float) -> None:
    results = simulate(model(), CATALOG, meant()[:cases], Noise(error=0.15, favourite=favourite))
    adaptive, single = results[ADAPTIVE], results["1"]
    assert adaptive.cases >= cases
    assert adaptive.agreement_pct >= 99.0
    assert adaptive.samples_mean <= 4.0
    # The control: the noise is there, and the vote is what takes it out.
    assert single.wrong_pct > 5 and single.scope_excessive_pct > 5
    assert adaptive.wrong_pct < 1 and adaptive.scope_excessive_pct < 0.5 and results["10"].scope_excessive_pct < 0.1


class Hasty(Plan):
    """A rule that takes the first two samples for settled."""

    def more(self, votes: int, asked: int, habit: Habit) -> int:
        return max(2 - asked, 0)


@pytest.mark.timeout(600)
def test_a_hasty_rule_is_caught() -> None:
    adaptive = simulate(model(), CATALOG, meant()[:200], Noise(error=0.15, favourite=0.6), plan=Hasty())[ADAPTIVE]
    assert adaptive.samples_mean == 2.0 and adaptive.agreement_pct < 99.0


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("error", "favourite"),
    [(0.0, 0.0), *(pytest.param(*each, marks=pytest.mark.thorough)
                   for each in ((0.05, 1.0), (0.3, 0.6), (0.3, 1.0), (0.5, 0.0))), (0.5, 1.0)],
)  # fmt: skip
def test_at_other_noise_it_asks_more_and_still_agrees(error: float, favourite: float) -> None:
    results = simulate(model(), CATALOG, meant()[:200], Noise(error=error, favourite=favourite))
    assert results[ADAPTIVE].agreement_pct >= 98.75
    if error >= 0.3:
        assert results[ADAPTIVE].samples_mean > 5
    if error == 0:
        assert results[ADAPTIVE].samples_mean == 3.0 and results[ADAPTIVE].right_pct == 100.0


def test_samples_are_text_of_every_kind() -> None:
    noise = Noise(error=0.5, favourite=0.3)
    right = wrong = 0
    kinds: set[str] = set()
    for number, calls in enumerate(meant()[:200]):
        for text in model().completions(number, calls, noise):
            sample = parse_proposal(text, CATALOG)
            right += sample == calls
            wrong += sample != calls
            kinds.add(sample.klass if isinstance(sample, Rejected) else f"{len(sample)} calls")
    assert 0.45 < right / (right + wrong) < 0.55
    assert {"format", "arguments", "unknown tool", "0 calls", "1 calls", "2 calls"} <= kinds


def test_the_same_seed_says_the_same() -> None:
    again = NoisyModel(CATALOG, seed=7)
    noise = Noise(error=0.4, favourite=0.5)
    assert again.cases(50) == meant()[:50]
    assert again.completions(3, meant()[3], noise) == model().completions(3, meant()[3], noise)
    assert NoisyModel(CATALOG, seed=8).cases(50) != meant()[:50]


def test_cases_cover_the_catalog_with_valid_calls() -> None:
    drawn = {call.id for (call,) in meant()}
    # The others want what can't be made up from their schemas alone: ids of a form, letters.
    assert len(drawn) >= 0.7 * sum(bool(method.scopes) for method in CATALOG.methods())
    assert all(isinstance(call, Call) and CATALOG.validate(call) == call for (call,) in meant()[:200])


def test_noise_and_catalogs_that_cannot_be() -> None:
    for error, favourite in ((-0.1, 0.0), (1.1, 0.0), (0.1, 2.0)):
        with pytest.raises(InvalidInput):
            Noise(error=error, favourite=favourite)
    with pytest.raises(InvalidInput, match="no method"):
        NoisyModel(Catalog.of([]))
