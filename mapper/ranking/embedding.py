"""Embeddings as an option: how near a request is in meaning, blended into the ranking. None is used by default.

An endpoint is untrusted: its answers are bounded in size and time and read strictly. It gets the request's words and
what the catalog says of methods; the key is read when it is used and goes to the configured origin alone (no
redirects, plain http only to this machine).
"""

from __future__ import annotations

import ipaddress
import json
import math
import threading
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from policies.accounts import Origin
from policies.errors import InvalidInput, Unavailable
from policies.jsonvalue import parse

MOST_METHODS = 60
"""The best methods of a ranking whose texts are embedded."""

MAX_BODY = 16_000_000  # bytes of one answer
_WEIGHT = 1.0  # log odds for each standard deviation by which a method is nearer than the others
_KEPT = 2_000  # vectors that are kept


class EmbedderUnavailable(Unavailable):
    """The embeddings' endpoint can't be used: not reached, refuses, too slow, too large, or not the protocol."""

    code = "embedder"


class Embedder(Protocol):
    """Turns texts into vectors of one length, one a text."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class LocalEmbedder:
    """A function in this process, like `SentenceTransformer(...).encode`."""

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        self._encode = encode

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The function's vectors. Whatever it raises is passed on."""
        found: list[list[float]] = np.asarray(self._encode(list(texts)), np.float64).tolist()
        return found


class EndpointEmbedder:
    """Any endpoint that speaks the OpenAI embeddings protocol. `timeout`: seconds for each request."""

    def __init__(self, base_url: str, model: str, api_key: Callable[[], str], *, timeout: float = 20.0) -> None:
        origin = Origin.parse(base_url)
        if origin.scheme == "http" and not _loopback(origin.host):
            raise InvalidInput(
                f"A key and requests would go to {origin.host} unencrypted.",
                next_step="Use an https URL for the embeddings.",
            )
        if not model or not timeout > 0:
            raise InvalidInput("The embeddings need a model's name and a time-out above 0.")
        self.name = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._origin = origin
        self._api_key = api_key
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._kept: OrderedDict[str, tuple[float, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The vectors, those of earlier texts from memory. Raises EmbedderUnavailable."""
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        wanted = [text for text in dict.fromkeys(texts) if text not in known]
        if wanted:
            known.update(zip(wanted, self._asked(wanted), strict=True))
        with self._lock:
            for text in texts:
                self._kept[text] = known[text]
                self._kept.move_to_end(text)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        vectors = [known[text] for text in texts]
        if len({len(vector) for vector in vectors}) > 1:
            raise self._failed("gave vectors of different lengths")
        return vectors

    def _asked(self, texts: list[str]) -> list[tuple[float, ...]]:
        key = self._api_key()
        request = urllib.request.Request(  # noqa: S310 # http and https alone: Origin.parse refuses the rest
            self._url,
            data=json.dumps({"model": self.name, "input": texts, "encoding_format": "float"}).encode(),
            headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                body = response.read(MAX_BODY + 1)
        except urllib.error.HTTPError as error:
            raise self._failed(f"answered with status {error.code}") from error
        except (OSError, ValueError) as error:
            raise self._failed("can't be reached or broke off") from error
        if len(body) > MAX_BODY:
            raise self._failed(f"answered with more than {MAX_BODY} bytes")
        return self._read(body, len(texts))

    def _read(self, body: bytes, count: int) -> list[tuple[float, ...]]:
        try:
            answer = parse(body.decode("utf-8"), limit=MAX_BODY, what="The embeddings")
        except (InvalidInput, UnicodeDecodeError) as error:
            raise self._failed("didn't answer with JSON") from error
        data = answer.get("data") if isinstance(answer, dict) else None
        vectors: dict[int, tuple[float, ...]] = {}
        for place, each in enumerate(data if isinstance(data, list) else ()):
            vector = each.get("embedding") if isinstance(each, dict) else None
            number = each.get("index", place) if isinstance(each, dict) else place
            if isinstance(vector, list) and isinstance(number, int) and vector and all(map(_finite, vector)):
                vectors[number] = tuple(float(part) for part in vector if isinstance(part, int | float))
        if sorted(vectors) != list(range(count)):
            raise self._failed(f"didn't answer with {count} vectors")
        return [vectors[number] for number in range(count)]

    def _failed(self, why: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"The embeddings {self.name} at {self._origin} {why}.",
            next_step="Check the settings of the embeddings; without them the ranking goes by words.",
        )


def blended(embedder: Embedder, text: str, scores: Any, described: Sequence[str]) -> Any:
    """The scores of methods, moved by how much nearer to the request in meaning each is than the others.

    `described` has the methods' texts. Raises what the embedder raises.
    """
    vectors = np.asarray(embedder.embed([text, *described]), np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    near = vectors[1:] @ vectors[0]
    return scores + _WEIGHT * (near - near.mean()) / max(float(near.std()), 1e-6)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would take the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _finite(part: Any) -> bool:
    return isinstance(part, int | float) and not isinstance(part, bool) and math.isfinite(part)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
