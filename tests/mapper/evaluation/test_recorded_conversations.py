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

from mapper.ambiguity import twin
from mapper.context import Context
from mapper.evaluation import request_sets, rounds
from mapper.evaluation.alone import Alone
from mapper.evaluation.scope_table import figures
from mapper.techniques import CONVERSATION, Technique
from policies.actions import Call
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "service", "method", "other"),
    [
        ("delete alert 8812", "alertcenter", "alerts.delete", "monitoring.projects.alertPolicies.delete"),
        (
            "list all the devices in our organisation",
            "cloudidentity",
            "devices.list",
            "admin.directory.chromeosdevices.list",
        ),
        ("delete alert 8812 from the alert center", "alertcenter", "alerts.delete", ""),
        ("which labels does my mail have", "gmail", "users.labels.list", ""),
        ("Make a label Receipts in my mail", "gmail", "users.labels.create", ""),
        ("stop the vm build-3 in europe-west1-b, project demo-lab", "compute", "instances.stop", ""),
    ],
)
def test_a_thing_of_one_name_in_two_services_is_asked_about(
    alone: Alone, words: str, service: str, method: str, other: str
) -> None:
    call = Call(service=service, method=method, arguments={})
    found = twin(alone.catalog, (call,), alone.proposer().candidates(words), words)
    assert (found.id if found else "") == other
