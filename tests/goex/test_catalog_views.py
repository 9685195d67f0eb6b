"""What the wire carries of a catalog: never every method at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from goex.catalog_views import services_reply
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog, UnknownName
from tests.mapper.test_store import document, operation, written


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    method = operation("x", properties={"a": {"type": "string"}}, locations={"a": "query"}, unsupported="bytes")
    return written(tmp_path / "c.db", document("api", "v2", methods=(method,)), document("api", "v1beta", *"abcdef"))


def test_all_services_come_without_methods(catalog: Catalog) -> None:
    reply = services_reply(catalog, pb.ServicesRequest(), {"api": ["b", "a"]})
    found = {one.name: one for one in reply.services}
    assert list(found) == sorted((*Catalog.bundled().services, "api"))
    assert not any(one.methods or one.scopes for one in reply.services) and not reply.trouble
    assert (found["api"].method_count, list(found["api"].accounts), found["api"].version) == (1, ["a", "b"], "v2")
    every = services_reply(catalog, pb.ServicesRequest(versions=True), {})
    assert {one.name: one.main for one in every.services if "api" in one.name} == {"api": True, "api-v1beta": False}


def test_one_service_comes_without_its_arguments(catalog: Catalog) -> None:
    (api,) = services_reply(catalog, pb.ServicesRequest(service="api-v1beta"), {}).services
    assert [one.name for one in api.methods] == list("abcdef") and api.method_count == 6
    assert not any(one.parameters_json for one in api.methods)
    assert {(one.name, one.risk) for one in api.scopes} == {("all", "read"), ("see", "read")}
    (slack,) = services_reply(catalog, pb.ServicesRequest(service="slack"), {}).services
    assert len(slack.methods) == slack.method_count and not any(one.parameters_json for one in slack.methods)


def test_one_method_comes_whole(catalog: Catalog) -> None:
    (api,) = services_reply(catalog, pb.ServicesRequest(service="api", method="x"), {}).services
    (method,) = api.methods
    assert '"a":{"type":"string"}' in method.parameters_json and method.unsupported == "bytes"
    assert (method.http, method.path, method.origin_id) == ("GET", "/v1/x", "api.x")


@pytest.mark.parametrize(("service", "method"), [("nope", ""), ("api", "nope"), ("nope", "x"), ("api\0", "")])
def test_what_isnt_there(catalog: Catalog, service: str, method: str) -> None:
    with pytest.raises(UnknownName):
        services_reply(catalog, pb.ServicesRequest(service=service, method=method), {})


def test_a_catalog_that_cant_be_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_text("no database" * 1000)
    path.chmod(0o600)
    reply = services_reply(Catalog.open(path), pb.ServicesRequest(), {})
    assert "can't be read" in reply.trouble and "slack" in [one.name for one in reply.services]
