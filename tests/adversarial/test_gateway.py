"""Attacks on the gateway from inside the container, and from the server's side.

Each attack is refused by the shipped classes and reported; and each succeeds in its control, where the one defence
under test is taken away. So a test here fails when a defence is gone, and also when an attack was no attack.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runtimes.gateway.plan_match import PlanPolicy
from runtimes.gateway.upstream import Upstream
from tests.adversarial import unsafe_gateway as unsafe
from tests.adversarial.gateway_scene import CA, HI, Result, Scene, post, scene_fixture  # noqa: F401  a fixture
from tests.runtimes.gateway.support import (
    CANARY,
    Box,
)


async def test_the_planned_request_passes(scene: Scene) -> None:
    result = await scene.attack(post(f"{scene.origin}/api/messages"))
    assert result.got.status == 200
    assert not result.reasons
    assert len(scene.good.seen) == 1


@pytest.mark.promise(45)
async def test_another_host(scene: Scene) -> None:
    do = post(f"{scene.elsewhere}/api/messages")
    result = await scene.attack(do)
    assert "the plan has no request to" in result.reasons
    assert not scene.other.seen
    assert not result.watch.sent
    assert (await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutHosts))).got.status == 200
    assert scene.other.seen[0].headers["authorization"].endswith(CANARY)


async def test_a_raw_ip(scene: Scene) -> None:
    do = post(f"https://127.0.0.1:{scene.good.port}/api/messages")
    result = await scene.attack(do)
    assert "the plan has no request to" in result.reasons
    assert not scene.good.seen
    assert (await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutHosts))).got.status == 200
    assert scene.good.seen


@pytest.mark.promise(45)
@pytest.mark.parametrize(
    "path", ["/api/admin", "/api/messages/1", "/api", "/", "/api/messages/", "/api/../admin", "/api/%2e%2e/admin",
             "/api//messages", "/api/messages%2f..%2fadmin", "/api/messages;x=1", "/API/messages"],
)  # fmt: skip
async def test_another_path(scene: Scene, path: str) -> None:
    do = post(f"{scene.origin}{path}")
    result = await scene.attack(do)
    assert result.got.status == 403
    assert len(result.watch.refusals) == 1
    assert not scene.good.seen
    assert (await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutPaths))).got.status == 200
    assert scene.good.seen[0].target == path


async def test_another_method(scene: Scene) -> None:
    def do(box: Box) -> Awaitable[Any]:
        return box.request("DELETE", f"{scene.origin}/api/messages", HI)

    result = await scene.attack(do)
    assert "the plan has POST here" in result.reasons
    assert not scene.good.seen
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutMethods))
    assert scene.good.seen[0].method == "DELETE"


@pytest.mark.promise(45)
async def test_a_second_use(scene: Scene) -> None:
    async def do(box: Box) -> int:
        await box.request("POST", f"{scene.origin}/api/messages", HI)
        return (await box.request("POST", f"{scene.origin}/api/messages", HI)).status

    result = await scene.attack(do)
    assert "sent already" in result.reasons
    assert (result.got, len(scene.good.seen)) == (403, 1)
    assert (await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutOnce))).got == 200
    assert len(scene.good.seen) == 3


@pytest.mark.parametrize("body", [{"text": "bye"}, [HI, HI], {"query": "mutation{x}"}, {"text": "hi", "to": "x"}, ""])
async def test_another_body(scene: Scene, body: Any) -> None:
    do = post(f"{scene.origin}/api/messages", body)
    result = await scene.attack(do)
    assert "body" in result.reasons
    assert not scene.good.seen
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutBodies))
    assert json.loads(scene.good.seen[0].body) == body


DOCUMENT = "query issue($number: Int!) {\n  issue(number: $number) {\n    title\n  }\n}"
GRAPHQL = {"query": DOCUMENT, "variables": {"number": 7}}
EVIL = "mutation { deleteRepository(id: 1) }"


@pytest.mark.promise(45)
@pytest.mark.parametrize(
    "body",
    [
        {**GRAPHQL, "query": EVIL},
        {**GRAPHQL, "query": f"{DOCUMENT} {EVIL}"},
        {**GRAPHQL, "query": f"{DOCUMENT} mutation evil {{ deleteRepository(id: 1) }}", "operationName": "evil"},
        {**GRAPHQL, "query": DOCUMENT.replace("  issue(", "  x: secrets { a } issue(", 1)},
        {**GRAPHQL, "query": DOCUMENT.replace("title", "...F") + " fragment F on Issue { repository { secrets } }"},
        [GRAPHQL, {"query": EVIL}],
        [GRAPHQL],
        {"variables": {"number": 7}, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}},
        {**GRAPHQL, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}},
        {**GRAPHQL, "id": "saved-7"},
        {**GRAPHQL, "variables": {"number": 8}},
        {**GRAPHQL, "variables": {"number": 7, "all": True}},
    ],
    ids=["document", "operations", "named", "alias", "fragment", "batch", "batch-of-one", "hash", "hash-beside", "id",
         "variable", "more-variables"],
)  # fmt: skip
async def test_another_graphql_document(scene: Scene, body: Any) -> None:
    """What an imported GraphQL call sends is the document that was printed and shown, and nothing beside it."""
    what = scene.plan(body=GRAPHQL)
    fine = await scene.attack(post(f"{scene.origin}/api/messages", GRAPHQL), what=what)
    assert fine.got.status == 200 and json.loads(scene.good.seen.pop().body) == GRAPHQL
    do = post(f"{scene.origin}/api/messages", body)
    result = await scene.attack(do, what=what)
    assert "body" in result.reasons
    assert result.got.status == 403 and not scene.good.seen
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutBodies), what=what)
    assert json.loads(scene.good.seen[0].body) == body


async def test_a_graphql_document_in_the_query(scene: Scene) -> None:
    """The same as a GET, which many servers take."""
    do = post(f"{scene.origin}/api/messages?query=mutation%7Bx%7D", GRAPHQL)
    what = scene.plan(body=GRAPHQL)
    result = await scene.attack(do, what=what)
    assert result.got.status == 403 and not scene.good.seen
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutQueries), what=what)
    assert scene.good.seen[0].target.endswith("?query=mutation%7Bx%7D")


@pytest.mark.parametrize("query", ["access_token=mine", "x=1", "api_key=k&a=b", "a=b&a=b", "a=b%26token%3Dmine", "%zz"])
async def test_credentials_and_anything_else_in_the_query(scene: Scene, query: str) -> None:
    do = post(f"{scene.origin}/api/messages?{query}")
    what = scene.plan(query={"a": "b"})
    result = await scene.attack(do, what=what)
    assert result.got.status == 403
    assert len(result.watch.refusals) == 1
    assert not scene.good.seen
    assert "mine" not in repr(result.watch.events)
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutQueries), what=what)
    assert scene.good.seen[0].target.endswith(query)


@pytest.mark.promise(45)
@pytest.mark.parametrize(
    "name", ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "Private-Token", "Api-Key",
             "apikey", "X-Goog-Api-Key", "JOB-TOKEN", "X-Amz-Security-Token", "X-Session-Id", "X-Own-Place"],
)  # fmt: skip
async def test_an_own_token(scene: Scene, name: str) -> None:
    def do(box: Box) -> Awaitable[Any]:
        return box.request("POST", f"{scene.origin}/api/messages", HI, {name: "attackers-own"})

    what = scene.plan(credential_name="X-Own-Place", credential_format="{secret}")
    result = await scene.attack(do, what=what)
    assert "a credential that isn't the vault's" in result.reasons
    assert not scene.good.seen
    assert "attackers-own" not in repr(result.watch.events)
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutCredentialCheck), what=what)
    if name != "X-Own-Place":
        assert scene.good.seen[0].headers[name.lower()] == "attackers-own"
    assert scene.good.seen


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-Original-URL", "X-Forwarded-Host"])
async def test_an_override(scene: Scene, name: str) -> None:
    def do(box: Box) -> Awaitable[Any]:
        return box.request("POST", f"{scene.origin}/api/messages", HI, {name: "DELETE"})

    result = await scene.attack(do)
    assert "would change what the request means" in result.reasons
    assert not scene.good.seen
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutOverrideCheck))
    assert scene.good.seen[0].headers[name.lower()] == "DELETE"


async def test_another_name_in_the_handshake(scene: Scene) -> None:
    async def do(box: Box) -> str:
        tunnel = await box.tunnel("localhost", scene.good.port, sni="evil.example")
        tunnel.close()
        return "shaken hands"

    result = await scene.attack(do)
    assert result.got is None
    assert "evil.example" in result.reasons
    assert (await scene.attack(do, unsafe.UnsafeWithoutSni)).got == "shaken hands"


async def test_another_host_header(scene: Scene) -> None:
    do = post(f"{scene.origin}/api/messages", Host="evil.example")
    result = await scene.attack(do)
    assert "Host header" in result.reasons
    assert not scene.good.seen
    assert (await scene.attack(do, unsafe.UnsafeWithoutHostHeader)).got.status == 200


def _within(scene: Scene, target: str) -> Callable[[Box], Awaitable[Any]]:
    body = json.dumps(HI)
    head = f"POST {target} HTTP/1.1\r\nHost: {_site(scene)}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    raw = f"{head}\r\n{body}"
    return lambda box: box.raw(raw.encode(), "localhost", scene.good.port)


def _site(scene: Scene) -> str:
    return f"localhost:{scene.good.port}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "target", ["https://evil.example/api/messages", "//evil.example/api/messages", "http://x/api/messages"]
)
async def test_a_target_that_names_another_host(scene: Scene, target: str) -> None:
    result = await scene.attack(_within(scene, target))
    assert b"403" in result.got
    assert "a request's target is a path" in result.reasons
    assert result.watch.refusals[0].target == f"{scene.origin}{'' if target[0] == '/' else ' '}{target}"
    assert not scene.good.seen
    assert b" 200 " in (await scene.attack(_within(scene, target), unsafe.UnsafeWithoutTargetForm)).got


async def test_a_plain_request_for_a_tls_origin(scene: Scene) -> None:
    def do(box: Box) -> Awaitable[Any]:
        return box.request("POST", f"http://{_site(scene)}/api/messages", HI)

    result = await scene.attack(do)
    assert "the plan has no request to http://" in result.reasons
    assert not scene.good.seen
    assert (await scene.attack(do, unsafe.UnsafeWithoutSchemes)).got.status == 200


SMUGGLING = {
    "length and chunks": b'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{"text":"hi"}\r\n0\r\n\r\n',
    "two lengths": b'Content-Length: 13\r\nContent-Length: 13\r\n\r\n{"text":"hi"}',
    "a list of lengths": b'Content-Length: 13, 13\r\n\r\n{"text":"hi"}',
    "a folded line": b'X-A: 1\r\n Transfer-Encoding: x\r\nContent-Length: 13\r\n\r\n{"text":"hi"}',
    "a bare LF": b'X-A: 1\nX-B: 2\r\nContent-Length: 13\r\n\r\n{"text":"hi"}',
}


@pytest.mark.promise(45)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SMUGGLING)
async def test_smuggling(scene: Scene, name: str) -> None:
    raw = f"POST /api/messages HTTP/1.1\r\nHost: {_site(scene)}\r\nConnection: close\r\n".encode() + SMUGGLING[name]

    def do(box: Box) -> Awaitable[Any]:
        return box.raw(raw, "localhost", scene.good.port)

    result = await scene.attack(do)
    assert b"403" in result.got
    assert len(result.watch.refusals) == 1
    assert not scene.good.seen
    assert b" 200 " in (await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutStrictHead))).got


def test_no_shipped_file_knows_a_control() -> None:
    root = Path(__file__).resolve().parents[2]
    shipped = [path for folder in ("runtimes", "goex", "vault", "policies") for path in (root / folder).rglob("*.py")]
    assert len(shipped) > 20
    assert not [path for path in shipped if "unsafe_gateway" in path.read_text() or "UnsafeWithout" in path.read_text()]
    assert issubclass(unsafe.UnsafeWithoutHosts, PlanPolicy)
    assert issubclass(unsafe.UnsafeWithoutAddressCheck, Upstream)
