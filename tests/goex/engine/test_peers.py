"""Sessions end and presence is forgotten: by the clock, by the connection, and never too late."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goex.engine.peers import IDLE, LONGEST, MOST_NAMED, Peer, Presence, Sessions, Terminal, look_up


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def goes(self, by: timedelta) -> None:
        self.now += by


TERMINAL = Terminal(device=34816, leader=100, started=5000)
PERSON = Peer(socket="user", uid=1000, gid=1000, pid=200, connection="c1", terminal=TERMINAL, program="goex")
AGENT = Peer(socket="agent", uid=1000, gid=1000, pid=300, connection="c2", terminal=TERMINAL, program="python")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def sessions(clock: Clock, ended: list[str]) -> Sessions:
    return Sessions(clock, ended.append)


def test_a_terminal_is_one_session_over_many_connections(sessions: Sessions) -> None:
    first = sessions.of(PERSON, "person")
    assert sessions.of(replace(PERSON, connection="c9", pid=201), "person") == first


@pytest.mark.parametrize(
    "other",
    [
        replace(PERSON, terminal=replace(TERMINAL, device=1)),
        replace(PERSON, terminal=replace(TERMINAL, leader=101)),
        replace(PERSON, terminal=replace(TERMINAL, started=5001)),  # the leader's process id was used again
        replace(PERSON, uid=1001),
        replace(PERSON, terminal=None),
    ],
)
def test_another_terminal_is_another_session(sessions: Sessions, other: Peer) -> None:
    assert sessions.of(PERSON, "person") != sessions.of(other, "person")


def test_an_agents_session_is_its_connection_whatever_terminal_it_is_on(sessions: Sessions, ended: list[str]) -> None:
    first = sessions.of(AGENT, "bot")
    assert sessions.of(replace(AGENT, connection="c3"), "bot") != first
    assert sessions.of(AGENT, "other") != first
    sessions.disconnected("c2")
    assert first in ended
    assert sessions.of(PERSON, "person") not in ended


def test_thirty_idle_minutes_end_it(sessions: Sessions, clock: Clock, ended: list[str]) -> None:
    first = sessions.of(PERSON, "person")
    clock.goes(IDLE)
    assert sessions.of(PERSON, "person") == first
    clock.goes(IDLE + timedelta(seconds=1))
    assert sessions.of(PERSON, "person") != first
    assert ended == [first]


def test_eight_hours_end_it_however_busy(sessions: Sessions, clock: Clock, ended: list[str]) -> None:
    first = sessions.of(PERSON, "person")
    for _ in range(16 * 2):
        clock.goes(timedelta(minutes=15))
        assert sessions.of(PERSON, "person") == first
    assert clock.now - datetime(2026, 1, 2, tzinfo=UTC) == LONGEST
    clock.goes(timedelta(seconds=1))
    sessions.sweep()
    assert ended == [first]


def test_presence_is_for_one_terminal_and_a_few_minutes(clock: Clock) -> None:
    presence = Presence(300, clock)
    assert not presence.holds(PERSON)
    assert presence.remember(PERSON) == 300
    assert presence.holds(replace(PERSON, pid=201, connection="c9"))
    assert not presence.holds(replace(PERSON, uid=1001))
    assert not presence.holds(replace(PERSON, terminal=replace(TERMINAL, started=5001)))
    assert not presence.holds(replace(PERSON, terminal=None))
    assert not presence.holds(AGENT)  # the same terminal, on the agent's socket
    clock.goes(timedelta(seconds=300))
    assert not presence.holds(PERSON)


def test_presence_can_be_switched_off_and_is_never_kept_without_a_terminal(clock: Clock) -> None:
    off = Presence(0, clock)
    assert off.remember(PERSON) == 0
    assert not off.holds(PERSON)
    presence = Presence(300, clock)
    nowhere = replace(PERSON, terminal=None)
    assert presence.remember(nowhere) == 0
    assert not presence.holds(nowhere)


def test_sealing_forgets_presence(clock: Clock) -> None:
    presence = Presence(300, clock)
    presence.remember(PERSON)
    presence.forget()
    assert not presence.holds(PERSON)


def test_a_process_that_is_gone_has_no_terminal() -> None:
    found = look_up("user", 2**22 - 1, 1000, 1000, "c")
    assert (found.terminal, found.program) == (None, "")
    assert look_up("user", 0, 1000, 1000, "c").terminal is None  # another pid namespace


def test_a_name_with_parentheses_and_spaces_is_read_right() -> None:
    named, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            Path("/proc/self/comm").write_text("a) R 1 (b")
            os.write(tell, b".")
            os.read(os.pipe()[0], 1)
        finally:
            os._exit(0)
    os.close(tell)
    try:
        assert os.read(named, 1) == b"."
        found = look_up("user", pid, 0, 0, "c")
        assert found.program == "a) R 1 (b"
        assert found.terminal == look_up("user", os.getpid(), 0, 0, "c").terminal
        assert "\x1b" not in replace(found, program="\x1b[31m").describe()
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(named)


def test_a_named_session_is_the_same_over_connections_and_survives_them(sessions: Sessions, ended: list[str]) -> None:
    first = sessions.of(AGENT, "bot", "work")
    sessions.disconnected("c2")
    assert ended == []
    assert sessions.of(replace(AGENT, connection="c3", pid=301), "bot", "work") == first


def test_a_named_session_is_its_agents_alone(sessions: Sessions) -> None:
    first = sessions.of(AGENT, "bot", "work")
    assert sessions.of(AGENT, "other", "work") != first
    assert sessions.of(AGENT, "bot", "play") != first
    assert sessions.of(AGENT, "bot") != first


def test_nobody_without_a_name_and_no_person_names_a_session(sessions: Sessions) -> None:
    other = replace(AGENT, connection="c3")
    assert sessions.of(AGENT, "anonymous", "work") != sessions.of(other, "anonymous", "work")
    assert sessions.of(PERSON, "person", "work") == sessions.of(PERSON, "person")


def test_an_idle_named_session_ends(sessions: Sessions, clock: Clock, ended: list[str]) -> None:
    first = sessions.of(AGENT, "bot", "work")
    clock.goes(IDLE + timedelta(seconds=1))
    assert sessions.of(AGENT, "bot", "work") != first
    assert ended == [first]


def test_named_sessions_are_bounded_and_the_idlest_goes(sessions: Sessions, clock: Clock, ended: list[str]) -> None:
    neighbour = sessions.of(AGENT, "other", "work")
    made = []
    for number in range(MOST_NAMED + 1):
        clock.goes(timedelta(seconds=1))
        made.append(sessions.of(AGENT, "bot", str(number)))
    assert ended == made[:1]
    assert sessions.of(AGENT, "other", "work") == neighbour
