"""Locked, asleep, awake: what logind says over a real bus, and who is not believed.

The bus is a real dbus-daemon; logind is `tests.support.bus.Login1`, which keeps to logind's documented interface, since
the real one can't run beside a machine's own.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goex.config import Sealing
from goex.daemon.autoseal import AutoSeal
from goex.daemon.logind import Logind
from tests.support.bus import Bus, Login1, needs_bus
from tests.support.waiting import until_async

pytestmark = needs_bus
ME = 4242


@pytest.fixture
def bus(tmp_path: Path) -> object:
    made = Bus(tmp_path)
    made.start()
    yield made
    made.stop()


class Seen:
    """What Logind told, and how long being told takes."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.takes = 0.0
        self.held_then: list[int] = []
        self.login: Login1 | None = None

    async def locked(self) -> None:
        self.told.append("locked")

    async def sleeping(self) -> None:
        await asyncio.sleep(self.takes)
        self.held_then.append(self.login.held if self.login else -1)
        self.told.append("sleeping")


@asynccontextmanager
async def watching(bus: Bus, *, hint: bool = False) -> AsyncIterator[tuple[Seen, Login1, Logind]]:
    seen, login = Seen(), Login1(ME)
    login.locked_hint = hint
    seen.login = login
    await login.serve(bus.address)
    logind = Logind(seen.locked, seen.sleeping, address=bus.address, uid=ME, first_wait=0.05)
    logind.start()
    try:
        await until_async(
            lambda: logind.watching and "Get" in login.calls
        )  # it has asked whether the session is locked
        yield seen, login, logind
    finally:
        await logind.close()
        login.close()


async def test_a_lock_is_told(bus: Bus) -> None:
    async with watching(bus) as (seen, login, logind):
        assert logind.state == "heard"
        await login.lock()
        await until_async(lambda: seen.told == ["locked"])
        await login.hint(True)
        await until_async(lambda: seen.told == ["locked", "locked"])
        await login.hint(False)
        await login.signal(login.session_path, "org.freedesktop.login1.Session", "Unlock")
        await asyncio.sleep(0.2)
        assert seen.told == ["locked", "locked"]  # and nothing is ever said of unlocking


async def test_somebody_elses_session_is_not_ours(bus: Bus) -> None:
    async with watching(bus) as (seen, login, _):
        login.uid = ME + 1
        await login.lock()
        await login.hint(True)
        await asyncio.sleep(0.3)
        assert seen.told == []
        login.uid = ME  # the control
        await login.lock()
        await until_async(lambda: seen.told)


async def test_a_session_that_was_locked_before_is_told_at_once(bus: Bus) -> None:
    async with watching(bus, hint=True) as (seen, _, _):
        await until_async(lambda: seen.told == ["locked"])


async def test_the_machine_waits_until_it_is_sealed(bus: Bus) -> None:
    async with watching(bus) as (seen, login, _):
        assert login.inhibitors[0][0] == ["sleep", "GoEx", "The vault is sealed first", "delay"]
        await asyncio.sleep(0.4)  # the sender's own copy of the descriptor is closed by then
        assert login.held == 1
        seen.takes = 0.3
        await login.sleep(True)
        await until_async(lambda: seen.told == ["sleeping"])
        assert seen.held_then == [1]
        await until_async(lambda: login.held == 0)
        await login.sleep(False)
        await until_async(lambda: len(login.inhibitors) == 2)
        await asyncio.sleep(0.4)
        assert login.held == 1
        await login.sleep(True)
        await until_async(lambda: seen.told == ["sleeping", "sleeping"])


