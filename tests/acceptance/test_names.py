"""Names of modules, classes and functions: nouns of the field, and none of those that were retired."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.acceptance.test_import_graph import ROOT, modules

# Words that GoEx had for what the field has its own for (docs/glossary.md).
RETIRED = frozenset({
    "asker", "begun", "custody", "desk", "doorway", "flowing", "giving", "hesitating", "keeper", "ledger", "lending",
    "letters", "passage", "passing", "relay", "sieve", "twins", "waited", "wish",
})  # fmt: skip
# Of these, ordinary words where they name a variable: a request that has begun, the letters of a text.
ORDINARY = frozenset({"begun", "giving", "keeper", "letters", "passing", "waited"})
# What a file called so holds can't be told from its name.
VAGUE = frozenset({
    "answers", "common", "helpers", "misc", "notes", "reading", "readings", "things", "util", "utils",
    "values", "words",
})  # fmt: skip
GERUND_LIKE = frozenset({"string"})  # nouns that end so
MOST_GERUNDS = 10
MOST_LINES = 500
STANDS_ALONE = "goex.journal.verify"  # one file, so that an auditor can copy it and run it with nothing of GoEx

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@cache
def names() -> tuple[list[str], set[str]]:
    """The names of the packages' modules, classes and functions, without generated code; and those of their variables,
    parameters and attributes, each after its module's."""
    defined, variables = [], set()
    for module, file in modules(ROOT).items():
        if module.startswith("goex.rpc."):
            continue
        defined.append(module.rpartition(".")[2])
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    defined.append(name)
                case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                    variables.add(f"{module}.{name}")
    return defined, variables


def test_no_retired_word_is_a_name() -> None:
    assert [name for name in names()[0] if RETIRED & {part.lower() for part in _WORD.findall(name)}] == []


def test_no_retired_noun_is_a_variable() -> None:
    nouns = RETIRED - ORDINARY
    assert sorted(name for name in names()[1] if nouns & set(name.rpartition(".")[2].lower().split("_"))) == []


@pytest.mark.parametrize("name", sorted(VAGUE))
def test_a_vague_name_does_not_stand_twice(name: str) -> None:
    found = [module for module in modules(ROOT) if module.rpartition(".")[2] == name]
    assert len(found) <= 1, found


def test_modules_are_named_for_what_is_in_them() -> None:
    last = {module: module.rpartition(".")[2].split("_")[-1] for module in modules(ROOT)}
    gerunds = [module for module, word in last.items() if word.endswith("ing") and word not in GERUND_LIKE]
    assert len(gerunds) <= MOST_GERUNDS, gerunds


def test_no_module_is_longer_than_one_can_read() -> None:
    lines = {
        module: len(file.read_text().splitlines())
        for module, file in modules(ROOT).items()
        if not module.startswith("goex.rpc.") and module != STANDS_ALONE
    }
    assert [(module, count) for module, count in lines.items() if count > MOST_LINES] == []
