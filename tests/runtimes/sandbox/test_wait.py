"""Process 1 of a container that waits: the process that was forked beforehand becomes the job, or another one does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "sandbox-images" / "base" / "goex" / "wait.py"

AHEAD = """
import os, signal, sys
names = {"__name__": "wait"}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
names["_CODE"] = sys.argv[1]  # any program: it is only compiled
pipes = os.pipe(), os.pipe(), os.pipe()
ready = names["ahead"]([pipe[1] for pipe in pipes], {}, lambda *_: 0)
words = ["5.0", "3", "/bin/sh", "-c", "echo $MARK; echo $$ >&2; env", "MARK=here"]
if sys.argv[2] == "ended":
    os.kill(ready[0], signal.SIGKILL)
    os.waitpid(ready[0], 0)
first = names["begun"](ready, b"\\0".join(word.encode() for word in words))
print(first == ready[0], first)
for pipe in pipes:
    os.close(pipe[1])
if first is not None:
    print(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
    for pipe in pipes[:2]:
        sys.stdout.write(os.read(pipe[0], 4000).decode())
"""


ENDING = """
import os, sys
names = {"__name__": "wait"}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
ours, theirs = os.pipe()
os.set_blocking(ours, False)
ending = names["Ending"](theirs)
if sys.argv[2] == "in its place another file":
    os.dup2(os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT), theirs)
elif sys.argv[2] == "closed":
    os.close(theirs)
elif sys.argv[2] == "in a process that it forked":
    if os.fork():
        os.wait()
        sys.exit()
ending.say(5)
try:
    print(os.read(ours, 9))
except BlockingIOError:
    print(b"")
"""


def ahead(how: str) -> list[str]:
    return program(AHEAD, how)


def program(text: str, *how: str) -> list[str]:
    command = [sys.executable, "-I", "-S", "-c", text, str(PROGRAM), *how]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.splitlines()


def test_the_process_that_waited_becomes_the_job_and_sees_nothing_of_its_rehearsal() -> None:
    (same, number), code, *said = (line.split() if at == 0 else line for at, line in enumerate(ahead("waits")))
    assert (same, code) == ("True", "0")
    assert said[0] == "here"
    assert said[-1] == number
    assert "NUMBER_" not in "\n".join(said)


def test_one_that_was_ended_is_told_of_as_none() -> None:
    assert ahead("ended") == ["False None"]


@pytest.mark.parametrize("how", ["in its place another file", "closed", "in a process that it forked"])
def test_an_end_is_said_by_the_first_process_alone_and_in_no_other_file(tmp_path: Path, how: str) -> None:
    place = tmp_path / "another"
    assert program(ENDING, "as it was", str(place)) == ["b'\\x05'"]
    assert program(ENDING, how, str(place)) == ["b''"]
    assert not place.exists() or place.read_bytes() == b""
