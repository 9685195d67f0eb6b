"""The whole daemon killed in the middle of an action on a database, and a container killed under a running program."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from goex.rpc import goex_pb2 as pb
from tests.crash.databases import Outcome
from tests.crash.matrix import Matrix
from tests.crash.rounds import CallsRounds, FilesRounds, Found, Moment, back, common, kill_at, tree
from tests.goex.databases.servers import TABLES
from tests.services.synapse import Synapse, find_python
from tests.support.containers import WAIT, of_action, owned
from tests.support.daemon import Daemon
from tests.support.databases import SqliteGround
from tests.support.entries import Asked, Client
from tests.support.journey import Journey, shell, undo

SLOW = "for n in 1 2 3 4 5 6; do echo $n >> log.txt; echo x > new-$n.txt; sleep 0.05; done; rm -f old.txt"
CHANGE = "UPDATE orders SET status = 'sent', total = total + 1; DELETE FROM customers WHERE id = 1"


@dataclass
class Shop:
    """A database that was added to the daemon. `dump` looks past GoEx."""

    name: str
    kind: str
    dump: Callable[[], Any]


class DatabaseRounds:
    """Rounds with a change of a few rows, by an agent that holds permanent grants."""

    states = ("received", "assessed", "allowed", "running")
    depths = (range(6, 12), range(5, 9))

    def __init__(self, daemon: Daemon, shop: Shop) -> None:
        self.daemon, self.shop, self.kind = daemon, shop, f"{shop.kind}, by the daemon"
        self.token = daemon.add_agent(f"crasher-{shop.name}")
        self.client = Client(daemon)
        self.before = shop.dump()
        first = self.client.sql(shop.name, CHANGE, token=self.token).approve("permanent")
        assert first.action.state == "done", first
        self.after = shop.dump()
        taken = Asked(daemon, undo(first.action.id), token=self.token).approve("permanent")
        assert taken.action.state == "done", taken
        assert shop.dump() == self.before

    def _begin(self) -> Journey:
        program = pb.SqlProgram(database=self.shop.name, statements=CHANGE)
        return Journey(self.daemon, pb.ExecuteRequest(sql=program), token=self.token)

    def execute(self, moment: Moment) -> Found:
        action, hit, rows = kill_at(self.daemon, self._begin, moment)
        after = back(self.daemon, action)
        found = Found(self.kind, moment, hit, rows, after, common(self.daemon))
        allowed = {"done": self.after, "failed": self.before, "withdrawn": self.before}
        if after not in allowed or self.shop.dump() != allowed[after]:
            found.problems.append(f"{after}, but the rows aren't")
        if after == "done":
            self._take_back(action, found)
        return found

    def revert(self, moment: Moment) -> Found:
        done = self._begin().finished()
        assert done.action.state == "done", done
        target = done.action.id
        action, hit, rows = kill_at(self.daemon, lambda: Journey(self.daemon, undo(target), token=self.token), moment)
        after = back(self.daemon, action)
        found = Found(f"{self.kind}, undo", moment, hit, rows, after, common(self.daemon))
        state = str(self.daemon.actions("Get", pb.ActionId(id=target), socket=self.daemon.user_socket).state)
        if self.shop.dump() != {"undone": self.before, "done": self.after}.get(state):
            found.problems.append(f"the undo is {after} and its target {state}, but the rows aren't")
        if state != "undone":
            self._take_back(target, found)
        return found

    def _take_back(self, action: str, found: Found) -> None:
        finished = Journey(self.daemon, undo(action), token=self.token).finished()
        if finished.action.state != "done" or self.shop.dump() != self.before:
            found.problems.append(f"undo didn't bring the rows back: {finished.problem.message}")


def kill_container(rounds: FilesRounds, dice: random.Random) -> Outcome:
    """A program whose container is killed while it writes; then take back whatever it did."""
    journey = Journey(rounds.daemon, shell(rounds.folder, SLOW), token=rounds.token)
    problems: list[str] = []
    with closing(docker.from_env()) as engine:
        action, deadline = "", time.monotonic() + 300
        while time.monotonic() < deadline:
            if not action:
                newest = journey.until("state")
                action = journey.action_id
                if newest.to != "running":
                    action = ""
                    continue
            found = of_action(engine.api, action, rounds.daemon.run_dir)
            if found:
                time.sleep(dice.random() * 0.4)
                with suppress(docker.errors.APIError):
                    engine.api.kill(found[0])
                break
        else:
            problems.append("no container was seen")
    finished = journey.finished()
    state = str(finished.action.state)
    if state in ("failed", "withdrawn"):
        if tree(rounds.folder) != rounds.before:
            problems.append(f"{state}, but the folder isn't as it was")
    elif state in ("done", "partial"):
        taken = Journey(rounds.daemon, undo(finished.action.id), token=rounds.token).finished()
        if taken.action.state != "done" or tree(rounds.folder) != rounds.before:
            problems.append(f"undo didn't restore the folder: {taken.problem.message}")
    else:
        problems.append(f"the container was killed, and it is {state}")
    # The daemon lives, and its pool with it: only what this action had is to be gone.
    with closing(docker.from_env()) as engine:
        if of_action(engine.api, finished.action.id, rounds.daemon.run_dir):
            problems.append("the action's container is left")
    verified = rounds.daemon.person("VerifyLog", pb.VerifyLogRequest())
    if not verified.good:
        problems.append(f"the chain doesn't verify: {verified.problem}")
    return Outcome(state, problems)


def shop_in_file(client: Client, folder: Path) -> Shop:
    """The shop in a SQLite file."""
    folder.mkdir(mode=0o700)
    ground = SqliteGround(folder)
    ground.execute(*TABLES)
    client.add("crashfile", f"sqlite:///{ground.path}")
    return Shop("crashfile", "SQLite", ground.dump)


def daemons(matrix: Matrix, rounds: int) -> None:
    """Rounds with a whole daemon: each kind of action, and containers under its programs."""
    python = find_python()
    with ExitStack() as stack:
        daemon = stack.enter_context(Daemon(config=WAIT))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goex-crash-"))).resolve()
        for name in ("work", "own"):
            (scratch / name).mkdir()
        files = FilesRounds(daemon, scratch / "work")
        kinds: list[Any] = [files, DatabaseRounds(daemon, shop_in_file(Client(daemon), scratch / "db"))]
        if python is None:
            matrix.missing.append("calls (the homeserver isn't there: make services)")
        else:
            kinds.append(CallsRounds(daemon, stack.enter_context(Synapse(python))))
        own = FilesRounds(daemon, owned(scratch / "own"))
        own.kind = "files, in place"
        kinds.append(own)
        for kind in kinds:
            _rounds(matrix, kind, rounds)
        row = matrix.row("files", "do", "container")
        for number in range(rounds):
            row.add(kill_container(own if number % 2 else files, matrix.dice), f"round {number + 1}")
        matrix.end(row)


def _rounds(matrix: Matrix, kind: Any, rounds: int) -> None:
    for step, run in (("do", kind.execute), ("undo", kind.revert)):
        row = matrix.row(kind.kind, step, "daemon")
        states = [state for state in kind.states if step == "do" or state != "mapped"]
        for number in range(rounds):
            state = states[number % len(states)] if number < len(states) else "running"
            depth = matrix.dice.choice(kind.depths[step == "undo"]) if state == "running" else 0
            found = run(Moment(state, depth))
            row.add(Outcome(found.after, found.problems), f"{found.hit}, {found.rows} rows")
        matrix.end(row)
