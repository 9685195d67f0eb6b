"""Rules hold for the imported catalog that they were applied for: what it says otherwise since then is asked for."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from goex.engine.catalog_entries import entry, plan_hash
from goex.engine.rulebook import Rulebook
from goex.journal.chain import Journal
from mapper.catalog import Catalog
from policies.decisions import Allow, Ask, Decision, Deny, Request, decide
from policies.errors import Conflict
from policies.rules.cases import read
from tests.goex.engine.test_holding import Import, imported
from tests.mapper.importing.documents import method

__all__ = ["imported"]

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
KEY = b"k" * 32
PERMIT = '@id("gets") permit (principal == Agent::"bot", action == Action::"call", resource == Method::"things.get");'
FORBID = '@id("no-list") forbid (principal, action, resource == Method::"things.list");'
BROAD = '@id("all") permit (principal == Agent::"bot", action == Action::"call", resource);'
SLACK = '@id("slack") permit (principal, action == Action::"call", resource in Service::"slack");'
OTHER = {"get": method("things.get", path="v1/keys")}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = opened(tmp_path)
    yield made
    made.close()


def opened(folder: Path) -> Journal:
    made = Journal(folder / "state.db", folder / "journal.head", lambda: NOW)
    made.unlock(b"j" * 32)
    return made


def loaded(journal: Journal, catalog: Catalog) -> Rulebook:
    made = Rulebook(journal, lambda: NOW, catalog)
    made.load(KEY)
    return made


def request(catalog: Catalog, call: str) -> Request:
    """What asks for a call, planned with this catalog."""
    made, _, _ = read({"call": call, "agent": "bot", "account": "work"}, catalog)
    return replace(made, plan=replace(made.plan, catalog_hash=plan_hash(catalog, made.plan)))


def came(rules: Rulebook, call: str, grants: Any = ()) -> type[Decision]:
    return type(decide(request(rules.catalog, call), grants, rules, NOW))


def test_a_permit_is_for_the_entry_that_it_was_applied_for(journal: Journal, imported: Import) -> None:
    rules = loaded(journal, imported())
    rules.apply({"a.cedar": PERMIT}, by="ann")
    assert (came(rules, "things.get"), rules.unbound()) == (Allow, {})
    assert came(loaded(journal, imported()), "things.get") is Allow  # the same document once more
    later = loaded(journal, imported(**OTHER))
    decision = decide(request(later.catalog, "things.get"), (), later, NOW)
    assert isinstance(decision, Ask) and decision.rules == ("catalog-changed",)
    assert "what the imported catalog says now of things.get" in decision.reason
    assert "goex rules apply" in decision.reason and list(later.unbound()) == ["things.get"]
    assert came(loaded(journal, imported()), "things.get") is Allow  # as it was
    again = loaded(journal, imported(**OTHER))
    again.apply({"a.cedar": PERMIT}, by="ann")
    assert (came(again, "things.get"), again.unbound()) == (Allow, {})


def test_whoever_writes_the_catalogs_file_puts_nothing_under_a_rule(
    journal: Journal, imported: Import, tmp_path: Path
) -> None:
    """Without an import, and without another generation, which is all that telling of it goes by."""
    rules = loaded(journal, imported())
    rules.apply({"a.cedar": PERMIT}, by="ann")
    assert (rules.unbound(), rules.differing(rules.sealed({"a.cedar": PERMIT}))) == ({}, {})
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute("update method set path = '/v1/keys' where name = 'get'")
    database.close()
    assert came(rules, "things.get") is Ask
    other = rules.sealed({"a.cedar": PERMIT})
    assert (rules.unbound(), rules.differing(other)) == ({}, {"things.get": other["things.get"]})


def test_a_forbid_forbids_whatever_changed(journal: Journal, imported: Import) -> None:
    loaded(journal, imported()).apply({"a.cedar": BROAD + FORBID}, by="ann")
    later = loaded(journal, imported(list=method("things.list", path="v1/others")))
    assert (came(later, "things.list"), came(later, "things.get")) == (Deny, Allow)


def test_a_forbidden_method_gets_no_other_name(journal: Journal, imported: Import) -> None:
    loaded(journal, imported()).apply({"a.cedar": BROAD + FORBID}, by="ann")
    later = loaded(journal, imported(more=method("things.more")))
    assert (came(later, "things.more"), came(later, "things.get")) == (Ask, Allow)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("rules", "asked"), [(FORBID, Ask), (SLACK, Allow), ("", Allow)])
def test_where_a_rule_names_the_service_grants_arent_enough(
    rules: str, asked: type[Decision], journal: Journal, imported: Import
) -> None:
    class Grants:
        """One that covers anything, given since."""

        id, width, why = "g-1", "permanent", "a-0"
        covers = staticmethod(lambda *_, **__: True)

    loaded(journal, imported()).apply({"a.cedar": rules}, by="ann")
    later = loaded(journal, imported(**OTHER))
    assert came(later, "things.get", (Grants(),)) is asked


def test_what_comes_with_goex_is_not_bound(journal: Journal, imported: Import) -> None:
    rules = loaded(journal, imported())
    assert rules.apply({"a.cedar": SLACK}, by="ann").entries == {}
    assert (came(loaded(journal, imported(**OTHER)), "slack.users.list"), rules.unbound()) == (Allow, {})


@pytest.mark.parametrize("rule", [PERMIT, BROAD])
def test_rules_are_applied_where_nothing_is_imported(rule: str, journal: Journal, imported: Import) -> None:
    rules = loaded(journal, Catalog.bundled())
    assert rules.apply({"a.cedar": rule}, by="ann").entries == {} and rules.unbound() == {}
    assert came(loaded(journal, imported()), "things.get") is Ask  # what has that name since


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rule", [PERMIT, BROAD])
def test_a_catalog_that_cant_be_read_is_not_called_a_changed_one(
    rule: str, journal: Journal, imported: Import, tmp_path: Path
) -> None:
    file = tmp_path / "catalog.db"
    loaded(journal, imported()).apply({"a.cedar": rule}, by="ann")
    planned = request(Catalog.open(file), "things.get")
    file.chmod(0o644)
    rules = loaded(journal, Catalog.open(file))
    assert rules.unbound() == {}
    decision = decide(planned, (), rules, NOW)
    assert isinstance(decision, Ask)
    for said in (rules.catalog_notice(), decision.reason):
        assert "open to others" in said and "chmod 600" in said and "rules apply" not in said
    before = rules.in_force
    with pytest.raises(Conflict, match="open to others"):  # or the rules would be in force for nothing
        rules.apply({"a.cedar": rule}, by="ann")
    assert rules.in_force == before
    assert rules.apply({"a.cedar": SLACK}, by="ann").entries == {}  # control: of what can be read
    assert rules.catalog_notice() == ""
    file.chmod(0o600)
    rules.apply({"a.cedar": rule}, by="ann")
    assert (came(rules, "things.get"), rules.catalog_notice()) == (Allow, "")


def test_what_was_removed_is_said_to_be_gone(journal: Journal, imported: Import, tmp_path: Path) -> None:
    loaded(journal, imported()).apply({"a.cedar": PERMIT}, by="ann")
    assert "is gone" not in loaded(journal, imported(**OTHER)).catalog_notice()  # control: another one
    (tmp_path / "catalog.db").unlink()
    rules = loaded(journal, Catalog.open(tmp_path / "catalog.db"))
    said = rules.catalog_notice()
    assert "applied for things.create, things.get, things.list and 1 more, and that is gone from" in said
    assert "says now" not in said and "goex catalog show" not in said and "goex rules apply" in said
    rules.apply({"a.cedar": PERMIT}, by="ann")
    assert rules.catalog_notice() == ""


def test_the_catalog_is_gone_through_once_for_all_that_look(
    journal: Journal, imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Putting rules in force tells what they are for, and whoever looks at the same time waits for one answer."""
    rules, hashed = loaded(journal, imported()), Counter[str]()

    def counted(catalog: Catalog, service: str, method: str) -> str:
        hashed[method] += 1
        return entry(catalog, service, method)

    monkeypatch.setattr("goex.engine.rulebook.entry", counted)
    rules.apply({"a.cedar": BROAD}, by="ann")
    assert not rules.unbound() and hashed["get"] == 1
    rules.sealed({"a.cedar": PERMIT + FORBID})
    assert not rules.unbound() and hashed["get"] == 2  # control: what is put in force is looked at anew

    later, looks = loaded(journal, imported(**OTHER)), 4
    hashed.clear()
    with ThreadPoolExecutor(looks) as threads:
        found = [each.result() for each in [threads.submit(later.unbound) for _ in range(looks)]]
    assert [list(each) for each in found] == [["things.get"]] * looks and hashed["get"] == 1


