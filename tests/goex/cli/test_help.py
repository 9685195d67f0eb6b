"""What `--help` says: examples that work, options and commands in groups."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import typer.main

from goex.cli import help_text
from goex.cli.main import _GROUPS, app
from mapper.catalog import Catalog
from tests.goex.cli.conftest import Inside

ROOT: Any = typer.main.get_command(app)


def commands(path: str = "goex", group: Any = ROOT) -> Iterator[tuple[str, Any]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(f"{path} {name}", one)
        else:
            yield f"{path} {name}", one


EXAMPLES = [(path, line) for path, lines in help_text.examples().items() for line in lines]


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_is_a_command_that_its_parser_takes(path: str, line: str) -> None:
    words = shlex.split(line.partition(" | ")[2] or line.partition(" < ")[0])
    assert " ".join(words).startswith(path), "an example of another command"
    one = dict(commands())[path]
    with one.make_context(path, words[len(path.split()) :]) as context:
        assert context.params or not one.params


def test_examples_name_services_that_come_with_goex_or_that_one_imports() -> None:
    named = {
        word.split(".")[0]
        for path, line in EXAMPLES
        for flag, word in pairwise(shlex.split(line.partition(" | ")[2] or line))
        if flag in ("--service", "--call")
        or (path in ("goex auth login", "goex vault put") and flag in ("login", "put"))
    }
    assert "slack" in named and named <= {*Catalog.bundled().services, "shop", "model"}


def test_an_example_that_isnt_one_would_be_seen() -> None:
    with pytest.raises(typer.BadParameter.__mro__[1], match="--nowhere"):
        dict(commands())["goex undo"].make_context("goex undo", ["--nowhere"])


def test_what_takes_an_argument_or_many_options_has_examples() -> None:
    without = {
        path for path, one in commands()
        if path not in help_text.examples() and not one.hidden and len(one.params) > 3
    }  # fmt: skip
    assert without == set()


def test_groups_name_options_and_commands_that_there_are(inside: Inside) -> None:
    for path, one in commands():
        names = {param.name for param in one.params}
        grouped = [name for group in getattr(one, "groups", {}).values() for name in group]
        assert set(grouped) <= names, path
        assert len(grouped) == len(set(grouped)), path
        if len(names) > 16:
            assert grouped, f"{path} has {len(names)} options in one list"
    named = [name for names in _GROUPS.values() for name in names]
    assert sorted(named) == sorted(ROOT.commands)
    said = inside("--help").out
    assert "Other commands" not in said
    assert all(f"{group}:" in said for group in _GROUPS)


def test_the_help_of_exec_has_its_groups_and_examples(inside: Inside) -> None:
    said = inside("exec", "--help").out
    places = [said.index(f"\n{group}:\n") for group in ("Arguments", "Calls", "A database", "Options", "Examples")]
    assert places == sorted(places)
    assert "--sql STATEMENTS" in said[places[2] : places[3]]
    assert all(f"  {line}\n" in said for line in help_text.examples()["goex exec"])


@pytest.mark.parametrize("group", ["vault", "auth", "agents", "undo-pairs"])
def test_a_group_without_a_command_shows_its_help_line_by_line(inside: Inside, group: str) -> None:
    said = inside(group)
    assert said.code == 2
    assert "\\u{" not in said.err + said.out
    assert f"Usage: goex {group} " in (said.err + said.out).splitlines()[0]
