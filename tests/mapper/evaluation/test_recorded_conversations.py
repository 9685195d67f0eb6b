"""A strong model's conversations over requests that were written without a look at GoEx, played again.

`tests/vectors/conversations` holds 156 requests (30 with dates, 30 about something known by its name, 20 for each of
several, 20 ambiguous, 20 that nothing serves, 36 plain) with what their writer took for right, as first written, and
the model's answers, one sample each. What is measured anew is GoEx: what it makes of these answers, how it judges
their scopes, and how long its prompts are.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from mapper.context import Context
from mapper.evaluation import request_sets, rounds
from mapper.evaluation.alone import Alone
from mapper.evaluation.scope_table import figures
from mapper.techniques import CONVERSATION, Technique
from tests.google import alone

__all__ = ["alone"]

VECTORS = Path(__file__).parents[2] / "vectors" / "conversations"
NOW = datetime.fromisoformat("2026-11-23T09:00+01:00")


@pytest.mark.slow
def test_what_a_strong_model_can_do_it_does_here(alone: Alone, tmp_path: Path) -> None:
    for file in VECTORS.glob("*.answers.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    asked = request_sets.read(VECTORS / "requests.jsonl")
    made, waiting = rounds.rows(
        alone, asked, Technique.named(CONVERSATION, samples=1), tmp_path, "plain", Context(now=NOW)
    )
    assert waiting is None
    found = figures(made)
    assert found["n"] == 156
    assert found["accuracy_total_pct"] >= 95
    assert found["declined_wrongly_pct"] == 0
    assert found["prompt_tokens"] <= 3000
    by_class = found["by_class"]
    assert by_class["ambiguous"]["executed_pct"] == 0
    assert by_class["unservable"]["declined_pct"] == 100
    assert by_class["dates"]["accuracy_total_pct"] == 100
    # Six of the seven that differ are Drive's: the writer expects `drive` where the API accepts `drive.file` as well.
    differ = [row for row in made if not (row.at_once or row.after_asking)]
    assert len([row for row in differ if row.request.raw["service"] != "drive"]) <= 1
