"""Whoever runs on this machine can connect to the listener: what they get, and what they can't do."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from vault.oauth import loopback
from vault.oauth.loopback import Listener, Page

PAGE = Page(status=200, heading="Fine <b>", text="It's & done")


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def listener(seen: list[str]) -> Iterator[Listener]:
    def answer(query: str) -> Page:
        seen.append(query)
        return PAGE

    listening = Listener("/callback", answer)
    yield listening
    listening.close()


def send(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as link:
        got = b""
        with contextlib.suppress(OSError):  # who is refused may have been cut off before all was sent
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while more := link.recv(65_536):
                got += more
    return got


def get(port: int, target: str = "/callback?code=x", *, host: str | None = None, method: str = "GET") -> bytes:
    return send(port, f"{method} {target} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{port}'}\r\n\r\n".encode())


def test_the_page_is_plain_and_closed(listener: Listener, seen: list[str]) -> None:
    link = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=300)
    link.request("GET", "/callback?code=x&state=y")
    answer = link.getresponse()
    body = answer.read().decode()
    link.close()
    assert seen == ["code=x&state=y"]
    assert answer.status == 200 and "Fine &lt;b&gt;" in body and "It&#x27;s &amp; done" in body
    assert "code" not in body and "<script" not in body and "http" not in body
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "sandbox" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "Server" not in answer.headers


def test_whoever_must_be_the_persons_own_is_answered_only_where_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = Listener("/callback", lambda query: PAGE, own_alone=True)
    try:
        assert b" 200 " in get(listening.port)
        monkeypatch.setattr(loopback, "_TABLES", ())
        assert get(listening.port) == b""
    finally:
        listening.close()


def test_it_listens_on_loopback_alone(listener: Listener) -> None:
    assert listener._socket.getsockname()[0] == "127.0.0.1"
    assert listener.url == f"http://127.0.0.1:{listener.port}/callback"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (("/other?code=x", None, "GET"), b"404"),
        (("/callback/?code=x", None, "GET"), b"404"),
        (("/Callback?code=x", None, "GET"), b"404"),
        (("//callback?code=x", None, "GET"), b"404"),
        (("http://127.0.0.1/callback?code=x", None, "GET"), b"404"),
        (("/callback?code=x", "localhost", "GET"), b"421"),
        (("/callback?code=x", "evil.example.org", "GET"), b"421"),
        (("/callback?code=x", "127.0.0.1", "GET"), b"421"),
        (("/callback?code=x", None, "POST"), b"405"),
        (("/callback?code=x", None, "HEAD"), b"405"),
        (("/callback?code=x", None, "OPTIONS"), b"405"),
    ],
)
def test_other_requests_are_not_handed_on(
    listener: Listener, seen: list[str], request_line: tuple[str, str | None, str], status: bytes
) -> None:
    target, host, method = request_line
    answer = get(listener.port, target, host=host, method=method)
    assert answer.startswith(b"HTTP/1.1 " + status) and not seen


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\xff\x16\x03\x01",
        b"GET\r\n\r\n",
        b"GET /callback?code=x HTTP/1.1\r\n\r\n",
        b"GET /callback?code=x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /callback?code=x HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GET /callback?code=\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    ],
)
def test_nonsense_is_survived(listener: Listener, seen: list[str], data: bytes) -> None:
    with contextlib.suppress(OSError):
        send(listener.port, data)
    assert not seen
    assert get(listener.port).startswith(b"HTTP/1.1 200") and len(seen) == 1


def test_whoever_holds_connections_open_does_not_keep_the_browser_out(
    listener: Listener, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault.oauth.loopback._PATIENCE", 0.3)
    held = [socket.create_connection(("127.0.0.1", listener.port), timeout=300) for _ in range(40)]
    deadline = time.monotonic() + 300
    while not seen and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            get(listener.port)
    assert seen
    for link in held:
        link.close()


def test_many_visits_at_once(listener: Listener, seen: list[str]) -> None:
    def visit() -> None:
        with contextlib.suppress(OSError):
            get(listener.port)

    threads = [threading.Thread(target=visit) for _ in range(30)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(300)
    assert seen and get(listener.port).startswith(b"HTTP/1.1 200")


def test_closing_ends_it(listener: Listener) -> None:
    listener.close()
    listener.close()
    with pytest.raises(OSError):
        get(listener.port)


def test_the_port_is_another_each_time() -> None:
    made = [Listener("/", lambda _: PAGE) for _ in range(5)]
    assert len({each.port for each in made}) == 5
    for each in made:
        each.close()
