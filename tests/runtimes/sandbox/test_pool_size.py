"""How many containers wait, and for how long."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from policies.errors import GoexError, InvalidInput, Unavailable
from runtimes.sandbox import container_pool
from runtimes.sandbox.container_pool import Kind, Pool, PooledContainer, WorkFolder
from runtimes.sandbox.contract import Profile, SandboxFailed
from runtimes.sandbox.pool_bounds import PoolBounds, takes
from tests.runtimes.sandbox.waiting import KIND, PROFILE
from tests.support.waiting import until_async

OTHER = Kind(replace(PROFILE, image="other"))


class Bench:
    """Makes what waits out of nothing, and counts."""

    def __init__(self) -> None:
        self.made = self.dropped = self.at_once = self.most_at_once = 0
        self.fails: SandboxFailed | None = None
        self.lacks: GoexError | None = None  # what is missing of the one kind OTHER
        self.ends: list[socket.socket] = []

    async def make(self, kind: Kind) -> PooledContainer:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001)
        self.at_once -= 1
        if self.fails is not None:
            raise self.fails
        if self.lacks is not None and kind == OTHER:
            raise self.lacks
        self.made += 1
        ours, theirs = socket.socketpair()
        self.ends.append(theirs)
        return PooledContainer(name=f"c-{self.made}", image_id="i", folder=Path("/nowhere"), stream=ours, counter=None)

    async def drop(self, waiting: PooledContainer) -> None:
        self.dropped += 1
        waiting.stream.close()


@pytest.fixture
async def pool() -> AsyncIterator[tuple[Pool, Bench]]:
    bench = Bench()
    made = Pool(PoolBounds(least=2, most=4), bench.make, bench.drop)
    yield made, bench
    await made.close()
    for end in bench.ends:
        end.close()


async def test_the_least_wait_and_each_is_given_once(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    assert waiting.take(KIND, None) is None  # nobody had asked before
    await until_async(lambda: waiting.pooled(KIND) == 3)  # the least, and one for the miss
    taken = [waiting.take(KIND, "i") for _ in range(3)]
    assert len({one.name for one in taken if one}) == 3
    assert bench.most_at_once <= 2


async def test_what_is_missed_makes_more_wait_up_to_the_most(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    for _ in range(20):
        waiting.take(KIND, None)
    await until_async(lambda: waiting.pooled(KIND) == 4)
    await asyncio.sleep(0.05)
    assert (waiting.pooled(KIND), bench.made) == (4, 4)


async def test_after_a_quiet_time_fewer_wait(pool: tuple[Pool, Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_pool, "_IDLE", 0.05)
    waiting, bench = pool
    for _ in range(20):
        waiting.take(KIND, None)
    await until_async(lambda: bench.made == 4)
    await until_async(lambda: waiting.pooled(KIND) == 2 and bench.dropped == 2)


async def test_another_image_s_are_dropped(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    waiting.want(KIND)
    await until_async(lambda: waiting.pooled(KIND) == 2)
    assert waiting.take(KIND, "a newer one") is None
    await until_async(lambda: bench.dropped == 2)


async def test_the_dead_are_replaced(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    waiting.want(KIND)
    await until_async(lambda: waiting.pooled(KIND) == 2)
    for end in bench.ends:
        end.close()
    assert waiting.take(KIND, None) is None
    await until_async(lambda: bench.dropped == 2 and waiting.pooled(KIND) >= 2)


async def test_an_engine_that_fails_is_tried_again_later_and_the_pool_heals(
    pool: tuple[Pool, Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_pool, "_FIRST_PAUSE", 0.02)
    waiting, bench = pool
    bench.fails = SandboxFailed("Docker isn't there.")
    assert waiting.take(KIND, None) is None
    await asyncio.sleep(0.1)
    assert waiting.pooled(KIND) == 0
    bench.fails = None
    await until_async(lambda: waiting.pooled(KIND) >= 2)


async def test_while_a_caller_s_is_made_none_is_made_to_wait(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    with waiting.hurry():
        waiting.want(KIND)
        await asyncio.sleep(0.05)
        assert bench.made == 0
    await until_async(lambda: waiting.pooled(KIND) == 2)


async def test_all_that_wait_have_room_in_the_memory_for_them(pool: tuple[Pool, Bench]) -> None:
    _, bench = pool
    small = Pool(PoolBounds(least=3, most=4, memory=takes("base") + takes("code")), bench.make, bench.drop)
    programs = Kind(Profile(image="code"))
    small.want(KIND)
    small.want(programs)
    await until_async(lambda: bench.made >= 3)
    await asyncio.sleep(0.05)
    assert small.pooled(KIND) * takes("base") + small.pooled(programs) * takes("code") <= 50 * 2**20
    assert small.pooled(KIND) == 3
    await small.close()


def folder_kind(number: int) -> Kind:
    return Kind(PROFILE, WorkFolder(f"/folders/{number}", (1, number), 1000, 1000))


async def test_one_waits_for_each_of_the_last_folders(pool: tuple[Pool, Bench]) -> None:
    waiting, _ = pool
    kinds = [folder_kind(number) for number in range(6)]
    for kind in kinds:
        assert waiting.take(kind, None) is None
        waiting.want(kind)
        await until_async(partial(waiting.pooled, kind))
    await until_async(lambda: [waiting.pooled(kind) for kind in kinds] == [0, 0, 1, 1, 1, 1])


@pytest.mark.promise(48)
async def test_none_waits_for_a_folder_for_long(pool: tuple[Pool, Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_pool, "FOLDER_SECONDS", 0.2)
    waiting, bench = pool
    waiting.want(folder_kind(1))
    await until_async(lambda: waiting.pooled(folder_kind(1)) == 1)
    await until_async(lambda: waiting.pooled(folder_kind(1)) == 0 and bench.dropped == 1)
    assert bench.made == 1


async def test_none_wait_where_none_may(pool: tuple[Pool, Bench]) -> None:
    bench = Bench()
    off = Pool(PoolBounds(least=0, most=0), bench.make, bench.drop)
    off.want(KIND)
    assert off.take(KIND, None) is None
    await asyncio.sleep(0.02)
    assert bench.made == 0
    await off.close()


async def test_closing_drops_all_and_makes_no_more(pool: tuple[Pool, Bench]) -> None:
    waiting, bench = pool
    waiting.want(KIND)
    await until_async(lambda: bench.made >= 1)
    await waiting.close()
    assert bench.made == bench.dropped
    assert waiting.take(KIND, None) is None
    waiting.want(KIND)
    await asyncio.sleep(0.02)
    assert bench.made == bench.dropped


@pytest.mark.parametrize("gone", [Unavailable("It isn't built."), InvalidInput("There is no such profile.")])
async def test_an_image_that_is_gone_is_no_failure_of_the_engine(pool: tuple[Pool, Bench], gone: GoexError) -> None:
    """The others wait all the same, and it is asked for again by the next job alone."""
    waiting, bench = pool
    waiting.take(OTHER, None)
    await until_async(lambda: waiting.pooled(OTHER))
    bench.lacks = gone
    for end in bench.ends:
        end.close()
    waiting.take(OTHER, None)
    waiting.take(KIND, None)
    await until_async(lambda: waiting.pooled(KIND) == 3 and not waiting.serves(OTHER))
    bench.lacks = None
    waiting.take(OTHER, None)
    await until_async(lambda: waiting.pooled(OTHER))
