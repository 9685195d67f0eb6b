"""`make demo`: the whole path, for real, with nothing but the `goex` command.

A home of its own in a temporary folder, a vault, a real container, a real Matrix homeserver on loopback. A file
action and a chat message are asked for, approved, run and undone; then the log is verified. The approvals are typed
into `goex approve` on a pseudo-terminal, because that is the only place where one can be given: this script plays
the person. Ends with status 0 only when every step did what it says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.services.synapse import Synapse, find_python
from tests.support.person import answer
from tests.support.terminal import Terminal

GOEX = str(Path(sys.executable).with_name("goex"))
VAULT_PASSPHRASE = "the demo's vault passphrase"
APPROVAL_PASSPHRASE = "the demo's approval passphrase"
_WAITS = re.compile(r"goex approve ([\w-]+)")


class DemoFailed(Exception):
    """A step didn't do what the demo says it does."""


class Show:
    """What is printed: words in bold, commands after a dollar, what they say behind a bar."""

    def __init__(self) -> None:
        self._bold, self._plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
        self._began = time.monotonic()

    def step(self, text: str) -> None:
        print(f"\n{self._bold}{time.monotonic() - self._began:5.1f} s  {text}{self._plain}", flush=True)

    def command(self, *words: str) -> None:
        print(f"  $ {shlex.join(words)}", flush=True)

    def lines(self, text: str, bar: str = "│") -> None:
        for line in text.rstrip("\n").splitlines():
            print(f"  {bar} {line.rstrip()}", flush=True)


