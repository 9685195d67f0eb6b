"""Whether a listed scope reaches what a call is about: each rule on services of no one, and what it leaves alone."""

from __future__ import annotations

import time
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.least_scopes import also, least_scopes, narrower, suffices
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method, Risk, Scope, Service
from tests.support.pace import pace

AUTH = "https://api.example/auth/"


def catalog(scopes: dict[str, str], methods: dict[str, tuple[Risk, str]], **schemas: Any) -> Catalog:
    """`scopes`: name to description; `methods`: name to its risk and scopes; `schemas`: of all methods' arguments."""
    made = {
        name: Method(
            service="s", name=name, description=f"Does {name}.", http="POST", path="/",
            parameters={"type": "object", "properties": schemas, "required": []}, locations={},
            scopes=tuple(f"{AUTH}{scope}" for scope in allowed.split()), risk=risk,
        )
        for name, (risk, allowed) in methods.items()
    }  # fmt: skip
    known = {
        f"{AUTH}{name}": Scope(service="s", name=f"{AUTH}{name}", description=text, risk=Risk.DELETE)
        for name, text in scopes.items()
    }
    service = Service(
        name="s", title="S", description="", base_url="", methods=MappingProxyType(made), scopes=MappingProxyType(known)
    )
    return Catalog.of([service])


def least(made: Catalog, method: str, words: str = "", **arguments: Any) -> set[str]:
    call = Call(service="s", method=method, arguments=arguments)
    return {scope.removeprefix(AUTH) for _, _, scope in least_scopes(made, [call], frozenset(), words=words)}


FILES = {
    "files": "See, edit, and delete your files",
    "files.readonly": "See your files",
    "files.pictures.readonly": "See your pictures",
    "files.metadata": "Manage metadata of your files",
    "files.app.created": "See and change files created by the app",
    "files.admin": "Administer the files",
    "rooms.members": "Manage members",
    "rooms.admin.members": "Manage members in rooms owned by your organization",
}


def files(**methods: tuple[Risk, str]) -> Catalog:
    return catalog(FILES, methods)


def test_one_kind_of_thing_isnt_all_of_them_unless_it_is_named() -> None:
    made = files(
        **{
            "things.list": (Risk.READ, "files files.readonly files.pictures.readonly"),
            "things.get": (Risk.READ, "files.readonly"),
        }
    )
    assert least(made, "things.list") == {"files.readonly"}
    assert least(made, "things.list", kind="pictures") == {"files.pictures.readonly"}


def test_one_kind_is_taken_where_nothing_else_only_looks() -> None:
    made = files(**{"things.list": (Risk.READ, "files files.pictures.readonly")})
    assert least(made, "things.list") == {"files.pictures.readonly"}


def test_looking_at_something_beside_doesnt_change_what_only_looking_at_it_doesnt() -> None:
    made = files(
        **{
            "things.copy": (Risk.WRITE, "files files.pictures.readonly"),
            "things.watch": (Risk.WRITE, "files files.readonly files.pictures.readonly"),
            "things.list": (Risk.READ, "files files.pictures.readonly"),
        }
    )
    assert least(made, "things.copy") == {"files"}
    assert least(made, "things.watch") == {"files.readonly"}
    assert least(made, "things.list") == {"files.pictures.readonly"}


def test_whose_things_are_says_nothing_of_what_they_are() -> None:
    scopes = {
        "work.me": "See and edit your work",
        "work.me.readonly": "View your work",
        "marks.me.readonly": "View your marks",
    }
    made = catalog(
        scopes,
        {
            "marks.get": (Risk.READ, "work.me.readonly marks.me.readonly"),
            "work.get": (Risk.READ, "work.me.readonly"),
            "work.list": (Risk.READ, "work.me.readonly"),
        },
    )
    assert least(made, "marks.get") == {"marks.me.readonly"}


def test_what_the_app_made_isnt_what_was_there() -> None:
    made = files(**{"things.delete": (Risk.DELETE, "files files.app.created"), "a.b": (Risk.ADMIN, "files")})
    assert least(made, "things.delete") == {"files"}
    assert least(files(**{"things.delete": (Risk.DELETE, "files.app.created")}), "things.delete") == {
        "files.app.created"
    }


def test_what_the_app_makes_is_what_it_made() -> None:
    made = files(**{"things.create": (Risk.WRITE, "files files.app.created"), "a.b": (Risk.ADMIN, "files")})
    assert least(made, "things.create") == {"files.app.created"}


