"""What outlives its owner is said when somebody else may get it: grants on an account whose credential is replaced, and
rules that name an agent of an earlier day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversarial.grant_scene import CA, Scene, call, scene, several
from tests.support.daemon import APPROVAL_PASSPHRASE

pytestmark = pytest.mark.docker

POST = several(call("slack.chat.postMessage", channel="C0ALL", text="hello"))


@pytest.fixture(scope="module")
def made() -> Iterator[Scene]:
    with scene() as one:
        yield one


def replaced(scene: Scene, folder: Path) -> str:
    """What `goex vault put --replace` says at a terminal, where the account leads where it led."""
    ca = folder / "ca.pem"
    ca.write_text(CA.pem)
    place = ("--base-url", scene.service.url, "--private", "--ca", str(ca))
    with scene.daemon.terminal("vault", "put", "slack", "--account", "work", "--replace", *place) as terminal:
        terminal.expect("Credential for slack/work: ")
        terminal.type("somebody-elses-token")
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
        return terminal.text


def test_grants_that_a_replaced_credential_leaves_are_named_with_what_ends_them(made: Scene, tmp_path: Path) -> None:
    made.new_agent()
    assert "stay" not in replaced(made, tmp_path)
    made.allow(POST, "permanent")
    assert made.unasked(POST)
    said = replaced(made, tmp_path)
    assert "A grant on slack/work stays as before." in said
    (command,) = [line.rpartition(": ")[2].strip() for line in said.splitlines() if "goex revoke" in line]
    assert made.unasked(POST), "the same person's new key asks nothing again"
    assert made.daemon.goex(*command.split()[1:]).returncode == 0
    assert not made.unasked(POST)
    assert "stay" not in replaced(made, tmp_path)


def test_an_agent_with_a_name_that_rules_know_is_said_to_have_them(made: Scene) -> None:
    made.new_agent()
    made.apply('@id("tells") permit (principal == AGENT, action == Action::"call", resource);')
    made.daemon.goex("agents", "remove", made.agent)
    assert "rule" not in named(made, "nobody-yet")
    said = named(made, made.agent)
    assert f"A rule in force names {made.agent}, and it holds for this agent: tells." in said


def named(scene: Scene, name: str) -> str:
    with scene.daemon.terminal("agents", "add", name) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
        return " ".join(terminal.text.split())
