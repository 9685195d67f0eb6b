"""Presence shown to polkit: the real polkitd on a bus of its own, and everything that isn't its clear yes.

A mount namespace gives each case the usual places (/run/dbus, polkit's rules and actions) to itself; the machine's own
polkit is never asked, and nothing of it is changed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from goex.config import BadConfig, parse
from goex.daemon.polkit import ACTION, Polkit
from goex.engine.peers import Peer, look_up
from goex.units.places import POLICY
from tests.support.bus import Bus, needs_bus

PROBE = Path(__file__).with_name("polkit_probe.py")


def _namespaces() -> bool:
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return done.returncode == 0


real = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/usr/lib/polkit-1/polkitd").exists() or not _namespaces(),
    reason="polkitd isn't installed, or this user can't give it a place of its own",
)


CASES = [
    ("true", "YES", "done", "done"),
    ('"instead"', "YES", "done", "done"),
    ("true", "NO", "presence", "done"),
    ("true", "AUTH_SELF", "presence", "done"),  # nobody is there to answer a dialog
    ("true", "no policy", "presence", "done"),
    ("true", "no polkit", "presence", "done"),
    ("true", "no bus", "presence", "done"),
    ('"also"', "YES", "presence", "done"),
    ('"also"', "NO", "presence", "polkit"),
    ('"also"', "no polkit", "presence", "polkit"),
    ("false", "YES", "presence", "done"),
]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """What the daemon said in each case: all of them in one process, which takes long to be there."""
    folder = tmp_path_factory.mktemp("polkit")
    for each in (folder, *folder.parents):
        if str(each) != "/" and each.stat().st_uid == 0 and each != Path("/tmp"):
            each.chmod(each.stat().st_mode | 0o005)
    # In a process namespace too: what the probe started ends with it, though it isn't root any more by then.
    alone = ["unshare", "-m", "--propagation", "private", "-p", "-f", "--kill-child", "--mount-proc"]
    cases = [case[:2] for case in CASES]
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.goex.daemon.polkit_probe", str(folder), json.dumps(cases)],
        capture_output=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return dict(zip(cases, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.sampled(8)
@pytest.mark.promise(4)
@real
@pytest.mark.parametrize(("mode", "rule", "without", "right"), CASES)
def test_only_a_clear_yes_counts(
    probed: dict[tuple[str, str], dict[str, Any]], mode: str, rule: str, without: str, right: str
) -> None:
    found = probed[mode, rule]
    assert (found["none"], found["wrong"], found["right"]) == (without, "presence", right), found["log"]
    assert found["change"] == right
    assert found["present"] == right  # presence that is remembered is shown in no other way


# ---- without the real one


def me(**changed: Any) -> Peer:
    return dataclasses.replace(look_up("user", os.getpid(), 1000, 1000, "c"), **changed)


class Authority:
    """What answers as polkit on a private bus, in whatever way a test wants."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []
        self.cancelled: list[str] = []
        self.bus: Any = None

    async def serve(self, address: str) -> None:
        from dbus_fast.aio import MessageBus

        self.bus = await MessageBus(bus_address=address).connect()
        self.bus.add_message_handler(self._take)
        await self.bus.request_name("org.freedesktop.PolicyKit1")

    def _take(self, message: Any) -> Any:
        from dbus_fast import Message, MessageType

        if message.message_type is not MessageType.METHOD_CALL:
            return None
        if message.member == "CancelCheckAuthorization":
            self.cancelled.append(message.body[0])
            return Message.new_method_return(message)
        self.asked.append(message.body)
        if self.answer is None:
            return True  # handled, and never answered
        if isinstance(self.answer, str):
            return Message.new_error(message, self.answer, "no")
        return Message.new_method_return(message, *self.answer)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    made = Bus(tmp_path)
    made.start()
    yield made
    made.stop()


async def ask(bus: Bus, answer: Any, peer: Peer | None = None, seconds: float = 2.0) -> tuple[bool, Authority]:
    authority = Authority(answer)
    await authority.serve(bus.address)
    try:
        return await Polkit("instead", address=bus.address, seconds=seconds).allows(peer or me()), authority
    finally:
        authority.bus.disconnect()


