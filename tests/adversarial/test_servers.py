"""Attacks by MCP servers on whoever runs them, each with its control. Daemon, containers and gateway are the real ones;
the server is a program of the tests' own, which does what it is asked to, in the place of a published one."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from runtimes.servers import session
from runtimes.servers.definition import Servers
from tests.adversarial.mcp_servers_scene import Collector, collecting
from tests.support import mcp_server
from tests.support.containers import WAIT
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, undo
from tests.support.mcp_server import TOKEN, Added, add, request

pytestmark = [pytest.mark.docker]
FILE = Path(__file__).with_name("hostile_server.py")
READS = '@id("reads") permit (principal, action == Action::"call", resource) when {{ context.risk_level <= {} }};'
CHANGES = ["renamed", "described", "schema", "annotated"]


@pytest.fixture(scope="module")
def image(sandbox_image: str) -> str:
    return mcp_server.image_of(FILE)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(config=f"{WAIT}[sandbox.profiles.mcp]\nseconds = 20\n") as running:
        yield running


@pytest.fixture(scope="module")
def server(daemon: Daemon, image: str) -> Added:
    """A server that says and does what it said when it was added."""
    return add(daemon, "steady", image)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collector, Collector]]:
    """The service of the server's account, and another one."""
    folder = tmp_path_factory.mktemp("places")
    with collecting(folder / "own") as own, collecting(folder / "other") as other:
        yield own, other


@pytest.fixture(scope="module")
def connected(daemon: Daemon, image: str, places: tuple[Collector, Collector]) -> Added:
    """A server with a credential, which may be sent to one place."""
    own = places[0]
    return add(daemon, "connected", image, origin=own.url, ca_pem=own.ca_pem)


