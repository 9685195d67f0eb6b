"""What `goex-client` says when a daemon dies, comes back, or won't tell the answer: never that nothing was changed
where something may have been."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance import untold_daemon
from tests.support.daemon import Daemon
from tests.support.journey import answer_next

pytestmark = pytest.mark.docker
SOURCE = Path(__file__).resolve().parents[2] / "clients" / "python"

# Each reads a word from its input before it goes on, so that the test decides what happens in between.
DIES = """
import json, sys
from goex_client import Client, NotRunning, requests
from goex_client.tools import of_error
goex, folder = Client(), sys.argv[1]
asked = requests.run("echo made > file", folders=[folder], key="k-1")
said = []
def told(event):
    if event.WhichOneof("what") == "asking":
        print("asked", flush=True)
goex._told = told
try:
    goex.wait(asked)
except NotRunning as gone:
    said += [gone.action, gone.changed, gone.retry, "again" in gone.next or "anew" in gone.next, of_error(gone)]
for _ in range(3):
    try:
        goex.find()
    except NotRunning as gone:
        said.append(gone.retry)
try:
    goex.wait(requests.run("echo other > other", folders=[folder]))
except NotRunning as gone:
    said += [gone.action, gone.changed, gone.retry]
try:
    goex.wait(asked)
except NotRunning as gone:
    said += [gone.changed]
print("down", flush=True)
sys.stdin.readline()
while True:
    try:
        goex.find()
        break
    except NotRunning:
        pass
print("back", flush=True)
done = goex.wait(asked)
print(json.dumps([*said, done.action, done.status]))
"""
DIES_ASYNC = """
import asyncio, json, sys
from goex_client import AsyncClient, NotRunning, requests
async def main():
    def told(event):
        if event.WhichOneof("what") == "asking":
            print("asked", flush=True)
    goex = AsyncClient(told=told)
    try:
        await goex.run("echo made > file", folders=[sys.argv[1]])
    except NotRunning as gone:
        print(json.dumps([gone.action, gone.changed, gone.retry]))
asyncio.run(main())
"""
UNREAD = """
import json, sys
from goex_client import Client
from goex_client.tools import of_result
with Client() as goex:
    done = goex.run("echo said", folders=[sys.argv[1]], read_only=True)
    print(json.dumps([done.status, done.data, done.cut, of_result(done)]))
"""
RUNS_ON = """
import json, sys
from goex_client import Client, TimedOut, requests
from goex_client.tools import of_error
goex = Client()
try:
    goex.wait(requests.run("touch begun; while [ ! -e go ]; do sleep 0.1; done", folders=[sys.argv[1]]), timeout=8)
except TimedOut as late:
    action = late.action
    print(json.dumps([action, late.changed, json.loads(of_error(late))["changed"]]), flush=True)
sys.stdin.readline()
while (stands := goex.get(action).status) == "running":
    pass
print(stands)
"""


UNTOLD = """
import asyncio, json, sys
from goex_client import AsyncClient, Client
from goex_client.errors import GoexError
def facts(error):
    return [type(error).__name__, error.changed, error.action, error.next]
def key_of(way):
    return "k-1" if way.startswith("keyed") else ""
async def main():
    said = []
    async with AsyncClient(socket=sys.argv[1]) as goex:
        for way in sys.argv[2:]:
            try:
                await goex.ask(way, key=key_of(way))
            except GoexError as error:
                said.append(facts(error))
    return said
said = []
for way in sys.argv[2:]:
    try:
        Client(socket=sys.argv[1]).ask(way, key=key_of(way))
    except GoexError as error:
        said.append(facts(error))
print(json.dumps([said, asyncio.run(main())]))
"""

FOLLOWED = """
import asyncio, json, sys
from goex_client import AsyncClient, Client, NotRunning
from goex_client import goex_pb2 as pb
async def main():
    async with AsyncClient(socket=sys.argv[1]) as goex:
        await goex.wait(pb.ActionId(id="a-1"))
said = []
for follow in (lambda: Client(socket=sys.argv[1]).wait(pb.ActionId(id="a-1")), lambda: asyncio.run(main())):
    try:
        follow()
    except NotRunning as gone:
        said.append(gone.changed)