def test_administrators_scopes_are_for_those_who_ask_as_one() -> None:
    made = files(
        **{"rooms.members.add": (Risk.ADMIN, "rooms.members rooms.admin.members"), "x": (Risk.ADMIN, "rooms.members")}
    )
    assert least(made, "rooms.members.add") == {"rooms.members"}
    assert least(made, "rooms.members.add", useAdminAccess=False) == {"rooms.members"}
    assert least(made, "rooms.members.add", useAdminAccess=True) == {"rooms.admin.members"}


def test_what_is_said_about_things_doesnt_destroy_them() -> None:
    made = files(**{"files.update": (Risk.WRITE, "files files.metadata"), "files.purge": (Risk.ADMIN, "files")})
    assert least(made, "files.update", body={"name": "b"}) == {"files.metadata"}
    assert least(made, "files.update", body={"trashed": True}) == {"files"}
    assert least(made, "files.update", body={"trashed": False}) == {"files"}  # nor bring back what was destroyed


def test_what_is_sent_unasked_counts_as_an_argument() -> None:
    made = files(**{"files.trash": (Risk.DELETE, "files files.metadata"), "files.purge": (Risk.ADMIN, "files")})
    assert least(made, "files.trash") == {"files.metadata"}
    method = replace(made.method("s.files.trash"), defaults={"trashed": True})
    service = replace(made.service("s"), methods={**made.service("s").methods, "files.trash": method})
    assert least(Catalog.of([service]), "files.trash") == {"files"}


KINDS = {f"body.{kind}.read": f"See your {kind}" for kind in ("sleep", "weight", "pulse")}


@pytest.mark.parametrize(
    ("words", "arguments", "kind"),
    [
        ("", {"type": "pulse"}, "pulse"),
        ("", {"fields": ["weights"]}, "weight"),
        ("how was my sleep", {}, "sleep"),
        ("how was my sleep", {"type": "pulse"}, "pulse"),  # the call is believed before the words
        ("", {"name": "users/me/kinds/weight"}, "weight"),
    ],
)
def test_of_kinds_side_by_side_the_named_one(words: str, arguments: dict[str, Any], kind: str) -> None:
    made = catalog(KINDS, {"points.list": (Risk.READ, " ".join(KINDS))})
    assert least(made, "points.list", words, **arguments) == {f"body.{kind}.read"}


def test_of_two_kinds_a_value_names_one() -> None:
    kinds = {"forms.body.readonly": "See forms", "forms.answers.readonly": "See answers", "forms": "Manage forms"}
    made = catalog(kinds, {"watches.list": (Risk.READ, " ".join(kinds))})
    assert least(made, "watches.list") == {"forms.body.readonly"}
    assert least(made, "watches.list", type="ANSWERS") == {"forms.answers.readonly"}
    assert least(made, "watches.list", note="about the answers") == {"forms.body.readonly"}


@pytest.mark.promise(11)
def test_no_value_and_no_word_makes_more_be_changed() -> None:
    """Whoever writes the arguments or the request would else choose the scope."""
    kinds = {f"mail.{kind}": f"Manage {kind}" for kind in ("labels", "modify", "settings", "all")}
    wide = {f"m{number}": (Risk.DELETE, "mail.modify mail.settings mail.all") for number in range(9)}
    made = catalog(kinds, {"labels.create": (Risk.WRITE, " ".join(kinds)), **wide})
    for word in ("modify", "settings", "all"):
        assert least(made, "labels.create", f"use mail {word}", name=word, body={"kind": word}) == {"mail.labels"}


def test_no_value_and_no_word_chooses_what_does_worse() -> None:
    """Scopes side by side that open about as many methods, of which one is worse, say worse, or open twice as many."""
    kinds = {"mail.compose": "Compose mail", "mail.erase": "Delete mail", "mail.share": "Share mail with others",
             "mail.empty": "Write mail", "mail.purge": "Delete mail", "mail.everywhere": "Write mail"}  # fmt: skip
    alike = {f"m{number}": (Risk.WRITE, " ".join(kinds)) for number in range(9)}
    worse = {"d": (Risk.DELETE, "mail.empty"), "e": (Risk.DELETE, "mail.erase"), "a": (Risk.ADMIN, "mail.share")}
    made = catalog(kinds, {"things.create": (Risk.WRITE, " ".join(kinds)), **alike, **worse})
    wider = {f"w{number}": (Risk.WRITE, "mail.everywhere") for number in range(9)}
    much = catalog(kinds, {"things.create": (Risk.WRITE, " ".join(kinds)), **alike, **worse, **wider})
    assert least(much, "things.create", "mail everywhere", name="everywhere") == {"mail.compose"}
    for word in ("erase", "share", "empty", "purge"):
        assert least(made, "things.create", f"{word} my mail") == {"mail.compose"}
        assert least(made, "things.create", name=word) == {"mail.compose"}


