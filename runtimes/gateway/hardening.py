"""What the gateway process does to itself before it holds anything.

No core dump may be written, and no other process of the same user may read its memory or open its descriptors
through /proc. Failing to get there is a reason to end, never one to go on without.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal

from runtimes.gateway.contract import GatewayFailed

_PR_SET_DUMPABLE = 4
_PR_GET_DUMPABLE = 3
_PR_SET_NO_NEW_PRIVS = 38
_M_ARENA_MAX = -8  # malloc.h


def harden() -> None:
    """Make this process unreadable and undumpable. Raises GatewayFailed when the kernel doesn't agree."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 or libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise GatewayFailed(f"The gateway can't hide its memory: {os.strerror(ctypes.get_errno())}.")
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise GatewayFailed(f"The gateway can't give up new privileges: {os.strerror(ctypes.get_errno())}.")
    keep_one_heap()
    # The daemon decides when it ends, by closing its end; a key pressed in a terminal doesn't.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)


def keep_one_heap() -> None:
    """With a heap for each thread, what actions leave free in theirs is of no use to others, and memory grows."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc
        libc.mallopt(_M_ARENA_MAX, 1)