class Person:
    """Somebody with a home, who runs `goex` and answers what it asks."""

    def __init__(self, home: Path, show: Show) -> None:
        self._show = show
        self._env = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "DOCKER_HOST") if name in os.environ}
        self._env |= {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "TERM": "xterm",
            "PYTHONUNBUFFERED": "1",
        }
        for name in ("config", "state", "run"):
            (home / name).mkdir(mode=0o700)

    def runs(self, *words: str, stdin: str = "", quiet: bool = False) -> str:
        """Run a command that asks for nothing. Returns what it printed."""
        if not quiet:
            self._show.command("goex", *words)
        done = subprocess.run(
            [GOEX, *words], env=self._env, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if not quiet:
            self._show.lines(done.stdout)
        if done.returncode != 0 and not quiet:
            raise DemoFailed(f"`goex {shlex.join(words)}` ended with status {done.returncode}.")
        return done.stdout

    def types(self, *words: str, answers: tuple[tuple[str, str], ...] = ()) -> None:
        """Run a command on a terminal and answer its questions, each when it comes."""
        self._show.command("goex", *words)
        with Terminal([GOEX, *words], env=self._env) as terminal:
            for question, said in answers:
                terminal.expect(question)
                terminal.type(said)
            status = terminal.wait()
        self._show.lines(terminal.text, "┃")
        if status != 0:
            raise DemoFailed(f"`goex {words[0]}` ended with status {status}.")

    def runs_and_approves(self, *words: str) -> str:
        """Run a command without a terminal; when it waits, approve on another terminal. Returns what it printed."""
        self._show.command("goex", *words)
        said, approved = "", 0
        with subprocess.Popen(
            [GOEX, *words],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                self._show.lines(line)
                waits = _WAITS.search(line)
                if waits:
                    self._approves(waits[1])
                    approved += 1
        if process.returncode != 0:
            raise DemoFailed(f"`goex {shlex.join(words)}` ended with status {process.returncode}.")
        if not approved:
            raise DemoFailed(f"`goex {shlex.join(words)}` ran and nobody was asked.")
        return said

    def _approves(self, approval: str) -> None:
        self._show.step("On a terminal of the person's own:")
        self._show.command("goex", "approve", approval)
        with Terminal([GOEX, "approve", approval], env=self._env, size=(120, 110)) as terminal:
            answer(terminal, "once", APPROVAL_PASSPHRASE)
            terminal.wait()
        self._show.lines(terminal.text, "┃")
        self._show.step("Back where it was asked for:")


def must(holds: bool, says: str) -> None:
    if not holds:
        raise DemoFailed(f"This should hold, and doesn't: {says}")


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below: its mode and its bytes."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def files(person: Person, show: Show, home: Path) -> None:
    folder = home / "notes"
    (folder / "drafts").mkdir(parents=True)
    (folder / "plan.txt").write_text("Monday: read\nTuesday: write\n")
    (folder / "plan.txt").chmod(0o640)
    (folder / "drafts" / "old.txt").write_text("nobody has a copy of this\n")
    before = contents(folder)

    show.step(f"A program is to tidy up a folder ({', '.join(before)}). Nothing runs before the person says yes.")
    program = "sed -i s/write/rest/ plan.txt && rm -r drafts && ls -l"
    person.runs_and_approves("exec", "--shell", program, "--folder", str(folder))
    must(list(contents(folder)) == ["plan.txt"], "the drafts are gone")
    must("rest" in (folder / "plan.txt").read_text(), "the plan is changed")
    show.lines(f"the folder now: {', '.join(contents(folder))}", "=")

    show.step("The person wants it back. Undo is an action too: it is asked for, and checked.")
    person.runs_and_approves("undo", "last")
    must(contents(folder) == before, "every file, mode and byte is as before")
    show.lines(f"the folder now: {', '.join(contents(folder))}; every byte and mode as before", "=")


def message(person: Person, show: Show, server: Synapse) -> None:
    token = server.register("ada")
    room = server.create_room(token, "Dinner")
    text = "Dinner is at eight"
    show.step("The token of a Matrix account goes into the vault, for this one server only.")
    person.types(
        *("vault", "put", "matrix", "--base-url", server.url, "--private"),
        answers=((r"Credential for .*: ", token), (r"Approval passphrase: ", APPROVAL_PASSPHRASE)),
    )
    words = f'send the message "{text}" to the matrix room {room}'
    show.step("Which call would these words become, with which scopes? A dry run.")
    person.runs("map", words)
    show.step("Now for real, in words: it goes from a container without a token, through the gateway, to the server.")
    person.runs_and_approves("exec", words)
    must(server.texts(token, room) == [text], "the message stands in the room")
    show.lines(f"the room, asked directly: {server.texts(token, room)}", "=")

    show.step("Taken back: the server redacts it, and GoEx reads that back.")
    person.runs_and_approves("undo", "last")
    must(server.texts(token, room) == [], "the message is redacted")
    show.lines(f"the room, asked directly: {server.texts(token, room)}", "=")
    must(token not in person.runs("log", "--rows", "--json", quiet=True), "the token is in no log")


def main() -> int:
    show = Show()
    python = find_python()
    if python is None:
        print("The homeserver's environment isn't there: run `make services`.", file=sys.stderr)
        return 1
    home = Path(tempfile.mkdtemp(prefix="goex-demo-", dir="/tmp"))  # a socket's path must be short
    person = Person(home, show)
    try:
        show.step("A vault, sealed by a passphrase, and another passphrase for approvals.")
        person.runs("vault", "init", "--passphrase", stdin=f"{VAULT_PASSPHRASE}\n{APPROVAL_PASSPHRASE}\n")
        files(person, show, home)
        show.step("A real homeserver starts on loopback.")
        with Synapse(python) as server:
            message(person, show, server)
        show.step("Every step was written down before it happened, in a chain that shows any change.")
        person.types("log", "--limit", "12")
        person.runs("log", "--verify")
    except (DemoFailed, AssertionError) as failed:
        print(f"\nThe demo failed. {failed}", file=sys.stderr)
        log = home / "state" / "goex" / "daemon.log"
        if log.exists():
            print(f"The end of the daemon's log:\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        return 1
    finally:
        person.runs("daemon", "stop", quiet=True)
        shutil.rmtree(home, ignore_errors=True)
    show.step("Done: asked for, approved, run, undone, and written down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
