"""The library of shim.c: compiled where there is a compiler, and loaded into this process and the servers it starts."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from enum import IntFlag
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
_LOADED = "GOEX_SHIM_LOADED"


class Calls(IntFlag):
    """Which calls are counted."""

    WRITE = 1
    SYNC = 2
    OTHER = 4  # truncate, unlink, rename


KILL, SYNC_FAILS, DISK_FULL = 1, 2, 3


def reload_with_shim(folder: Path, module: str) -> None:
    """Start `python -m module` anew with the library loaded; returns where it is loaded already, or can't be made."""
    if os.environ.get(_LOADED):
        return
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return
    library = folder / "shim.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    switches = folder / "switches"
    switches.mkdir()
    for path in (folder, switches, library):
        path.chmod(0o755)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "GOEX_SHIM_FOLDER": str(switches),
        _LOADED: str(folder),
    }
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def loaded() -> bool:
    """Whether calls can be counted and made to fail here."""
    return bool(os.environ.get(_LOADED))


def folder() -> Path:
    """Where the library lies."""
    return Path(os.environ.get(_LOADED, "/nonexistent"))


def spare_this_process() -> None:
    """The switches are for the servers that are started from here; this process and its forks keep a good disk."""
    if loaded():
        ctypes.CDLL(None).goex_servers_only()


def arm(folder: Path, number: int, how: int, calls: Calls) -> None:
    """From now on, in this process. Number 0 counts alone."""
    ctypes.CDLL(None).goex_arm(os.fsencode(folder), ctypes.c_long(number), how, int(calls))


def counted(calls: Calls) -> int:
    """How many of these calls there were since `arm`."""
    library = ctypes.CDLL(None)
    library.goex_counted.restype = ctypes.c_long
    return sum(int(library.goex_counted(int(kind))) for kind in Calls if kind & calls)


class Switch:
    """Makes the disk of the servers fail while it is on: "fsync-fails", "disk-full"."""

    def __init__(self, name: str) -> None:
        self._path = Path(os.environ["GOEX_SHIM_FOLDER"]) / name

    def on(self) -> None:
        self._path.touch()

    def off(self) -> None:
        self._path.unlink(missing_ok=True)
