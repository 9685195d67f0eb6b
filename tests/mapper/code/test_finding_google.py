"""Google's methods, as programs call them by its library and by their addresses: a part of all that are imported."""

from __future__ import annotations

import keyword
import random
import re

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from mapper.store.catalog_reader import Store
from mapper.store.import_rows import Entry
from tests.google import google_catalog

__all__ = ["google_catalog"]  # a fixture

SAMPLE = 120
PROGRAM = 300  # calls: of one program, 400 are listed


def written(store: Store, entry: Entry) -> str:
    """The entry's path with values that are as its patterns say."""
    properties = store.method(entry.service, entry.name).parameters["properties"]  # type: ignore[union-attr]

    def value(slot: re.Match[str]) -> str:
        pattern = properties.get(slot[2], {}).get("pattern", "")
        return re.sub(r"\[\^/\]\+|\.\*|\.\+", "zq7", pattern.strip("^$")) if slot[1] and pattern else "zq7"

    return re.sub(r"\{(\+?)([^{}]+)\}", value, entry.path)


@pytest.mark.parametrize("how", ["library", "address"])
def test_googles_methods_are_found_by_name_and_by_address(google_catalog: Catalog, how: str, thorough: bool) -> None:
    store = google_catalog.store
    assert store is not None
    facts = {one.name: one for one in store.facts()}
    entries = [one for one in store.entries() if one.http and not one.unsupported]
    random.Random(7).shuffle(entries)
    by_service: dict[str, list[Entry]] = {}
    for entry in entries if thorough else entries[:SAMPLE]:
        by_service.setdefault(entry.service, []).append(entry)
    right = wrong = 0
    missed = []
    programs = [(service, some[at : at + PROGRAM]) for service, some in by_service.items()
                for at in range(0, len(some), PROGRAM)]  # fmt: skip
    for service, some in programs:
        fact = facts[service]
        lines = ["import requests", "from googleapiclient.discovery import build"]
        for entry in some:
            if how == "address":
                lines.append(f"requests.request('{entry.http}', '{fact.base_url.rstrip('/')}{written(store, entry)}')")
                continue
            versions = fact.version.split("+")
            part = f"{entry.name.partition('.')[0]}_"
            version = next((one for one in versions if one.startswith(part)), versions[0])
            chain = [f"{one}_" if keyword.iskeyword(one) else one
                     for one in entry.origin_id.replace("-", "_").split(".")[1:]]  # fmt: skip
            given = [f"**{{'{name}': 'x'}}" for name in re.findall(r"\{\+?([^{}]+)\}", entry.path)]
            given += ["body={'a': 1}"] if entry.http in ("POST", "PUT", "PATCH") else []
            call = "().".join(chain)
            lines.append(f"build('{fact.provider_name}', '{version}').{call}({', '.join(given)}).execute()")
        found: dict[int, set[str]] = {}
        for call_found in find("python", "\n".join(lines), google_catalog, (service,)).calls:
            found.setdefault(call_found.line, set()).add(call_found.method_id)
        for line, entry in enumerate(some, 3):
            there = found.get(line, set())
            right += there == {entry.id}
            wrong += bool(there - {entry.id})
            if there != {entry.id}:
                missed.append((entry.id, there))
    assert wrong == 0, missed
    assert right >= 0.99 * (right + len(missed)), missed
