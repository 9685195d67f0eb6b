"""Embeddings as an option: a real HTTP server that speaks the protocol, as well or as badly as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.ranking.embedding import EmbedderUnavailable, EndpointEmbedder, LocalEmbedder
from mapper.ranking.index import Index
from policies.errors import InvalidInput

INDEX = Index.of(Catalog.bundled().services.values())
TEXT = "invite her"


def near_slack(texts: Sequence[str]) -> list[list[float]]:
    """The request and everything of Slack point one way, all else another."""
    return [[1.0, 0.0] if text == TEXT or text.startswith("Slack") else [0.0, 1.0] for text in texts]


@contextmanager
def served(answer: Any = None, *, status: int = 200, headers: dict[str, str] | None = None) -> Iterator[Any]:
    """A server whose `requests` say what came: (path, headers, body). `answer`: bytes, or a function of the texts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append((self.path, dict(self.headers), body))
            made = answer if isinstance(answer, bytes) else _answer((answer or near_slack)(body["input"]))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made)))
            self.end_headers()
            self.wfile.write(made)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        requests: list[tuple[str, dict[str, str], Any]]

    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _answer(vectors: Sequence[Sequence[float]]) -> bytes:
    data = [{"object": "embedding", "index": n, "embedding": list(vector)} for n, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data[::-1], "model": "x"}).encode()


def embedder(server: Any, **how: Any) -> EndpointEmbedder:
    return EndpointEmbedder(f"http://127.0.0.1:{server.server_address[1]}/v1", "tiny", lambda: "key-1", **how)


def test_meaning_moves_the_ranking() -> None:
    plain = INDEX.search(TEXT)
    with served() as server:
        moved = INDEX.search(TEXT, embedder=embedder(server))
    assert plain[0].service == "matrix" and moved[0].service == "slack"
    path, headers, body = server.requests[0]
    assert path == "/v1/embeddings" and headers["Authorization"] == "Bearer key-1"
    assert body["model"] == "tiny" and body["input"][0] == TEXT and len(body["input"]) <= 61


def test_vectors_are_asked_for_once() -> None:
    with served() as server:
        one = embedder(server)
        INDEX.search(TEXT, embedder=one)
        INDEX.search(TEXT, embedder=one)
        assert len(server.requests) == 1
        assert one.embed(["a", TEXT, "a"]) == [(0.0, 1.0), (1.0, 0.0), (0.0, 1.0)]
        assert server.requests[1][2]["input"] == ["a"]


def test_a_function_of_this_process_will_do() -> None:
    assert INDEX.search(TEXT, embedder=LocalEmbedder(near_slack))[0].service == "slack"


@pytest.mark.parametrize(
    "answer",
    [
        b"no json", b"[]", b'{"data": 3}', b'{"data": [{"embedding": []}]}', b'{"data": [{"embedding": ["1"]}]}',
        b'{"data": [{"embedding": [NaN]}]}', b'{"data": [{"embedding": [true]}]}', b"\xff",
        _answer([[1.0]]), b'{"data": [{"index": 7, "embedding": [1]}, {"index": 1, "embedding": [1]}]}',
        _answer([[1.0], [1.0, 2.0]]),
    ],
)  # fmt: skip
def test_answers_that_are_none(answer: bytes) -> None:
    with served(answer) as server, pytest.raises(EmbedderUnavailable, match="tiny"):
        embedder(server).embed(["a", "b"])


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_refusals(status: int) -> None:
    with served(status=status) as server, pytest.raises(EmbedderUnavailable, match=str(status)):
        embedder(server).embed(["a"])


def test_a_redirect_takes_no_key_elsewhere() -> None:
    with served() as other:
        target = f"http://127.0.0.1:{other.server_address[1]}/v1/embeddings"
        with served(status=307, headers={"Location": target}) as server, pytest.raises(EmbedderUnavailable):
            embedder(server).embed(["a"])
        assert other.requests == []


def test_nobody_there() -> None:
    with served() as server:
        one = embedder(server, timeout=2.0)
    with pytest.raises(EmbedderUnavailable, match="reached"):
        one.embed(["a"])


@pytest.mark.parametrize(
    ("url", "model", "timeout"),
    [("http://example.org/v1", "m", 1.0), ("ftp://example.org", "m", 1.0), ("https://example.org", "", 1.0),
     ("https://example.org", "m", 0.0)],
)  # fmt: skip
def test_settings_that_cannot_be(url: str, model: str, timeout: float) -> None:
    with pytest.raises(InvalidInput):
        EndpointEmbedder(url, model, lambda: "", timeout=timeout)
