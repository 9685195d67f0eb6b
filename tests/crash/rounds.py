"""One round: begin an action, kill the daemon with -9 at a chosen moment, start it again, and see what is left.

The moment is chosen from outside: the daemon runs in slices (SIGCONT, SIGSTOP) of a fraction of a millisecond, and
between two slices the journal is read. When the action has reached the wanted state, or has that many rows, the
process is killed. Nothing in the daemon knows of this.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker
import grpc

from goex.rpc import goex_pb2 as pb
from tests.services.synapse import Synapse
from tests.support.containers import left
from tests.support.daemon import Daemon
from tests.support.journey import Journey, shell, undo

SETTLED = frozenset({"done", "partial", "failed", "denied", "withdrawn", "unknown", "undone", "committed"})
SLICE = 0.0004  # seconds
PROGRAM = "for n in 1 2 3; do echo $n >> log.txt; echo x > new-$n.txt; done; rm -f old.txt; mkdir -p deep/er"


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: the first time that the action is in `state` (and has at least `rows` rows)."""

    state: str
    rows: int = 0


@dataclass(slots=True)
class Found:
    """What a round saw. `hit`: the journal's last word on the action when the daemon died."""

    kind: str
    moment: Moment
    hit: str
    rows: int
    after: str
    problems: list[str] = field(default_factory=list)


class Rows:
    """The journal, read from outside."""

    def __init__(self, daemon: Daemon) -> None:
        self._path = daemon.state_dir / "state.db"

    def newest(self) -> int:
        return int(self._one("select coalesce(max(number), 0) from journal")[0])

    def action_since(self, number: int) -> str:
        found = self._one("select action_id from journal where number > ? and kind = 'receive' limit 1", number)
        return str(found[0]) if found else ""

    def changing_since(self, number: int) -> bool:
        """Whether a request that isn't a GET was written down since that row."""
        wanted = "number > ? and kind = 'request' and facts not like ?"
        return bool(self._one(f"select 1 from journal where {wanted} limit 1", number, '%"method":"GET"%'))

    def of(self, action: str) -> tuple[str, int]:
        """The state that the journal left the action in, and how many rows speak of it."""
        rows = self._one("select count(*) from journal where action_id = ?", action)[0]
        state = self._one(
            "select to_state from journal where action_id = ? and to_state != '' order by number desc limit 1", action
        )
        return str(state[0]), int(rows)

    def torn(self) -> bool:
        """Whether a writer was stopped while it told readers where the log ends: SQLite waits ten seconds for that.
        The shared index begins with two copies of its header, of 48 bytes each."""
        with self._path.with_name(f"{self._path.name}-shm").open("rb") as index:
            header = index.read(96)
        return header[:48] != header[48:]

    def _one(self, query: str, *values: object) -> tuple[object, ...]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=5)) as database:
            return database.execute(query, values).fetchone() or ()


@contextmanager
def ahead_of(pid: int) -> Iterator[None]:
    """This thread runs as soon as it can, so that a slice of that process ends in time on a busy machine too. Where
    only root may do that, the process is made to wait for others."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, *before)


def kill_at(
    daemon: Daemon, begin: Callable[[], Journey], moment: Moment, seconds: float = 300.0
) -> tuple[str, str, int]:
    """Begin, and kill at the moment. Returns action id, state and rows at death; "" when it ended before that."""
    rows = Rows(daemon)
    before = rows.newest()
    ended: list[Exception] = []

    def follow() -> None:
        try:
            begin().finished()
        except (grpc.RpcError, AssertionError) as error:  # it is killed meanwhile
            ended.append(error)

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    pid, action, seen, deadline = daemon.pid, "", ("", 0), time.monotonic() + seconds
    try:
        with ahead_of(pid):
            while time.monotonic() < deadline:
                os.kill(pid, signal.SIGSTOP)
                if not rows.torn():
                    action = action or rows.action_since(before)
                    if action:
                        state, count = seen = rows.of(action)
                        if (state == moment.state and count >= moment.rows) or state in SETTLED:
                            break
                os.kill(pid, signal.SIGCONT)
                time.sleep(SLICE)
            else:
                raise AssertionError(f"Nothing came of it in {seconds} s: {action!r} is {seen}, {ended}.")
        daemon.kill()
    finally:
        with suppress(ProcessLookupError, AssertionError):
            os.kill(pid, signal.SIGCONT)
    following.join(300)
    state, count = rows.of(action)
    return action, state, count


def containers(daemon: Daemon) -> list[str]:
    """What is left in Docker of this state folder's actions, and of daemons before this one."""
    with closing(docker.APIClient()) as engine:
        return left(engine, (daemon.state_dir / "id").read_text().strip(), daemon.run_dir)


