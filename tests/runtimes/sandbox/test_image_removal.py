"""An image that isn't needed goes with what waits in it, and with nothing else's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Ended
from policies.errors import Unavailable
from runtimes.sandbox import engine, image_removal, images
from runtimes.sandbox.container_pool import Kind
from runtimes.sandbox.contract import Job, Profile, SandboxFailed
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.docker_sdk import APIClient
from runtimes.sandbox.pool_bounds import PoolBounds
from tests.runtimes.sandbox.waiting import PROFILE
from tests.support.waiting import until_async

pytestmark = pytest.mark.docker
DOCKERFILE = b"ARG BASE\nFROM ${BASE}\nARG PACKAGES\nCOPY app/ /goex/app/\n"
ECHO = Job(action_id="a-1", argv=("echo", "well"))


@pytest.fixture
def profiles(sandbox_image: str, tmp_path: Path) -> Iterator[tuple[Profile, Profile]]:
    """Those of two servers of one package: the engine has one image by two names."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "own").write_text(f"{os.getpid()} {tmp_path}")
    names = [f"mcp-of-test-{which}-{os.getpid()}" for which in ("one", "two")]
    files = {"Dockerfile": DOCKERFILE, "lock": (app / "own").read_bytes()}
    one, two = (images.build_on("base", name, files, app, (), lambda line: None) for name in names)
    yield replace(PROFILE, image=one), replace(PROFILE, image=two)
    for name in names:
        image_removal.forget(name, tmp_path / "nothing")


@pytest.fixture
async def both(
    profiles: tuple[Profile, Profile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DockerSandbox]:
    """A sandbox in which containers wait in the images of both."""
    # A busy engine may take longer to end a job's container, or to start the next one that waits.
    monkeypatch.setattr(image_removal, "ENDING_SECONDS", 60.0)
    made = DockerSandbox(
        f"removal-{os.getpid()}-{tmp_path.name}",
        scratch_dir=tmp_path / "scratch",
        pool_dir=tmp_path / "waiting",
        bounds=PoolBounds(least=1, most=2),
    )
    for profile in profiles:
        made.prepare(profile)
    await until_async(lambda: all(made.pooled(profile) for profile in profiles), "one that waits for each")
    yield made
    await made.close()


def there(profile: Profile) -> bool:
    return profile.image in images.builds(profile.image.partition(":")[0])


async def test_it_goes_with_what_waits_in_it(
    both: DockerSandbox, profiles: tuple[Profile, Profile], tmp_path: Path
) -> None:
    one, two = profiles
    (waits,) = both._pool._ready[Kind(two)]
    removed = await asyncio.to_thread(image_removal.forget, one.image, tmp_path / "waiting")
    assert removed == image_removal.Removed(1) and not there(one)
    assert there(two) and both._pool._ready[Kind(two)][0] is waits and waits.alive
    both._pool._wake.set()
    await until_async(lambda: not both._pool.serves(Kind(one)), "that the pool gives it up")
    with pytest.raises(Unavailable, match="isn't built"):
        await both.run(ECHO, one)
    ran = await both.run(ECHO, two)
    assert (ran.ended, ran.stdout) == (Ended.EXITED, b"well\n")
    removed = await asyncio.to_thread(image_removal.forget, two.image, tmp_path / "waiting")
    assert removed == image_removal.Removed(1) and not there(two)


async def test_what_is_being_made_to_wait_is_not_made_over_and_over(
    both: DockerSandbox, profiles: tuple[Profile, Profile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow engine the next one would be there before the image could go, each time."""
    one, _ = profiles
    waits = both._pool.take(Kind(one), None)
    assert waits is not None
    create = engine.create

    def gone_at_once(client: APIClient, name: str, config: dict[str, Any]) -> None:
        create(client, name, config)
        image_removal._remove_waiting(client, one.image, waits.image_id, tmp_path / "waiting")

    monkeypatch.setattr(engine, "create", gone_at_once)
    both._pool._wake.set()
    await until_async(lambda: not both._pool.serves(Kind(one)), "that the pool gives it up")
    assert there(one)
    await both._maker.drop(waits)


async def test_one_that_a_job_runs_in_stays(
    both: DockerSandbox, profiles: tuple[Profile, Profile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = profiles
    assert await asyncio.to_thread(image_removal.forget, two.image, tmp_path / "waiting") == image_removal.Removed(1)
    begun = asyncio.Event()
    long = Job(action_id="a-long", argv=("sh", "-c", "echo begun; sleep 600"))
    limits = replace(one.limits, seconds=120.0)
    running = asyncio.create_task(both.run(long, replace(one, limits=limits), lambda *_: begun.set()))
    await begun.wait()
    with monkeypatch.context() as patched:
        patched.setattr(image_removal, "ENDING_SECONDS", 0.1)
        removed = await asyncio.to_thread(image_removal.forget, one.image, tmp_path / "waiting")
    assert removed == image_removal.Removed(0, (f"goex/{one.image}",)) and there(one)
    assert not running.done()
    await both.kill("a-long")
    assert (await running).ended is Ended.KILLED
    assert await asyncio.to_thread(image_removal.forget, one.image, tmp_path / "waiting") == image_removal.Removed(1)


async def test_what_is_kept_or_of_another_folder_stays(
    both: DockerSandbox, profiles: tuple[Profile, Profile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of another daemon: what waits there isn't this one's to remove."""
    one, two = profiles
    monkeypatch.setattr(image_removal, "ENDING_SECONDS", 0.1)
    name = one.image.partition(":")[0]
    assert image_removal.forget(name, tmp_path / "waiting", {one.image}) == image_removal.Removed(0)
    assert image_removal.forget(two.image, tmp_path / "elsewhere").gone == 1  # a name less, of an image that stays
    assert image_removal.forget(one.image, tmp_path / "elsewhere").left == (f"goex/{one.image}",)
    assert there(one) and both.pooled(one) and both.pooled(two)


def test_an_engine_that_is_not_there_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    for ask in (lambda: image_removal.forget("mcp-x", tmp_path), lambda: images.builds("mcp-x")):
        with pytest.raises(SandboxFailed):
            ask()
