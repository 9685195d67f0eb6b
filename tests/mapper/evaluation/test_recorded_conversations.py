"""A strong model's conversations over requests that were written without a look at GoEx, played again.

`tests/vectors/conversations` holds 156 requests (30 with dates, 30 about something known by its name, 20 for each of
several, 20 ambiguous, 20 that nothing serves, 36 plain) with what their writer took for right, as first written, and
the model's answers, one sample each; `one-shot.jsonl` has what it answered to single prompts. What is measured anew is
GoEx: what it makes of these answers, how it judges their scopes, and how long its prompts are.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mapper.ambiguity import twin
from mapper.context import Context
from mapper.conversation import Conversation
from mapper.evaluation import recorded, request_sets, rounds
from mapper.evaluation.alone import Alone
from mapper.evaluation.scope_table import Row, figures
from mapper.techniques import CONVERSATION, Technique
from policies.actions import Call
from tests.google import alone

__all__ = ["alone"]

VECTORS = Path(__file__).parents[2] / "vectors" / "conversations"
NOW = datetime.fromisoformat("2026-11-23T09:00+01:00")


Talks = dict[str, tuple[Conversation, list[str]]]


@pytest.fixture(scope="module")
def first_set(alone: Alone, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], Talks]:
    """The first set, played to its end: the rows, and of each request its conversation and what methods it offered."""
    talks: Talks = {}

    class Noted(Conversation):
        def __post_init__(self) -> None:
            super().__post_init__()
            talks[self.intent] = self, [method.id for method in self.methods]

    folder = tmp_path_factory.mktemp("rounds")
    for file in VECTORS.glob("*.answers.jsonl"):
        (folder / file.name).write_bytes(file.read_bytes())
    asked = request_sets.read(VECTORS / "requests.jsonl")
    technique = Technique.named(CONVERSATION, samples=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "Conversation", Noted)
        made, waiting = rounds.rows(alone, asked, technique, folder, "plain", Context(now=NOW))
    assert waiting is None
    return made, talks


@pytest.mark.slow
def test_what_a_strong_model_can_do_it_does_here(first_set: tuple[list[Row], Talks]) -> None:
    made, _ = first_set
    found = figures(made)
    assert found["n"] == 156
    assert found["accuracy_total_pct"] >= 95
    assert found["declined_wrongly_pct"] == 0
    assert found["prompt_tokens"] <= 3000
    by_class = found["by_class"]
    assert by_class["ambiguous"]["executed_pct"] == 0
    assert by_class["unservable"]["declined_pct"] == 100
    assert by_class["dates"]["accuracy_total_pct"] == 100
    # For one the writer expects `drive.metadata`, which trashes nothing by its documentation; in the other the model
    # calls one method more, to learn whose invitations they are. Neither is a choice of scopes that is too wide.
    assert {row.request.id for row in made if row.excessive} == {"b035", "b067"}
    # Six of the seven that differ are Drive's: the writer expects `drive` where the API accepts `drive.file` as well.
    differ = [row for row in made if not (row.at_once or row.after_asking)]
    assert len([row for row in differ if row.request.raw["service"] != "drive"]) <= 1


def played(name: str, alone: Alone, tmp_path: Path) -> list[Row]:
    """A set that was answered by native tool calls, to its end."""
    folder = VECTORS.with_name(name)
    for file in folder.glob("*.answers.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    asked = request_sets.read(folder / "requests.jsonl")
    now = Context(now=datetime.fromisoformat("2026-11-30T09:00+01:00"))
    made, waiting = rounds.rows(alone, asked, Technique.named(CONVERSATION, samples=1), tmp_path, "tools", now)
    assert waiting is None
    return made


@pytest.mark.slow
def test_a_second_set_written_when_the_first_had_taught_what_it_could(alone: Alone, tmp_path: Path) -> None:
    """165 others, with native tool calls. As first measured one ran with a scope too wide: c017, "I am a student"."""
    made = played("conversations2", alone, tmp_path)
    found = figures(made)
    assert found["n"] == 165
    assert found["prompt_tokens"] <= 3000
    assert found["accuracy_total_pct"] >= 94
    assert found["declined_wrongly_pct"] == 0
    assert found["by_class"]["ambiguous"]["executed_pct"] == 0
    assert found["by_class"]["unservable"]["declined_pct"] == 100
    assert [row.request.id for row in made if row.excessive] == []


@pytest.mark.thorough
@pytest.mark.slow
def test_a_third_set_as_first_measured(alone: Alone, tmp_path: Path) -> None:
    """200 others over 54 of Google's APIs, answered to prompts as they are now; nothing was changed after it."""
    made = played("conversations3", alone, tmp_path)
    found = figures(made)
    assert found["n"] == 200
    assert found["accuracy_total_pct"] >= 95
    assert found["declined_wrongly_pct"] < 1
    assert found["prompt_tokens"] <= 3000
    assert found["by_class"]["ambiguous"]["executed_pct"] == 0
    assert found["by_class"]["unservable"]["declined_pct"] == 100
    # It reads the calendar's own address to decline in its name: a call more, and with it a scope.
    assert [row.request.id for row in made if row.excessive] == ["e064"]


