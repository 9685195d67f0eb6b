"""Requests that were seen are reversed newest first, as an action's own calls are; what can't be is said."""

from __future__ import annotations

from pathlib import Path

from mapper.catalog import Catalog
from policies.typed_json import to_json
from runtimes.gateway.plan import Ref
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import refs_in
from runtimes.rest.undo import Seen, reversal, undo_steps
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.support import Bench, account, calls
from tests.runtimes.rest.test_derived import Kept, made_catalog

SLACK = account("slack", "https://slack.com/api")
CATALOG = Catalog.bundled()


def well(**body: object) -> Answer:
    return Answer(status=200, well=True, failed="", body={"ok": True, **body}, text="")


def seen(number: int, method: str, arguments: dict[str, object], answer: Answer, before: Answer | None = None) -> Seen:
    return Seen(
        number=number, service="slack", method=method, account=SLACK, arguments=arguments, answer=answer, before=before
    )


TOPIC = {"channel": "C0OPS", "topic": "new"}
POSTED = {"channel": "C0OPS", "text": "x"}


def test_it_is_what_an_actions_own_undo_sends(tmp_path: Path) -> None:
    """The control: the same calls as an action, with the same answers."""
    before, topic = well(channel={"topic": {"value": "old"}}), well(channel={"topic": {"value": "new"}})
    posted = well(channel="C0OPS", ts="1.1")
    bench = Bench(tmp_path, (SLACK,))
    action = calls(("slack.conversations.setTopic", dict(TOPIC)), ("slack.chat.postMessage", dict(POSTED)))
    plan = assess_calls(action, bench.context("a1"), CATALOG, Profile(), "sha256:x")
    call_record = CallRecord(sent=["call-0", "call-1"], answers={"pre-0": before, "call-0": topic, "call-1": posted})
    own = undo_steps(plan, call_record, CATALOG, bench.context("a1").accounts)
    made = reversal(
        [
            seen(0, "conversations.setTopic", dict(TOPIC), topic, before),
            seen(1, "chat.postMessage", dict(POSTED), posted),
        ],
        CATALOG,
        action_id="a1",
    )
    assert made.stuck == {}
    assert [to_json(step) for step in made.steps] == [to_json(step) for step in own]
    assert [step.method for step in made.steps if step.role == "undo"] == ["chat.delete", "conversations.setTopic"]


def test_what_cant_be_reversed_is_said_and_reads_are_left_out() -> None:
    made = reversal(
        [
            seen(0, "users.list", {}, well()),
            seen(1, "chat.delete", {"channel": "C0OPS", "ts": "1.1"}, well()),
            seen(2, "conversations.setTopic", dict(TOPIC), well(channel={"topic": {"value": "new"}})),  # nothing read
            seen(3, "chat.postMessage", dict(POSTED), well()),  # its answer doesn't say which
        ],
        CATALOG,
        action_id="a1",
    )
    assert made.steps == () and made.undos == ()
    assert set(made.stuck) == {1, 2, 3}
    assert "gives another one" in made.stuck[1]


def test_a_derived_one_keeps_what_only_the_undo_will_be_answered(tmp_path: Path) -> None:
    catalog = made_catalog(tmp_path)
    method = next(method for method in catalog.methods() if method.origin_id == "DELETE /notes/{id}")
    note = {"id": "n1", "title": "one", "text": "first", "archived": False}
    one = Seen(
        number=0,
        service="notes",
        method=method.name,
        account=account("notes", "https://notes.example.org"),
        arguments={"id": "n1"},
        answer=Answer(status=204, well=True, failed="", body=None, text=""),
        before=Answer(status=200, well=True, failed="", body=note, text=""),
    )
    made = reversal([one], catalog, Kept(), action_id="a1")
    guard, undo, verify = made.steps
    assert (guard.request.method, undo.request.method, undo.request.body) == (
        "GET", "POST", {"title": "one", "text": "first"},
    )  # fmt: skip
    assert refs_in(verify.arguments) == (Ref("undo-0-0", "$.id"),)
    assert [each.source for each in made.undos] == ["derived"]
