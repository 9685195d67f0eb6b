"""The embedded proposer: no model, lexical and deterministic.

It ranks the catalog's methods, fills their arguments from what the request names, and is sure only when one reading
stands clear of the others, uses everything that was named and lacks nothing. Otherwise it offers the likeliest two or
three and says what is missing; and where nothing in the catalog serves the request, it says that. It never invents a
value. What somebody wants *said* never decides what is *done*: the ranking doesn't see it.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files

from mapper import dates
from mapper.ambiguity import Rival, doubts
from mapper.argument_filler import Filler, kinds
from mapper.broad_methods import narrowed
from mapper.catalog import Catalog
from mapper.left_out import left_out
from mapper.named_services import Named, ServiceNames, named_first, vocabulary
from mapper.ranking import lexicon
from mapper.ranking.features import TRAITS
from mapper.ranking.index import Found, Hit, Index, interleaved
from mapper.ranking.terms import STOP
from mapper.service_position import MEANS, held, not_served, standing, swallowed
from mapper.slots import Slots, extract
from mapper.store.database import ServiceUnreadable
from policies.actions import Call
from policies.services import Method, Risk

NAME = "embedded"

_ADDRESSED = re.compile(r"\s*([^:\n]{1,40}):\s+(\S.*)", re.DOTALL)
_PARTS = re.compile(r"[a-z0-9]+")
_CANDIDATES = 8
_GAP = 6.0  # in log odds, behind the first: what lies further back no argument brings to the front
_OFFERED = 3
# In log odds, as the ranking's scores: what it says for a method that the request fills it, or leaves it lacking.
_FILLED, _MISSING, _UNUSED, _KIND = 1.2, 1.6, 2.2, 2.0
_MOST_FILLED = 4
_SHARPER = 0.55  # scores are this many times too flat for the shares that they stand for
# The probability that the first reading is right, from which it is taken without asking; the riskier, the surer.
SURE = {Risk.READ: 0.82, Risk.WRITE: 0.88, Risk.DELETE: 0.9, Risk.ADMIN: 0.93}
# The probability that nothing fits, from which it says that this may be so; that it seems so; and from which not even
# what comes nearest is shown. Wanting what nothing does is rare, so that the first is far below a half.
DECLINES, _SEEMS, _GIVES_UP = 0.065, 0.3, 0.5
_NEAR = 0.08  # the probability that the likeliest reading is right, below which it isn't worth showing

SIGNS = (
    "bias", "ranked", "nothing", "share", "first", "kind", "named", "other_named", "filled", "missing", "unused",
    "overruled", *TRAITS,
)  # fmt: skip
"""What is known of the likeliest reading before it is decided on; `tests.mapper.deciding` fits their weights."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the request. `missing` names required arguments that it doesn't give; `calls` are () then.
    `probability`: that this reading's method is the wanted one."""

    calls: tuple[Call, ...]
    method: Method
    score: float
    probability: float
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """What the embedded proposer found: readings best first, and whether the first can be trusted.

    `declined`: nothing in the catalog seems to serve the request (`nothing` is the probability of that). The readings
    are then what comes nearest, for the person to look at; none where that is far off.
    """

    readings: tuple[Reading, ...]
    sure: bool
    notes: tuple[str, ...]
    nothing: float = 0.0
    declined: bool = False

    @property
    def complete(self) -> tuple[Reading, ...]:
        """The readings that could run as they are."""
        return tuple(reading for reading in self.readings if not reading.missing)


