"""A vault that lost the key of what is sealed: verifying tells it, with a look that is bounded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from goex.engine.records import SealedRecords
from goex.engine.reseal import reseal
from goex.journal import openable
from goex.journal.chain import Journal
from tests.vault.support import create, protector
from vault.backup import open_backup
from vault.secret import Secret
from vault.store import Vault

BACKUP = Secret(b"of the backup, long enough")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return create(folder / "vault.db")


@pytest.fixture
def journal(tmp_path: Path, vault: Vault) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    made.unlock(vault.derive("journal"))
    return made


def put(journal: Journal, vault: Vault, action: str, *names: str) -> None:
    for name in names:
        SealedRecords(journal, vault, action, "tester").put(name, name.encode())


def rotated(journal: Journal, vault: Vault) -> None:
    """Keys made anew, as the daemon does it."""
    vault.rotate(anew=True)
    journal.append("vault-rotate", facts={"anew": True})
    assert reseal(journal, vault, lambda done, total: None) == 0
    vault.forget_payload_keys()
    journal.append("vault-payloads-anew")


def come_back(tmp_path: Path, data: bytes) -> Vault:
    """The vault of a backup, elsewhere."""
    return Vault.restore(
        tmp_path / "other" / "vault.db", open_backup(data, BACKUP), protector("another long passphrase")
    )


def counted(vault: Vault) -> tuple[Callable[[str, bytes], bytes], list[str]]:
    """What opens payloads, and the names that it was asked for."""
    asked: list[str] = []

    def opened(name: str, sealed: bytes) -> bytes:
        asked.append(name)
        return vault.open_payload(name, sealed)

    return opened, asked


def test_what_is_sealed_opens_and_one_of_each_key_is_tried(journal: Journal, vault: Vault) -> None:
    opener, asked = counted(vault)
    assert journal.verify(None, opener).problem == "" and asked == []
    put(journal, vault, "a-1", *(f"n{number}" for number in range(20)))
    put(journal, vault, "a-2", "n1", "n2")
    put(journal, vault, "a-1", "n3")  # a newer version
    found = journal.verify(None, opener)
    assert (found.good, found.problem, asked) == (True, "", ["a-1/n3"])
    rotated(journal, vault)
    put(journal, vault, "a-3", "n1")
    asked.clear()
    assert journal.verify(None, opener).problem == "" and asked == ["a-3/n1"]


def test_a_backup_of_before_has_no_key_for_what_was_sealed_since(
    journal: Journal, vault: Vault, tmp_path: Path
) -> None:
    put(journal, vault, "a-1", "n1")
    data = vault.backup(BACKUP)
    rotated(journal, vault)
    put(journal, vault, "a-2", "n1", "n2")
    back = come_back(tmp_path, data)
    found = journal.verify(None, back.open_payload)
    assert (found.good, found.head != "") == (True, True), "the log itself is whole"
    assert found.problem == (
        "3 sealed records can't be opened, since the vault has no key for them: what stands on them can't be undone. "
        "The newest is n2 of a-2."
    )
    journal.append("vault-restore")
    put(journal, back, "a-4", "n1")
    opener, asked = counted(back)
    assert "3 sealed records can't be opened" in journal.verify(None, opener).problem
    assert asked[0] == "a-2/n2" and len(asked) == 2 + 3, "one of each key, then those of the lost one"
    SealedRecords(journal, back, "a-2", "tester").forget()
    assert "1 sealed record can't be opened" in journal.verify(None, back.open_payload).problem
    SealedRecords(journal, back, "a-1", "tester").forget()
    assert journal.verify(None, back.open_payload).problem == ""


def test_the_look_is_bounded(journal: Journal, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openable, "MOST_TRIED", 5)
    data = vault.backup(BACKUP)
    rotated(journal, vault)
    put(journal, vault, "a-1", *(f"n{number}" for number in range(30)))
    opener, asked = counted(come_back(tmp_path, data))
    assert journal.verify(None, opener).problem.startswith("At least 5 sealed records of 30 can't be opened")
    assert len(asked) == 1 + 5


def test_a_sealed_vault_is_no_loss(journal: Journal, vault: Vault) -> None:
    put(journal, vault, "a-1", "n1")
    vault.seal()
    found = journal.verify(None, vault.open_payload)
    assert found.good and found.problem == ""


def test_what_was_altered_is_told_as_that(journal: Journal, vault: Vault, tmp_path: Path) -> None:
    put(journal, vault, "a-1", "n1")
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as database:
        database.execute("UPDATE records SET sealed = x'00'")
    opener, asked = counted(vault)
    found = journal.verify(None, opener)
    assert (found.good, found.problem, asked) == (
        False,
        "What is sealed of action a-1 (n1) isn't what was written.",
        [],
    )
