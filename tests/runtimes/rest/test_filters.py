"""Calls that choose: a filter's one match fills the next call; none, several or too many send nothing more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import Bench, FakeSlack, Hit, calls
from tests.runtimes.rest.test_slack import revert, run, sent

pytestmark = pytest.mark.docker

OPS = "$.channels[?@.name=='ops'].id"


def topic(path: str) -> Any:
    """Find a channel, then change its topic."""
    return calls(
        ("slack.conversations.list", {}),
        ("slack.conversations.setTopic", {"channel": {"$from": 0, "path": path}, "topic": "busy"}),
    )


def listing(slack: FakeSlack, channels: Any) -> None:
    """What the service says when it is asked for its channels."""

    def answer(hit: Hit) -> tuple[int, Any] | None:
        if not hit.path.endswith("conversations.list"):
            return None
        return 200, channels if isinstance(channels, bytes) else {"ok": True, "channels": channels}

    slack.override = answer


THREE = [{"id": "C0GONE", "name": "gone"}, {"id": "C0OPS", "name": "ops"}, {"id": "C0AWAY", "name": "away"}]


async def test_the_one_that_fits_is_used_and_taken_back(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    listing(slack, THREE)

    plan, outcome = await run(runtime, slack_bench, topic(OPS))

    assert outcome.ok, outcome.summary
    assert slack.channels["C0OPS"]["topic"] == {"value": "busy"}
    assert any(f"at {OPS} (exactly one must fit)" in line for line in plan.lines)
    assert (await revert(runtime, slack_bench, plan, "undo", "a2")).ok
    assert slack.channels["C0OPS"]["topic"] == {"value": "calm"}


@pytest.mark.sampled(6)
@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("path", "channels", "said"),
    [
        ("$.channels[?@.name!=''].id", THREE, ["3 values", '"C0GONE"', '"C0OPS"', '"C0AWAY"']),
        ("$.channels[?@.name=='opps'].id", THREE, ["nothing at", '"gone"', '"ops"']),
        (OPS, [{"id": "C0OPS", "name": "ops"}] * 2, ["2 values"]),
        (OPS, [], ["nothing at"]),
        (OPS, [{"id": ["C0OPS"], "name": "ops"}], ["must be text"]),
        (OPS, [{"id": {"$from": 0, "path": "$.x"}, "name": "ops"}], ["must be a string or a number"]),
        (OPS, [{"id": "\x1b[31mC0OPS", "name": "ops"}, {"id": "C0OPS", "name": "ops"}], ["2 values", "u001b"]),
        (OPS, b'{"ok":true,"channels":[' + b"0," * 999_999 + b"0]}", ["1000000 items"]),
    ],
)
async def test_what_isnt_exactly_one_sends_nothing_more(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench, path: str, channels: Any, said: list[str]
) -> None:
    listing(slack, channels)

    _, outcome = await run(runtime, slack_bench, topic(path))

    assert not outcome.ok
    assert not outcome.touched
    told = "\n".join(outcome.details)
    assert all(part in told for part in said), told
    assert "\x1b" not in told
    assert "from the answer to call 1, at $." in outcome.summary or "supplied for channel" in outcome.summary
    assert "C0" not in outcome.summary and '"gone"' not in outcome.summary
    assert "conversations.setTopic" not in sent(slack)


ASKS = """
import json, ssl, sys
sys.path.insert(0, "/goex/bin")
import run_calls
requests = json.load(open("/goex/job/requests.json"))["requests"]
assert "written" not in requests[-1], requests[-1]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations("/goex/job/ca.pem")
def ask(name, target="/", body=None, method="POST"):
    connection = run_calls.Tunnel(requests[0]["origin"], context)
    connection.request(method, target, body, {"X-GoEx-Request": name})
    answer = connection.getresponse()
    said = answer.read().decode()[:200]
    print(json.dumps([answer.status, answer.getheader("x-goex-well"), said]), flush=True)
"""


class Asking:
    """Runs a program of the test's own in the container, which has what the real one has."""

    def __init__(self, sandbox: Any, asks: str) -> None:
        self._sandbox, self._asks, self.output = sandbox, asks, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, job: Any, profile: Any, output: Any = None) -> Any:
        argv = ("/usr/bin/python3", "-I", "-c", ASKS + self._asks)
        result = await self._sandbox.run(replace(job, argv=argv), profile, output)
        self.output = result.stdout + result.stderr
        return result


@pytest.mark.promise(46)
async def test_a_name_asks_for_its_own_request_in_its_turn_and_nothing_else(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    listing(slack, THREE)
    asks = [
        "ask('call-1')",  # not its turn
        "ask('call-0', method='GET', target='/api/chat.delete')",
        "ask('call-0', method='GET', target='/?x=1')",
        "ask('call-0', method='GET')",
        "ask('call-1', body=b'{}')",
        "ask('call-1', target='/api/chat.delete')",
        "ask('call-1', method='GET')",
        "ask('call-2')",
        "ask('pre-1', method='GET')",
        "ask('call-1')",
        "ask('call-1')",  # once
    ]
    runtime = replace(runtime, sandbox=Asking(runtime.sandbox, "\n".join(asks)))

    _, outcome = await run(runtime, slack_bench, topic(OPS))

    output = runtime.sandbox.output  # type: ignore[attr-defined]
    answers = [json.loads(line) for line in output.decode().splitlines()]
    assert [well for _, well, _ in answers].count("1") == 3, answers
    assert len(answers) == len(asks)
    assert outcome.ok, outcome.summary
    assert sent(slack) == ["conversations.list", "conversations.info", "conversations.setTopic"]
