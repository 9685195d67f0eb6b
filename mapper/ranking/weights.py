"""The fitted weights of the ranking, committed as `weights.json` beside this file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from mapper.ranking import document_match, features


@dataclass(frozen=True, slots=True)
class Weights:
    """One number for each feature of `mapper.ranking.features`."""

    family: Any
    method: Any
    sure: Any
    nothing: Any
    document: Any
    document_sure: Any
    document_nothing: Any
    document_side: Any

    @classmethod
    def bundled(cls) -> Weights:
        """The weights that come with GoEx."""
        return _bundled()

    @classmethod
    def parse(cls, found: dict[str, dict[str, float]]) -> Weights:
        """Weights by name; those that aren't named are 0."""
        names = {
            "family": features.FAMILY_NAMES, "method": features.NAMES, "sure": features.RANKING_NAMES,
            "nothing": features.RANKING_NAMES, "document": document_match.FEATURES,
            "document_sure": document_match.SIGNS, "document_nothing": document_match.SIGNS,
            "document_side": document_match.SIDES,
        }  # fmt: skip
        return cls(
            **{part: np.array([found.get(part, {}).get(name, 0.0) for name in own]) for part, own in names.items()}
        )


@cache
def _bundled() -> Weights:
    return Weights.parse(json.loads((files("mapper") / "ranking" / "weights.json").read_text(encoding="utf-8")))
