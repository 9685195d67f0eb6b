"""Attacks on tasks, over the agent's socket: each is refused by the daemon that is shipped, and succeeds in its
control, a daemon with the one defence taken away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import CA, Scene, answer_to, call, scene, several
from tests.adversarial.state_scene import LOG, put, refusal
from tests.support.daemon import APPROVAL_PASSPHRASE
from tests.support.journey import Journey, decide, undo

pytestmark = pytest.mark.docker

Attack = Callable[[Scene], bool]
POST, READ = "chat.postMessage", "conversations.history"
OURS = {"channel": {"is": "C0ALL"}, "text": {"any": True}}
_EXPIRED = 60.0  # seconds that a second-long task may take to be over on a busy machine


def line(method: str = POST, bounds: dict[str, Any] | None = OURS, times: int = 1, **more: Any) -> pb.Allowance:
    written = "" if bounds is None else json.dumps(bounds)
    return pb.Allowance(service="slack", method=method, account="work", arguments_json=written, times=times, **more)


def task(*lines: pb.Allowance, **more: Any) -> pb.ExecuteRequest:
    return pb.ExecuteRequest(task=pb.Task(title="Tell the team", allows=lines), **more)


def post(channel: str = "C0ALL", **more: Any) -> pb.ExecuteRequest:
    return several(call(f"slack.{POST}", channel=channel, text="hello", **more))


def begin(scene: Scene, *lines: pb.Allowance, **more: Any) -> str:
    """A task that the person allows. Its action's id."""
    journey = scene.ask(task(*(lines or (line(),))))
    finished = journey.approve(**more)
    assert finished.action.state == "done", finished
    return journey.action_id


def used_up(scene: Scene) -> str:
    id = begin(scene)
    assert scene.unasked(post()), "what it allows runs unasked"
    return id


def count(scene: Scene) -> bool:
    used_up(scene)
    return scene.unasked(post())


def two_at_once(scene: Scene) -> bool:
    begin(scene)
    journeys = [scene.ask(post()) for _ in range(4)]
    done = 0
    for journey in journeys:
        for event in journey._events:
            if event.WhichOneof("what") == "asking":
                decide(scene.daemon, event.asking, approve=False)
            if event.WhichOneof("what") == "finished":
                done += event.finished.action.state == "done"
    return done > 1


def two_in_one(scene: Scene) -> bool:
    begin(scene)
    one = call(f"slack.{POST}", channel="C0ALL", text="hello")
    return scene.unasked(several(one, one))


def restart(scene: Scene) -> bool:
    name, token = scene.agent, scene.token
    journey = scene.ask(pb.ExecuteRequest(task=pb.Task(allows=[line()])))
    assert journey.approve().action.state == "done"
    # A session ends with its connection: the person's own task for this agent is for any.
    given = pb.ExecuteRequest(task=pb.Task(allows=[line()], agent=name))
    assert Journey(scene.daemon, given, person=True).approve().action.state == "done"
    assert scene.unasked(post())
    assert scene.unasked(post())
    scene.daemon.restart()
    scene.agent, scene.token = name, token
    return scene.unasked(post())


def older_log(scene: Scene) -> bool:
    """The log of a moment before it was used, put back after a kill, before the vault is told now and then."""
    given = pb.ExecuteRequest(task=pb.Task(allows=[line()], agent=scene.agent))
    assert Journey(scene.daemon, given, person=True).approve().action.state == "done"
    state = scene.daemon.state_dir
    older = {name: (state / name).read_bytes() for name in LOG if (state / name).exists()}
    assert scene.unasked(post())
    scene.daemon.kill()
    newest = {name: (state / name).read_bytes() for name in LOG if (state / name).exists()}
    put(state, older)
    scene.daemon.start()
    if not refusal(scene.daemon.unlock):
        return scene.unasked(post())
    scene.daemon.kill()
    put(state, newest)
    scene.daemon.start()
    scene.daemon.unlock()
    return False


def undone(scene: Scene) -> bool:
    begin(scene)
    journey = scene.ask(post())
    assert journey.finished().action.state == "done"
    assert Journey(scene.daemon, undo(journey.action_id), person=True).approve().action.state == "done"
    return scene.unasked(post())


def argument(scene: Scene) -> bool:
    begin(scene)
    return scene.unasked(post("C0STRANGERS"))


def further_argument(scene: Scene) -> bool:
    begin(scene)
    return scene.unasked(post(thread_ts="1700000000.000001"))


def left_out_argument(scene: Scene) -> bool:
    begin(scene, line(READ, {"channel": {"is": "C0ALL"}, "limit": {"most": 3}}, times=0))
    return scene.unasked(several(call(f"slack.{READ}", channel="C0ALL")))


