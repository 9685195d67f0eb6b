"""Runs a program of GoEx's as `python` would, and notes which functions of the packages it calls.

`python tools/traced.py FOLDER [-I|-P] -m MODULE ARGUMENT…`. SIGUSR1 begins anew, SIGUSR2 writes FOLDER/PID.json, as
does the end of the process. Processes that it starts by `sys.executable` are traced too.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(str(ROOT / name) + "/" for name in ("goex", "vault", "mapper", "runtimes", "policies"))

_ran: set[CodeType] = set()


def _note(frame: FrameType, event: str, _: Any) -> None:
    if event == "call":
        _ran.add(frame.f_code)


def _functions() -> list[str]:
    """`file:qualified name` of each function that ran, without comprehensions and bodies of modules and classes."""
    return sorted(
        f"{code.co_filename.removeprefix(f'{ROOT}/')}:{code.co_qualname}"
        for code in list(_ran)
        if code.co_filename.startswith(PACKAGES)
        and "_pb2" not in code.co_filename
        and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
        and code.co_flags & 0x2  # CO_NEWLOCALS: a function's, not a class body's
    )


def _write(folder: Path) -> None:
    sys.setprofile(None)
    (folder / f"{os.getpid()}.json").write_text(json.dumps(_functions()))
    sys.setprofile(_note)


def main() -> None:
    """Install the profiler and become the program."""
    folder, *words = sys.argv[1:]
    if words[:1] in (["-I"], ["-P"]):
        words = words[1:]
    if words[:1] != ["-m"]:
        os.execv(sys.executable, [sys.executable, *words])
    sys.path.insert(0, str(ROOT))
    sys.executable = str(Path(folder) / "python")
    sys.argv = words[1:]
    signal.signal(signal.SIGUSR1, lambda *_: _ran.clear())
    signal.signal(signal.SIGUSR2, lambda *_: _write(Path(folder)))
    atexit.register(_write, Path(folder))
    threading.setprofile(_note)
    sys.setprofile(_note)
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
