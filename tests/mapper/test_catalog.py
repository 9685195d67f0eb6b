"""The catalog: names, validation of calls, and template references."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mapper import catalog as catalog_module
from mapper import validation
from mapper.catalog import Catalog, UnknownName, tool_name
from mapper.templates import Literal, Reference, complete, expectations, fill, parse, references, substitute
from mapper.validation import InvalidArguments, is_reference
from policies.actions import Call
from policies.errors import InvalidInput
from policies.jsonvalue import MissingValue

CATALOG = Catalog.bundled()


def call(method_id: str, **arguments: Any) -> Call:
    service, _, name = method_id.partition(".")
    return Call(service=service, method=name, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("slack.chat.postMesage", "Did you mean slack.chat.postMessage"),
        ("slack.chat.POSTMESSAGE", "Did you mean slack.chat.postMessage"),
        ("slak.chat.postMessage", "Did you mean slack"),
        ("github.issue.close", "github.issues.close"),
        ("nothing.at.all", "There are:"),
        ("chat.postMessage", ""),
        ("", ""),
        ("slack", "full name"),
        ("x" * 100_000, ""),
        ("slack.chat.postMessage ", "Did you mean"),
        ("slack.chat.postMessage\x1b[31m", ""),
    ],
)
def test_unknown_methods(name: str, hint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        CATALOG.method(name)
    assert hint in str(caught.value) and len(str(caught.value)) < 1500


def test_unknown_services_and_scopes() -> None:
    with pytest.raises(UnknownName, match="Did you mean matrix"):
        CATALOG.service("matrx")
    with pytest.raises(UnknownName, match="Did you mean chat:write"):
        CATALOG.unlocks("slack", "chat:wite")


def test_unlocks() -> None:
    assert CATALOG.unlocks("matrix", "messages.write") == {"rooms.send"}
    assert {"chat.postMessage", "chat.delete", "chat.update"} <= CATALOG.unlocks("slack", "chat:write")


def test_two_services_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="called 'slack'"):
        Catalog.of([CATALOG.service("slack"), CATALOG.service("slack")])


def test_tool_names() -> None:
    names = [tool_name(method.id) for method in CATALOG.methods()]
    assert len(set(names)) == len(names) and all(len(name) <= 64 for name in names)
    long = tool_name("service." + "very.long.name" * 20)
    assert len(long) == 64 and long != tool_name("service." + "very.long.name" * 20 + "x")
    assert all(CATALOG.by_tool_name(tool_name(method.id)) is method for method in CATALOG.methods())
    assert CATALOG.by_tool_name("nope") is None


# ---- validation ----

BAD: list[tuple[Call, str]] = [
    (call("slack.chat.postMessage", channel="#ops"), '"text" must be given'),
    (call("slack.chat.postMessage"), '"channel", "text" must be given'),
    (call("slack.chat.postMessage", channel="#ops", text=3), '"text" must be text, but is the number 3'),
    (call("slack.chat.postMessage", channel="#ops", text=None), '"text" must be text, but is null'),
    (call("slack.chat.postMessage", channel="#ops", text=["a"]), "but is a list"),
    (call("slack.chat.postMessage", channel="#ops", text=""), "a length of at least 1"),
    (call("slack.chat.postMessage", channel="#ops", text="x" * 40_001), "at most 40000, but has 40001"),
    (call("slack.chat.postMessage", channel="#ops", text="hi", as_user=True), '"as_user" isn\'t an argument'),
    (call("slack.chat.postMessage", channel="# ops", text="hi"), '"channel" has the wrong form'),
    (call("slack.conversations.list", limit="5"), '"limit" must be a whole number, but is the text'),
    (call("slack.conversations.list", limit=0), '"limit" must be at least 1'),
    (call("slack.conversations.list", limit=1.5), '"limit" must be a whole number'),
    (call("slack.conversations.list", limit=True), '"limit" must be a whole number, but is true'),
    (call("github.issues.list", owner="a", repo="b", state="opened"), 'one of "open", "closed", "all"'),
    (call("github.issues.get", owner="a/b", repo="b", issue_number=1), '"owner" has the wrong form'),
    (call("github.issues.get", owner="a", repo="..", issue_number=1), '"repo" has the wrong form'),
    (call("github.issues.get", owner="a", repo="b", issue_number=-1), "at least 1"),
    (call("github.issues.addLabels", owner="a", repo="b", issue_number=1, labels=[1]), '"labels[0]" must be text'),
    (call("github.issues.addLabels", owner="a", repo="b", issue_number=1, labels=[]), "at least 1"),
    (call("matrix.rooms.send", roomId="abc", body="x"), '"roomId" has the wrong form'),
    (call("matrix.rooms.send", roomId="!a:b", body="x", txnId="1"), '"txnId" isn\'t an argument'),
    (call("matrix.rooms.send", roomId="!a:b", body="x", msgtype="m.bad"), '"msgtype" isn\'t an argument'),
    (call("matrix.rooms.send", roomId="!a:b", body="a\0b"), "NUL"),
    (call("matrix.rooms.send", roomId="!a:b", body="\ud800"), "half a character"),
    (call("matrix.rooms.send", roomId="!a:b", body=float("nan")), "JSON"),
    (call("matrix.rooms.send", roomId="!a:b", body={"$from": 0}), "must be text"),
    (call("matrix.rooms.send", roomId="!a:b", body={"$from": -1, "path": "$.a"}), "must be text"),
    (call("matrix.rooms.send", roomId="!a:b", body={"$from": True, "path": "$.a"}), "must be text"),
    (call("matrix.rooms.send", roomId="!a:b", body={"$from": 0, "path": "a"}), "must be text"),
    (call("matrix.rooms.send", roomId="!a:b", body={"$from": 0, "path": "$.a", "x": 1}), "must be text"),
    (call("matrix.rooms.send", roomId="!a:b", body=b"x"), "JSON"),
    (call("matrix.rooms.send", roomId="!a:b", body="x" * 300_000), "bytes long"),
    (Call(service="slack", method="users.list", arguments=[]), "must be an object"),  # type: ignore[arg-type]
    (Call(service="slack", method="users.list", arguments={}, account="a\nb"), "account"),
    (Call(service="slack", method="users.list", arguments={}, account="a" * 101), "account"),
]


def checked(wanted: dict[str, Any], value: Any) -> None:
    """Check one argument by a schema. Raises InvalidArguments."""
    shape = {"type": "object", "properties": {"a": wanted}, "required": [], "additionalProperties": False}
    method = replace(CATALOG.method("slack.conversations.list"), parameters=shape, defaults={})
    validation.check(method, {"a": value}, validation.checker(method))


@pytest.mark.parametrize("value", [1, 1.0, "1", True, None, [1], {"a": [1.0, False]}, 0, -0.0, 2**63, [[]], "", []])
def test_what_is_a_choice_and_what_is_twice_is_as_in_json_schema(value: Any) -> None:
    choices: tuple[Any, ...] = (1, "1", True, [1.0], {"a": [1, False]}, 0.0, False, float(2**63), [[]], {}, "list")
    for choice in choices:
        enum, unique = {"enum": [choice]}, {"uniqueItems": True}
        for wanted, held in ((enum, value), (unique, [choice, value])):
            if Draft202012Validator(wanted).is_valid(held):
                checked(wanted, held)
            else:
                with pytest.raises(InvalidArguments):
                    checked(wanted, held)


def calls_to_check(kind: str, count: int) -> int:
    """The calls of functions, Python's and C's, that checking a list of `count` different objects takes."""
    items = {"enum": [{"n": n} for n in range(count)]} if kind == "enum" else {}
    wanted = {"type": "array", "items": items, "uniqueItems": kind == "uniqueItems"}
    shape = {"type": "object", "properties": {"a": wanted}, "required": [], "additionalProperties": False}
    method = replace(CATALOG.method("slack.conversations.list"), parameters=shape, defaults={})
    validator, made = validation.checker(method), 0
    with pytest.raises(InvalidArguments):
        validation.check(method, {"a": [{"n": -1}, {"n": -1}]}, validator)  # both kinds are looked at

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        validation.check(method, {"a": [{"n": n} for n in range(count)]}, validator)
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.promise(16)
@pytest.mark.parametrize("kind", ["uniqueItems", "enum"])
def test_a_long_list_costs_no_more_steps_for_each_item_than_a_short_one(kind: str) -> None:
    """One agent's call would stop the daemon for minutes."""
    assert calls_to_check(kind, 1000) < 11 * calls_to_check(kind, 100)


