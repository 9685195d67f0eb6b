"""The daemon's time goes on and never back, whatever the machine's clock says."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goex.config import Config
from goex.daemon.app import App
from goex.daemon.steady_clock import SteadyClock
from goex.engine.peers import LONGEST, Peer, Presence, Sessions, Terminal
from goex.paths import Paths
from policies.grants import Grant, Width
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret

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


class Ending:
    """How often it ended what is over."""

    def __init__(self) -> None:
        self.times = 0

    async def end_overdue(self) -> None:
        self.times += 1


@pytest.mark.promise(66)
@pytest.mark.parametrize("name", ["retention", "holds"])
async def test_nothing_is_given_up_for_good_by_a_clock_that_was_just_set(tmp_path: Path, name: str) -> None:
    paths = Paths(config_dir=tmp_path / "config", state_dir=tmp_path / "state", run_dir=tmp_path / "run")
    paths.create()
    machine, ending = Machine(), Ending()
    app = App(paths, Config(), lambda: None, clock=machine.clock())
    app.retention = app.holds = Ending()  # type: ignore[assignment]
    setattr(app, name, ending)

    async def ends() -> bool:
        before = ending.times
        await app._end_overdue()
        return ending.times > before

    machine.goes(40 * 86_400)  # as asleep
    assert await ends()
    machine.is_set(40 * 86_400)
    assert not await ends()
    machine.goes(3599)
    assert not await ends()
    machine.goes(2)
    assert await ends(), "it is that late"
    machine.is_set(-40 * 86_400)
    machine.goes(7200)
    assert not await ends(), "it is ahead of what the machine says now"


@pytest.mark.promise(92)
@pytest.mark.parametrize("seconds", [-3600, 0])
async def test_a_task_ends_where_the_clock_was_set_back_before_a_start(seconds: int) -> None:
    """Else it would hold once more for what it held already. A permanent grant ends when the person said."""
    key, approval = Secret(b"the vault's passphrase here"), Secret(b"another one for approving")
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name, cheap_passphrases():
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None, clock=lambda: START)
        await app.vault_state.init("passphrase", key, approval)
        with app.grant_store.changing() as transaction:
            app.grant_store.grant(transaction, [_grant(width) for width in (Width.TASK, Width.PERMANENT)], by="p")
        await app.close()
        app = App(paths, Config(), lambda: None, clock=lambda: START + timedelta(seconds=seconds))
        await app.vault_state.unlock(key)
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
