"""The ledger's rows: each is held against its MAC, all together against the root that the journal holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goex.engine.grant_store import GrantsAltered, GrantStore
from goex.journal.chain import Journal
from goex.journal.schema import _bind_and_count_grants
from policies.actions import Need
from policies.errors import Conflict, InvalidInput
from policies.grants import ANONYMOUS, Grant, Width
from policies.services import Risk

KEY = b"l" * 32
NOW = datetime(2026, 1, 2, tzinfo=UTC)
GRANT = Grant(
    id="g-1",
    agent="bot",
    service="chat",
    account="work",
    scope="write",
    width=Width.PERMANENT,
    created=NOW,
    expires=NOW + timedelta(days=1),
    by="the person",
    why="a-1",
)
OTHER = replace(GRANT, id="g-2", scope="read")


def clock() -> datetime:
    return NOW


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head", clock)
    made.unlock(b"k" * 32)
    return made


@pytest.fixture
def grant_store(journal: Journal) -> GrantStore:
    """With a live grant, a revoked one and an agent."""
    made = GrantStore(journal, clock)
    made.load(KEY)
    with made.changing() as transaction:
        made.grant(transaction, (GRANT, OTHER), by="the person")
    made.revoke([OTHER.id], by="the person")
    made.add_agent("bot", by="the person")
    return made


Edit = Callable[[str], None]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    def run(statement: str) -> None:
        with sqlite3.connect(tmp_path / "state.db") as database:
            assert database.execute(statement).rowcount > 0
        database.close()

    return run


def test_it_is_read_as_it_was_written(journal: Journal, grant_store: GrantStore) -> None:
    again = GrantStore(journal, clock)
    again.load(KEY)
    assert again.grants() == (GRANT,)
    assert [agent.name for agent in again.agents()] == ["bot"]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "column",
    ["agent", "service", "account", "scope", "session", "digest", "by", "why"],
)
@pytest.mark.parametrize("id", ["g-1", "g-2"])
def test_no_column_of_a_grant_can_be_written_also_of_a_past_one(
    journal: Journal, grant_store: GrantStore, edit: Edit, column: str, id: str
) -> None:
    """A past grant isn't under the root any more, and says who allowed what."""
    edit(f"update grants set \"{column}\" = 'x' where id = '{id}'")
    again = GrantStore(journal, clock)
    with pytest.raises(GrantsAltered, match=rf"Grant {id} .* was altered"):
        again.load(KEY)
    assert not again.grants()
    assert not again.agents()


@pytest.mark.parametrize("statement", ["name = 'other'", "token_hash = x'00'"])
def test_no_column_of_an_agent_can_be_written(
    journal: Journal, grant_store: GrantStore, edit: Edit, statement: str
) -> None:
    edit(f"update agents set {statement}")
    with pytest.raises(GrantsAltered, match=r"Agent .* was altered"):
        GrantStore(journal, clock).load(KEY)


@pytest.mark.parametrize("statement", ["delete from grants where id = 'g-1'", "delete from agents"])
def test_a_row_that_is_gone_is_missed(journal: Journal, grant_store: GrantStore, edit: Edit, statement: str) -> None:
    edit(statement)
    with pytest.raises(GrantsAltered, match="removed"):
        GrantStore(journal, clock).load(KEY)


def test_another_key_reads_nothing(journal: Journal, grant_store: GrantStore) -> None:
    with pytest.raises(GrantsAltered):
        GrantStore(journal, clock).load(b"x" * 32)


def test_a_once_grant_is_consumed_once(grant_store: GrantStore) -> None:
    once = replace(GRANT, id="g-3", width=Width.ONCE, digest="d" * 64)
    with grant_store.changing() as transaction:
        grant_store.grant(transaction, (once,), by="the person")
    with grant_store.changing() as transaction:
        grant_store.consume(transaction, (once,))
        transaction.append("allow", facts={"ledger": grant_store.root()})
    with pytest.raises(Conflict, match="used or revoked"), grant_store.changing() as transaction:
        grant_store.consume(transaction, (once,))


@pytest.mark.parametrize("width", [Width.SESSION, Width.PERMANENT])
def test_an_agent_without_a_name_is_given_nothing_that_stays(grant_store: GrantStore, width: Width) -> None:
    wide = replace(GRANT, id="g-4", agent=ANONYMOUS, width=width, session="s" if width is Width.SESSION else "")
    with pytest.raises(InvalidInput, match="once-grants only"), grant_store.changing() as transaction:
        grant_store.grant(transaction, (wide,), by="the person")
    assert grant_store.grants() == (GRANT,)


# ---- what expires unused, and what is counted


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


