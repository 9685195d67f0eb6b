"""`goex-client` as an agent installs it: in an environment of its own, with nothing of GoEx beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tests.support.journey import answer_next
from tests.support.mcp import connect_slack

SOURCE = Path(__file__).resolve().parents[2] / "clients" / "python"

TEN_LINES = """
import json, sys
from goex_client import Client, NotDone
with Client() as goex:
    made = goex.run("echo made > file; echo said", folders=[sys.argv[1]])
    undone = goex.undo(made)
    try:
        goex.run("echo again > file", folders=[sys.argv[1]])
    except NotDone as stopped:
        print(json.dumps([made.status, made.data, made.undo, undone.status, stopped.code, stopped.retry]))
"""
SAME_ASYNC = """
import asyncio, json, sys
from goex_client import AsyncClient, Call, NotDone, Refused
async def main():
    async with AsyncClient() as goex:
        found = await goex.find()
        said = []
        try:
            await goex.call("slack.chat.postMessage", channel="C0123456789", text="hi")
        except NotDone as stopped:
            said = [stopped.code, stopped.who]
        try:
            await goex.get("a-000000000000")
        except Refused as refused:
            said += [refused.code, refused.retry]
        try:
            async with asyncio.timeout(2):
                await goex.run("echo x > y", folders=[sys.argv[1]])
        except TimeoutError:
            said.append((await goex.actions(1))[0].status)
        print(json.dumps([found.vault, *said]))
asyncio.run(main())
"""
LEFT = """
import json, sys
from goex_client import Client, NotRunning, Refused, TimedOut, requests
def ended(goex, id):
    while (found := goex.get(id).status) in ("waiting", "running"):
        pass
    return found
with Client() as goex:
    for event in goex.start(requests.run("echo x > y", folders=[sys.argv[1]])):
        if event.WhichOneof("what") == "asking":
            break
    said = [ended(goex, event.action_id)]
    seen = []
    with Client(told=lambda event: seen.append(event.action_id)) as other:
        try:
            other.run("echo x > y", folders=[sys.argv[1]], timeout=3)
        except TimedOut as late:
            said += [late.code, late.retry, bool(late.next), *(ended(goex, id) for id in seen[:1])]
    try:
        goex.run("x", language="none", folders=[sys.argv[1]])
    except Refused as refused:
        said += [refused.code, refused.who]
    try:
        Client(socket="/nonexistent/agent.sock").find()
    except NotRunning as gone:
        said += [gone.code, gone.who]
print(json.dumps(said))
"""
PARTS = """
import asyncio, json, sys
from goex_client import AsyncClient, Call, Client, Refused
from goex_client.tools import TOOLS, answer
tools = {each.name: each for each in TOOLS}
send = [Call("slack.chat.postMessage", {"channel": "C0123456789", "text": "hi"})]
with Client() as goex:
    made = goex.run("seq 1 20000; echo x > file", folders=[sys.argv[1]])
    part = goex.result(made, path="$.stdout", offset=100, limit=20)
    more = goex.result(made, path="$.stdout", max_bytes=50_000)
    said = [len(json.dumps(made.data)), made.cut, part.data, part.next_offset, len(json.dumps(more.data))]
    told = answer(goex, tools["goex_result"], {"action": made.action, "path": "$.stdout", "offset": 100, "limit": 20})
    said += [told.splitlines()[-1], "goex_result from offset 120" in told]
    said += ["postMessage" in answer(goex, tools["goex_preview"], {"calls": [vars(each) for each in send]})]
    said += [each.text for each in goex.preview(send).lines]
    for refused in (made, "a-000000000000"):
        try:
            goex.preview(refused)
        except Refused as why:
            said.append([why.code, why.who, "file" in str(why)])
async def same():
    async with AsyncClient() as goex:
        there = await goex.result(made, path="$.stdout", offset=100, limit=20)
        return [there.data == part.data, (await goex.preview(send)).ok]
print(json.dumps(said + asyncio.run(same())))
"""
TOOLS = """
import json, sys
from goex_client import Client
from goex_client.tools import TOOLS, answer
tools = {each.name: each for each in TOOLS}
with Client() as goex:
    told = [answer(goex, tools["goex_program"], {"program": "ls", "approve": True}),
            answer(goex, tools["goex_program"], {}),
            answer(goex, tools["goex_call"], {"calls": [{"method": "a.b", "digest": "x"}]}),
            answer(goex, tools["goex_undo"], {"action": "a-000000000000"}), answer(goex, tools["goex_find"], {})]
    long = [answer(goex, tools["goex_find"], {"service": name}) for name in ("github", "gmail", "slack")]
    long += [answer(goex, tools["goex_find"], {"query": "create an event with a meeting"})]
loaded = sorted({"langchain_core", "agents", "google.adk", "pydantic_ai"} & set(sys.modules))
print(json.dumps([[json.loads(each) for each in told], loaded, [len(each.encode()) for each in long]]))
"""


def pip_of(python: Path) -> list[str]:
    """Our pip, at work on that environment."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the client alone."""
    folder = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=550)
    build = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "--no-index"]
    subprocess.run([*build, "--no-build-isolation", "-w", str(folder), str(SOURCE)], check=True, timeout=550)
    (wheel,) = folder.glob("goex_client-*.whl")
    made = folder / "venv" / "bin" / "python"
    install = [*pip_of(made), "install", "-q", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"grpcio and protobuf can't be fetched: {done.stderr.strip()[-200:]}")
    return made