def test_words_that_sql_has_too_are_words() -> None:
    made = files(**{"things.list": (Risk.READ, "files files.readonly"), "x": (Risk.DELETE, "files")})
    assert least(made, "things.list", q="update on the plan") == {"files.readonly"}
    assert least(made, "things.list", query="delete from x") == {"files.readonly"}
    method = made.method("s.things.list")
    for told in (
        replace(method, description="Runs an SQL query."),
        replace(method, parameters={**method.parameters, "properties": {"query": {"description": "Standard SQL."}}}),
    ):
        service = replace(made.service("s"), methods={**made.service("s").methods, "things.list": told})
        assert least(Catalog.of([service]), "things.list", query="delete from x") == {"files"}
        assert least(Catalog.of([service]), "things.list", query="select 1") == {"files.readonly"}


def test_only_what_says_who_asks_makes_an_administrators_call() -> None:
    allowed = "rooms.members rooms.admin.members"
    made = files(**{"rooms.members.add": (Risk.ADMIN, allowed), "x": (Risk.ADMIN, "rooms.members")})
    for arguments in ({"notifyAdmins": True}, {"body": {"useAdminAccess": True}}, {"useAdminAccess": "yes"},
                      {"isAdmin": True}, {"allowAdminAccess": True}):  # fmt: skip
        assert least(made, "rooms.members.add", "as an admin", **arguments) == {"rooms.members"}
    assert least(made, "rooms.members.add", useDomainAdminAccess=True) == {"rooms.admin.members"}


REFUSING = {
    "q": {"type": "string", "x-refused-scopes": {"files.metadata": []}},
    "view": {"type": "string", "default": "full", "x-refused-scopes": {"files.metadata": ["full"]}},
}


def test_what_the_provider_refuses_is_never_chosen() -> None:
    methods = {"things.list": (Risk.READ, "files.metadata files.readonly"), "a": (Risk.READ, "files.readonly files")}
    made = catalog(FILES, methods, q=REFUSING["q"])
    assert least(made, "things.list", q="name") == {"files.readonly"}
    made = catalog(FILES, {"things.get": (Risk.READ, "files.metadata")}, view=REFUSING["view"])
    assert least(made, "things.get", view="short") == {"files.metadata"}
    for arguments in ({}, {"view": "full"}):
        with pytest.raises(InvalidInput, match=r"No scope allows s\.things\.get with these arguments"):
            least(made, "things.get", **arguments)


def test_without_a_known_default_a_value_that_is_refused_may_be_it() -> None:
    view = {"type": "string", "x-refused-scopes": {"files.metadata": ["full"]}}
    made = catalog(FILES, {"things.get": (Risk.READ, "files.metadata files.readonly")}, view=view)
    assert least(made, "things.get") == {"files.readonly"}
    assert least(made, "things.get", view="full") == {"files.readonly"}


def test_scopes_with_names_of_our_own_are_taken_as_they_are_listed() -> None:
    """Manifests are checked by hand: a scope is listed only where it suffices."""
    method = Method(
        service="s", name="rooms.list", description="", http="GET", path="/", parameters={"properties": {}},
        locations={}, scopes=("rooms.admin.list", "rooms"), risk=Risk.READ,
    )  # fmt: skip
    scopes = {
        "rooms.admin.list": Scope(service="s", name="rooms.admin.list", description="", risk=Risk.READ),
        "rooms": Scope(service="s", name="rooms", description="", risk=Risk.WRITE),
    }
    service = Service(name="s", title="S", description="", base_url="", methods={"rooms.list": method}, scopes=scopes)
    call = Call(service="s", method="rooms.list", arguments={})
    assert least_scopes(Catalog.of([service]), [call], frozenset()) == (("s", "", "rooms.admin.list"),)


def test_of_many_each_risk_is_named_and_all_are_counted_worst_first() -> None:
    methods = {f"see.{number:02}": (Risk.READ, "files") for number in range(26)}
    methods |= {f"drop.{number}": (Risk.DELETE, "files") for number in range(5)}
    made = catalog(FILES, {**methods, "hand.over": (Risk.ADMIN, "files")})
    assert also(made, "s", f"{AUTH}files", {"see.00"}) == (
        "admin: does hand.over",
        "delete: does drop.0; does drop.1; does drop.2; does drop.3; 1 other deletion",
        "read: does see.01; does see.02; does see.03; does see.04; 21 other things to read",
    )