LONG = replace(GRANT, expires=NOW + timedelta(days=365))
BOUND = replace(
    LONG, constraints={"to": "ops"}, methods=("send",), only=True, free=("text",), entries={"send": "e" * 64}
)


def lapsing(journal: Journal, clock: Clock, *given: Grant) -> GrantStore:
    made = GrantStore(journal, clock, timedelta(days=90))
    made.load(KEY)
    with made.changing() as transaction:
        made.grant(transaction, given, by="the person")
    return made


def use(made: GrantStore, grant: Grant) -> None:
    with made.changing() as transaction:
        made.consume(transaction, (grant,))
        transaction.append("allow", facts={"ledger": made.root()})


def need() -> Need:
    return Need(service="chat", account="work", scope="write", risk=Risk.WRITE, methods=("send",))


@pytest.mark.promise(21)
def test_a_permanent_grant_that_nobody_uses_ends(journal: Journal) -> None:
    clock = Clock()
    session = replace(LONG, id="g-9", width=Width.SESSION, session="s")
    made = lapsing(journal, clock, LONG, session)
    clock.now += timedelta(days=90) - timedelta(seconds=1)
    assert made.matching("bot", (need(),)) and made.standing("bot", "") and not made.forget_unused()
    clock.now += timedelta(seconds=1)
    # It doesn't hold from that moment on, whenever it is cleared away.
    assert [grant.id for grant in made.matching("bot", (need(),))] == ["g-9"]
    assert not made.standing("bot", "")
    assert [grant.id for grant in made.grants()] == ["g-9"]
    assert [grant.id for grant in made.forget_unused()] == ["g-1"]
    (row,) = journal.rows(kind="revoke", limit=1)
    assert '"not used for 90 days"' in row.facts and '"by":"goex"' in row.facts
    assert not made.forget_unused()


def test_each_use_is_counted_and_puts_the_end_off(journal: Journal) -> None:
    clock = Clock()
    made = lapsing(journal, clock, LONG)
    for _ in range(3):
        clock.now += timedelta(days=80)
        (grant,) = made.matching("bot", (need(),))
        use(made, grant)
    (grant,) = made.grants()
    assert (grant.uses, grant.last_used) == (3, clock.now)
    assert made.ends(grant) == clock.now + timedelta(days=90)
    again = GrantStore(journal, clock, timedelta(days=90))
    again.load(KEY)
    assert again.grants() == (grant,)
    clock.now = NOW + timedelta(days=365)  # its own end comes all the same
    assert again.grants() == ()
    assert [(grant.id, grant.revoked is not None) for grant in again.forget_unused()] == [("g-1", True)]


def test_without_a_limit_nothing_lapses(journal: Journal) -> None:
    clock = Clock()
    made = GrantStore(journal, clock)
    made.load(KEY)
    with made.changing() as transaction:
        made.grant(transaction, (LONG,), by="the person")
    clock.now += timedelta(days=364)
    assert made.matching("bot", (need(),)) and not made.forget_unused() and made.ends(LONG) == LONG.expires


@pytest.mark.promise(21)
@pytest.mark.parametrize("statement", ["uses = 7", "last_used = '2026-06-01T00:00:00.000000Z'", "id = 'g-2'"])
def test_no_use_can_be_written(journal: Journal, edit: Edit, statement: str) -> None:
    """Else whoever can write the file could keep a grant from ending."""
    use(lapsing(journal, Clock(), LONG, OTHER), LONG)
    edit(f"update grant_uses set {statement}")
    with pytest.raises(GrantsAltered, match="uses of grant"):
        GrantStore(journal, clock).load(KEY)


def test_a_use_that_was_removed_ends_it_earlier_never_later(journal: Journal, edit: Edit) -> None:
    use(lapsing(journal, Clock(), LONG), LONG)
    edit("delete from grant_uses")
    again = GrantStore(journal, clock, timedelta(days=90))
    again.load(KEY)
    (grant,) = again.grants()
    assert (grant.uses, again.ends(grant)) == (0, LONG.created + timedelta(days=90))


LOOSER = {
    "bounds": '{"entries":{},"methods":[],"only":false}',
    "constraints": "{}",
    "expires": "",
    "width": "session",
    "revoked": "2026-01-02T00:00:00.000000Z",
}


@pytest.mark.parametrize("column", LOOSER)
def test_no_bound_of_a_grant_can_be_written(journal: Journal, edit: Edit, column: str) -> None:
    lapsing(journal, Clock(), BOUND)
    edit(f"update grants set \"{column}\" = '{LOOSER[column]}'")
    with pytest.raises(GrantsAltered):
        GrantStore(journal, clock).load(KEY)


