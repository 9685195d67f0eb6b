"""Programs are read in a process that can be ended: a parser may take any time for what somebody wrote.

Rules: a short program is read here, within a small budget, where that suffices and its language is Python, whose parser
is quick; any other by a process that is used once, has nothing of the daemon's (no descriptor, no environment), may use
so much memory and processor time and no more, and is killed at its deadline and with whoever waits for it. What it says
is parsed as a stranger's. The person's programs don't wait for agents', and agents take turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from dataclasses import dataclass, field

from mapper.code.folder_shell import FolderShell, read_folder_shell
from mapper.code.languages import read
from mapper.code.method_finder import MAX_PROGRAM
from mapper.code.python import TOO_MUCH
from mapper.code.seen_json import BadReading, from_json, to_json
from mapper.code.sent_requests import Seen
from policies.actions import LANGUAGES, Language
from policies.errors import InvalidInput, Unavailable
from policies.grants import PERSON
from runtimes.turns import Turns, asking

AT_ONCE = 4
SECONDS = 30.0  # of the clock; of the processor's time a third
MEMORY = 2**30  # bytes of address space
LITTLE = 1000  # characters of a program that is read here
LITTLE_SHELL = 300  # of a shell command: the time that its parser takes grows with the square, and isn't counted
_LITTLE_WORK = 10_000
_ENDING = 5.0  # seconds, at most, for a process that was killed
_LONGEST_SAID = 32 * 2**20
_PIECE = 2**16
_PR_SET_PDEATHSIG = 1
_FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads programs, a few at a time."""

    seconds: float = SECONDS
    _slots: Turns = field(default_factory=lambda: Turns(AT_ONCE))
    _persons: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def read(self, language: Language, program: str, agent: str) -> Seen:
        """What the program sends. Raises InvalidInput for one that can't be read within bounds; Unavailable."""
        if len(program) <= LITTLE and language == "python":
            seen = _read(language, program, Seen(budget=_LITTLE_WORK))
            if seen.spent <= _LITTLE_WORK:
                return seen
        if len(program) > MAX_PROGRAM:  # said in a note, as every bound is
            return read(language, "", Seen(notes=[_too_long(program)]))
        said = await self._apart(language, "", program, agent)
        try:
            return from_json(said)
        except BadReading as error:
            raise _refused() from error

    async def read_folder_shell(self, program: str, folder: str, agent: str) -> FolderShell:
        """What a shell command does to its folder. Raises InvalidInput for one that can't be read within bounds;
        Unavailable."""
        if len(program) <= LITTLE_SHELL:
            try:
                return read_folder_shell(program, folder)
            except RecursionError:
                raise _refused() from None
        said = await self._apart(_FOLDER, folder, program, agent)
        try:
            changes, within, names_all, needed, *named = json.loads(said)
            paths, words, globs, runs = (tuple(map(str, each)) for each in named)
            files = tuple(tuple(map(str, each)) for each in needed)
            return FolderShell(changes is True, within is True, paths, words, globs, names_all is True, runs, files)
        except (ValueError, TypeError) as error:
            raise _refused() from error

    async def _apart(self, language: str, folder: str, program: str, agent: str) -> str:
        async with self._persons if agent == PERSON else self._slots.turn(asking.get() or (agent,)):
            return await self._process(language, folder, program)

    async def _process(self, language: str, folder: str, program: str) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-m", "runtimes.code.reader", language, folder,
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
                said = await _said(process, program.encode("utf-8", "surrogatepass"))
        except TimeoutError:
            raise _refused() from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDING):
                    await _ended(process)  # else its place would be given away, and the loop could end, before it has
        if process.returncode != 0 or not said.isascii():
            raise _refused()
        return said.decode("ascii")


async def _said(process: asyncio.subprocess.Process, program: bytes) -> bytes:
    """What the process says of a program, to its end. Raises InvalidInput as soon as that is too long."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(ConnectionError):  # it has ended
        process.stdin.write(program)
        await process.stdin.drain()
        process.stdin.close()
    said = bytearray()
    while piece := await process.stdout.read(_PIECE):
        said += piece
        if len(said) > _LONGEST_SAID:
            raise _refused()
    await process.wait()
    return bytes(said)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Until a process that was killed is gone; its end isn't seen while something of what it said is unread."""
    assert process.stdout is not None
    while await process.stdout.read(_PIECE):
        pass
    await process.wait()


def _read(language: Language, program: str, seen: Seen | None = None) -> Seen:
    try:
        return read(language, program, seen)
    except RecursionError:
        return Seen(notes=[TOO_MUCH])


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
    if sys.argv[1] == _FOLDER:
        found = read_folder_shell(program, sys.argv[2])
        named = (found.paths, found.words, found.globs, found.runs)
        said = json.dumps([found.changes, found.within, found.names_all, found.files, *named])
    else:
        seen = _read(next(one for one in LANGUAGES if one == sys.argv[1]), program)
        try:
            said = to_json(seen)
        except RecursionError:
            said = to_json(Seen(notes=[*seen.notes, TOO_MUCH]))
    if len(said) > _LONGEST_SAID:
        os._exit(1)
    with os.fdopen(os.dup(1), "wb") as out:
        out.write(said.encode("ascii"))
    os._exit(0)


if __name__ == "__main__":
    main()
