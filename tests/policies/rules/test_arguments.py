"""Arguments as Cedar sees them: nothing in one can become an entity, a function or another argument."""

from __future__ import annotations

import json
from typing import Any

import cedarpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from policies.decisions import Allow, Ask, Decision, Deny, decide
from policies.rules.arguments import Unjudgeable, refers, types_of, value_of
from policies.rules.audience import guessed_recipients
from policies.rules.book import RuleBook
from policies.rules.cases import read
from tests.support.examples import sized

CATALOG = Catalog.bundled()
TEXT = {"type": "String"}
RECORD = {
    "type": "Record",
    "attributes": {"name": {"type": "String", "required": True}, "age": {"type": "Long", "required": False}},
}

VALUES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "text": (TEXT, "a", "a"),
    "a number as text": (TEXT, 5, "5"),
    "an object as text": (TEXT, {"b": 1, "a": [None]}, '{"a":[null],"b":1}'),
    "Cedar's own keys as text": (TEXT, {"__entity": {"type": "Agent"}}, '{"__entity":{"type":"Agent"}}'),
    "a whole number": ({"type": "Long"}, 5, 5),
    "a whole number with a point": ({"type": "Long"}, 5.0, 5),
    "the largest": ({"type": "Long"}, 2**63 - 1, 2**63 - 1),
    "a number": ({"type": "Extension", "name": "decimal"}, 1.5, {"__extn": {"fn": "decimal", "arg": "1.5000"}}),
    "yes": ({"type": "Boolean"}, True, True),
    "a list": ({"type": "Set", "element": TEXT}, ["a", "b"], ["a", "b"]),
    "a list of no elements": ({"type": "Set", "element": TEXT}, [], []),
    "a number without its sign": (
        {"type": "Extension", "name": "decimal"},
        -0.0,
        {"__extn": {"fn": "decimal", "arg": "0.0000"}},
    ),
    "a record": (RECORD, {"name": "ann", "age": 5}, {"name": "ann", "age": 5}),
    "a record without what may be missing": (RECORD, {"name": "ann"}, {"name": "ann"}),
}
UNJUDGEABLE: dict[str, tuple[dict[str, Any], Any]] = {
    "too large": ({"type": "Long"}, 2**63),
    "too small": ({"type": "Long"}, -(2**63) - 1),
    "a text that is a number": ({"type": "Long"}, "5"),
    "true as a number": ({"type": "Long"}, True),
    "a fraction": ({"type": "Long"}, 1.5),
    "five places": ({"type": "Extension", "name": "decimal"}, 0.12345),
    "infinite": ({"type": "Extension", "name": "decimal"}, float("inf")),
    "not a number": ({"type": "Extension", "name": "decimal"}, "many"),
    "true as a decimal": ({"type": "Extension", "name": "decimal"}, True),
    "huge": ({"type": "Extension", "name": "decimal"}, 1e300),
    "one as true": ({"type": "Boolean"}, 1),
    "a text as a list": ({"type": "Set", "element": TEXT}, "a"),
    "a list with another kind": ({"type": "Set", "element": {"type": "Long"}}, [1, "a"]),
    "a list as a record": (RECORD, []),
    "a record without its name": (RECORD, {"age": 5}),
    "null": (TEXT, None),
    "null as a number": ({"type": "Long"}, None),
    "null in a list": ({"type": "Set", "element": TEXT}, ["a", None]),
    "a member that must be there and is null": (RECORD, {"name": None}),
    "a member that may be missing and is null": (RECORD, {"name": "ann", "age": None}),
    "null in a record in a list": ({"type": "Set", "element": RECORD}, [{"name": "ann", "age": None}]),
    "a member without a type": (RECORD, {"name": "ann", "more": 1}),
    "equal elements": ({"type": "Set", "element": TEXT}, ["a", "b", "a"]),
    "equal elements as text": ({"type": "Set", "element": TEXT}, [5, "5"]),
    "equal records": ({"type": "Set", "element": RECORD}, [{"name": "a", "age": 1}, {"age": 1.0, "name": "a"}]),
    "equal lists": ({"type": "Set", "element": {"type": "Set", "element": TEXT}}, [["a", "b"], ["b", "a"]]),
    "zeros": ({"type": "Set", "element": {"type": "Extension", "name": "decimal"}}, [0.0, -0.0]),
    "half a character": (TEXT, "\ud800"),
    "a reference": (TEXT, {"$from": 0, "path": "$.a"}),
    "a planned reference": (TEXT, {"$ref": ["call-0", "$.a"]}),
    "a reference inside": ({"type": "Set", "element": TEXT}, ["a", {"$ref": ["call-0", "$.a"]}]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    kind, value, wanted = VALUES[name]
    assert value_of(kind, value) == wanted


@pytest.mark.parametrize("name", UNJUDGEABLE)
def test_what_cannot_be_judged(name: str) -> None:
    kind, value = UNJUDGEABLE[name]
    with pytest.raises(Unjudgeable):
        value_of(kind, value)


PATCH = "google_calendar.events.patch"
ABOUT = f'(principal, action, resource == Method::"{PATCH}")'
ONE_EVENT = 'context.arguments has eventId && context.arguments.eventId == "e1"'
CAREFUL = f'@id("careful") permit {ABOUT} when {{ {ONE_EVENT} }} unless {{ context.arguments has attendees }};'
PLAIN = f'@id("plain") permit {ABOUT} when {{ {ONE_EVENT} }};'
HELD = f'@id("held") {{}} {ABOUT} when {{{{ context.arguments has attendees }}}};'
ASKED = HELD.format('@effect("ask") forbid')


def patched(rules: str, **arguments: Any) -> Decision:
    case = {"call": PATCH, "arguments": {"calendarId": "primary", "eventId": "e1", **arguments}}
    request, _, now = read(case, CATALOG)
    return decide(request, [], RuleBook.of({"r.cedar": rules}, CATALOG), now)


@pytest.mark.promise(13)
def test_null_is_not_as_absent() -> None:
    """It is sent, and clears the field. Whoever looks at it can't judge it; a permit that doesn't restrict an argument
    permits any value of it."""
    assert isinstance(patched(CAREFUL), Allow)
    assert isinstance(patched(CAREFUL, attendees=None), Ask)
    assert isinstance(patched(CAREFUL, location=None), Allow)
    assert isinstance(patched(PLAIN, attendees=None), Allow)
    assert isinstance(patched(PLAIN + HELD.format("forbid")), Allow)
    denied = patched(PLAIN + HELD.format("forbid"), attendees=None)
    assert isinstance(denied, Deny)
    assert denied.rules == ("held",) and "argument attendees: it is null" in denied.reason
    asked = patched(PLAIN + ASKED, attendees=None)
    assert isinstance(asked, Ask) and asked.rules == ("held",)


@pytest.mark.parametrize(
    ("attendees", "start"),
    [
        ([{"email": "a@b.c", "displayName": None}], {"date": "2026-05-03"}),
        ([{"email": "a@b.c"}, {"email": "a@b.c"}], {"date": "2026-05-03"}),
        ([{"email": "a@b.c", "comment": "x"}], {"date": "2026-05-03"}),
        ([], {"date": "2026-05-03", "dateTime": None}),
    ],
)
def test_what_is_inside_a_value_is_not_overlooked(attendees: Any, start: Any) -> None:
    """A permit of one value permits neither null, nor an element twice, nor a member more in it."""
    seen = [{"email": "a@b.c"}] if attendees else []
    text = (
        f'@id("exact") permit {ABOUT} when {{ context.arguments has attendees && context.arguments has start'
        f' && context.arguments.start == {{"date": "2026-05-03"}} && context.arguments.attendees == %s }};'
    ) % ('[{"email": "a@b.c"}]' if seen else "[]")
    assert isinstance(patched(text, attendees=seen, start={"date": "2026-05-03"}), Allow)
    assert isinstance(patched(text, attendees=attendees, start=start), Ask)


def test_every_method_s_types_make_a_schema() -> None:
    from policies.rules.cedar_schema import schema_text

    for service in CATALOG.services.values():
        for method in service.methods.values():
            cedarpy.Schema.from_json_str(schema_text(types_of(method.parameters)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["__entity", "__extn", "__expr", "type", "id", "fn", "arg", "$from", "a"]), inner
        )
    ),
    max_leaves=12,
)
BREAKERS = [
    {"__entity": {"type": "Agent", "id": "person"}},
    {"__extn": {"fn": "decimal", "arg": "1.0"}},
    {"__expr": "principal"},
    '"} || true || {"',
    '#ops"; permit(principal,action,resource); //',
    "\u202e\u0000\\u{0}",
    "a" * 100_000,
]


