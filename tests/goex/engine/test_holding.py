"""A standing grant on an imported service is for the methods of then, as the catalog said them then.

The documents have Google's form and pass the real importer, into a real file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.approval_views import _stale as grant_stale
from goex.engine.grant_lookup import changed, entries, held, standing
from goex.engine.grant_store import GrantStore
from goex.journal.chain import Journal
from mapper.catalog import Catalog
from mapper.importing.install import import_google
from policies.actions import ApiCalls, Need, Plan, UndoClass
from policies.grants import Grant, Width
from policies.services import Risk
from tests.mapper.importing.documents import FULL, READ, discovery, method, write

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ROW: Any = SimpleNamespace(agent="bot", id="a-1")
METHODS = {
    "get": method("things.get"),
    "list": method("things.list"),
    "query": method("things.query", "POST", "v1/things:query"),
    "create": method("things.create", "POST", scopes=[FULL]),
}
Import = Callable[..., Catalog]


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Imports the document with these methods into one file, over what was there."""

    def run(**more: Any) -> Catalog:
        write(tmp_path, discovery(methods={**METHODS, **more}))
        report = import_google(tmp_path / "catalog.db", tmp_path, index=False)
        assert not report.problems
        return Catalog.open(tmp_path / "catalog.db")

    return run


def need(*methods: str, service: str = "things", scope: str = READ) -> Need:
    return Need(service=service, account="work", scope=scope, risk=Risk.READ, methods=methods, arguments=({},))


def plan(catalog: Catalog, *needs: Need) -> Plan:
    """What was planned with this catalog."""
    ids = [f"{each.service}.{name}" for each in needs for name in each.methods if each.service in catalog.services]
    return Plan(
        action=ApiCalls(calls=()), needs=needs, undo_class=UndoClass.NOTHING, undo_text="", resolved={}, bounds={},
        catalog_hash=catalog.entry_hash(ids), image_id="", limits={}, lines=(),
    )  # fmt: skip


@pytest.fixture
def give(tmp_path: Path) -> Callable[[Catalog, Need], Any]:
    """A core whose grant store holds a permanent grant on that need, as the catalog is now."""
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head", lambda: NOW)
    journal.unlock(b"k" * 32)

    def run(catalog: Catalog, given: Need) -> Any:
        grant_store = GrantStore(journal, lambda: NOW)
        grant_store.load(b"l" * 32)
        grant = Grant(
            id="g-1", agent="bot", service=given.service, account="work", scope=given.scope, width=Width.PERMANENT,
            created=NOW, expires=NOW + timedelta(days=9), by="me", why="a-0", entries=entries(catalog, given),
        )  # fmt: skip
        with grant_store.changing() as transaction:
            grant_store.grant(transaction, (grant,), by="me")
        return SimpleNamespace(grant_store=grant_store, catalog=catalog)

    return run


def stands(core: Any, catalog: Catalog, *methods: str) -> bool:
    core.catalog = catalog
    return bool(held(core, ROW, plan(catalog, need(*methods))))


def test_what_was_unlocked_then_stays_granted(imported: Import, give: Callable[[Catalog, Need], Any]) -> None:
    core = give(catalog := imported(), need("get"))
    assert stands(core, catalog, "get") and stands(core, catalog, "list") and stands(core, catalog, "get", "list")
    assert stands(core, imported(), "get")  # the same document once more changes nothing
    assert changed(core, ROW, plan(core.catalog, need("get"))) == ""


