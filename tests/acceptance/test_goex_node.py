"""`clients/node` as an agent installs it: its packed tarball in a fresh folder, with nothing of GoEx beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance import untold_daemon
from tests.acceptance.notes_service import CA, serving
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import answer_next
from tests.support.mcp import connect_slack

SOURCE = Path(__file__).resolve().parents[2] / "clients" / "node"
PACKAGES = {"goex-client", "@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node"}

TEN_LINES = """
import { Client, NotDone } from "goex-client";
const goex = new Client(), folder = process.argv[2];
const made = await goex.run("echo made > file; echo said", { folders: [folder] });
const undone = await goex.undo(made);
try {
  await goex.run("echo again > file", { folders: [folder] });
} catch (stopped) {
  console.log(JSON.stringify([made.status, made.data, made.undo, undone.status, stopped.code, stopped.retry]));
}
"""
CALLED = """
import { Client, NotRunning, Refused } from "goex-client";
const states = [], told = (event) => states.push(event.what.case);
const goex = new Client({ session: "one", told });
const body = { title: "Friday", text: "ship it" };
const once = () => goex.call("team_notes.notes.create", { team: "core", body }, { key: "k-1" });
const made = await once(), again = await once();
const gone = new Client({ socket: "/nonexistent/agent.sock" });
const wrong = [
  await goex.call("team_notes.notes.create", { team: "core", body: {} }).catch((error) => error),
  await goex.get("a-000000000000").catch((error) => error),
  await gone.find().catch((error) => error),
];
const found = await goex.find({ method: "team_notes.notes.create" });
console.log(JSON.stringify({
  made: made.data, same: made.action === again.action, asked: states.includes("asking"),
  wrong: wrong.map((error) => [error.name, error.code, error.retry, error.who, Boolean(error.next)]),
  types: wrong[1] instanceof Refused && wrong[2] instanceof NotRunning, risk: found.methods[0].risk,
}));
"""
PARTS = """
import { Client, requests } from "goex-client";
const goex = new Client(), said = [];
const send = [{ method: "slack.chat.postMessage", arguments: { channel: "C0123456789", text: "hi" } }];
const made = await goex.run("seq 1 20000", { folders: [process.argv[2]] });
const part = await goex.result(made, { path: "$.stdout", offset: 100, limit: 20 });
const more = await goex.result(made.action, { path: "$.stdout", maxBytes: 50000 });
const lines = (await goex.preview(send)).lines.map(({ text }) => text);
const program = await goex.preview(made).catch((error) => error);
const bounds = { channel: { is: "C0123456789" }, text: { any: true } };
const task = await goex.task("notes", [{ method: send[0].method, arguments: bounds, times: 2 }], { minutes: 5 });
console.log(JSON.stringify([JSON.stringify(made.data).length, made.nextOffset > 0, part.data, part.nextOffset,
  JSON.stringify(more.data).length, lines, program.name, task.status]));
