"""How well the ranking finds the right service and method: requests with the calls that they need, judged.

A request is served by any of its acceptable call sets, named as the provider names its methods. A set is found within
the first k when all of its methods are; the first method is right when it is in any acceptable set; the first service
is right when it is the service of any such method. Requests that nothing serves count only for `nothing`.

    python -m mapper.evaluation.retrieval --catalog CATALOG.DB REQUESTS.jsonl|INTENTS.txt [--failures]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapper.ranking.index import Found, Index
from policies.errors import InvalidInput

_LEVELS = (1, 3, 10, 20)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request and the sets of calls any of which serves it; none: nothing serves it."""

    id: str
    text: str
    sets: tuple[tuple[str, ...], ...]

    @property
    def methods(self) -> frozenset[str]:
        """Every method of an acceptable set."""
        return frozenset(name for names in self.sets for name in names)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the ranking did with one request."""

    wanted: Wanted
    service: bool
    first: bool
    within: frozenset[int]  # the levels at which a whole set was found
    found: Found
    seconds: float


def read(path: Path) -> list[Wanted]:
    """The requests of a file: JSON lines with `prompt` and `acceptable_apis`, or lines of "methods | request".

    Raises InvalidInput with the line that can't be read.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if line.startswith("{"):
                raw = json.loads(line)
                sets = tuple(tuple(names) for names in raw["acceptable_apis"])
                found.append(Wanted(str(raw.get("id", number)), raw["prompt"], sets))
            else:
                methods, text = line.split(" | ", 1)
                sets = tuple(tuple(n.strip().split("+")) for n in methods.split(",") if n.strip() != "-")
                found.append(Wanted(str(number), text, sets))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path.name}, line {number} is no request with its methods.",
                next_step='A line is {"prompt": …, "acceptable_apis": [[…]]} or: methods | request.',
            ) from error
    return found


def judge(index: Index, wanted: Wanted) -> Judged:
    """Rank one request and compare."""
    began = time.perf_counter()
    found = index.find(wanted.text, limit=max(_LEVELS))
    seconds = time.perf_counter() - began
    ids = [hit.origin_id for hit in found.hits]
    services = {index.family_of(name) for name in wanted.methods}
    return Judged(
        wanted=wanted,
        service=bool(found.hits) and index.family_of(ids[0]) in services,
        first=bool(ids) and ids[0] in wanted.methods,
        within=frozenset(k for k in _LEVELS if any(set(names) <= set(ids[:k]) for names in wanted.sets)),
        found=found,
        seconds=seconds,
    )


def report(judged: Sequence[Judged]) -> dict[str, Any]:
    """The figures over requests that something serves, in per cent; latency over all."""
    served = [each for each in judged if each.wanted.sets]
    return {
        "requests": len(served),
        "service_top1_pct": _pct(each.service for each in served),
        "method_first_pct": _pct(each.first for each in served),
        "recall_at": {str(k): _pct(k in each.within for each in served) for k in _LEVELS},
        "p50_ms": round(statistics.median(each.seconds for each in judged) * 1000, 2) if judged else 0.0,
    }


def _pct(values: Iterable[bool]) -> float:
    found = list(values)
    return round(100 * sum(found) / len(found), 1) if found else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report as JSON; with --failures, the misses too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", type=Path, required=True)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("requests", type=Path)
    options = parser.parse_args(arguments)
    index = Index.open(options.catalog)
    judged = [judge(index, wanted) for wanted in read(options.requests)]
    if options.failures:
        for each in judged:
            if each.wanted.sets and not each.first:
                sys.stdout.write(
                    f"{each.wanted.id} service={each.service} at20={20 in each.within} {each.wanted.text!r}\n"
                    f"    wanted {sorted(each.wanted.methods)}\n"
                    f"    got    {[hit.origin_id for hit in each.found.hits[:3]]}\n"
                )
    sys.stdout.write(json.dumps(report(judged)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