async def test_sealing_that_takes_too_long_does_not_keep_it_awake(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goex.daemon.logind.SEALING_SECONDS", 0.3)
    async with watching(bus) as (seen, login, _):
        seen.takes = 1.0
        await asyncio.sleep(0.4)
        await login.sleep(True)
        await until_async(lambda: login.held == 0)
        assert seen.told == []
        await until_async(lambda: seen.told == ["sleeping"])  # it went on


@pytest.mark.promise(34)
async def test_nobody_else_on_the_bus_is_believed(bus: Bus) -> None:
    async with watching(bus) as (seen, login, _):
        other = Login1(ME)
        await other.serve(bus.address, name="")
        target = next(name for name in _names(login, other))
        for to in ("", target):
            await other.signal(login.session_path, "org.freedesktop.login1.Session", "Lock", to=to)
            manager = "org.freedesktop.login1.Manager"
            await other.signal("/org/freedesktop/login1", manager, "PrepareForSleep", "b", [True], to=to)
        await asyncio.sleep(0.3)
        assert seen.told == []
        other.close()
        await login.lock()
        await until_async(lambda: seen.told == ["locked"])


def _names(login: Login1, other: Login1) -> list[str]:
    """The unique name of the watcher: the one between the two."""
    known = (login.bus.unique_name, other.bus.unique_name)
    return [name for name in (":1.0", ":1.1", ":1.2") if name not in known]


async def test_odd_signals_do_nothing(bus: Bus) -> None:
    from dbus_fast import Variant

    async with watching(bus) as (seen, login, logind):
        await login.signal("/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PrepareForSleep", "s", ["yes"])
        for changed in ({}, {"LockedHint": Variant("s", "true")}, {"Active": Variant("b", True)}):
            await login.signal(
                login.session_path,
                "org.freedesktop.DBus.Properties",
                "PropertiesChanged",
                "sa{sv}as",
                ["org.freedesktop.login1.Session", changed, []],
            )
        await asyncio.sleep(0.2)
        assert seen.told == []
        assert logind.watching
        await login.lock()
        await until_async(lambda: seen.told == ["locked"])


async def test_it_comes_back_with_the_bus(bus: Bus) -> None:
    async with watching(bus) as (seen, login, logind):
        bus.stop()
        await until_async(lambda: not logind.watching)
        assert "went away" in logind.state or "no system bus" in logind.state
        bus.start()
        login.close()
        again = Login1(ME)
        await again.serve(bus.address)
        await until_async(lambda: logind.watching and again.inhibitors)
        await again.lock()
        await until_async(lambda: seen.told == ["locked"])
        again.close()


async def test_it_comes_back_with_logind(bus: Bus) -> None:
    async with watching(bus) as (seen, login, logind):
        login.close()
        await until_async(lambda: not logind.watching)
        again = Login1(ME)
        await again.serve(bus.address)
        await until_async(lambda: logind.watching and again.inhibitors)
        await again.lock()
        await until_async(lambda: seen.told == ["locked"])
        again.close()


async def test_a_bus_without_logind_is_said_and_looked_at_again(bus: Bus) -> None:
    seen = Seen()
    logind = Logind(seen.locked, seen.sleeping, address=bus.address, uid=ME, first_wait=0.05)
    logind.start()
    await until_async(lambda: logind.state == "There is no logind here.")
    login = Login1(ME)
    await login.serve(bus.address)
    await until_async(lambda: logind.watching)
    await logind.close()
    login.close()


async def test_no_bus_is_no_error(tmp_path: Path) -> None:
    seen = Seen()
    logind = Logind(seen.locked, seen.sleeping, address=f"unix:path={tmp_path}/none", first_wait=0.05)
    logind.start()
    await until_async(lambda: "no system bus" in logind.state)
    await logind.close()


async def test_a_bus_that_never_answers_is_no_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goex.daemon.system_bus.CALL_SECONDS", 0.3)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = await asyncio.start_unix_server(silent, tmp_path / "bus")
    seen = Seen()
    logind = Logind(seen.locked, seen.sleeping, address=f"unix:path={tmp_path}/bus", first_wait=0.05)
    logind.start()
    await until_async(lambda: "no system bus" in logind.state)
    await logind.close()
    server.close()


async def test_the_address_in_the_environment_is_not_believed(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the daemon chooses its environment, and would choose a bus on which nobody ever locks."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    seen, login = Seen(), Login1(os.geteuid())
    await login.serve(bus.address)
    logind = Logind(seen.locked, seen.sleeping, first_wait=0.05)
    logind.start()
    await until_async(lambda: logind.state != "not looked for yet")
    assert login.calls == []
    await logind.close()
    login.close()


# ---- when it seals


class Vault:
    """What AutoSeal asks about, and what it did."""

    def __init__(self) -> None:
        self.open, self.using, self.sealed, self.forgot, self.now = True, False, [], 0, 0.0

    async def seal(self, why: str) -> None:
        self.open = False
        self.sealed.append(why)

    def made(self, **settings: object) -> AutoSeal:
        def forget() -> None:
            self.forgot += 1

        return AutoSeal(
            Sealing(**settings),  # type: ignore[arg-type]
            seal=self.seal,
            unsealed=lambda: self.open,
            busy=lambda: self.using,
            locked=forget,
            clock=lambda: self.now,
        )


async def test_idleness_seals_and_use_does_not() -> None:
    vault = Vault()
    auto = vault.made(seal_after=100)
    auto.start()
    try:
        for vault.now in (50.0, 99.0):
            await asyncio.sleep(0.1)
            assert vault.sealed == []
        auto.used()
        vault.now = 150.0
        auto._idle.cancel()  # type: ignore[union-attr]
        auto._idle = asyncio.create_task(auto._watch())  # as if its nap had ended
        await asyncio.sleep(0.1)
        assert vault.sealed == []
        vault.using, vault.now = True, 500.0
        auto._idle.cancel()
        auto._idle = asyncio.create_task(auto._watch())
        await asyncio.sleep(0.2)
        assert vault.sealed == []
        vault.using, vault.now = False, 601.0
        auto._idle.cancel()
        auto._idle = asyncio.create_task(auto._watch())
        await until_async(lambda: vault.sealed == ["idle"])
    finally:
        await auto.close()


async def test_never_means_never() -> None:
    vault = Vault()
    auto = vault.made(seal_after=0)
    auto.start()
    vault.now = 1e9
    await asyncio.sleep(0.2)
    assert vault.sealed == []
    assert auto._idle is None
    await auto.close()


@pytest.mark.parametrize("on", [True, False])
async def test_lock_and_sleep_as_the_settings_say_and_presence_is_forgotten_anyway(on: bool) -> None:
    for what in ("lock", "sleep"):
        vault = Vault()
        auto = vault.made(seal_on_lock=on, seal_on_sleep=on)
        await (auto._on_lock() if what == "lock" else auto._on_sleep())
        assert (vault.sealed, vault.forgot) == ([what] if on else [], 1)
        await (auto._on_lock() if what == "lock" else auto._on_sleep())
        assert len(vault.sealed) <= 1  # what is sealed isn't sealed again


async def test_it_says_when_it_seals() -> None:
    vault = Vault()
    assert vault.made().describe() == "after 8 h without use; not on lock or before sleep: not looked for yet"
    assert vault.made(seal_after=0, seal_on_lock=False, seal_on_sleep=False).describe() == "never by itself"
    auto = vault.made(seal_after=90, seal_on_sleep=False)
    auto.logind._owner = ":1.7"
    assert auto.describe() == "after 90 s without use, on lock"


# ---- a daemon that hears it


def _namespaces() -> bool:
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.promise(34)
@pytest.mark.skipif(os.geteuid() != 0 or not _namespaces(), reason="this user can't give a bus the usual place")
def test_a_daemon_seals_on_lock_and_before_sleep_and_opens_nothing_by_itself(tmp_path: Path) -> None:
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-m", "tests.goex.daemon.logind_probe"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, timeout=550, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "says": "after 8 h without use, on lock, before sleep",
        "lock": "the screen was locked",
        "after unlocking the screen": "sealed",
        "held": 1,
        "when the machine may sleep": "sealed",
        "sleep": "the machine went to sleep",
        "awake": "sealed",
    }