def test_an_import_after_a_permit_for_any_service_is_asked_for(journal: Journal, imported: Import) -> None:
    loaded(journal, Catalog.bundled()).apply({"a.cedar": BROAD}, by="ann")
    rules = loaded(journal, imported())
    assert (came(rules, "slack.users.list"), came(rules, "things.get")) == (Allow, Ask)


@pytest.mark.parametrize("now", ["as it was", "gone"])
def test_what_would_run_is_what_is_compared(now: str, journal: Journal, imported: Import) -> None:
    """A catalog that is another one while an action is planned, and as it was, or gone, when it is decided on."""
    loaded(journal, imported()).apply({"a.cedar": PERMIT}, by="ann")
    planned = request(imported(**OTHER), "things.get")
    rules = loaded(journal, imported() if now == "as it was" else Catalog.bundled())
    decision = decide(planned, (), rules, NOW)
    assert isinstance(decision, Ask) and "(things.get) changed since it was made" in decision.reason


def test_rules_that_an_earlier_goex_applied_hold_for_nothing_that_is_imported(tmp_path: Path, imported: Import) -> None:
    journal = opened(tmp_path)
    before = loaded(journal, catalog := imported()).apply({"a.cedar": PERMIT + SLACK}, by="ann", entries={})
    with journal.engine.begin() as connection:
        connection.execute(text("ALTER TABLE rulebook DROP COLUMN entries"))
        connection.execute(text("UPDATE schema_version SET version = 6"))
    journal.close()
    journal = opened(tmp_path)
    rules = loaded(journal, catalog)
    assert (rules.trouble, rules.in_force) == ("", before)
    assert (came(rules, "slack.users.list"), came(rules, "things.get")) == (Allow, Ask)
    assert {"things.get"} <= set(rules.unbound())
    rules.apply({"a.cedar": PERMIT + SLACK}, by="ann")
    assert came(loaded(journal, catalog), "things.get") is Allow
    journal.close()
