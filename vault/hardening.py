"""Keep other processes of the same user out of this one's memory, and that small.

Linux: a process that isn't dumpable can't be traced, its /proc/PID/{mem,environ,maps,fd} belong to root, and no core
file is written; the core limit says the same once more. A child that is executed becomes dumpable again, so each
process that holds secrets calls this itself. Root isn't kept out, and neither is swap.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from dataclasses import dataclass

_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4
_M_ARENA_MAX = -8  # malloc.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardening:
    """What is in force now: `untraceable` (Linux only) and `no_core`."""

    untraceable: bool
    no_core: bool


def harden_process() -> Hardening:
    """Forbid tracing and core dumps of this process, as far as the system can. Never raises; says what holds."""
    return Hardening(untraceable=_forbid_tracing(), no_core=_forbid_core())


def _forbid_tracing() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        return bool(prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _forbid_core() -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        return resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
    except (OSError, ValueError):
        return False


def keep_one_heap() -> None:
    """With a heap for each thread, what actions leave free in theirs is of no use to others, and memory grows."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc
        libc.mallopt(_M_ARENA_MAX, 1)
