"""When enough samples have been asked for: a stopping rule over counts, without a model, a clock or chance.

All that the rule knows is how many samples came (n), how many of them stand behind the leading reading at its weakest
choice (a), and at most how many may be asked for (k). It stops when what all k would say is known well enough.

The idea is adaptive consistency (Aggarwal et al. 2023, arXiv:2305.11860): go on until a posterior over the votes says
that the majority won't change. Here the question is finite, and so is the answer. All k samples decide for the leader
when at least m = max(ceil(threshold * k), floor(k / 2) + 1) of them stand behind it; then no other reading can win,
nor tie. Of the r = k - n samples that are left out, m - a would have to. Given a prior Beta(x, y) on the share of the
samples that stand behind a reading, their number is beta-binomial:

    P(j of r | a of n) = C(r, j) B(x + a + j, y + n - a + r - j) / B(x + a, y + n - a)

What prior? It is unknown whether the leader is the reading that usually wins or a rival that got ahead by luck. Both
are held possible, alike at first, and weighed by how well they explain a of n:

    usual: Beta(s q, s (1 - q))        rival: the same, for the share f (1 - q)

q is how much this model's samples agreed with their winner on earlier requests, and f how much of the rest agreed with
each other (`Experience`). So a model that wavers, or errs alike, is asked more often, by itself. `confidence` is the
least probability, over both, that all k would decide for the leader. Whatever the rule says, at least three votes
agree when it stops early.

How it fares with models whose errors are independent, or always the same: `tools.plots.simulation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb, exp, lgamma, sqrt
from typing import Literal

from policies.errors import InvalidInput

LEAST_VOTES = 3  # that agree, before the rule may stop early
MAX_SAMPLES = 100
DEFAULT_CONFIDENCE = 0.975

_STRENGTH = 100.0  # s: how alike the requests of one model are held to be, in samples
_FIRST, _FIRST_WEIGHT = 0.87, 60.0  # q before anything is known, worth so many samples
_FIRST_ALIKE, _ALIKE_WEIGHT = 0.25, 20.0  # f squared before anything is known, worth so many pairs of samples
_REMEMBERED = 600.0  # samples, or pairs; what came before counts less and less

Stop = Literal["", "settled", "all asked"]


@dataclass(frozen=True, slots=True)
class Habit:
    """How a model answers: q and f, above."""

    winner: float
    rival: float


@dataclass(slots=True)
class Experience:
    """How a model's samples agreed so far, older ones fading. One for each model, and each who asks it: whoever asks
    chooses how much they agree."""

    _behind: float = _FIRST * _FIRST_WEIGHT
    _asked: float = _FIRST_WEIGHT
    _alike: float = _FIRST_ALIKE * _ALIKE_WEIGHT
    _pairs: float = _ALIKE_WEIGHT

    @property
    def habit(self) -> Habit:
        """What to expect of the model, rounded so that nearly equal histories make equal decisions."""
        winner = min(max(self._behind / self._asked, 0.5), 0.99)
        return Habit(round(winner, 3), round(min(max(sqrt(self._alike / self._pairs), 0.1), 1.0), 2))

    def observe(self, votes: int, ballots: Sequence[str], rejections: frozenset[str] = frozenset()) -> None:
        """A vote has ended: `votes` of the ballots stood behind its winner. Equal ballots say the same; those in
        `rejections` say nothing, so no two of them agree."""
        asked = len(ballots)
        if not 0 <= votes <= asked:
            raise ValueError(f"{votes} votes of {asked} samples")
        fade = min(1.0, _REMEMBERED / (self._asked + asked))
        self._behind = (self._behind + votes) * fade
        self._asked = (self._asked + asked) * fade
        # Among the samples beside the largest group: how many pairs agree, of how many there are.
        groups = sorted(Counter(ballot for ballot in ballots if ballot not in rejections).values(), reverse=True)
        pairs = comb(asked - (groups[0] if groups else 0), 2)
        fade = min(1.0, _REMEMBERED / (self._pairs + pairs))
        self._alike = (self._alike + sum(comb(size, 2) for size in groups[1:])) * fade
        self._pairs = (self._pairs + pairs) * fade


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many samples to ask for. `k` at most; without `adaptive` exactly as many."""

    k: int = 10
    adaptive: bool = True
    confidence: float = DEFAULT_CONFIDENCE
    threshold: float = 0.6

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MAX_SAMPLES or not 0.5 <= self.confidence < 1 or not 0 < self.threshold <= 1:
            raise InvalidInput(
                f"Sampling needs 1 to {MAX_SAMPLES} samples, a confidence from 0.5 to below 1 and a threshold above 0.",
                next_step="Correct [model] samples, confidence or threshold in config.toml.",
            )

    @property
    def majority(self) -> int:
        """m: with so many of k samples behind it, a reading is decided on."""
        return max(ceil(self.threshold * self.k - 1e-9), self.k // 2 + 1)

    def probability(self, votes: int, asked: int, habit: Habit) -> float:
        """That all k samples decide for a leader with `votes` of `asked`; `habit` is the model's."""
        return _probability(votes, asked, self.k, self.majority, habit)

    def settled(self, votes: int, asked: int, habit: Habit) -> bool:
        """Whether the leader is known to stay it at the stated confidence."""
        return (
            votes >= min(LEAST_VOTES, self.majority)
            and votes >= self.threshold * asked - 1e-9
            and self.probability(votes, asked, habit) >= self.confidence
        )

    def more(self, votes: int, asked: int, habit: Habit) -> int:
        """How many samples to ask for next: the fewest that could settle it, so that none is asked for in vain; 0
        when it is enough."""
        left = self.k - asked
        if left <= 0 or (self.adaptive and self.settled(votes, asked, habit)):
            return 0
        if self.adaptive:
            for step in range(1, left):
                if self.settled(votes + step, asked + step, habit):
                    return step
        return left

    def why(self, votes: int, asked: int, habit: Habit) -> Stop:
        """Why sampling ended, for the journal; "" while it hasn't."""
        if asked >= self.k:
            return "all asked"
        return "settled" if self.adaptive and self.settled(votes, asked, habit) else ""


@lru_cache(maxsize=20_000)
def _probability(votes: int, asked: int, k: int, majority: int, habit: Habit) -> float:
    missing, left = majority - votes, k - asked
    if missing <= 0:
        return 1.0
    if missing > left:
        return 0.0
    usual = _prior(habit.winner)
    rival = _prior((1 - habit.winner) * habit.rival)
    weights = [exp(_log_beta(x + votes, y + asked - votes) - _log_beta(x, y)) for x, y in (usual, rival)]
    reach = [_at_least(missing, left, x + votes, y + asked - votes) for x, y in (usual, rival)]
    return sum(weight * chance for weight, chance in zip(weights, reach, strict=True)) / sum(weights)


def _prior(share: float) -> tuple[float, float]:
    return _STRENGTH * share, _STRENGTH * (1 - share)


def _at_least(least: int, of: int, x: float, y: float) -> float:
    """The probability of at least `least` of `of`, beta-binomial."""
    return sum(
        exp(lgamma(of + 1) - lgamma(j + 1) - lgamma(of - j + 1) + _log_beta(x + j, y + of - j) - _log_beta(x, y))
        for j in range(least, of + 1)
    )


def _log_beta(x: float, y: float) -> float:
    return lgamma(x) + lgamma(y) - lgamma(x + y)