@pytest.mark.promise(13)
@sized(
    60,
    600,
    st.dictionaries(
        st.sampled_from(["channel", "text", "thread_ts", "__entity", "arguments", "risk"]),
        st.one_of(json_values, st.sampled_from(BREAKERS)),
        max_size=4,
    ),
)
def test_no_argument_makes_a_permit_of_another_channel(arguments: dict[str, Any]) -> None:
    """Whatever an agent writes into its arguments: the permit is for #ops, and a forbid that reads them holds."""
    rules = RuleBook.of(
        {
            "r.cedar": '@id("ops") permit (principal, action, resource == Method::"slack.chat.postMessage")'
            ' when { context.arguments has channel && context.arguments.channel == "#ops" };'
        },
        CATALOG,
    )
    never = RuleBook.of(
        {
            "r.cedar": '@id("never") forbid (principal, action, resource)'
            ' unless { context.arguments has channel && context.arguments.channel == "#ops" };'
        },
        CATALOG,
    )
    try:
        request, _, now = read({"call": "slack.chat.postMessage", "arguments": arguments}, CATALOG)
    except Exception:  # what isn't JSON is refused long before
        return
    permitted = bool(rules.judge(request, now).permits)
    assert permitted == (arguments.get("channel") == "#ops")
    assert isinstance(decide(request, [], never, now), Deny) != permitted


