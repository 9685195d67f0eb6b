"""A vault that came back without the key of what is sealed: `goex log --verify` says so, and whose key it has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from goex.engine.records import SealedRecords
from goex.journal.chain import Journal
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import VAULT_PASSPHRASE, Daemon
from vault.backup import open_backup
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

BACKUP = Secret(b"of the backup, long enough")


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with Daemon() as made:
        yield made


def opened(daemon: Daemon) -> tuple[Vault, Journal]:
    """Both, while the daemon is stopped."""
    vault = Vault.open(daemon.state_dir / "vault.db")
    vault.unlock(PassphraseProtector(Secret(VAULT_PASSPHRASE.encode())))
    journal = Journal(daemon.state_dir / "state.db", daemon.state_dir / "journal.head")
    journal.unlock(vault.derive("journal"))
    return vault, journal


def test_an_older_backup_of_the_vault_opens_nothing_that_was_sealed_since(daemon: Daemon) -> None:
    daemon.stop()
    vault, journal = opened(daemon)
    SealedRecords(journal, vault, "a-1", "tester").put("rows", b"before")
    data = vault.backup(BACKUP)
    journal.close()
    vault.seal()
    daemon.start()
    daemon.unlock()
    done = daemon.goex("log", "--verify")
    assert done.returncode == 0 and "sealed" not in done.stdout, done
    daemon.person("VaultSeal", pb.VaultSealRequest())
    done = daemon.goex("log", "--verify")
    assert (done.returncode, done.stdout.count("It wasn't checked whether what is sealed can be opened")) == (0, 1), (
        done
    )

    daemon.stop()
    vault, journal = opened(daemon)
    vault.rotate(anew=True)
    vault.forget_payload_keys()
    for name in ("rows", "more"):
        SealedRecords(journal, vault, "a-2", "tester").put(name, b"since")
    journal.close()
    generation = vault.generation
    vault.seal()
    (daemon.state_dir / "vault.db").unlink()
    Vault.restore(
        daemon.state_dir / "vault.db",
        open_backup(data, BACKUP),
        PassphraseProtector(Secret(VAULT_PASSPHRASE.encode())),
        floor=generation,
    ).seal()
    daemon.start()
    daemon.unlock()
    done = daemon.goex("log", "--verify")
    assert done.returncode == 3, done
    assert "The journal is whole" in done.stdout and "2 sealed records can't be opened" in done.stdout, done
    assert "goex vault restore FILE --replace" in done.stderr
    assert "wasn't checked" not in done.stdout
    found = json.loads(daemon.goex("log", "--verify", "--json").stdout)
    assert found["good"] and "2 sealed records can't be opened" in found["problem"]
