"""Ranking the services that come with GoEx: the rules that hold for any catalog."""

from __future__ import annotations

import functools
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.ranking import features, index_tables
from mapper.ranking.features import Evidence
from mapper.ranking.index import Hit, Index, interleaved
from tests.mapper.importing.documents import things

CATALOG = Catalog.bundled()


@functools.cache
def index() -> Index:
    return Index.bundled()


def first(text: str, **how: object) -> str:
    return index().search(text, **how)[0].method_id  # type: ignore[arg-type]


def test_every_hit_is_a_method_of_the_catalog() -> None:
    for text in ("list the channels on slack", "close the issue", "share the folder"):
        for hit in index().search(text):
            assert CATALOG.method(hit.method_id).service == hit.service and hit.method_id.endswith(hit.method)


def test_hits_are_best_first_and_as_many_as_asked() -> None:
    hits = index().search("show the messages", limit=7)
    assert len(hits) == 7 and [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert index().search("show the messages", limit=3) == hits[:3]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("list the channels on slack", "slack.conversations.list"),
        ("close the issue on github", "github.issues.close"),
        ("empty the bin of my drive", "google_drive.files.emptyTrash"),
        ("is my out of office reply on", "gmail.users.settings.getVacation"),
        ("!attic:example.org is called The Loft now", "matrix.rooms.setName"),
    ],
)
def test_plain_requests(text: str, wanted: str) -> None:
    assert first(text) == wanted


def test_a_slip_of_the_keyboard_is_forgiven() -> None:
    assert first("clsoe the isseu on github") == first("close the issue on github")


def test_a_connected_service_is_preferred_among_equals() -> None:
    def score(connected: str) -> float:
        hits = index().search("invite her to the room", connected=frozenset({connected}), limit=60)
        return next(hit.score for hit in hits if hit.method_id == "matrix.rooms.invite")

    assert score("matrix") > score("slack")


def test_services_say_what_spoke_for_them() -> None:
    name, _, why = index().services("which channels are there on slack")[0]
    assert name == "slack" and "slack" in why


def test_hits_explain_themselves_when_asked() -> None:
    (hit,) = index().search("close the issue on github", limit=1, explain=True)
    assert any(line.startswith("service: ") and "github" in line for line in hit.why)
    assert any("clos" in line for line in hit.why)
    assert index().search("close the issue on github", limit=1)[0].why == ()


def test_confidence_tells_clear_requests_from_unclear_ones() -> None:
    clear, unclear = index().find("list the channels on slack"), index().find("delete it")
    assert clear.confidence > 0.7 > unclear.confidence
    for found in (clear, unclear):
        assert 0 <= found.confidence <= 1 and 0 <= found.nothing <= 1


@pytest.mark.parametrize(
    "text", ["will it rain on sunday", "order a pizza with extra cheese", "tell me a joke about cats"]
)
def test_what_no_service_does_is_known(text: str) -> None:
    assert index().find(text).nothing > 0.6 > index().find("list the channels on slack").nothing


@pytest.mark.parametrize("text", ["", "   ", "???", "the of and", "\ue000", "zzzzqqqq xxxyyyz"])
def test_words_that_say_nothing(text: str) -> None:
    found = index().find(text)
    assert found.nothing > 0.5 and found.confidence < 0.5


def test_a_chooser_takes_the_service_step() -> None:
    offered: list[Sequence[tuple[str, str]]] = []

    def choose(text: str, services: Sequence[tuple[str, str]]) -> Sequence[str]:
        offered.append(services)
        return ["matrix"]

    hits = index().search("post hello in the channel", chooser=choose)
    assert {hit.service for hit in hits} == {"matrix"}
    assert all(name and title for name, title in offered[0])


def test_a_chooser_that_names_no_service_changes_nothing() -> None:
    text = "post hello in the channel"
    assert index().search(text, chooser=lambda *_: ["no-such-service"]) == index().search(text)


def test_candidates_keep_the_second_service() -> None:
    hits = [Hit(f"a.m{n}", "a", 20.0 - n) for n in range(20)] + [Hit("b.m", "b", -5.0), Hit("c.m", "c", -6.0)]
    kept = interleaved(hits, 10)
    assert [hit.method_id for hit in kept[:2]] == ["a.m0", "a.m1"]
    assert {"b", "c"} <= {hit.service for hit in kept} and len(kept) == len(set(kept)) == 10


