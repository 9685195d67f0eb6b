"""What a scope opens: a set of methods over everything that its provider offers, from which an order follows.

Rules: a method counts once, in however many versions a provider publishes it; a scope that several services share
(`drive` is one of documents, sheets and slides, too) opens the methods of all of them. The sets are bits, so that
joining and comparing them costs microseconds also where a scope opens thirteen thousand methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.services import Method, Risk

# How much one more method of a risk weighs against others. Who may delete or share can do more harm than who may read
# many things, yet not without end: a scope that reads everything is no small one.
WEIGHTS: Mapping[Risk, int] = {Risk.READ: 1, Risk.WRITE: 3, Risk.DELETE: 10, Risk.ADMIN: 20}

# Providers whose services share their scopes by name. Elsewhere a name means something of its own in each service.
SHARING = frozenset({"google"})


@dataclass(frozen=True, slots=True)
class Reach:
    """Methods by risk (bits, READ to ADMIN) and the services that they are in (bits). Joined by `|`.

    `home` is the service, as its provider calls it, that most of the methods are in; "" where none has most of them.
    """

    bits: tuple[int, int, int, int] = (0, 0, 0, 0)
    services: int = 0
    home: str = ""

    def __or__(self, other: Reach) -> Reach:
        a, b = self.bits, other.bits
        return Reach((a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]), self.services | other.services)

    def looked_at(self) -> Reach:
        """The same, each method as one that only reads: what a scope opens whose provider lets it only look."""
        a = self.bits
        return Reach((a[0] | a[1] | a[2] | a[3], 0, 0, 0), self.services, self.home)

    def within(self, other: Reach) -> bool:
        """Whether `other` opens all that this does."""
        return all(mine & theirs == mine for mine, theirs in zip(self.bits, other.bits, strict=True))

    def besides(self, other: Reach) -> int:
        """How many methods this opens that `other` doesn't."""
        return sum((mine & ~theirs).bit_count() for mine, theirs in zip(self.bits, other.bits, strict=True))

    def count(self, risk: Risk) -> int:
        """How many methods of that risk."""
        return self.bits[risk - 1].bit_count()

    @property
    def methods(self) -> int:
        return sum(bits.bit_count() for bits in self.bits)

    @property
    def weight(self) -> int:
        """What opening this costs: its methods, each by its risk. A part never weighs more than the whole."""
        return sum(WEIGHTS[risk] * self.count(risk) for risk in Risk)

    @property
    def risk(self) -> Risk:
        """The worst risk among the methods; DELETE when there is none, since absence of knowledge isn't safety."""
        return max((risk for risk in Risk if self.count(risk)), default=Risk.DELETE)


def of_methods(methods: Iterable[Method]) -> dict[str, Reach]:
    """What each scope opens among the methods of one service."""
    found: dict[str, list[int]] = {}
    for place, method in enumerate(methods):
        for scope in method.scopes:
            found.setdefault(scope, [0, 0, 0, 0])[method.risk - 1] |= 1 << place
    return {scope: Reach((bits[0], bits[1], bits[2], bits[3]), 1) for scope, bits in found.items()}