"""
LEFT = """
import { Client, requests } from "goex-client";
const goex = new Client(), program = ["echo x > y", { folders: [process.argv[2]] }], said = [];
const waiting = async (events) => {
  for await (const event of events) if (event.what.case === "asking") return event.actionId;
};
const ended = async (id) => {
  for (;;) { const { status } = await goex.get(id); if (!["waiting", "running"].includes(status)) return status; }
};
said.push(await ended(await waiting(goex.start(requests.run(...program)))));
const stop = new AbortController();
let id = "";
const told = (event) => { id = event.actionId; if (event.what.case === "asking") stop.abort(new Error("mine")); };
const other = new Client({ told }), run = (options) => other.run(program[0], { ...program[1], ...options });
said.push(await run({ signal: stop.signal }).catch((error) => error.message), await ended(id));
const late = await run({ timeoutMs: 3000 }).catch((error) => error);
said.push(late.name, late.code, late.retry, await ended(id));
console.log(JSON.stringify(said));
"""
DIES = """
import { Client, NotRunning } from "goex-client";
const said = [], folder = process.argv[2];
let asked = 0;
const told = (event) => { if (event.what.case === "asking") { asked += 1; console.log("asked"); } };
const goex = new Client({ told }), run = () => goex.run("echo made > file", { folders: [folder], key: "k-1" });
const facts = (error) => [error.name, error.action ?? "", error.changed, error.retry];
const word = (line) => { console.log(line); return new Promise((done) => process.stdin.once("data", done)); };
said.push(facts(await run().catch((error) => error)));
await word("lost");  // on a connection that is only about to end it couldn't be known whether it left
const other = () => goex.run("echo other > other", { folders: [folder] });
said.push(facts(await other().catch((error) => error)));
await word("down");
process.stdin.destroy();
const done = await run();
console.log(JSON.stringify([...said, done.action, done.status]));
"""
UNREAD = """
import { Client } from "goex-client";
const done = await new Client().run("echo said", { folders: [process.argv[2]], readOnly: true });
console.log(JSON.stringify([done.status, done.changed, done.data, done.cut]));
"""
UNTOLD = """
import { Client } from "goex-client";
const goex = new Client(), said = [];
for (const way of process.argv.slice(2)) {
  const options = way.startsWith("keyed") ? { key: "k-1" } : {};
  const error = await goex.ask(way, options).catch((error) => error);
  said.push([error.name, error.changed, error.action, error.next]);
}
goex.close();
console.log(JSON.stringify(said));
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder with the client alone."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm aren't installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(int(part) for part in version.strip().lstrip("v").split(".")[:2]) < (20, 3):
        pytest.skip(f"node {version.strip()} is too old")
    folder = tmp_path_factory.mktemp("node")
    npm(["pack", "--pack-destination", str(folder), str(SOURCE)], folder)
    (tarball,) = folder.glob("goex-client-*.tgz")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    said = npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", str(tarball)], folder, check=False)
    if said.returncode:
        pytest.skip(f"its packages can't be fetched: {said.stderr.strip()[-200:]}")
    return folder


