"""What connects without a proxy: names of loopback, and a CONNECT to the gateway for what is said to them."""

from __future__ import annotations

import importlib.util
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "sandbox-images" / "base" / "goex"


@pytest.fixture(scope="module")
def direct() -> Any:
    spec = importlib.util.spec_from_file_location("direct", FOLDER / "direct.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def question(name: str, kind: int = 1, group: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack("!HH", kind, group)


def address(answer: bytes) -> str:
    return socket.inet_ntoa(answer[-4:]) if answer[6:8] == b"\0\1" else ""


def test_each_name_has_an_address_of_its_own_on_loopback(direct: Any) -> None:
    names = direct.Names()
    first, second = (address(names.answer(question(one))) for one in ("api.example.com", "slack.com"))
    assert first.startswith("127.") and second.startswith("127.") and first != second
    assert address(names.answer(question("API.example.com"))) == first
    assert (names.name_of(first), names.name_of(second)) == ("api.example.com", "slack.com")
    assert names.name_of("127.0.0.1") is None


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [("api.example.com", 28, 0), ("api.example.com", 16, 0), ("1.0.0.127.in-addr.arpa", 12, 3),
     ("a\r\nb.example", 1, 3),
     ("a b.example", 1, 3), ("a:1.example", 1, 3)],
)  # fmt: skip
def test_nothing_but_a_plain_names_address_is_told(direct: Any, name: str, kind: int, code: int) -> None:
    answer = direct.Names().answer(question(name, kind))
    assert (answer[3] & 15, address(answer)) == (code, "")


def test_there_is_an_end_to_names(direct: Any) -> None:
    names = direct.Names()
    for number in range(direct._MOST):
        assert address(names.answer(question(f"n{number}.example")))
    assert not address(names.answer(question("one-more.example")))
    assert address(names.answer(question("n7.example")))


@pytest.mark.parametrize("said", [b"", b"\0" * 12, question("a.example")[:-5], question("a.example")[:20], b"\xff" * 64,
                                  question("a.example")[:2] + b"\x81" + question("a.example")[3:]])  # fmt: skip
def test_what_is_no_question_has_no_answer(direct: Any, said: bytes) -> None:
    assert direct.Names().answer(said) is None


@pytest.fixture
def asking(direct: Any) -> Iterator[tuple[Any, socket.socket]]:
    ours, gateway = socket.socketpair()
    inner, _ = socket.socketpair()
    ours.setblocking(False)
    with ours, gateway, inner, _:
        yield direct.Asking(inner, ours, "api.example.com"), gateway


def test_the_gateway_is_asked_for_the_name(asking: tuple[Any, socket.socket]) -> None:
    one, gateway = asking
    assert gateway.recv(1000) == b"CONNECT api.example.com:443 HTTP/1.1\r\nhost: api.example.com:443\r\n\r\n"
    assert one.heard() is None
    gateway.sendall(b"HTTP/1.1 200 OK\r\n")
    assert one.heard() is None
    gateway.sendall(b"\r\nfirst")
    assert one.heard() == b"first"


@pytest.mark.parametrize("said", [b"HTTP/1.1 403 GoEx\r\n\r\n", b"HTTP/1.1 302 Found\r\n\r\n", b"200\r\n\r\n", b""])
def test_what_the_gateway_refuses_is_refused(asking: tuple[Any, socket.socket], said: bytes) -> None:
    one, gateway = asking
    gateway.sendall(said)
    gateway.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError):
        one.heard()
