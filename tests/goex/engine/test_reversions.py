"""The reversion set in state.db: added, used, believed, altered, restored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goex.engine.reversions import Reversions, ReversionsAltered
from goex.journal.chain import Journal
from mapper.catalog import Catalog
from mapper.pairs import of_catalog, read_file
from policies.errors import GoexError, InvalidInput
from policies.jsonvalue import parse
from policies.reversions import NoReversions, Pair, Result, Standing, Use, choose
from policies.services import Source

KEY = b"r" * 32
CATALOG = Catalog.bundled()
PIN = {"channel": "C0OPS", "timestamp": "1700000000.000100"}


def pin(more: str = "", *, source: Source = "developer", note: str = "") -> Pair:
    where = '{ channel = "$request.channel", timestamp = "$request.timestamp" }'
    text = f'method = "slack.pins.add"\n{more}\n[undo]\nnote = "{note}"\n'
    text += f'calls = [{{ method = "pins.remove", arguments = {where} }}]\n'
    text += 'verify = { method = "pins.list", arguments = { channel = "$request.channel" } }\n'
    (made,) = read_file(text, "pairs.toml", CATALOG, source=source)
    return made


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head", lambda: datetime(2026, 1, 5, tzinfo=UTC))
    made.unlock(b"j" * 32)
    yield made
    made.close()


def loaded(journal: Journal, catalog: Catalog = CATALOG) -> Reversions:
    made = Reversions(journal, lambda: datetime(2026, 1, 5, tzinfo=UTC), catalog)
    made.load(KEY)
    return made


def use(pair: Pair, result: Result, action: str = "a-1", call: int = 0) -> Use:
    return Use(pair=pair.hash, action=action, call=call, result=result, why="no" if result is Result.FAILED else "")


# ---- choosing


def test_the_most_exact_one_wins() -> None:
    every, some, more = pin(), pin('when = { channel = "C0*" }'), pin('when = { channel = "C0*", timestamp = "17*" }')
    one = pin('request = { channel = "C0OPS", timestamp = "1700000000.000100" }')
    assert choose([every, some, more, one], PIN, NoReversions()).pair == one
    assert choose([one, every, more, some], {**PIN, "timestamp": "1701.5"}, NoReversions()).pair == more
    assert choose([one, every, more, some], {**PIN, "timestamp": "2.5"}, NoReversions()).pair == some
    assert choose([one, every, more, some], {**PIN, "channel": "D0"}, NoReversions()).pair == every
    assert choose([one, some], {**PIN, "channel": "D0"}, NoReversions()).pair is None


def test_among_equals_the_developers_comes_first_and_a_models_last() -> None:
    own = of_catalog(CATALOG, CATALOG.method("slack.pins.add"))
    assert own is not None
    mine, models = pin(), pin("when = {}", source="model")
    assert choose([models, own, mine], PIN, NoReversions()).pair == mine
    assert choose([models, own], PIN, NoReversions()).pair == own
    exact = pin('request = { channel = "C0OPS", timestamp = "1700000000.000100" }', source="model")
    assert choose([own, mine, exact], PIN, NoReversions()).pair == exact  # being exact comes before who says so
    assert mine.hash == models.hash != own.hash  # what it is doesn't depend on who says so, or on a note
    assert pin(note="words").hash == mine.hash


@pytest.mark.promise(64)
def test_one_that_failed_is_never_chosen_again(journal: Journal) -> None:
    reversions = loaded(journal)
    some, own = pin('when = { channel = "C0*" }'), of_catalog(CATALOG, CATALOG.method("slack.pins.add"))
    assert own is not None
    reversions.add([some], by="ann")
    reversions.used(use(some, Result.FAILED))
    for known in (reversions, loaded(journal)):
        chosen = choose([*known.added("slack.pins.add"), own], PIN, known)
        assert (chosen.pair, chosen.passed) == (own, (some,))
    reversions.used(use(some, Result.WORKED, "a-2"))  # once is enough
    assert reversions.standing(some.hash) is Standing.FAILED
    reversions.remove(some.hash[:8], by="ann")
    for again in (some, pin('when = { channel = "C0*" }', source="model", note="honest")):
        with pytest.raises(InvalidInput, match="failed before"):
            reversions.add([again], by="ann")


# ---- keeping


def test_what_was_added_and_used_is_there_after_a_restart(journal: Journal) -> None:
    reversions, pair = loaded(journal), pin()
    reversions.add([pair], by="ann")
    reversions.used(use(pair, Result.WORKED))
    reversions.used(use(pair, Result.WORKED))  # the same use, said twice
    again = loaded(journal)
    assert (again.trouble, again.added("slack.pins.add"), again.standing(pair.hash)) == ("", (pair,), Standing.PROVEN)
    assert [one.use.action for one in again.uses(pair.hash)] == ["a-1"]
    assert [row.kind for row in reversed(journal.rows())] == ["pair-add", "pair-use"]
    facts = parse(journal.rows(kind="pair-use")[0].facts)
    assert (facts["pair"], facts["result"], facts["pairs"]) == (pair.hash, "worked", again.root())


def test_only_a_use_that_was_read_back_proves(journal: Journal) -> None:
    reversions, pair = loaded(journal), pin()
    reversions.used(use(pair, Result.UNVERIFIED))
    assert reversions.standing(pair.hash) is Standing.UNPROVEN
    reversions.used(use(pair, Result.WORKED, "a-2"))
    assert reversions.standing(pair.hash) is Standing.PROVEN


def test_a_write_that_fails_leaves_memory_as_the_disk(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    reversions, pair = loaded(journal), pin()
    broken = Reversions._insert_use

    def breaks(self: Reversions, *args: object) -> None:
        broken(self, *args)  # type: ignore[arg-type]
        raise OSError("no space left")

    monkeypatch.setattr(Reversions, "_insert_use", breaks)
    with pytest.raises((OSError, GoexError)):
        reversions.used(use(pair, Result.WORKED))
    assert reversions.standing(pair.hash) is Standing.UNPROVEN
    assert loaded(journal).standing(pair.hash) is Standing.UNPROVEN


ALTERATIONS = {
    "a failure called a success": "UPDATE pair_uses SET result = 'worked'",
    "a failure removed": "DELETE FROM pair_uses",
    "a pair changed": "UPDATE pairs SET body = replace(body, 'pins.remove', 'chat.delete')",
    "a model's called the developer's": "UPDATE pairs SET source = 'developer'",
    "a pair removed": "DELETE FROM pairs",
    "a pair made up": "INSERT INTO pairs SELECT 'ff', method, source, body, added, by, mac FROM pairs",
    "a use made up": "INSERT INTO pair_uses SELECT pair, 'a-9', call, 'worked', '', at, mac FROM pair_uses",
    "the seal of a pair": "UPDATE pairs SET mac = zeroblob(32)",
    "the seal of a use": "UPDATE pair_uses SET mac = zeroblob(32)",
    "a number where a text belongs": "UPDATE pair_uses SET result = 7",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(64)
@pytest.mark.parametrize("name", sorted(ALTERATIONS))
def test_an_altered_table_is_not_believed_and_comes_back_from_the_journal(
    name: str, journal: Journal, tmp_path: Path
) -> None:
    reversions, pair = loaded(journal), pin(source="model")
    reversions.add([pair], by="ann")
    reversions.used(use(pair, Result.FAILED))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute(ALTERATIONS[name])
    again = loaded(journal)
    assert again.trouble
    assert (again.added("slack.pins.add"), again.standing(pair.hash)) == ((), Standing.UNBELIEVED)
    own = of_catalog(CATALOG, CATALOG.method("slack.pins.add"))
    assert own is not None
    assert choose([own, pair], PIN, again).pair == own  # what comes with GoEx still takes back
    assert choose([pair], PIN, again).unbelieved
    for refused in (lambda: again.add([pin()], by="eve"), lambda: again.all_added(), lambda: again.remove("ab", by="")):
        with pytest.raises(ReversionsAltered):
            refused()
    late = use(own, Result.FAILED, "a-7")
    again.used(late)  # what happens meanwhile isn't lost
    assert again.restore(by="ann") == 3
    for known in (again, loaded(journal)):
        assert (known.trouble, known.added("slack.pins.add")) == ("", (pair,))
        assert known.standing(pair.hash) is known.standing(own.hash) is Standing.FAILED


@pytest.mark.promise(64)
def test_an_older_copy_of_the_tables_is_not_believed(journal: Journal, tmp_path: Path) -> None:
    reversions, pair = loaded(journal), pin()
    reversions.used(use(pair, Result.WORKED))
    with sqlite3.connect(tmp_path / "state.db") as db:
        kept = db.execute("SELECT * FROM pair_uses").fetchall()
    reversions.used(use(pair, Result.FAILED, "a-2"))
    with sqlite3.connect(tmp_path / "state.db") as db:
        db.execute("DELETE FROM pair_uses")
        db.executemany("INSERT INTO pair_uses VALUES (?, ?, ?, ?, ?, ?, ?)", kept)
    assert "put back from a copy" in loaded(journal).trouble


# ---- reading pairs

BAD = {
    "another service": ('method = "slack.pins.add"', "github.issues.get", "isn't a method of this service"),
    "an argument that isn't": ('method = "slack.pins.add"\nwhen = { room = "*" }', "pins.remove", "no such argument"),
    "both": ('method = "slack.pins.add"\nwhen = { channel = "*" }\nrequest = {}', "pins.remove", "either"),
    "a read": ('method = "slack.pins.list"', "pins.remove", "only reads"),
    "nothing known": ('method = "slack.pins.nail"', "pins.remove", "has no method"),
    "a key": ('method = "slack.pins.add"\nforce = true', "pins.remove", "isn't a key"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_pair_is_refused_by_its_place(name: str) -> None:
    head, method, says = BAD[name]
    where = '{ channel = "$request.channel", timestamp = "$request.timestamp" }'
    text = f'{head}\n[undo]\ncalls = [{{ method = "{method}", arguments = {where} }}]\n'
    with pytest.raises(InvalidInput, match=says):
        read_file(text, "pairs.toml", CATALOG)