@pytest.mark.promise(16)
def test_of_a_list_full_of_errors_few_are_made() -> None:
    """Each takes memory, and one is told."""
    labels, made = [1] * 1000, 0

    class Counted(Iterator[Any]):
        def __init__(self, errors: Iterator[Any]) -> None:
            self._errors = errors

        def __next__(self) -> Any:
            nonlocal made
            made += 1
            return next(self._errors)

    method = CATALOG.method("github.issues.addLabels")
    arguments = {"owner": "a", "repo": "b", "issue_number": 1, "labels": labels}
    own = validation.checker(method)
    counting: Any = SimpleNamespace(iter_errors=lambda whole: Counted(own.iter_errors(whole)))
    with pytest.raises(InvalidArguments, match="labels"):
        validation.check(method, arguments, counting)
    assert made <= len(labels) // 2


def steps_of(wanted: dict[str, Any], value: Any) -> int:
    """The calls of functions that it takes to refuse a value by a schema."""
    shape = {"type": "object", "properties": {"a": wanted}, "required": [], "additionalProperties": False}
    method = replace(CATALOG.method("slack.conversations.list"), parameters=shape, defaults={})
    validator, made = validation.checker(method), 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        with pytest.raises(InvalidArguments):
            validation.check(method, {"a": value}, validator)
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.promise(16)
def test_of_each_choice_one_error_is_made() -> None:
    """A list of 100,000 items would have one for each, and for each choice, and fill the daemon's memory."""
    wanted = {"anyOf": [{"type": "array", "items": {"type": "string"}}] * 4}
    assert steps_of(wanted, [1] * 1000) - steps_of(wanted, [1] * 100) < 900 * 20


