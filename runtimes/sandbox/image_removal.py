"""Removing an image that isn't needed any more, with the containers that wait for a job in it.

Rules: what waits is taken as a job takes it (`container_pool.claim`), so that no job is ever in one that is removed; an
image that any other container uses, as one of another GoEx on this machine, stays, and is told.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from runtimes.sandbox import container_pool, images
from runtimes.sandbox.docker_sdk import APIClient, docker
from runtimes.sandbox.engine import ENDING_SECONDS, LIBRARY_ERRORS, connect, is_conflict, is_missing, remove, translate
from runtimes.sandbox.spec import PROFILE_LABEL

_CLAIM = "image-removal"  # stands where the action would, which is given to none of these
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Removed:
    """How many images are gone, and the full names of those that stay because a container uses them."""

    gone: int
    left: tuple[str, ...] = ()


def forget(name: str, waiting: Path, kept: Collection[str] = ()) -> Removed:
    """Remove every image that was built by that name, or with its hash that one, and the containers in `waiting` (the
    folder of those of this daemon) that wait with it; but none that is `kept`. Blocks; raises SandboxFailed."""
    client = connect()
    gone, left = 0, []
    try:
        for image in client.images(name=f"goex/{name}", filters={"label": images.LABEL}):
            for full in image.get("RepoTags") or ():
                if full.removeprefix("goex/") in kept:
                    continue
                if _removed(client, full, str(image["Id"]), waiting):
                    gone += 1
                else:
                    left.append(full)
        return Removed(gone, tuple(left))
    except LIBRARY_ERRORS as error:
        raise translate(error, f"remove the image {name!r}") from error
    finally:
        client.close()


def _removed(client: APIClient, full: str, image_id: str, waiting: Path) -> bool:
    """Remove one image, as soon as nothing is in it any more. False: something still is, after a while."""
    until = time.monotonic() + ENDING_SECONDS
    while True:
        _remove_waiting(client, full.removeprefix("goex/"), image_id, waiting)
        try:
            client.remove_image(full)
            return True
        except docker.errors.APIError as error:
            if is_missing(error):
                return True
            if not is_conflict(error):
                raise
            # A job that ends, or one that was being made to wait. Whoever makes another one finds no image.
            if time.monotonic() > until:
                return False
        time.sleep(_PAUSE)


def _remove_waiting(client: APIClient, name: str, image_id: str, waiting: Path) -> None:
    """Remove what waits with that image. Two servers of the same package have one image by two names."""
    for container in client.containers(all=True, filters={"ancestor": image_id}):
        if (container.get("Labels") or {}).get(PROFILE_LABEL) not in (name, name.partition(":")[0]):
            continue
        for folder in (found for each in container.get("Names") or () for found in waiting.glob(f"*/{each[1:]}")):
            if container_pool.claim(folder, _CLAIM):
                remove(client, container["Id"])
