"""Attacks on the gateway from inside the container, and from the server's side.

Each attack is refused by the shipped classes and reported; and each succeeds in its control, where the one defence
under test is taken away. So a test here fails when a defence is gone, and also when an attack was no attack.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from policies.accounts import Account, Origin
from runtimes.gateway.plan import GatewayPlan, Ref
from runtimes.gateway.policy import Policy
from runtimes.gateway.server import ActionServer
from runtimes.gateway.upstream import Upstream
from tests.adversarial import unsafe_gateway as unsafe
from tests.runtimes.gateway.support import (
    CANARY,
    Box,
    Reply,
    Seen,
    Server,
    TestCA,
    Watch,
    account,
    json_reply,
    lease,
    ok,
    opened,
    plan,
    planned,
    serving,
)

HI = {"text": "hi"}
_CA = TestCA()


@dataclass
class Scene:
    """A server that the plan names (`good`), and another of the same account that it doesn't (`other`)."""

    good: Server
    other: Server
    run_dir: Path
    origin: Origin
    elsewhere: Origin
    account: Account

    def plan(self, **changes: Any) -> GatewayPlan:
        return plan(planned(self.origin, **changes))

    async def attack(
        self,
        do: Callable[[Box], Awaitable[Any]],
        server_type: type[ActionServer] = ActionServer,
        what: GatewayPlan | None = None,
        using: Account | None = None,
    ) -> Result:
        result = Result()
        async with opened(what or self.plan(), [lease(using or self.account)], self.run_dir, server_type) as (
            box,
            watch,
        ):
            try:
                result.got = await do(box)
            except (ConnectionError, ssl.SSLError) as error:
                result.error = str(error) or type(error).__name__
            result.watch = watch
        return result


@dataclass
class Result:
    got: Any = None
    error: str = ""
    watch: Watch = field(default_factory=Watch)

    @property
    def reasons(self) -> str:
        return " | ".join(refusal.reason for refusal in self.watch.refusals)


@pytest.fixture
async def scene(tmp_path: Path) -> Any:
    context = _CA.context("localhost", "127.0.0.1", "api.example")
    async with serving(context) as good, serving(context) as other:
        origin, elsewhere = Origin("https", "localhost", good.port), Origin("https", "localhost", other.port)
        raw = Origin("https", "127.0.0.1", good.port)
        yield Scene(good, other, tmp_path, origin, elsewhere, account(origin, elsewhere, raw, ca_pem=_CA.pem))


def post(url: str, body: Any = HI, **headers: str) -> Callable[[Box], Awaitable[Any]]:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda box: box.request("POST", url, body, fields)


async def test_the_planned_request_passes(scene: Scene) -> None:
    result = await scene.attack(post(f"{scene.origin}/api/messages"))
    assert result.got.status == 200
    assert not result.reasons
    assert len(scene.good.seen) == 1


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


@pytest.mark.parametrize(
    "name", ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "Private-Token", "Api-Key",
             "apikey", "X-Goog-Api-Key", "JOB-TOKEN", "X-Amz-Security-Token", "X-Session-Id", "X-Own-Place"],
)  # fmt: skip
async def test_an_own_token(scene: Scene, name: str) -> None:
    def do(box: Box) -> Awaitable[Any]:
        return box.request("POST", f"{scene.origin}/api/messages", HI, {name: "attackers-own"})

    what = scene.plan(credential_header="X-Own-Place", credential_format="{secret}")
    result = await scene.attack(do, what=what)
    assert "a credential that isn't the vault's" in result.reasons
    assert not scene.good.seen
    assert "attackers-own" not in repr(result.watch.events)
    await scene.attack(do, unsafe.UnsafeWithoutCredentialCheck, what=what)
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
    await scene.attack(do, unsafe.UnsafeWithoutOverrideCheck)
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


@pytest.mark.parametrize(
    "target", ["https://evil.example/api/messages", "//evil.example/api/messages", "http://x/api/messages"]
)
async def test_a_target_that_names_another_host(scene: Scene, target: str) -> None:
    result = await scene.attack(_within(scene, target))
    assert b"403" in result.got
    assert "a request's target is a path" in result.reasons
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


@pytest.mark.parametrize("name", SMUGGLING)
async def test_smuggling(scene: Scene, name: str) -> None:
    raw = f"POST /api/messages HTTP/1.1\r\nHost: {_site(scene)}\r\nConnection: close\r\n".encode() + SMUGGLING[name]

    def do(box: Box) -> Awaitable[Any]:
        return box.raw(raw, "localhost", scene.good.port)

    result = await scene.attack(do)
    assert b"403" in result.got
    assert len(result.watch.refusals) == 1
    assert not scene.good.seen
    assert b" 200 " in (await scene.attack(do, unsafe.UnsafeWithoutStrictHead)).got