def account(scene: Scene) -> bool:
    scene.daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service="slack",
            account="private",
            base_url=scene.service.url,
            private=True,
            ca_pem=CA.pem,
            secret=b"another-token-of-the-tests-own",
            passphrase=APPROVAL_PASSPHRASE,
            replace=True,
        ),
    )
    begin(scene)
    other = call(f"slack.{POST}", channel="C0ALL", text="hello")
    other.account = "private"
    return scene.unasked(several(other))


def agent(scene: Scene) -> bool:
    begin(scene)
    scene.new_agent()
    return scene.unasked(post())


def session(scene: Scene) -> bool:
    begin(scene)
    metadata = (("authorization", f"Bearer {scene.token}"), ("goex-session", "another"))
    with ExitStack() as stack:
        channel = grpc.insecure_channel(f"unix:{scene.daemon.agent_socket}", (("grpc.default_authority", "localhost"),))
        stack.callback(channel.close)
        execute = channel.unary_stream(
            "/goex.v1.Actions/Execute",
            request_serializer=pb.ExecuteRequest.SerializeToString,
            response_deserializer=pb.Event.FromString,
        )
        for event in execute(post(), metadata=metadata, timeout=300):
            if event.WhichOneof("what") == "asking":
                decide(scene.daemon, event.asking, approve=False)
            if event.WhichOneof("what") == "finished":
                return bool(event.finished.action.state == "done")
    raise AssertionError("The stream ended.")


def late(scene: Scene) -> bool:
    id = begin(scene, expires_seconds=1)
    until = time.monotonic() + _EXPIRED
    while any(grant.why == id and grant.width == "task" for grant in live(scene)) and time.monotonic() < until:
        time.sleep(0.05)  # the daemon's own clock says when it is over
    return scene.unasked(post())


def revoked(scene: Scene) -> bool:
    id = begin(scene)
    scene.daemon.person("Revoke", pb.RevokeRequest(task=id))
    return scene.unasked(post())


def irreversible(scene: Scene) -> bool:
    begin(scene, line("chat.delete", {"channel": {"is": "C0ALL"}, "ts": {"any": True}}))
    return scene.unasked(several(call("slack.chat.delete", channel="C0ALL", ts="1700000000.000001")))


def reference(scene: Scene) -> bool:
    begin(scene, line(READ, None, times=0), line())
    return scene.unasked(
        several(
            call(f"slack.{READ}", channel="C0BOARD", limit=1),
            call(f"slack.{POST}", channel="C0ALL", text=answer_to(0, "$.messages[0].text")),
        )
    )


def widened(scene: Scene) -> bool:
    begin(scene)
    return scene.unasked(task(line(times=1000)))


def replayed(scene: Scene) -> bool:
    used_up(scene)
    return scene.unasked(task(line()))


def wildcard(scene: Scene) -> bool:
    journey = scene.ask(task(line("*", {"channel": {"any": True}, "text": {"any": True}})))
    try:
        journey.approve()
    except AssertionError:  # it ended before it was asked for
        return False
    return scene.unasked(post())


def live(scene: Scene) -> list[pb.GrantView]:
    return list(scene.daemon.person("Grants", pb.GrantsRequest()).grants)


# What is attacked, and the defences that the control is without.
ATTACKS: dict[str, tuple[Attack, tuple[str, ...]]] = {
    "count": (count, ("task counts",)),
    "two_at_once": (two_at_once, ("task counts",)),
    "two_in_one": (two_in_one, ("task counts",)),
    "restart": (restart, ("task counts",)),
    "older_log": (older_log, ("what the vault knows",)),
    "undone": (undone, ("task counts",)),
    "argument": (argument, ("task bounds",)),
    "further_argument": (further_argument, ("task bounds",)),
    "left_out_argument": (left_out_argument, ("task bounds",)),
    "account": (account, ("task accounts",)),
    "agent": (agent, ("task agents",)),
    "session": (session, ("task sessions",)),
    "late": (late, ("task times",)),
    "revoked": (revoked, ("revoking",)),
    "irreversible": (irreversible, ("task irreversible", "asking rules")),
    "reference": (reference, ("references",)),
    "widened": (widened, ("task questions",)),
    "replayed": (replayed, ("task questions",)),
    "wildcard": (wildcard, ("task methods",)),
}


@pytest.fixture(scope="module")
def controls(sandbox_image: str) -> Iterator[Callable[[tuple[str, ...]], Scene]]:
    with ExitStack() as stack:
        made: dict[tuple[str, ...], Scene] = {}

        def of(without: tuple[str, ...]) -> Scene:
            if without not in made:
                made[without] = stack.enter_context(scene(*without))
            return made[without]

        yield of


@pytest.mark.promise(92)
@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_outside_of_a_task_runs_unasked(shipped: Scene, name: str) -> None:
    shipped.new_agent()
    assert not ATTACKS[name][0](shipped)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(controls: Callable[[tuple[str, ...]], Scene], name: str) -> None:
    attack, without = ATTACKS[name]
    control = controls(without)
    control.new_agent()
    assert attack(control)
