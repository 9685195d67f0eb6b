"""Programs are read in a process that ends: by its bounds, at its deadline, with whoever waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mapper.code.folder_shell import read_folder_shell
from mapper.code.languages import read
from mapper.code.seen_json import BadReading, from_json, to_json
from mapper.code.sent_requests import Seen
from policies.actions import Language
from policies.errors import InvalidInput
from policies.grants import PERSON
from runtimes.code.reader import AT_ONCE, LITTLE, LITTLE_SHELL, Reader
from tests.support.waiting import until_async

# The parser of shell programs takes four times as long for twice as many of these.
SLOW = "cat " + " ".join(f"<<A{i}" for i in range(6_800)) + "\n" + "".join(f"A{i}\n" for i in range(6_800))
LONG = (
    "import requests\n" + "requests.post('https://slack.com/api/chat.postMessage', json={'text': 'hi', 'n': 1})\n" * 40
)


def processes() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended meanwhile
            for child in (task / "children").read_text().split():
                with suppress(FileNotFoundError, ProcessLookupError):  # the process
                    found += [child] if b"runtimes.code.reader" in Path(f"/proc/{child}/cmdline").read_bytes() else []
    return found


async def gone() -> None:
    await until_async(lambda: not processes())


async def test_a_process_reads_what_is_read_here() -> None:
    assert len(LONG) > LITTLE
    seen = await Reader().read("python", LONG, "a")
    here = read("python", LONG)
    assert (seen.requests, seen.notes, seen.addresses) == (here.requests, here.notes, here.addresses)
    assert len(seen.requests) == 40


@pytest.mark.promise(16)
async def test_one_that_takes_too_long_is_refused_and_its_process_is_gone() -> None:
    with pytest.raises(InvalidInput, match="more time or memory") as caught:
        await Reader(seconds=1.0).read("shell", SLOW, "a")
    assert "shorter" in caught.value.next_step
    await gone()


@pytest.mark.promise(16)
async def test_one_whose_process_says_too_much_is_refused_and_the_rest_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaks = tmp_path / "speaks"
    speaks.write_text("#!/bin/sh\nhead -c 100000000 /dev/zero\nexec sleep 600 </dev/null\n")
    speaks.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(speaks))
    async with asyncio.timeout(60):
        with pytest.raises(InvalidInput, match="more time or memory"):
            await Reader(seconds=600.0).read("python", LONG, "a")


def test_the_process_says_nothing_of_what_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "import runtimes.code.reader as r, sys; r._LONGEST_SAID = int(sys.argv.pop(1)); r.main()"
    for most, status in ((100, 1), (100_000, 0)):
        done = subprocess.run(
            [sys.executable, "-c", command, str(most), "python", ""],
            input=LONG.encode(),
            capture_output=True,
            timeout=300,
        )
        assert (done.returncode, bool(done.stdout)) == (status, not status)


async def test_its_process_goes_with_whoever_waits() -> None:
    task = asyncio.create_task(Reader().read("shell", SLOW, "a"))
    await until_async(processes)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await gone()


async def test_a_short_one_that_takes_much_work_is_read_apart() -> None:
    program = "".join(f"def {name}():\n" + f"  {below}()\n" * 12 for name, below in ("cd", "bc", "ab")) + "a()\n" * 3
    assert len(program) < LITTLE
    assert read("python", program, Seen(budget=10_000)).notes
    assert not (await Reader().read("python", program, "a")).notes


@pytest.mark.parametrize(
    "said", ["", "[]", "{}", '{"requests":[[1]],"spoken":[],"unread":[],"notes":[],"addresses":[]}', "[" * 100_000]
)
def test_what_is_no_reading_is_an_error(said: str) -> None:
    with pytest.raises(BadReading):
        from_json(said)


def test_all_kinds_of_values_come_through() -> None:
    program = """
import requests, os, sys
kind = "a" if sys.argv[1] else "b"
url = f"https://x.test/{os.environ['N']}/{kind}"
v = "2022" + "-06-28"
requests.post(url, data={"a": b"\\xff", "b": [1, 2.5, None, True]}, json={"q": kind}, headers={"Notion-Version": v})
"""
    seen = read("python", program)
    again = from_json(to_json(seen))
    assert (again.requests, again.headers) == (seen.requests, [("Notion-Version", "2022-06-28")])


JAVASCRIPT = "fetch('https://api.github.com/repos/a/b/issues', {method: 'POST', body: JSON.stringify({title: 'x'})})\n"


@pytest.mark.parametrize("lines", [1, 40])
async def test_each_language_is_read_as_itself_however_long(lines: int) -> None:
    seen = await Reader().read("javascript", JAVASCRIPT * lines, "a")
    assert seen.requests == read("javascript", JAVASCRIPT * lines).requests
    assert len(seen.requests) == lines


@pytest.mark.promise(16)
@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("shell", "curl https://x.example"),
        ("javascript", JAVASCRIPT),
        ("python", "import os\nos.system('curl https://x.example')\n"),
    ],
)
async def test_no_grammar_is_parsed_in_the_daemon(
    language: Language, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    monkeypatch.setattr("tree_sitter.Parser", parsed.append)
    seen = await Reader().read(language, program, "a")
    assert not parsed
    assert seen.requests or seen.notes or seen.unread


@pytest.mark.promise(16)
async def test_the_persons_program_waits_for_no_agents() -> None:
    reader = Reader()
    agents = [asyncio.create_task(reader.read("shell", SLOW, f"agent-{n}")) for n in range(AT_ONCE)]
    await until_async(lambda: len(processes()) == AT_ONCE)
    try:
        seen = await reader.read("shell", "curl https://x.example", PERSON)
        assert len(seen.requests) == 1 and not any(one.done() for one in agents)
    finally:
        for one in agents:
            one.cancel()
        await asyncio.gather(*agents, return_exceptions=True)
    await gone()


@pytest.mark.promise(16)
async def test_a_command_of_a_coding_agent_is_read_apart_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parser would hold the daemon's only lock meanwhile."""
    with monkeypatch.context() as patched:
        patched.setattr("tree_sitter.Parser", None)
        program = "rm -r old notes/a.txt\n" * 40 + "./tool x\n"
        found = await Reader().read_folder_shell(program, "/srv", "a")
    assert len(program) > LITTLE_SHELL
    assert found == read_folder_shell(program[-31:], "/srv")  # the last two lines
    assert (found.changes, found.paths) == (True, ("/srv/notes/a.txt", "/srv/./tool"))
    assert found.runs == ("/srv/./tool",)
    with pytest.raises(InvalidInput, match="more time or memory"):
        await Reader(seconds=1.0).read_folder_shell(SLOW, "/srv", "a")
    await gone()
