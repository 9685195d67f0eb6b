"""A file that isn't a vault, or was damaged anywhere: told as that, and nothing wrong is read from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vault.support import database, protector, secret_of
from vault.errors import RecordAltered, VaultBroken, VaultTooNew
from vault.store import Vault


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON header BEGIN DELETE FROM records; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (x)",
        "CREATE INDEX i ON records (name)",
        "ALTER TABLE records ADD COLUMN more TEXT",
        "DROP TABLE records",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
        "DELETE FROM header",
    ],
)
def test_a_schema_that_isnt_ours(filled: Path, statement: str) -> None:
    with database(filled) as connection:
        connection.execute(statement)
    with pytest.raises(VaultBroken):
        Vault.open(filled)


def test_a_newer_format(filled: Path) -> None:
    with database(filled) as connection:
        connection.execute("PRAGMA user_version = 4")
    with pytest.raises(VaultTooNew):
        Vault.open(filled)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"\xff" * 5000])
def test_not_a_vault(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
    with pytest.raises(VaultBroken) as caught:
        Vault.open(path)
    assert "backup" in caught.value.next_step


def test_flipped_bytes_anywhere_are_noticed_or_harmless(filled: Path, thorough: bool) -> None:
    """Each flip ends in one of the vault's own errors, or changed nothing that matters (free space)."""
    kept = filled.read_bytes()
    noticed = 0
    for position in range(0, len(kept), len(kept) // (150 if thorough else 50)):
        spoiled = bytearray(kept)
        spoiled[position] ^= 0xFF
        filled.write_bytes(spoiled)
        try:
            vault = Vault.open(filled)
            damage = vault.unlock(protector())
        except (VaultBroken, VaultTooNew):  # never a wrong passphrase: it is the right one
            noticed += 1
            continue
        for name in ("work", "home"):
            if any(each.names("slack", name) for each in damage):
                noticed += 1
                with pytest.raises(RecordAltered):
                    secret_of(vault, "slack", name)
            else:
                assert secret_of(vault, "slack", name) == f"secret of {name}".encode()
        vault.seal()
    assert noticed > 5


def test_truncated_anywhere(filled: Path) -> None:
    kept = filled.read_bytes()
    for length in range(0, len(kept), 1024):
        filled.write_bytes(kept[:length])
        with pytest.raises(VaultBroken):
            Vault.open(filled)
