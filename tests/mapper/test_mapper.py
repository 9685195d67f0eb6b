"""The mapper: requests in, mappings out, with whichever proposer is configured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.mapper import InvalidProposal, Mapper
from mapper.model import ModelProposer, ModelUnavailable
from policies.actions import Intent
from policies.errors import InvalidInput, Unsupported
from tests.fakes.openai_server import FakeOpenAI, Reply

CATALOG = Catalog.bundled()
MAPPER = Mapper(CATALOG, EmbeddedProposer(CATALOG))


async def test_the_embedded_proposer_says_that_it_is_embedded() -> None:
    made = await MAPPER.map(Intent(text='send "hi" to !abc:example.org'))
    assert made.sure and made.proposer == "embedded" and "embedded" in made.notes[0]
    assert made.best is not None and made.best.scopes == ("matrix:messages.write",)
    assert made.agreement == 1.0 and made.samples == 1


async def test_granted_scopes_are_preferred() -> None:
    intent = Intent(text="close issue 12 in acme/site")
    granted = frozenset({("github", "", "public_repo")})
    wide, least = await MAPPER.map(intent, granted=granted), await MAPPER.map(intent)
    assert wide.best is not None and least.best is not None
    assert wide.best.scopes == ("github:public_repo",) and least.best.scopes == ("github:issues:write",)


async def test_what_no_scope_allows_is_no_candidate_and_said() -> None:
    gmail = CATALOG.service("gmail")
    method = gmail.methods["users.messages.list"]
    query = {"type": "string", "x-refused-scopes": {"gmail.metadata": ["which is taken, isn't known"]}}
    only = replace(
        method,
        scopes=tuple(scope for scope in method.scopes if scope.endswith("gmail.metadata")),
        parameters={**method.parameters, "properties": {"q": query}},
    )
    catalog = Catalog.of([replace(gmail, methods={**gmail.methods, method.name: only})])
    mapper = Mapper(catalog, EmbeddedProposer(catalog))
    for words, first in (("list my gmail messages", True), ("list my gmail drafts", False)):
        proposed = mapper.embedded.propose(words)
        found = [reading.calls[0].id for reading in proposed.complete]
        assert (found.index(method.id) == 0) is first and (proposed.sure or not first)
        made = await mapper.map(Intent(text=words))
        assert method.id not in {call.id for one in made.alternatives for call in one.calls}
        assert made.sure is (proposed.sure and not first) and any("No scope allows" in note for note in made.notes)
        assert [one.votes for one in made.alternatives] == [1, *[0] * (len(made.alternatives) - 1)]


async def test_nothing_fits() -> None:
    made = await MAPPER.map(Intent(text="water my tomatoes"))
    assert made.alternatives == () and not made.sure and made.agreement == 0.0


NOT_TEXT = ["", "   ", "\n\t", "?!…", "post \0 here", "post \ud800 here", "\u200b\u202e"]


@pytest.mark.parametrize("text", [*NOT_TEXT, "a" * 10_001, "x" * 10_000_000])
async def test_requests_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInput):
        await MAPPER.map(Intent(text=text))


async def test_a_long_request_is_taken() -> None:
    made = await MAPPER.map(Intent(text=f'send "{"x" * 9_000}" to #ops on slack'))
    assert made.sure and made.best is not None and len(made.best.calls[0].arguments["text"]) == 9_000


async def test_a_request_that_retrieves_nothing_does_not_reach_the_model() -> None:
    with FakeOpenAI(Reply(content="[]")) as server:
        mapper = Mapper(CATALOG, EmbeddedProposer(CATALOG), ModelProposer(server.url, "m", lambda: "k"))
        made = await mapper.map(Intent(text="zzz qqq www"))
        assert made.alternatives == () and not server.requests and made.proposer == "m"


async def test_a_broken_model_is_an_error_not_a_guess() -> None:
    with FakeOpenAI(statuses=[500] * 9) as server:
        mapper = Mapper(CATALOG, EmbeddedProposer(CATALOG), ModelProposer(server.url, "m", lambda: "k"))
        with pytest.raises(ModelUnavailable):
            await mapper.map(Intent(text='send "hi" to #ops on slack'))


def test_a_proposal_of_an_agent() -> None:
    calls = MAPPER.parse('slack.chat.postMessage(channel="#ops", text="hi")')
    assert [call.id for call in calls] == ["slack.chat.postMessage"]


def test_a_bad_proposal_names_everything_and_its_class() -> None:
    text = json.dumps([{"name": "slack.nope"}, {"name": "slack.chat.postMessage", "arguments": {"text": 1}}])
    with pytest.raises(InvalidProposal) as caught:
        MAPPER.parse(text)
    assert "unknown tool" in caught.value.message and "'nope'" in caught.value.message
    assert caught.value.rejected[0].klass == "unknown tool"
    with pytest.raises(InvalidProposal, match="holds no call"):
        MAPPER.parse("[]")


async def test_without_a_model_there_is_no_answer() -> None:
    with pytest.raises(Unsupported):
        await MAPPER.answer(Intent(text="hi"), "{}")


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_thresholds(threshold: float) -> None:
    with pytest.raises(InvalidInput):
        Mapper(CATALOG, EmbeddedProposer(CATALOG), None, threshold)
