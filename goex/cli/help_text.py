"""What `--help` prints: options and commands in groups, and examples at the end.

The examples are in `examples.toml`, by the words of their command; they are read when help is printed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import typer
import typer.core


class Command(typer.core.TyperCommand):
    """A command whose help has its options in groups, and examples. `groups`: for each group its options, by the names
    of their parameters; what is in none comes last, as "Options"."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then each group of options."""
        shown = [one for one in self.get_params(ctx) if one.get_help_record(ctx) is not None]
        arguments = [one for one in shown if one.param_type_name == "argument"]
        for name, group in [("Arguments", arguments), *self.grouped(one for one in shown if one not in arguments)]:
            if group:
                with formatter.section(name):
                    formatter.write_dl([one.get_help_record(ctx) for one in group])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, a line each, neither wrapped nor filled."""
        path = " ".join(("goex", *ctx.command_path.split()[1:]))
        if lines := examples().get(path, ()):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def grouped(self, options: Iterable[Any]) -> list[tuple[str, list[Any]]]:
        """Return the options of each group, in its order, with the group's name."""
        left = {one.name: one for one in options}
        found = [(name, [left.pop(one) for one in own if one in left]) for name, own in self.groups.items()]
        return [*found, ("Options", list(left.values()))]


class App(typer.Typer):
    """A group of commands, whose help is `Command`'s."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"no_args_is_help": True, "rich_markup_mode": None, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command, as Typer's own does."""
        return super().command(name, **{"cls": Command, **settings})


@cache
def examples() -> Mapping[str, tuple[str, ...]]:
    """Return the examples of each command, by its words: `goex vault put`."""
    found = tomllib.loads((files("goex.cli") / "examples.toml").read_text(encoding="utf-8"))
    return {path: tuple(text.strip().splitlines()) for path, text in found.items()}


def write_commands(
    group: typer.core.TyperGroup, groups: Mapping[str, tuple[str, ...]], ctx: Any, formatter: Any
) -> None:
    """Write a group's commands by what they are for; those that no group names come last."""
    left = {name: one for name in group.list_commands(ctx) if (one := group.get_command(ctx, name)) and not one.hidden}
    limit = formatter.width - 6 - max(map(len, left), default=0)
    for title, names in (*groups.items(), ("Other commands", tuple(left))):
        rows = [(name, left.pop(name).get_short_help_str(limit)) for name in names if name in left]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