@pytest.mark.promise(20)
def test_a_method_that_an_import_adds_is_not_covered(imported: Import, give: Callable[[Catalog, Need], Any]) -> None:
    core = give(imported(), need("get"))
    later = imported(more=method("things.more"))
    assert "more" in later.unlocks("things", READ)
    assert not stands(core, later, "more")
    assert not stands(core, later, "get", "more")
    assert stands(core, later, "list")
    said = changed(core, ROW, plan(core.catalog, need("more")))
    assert (
        said
        == "things.more wasn't among what it was given for in the imported catalog, so grant g-1 doesn't hold for it."
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "other",
    [
        {"path": "v1/others"},
        {"httpMethod": "DELETE"},
        {"description": "Something else."},
        {"parameters": {"q": {"type": "string", "location": "query"}}},
    ],
)
def test_a_method_that_an_import_changes_is_asked_for_anew(
    imported: Import, give: Callable[[Catalog, Need], Any], other: dict[str, Any]
) -> None:
    core = give(imported(), need("get"))
    assert standing(core, "bot", plan(core.catalog, need("get"))) and not standing(
        core, "other", plan(core.catalog, need("get"))
    )
    later = imported(get=method("things.get", **other))
    assert not stands(core, later, "get")
    assert not standing(core, "bot", plan(core.catalog, need("get")))  # an explanation says what would happen
    assert "things.get changed since then" in changed(core, ROW, plan(core.catalog, need("get")))
    assert stands(core, imported(), "get")  # as it was


def test_a_method_that_is_gone_is_not_covered(imported: Import, give: Callable[[Catalog, Need], Any]) -> None:
    core = give(imported(), need("get"))
    core.catalog = Catalog.bundled()
    assert not held(core, ROW, plan(core.catalog, need("get")))


@pytest.mark.promise(20)
def test_whoever_writes_the_catalogs_file_puts_nothing_under_a_grant(
    imported: Import, give: Callable[[Catalog, Need], Any], tmp_path: Path
) -> None:
    """Without an import, and without another generation: the entry is looked at when it is used."""
    core = give(imported(), need("get"))
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        changed_rows = database.execute("update method set path = '/v1/admin' where name = 'get'").rowcount
    database.close()
    assert changed_rows == 1
    assert not stands(core, Catalog.open(tmp_path / "catalog.db"), "get")


def test_a_post_that_calls_itself_a_read_is_covered_only_where_it_was_shown(
    imported: Import, give: Callable[[Catalog, Need], Any]
) -> None:
    catalog = imported()
    assert "query" in catalog.unlocks("things", READ)
    core = give(catalog, need("get"))
    assert not stands(core, catalog, "query")
    assert set(entries(catalog, need("query"))) == {"get", "list", "query"}


@pytest.mark.promise(20)
def test_what_would_run_is_what_is_compared(imported: Import, give: Callable[[Catalog, Need], Any]) -> None:
    """A catalog that is another one while an action is planned, and as it was when it is decided on."""
    core = give(imported(), need("get"))
    planned = plan(imported(get=method("things.get", path="v1/others")), need("get"))
    core.catalog = imported()
    assert not held(core, ROW, planned) and held(core, ROW, plan(core.catalog, need("get")))


def test_what_comes_with_goex_is_not_bound(give: Callable[[Catalog, Need], Any]) -> None:
    assert entries(Catalog.bundled(), need("chat.postMessage", service="slack", scope="chat:write")) == {}
    assert entries(Catalog.bundled(), need("files.run", service="files", scope="run")) == {}


def test_a_catalog_that_cant_be_read_is_not_called_a_changed_one(
    imported: Import, give: Callable[[Catalog, Need], Any], tmp_path: Path
) -> None:
    core = give(imported(), need("get"))
    (grant,) = core.grant_store.matching("bot", (need("get"),))
    planned = plan(core.catalog, need("get"))
    (tmp_path / "catalog.db").chmod(0o644)
    core.catalog = Catalog.open(tmp_path / "catalog.db")
    for said in (changed(core, ROW, planned), grant_stale(core, grant)):
        assert "is open to others" in said and "chmod 600" in said
    (tmp_path / "catalog.db").chmod(0o600)
    core.catalog = imported(get=method("things.get", path="v1/keys"))  # control: one that did change
    assert "things.get changed since then" in changed(core, ROW, planned)
    assert "The imported catalog says of get something else" in grant_stale(core, grant)