@given(json_values)
def test_a_value_is_judged_or_not_and_never_anything_else(value: Any) -> None:
    for kind in (TEXT, {"type": "Long"}, {"type": "Set", "element": RECORD}, RECORD):
        try:
            made = value_of(kind, value)
        except (Unjudgeable, ValueError):
            continue
        except Exception as error:
            assert type(error).__module__ == "policies.errors", error
            continue
        assert not refers(value)
        assert "__e" not in json.dumps(made) or isinstance(made, str) or kind is not TEXT


RECIPIENTS: list[tuple[dict[str, Any], set[str], int]] = [
    ({"to": "a@b.c"}, {"a@b.c"}, 0),
    ({"to": ["A@b.c", "Bo <d@e.f>"], "cc": "x@y.z, w@v.u"}, {"a@b.c", "d@e.f", "x@y.z", "w@v.u"}, 0),
    ({"to": '"a@ok.org" <eve@evil.example>'}, {"a@ok.org", "eve@evil.example"}, 0),
    ({"attendees": [{"email": "a@b.c", "optional": True}], "text": "mail d@e.f"}, {"a@b.c"}, 0),
    ({"channel": "#ops", "text": "#all"}, {"#ops"}, 0),
    ({"roomId": "!a:b", "user_id": "@c:d"}, {"!a:b", "@c:d"}, 0),
    ({"emailAddress": "a@b.c", "shareRecipients": ["d@e.f"]}, {"a@b.c", "d@e.f"}, 0),
    ({"users": "U1,U2"}, {"u1", "u2"}, 0),
    ({"to": {"$from": 0, "path": "$.a"}}, set(), 1),
    ({"to": ["a@b.c", {"$ref": ["call-0", "$.a"]}], "text": {"$from": 0, "path": "$.a"}}, {"a@b.c"}, 1),
    ({"title": "to ann@b.c"}, set(), 0),
]


@pytest.mark.parametrize(("arguments", "found", "later"), RECIPIENTS)
def test_who_gets_something(arguments: dict[str, Any], found: set[str], later: int) -> None:
    assert guessed_recipients(arguments) == (found, later)
