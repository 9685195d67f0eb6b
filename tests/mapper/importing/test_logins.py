"""What an OpenAPI document says about logins: taken as a fact of the document, and no further."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from mapper.importing.import_report import Report
from policies.errors import Unavailable
from policies.services import OAuth

CODE = {
    "authorizationUrl": "https://login.example.org/authorize",
    "tokenUrl": "https://login.example.org/token",
    "scopes": {"notes.read": "Read notes.", "notes.write": "Write notes.", "profile": "See who you are."},
}


def notes(schemes: dict[str, Any], wanted: Any = None) -> dict[str, Any]:
    first = next(iter(schemes))
    security = wanted if wanted is not None else [{first: ["notes.read"]}]
    get = {"operationId": "list", "security": security, "responses": {"200": {"description": "."}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Notes", "version": "1"},
        "servers": [{"url": "https://notes.example.org"}],
        "paths": {"/notes": {"get": get}},
        "components": {"securitySchemes": schemes},
    }


def put(folder: Path, raw: Any) -> Report:
    place = folder / "notes.json"
    place.write_text(json.dumps(raw), encoding="utf-8")
    return import_openapi(folder / "catalog.db", place, "notes", index=False)


def login(folder: Path) -> OAuth | None:
    return Catalog.open(folder / "catalog.db").service("notes").oauth


def test_an_authorization_code_flow_is_a_fact_of_the_document(tmp_path: Path) -> None:
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}}}))
    made = login(tmp_path)
    assert made is not None
    assert (made.authorization_endpoint, made.token_endpoint) == (CODE["authorizationUrl"], CODE["tokenUrl"])
    assert made.source == "imported"
    assert not made.parameters and not made.client_id and not made.always


def test_swagger_says_the_same_in_its_own_words(tmp_path: Path) -> None:
    scheme = {"type": "oauth2", "flow": "accessCode", **CODE}
    raw = notes({"oauth": scheme})
    raw = {
        "swagger": "2.0",
        "info": raw["info"],
        "host": "notes.example.org",
        "paths": raw["paths"],
        "securityDefinitions": {"oauth": scheme},
    }
    put(tmp_path, raw)
    made = login(tmp_path)
    assert made is not None and made.token_endpoint == CODE["tokenUrl"]


def test_an_issuer_goes_before_endpoints(tmp_path: Path) -> None:
    schemes = {
        "oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}},
        "oidc": {
            "type": "openIdConnect",
            "openIdConnectUrl": "https://id.example.org/t/.well-known/openid-configuration",
        },
    }
    put(tmp_path, notes(schemes))
    made = login(tmp_path)
    assert made is not None and (made.issuer, made.token_endpoint) == ("https://id.example.org/t", "")


def test_permissions_that_are_needed_together_are_asked_for_one_by_one(tmp_path: Path) -> None:
    scheme = {"type": "oauth2", "flows": {"authorizationCode": CODE}}
    put(tmp_path, notes({"oauth": scheme}, [{"oauth": ["notes.write", "notes.read"]}]))
    made = login(tmp_path)
    assert made is not None
    assert made.spell("notes.read+notes.write") == ("notes.read", "notes.write")
    assert made.spell("profile") == ("profile",)


@pytest.mark.parametrize(
    "flows",
    [
        {"implicit": {"authorizationUrl": "https://login.example.org/authorize", "scopes": {}}},
        {"password": {"tokenUrl": "https://login.example.org/token", "scopes": {}}},
    ],
)
def test_flows_that_show_a_token_or_want_a_password_are_no_login(tmp_path: Path, flows: Any) -> None:
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": flows}}, [{"oauth": []}]))
    assert login(tmp_path) is None


@pytest.mark.parametrize(
    "url", ["http://login.example.org/token", "/token", "https://u:p@login.example.org/token", "file:///etc", 7, "x y"]
)
def test_an_address_that_isnt_plain_https_is_a_problem_with_its_place(tmp_path: Path, url: Any) -> None:
    report = put(
        tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": {**CODE, "tokenUrl": url}}}})
    )
    assert login(tmp_path) is None
    (problem,) = [problem for problem in report.problems if "tokenUrl" in problem.where]
    assert problem.where == "components.securitySchemes.oauth.flows.authorizationCode.tokenUrl"


def test_a_place_on_this_machine_may_be_plain_http(tmp_path: Path) -> None:
    flow = {**CODE, "tokenUrl": "http://127.0.0.1:8080/token", "authorizationUrl": "http://127.0.0.1:8080/auth"}
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": flow}}}))
    made = login(tmp_path)
    assert made is not None and made.token_endpoint == "http://127.0.0.1:8080/token"


def test_a_new_import_replaces_what_was_said_and_a_removal_forgets_it(tmp_path: Path) -> None:
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}}}))
    put(tmp_path, notes({"key": {"type": "http", "scheme": "bearer"}}, [{"key": []}]))
    assert login(tmp_path) is None
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        assert db.execute("SELECT count(*) FROM login").fetchone() == (0,)


def test_a_catalog_from_before_logins_were_noted_is_read(tmp_path: Path) -> None:
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}}}))
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        db.execute("DROP TABLE login")
    assert login(tmp_path) is None
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}}}))
    assert login(tmp_path) is not None


@pytest.mark.parametrize("facts", ["[]", "{", '{"spelled": {}}', '{"issuer": "x", "spelled": {}}'])
def test_what_no_import_writes_isnt_believed(tmp_path: Path, facts: str) -> None:
    put(tmp_path, notes({"oauth": {"type": "oauth2", "flows": {"authorizationCode": CODE}}}))
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        db.execute("UPDATE login SET facts = ?", (facts,))
    with pytest.raises(Unavailable):
        login(tmp_path)
