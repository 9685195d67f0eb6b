"""Pairs that a model proposes: checked against the catalog, and harmful ones refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.model import ModelProposer
from mapper.pair_proposals import propose
from mapper.pairs import from_json, names_nothing_new, read_file, to_json
from policies.errors import GoexError, InvalidInput, Unsupported
from policies.reversions import Pair, Standing
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.undo import undo_steps
from runtimes.sandbox.contract import Profile
from tests.fakes.openai_server import FakeOpenAI, Reply
from tests.runtimes.rest.support import Bench, account, calls

CATALOG = Catalog.bundled()
ASKED = "slack.conversations.join"  # has no way back of GoEx's own
INFO = {"method": "conversations.info", "arguments": {"channel": "$request.channel"}}
GOOD: dict[str, Any] = {
    "method": "reactions.add",
    "undo": {
        "calls": [
            {
                "method": "slack.reactions.remove",
                "arguments": {
                    "channel": "$request.channel",
                    "timestamp": "$request.timestamp",
                    "name": "$request.name",
                },
            }
        ],
        "verify": {**INFO, "expect": [{"path": "$.ok", "equals": True}]},
    },
}


def with_calls(*made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"method": "reactions.add", "undo": {**GOOD["undo"], "calls": list(made), **more}}


REMOVE = GOOD["undo"]["calls"][0]["arguments"]
HARMFUL: dict[str, tuple[dict[str, Any], str]] = {
    "a deletion of something else": (
        with_calls({"method": "chat.delete", "arguments": {"channel": "$request.channel", "ts": "$request.timestamp"}}),
        "permission that reactions.add has no use for",
    ),
    "an archiving": (
        with_calls({"method": "conversations.archive", "arguments": {"channel": "$request.channel"}}),
        "permission that reactions.add has no use for",
    ),
    "a value of its own": (
        with_calls({"method": "reactions.remove", "arguments": {**REMOVE, "channel": "C0BOSS"}}),
        "must come from",
    ),
    "a text of its own": (
        with_calls({"method": "conversations.setTopic", "arguments": {"channel": "$request.channel", "topic": "hi"}}),
        "must come from",
    ),
    "a literal behind dollars": (
        with_calls({"method": "reactions.remove", "arguments": {**REMOVE, "channel": "$$request"}}),
        "must come from",
    ),
    "another service": (
        with_calls({"method": "github.issues.get", "arguments": {}}),
        "isn't a method of this service",
    ),
    "no read-back": (
        {"method": "reactions.add", "undo": {"calls": GOOD["undo"]["calls"]}},
        "needs a read-back",
    ),
    "a read that writes": (
        with_calls(GOOD["undo"]["calls"][0], pre={"method": "reactions.remove", "arguments": REMOVE}),
        "must be a read",
    ),
    "an answer that isn't there yet": (
        with_calls(GOOD["undo"]["calls"][0], pre={**INFO, "arguments": {"channel": "$response.channel"}}),
        "isn't known at that point",
    ),
    "another method": ({**GOOD, "method": "chat.postMessage"}, "not for"),
    "more than was asked for": ({**GOOD, "grant": "channels:manage"}, "nothing else"),
}


async def asked(said: str, method: str = "slack.reactions.add") -> tuple[Pair, list[Any]]:
    with FakeOpenAI(Reply(content=said)) as server:
        model = ModelProposer(server.url, "fake", lambda: "key")
        pair = await propose(CATALOG, method, model.complete)
        return pair, server.requests


async def test_a_good_proposal_is_a_models_pair() -> None:
    pair, requests = await asked(f"Here it is:\n```json\n{json.dumps(GOOD)}\n```")
    assert (pair.source, pair.undo.source, pair.undo.calls[0].method) == ("model", "model", "reactions.remove")
    assert len(requests) == 1
    told = requests[0].text
    assert "reactions.remove" in told and "xoxb" not in told


@pytest.mark.sampled(5)
@pytest.mark.promise(65)
@pytest.mark.parametrize("name", sorted(HARMFUL))
async def test_a_harmful_proposal_is_refused(name: str) -> None:
    value, says = HARMFUL[name]
    with pytest.raises(InvalidInput, match=says):
        await asked(json.dumps(value))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("said", ["", "no", "[]", "{", '{"undo": 1}', "{" * 5000, '{"a": ' * 100 + "1" + "}" * 100])
async def test_what_is_no_pair_is_refused(said: str) -> None:
    with pytest.raises(GoexError):
        await asked(said)


async def test_a_model_may_know_none() -> None:
    with pytest.raises(Unsupported, match="knows no safe way back"):
        await asked(json.dumps({"none": "it is gone for good"}), ASKED)


@pytest.mark.promise(65)
def test_what_a_model_deletes_must_be_new(tmp_path: Path) -> None:
    """The answer may name what was there before: the undo is then refused, whatever was agreed to."""
    value = {
        "method": "slack.chat.postMessage",
        "undo": {
            "calls": [
                {"method": "chat.delete", "arguments": {"channel": "$response.channel", "ts": "$response.thread_ts"}}
            ],
            "verify": {
                "method": "chat.getPermalink",
                "arguments": {"channel": "$response.channel", "message_ts": "$response.ts"},
                "expect": [{"path": "$.ok", "equals": False}],
            },
        },
    }
    pair = from_json(value, CATALOG, source="model")

    class Only:
        def added(self, method_id: str) -> tuple[Pair, ...]:
            return (pair,) if method_id == pair.method_id else ()

        def standing(self, hash: str) -> Any:
            return Standing.FAILED if hash != pair.hash else Standing.UNPROVEN

        def used(self, use: Any) -> None:
            return

    bench = Bench(tmp_path, (account("slack", "https://slack.com/api"),))
    action = calls(("slack.chat.postMessage", {"channel": "C0OPS", "text": "x", "thread_ts": "1.1"}))
    plan = assess_calls(action, bench.context("a1"), CATALOG, Profile(), "sha256:x", Only())
    assert "written by a model, unproven" in plan.undo_text

    def answered(thread: str) -> CallRecord:
        body = {"ok": True, "channel": "C0OPS", "ts": "2.2", "thread_ts": thread}
        return CallRecord(
            sent=["call-0"], answers={"call-0": Answer(status=200, well=True, failed="", body=body, text="")}
        )

    with pytest.raises(Unsupported, match="was there before the action"):
        undo_steps(plan, answered("1.1"), CATALOG, bench.context("a1").accounts)
    assert undo_steps(plan, answered("2.2"), CATALOG, bench.context("a1").accounts)


def test_new_is_what_no_part_of_the_request_is() -> None:
    assert names_nothing_new({"id": "7"}, {"a": [{"b": 7}]})
    assert names_nothing_new({"id": 7, "force": True}, [{"x": "7"}])
    assert not names_nothing_new({"channel": "C", "ts": "2"}, {"channel": "C"})


def test_pairs_survive_being_written_and_read() -> None:
    pair = from_json({**GOOD, "method": "slack.reactions.add", "when": {"name": "a*"}} | {
        "undo": {**GOOD["undo"], "calls": [{"method": "reactions.remove", "arguments": REMOVE}]},
    }, CATALOG, source="developer")  # fmt: skip
    assert from_json(to_json(pair), CATALOG, source="developer") == pair


def test_a_file_may_hold_several() -> None:
    one = (
        '[[pair]]\nmethod = "slack.pins.add"\n[pair.undo]\ncalls = [{ method = "pins.remove",'
        ' arguments = { channel = "$request.channel", timestamp = "$request.timestamp" } }]\n'
    )
    found = read_file(one + one.replace("[pair.undo]", 'when = { channel = "C*" }\n[pair.undo]'), "p.toml", CATALOG)
    assert [dict(pair.when) for pair in found] == [{}, {"channel": "C*"}]
    with pytest.raises(InvalidInput):
        read_file("pair = []", "p.toml", CATALOG)
