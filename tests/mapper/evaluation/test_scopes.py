"""The evaluation of scopes over Google's whole catalog: what each flag means, and what is reached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mapper.evaluation import alone as catalogs
from mapper.evaluation import oracle, recorded, request_sets, scope_evaluation
from mapper.evaluation.alone import Alone
from mapper.evaluation.request_sets import Request
from mapper.evaluation.scope_table import Answer, Candidate, Decision, Judge, Row, figures
from mapper.importing import google
from mapper.techniques import Technique
from policies.actions import Call
from policies.errors import InvalidInput
from tests.google import alone, cached

__all__ = ["alone"]


@pytest.fixture
def cache() -> Path:
    pytest.importorskip("googleapiclient")
    return cached()


OURS = Path(__file__).parents[2] / "vectors" / "requests.jsonl"
DECLINING = OURS.with_name("declining.jsonl")
UNSEEN = OURS.with_name("unseen.jsonl")
AUTH = "https://www.googleapis.com/auth/"
Lines = Callable[..., Path]


def request(**changes: Any) -> Request:
    raw = {"id": "a", "prompt": "x", "service": "gmail", "version": "v1", "args": {"userId": "me"}, **changes}

    def sets(key: str) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(one) for one in raw.get(key, ()))

    apart = tuple(
        (frozenset(one["apis"]), tuple(frozenset(each) for each in one["min_scopes"]))
        for one in raw.get("readings", ())
    )
    ambiguous = raw.get("ambiguous") is True
    return Request("a", raw["prompt"], sets("acceptable_apis"), sets("min_scopes"), apart, ambiguous, raw)


LEAST = [[f"{AUTH}gmail.labels"], [f"{AUTH}gmail.metadata"]]
LABELS = request(acceptable_apis=[["gmail.users.labels.list"]], min_scopes=LEAST)
NOTHING = request()


def row(
    alone: Alone, asked: Request, decision: Decision, *methods: str, calls: bool = True, confidence: float = 0.9
) -> Row:
    candidates = []
    for name in methods:
        method = alone.catalog.method(name)
        call = Call(service=method.service, method=method.name, arguments={"userId": "me"})
        candidates.append(Candidate((method,), (call,) if calls else ()))
    answer = Answer(decision, tuple(candidates), confidence if candidates else None, 1, 1.0)
    return Judge(alone.catalog).row(asked, answer)


def flags(found: Row) -> set[str]:
    names = ("at_once", "after_asking", "excessive", "insufficient", "wrong_method", "near", "first")
    return {name for name in names if getattr(found, name)}


@pytest.mark.parametrize(
    ("asked", "decision", "methods", "expected"),
    [
        (LABELS, "executed", ["gmail.users.labels.list"], {"at_once", "first"}),
        (LABELS, "executed", ["gmail.users.labels.delete"], {"wrong_method"}),
        (LABELS, "executed", ["tasks.tasklists.list"], {"wrong_method", "insufficient"}),
        (LABELS, "executed", ["gmail.users.messages.batchDelete"], {"wrong_method", "excessive"}),
        (LABELS, "executed", ["drive.files.delete"], {"wrong_method", "excessive"}),
        (LABELS, "asked", ["drive.files.delete", "gmail.users.labels.list"], {"after_asking"}),
        (LABELS, "asked", ["drive.files.list"] * 3 + ["gmail.users.labels.list"], set()),
        (LABELS, "declined", [], set()),
        (LABELS, "declined", ["gmail.users.labels.list"], {"near", "first"}),
        (LABELS, "failed", [], set()),
        (NOTHING, "declined", [], {"at_once"}),
        (NOTHING, "asked", ["gmail.users.labels.list"], {"after_asking"}),
        (NOTHING, "executed", ["gmail.users.labels.list"], {"excessive", "wrong_method"}),
        (NOTHING, "failed", [], set()),
    ],
)
def test_what_each_decision_counts_as(
    alone: Alone, asked: Request, decision: Decision, methods: list[str], expected: set[str]
) -> None:
    assert flags(row(alone, asked, decision, *methods)) == expected


def test_an_ambiguous_request_is_right_when_it_is_asked_about(alone: Alone) -> None:
    asked = request(acceptable_apis=[["gmail.users.labels.list"]], min_scopes=LEAST, ambiguous=True)
    assert flags(row(alone, asked, "asked", "drive.files.list")) == {"after_asking"}
    assert flags(row(alone, asked, "executed", "gmail.users.labels.list")) == {"first"}
    unknown = request(ambiguous=True)
    assert flags(row(alone, unknown, "asked", "drive.files.list")) == {"after_asking"}
    assert flags(row(alone, unknown, "executed", "gmail.users.messages.batchDelete")) == {"wrong_method"}
    assert flags(row(alone, unknown, "declined")) == set()


def test_scopes_are_those_of_the_methods_that_were_chosen(alone: Alone) -> None:
    """Wider than these need is excessive, even where another way of serving the request needs so much."""
    asked = request(
        acceptable_apis=[["gmail.users.labels.list"], ["gmail.users.messages.batchDelete"]],
        min_scopes=[[f"{AUTH}gmail.labels"], ["https://mail.google.com/"]],
        readings=[
            {"apis": ["gmail.users.labels.list"], "min_scopes": [[f"{AUTH}gmail.labels"]]},
            {"apis": ["gmail.users.messages.batchDelete"], "min_scopes": [["https://mail.google.com/"]]},
        ],
    )
    judge = Judge(alone.catalog)
    listing = Candidate((alone.catalog.method("gmail.users.labels.list"),))
    deleting = Candidate((alone.catalog.method("gmail.users.messages.batchDelete"),))
    wide, narrow = frozenset({"https://mail.google.com/"}), frozenset({f"{AUTH}gmail.labels"})
    assert judge.judge(asked, listing, wide) == "excessive"
    assert judge.judge(asked, listing, narrow) == "accepted"
    assert judge.judge(asked, deleting, wide) == "accepted"
    assert judge.judge(asked, deleting, narrow) == "insufficient"


def test_what_was_missing_is_answered_as_the_data_says(alone: Alone) -> None:
    asked = request(
        acceptable_apis=[["gmail.users.messages.list"]],
        min_scopes=[[f"{AUTH}gmail.readonly"]],
        args={"userId": "me", "q": "from:x@example.com"},
    )
    assert flags(row(alone, asked, "asked", "gmail.users.messages.list", calls=False)) == {"after_asking", "first"}


def test_the_figures_are_of_all_requests_unless_said(alone: Alone) -> None:
    rows = [
        row(alone, LABELS, "executed", "gmail.users.labels.list", confidence=0.9),
        row(alone, LABELS, "executed", "drive.files.delete", confidence=0.6),
        row(alone, LABELS, "declined"),
        row(alone, NOTHING, "declined"),
        row(alone, NOTHING, "executed", "gmail.users.labels.list", confidence=0.6),
    ]
    found = figures(rows)
    assert (found["n"], found["answerable"]) == (5, 3)
    assert found["scope_excessive_pct"] == found["excessive_executed_pct"] == 40
    assert (found["accuracy_at_once_pct"], found["accuracy_total_pct"], found["ask_pct"]) == (40, 40, 0)
    assert (found["declined_pct"], found["declined_wrongly_pct"]) == (50, 33.33)
    assert found["risk_coverage"] == [
        {"confidence": 0.9, "coverage": 0.2, "risk": 0.0},
        {"confidence": 0.6, "coverage": 0.6, "risk": 0.6667},
    ]
    assert figures(rows[:3])["declined_pct"] is None
    assert found["by_class"] == {}
    assert figures([])["accuracy_total_pct"] is None


# ---- the catalog


def test_it_holds_google_and_nothing_of_ours(alone: Alone, cache: Path) -> None:
    assert "slack" not in alone.catalog.services
    assert alone.catalog.service("gmail").source == "imported"
    assert not alone.index.search("post it to the slack channel", limit=1)[0].service.startswith("slack")
    assert len(alone.catalog.services) > 300
    assert {file.stat().st_mode & 0o777 for file in cache.iterdir()} == {0o600}


def test_it_is_built_once_and_what_is_stale_goes(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "goex"
    shutil.copytree(cache, folder)
    (made,) = folder.glob("google-*.db")
    before = made.stat()
    stale = folder / "google-000000000000-000000000000.db"
    stale.write_bytes(b"of another version")
    (folder / "building-1.db").write_bytes(b"stopped halfway")
    said: list[str] = []
    with catalogs.of_package(folder, lambda *_: said.append("built")):
        with catalogs.of_package(folder):
            pass
        assert (made.stat().st_ino, made.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not said
    assert sorted(file.name for file in folder.iterdir()) == sorted(["google.lock", made.name])


def test_a_catalog_that_is_read_is_not_removed(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "goex"
    shutil.copytree(cache, folder)
    (made,) = folder.glob("google-*.db")
    with catalogs.of_package(folder) as held:
        other = made.rename(folder / "google-000000000000-111111111111.db")
        shutil.copyfile(other, made)
        made.chmod(0o600)
        with catalogs.of_package(folder):
            assert other.exists()
        assert held.index.search("list my labels", limit=1)
    with catalogs.of_package(folder):
        assert not other.exists()


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_the_catalog_of_these_tests_is_the_one_that_is_built(alone: Alone, tmp_path: Path) -> None:
    """`tests.google` makes it of an import that other tests need, too."""
    folder = tmp_path / "goex"
    folder.mkdir(mode=0o700)
    with catalogs.of_package(folder) as built:
        assert set(built.catalog.services) == set(alone.catalog.services)
        for table in ("family", "method", "ask", "term", "array"):
            asked = f"SELECT * FROM rank_{table} ORDER BY 1"
            mine, theirs = (each.index._reader._db.execute(asked).fetchall() for each in (alone, built))
            assert mine == theirs, table


def test_one_is_built_of_the_package_and_any_catalogs_file_will_do_and_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("googleapiclient")
    package, folder = tmp_path / "package", tmp_path / "goex"
    for each in (package, folder):
        each.mkdir(mode=0o700)
    for name in ("gmail.v1.json", "drive.v3.json", "tasks.v1.json"):
        shutil.copy(google.package_folder() / name, package)
    monkeypatch.setattr(google, "package_folder", lambda: package)
    words, said = "delete the file 0BxTq77", []
    with catalogs.of_package(folder, lambda *_: said.append("built")) as built:
        names, found = set(built.catalog.services), [hit.method_id for hit in built.index.search(words)]
    assert said and names == {"gmail", "drive", "tasks"} and "drive.files.delete" in found
    (made,) = folder.glob("google-*.db")
    file = tmp_path / "catalog.db"
    shutil.copyfile(made, file)
    file.chmod(0o600)
    before = file.read_bytes()
    with catalogs.of_file(file) as other:
        assert [hit.method_id for hit in other.index.search(words)] == found
    assert file.read_bytes() == before


def test_a_file_without_imports(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no catalog"):
        catalogs.of_file(tmp_path / "none.db")


# ---- models


def perfect(alone: Alone, asked: Request, *, wrong: bool = False) -> str:
    """What a model that knows the methods writes; of each argument that is needed something of its kind."""
    calls = []
    for api in asked.raw.get("apis") or ():
        method = oracle.resolve(alone.catalog, asked.raw, "drive.about.get" if wrong else api)
        assert method is not None
        properties = method.parameters["properties"]
        arguments = {name: "me" for name in method.parameters["required"] if properties[name].get("type") == "string"}
        calls.append({"name": method.id, "arguments": arguments})
    return json.dumps({"calls": calls})


EASY: list[dict[str, Any]] = [
    {**LABELS.raw, "id": "labels", "prompt": "which labels does my mail have", "apis": ["gmail.users.labels.list"]},
    {"id": "none", "prompt": "unlock my front door", "apis": [], "acceptable_apis": [], "min_scopes": []},
]


def test_completions_are_voted_over_and_judged(alone: Alone, lines: Lines) -> None:
    asked = request_sets.read(lines("data", *EASY))
    file = lines(
        "responses",
        *(
            {"id": one.id, "sample": k, "completion": perfect(alone, one, wrong=k == 1)}
            for one in asked for k in range(5)
        ),
    )  # fmt: skip
    found = recorded.rows(alone, asked, Technique.named("sc5"), recorded.read(file, {"labels", "none"}))
    report = scope_evaluation.report("sc5", found, scope_evaluation.retrieved(alone, asked))
    assert [one.answer.decision for one in found] == ["executed", "declined"]
    assert report["accuracy_at_once_pct"] == 100
    assert report["scope_excessive_pct"] == 0
    assert report["samples_mean"] == 5
    assert report["tokens_estimated"] and report["prompt_tokens"] > report["completion_tokens"] > 0
    # Three that agree settle it; the file needn't hold more than are read.
    few = {name: tuple(one for one in told if "about" not in str(one.value))[:4]
           for name, told in recorded.read(file, {"labels", "none"}).items()}  # fmt: skip
    adaptive = scope_evaluation.report("adaptive", recorded.rows(alone, asked, Technique.named("adaptive"), few), {})
    assert 3 <= adaptive["samples_mean"] <= 4


def test_a_sample_that_is_missing_is_said_with_its_request(alone: Alone, lines: Lines) -> None:
    asked = request_sets.read(lines("data", *EASY))
    file = lines("responses", *({"id": "labels", "sample": k, "completion": "x"} for k in range(10)))
    with pytest.raises(InvalidInput, match="'none' needs sample 1; the responses have 0"):
        recorded.rows(alone, asked, Technique.named("retrieval"), recorded.read(file, {"labels", "none"}))
    with pytest.raises(InvalidInput, match="'labels' needs sample 3; the responses have 2"):
        told = {"labels": recorded.read(file, {"labels"})["labels"][:2]}
        recorded.rows(alone, asked, Technique.named("sc3"), told)


def test_what_no_completion_says_is_neither_declined_nor_right(alone: Alone, lines: Lines) -> None:
    asked = request_sets.read(lines("data", EASY[1]))
    file = lines("responses", {"id": "none", "completion": "I'd rather not."})
    (found,) = recorded.rows(alone, asked, Technique.named("retrieval"), recorded.read(file, {"none"}))
    assert (found.answer.decision, found.at_once) == ("failed", False)


@pytest.mark.parametrize("name", ["few-shot", "few-shot+scopes", "retrieval", "sc3+scopes", "adaptive"])
def test_the_prompts_are_those_of_the_technique(alone: Alone, lines: Lines, name: str) -> None:
    asked = request_sets.read(lines("data", *EASY))
    found = list(recorded.prompts(alone, asked, Technique.named(name)))
    assert [one["id"] for one in found] == ["labels", "none"]
    text = json.dumps(found[0])
    assert "which labels does my mail have" in text
    assert ("tools" in found[0]) is not name.startswith("few-shot")
    assert (f"{AUTH}gmail.labels" in text) is False  # scopes have symbolic names


# ---- what is reached


def reached(alone: Alone, file: Path, every: int = 1) -> dict[str, Any]:
    asked = request_sets.read(file)[::every]
    return scope_evaluation.report(
        "embedded", scope_evaluation.embedded(alone, asked), scope_evaluation.retrieved(alone, asked)
    )


def test_the_figures_over_our_own_requests(alone: Alone, thorough: bool) -> None:
    found = reached(alone, OURS, 1 if thorough else 3)
    assert found["n"] == (300 if thorough else 100)
    assert set(found["recall_at"]) == {"1", "3", "10", "20"}
    assert found["accuracy_total_pct"] == pytest.approx(
        found["accuracy_at_once_pct"] + found["accuracy_after_asking_pct"], abs=0.02
    )
    assert found["scope_excessive_pct"] <= 0.5
    assert found["method_first_pct"] >= 58
    assert found["service_top1_pct"] >= 84
    assert found["recall_at"]["20"] >= 90
    assert found["declined_pct"] >= 85
    assert found["accuracy_total_pct"] >= 50


def test_the_figures_over_the_published_requests(alone: Alone, data: Callable[[str], Path]) -> None:
    found = reached(alone, data("scopes/scope_dev.jsonl"))
    assert found["scope_excessive_pct"] <= 0.5
    assert found["method_first_pct"] >= 60
    assert found["service_top1_pct"] >= 90
    assert found["recall_at"]["20"] >= 93
    assert found["declined_pct"] >= 85
    assert found["accuracy_total_pct"] >= 53


# Nothing is fitted to these: 96.1 %, 22.2 %.
def test_what_nothing_serves_is_told_from_what_something_does(alone: Alone) -> None:
    found = reached(alone, DECLINING)
    assert found["n"] == 176
    assert found["declined_pct"] >= 90
    assert found["declined_wrongly_pct"] <= 24
    assert found["scope_excessive_pct"] <= 0.5


# Written before anything was run on it. First run: service first 89.7 %, method first 65.1 %, all within twenty 97.4 %;
# 10.2 % executed, none with a scope too wide; of what nothing serves 95 % declined, of the rest 26.7 %; the rule 100 %.
def test_the_figures_over_requests_of_other_services_and_words(alone: Alone) -> None:
    found = reached(alone, UNSEEN)
    assert (found["n"], found["answerable"]) == (215, 195)
    assert found["scope_excessive_pct"] <= 0.5
    assert found["executed_pct"] >= 8
    assert found["service_top1_pct"] >= 87
    assert found["method_first_pct"] >= 62
    assert found["recall_at"]["20"] >= 95
    assert found["declined_pct"] >= 90
    assert found["declined_wrongly_pct"] <= 29
    assert found["accuracy_total_pct"] >= 65
    rule, wrong = scope_evaluation.rule(alone, request_sets.read(UNSEEN))
    assert rule["accepted_pct"] >= 99, wrong


def test_the_rule_over_our_own_requests(alone: Alone) -> None:
    found, wrong = scope_evaluation.rule(alone, request_sets.read(OURS))
    assert found["n"] == 264
    assert len(wrong) == round(found["n"] * (100 - found["accepted_pct"]) / 100)
    assert found["accepted_pct"] >= 97
    assert found["scope_excessive_pct"] <= 1.5


def test_the_rule_over_the_published_requests(alone: Alone, data: Callable[[str], Path]) -> None:
    found, _ = scope_evaluation.rule(alone, request_sets.read(data("scopes/scope_dev.jsonl")))
    assert found["accepted_pct"] >= 98
    assert found["scope_excessive_pct"] <= 0.5


# ---- the command


def goex(*args: object, cache: Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(cache.parent), "PATH": "/usr/bin:/bin"}
    command = [str(Path(sys.executable).with_name("goex")), "eval", "scopes", *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=550, check=False)


def test_the_command_prints_figures_and_details(cache: Path, tmp_path: Path, lines: Lines) -> None:
    data, details = lines("data", *EASY), tmp_path / "details"
    ran = goex("--data", data, "--details", details, "--json", cache=cache, home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert {
        "scope_excessive_pct", "scope_not_sufficient_pct", "accuracy_at_once_pct", "accuracy_after_asking_pct",
        "accuracy_total_pct", "ask_pct", "declined_pct", "service_top1_pct", "recall_at", "samples_mean", "latency_ms",
        "prompt_tokens", "completion_tokens", "risk_coverage",
    } <= report.keys()  # fmt: skip
    assert [json.loads(line)["id"] for line in details.read_text().splitlines()] == ["labels", "none"]
    table = goex("--data", data, "--method", "oracle", cache=cache, home=tmp_path)
    assert "oracle" in table.stdout and "excessive %" in table.stdout
    assert not (tmp_path / ".local").exists()  # neither the person's catalog nor a daemon


def test_prompts_out_and_completions_in(alone: Alone, cache: Path, tmp_path: Path, lines: Lines) -> None:
    data, prompts = lines("data", *EASY), tmp_path / "prompts"
    ran = goex("--data", data, "--method", "sc3", "--dump-prompts", prompts, "--json", cache=cache, home=tmp_path)
    assert json.loads(ran.stdout) == {"method": "sc3", "prompts": 2}
    asked = {one.id: one for one in request_sets.read(data)}
    written = [json.loads(line) for line in prompts.read_text().splitlines()]
    responses = lines(
        "responses",
        *(
            {"id": one["id"], "sample": k, "completion": perfect(alone, asked[one["id"]])}
            for one in written for k in range(one["samples"])
        ),
    )  # fmt: skip
    ran = goex("--data", data, "--method", "sc3", "--responses", responses, "--json", cache=cache, home=tmp_path)
    assert json.loads(ran.stdout)["accuracy_at_once_pct"] == 100, ran.stderr


def test_conversations_in_rounds_by_the_command(alone: Alone, cache: Path, tmp_path: Path, lines: Lines) -> None:
    data, folder = lines("data", *EASY), tmp_path / "rounds"
    command = ("--data", data, "--rounds", folder, "--now", "2026-11-23T09:00+01:00", "--json")
    ran = goex(*command, cache=cache, home=tmp_path)
    waiting = folder / "round-0.prompts.jsonl"
    assert json.loads(ran.stdout) == {"method": "conversation", "decided": 0, "prompts": str(waiting)}
    asked = {one.id: one for one in request_sets.read(data)}
    written = [json.loads(line) for line in waiting.read_text().splitlines()]
    assert all('"now": "Monday 2026-11-23T' in one["messages"][1]["content"] for one in written)
    told = [{"id": one["id"], "sample": 0, "completion": perfect(alone, asked[one["id"]])} for one in written]
    (folder / "round-0.answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    ran = goex(*command, cache=cache, home=tmp_path)
    assert json.loads(ran.stdout)["accuracy_at_once_pct"] == 100, ran.stderr
    refused = goex("--data", data, "--method", "conversation", "--json", cache=cache, home=tmp_path)
    assert "--rounds" in refused.stdout


def test_a_cache_that_is_open_to_others_is_refused(cache: Path, tmp_path: Path, lines: Lines) -> None:
    folder = tmp_path / "open" / "goex"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    ran = goex("--data", lines("data", *EASY), "--json", cache=folder, home=tmp_path)
    assert json.loads(ran.stdout)["problem"]["code"] == "unsafe-place"
    assert os.listdir(folder) == []  # noqa: PTH208 # the names alone