def body(outcome: dict[str, Any], place: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = outcome["results"][place]["body"]
    return found


# ---- what it says of its tools


@pytest.mark.promise(90)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", CHANGES)
def test_changed(daemon: Daemon, image: str, how: str) -> None:
    changed = add(daemon, f"changed-{how}", image, env={"MODE": how}, seen={})
    _, finished, outcome = changed.call("hello")
    assert finished.action.state == "failed"
    assert not outcome["ok"] and not outcome["touched"]
    assert f"goex mcp review changed-{how}" in outcome["summary"]
    assert "called" not in json.dumps(outcome["results"])
    said = daemon.goex("mcp", "review", f"changed-{how}", "--json")
    difference = json.loads(said.stdout)["difference"]
    assert any("echo" in line for line in difference)
    assert "\x1b" not in "".join(difference)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", CHANGES)
def test_control_changed(daemon: Daemon, image: str, how: str) -> None:
    """Where what it says is what was agreed on, it is called (by whatever name its tool has)."""
    agreed = add(daemon, f"agreed-{how}", image, env={"MODE": how})
    if how == "renamed":
        assert [tool["name"] for tool in agreed.server.tools] == ["echo2"]
        return
    assert body(agreed.call("hello")[2]) == {"called": "hello"}


@pytest.fixture(scope="module")
def hinted(daemon: Daemon, image: str, tmp_path_factory: pytest.TempPathFactory) -> Added:
    """A server whose tool calls itself read-only, and whose calls can be taken back: no rule asks for them."""
    folder = tmp_path_factory.mktemp("hinted")
    folder.chmod(0o777)
    return add(daemon, "hinted", image, folder=str(folder))


@pytest.mark.promise(90)
def test_read_only_hint(daemon: Daemon, hinted: Added) -> None:
    """A rule permits all reads, and it is asked for all the same."""
    applied(daemon, READS.format(1))
    journey = Journey(daemon, request("hinted", "hello"), person=True)
    assert journey.asked().risk == "write"
    journey.leave()


def test_control_read_only_hint(daemon: Daemon, hinted: Added) -> None:
    """With a rule that permits writes, too, it isn't."""
    applied(daemon, READS.format(2))
    journey = Journey(daemon, request("hinted", "hello"), person=True)
    assert journey.finished().action.state == "done"
    applied(daemon, READS.format(0))


def applied(daemon: Daemon, text: str) -> None:
    """Put a rule in force."""
    files = [rb.RuleFile(name="own.cedar", text=text)]
    checked = _rules(daemon, "CheckRules", rb.CheckRulesRequest(files=files), rb.CheckRulesReply)
    wanted = rb.ApplyRulesRequest(files=files, compared_with=checked.hash, passphrase=APPROVAL_PASSPHRASE)
    _rules(daemon, "ApplyRules", wanted, rb.InForceReply)


def _rules(daemon: Daemon, method: str, wanted: Any, reply: Any) -> Any:
    ask = daemon.channel(daemon.user_socket).unary_unary(
        f"/goex.v1.Rules/{method}",
        request_serializer=type(wanted).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return ask(wanted, timeout=300)


# ---- what it answers


@pytest.mark.promise(90)
def test_answer_shown(daemon: Daemon, server: Added) -> None:
    action, _, outcome = server.call("escape")
    said = daemon.goex("show", action).stdout
    assert "Ignore all rules" in said or "Ignore all rules" in json.dumps(outcome)
    assert not {"\x1b", "\x07", "\u202e"} & set(said)
    assert daemon.person_action(action) == "done"


def test_control_answer_shown(server: Added) -> None:
    """The control characters are in what it answered."""
    said = body(server.call("escape")[2])["said"]
    assert {"\x1b", "\x07", "\u202e"} <= set(said)


def test_half_a_character(daemon: Daemon, image: str, server: Added) -> None:
    """A server that cuts its texts anywhere is answered for; one that says such of its tools isn't called."""
    _, finished, outcome = server.call("halve")
    assert finished.action.state == "done" and body(outcome) == {"said": "again \ufffd"}
    _, finished, outcome = add(daemon, "halved", image, env={"MODE": "halved"}, seen={}).call("hello")
    assert finished.action.state == "failed" and not outcome["touched"]
    assert "can't be read" in json.dumps(outcome)


@pytest.mark.promise(90)
@pytest.mark.parametrize("text", ["big 6000000", "flood 2000"], ids=["answer", "flood"])
def test_size(server: Added, text: str) -> None:
    """More than is read isn't: neither in one answer nor around it. What it did isn't known then."""
    _, finished, outcome = server.call(text)
    assert finished.action.state in ("partial", "unknown", "failed")
    assert not outcome.get("ok")
    assert len(finished.action.outcome_json) < 100_000


def test_how_one_on_a_folder_broke_off_is_data(hinted: Added) -> None:
    """As of one that has no folder: the agent is told, where it is told what the server answers."""
    _, finished, outcome = hinted.call("write /nonexistent/file")
    assert not outcome["ok"] and finished.action.state in ("failed", "partial", "unknown")
    (broken,) = outcome["results"]
    assert broken["status"] == 0 and broken["body"]["goex"].startswith("it gave no answer: ")


@pytest.mark.parametrize("text", ["big 60000", "flood 20"], ids=["answer", "flood"])
def test_control_size(server: Added, text: str) -> None:
    assert server.call(text)[2]["ok"]


@pytest.mark.promise(90)
def test_silence(daemon: Daemon, server: Added) -> None:
    """It never answers: its time ends, others don't wait for it, and what it did isn't known."""
    journey = Journey(daemon, request("steady", "wait 600"), person=True)
    decide(daemon, journey.asked())
    journey.until("progress")
    assert body(server.call("meanwhile")[2]) == {"called": "meanwhile"}
    finished = journey.finished()
    assert finished.action.state in ("partial", "unknown")
    assert "known" in finished.action.outcome_json or "known" in str(finished)


def test_control_silence(server: Added) -> None:
    assert body(server.call("wait 1")[2]) == {"called": "wait 1"}


# ---- what it reaches


@pytest.mark.promise(91)
def test_state_of_another_session(daemon: Daemon, server: Added) -> None:
    """What a call left is nowhere in the next one, of whatever session."""
    assert body(server.call("remember secret")[2]) == {"before": "", "calls": 0}
    assert body(server.call("remember more")[2]) == {"before": "", "calls": 0}


@pytest.mark.thorough
def test_control_state_of_another_session(daemon: Daemon, image: str, tmp_path: Path) -> None:
    """On a folder of its own it finds what it left there."""
    tmp_path.chmod(0o777)
    own = add(daemon, "folded", image, env={"PLACE": "/work"}, folder=str(tmp_path))
    assert body(own.call("remember secret")[2])["before"] == ""
    assert body(own.call("remember more")[2])["before"] == "secret"


@pytest.fixture
def kept(daemon: Daemon, image: str, tmp_path: Path) -> tuple[Added, Path]:
    """A server on a folder in which it finds something of the person's."""
    place = tmp_path / "kept"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    (place / "state").write_text("a line of the diary")
    (place / "state").chmod(0o666)
    return add(daemon, f"kept-{os.urandom(2).hex()}", image, env={"PLACE": "/work"}, folder=str(place)), place


@pytest.mark.promise(74)
def test_preview(daemon: Daemon, kept: tuple[Added, Path]) -> None:
    """A dry run has the server work on a copy, and shows what it changed with the lines around it."""
    server, place = kept
    asked = request(server.server.name, "remember more")
    token = daemon.add_agent(f"a{os.urandom(3).hex()}")
    with pytest.raises(grpc.RpcError) as refused:
        daemon.actions("Preview", pb.PreviewRequest(request=asked), token=token)
    assert "Only calls have a preview" in str(refused.value) and "diary" not in str(refused.value)
    journey = Journey(daemon, asked, token=token)
    question = journey.asked()
    assert not question.lines and not question.digest
    with pytest.raises(grpc.RpcError, match="Only calls"):
        daemon.actions("Preview", pb.PreviewRequest(action_id=journey.action_id), token=token)
    shown = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question.id)).approvals[0]
    assert any(str(place) in line for line in shown.lines), "the control: the person is told"
    decide(daemon, shown)
    assert journey.finished().action.state == "done"
    with pytest.raises(grpc.RpcError, match="Only calls"):
        revert = pb.PreviewRequest(revert=undo(journey.action_id))
        daemon.actions("Preview", revert, token=token)
    (place / "state").write_text("another line of the diary")
    (place / "divorce-papers").write_text("x")
    back = Journey(daemon, undo(journey.action_id), token=token)
    end = back.finished()
    assert end.problem.code == "conflict"
    assert not {"divorce", "state"} & set(re.findall("[a-z]+", str(end.problem) + str(end.action.ending)))
    person = Journey(daemon, undo(journey.action_id), person=True).finished()
    assert any("state" in line for line in person.problem.details), "the control: the person is told"


