"""BFCL's multi-turn base cases, read from the package's own data files: each turn of the user's is one task."""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path
from typing import Any

_DATA = "bfcl_eval/data"
_READS = frozenset({
    "ls", "cat", "pwd", "find", "grep", "wc", "tail", "head", "diff", "du", "sort", "display_log", "displayCarStatus",
    "liter_to_gallon", "gallon_to_liter", "estimate_distance", "estimate_drive_feasibility_by_mileage",
    "view_messages_sent", "filter_stocks_by_price", "compute_exchange_rate", "verify_traveler_information",
    "retrieve_invoice", "mean", "standard_deviation", "logarithm", "add", "subtract", "multiply", "divide", "power",
    "square_root", "absolute_value", "round_number", "percentage", "min_value", "max_value", "sum_values",
    "imperial_si_conversion", "si_unit_conversion",
})  # fmt: skip
_PREFIXES = ("get_", "search_", "find_", "list_", "check_", "estimate_")


def reads(name: str) -> bool:
    """Whether a function only reads: by its name, or listed here. `cd` and logins change something."""
    return name in _READS or name.startswith(_PREFIXES) or name.endswith("_get_login_status")


def cases(wheel: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """For each turn that calls something, the user's words so far and the calls of its ground truth; and the arguments
    of each function."""
    with zipfile.ZipFile(wheel) as archive:
        asked = _lines(archive.read(f"{_DATA}/BFCL_v4_multi_turn_base.json"))
        truth = _lines(archive.read(f"{_DATA}/possible_answer/BFCL_v4_multi_turn_base.json"))
        functions = {
            function["name"]: list(function["parameters"]["properties"])
            for name in archive.namelist()
            if name.startswith(f"{_DATA}/multi_turn_func_doc/") and name.endswith(".json")
            for function in _lines(archive.read(name))
        }
    answers = {each["id"]: each["ground_truth"] for each in truth}
    found = []
    for case in asked:
        words = ""
        for number, (turn, texts) in enumerate(zip(case["question"], answers[case["id"]], strict=True)):
            words += "\n".join(message["content"] for message in turn) + "\n"
            if calls := [_call(text, functions) for text in texts]:
                found.append({"id": f"{case['id']}.{number}", "prompt": words, "calls": calls})
    return found, functions


def _lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def _call(text: str, functions: dict[str, list[str]]) -> dict[str, Any]:
    """`name(a=1, 'b')` as a tool and its arguments by name."""
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    name = ast.unparse(node.func).rpartition(".")[2]
    known = functions.setdefault(name, [])
    arguments = dict(zip(known, map(ast.literal_eval, node.args), strict=False))
    arguments |= {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg}
    known += [each for each in arguments if each not in known]
    return {"tool": name, "arguments": arguments}
