"""The daemon's process: one for a state folder, hardened, ended by SIGTERM after what runs has ended."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from goex.config import Config, load
from goex.daemon.logs import log_to_stderr
from goex.paths import Paths
from policies.errors import GoexError, Unavailable
from policies.regular_file import open_regular
from vault.hardening import harden_process, keep_one_heap

log = logging.getLogger("goex.daemon")

DESCRIPTORS = 4096  # each connection takes three
LINGERING_SECONDS = 3.0  # for the lock of a daemon that was killed
_ELSEWHERE = "It was started with another XDG_RUNTIME_DIR. Set the same, or end it with: kill {pid}"


class AlreadyRunning(Unavailable):
    """Another daemon holds this state folder."""

    code = "already-running"


def lock(path: Path, next_step: str = "Look at it with: goex daemon status") -> int:
    """Hold a lock of the daemon's for as long as this process lives. Raises AlreadyRunning, and Unavailable for no
    file."""
    try:
        handle = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise Unavailable(f"{path} can't be opened: {error.strerror}.", next_step="Move it away.") from error
    until = time.monotonic() + LINGERING_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            pid = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            if _runs(pid) or time.monotonic() > until:
                os.close(handle)
                raise AlreadyRunning(
                    f"A daemon runs already for this state folder (process {pid}).",
                    next_step=next_step.format(pid=pid),
                ) from None
        time.sleep(0.05)
    with suppress(OSError):  # on a full disk it is held without
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _runs(pid: str) -> bool:
    """Whether the process that holds the lock is there. One that was killed while it started another leaves the lock to
    that one for a moment, until it is another program."""
    if not pid.isdigit():
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def main() -> None:
    """Run until SIGTERM or SIGINT. Ends the process with the error's exit status when it can't start."""
    os.umask(0o077)
    hardening = harden_process()
    keep_one_heap()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if 0 <= most < DESCRIPTORS else DESCRIPTORS, most))
    try:
        paths = Paths.from_env(os.environ)
        paths.create()
        config = load(paths.config_file)
        held = (lock(paths.lock_file), lock(paths.state_lock, _ELSEWHERE))
    except GoexError as error:
        print(f"goex: {error.message}\n{error.next_step}".rstrip(), file=sys.stderr)
        sys.exit(int(error.exit_status))
    log_to_stderr(config.log_level)
    log.info("hardening: %s", hardening)
    try:
        asyncio.run(_serve(paths, config))
    except GoexError as error:
        log.error("%s", error)
        sys.exit(int(error.exit_status))
    finally:
        for handle in held:
            os.close(handle)


async def _serve(paths: Paths, config: Config) -> None:
    from goex.daemon.app import App  # the slow imports come after the lock, so that a second daemon is told at once

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    app = App(paths, config, stopping.set)
    try:
        await app.start()
        log.info("listening on %s and %s", paths.agent_socket, paths.user_socket)
        await stopping.wait()
        log.info("stopping")
    finally:
        await app.close()


if __name__ == "__main__":
    main()