@needs_bus
@pytest.mark.skipif(os.geteuid() != 0, reason="what answers must be a system user's")
async def test_who_is_asked_about_and_what_counts(bus: Bus) -> None:
    yes = ("(bba{ss})", [[True, False, {}]])
    allowed, authority = await ask(bus, yes)
    assert allowed
    ((kind, subject), action, details, flags, cancellation) = authority.asked[0]
    assert (kind, action, details, flags) == ("unix-process", ACTION, {}, 1)
    assert {name: value.value for name, value in subject.items()} == {
        "pid": os.getpid(),
        "start-time": look_up("user", os.getpid(), 0, 0, "").started,
        "uid": 1000,
    }
    assert cancellation
    for answer in (
        ("(bba{ss})", [[False, False, {}]]),
        ("(bba{ss})", [[False, True, {}]]),
        ("b", [True]),
        ("(bb)", [[True, True]]),
        ("", []),
        "org.freedesktop.PolicyKit1.Error.NotAuthorized",
        "org.freedesktop.DBus.Error.AccessDenied",
    ):
        assert not (await ask(bus, answer))[0], answer


@needs_bus
@pytest.mark.skipif(os.geteuid() != 0, reason="what answers must be a system user's")
async def test_a_dialog_that_nobody_answers_is_taken_away(bus: Bus) -> None:
    allowed, authority = await ask(bus, None, seconds=0.3)
    assert not allowed
    assert authority.cancelled == [authority.asked[0][4]]


@needs_bus
@pytest.mark.skipif(os.geteuid() != 0, reason="what answers must be a system user's")
async def test_one_dialog_at_a_time(bus: Bus) -> None:
    authority = Authority(None)
    await authority.serve(bus.address)
    polkit = Polkit("instead", address=bus.address, seconds=0.5)
    first = asyncio.create_task(polkit.allows(me()))
    await asyncio.sleep(0.2)
    assert not await polkit.allows(me())
    assert not await first
    assert len(authority.asked) == 1
    authority.bus.disconnect()


@needs_bus
async def test_what_runs_as_an_ordinary_user_is_not_polkit(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goex.daemon.polkit._system_users", lambda: frozenset({os.geteuid() + 1}))
    allowed, authority = await ask(bus, ("(bba{ss})", [[True, False, {}]]))
    assert not allowed
    assert authority.asked == []


@needs_bus
@pytest.mark.parametrize("peer", [me(uid=0), me(pid=0), me(started=0)], ids=["root", "no process", "gone"])
async def test_root_and_who_is_gone_are_not_asked_about(bus: Bus, peer: Peer) -> None:
    allowed, authority = await ask(bus, ("(bba{ss})", [[True, False, {}]]), peer)
    assert not allowed
    assert authority.asked == []


async def test_no_bus_is_a_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await Polkit("instead", address=f"unix:path={tmp_path}/none").allows(me())


@pytest.mark.promise(4)
@needs_bus
async def test_the_address_in_the_environment_is_not_believed(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)
    authority = Authority(("(bba{ss})", [[True, False, {}]]))
    await authority.serve(bus.address)
    await Polkit("instead").allows(me(uid=1000))
    assert authority.asked == []
    authority.bus.disconnect()


def test_the_policy_asks_for_the_persons_own_password_each_time() -> None:
    action = ElementTree.parse(POLICY).getroot().find("action")
    assert action is not None
    assert action.get("id") == ACTION
    defaults = action.find("defaults")
    assert defaults is not None
    assert {each.tag: each.text for each in defaults} == dict.fromkeys(
        ("allow_any", "allow_inactive", "allow_active"), "auth_self"
    )


@pytest.mark.parametrize(
    ("said", "mode"), [(True, "instead"), (False, "off"), ("also", "also"), ("instead", "instead"), ("off", "off")]
)
def test_the_setting(said: object, mode: str) -> None:
    assert parse({"ask": {"polkit": said}}).ask.polkit == mode


@pytest.mark.parametrize("said", ["yes", 1, "", ["also"]])
def test_any_other_setting_is_refused(said: object) -> None:
    with pytest.raises(BadConfig):
        parse({"ask": {"polkit": said}})
