"""Names of modules, classes and functions: nouns of the field, and none of those that were retired."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.acceptance.test_import_graph import ROOT, modules

# Words that GoEx had for what the field has its own for (docs/glossary.md), and in how many definitions they still
# stand. A number here only goes down.
RETIRED = {
    "asker": 3,
    "begun": 7,
    "custody": 2,
    "desk": 5,
    "doorway": 1,
    "flowing": 2,
    "giving": 2,
    "hesitating": 0,
    "keeper": 2,
    "ledger": 9,
    "lending": 1,
    "letters": 1,
    "passage": 2,
    "passing": 2,
    "relay": 3,
    "sieve": 1,
    "twins": 2,
    "waited": 1,
    "wish": 7,
}
# What a file called so holds can't be told from its name.
VAGUE = frozenset({
    "answers", "common", "helpers", "misc", "notes", "reading", "readings", "things", "util", "utils",
    "values", "words",
})  # fmt: skip
GERUND_LIKE = frozenset({"string"})  # nouns that end so
MOST_GERUNDS = 10

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def definitions() -> Iterator[str]:
    """The names of the packages' modules, classes and functions, without generated code."""
    for module, file in modules(ROOT).items():
        if module.startswith("goex.rpc."):
            continue
        yield module.rpartition(".")[2]
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name


def test_retired_words_only_become_fewer() -> None:
    counts = Counter(
        word for name in definitions() for word in {part.lower() for part in _WORD.findall(name)} if word in RETIRED
    )
    assert {word: count for word, count in counts.items() if count > RETIRED[word]} == {}


@pytest.mark.parametrize("name", sorted(VAGUE))
def test_a_vague_name_does_not_stand_twice(name: str) -> None:
    found = [module for module in modules(ROOT) if module.rpartition(".")[2] == name]
    assert len(found) <= 1, found


def test_modules_are_named_for_what_is_in_them() -> None:
    last = {module: module.rpartition(".")[2].split("_")[-1] for module in modules(ROOT)}
    gerunds = [module for module, word in last.items() if word.endswith("ing") and word not in GERUND_LIKE]
    assert len(gerunds) <= MOST_GERUNDS, gerunds
