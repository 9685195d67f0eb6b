"""Fits the weights of `document_match` to requests for imported services, and writes `mapper/ranking/weights.json`.

What a request competes against is what it would at work: the methods of the service that its words name, else those of
all services that only their documents speak of. Beside the weights of the features: how sure the first method is, how
likely it is that nothing serves the request, and whether it is for these services or one that the lexicon knows. What
is printed is measured with each service judged by weights that were fitted without it. `--none` are requests that
nothing serves, `--told` those of which the lexicon's services in the catalog get theirs.

    python -m tools.ranking.fit_documents --catalog imported.db --none tests/vectors/declining.jsonl \\
        --told tests/vectors/requests.jsonl --told tests/mapper/ranking/intents.txt \\
        tests/vectors/imported.jsonl tests/vectors/imported_blind.jsonl tests/vectors/imported_blind2.jsonl [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mapper.catalog import Catalog
from mapper.evaluation import lines, retrieval
from mapper.named_services import ServiceNames
from mapper.ranking import document_match, lexicon
from mapper.ranking.index import Index, ServiceChooser
from mapper.ranking.weights import Weights
from tests.mapper.phrasings import TRAINING
from tests.mapper.phrasings_more import TRAINING_MORE
from tools.ranking.fit_weights import Rows, fitted, logistic
from tools.ranking.imported import Wanted, read

_LEVELS = (1, 5, 20)
_FREE = frozenset(("left_out", "deed_wrong", "short", "deprecated", "item", "object_left", "holes", "ids"))
_PULL, _ROUNDS, _FOLDS = 0.01, 120, 6
_SIDE_PULL = 0.05  # there are few requests for many signs
_KEPT = 600  # methods without a right one among them that compete in the fit, by what they have in common with it
_ELSEWHERE = 5  # of the lexicon's requests that nothing serves, each fifth


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with what competes for it."""

    wanted: Wanted
    rows: Rows
    chosen: frozenset[str]
    names: frozenset[str]

    @property
    def fold(self) -> int:
        """All requests for one service are in one."""
        return zlib.crc32(self.wanted.service.encode()) % _FOLDS


def asked(index: Index, names: ServiceNames, wanted: Sequence[Wanted]) -> list[Asked]:
    """What competes for each request that something serves."""
    found = []
    for each in wanted:
        named = names.of(each.text)
        chosen = named.here if index.untold(named.here) else frozenset()
        stems = named.stems if chosen else frozenset()
        ids, rows = index.documents_of(each.text, chosen, stems)
        right = np.array([name in each.methods for name in ids])
        near = np.zeros(len(ids), bool)
        near[np.argsort(-rows[:, : document_match.FEATURES.index("covered") + 1].sum(axis=1))[:_KEPT]] = True
        kept = near | right
        if right.any():
            found.append(Asked(each, Rows(rows[kept], np.flatnonzero(right[kept])), chosen, stems))
    return found


def features(found: Sequence[Asked]) -> Any:
    """The weights of `document_match.FEATURES`."""
    return fitted(
        [each.rows for each in found], document_match.FEATURES, pull=_PULL, rounds=_ROUNDS, free=_FREE, fixed={}
    )


def places(found: Sequence[Asked], weights: Sequence[Any]) -> dict[str, float]:
    """How often the right method is among the first, each request by the weights of its fold."""
    within = dict.fromkeys(_LEVELS, 0)
    for each in found:
        scores = each.rows.rows @ weights[each.fold]
        first = int((scores > scores[each.rows.right].max()).sum())
        for level in _LEVELS:
            within[level] += first < level
    return {f"within_{level}_pct": round(100 * count / len(found), 1) for level, count in within.items()}


def signs(
    index: Callable[[int], Index], found: Sequence[Asked], none: Sequence[str], told: Sequence[str]
) -> dict[str, Any]:
    """The weights of `document_sure`, `document_nothing` and `document_side`."""
    asks = [(each.wanted.text, each.fold, tuple(each.chosen), each.names, each.wanted.methods) for each in found]
    asks += [(text, number % _FOLDS, (), frozenset(), frozenset()) for number, text in enumerate((*none, *told))]
    rows, sides, right = [], [], []
    for text, fold, chosen, names, methods in asks:
        chooser: ServiceChooser | None = (lambda *_, chosen=chosen: chosen) if chosen else None
        own, side, first = index(fold).document_signs(text, chooser, names)
        rows.append(own)
        sides.append(side)
        right.append(first in methods)
    every, all_sides, is_right = np.array(rows), np.array(sides), np.array(right)
    served = np.arange(len(asks)) < len(found)
    lexicon_s = np.arange(len(asks)) >= len(found) + len(none)
    some = every.any(axis=1)
    both = all_sides.any(axis=1) & (served | lexicon_s)
    return {
        "document_sure": logistic(every[served & some], is_right[served & some], _weight(served[served & some])),
        "document_nothing": logistic(every[some], ~served[some], _weight(served[some])),
        "document_side": logistic(all_sides[both], served[both], _weight(served[both]), pull=_SIDE_PULL),
    }


def _weight(yes: Any) -> Any:
    """Both kinds count the same in all."""
    return np.where(yes, 1.0, yes.sum() / max((~yes).sum(), 1))


def told_requests(path: Path) -> list[str]:
    """Those of the requests that a service which comes with GoEx serves."""
    own = {name.rpartition("/")[2] for name in lexicon.general().lexicons.values()} | set(Catalog.bundled().services)
    return [each.text for each in retrieval.read(path) if any(name.partition(".")[0] in own for name in each.methods)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, report, and write when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--none", type=Path, action="append", default=[])
    parser.add_argument("--told", type=Path, action="append", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("requests", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    catalog = Catalog.open(options.catalog)
    wanted = [each for path in options.requests for each in read(path)]
    found = asked(Index.open(options.catalog), ServiceNames(catalog), wanted)
    crossed = [features([each for each in found if each.fold != fold]) for fold in range(_FOLDS)]
    out: dict[str, Any] = {"each service left out of its fit": places(found, crossed)}
    none = [line.text("prompt") for path in options.none for line in lines.read(path)]
    none += lexicon.general().elsewhere[::_ELSEWHERE]
    told = [text for text, *_ in (*TRAINING, *TRAINING_MORE)]
    told += [text for path in options.told for text in told_requests(path)]
    own = [Index.open(options.catalog, replace(Weights.bundled(), document=weights)) for weights in crossed]
    made = {"document": features(found), **signs(own.__getitem__, found, none, told)}
    for part, names in (
        ("document", document_match.FEATURES), ("document_sure", document_match.SIGNS),
        ("document_nothing", document_match.SIGNS), ("document_side", document_match.SIDES),
    ):  # fmt: skip
        out[part] = {name: round(float(value), 3) for name, value in zip(names, made[part], strict=True)}
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    if options.write:
        path = Path(__file__).parents[2] / "mapper" / "ranking" / "weights.json"
        whole = json.loads(path.read_text(encoding="utf-8"))
        whole.update({part: out[part] for part in made})
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
