"""Dry runs of calls: what is written out is what the service then gets, and until then it gets nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from policies.actions import ApiCalls, Revert
from runtimes.base import DryRun
from runtimes.rest.runtime import RestRuntime
from tests.runtimes.rest.support import TOKEN, Bench, FakeSlack, Hit, Service, account, calls, serving
from tests.runtimes.rest.test_slack import run

pytestmark = pytest.mark.docker

TEXT = 'Deployed — ünïcode "quotes" & all? \x1b[31m \u202e'


def requests(found: DryRun) -> list[list[str]]:
    """The lines of each request: what comes below its heading; those of undo are left out."""
    made: list[list[str]] = []
    for line in found.lines:
        if line.text.startswith("Undo would send"):
            break
        if line.kind == "change":
            made.append([])
        elif made and line.kind == "same":
            made[-1].append(line.text)
    return made


def as_got(service: Service, hit: Hit) -> list[str]:
    """A request as the service got it, written as a dry run writes it."""
    query = f"?{hit.raw_query}" if hit.raw_query else ""
    body = [] if hit.body is None or hit.method == "GET" else [json.dumps(hit.body, ensure_ascii=False, sort_keys=True)]
    return [f"{hit.method} {service.url.removesuffix('/api')}{hit.path}{query}", *body]


def as_shown(lines: list[str]) -> list[str]:
    """What a dry run wrote, without its headers; the body with its keys in one order."""
    target, *rest = lines
    bodies = [line for line in rest if line.startswith("{")]
    return [target, *(json.dumps(json.loads(unescaped(body)), ensure_ascii=False, sort_keys=True) for body in bodies)]


def unescaped(text: str) -> str:
    return text.replace("\\u{1b}", "\\u001b").replace("\\u{202e}", "\\u202e")


ONE = {"channel": "C0OPS", "text": TEXT}
WHOLE: dict[str, ApiCalls] = {
    "a call": calls(("slack.chat.postMessage", ONE)),
    "reads": calls(("slack.conversations.list", {"limit": 3, "cursor": "a b/&=?é"})),
    "a pre-read": calls(("slack.conversations.setTopic", {"channel": "C0OPS", "topic": "busy & loud"})),
    "several": calls(("slack.chat.postMessage", ONE), ("slack.chat.postMessage", {**ONE, "text": "two"})),
}


@pytest.mark.promise(28)
@pytest.mark.parametrize("what", WHOLE)
async def test_what_is_shown_is_what_the_service_gets(
    what: str, runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    slack.override = lambda hit: (200, {"ok": True, "channels": []}) if "list" in hit.path else None
    context = slack_bench.context("a1", leased=False)
    plan = await runtime.assess(WHOLE[what], context)
    found = await runtime.dry_run(plan, context)
    assert slack.hits == []
    assert slack_bench.notes == [] and slack_bench.records["a1"].writes == 0
    await run(runtime, slack_bench, WHOLE[what])
    assert [as_shown(lines) for lines in requests(found)] == [as_got(slack, hit) for hit in slack.hits]
    assert f"{len(slack.hits)} request" in found.summary


class Yes(Service):
    """Says yes to everything."""

    def handle(self, hit: Hit) -> tuple[int, Any]:
        return 200, {"event_id": "$1"}


async def test_what_stands_in_a_path_is_shown_as_it_is_sent(runtime: RestRuntime, tmp_path: Path) -> None:
    action = calls(("matrix.rooms.send", {"roomId": "!aé&?#:example.org", "body": "hi"}))
    with serving(Yes(), tmp_path) as service:
        bench = Bench(tmp_path / "records", (account("matrix", service.url, ca_pem=service.ca_pem, private=True),))
        context = bench.context("a1", leased=False)
        found = await runtime.dry_run(await runtime.assess(action, context), context)
        assert service.hits == []
        await run(runtime, bench, action)
        assert [as_shown(lines) for lines in requests(found)] == [as_got(service, hit) for hit in service.hits]
        assert service.hits


async def test_a_value_of_an_answer_is_shown_by_where_it_comes_from(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    forged = "← from the answer to call 1, at $.ts"
    action = calls(
        ("slack.chat.postMessage", {**ONE, "text": forged}),
        ("slack.chat.delete", {"channel": "C0OPS", "ts": {"$from": 0, "path": "$.ts"}}),
    )
    context = slack_bench.context("a1", leased=False)
    found = await runtime.dry_run(await runtime.assess(action, context), context)
    post, delete = requests(found)
    assert '"ts":"← from the answer to call 1, at $.ts"' in delete[-1]
    lines = [line.text for line in found.lines]
    notes = lines[: next(n for n, line in enumerate(lines) if line.startswith("Undo would send"))]
    assert notes.count("one value of it comes from the answer to call 1, at $.ts") == 1  # the forged one gets none
    assert forged in post[-1]


async def test_undo_is_written_out_with_it_and_a_revert_by_itself(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    plan, outcome = await run(runtime, slack_bench, WHOLE["a call"])
    found = await runtime.dry_run(plan, slack_bench.context("a2", leased=False))
    assert [line.text for line in found.lines if line.kind == "change"][1:] == [
        "undo 1. compares first: slack.chat.getPermalink as work",
        "undo 2. takes back: slack.chat.delete as work",
        "undo 3. reads back: slack.chat.getPermalink as work",
    ]
    revert = Revert(verb="undo", target="a1")
    sent = len(slack.hits)
    undo = await runtime.assess_revert(revert, plan, slack_bench.context("a1"))
    found = await runtime.dry_revert(revert, undo, plan, slack_bench.context("a1"))
    ts = outcome.results[0]["body"]["ts"]
    assert f"GET {slack.url}/chat.getPermalink?channel=C0OPS&message_ts={quote(ts)}" in requests(found)[0]
    assert len(slack.hits) == sent
    assert len(requests(found)) == 3


async def test_no_secret_and_no_command_of_a_terminal_is_in_it(
    runtime: RestRuntime, slack: FakeSlack, slack_bench: Bench
) -> None:
    context = slack_bench.context("a1")
    found = await runtime.dry_run(await runtime.assess(WHOLE["a call"], context), context)
    everything = "".join(line.text for line in found.lines)
    assert TOKEN not in everything
    assert "\x1b" not in everything and "\u202e" not in everything
    assert "Authorization: Bearer ‹the credential slack/work›" in requests(found)[0]
