"""Where a document wants requests signed, the secret never leaves as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_openapi
from mapper.importing.security import signed
from policies.errors import Unsupported
from tests.mapper.importing.openapi_documents import document

HEADER = {"type": "apiKey", "in": "header"}
SIGNED: dict[str, dict[str, Any]] = {
    "AWS": {**HEADER, "name": "Authorization", "x-amazon-apigateway-authtype": "awsSigv4"},
    "AWS in words": {**HEADER, "name": "Authorization", "description": "Amazon Signature authorization v4"},
    "AWS, another spelling": {**HEADER, "name": "Authorization", "X-Amazon-Apigateway-Authtype": "AWS_IAM"},
    "hmac": {**HEADER, "name": "Authorization", "description": "HMAC-SHA256 of the request with your key"},
    "a signature's header": {**HEADER, "name": "X-Signature"},
    "digest": {**HEADER, "name": "Authorization", "description": "HTTP Digest"},
    "oauth1": {**HEADER, "name": "Authorization", "description": "OAuth 1.0a"},
    "you sign requests": {**HEADER, "name": "X-Auth", "description": "Sign every request with your key."},
    "shared key": {**HEADER, "name": "Authorization", "description": "SharedKey account:signature"},
    "in the query": {"type": "apiKey", "in": "query", "name": "sig"},
    "in the query, beside a key": {"type": "apiKey", "in": "query", "name": "api_sig"},
    "a hash of the request": {"type": "apiKey", "in": "query", "name": "requestHash"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "http digest": {"type": "http", "scheme": "digest"},
    "http hmac": {"type": "http", "scheme": "payone-hmac-sha256"},
    "http negotiate": {"type": "http", "scheme": "Negotiate"},
    "a certificate": {"type": "mutualTLS"},
}
PLAIN: dict[str, tuple[dict[str, Any], str]] = {
    "a key": ({**HEADER, "name": "X-Key"}, "{secret}"),
    "a key in the query": ({"type": "apiKey", "in": "query", "name": "api_key"}, "{secret}"),
    "a token in Authorization": ({**HEADER, "name": "Authorization", "description": "Your API token."}, "{secret}"),
    "bearer, a signed token": (
        {"type": "http", "scheme": "bearer", "description": "A signed request token"}, "Bearer {secret}"
    ),
    "basic": ({"type": "http", "scheme": "basic", "description": "Digest isn't supported"}, "Basic {secret}"),
    "openIdConnect": ({"type": "openIdConnect", "openIdConnectUrl": "https://x.example/"}, "Bearer {secret}"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "rebuild", lambda *_: None)


def imported(tmp_path: Path, scheme: dict[str, Any], **more: Any) -> tuple[Catalog, tuple[str, ...]]:
    operation = {"operationId": "list", "security": [{"it": []}], "responses": {}, **more}
    made = document({"/things": {"get": operation}}, components={"securitySchemes": {"it": scheme}})
    (tmp_path / "svc.json").write_text(json.dumps(made))
    report = import_openapi(tmp_path / "catalog.db", tmp_path / "svc.json", "svc")
    return Catalog.open(tmp_path / "catalog.db"), tuple(problem.what for problem in report.problems)


@pytest.mark.sampled(9)
@pytest.mark.promise(12)
@pytest.mark.parametrize("scheme", SIGNED.values(), ids=SIGNED)
def test_a_signature_is_no_key(tmp_path: Path, scheme: dict[str, Any]) -> None:
    """It is said at the import, where a credential is put, and where it is called."""
    catalog, problems = imported(tmp_path, scheme)
    assert any("signed" in what for what in problems)
    with pytest.raises(Unsupported, match="each request signed"):
        catalog.check_callable("svc.list")
    with pytest.raises(Unsupported, match="each request signed") as caught:
        catalog.check_connectable("svc")
    assert "takes no credential" in caught.value.next_step


@pytest.mark.parametrize("scheme", OTHERS.values(), ids=OTHERS)
def test_what_isnt_spoken_takes_no_credential(tmp_path: Path, scheme: dict[str, Any]) -> None:
    catalog, _ = imported(tmp_path, scheme)
    with pytest.raises(Unsupported):
        catalog.check_callable("svc.list")
    with pytest.raises(Unsupported):
        catalog.check_connectable("svc")


@pytest.mark.parametrize(("scheme", "form"), PLAIN.values(), ids=PLAIN)
def test_a_key_is_a_key(tmp_path: Path, scheme: dict[str, Any], form: str) -> None:
    catalog, _ = imported(tmp_path, scheme)
    catalog.check_callable("svc.list")
    catalog.check_connectable("svc")
    assert catalog.service("svc").placement.format == form


def test_an_operation_that_aws_signs_beside_a_key(tmp_path: Path) -> None:
    key = {**HEADER, "name": "X-Key"}
    catalog, _ = imported(tmp_path, key, **{"x-amazon-apigateway-auth": {"type": "AWS_IAM"}})
    with pytest.raises(Unsupported, match="AWS_IAM"):
        catalog.check_callable("svc.list")


def test_who_lets_anybody_in_needs_no_signature() -> None:
    assert signed({**HEADER, "name": "Authorization", "x-amazon-apigateway-authtype": "custom"}) == ""
