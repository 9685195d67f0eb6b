"""`goex eval` as a person runs it: one JSON document or a table, errors with a next step, no daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Lines = Callable[..., Path]
FUNCTION = {"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}


def goex(*args: object, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PATH": "/usr/bin:/bin"}
    command = [str(Path(sys.executable).with_name("goex")), "eval", *map(str, args)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def apibench(lines: Lines) -> list[object]:
    api = lines("api", {"api_call": "f('u')", "domain": "texts"})
    questions = lines("questions", *[{"api_data": {"domain": "texts"}}] * 2000)
    texts = ["api_call: f('u')", "nothing"] * 1000
    responses = lines("responses", *({"question_id": n, "text": text} for n, text in enumerate(texts, 1)))
    return ["apibench", "--api", api, "--questions", questions, "--responses", responses]


@pytest.fixture
def bfcl(lines: Lines) -> list[object]:
    questions = lines("questions", *({"id": f"q{n}", "function": [FUNCTION]} for n in (1, 2)))
    answers = lines("answers", *({"id": f"q{n}", "ground_truth": [{"f": {"x": [n]}}]} for n in (1, 2)))
    outputs = lines("outputs", {"id": "q1", "output": "f(x=1)"}, {"id": "q2", "output": "f(x=1)"})
    return ["bfcl", "--questions", questions, "--outputs", outputs, "--answers", answers]


def test_apibench(apibench: list[object], tmp_path: Path) -> None:
    ran = goex(*apibench, "--json", home=tmp_path)
    score = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert (score["n"], score["accuracy_pct"], score["hallucination_pct"], score["error_pct"]) == (2000, 50, 50, 0)
    assert ran.stderr.splitlines() == ["1000 completions read", "2000 completions read"]
    table = goex(*apibench, home=tmp_path)
    assert table.stdout.split()[-4:] == ["2000", "50.00", "50.00", "0.00"]
    assert not (tmp_path / "state").exists()


def test_bfcl(bfcl: list[object], tmp_path: Path) -> None:
    ran = goex(*bfcl, "--json", home=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {
        "accepted_pct": 50,
        "accepted": 1,
        "n": 2,
        "results": [
            {"id": "q1", "accepted": True, "reason": ""},
            {"id": "q2", "accepted": False, "reason": "wrong value: x is 1"},
        ],
    }
    table = goex(*bfcl, home=tmp_path).stdout
    assert "50.00" in table
    assert "wrong value" in table


def test_without_answers_no_function_fits(bfcl: list[object], tmp_path: Path) -> None:
    ran = goex(*bfcl[:-2], "--json", home=tmp_path)
    assert json.loads(ran.stdout)["accepted_pct"] == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("flag", ["--questions", "--outputs", "--answers"])
def test_a_missing_file(bfcl: list[object], tmp_path: Path, flag: str) -> None:
    bfcl[bfcl.index(flag) + 1] = tmp_path / "gone"
    ran = goex(*bfcl, "--json", home=tmp_path)
    assert ran.returncode == 2
    problem: dict[str, Any] = json.loads(ran.stdout)["problem"]
    assert problem["code"] == "invalid"
    assert str(tmp_path / "gone") in problem["message"]
    assert problem["next_step"]
    ran = goex(*bfcl, home=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "gone" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_missing_option(tmp_path: Path) -> None:
    ran = goex("apibench", "--json", home=tmp_path)
    assert ran.returncode == 2
    assert "--api" in json.loads(ran.stdout)["problem"]["message"]


def test_help_loads_no_evaluation() -> None:
    code = "import sys, goex.cli.main; print([m for m in sys.modules if m.startswith('mapper')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.strip() == "[]"