@pytest.mark.promise(16)
def test_choices_count_by_what_they_look_at() -> None:
    items, others = [1] * 10_000, [{"type": "integer"}] * 60
    checked({"anyOf": [{"type": "array"}, *others]}, items)
    with pytest.raises(InvalidArguments, match="too intricate"):
        checked({"anyOf": others}, items)
    with pytest.raises(InvalidArguments, match="too intricate"):
        checked({"anyOf": [{"pattern": "y"}] * 60}, "x" * 40_000)


def test_a_page_of_blocks_of_many_kinds_is_taken() -> None:
    """Each is told from the others by its kind, and long texts cost nothing where no pattern reads them."""
    link = {"anyOf": [{"type": "object", "properties": {"url": {"type": "string"}}}, {"type": "null"}]}
    rich = {"anyOf": [{"properties": {"type": {"const": kind}, "text": {"properties": {"content": {"type": "string"},
            "link": link}}}} for kind in ("equation", "mention", "text")]}  # fmt: skip
    blocks = [
        {"properties": {"type": {"const": f"kind{n}"}, f"kind{n}": {"properties": {"rich_text": {"items": rich}}}}}
        for n in range(29)
    ]
    text = {"type": "text", "text": {"content": "words, and more " * 110, "link": None}}
    page = [{"type": "kind28", "kind28": {"rich_text": [text]}}] * 100
    checked({"type": "array", "items": {"anyOf": blocks}}, page)