def npm(command: list[str], folder: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    given = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 240}
    return subprocess.run(["npm", "--loglevel=error", *command], cwd=folder, check=check, **given)


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def begin(place: Path, daemon: Daemon, code: str, folder: Path, token: str) -> subprocess.Popen[str]:
    (place / "program.js").write_text(code)
    env = {"PATH": os.environ["PATH"], "GOEX_AGENT_SOCKET": str(daemon.agent_socket), "GOEX_AGENT_TOKEN": token}
    return subprocess.Popen(
        ["node", "program.js", str(folder)], cwd=place, env=env, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_it_is_small(place: Path) -> None:
    lock = json.loads((place / "package-lock.json").read_text())
    assert {name.removeprefix("node_modules/") for name in lock["packages"] if name} == PACKAGES
    size = sum(file.stat().st_size for file in (place / "node_modules").rglob("*") if file.is_file())
    assert size < 10_000_000


def test_it_has_the_version_of_the_python_client() -> None:
    """Both are made from the same protos."""
    ours = json.loads((SOURCE / "package.json").read_text())["version"]
    assert f'version = "{ours}"' in (SOURCE.parent / "python" / "pyproject.toml").read_text()


@pytest.mark.parametrize("token", ["", "t"], ids=["unnamed", "named"])
def test_a_request_may_have_been_taken_unless_the_daemon_says_that_it_wasnt(
    place: Path, tmp_path: Path, token: str
) -> None:
    (place / "untold.js").write_text(UNTOLD)
    said_to = list if token else untold_daemon.unnamed
    with untold_daemon.ending(tmp_path) as socket:
        env = {"PATH": os.environ["PATH"], "GOEX_AGENT_SOCKET": str(socket), "GOEX_AGENT_TOKEN": token}
        command = ["node", "untold.js", *untold_daemon.WAYS]
        said = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(said.stdout) == said_to(untold_daemon.SAID)
    command = ["node", "untold.js", "away", "keyed away"]
    said = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(said.stdout) == said_to(untold_daemon.AWAY)


@pytest.mark.docker
def test_ten_lines_run_undo_and_are_denied(
    place: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(place, daemon, TEN_LINES, folder, daemon.add_agent("ten"))
    running.append(process)
    for approve in (True, True, False):
        answer_next(daemon, approve=approve)
    said, wrong = process.communicate(timeout=60)  # it ends by itself: an idle connection keeps nothing alive
    assert not wrong
    data = {"changes": ["created file"], "stdout": "said\n"}
    assert json.loads(said) == ["done", data, "exact", "done", "denied", "no"]
    assert not (folder / "file").exists()


@pytest.mark.docker
def test_calls_errors_keys_and_sessions(
    place: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    with serving() as service:
        document = tmp_path / "notes.yaml"
        document.write_text(service.document())
        assert daemon.goex("catalog", "import", "openapi", str(document)).returncode == 0
        account = {"service": "team_notes", "account": "mine", "format": "string", "secret": b"notes-secret"}
        account |= {"private": True, "ca_pem": CA.pem, "passphrase": APPROVAL_PASSPHRASE}
        daemon.person("VaultPut", pb.VaultPutRequest(**account))
        process = begin(place, daemon, CALLED, folder, daemon.add_agent("called"))
        running.append(process)
        answer_next(daemon)
        said, wrong = process.communicate(timeout=550)
        assert not wrong
        assert [note["text"] for note in service.notes] == ["ship it"]
    told = json.loads(said)
    assert told["made"]["text"] == "ship it"
    assert (told["same"], told["asked"], told["types"], told["risk"]) == (True, True, True, "write")
    assert told["wrong"] == [
        ["NotDone", "failed", "changed", "agent", True],
        ["Refused", "invalid", "changed", "agent", True],
        ["NotRunning", "daemon", "later", "person", True],
    ]


@pytest.mark.docker
def test_an_answer_is_bounded_and_read_in_parts(
    place: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    """What calls would send is told, too; a task is proposed."""
    connect_slack(daemon)
    process = begin(place, daemon, PARTS, folder, daemon.add_agent("parts"))
    running.append(process)
    for _ in range(2):
        answer_next(daemon)
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    size, goes_on, part, following, more, lines, program, task = json.loads(said)
    assert size <= 6400 and goes_on and 6400 < more <= 50_000
    assert part == "".join(f"{number}\n" for number in range(1, 20_001))[100:120] and following == 120
    assert any("chat.postMessage" in line for line in lines)
    assert (program, task) == ("Refused", "done")


@pytest.mark.docker
def test_leaving_aborting_and_time_outs_withdraw(
    place: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(place, daemon, LEFT, folder, daemon.add_agent("left"))
    running.append(process)
    said, wrong = process.communicate(timeout=550)
    assert not wrong
    assert json.loads(said) == ["withdrawn", "mine", "withdrawn", "TimedOut", "timed-out", "later", "withdrawn"]
    assert not (folder / "y").exists()


@pytest.mark.docker
def test_a_client_that_is_killed_leaves_no_question(
    place: Path, daemon: Daemon, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    process = begin(place, daemon, TEN_LINES, folder, daemon.add_agent("killed"))
    running.append(process)
    questions = daemon.person("WatchApprovals", pb.ApprovalsRequest(), seconds=300)
    question = next(each for each in questions if each.state == "pending")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 300
    while daemon.person_action(question.action_id) == "asking" and time.monotonic() < deadline:
        pass
    assert daemon.person_action(question.action_id) == "withdrawn"


@pytest.mark.docker
def test_a_daemon_that_dies_leaves_an_action_that_is_found_again(
    place: Path, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    with Daemon() as own:
        process = begin(place, own, DIES, folder, own.add_agent("left"))
        running.append(process)
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "asked\n"
        (question,) = own.person("Approvals", pb.ApprovalsRequest()).approvals
        own.kill()
        assert process.stdout.readline() == "lost\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "down\n"
        own.start()
        own.unlock()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "asked\n"
        answer_next(own)
        lost, unsent, again, status = json.loads(process.stdout.readline())
    assert lost == ["NotRunning", question.action_id, "unknown", "no"]
    assert unsent == ["NotRunning", "", "no", "later"]  # what never left has changed nothing
    assert (again, status) == (question.action_id, "done")


@pytest.mark.docker
def test_an_end_stays_an_end_when_its_answer_cant_be_read(
    place: Path, folder: Path, running: list[subprocess.Popen[str]]
) -> None:
    """The agent has one request a minute, so the answer of its action is refused to it."""
    with Daemon(config="[limits]\nrequests = 1\n") as tight:
        process = begin(place, tight, UNREAD, folder, tight.add_agent("tight"))
        running.append(process)
        answer_next(tight)
        said, wrong = process.communicate(timeout=300)
    assert not wrong
    assert json.loads(said) == ["done", "no", None, True]


@pytest.mark.promise(3)
def test_it_reaches_no_person_s_service(place: Path, daemon: Daemon, folder: Path) -> None:
    """Neither in what it knows nor on the socket: the control is the agents' own service, which answers."""
    known = (place / "node_modules" / "goex-client" / "proto" / "goex_pb.js").read_text()
    assert "DecideRequest" not in known and "ExecuteRequest" in known
    code = """
    import { connect } from "node:http2"; import { connect as open } from "node:net";
    const createConnection = () => open({ path: process.env.GOEX_AGENT_SOCKET });
    const session = connect("http://localhost", { createConnection });
    const ask = (path) => new Promise((done) => {
      const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
      const stream = session.request(headers), status = (from) => "grpc-status" in from && done(from["grpc-status"]);
      stream.on("response", status).on("trailers", status).resume().end(Buffer.alloc(5));
    });
    console.log(JSON.stringify([await ask("/goex.v1.Person/Decide"), await ask("/goex.v1.Actions/Whoami")]));
    session.close();
    """
    process = begin(place, daemon, code, folder, "")
    said, wrong = process.communicate(timeout=300)
    assert not wrong
    assert json.loads(said) == ["12", "0"]


@pytest.mark.thorough
def test_its_types_are_those_of_its_code(place: Path, tmp_path: Path) -> None:
    """`types/` is what tsc makes of `src/`, which it finds sound; and a program of TypeScript is checked by them."""
    work = tmp_path / "node"
    shutil.copytree(SOURCE, work, ignore=shutil.ignore_patterns("node_modules", "types"))
    said = npm(["install", "--ignore-scripts", "--no-audit", "--no-fund"], work, check=False)
    if said.returncode:
        pytest.skip(f"tsc can't be fetched: {said.stderr.strip()[-200:]}")
    npm(["run", "types"], work)
    made = {file.name: file.read_text() for file in (work / "types").iterdir()}
    assert made == {file.name: file.read_text() for file in (SOURCE / "types").iterdir()}
    good = 'import { Client } from "goex-client";\nconst goex = new Client();\n'
    good += 'const made = await goex.run("ls", { folders: ["/a"], timeoutMs: 5 });\nconst id: string = made.action;\n'
    tsc = [str(work / "node_modules" / ".bin" / "tsc"), "--strict", "--noEmit", "--module", "NodeNext"]
    tsc += ["--target", "ES2022", "--typeRoots", str(work / "node_modules" / "@types"), "--types", "node"]
    for text, sound in ((good, True), (good.replace("id: string", "id: number"), False)):
        (place / "typed.mts").write_text(text)
        done = subprocess.run([*tsc, "typed.mts"], cwd=place, capture_output=True, text=True, timeout=550, check=False)
        assert (done.returncode == 0) == sound, done.stdout
