"""Whatever is changed in the file is noticed, told by its own error, and never used."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Origin
from policies.errors import GoexError
from tests.vault.support import CANARY, account, create, database, protector, reopen, secret_of
from vault import schema
from vault.errors import (
    NoAccount,
    RecordAltered,
    VaultBroken,
    WrongKey,
)
from vault.header import Header
from vault.secret import Secret
from vault.store import Vault

HEADER = [column.name for column in schema.header.columns]
RECORDS = [column.name for column in schema.records.columns]


def other(value: Any) -> list[Any]:
    """Values of the same type that differ from `value`."""
    if isinstance(value, int):
        return [value + 1, 0 if value else 7, -1]
    if isinstance(value, str):
        return [value + "x", "", "\u0000", value[:-1]]
    return [bytes([value[0] ^ 1]) + value[1:], value[:-1] + bytes([value[-1] ^ 128]), value[:-1], b"", value + b"\0"]


@pytest.mark.sampled(5)
@pytest.mark.promise(30)
@pytest.mark.parametrize("column", RECORDS)
@pytest.mark.parametrize("name", ["work", "home"])
def test_every_column_of_every_record(filled: Path, column: str, name: str) -> None:
    with database(filled) as connection:
        (value,) = connection.execute(f"SELECT {column} FROM records WHERE name = ?", (name,)).fetchone()
        kept = filled.read_bytes()
    tried = 0
    for changed in other(value):
        if changed == value:
            continue
        filled.write_bytes(kept)
        with database(filled) as connection:
            connection.execute(f"UPDATE records SET {column} = ? WHERE name = ?", (changed, name))
        tried += 1
        vault = Vault.open(filled)
        damage = vault.unlock(protector())
        assert any(each.names("slack", name) for each in damage), changed
        with pytest.raises(RecordAltered) as caught:
            secret_of(vault, "slack", name)
        assert "goex vault put slack" in caught.value.next_step
        with pytest.raises(RecordAltered):
            vault.resolve("slack", name)
        with pytest.raises(RecordAltered):
            vault.resolve("slack")
        with pytest.raises(RecordAltered):
            vault.rotate()
        untouched = "home" if name == "work" else "work"
        assert secret_of(vault, "slack", untouched) == f"secret of {untouched}".encode()
        assert [record.account.name for record in vault.records()] == [untouched]
        vault.seal()
    assert tried


@pytest.mark.sampled(7)
@pytest.mark.promise(30)
@pytest.mark.parametrize("column", [column for column in RECORDS if column not in ("id", "service")])
def test_swapped_between_rows(filled: Path, column: str) -> None:
    with database(filled) as connection:
        values = dict(connection.execute(f"SELECT name, {column} FROM records").fetchall())
        assert values["work"] != values["home"]
        connection.execute("UPDATE records SET name = name || '-' ")  # out of the way of the UNIQUE constraint
        for name, source in (("work", "home"), ("home", "work")):
            connection.execute(f"UPDATE records SET {column} = ? WHERE name = ?", (values[source], name + "-"))
        if column != "name":
            connection.execute("UPDATE records SET name = rtrim(name, '-')")
    vault = Vault.open(filled)
    assert len(vault.unlock(protector())) == 2
    for name in ("work", "home"):
        with pytest.raises(RecordAltered):
            secret_of(vault, "slack", name)


def test_altered_while_it_is_unsealed(filled: Path) -> None:
    vault = reopen(filled)
    before = vault.resolve("slack", "work")
    assert vault.resolve("slack", "work") == before
    with database(filled) as connection:
        connection.execute("UPDATE records SET base_url = 'https://evil.example' WHERE name = 'work'")
    with pytest.raises(RecordAltered):
        secret_of(vault)
    with pytest.raises(RecordAltered):
        vault.resolve("slack", "work")
    assert len(vault.damage()) == 1
    with database(filled) as connection:
        connection.execute("UPDATE records SET base_url = ? WHERE name = 'work'", (before.base_url,))
    assert vault.resolve("slack", "work") == before


def test_what_was_read_before_is_read_again_after_each_change_of_our_own(filled: Path) -> None:
    vault = reopen(filled)
    before = vault.resolve("slack", "work")
    after = replace(before, base_url=f"{before.base_url.rstrip('/')}/v2")
    vault.put(after, Secret(b"another"), replace=True)
    assert vault.resolve("slack", "work") == after
    vault.remove("slack", "work")
    with pytest.raises(NoAccount):
        vault.resolve("slack", "work")


def test_an_earlier_version_of_a_record_put_back(filled: Path) -> None:
    with database(filled) as connection:
        old = connection.execute("SELECT * FROM records WHERE name = 'work'").fetchone()
    vault = reopen(filled)
    vault.put(account(), Secret("the revoked one's successor"), replace=True)
    with database(filled) as connection:
        connection.execute("DELETE FROM records WHERE name = 'work'")
        connection.execute(f"INSERT INTO records VALUES ({','.join('?' * len(old))})", old)
    for each in (vault, reopen(filled)):
        with pytest.raises(RecordAltered):
            secret_of(each)


def test_a_removed_record_put_back(filled: Path) -> None:
    with database(filled) as connection:
        old = connection.execute("SELECT * FROM records WHERE name = 'work'").fetchone()
    vault = reopen(filled)
    vault.remove("slack", "work")
    vault.seal()
    with database(filled) as connection:
        connection.execute(f"INSERT INTO records VALUES ({','.join('?' * len(old))})", old)
    vault = Vault.open(filled)
    (damage,) = vault.unlock(protector())
    assert damage.names("slack", "work")
    with pytest.raises(GoexError):
        secret_of(vault)
    with pytest.raises(RecordAltered):
        vault.resolve("slack")
    vault.remove("slack", "work")
    assert vault.damage() == ()
    assert vault.resolve("slack").name == "home"


def test_a_deleted_row_is_noticed_and_no_other_account_taken(filled: Path) -> None:
    with database(filled) as connection:
        connection.execute("DELETE FROM records WHERE name = 'work'")
    vault = Vault.open(filled)
    (damage,) = vault.unlock(protector())
    assert damage.names("slack", "work")
    with pytest.raises(RecordAltered, match="gone"):
        secret_of(vault)
    with pytest.raises(RecordAltered):
        vault.resolve("slack")


def test_sealed_a_row_that_makes_no_sense_hides_no_other(filled: Path) -> None:
    with database(filled) as connection:
        connection.execute("UPDATE records SET origins = 'nonsense' WHERE name = 'work'")
    vault = Vault.open(filled)
    assert [record.account.name for record in vault.records()] == ["home"]
    (damage,) = vault.unlock(protector())
    assert damage.names("slack", "work")


def test_an_altered_record_can_be_put_again_or_removed(filled: Path) -> None:
    with database(filled) as connection:
        connection.execute("UPDATE records SET service = 'evil'")
    vault = reopen(filled)
    vault.put(account(), Secret("anew"), replace=True)
    vault.remove("slack", "home")
    assert vault.damage() == ()
    assert secret_of(vault) == b"anew"
    vault.rotate()
    assert secret_of(reopen(filled)) == b"anew"
    with database(filled) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (1,)


def test_records_of_another_vault(filled: Path, tmp_path: Path) -> None:
    foreign = create(tmp_path / "foreign" / "vault.db")
    foreign.put(account(), Secret("attacker's token"))
    foreign.seal()
    with database(filled) as connection:
        connection.execute("ATTACH ? AS foreign_db", (str(tmp_path / "foreign" / "vault.db"),))
        connection.execute("DELETE FROM records WHERE name = 'work'")
        connection.execute("INSERT INTO records SELECT * FROM foreign_db.records")
    vault = reopen(filled)
    with pytest.raises(RecordAltered):
        secret_of(vault)


# Without the ledger's digest the record's own seal must still hold: associated data, one field at a time.
@pytest.mark.parametrize(
    "changed",
    [
        {"service": "other"},
        {"name": "other"},
        {"format": "file"},
        {"base_url": "https://api.example.org/v2"},
        {"origins": (Origin.parse("https://api.example.org"),)},
        {"origins": (Origin.parse("https://api.example.org"), Origin.parse("https://evil.example"))},
        {"private": True},
        {"ca_pem": "-----BEGIN CERTIFICATE-----"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_the_seal_itself_binds_the_account(changed: dict[str, Any]) -> None:
    from dataclasses import replace

    from vault.aead import new_key
    from vault.record import SealedRecord

    master = new_key()
    facts: dict[str, Any] = {"vault_id": "v", "record_id": "r", "version": 1, "created": "c", "updated": "u"}
    record = SealedRecord.make(account(), Secret("s"), master, **facts)
    assert record.open(master, "v") == Secret("s")
    with pytest.raises(RecordAltered):
        replace(record, account=account(**{"service": "slack", "name": "work", **changed})).open(master, "v")
    for field, value in (("id", "q"), ("version", 2), ("created", "d"), ("updated", "d")):
        with pytest.raises(RecordAltered):
            replace(record, **{field: value}).open(master, "v")
    with pytest.raises(RecordAltered):
        record.open(master, "w")
    with pytest.raises(RecordAltered):
        record.open(new_key(), "v")
    twin = SealedRecord.make(account(), Secret("t"), master, **facts)
    with pytest.raises(RecordAltered):
        replace(record, sealed=twin.sealed).open(master, "v")
    with pytest.raises(RecordAltered):
        replace(record, wrapped_key=twin.wrapped_key).open(master, "v")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("column", HEADER)
def test_every_column_of_the_header(filled: Path, column: str) -> None:
    kept = filled.read_bytes()
    with database(filled) as connection:
        (value,) = connection.execute(f"SELECT {column} FROM header").fetchone()
    for changed in other(value):
        filled.write_bytes(kept)
        with database(filled) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(f"UPDATE header SET {column} = ?", (changed,))
        with pytest.raises(VaultBroken):
            Vault.open(filled)


@pytest.mark.parametrize("column", [column for column in HEADER if column not in ("id", "checksum")])
def test_every_column_of_the_header_with_its_checksum_mended(filled: Path, column: str) -> None:
    kept = filled.read_bytes()
    with database(filled) as connection:
        (value,) = connection.execute(f"SELECT {column} FROM header").fetchone()
    for changed in other(value):
        filled.write_bytes(kept)
        _alter_header(filled, **{column: changed})
        with pytest.raises((VaultBroken, WrongKey)) as caught:
            Vault.open(filled).unlock(protector())
        if column in ("generation", "ledger"):
            assert caught.type is VaultBroken, "the passphrase was right, and must not be blamed"


def test_a_header_that_claims_the_keyring(filled: Path) -> None:
    _alter_header(filled, keyed_by="keyring")
    with pytest.raises(GoexError, match="keyed by the keyring"):
        Vault.open(filled).unlock(protector())


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "change",
    [
        {"memory": 100 * 1024 * 1024},
        {"memory": 1},
        {"memory": -1},
        {"memory": True},
        {"memory": 8192.0},
        {"memory": "8192"},
        {"memory": None},
        {"passes": 10_000_000},
        {"passes": 0},
        {"lanes": 1000},
        {"salt": ""},
        {"salt": "zz" * 16},
        {"salt": "00" * 4096},
        {"salt": 5},
        {"kdf": "argon2i"},
        {"version": 16},
        {"extra": 1},
    ],
    ids=str,
)
def test_impossible_passphrase_parameters_cost_nothing(
    filled: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    with database(filled) as connection:
        (text,) = connection.execute("SELECT parameters FROM header").fetchone()
    _alter_header(filled, parameters=json.dumps({**json.loads(text), **change}, sort_keys=True, separators=(",", ":")))

    def spent(*_: object, **__: object) -> bytes:
        raise AssertionError("Argon2 ran with an attacker's parameters")

    monkeypatch.setattr("vault.keys.hash_secret_raw", spent)
    with pytest.raises(VaultBroken, match="impossible"):
        Vault.open(filled).unlock(protector())


def test_the_header_of_an_earlier_generation(filled: Path) -> None:
    with database(filled) as connection:
        old = connection.execute("SELECT ledger FROM header").fetchone()[0]
    reopen(filled).put(account(name="new"), Secret("x"))
    _alter_header(filled, ledger=old)
    with pytest.raises(VaultBroken):
        Vault.open(filled).unlock(protector())


def test_the_whole_header_of_an_earlier_generation(filled: Path) -> None:
    with database(filled) as connection:
        old = connection.execute("SELECT * FROM header").fetchone()
    reopen(filled).put(account(), Secret("x"), replace=True)
    with database(filled) as connection:
        connection.execute("DELETE FROM header")
        connection.execute(f"INSERT INTO header VALUES ({','.join('?' * len(old))})", old)
    vault = Vault.open(filled)
    assert vault.unlock(protector())
    with pytest.raises(RecordAltered):
        secret_of(vault)


def test_the_whole_file_put_back_shows_in_the_generation(filled: Path, tmp_path: Path) -> None:
    shutil.copy(filled, tmp_path / "backup")
    vault = reopen(filled)
    vault.put(account(name="new"), Secret("x"))
    newest = vault.generation
    filled.write_bytes((tmp_path / "backup").read_bytes())
    assert reopen(filled).generation < newest


def test_errors_of_altered_files_quote_no_secret(filled: Path) -> None:
    vault = reopen(filled)
    vault.put(account(name="canary"), Secret(CANARY))
    with database(filled) as connection:
        connection.execute("UPDATE records SET private = 1 WHERE name = 'canary'")
    with pytest.raises(RecordAltered) as caught:
        secret_of(vault, "slack", "canary")
    assert CANARY not in str(caught.value) + repr(caught.value)


def _alter_header(path: Path, **changes: Any) -> None:
    """Change the header as somebody would who knows how the checksum is made, which isn't a secret."""
    with database(path) as connection:
        row = dict(zip(HEADER, connection.execute("SELECT * FROM header").fetchone(), strict=True))
        row.update(changes)
        checksum = hashlib.sha256()
        for value in ("goex vault v1 header", *list(row.values())[:-1]):
            raw = value if isinstance(value, bytes) else str(value).encode()
            checksum.update(f"{type(value).__name__} {len(raw)} ".encode() + raw)
        row["checksum"] = checksum.digest()
        connection.execute(
            "UPDATE header SET " + ", ".join(f"{name} = :{name}" for name in HEADER if name != "id"), row
        )
        if not changes.keys() & {"parameters", "keyed_by"}:
            Header.from_row(tuple(row.values()))  # or the test would only show that the checksum is wrong
