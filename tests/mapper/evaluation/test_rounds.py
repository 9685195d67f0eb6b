"""Conversations in rounds: prompts out, answers in, until all have ended; and what a recording then says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.evaluation import request_sets, rounds
from mapper.evaluation.alone import Alone
from mapper.evaluation.scope_table import Row, figures
from mapper.techniques import Technique
from policies.errors import InvalidInput

CATALOG = Catalog.bundled()
POST, LIST = "slack.chat.postMessage", "slack.conversations.list"
REQUESTS: list[dict[str, Any]] = [
    {
        "id": "post",
        "prompt": 'send "hi" to #ops on slack',
        "service": "slack",
        "acceptable_apis": [[POST]],
        "min_scopes": [["chat:write"]],
    },
    {"id": "door", "prompt": "unlock my front door", "acceptable_apis": [], "min_scopes": []},
    {
        "id": "which",
        "prompt": "something about #ops on slack",
        "service": "slack",
        "ambiguous": True,
        "acceptable_apis": [[POST], [LIST]],
        "min_scopes": [["chat:write"]],
    },
]
Lines = Callable[..., Path]


@pytest.fixture
def alone() -> Iterator[Alone]:
    yield Alone(CATALOG, EmbeddedProposer(CATALOG).index)


def tool(name: str, given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"function": {"name": name, "arguments": json.dumps(given)}}]}


def model(prompt: dict[str, Any]) -> dict[str, Any]:
    """Looks first, then posts, declines and asks."""
    if prompt["turn"] == 0:
        return tool("describe", {"methods": [POST]})
    match prompt["id"].rpartition("-")[2]:
        case "post":
            return tool("propose", {"calls": [{"name": POST, "arguments": {"channel": "#ops", "text": "hi"}}]})
        case "door":
            return tool("nothing_fits", {"reason": "no locks"})
    options = [{"answer": "post", "methods": [POST]}, {"answer": "list", "methods": [LIST]}]
    return tool("ask", {"question": "Post or list?", "choices": options})


def step(alone: Alone, data: Path, folder: Path, samples: int = 1) -> tuple[list[Row], Path | None]:
    technique = Technique.named("conversation", samples=samples)
    return rounds.rows(alone, request_sets.read(data), technique, folder)


def answer(file: Path) -> int:
    """Put the model's answers where they belong. How many."""
    asked = [json.loads(line) for line in file.read_text().splitlines()]
    told = [{"id": one["id"], "sample": one["sample"], "completion": model(one)} for one in asked]
    answers = file.with_name(file.name.replace("prompts", "answers"))
    with answers.open("a") as stream:
        stream.write("".join(json.dumps(one) + "\n" for one in told))
    return len(told)


@pytest.mark.parametrize(("most", "samples"), [(1, 1), (3, 2)], ids=["one", "settled"])
def test_rounds_until_all_have_ended(alone: Alone, lines: Lines, tmp_path: Path, most: int, samples: int) -> None:
    data, folder = lines("data", *REQUESTS), tmp_path / "rounds"
    written = []
    for _ in range(10):
        made, waiting = step(alone, data, folder, most)
        if waiting is None:
            break
        written.append((waiting.name, answer(waiting)))
    assert written == [("round-0.prompts.jsonl", 3 * samples), ("round-1.prompts.jsonl", 3 * samples)]
    assert [row.answer.decision for row in made] == ["executed", "declined", "asked"]
    assert [row.at_once or row.after_asking for row in made] == [True, True, True]
    assert [row.answer.notes[-1] for row in made] == [f"{2 * samples} turns"] * 3
    # A finished folder is a recording: read once more it says the same, and asks nothing.
    again, waiting = step(alone, data, folder, most)
    assert waiting is None and [row.answer.decision for row in again] == ["executed", "declined", "asked"]


