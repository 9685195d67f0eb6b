"""A task from its proposal to its undo: over the agent's socket, in a terminal, by the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from grpc import RpcError

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, scene
from tests.adversarial.test_tasks import line, post, task
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import Journey, decide

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def desk(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        yield made


@pytest.mark.promise(92)
def test_a_task_is_narrowed_counted_logged_as_one_and_undone_as_one(desk: Scene) -> None:
    desk.new_agent()
    journey = desk.ask(task(line(times=3), line("conversations.history", None, times=0)))
    question = journey.asked()
    assert (question.kind, [*question.widths], question.presence) == ("task", ["once"], True)
    with desk.daemon.terminal("approve", question.id) as terminal:
        terminal.expect(r"1\. slack\.chat\.postMessage as work, at most 3 times: channel is .C0ALL.; text may be any")
        terminal.expect(r"2\. slack\.conversations\.history as work, any number of times: any arguments")
        terminal.expect(r"\[no\]: ")
        terminal.type("y 1=2 5m")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    assert journey.finished().action.state == "done"
    id = journey.action_id

    assert desk.unasked(post())
    assert desk.unasked(post())
    assert not desk.unasked(post()), "narrowed to two"
    lines = {grant.scope: grant for grant in desk.daemon.person("Grants", pb.GrantsRequest()).grants if grant.why == id}
    assert (lines["chat.postMessage"].uses, lines["chat.postMessage"].times) == (2, 2)

    log = desk.daemon.goex("log").stdout
    assert f"2 actions in task {id}" in log and log.count("done") == 1
    opened = json.loads(desk.daemon.goex("log", "--task", id, "--json").stdout)["actions"]
    assert len(opened) == 2

    with desk.daemon.terminal("undo", "--task", id) as terminal:
        terminal.expect("You want to take back 2 actions")
        terminal.expect(r"\[no\]: ")
        terminal.type("y")
        terminal.expect("Approval passphrase: |2 of 2")
        if "passphrase" in terminal.text.rsplit("\n", 1)[-1]:
            terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    assert len(re.findall(r"\[no\]: ", terminal.text)) == 1, "one question"
    states = [each["state"] for each in json.loads(desk.daemon.goex("log", "--task", id, "--json").stdout)["actions"]]
    assert states == ["undone", "undone"]
    assert len(desk.service.deleted) == 2


@pytest.mark.promise(92)
@pytest.mark.parametrize("more", [{"narrowed": [pb.Narrowed(line=0, times=2)]}, {"expires_seconds": 7200}])
def test_an_answer_can_narrow_a_task_and_never_widen_it(desk: Scene, more: dict[str, object]) -> None:
    desk.new_agent()
    journey = desk.ask(task(line(), detach=True))
    asked = journey.asked()
    with pytest.raises(RpcError, match="never"):
        decide(desk.daemon, asked, **more)
    with pytest.raises(RpcError, match="twice"):
        decide(desk.daemon, asked, narrowed=[pb.Narrowed(line=0, times=1)] * 2)
    assert desk.approval(asked.id).state == "pending"
    decide(desk.daemon, asked, approve=False)


def test_a_task_is_proposed_as_json_for_an_agent(desk: Scene) -> None:
    desk.new_agent()
    bounds = {"channel": {"is": "C0ALL"}, "text": {"any": True}}
    allows = [{"method": "slack.chat.postMessage", "account": "work", "arguments": bounds, "times": 1}]
    file = desk.daemon.home / "task.json"
    file.write_text(json.dumps({"title": "From me", "minutes": 5, "allows": allows}))
    with desk.daemon.terminal("task", str(file), "--agent", desk.agent) as terminal:
        terminal.expect("“From me”")
        terminal.expect(r"\[no\]: ")
        terminal.type("?")
        terminal.expect("change: what the lines of the task allow")
        said = terminal.expect(r"(?s).*?Risk").group()
        assert "What is done in it is undone together" in said
        assert "goex undo --task" in said
        assert "only reads" not in said
        terminal.expect(r"\[no\]: ")  # what is typed before the question stands is no answer
        terminal.type("y")
        if terminal.expect("Approval passphrase: |Done|done|begun")[0].startswith("Approval"):
            terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    assert desk.unasked(post())
    assert not desk.unasked(post())


@pytest.mark.parametrize(
    "wrong",
    [
        task(line(bounds=None)),
        task(line(times=0)),
        task(line(bounds={"channel": {"starts": "C"}})),
        task(line(bounds={"chanel": {"any": True}})),
        task(line("chat.*")),
        task(*[line()] * 21),
        task(pb.Allowance(service="goex", method="undo", arguments_json='{"target": {"in": ["a-1"]}}', times=1)),
        pb.ExecuteRequest(task=pb.Task(title="x" * 201, allows=[line()])),
        pb.ExecuteRequest(task=pb.Task(allows=[line()], seconds=90_000)),
        pb.ExecuteRequest(task=pb.Task(allows=[line()], agent="person")),
    ],
)
def test_what_cannot_be_held_to_is_refused_before_anybody_is_asked(desk: Scene, wrong: pb.ExecuteRequest) -> None:
    desk.new_agent()
    try:
        finished = Journey(desk.daemon, wrong, token=desk.token).finished()
    except RpcError:
        return
    assert finished.action.state == "failed" and not finished.action.digest
