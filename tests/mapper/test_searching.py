"""Finding methods by words that may be parts of their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapper.embedded import EmbeddedProposer
from mapper.mapper import Mapper
from mapper.method_search import search
from tests.mapper.test_store import document, written


def test_short_words_find_names_that_are_made_of_them_behind_the_best_of_the_ranking(tmp_path: Path) -> None:
    db = tmp_path / "catalog.db"
    names = [f"shelf{n}.things.list" for n in range(30)]
    catalog = written(db, document("diary", "v3", *names, "pages.insertLeaf"), document("ledger", "v1", "leaf.list"))

    def ids(text: str, limit: int = 20) -> list[str]:
        return [one.id for one in search(catalog, text, limit=limit)]

    assert ids("diary insert", 1) == ["diary.pages.insertLeaf"]  # the service that is named, never another one
    for words in ("diary insert", "DIARY leaf", "insert leaf", "pages insertleaf"):
        assert "diary.pages.insertLeaf" in ids(words, 2), words
    assert len(ids("diary list")) == len(set(ids("diary list"))) == 20
    assert catalog.store is not None
    assert catalog.store.containing("diary", "nsertl") == ("diary.pages.insertLeaf",)
    assert catalog.store.containing() == () == catalog.store.containing("diary", "nothing")
    assert len(catalog.store.containing("diary", "list", limit=7)) == 7


def test_a_models_search_begins_with_the_method_whose_name_it_spells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["pages.list", "pages.listLabels", "labels.list", *(f"pages.part{n}.list" for n in range(30))]
    catalog = written(tmp_path / "catalog.db", document("diary", "v3", *names))
    mapper = Mapper(catalog, EmbeddedProposer(catalog))
    for words in ("diary list pages", "diary page list", "Pages list"):
        found = [method.id for method in mapper.found(words)]
        assert found[0] == "diary.pages.list" and len(found) == len(set(found)) >= 10, (words, found)
    # Whatever the ranking thinks of these words, which it did find here.
    monkeypatch.setattr(mapper.embedded, "found", lambda words, **more: iter([catalog.method("diary.labels.list")]))
    assert [method.id for method in mapper.found("diary list page")][0::3] == ["diary.pages.list", "diary.labels.list"]
    assert [method.id for method in mapper.found("burn my diary")] == ["diary.labels.list"]
