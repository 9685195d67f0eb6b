"""Attacks on calls in stages, over the agent's socket: each is refused by the daemon that is shipped, and succeeds in
its control, a daemon with the one defence taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.adversarial.grant_scene import SECRET, Scene, call, read_and_post, scene, several
from tests.adversarial.test_grants import PERMITTED
from tests.goex.daemon.test_stages import Channels, listing, posted_to, questions, to_each
from tests.support.journey import decide

pytestmark = pytest.mark.docker

Attack = Callable[[Scene], bool]


@pytest.fixture(scope="module")
def shipped(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        made.service.__class__ = Channels
        yield made


@pytest.fixture(scope="module")
def control(sandbox_image: str) -> Iterator[Scene]:
    with scene("references", "unknown arguments", "each bounds") as made:
        made.service.__class__ = Channels
        yield made


def granted(scene: Scene) -> bool:
    """What was read goes out under grants that were given for other words."""
    scene.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), "permanent")
    scene.allow(several(call("slack.chat.postMessage", channel="C0ALL", text="hello")), "permanent")
    return scene.unasked(read_and_post("C0BOARD")) and SECRET in scene.service.posted()


def permitted(scene: Scene) -> bool:
    """The same under rules."""
    scene.apply(f"{PERMITTED};".replace("SCOUT", scene.agent))
    return scene.unasked(read_and_post("C0BOARD")) and SECRET in scene.service.posted()


def more_than_was_said(scene: Scene) -> bool:
    """The answer holds more items than the plan is for."""
    listing(scene, "a", "b", "c")
    scene.allow(several(call("slack.conversations.list")), "permanent")
    for event in (coming := questions(scene.ask(to_each("$.channels[*].id", 2)))):
        if hasattr(event, "widths"):
            decide(scene.daemon, event)
        else:
            break
    coming.close()
    return len(posted_to(scene)) > 2


ATTACKS: dict[str, Attack] = {
    "granted": granted,
    "permitted": permitted,
    "more_than_was_said": more_than_was_said,
}


@pytest.mark.promise(6)
@pytest.mark.promise(46)
@pytest.mark.parametrize("name", ATTACKS)
def test_stages_hold(shipped: Scene, name: str) -> None:
    shipped.new_agent()
    assert not ATTACKS[name](shipped)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ATTACKS)
def test_control(control: Scene, name: str) -> None:
    control.new_agent()
    assert ATTACKS[name](control)
