"""What bash passes on is what was read of a command: random programs, whose words a function of bash prints."""

from __future__ import annotations

import os
import posixpath
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from mapper.code import shell_commands
from mapper.code.folder_shell import FolderShell, read_folder_shell

really = shell_commands.understood
MARK = "zl/p"
PIECES = [
    "zl", "/p", "zl/p", "A", "A ", " ", "\n", "\\\n", "\\", '"', "'", "#", "{", "}", "(", ")", ";", "&", "|", "<",
    "<<E\n", "\nE\n", "$", "`", "!", "=", ",", "x", "y=", "[", "]", "[[ ", " ]]", "\r", "\x0c", "\x0b", "\xa0",
    "\u2028", "\ufeff", "\t", "@", "*", "?", "~", "-f", "--x=", "if ", "then ", "fi", "do ", "done", "for ", "in ",
    "case ", "esac", "time ", "function ", "\x01", "<<<", "<<-E\n", "$((", "))", "((", "${", '$"', "$'", "+", "^", "%",
    "0", "2>&1", ":", "é", "\x85", "/**/", "//", "a=(", "declare ", "export ", "cd d && ", "cd d;", "cd ..",
    "(cd d && ", " || ", " && ", "A -C d ", "A --directory=d ", "bash -c '", "eval ", "builtin ", "command ", "'cd' ",
    "\\;", "\\ ", "\\*", "\\\\", "http://", '"$(cat <<\'E\'\n', '\nE\n)"', "-Cd ", "-xzC d ", "A 'a b' ", "| A ", "! ",
]  # fmt: skip
PRINTS = (
    'A() { printf "%%s\\0" "$PWD" "$#" "$@" >&%d; }; bash() { if [ "$1" = -c ]; then eval "$2"; fi; }\n'
    'cat() { while read -r; do printf "%%s\\n" "$REPLY"; done; }\n'
)
NOBODY = "import os, sys; os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"


def made(chance: random.Random) -> str:
    program = "A " + "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 7)))
    if chance.random() < 0.7:
        at = chance.randrange(len(program) + 1)
        word = chance.choice(["zl", "zl/p", "A zl/p"]) + chance.choice(PIECES) + chance.choice(["/p", "zl/p", ""])
        program = program[:at] + " " * chance.randint(0, 1) + word
    return program


def passed_on(program: str, folder: Path) -> list[tuple[str, list[str]]]:
    """The words that bash gives the function, each time with the folder that it stands in."""
    with tempfile.TemporaryFile() as said:
        prints = PRINTS % said.fileno()
        command = [shutil.which("bash") or "bash", "--norc", "-c", prints + program]
        if os.geteuid() == 0:  # it may write anywhere; Popen's `user` would copy the whole process for each
            command = [sys.executable, "-ISc", NOBODY, *command]
        try:
            subprocess.run(
                command, cwd=folder, timeout=30, check=False,
                env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8", "HOME": posixpath.expanduser("~")},
                pass_fds=(said.fileno(),),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return []
        said.seek(0)
        left = said.read().decode("utf-8", "surrogateescape").split("\0")[:-1][::-1]
    found = []
    while len(left) > 1:
        where, count = left.pop(), left.pop()
        if not count.isdecimal():
            return []  # parts of a pipeline printed at once
        found.append((where, [left.pop() for _ in range(min(int(count), len(left)))]))
    return found


def unread(read: FolderShell, calls: list[tuple[str, list[str]]]) -> list[str]:
    """The words with the mark that aren't among those that were read."""
    named = {posixpath.normpath(each) for each in (*read.paths, *read.words, *read.globs)}
    missed = []
    for where, words in calls:
        folders = [where] + [f"{where}/d"] * bool({"-Cd", "--directory=d"} & {*words})
        for at, word in enumerate(words):
            folders += [f"{where}/d"] * (
                "--" not in words[:at] and words[at - 1 : at] in (["-C"], ["-xzC"]) and word == "d"
            )
        for word in words:
            values = [word[at:] for at in range(2, len(word))] if word.startswith("-") else [word]
            values = [word.partition("=")[2]] if word.startswith("--") else values
            for folder in folders:
                paths = (posixpath.normpath(posixpath.join(folder, each)) for each in values if MARK in each)
                if any(MARK in each for each in values) and named.isdisjoint(paths):
                    missed.append(word)
    return missed


def understood(name: str, texts: list[str], *more: Any) -> frozenset[int] | None:
    """As if A were a command of the list."""
    return frozenset() if name == "A" else really(name, texts, *more)


def run(seed: int, count: int, folder: Path) -> tuple[dict[str, list[str]], int]:
    """The programs of which a word wasn't read, and how many were run."""
    chance, found, ran = random.Random(seed), dict[str, list[str]](), 0
    for _ in range(count):
        program = made(chance)
        with patch.object(shell_commands, "understood", understood):
            read = read_folder_shell(program, str(folder))
        if read.names_all and "zl" in program:
            ran += 1
            # Twice, for what is run at once may be printed in a mess.
            if unread(read, passed_on(program, folder)) and (missed := unread(read, passed_on(program, folder))):
                found[program] = missed
    return found, ran


@pytest.fixture
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="goex-"))
    (made / "d" / "d").mkdir(parents=True)
    for each in (made, made / "d", made / "d" / "d"):
        each.chmod(0o777)
    return made


@pytest.mark.promise(14)
def test_what_bash_passes_on_was_read(folder: Path) -> None:
    try:
        found, ran = run(7, 300, folder)
    finally:
        shutil.rmtree(folder)
    assert not found
    assert ran > 30, "most programs can't be read, but not all"


if __name__ == "__main__":
    where = Path(sys.argv[3])
    print(run(int(sys.argv[1]), int(sys.argv[2]), where))
