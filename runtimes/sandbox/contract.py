"""The sandbox contract: what a provider must keep, whatever engine is below.

Every job gets an environment of its own, used once: no network, not root, no capabilities, read-only root, limits,
a deadline that is kept inside and outside. The provider's own failure (`SandboxFailed`) is another thing than the
command's (`Result`). What comes out is an attacker's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from policies.actions import Ended
from policies.errors import Unavailable


class SandboxFailed(Unavailable):
    """The provider couldn't run the job; the command never began, unless `began` says otherwise."""

    code = "sandbox"

    def __init__(self, message: str, *, next_step: str = "", began: bool = False) -> None:
        super().__init__(message, next_step=next_step)
        self.began = began


class ImageGone(SandboxFailed):
    """Somebody removes the image while a container is being made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds of one job. Bytes and seconds."""

    memory: int = 256 * 2**20
    cpus: float = 1.0
    pids: int = 64
    tmp: int = 64 * 2**20  # size of the tmpfs at /tmp
    file_size: int = 512 * 2**20
    seconds: float = 60.0
    output: int = 1_000_000  # stdout and stderr, each


Runtime = Literal["runc", "runsc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An image, its limits and the container runtime, which is honoured or refused. `shared_memory` lets the job make
    System V segments, which PostgreSQL's server needs."""

    image: str = "base"  # a folder of sandbox-images/, or one of the person's own profiles
    limits: Limits = field(default_factory=Limits)
    runtime: Runtime = "runc"
    shared_memory: bool = False


# What the kernel counts by user over all processes is the person's too where a job runs as the owner of a folder. So
# few that, with the 253 of one more message, other programs still pass descriptors, as they do below 1,024 in flight.
OPEN_FILES = 640
WORK = "/work"  # where a person's folder, or folders, are in the container


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run. `files` appear read-only under /goex/job; `socket_dir` (host path) read-only at /goex/gateway;
    `folder` (host path) read-write at WORK, which is then the working directory; or `folders`, by name (host paths),
    each below it by its name. With `read_only` none of these can be written. `folder_id` is the folder's
    device and inode, where another job in it is likely to follow soon: whatever can be made ready for it may be, for
    jobs that reach it by the same `folder_mount`."""

    action_id: str
    argv: Sequence[str]
    files: Mapping[str, bytes] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    socket_dir: str | None = None
    folder: str | None = None
    folders: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    uid: int = 65534
    gid: int = 65534
    folder_id: tuple[int, int] | None = None
    folder_mount: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How the command ended. `cut` counts the bytes of output that were left out of stdout and stderr."""

    ended: Ended
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    cut: int
    seconds: float


class Sandbox(Protocol):
    """A provider of single-use environments."""

    async def image_id(self, profile: Profile) -> str:
        """The content id of the profile's image. Raises Unavailable naming the command that builds it."""
        ...

    def prepare(self, profile: Profile) -> None:
        """A job of that profile is likely to come: whatever can be made ready for it may be. Never fails."""
        ...

    async def run(self, job: Job, profile: Profile, output: Callable[[str, bytes], None] | None = None) -> Result:
        """Run `job` in an environment of its own and destroy it. Cancelling the task destroys it too."""
        ...

    async def kill(self, action_id: str) -> None:
        """End whatever runs for that action. Idempotent."""
        ...

    async def reap(self) -> tuple[str, ...]:
        """Destroy every environment that an earlier daemon of this state folder left; returns their action ids."""
        ...

    async def close(self) -> None: ...
