"""Payloads sealed anew: each is the old one or the new one, and what was altered is left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from goex.engine.records import SealedRecords
from goex.engine.reseal import reseal
from goex.journal.chain import Journal
from goex.journal.schema import records as table
from policies.errors import Conflict
from tests.vault.support import create
from vault.errors import VaultSealed
from vault.store import Vault

NAMES = [("a-1", "before"), ("a-1", "after"), ("a-2", "before")]


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return create(folder / "vault.db")


@pytest.fixture
def journal(tmp_path: Path, vault: Vault) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    made.unlock(vault.derive("journal"))
    for action, name in NAMES:
        SealedRecords(made, vault, action, "tester").put(name, f"{action} {name}".encode())
    return made


def blobs(journal: Journal) -> dict[tuple[str, str], bytes]:
    with journal.read() as connection:
        found = connection.execute(select(table.c.action_id, table.c.name, table.c.sealed))
        return {(row[0], row[1]): row[2] for row in found}


def read(journal: Journal, vault: Vault, action: str, name: str) -> bytes | None:
    return SealedRecords(journal, vault, action, "tester").get(name)


def test_every_payload_gets_the_newest_key(journal: Journal, vault: Vault) -> None:
    before, told = blobs(journal), []
    vault.rotate(anew=True)
    assert reseal(journal, vault, lambda done, total: told.append((done, total))) == 0
    assert told == [(1, 3), (2, 3), (3, 3)]
    vault.forget_payload_keys()
    after = blobs(journal)
    assert after.keys() == before.keys()
    for action, name in NAMES:
        assert after[action, name] != before[action, name]
        assert read(journal, vault, action, name) == f"{action} {name}".encode()
    assert journal.verify().good


class Interrupted(Exception):
    """What a kill looks like to a transaction."""


@pytest.mark.parametrize("at", [1, 2, 3])
def test_interrupted_anywhere_all_of_them_open_and_the_rest_is_done_later(
    journal: Journal, vault: Vault, at: int
) -> None:
    def stop(done: int, total: int) -> None:
        if done == at:
            raise Interrupted

    vault.rotate(anew=True)
    with pytest.raises(Interrupted):
        reseal(journal, vault, stop)
    for action, name in NAMES:
        assert read(journal, vault, action, name) == f"{action} {name}".encode()
    vault.rotate(anew=True)
    assert reseal(journal, vault, lambda done, total: None) == 0
    vault.forget_payload_keys()
    for action, name in NAMES:
        assert read(journal, vault, action, name) == f"{action} {name}".encode()


def test_what_was_altered_stays_refused(journal: Journal, vault: Vault) -> None:
    """Sealing anew must not give a changed payload a hash that fits."""
    with journal.transaction() as transaction:
        here = table.c.action_id == "a-1", table.c.name == "before"
        transaction.connection.execute(update(table).where(*here).values(sealed=b"\x01changed"))
    vault.rotate(anew=True)
    assert reseal(journal, vault, lambda done, total: None) == 1
    assert blobs(journal)["a-1", "before"] == b"\x01changed"
    with pytest.raises(Conflict):
        read(journal, vault, "a-1", "before")
    assert read(journal, vault, "a-2", "before") == b"a-2 before"


def test_a_vault_that_is_sealed_meanwhile_ends_it(journal: Journal, vault: Vault) -> None:
    before = blobs(journal)
    vault.rotate(anew=True)
    vault.seal()
    with pytest.raises(VaultSealed):
        reseal(journal, vault, lambda done, total: None)
    assert blobs(journal) == before
