"""What scopes open: counted once over versions and services, kept small, and never guessed when it is damaged."""

from __future__ import annotations

import json
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_openapi
from mapper.importing.scope_refusals import refused_scopes
from mapper.least_scopes import also, least_scopes, plain, reach_of, risk_of
from mapper.reach import WEIGHTS, Reach
from mapper.store.catalog_reader import StoreUnreadable
from policies.actions import Call
from policies.services import Risk
from tests.mapper.importing.documents import FULL, READ, discovery, method, write

import_google = partial(install.import_google, index=False)

SETS = st.integers(min_value=0, max_value=2**40)
REACHES = st.builds(lambda a, b, c, d: Reach((a, b, c, d), 1), SETS, SETS, SETS, SETS)


@given(REACHES, REACHES)
def test_a_part_never_weighs_more_than_the_whole(a: Reach, b: Reach) -> None:
    both = a | b
    assert a.within(both)
    assert b.within(both)
    assert a.weight <= both.weight <= a.weight + b.weight
    assert (a | b).bits == (b | a).bits
    assert a.besides(both) == 0
    assert (a.besides(b) == 0) == a.within(b)
    assert a.methods == sum(a.count(risk) for risk in Risk)


def test_worse_methods_weigh_more_and_nothing_known_deletes() -> None:
    assert [WEIGHTS[risk] for risk in sorted(Risk)] == sorted(WEIGHTS.values())
    assert Reach().risk is Risk.DELETE
    assert Reach((1, 0, 0, 0), 1).risk is Risk.READ
    assert Reach((1, 0, 0, 1), 1).risk is Risk.ADMIN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "documents"
    made.mkdir()
    return made


def imported(folder: Path, *documents: dict[str, Any]) -> Catalog:
    for document in documents:
        write(folder, document)
    import_google(folder.parent / "catalog.db", folder)
    return Catalog.open(folder.parent / "catalog.db")


def things(version: str = "v1", name: str = "things", **more: Any) -> dict[str, Any]:
    methods = {"list": method(f"{name}.list"), "delete": method(f"{name}.delete", "DELETE", scopes=[FULL])}
    return discovery(name, version, methods=methods | more)


def test_versions_count_once_and_services_together(folder: Path) -> None:
    made = imported(folder, things(), things("v2"), things(name="boxes"))
    reach = reach_of(made, "things", FULL)
    assert (reach.methods, reach.services.bit_count()) == (4, 2)
    assert (reach.count(Risk.READ), reach.count(Risk.DELETE)) == (2, 2)
    assert reach_of(made, "boxes", FULL) == reach
    assert reach_of(made, "things", READ).within(reach)
    assert reach_of(made, "things", READ).methods == 2


def test_the_worst_risk_of_any_version_counts(folder: Path) -> None:
    milder = things("v2")
    milder["resources"]["things"]["methods"]["delete"] = method("things.delete", "GET", scopes=[FULL])
    made = imported(folder, things(), milder)
    assert reach_of(made, "things", FULL).count(Risk.DELETE) == 1


def test_a_scope_of_another_service_raises_this_ones_risk(folder: Path) -> None:
    """The token that this service gets opens the other one, too."""
    harmless = discovery("boxes", methods={"list": method("boxes.list")})
    made = imported(folder, harmless, things())
    assert made.scope("boxes", FULL).risk is Risk.READ
    assert risk_of(made, "boxes", FULL) is Risk.DELETE


def test_what_only_another_version_has_is_told(folder: Path) -> None:
    """The token opens it there, too, and nobody would look."""
    made = imported(folder, things(), things("v2beta", purge=method("things.purge", "DELETE", scopes=[FULL, READ])))
    said = also(made, "things", FULL, {"list", "delete"})
    assert said == ("delete: 1 deletion in its other versions",)
    assert also(made, "things", READ, {"list"}) == ("delete: 1 deletion in its other versions",)
    assert plain(made, "things", READ) == "See your things. At worst it can delete things."
    assert plain(made, "things", FULL) == "See, change and delete your things."
    again = imported(folder, things(), things("v2beta", put=method("things.put", "POST", scopes=[FULL, READ])))
    assert plain(again, "things", READ) == "See your things. At worst it can change things."


