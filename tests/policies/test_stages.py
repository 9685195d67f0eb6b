"""Calls in stages: what is read first, and what an answer can and can't make of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from policies.actions import ApiCalls, Call
from policies.errors import InvalidInput
from policies.stages import MOST_EACH, Unclear, at_once, first_stage, with_earlier, with_values


def read(**arguments: Any) -> Call:
    return Call(service="files", method="list", arguments=arguments)


def write(**arguments: Any) -> Call:
    return Call(service="files", method="delete", arguments=arguments)


def ref(number: int, path: str) -> dict[str, Any]:
    return {"$from": number, "path": path}


def each(path: str = "$[*].id", number: int = 0, most: Any = MOST_EACH) -> dict[str, Any]:
    return {"$each": number, "path": path, "most": most}


def lead(*calls: Call) -> int:
    return first_stage(calls, lambda call: call.method == "list")


def made(answer: Any, *calls: Call, picks: Any = None) -> list[dict[str, Any]]:
    return [dict(call.arguments) for call in with_values((read(), *calls), 1, [answer], picks or {})]


ITEMS = [{"id": str(number), "name": name} for number, name in enumerate("aab")]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((read(), write(id=ref(0, "$.id"))), 1),
        ((read(), read(q=ref(0, "$.id")), write(id=ref(1, "$.id"))), 2),
        ((read(), write(id="1")), 0),  # nothing rests on what is read
        ((write(id="1"), read(), write(id=ref(1, "$.id"))), 0),  # what changes something stands first
        ((write(id="1"), write(id=ref(0, "$.id"))), 0),
        ((read(), write(id=each())), 1),
    ],
)
def test_what_reads_and_stands_first_is_a_stage(calls: tuple[Call, ...], expected: int) -> None:
    assert lead(*calls) == expected


@pytest.mark.parametrize(
    "calls",
    [
        (write(id="1"), write(id=each())),
        (read(), write(id=each(number=1))),
        (read(), write(id=each()), write(id=ref(1, "$.id"))),
        (read(), write(id=each(most=0))),
        (read(), write(id=each(most=MOST_EACH + 1))),
        (read(), write(id=each(most=True))),
        (read(), write(id=each(path="$.id"))),
        (read(), write(id={"$each": 0, "path": "$[*].id"})),
        (read(), write(id={**each(), "method": "files.share"})),
    ],
)
def test_an_each_that_cant_be_is_refused(calls: tuple[Call, ...]) -> None:
    with pytest.raises(InvalidInput):
        lead(*calls)


def test_what_came_from_an_answer_is_named() -> None:
    call = with_values((read(), write(id=ref(0, "$[2].id"), note="mine")), 1, [ITEMS], {})[0]
    assert dict(call.arguments) == {"id": "2", "note": "mine"} and call.filled == ("id",)


def test_a_call_for_each_item_and_references_move_with_it() -> None:
    assert made(ITEMS, write(id=each())) == [{"id": "0"}, {"id": "1"}, {"id": "2"}]
    assert made(ITEMS, write(id=each("$[?@.name=='a'].id"))) == [{"id": "0"}, {"id": "1"}]
    after = made(ITEMS, write(id=each()), write(n="1"), write(id=ref(2, "$.id")))
    assert after[-1] == {"id": {"$from": 3, "path": "$.id"}}


@pytest.mark.promise(46)
@pytest.mark.parametrize("items", [MOST_EACH + 1, 1_000_000])
@pytest.mark.parametrize("path", ["$[*].id", "$[?@.id=='x'].id"])
def test_more_items_than_the_plan_says_make_no_call(items: int, path: str) -> None:
    with pytest.raises(InvalidInput, match=f"{items} items"):
        made([{"id": "x"}] * items, write(id=each(path)))


@pytest.mark.promise(46)
def test_several_lists_together_make_no_more_calls_than_one_may() -> None:
    with pytest.raises(InvalidInput, match="too many"):
        made([{"id": "x"}] * 30, write(id=each()), write(id=each()))
    with pytest.raises(InvalidInput, match="one list"):
        made({"a": ITEMS, "b": ITEMS}, write(x=each("$.a[*].id"), y=each("$.b[*].id")))


@pytest.mark.promise(46)
@pytest.mark.parametrize(
    "value", [ref(0, "$.x"), {"a": [{"$each": 0}]}, {"$secret": "slack"}, "x" * 65_537, ["y", {"b": "x" * 65_537}]]
)
def test_what_a_service_may_not_supply(value: Any) -> None:
    with pytest.raises(InvalidInput, match="supplied"):
        made([{"id": value}], write(id=ref(0, "$[0].id")))
    with pytest.raises(InvalidInput, match="supplied"):
        made([{"id": value}], write(id=each()))


@pytest.mark.promise(46)
def test_none_and_several_are_to_be_chosen_from_and_a_choice_holds_for_its_path_alone() -> None:
    path = "$[?@.name=='a'].id"
    with pytest.raises(Unclear) as unclear:
        made(ITEMS, write(id=ref(0, path)))
    assert [choice.place for choice in unclear.value.choices] == ["$[0]", "$[1]"]
    picks = {(0, unclear.value.head): "$[1]"}
    assert made(ITEMS, write(id=ref(0, path)), picks=picks) == [{"id": "1"}]
    with pytest.raises(Unclear):
        made(ITEMS, write(id=ref(0, path), to=ref(0, "$[?@.name=='c'].id")), picks=picks)


def test_before_anything_is_read_an_each_stands_for_one_item() -> None:
    action = at_once(ApiCalls(calls=(read(), write(id=each("$.rows[*].id"), of=[each("$[?@.a==1].b")]))))
    assert action.calls[1].arguments["id"] == ref(0, "$.rows[0].id")
    assert action.calls[1].arguments["of"] == [ref(0, "$[?@.a==1].b")]


def test_an_earlier_action_s_answer_fills_in_data_alone() -> None:
    of = {"$from": "a-1", "path": "$.id"}
    (filled,) = with_earlier([write(ts=of, more=[{"deep": of}], text="hi")], {"a-1": {"id": "7"}})
    assert filled.arguments == {"ts": "7", "more": [{"deep": "7"}], "text": "hi"}
    assert filled.filled == ("ts", "more")
    untouched = write(ts={"$from": 0, "path": "$.id"})
    assert with_earlier([untouched], {}) == (untouched,)
    with pytest.raises(InvalidInput, match="reads as a reference"):
        with_earlier([write(ts=of)], {"a-1": {"id": {"$from": 0, "path": "$.x"}}})


def test_nothing_is_filled_within_what_isn_t_a_whole_reference() -> None:
    """Or an answer would stand there that nobody knows to be one, or that wasn't asked for."""
    of = {"$from": "a-1", "path": "$.id"}
    for odd in ({"$from": 0, "path": of}, {"$from": 0, "path": {"$from": "a-2", "path": "$.id"}}):
        (filled,) = with_earlier([write(ts=of, text=odd)], {"a-1": {"id": "7"}})
        assert filled.arguments == {"ts": "7", "text": odd} and filled.filled == ("ts",)


def test_what_is_filled_stays_so_in_the_second_stage() -> None:
    """A value of an earlier action, and one of a call that is read first."""
    calls = [read(), write(to={"$from": 0, "path": "$.id"}, text={"$from": "a-1", "path": "$.t"})]
    (filled,) = with_values(with_earlier(calls, {"a-1": {"t": "x"}}), 1, [{"id": "7"}], {})
    assert (filled.arguments, set(filled.filled)) == ({"to": "7", "text": "x"}, {"to", "text"})