def test_each_class_is_judged_by_its_own_measure(alone: Alone, lines: Lines, tmp_path: Path) -> None:
    """Asking is right of what is ambiguous, declining of what nothing serves; each is done once in each class."""
    serves = {"acceptable_apis": [[POST]], "min_scopes": [["chat:write"]]}
    given = {"find": serves, "ambiguous": serves, "unservable": {"acceptable_apis": [], "min_scopes": []}}
    made = [
        {**one, **sets, "id": f"{klass}-{one['id']}", "ambiguous": False, "class": klass}
        for klass, sets in given.items()
        for one in REQUESTS
    ]
    data, folder = lines("data", *made), tmp_path / "rounds"
    rows, waiting = step(alone, data, folder)
    while waiting is not None:
        answer(waiting)
        rows, waiting = step(alone, data, folder)
    right = {row.request.id for row in rows if row.at_once or row.after_asking}
    assert right == {"find-post", "find-which", "ambiguous-which", "unservable-door", "unservable-which"}
    by_class = figures(rows)["by_class"]
    assert [*by_class] == ["find", "ambiguous", "unservable"]
    assert {
        by_class[klass][f"{decision}_pct"] for klass in given for decision in ("executed", "asked", "declined")
    } == {33.33}
    assert [by_class[klass]["accuracy_total_pct"] for klass in given] == [66.67, 33.33, 66.67]


@pytest.mark.parametrize(
    ("change", "said"), [({"class": 3}, "'class' must be text"), ({"class": "unservable"}, "nothing serves it")]
)
def test_a_class_that_cant_be_is_named(lines: Lines, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        request_sets.read(lines("data", {**REQUESTS[0], **change}))


def test_calls_for_each_and_found_by_name_are_judged_by_their_methods(
    alone: Alone, lines: Lines, tmp_path: Path
) -> None:
    both = {"acceptable_apis": [[LIST, POST]], "min_scopes": [["channels:read", "chat:write"]], "service": "slack"}
    texts = {"each": "tell every channel that ends in -ops hi", "find": "tell the channel called ops hi"}
    data, folder = (
        lines("data", *({"id": k, "class": k, "prompt": text, **both} for k, text in texts.items())),
        tmp_path,
    )
    step(alone, data, folder)
    each = {"$each": 0, "path": "$.channels[?match(@.name,'.*-ops')].id", "most": 20}
    found = {"$from": 0, "path": "$.channels[?@.name=='ops'].id"}
    told = []
    for klass, channel in (("each", each), ("find", found)):
        calls = [{"name": LIST, "arguments": {}}, {"name": POST, "arguments": {"channel": channel, "text": "hi"}}]
        told.append({"id": klass, "completion": json.dumps({"tool": "propose", "arguments": {"calls": calls}})})
    (folder / "round-0.answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    made, waiting = step(alone, data, folder)
    assert waiting is None and [row.answer.decision for row in made] == ["executed", "executed"]
    assert [row.first for row in made] == [True, True] and not any(row.wrong_method for row in made)
    assert made[0].to_json()["calls"][1][1]["channel"] == each


def test_a_round_that_was_answered_in_part_asks_for_the_rest(alone: Alone, lines: Lines, tmp_path: Path) -> None:
    data, folder = lines("data", *REQUESTS), tmp_path / "rounds"
    _, waiting = step(alone, data, folder)
    assert waiting is not None
    first = json.loads(waiting.read_text().splitlines()[0])
    done = tool("nothing_fits", {"reason": "x"})
    (folder / "round-0.answers.jsonl").write_text(json.dumps({"id": first["id"], "completion": done}) + "\n")
    made, waiting = step(alone, data, folder)
    assert len(made) == 1 and waiting is not None
    assert [json.loads(line)["id"] for line in waiting.read_text().splitlines()] == ["door", "which"]


def test_an_answer_for_no_request_is_said(alone: Alone, lines: Lines, tmp_path: Path) -> None:
    data, folder = lines("data", *REQUESTS), tmp_path / "rounds"
    folder.mkdir()
    (folder / "round-0.answers.jsonl").write_text('{"id": "other", "completion": ""}\n')
    with pytest.raises(InvalidInput, match="no request of the data has the id 'other'"):
        step(alone, data, folder)
