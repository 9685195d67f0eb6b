"""The end of a run whose program has ended: what is waited for, until when, and that nothing leaves any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import Conflict
from runtimes.code import record
from runtimes.code.record import Record, permits_of
from runtimes.code.run import Report, _Watch
from runtimes.gateway.plan import Exchange, SentRequest
from tests.runtimes.code.support import CATALOG, SLACK, context, plan
from tests.runtimes.rest.support import DiskRecords

PERMITS = {
    permit.method_id: (place, permit)
    for place, permit in enumerate(permits_of(plan("", "slack.chat.postMessage", "slack.users.list")))
}
CHANGE, READ = (PERMITS[id][1].rule.id for id in ("slack.chat.postMessage", "slack.users.list"))


def watched(tmp_path: Path, said: list[str]) -> _Watch:
    own = replace(
        context(SLACK, records=DiskRecords(tmp_path)), note=lambda kind, facts: None, progress=said.append
    )  # fmt: skip
    return _Watch({permit.rule.id: (place, permit) for place, permit in PERMITS.values()}, own, Record(), Report(),
                  CATALOG, dry=False)  # fmt: skip


async def leave(watch: _Watch, rule: str, request: str) -> None:
    body = {"channel": "C0OPS", "text": "x"} if rule == CHANGE else None
    sent = SentRequest(rule=rule, slots={}, query=(), body=body, size=2 if body else 0)
    await watch.sending(request, "POST https://slack.com/api/x", sent)


@pytest.mark.promise(57)
async def test_the_answer_to_a_change_is_waited_for_and_kept(tmp_path: Path) -> None:
    said: list[str] = []
    watch = watched(tmp_path, said)
    await leave(watch, CHANGE, "rule-0#1")
    await leave(watch, READ, "rule-1#1")
    end = asyncio.create_task(watch.end(asyncio.get_running_loop().time() + 600))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not end.done() and said[-1] == "The program has ended. Waiting for the answer to slack.chat.postMessage."
    answer = Exchange(request="rule-0#1", status=200, well=True, body={"ok": True, "channel": "C0OPS", "ts": "1.1"})
    await watch.answered(answer)
    await end  # the read is nobody's any more
    kept = record.load(watch.context.records)
    assert kept is not None and kept.done(0)


async def test_a_read_is_not_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    watch = watched(tmp_path, said)
    await leave(watch, READ, "rule-1#1")
    await watch.end(asyncio.get_running_loop().time() + 600)
    assert not any("Waiting" in line for line in said)


async def test_what_is_never_answered_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    watch = watched(tmp_path, [])
    await leave(watch, CHANGE, "rule-0#1")
    await watch.end(asyncio.get_running_loop().time() + 0.05)
    assert [one.number for one in watch.kept.unsettled] == [0]


@pytest.mark.promise(57)
@pytest.mark.parametrize("rule", [CHANGE, READ])
async def test_nothing_leaves_once_the_program_has_ended(tmp_path: Path, rule: str) -> None:
    """What would leave while the gateway is closed would have no answer."""
    watch = watched(tmp_path, [])
    await watch.end(asyncio.get_running_loop().time() + 600)
    with pytest.raises(Conflict, match="has ended"):
        await leave(watch, rule, "rule-0#1")
    assert watch.kept.sent == [] and watch.report.counted == {}
