"""Where an action's socket lies: a folder of its own, with a name that can't be guessed, in a folder closed to others.

The container's uid is any, so folder and socket let everyone through; the parent, which the container never sees,
lets nobody through but its owner.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
from pathlib import Path

from runtimes.gateway.contract import GatewayFailed

SOCKET = "gw.sock"
_PREFIX = "gw-"
_LONGEST = 100  # bytes; the kernel's limit for a socket's path is 107


def private_folder(path: Path) -> Path:
    """Make `path`, or check that it is a folder of ours that nobody else can enter. Raises GatewayFailed."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise GatewayFailed(f"The gateway's folder {path} can't be made: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise GatewayFailed(
            f"The gateway's folder {path} isn't a private folder of this user.", next_step=f"Remove {path}."
        )
    return path


def sweep(run_dir: Path) -> None:
    """Remove what an earlier gateway left there."""
    for folder in run_dir.glob(f"{_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


class Place:
    """One action's folder. Made at once."""

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / (_PREFIX + secrets.token_hex(16))
        self.folder.mkdir(mode=0o700)

    def listen(self) -> socket.socket:
        """The bound and listening socket; anyone who reaches it may connect."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self.folder / SOCKET
        if len(os.fsencode(path)) <= _LONGEST:
            listener.bind(str(path))
        else:
            handle = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                listener.bind(f"/proc/self/fd/{handle}/{SOCKET}")
            finally:
                os.close(handle)
        path.chmod(0o666)
        self.folder.chmod(0o711)
        listener.listen(128)  # code may open many connections at once; beyond this a connect fails at once
        listener.setblocking(False)
        return listener

    def remove(self) -> None:
        """Idempotent."""
        with contextlib.suppress(OSError):
            (self.folder / SOCKET).unlink()
        with contextlib.suppress(OSError):
            self.folder.rmdir()
