"""Least scopes: always sufficient, never more than the best that exhaustive search finds."""

from __future__ import annotations

from itertools import combinations
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog, UnknownName
from mapper.least_scopes import _Search, also, least_scopes, worst
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method, Risk, Scope, Service

CATALOG = Catalog.bundled()
NONE: frozenset[tuple[str, str, str]] = frozenset()


def call(method_id: str, account: str = "") -> Call:
    service, _, name = method_id.partition(".")
    return Call(service=service, method=name, arguments={}, account=account)


def method(name: str, scopes: tuple[str, ...]) -> Method:
    return Method(
        service="s",
        name=name,
        description=f"{name.title()} things.",
        http="GET",
        path="/",
        parameters={"type": "object", "properties": {}, "required": []},
        locations={},
        scopes=scopes,
        risk=Risk.READ,
    )


def catalog(scopes: dict[str, Risk], methods: dict[str, tuple[str, ...]]) -> Catalog:
    return Catalog.of(
        [
            Service(
                name="s",
                title="S",
                description="",
                base_url="",
                methods=MappingProxyType({name: method(name, allowed) for name, allowed in methods.items()}),
                scopes=MappingProxyType(
                    {name: Scope(service="s", name=name, description=name, risk=risk) for name, risk in scopes.items()}
                ),
            )
        ]
    )


def test_by_what_a_scope_unlocks() -> None:
    assert least_scopes(CATALOG, [call("github.issues.list")], NONE) == (("github", "", "issues:read"),)
    assert least_scopes(CATALOG, [call("github.issues.create")], NONE) == (("github", "", "issues:write"),)
    both = least_scopes(CATALOG, [call("github.issues.create"), call("github.issues.get")], NONE)
    assert both == (("github", "", "issues:write"),)
    assert least_scopes(CATALOG, [call("matrix.rooms.send")], NONE) == (("matrix", "", "messages.write"),)


def test_what_is_granted_is_preferred_where_it_suffices() -> None:
    wide = frozenset({("github", "", "public_repo")})
    assert least_scopes(CATALOG, [call("github.issues.create")], wide) == (("github", "", "public_repo"),)
    other = frozenset({("github", "work", "public_repo"), ("slack", "", "chat:write"), ("github", "", "starring:read")})
    assert least_scopes(CATALOG, [call("github.issues.create")], other) == (("github", "", "issues:write"),)


def test_the_least_of_several_granted_is_used() -> None:
    granted = frozenset({("github", "", "repo"), ("github", "", "issues:read"), ("github", "", "issues:write")})
    assert least_scopes(CATALOG, [call("github.issues.get")], granted) == (("github", "", "issues:read"),)


def test_accounts_and_services_are_kept_apart() -> None:
    calls = [call("slack.chat.postMessage", "a"), call("slack.chat.postMessage", "b"), call("github.repos.get", "a")]
    assert least_scopes(CATALOG, calls, NONE) == (
        ("github", "a", "metadata:read"),
        ("slack", "a", "chat:write"),
        ("slack", "b", "chat:write"),
    )


def test_risk_comes_before_number() -> None:
    made = catalog({"admin": Risk.ADMIN, "a": Risk.READ, "b": Risk.READ}, {"x": ("admin", "a"), "y": ("admin", "b")})
    assert least_scopes(made, [call("s.x"), call("s.y")], NONE) == (("s", "", "a"), ("s", "", "b"))


def test_absence_denies() -> None:
    with pytest.raises(UnknownName):
        least_scopes(CATALOG, [call("slack.chat.explode")], NONE)
    with pytest.raises(InvalidInput, match="No scope allows"):
        least_scopes(catalog({}, {"x": ()}), [call("s.x")], NONE)
    assert least_scopes(CATALOG, [], NONE) == ()
    assert worst(CATALOG, []) is Risk.DELETE
    assert worst(CATALOG, [("github", "", "issues:read"), ("github", "", "repo")]) is Risk.ADMIN


def test_what_else_a_scope_allows_worst_first() -> None:
    said = also(CATALOG, "slack", "chat:write", {"chat.postMessage"})
    assert said[0] == "delete: delete a message that this app has posted"
    assert not any(line.endswith("post a message to a channel or a person") for line in said)
    risks = [Risk.parse(line.split(":")[0]) for line in also(CATALOG, "github", "repo", set())]
    assert risks == sorted(risks, reverse=True) and len(risks) == len(CATALOG.unlocks("github", "repo"))
    assert also(CATALOG, "matrix", "messages.write", {"rooms.send"}) == ()
    with pytest.raises(UnknownName):
        also(CATALOG, "slack", "no:such", set())


NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Catalog, list[str], frozenset[str]]:
    risks = {name: draw(st.sampled_from(list(Risk))) for name in NAMES}
    methods = {
        f"m{i}": tuple(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)))
        for i in range(draw(st.integers(1, 6)))
    }
    wanted = draw(st.lists(st.sampled_from(sorted(methods)), min_size=1, max_size=5))
    granted = draw(st.frozensets(st.sampled_from(NAMES), max_size=3))
    return catalog(risks, methods), wanted, granted


@settings(max_examples=100)
@given(cases())
def test_sufficient_and_minimal_by_brute_force(case: tuple[Catalog, list[str], frozenset[str]]) -> None:
    made, wanted, granted = case
    found = least_scopes(made, [call(f"s.{name}") for name in wanted], frozenset(("s", "", g) for g in granted))
    chosen = frozenset(scope for _, _, scope in found)
    methods = [made.method(f"s.{name}") for name in wanted]
    assert all(chosen & set(m.scopes) for m in methods)  # sufficient
    assert all(any(not (chosen - {scope}) & set(m.scopes) for m in methods) for scope in chosen)  # none to spare
    if all(granted & set(m.scopes) for m in methods):
        assert chosen <= granted
    search = _Search(made, "s", granted)
    covers = [
        frozenset(some)
        for size in range(1, len(NAMES) + 1)
        for some in combinations(NAMES, size)
        if all(set(some) & set(m.scopes) for m in methods)
    ]
    assert search.cost(chosen) == min(search.cost(cover) for cover in covers)


def test_many_methods_end_in_time_and_suffice() -> None:
    scopes = {f"s{i}": Risk.READ for i in range(40)}
    methods = {f"m{i}": tuple(f"s{(i * 7 + j * 3) % 40}" for j in range(6)) for i in range(30)}
    made = catalog(scopes, methods)
    found = {scope for _, _, scope in least_scopes(made, [call(f"s.{name}") for name in methods], NONE)}
    assert all(found & set(allowed) for allowed in methods.values())


def test_our_own_gmail_asks_for_what_its_arguments_need() -> None:
    auth = "https://www.googleapis.com/auth/"

    def least(method: str, **arguments: str) -> set[str]:
        made = Call(service="gmail", method=method, arguments=dict(arguments))
        return {scope.removeprefix(auth) for _, _, scope in least_scopes(CATALOG, [made], NONE)}

    assert least("users.messages.list") == {"gmail.metadata"}
    assert least("users.messages.list", q="from:bo") == {"gmail.readonly"}
    assert least("users.messages.get", id="m1") == {"gmail.readonly"}
    assert least("users.messages.get", id="m1", format="metadata") == {"gmail.metadata"}
    assert least("users.messages.send") == {"gmail.send"}
    trash = Call(service="google_drive", method="files.trash", arguments={"fileId": "f"})
    assert {scope for _, _, scope in least_scopes(CATALOG, [trash], NONE)} == {f"{auth}drive.file"}