def test_what_says_that_it_does_worse_isnt_narrower() -> None:
    kinds = {"mail.part": "Delete mail", "mail": "Write mail", "mail.part.readonly": "See mail"}
    made = catalog(kinds, {"a": (Risk.READ, " ".join(kinds)), "b": (Risk.READ, "mail")})
    assert not narrower(made, "s", f"{AUTH}mail.part", f"{AUTH}mail")
    assert narrower(made, "s", f"{AUTH}mail.part.readonly", f"{AUTH}mail")
    assert not narrower(made, "s", f"{AUTH}mail", f"{AUTH}mail.part.readonly")


def test_what_a_scope_opens_counts_where_it_says_that_it_changes_things() -> None:
    kinds = {"notes": "Write notes", "papers": "Write papers", "papers.readonly": "See papers"}
    many = {f"m{number}": (Risk.WRITE, "papers") for number in range(9)}
    made = catalog(kinds, {"a": (Risk.WRITE, "notes papers"), "b": (Risk.DELETE, "notes"), **many})
    assert least(made, "a") == {"papers"}


def test_a_refusal_is_of_the_scope_that_it_names() -> None:
    view = {"type": "string", "x-refused-scopes": {"metadata": []}}
    made = catalog(FILES, {"things.get": (Risk.READ, "files.metadata")}, view=view)
    assert least(made, "things.get", view="full") == {"files.metadata"}


def test_who_asks_as_an_administrator_needs_that_scope_though_it_opens_more() -> None:
    both = "rooms.members rooms.admin.members"
    made = files(**{"rooms.members.add": (Risk.ADMIN, both), "x": (Risk.ADMIN, "rooms.admin.members")})
    assert least(made, "rooms.members.add", useAdminAccess=True) == {"rooms.admin.members"}
    assert least(made, "rooms.members.add") == {"rooms.members"}


def test_a_service_of_ten_thousand_scopes_is_decided_in_time() -> None:
    names = {f"r{number}.readonly": "See" for number in range(5000)} | {f"w{number}": "Write" for number in range(5000)}
    made = catalog(names, {"things.list": (Risk.READ, " ".join(names))})
    began = time.process_time()
    assert least(made, "things.list") == {"r0.readonly"}
    assert time.process_time() - began < 1000 * pace()


def virtual(*risks: Risk) -> Catalog:
    """A service without scopes of its own: one virtual scope and one method for each class."""
    methods = {
        f"things.{risk.word}": Method(
            service="v", name=f"things.{risk.word}", description=f"Does a {risk.word}.", http="POST", path="/",
            parameters={"properties": {}}, locations={}, scopes=(risk.word,), risk=risk,
        )
        for risk in risks
    }  # fmt: skip
    scopes = {risk.word: Scope(service="v", name=risk.word, description="", risk=risk, virtual=True) for risk in risks}
    return Catalog.of([Service(name="v", title="V", description="", base_url="", methods=methods, scopes=scopes)])


def test_virtual_scopes_are_ordered_and_the_least_is_chosen() -> None:
    made = virtual(*Risk)
    for method in Risk:
        for scope in Risk:
            assert suffices(made, "v", f"things.{method.word}", scope.word) == (scope >= method)
        call = Call(service="v", method=f"things.{method.word}", arguments={})
        assert least_scopes(made, [call], frozenset()) == (("v", "", method.word),)
    both = [Call(service="v", method=f"things.{word}", arguments={}) for word in ("read", "delete")]
    assert least_scopes(made, both, frozenset()) == (("v", "", "delete"),)
    held = frozenset({("v", "", "write")})
    assert least_scopes(made, both[:1], held) == (("v", "", "write"),)
    assert also(made, "v", "write", {"things.write"}) == ("read: does a read",)
    service = made.service("v")
    two = replace(service.methods["things.read"], scopes=("read", "admin"))
    among = Catalog.of([replace(service, methods={**service.methods, two.name: two})])
    assert all(suffices(among, "v", "things.read", risk.word) for risk in Risk)


DATA = ("activity", "body", "sleep")
FITNESS = {f"fit.{kind}.{way}": f"{way} your {kind}" for kind in DATA for way in ("read", "write")}


