"""Embeddings as an option: how near a request is in meaning, blended into the ranking. Nothing here is on by default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

_WEIGHT = 6.0  # of a cosine against the log odds of the ranking
_MOST = 60  # best methods whose texts are embedded


class Embedder(Protocol):
    """Turns texts into vectors of one length, one a text."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


def blended(embedder: Embedder, text: str, scores: Any, described: Callable[[Sequence[int]], Sequence[str]]) -> Any:
    """The scores, those of the best methods raised by how near their descriptions are to the request."""
    best = np.argsort(-scores, kind="stable")[:_MOST]
    vectors = np.asarray(embedder.embed([text, *described(best.tolist())]), np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    made = scores.copy()
    made[best] += _WEIGHT * (vectors[1:] @ vectors[0])
    return made
