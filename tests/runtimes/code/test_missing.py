"""What a program lacked is said with the one command that adds it, and nothing else that it prints is."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer.main

from goex.cli import images
from runtimes.code.missing import told

TRACE = 'Traceback (most recent call last):\n  File "/goex/job/program.py", line 1, in <module>\n    import x\n'
ESM = "node:internal/errors:496\n    ErrorCaptureStackTrace(err);\n\nError [ERR_MODULE_NOT_FOUND]: "


@pytest.mark.parametrize(
    ("printed", "command", "profile"),
    [
        (f"{TRACE}ModuleNotFoundError: No module named 'polars'\n", "--library polars", "with-polars"),
        (f"{TRACE}ModuleNotFoundError: No module named 'google_ads.x'\n", "--library google-ads", "with-google-ads"),
        (f"{TRACE}ModuleNotFoundError: No module named 'telegram.ext'\n", "--library python-telegram-bot",
         "with-python-telegram-bot"),
        (f"{ESM}Cannot find package '@octokit/rest' imported from /goex/job/program.mjs\n\nNode.js v18.20.4\n",
         "--npm @octokit/rest", "with-octokit-rest"),
        ("Error: Cannot find module 'got/dist/index.js'\nRequire stack:\n- /goex/job/program.cjs\n", "--npm got",
         "with-got"),
        ("/goex/job/program.sh: line 3: yq: command not found\n", "--package yq", "with-yq"),
    ],
)  # fmt: skip
def test_the_command_that_adds_it(printed: str, command: str, profile: str) -> None:
    said = told(printed.encode())
    assert said.endswith(f": goex images add {profile} {command}, then run it with --profile {profile}.")
    option, name = command.split()
    group: Any = typer.main.get_command(images.app)
    words = shlex.split(said.partition("goex images add ")[2].partition(",")[0])
    given = group.commands["add"].make_context("add", words).params
    assert (given["name"], list(given[option.removeprefix("--")])) == (profile, [name])


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "ModuleNotFoundError: No module named '; rm -rf ~'\n",
        "ModuleNotFoundError: No module named '--index-url=x'\n",
        "print: ModuleNotFoundError: No module named 'x'\n",
        "Cannot find package '../x' imported from /goex/job/program.mjs\n",
        "Cannot find package '-x' imported from /goex/job/program.mjs\n",
        "Cannot find module '/goex/job/own.js'\n",
        "Cannot find module './own.js'\n",
        "line 3: $(x): command not found\n",
        "ModuleNotFoundError: No module named 'x'\n" + "y" * 20_000,
    ],
)
def test_nothing_else_is_said(printed: str) -> None:
    assert told(printed.encode()) == ""
