"""A state folder today and as it was yesterday, and what an enemy makes of the two who writes every file but the vault.

Between the two the person took back everything that was allowed: a standing grant, an agent's name, and what no rule
forbade. `FORGE` puts files of yesterday into a copy of today's folder; `won` says whether that gave anything back.
"""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc

from goex.journal.chain import Journal
from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, problem, shell
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

LOG = ("state.db", "state.db-wal", "state.db-shm", "journal.head")
_RULES = {"InForce": rb.InForceReply, "CheckRules": rb.CheckRulesReply, "ApplyRules": rb.InForceReply}
_FORBID = 'forbid (principal, action == Action::"files", resource);'


@dataclass(frozen=True, slots=True)
class Scene:
    """Copies of one state folder: `yesterday` and `running` (with its write-ahead log) are from before everything was
    taken back, `fork` went on from there by itself, `today` is what a daemon left that was killed after that.
    """

    yesterday: Path
    running: Path
    fork: Path
    today: Path
    folder: Path
    scout: str
    gone: str


def rules(daemon: Daemon, method: str, request: Any) -> Any:
    call = daemon.channel(daemon.user_socket).unary_unary(
        f"/goex.v1.Rules/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=_RULES[method].FromString,
    )
    return call(request, timeout=300)


def record(place: Path, folder: Path) -> Scene:
    """Play both days with a real daemon."""
    with Daemon() as daemon:
        scout, gone = daemon.add_agent("scout"), daemon.add_agent("gone")
        Journey(daemon, shell(folder, "echo 1 >> runs"), token=scout).approve("permanent")
        shutil.copytree(daemon.state_dir, place / "running")
        daemon.stop()
        shutil.copytree(daemon.state_dir, place / "yesterday")
        daemon.start()
        daemon.unlock()
        draft = [rb.RuleFile(name="mine.cedar", text=_FORBID)]
        checked = rules(daemon, "CheckRules", rb.CheckRulesRequest(files=draft))
        applied = rb.ApplyRulesRequest(files=draft, compared_with=checked.hash, passphrase=APPROVAL_PASSPHRASE)
        rules(daemon, "ApplyRules", applied)
        daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="gone"))
        daemon.person("Revoke", pb.RevokeRequest(agent="scout"))
        daemon.kill()
        shutil.copytree(daemon.state_dir, place / "today")
    shutil.copytree(place / "yesterday", place / "fork")
    vault = unlocked(place / "fork")
    journal = Journal(place / "fork" / "state.db", place / "fork" / "journal.head")
    journal.unlock(vault.derive("journal"))
    for _ in range(100):
        journal.append("note")
    journal.close()
    return Scene(place / "yesterday", place / "running", place / "fork", place / "today", folder, scout, gone)


class placed(Daemon):
    """A daemon on a copy of a state folder; its vault is sealed at first."""

    def __init__(self, state: Path) -> None:
        super().__init__(init=False)
        shutil.rmtree(self.state_dir)
        shutil.copytree(state, self.state_dir)


def forget(state: Path) -> None:
    """Take out of the vault what it knows of the log, as its owner could."""
    vault = unlocked(state)
    now = vault._need()
    vault._write(now, dataclasses.replace(now.record_index, reached=None))
    vault.seal()


def unlocked(state: Path) -> Vault:
    vault = Vault.open(state / "vault.db")
    vault.unlock(PassphraseProtector(Secret(VAULT_PASSPHRASE)))
    return vault


def put(state: Path, files: Mapping[str, bytes]) -> None:
    """Put these in place of the log's files; what lies beside it is forgotten."""
    for name in LOG:
        (state / name).unlink(missing_ok=True)
    for name, data in files.items():
        if name != "state.db-shm":
            (state / name).touch(mode=0o600)  # as what is put back must be
            (state / name).write_bytes(data)


def refusal(call: Callable[[], object]) -> str:
    """The code of the error that a call ends with; "" when it doesn't."""
    try:
        call()
    except grpc.RpcError as error:
        return problem(error).code
    return ""


