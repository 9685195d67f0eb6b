"""From words to a program that uses services: what the model is told, and what counts as one reading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.code import program_proposals
from mapper.code.method_finder import find
from mapper.model import ModelProposer
from mapper.stopping_rule import Experience, Plan
from policies.errors import InvalidInput
from tests.fakes.openai_server import FakeOpenAI, Reply

CATALOG = Catalog.bundled()
ONE = 'import requests\nrequests.post("https://slack.com/api/chat.postMessage", json={"channel": "#a", "text": "hi"})'
SAME = """
from slack_sdk import WebClient
import os
# the same, by the library
client = WebClient(token=os.environ["GOEX_TOKEN_SLACK"])
client.chat_postMessage(channel="#a", text="hi")
"""
OTHER = ONE.replace("#a", "#b")


def answered(code: str, language: str = "python") -> Reply:
    return Reply(None, (("run_program", json.dumps({"language": language, "code": code})),))


async def proposed(replies: Sequence[Reply], services: tuple[str, ...] = ("slack",)) -> Any:
    with FakeOpenAI(*replies) as server:
        model = ModelProposer(server.url, "fake", lambda: "key", k=len(replies))
        plan = Plan(k=len(replies), adaptive=False)
        return await program_proposals.propose(model, plan, Experience(), "say hi in #a on slack", CATALOG, services)


async def test_programs_that_make_the_same_calls_are_one_reading() -> None:
    choice = await proposed([answered(OTHER), answered(ONE), answered(SAME)])
    assert [candidate.votes for candidate in choice.candidates] == [2, 1]
    assert choice.candidates[0].program.code == ONE and choice.candidates[0].program.language == "python"


async def test_one_odd_program_of_a_reading_is_not_the_one_that_runs() -> None:
    often = ONE.replace("requests.post", f"for _ in range(1000):  # {'again, ' * 20}\n    requests.post")
    choice = await proposed([answered(often), answered(ONE), answered(SAME)])
    (candidate,) = choice.candidates
    assert candidate.votes == 3 and candidate.program.code == SAME.strip()


async def test_one_careless_program_of_a_reading_is_not_the_one_that_runs() -> None:
    checking = [f"{ONE}.raise_for_status()  # {word}" for word in ("it", "so", "well", "there")]
    choice = await proposed([answered(ONE), *map(answered, checking)])
    (candidate,) = choice.candidates
    assert candidate.votes == 5 and candidate.program.code in checking
    choice = await proposed([answered(checking[3]), answered(checking[0]), answered(checking[3]), answered(ONE)])
    assert choice.candidates[0].program.code == checking[3]


async def test_a_program_that_is_none_is_rejected_and_nothing_is_nothing() -> None:
    choice = await proposed([answered("def ("), answered(""), answered("curl -s x", "cobol")])
    assert not choice.candidates and choice.nothing == 1 and len(choice.rejected) == 2


async def test_a_program_needs_a_service() -> None:
    with pytest.raises(InvalidInput, match="needs a service"):
        await proposed([answered(ONE)], ())


def test_the_model_is_told_methods_and_variables_and_no_account_of_others() -> None:
    known = {"slack": CATALOG.service("slack"), "github": CATALOG.service("github")}
    methods = program_proposals.listed(CATALOG, known, "close an issue")
    body = program_proposals.request("x", known, ("slack/work", "slack/home", "github"), methods, "tools")
    text = json.dumps(body)
    for there in ("GOEX_TOKEN_SLACK_WORK", "GOEX_URL_SLACK_HOME", "GOEX_TOKEN_GITHUB", "slack.chat.postMessage",
                  "POST https://api.github.com/repos/{owner}/{repo}/issues"):  # fmt: skip
        assert there in text
    assert "gmail" not in text and body["tool_choice"]["function"]["name"] == program_proposals.TOOL


def test_large_services_are_shown_by_what_fits_the_words() -> None:
    known = {name: CATALOG.service(name) for name in CATALOG.services}
    methods = program_proposals.listed(CATALOG, known, "post a message to a slack channel")
    assert len(methods) <= program_proposals.MAX_METHODS and "slack.chat.postMessage" in {
        method.id for method in methods
    }


def test_a_reading_is_of_calls_that_are_all_known() -> None:
    assert program_proposals.reading(find("python", ONE, CATALOG, ("slack",)))
    assert program_proposals.reading(find("python", ONE + "\nrequests.get(input())", CATALOG, ("slack",))) == ""
    assert program_proposals.reading(find("python", "print(1)", CATALOG, ("slack",))) == ""