def test_candidates_are_methods_of_several_services() -> None:
    hits = index().candidates("list the messages", limit=12)
    assert len(hits) == 12 and len({hit.service for hit in hits}) > 1


def test_an_empty_catalog_has_no_hits() -> None:
    empty = Index.of([])
    assert empty.search("send a message") == [] and empty.find("send a message").nothing == 1.0
    assert empty.services("send a message") == []


def test_what_is_copied_is_what_would_be_made() -> None:
    made = Index.of(CATALOG.services.values())
    assert list(Index.bundled()._reader._db.iterdump()) == list(made._reader._db.iterdump())
    assert Index.bundled()._reader._db is not Index.bundled()._reader._db


def test_it_is_deterministic_across_processes() -> None:
    code = (
        "from mapper.ranking.index import Index;"
        "i = Index.bundled();"
        "print([(h.method_id, h.score) for t in ('share the file', 'who is in the room') for h in i.search(t)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 500


def test_a_missing_file_is_the_bundled_catalog(tmp_path: Path) -> None:
    found = Index.open(tmp_path / "catalog.db")
    assert found.search("close the issue on github")[0].method_id == "github.issues.close"
    assert not (tmp_path / "catalog.db").exists()


def test_a_stale_index_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    from mapper.store.database import open_writing

    tmp_path.chmod(0o700)
    open_writing(path).close()
    index_tables.rebuild(path)
    Index.open(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE rank_meta SET value = 'older' WHERE key = 'stamp'")
        db.execute("DELETE FROM rank_term")
    assert Index.open(path).search("close the issue on github")[0].method_id == "github.issues.close"


def test_an_index_that_is_up_to_date_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "catalog.db"
    from mapper.store.database import open_writing

    tmp_path.chmod(0o700)
    open_writing(path).close()
    index_tables.rebuild(path)
    before = path.stat().st_mtime_ns

    def never(*_: object) -> None:
        raise AssertionError("it was made anew")

    monkeypatch.setattr(index_tables, "rebuild", never)
    Index.open(path)
    assert path.stat().st_mtime_ns == before


def test_an_import_and_a_removal_make_it_so_that_whoever_opens_it_needs_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the daemon would write the catalog at the next request, and make it wait."""
    tmp_path.chmod(0o700)
    path, documents = tmp_path / "catalog.db", tmp_path / "documents"
    things(documents)
    install.import_google(path, documents)
    rebuild = index_tables.rebuild

    def never(*_: object) -> None:
        raise AssertionError("it was made anew")

    monkeypatch.setattr(index_tables, "rebuild", never)
    assert any(hit.service == "things" for hit in Index.open(path).search("create a thing of things"))
    monkeypatch.setattr(index_tables, "rebuild", rebuild)
    install.remove(path, "things")
    monkeypatch.setattr(index_tables, "rebuild", never)
    assert not any(hit.service == "things" for hit in Index.open(path).search("create a thing of things"))


def test_progress_is_told(tmp_path: Path) -> None:
    from mapper.store.database import open_writing

    tmp_path.chmod(0o700)
    open_writing(tmp_path / "catalog.db").close()
    told: list[tuple[int, int, str]] = []
    index_tables.rebuild(tmp_path / "catalog.db", lambda *step: told.append(step))
    assert [step[0] for step in told] == [0, 1, 2, 3] and all(step[1] == 3 for step in told)


def test_several_near_examples_count_for_a_service_as_one_does_that_is_nearer() -> None:
    none = np.zeros(2)
    columns = ("family", "title", "resource", "tail", "own", "described", "named", "path", "refusal")
    asks = np.arange(12)
    found = Evidence(
        **dict.fromkeys(columns, none), asks=asks, similar=np.array([0.5, *[0.4] * 11]), connected=[], rows={}
    )
    arrays = {"ask_family": np.array([0, *[1] * 11]), "family_popular": none, "family_asks": none}
    request = features.Request.of("anything")
    near = features.of_families(request, found, arrays)[:, features.FAMILY_NAMES.index("example")]
    assert near.tolist() == pytest.approx([0.5, 4 * 0.4])  # five are looked at
