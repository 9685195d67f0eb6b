"""Bodies, query styles and paths of imported documents, to the byte as a real server gets them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from policies.errors import GoexError
from tests.mapper.importing.openapi_documents import document
from tests.runtimes.rest.sent import Sent, account_at, imported, send, steps_of

TEXT = {"type": "string"}
ICS = "BEGIN:VCALENDAR\r\nSUMMARY:Ünïcode\r\nEND:VCALENDAR\r\n"
RAW = bytes(range(256))


def doc(content: dict[str, Any], verb: str = "post", **more: Any) -> dict[str, Any]:
    return document({"/x": {verb: {"operationId": "go", "requestBody": {"content": content, **more}}}})


def swagger(*parameters: Any, consumes: list[str] | None = None) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": "go", "parameters": list(parameters)}
    return {
        "swagger": "2.0",
        "info": {"title": "Things", "version": "1"},
        "host": "things.example.com",
        "paths": {"/x": {"post": {**operation, **({"consumes": consumes} if consumes else {})}}},
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("media", "schema", "value", "body", "content_type"),
    [
        ("text/calendar", TEXT, ICS, ICS.encode(), "text/calendar; charset=utf-8"),
        ("text/plain", {}, "plain", b"plain", "text/plain; charset=utf-8"),
        ("application/xml", {"type": "object"}, "<a>ü</a>", "<a>ü</a>".encode(), "application/xml"),
        ("application/octet-stream", TEXT, base64.b64encode(RAW).decode(), RAW, "application/octet-stream"),
        ("image/png", TEXT, base64.b64encode(RAW).decode(), RAW, "image/png"),
        (
            "application/merge-patch+json",
            {"type": "object"},
            {"a": None},
            b'{"a":null}',
            "application/merge-patch+json",
        ),
        ("application/vnd.api+json; charset=utf-8", {}, {"a": 1}, b'{"a":1}', "application/vnd.api+json"),
        ("application/json", {"type": "object"}, {"a": "ü"}, '{"a":"ü"}'.encode(), "application/json"),
    ],
)
async def test_a_body_of_a_kind(
    tmp_path: Path, media: str, schema: Any, value: Any, body: bytes, content_type: str
) -> None:
    sent = await send(tmp_path, doc({media: {"schema": schema}}), ("go", {"body": value}))
    assert sent.well
    assert (sent.only.body, sent.only.headers["content-type"]) == (body, content_type)


MULTIPART = doc(
    {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "title": TEXT,
                    "file": {"type": "string", "format": "binary"},
                    "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    "tags": {"type": "array", "items": TEXT},
                    "meta": {"type": "object", "properties": {"a": {"type": "integer"}}},
                },
            }
        }
    }
)
MULTIPART_BODY = (
    b'--goex-0\r\nContent-Disposition: form-data; name="title"\r\n\r\n\xc3\xbc\r\n'
    b'--goex-0\r\nContent-Disposition: form-data; name="tags"\r\n\r\na\r\n'
    b'--goex-0\r\nContent-Disposition: form-data; name="tags"\r\n\r\nb\r\n'
    b'--goex-0\r\nContent-Disposition: form-data; name="meta"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n'
    b'--goex-0\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\nContent-Type: image/png\r\n\r\n'
    + RAW
    + b'\r\n--goex-0\r\nContent-Disposition: form-data; name="more"; filename="b.txt"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\nhi\r\n--goex-0--\r\n"
)


async def test_a_form_with_files(tmp_path: Path) -> None:
    arguments = {
        "title": "ü",
        "tags": ["a", "b"],
        "meta": {"a": 1},
        "file": {"name": "a.bin", "type": "image/png", "base64": base64.b64encode(RAW).decode()},
        "more": [{"name": "b.txt", "text": "hi"}],
    }
    sent = await send(tmp_path, MULTIPART, ("go", arguments))
    assert sent.well
    assert sent.only.headers["content-type"] == "multipart/form-data; boundary=goex-0"
    assert sent.only.body == MULTIPART_BODY


@pytest.mark.parametrize(
    "file",
    [
        {"name": 'a"; name="b', "text": "x"},
        {"name": "a\r\nX: y", "text": "x"},
        {"name": "a", "type": "image/png\r\nX: y", "text": "x"},
        {"name": "a", "type": "multipart", "text": "x"},
        {"name": "a", "text": "x", "base64": "eA=="},
        {"name": "a"},
        {"name": "a", "base64": "not base64!"},
        "text",
    ],
)
def test_files_that_cant_be_written_in_one_way(tmp_path: Path, file: Any) -> None:
    catalog = imported(tmp_path, MULTIPART)
    with pytest.raises(GoexError):
        steps_of(catalog, account_at("https://things.example.com"), ("go", {"file": file}))


async def test_a_boundary_within_a_file_is_another_one(tmp_path: Path) -> None:
    sent = await send(tmp_path, MULTIPART, ("go", {"file": {"name": "a", "text": "--goex-0--"}}))
    assert sent.only.headers["content-type"] == "multipart/form-data; boundary=goex-1"


async def test_swagger_2_with_a_file(tmp_path: Path) -> None:
    raw = swagger(
        {"in": "formData", "name": "f", "type": "file", "required": True},
        {"in": "formData", "name": "n", "type": "string"},
    )
    sent = await send(tmp_path, raw, ("go", {"n": "1", "f": {"name": "a", "type": "text/csv", "text": "x"}}))
    assert b'name="n"\r\n\r\n1\r\n' in sent.only.body
    assert b'name="f"; filename="a"\r\nContent-Type: text/csv\r\n\r\nx\r\n' in sent.only.body


async def test_swagger_2_consumes_text(tmp_path: Path) -> None:
    raw = swagger({"in": "body", "name": "b", "schema": TEXT}, consumes=["text/csv"])
    sent = await send(tmp_path, raw, ("go", {"body": "a,b"}))
    assert (sent.only.body, sent.only.headers["content-type"]) == (b"a,b", "text/csv; charset=utf-8")


@pytest.mark.parametrize("media", ["multipart/mixed", "message/http", "application/http", "application/graphql"])
def test_bodies_that_hold_requests_arent_sent(tmp_path: Path, media: str) -> None:
    assert media in imported(tmp_path, doc({media: {}})).method("things.go").unsupported


def test_an_empty_optional_body_of_a_get_is_none(tmp_path: Path) -> None:
    form = {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {}}}}
    method = imported(tmp_path, doc(form, "get")).method("things.go")
    assert (method.unsupported, method.body) == ("", "none")


# ---- queries and paths


def asking(schema: Any, **more: Any) -> dict[str, Any]:
    parameter = {"name": "q", "in": "query", "schema": schema, **more}
    other = {"name": "other", "in": "query", "schema": TEXT}
    return document({"/x": {"get": {"operationId": "go", "parameters": [parameter, other]}}})


LIST = {"type": "array", "items": TEXT}
OBJECT = {"type": "object", "additionalProperties": True}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("raw", "value", "query"),
    [
        (asking(OBJECT, style="deepObject"), {"a": "1", "b": {"c": True}}, "q%5Ba%5D=1&q%5Bb%5D%5Bc%5D=true"),
        (asking(OBJECT), {"a": "1", "b": 2}, "a=1&b=2"),
        (asking(LIST, style="pipeDelimited", explode=False), ["a", "b"], "q=a%7Cb"),
        (asking(LIST, style="spaceDelimited", explode=False), ["a", "b"], "q=a%20b"),
        (asking(LIST, explode=False), ["a", "b"], "q=a%2Cb"),
        (asking(LIST), ["a", "b"], "q=a&q=b"),
        (asking(None, content={"application/json": {"schema": LIST}}), ["a", "b,"], "q=%5B%22a%22%2C%22b%2C%22%5D"),
    ],
)
async def test_query_styles(tmp_path: Path, raw: dict[str, Any], value: Any, query: str) -> None:
    sent = await send(tmp_path, raw, ("go", {"q": value}))
    assert sent.only.target == f"/x?{query}"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (asking(OBJECT), {"other": "1"}),
        (asking(OBJECT), {"a": [1]}),
        (asking(OBJECT, style="deepObject"), {"a": [1]}),
        (asking(OBJECT, style="deepObject"), {"a][b": "1"}),
        (asking(LIST, style="pipeDelimited", explode=False), ["a|b"]),
        (asking(LIST, style="spaceDelimited", explode=False), ["a b"]),
    ],
)
def test_values_that_would_be_others(tmp_path: Path, raw: dict[str, Any], value: Any) -> None:
    with pytest.raises(GoexError):
        steps_of(imported(tmp_path, raw), account_at("https://things.example.com"), ("go", {"q": value}))


def path_doc(path: str, *names: str, schema: Any = None) -> dict[str, Any]:
    parameters = [{"name": name, "in": "path", "required": True, "schema": schema or TEXT} for name in names]
    return document({path: {"get": {"operationId": "go", "parameters": parameters}}})


@pytest.mark.parametrize(
    ("path", "arguments", "target"),
    [
        ("/f/{a}.{b}", {"a": "x y", "b": "zip"}, "/f/x%20y.zip"),
        ("/f/x:{y}", {"y": "1"}, "/f/x:1"),
        ("/f/v{y}/z", {"y": "1.2"}, "/f/v1.2/z"),
        ("/g.h(on='{on}',to={to})", {"on": "me", "to": "7"}, "/g.h(on%3D'me',to%3D7)"),
    ],
)
async def test_several_names_in_a_segment(tmp_path: Path, path: str, arguments: dict[str, Any], target: str) -> None:
    sent = await send(tmp_path, path_doc(path, *arguments), ("go", arguments))
    assert sent.well and sent.only.target == target


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("/f/{a}.{b}", {"a": "x.y", "b": "z"}),
        ("/f/{a}.{b}", {"a": "x", "b": "y.z"}),
        ("/f/{a}.{b}", {"a": "..", "b": "z"}),
        ("/f/x:{y}", {"y": "1:cancel"}),
        ("/f/x:{y}", {"y": "../1"}),
        ("/g(on='{on}')", {"on": "a',to='b"}),
        ("/g(on='{on}')", {"on": "a)"}),
        ("/f/.{y}", {"y": "."}),
    ],
)
def test_a_value_that_would_divide_the_segment_otherwise(tmp_path: Path, path: str, arguments: dict[str, Any]) -> None:
    catalog = imported(tmp_path, path_doc(path, *arguments))
    with pytest.raises(GoexError):
        steps_of(catalog, account_at("https://things.example.com"), ("go", arguments))


async def test_a_list_in_the_path(tmp_path: Path) -> None:
    sent: Sent = await send(tmp_path, path_doc("/f/{ids}", "ids", schema=LIST), ("go", {"ids": ["a", "b"]}))
    assert sent.only.target == "/f/a,b"
    assert json.loads(sent.only.body or b"null") is None
