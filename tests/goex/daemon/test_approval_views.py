"""What goes out about a question: every text fit to be seen, lists cut and of no use for approving, and each way to say
yes in words that are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.message import Message

from goex.daemon.action_views import need_view
from goex.daemon.approval_views import _stale, escaped, grant_view, grant_words
from goex.daemon.duration_text import Asked, widths
from goex.journal.actions import ActionRow
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from mapper.scope_effects import meaning, thing
from policies.actions import Action, ApiCalls, Call, Files, Need, Plan, Revert, UndoClass
from policies.grants import Grant, Width
from policies.services import Risk
from tests.policies.test_text import TRICKS

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u00a0]")
MARKUP = "[bold red]x[/] <b>y</b> &amp; <span foreground='red'>z</span>"
MANY_LINES = {"lines", "undo_text"}


def texts(message: Message, path: str = "") -> Iterator[tuple[str, str]]:
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            name = f"{path}{field.name}"
            if field.type == field.TYPE_MESSAGE:
                yield from texts(each, f"{name}.")
            elif field.type == field.TYPE_STRING:
                yield name, each


def filled(message: Any, text: str) -> Any:
    """The message with that text in every field that takes one, whatever fields it has by now."""
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_MESSAGE:
            inner = getattr(message, field.name)
            filled(inner.add() if field.is_repeated else inner, text)
        elif field.type == field.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append(text)
            else:
                setattr(message, field.name, text)
    return message


@pytest.mark.promise(22)
@pytest.mark.parametrize("trick", [name for name in TRICKS if name != "a lone surrogate"])  # no message takes one
def test_no_field_carries_what_could_trick_its_reader(trick: str) -> None:
    made = escaped(filled(pb.Approval(), TRICKS[trick]))
    found = dict(texts(made))
    assert {"agent", "intent", "lines", "needs.also", "needs.see", "choices.words", "source", "settled_by"} <= set(
        found
    )
    for name, text in found.items():
        assert "\\u{" in text and not HIDDEN.search(text), name


def test_a_line_break_stays_only_where_it_means_one() -> None:
    for name, text in texts(escaped(filled(pb.Approval(), "a\nYou can answer"))):
        assert ("\n" in text) == (name in MANY_LINES), name


def test_markup_is_text_like_any_other() -> None:
    """No client may read it as anything else; it is for them to see to, and nothing is lost for those who do."""
    assert {text for _, text in texts(escaped(filled(pb.Approval(), MARKUP)))} == {MARKUP}


# ---- the widths, in words

POST = Need(
    service="slack",
    account="work",
    scope="chat:write",
    risk=Risk.WRITE,
    methods=("chat.postMessage",),
    arguments=({"channel": "#ops", "text": "x" * 200},),
)
LIST = Need(service="slack", account="work", scope="channels:read", risk=Risk.READ, methods=("conversations.list",))
FILES = Need(
    service="files",
    account="/home/me/notes",
    scope="run",
    risk=Risk.DELETE,
    methods=("files.run",),
    arguments=({"program_sha256": "e" * 64, "language": "shell"},),
)


def calls(count: int) -> ApiCalls:
    return ApiCalls(calls=(Call(service="slack", method="chat.postMessage", arguments={}),) * count)


def said(
    action: Action, *needs: Need, agent: str = "bot", duplicates: int = 0, offered: tuple[str, ...] = ()
) -> dict[str, Any]:
    plan = Plan(
        action=action, needs=needs, undo_class=UndoClass.EXACT, undo_text="", resolved={}, bounds={},
        catalog_hash="", image_id="", limits={}, lines=(),
    )  # fmt: skip
    row = ActionRow(
        id="a-1", number=1, agent=agent, session="s", kind="calls", state=State.ASKING, created="", updated="",
        intent="", request="", plan="", digest="", outcome="", problem="", target="", source="", detached=False,
    )  # fmt: skip
    asked = Asked(row=row, plan=plan, needs=needs, duplicates=duplicates, now=NOW, unused=timedelta(days=90))
    names = offered or ("once", "session", "arguments", "permanent")
    return {one.name: one for one in widths(asked, names, Catalog.bundled())}


def words(view: pb.WidthView) -> str:
    return " ".join(view.words)


def test_a_width_says_who_what_where_with_which_arguments_and_until_when() -> None:
    found = said(calls(1), POST)
    assert "single time" in words(found["once"]) and not found["once"].until
    for name in ("session", "permanent"):
        text = words(found[name])
        for piece in ("“bot”", "slack:chat:write", "account work", "chat.postMessage", "3 other methods",
                      "whatever the arguments are"):  # fmt: skip
            assert piece in text, (name, piece)
        assert "delete things" in found[name].warning
    text = words(found["arguments"])
    assert "only chat.postMessage with exactly these arguments" in text
    assert 'channel is "#ops"' in text and "text is the 202 characters shown above" in text
    assert not found["arguments"].warning
    assert "8 hours" in words(found["session"]) and found["session"].until == "2026-01-02T08:00:00.000000Z"
    assert "2027-01-02" in words(found["permanent"]) and "90 days" in words(found["permanent"])
    assert all("can't be taken back" in words(found[name]) for name in ("session", "arguments", "permanent"))


def test_what_isnt_offered_isnt_described() -> None:
    assert list(said(calls(1), POST, offered=("once",))) == ["once"]


def test_twins_are_said_before_once_is_chosen() -> None:
    assert "is for one" in words(said(calls(1), POST, duplicates=2)["once"])
    assert "identical" not in words(said(calls(1), POST)["once"])


def test_several_calls_are_granted_each_by_itself_and_that_is_said() -> None:
    for name in ("session", "arguments", "permanent"):
        assert "each of them may then run alone" in words(said(calls(3), POST, LIST)[name])
        assert "each of them" not in words(said(calls(1), POST)[name])


def test_always_without_anything_to_bind_it_to_warns_loudly() -> None:
    loose = Need(**{**{f: getattr(POST, f) for f in POST.__slots__}, "arguments": ({"text": "a"}, {"text": "b"})})
    assert said(calls(2), loose)["permanent"].warning.startswith("NOTHING BINDS THIS TO WHAT IS SHOWN")
    assert "NOTHING BINDS" not in said(calls(1), POST)["permanent"].warning


def test_an_undo_isnt_all_that_a_grant_for_its_scope_is_for() -> None:
    text = words(said(Revert(verb="undo", target="a-0"), POST)["permanent"])
    assert "isn't for this undo alone" in text


def test_a_folder_is_named_with_what_a_program_can_do_there() -> None:
    found = said(Files(folder="/home/me/notes", language="shell", program="true"), FILES)
    for name in ("session", "permanent"):
        assert "any program in /home/me/notes, which can read, change and delete everything there" in words(found[name])
    assert "this very program in /home/me/notes, and undo and redo it" in words(found["arguments"])


def test_ones_own_commands_are_ones_own() -> None:
    found = said(calls(1), POST, agent="person")
    assert "Your own command line" in words(found["permanent"])
    assert "this terminal's session" in words(found["session"])


GIVEN = Grant(
    id="g-1", agent="bot", service="db", account="shop", scope="orders:update", width=Width.PERMANENT, created=NOW,
    expires=None, by="user", why="a-1", methods=("update",), only=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("constraints", "free", "says"),
    [
        ({"statement": "x"}, (), "by one statement"),
        ({"operation": "x"}, (), "by one statement"),
        ({"verb": "undo"}, ("target",), "by any statement"),
        ({}, ("statement",), "by any statement"),
    ],
)
def test_a_grant_on_a_database_says_by_which_statements(
    constraints: dict[str, Any], free: tuple[str, ...], says: str
) -> None:
    given = replace(GIVEN, constraints=constraints, free=free)
    nothing: Any = None  # of the daemon that it would need
    assert says in " ".join(grant_words(nothing, given)) and _stale(nothing, given) == ""
    assert "holds for nothing" in _stale(nothing, replace(given, only=False, free=()))


def test_a_grant_that_was_given_at_a_later_time_says_that_it_holds_for_nothing_yet() -> None:
    def stale(now: datetime, grant: Grant) -> str:
        core: Any = SimpleNamespace(clock=lambda: now, grant_store=SimpleNamespace(ends=lambda grant: None))
        return grant_view(core, grant).stale

    before = NOW - timedelta(hours=1)
    assert stale(NOW, GIVEN) == ""
    assert "(2026-01-02T00:00:00.000000Z): until then it holds for nothing" in stale(before, GIVEN)
    assert stale(before, replace(GIVEN, revoked=NOW)) == ""


# ---- what scopes mean


def test_every_scope_that_comes_with_goex_is_said_and_nothing_is_invented() -> None:
    catalog = Catalog.bundled()
    for service in catalog.services.values():
        for scope in service.scopes:
            opened = [method for method in service.methods.values() if scope in method.scopes]
            found = meaning(catalog, service.name, scope)
            kinds = {
                Risk.READ: found.see,
                Risk.WRITE: found.change,
                Risk.DELETE: found.destroy,
                Risk.ADMIN: found.share,
            }
            for risk, phrases in kinds.items():
                if phrases and not service.scopes[scope].virtual:
                    like = {risk, Risk.ADMIN} if risk is Risk.DELETE else {risk}
                    assert any(method.risk in like for method in opened), (service.name, scope, risk)
            if opened:
                assert any(kinds.values()), (service.name, scope)
            need = Need(service=service.name, account="x", scope=scope, risk=Risk.READ, methods=())
            view = need_view(need, catalog, False)
            assert (tuple(view.see), tuple(view.destroy)) == (found.see, found.destroy)


def test_what_destroys_is_said_as_that() -> None:
    catalog = Catalog.bundled()
    assert meaning(catalog, "slack", "chat:write").destroy == ("delete a message that this app has posted",)
    assert meaning(catalog, "gmail", "https://www.googleapis.com/auth/gmail.readonly").destroy == ()
    assert meaning(catalog, "github", "delete_repo").destroy and not meaning(catalog, "github", "delete_repo").share


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("users.messages.list", "messages"),
        ("acceleratorTypes.aggregatedList", "accelerator types"),
        ("v1.projects.topics.publish", "topics"),
        ("get_channel", "channel"),
        ("search", "search"),
    ],
)
def test_a_kind_of_thing_is_called_as_its_provider_calls_it(method: str, kind: str) -> None:
    assert thing(method) == kind


def test_of_what_isnt_known_nothing_is_said() -> None:
    unknown = need_view(
        Need(service="nowhere", account="x", scope="y", risk=Risk.DELETE, methods=()), Catalog.bundled(), False
    )
    assert not (unknown.see or unknown.change or unknown.destroy or unknown.share)
    assert "no description" in unknown.description