def test_what_an_imported_scope_says_of_itself_is_held_against_what_it_opens(tmp_path: Path) -> None:
    """Not only where scopes have addresses: many documents name them `read:things`."""
    spec = {
        "openapi": "3.0.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "https://shop.example"}],
        "components": {"securitySchemes": {"o": {"type": "oauth2", "flows": {"implicit": {
            "authorizationUrl": "https://shop.example/a", "scopes": {"orders:read": "See your orders"}}}}}},
        "paths": {"/orders": {verb: {"operationId": f"orders.{verb}", "security": [{"o": ["orders:read"]}],
                                     "responses": {"200": {"description": ""}}} for verb in ("get", "delete")}},
    }  # fmt: skip
    (tmp_path / "shop.json").write_text(json.dumps(spec))
    import_openapi(tmp_path / "catalog.db", tmp_path / "shop.json")
    made = Catalog.open(tmp_path / "catalog.db")
    (name,) = (service for service in made.services if made.service(service).source == "imported")
    assert plain(made, name, "orders:read") == "See your orders. At worst it can delete things."
    assert risk_of(made, name, "orders:read") is Risk.DELETE


def test_a_scope_that_is_granted_for_one_service_isnt_for_another(folder: Path) -> None:
    """They share its name; a grant is for one of them, so that it costs nothing new only where each has it."""
    made = imported(folder, things(), things(name="boxes"))
    calls = [Call(service=service, method="list", arguments={}) for service in ("things", "boxes")]
    one = frozenset({("things", "", FULL)})
    both = one | {("boxes", "", FULL)}
    assert {scope for _, _, scope in least_scopes(made, calls, one)} == {READ}
    assert {scope for _, _, scope in least_scopes(made, calls, both)} == {FULL}
    assert {scope for _, _, scope in least_scopes(made, calls[:1], one)} == {FULL}
    assert {scope for _, _, scope in least_scopes(made, calls[:1], frozenset({("things", "work", FULL)}))} == {READ}


def test_a_scope_that_says_worse_than_it_opens_is_as_bad_as_it_says(folder: Path) -> None:
    made = imported(folder, discovery(methods={"list": method("things.list")}))
    assert (made.scope("things", FULL).risk, reach_of(made, "things", FULL).risk) == (Risk.READ, Risk.READ)
    assert risk_of(made, "things", FULL) is Risk.DELETE
    assert risk_of(made, "things", READ) is Risk.READ


def test_an_import_and_a_removal_change_it(folder: Path) -> None:
    made = imported(folder, things())
    assert reach_of(made, "things", FULL).methods == 2
    again = imported(folder, things(name="boxes"))
    assert reach_of(made, "things", FULL) == reach_of(again, "things", FULL)
    assert reach_of(made, "things", FULL).methods == 4
    install.remove(folder.parent / "catalog.db", "boxes")
    assert reach_of(made, "things", FULL).methods == 2


def test_a_file_of_before_the_table_still_answers(folder: Path) -> None:
    made = imported(folder, things(), things(name="boxes"))
    with sqlite3.connect(folder.parent / "catalog.db") as db:
        db.execute("DROP TABLE reach")
    assert reach_of(made, "things", FULL).methods == 2  # of this service alone
    assert reach_of(made, "things", FULL).risk is Risk.DELETE


def test_a_damaged_row_is_said(folder: Path) -> None:
    imported(folder, things())
    with sqlite3.connect(folder.parent / "catalog.db") as db:
        db.execute("UPDATE reach SET deletes = x'00ff'")
    with pytest.raises(StoreUnreadable):
        reach_of(Catalog.open(folder.parent / "catalog.db"), "things", FULL)


@pytest.mark.parametrize(
    ("about", "refused"),
    [
        ({"description": "A query. Parameter cannot be used when accessing the api using the things.metadata scope."},
         {"things.metadata": []}),
        ({"description": "Can't be used with the `things.metadata` scope"}, {"things.metadata": []}),
        ({"enum": ["a", "b", "c"], "enumDescriptions": ["Short.", "All. Format cannot be used when accessing the api"
          " using the m scope.".replace(" m ", " things.metadata "), ""]}, {"things.metadata": ["b"]}),
        ({"description": "Works under any scope."}, {}),
        ({"description": "Requires the things.admin scope."}, {}),
        ({"description": 7, "enum": "x", "enumDescriptions": [1]}, {}),
        ({"enum": [1], "enumDescriptions": ["cannot be used with the things.metadata scope"]}, {}),
        ("no table", {}),
    ],
)  # fmt: skip
def test_what_descriptions_say_that_a_scope_refuses(about: Any, refused: dict[str, list[str]]) -> None:
    assert refused_scopes(about) == refused


def test_refusals_reach_the_catalog(folder: Path) -> None:
    parameter = {
        "type": "string", "location": "query",
        "description": "Parameter cannot be used when accessing the api using the things.readonly scope.",
    }  # fmt: skip
    made = imported(folder, things(search=method("things.search", parameters={"q": parameter})))
    schema = made.method("things.search").parameters["properties"]["q"]
    assert schema["x-refused-scopes"] == {"things.readonly": []}
