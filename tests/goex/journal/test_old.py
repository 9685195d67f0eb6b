"""A journal that an earlier GoEx wrote: it verifies, is migrated once, is found by what is new, and is told."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goex.engine.grant_store import GrantStore
from goex.journal.chain import utc_now
from goex.journal.schema import MIGRATIONS
from goex.journal.search import Wanted, find_actions, find_rows
from goex.journal.story import decisions, story
from goex.journal.usage import usage
from policies.grants import Width
from policies.services import Risk
from tests.goex.journal.old import KEY, LEDGER_KEY, ROWS, opened, restored


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    restored(tmp_path)
    return tmp_path


def edit(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "state.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.promise(81)
def test_it_verifies_before_and_after_it_grows(folder: Path) -> None:
    journal = opened(folder)
    found = journal.verify()
    assert (found.good, found.rows, found.authenticated) == (True, ROWS, True), found
    journal.append("note")
    journal.close()
    again = opened(folder)
    assert again.verify().rows == ROWS + 1
    with sqlite3.connect(folder / "state.db") as connection:
        assert connection.execute("select version from schema_version").fetchall() == [(len(MIGRATIONS),)]


def test_its_grants_are_believed(folder: Path) -> None:
    grant_store = GrantStore(opened(folder), utc_now)
    grant_store.load(LEDGER_KEY)
    assert [(grant.id, grant.width) for grant in grant_store.grants()] == [("g-000000000002", Width.PERMANENT)]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), "4321"),
        (Wanted(agent="scout"), "321"),
        (Wanted(service="slack"), "321"),
        (Wanted(service="matrix"), ""),  # only its undo would touch that
        (Wanted(risk=Risk.READ), "321"),
        (Wanted(risk=Risk.WRITE), "321"),
        (Wanted(risk=Risk.DELETE), ""),
        (Wanted(state="failed"), "4"),
        (Wanted(kind="files"), "4"),
        (Wanted(session="conn-2"), "4"),
        (Wanted(text="grüße TO #OPS"), "1"),
        (Wanted(text="%"), ""),  # no pattern
        (Wanted(limit=2), "43"),
        (Wanted(since=datetime(2026, 10, 1, 9, 0, 37, tzinfo=UTC)), "4"),
        (Wanted(until=datetime(2026, 10, 1, 9, 0, 5, tzinfo=UTC)), "1"),
    ],
)
def test_its_actions_are_found(folder: Path, wanted: Wanted, found: str) -> None:
    assert "".join(row.id[-1] for row in find_actions(opened(folder), wanted)) == found


def test_text_is_found_within_json_as_it_was_written_by_who_asked(folder: Path) -> None:
    opened(folder).close()
    edit(folder, """update actions set request = '{"program":"echo \\"Hi\\"\\n"}' where id = 'a-000000000004'""")
    for text in ('echo "hi"', '"hi"\n', "program"):
        assert [row.id[-1] for row in find_actions(opened(folder), Wanted(kind="files", text=text))] == ["4"], text


def test_pages_follow_each_other(folder: Path) -> None:
    journal = opened(folder)
    first = find_actions(journal, Wanted(limit=3))
    assert [row.id[-1] for row in find_actions(journal, Wanted(limit=3, before=first[-1].number))] == ["1"]
    rows = find_rows(journal, Wanted(limit=30))
    rest = find_rows(journal, Wanted(limit=30, before=rows[-1].number))
    assert [row.number for row in (*rows, *rest)] == list(range(ROWS, 0, -1))


def test_rows_are_found_by_the_action_that_they_belong_to(folder: Path) -> None:
    journal = opened(folder)
    assert {row.action_id[-1] for row in find_rows(journal, Wanted(service="slack"))} == {"1", "2", "3"}
    assert [row.kind for row in find_rows(journal, Wanted(service="slack", kind="request", agent="scout"))] == [
        "request"
    ] * 3
    assert find_rows(journal, Wanted(service="slack", agent="other")) == ()


def test_who_decided_is_told(folder: Path) -> None:
    journal = opened(folder)
    found = decisions(journal, [f"a-00000000000{n}" for n in (1, 2, 3, 4)])
    asked, given, standing, refused = found.values()
    person = "user 1000, process 9 (goex), on the user socket"
    assert (asked.verdict, asked.person, asked.by) == ("allowed", True, person)
    assert [grant.width for grant in asked.grants] == ["once"]
    assert [grant.width for grant in given.grants] == ["permanent"]
    # On a grant of another action: nobody was asked, and who gave it is known.
    assert (standing.verdict, standing.person, standing.by) == ("allowed", False, "goex")
    assert [(grant.by, grant.action_id) for grant in standing.grants] == [(person, "a-000000000002")]
    assert (refused.verdict, refused.reason) == ("", "There is no such folder.")


def test_a_story_is_told_from_its_rows(folder: Path) -> None:
    journal = opened(folder)
    rows = find_rows(journal, Wanted(action_id="a-000000000001"))
    told = story(journal, reversed(rows))
    assert '"proposer":"embedded"' in told.mapping
    assert told.asked_at < told.decided.at
    (sent,) = told.exchanges
    assert (sent.method, sent.host, sent.path, sent.status, sent.well) == (
        "POST", "slack.com", "/api/chat.postMessage", 200, True,
    )  # fmt: skip


def test_uses_are_counted_of_plans_where_requests_do_not_say(folder: Path) -> None:
    journal = opened(folder)
    grant_store = GrantStore(journal, utc_now)
    grant_store.load(LEDGER_KEY)
    (use,) = usage(journal, grant_store.grants()).values()
    assert (use.uses, use.methods) == (2, {"chat.postMessage"})


def test_what_was_allowed_and_never_ran_called_nothing(folder: Path) -> None:
    journal = opened(folder)
    grant_store = GrantStore(journal, utc_now)
    grant_store.load(LEDGER_KEY)
    journal.append("allow", action_id="a-000000000004", facts={"grants": ["g-000000000002"]})
    edit(folder, "update actions set plan = (select replace(plan, 'chat.post', 'chat.other') from actions"
         " where id = 'a-000000000003') where id = 'a-000000000004'")  # fmt: skip
    (use,) = usage(journal, grant_store.grants()).values()
    assert (use.uses, use.methods) == (3, {"chat.postMessage"})


@pytest.mark.sampled(7)
@pytest.mark.promise(81)
@pytest.mark.parametrize(
    "statement",
    [
        "update actions set intent = 'something harmless' where id = 'a-000000000001'",
        "update actions set request = '' where id = 'a-000000000001'",
        "update actions set outcome = replace(outcome, 'Sent', 'Not sent')",
        "update actions set problem = '' where id = 'a-000000000004'",
        "update actions set agent = 'person' where id = 'a-000000000002'",
        "update actions set session = 'x' where id = 'a-000000000002'",
        "update actions set source = '' where id = 'a-000000000002'",
        "update actions set created = '2020-01-01T00:00:00.000000Z' where id = 'a-000000000002'",
        "update actions set risk = 1 where id = 'a-000000000002'",
        "update actions set number = 5 where id = 'a-000000000002'",
        "update actions set id = 'a-x' where id = 'a-000000000004'",
        "delete from actions where id = 'a-000000000002'",
        "delete from actions where id = 'a-000000000004'",
        "update actions set outcome = '{}' where id = 'a-000000000004'",
        "delete from touched where action_id = 'a-000000000002'",
        "insert into touched values ('gmail', 3, 'a-000000000002')",
        "insert into touched values ('gmail', 3, 'a-nobody')",
    ],
)
def test_an_action_that_is_shown_as_something_else_is_noticed(folder: Path, statement: str) -> None:
    """What the log shows and finds actions by can't be changed unnoticed, in old databases too."""
    opened(folder).close()
    edit(folder, statement)
    found = opened(folder).verify()
    assert not found.good
    assert KEY not in found.problem.encode()


def test_an_old_database_that_was_altered_is_not_made_good_by_migrating(folder: Path) -> None:
    edit(folder, "update actions set state = 'done' where id = 'a-000000000004'")
    assert not opened(folder).verify().good
