"""What takes a while to build from secrets: built once, when it is needed, and never left holding them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runtimes.gateway.redactor import PendingRedactor, Redactor
from runtimes.gateway.server import ActionServer
from tests.runtimes.gateway.ruled import PLAN, leases
from tests.runtimes.gateway.support import opened


class Made(Redactor):
    """Holds what it was made from, until it is dropped."""

    def __init__(self, secrets: list[bytes]) -> None:
        super().__init__([])
        self.secrets: list[bytes] | None = secrets

    def drop(self) -> None:
        self.secrets = None


async def test_it_is_made_once_for_all_who_wait() -> None:
    made: list[Made] = []

    def make(secrets: list[bytes]) -> Made:
        made.append(Made(secrets))
        return made[-1]

    later = PendingRedactor(make, [b"secret"])
    await asyncio.sleep(0.05)
    assert made == []

    async def wait() -> Redactor:
        return await later

    found = await asyncio.gather(*(wait() for _ in range(5)))
    assert len(made) == 1 and {id(one) for one in found} == {id(made[0])}
    assert made[0].secrets == [b"secret"]
    later.drop()
    await asyncio.sleep(0.05)
    assert made[0].secrets is None


async def test_one_who_goes_takes_nothing_from_the_others() -> None:
    go = threading.Event()

    def make(secrets: list[bytes]) -> Made:
        go.wait(300)
        return Made(secrets)

    later = PendingRedactor(make, [b"secret"])

    async def wait() -> Redactor:
        return await later

    gone, stays = asyncio.create_task(wait()), asyncio.create_task(wait())
    await asyncio.sleep(0.05)
    gone.cancel()
    await asyncio.sleep(0.05)
    go.set()
    made = await stays
    assert isinstance(made, Made) and made.secrets == [b"secret"]
    assert gone.cancelled()


async def test_what_is_dropped_while_it_is_made_forgets() -> None:
    go, made = threading.Event(), Made([])

    def make(secrets: list[bytes]) -> Made:
        go.wait(300)
        made.secrets = secrets
        return made

    later = PendingRedactor(make, [b"secret"])
    later.begin()
    later.drop()
    go.set()
    for _ in range(15_000):
        if made.secrets is None:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it still holds them")


async def test_what_was_dropped_is_not_made_any_more() -> None:
    later = PendingRedactor(Made, [b"secret"])
    later.drop()
    with pytest.raises(asyncio.CancelledError):
        await later


async def test_for_a_program_it_is_made_when_it_connects(tmp_path: Path) -> None:
    made: list[int] = []

    class Counting(ActionServer):
        def make_redactor(self, secrets: list[bytes]) -> Redactor:
            made.append(len(secrets))
            return super().make_redactor(secrets)

    async with opened(PLAN, leases(), tmp_path, Counting) as (box, _):
        await asyncio.sleep(0.1)
        assert made == []
        with box.container.connect():
            for _ in range(15_000):
                if made:
                    break
                await asyncio.sleep(0.02)
    assert len(made) == 1 and made[0] >= len(leases())