def test_bounds_are_read_as_they_were_written(journal: Journal) -> None:
    lapsing(journal, Clock(), BOUND)
    again = GrantStore(journal, clock)
    again.load(KEY)
    assert again.grants() == (BOUND,)


@pytest.mark.promise(21)
def test_revoking_removes_exactly_what_is_named(journal: Journal) -> None:
    many = [replace(LONG, id=f"g-{n}", agent=f"bot-{n % 3}", service=f"s{n % 2}") for n in range(12)]
    made = lapsing(journal, Clock(), *many)
    made.revoke(["g-4"], by="the person")
    assert {grant.id for grant in made.grants()} == {grant.id for grant in many} - {"g-4"}
    with pytest.raises(InvalidInput, match="'g-4', so nothing was revoked"):
        made.revoke(["g-5", "g-4"], by="the person")  # one that is gone: nothing of it happens
    assert "g-5" in {grant.id for grant in made.grants()}
    again = GrantStore(journal, clock)
    again.load(KEY)
    assert set(map(repr, again.grants())) == set(map(repr, made.grants()))


def test_a_ledger_from_before_bounds_and_uses_is_believed(journal: Journal, grant_store: GrantStore) -> None:
    """What such a file holds is under the same MACs: nobody is asked everything anew after an update."""
    with journal.engine.begin() as connection:
        connection.exec_driver_sql("alter table grants drop column bounds")
        connection.exec_driver_sql("drop table grant_uses")
    with journal.engine.begin() as connection:
        _bind_and_count_grants(connection)
    again = GrantStore(journal, clock)
    again.load(KEY)
    assert again.grants() == (GRANT,)


LINE = replace(GRANT, id="g-3", width=Width.TASK, why="a-task", session="s-1", times=2, within={"to": {"is": "ann"}})


def used(made: GrantStore, *grants: Grant) -> None:
    with made.changing() as transaction:
        made.consume(transaction, grants)
        transaction.append("allow", action_id="a-2", agent="bot", facts={"ledger": made.root()})


@pytest.mark.promise(92)
def test_a_tasks_counts_outlive_a_restart_and_are_never_exceeded(journal: Journal, grant_store: GrantStore) -> None:
    with grant_store.changing() as transaction:
        grant_store.grant(transaction, (LINE,), by="the person")
    used(grant_store, LINE)
    again = GrantStore(journal, clock)
    again.load(KEY)
    (line,) = again.tasks("bot")
    assert (line.uses, line.times, line.within) == (1, 2, {"to": {"is": "ann"}})
    with pytest.raises(Conflict, match="used up"):
        used(again, LINE, LINE)  # two calls of one action, where one is left
    (line,) = again.tasks("bot")
    assert line.uses == 1, "nothing was taken of what failed"
    used(again, LINE)
    with pytest.raises(Conflict, match="used up"):
        used(again, LINE)


@pytest.mark.promise(92)
def test_an_older_count_put_back_shows(journal: Journal, grant_store: GrantStore, tmp_path: Path) -> None:
    with grant_store.changing() as transaction:
        grant_store.grant(transaction, (LINE,), by="the person")
    used(grant_store, LINE)
    with sqlite3.connect(tmp_path / "state.db") as database:
        older = {table: database.execute(f"select * from {table}").fetchall() for table in ("grants", "grant_uses")}
    used(grant_store, LINE)
    with sqlite3.connect(tmp_path / "state.db") as database:
        for table, rows in older.items():
            database.execute(f"delete from {table}")
            database.executemany(f"insert into {table} values ({', '.join('?' * len(rows[0]))})", rows)
    database.close()
    with pytest.raises(GrantsAltered):
        GrantStore(journal, clock).load(KEY)


def test_what_was_given_later_than_now_holds_again_when_the_time_has_come(
    journal: Journal, grant_store: GrantStore
) -> None:
    """The clock was set back, and the daemon started anew: nothing is revoked for that."""
    wanted = (GRANT.service, GRANT.account, GRANT.scope)
    need = Need(service=GRANT.service, account=GRANT.account, scope=GRANT.scope, risk=Risk.WRITE, methods=("m",))
    for hours, held in ((-10, False), (1, True), (25, False)):
        now = NOW + timedelta(hours=hours)
        again = GrantStore(journal, lambda now=now: now)  # type: ignore[misc]
        again.load(KEY)
        assert (wanted in again.standing(GRANT.agent, "")) is held
        (grant,) = again.matching(GRANT.agent, (need,))
        assert grant.covers(need, agent=GRANT.agent, digest="", session="", now=now) is held
        if hours < 25:
            assert again.forget_unused() == ()
