"""Calls on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.cli.call_syntax import gather, parse
from policies.errors import InvalidInput


def calls(*args: str, account: str = "") -> list[dict[str, object]]:
    folded = gather(args)
    assert folded[::2] == ["--call"] * (len(folded) // 2)
    return parse(folded[1::2], account)


def test_pairs_belong_to_the_call_before_them() -> None:
    made = calls("--call", "slack.chat.postMessage", "channel=#ops", "text=hi", "--call", "slack.pins.add", "n:=5")
    assert [one["method"] for one in made] == ["chat.postMessage", "pins.add"]
    assert made[0]["arguments"] == {"channel": "#ops", "text": "hi"}
    assert made[1]["arguments"] == {"n": 5}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=", ""),
        ("a=5", "5"),
        ("a=x=y", "x=y"),
        ("a=:=1", ":=1"),
        ("a=@channel", "@channel"),
        ("a=@0", "@0"),
        ("a=line\ntwo", "line\ntwo"),
        ("a:=true", True),
        ("a:=[1, {}]", [1, {}]),
        ('a:="@0.$.x"', "@0.$.x"),
    ],
)
def test_values(pair: str, value: object) -> None:
    assert calls("--call", "s.m", pair)[0]["arguments"] == {"a": value}


def test_members_of_a_body_are_written_as_they_are_listed() -> None:
    made = calls("--call", "s.m", "id=7", "body.title=hi", "body.at.city=Bern", "body.at.zip:=3011", "fields.x=1")
    body = {"title": "hi", "at": {"city": "Bern", "zip": 3011}}
    assert made[0]["arguments"] == {"id": "7", "body": body, "fields.x": "1"}


def test_a_reference_to_an_earlier_answer() -> None:
    made = calls("--call", "s.m", "--call", "s.n", "ts=@0.$.message.ts")
    assert made[1]["arguments"] == {"ts": {"$from": 0, "path": "$.message.ts"}}


@pytest.mark.parametrize(
    "args",
    [
        ("--call", "nodot"),
        ("--call", ".m"),
        ("--call", "s.m", "word"),
        ("--call", "s.m", "=x"),
        ("--call", "s.m", "a:=nope"),
        ("--call", "s.m", 'a:={"x": 1, "x": 2}'),
        ("--call", "s.m", "a:=NaN"),
        ("--call", "s.m", "a=1", "a=2"),
        ("--call", "s.m", "body.a=1", "body.a=2"),
        ("--call", "s.m", "body=1", "body.a=2"),
        ("--call", "s.m", "body.a=1", "body.a.b=2"),
        ("--call", "s.m", "body.a=1", "body:={}"),
        ("--call", "s.m", "a=@0.$.x"),
        ("--call", "s.m", "--call", "s.n", "a=@1.$.x"),
        ("--call", "s.m", "--call", "s.n", "a=@0.$..x"),
    ],
)
def test_what_isnt_one_is_refused_with_a_way_out(args: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        calls(*args)
    assert str(caught.value)


def test_other_options_and_what_follows_a_bare_dash_stay() -> None:
    assert gather(["--json", "words", "--", "--call", "x"]) == ["--json", "words", "--", "--call", "x"]
    assert gather(["--call"]) == ["--call"]
    assert gather(["--call=s.m", "a=1", "--json"]) == ["--call", '["s.m", "a=1"]', "--json"]


@given(st.text(min_size=0, max_size=50))
def test_any_text_arrives_as_it_was_written(text: str) -> None:
    made = calls("--call", "s.m", "a=" + text)
    value = made[0]["arguments"]
    assert value == {"a": text} or text.startswith("@")
