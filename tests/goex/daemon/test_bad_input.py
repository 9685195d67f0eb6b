"""Bad commands, to the real daemon: one clear sentence, a next step, the exit status of README's table, nothing lost,
and never a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from tests.goex.daemon.unbroken import COMMANDING, unbroken
from tests.support.daemon import Daemon

pytestmark = pytest.mark.docker

_ESC = r"\\(u\{1b\}|x1b)"  # an escape character that was made visible
POST = ("exec", "--call", "slack.chat.postMessage")


@pytest.fixture(autouse=True, scope="module")
def nothing_was_lost(daemon: Daemon) -> Iterator[None]:
    """After all of it the daemon has met no defect, and its log verifies."""
    yield
    unbroken(daemon)


def says(done: CompletedProcess[str], status: int, *words: str) -> None:
    """The command ended with that status, one sentence and a next step; `words` (patterns) stand in them."""
    told = done.stdout + done.stderr
    assert done.returncode == status, told[-3000:]
    assert "Traceback" not in told
    assert "unforeseen" not in told
    assert "defect" not in told
    lines = done.stderr.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(("goex: ", "Error: ", "Usage: ")))
    assert len(lines) > first + 1, f"no next step: {done.stderr}"
    assert len(told) < 6000
    assert not COMMANDING.search(told), repr(told)
    for word in words:
        assert re.search(word, told), (word, told)


COMMANDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "a service that isn't": (("exec", "--call", "slak.chat.postMessage"), 2, ("slak", "slack")),
    "a method that isn't": (("exec", "--call", "slack.chat.postMesage", "text=x"), 2, (r"chat\.postMessage",)),
    "a call without a method": (("exec", "--call", "slack"), 2, ()),
    "a number for text": ((*POST, "channel:=5", "text=hi"), 2, ("channel",)),
    "a list for text": ((*POST, "channel=#ops", "text:=[1,2]"), 2, ("text",)),
    "null for text": ((*POST, "channel=#ops", "text:=null"), 2, ("text",)),
    "a missing argument": ((*POST, "text=hi"), 2, ("channel",)),
    "an unknown argument": ((*POST, "channel=#ops", "text=hi", "chanel=x"), 2, ("chanel",)),
    "an argument twice": ((*POST, "channel=#ops", "text=hi", "text=ho"), 2, ("text",)),
    "an argument that isn't one": ((*POST, "channel"), 2, ()),
    "JSON that isn't": ((*POST, "channel=#ops", "text:={"), 2, ("JSON",)),
    "NaN": ((*POST, "channel=#ops", "text:=NaN"), 2, ("JSON|NaN",)),
    "an object with a key twice": ((*POST, "channel=#ops", 'text:={"a":1,"a":2}'), 2, ()),
    "deep nesting": ((*POST, "channel=#ops", "text:=" + "[" * 3000 + "]" * 3000), 2, ()),
    "very deep nesting": ((*POST, "channel=#ops", "text:=" + "[" * 60000), 2, ()),
    "a reference to nothing": ((*POST, "channel=@7.$.x", "text=hi"), 2, ()),
    "a reference that isn't a path": ((*POST, "channel=#ops", "text=hi", "--call", "slack.chat.delete",
                                       "channel=@0.$..x", "ts=@0.$.ts"), 2, ()),
    "no such account": ((*POST, "channel=#ops", "text=hi", "--account", "nobody"), 7, ("nobody|slack",)),
    "nothing": (("exec",), 2, ("Say one thing",)),
    "two things": (("exec", "words", "--shell", "true", "--folder", "/tmp"), 2, ("exclude",)),
    "an empty request": (("exec", ""), 2, ()),
    "blank words": (("exec", "   "), 2, ()),
    "words of 100 KB": (("exec", "x" * 100_000), 2, ("10000",)),
    "words that fit nothing": (("exec", "zzzqqq vvvxxx"), 5, ()),
    "a dry run of nothing": (("map", ""), 2, ()),
    "a dry run of 100 KB": (("map", "x " * 50_000), 2, ("10000",)),
    "control characters in words": (("exec", "\x1b[2J\u202e\x07 zzzqqq"), 5, ()),
    "control characters in a name": (("exec", "--call", "slack.\x1b[2J\u202e"), 2, (_ESC,)),
    "control characters in a value": ((*POST, "channel=\x1b[2J\u202e x", "text=hi"), 2, ("channel",)),
    "no such folder": (("exec", "--shell", "true", "--folder", "/nonexistent/\x1b[2Jx"), 2, ("nonexistent",)),
    "the root folder": (("exec", "--shell", "true", "--folder", "/"), 2, ()),
    "the root folder, otherwise": (("exec", "--shell", "true", "--folder", "/tmp/.."), 2, ()),
    "a file for a folder": (("exec", "--shell", "true", "--folder", "/etc/passwd"), 2, ("folder",)),
    "a device for a folder": (("exec", "--shell", "true", "--folder", "/dev/null"), 2, ("folder",)),
    "a system folder": (("exec", "--shell", "true", "--folder", "/proc"), 2, ()),
    "no program": (("exec", "--shell", " ", "--folder", "/tmp"), 2, ("empty",)),
    "no such program": (("exec", "--python", "/nonexistent.py", "--folder", "/tmp"), 2, ("nonexistent",)),
    "a folder for a program": (("exec", "--python", "/tmp", "--folder", "/tmp"), 2, ("/tmp",)),
    "bytes for a program": (("exec", "--python", "/bin/true", "--folder", "/tmp"), 2, ("UTF-8|NUL",)),
    "an endless program": (("exec", "--python", "/dev/zero", "--folder", "/tmp"), 2, ("isn't a file",)),
    "no such proposal": (("exec", "--proposal", "/nonexistent.json"), 2, ("nonexistent",)),
    "a wrong number": (("exec", "--ask", "x", "hello"), 2, ()),
    "a negative number": (("exec", "--ask", "-1", "hello"), 2, ()),
    "an unknown option": (("exec", "--yes", "hello"), 2, ()),
    "an unknown command": (("approv",), 2, ()),
    "show nothing": (("show", "a-nothing\x1b[2J"), 2, (_ESC,)),
    "undo nothing": (("undo", "a-nothing"), 2, ("a-nothing",)),
    "redo what was never undone": (("redo",), 6, ("no action",)),
    "approve nothing": (("approve", "p-nothing\u202e"), 2, (r"p-nothing\\u\{?202e",)),
    "deny nothing": (("deny", "p-nothing"), 2, ("p-nothing",)),
    "revoke nothing": (("revoke", "g-nothing\x1b[2J"), 2, ("g-nothing",)),
    "remove no agent": (("agents", "remove", "nobody"), 2, ("nobody",)),
    "a credential for nothing": (("vault", "put", "slak"), 2, ("slack",)),
    "a credential for no address": (("vault", "put", "matrix"), 2, ("base-url",)),
    "a credential for an odd address": (("vault", "put", "slack", "--base-url", "file:///etc"), 2, ("http",)),
    "an address with a password": (("vault", "put", "slack", "--base-url", "https://a:b@x.example"), 2, ()),
    "no such CA": (("vault", "put", "slack", "--ca", "/nonexistent.pem"), 2, ("nonexistent",)),
    "a service of the catalog that isn't": (("catalog", "show", "slak"), 2, ("slack",)),
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(daemon: Daemon, name: str) -> None:
    command, status, words = COMMANDS[name]
    done = daemon.goex(*command, stdin="secret\n")
    says(done, status, *words)


@pytest.mark.parametrize("name", ["a service that isn't", "the root folder", "undo nothing", "an unknown option"])
def test_a_command_in_json(daemon: Daemon, name: str) -> None:
    command, status, _ = COMMANDS[name]
    done = daemon.goex(*command, "--json")
    assert done.returncode == status
    last = json.loads(done.stdout.splitlines()[-1])
    found = last.get("problem") or last["finished"]["problem"]
    assert found["exit_status"] == status
    assert found["message"]
    assert found["next_step"]
