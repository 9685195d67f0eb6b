"""What an account must hold for a plan: least scopes, others in their stead, and what no server has to grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from goex.engine.consent import Holder, NeedsConsent, Use, login_command, opens, uses
from mapper import manifest
from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Need, Plan, UndoClass
from policies.services import Risk

MANIFEST = """\
name = "notes"
title = "Notes"
description = "Notes."
base_url = "https://notes.example.org"

[oauth]
issuer = "https://login.example.org"
prefix = "n/"
spelled = { "both" = ["n/read", "n/write"] }

[scopes.read]
description = "Read notes."
risk = "read"
[scopes.write]
description = "Write notes."
risk = "write"
[scopes.all]
description = "Read, write and delete all notes."
risk = "delete"
[scopes.both]
description = "Read and write notes."
risk = "write"
[scopes.search]
description = "Search."
risk = "read"
virtual = true

[methods.list]
http = "GET /notes"
description = "List notes."
scopes = ["read", "all"]
risk = "read"
[methods.add]
http = "POST /notes"
description = "Add a note."
scopes = ["write", "all"]
risk = "write"
irreversible = "it stays."
[methods.copy]
http = "POST /copies"
description = "Copy notes."
scopes = ["both"]
risk = "write"
irreversible = "it stays."
[methods.find]
http = "GET /search"
description = "Search."
scopes = ["search"]
risk = "read"
"""
CATALOG = Catalog.of([manifest.load(MANIFEST, file="notes.toml")])
KEY = ("notes", "default")
ACCOUNT = Account(
    service="notes",
    name="default",
    origins=(Origin.parse("https://notes.example.org"),),
    base_url="https://notes.example.org",
    format="oauth",
)


class Holding:
    """Credentials that are a login with these scopes, or (None) none."""

    def __init__(self, granted: Iterable[str] | None, holder: Holder | None = None, asks: bool = False) -> None:
        self._asks = asks
        self._granted = None if granted is None else frozenset(granted)
        self._holder = holder

    def granted(self, service: str, name: str) -> frozenset[str] | None:
        return self._granted

    def asks(self, service: str, name: str) -> bool:
        return self._asks

    def narrows(self, account: Account, scopes: Iterable[str]) -> Holder | None:
        return self._holder


def plan(*needs: tuple[str, str], why: str = "action") -> Plan:
    """A plan that needs (scope, method)."""
    return Plan(
        action=ApiCalls(calls=()),
        needs=tuple(
            Need(service="notes", account="default", scope=scope, risk=Risk.READ, methods=(method,), why=why)  # type: ignore[arg-type]
            for scope, method in needs
        ),
        undo_class=UndoClass.NOTHING,
        undo_text="",
        resolved={},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


def use(wanted: Plan, granted: Iterable[str] | None) -> Use:
    (found,) = uses(wanted, CATALOG, Holding(granted)).values()
    return found


@pytest.mark.parametrize(
    ("needs", "granted", "scopes", "missing", "spelled"),
    [
        ([("read", "list")], ["n/read", "n/all"], ("read",), (), ("n/read",)),
        ([("read", "list")], ["n/all"], ("all",), (), ("n/all",)),  # another that is granted serves in its stead
        ([("read", "list")], ["n/write"], (), ("read",), ()),
        ([("read", "list")], [], (), ("read",), ()),
        ([("read", "list")], ["read"], (), ("read",), ()),  # the server's name counts, not the catalog's
        ([("read", "list"), ("write", "add")], ["n/read"], ("read",), ("write",), ("n/read",)),
        ([("read", "list"), ("write", "add")], ["n/read", "n/all"], ("read", "all"), (), ("n/read", "n/all")),
        ([("both", "copy")], ["n/read", "n/write"], ("both",), (), ("n/read", "n/write")),
        ([("both", "copy")], ["n/read"], (), ("both",), ()),
        ([("search", "find")], [], (), (), ()),  # cut by the gateway: no server has it
        ([("search", "find"), ("read", "list")], ["n/read"], ("read",), (), ("n/read",)),
        ([("read", "list")], None, (), (), ()),  # a key says nothing of scopes
        ([("gone", "list")], ["n/write"], (), ("gone",), ()),  # the catalog changed since: nothing is guessed
    ],
)
def test_what_a_token_must_hold(
    needs: list[tuple[str, str]],
    granted: list[str] | None,
    scopes: tuple[str, ...],
    missing: tuple[str, ...],
    spelled: tuple[str, ...],
) -> None:
    assert use(plan(*needs), granted) == Use(scopes, missing, spelled)


def test_of_an_account_whose_tokens_are_asked_for_anew_it_is_what_is_needed() -> None:
    wanted = plan(("read", "list"), ("search", "find"))
    (found,) = uses(wanted, CATALOG, Holding(None, asks=True)).values()
    assert found == Use(("read",), (), ("n/read",))


def test_what_only_an_undo_would_need_isnt_asked_for() -> None:
    whole = plan(("read", "list"))
    later = plan(("write", "add"), why="undo")
    assert use(replace(whole, needs=(*whole.needs, *later.needs)), ["n/read"]) == Use(("read",), (), ("n/read",))


def test_what_isnt_a_services_has_no_credential() -> None:
    files = Need(service="files", account="/x", scope="run", risk=Risk.WRITE, methods=("run",))
    assert uses(replace(plan(), needs=(files,)), CATALOG, Holding([])) == {}


@pytest.mark.parametrize(
    ("granted", "holder", "held_by", "said", "seen"),
    [
        (["n/read", "n/write"], "token", "token", ("both", "read", "write"), True),
        (["n/read"], "gateway", "gateway", ("read",), True),
        (["n/read"], None, "gateway", ("read",), False),
        (["n/read", "mail"], None, "gateway", ("read", "mail"), False),  # what the catalog doesn't know is said too
        (None, None, "gateway", None, True),
    ],
)
def test_what_the_prompt_says_of_a_credential(
    granted: list[str] | None, holder: Holder | None, held_by: str, said: tuple[str, ...] | None, seen: bool
) -> None:
    found = opens(plan(("read", "list")), {KEY: ACCOUNT}, CATALOG, Holding(granted, holder))[KEY]
    assert (found.held_by, found.scopes, found.seen) == (held_by, said, seen)


def test_a_need_that_only_the_gateway_holds_to_is_never_said_to_be_the_services() -> None:
    found = opens(plan(("search", "find")), {KEY: ACCOUNT}, CATALOG, Holding(["n/read"], "token"))[KEY]
    assert found.held_by == "gateway"


def test_the_command_that_mends_it_can_be_pasted() -> None:
    from goex.engine.consent import Consent

    consent = Consent("notes", "it's mine; rm -rf ~", ("read", "a b"))
    error = NeedsConsent((consent,))
    assert login_command(consent) in error.next_step
    assert "--account 'it'\"'\"'s mine; rm -rf ~' --scope read --scope 'a b'" in error.next_step
    assert (error.code, error.difference) == ("consent", ("read", "a b"))