def back(daemon: Daemon, action: str, seconds: float = 300.0) -> str:
    """Start the daemon again, unlock, and wait until the action is settled (or its question is open). Its state."""
    daemon.start()
    daemon.unlock()
    deadline = time.monotonic() + seconds
    while True:
        state = str(daemon.actions("Get", pb.ActionId(id=action), socket=daemon.user_socket).state)
        if state in SETTLED or state == "asking":
            return state
        assert time.monotonic() < deadline, f"{action} stays {state} after the restart"
        time.sleep(0.05)


def common(daemon: Daemon) -> list[str]:
    """What must hold after every round."""
    problems = []
    verified = daemon.person("VerifyLog", pb.VerifyLogRequest())
    if not (verified.good and verified.authenticated):
        problems.append(f"the chain doesn't verify: {verified.problem}")
    until = time.monotonic() + 300
    while (names := containers(daemon)) and time.monotonic() < until:
        time.sleep(0.1)  # one whose job has ended goes while the caller goes on
    if names:
        problems.append(f"containers are left: {names}")
    return problems


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below: mode, modification time and bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        found[str(path.relative_to(folder))] = (
            seen.st_mode,
            seen.st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
    return found


class FilesRounds:
    """Rounds with a program on a folder, by an agent that holds a permanent grant for it."""

    kind = "files"
    depths = (range(7, 14), range(5, 7))  # journal rows within `running`: of the action, and of its undo
    states = ("received", "assessed", "allowed", "running")

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self.daemon, self.folder = daemon, folder
        (folder / "old.txt").write_text("old\n")
        (folder / "log.txt").write_text("0\n")
        for path in (folder / "old.txt", folder / "log.txt"):
            os.chown(path, folder.stat().st_uid, folder.stat().st_gid)
        self.before = tree(folder)
        self.token = daemon.add_agent(f"crasher-{folder.name}")
        first = Journey(daemon, self.request(), token=self.token).approve("permanent")
        assert first.action.state == "done", first
        self._take_back(first.action.id)

    def request(self) -> pb.ExecuteRequest:
        return shell(self.folder, PROGRAM)

    def run_and_take_back(self) -> None:
        """A program that nothing happens to, after which a container waits, but on a folder of root's."""
        self._take_back(Journey(self.daemon, self.request(), token=self.token).finished().action.id)

    def execute(self, moment: Moment) -> Found:
        """Kill while the program is on its way; then take back whatever it did."""
        action, hit, rows = kill_at(self.daemon, lambda: Journey(self.daemon, self.request(), token=self.token), moment)
        after = back(self.daemon, action)
        found = Found(self.kind, moment, hit, rows, after, common(self.daemon))
        if after in ("failed", "withdrawn") and tree(self.folder) != self.before:
            found.problems.append(f"{after}, but the folder isn't as it was")
        elif after in ("done", "partial", "unknown"):
            self._take_back(action)
            if tree(self.folder) != self.before:
                found.problems.append("undo didn't restore the folder")
        return found

    def revert(self, moment: Moment) -> Found:
        """Kill while an undo is on its way; then finish it."""
        done = Journey(self.daemon, self.request(), token=self.token).finished()
        assert done.action.state == "done", done
        target = done.action.id
        action, hit, rows = kill_at(self.daemon, lambda: Journey(self.daemon, undo(target), token=self.token), moment)
        after = back(self.daemon, action)
        found = Found("undo of files", moment, hit, rows, after, common(self.daemon))
        state = self.daemon.actions("Get", pb.ActionId(id=target), socket=self.daemon.user_socket).state
        if after == "done" and state != "undone":
            found.problems.append(f"the undo is done, but its target is {state}")
        if state != "undone":
            self._take_back(target)
        if tree(self.folder) != self.before:
            found.problems.append("undo didn't restore the folder")
        return found

    def _take_back(self, action: str) -> None:
        finished = Journey(self.daemon, undo(action), token=self.token).finished()
        assert finished.action.state == "done", finished


class CallsRounds:
    """Rounds with a message to a real homeserver, asked for in words by an agent that holds permanent grants."""

    kind = "calls"
    depths = (range(8, 13), range(6, 15))
    states = ("received", "mapped", "assessed", "allowed", "running")

    def __init__(self, daemon: Daemon, server: Synapse) -> None:
        self.daemon, self.server = daemon, server
        self.user = server.register("crasher")
        self.room = server.create_room(self.user, "Crashes")
        self.number = 0
        daemon.person(
            "VaultPut",
            pb.VaultPutRequest(
                service="matrix",
                account="crash",
                secret=self.user.encode(),
                base_url=server.url,
                private=True,
                passphrase="the approval passphrase in tests",
            ),
        )
        self.token = daemon.add_agent("crasher-calls")
        first = Journey(daemon, self.request(), token=self.token).approve("permanent")
        assert first.action.state == "done", first
        taken = Journey(daemon, undo(first.action.id), token=self.token).approve("permanent")
        assert taken.action.state == "done", taken

    def request(self) -> pb.ExecuteRequest:
        self.number += 1
        return pb.ExecuteRequest(intent=f'send the message "round {self.number}" to the matrix room {self.room}')

    def sent(self) -> int:
        return self.server.texts(self.user, self.room).count(f"round {self.number}")

    def execute(self, moment: Moment) -> Found:
        action, hit, rows = kill_at(self.daemon, lambda: Journey(self.daemon, self.request(), token=self.token), moment)
        after = back(self.daemon, action)
        found = Found(self.kind, moment, hit, rows, after, common(self.daemon))
        allowed = {"done": (1,), "failed": (0,), "withdrawn": (0,), "unknown": (0, 1)}.get(after, ())
        if self.sent() not in allowed:
            found.problems.append(f"{after}, but the room has the message {self.sent()} times")
        if after == "done":
            taken = Journey(self.daemon, undo(action), token=self.token).finished()
            if taken.action.state != "done" or self.sent():
                found.problems.append(f"undo didn't take it back: {taken.problem.message}")
        return found

    def without_server(self, delay: float, *, reverting: bool = False) -> Found:
        """Kill the homeserver `delay` seconds after a request was written down that changes something; start it again,
        look again at what isn't known, and see whether what is said is true."""
        target = ""
        if reverting:
            done = Journey(self.daemon, self.request(), token=self.token).finished()
            assert done.action.state == "done", done
            target = done.action.id
        request = undo(target) if reverting else self.request()
        rows, ended = Rows(self.daemon), list[pb.Finished]()
        before = rows.newest()
        following = threading.Thread(
            target=lambda: ended.append(Journey(self.daemon, request, token=self.token).finished()), daemon=True
        )
        following.start()
        deadline = time.monotonic() + 300
        while not rows.changing_since(before) and following.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(delay)
        self.server.kill()
        following.join(90)
        self.server.again()
        assert ended, "it never ended"
        action = ended[0].action.id
        after = self._looked(action)
        found = Found("undo of calls" if reverting else self.kind, Moment("running"), "server", 0, after, [])
        state = self._state(target) if reverting else after
        sent = self.sent()
        # Without an answer it is partial, and says that it can't be known: then it isn't taken back blindly either.
        allowed = {"done": (1,), "failed": (0,), "undone": (0,), "unknown": (0, 1), "partial": (0, 1)}.get(state, ())
        if sent not in allowed:
            found.problems.append(f"it is {state}, but the room has the message {sent} times")
        if state == "done":
            taken = Journey(self.daemon, undo(target or action), token=self.token).finished()
            if taken.action.state != "done" or self.sent():
                found.problems.append(f"undo didn't take it back: {taken.problem.message}")
        return found

    def _looked(self, action: str) -> str:
        state = self._state(action)
        if state == "unknown":
            with suppress(grpc.RpcError):
                self.daemon.person("LookAgain", pb.ActionId(id=action))
            state = self._state(action)
        return state

    def _state(self, action: str) -> str:
        return str(self.daemon.actions("Get", pb.ActionId(id=action), socket=self.daemon.user_socket).state)

    def revert(self, moment: Moment) -> Found:
        done = Journey(self.daemon, self.request(), token=self.token).finished()
        assert done.action.state == "done", done
        target = done.action.id
        action, hit, rows = kill_at(self.daemon, lambda: Journey(self.daemon, undo(target), token=self.token), moment)
        after = back(self.daemon, action)
        found = Found("undo of calls", moment, hit, rows, after, common(self.daemon))
        state = self.daemon.actions("Get", pb.ActionId(id=target), socket=self.daemon.user_socket).state
        if after == "done" and (state != "undone" or self.sent()):
            found.problems.append(f"the undo is done, but its target is {state}, sent {self.sent()}")
        if after == "failed" and state == "undone":
            found.problems.append("the undo failed, but its target is undone")
        if state in ("done", "unknown") and after != "unknown":
            taken = Journey(self.daemon, undo(target), token=self.token).finished()
            if taken.action.state != "done" or self.sent():
                found.problems.append(f"a second undo didn't take it back: {taken.problem.message}")
        return found
