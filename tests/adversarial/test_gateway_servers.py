"""Attacks that need the server's or the resolver's help. Each fails here, and succeeds in its control."""

from __future__ import annotations

import base64
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from policies.accounts import Origin
from runtimes.gateway.plan import Ref
from tests.adversarial import unsafe_gateway as unsafe
from tests.adversarial.gateway_scene import CA, HI, Result, Scene, post, scene_fixture  # noqa: F401  a fixture
from tests.runtimes.gateway.support import (
    CANARY,
    Box,
    Reply,
    Seen,
    account,
    json_reply,
    ok,
    plan,
    planned,
    serving,
)


def resolving(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


@pytest.mark.promise(47)
@pytest.mark.parametrize(
    "found", [["169.254.169.254"], ["127.0.0.1"], ["10.0.0.7"], ["::ffff:127.0.0.1"], ["93.184.216.34", "127.0.0.1"]]
)
async def test_a_name_that_leads_inside(scene: Scene, found: list[str]) -> None:
    origin = Origin("https", "api.example", scene.good.port)
    public = account(origin, ca_pem=CA.pem, private=False)
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


@pytest.mark.promise(47)
async def test_metadata_for_a_private_account(scene: Scene) -> None:
    origin = Origin("https", "api.example", scene.good.port)
    private = account(origin, ca_pem=CA.pem)
    do = post(f"{origin}/api/messages")
    found = resolving(["169.254.169.254"])
    result = await scene.attack(
        do, unsafe.server(upstream=unsafe.NetworkUpstream(found)), plan(planned(origin)), private
    )
    assert "metadata" in result.reasons
    control = unsafe.server(upstream=unsafe.UnsafeWithoutAddressCheck(found))
    assert (await scene.attack(do, control, plan(planned(origin)), private)).got.status == 200


@pytest.mark.promise(46)
async def test_rebinding(scene: Scene) -> None:
    """The first look-up gives a public address, each later one an address inside."""
    origin = Origin("https", "api.example", scene.good.port)
    public = account(origin, ca_pem=CA.pem, private=False)
    do = post(f"{origin}/api/messages")
    context = CA.context("api.example")
    async with serving(context, host="127.0.0.2", port=scene.good.port) as outside:
        shipped = unsafe.NetworkUpstream(resolving(["93.184.216.34"], ["127.0.0.1"]))
        assert (
            await scene.attack(do, unsafe.server(upstream=shipped), plan(planned(origin)), public)
        ).got.status == 200
        assert (len(outside.seen), len(scene.good.seen)) == (1, 0)
        control = unsafe.UnsafeWithoutPinning(resolving(["93.184.216.34"], ["127.0.0.1"]))
        await scene.attack(do, unsafe.server(upstream=control), plan(planned(origin)), public)
        assert scene.good.seen[0].headers["authorization"].endswith(CANARY)


@pytest.mark.promise(46)
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


@pytest.mark.sampled(24)
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_decompression_bomb(scene: Scene, coding: str) -> None:
    bomb = gzip.compress(bytes(11_000_000)) if coding == "gzip" else zlib.compress(bytes(11_000_000))
    scene.good.answer = lambda seen: (200, {"content-encoding": coding}, bomb)
    do = post(f"{scene.origin}/api/messages")
    what = scene.plan()
    result = await scene.attack(do, what=what)
    assert (result.got.status, result.watch.exchanges[0].status) == (502, 200)
    assert "unpacks to more" in result.watch.exchanges[0].failed
    control = await scene.attack(do, unsafe.server(unsafe.UnsafeWithoutBombCheck), what=what)
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
