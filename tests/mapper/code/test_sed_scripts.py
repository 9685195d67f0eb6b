"""What a script of sed runs, as it is read and as GNU sed runs it."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from mapper.code.sed_scripts import read_sed

PIECES = [
    "s", "/", "/", "/", "a", "b", "e", "e ", "echo", ";", "\n", "{", "}", "[", "]", "[/]", "\\", "\\/", "\\n", ",", "g",
    "p", " ", "1", "2", "$", "!", "y", "d", ":x", "bx", "t", "i\\", "c", "#", "I", "M", "|", "q", "=", "1e mark",
    "s/b/mark/e", "s|a|b|", "/a/", "[^]/]", "[[:alpha:]]", "v ", "F", "~", "+1", "s/[/]", "h", "e mark", ";e mark",
]  # fmt: skip
PLAIN = [
    "-e 's/a/b/' -e 's/c/d/' f", "-i 's/foo\\.x/bar/g' src/a.py", "-n '/^def/,/^$/p' f", "-n '1,50p' f", "10q f",
    "-i 's#/usr/local#/opt#g' f", "-i 's|/a|/b|;s|/c|/d|' f", "-i '' 's|/old|/new|g' f", "':a;N;$!ba;s/\\n/ /g' f",
    "'1~2d;0,/x/s//y/' f", "-ne 's/x/y/p' f", "-E 's/([^/]*)\\/(x|y)/\\2/gI' f", "'s/[/]e/x/' f", "'/x/a e cat y' f",
    "'5i\\  text' f", "'/x/c\\\ne cat y' f", "-n '/a/,/b/{//!p}' f", "'1!G;h;$!d' f", "'s/a/b/;# e\np' f", "q5 f",
    "-i.bak -e '/^#/d' f", "-l 5 p f", "-e '/a/{' -e p -e '}' f", "-f script e", "'y/abe/xyz/' f", "-ie 's/x/y/' f",
    "'s/a/b/w e' f", "-n '$=' f", "'/a/ ! { p ; d }' f", "'\\,a/b,d' f",
]  # fmt: skip


@pytest.mark.parametrize("words", PLAIN)
def test_usual_scripts_run_nothing(words: str) -> None:
    read = read_sed(shlex.split(words))
    assert not read.unknown and not read.runs


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ("'1e cat x' f", ("cat x",)), ("-e p -e '$e ls' f", ("ls",)), ("':a e cat x' f", ("cat x",)),
        ("'s/[/]e cat x;/y/' f", ()), ("'1{p;e cat x\n}' f", ("cat x",)), ("--expression='e ls' f", ("ls",)),
        ("-n -- 'e ls' f", ("ls",)), ("'a x\ne ls' f", ("ls",)), ("'y/a/b/;e ls' f", ("ls",)),
    ],
)  # fmt: skip
def test_a_command_that_is_written_out_is_read(words: str, runs: tuple[str, ...]) -> None:
    read = read_sed(shlex.split(words))
    assert read.runs == runs and not read.unknown


@pytest.mark.parametrize(
    "words",
    [
        "'s/.*/cat x/e' f", "'s,a,b,ge' f", "1e f", "'s/a/b/ e' f", "'s/[/]/x/e' f", "'e cat \\\nx' f", "'}' f",
        "--expr=p f", "-x p f", "'s/a/b' f", "-e", "'k' f", "-s -e 's/a/b/' -e 's/c/d/em' f", "'{p' f",
    ],
)  # fmt: skip
def test_what_it_runs_of_what_it_reads_is_unknown(words: str) -> None:
    assert read_sed(shlex.split(words)).unknown


def test_what_sed_runs_was_read(tmp_path: Path) -> None:
    """Random scripts: where a command ran, it had been read, or was unknown."""
    sed = shutil.which("sed")
    said = subprocess.run([sed or "false", "--version"], capture_output=True, text=True, check=False).stdout
    if sed is None or "GNU sed" not in said:
        pytest.skip("no GNU sed")
    (tmp_path / "f").write_text("ab\ncd\n")
    (tmp_path / "mark").write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    (tmp_path / "mark").chmod(0o755)
    chance, ran = random.Random(118), 0
    for _ in range(1500):
        script = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 7)))
        read = read_sed(["-n", script, "f"])
        if read.unknown or any("mark" in each for each in read.runs):
            continue
        subprocess.run(
            [sed, "-n", script, "f"], cwd=tmp_path, capture_output=True, timeout=300, check=False,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        ran += 1
        assert not (tmp_path / "ran").exists(), script
    assert ran > 100
