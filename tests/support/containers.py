"""Whose a container is, seen from outside: by its label, or, where it was made before its action, by the daemon's note.

A label can't be added to a container that is there already. So the daemon notes in the container's folder which action
it was given to, before anything of the action is put there.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from docker import APIClient

from runtimes.sandbox import container_pool
from runtimes.sandbox.contract import Job
from runtimes.sandbox.control import CONTROL
from runtimes.sandbox.spec import ACTION_LABEL, STATE_LABEL

WAIT = "[sandbox]\nwaiting = 2\n"  # the configuration of a daemon whose containers wait for a job, as a person's do


def of_action(client: APIClient, action: str, run_dir: Path) -> list[str]:
    """The ids of the containers that were made for, or given to, that action of the daemon of that folder."""
    given = {name for name, owner in container_pool.bound(run_dir / "waiting").items() if owner == action}
    return [
        found["Id"]
        for found in client.containers(all=True)
        if found["Labels"].get(ACTION_LABEL) == action or given & {name.lstrip("/") for name in found["Names"]}
    ]


def waiting(run_dir: Path) -> int:
    """How many containers of the daemon of that folder wait for a job: they have connected to it, and have none."""
    folders = [each for each in (run_dir / "waiting").glob("*/*") if (each / container_pool.JOB).is_dir()]
    owned = container_pool.bound(run_dir / "waiting")
    return sum(each.name not in owned and not (each / container_pool.JOB / CONTROL).exists() for each in folders)


def owned(folder: Path) -> Path:
    """That folder, as somebody's who isn't root: programs run in it then, and not on a copy of it."""
    if os.geteuid() == 0:
        os.chown(folder, 4242, 4242)
    return folder


def job_on(folder: Path, *argv: str, **more: Any) -> Job:
    """A job on that folder, as its owner, for which a container may wait."""
    found = owned(folder).stat()
    whose: dict[str, Any] = {"uid": found.st_uid, "gid": found.st_gid, "folder_id": (found.st_dev, found.st_ino)}
    return Job(**{"action_id": "a-1", "argv": argv, "folder": str(folder), **whose, **more})


def waiting_with(folder: Path, run_dir: Path) -> list[str]:
    """The ids of the containers of the daemon of `run_dir` that wait with that person's folder."""
    names = {each.name for each in (run_dir / "waiting").glob("*/*")} - set(container_pool.bound(run_dir / "waiting"))
    with closing(APIClient()) as client:
        return [
            found["Id"]
            for found in client.containers()
            if any(mount.get("Source") == str(folder) for mount in found["Mounts"])
            and names & {name.lstrip("/") for name in found["Names"]}
        ]


def one_waits_with(folder: Path, run_dir: Path) -> str:
    """The id of the container that waits with that folder, once one does."""
    for _ in range(3_000):
        if found := waiting_with(folder, run_dir):
            time.sleep(1)  # its process 1 says that it waits, which the daemon alone hears
            return found[0]
        time.sleep(0.1)
    raise AssertionError("none waits")


def left(client: APIClient, state_id: str, run_dir: Path) -> list[str]:
    """The names of the containers of that state but those that wait for a job of the daemon that runs now: they have
    a folder, and no action's name in it. Call it when that daemon has come up."""
    waiting = run_dir / "waiting"
    folders = {each.name for each in waiting.glob("*/*")}
    found = client.containers(all=True, filters={"label": f"{STATE_LABEL}={state_id}"})
    folders |= {each.name for each in waiting.glob("*/*")}
    assert len(list(waiting.glob("*"))) <= 1, "the folders of an earlier daemon are left"
    names = {name.lstrip("/") for each in found for name in each["Names"]}
    return sorted(names - (folders - set(container_pool.bound(waiting))))
