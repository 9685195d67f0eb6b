"""Programs are read in a process that can be ended: a parser may take any time for what somebody wrote.

Rules: a short program is read here, within a small budget, where that suffices; any other by a process that is used
once, has nothing of the daemon's (no descriptor, no environment), may use so much memory and processor time and no
more, and is killed at its deadline and with whoever waits for it. What it says is parsed as a stranger's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import sys
from dataclasses import dataclass, field

from mapper.code.languages import read
from mapper.code.method_finder import MAX_PROGRAM
from mapper.code.seen_json import BadReading, from_json, to_json
from mapper.code.sent_requests import Seen
from policies.actions import Language
from policies.errors import InvalidInput, Unavailable

AT_ONCE = 4
SECONDS = 30.0  # of the clock; of the processor's time a third
MEMORY = 2**30  # bytes of address space
LITTLE = 1000  # characters of a program that is read here
_LITTLE_WORK = 10_000
_LONGEST_SAID = 32 * 2**20
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads programs, a few at a time."""

    seconds: float = SECONDS
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def read(self, language: Language, program: str) -> Seen:
        """What the program sends. Raises InvalidInput for one that can't be read within bounds; Unavailable."""
        if len(program) <= LITTLE:
            seen = read(language, program, Seen(budget=_LITTLE_WORK))
            if seen.spent <= _LITTLE_WORK:
                return seen
        if len(program) > MAX_PROGRAM:  # said in a note, as every bound is
            return read(language, "", Seen(notes=[_too_long(program)]))
        async with self._slots:
            return await self._apart(language, program)

    async def _apart(self, language: Language, program: str) -> Seen:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-m", "runtimes.code.reader", language,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"LC_ALL": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
                limit=2**20,
            )  # fmt: skip
        except OSError as error:
            raise Unavailable(f"The program can't be read: {error.strerror}.", next_step="goex doctor") from error
        try:
            async with asyncio.timeout(self.seconds):
                said, _ = await process.communicate(program.encode("utf-8", "surrogatepass"))
        except TimeoutError:
            raise _refused() from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if process.returncode != 0 or len(said) > _LONGEST_SAID:
            raise _refused()
        try:
            return from_json(said.decode("ascii"))
        except (BadReading, UnicodeDecodeError) as error:
            raise _refused() from error


def _too_long(program: str) -> str:
    return f"The program is {len(program)} characters long; at most {MAX_PROGRAM} are read."


def _refused() -> InvalidInput:
    return InvalidInput(
        "Reading this program takes more time or memory than is given to one.",
        next_step="Make it shorter, or make several programs of it.",
    )


def main() -> None:
    """The process: the program on standard input, what was read on standard output."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    processor = int(SECONDS / 3)
    for limit, value in (
        (resource.RLIMIT_CPU, processor),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    program = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    said = to_json(read("python" if sys.argv[1] == "python" else "shell", program)).encode("ascii")
    with os.fdopen(os.dup(1), "wb") as out:
        out.write(said)
    os._exit(0)


if __name__ == "__main__":
    main()
