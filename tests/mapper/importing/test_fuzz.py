"""Ten thousand documents that are nearly right: each ends soon and small, and a known service is mapped to after each
batch.

A child reads and writes them (as `apart` does, without one for each document), so that time and memory are bounded by
its limits, and its end would be seen.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.importing import install
from mapper.importing.files import import_openapi
from mapper.ranking import index_tables
from tests.mapper.importing.openapi_documents import document

SEED = 14
BATCH = 250
SECONDS = 20  # of the processor, for one document
MEMORY = 1 << 30
KENNEL = document(
    {"/pets": {"post": {"operationId": "addPet", "summary": "Add a pet to the kennel"}}},
    info={"title": "Kennel", "version": "1"},
)
CHILD = """
    import json, resource, signal, sys
    from pathlib import Path
    from mapper.importing.reader_process import _answer
    from mapper.importing.document_files import Source
    from mapper.store.database import StoreUnreadable
    from mapper.store.catalog_writer import Writer
    from policies.errors import InvalidInput
    from dataclasses import replace
    from tests.mapper.importing.mutations import mutated

    path, seed, first, count, seconds = Path(sys.argv[1]), *map(int, sys.argv[2:6])
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[6]),) * 2)
    told = {"refused": 0, "taken": 0, "methods": 0, "left out": 0}
    for number in range(first, first + count):
        signal.setitimer(signal.ITIMER_PROF, 0)
        kind, name, text = mutated(seed, number)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        print(number, file=sys.stderr, flush=True)
        source = Source(name, text, "0")
        good, found = _answer(kind, source, ({}, set()) if kind == "discovery" else ("fuzzed",))
        made = found[1] if good else None
        if made is None:
            told["refused"] += 1
            continue
        with Writer(path, taken=("kennel",)) as writer:
            try:
                left = writer.put(replace(made, provider_name=f"fuzzed{number % 40}", file=name))
                writer.commit()
            except InvalidInput:
                told["refused"] += 1
                continue
        told["taken"] += 1
        told["methods"] += len(made.methods) - len(left)
        told["left out"] += len(left)
    print(json.dumps(told))
"""


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("first", "count"), [(0, 60), pytest.param(0, 10_000, marks=[pytest.mark.thorough, pytest.mark.timeout(3600)])]
)
def test_no_document_makes_another_service_unusable(
    tmp_path: Path, first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "catalog.db"
    (tmp_path / "kennel.json").write_text(json.dumps(KENNEL))
    import_openapi(path, tmp_path / "kennel.json", "kennel", index=False)
    monkeypatch.setattr(install, "rebuild", lambda *_: None)
    total: dict[str, int] = {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for start in range(first, first + count, BATCH):
        arguments = (path, SEED, start, min(BATCH, first + count - start), SECONDS, MEMORY)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CHILD), *map(str, arguments)],
            cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        for key, value in json.loads(done.stdout).items():
            total[key] = total.get(key, 0) + value
        _is_whole(path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{count} documents: {total}, {spent:.0f} s of the processor, at most {after.ru_maxrss >> 10} MB")
    assert total["refused"] + total["taken"] == count and total["taken"] > count // 20
    assert path.stat().st_size < 100_000_000


def _is_whole(path: Path) -> None:
    """The known service is mapped to and read, and every row that was taken can be read."""
    index_tables.rebuild(path)
    catalog = Catalog.open(path)
    readings = EmbeddedProposer(catalog).propose("add a pet to the kennel").readings
    assert readings and readings[0].method.id == "kennel.addPet"
    assert catalog.store is not None
    for fact in catalog.store.facts():
        service = catalog.service(fact.name)
        assert all(service.methods[name].id for name in service.methods)
    assert sum(1 for _ in catalog.entries(main=False)) == sum(fact.methods for fact in catalog.store.facts())
