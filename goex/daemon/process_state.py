"""What the daemon is as a process: how its threads are scheduled, its state folder's id, whether Docker answers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from goex.paths import Paths
from policies.errors import GoexError
from runtimes.sandbox.contract import Profile
from runtimes.sandbox.docker import DockerSandbox


async def docker_state(sandbox: DockerSandbox, profile: Profile) -> tuple[str, str]:
    """What is wrong with Docker, and the command that builds the image; both "" when nothing is."""
    try:
        await sandbox.image_id(profile)
    except GoexError as error:
        if "images build" in error.next_step:
            return "", error.next_step
        return str(error), ""
    return "", ""


@contextmanager
def batch_scheduled() -> Iterator[None]:
    """Threads that are started in the block, and by those, don't interrupt the loop when they are woken: it wakes one
    of gRPC's with each message that it sends."""
    usual = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, *usual)


def state_id(paths: Paths) -> str:
    """What this state folder's containers are labelled with: random, made once."""
    file = paths.state_dir / "id"
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return file.read_text().strip()
    with os.fdopen(handle, "w") as opened:
        opened.write(secrets.token_hex(8))
    return file.read_text().strip()
