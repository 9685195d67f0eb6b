"""Which vault the journal knows: an older file, another file, and one that came back from a backup."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.daemon import rollback
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken
from policies.errors import Conflict
from policies.jsonvalue import parse
from tests.vault.support import APPROVAL, CHEAP, create, protector
from vault.backup import open_backup
from vault.secret import Secret
from vault.store import Vault

BACKUP = Secret("words for the backup")


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


def note(journal: Journal, vault: Vault) -> None:
    journal.append("daemon-start", facts=rollback.noted(vault))


def restored(journal: Journal, vault: Vault, folder: Path) -> Vault:
    kept = open_backup(vault.backup(BACKUP, cost=CHEAP), BACKUP)
    return Vault.restore(folder / "vault.db", kept, protector(), floor=rollback.floor(journal), by="the person")


def restores(journal: Journal) -> list[object]:
    return [parse(row.facts)["vault"] for row in journal.rows(kind=rollback.RESTORED, limit=100)]


def test_a_vault_that_was_written_on_is_fine_and_an_older_one_is_not(journal: Journal, vault: Vault) -> None:
    rollback.check(journal, vault)
    vault.check_approval(Secret(APPROVAL))
    rollback.check(journal, vault)
    journal.append("vault-seal", facts={"generation": vault.generation + 1, "vault": vault.id})
    with pytest.raises(Conflict):
        rollback.check(journal, vault)


def test_what_came_back_is_noted_once_with_whose_deed_it_was(journal: Journal, vault: Vault, tmp_path: Path) -> None:
    note(journal, vault)
    back = restored(journal, vault, tmp_path / "a")
    for _ in range(3):
        rollback.check(journal, back)
        note(journal, back)
    assert restores(journal) == [back.id]
    facts = parse(journal.rows(kind=rollback.RESTORED)[0].facts)
    assert (facts["by"], facts["before"], facts["generation"]) == ("the person", vault.id, back.generation)


@pytest.mark.promise(30)
def test_the_vault_of_before_is_refused_however_far_it_had_been_written(
    journal: Journal, vault: Vault, tmp_path: Path
) -> None:
    """Its number alone wouldn't tell: it grew without anybody noting it."""
    note(journal, vault)
    back = restored(journal, vault, tmp_path / "a")
    rollback.check(journal, back)
    for _ in range(5):
        vault.check_approval(Secret(APPROVAL))
    assert vault.generation > back.generation
    with pytest.raises(Conflict):
        rollback.check(journal, vault)


def test_a_vault_of_before_that_itself_came_from_a_backup_is_refused(
    journal: Journal, vault: Vault, tmp_path: Path
) -> None:
    note(journal, vault)
    first = restored(journal, vault, tmp_path / "a")
    rollback.check(journal, first)
    second = restored(journal, first, tmp_path / "b")
    rollback.check(journal, second)
    for _ in range(5):
        first.check_approval(Secret(APPROVAL))
    assert first.generation > second.generation
    with pytest.raises(Conflict):
        rollback.check(journal, first)
    assert restores(journal) == [second.id, first.id]


def test_a_journal_that_knew_no_ids_takes_the_vault_as_it_did(journal: Journal, vault: Vault) -> None:
    journal.append("daemon-start", facts={"generation": vault.generation})
    rollback.check(journal, vault)
    assert restores(journal) == []


def test_an_edited_row_says_nothing(journal: Journal, vault: Vault, tmp_path: Path) -> None:
    note(journal, vault)
    back = restored(journal, vault, tmp_path / "a")
    rollback.check(journal, back)
    note(journal, back)
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.execute("UPDATE journal SET facts = replace(facts, ?, ?)", (back.id, vault.id))
    for _ in range(5):
        vault.check_approval(Secret(APPROVAL))
    with pytest.raises(JournalBroken):
        rollback.check(journal, vault)


def noting() -> Iterator[str]:
    """The kinds of the rows that functions of the daemon's write which note the vault."""
    for file in Path(rollback.__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = [call for call in ast.walk(function) if isinstance(call, ast.Call)]
                names = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
                said = [call.args[0] for call in calls if ast.unparse(call.func).endswith("journal.append")]
                if "noted" in names:
                    yield from (kind.value for kind in said if isinstance(kind, ast.Constant))


def test_every_row_that_notes_the_vault_is_looked_at() -> None:
    """One that isn't would let the vault of before it be put back."""
    found = set(noting())
    assert len(found) > 15
    # Written before the vault is believed, or by what changed nothing of it.
    assert found - set(rollback._KINDS) <= {"account-altered", "ledger-altered", "passkey-cloned"}
