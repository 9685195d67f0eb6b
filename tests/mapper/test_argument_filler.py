"""Values as they stand in a request: whole, without what stands beside them, and for the thing that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mapper import dates
from mapper.argument_filler import Filler
from mapper.catalog import Catalog
from mapper.slots import extract
from policies.services import Risk

CATALOG = Catalog.bundled()
PERSON, TOPIC = "^people/[^/]+$", "^projects/[^/]+/topics/[^/]+$"


def filled(words: str, pattern: str) -> str | None:
    """What the one argument of this form gets."""
    name = {"type": "string", "pattern": pattern}
    parameters = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    method = replace(CATALOG.method("slack.conversations.info"), parameters=parameters, locations={"name": "path"})
    return Filler(CATALOG, method, extract(words), ()).arguments.get("name")


@pytest.mark.parametrize(
    ("words", "pattern", "name"),
    [
        ("remove people/c9911 from my contacts", PERSON, "people/c9911"),
        ("delete people/c9911.", PERSON, "people/c9911"),
        ("is people/c9911, my old neighbour, still there?", PERSON, "people/c9911"),
        ("show me people/c9911!", PERSON, "people/c9911"),
        ("show me (people/c9911) again", PERSON, "people/c9911"),
        ("show me people/a.b-c_9~1", PERSON, "people/a.b-c_9~1"),
        ("show me people/c", PERSON, "people/c"),
        ("drop projects/acme/topics/orders, it is old", TOPIC, "projects/acme/topics/orders"),
        ("projects/acme/topics/orders should go", TOPIC, "projects/acme/topics/orders"),
        ("show me people/c$ again", r"^people/[^/]+\$$", "people/c$"),
    ],
)  # fmt: skip
def test_a_resource_name_ends_with_its_word(words: str, pattern: str, name: str) -> None:
    assert filled(words, pattern) == name


@pytest.mark.parametrize("words", ["see projects/acme/topics", "projects/acme is mine and topics/orders too"])
def test_of_a_part_nothing_is_made(words: str) -> None:
    assert filled(words, TOPIC) is None


PROJECT = "^projects/[^/]+$"


@pytest.mark.parametrize(
    "words",
    [
        "delete projects/acme-prod/topics/orders",
        "delete projects/acme.prod/topics/orders, please",
        "delete projects/acme-prod/keys/a@b.example/c",
    ],
)
def test_of_a_longer_name_no_beginning_is_taken(words: str) -> None:
    assert filled(words, PROJECT) is None


def test_a_name_before_an_s_and_a_name_after_a_colon_are_whole() -> None:
    assert filled("what is people/c9911's number", PERSON) == "people/c9911"
    assert filled("this one: people/c9911", PERSON) == "people/c9911"


# ---- ids


def filler(
    words: str,
    names: Mapping[str, Any],
    *,
    required: bool = True,
    path: str = "",
    risk: Risk = Risk.READ,
    like: str = "google_calendar.events.get",
) -> Filler:
    """One of a method that takes these parameters, over a Wednesday's request."""
    parameters = {"type": "object", "properties": dict(names), "required": list(names) if required else []}
    method = CATALOG.method(like)
    method = replace(
        method, path=path or method.path, parameters=parameters, risk=risk, locations=dict.fromkeys(names, "path")
    )
    found = extract(words)
    return Filler(CATALOG, method, found, dates.find(found.phrase, datetime(2026, 11, 25, 9, tzinfo=UTC)))


TEXT, WHOLE_NUMBER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("show the event 4kd9s2m1p", "4kd9s2m1p"),
        ("show event 4kd9s2m1p.", "4kd9s2m1p"),
        ("show the 4kd9s2m1p event", "4kd9s2m1p"),
        ("show 4kd9s2m1p", "4kd9s2m1p"),
        ("show (4kd9s2m1p)", "4kd9s2m1p"),
        ("show the 3rd event", None),
        ("show my 10:00 event", None),
        ("show event 4kd9/2023/x1", None),
        ("show the logs/2023 event", None),
        ("show the calendar 4kd9s2m1p", None),
        ("play https://cdn.example.com/all-hands.mp4", None),
        ("events that cost more than 400000", None),
    ],
)
def test_an_id_is_whole_and_of_this_kind_of_thing(words: str, taken: str | None) -> None:
    names = {"eventId": {**TEXT, "description": "The event."}}
    assert filler(words, names, path="events/{eventId}").arguments.get("eventId") == taken


def test_an_id_that_only_a_path_says_the_kind_of() -> None:
    assert filler("details of station 18", {"id": TEXT}, path="stations/{id}").arguments == {"id": "18"}


@pytest.mark.parametrize(("words", "taken"), [("show sound 213524", 213524), ("show sound b2135", None)])
def test_a_whole_number_is_filled_as_a_text_is(words: str, taken: int | None) -> None:
    assert filler(words, {"soundId": WHOLE_NUMBER}).arguments.get("soundId") == taken


def test_an_id_without_a_place_is_told_and_a_taken_one_is_not() -> None:
    names = {"eventId": TEXT}
    assert filler("show the event 4kd9s2m1p of series 7fa2b1de", names).unused() == ("7fa2b1de",)
    assert filler("show the event 4kd9s2m1p", names).unused() == ()
    assert filler("show the google_calendar event 4kd9s2m1p", names).unused() == ()


def test_the_digits_of_a_date_are_no_number() -> None:
    number = {"number": {**WHOLE_NUMBER, "format": "number"}}
    only = filler("issues since 2026-11-20", number)
    assert (only.arguments, only.unused()) == ({}, ('"2026-11-20"',))
    assert filler("issue 41 of 2026-11-20", number).arguments == {"number": 41}
    assert filler("restart web-1", number).arguments == {}


# ---- quoted texts


@pytest.mark.parametrize(
    ("name", "schema", "required", "risk", "taken"),
    [
        ("query", TEXT, False, Risk.READ, True),
        ("query", TEXT, False, Risk.WRITE, False),
        ("word", TEXT, True, Risk.WRITE, True),
        ("word", TEXT, False, Risk.READ, False),
        ("colour", TEXT, True, Risk.READ, False),
        ("query", {**TEXT, "description": "A filter expression."}, True, Risk.READ, False),
        ("name", {**TEXT, "pattern": PERSON}, True, Risk.READ, False),
    ],
)  # fmt: skip
def test_a_quoted_text_is_what_is_searched_for(
    name: str, schema: dict[str, Any], required: bool, risk: Risk, taken: bool
) -> None:
    found = filler('look for "rain on tin"', {name: schema}, required=required, risk=risk)
    assert found.arguments == ({name: "rain on tin"} if taken else {})
    assert found.unused() == (() if taken else ('"rain on tin"',))
    assert filler("look for: rain on tin", {name: schema}, required=required, risk=risk).arguments == {}


def test_a_label_is_not_the_word_that_leads_to_it() -> None:
    assert [said.text for said in extract("add a label called bug").said] == ["bug"]
