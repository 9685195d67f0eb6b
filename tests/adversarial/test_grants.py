"""Attacks on what was granted, over the agent's socket: each is refused by the daemon that is shipped, and succeeds in
its control, a daemon with the one defence taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import (
    FIRST,
    SECRET,
    Scene,
    answer_to,
    call,
    relay,
    scene,
    several,
    unsafe,
)
from tests.support.journey import Journey, decide, undo

pytestmark = pytest.mark.docker

Attack = Callable[[Scene], bool]


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("references", "unknown arguments") as made:
        yield made


def secret_out(scene: Scene) -> bool:
    return SECRET in scene.service.posted()


def same_arguments(scene: Scene) -> bool:
    scene.allow(relay("C0LUNCH"), "arguments")
    scene.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), "permanent")
    return scene.unasked(relay("C0BOARD")) and secret_out(scene)


def by_width(width: str) -> Attack:
    def attack(scene: Scene) -> bool:
        scene.allow(relay("C0LUNCH"), width)
        return scene.unasked(relay("C0BOARD")) and secret_out(scene)

    return attack


def bad_one_first(scene: Scene) -> bool:
    scene.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), "permanent")
    bad = scene.ask(relay("C0BOARD", detach=True))
    waiting = bad.asked()
    scene.allow(relay("C0LUNCH"), "arguments")
    view = scene.approval(waiting.id)
    if view.state == "pending":
        decide(scene.daemon, waiting, approve=False)
        return False
    bad.finished()
    return secret_out(scene)


def standing_without_arguments(scene: Scene) -> bool:
    """A wide grant that was given for values that were seen."""
    scene.allow(several(FIRST), "permanent")
    scene.allow(several(call("slack.chat.postMessage", channel="C0ALL", text="hello")), "permanent")
    scene.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), "permanent")
    return scene.unasked(relay("C0BOARD")) and secret_out(scene)


def recipient(scene: Scene) -> bool:
    """Who gets it is what the service says, later."""

    def post() -> pb.ExecuteRequest:
        return several(
            FIRST,
            call("slack.conversations.list", limit=1),
            call("slack.chat.postMessage", channel=answer_to(1, "$.channels[0].id"), text="the numbers"),
        )

    scene.allow(post(), "arguments")
    scene.service.first = "C0STRANGERS"
    return scene.unasked(post()) and ("C0STRANGERS" in str(scene.service.got[-1]))


def in_the_query(scene: Scene) -> bool:
    """What is read is what the service says, later."""

    def read() -> pb.ExecuteRequest:
        return several(
            call("slack.conversations.list", limit=1),
            call("slack.conversations.history", channel=answer_to(0, "$.channels[0].id"), limit=1),
        )

    scene.allow(read(), "arguments")
    scene.service.first = "C0BOARD"
    return scene.unasked(read()) and scene.service.got[-1][2].get("channel") == "C0BOARD"


def in_the_path(scene: Scene) -> bool:
    def retitle() -> pb.ExecuteRequest:
        return several(
            call("github.issues.create", owner="acme", repo="tool", title="A"),
            call(
                "github.issues.setTitle",
                owner="acme",
                repo="tool",
                issue_number=answer_to(0, "$.number"),
                title="B",
            ),
        )

    scene.allow(retitle(), "arguments")
    scene.service.first = "C0OTHER"
    return scene.unasked(retitle()) and any(path.endswith("/666") for _, path, _ in scene.service.got)


def in_a_list(scene: Scene) -> bool:
    def issue() -> pb.ExecuteRequest:
        return several(
            call("slack.chat.postMessage", channel="C0ALL", text="news"),
            call("slack.conversations.history", channel="C0BOARD", limit=1),
            call(
                "github.issues.create",
                owner="acme",
                repo="tool",
                title="A",
                labels=["bug", answer_to(1, "$.messages[0].text")],
            ),
        )

    scene.allow(issue(), "arguments")
    scene.service.got.clear()
    return scene.unasked(issue()) and SECRET in str(scene.service.got[-1])


PERMITTED = """
@id("SCOUT-may-react") permit (principal == AGENT, action, resource == Method::"slack.reactions.add");
@id("SCOUT-may") permit (principal == AGENT, action, resource == Method::"slack.conversations.history");
@id("SCOUT-may-post") permit (principal == AGENT, action, resource == Method::"slack.chat.postMessage")"""


def permit(scene: Scene) -> bool:
    scene.apply(f"{PERMITTED};".replace("SCOUT", scene.agent))
    return scene.unasked(relay("C0BOARD")) and secret_out(scene)


def permit_of_another_argument(scene: Scene) -> bool:
    """The rule looks at the channel, which is written out; the text is what nobody has seen."""
    when = '\nwhen { context.arguments.channel == "C0ALL" };'
    scene.apply(f"{PERMITTED}{when}".replace("SCOUT", scene.agent))
    return scene.unasked(relay("C0BOARD")) and secret_out(scene)


def forbidden_value(scene: Scene) -> bool:
    """A rule forbids a channel; the channel comes from an answer, and is allowed by hand."""
    scene.apply(
        f'@id("{scene.agent}-not") forbid (principal == AGENT, action, resource == Method::"slack.chat.postMessage")\n'
        'when { context.arguments.channel == "C0STRANGERS" };'
    )
    scene.service.first = "C0STRANGERS"
    request = several(
        FIRST,
        call("slack.conversations.list", limit=1),
        call("slack.chat.postMessage", channel=answer_to(1, "$.channels[0].id"), text="the numbers"),
    )
    journey = scene.ask(request)
    try:
        decide(scene.daemon, journey.asked())
    except AssertionError:  # it ended before it was asked for
        return False
    return journey.finished().action.state == "done" and "C0STRANGERS" in str(scene.service.got[-1])


def made_again(scene: Scene) -> bool:
    """What was allowed once is taken back, and made again on a grant for other posts; another is read meanwhile."""
    done = scene.allow(relay("C0LUNCH"), "once")
    scene.allow(undo(done.action.id), "once")
    scene.allow(several(call("slack.reactions.add", channel="C0OTHER", timestamp="2.2", name="tada")), "permanent")
    scene.allow(several(call("slack.chat.postMessage", channel="C0THIRD", text="hello")), "permanent")
    scene.allow(several(call("slack.conversations.history", channel="C0LUNCH", limit=1)), "permanent")
    return scene.unasked(undo(done.action.id, "redo"))


ATTACKS: dict[str, Attack] = {
    "same_arguments": same_arguments,
    "session": by_width("session"),
    "permanent": by_width("permanent"),
    "bad_one_first": bad_one_first,
    "seen_values": standing_without_arguments,
    "recipient": recipient,
    "in_the_query": in_the_query,
    "in_the_path": in_the_path,
    "in_a_list": in_a_list,
    "permit": permit,
    "permit_of_another_argument": permit_of_another_argument,
    "forbidden_value": forbidden_value,
    "made_again": made_again,
}


@pytest.mark.promise(6)
@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", ATTACKS)
def test_what_an_answer_fills_in_is_not_covered(shipped: Scene, name: str) -> None:
    shipped.new_agent()
    assert not ATTACKS[name](shipped)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(control: Scene, name: str) -> None:
    control.new_agent()
    assert ATTACKS[name](control)


@pytest.mark.promise(6)
def test_a_grant_of_an_earlier_version_covers_no_reference_any_more(sandbox_image: str) -> None:
    """The daemon that gave it held nothing of this; its control is that same daemon, before."""
    with scene("references") as made:
        made.new_agent()
        made.allow(relay("C0LUNCH"), "arguments")
        made.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), "permanent")
        elsewhere = call("slack.chat.postMessage", channel="C0OTHER", text=answer_to(1, "$.channels[0].name"))
        waiting = made.ask(several(FIRST, call("slack.conversations.list", limit=1), elsewhere, detach=True)).asked()
        assert "arguments" in waiting.widths
        assert made.unasked(relay("C0BOARD")), "the control"
        assert secret_out(made), "the control"

        for name in unsafe("references"):
            del made.daemon.env[name]
        made.daemon.restart()
        made.service.got.clear()
        assert not made.unasked(relay("C0BOARD"))
        assert not made.service.got
        views = made.daemon.person("Grants", pb.GrantsRequest()).grants
        assert [view.stale for view in views if view.scope == "chat:write"] == [
            "It was given for values that an answer fills in: what rests on those is asked each time, so it holds for"
            " nothing."
        ]
        # A question that it had asked is still there, and offers no more than what it can give.
        again = made.approval(waiting.id)
        assert [*again.widths] == ["once"]
        with pytest.raises(grpc.RpcError):
            decide(made.daemon, again, width="arguments")


def test_the_question_says_why_it_is_for_once_alone(shipped: Scene) -> None:
    shipped.new_agent()
    journey = Journey(shipped.daemon, relay("C0LUNCH"), token=shipped.token)
    approval = journey.asked()
    assert [*approval.widths] == ["once"]
    assert not approval.arguments
    said = "An answer that nobody has seen yet fills in text of slack.chat.postMessage, so it is asked each time."
    assert said in approval.reason
    assert said in approval.choices[0].words
    decide(shipped.daemon, approval)
    assert journey.finished().action.state == "done"
    assert shipped.service.posted() == ["pizza at noon"]