@pytest.mark.promise(16)
@pytest.mark.parametrize("whole", [{"$from": 0, "path": "$.x"}, {"$each": 0, "path": "$.x[*]", "most": 2}])
def test_an_answers_value_stands_for_no_arguments_as_a_whole(whole: dict[str, Any]) -> None:
    shape = {"type": "object", "properties": {}, "required": [], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    method = replace(CATALOG.method("slack.conversations.list"), parameters=shape, defaults={})
    with pytest.raises(InvalidArguments, match="stand for all arguments"):
        validation.check(method, whole, validation.checker(method))


def test_a_value_of_an_earlier_answer_may_stand_within_a_choice() -> None:
    held = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
    wanted = {"anyOf": [held, {"type": "null"}]}
    checked(wanted, {"id": {"$from": 0, "path": "$.id"}})
    with pytest.raises(InvalidArguments):
        checked(wanted, {"id": {"$from": 0, "path": "$.id"}, "other": 1})


@pytest.mark.promise(16)
def test_an_unknown_name_is_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document's author chooses its names, and comparing 100,000 long ones would stop the daemon for minutes."""
    compared: list[int] = []
    own = difflib.get_close_matches

    def counted(word: str, names: Any, **how: Any) -> list[str]:
        compared.append(len(names))
        return own(word, names, **how)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    names = [f"plant.{kind}{number}.list{'s' * 40}" for kind in ("a", "Tree", "z") for number in range(400)]
    error = catalog_module._unknown("There is none.", f"plant.TREE123.lst{'s' * 40}", names)
    assert "Did you mean plant.Tree123.list" in error.next_step and compared[0] <= 300


def test_a_name_without_its_first_letter_is_found_among_hundreds() -> None:
    names = ["issues.list", *(f"{kind}.part{number}" for kind in ("actions", "repos") for number in range(400))]
    assert "Did you mean issues.list?" in catalog_module._unknown("There is none.", "ssues.list", names).next_step


@pytest.mark.parametrize(("bad", "says"), BAD)
def test_arguments_that_do_not_fit(bad: Call, says: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        CATALOG.validate(bad)
    assert says in str(caught.value) and bad.id in str(caught.value) and len(str(caught.value)) < 1200


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (call("slack.conversations.archive", channel="ops"), "Find it: slack.conversations.list."),
        (call("matrix.rooms.send", roomId="ops", body="x"), "Find it: matrix.rooms.list."),
        (call("github.issues.get", owner="a/b", repo="b", issue_number=1), ""),  # whose issues these are, no list says
        (call("github.issues.get", owner="a", repo="b", issue_number="x"), ""),  # no form, another type
    ],
)
def test_an_id_that_isnt_one_is_found_by_the_list_of_its_things(bad: Call, found: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        CATALOG.validate(bad)
    assert caught.value.next_step.partition("Find it")[1:] == tuple(found.partition("Find it")[1:])


@pytest.mark.parametrize(("value", "said"), [("5", "limit:=5."), ("five", "limit:='…'."), ("$(x)", "limit:='…'.")])
def test_text_where_json_is_wanted_says_how_a_terminal_writes_it(value: str, said: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        CATALOG.validate(call("slack.conversations.list", limit=value))
    assert caught.value.next_step.endswith(said)


def test_deep_arguments_are_refused() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidArguments):
        CATALOG.validate(call("matrix.rooms.send", roomId="!a:b", body=deep))


def test_plain_defaults_are_shown_and_templates_are_not() -> None:
    closed = CATALOG.validate(call("github.issues.close", owner="a", repo="b", issue_number=1))
    assert closed.arguments["state_reason"] == "completed" and "state" not in closed.arguments
    assert CATALOG.validate(closed) == closed
    sent = CATALOG.validate(call("matrix.rooms.send", roomId="!a:b", body="$request.x"))
    assert sent.arguments == {"roomId": "!a:b", "body": "$request.x"}


def test_references_stand_in_place_of_a_value() -> None:
    reference = {"$from": 0, "path": "$.room_id"}
    calls = CATALOG.validate_all(
        [call("matrix.rooms.resolve", alias="#a:b.c"), call("matrix.rooms.send", roomId=reference, body="hi")]
    )
    assert calls[1].arguments["roomId"] == reference
    labels = call(
        "github.issues.addLabels",
        owner="a",
        repo="b",
        issue_number={"$from": 0, "path": "$.n"},
        labels=["x", reference],
    )
    assert CATALOG.validate(labels).arguments["labels"] == ["x", reference]


@pytest.mark.parametrize("index", [1, 2, 19])
def test_references_only_look_back(index: int) -> None:
    later = {"$from": index, "path": "$.room_id"}
    with pytest.raises(InvalidArguments, match="can't take"):
        CATALOG.validate_all(
            [call("matrix.rooms.resolve", alias="#a:b.c"), call("matrix.rooms.send", roomId=later, body="hi")]
        )


def test_how_many_calls() -> None:
    one = call("slack.users.list")
    assert len(CATALOG.validate_all([one] * 20)) == 20
    for calls in ([], [one] * 21):
        with pytest.raises(InvalidArguments, match="1 to 20"):
            CATALOG.validate_all(calls)


def test_is_reference() -> None:
    assert is_reference({"$from": 0, "path": "$"}) and not is_reference({"$from": 20, "path": "$"})
    assert not is_reference({"$from": 0, "path": 3}) and not is_reference({"$from": 0, "path": '$["\\q"]'})
    assert not is_reference([0, "$"])


# ---- templates ----


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("plain", Literal("plain")),
        (3, Literal(3)),
        (None, Literal(None)),
        ("$$5", Literal("$5")),
        ("$$request.x", Literal("$request.x")),
        ("$request.text", Reference("request", "$.text")),
        ("$response.a.b[0]", Reference("response", "$.a.b[0]")),
        ('$pre.a["m.x"]', Reference("pre", '$.a["m.x"]')),
        ("$action.key", Reference("action", "$.key")),
    ],
)
def test_parsing_references(written: Any, meant: Any) -> None:
    assert parse(written) == meant
    if isinstance(meant, Reference):
        assert str(meant) == written