def resolving(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


@pytest.mark.parametrize(
    "found", [["169.254.169.254"], ["127.0.0.1"], ["10.0.0.7"], ["::ffff:127.0.0.1"], ["93.184.216.34", "127.0.0.1"]]
)
async def test_a_name_that_leads_inside(scene: Scene, found: list[str]) -> None:
    origin = Origin("https", "api.example", scene.good.port)
    public = account(origin, ca_pem=_CA.pem, private=False)
    do = post(f"{origin}/api/messages")

    result = await scene.attack(
        do, unsafe.server(upstream=unsafe.NetworkUpstream(resolving(found))), plan(planned(origin)), public
    )
    assert "leads to an address that isn't connected to" in result.reasons
    assert not result.watch.sent
    assert not scene.good.seen
    control = unsafe.server(upstream=unsafe.UnsafeWithoutAddressCheck(resolving(found)))
    assert (await scene.attack(do, control, plan(planned(origin)), public)).got.status == 200
    assert scene.good.seen


async def test_metadata_for_a_private_account(scene: Scene) -> None:
    origin = Origin("https", "api.example", scene.good.port)
    private = account(origin, ca_pem=_CA.pem)
    do = post(f"{origin}/api/messages")
    found = resolving(["169.254.169.254"])
    result = await scene.attack(
        do, unsafe.server(upstream=unsafe.NetworkUpstream(found)), plan(planned(origin)), private
    )
    assert "metadata" in result.reasons
    control = unsafe.server(upstream=unsafe.UnsafeWithoutAddressCheck(found))
    assert (await scene.attack(do, control, plan(planned(origin)), private)).got.status == 200


async def test_rebinding(scene: Scene) -> None:
    """The first look-up gives a public address, each later one an address inside."""
    origin = Origin("https", "api.example", scene.good.port)
    public = account(origin, ca_pem=_CA.pem, private=False)
    do = post(f"{origin}/api/messages")
    context = _CA.context("api.example")
    async with serving(context, host="127.0.0.2", port=scene.good.port) as outside:
        shipped = unsafe.NetworkUpstream(resolving(["93.184.216.34"], ["127.0.0.1"]))
        assert (
            await scene.attack(do, unsafe.server(upstream=shipped), plan(planned(origin)), public)
        ).got.status == 200
        assert (len(outside.seen), len(scene.good.seen)) == (1, 0)
        control = unsafe.UnsafeWithoutPinning(resolving(["93.184.216.34"], ["127.0.0.1"]))
        await scene.attack(do, unsafe.server(upstream=control), plan(planned(origin)), public)
        assert scene.good.seen[0].headers["authorization"].endswith(CANARY)


async def test_a_redirect_to_elsewhere(scene: Scene) -> None:
    scene.good.answer = lambda seen: (302, {"location": f"{scene.elsewhere}/steal"}, b"")
    do = post(f"{scene.origin}/api/messages")
    result = await scene.attack(do)
    assert (result.got.status, result.got.headers["x-goex-well"]) == (302, "0")
    assert "location" not in result.got.headers
    assert not result.watch.exchanges[0].well
    assert not scene.other.seen
    await scene.attack(do, unsafe.server(upstream=unsafe.UnsafeFollowingRedirects(scene.account)))
    assert scene.other.seen[0].headers["authorization"].endswith(CANARY)


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of the header": lambda text: base64.b64encode(f"Bearer {text}".encode()).decode(),
    "base64, shifted by one": lambda text: base64.b64encode(f"x{text}yz".encode()).decode(),
    "base64, shifted by two": lambda text: base64.b64encode(f"xy{text}z".encode()).decode(),
    "url-safe base64": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "percent": lambda text: quote(text, safe=""),
    "every byte percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "double percent": lambda text: quote(quote(text, safe=""), safe=""),
    "json escapes": lambda text: "".join(f"\\u{ord(char):04X}" for char in text),
    "hex": lambda text: text.encode().hex(),
    "upper hex": lambda text: text.encode().hex().upper(),
    "json within json": lambda text: "".join(f"\\\\u{ord(char):04x}" for char in text),
    "html": lambda text: "".join(f"&#{ord(char)};" for char in text),
}


