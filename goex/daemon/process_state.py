"""What the daemon is as a process: how its threads are scheduled, its state folder's id, whether Docker answers."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from goex.paths import Paths
from policies.errors import GoexError, Unavailable
from policies.regular_file import read_regular
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
    """What this state folder's containers are labelled with: random, made once. Raises Unavailable."""
    file = paths.state_id
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(handle, "w") as opened:
            opened.write(secrets.token_hex(8))
    found = read_regular(file).decode("ascii", "replace").strip()
    if not re.fullmatch(r"[0-9a-f]{16}", found):  # as after a full disk
        raise Unavailable(f"{file} is damaged.", next_step="Move it away; a new one is made.")
    return found