NOT_REFERENCES = ["$", "$x", "$request", "$request.", "$response..a", "$action.id", "$action.key.x", "$pre.a["]


@pytest.mark.parametrize("written", [*NOT_REFERENCES, '$pre.["\\q"]', "$Request.x"])
def test_what_only_begins_like_a_reference(written: str) -> None:
    with pytest.raises(InvalidInput):
        parse(written)


def test_filling() -> None:
    template = {"a": "$request.x", "b": ["$$", {"c": "$response.y[1]"}], "d": "$action.key", "e": 1}
    sources = {"request": {"x": {"deep": True}}, "response": {"y": [0, "two"]}, "action": {"key": "k"}}
    assert fill(template, sources) == {"a": {"deep": True}, "b": ["$", {"c": "two"}], "d": "k", "e": 1}
    with pytest.raises(MissingValue):
        fill({"a": "$request.nothing"}, sources)
    with pytest.raises(InvalidInput, match="no pre here"):
        fill({"a": "$pre.x"}, sources)
    assert [str(reference) for reference in references(template)] == ["$request.x", "$response.y[1]", "$action.key"]
    assert substitute(template, lambda reference: str(reference).upper())["a"] == "$REQUEST.X"


@given(st.text(max_size=20))
def test_filled_values_are_never_parsed_again(text: str) -> None:
    assert fill({"a": "$request.x"}, {"request": {"x": text}}) == {"a": text}


def test_completing_a_call() -> None:
    send = CATALOG.method("matrix.rooms.send")
    whole = complete(send, {"roomId": "!a:b", "body": "$action.key"}, "k1")
    assert whole == {"roomId": "!a:b", "body": "$action.key", "msgtype": "m.text", "txnId": "k1"}


def test_expectations() -> None:
    slack = CATALOG.service("slack")
    assert expectations(slack) == slack.success
    undo = CATALOG.method("slack.chat.postMessage").undo
    assert undo is not None and undo.guard is not None and undo.verify is not None
    assert expectations(slack, undo.guard) == (*undo.guard.expect, *slack.success)
    assert expectations(slack, undo.verify) == undo.verify.expect  # it speaks about $.ok itself
    check = CATALOG.method("github.stars.add").undo
    assert check is not None and check.verify is not None
    assert expectations(slack, check.verify) == check.verify.expect  # a status is the verdict


def test_a_pattern_takes_no_line_end_behind_it() -> None:
    with pytest.raises(InvalidInput, match="wrong form"):
        Catalog.bundled().validate(Call(service="slack", method="pins.list", arguments={"channel": "C0123\n"}))
