"""`make trace`: how many files and functions of the packages run for one action, in all processes together.

Asks a real daemon for a REST call, a SQL update and a program on a folder, each approved on a terminal, and for an undo
of each. Prints a table, and writes trace.json: `{"rest": {"files": N, "functions": N}, "sql": …, "folder": …,
"undo_rest": …, "undo_sql": …, "undo_folder": …}`. With `--list KIND` the functions of one are printed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from goex.rpc import goex_pb2 as pb
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.support import TOKEN, serving
from tests.services.apis.notes import Notes
from tests.support import daemon as support
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.person import answer
from tests.support.terminal import TerminalError

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "trace.json"


class Trace:
    """A daemon whose processes note what they run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir()
        traced = f"exec {sys.executable} {ROOT / 'tools' / 'traced.py'} {self.notes}"
        self._script(self.notes / "python", f'{traced} "$@"')
        self._script(self.notes / "goex", f'{traced} -m goex.cli.main "$@"')
        support.GOEX = self.notes / "goex"
        support.DAEMON = [str(self.notes / "python"), *support.DAEMON[1:]]
        self.daemon = Daemon(fresh=True)

    @staticmethod
    def _script(path: Path, line: str) -> None:
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def measure(self, *words: str) -> set[str]:
        """Return `file:function` of all that ran for this command, in the command, the daemon and the gateway."""
        self._await_quiet()
        for pid in self._processes():
            os.kill(pid, signal.SIGUSR1)
        for old in self.notes.glob("*.json"):
            old.unlink()
        with self.daemon.terminal(*words) as terminal:
            with suppress(TerminalError):  # once everything is answered it runs to its end
                answer(terminal, "once", APPROVAL_PASSPHRASE, seconds=120)
            status = terminal.wait()
        if status != 0:
            raise SystemExit(f"{terminal.text}\ngoex {' '.join(words)} ended with {status}.")
        for pid in self._processes():  # the gateway may have been started meanwhile
            os.kill(pid, signal.SIGUSR2)
            self._await(self.notes / f"{pid}.json")
        return {one for file in self.notes.glob("*.json") for one in json.loads(file.read_text())}

    def _await_quiet(self) -> None:
        """Wait until the daemon has its container pool: what fills it in the background is no part of an action."""
        note = self.notes / f"{self.daemon.pid}.json"
        for _ in range(30):
            note.unlink(missing_ok=True)
            os.kill(self.daemon.pid, signal.SIGUSR1)
            time.sleep(2.0)
            os.kill(self.daemon.pid, signal.SIGUSR2)
            self._await(note)
            if "runtimes/sandbox/" not in note.read_text():
                return
        raise SystemExit("The daemon doesn't come to rest.")

    @staticmethod
    def _await(file: Path) -> None:
        until = time.monotonic() + 20
        while not file.exists() or not file.read_text().endswith("]"):
            if time.monotonic() > until:
                raise SystemExit(f"{file.stem} didn't say what it ran.")
            time.sleep(0.05)

    def _processes(self) -> Iterator[int]:
        """The daemon, and the gateway that it started."""
        yield self.daemon.pid
        for line in Path(f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/children").read_text().split():
            if b"runtimes.gateway.process" in Path(f"/proc/{line}/cmdline").read_bytes():
                yield int(line)


def main() -> int:
    """Measure all kinds, print the table, write trace.json."""
    folder = Path(tempfile.mkdtemp(prefix="goex-trace-", dir="/tmp"))
    service = Notes()
    service.add(title="one", text="first")
    try:
        with serving(service, folder):
            ran = dict(_measured(Trace(folder), service, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = {
        kind: {"files": len({one.partition(":")[0] for one in found}), "functions": len(found)}
        for kind, found in ran.items()
    }
    OUT.write_text(json.dumps(counts, indent=2) + "\n")
    for kind, count in counts.items():
        print(f"{kind:12} {count['files']:4} files {count['functions']:5} functions")
    if "--list" in sys.argv:
        print("\n".join(sorted(ran[sys.argv[sys.argv.index("--list") + 1]])))
    return 0


def _measured(trace: Trace, service: Notes, folder: Path) -> Iterator[tuple[str, set[str]]]:
    with trace.daemon as daemon:
        (folder / "notes.json").write_text(json.dumps(document("notes")))
        daemon.goex("catalog", "import", "openapi", str(folder / "notes.json"), "--name", "notes")
        put = pb.VaultPutRequest(
            service="notes", account="default", secret=TOKEN.encode(), passphrase=APPROVAL_PASSPHRASE,
            base_url=service.url, private=True, ca_pem=service.ca_pem,
        )  # fmt: skip
        daemon.person("VaultPut", put)
        database = folder / "shop.db"
        with sqlite3.connect(database) as made:
            made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
            made.executemany("INSERT INTO orders VALUES (?, 'new')", [(1,), (2,)])
        with daemon.terminal("db", "add", "shop", str(database)) as terminal:
            terminal.expect("Approval passphrase: ")
            terminal.type(APPROVAL_PASSPHRASE)
            terminal.wait()
        work = folder / "work"
        work.mkdir(mode=0o777)
        (work / "a.txt").write_text("a\n")
        kinds = {
            "rest": ("exec", "--call", "notes.notes.post", 'body:={"title": "x", "text": "y"}'),
            "sql": ("exec", "--db", "shop", "--sql", "UPDATE orders SET status = 'sent' WHERE id = 1"),
            "folder": ("exec", "--shell", "echo b >> a.txt", "--folder", str(work)),
        }
        for kind, words in kinds.items():
            yield kind, trace.measure(*words)
            yield f"undo_{kind}", trace.measure("undo", "last")


if __name__ == "__main__":
    sys.exit(main())