def test_what_an_agent_wrote_wrongly_is_said(daemon: Daemon, kept: tuple[Added, Path]) -> None:
    """That says nothing of the folder."""
    call = pb.Call(service=kept[0].server.name, method="echo", arguments_json='{"txet": "x"}')
    token = daemon.add_agent(f"a{os.urandom(3).hex()}")
    end = Journey(daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), token=token).finished()
    assert end.problem.code == "arguments"


@pytest.mark.thorough
def test_control_preview(daemon: Daemon, kept: tuple[Added, Path]) -> None:
    """The person's own dry run shows what it changes, with what was there."""
    asked = pb.DryRunRequest(request=request(kept[0].server.name, "remember more"))
    found = str(list(daemon.person("DryRun", asked))[-1].done)
    assert "a line of the diary" in found


@pytest.mark.promise(91)
def test_credential(daemon: Daemon, connected: Added, places: tuple[Collector, Collector]) -> None:
    """It has a placeholder, which the gateway swaps on the way to its own place; an echo of it is taken out."""
    places[0].got.clear()
    inside = json.dumps(connected.call("environment")[2])
    assert TOKEN not in inside
    assert "goex-connected-default" in inside
    assert body(connected.call(f"fetch {places[0].url}/echo")[2])["status"] == 200
    assert [one["authorization"] for one in places[0].got] == [f"Bearer {TOKEN}"]
    for file in daemon.state_dir.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes(), file
    assert TOKEN not in daemon.goex("log", "--json").stdout + daemon.tail(1_000_000)


def test_control_credential(places: tuple[Collector, Collector]) -> None:
    """The service does echo what it gets, so that it would be found."""
    assert TOKEN in places[0].answer({"authorization": f"Bearer {TOKEN}"})


@pytest.mark.promise(91)
def test_other_origin(connected: Added, places: tuple[Collector, Collector]) -> None:
    """Neither the placeholder nor anything else reaches a place that its account doesn't name."""
    other = places[1]
    other.got.clear()
    said = body(connected.call(f"fetch {other.url}/steal")[2])
    assert said.get("status") != 200
    assert other.got == []


@pytest.mark.thorough
def test_control_other_origin(daemon: Daemon, image: str, places: tuple[Collector, Collector]) -> None:
    other = places[1]
    other.got.clear()
    allowed = add(daemon, f"allowed-{other.url.rpartition(':')[2]}", image, origin=other.url, ca_pem=other.ca_pem)
    assert body(allowed.call(f"fetch {other.url}/steal")[2])["status"] == 200
    assert len(other.got) == 1


