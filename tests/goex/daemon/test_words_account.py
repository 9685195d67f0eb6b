"""Words about a service that several accounts are connected to: the account is an option beside them."""

from __future__ import annotations

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.vault_calls import accounts, put, refused
from tests.support.daemon import Daemon
from tests.support.journey import Journey

pytestmark = pytest.mark.docker

WORDS = 'send slack msg "hi" to #ops'


@pytest.fixture(name="two")
def two_fixture(daemon: Daemon) -> Daemon:
    for name in {"home", "work"} - {*accounts(daemon)}:
        put(daemon, name)
    return daemon


def test_the_terminal_says_which_option_and_takes_it(two: Daemon) -> None:
    unclear = two.goex("exec", WORDS)
    assert "There are several accounts for slack" in unclear.stderr
    assert "--account home" in unclear.stderr
    with two.terminal("exec", WORDS, "--account", "work") as terminal:
        terminal.expect("slack/work|account .?work|as work")
        terminal.expect(r"\[no\]: ")
        terminal.type("n")
        assert terminal.wait() != 0


def test_an_agent_names_it_too_and_the_question_shows_it(two: Daemon) -> None:
    question = Journey(two, pb.ExecuteRequest(intent=WORDS, account="work")).asked()
    assert {need.account for need in question.needs} == {"work"}


def test_an_account_that_isnt_there_is_named_in_the_next_step(two: Daemon) -> None:
    said = two.goex("exec", WORDS, "--account", "club").stderr
    assert "slack has no account 'club'" in said
    assert "goex vault put slack --account club" in said


@pytest.mark.parametrize("facts", [{"database": "shop"}, {"folder": "/tmp/x"}, {"code_services": ["slack"]}])
def test_it_belongs_to_words_about_services(two: Daemon, facts: dict[str, str]) -> None:
    request = pb.ExecuteRequest(intent=WORDS, account="work", **facts)
    assert "`account` belongs to words" in refused(lambda: Journey(two, request).finished()).message
