"""What is read first and what is done with it: two decisions, the second one about the values; choices and each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.grant_scene import Scene, Service, answer_to, call, read_and_post, scene, several
from tests.support.journey import Journey, decide, undo

pytestmark = pytest.mark.docker

OPS = "$.channels[?@.name=='ops'].id"


class Channels(Service):
    """As the scene's service, with channels of the test's own."""

    channels: Any = ()

    def answer(self, verb: str, path: str, given: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("conversations.list"):
            return {"ok": True, "channels": self.channels}
        return super().answer(verb, path, given)


@pytest.fixture(scope="module")
def module_scene(sandbox_image: str) -> Iterator[Scene]:
    with scene() as made:
        made.service.__class__ = Channels
        yield made


@pytest.fixture
def shop(module_scene: Scene) -> Scene:
    module_scene.new_agent()
    return module_scene


def listing(shop: Scene, *names: str) -> None:
    shop.service.channels = [{"id": f"C00000000{place}", "name": name} for place, name in enumerate(names)]  # type: ignore[attr-defined]


def post(path: str = OPS, text: str = "hi", **more: Any) -> pb.ExecuteRequest:
    return several(
        call("slack.conversations.list"),
        call("slack.chat.postMessage", channel=answer_to(0, path), text=text),
        **more,
    )


def to_each(path: str, most: int = 5, **more: Any) -> pb.ExecuteRequest:
    each = {"$each": 0, "path": path, "most": most}
    return several(call("slack.conversations.list"), call("slack.chat.postMessage", channel=each, text="bye"), **more)


def questions(journey: Journey) -> Iterator[pb.Approval | pb.Event]:
    """What comes, as far as it matters here: questions, a mapping that asks, and the end."""
    for event in journey._events:
        if event.WhichOneof("what") == "asking":
            yield event.asking
        elif event.WhichOneof("what") in ("mapped", "finished"):
            yield event


def sent(shop: Scene) -> list[str]:
    return [path.rsplit("/", 1)[-1] for _, path, _ in shop.service.got]


def posted_to(shop: Scene) -> list[str]:
    return [given["channel"] for _, path, given in shop.service.got if path.endswith("chat.postMessage")]


@pytest.mark.promise(6)
def test_the_reads_are_decided_first_and_the_write_with_its_values(shop: Scene) -> None:
    journey = shop.ask(read_and_post("C0LUNCH"))
    coming = questions(journey)
    first = next(coming)
    assert [need.methods[0] for need in first.needs] == ["conversations.history"] and not first.presence
    assert shop.service.got == []
    decide(shop.daemon, first)
    second = next(coming)
    assert second.action_id != first.action_id and second.digest != first.digest
    sent_lines = [line for line in second.lines if "undo" not in line and "answer to call" not in line]
    assert "pizza at noon" in " ".join(sent_lines)
    assert list(second.widths) == ["once"] and second.presence
    assert "came from an answer" in second.reason
    assert sent(shop) == ["conversations.history"]
    decide(shop.daemon, second)
    finished = next(coming).finished
    assert finished.action.state == "done" and shop.service.posted() == ["pizza at noon"]
    results = json.loads(finished.action.outcome_json)["results"]
    assert [sorted(result["body"]) for result in results] == [["messages", "ok"], ["channel", "ok", "ts"]]


@pytest.mark.sampled(1)
@pytest.mark.promise(6)
@pytest.mark.parametrize("width", ["permanent", "arguments", "session"])
def test_no_grant_that_was_there_covers_what_an_answer_filled(shop: Scene, width: str) -> None:
    shop.allow(several(call("slack.chat.postMessage", channel="C0ALL", text="hello")), width)
    shop.allow(several(call("slack.conversations.history", channel="C0BOARD", limit=1)), width)
    assert not shop.unasked(read_and_post("C0BOARD"))
    assert sent(shop).count("conversations.history") == 2 and shop.service.posted() == ["hello"]


def test_a_no_to_the_write_sends_no_write(shop: Scene) -> None:
    journey = shop.ask(read_and_post("C0LUNCH"))
    coming = questions(journey)
    decide(shop.daemon, next(coming))
    decide(shop.daemon, next(coming), approve=False)
    assert next(coming).finished.action.state == "denied" and sent(shop) == ["conversations.history"]


def test_a_no_to_the_reads_ends_it(shop: Scene) -> None:
    journey = shop.ask(read_and_post("C0LUNCH"))
    coming = questions(journey)
    decide(shop.daemon, next(coming), approve=False)
    finished = next(coming).finished
    assert finished.problem.code == "denied" and shop.service.got == []


def test_whoever_leaves_withdraws_the_reads_too(shop: Scene) -> None:
    journey = shop.ask(read_and_post("C0LUNCH"))
    question = next(questions(journey))
    whole = shop.daemon.actions("List", pb.ListRequest(limit=2), token=shop.token).actions
    assert {view.state for view in whole} == {"asking", "received"}
    (first,) = [view.id for view in whole if view.state == "received"]
    shop.daemon.actions("Cancel", pb.ActionId(id=first), token=shop.token)
    assert next(questions(journey)).finished.problem.code == "withdrawn"
    assert shop.approval(question.id).state == "withdrawn" and shop.service.got == []


@pytest.mark.sampled(1)
@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("names", "path", "offered"),
    [
        (("ops", "ops"), OPS, ["name: ops, id: C000000000", "name: ops, id: C000000001"]),
        (("sales", "help"), OPS, ["name: sales, id: C000000000", "name: help, id: C000000001"]),
        (("ops\x1b[31m", "ops\u202e"), "$.channels[?@.name!=''].id", None),
    ],
)
def test_none_or_several_is_a_question_whose_answer_is_asked_for(
    shop: Scene, names: tuple[str, ...], path: str, offered: list[str] | None
) -> None:
    listing(shop, *names)
    shop.allow(several(call("slack.conversations.list")), "permanent")
    coming = questions(shop.ask(post(path)))
    asked = next(coming).mapped.clarification
    answers = [option.answer for option in asked.options]
    assert offered is None or answers == offered
    assert all(text.isprintable() and len(text) <= 130 for text in answers) and len(answers) == 2
    assert next(coming).finished.problem.code == "ambiguous" and "chat.postMessage" not in sent(shop)

    with pytest.raises(Exception, match="isn't one of the choices"):
        failed = shop.ask(post(path, answer="C0BOARD")).finished()
        raise AssertionError(failed.problem.message)
    coming = questions(shop.ask(post(path, answer=answers[1])))
    question = next(coming)
    assert any("C000000001" in line for line in question.lines) and list(question.widths) == ["once"]
    decide(shop.daemon, question)
    assert next(coming).finished.action.state == "done" and posted_to(shop) == ["C000000001"]


def test_an_answer_holds_for_its_asker_and_its_request_alone(shop: Scene) -> None:
    listing(shop, "ops", "ops")
    shop.allow(several(call("slack.conversations.list")), "permanent")
    answer = next(questions(shop.ask(post()))).mapped.clarification.options[0].answer
    other = shop.ask(post(text="another", answer=answer))
    assert next(questions(other)).mapped.clarification.options  # asked anew: it was no answer to this
    token = shop.daemon.add_agent(f"{shop.agent}-other")
    journey = Journey(shop.daemon, post(answer=answer), token=token)
    stranger = next(questions(journey))
    assert [need.methods[0] for need in stranger.needs] == ["conversations.list"]  # its reads begin anew
    decide(shop.daemon, stranger, approve=False)
    assert "chat.postMessage" not in sent(shop)


def test_each_is_asked_for_with_every_item_and_each_is_taken_back(shop: Scene) -> None:
    listing(shop, "a.bak", "b", "c.bak")
    shop.allow(several(call("slack.conversations.list")), "permanent")
    coming = questions(shop.ask(to_each("$.channels[?match(@.name,'.*[.]bak')].id")))
    question = next(coming)
    assert [line for line in question.lines if line.startswith(("1. slack", "2. slack", "3. slack"))][2:] == []
    assert any("C000000000" in line for line in question.lines) and any("C000000002" in line for line in question.lines)
    assert not any("C000000001" in line for line in question.lines)
    decide(shop.daemon, question)
    finished = next(coming).finished
    assert finished.action.state == "done" and posted_to(shop) == ["C000000000", "C000000002"]
    taken_back = shop.ask(undo(finished.action.id)).approve()
    assert taken_back.action.state == "done"
    assert len(shop.service.deleted) == 2


@pytest.mark.sampled(2)
@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("channels", "path", "most", "said"),
    [
        (3, "$.channels[*].id", 2, "3 items fit"),
        (0, "$.channels[*].id", 2, "nothing at"),
        (3, "$.channels[?@.name=='x'].id", 2, "nothing at"),
        (60, "$.channels[*].id", 50, "60 items fit"),
        (25_000, "$.channels[?@.name!=''].id", 50, "25000 items"),
    ],
)
def test_each_over_none_or_too_many_sends_nothing_more(
    shop: Scene, channels: int, path: str, most: int, said: str
) -> None:
    listing(shop, *(f"c{place}" for place in range(channels)))
    shop.allow(several(call("slack.conversations.list")), "permanent")
    finished = shop.ask(to_each(path, most)).finished()
    assert said in finished.problem.message and "chat.postMessage" not in sent(shop)


def test_each_over_what_isnt_read_first_is_refused(shop: Scene) -> None:
    each = {"$each": 0, "path": "$.x[*].id", "most": 2}
    request = several(
        call("slack.chat.postMessage", channel="C0", text="a"), call("slack.chat.postMessage", channel=each, text="b")
    )
    finished = shop.ask(request).finished()
    assert "isn't read first" in finished.problem.message and shop.service.got == []


@pytest.mark.promise(46)
def test_what_reads_as_a_reference_fills_nothing(shop: Scene) -> None:
    shop.service.channels = [{"id": {"$from": 0, "path": "$.x"}, "name": "ops"}]  # type: ignore[attr-defined]
    shop.allow(several(call("slack.conversations.list")), "permanent")
    finished = shop.ask(post()).finished()
    assert "reads as a reference" in finished.problem.message and "chat.postMessage" not in sent(shop)


def test_the_question_comes_to_the_terminal(shop: Scene) -> None:
    listing(shop, "ops", "ops")
    arguments = ("--account", "work", "--call", "slack.conversations.list", "--call", "slack.chat.postMessage")
    with shop.daemon.terminal("exec", *arguments, f"channel=@0.{OPS}", "text=hi") as terminal:
        terminal.expect(r"y once .*\[no\]: ")
        terminal.type("y")
        terminal.expect("Which one is meant")
        terminal.expect(r"Your answer \(1-2, or words\) \[none\]: ")
        terminal.type("2")
        terminal.expect("C000000001")
        terminal.expect(r"y once .*\[no\]: ")
        terminal.type()
        assert terminal.wait() != 0
    assert "chat.postMessage" not in sent(shop)
