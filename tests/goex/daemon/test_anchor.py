"""How far the log has come, as the vault knows it: what is refused, what isn't, and how the person goes on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import grpc
import pytest

from goex.daemon.accounts_service import AccountsService
from goex.daemon.anchor import Anchor, reached
from goex.daemon.databases_service import DatabasesService
from goex.daemon.person_context import PersonCalls
from goex.daemon.person_service import PersonService
from goex.daemon.reversions_service import ReversionsService
from goex.daemon.rules_service import RulesService
from goex.daemon.vault_service import VaultService
from goex.daemon.vault_state import VaultState
from goex.journal.chain import Journal
from goex.journal.errors import JournalBehind, JournalLocked
from goex.journal.head import Mark
from goex.rpc import goex_pb2 as pb
from goex.rpc import rules_pb2 as rb
from tests.adversarial.state_scene import LOG, forget, refusal, rules, unlocked
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.vault.support import create

KEY = b"k" * 32


def journal(folder: Path, rows: int = 0, reached: Mark | None = None) -> Journal:
    made = Journal(folder / "state.db", folder / "journal.head")
    made.unlock(KEY, reached)
    for _ in range(rows):
        made.append("note")
    return made


def copied(folder: Path, to: Path) -> Path:
    to.mkdir()
    for name in LOG:
        with suppress(FileNotFoundError):
            shutil.copy2(folder / name, to / name)
    return to


# ---- which journal is taken


def test_one_that_is_ahead_of_what_is_known_is_taken(tmp_path: Path) -> None:
    first = journal(tmp_path, 3)
    known = first.synced
    first.append("note")
    first.close()
    assert journal(tmp_path, reached=known).count == 4


@pytest.mark.promise(7)
def test_an_older_another_and_no_journal_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    journal(tmp_path, 3).close()
    old = copied(tmp_path, tmp_path / "old")
    other = copied(tmp_path, tmp_path / "other")
    newest = journal(tmp_path, 3)
    newest.close()
    journal(other, 5).close()
    for folder, said in ((old, "older copy"), (other, "is another one"), (tmp_path / "none", "is gone")):
        folder.mkdir(exist_ok=True)
        refused = Journal(folder / "state.db", folder / "journal.head")
        rows = refused.count
        with pytest.raises(JournalBehind, match=said):
            refused.unlock(KEY, newest.synced)
        with pytest.raises(JournalLocked):
            refused.append("note")
        found = refused.verify()
        assert (found.good, found.rows) == (False, rows)
        assert said in found.problem
        refused.close()


def test_a_row_that_was_put_in_alone_is_not_taken_for_the_chain_to_it(tmp_path: Path) -> None:
    """The newest row is genuine, its place is right, and what comes before it is missing."""
    journal(tmp_path, 3).close()
    old = copied(tmp_path, tmp_path / "old")
    newest = journal(tmp_path, 3)
    forged = Journal(old / "state.db", old / "journal.head")
    with newest.engine.connect() as source, forged.engine.begin() as target:
        row = source.exec_driver_sql("SELECT * FROM journal WHERE number = 6").one()
        target.exec_driver_sql(f"INSERT INTO journal VALUES ({', '.join('?' * len(row))})", tuple(row))
    with pytest.raises(JournalBehind):
        forged.unlock(KEY, newest.synced)


def test_rows_that_a_power_failure_may_take_are_not_spoken_of(tmp_path: Path) -> None:
    made = journal(tmp_path, 2)
    made.append("note", lasting=False)
    assert (made.count, made.synced.count) == (3, 2)
    made.append("note")
    assert made.synced.count == 4


def test_one_that_is_replaced_while_it_is_open_is_not_called_whole(tmp_path: Path) -> None:
    made = journal(tmp_path, 3)
    old = copied(tmp_path, tmp_path / "old")
    made.append("note")
    made.engine.dispose()
    for name in LOG:
        (tmp_path / name).unlink(missing_ok=True)
        if (old / name).exists():
            shutil.copy2(old / name, tmp_path / name)
    assert not made.verify().good


# ---- when the vault is told


@pytest.fixture
async def anchor(tmp_path: Path) -> Anchor:
    vault = create(tmp_path / "vault.db")
    vault_state = VaultState(tmp_path / "vault.db")
    vault_state._vault = vault
    return Anchor(journal(tmp_path), vault_state)


@pytest.mark.promise(7)
async def test_only_what_has_to_be_known_is_waited_for(anchor: Anchor) -> None:
    log, vault_state = anchor._journal, anchor._vault_state
    before = vault_state.vault.generation
    for _ in range(20):
        log.append("note")
        await anchor.acknowledge()
    assert (vault_state.vault.generation, reached(vault_state)) == (before, None)
    log.append("revoke", anchored=True)
    await anchor.acknowledge()
    assert reached(vault_state) == log.synced
    await anchor.acknowledge()
    await anchor.write()
    assert vault_state.vault.generation == before + 1  # the same isn't told twice


async def test_a_sealed_vault_is_told_when_it_is_open_again(anchor: Anchor) -> None:
    log, vault_state = anchor._journal, anchor._vault_state
    unsealed, vault_state.vault._unsealed = vault_state.vault._unsealed, None
    log.append("revoke", anchored=True)
    await anchor.acknowledge()  # a revocation isn't held up by that
    vault_state.vault._unsealed = unsealed
    await anchor.write()
    assert reached(vault_state) == log.synced


# ---- a real daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


def put_back(daemon: Daemon, copy: Path) -> None:
    for name in LOG:
        (daemon.state_dir / name).unlink(missing_ok=True)
        if (copy / name).exists():
            shutil.copy2(copy / name, daemon.state_dir / name)


@pytest.mark.promise(7)
def test_the_person_accepts_a_log_and_nothing_of_it_holds(daemon: Daemon, tmp_path: Path) -> None:
    token = daemon.add_agent("scout")
    daemon.stop()
    old = shutil.copytree(daemon.state_dir, tmp_path / "old")
    daemon.start()
    daemon.unlock()
    daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="scout"))
    daemon.kill()
    put_back(daemon, old)
    daemon.start()
    with daemon.terminal("vault", "unlock") as terminal:
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.wait()
        assert "--accept-log" in terminal.text
    wrong = pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE, accept_log=True, approval_passphrase="no")
    assert refusal(lambda: daemon.person("VaultUnlock", wrong)) == "presence"
    assert daemon.person("Status", pb.StatusRequest()).vault == "sealed"
    with daemon.terminal("vault", "unlock", "--accept-log") as terminal:
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0, terminal.text
    with pytest.raises(grpc.RpcError):
        daemon.actions("Whoami", pb.WhoamiRequest(), token=token)
    assert not daemon.person("ListAgents", pb.ListAgentsRequest()).agents
    assert rules(daemon, "InForce", rb.InForceRequest()).trouble
    rows = json.loads(daemon.goex("log", "--rows", "--kind", "journal-accept", "--json").stdout)["rows"]
    assert "the vault knows" in rows[0]["facts"]["problem"]
    assert daemon.goex("log", "--verify").returncode == 0
    daemon.kill()
    daemon.start()
    daemon.unlock()  # it is the one that is known now
    assert rules(daemon, "InForce", rb.InForceRequest()).trouble


def test_each_change_of_what_is_allowed_is_known_once_it_is_answered(daemon: Daemon, tmp_path: Path) -> None:
    """The vault is looked at right after each answer, as it would lie there if the daemon were killed then."""
    files = [rb.RuleFile(name="mine.cedar", text="forbid (principal, action, resource);")]

    def add_rules() -> None:
        checked = rules(daemon, "CheckRules", rb.CheckRulesRequest(files=files))
        request = rb.ApplyRulesRequest(files=files, compared_with=checked.hash, passphrase=APPROVAL_PASSPHRASE)
        rules(daemon, "ApplyRules", request)

    changes = {
        "agent-add": lambda: daemon.add_agent("scout"),
        "rules-apply": add_rules,
        "agent-remove": lambda: daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="scout")),
    }
    for kind, change in changes.items():
        change()
        copy = shutil.copytree(daemon.state_dir, tmp_path / kind)
        vault = unlocked(copy)
        with closing(sqlite3.connect(copy / "state.db")) as database:
            (number,) = database.execute("SELECT max(number) FROM journal WHERE kind = ?", (kind,)).fetchone()
        assert vault.reached is not None
        assert vault.reached.rows >= number, kind
        vault.seal()


@pytest.mark.parametrize(
    "service",
    [PersonService, VaultService, AccountsService, RulesService, ReversionsService, DatabasesService],
    ids=lambda service: str(service.__name__),
)
def test_every_service_that_changes_something_waits_for_that(service: type) -> None:
    assert issubclass(service, PersonCalls)


def test_a_state_folder_of_an_earlier_goex_is_taken_and_known_from_then_on(daemon: Daemon) -> None:
    daemon.stop()
    forget(daemon.state_dir)
    daemon.start()
    daemon.unlock()
    daemon.kill()
    vault = unlocked(daemon.state_dir)
    assert vault.reached is not None
    vault.seal()


@pytest.mark.promise(7)
def test_a_daemon_that_is_killed_between_the_log_and_the_vault_is_opened(daemon: Daemon) -> None:
    daemon.kill()
    vault = unlocked(daemon.state_dir)
    known = vault.reached
    assert known is not None
    log = Journal(daemon.state_dir / "state.db", daemon.state_dir / "journal.head")
    log.unlock(vault.derive("journal"), Mark(known.rows, known.hash))
    for _ in range(5):
        log.append("note", anchored=True)
    log.close()
    vault.seal()
    daemon.start()
    daemon.unlock()
    assert daemon.goex("log", "--verify").returncode == 0


def test_after_a_refusal_the_right_files_open_in_the_same_daemon(daemon: Daemon, tmp_path: Path) -> None:
    daemon.stop()
    old = shutil.copy2(daemon.state_dir / "vault.db", tmp_path / "vault.db")
    daemon.start()
    daemon.unlock()
    token = daemon.add_agent("scout")
    daemon.stop()
    new = shutil.copy2(daemon.state_dir / "vault.db", tmp_path / "new.db")
    shutil.copy2(old, daemon.state_dir / "vault.db")
    daemon.start()
    unlock = pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE)
    assert refusal(lambda: daemon.person("VaultUnlock", unlock)) == "conflict"
    shutil.copy2(new, daemon.state_dir / "vault.db")
    daemon.unlock()
    assert daemon.actions("Whoami", pb.WhoamiRequest(), token=token).agent == "scout"
