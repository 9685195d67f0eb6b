"""Who has the next turn: who has fewest at work, then who had one longest ago; and nobody has all places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from runtimes.turns import Turns, Who


class Line:
    """Wishes, in the order in which they begin."""

    def __init__(self, places: int) -> None:
        self.turns = Turns(places)
        self.begun: list[str] = []
        self._ends: dict[str, Callable[[], None]] = {}

    def ask(self, name: str, *who: str) -> None:
        self._ends[name] = self.turns.ask(who, lambda: self.begun.append(name))

    def end(self, name: str) -> None:
        self._ends.pop(name)()

    def all(self) -> list[str]:
        """What begins when each that has begun ends before the next does."""
        for name in self.begun:  # it grows
            if name in self._ends:
                self.end(name)
        return self.begun


@pytest.mark.promise(16)
def test_one_agents_many_leave_a_place_for_another() -> None:
    line = Line(4)
    for number in range(10):
        line.ask(f"a{number}", "a", str(number), "1")
    line.ask("b", "b", "1", "1")
    assert line.begun == ["a0", "a1", "b"]


def test_one_place_is_given_too() -> None:
    line = Line(1)
    line.ask("a", "a")
    line.ask("b", "b")
    assert line.all() == ["a", "b"]


@pytest.mark.promise(16)
def test_agents_take_turns_whatever_the_number_of_their_connections() -> None:
    line = Line(1)
    for agent in "ab":
        for number in range(4):
            line.ask(f"{agent}{number}", agent, str(number), "1")
    line.ask("c", "c", "1", "1")
    assert line.all()[:4] == ["a0", "b0", "c", "a1"]


@pytest.mark.promise(16)
def test_processes_of_one_agent_take_turns_and_connections_of_one_process() -> None:
    """Agents without a name are one."""
    line = Line(1)
    for number in range(6):
        line.ask(f"many {number}", "", "1", str(number % 2))
    line.ask("other", "", "2", "9")
    assert line.all()[:6] == ["many 0", "other", "many 1", "many 2", "many 3", "many 4"]


@pytest.mark.promise(16)
def test_a_new_connection_for_each_request_has_no_turn_more() -> None:
    line = Line(1)
    line.ask("a0", "", "1", "0")
    line.ask("other", "", "2", "9")
    for number in range(1, 4):
        line.ask(f"a{number}", "", "1", str(number))
    line.ask("late", "", "3", "9")
    assert line.all() == ["a0", "other", "late", "a1", "a2", "a3"]


async def test_who_leaves_has_no_turn_and_keeps_nobody_waiting() -> None:
    turns, come = Turns(1), list[str]()

    async def works(name: str, who: Who, until: asyncio.Event) -> None:
        async with turns.turn(who):
            come.append(name)
            await until.wait()

    never, now = asyncio.Event(), asyncio.Event()
    now.set()
    first = asyncio.create_task(works("first", ("a",), never))
    await asyncio.sleep(0)
    second = asyncio.create_task(works("second", ("b",), never))
    third = asyncio.create_task(works("third", ("c",), now))
    await asyncio.sleep(0)
    for task in (second, first):
        task.cancel()
    await asyncio.wait_for(third, 300)
    assert come == ["first", "third"]
    assert turns == Turns(1, _turn=turns._turn)  # nothing is remembered of who is gone