print(json.dumps(said))
"""


class Program:
    """A program that uses the client, with lines to and from it."""

    def __init__(self, daemon: Daemon, code: str, folder: Path, token: str) -> None:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "GOEX_AGENT_TOKEN": token}
        env["GOEX_AGENT_SOCKET"] = str(daemon.agent_socket)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", code, str(folder)], env=env, **pipes)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.fixture
def started() -> Iterator[list[Program]]:
    programs: list[Program] = []
    yield programs
    for program in programs:
        program.process.kill()
        program.process.communicate()


@pytest.fixture
def own() -> Iterator[Daemon]:
    """A daemon that the test may kill."""
    with Daemon() as running:
        yield running


def begin(started: list[Program], *given: Any) -> Program:
    started.append(Program(*given))
    return started[-1]


def test_a_daemon_that_dies_leaves_an_action_that_is_found_again(
    own: Daemon, folder: Path, started: list[Program]
) -> None:
    program = begin(started, own, DIES, folder, own.add_agent("left"))
    assert program.line() == "asked"
    (question,) = own.person("Approvals", pb.ApprovalsRequest()).approvals
    own.kill()
    assert program.line() == "down"
    own.start()
    own.unlock()
    program.go_on()
    assert (program.line(), program.line()) == ("back", "asked")
    answer_next(own)
    action, changed, retry, warned, said, *looks, unsent, nothing, later, kept, again, status = json.loads(
        program.line()
    )
    assert (action, changed, retry, warned) == (question.action_id, "unknown", "no", True)
    assert json.loads(said)["changed"] == "unknown" and json.loads(said)["action"] == action
    assert looks == ["later"] * 3
    assert (unsent, nothing, later) == ("", "no", "later")  # what never left has changed nothing
    assert kept == "unknown"  # unless it had left before: what its key began isn't known
    assert (again, status) == (action, "done")
    assert (folder / "file").read_text() == "made\n"


def test_the_asynchronous_one_says_the_same(own: Daemon, folder: Path, started: list[Program]) -> None:
    program = begin(started, own, DIES_ASYNC, folder, own.add_agent("left"))
    assert program.line() == "asked"
    (question,) = own.person("Approvals", pb.ApprovalsRequest()).approvals
    own.kill()
    assert json.loads(program.line()) == [question.action_id, "unknown", "no"]


@pytest.mark.parametrize("token", ["", "t"], ids=["unnamed", "named"])
def test_a_request_may_have_been_taken_unless_the_daemon_says_that_it_wasnt(tmp_path: Path, token: str) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "GOEX_AGENT_TOKEN": token}
    said_to = list if token else untold_daemon.unnamed
    with untold_daemon.ending(tmp_path) as socket:
        command = [sys.executable, "-c", UNTOLD, str(socket), *untold_daemon.WAYS]
        said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(said) == [said_to(untold_daemon.SAID)] * 2
    command = [sys.executable, "-c", UNTOLD, str(socket), "away", "keyed away"]
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(said) == [said_to(untold_daemon.AWAY)] * 2


def test_what_is_followed_has_no_key(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOLLOWED, str(tmp_path / "agent.sock")]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(said) == ["no", "no"]


def test_an_end_stays_an_end_when_its_answer_cant_be_read(folder: Path, started: list[Program]) -> None:
    """The agent has one request a minute, so the answer of its action is refused to it."""
    with Daemon(config="[limits]\nrequests = 1\n") as tight:
        program = begin(started, tight, UNREAD, folder, tight.add_agent("tight"))
        answer_next(tight)
        status, data, cut, said = json.loads(program.line())
    assert (status, data, cut) == ("done", None, True)
    assert '"changed": "no"' in said and said.endswith("goex_result reads it later.")


def test_what_runs_on_after_a_time_out_isnt_said_to_have_changed_nothing(
    daemon: Daemon, folder: Path, started: list[Program]
) -> None:
    program = begin(started, daemon, RUNS_ON, folder, daemon.add_agent("late"))
    answer_next(daemon)
    action, changed, told = json.loads(program.line())
    assert action and (changed, told) == ("unknown", "unknown")
    assert daemon.person_action(action) == "running"
    (folder / "go").touch()
    program.go_on()
    assert program.line() == "done"
