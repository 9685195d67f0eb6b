"""Writes docs/reference/cli.md and grpc.md from the commands and from protos/: `python -m tools.reference [--check]`.

`--check` writes nothing, and ends with 1 where a page isn't what it would write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from goex.cli.help_text import Command, examples
from goex.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
_SERVICE = re.compile(r"^service (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_RPC = re.compile(r"\s*rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")


def cli() -> str:
    """Return the page of all commands, in the order in which `goex --help` lists them."""
    lines = ["# Commands", "", "Written from the commands themselves by `make reference`.", ""]
    for path, command in _commands("goex", typer.main.get_command(app)):
        lines += _command(path, command)
    return "\n".join(lines).rstrip() + "\n"


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield f"{path} {name}", one
            yield from _commands(f"{path} {name}", one)


def _command(path: str, command: Any) -> Iterator[str]:
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    options = [one for one in shown if one.param_type_name == "option"]
    groups = command.grouped(options) if isinstance(command, Command) else [("Options", options)]
    usage = [path, *(["[OPTIONS]"] if options else []), *(_metavar(one) for one in arguments)]
    yield from (f"{'#' * path.count(' ')}# {path}", "", _flat(command.help or ""), "", f"`{' '.join(usage)}`", "")
    if shown:
        yield from ("| | |", "|---|---|")
        for one in arguments:
            yield f"| `{_metavar(one)}` | {_flat(getattr(one, 'help', '') or '')} |"
        for title, own in groups:
            if len(groups) > 1 and own:
                yield f"| **{title}** | |"
            for one in own:
                names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
                yield f"| {names} | {_flat(one.help or '')} |"
        yield ""
    if path in examples():
        yield from ("```sh", *examples()[path], "```", "")


def _metavar(argument: Any) -> str:
    name = argument.metavar or (argument.name or "").upper()
    name += "..." if argument.nargs != 1 else ""
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def grpc() -> str:
    """Return the page of all services, with the comments that stand above their calls."""
    lines = ["# gRPC", "", "Written from `protos/` by `make reference`. Messages and fields are described there.", ""]
    for file in sorted((ROOT / "protos" / "goex" / "v1").glob("*.proto")):
        for name, body in _SERVICE.findall(file.read_text()):
            lines += [
                f"## {name}",
                "",
                f"`{file.relative_to(ROOT)}`",
                "",
                "| call | takes | answers | |",
                "|---|---|---|---|",
            ]
            lines += [*_calls(body), ""]
    return "\n".join(lines).rstrip() + "\n"


def _calls(body: str) -> Iterator[str]:
    said: list[str] = []
    for line in body.splitlines():
        if line.strip().startswith("//"):
            said.append(line.strip().removeprefix("//").strip())
        elif found := _RPC.match(line):
            call, _, takes, stream, answers = found.groups()
            yield f"| `{call}` | `{takes}` | {'stream of ' if stream else ''}`{answers}` | {_flat(' '.join(said))} |"
            said = []
        else:
            said = []


def main() -> int:
    """Write the pages, or compare them with `--check`."""
    stale = []
    for name, text in (("cli.md", cli()), ("grpc.md", grpc())):
        page = PAGES / name
        if not page.exists() or page.read_text() != text:
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in sys.argv[1:]:
                page.write_text(text)
    if stale and "--check" in sys.argv[1:]:
        sys.stderr.write(f"Not up to date: {', '.join(stale)}. Write them anew: make reference\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