class EmbeddedProposer:
    """Proposes calls for a request in words. Ranks what the catalog holds now; safe to share."""

    name = NAME

    def __init__(self, catalog: Catalog, index: Index | None = None) -> None:
        self._catalog = catalog
        self._index = index
        self._generation = -1 if index is None else self._now()
        self._services_of: dict[str, set[str]] = {}
        self._spellings: dict[str, str] | None = None
        self._named: tuple[int, ServiceNames] | None = None
        self._lock = threading.Lock()

    @property
    def stale(self) -> bool:
        """Whether the next question takes longer, since the catalog has changed."""
        return self._index is None or self._generation != self._now()

    @property
    def index(self) -> Index:
        """The ranking of what the catalog holds now; seconds where an import hasn't left it. Raises StoreUnreadable."""
        with self._lock:
            generation = self._now()
            if self._index is None or generation != self._generation:
                store = self._catalog.store
                if self._catalog is Catalog.bundled():
                    self._index = Index.bundled()
                else:
                    self._index = Index.of(self._catalog.services.values()) if store is None else Index.open(store.path)
                self._generation = generation
            return self._index

    def propose(
        self,
        text: str,
        *,
        connected: frozenset[str] = frozenset(),
        explain: bool = False,
        now: datetime | None = None,
    ) -> Proposed:
        """The readings of `text`, best first. `connected`: services that have an account, preferred among equals;
        `explain` says of each reading which words spoke for it; `now`, with its time zone, is what "tomorrow" counts
        from (the machine's clock and zone)."""
        readings, signs = self.readings(text, connected=connected, explain=explain, now=now)
        if not signs and (absent := self._meant(text)[1].absent):
            return Proposed((), False, (_not_here(absent),), 1.0, declined=True)
        nothing = _weighed("nothing", signs) if signs else 1.0
        if nothing >= _GIVES_UP:
            return Proposed((), False, ("Nothing in the catalog does this.",), nothing, declined=True)
        if nothing >= DECLINES:
            near = readings[:_OFFERED] if readings[0].probability >= _NEAR else ()
            names = ", ".join(reading.method.id for reading in near)
            doubt = (
                "Nothing in the catalog seems to do this"
                if nothing >= _SEEMS
                else "It may be that nothing here does this"
            )
            said = [f"{doubt}{f'; what comes nearest: {names}' if near else ''}."]
            if near and near[0].missing:
                said.append(
                    f"{near[0].method.id} would need {', '.join(near[0].missing)}, which the request doesn't give."
                )
            return Proposed(near, False, tuple(said), nothing, declined=True)
        best = readings[0]
        notes: list[str] = []
        if best.missing:
            notes.append(f"{best.method.id} would fit, but the request doesn't give {', '.join(best.missing)}.")
        if best.unused:
            notes.append(f"{best.method.id} has no use for {', '.join(best.unused)}.")
        if not signs["first"]:
            notes.append(f"What was named fits {best.method.id}, but the words ask for something else.")
        if best.probability < SURE[best.method.risk]:
            others = [reading.method.id for reading in readings[1:_OFFERED] if reading.probability > 0.05]
            notes.append(f"It may be {' or '.join([best.method.id, *others])}.")
        if not notes:
            notes += self._doubts(text, readings, signs)
        if not notes and (name := self.unserved(text, best.calls)):
            notes.append(not_served(name))
        return Proposed(readings, sure=not notes, notes=tuple(notes), nothing=nothing)

    def readings(
        self,
        text: str,
        *,
        connected: frozenset[str] = frozenset(),
        explain: bool = False,
        now: datetime | None = None,
    ) -> tuple[tuple[Reading, ...], dict[str, float]]:
        """The readings before anything is decided, likeliest first, and the `SIGNS` of the first; see `propose`."""
        found, named = self._meant(text)
        if named.absent:
            return (), {}
        ranked = self._within(found.phrase, named, connected, explain)
        readings, signs = self._read_all(ranked, found, now or datetime.now(dates.LOCAL))
        kept = narrowed(readings, found)
        return kept, signs if kept else {}

    def named(self, phrase: str) -> Named:
        """The services that a request's own words name."""
        return self._service_names().of(phrase)

    def _service_names(self) -> ServiceNames:
        with self._lock:
            generation = self._now()
            if self._named is None or self._named[0] != generation:
                self._named = generation, ServiceNames(self._catalog)
            return self._named[1]

    def unserved(self, text: str, calls: Sequence[Call]) -> str:
        """A name that stands in a service's place and is none that is here, nor a value of `calls`; "": there is none.

        What makes such a request's calls a question: whoever says "from fastmail" doesn't mean the mail that is here.
        """
        names, products = self._service_names(), lexicon.products()
        for each in standing(text):
            if names.serves(each.name) or (not each.plainly and held(each.name, calls)):
                continue
            known = each.name in products.names or (each.plainly and each.name in products.words)
            place = each.unknown or swallowed(each.name, calls)
            if known or (place and (each.host or not self._is_a_word(each.name, each.ordinary))):
                return each.name
        return ""

    def _is_a_word(self, name: str, ordinary: bool) -> bool:
        """Whether the first word isn't a name alone; where even an ordinary word is one, a few that are none."""
        word = name.split()[0]
        if word in STOP or dates.is_word(word):
            return True
        return word in MEANS if ordinary else word in vocabulary() or self.index.knows([word])

    def _meant(self, text: str) -> tuple[Slots, Named]:
        """What a request says and which services it names. "stripe: make a coupon" is addressed to the one before the
        colon; what stands behind another colon is content."""
        addressed = _ADDRESSED.match(text)
        if addressed and (named := self.named(f"{addressed[1]}:")).here:
            own = {part for name in named.words for part in _PARTS.findall(name)}
            if set(_PARTS.findall(addressed[1].lower())) <= own | STOP:  # "file a stripe issue: …" asks already
                return self._extracted(addressed[2]), named
        found = self._extracted(text)
        return found, self.named(found.phrase)

    def _within(self, phrase: str, named: Named, connected: frozenset[str], explain: bool) -> Found:
        """The ranking of a request; of the services alone that it names, where it names some."""
        here, names = named.here, named.stems
        untold = self.index.untold(here)
        if untold:
            return self.index.find(
                phrase, connected=connected, limit=_CANDIDATES, explain=explain, chooser=lambda *_: tuple(here),
                names=names,
            )  # fmt: skip
        ranked = self.index.find(phrase, connected=connected, limit=_CANDIDATES, explain=explain)
        if not here:
            return ranked
        apis = {
            (one.provider, one.provider_name or one.name) for name in here if (one := self._catalog.services.get(name))
        }
        own = self._own(ranked, apis)
        # Where a named service leads already, its methods that were too far behind to be read stay unread: else those
        # that merely have a use for what was named would come before the one that the words ask for.
        if own and own[0] is ranked.hits[0]:
            return replace(ranked, hits=own)
        ranked = self.index.find(
            phrase, connected=connected, limit=_CANDIDATES, explain=explain, chooser=lambda *_: tuple(here)
        )
        return replace(ranked, hits=self._own(ranked, apis))

    def _own(self, ranked: Found, apis: set[tuple[str, str]]) -> tuple[Hit, ...]:
        """The hits that are methods of one of `apis`: (provider, its name for the service)."""
        own = []
        for hit in ranked.hits:
            one = self._catalog.services.get(hit.service)
            if one is not None and (one.provider, one.provider_name or one.name) in apis:
                own.append(hit)
        return tuple(own)

    def candidates(self, text: str, *, connected: frozenset[str] = frozenset(), limit: int = 16) -> list[Method]:
        """The methods that `text` may mean: what a model chooses among."""
        return list(self.found(text, connected=connected, limit=limit))

    def found(self, text: str, *, connected: frozenset[str] = frozenset(), limit: int = 16) -> Iterator[Method]:
        """The same, each read when it is looked at."""
        for hit in interleaved(self.ranked(text, connected=connected, limit=limit * 4), limit):
            with suppress(ServiceUnreadable):
                yield self._catalog.method(hit.method_id)

    def ranked(self, text: str, *, connected: frozenset[str] = frozenset(), limit: int = 20) -> list[Hit]:
        """The methods that fit best; those of a named service that only its documents speak of come first."""
        return named_first(self.index, self.named(text), text, connected=connected, limit=limit)

    def explain(self, text: str, *, connected: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Lines that say which services and methods the request's words point to, likeliest first, and why."""
        found = self._extracted(text)
        lines = []
        if found.phrase != text:
            lines.append(f"read as: {found.phrase}")
        for name, score, words in self.index.services(found.phrase, _OFFERED, connected=connected):
            lines.append(f"service {name} ({score:.1f}): {', '.join(words) or 'no word alone'}")
        proposed = self.propose(text, connected=connected, explain=True)
        for reading in proposed.readings[:_OFFERED]:
            lines.append(f"method {reading.method.id} ({reading.probability:.0%})")
            lines.extend(f"  {line}" for line in reading.why)
            if reading.missing:
                lines.append(f"  lacks {', '.join(reading.missing)}")
            if reading.unused:
                lines.append(f"  has no use for {', '.join(reading.unused)}")
        lines.append(f"nothing fits: {proposed.nothing:.0%}")
        return tuple(lines)

    # ---- inside

    def _now(self) -> int:
        store = self._catalog.store
        return store.generation if store is not None else 0

    def _doubts(self, text: str, readings: tuple[Reading, ...], signs: Mapping[str, float]) -> tuple[str, ...]:
        best = readings[0]
        told = bool(signs["named"] or signs["kind"])
        rivals = [
            Rival(each.method, each.calls, best.score - each.score, told and each.method.service != best.method.service)
            for each in readings[1:]
        ]
        found = self._meant(text)[0]
        said = doubts(self._catalog, best.method, best.calls, rivals, found.phrase, text)
        if said or not (words := left_out(self._catalog, best.calls, found)):
            return said
        listed = ", ".join(repr(each[:60]) for each in words[:_OFFERED])
        return (f"The request says {listed}, which {best.method.id} doesn't take into account.",)

    def _extracted(self, text: str) -> Slots:
        if self._spellings is None:
            here = self._catalog.services
            found = [here[name] for name in Catalog.bundled().services if name in here]
            bundled = [service for service in found if service.source == "bundled"]
            self._spellings = {name: s.name for s in bundled for name in (s.name, s.title.lower())}
            for service in bundled:
                for method in service.methods.values():
                    for schema in method.parameters["properties"].values():
                        for kind in kinds(schema) - {"number"}:
                            self._services_of.setdefault(kind, set()).add(service.name)
        return extract(text, self._spellings)

    def _read_all(self, ranked: Found, found: Slots, now: datetime) -> tuple[tuple[Reading, ...], dict[str, float]]:
        hinted = {service for slot in found.slots for service in self._services_of.get(slot.kind, ())}
        moments = dates.find(found.phrase, now)
        floor = ranked.hits[0].score - _GAP if ranked.hits else 0.0
        made = []
        for hit in ranked.hits:
            if hit.score >= floor:
                with suppress(ServiceUnreadable):  # its service alone is out of order
                    made.append(self._read(hit, found, moments, hinted))
        if not made:
            return (), {}
        made.sort(key=lambda each: (-each[0].score, each[0].method.id))
        spread = [math.exp((reading.score - made[0][0].score) / _SHARPER) for reading, _ in made]
        total = sum(spread)
        best, filled = made[0]
        words = set(re.findall(r"[a-z0-9]+", found.phrase.lower()))
        named = {service for spelling, service in (self._spellings or {}).items() if spelling in words}
        by_id = {reading.method.id: reading.method for reading, _ in made}
        worded = next((by_id[hit.method_id] for hit in ranked.hits if hit.method_id in by_id), best.method)
        riskier = best.method.risk > worded.risk
        first = best.method.id == ranked.hits[0].method_id
        # Of any method but its first, a ranking by documents says at most that the first is wrong; what the lexicon's
        # confidence says of others, the weights have learnt with `first`.
        confidence = ranked.confidence if first or not ranked.by_documents else 1 - ranked.confidence
        signs = {
            "bias": 1.0,
            "ranked": _log_odds(confidence),
            "nothing": _log_odds(ranked.nothing),
            "share": _log_odds(spread[0] / total),
            "first": float(first),
            "kind": float(best.method.service in hinted),
            "named": float(best.method.service in named),
            "other_named": float(bool(named) and best.method.service not in named),
            "filled": float(min(filled, _MOST_FILLED)),
            "missing": float(bool(best.missing)),
            "unused": float(bool(best.unused)),
            # What was named may say which service is meant, never what is to be done, let alone a riskier thing.
            "overruled": float(best.method.id != worded.id and (best.method.service == worded.service or riskier)),
            **(ranked.traits or {"documents": 1.0}),
        }
        right = _weighed("right", signs)
        return (
            tuple(
                replace(reading, probability=round(right if place == 0 else (1 - right) * share / total, 4))
                for place, ((reading, _), share) in enumerate(zip(made, spread, strict=True))
            ),
            signs,
        )

    def _read(self, hit: Hit, found: Slots, moments: tuple[dates.Moment, ...], hinted: set[str]) -> tuple[Reading, int]:
        """One reading, and how many arguments the request gives it."""
        method = self._catalog.method(hit.method_id)
        filler = Filler(self._catalog, method, found, moments)
        calls, missing = filler.calls()
        unused = filler.unused()
        score = hit.score + _FILLED * min(filler.named, _MOST_FILLED)
        score -= _MISSING * len(missing) + _UNUSED * len(unused)
        if method.service in hinted:
            score += _KIND
        return Reading(calls, method, score, 0.0, missing, unused, hit.why), filler.named


def _not_here(names: tuple[str, ...]) -> str:
    listed = " and ".join(names[:3])
    return (
        f"{listed} {'is' if len(names) == 1 else 'are'} not in the catalog, and no other service is taken for it. "
        "Import its OpenAPI document: goex catalog import openapi FILE"
    )


@cache
def _weights() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads((files("mapper") / "deciding.json").read_text(encoding="utf-8"))
    return found


def _weighed(what: str, signs: dict[str, float]) -> float:
    """The probability of `what` ("right" or "nothing") by the fitted weights."""
    weights = _weights()[f"documents_{what}" if signs.get("documents") else what]
    total = sum(weights.get(name, 0.0) * value for name, value in signs.items())
    return 1 / (1 + math.exp(-max(min(total, 30.0), -30.0)))


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 0.002), 0.998)
    return math.log(bounded / (1 - bounded))


__all__ = ("NAME", "EmbeddedProposer", "Proposed", "Reading")