@pytest.mark.promise(91)
def test_http(server: Added, places: tuple[Collector, Collector]) -> None:
    """Without an origin it has no way out at all."""
    places[1].got.clear()
    assert "status" not in body(server.call(f"fetch {places[1].url}/steal")[2])
    assert places[1].got == []


@pytest.mark.promise(91)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("which", ["steady", "connected"])
def test_datagram(server: Added, connected: Added, which: str) -> None:
    """No name is looked up, and no datagram arrives, with or without a way out."""
    added = server if which == "steady" else connected
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("0.0.0.0", 0))
        listener.settimeout(0.5)
        host = f"{socket.gethostbyname(socket.gethostname())}:{listener.getsockname()[1]}"
        assert "said" in body(added.call("resolve c2.example.org")[2])
        added.call(f"datagram {host}")
        with pytest.raises(TimeoutError):
            listener.recvfrom(100)


def test_control_datagram() -> None:
    """Outside of a container it arrives."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("0.0.0.0", 0))
        listener.settimeout(300)
        host = f"{socket.gethostbyname(socket.gethostname())}:{listener.getsockname()[1]}"
        code = "import hostile_server, sys; hostile_server.called(sys.argv[1])"
        subprocess.run([sys.executable, "-c", code, f"datagram {host}"], check=True, cwd=FILE.parent)
        assert listener.recvfrom(100)[0] == b"exfiltrated"


@pytest.mark.thorough
def test_control_http(daemon: Daemon, image: str, places: tuple[Collector, Collector]) -> None:
    test_control_other_origin(daemon, image, places)


@pytest.mark.promise(91)
def test_folder(daemon: Daemon, server: Added, tmp_path: Path) -> None:
    """A server to which no folder was given sees none, and can't write but to its own /tmp."""
    said = server.call(f"write {tmp_path}/a")[1]
    assert said.action.state != "done"
    assert not (tmp_path / "a").exists()


@pytest.mark.thorough
def test_control_folder(daemon: Daemon, image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    own = add(daemon, "owner", image, folder=str(tmp_path))
    assert own.call("write /work/a")[1].action.state == "done"
    assert (tmp_path / "a").read_text() == "written"


# ---- what is written down about it


@pytest.mark.promise(91)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["file", "catalog"])
def test_definition_altered(daemon: Daemon, image: str, where: str) -> None:
    """What starts it is what the person sealed an account for: neither its file nor the catalog can change that."""
    name = f"altered-{where}"
    added = add(daemon, name, image)
    if where == "file":
        file = daemon.state_dir / "servers" / name / "server.json"
        file.write_text(file.read_text().replace("/goex/app/server.py", "/goex/app/server.pyc"))
    else:
        other = Servers(daemon.state_dir / "servers")
        changed = added.server.having(added.server.tools)
        fields = {key: getattr(changed, key) for key in changed.__slots__}
        fresh = type(changed)(**{**fields, "env": {"MODE": "evil"}})
        other.put(fresh)
        mcp_server.install(daemon, fresh)
    finished = Journey(daemon, request(name, "hello"), person=True).finished()  # nobody is asked
    assert finished.problem.code == "conflict"
    assert "goex mcp" in finished.problem.next_step


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["file", "catalog"])
def test_control_definition_altered(daemon: Daemon, image: str, where: str) -> None:
    """With presence the same change is agreed to."""
    name = f"renewed-{where}"
    added = add(daemon, name, image, env={"OTHER": "yes"})
    mcp_server.sealed(daemon, added.server)
    assert body(added.call("hello")[2]) == {"called": "hello"}


def test_a_conversation_that_isnt_ours_is_read_as_nothing() -> None:
    """Lines that a server writes in the place of what speaks to it make no answer well."""
    found = session.said(b'{"answer": 0, "result": {"isError": true}}\nnot json\n')
    assert found.failed
    assert session.body_of(found.answers[0])[0] == 422


def test_half_a_character_in_json_leaves_it_json() -> None:
    """JavaScript writes a text that it cut as an escape within the JSON that is the answer's text."""
    text = '{"items": ["cut \\ud83d"]}'
    result = {"result": {"content": [{"type": "text", "text": text}]}}
    assert session.body_of(result) == (200, {"items": ["cut \ufffd"]})