@pytest.mark.thorough
@pytest.mark.slow
def test_single_prompts_beside_it(alone: Alone) -> None:
    """The other column of the table in docs/guides/models.md: the likeliest methods in one prompt, and one answer."""
    asked = request_sets.read(VECTORS / "requests.jsonl")
    told = recorded.read(VECTORS / "one-shot.jsonl", {one.id for one in asked})
    assert len(told) == 156
    found = figures(recorded.rows(alone, asked, Technique.named("retrieval"), told, "plain"))
    # Whatever GoEx makes of them, most answers say that nothing can be done: no date, no finding, no question.
    assert 40 <= found["accuracy_total_pct"] <= 50 and found["declined_wrongly_pct"] > 45
    assert found["prompt_tokens"] > 6000
    by_class = found["by_class"]
    assert by_class["plain"]["accuracy_total_pct"] >= 95 and by_class["unservable"]["accuracy_total_pct"] == 100
    assert by_class["dates"]["accuracy_total_pct"] <= 20 and by_class["find"]["accuracy_total_pct"] <= 40
    assert by_class["each"]["accuracy_total_pct"] <= 20
    assert by_class["ambiguous"]["accuracy_total_pct"] == 0 and by_class["ambiguous"]["executed_pct"] >= 15


DATE = re.compile(r"20\d\d-\d\d-\d\d")


def stands_on(talk: Conversation, offered: Sequence[str]) -> set[str]:
    """What a conversation's end needed that a single prompt with the likeliest methods hasn't got."""
    assert talk.reading is not None
    sample = talk.reading.sample
    if not isinstance(sample, tuple):
        return {"ask"}
    said = json.dumps([dict(call.arguments) for call in sample])
    answers = json.dumps([answer for turn in talk.turns for answer in turn.answers])
    return {
        name
        for name, needed in (
            ("now", DATE.search(said) and not DATE.search(talk.intent)),
            ("filter", "[?" in said),
            ("each", "$each" in said),
            ("look", any(call.id not in offered for call in sample)),
            ("mend", '"rejected"' in answers),
        )
        if needed
    }


@pytest.mark.slow
def test_what_each_part_of_a_conversation_gains(first_set: tuple[list[Row], Talks]) -> None:
    """The table of docs/guides/models.md."""
    made, talks = first_set
    needs = [stands_on(*talks[row.request.text]) for row in made if row.at_once or row.after_asking]
    found = Counter(part for each in needs for part in each)
    assert len(needs) >= 148
    # The right ones that each part is for, and those that need none of them.
    least = {"now": 28, "filter": 33, "each": 15, "look": 20, "ask": 20, "mend": 3}
    assert {part: found[part] >= count for part, count in least.items()} == dict.fromkeys(least, True), found
    assert sum(not each for each in needs) <= 62


def erring(completion: str, chance: random.Random) -> str:
    """A conversation's last turn, wrong as recorded ones were: a call too few or too many, giving up, asking without
    need; for a question, giving up; for "nothing fits", a question."""
    said: dict[str, Any] = json.loads(completion.strip().removeprefix("```json").removesuffix("```"))
    nothing = {"tool": "nothing_fits", "arguments": {"reason": "no"}}
    ask: dict[str, Any] = {"tool": "ask", "arguments": {"question": "What is meant?", "choices": [], "methods": []}}
    if said["tool"] != "propose":
        return json.dumps(nothing if said["tool"] == "ask" else ask)
    calls = said["arguments"]["calls"]
    way = chance.choice(["fewer", "more", "nothing", "ask"])
    if way == "fewer" and len(calls) > 1:
        said["arguments"]["calls"] = calls[:-1]
    elif way in ("fewer", "more"):
        said["arguments"]["calls"] = [*calls, {"name": "oauth2.userinfo.get", "arguments": {}}]
    else:
        said = nothing if way == "nothing" else ask
    return json.dumps(said)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "right"), [pytest.param(0.15, 93, marks=pytest.mark.thorough), (0.3, 92)])
def test_votes_make_up_for_a_weak_model(alone: Alone, tmp_path: Path, share: float, right: float) -> None:
    turns: dict[str, dict[int, str]] = {}
    for turn in range(4):
        for line in (VECTORS / f"round-{turn}.answers.jsonl").read_text("utf-8").splitlines():
            told = json.loads(line)
            turns.setdefault(told["id"], {})[turn] = told["completion"]
    files: dict[int, list[str]] = {}
    for name, told in turns.items():
        for sample in range(5):
            chance = random.Random(f"{name}/{sample}/{share}")  # the same errors each time
            errs = chance.random() < share
            for turn, completion in told.items():
                said = erring(completion, chance) if errs and turn == max(told) else completion
                files.setdefault(turn, []).append(json.dumps({"id": name, "sample": sample, "completion": said}))
    for turn, lines in files.items():
        (tmp_path / f"round-{turn}.answers.jsonl").write_text("\n".join(lines), "utf-8")
    asked = request_sets.read(VECTORS / "requests.jsonl")
    technique = Technique.named(CONVERSATION, samples=5)
    made, waiting = rounds.rows(alone, asked, technique, tmp_path, "plain", Context(now=NOW))
    assert waiting is None
    found = figures(made)
    assert found["accuracy_total_pct"] >= right
    assert found["excessive_executed_pct"] <= 1.3  # those of the strong model's own answers
    assert found["declined_wrongly_pct"] <= 3
    assert found["by_class"]["ambiguous"]["executed_pct"] == 0


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