@pytest.fixture
def running(python: Path, daemon: Daemon) -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def begin(python: Path, daemon: Daemon, code: str, folder: Path, token: str) -> subprocess.Popen[str]:
    env = {"GOEX_AGENT_SOCKET": str(daemon.agent_socket), "GOEX_AGENT_TOKEN": token}
    return subprocess.Popen(
        [str(python), "-I", "-c", code, str(folder)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_it_is_small(python: Path) -> None:
    listed = subprocess.run([*pip_of(python), "list", "--format", "json"], capture_output=True, check=True)
    packages = {one["name"] for one in json.loads(listed.stdout)}
    assert packages == {"goex-client", "grpcio", "protobuf", "typing_extensions"}
    loaded = "import sys, goex_client; print(len({name.partition('.')[0] for name in sys.modules}))"
    said = subprocess.run([str(python), "-I", "-c", loaded], capture_output=True, check=True).stdout
    assert int(said) < 300  # modules of the standard library among them: it has no further package to load


@pytest.mark.docker
def test_ten_lines_run_undo_and_are_denied(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(python, daemon, TEN_LINES, folder, daemon.add_agent("ten"))
    running.append(process)
    for approve in (True, True, False):
        answer_next(daemon, approve=approve)
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    data = {"changes": ["created file"], "stdout": "said\n"}
    assert json.loads(said) == ["done", data, "exact", "done", "denied", "no"]
    assert not (folder / "file").exists()


@pytest.mark.docker
def test_the_asynchronous_one_says_the_same(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(python, daemon, SAME_ASYNC, folder, daemon.add_agent("async"))
    running.append(process)
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    vault, code, who, *rest = json.loads(said)
    assert (vault, code, who) == ("unsealed", "failed", "person")
    assert rest[:2] == ["invalid", "changed"]
    assert rest[2] in ("withdrawn", "waiting", "running")  # it may still be on its way


@pytest.mark.docker
def test_leaving_a_loop_and_time_outs_withdraw(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(python, daemon, LEFT, folder, daemon.add_agent("left"))
    running.append(process)
    said, wrong = process.communicate(timeout=550)
    assert not wrong
    left, code, retry, *rest = json.loads(said)
    assert (left, code, retry, rest[0]) == ("withdrawn", "timed-out", "later", True)
    assert rest[-4:] == ["invalid", "agent", "daemon", "person"]
    assert rest[1:-4] in (["withdrawn"], [])  # on a busy machine the time may be over before the first event
    assert not (folder / "y").exists()


@pytest.mark.docker
def test_an_answer_is_bounded_and_read_in_parts(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    """What calls would send is told, too; of a program nothing is, after it ran neither."""
    connect_slack(daemon)
    process = begin(python, daemon, PARTS, folder, daemon.add_agent("parts"))
    running.append(process)
    answer_next(daemon)
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    all_of_it = "".join(f"{number}\n" for number in range(1, 20_001))
    size, cut, part, following, more, told, leads, previewed, *rest = json.loads(said)
    assert size <= 6400 and cut and 6400 < more <= 50_000
    assert (part, following, json.loads(told), leads, previewed) == (all_of_it[100:120], 120, part, True, True)
    *lines, program, unknown, same, ok = rest
    assert any("chat.postMessage" in line for line in lines) and (same, ok) == (True, True)
    assert (program[1:], unknown[1:]) == (["agent", False], ["agent", False])


def test_its_tools_say_what_is_wrong(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    """No framework is there, and none is loaded; arguments that aren't a tool's are refused before anybody is asked."""
    process = begin(python, daemon, TOOLS, folder, daemon.add_agent("tools"))
    running.append(process)
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    (unknown, missing, deep, gone, found), loaded, sizes = json.loads(said)
    assert all(500 < size <= 7000 for size in sizes)
    assert loaded == []
    assert "approve" in unknown["summary"] and "program" in missing["summary"] and "digest" in deep["summary"]
    assert [each["retry"] for each in (unknown, missing, deep, gone)] == ["changed"] * 4
    assert [each["changed"] for each in (unknown, missing, deep, gone)] == ["no"] * 4
    assert found["folders"] == "any that the person allows"


@pytest.mark.docker
def test_a_client_that_is_killed_leaves_no_question(
    python: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    token = daemon.add_agent("killed")
    process = begin(python, daemon, TEN_LINES, folder, token)
    running.append(process)
    question = next(iter(daemon.person("WatchApprovals", pb.ApprovalsRequest(), seconds=300)))
    process.kill()
    process.wait()
    deadline = time.monotonic() + 300
    while daemon.person_action(question.action_id) == "asking" and time.monotonic() < deadline:
        pass
    assert daemon.person_action(question.action_id) == "withdrawn"
