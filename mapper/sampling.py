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

    usual: Beta(s q, s (1 - q))        rival: the same, for the share (1 - q) / 2

q is how much this model's samples agreed with their winner on earlier requests (`Experience`), and the rival gets half
of the rest. So a model that wavers is asked more often, by itself. `confidence` is the least probability, over both,
that all k would decide for the leader. Whatever the rule says, at least three votes agree when it stops early.

Samples of which all are the same wrong answer can't be told from right ones by counting. There the rule still
follows what all k would say, but a little less well; `mapper.evaluation.simulation` measures that too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, lgamma
from typing import Literal

from policies.errors import InvalidInput

LEAST_VOTES = 3  # that agree, before the rule may stop early
MAX_SAMPLES = 100
DEFAULT_CONFIDENCE = 0.975

_STRENGTH = 100.0  # s: how alike the requests of one model are held to be, in samples
_RIVAL = 0.5  # of what isn't behind the winner, how much one rival may have
_FIRST, _FIRST_WEIGHT = 0.87, 60.0  # q before anything is known, worth so many samples
_REMEMBERED = 600.0  # samples; what came before counts less and less

Stop = Literal["", "settled", "all asked"]


@dataclass(slots=True)
class Experience:
    """How much a model's samples agreed so far, older ones fading. One for each model."""

    _behind: float = _FIRST * _FIRST_WEIGHT
    _asked: float = _FIRST_WEIGHT

    @property
    def share(self) -> float:
        """q, rounded so that equal histories, and nearly equal ones, make equal decisions."""
        return round(min(max(self._behind / self._asked, 0.5), 0.99), 3)

    def observe(self, votes: int, asked: int) -> None:
        """A vote has ended: `votes` of `asked` samples stood behind its winner."""
        if not 0 <= votes <= asked:
            raise ValueError(f"{votes} votes of {asked} samples")
        fade = min(1.0, _REMEMBERED / (self._asked + asked))
        self._behind = (self._behind + votes) * fade
        self._asked = (self._asked + asked) * fade


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

    def probability(self, votes: int, asked: int, share: float) -> float:
        """That all k samples decide for a leader with `votes` of `asked`; `share` is the model's `Experience`."""
        return _probability(votes, asked, self.k, self.majority, share)

    def settled(self, votes: int, asked: int, share: float) -> bool:
        """Whether the leader is known to stay it at the stated confidence."""
        return (
            votes >= min(LEAST_VOTES, self.majority)
            and votes >= self.threshold * asked - 1e-9
            and self.probability(votes, asked, share) >= self.confidence
        )

    def more(self, votes: int, asked: int, share: float) -> int:
        """How many samples to ask for next: the fewest that could settle it, so that none is asked for in vain; 0
        when it is enough."""
        left = self.k - asked
        if left <= 0 or (self.adaptive and self.settled(votes, asked, share)):
            return 0
        if self.adaptive:
            for step in range(1, left):
                if self.settled(votes + step, asked + step, share):
                    return step
        return left

    def why(self, votes: int, asked: int, share: float) -> Stop:
        """Why sampling ended, for the journal; "" while it hasn't."""
        if asked >= self.k:
            return "all asked"
        return "settled" if self.adaptive and self.settled(votes, asked, share) else ""


@lru_cache(maxsize=20_000)
def _probability(votes: int, asked: int, k: int, majority: int, share: float) -> float:
    missing, left = majority - votes, k - asked
    if missing <= 0:
        return 1.0
    if missing > left:
        return 0.0
    usual = _prior(share)
    rival = _prior((1 - share) * _RIVAL)
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