@pytest.mark.parametrize(
    ("words", "arguments", "chosen"),
    [
        ("", {"source": "derived:com.example.calories.expended:merged"}, "activity"),  # a value stands for a kind
        ("", {"source": "raw:com.example.weight:scale"}, "body"),
        ("how many calories did I burn", {}, "activity"),
        ("my nap at noon", {}, "sleep"),
        ("my weight", {"source": "derived:com.example.step_count.delta"}, "activity"),  # values before words
    ],
)
def test_everyday_words_stand_for_kinds_of_data(words: str, arguments: dict[str, str], chosen: str) -> None:
    made = catalog(FITNESS, {"data.get": (Risk.READ, "fit.activity.read fit.body.read fit.sleep.read")})
    assert least(made, "data.get", words=words, **arguments) == {f"fit.{chosen}.read"}


def test_of_two_kinds_an_everyday_word_names_one_where_it_names_no_other() -> None:
    made = catalog(FITNESS, {"sessions.delete": (Risk.DELETE, "fit.activity.write fit.sleep.write")})
    assert least(made, "sessions.delete", words="that ride is wrong") == {"fit.activity.write"}
    assert least(made, "sessions.delete", words="that nap is wrong") == {"fit.sleep.write"}
    unnamed = least(made, "sessions.delete")
    assert least(made, "sessions.delete", words="I took a nap after that ride") == unnamed


def test_a_kind_more_is_only_seen_where_it_is_named() -> None:
    made = catalog(
        {"reports.readonly": "See reports", "reports-monetary.readonly": "See monetary and other reports"},
        {"reports.query": (Risk.READ, "reports.readonly reports-monetary.readonly")},
    )
    assert least(made, "reports.query") == {"reports.readonly"}
    assert least(made, "reports.query", words="how often was it watched") == {"reports.readonly"}
    assert least(made, "reports.query", words="what did it earn") == {"reports-monetary.readonly"}
    assert least(made, "reports.query", metrics="estimatedRevenue") == {"reports-monetary.readonly"}


USED = {
    "decks": "See, edit, create, and delete all your decks",
    "decks.readonly": "See all your decks",
    "file": "See, edit, create, and delete only the specific files you use with this app",
}


def placed(made: Catalog, name: str, path: str) -> Catalog:
    """The same with a path in which one method names what it is about."""
    service = made.service("s")
    found = replace(service.methods[name], path=path, locations={path.strip("/{}"): "path"})
    return Catalog.of([replace(service, methods={**service.methods, name: found})])


def test_what_was_there_before_is_not_looked_at_by_the_scope_for_what_is_made() -> None:
    made = catalog(
        USED, {"decks.get": (Risk.READ, "decks decks.readonly file"), "notes.create": (Risk.WRITE, "decks file")}
    )
    calls = [
        Call(service="s", method="decks.get", arguments={"deck": "1A"}),
        Call(service="s", method="notes.create", arguments={}),
    ]
    found = least_scopes(placed(made, "decks.get", "/{deck}"), calls, frozenset())
    # `decks` and `decks.readonly` add nothing to what `file` opens, so that the risk of each decides.
    assert {scope.removeprefix(AUTH) for _, _, scope in found} == {"decks.readonly", "file"}


def test_the_own_folder_is_reached_by_its_own_scope_alone() -> None:
    scopes = {**USED, "appdata": "See, create, and delete its own configuration data"}
    made = catalog(scopes, {"files.create": (Risk.WRITE, "decks file appdata")})
    assert least(made, "files.create", name="Plans") == {"file"}
    assert least(made, "files.create", parents=["appDataFolder"]) == {"appdata"}


def test_small_words_are_nobodys() -> None:
    made = catalog(
        {
            "tasks.me.readonly": "View your tasks",
            "tasks.students.readonly": "View the tasks for students in the classes you teach",
        },
        {"tasks.list": (Risk.READ, "tasks.me.readonly tasks.students.readonly")},
    )
    assert least(made, "tasks.list", words="what do I have to hand in for the week") == {"tasks.me.readonly"}
    assert least(made, "tasks.list", words="what did my students hand in") == {"tasks.students.readonly"}


def test_a_method_that_is_risky_elsewhere_weighs_as_looking_for_a_scope_that_looks() -> None:
    made = catalog(
        {"rules.readonly": "See rules", "rules": "Manage rules", "all.readonly": "See everything", "all": "Manage all"},
        {
            "rules.get": (Risk.READ, "rules rules.readonly all.readonly"),
            "rules.watch": (Risk.ADMIN, "rules rules.readonly"),
            **{f"things{number}.get": (Risk.READ, "all.readonly") for number in range(5)},
        },
    )
    assert least(made, "rules.get") == {"rules.readonly"}
