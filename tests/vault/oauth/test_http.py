"""The one way out: where it goes, what it verifies, and that it ends."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.errors import GoexError, InvalidInput, Unsupported
from tests.services.oidc import OidcServer
from tests.vault.oauth.certificates import Authority
from tests.vault.oauth.support import GOEX, Hostile, answer, hang, http, raw, tokens
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, MixUp, Unreachable
from vault.oauth.http import Http
from vault.oauth.provider import Client, Provider, check_url
from vault.secret import Secret

WELL_KNOWN = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


# ---- what an issuer says of itself ----


def test_a_real_server_is_found(server: OidcServer) -> None:
    found = discover(server.issuer, http())
    assert found.issuer == server.issuer and found.token_endpoint == f"{server.issuer}/token"
    assert found.iss_in_answer and found.pkce_methods == ("S256",) and found.device_endpoint


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", WELL_KNOWN),
        ("/", WELL_KNOWN),
        ("", OPENID),
        ("/tenant", f"{WELL_KNOWN}/tenant"),
        ("/tenant", f"/tenant{OPENID}"),
        ("/tenant", f"{OPENID}/tenant"),
        ("/tenant/", f"{WELL_KNOWN}/tenant"),
    ],
)
def test_metadata_is_looked_for_where_it_may_be(hostile: Hostile, path: str, place: str) -> None:
    issuer = f"{hostile.issuer}{path}"
    hostile.replies[place] = answer(hostile.metadata(issuer=issuer))
    assert discover(issuer, http()).issuer == issuer


@pytest.mark.parametrize("other", ["https://evil.example.org", "", None, 7, "{issuer}/", "{issuer}/x"])
def test_another_issuers_metadata_is_a_mix_up(hostile: Hostile, other: Any) -> None:
    said = other.format(issuer=hostile.issuer) if isinstance(other, str) else other
    hostile.replies[WELL_KNOWN] = answer({**hostile.metadata(), "issuer": said})
    with pytest.raises(MixUp):
        discover(hostile.issuer, http())


@pytest.mark.parametrize(
    "changed",
    [
        {"token_endpoint": None},
        {"token_endpoint": 7},
        {"token_endpoint": "ftp://example.org/token"},
        {"token_endpoint": "https://user:pass@example.org/token"},
        {"token_endpoint": "https://example.org/token#x"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": "https://example.org/a b"},
        {"grant_types_supported": "authorization_code"},
        {"grant_types_supported": [1]},
        {"code_challenge_methods_supported": ["S256"] * 500},
    ],
)
def test_metadata_that_makes_no_sense_is_refused(hostile: Hostile, changed: dict[str, Any]) -> None:
    hostile.replies[WELL_KNOWN] = answer(hostile.metadata(**changed))
    with pytest.raises(AuthorizationServerBroken):
        discover(hostile.issuer, http())


def test_no_metadata_is_said(hostile: Hostile) -> None:
    hostile.replies[OPENID] = answer(b"<html>front page</html>", kind="text/html")
    with pytest.raises(AuthorizationServerBroken, match="publishes no metadata"):
        discover(hostile.issuer, http())


@pytest.mark.parametrize("issuer", ["http://example.org", "https://example.org?x=1", "example.org", "https://a b", ""])
def test_an_issuer_that_cannot_be_one_is_refused(issuer: str) -> None:
    with pytest.raises(InvalidInput):
        discover(issuer, Http())


@pytest.mark.parametrize(
    "url",
    ["https://example.org/\n", "https://example.org\\@evil.org/", "https://exämple.org/", "https://" + "a" * 3000],
)
def test_odd_urls_are_not_used(url: str) -> None:
    with pytest.raises(InvalidInput):
        check_url(url, private=True, what="It")


# ---- where it goes ----


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0"],
)
def test_private_addresses_are_not_reached(address: str) -> None:
    with pytest.raises(Unreachable, match="isn't connected to"):
        Http(resolve=lambda *_: [address]).metadata("https://auth.example.org/x")


def test_one_bad_address_is_enough() -> None:
    with pytest.raises(Unreachable, match="isn't connected to"):
        Http(resolve=lambda *_: ["93.184.216.34", "127.0.0.1"]).metadata("https://auth.example.org/x")


def test_metadata_addresses_are_not_reached_even_when_private() -> None:
    with pytest.raises(Unreachable, match="metadata address"):
        http(resolve=lambda *_: ["169.254.169.254"]).metadata("http://auth.example.org/x")


def test_a_name_is_looked_up_once_and_the_address_pinned(hostile: Hostile) -> None:
    """A name that leads elsewhere at the second look changes nothing: there is no second look."""
    hostile.replies["/x"] = answer({"ok": True})
    asked: list[str] = []

    def resolve(host: str, _: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.9.9.9"]

    assert http(resolve=resolve).metadata(f"http://auth.example.org:{hostile.port}/x") == {"ok": True}
    assert asked == ["auth.example.org"]
    assert hostile.visits[0].headers["host"] == f"auth.example.org:{hostile.port}"


def test_a_resolver_that_hangs_is_left(hostile: Hostile) -> None:
    def resolve(*_: object) -> list[str]:
        time.sleep(5)
        return []

    with pytest.raises(Unreachable, match="took too long"):
        http(seconds=0.2, resolve=resolve).metadata("http://auth.example.org/x")


def test_a_name_that_nobody_knows() -> None:
    def resolve(*_: object) -> list[str]:
        raise socket.gaierror(-2, "unknown")

    with pytest.raises(Unreachable, match="its name isn't known"):
        http(resolve=resolve).metadata("http://auth.example.org/x")


def test_redirects_are_not_followed(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer(b"", status=302, headers={"Location": "/elsewhere"})
    hostile.replies["/elsewhere"] = answer(tokens())
    with pytest.raises(AuthorizationServerBroken, match="redirects elsewhere"):
        http().ask(f"{hostile.issuer}/token", {"a": "b"}, provider=hostile.provider(), client=GOEX)
    assert not hostile.asked("/elsewhere")


def test_the_environment_changes_nothing(hostile: Hostile, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    hostile.replies["/x"] = answer({}, headers={"Set-Cookie": "a=b"})
    reached = http()
    assert reached.metadata(f"{hostile.issuer}/x") == {}
    assert reached.metadata(f"{hostile.issuer}/x") == {}
    assert all("authorization" not in each.headers and "cookie" not in each.headers for each in hostile.visits)


# ---- how a client proves itself ----


@pytest.mark.parametrize(
    ("client", "methods", "header", "form"),
    [
        (Client(client_id="goex"), (), None, {"client_id": "goex"}),
        (Client(client_id="a b", client_secret=Secret("x:%/é")), (), "Basic YStiOnglM0ElMjUlMkYlQzMlQTk=", {}),
        (
            Client(client_id="g", client_secret=Secret("s")),
            ("client_secret_post",),
            None,
            {"client_id": "g", "client_secret": "s"},
        ),
        (
            Client(client_id="g", client_secret=Secret("s"), auth_method="client_secret_post"),
            (),
            None,
            {"client_id": "g", "client_secret": "s"},
        ),
    ],
)
def test_a_client_proves_itself(
    hostile: Hostile, client: Client, methods: tuple[str, ...], header: str | None, form: dict[str, str]
) -> None:
    hostile.replies["/token"] = answer(tokens())
    http().ask(f"{hostile.issuer}/token", {"x": "y"}, provider=Provider(auth_methods=methods), client=client)
    seen = hostile.visits[0]
    assert seen.headers.get("authorization") == header
    assert seen.form == {"x": "y", **form}


@pytest.mark.parametrize(
    ("client", "methods"),
    [
        (Client(client_id="g", client_secret=Secret("s")), ("private_key_jwt",)),
        (Client(client_id="g", client_secret=Secret("s"), auth_method="private_key_jwt"), ()),
    ],
)
def test_other_proofs_are_said_not_to_be_there(client: Client, methods: tuple[str, ...]) -> None:
    with pytest.raises(Unsupported):
        client.method(Provider(auth_methods=methods))


# ---- that it ends, and what it verifies ----


def test_a_handshake_that_never_ends() -> None:
    with Hostile({}) as server:  # it waits for an HTTP request, which a TLS client never sends
        began = time.monotonic()
        with pytest.raises(Unreachable, match="didn't answer in time"):
            http(seconds=0.4).metadata(f"https://127.0.0.1:{server.port}/x")
        assert time.monotonic() - began < 60


def test_a_body_that_never_ends(hostile: Hostile) -> None:
    def pour(link: socket.socket, _: object) -> None:
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(1000):
            link.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")

    hostile.replies["/x"] = pour
    with pytest.raises(AuthorizationServerBroken, match="longer than"):
        http().metadata(f"{hostile.issuer}/x")


ENDLESS = {
    "interim answers": (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
    "long lines": (b"X: " + b"a" * 60_000 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
    "chunks": (b"1\r\na\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "trailers": (b"X: a\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"),
    "a chunk's extension": (b"a" * 10_000, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;"),
    "one line": (b"a" * 10_000, b"HTTP/1.1 200 OK\r\nX: "),
    "headers": (b"X: a\r\n", b"HTTP/1.1 200 OK\r\n"),
}


@pytest.mark.parametrize(("again", "first"), ENDLESS.values(), ids=ENDLESS)
def test_what_is_around_a_body_never_ends(hostile: Hostile, again: bytes, first: bytes) -> None:
    poured: list[int] = []

    def pour(link: socket.socket, _: object) -> None:
        link.sendall(first)
        many = again * (100_000 // len(again) + 1)
        for _ in range(100):
            link.sendall(many)
            poured.append(len(many))

    hostile.replies["/x"] = pour
    began = time.monotonic()
    with pytest.raises(GoexError, match=r"longer than|is too long|too many headers"):
        http(seconds=600).metadata(f"{hostile.issuer}/x")
    assert sum(poured) < 9_000_000 and time.monotonic() - began < 300


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 5000 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 999999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n{}",
        b"\x00" * 1000,
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    ],
)
def test_http_that_makes_no_sense(hostile: Hostile, data: bytes) -> None:
    hostile.replies["/x"] = raw(data)
    with pytest.raises(GoexError):
        http(seconds=2).metadata(f"{hostile.issuer}/x")


@pytest.fixture
def tls() -> Iterator[tuple[Authority, str]]:
    """An https server for 127.0.0.1, by an authority of its own."""
    authority = Authority()
    yield from ((authority, url) for url in _secure(authority, "127.0.0.1"))


def test_tls_with_the_right_authority(tls: tuple[Authority, str]) -> None:
    authority, url = tls
    assert http(ca_pem=authority.pem).metadata(url) == {"ok": True}


def test_tls_with_another_authority(tls: tuple[Authority, str]) -> None:
    with pytest.raises(Unreachable, match="certificate"):
        http(ca_pem=Authority().pem).metadata(tls[1])
    with pytest.raises(Unreachable, match="certificate"):
        http().metadata(tls[1])


def test_the_certificate_is_the_names_though_the_address_is_pinned() -> None:
    authority = Authority()
    for url in _secure(authority, "auth.example.org"):
        port = url.split(":")[2]
        reached = http(ca_pem=authority.pem, resolve=lambda *_: ["127.0.0.1"])
        assert reached.metadata(f"https://auth.example.org:{port}") == {"ok": True}
        with pytest.raises(Unreachable, match="certificate"):
            reached.metadata(f"https://other.example.org:{port}")


def test_no_other_bundle_is_trusted_beside_the_authority(
    tls: tuple[Authority, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """requests has a bundle of its own, and would add it."""
    authority, url = tls
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority.pem)
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(bundle))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with pytest.raises(Unreachable, match="certificate"):
        http(ca_pem=Authority().pem).metadata(url)


def test_tls_for_another_name() -> None:
    authority = Authority()
    for url in _secure(authority, "other.example.org"):
        with pytest.raises(Unreachable, match="certificate"):
            http(ca_pem=authority.pem).metadata(url)


def test_hanging_does_not_leave_threads_behind(hostile: Hostile) -> None:
    hostile.replies["/x"] = hang
    with pytest.raises(Unreachable):
        http(seconds=0.2).metadata(f"{hostile.issuer}/x")
    time.sleep(0.1)
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


def _secure(authority: Authority, name: str) -> Iterator[str]:
    import tempfile

    key, cert = authority.leaf(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(key + cert)
        file.flush()
        context.load_cert_chain(file.name)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(link, server_side=True) as secure:
                    secure.recv(65_536)
                    secure.sendall(
                        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"ok": true}'
                    )
            except OSError:
                continue

    threading.Thread(target=serve, daemon=True).start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}/x"
    listener.close()
