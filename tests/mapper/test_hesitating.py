"""What keeps the embedded proposer from acting on a likely reading without asking."""

from __future__ import annotations

import pytest

from mapper.ambiguity import Rival, asks, asks_for_change, changes_nothing, cheaper, doubts, goes_on
from mapper.catalog import Catalog
from mapper.evaluation.alone import Alone
from policies.actions import Call
from tests.google import alone

__all__ = ["alone"]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("make a list for the garden and put seeds on it", True),
        ("who is in the room, and then take kim out", True),
        ("close the ticket; then tell the team", True),
        ("archive it. Also please remove kim", True),
        ("how big is the file and who owns it", False),
        ("remove kim, she changed schools", False),
        ("list the rooms and lists", False),
        ("rename it to Salt and Pepper", False),
    ],
)
def test_a_second_wish_is_heard(words: str, more: bool) -> None:
    assert goes_on(words) is more


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("Who's in the room?", True),
        ("is it on", True),
        ("did she answer", True),
        ("isolate it", False),
        ("post", False),
    ],
)
def test_a_question_is_told_from_a_wish(words: str, question: bool) -> None:
    assert asks(words) is question


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("share the folder with everybody", True),
        ("please just delete it", True),
        ("Can you rename it", True),
        ("approve pull request 17", True),
        ("I want to unpin it", True),
        ("get rid of it", True),  # a verb of several words
        ("call it off", True),
        ("open the matter again", True),
        ("open the matter", False),
        ("show me it again", False),
        ("log of today", False),  # no verb here
        ("show who is in it", False),
        ("let me see it", False),
        ("which ones are there", False),
    ],
)
def test_a_verb_for_changing_is_heard(words: str, change: bool) -> None:
    assert asks_for_change(words) is change


def call(catalog: Catalog, name: str, **arguments: object) -> Call:
    method = catalog.method(name)
    return Call(service=method.service, method=method.name, arguments=arguments)


def test_a_change_without_content(alone: Alone) -> None:
    def nothing(name: str, **arguments: object) -> bool:
        return changes_nothing(alone.catalog.method(name), call(alone.catalog, name, **arguments))

    assert nothing("forms.forms.setPublishSettings", formId="f")
    assert nothing("calendar.events.patch", calendarId="primary", eventId="e", body={})
    assert not nothing("calendar.events.patch", calendarId="primary", eventId="e", body={"summary": "x"})
    assert not nothing("calendar.events.delete", calendarId="primary", eventId="e")
    assert not nothing("pubsub.projects.subscriptions.pull", subscription="s")  # needs none


def test_an_argument_that_decides_the_scope(alone: Alone) -> None:
    name = "gmail.users.messages.get"

    def less(**arguments: object) -> list[tuple[str, str]]:
        made = call(alone.catalog, name, userId="me", id="m", **arguments)
        return cheaper(alone.catalog, alone.catalog.method(name), made, "")

    assert ("format", "minimal") in less() and ("format", "metadata") in less(format="raw")
    assert less(format="metadata") == []
    listing = "gmail.users.messages.list"  # what is searched for is the request's own
    made = call(alone.catalog, listing, userId="me", q="from:x")
    assert cheaper(alone.catalog, alone.catalog.method(listing), made, "") == []


def test_another_reading_that_needs_other_scopes(alone: Alone) -> None:
    catalog = alone.catalog
    first, same = catalog.method("calendar.events.instances"), catalog.method("calendar.events.get")
    other, elsewhere = catalog.method("calendar.acl.list"), catalog.method("tasks.tasks.list")
    made = (call(catalog, "calendar.events.instances", calendarId="primary", eventId="e"),)

    def found(*rivals: Rival) -> tuple[str, ...]:
        return doubts(catalog, first, made, rivals, "every date of it", "every date of it")

    assert found() == found(Rival(same, (), 0.1)) == ()
    assert "calendar.acl.list" in found(Rival(other, (), 1.0))[0]
    assert found(Rival(other, (), 2.0)) == ()
    assert "tasks.tasks.list" in found(Rival(elsewhere, (), 3.5))[0]
    assert found(Rival(elsewhere, (), 3.5, excluded=True)) == found(Rival(elsewhere, (), 4.5)) == ()


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("calendar.events.get", "approve the event", "only looks"),
        ("calendar.events.delete", "show the event", "a question was asked"),
        ("calendar.events.delete", "who comes to the event", "a question was asked"),
        ("calendar.events.get", "show the event", ""),
        ("calendar.events.delete", "call the event off", ""),
    ],
)
def test_a_change_is_no_look_and_a_look_no_change(alone: Alone, name: str, words: str, said: str) -> None:
    method = alone.catalog.method(name)
    found = doubts(alone.catalog, method, (call(alone.catalog, name, calendarId="c", eventId="e"),), (), words, words)
    assert (said in found[0]) if said else not found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show me the raw headers of mail 191c0e11ab77d902", "would need less"),
        ("throw out the note notes/z81k and delete the list", "a part of this"),
    ],
)
def test_it_asks_rather_than_acts(alone: Alone, words: str, said: str) -> None:
    proposed = alone.proposer().propose(words)
    assert not proposed.sure and any(said in note for note in proposed.notes), proposed.notes


def test_what_is_plain_is_done(alone: Alone) -> None:
    assert alone.proposer().propose("throw out the note notes/z81k").sure
