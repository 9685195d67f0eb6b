"""Paths that filter: what they take, that they mean exactly one value, and that their work is bounded beforehand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonpath_rfc9535.filter_expressions import ComparisonExpression

from policies.errors import InvalidInput
from policies.jsonpath import MAX_WORK, NoMatch, SeveralValues, is_filter, items_at, value_at
from policies.jsonvalue import MissingValue

LISTS = {
    "items": [
        {"id": "a1", "title": "Errands", "n": 1, "done": False, "owner": {"mail": "ada@x.example"}},
        {"id": "b2", "title": "Work", "n": 2, "done": True, "owner": {"mail": "bob@x.example"}},
        {"id": "c3", "title": "Home", "n": 3, "done": True, "tags": ["x", "y"]},
    ]
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.items[1].id", "b2"),
        ("$.items[?@.title=='Errands'].id", "a1"),
        ("$.items[?(@.title=='Errands')].id", "a1"),
        ('$["items"][?@["title"] == "Errands"]["id"]', "a1"),
        ("$.items[?'Work'==@.title].n", 2),
        ("$.items[?@.n>=2 && @.n<3].id", "b2"),
        ("$.items[?@.done==true && !(@.title=='Work')].id", "c3"),
        ("$.items[?@.n==1 || @.title=='nobody'].id", "a1"),
        ("$.items[?@.owner.mail=='bob@x.example'].title", "Work"),
        ("$.items[?@.tags[0]=='x'].tags[1]", "y"),
        ("$.items[?@.title=='Home'].tags[?@!='x']", "y"),
    ],
)
def test_one_value_is_found(path: str, value: Any) -> None:
    assert value_at(LISTS, path) == value


def test_what_is_plain_stays_plain() -> None:
    assert not is_filter("$.a-b[0]")
    assert not is_filter('$["what?"]')
    assert value_at({"what?": 1}, '$["what?"]') == 1
    assert is_filter("$.a[?@.b==1]")


@pytest.mark.parametrize(
    ("path", "items", "matches"),
    [
        ("$[?@.a==1]", [{"a": True}, {"a": "1"}, {"a": [1]}, {}], 0),
        ("$[?@.a==true]", [{"a": 1}, {"a": "true"}], 0),
        ("$[?@.a==null]", [{}, {"a": 0}, {"a": False}], 0),
        ("$[?@.a==0]", [{"a": False}, {"a": None}], 0),
        ("$[?@.a<2]", [{"a": "1"}, {"a": True}], 0),
        ("$[?@.a!='x']", [{}, {"a": 1}], 2),
    ],
)
def test_a_value_of_another_type_is_never_equal(path: str, items: list[Any], matches: int) -> None:
    with pytest.raises(SeveralValues if matches else MissingValue):
        value_at(items, path)


def test_several_are_an_error_that_names_them() -> None:
    with pytest.raises(SeveralValues, match=r'2 values fit .*, and exactly one is wanted: "b2", "c3"') as several:
        value_at(LISTS, "$.items[?@.done==true].id")
    assert "more exactly" in several.value.next_step
    many = [{"id": n, "t": "x"} for n in range(1000)]
    with pytest.raises(SeveralValues, match=r"1000 values .*: 0, 1, 2, 3, 4 and 995 more"):
        value_at(many, "$[?@.t=='x'].id")


def test_none_is_an_error_that_names_what_is_there() -> None:
    with pytest.raises(MissingValue, match=r'There, @.* is "Errands", "Work", "Home"'):
        value_at(LISTS, "$.items[?@.title=='Errand'].id")
    with pytest.raises(MissingValue, match="nothing at"):
        value_at(LISTS, "$.lists[?@.title=='Errands'].id")
    with pytest.raises(MissingValue, match="nothing at"):
        value_at(LISTS, "$.items[?@.title=='Errands'].name")
    with pytest.raises(MissingValue, match="nothing at"):
        value_at("text", "$[?@.title=='Errands'].name")


def test_what_an_error_names_is_short() -> None:
    with pytest.raises(SeveralValues) as several:
        value_at([{"id": "x" * 100_000, "t": 1}] * 50, "$[?@.t==1].id")
    assert len(several.value.message) < 1000


@pytest.mark.parametrize(
    "path",
    [
        "$..id", "$.items[*].id", "$.items[?@.done==true].tags[*]",
        "$.items[0:2]", "$.items[0,1]", "$.items[?@.a==1,?@.b==2]",
        "$.items[?@.title]", "$.items[?!@.title]",  # "has", which reads like "is"
        "$.items[?@.a==@.b]", "$.items[?@.a==$.items[0].a]", "$.items[?$.items[?@.a==1]]",
        "$.items[?@..a==1]", "$.items[?@[*]==1]", "$.items[?@[?@.a==1]]", "$.items[?1==1]",
        "$.items[?match(@.title, '(a+)+$')]", "$.items[?match(@.title, '.*a.*a.*b')]",
        "$.items[?match(@.title, '(a|a)*')]",
        "$.items[?match(@.title, 'a{1,9}.*')]", "$.items[?match(@.title, '" + "a" * 201 + "')]",
        "$.items[?search(@.title, 'a')]", "$.items[?length(@.a)>1]",
        "$.items[?count(@.*)>1]", "$.items[?value(@.a)==1]",
        "$[?@.a==1][?@.a==1][?@.a==1][?@.a==1]",
        "$.items[?@.id==9007199254740993]", "$.items[?@.id==1e300]", "$.items[?@.id==1e999]",
        "$.items[?@.id==9" + "9" * 300 + "]",
        "$.items[?@.a=='x'", "$.items[?]", "?", "items[?@.a==1]", "$.items[?@.a=1]", "$.items[?@.a=~'x']",
        "$.items[?@.a==undefined]",
        "$.items[?" + "(" * 180 + "@.a" + ")" * 180 + "]", "$[?" + "!" * 300 + "(@.a==1)]",
        "$[?" + "&&".join(["@.a==1"] * 40) + "]",
        "$[?@.a=='" + "x" * 400 + "']",
    ],
)  # fmt: skip
def test_what_isnt_taken(path: str) -> None:
    with pytest.raises(InvalidInput, match="path"):
        value_at(LISTS, path)


def test_too_many_items_are_refused_before_one_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    real = ComparisonExpression.evaluate
    monkeypatch.setattr(ComparisonExpression, "evaluate", lambda self, context: looked.append(1) or real(self, context))
    million = [{"a": 1}] * 1_000_000
    with pytest.raises(InvalidInput, match="1000000 items"):
        value_at(million, "$[?@.a==2].b")
    with pytest.raises(InvalidInput, match="too many"):
        value_at(dict.fromkeys(map(str, range(MAX_WORK + 1)), 1), "$[?@==2]")
    for each in ("$[*].b", "$[?@.a==1].b"):
        with pytest.raises(InvalidInput, match="1000000 items"):
            items_at(million, each, 50)
    assert not looked
    # Filters within filters look at no more than there is, and share what may be looked at.
    nested = {"rows": [{"a": 1, "cells": [{"a": 1}] * 190} for _ in range(100)]}
    with pytest.raises(SeveralValues):
        value_at(nested, "$.rows[?@.a==1].cells[?@.a==1]")
    assert len(looked) == 100 + 100 * 190
    with pytest.raises(InvalidInput, match="19000 items"):
        value_at(nested, "$.rows[?@.a==1 && @.a!=2].cells[?@.a==1 && @.a!=2]")


ACCOUNTS = {
    "accounts": [
        {"name": "a", "properties": [{"title": "Shop", "id": "p1"}, {"title": "Blog", "id": "p2"}]},
        {"name": "b"},
        {"name": "c", "properties": [{"title": "Blog", "id": "p3"}]},
    ],
    "by_region": {"eu": [{"title": "Shop", "id": "p1"}], "us": [{"title": "Wiki", "id": "p4"}]},
}


def test_one_of_the_items_in_all_lists_of_a_list() -> None:
    assert value_at(ACCOUNTS, "$.accounts[*].properties[?@.title=='Shop'].id") == "p1"
    assert value_at(ACCOUNTS, "$.by_region[*][?@.title=='Wiki'].id") == "p4"
    # Two of one title in different lists are two, and each is named by where it stands.
    with pytest.raises(SeveralValues, match='"p2", "p3"') as several:
        value_at(ACCOUNTS, "$.accounts[*].properties[?@.title=='Blog'].id")
    places = [choice.place for choice in several.value.choices]
    assert [value_at(ACCOUNTS, place)["id"] for place in places] == ["p2", "p3"]
    with pytest.raises(NoMatch, match=r'There, @.* is "Shop", "Blog", "Blog"'):
        value_at(ACCOUNTS, "$.accounts[*].properties[?@.title=='Wiki'].id")


def test_lists_of_lists_share_what_may_be_looked_at() -> None:
    nested = {"rows": [{"cells": [{"a": 1}] * 200} for _ in range(100)]}
    with pytest.raises(InvalidInput, match="20000 items"):
        value_at(nested, "$.rows[*].cells[?@.a==2].b")
    with pytest.raises(InvalidInput, match="at most 3"):
        value_at(nested, "$[*][*][*][?@.a==1].b")


def test_what_an_answer_says_is_never_a_filter() -> None:
    hostile = [{"title": "' || @.id!='", "id": "all"}, {"title": "$.items[?@.id!='']", "id": "x"}]
    assert value_at(json.loads(json.dumps(hostile)), "$[?@.title==\"' || @.id!='\"].id") == "all"