@pytest.mark.parametrize("place", ["body", "json", "header", "gzip", "chunks", "error"])
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_an_echo(scene: Scene, encoding: str, place: str) -> None:
    echo = ENCODINGS[encoding](CANARY)
    scene.good.answer = lambda seen: _echoing(echo, place)
    do = post(f"{scene.origin}/api/messages")
    result = await scene.attack(do)
    assert echo not in _said(result)
    assert CANARY not in _said(result)
    assert result.got.status in (200, 400)
    assert echo in _said(await scene.attack(do, unsafe.UnsafeWithoutRedaction))


def _echoing(echo: str, place: str) -> Reply:
    text = f"you sent {echo}, thanks".encode()
    if place == "json":
        return 200, {"content-type": "application/json"}, b'{"you":{"sent":["' + echo.encode() + b'"]}}'
    if place == "header":
        return 200, {"etag": f'"{echo}"', "content-type": "text/plain"}, b"x"
    if place == "gzip":
        return 200, {"content-encoding": "gzip"}, gzip.compress(text)
    if place == "chunks":
        parts = b"".join(b"%x\r\n%s\r\n" % (len(text[at : at + 3]), text[at : at + 3]) for at in range(0, len(text), 3))
        return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
    return (400 if place == "error" else 200), {"content-type": "text/plain"}, text


def _said(result: Result) -> str:
    """All that left the gateway, toward the container and the daemon; JSON both parsed and as it was."""
    got = result.got
    return "\n".join([*got.headers.values(), got.body.decode(), *(str(one) for one in result.watch.exchanges)])


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_decompression_bomb(scene: Scene, coding: str) -> None:
    bomb = gzip.compress(bytes(11_000_000)) if coding == "gzip" else zlib.compress(bytes(11_000_000))
    scene.good.answer = lambda seen: (200, {"content-encoding": coding}, bomb)
    do = post(f"{scene.origin}/api/messages")
    what = scene.plan()
    result = await scene.attack(do, what=what)
    assert (result.got.status, result.watch.exchanges[0].status) == (502, 200)
    assert "unpacks to more" in result.watch.exchanges[0].failed
    control = await scene.attack(do, unsafe.server(upstream=unsafe.UnsafeWithoutBombCheck()), what=what)
    assert len(control.got.body) == 11_000_000


@pytest.mark.parametrize("value", ["x HTTP/1.1\r\nX-Evil: 1\r\nX-Rest:", "../admin", "..", "a/../../admin", "x\x00y"])
async def test_an_answer_that_fills_more_than_a_value(scene: Scene, value: str) -> None:
    def answer(seen: Seen) -> Reply:
        return json_reply({"id": value}) if seen.method == "POST" else ok(seen)

    scene.good.answer = answer
    what = plan(
        planned(scene.origin),
        planned(scene.origin, id="call-1", method="GET", path=("messages", Ref("call-0", "$.id"))),
    )

    async def do(box: Box) -> Any:
        await box.request("POST", f"{scene.origin}/api/messages", HI)
        return await box.request("GET", f"{scene.origin}/api/messages/{quote(value, safe='')}")

    result = await scene.attack(do, what=what)
    assert result.got.status == 403
    assert len(result.watch.refusals) == 1
    assert len(scene.good.seen) == 1
    control = type("Control", (unsafe.server(unsafe.UnsafeWithoutEncoding, unsafe.UnsafeRawUpstream()),), {})
    try:
        await scene.attack(do, control, what=what)
    finally:
        reached = scene.good.seen[2:]
    if "\0" in value:
        return  # no server under test reads a NUL in a request line
    assert reached[0].headers.get("x-evil") == "1" if "Evil" in value else ".." in reached[0].target


async def test_going_on_after_a_failure(scene: Scene) -> None:
    scene.good.answer = lambda seen: json_reply({"error": "no"}, 500)
    what = plan(planned(scene.origin), planned(scene.origin, id="call-1", path=("second",)))

    async def do(box: Box) -> Any:
        await box.request("POST", f"{scene.origin}/api/messages", HI)
        return await box.request("POST", f"{scene.origin}/api/second", HI)

    result = await scene.attack(do, what=what)
    assert result.got.status == 409
    assert "didn't go well" in result.reasons
    assert len(scene.good.seen) == 1
    await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutConditions), what=what)
    assert scene.good.seen[-1].target == "/api/second"


def test_no_shipped_file_knows_a_control() -> None:
    root = Path(__file__).resolve().parents[2]
    shipped = [path for folder in ("runtimes", "goex", "vault", "policies") for path in (root / folder).rglob("*.py")]
    assert len(shipped) > 20
    assert not [path for path in shipped if "unsafe_gateway" in path.read_text() or "UnsafeWithout" in path.read_text()]
    assert issubclass(unsafe.UnsafeWithoutHosts, Policy)
    assert issubclass(unsafe.UnsafeWithoutAddressCheck, Upstream)