# ---- what the enemy does to `state`, a copy of today's folder


def _take(state: Path, source: Path) -> None:
    for name in LOG:
        (state / name).unlink(missing_ok=True)
        if (source / name).exists():
            shutil.copy2(source / name, state / name)


def _yesterday(scene: Scene, state: Path) -> None:
    _take(state, scene.yesterday)


def _delete(scene: Scene, state: Path) -> None:
    for name in LOG:
        (state / name).unlink(missing_ok=True)


def _fork(scene: Scene, state: Path) -> None:
    _take(state, scene.fork)
    assert _rows(state) > _rows(scene.today)


def _cut(scene: Scene, state: Path) -> None:
    """Today's file: the rows since yesterday are deleted, and the tables are as they were; with yesterday's head."""
    with closing(sqlite3.connect(state / "state.db")) as database:
        database.execute("ATTACH ? AS old", (str(scene.yesterday / "state.db"),))
        for table in ("grants", "grant_uses", "agents", "rulebook"):
            database.execute(f"DELETE FROM main.{table}")
            database.execute(f"INSERT INTO main.{table} SELECT * FROM old.{table}")
        database.execute("DELETE FROM main.journal WHERE number > (SELECT max(number) FROM old.journal)")
        database.commit()
    shutil.copy2(scene.yesterday / "journal.head", state / "journal.head")


def _running(scene: Scene, state: Path) -> None:
    """A copy that was made while the daemon ran: the newest rows are in the write-ahead log alone."""
    assert (scene.running / "state.db-wal").stat().st_size
    _take(state, scene.running)
    (state / "state.db-shm").unlink(missing_ok=True)


def _rows(state: Path) -> int:
    with closing(sqlite3.connect(state / "state.db")) as database:
        return int(database.execute("SELECT max(number) FROM journal").fetchone()[0])


# ---- what it gains


def runs_unasked(scene: Scene, daemon: Daemon) -> bool:
    """Whether the revoked grant lives: the agent's program runs, and nobody is asked."""
    before = _lines(scene)
    journey = Journey(daemon, shell(scene.folder, "echo 2 >> runs"), token=scene.scout)
    try:
        journey.finished()
    except grpc.RpcError:
        pass
    except AssertionError:
        journey.leave()
    else:
        for event in journey.seen:
            if event.WhichOneof("what") == "asking":
                decide(daemon, event.asking, approve=False)
    return _lines(scene) > before


def _lines(scene: Scene) -> int:
    return len((scene.folder / "runs").read_text().splitlines())


def _is_known(scene: Scene, daemon: Daemon) -> bool:
    """Whether the removed agent's token is a name again."""
    try:
        return bool(daemon.actions("Whoami", pb.WhoamiRequest(), token=scene.gone).agent == "gone")
    except grpc.RpcError:
        return False


def _nothing_forbidden(scene: Scene, daemon: Daemon) -> bool:
    """Whether the rules count as whole, and the one that forbids isn't among them."""
    try:
        found = rules(daemon, "InForce", rb.InForceRequest())
    except grpc.RpcError:
        return False
    return not found.trouble and not found.applied


@dataclass(frozen=True, slots=True)
class Forgery:
    """Files that are put in place of today's, and what that gains where nothing refuses it."""

    forge: Callable[[Scene, Path], None]
    won: Callable[[Scene, Daemon], bool]


FORGERIES: Mapping[str, Forgery] = MappingProxyType(
    {
        "a_revoked_grant_of_yesterday": Forgery(_yesterday, runs_unasked),
        "a_removed_agent_of_yesterday": Forgery(_yesterday, _is_known),
        "an_unforbidden_yesterday": Forgery(_yesterday, _nothing_forbidden),
        "a_log_that_is_gone": Forgery(_delete, _nothing_forbidden),
        "a_longer_log_of_another_life": Forgery(_fork, runs_unasked),
        "a_cut_log_with_its_older_head": Forgery(_cut, runs_unasked),
        "a_write_ahead_log_of_yesterday": Forgery(_running, _is_known),
    }
)
