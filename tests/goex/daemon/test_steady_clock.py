"""The daemon's time goes on and never back, whatever the machine's clock says."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goex.config import Config
from goex.daemon.app import App
from goex.daemon.steady_clock import SteadyClock
from goex.engine.grant_store import GrantStore
from goex.engine.held_transactions import Holds
from goex.engine.peers import LONGEST, Peer, Presence, Sessions, Terminal
from goex.journal.chain import Journal
from goex.paths import Paths
from policies.grants import Grant, Width
from tests.support.passphrases import cheap_passphrases
from tests.support.waiting import until_async
from vault.record import Damage
from vault.secret import Secret
from vault.store import Vault

START = datetime(2026, 1, 2, tzinfo=UTC)
PERSON = Peer(
    socket="user",
    uid=1000,
    gid=1000,
    pid=200,
    connection="c1",
    terminal=Terminal(device=34816, leader=100, started=5000),
    program="goex",
)


@dataclass
class Machine:
    """What its clock says, and how many seconds it has run."""

    says: datetime = START
    runs: float = 1000.0

    def goes(self, seconds: float) -> None:
        self.says += timedelta(seconds=seconds)
        self.runs += seconds

    def is_set(self, seconds: float) -> None:
        self.says += timedelta(seconds=seconds)

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.says, lambda: self.runs)


def made_app(home: Path, clock: Callable[[], datetime]) -> App:
    paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
    paths.create()
    return App(paths, Config(), lambda: None, clock=clock)


@pytest.mark.promise(92)
def test_it_goes_on_while_the_machines_is_set_back() -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock() == START
    machine.goes(70)
    machine.is_set(-36_000)
    assert clock() == START + timedelta(seconds=70)
    machine.goes(60)
    assert clock() == START + timedelta(seconds=130)


def test_it_is_the_machines_where_that_is_set_forward() -> None:
    """As when the time comes from the network after a start without a battery."""
    machine = Machine()
    clock = machine.clock()
    clock()
    machine.is_set(10**8)
    assert clock() == machine.says
    machine.goes(5)
    assert clock() == machine.says


def test_a_daemon_that_starts_anew_has_the_machines_again(caplog: pytest.LogCaptureFixture) -> None:
    """A time of the far future ends with the daemon that had it, and its log says why it is ahead."""
    machine = Machine()
    clock = machine.clock()
    machine.is_set(10**9)
    clock()
    machine.is_set(-(10**9))
    with caplog.at_level(logging.WARNING, "goex.daemon"):
        assert clock() > machine.says
        clock()
    assert [record.message.partition(" by ")[0] for record in caplog.records] == ["the machine's clock was set back"]
    assert machine.clock()() == machine.says


@pytest.mark.parametrize("steady", [True, False])
def test_presence_and_sessions_end_in_spite_of_it(steady: bool) -> None:
    """Without it, as the control, both go on."""
    machine, ended = Machine(), list[str]()
    clock = machine.clock() if steady else lambda: machine.says
    presence, sessions = Presence(600, clock), Sessions(clock, ended.append)
    presence.remember(PERSON)
    sessions.of(PERSON, "person")
    machine.goes(LONGEST.total_seconds() + 1)
    machine.is_set(-LONGEST.total_seconds())
    sessions.sweep()
    assert presence.holds(PERSON) is not steady
    assert bool(ended) is steady


@pytest.mark.promise(66)
def test_the_earliest_is_by_what_the_machine_said_within_the_last_hour() -> None:
    machine = Machine()
    clock, days = machine.clock(), 40 * 86_400
    assert clock.earliest() == START
    machine.goes(days)  # as asleep
    assert clock.earliest() == machine.says
    machine.is_set(days)
    assert clock.earliest() == machine.says - timedelta(seconds=days)
    machine.goes(3599)
    assert clock.earliest() == machine.says - timedelta(seconds=days)
    machine.is_set(-days)
    assert clock.earliest() == machine.says, "it was wrong, and is right again"
    machine.goes(2)
    assert clock.earliest() == machine.says < clock()
    machine.is_set(days)
    assert clock.earliest() == machine.says - timedelta(seconds=days), "once more"
    for _ in range(300):  # as where two sources of the time differ by much
        for seconds in (-days, days):
            machine.is_set(seconds)
            clock()
    assert clock.earliest() == machine.says - timedelta(seconds=days)
    machine.goes(3601)
    assert clock.earliest() == machine.says, "it is that late"


@pytest.mark.promise(66)
def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    """As that of a machine that starts ahead, until the time comes from the network."""
    machine = Machine()
    clock = machine.clock()
    clock()
    machine.is_set(-600)
    for day in range(1, 31):
        machine.goes(86_400)
        assert clock.earliest() == machine.says == START + timedelta(days=day, seconds=-600)


@pytest.mark.promise(66)
def test_a_machine_that_is_paused_often_is_behind_by_its_last_pauses_alone() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(100):
        clock()
        machine.goes(3000)
        machine.is_set(8 * 3600)  # its own seconds stand still meanwhile
        assert clock() - clock.earliest() <= timedelta(hours=16)
    machine.goes(3600)
    assert clock.earliest() == machine.says


@pytest.mark.promise(66)
@pytest.mark.parametrize("seconds", [-600, 40 * 86_400])
async def test_what_is_held_ends_by_it_also_when_the_machines_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """It has locks at a server meanwhile. What is kept for an undo goes by the earliest."""
    monkeypatch.setattr("goex.daemon.app.SWEEP_SECONDS", 0)
    monkeypatch.setattr(Journal, "unlocked", True)
    monkeypatch.setattr(GrantStore, "forget_unused", lambda self: None)
    looks: list[datetime] = []

    async def looked(self: Holds) -> None:
        looks.append(self.engine.core.clock())

    monkeypatch.setattr(Holds, "end_overdue", looked)
    machine = Machine()
    app = made_app(tmp_path, machine.clock())
    app.clock()
    machine.is_set(seconds)
    sweeping = asyncio.create_task(app._sweep())
    await until_async(lambda: looks, "a look at what is held")
    sweeping.cancel()
    assert looks[0] == START + timedelta(seconds=max(seconds, 0))
    assert app.retention.clock() == START + timedelta(seconds=min(seconds, 0))


@pytest.mark.sampled(2)
@pytest.mark.promise(92)
@pytest.mark.parametrize("altered", [False, True])
@pytest.mark.parametrize("seconds", [-3600, 0])
async def test_a_task_ends_where_the_clock_was_set_back_before_a_start(
    monkeypatch: pytest.MonkeyPatch, seconds: int, altered: bool
) -> None:
    """Else it would hold once more for what it held already, whatever this start says before. A permanent grant ends
    when the person said."""
    damage = (Damage(service="slack", name="work", what="its row"),) if altered else ()
    key, approval = Secret(b"the vault's passphrase here"), Secret(b"another one for approving")
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name, cheap_passphrases():
        app = made_app(Path(name), lambda: START)
        await app.vault_state.init("passphrase", key, approval)
        with app.grant_store.changing() as transaction:
            app.grant_store.grant(transaction, [_grant(width) for width in (Width.TASK, Width.PERMANENT)], by="p")
        await app.close()
        app = App(app.paths, Config(), lambda: None, clock=lambda: START + timedelta(seconds=seconds))
        monkeypatch.setattr(Vault, "damage", lambda self: damage)
        await app.vault_state.unlock(key)
        assert len(app.journal.rows(kind="account-altered")) == len(damage)
        left = {grant.width for grant in app.grant_store.grants()}
        assert left == ({Width.PERMANENT} if seconds else {Width.PERMANENT, Width.TASK})
        await app.close()


def _grant(width: Width) -> Grant:
    return Grant(
        id=f"g-{width}",
        agent="bot",
        service="slack",
        account="work",
        scope="chat.postMessage",
        width=width,
        created=START,
        expires=START + timedelta(hours=2),
        by="p",
        why="a-1",
    )


def test_a_daemon_has_one(tmp_path: Path) -> None:
    paths = Paths(config_dir=tmp_path / "config", state_dir=tmp_path / "state", run_dir=tmp_path / "run")
    paths.create()
    app = App(paths, Config(), lambda: None)
    assert isinstance(app.clock, SteadyClock)
    assert app.engine.core.clock is app.clock
    assert app.journal.clock is app.clock
    assert app.retention.clock == app.clock.earliest
