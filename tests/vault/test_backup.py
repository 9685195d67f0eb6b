"""Backups: one file that opens under its own passphrase alone; each thing that can be wrong with it has a name."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from policies.errors import InvalidInput
from tests.vault.support import APPROVAL, CANARY, CHEAP, HandClock, account, create, protector, reopen, secret_of
from tests.vault.test_crash import in_child
from vault import atomic_file, schema
from vault.backup import FORMAT, MAGIC, open_backup
from vault.errors import (
    BackupBroken,
    BackupCut,
    BackupTooNew,
    RecordAltered,
    VaultExists,
    VaultSealed,
    WrongPassphrase,
)
from vault.schema import VaultFile
from vault.secret import Secret
from vault.store import Vault

BACKUP = "a backup has its own words"
OTHER = "the new machine's passphrase"


def filled(path: Path, clock: HandClock | None = None) -> Vault:
    vault = create(path, clock)
    vault.put(account(), Secret(CANARY))
    vault.put(account(name="key file", format="file"), Secret(bytes(range(256)) * 9))
    return vault


def made(vault: Vault) -> bytes:
    return vault.backup(Secret(BACKUP), cost=CHEAP)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("module")
    folder.chmod(0o700)
    return made(filled(folder / "vault.db"))


def resealed(data: bytes) -> bytes:
    """With a digest that fits again: what somebody makes who knows the format and not the passphrase."""
    body = data[:-32]
    body = body[:10] + len(data).to_bytes(8, "big") + body[18:]
    return body + hashlib.sha256(body).digest()


# ---- round ----


def test_a_vault_comes_back_whole_under_another_key(path: Path, tmp_path: Path) -> None:
    clock = HandClock()
    vault = filled(path, clock)
    secret_of(vault)
    payload = vault.seal_payload("undo", b"row")
    vault.rotate(anew=True)
    later = vault.seal_payload("undo", b"later")
    kept = open_backup(made(vault), Secret(BACKUP))
    before = vault.records()
    clock.forward(60)
    elsewhere = tmp_path / "other machine"
    back = Vault.restore(elsewhere / "vault.db", kept, protector(OTHER), floor=7, by="ann", clock=clock)
    assert back.records() == before
    assert secret_of(back) == CANARY.encode()
    assert secret_of(back, name="key file") == bytes(range(256)) * 9
    assert (back.open_payload("undo", payload), back.open_payload("undo", later)) == (b"row", b"later")
    assert back.derive("journal") == vault.derive("journal")
    assert back.check_approval(Secret(APPROVAL))
    assert back.id != vault.id
    back.seal()
    again = reopen(elsewhere / "vault.db", OTHER)
    assert again.restored is not None
    assert (again.restored.by, again.restored.at) == ("ann", clock.now)
    assert vault.restored is None
    assert (elsewhere.stat().st_mode & 0o777, (elsewhere / "vault.db").stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_generation_is_above_what_was_seen(path: Path, tmp_path: Path) -> None:
    vault = filled(path)
    kept = open_backup(made(vault), Secret(BACKUP))
    for name, floor in (("a", 0), ("b", 1000)):
        back = Vault.restore(tmp_path / name / "vault.db", kept, protector(OTHER), floor=floor)
        assert back.generation > max(floor, vault.generation - 1)


def test_the_wrong_attempts_of_before_are_forgotten_and_the_passphrase_stays(path: Path, tmp_path: Path) -> None:
    vault = filled(path)
    assert not vault.check_approval(Secret("not that one"))
    back = Vault.restore(tmp_path / "x" / "vault.db", open_backup(made(vault), Secret(BACKUP)), protector(OTHER))
    assert back._unsealed is not None
    assert back._unsealed.record_index.approval.failures == 0
    assert not back.check_approval(Secret("not that one"))


def test_nothing_of_the_old_file_passes_for_the_restored_one(path: Path, tmp_path: Path) -> None:
    """Records and header of the vault that was backed up, put into the one that came back."""
    vault = filled(path)
    kept = open_backup(made(vault), Secret(BACKUP))
    vault.seal()
    other = tmp_path / "x" / "vault.db"
    Vault.restore(other, kept, protector()).seal()
    with sqlite3.connect(path) as old, sqlite3.connect(other) as new:
        rows = old.execute("SELECT * FROM records").fetchall()
        new.execute("DELETE FROM records")
        new.executemany(f"INSERT INTO records VALUES ({','.join('?' * len(rows[0]))})", rows)
    back = Vault.open(other)
    damage = back.unlock(protector())
    assert len(damage) == 4
    assert back.records() == ()
    with pytest.raises(RecordAltered):
        back.resolve("slack", "work")


# ---- what it takes ----


@pytest.mark.promise(35)
def test_no_secret_and_no_name_is_in_clear(backup: bytes) -> None:
    for text in (CANARY, "slack", "key file", "example.org", APPROVAL, BACKUP, "entries", "verifier"):
        assert text.encode() not in backup
    assert any(each.secret.reveal() == CANARY.encode() for each in open_backup(backup, Secret(BACKUP)).records)


def test_two_backups_of_one_vault_have_nothing_in_common(path: Path) -> None:
    vault = filled(path)
    one, two = made(vault), made(vault)
    assert one[22 + int.from_bytes(one[18:22], "big") : -32][:64] != two[22 + int.from_bytes(two[18:22], "big") :][:64]
    assert one != two


def test_poor_passphrases_are_refused(path: Path) -> None:
    vault = filled(path)
    with pytest.raises(InvalidInput, match="too short"):
        vault.backup(Secret("short"), cost=CHEAP)
    with pytest.raises(InvalidInput, match="another one than the approval"):
        vault.backup(Secret(APPROVAL), cost=CHEAP)
    vault.seal()
    with pytest.raises(VaultSealed):
        made(vault)


def test_the_approval_passphrase_does_not_open_the_restored_vault(backup: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="another one than the vault"):
        Vault.restore(
            tmp_path / "x" / "vault.db", open_backup(backup, Secret(BACKUP)), protector(APPROVAL), by="somebody"
        )
    assert not (tmp_path / "x").exists()


def test_an_altered_record_is_not_backed_up(path: Path) -> None:
    vault = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET base_url = 'https://api.example.org/v2' WHERE name = 'work'")
    with pytest.raises(RecordAltered):
        made(vault)


# ---- what can be wrong ----


def test_a_wrong_passphrase(backup: bytes) -> None:
    with pytest.raises(WrongPassphrase, match="this backup"):
        open_backup(backup, Secret(BACKUP + "!"))


@pytest.mark.promise(35)
def test_cut_anywhere(backup: bytes) -> None:
    for length in [*range(1, 200), *range(200, len(backup), 97), len(backup) - 33, len(backup) - 32, len(backup) - 1]:
        with pytest.raises(BackupCut):
            open_backup(backup[:length], Secret(BACKUP))


@pytest.mark.promise(35)
def test_a_bit_flipped_anywhere(backup: bytes) -> None:
    """Magic, format, length, header, content, digest: each is damage, and none is called a wrong passphrase."""
    places = [*range(300), *range(300, len(backup) - 64, 53), *range(len(backup) - 64, len(backup))]
    for index in places:
        for bit in (0, 7):
            damaged = bytearray(backup)
            damaged[index] ^= 1 << bit
            with pytest.raises(BackupBroken) as caught:
                open_backup(bytes(damaged), Secret(BACKUP))
            assert type(caught.value) is BackupBroken, index


def test_more_than_was_written(backup: bytes) -> None:
    with pytest.raises(BackupBroken, match="isn't as long"):
        open_backup(backup + b"x", Secret(BACKUP))


@pytest.mark.promise(35)
def test_a_newer_format_is_not_called_damaged(backup: bytes) -> None:
    newer = resealed(backup[:8] + (FORMAT + 1).to_bytes(2, "big") + backup[10:])
    with pytest.raises(BackupTooNew, match="format 2"):
        open_backup(newer, Secret(BACKUP))


def test_something_else_is_not_a_backup() -> None:
    for other in (b"", b"SQLite format 3\0" + bytes(500), b"goexbkup" + bytes(100)):
        with pytest.raises(BackupBroken, match="isn't a backup"):
            open_backup(other, Secret(BACKUP))


@pytest.mark.parametrize(
    "change",
    [{"passes": 9999}, {"memory": 2**40}, {"memory": -1}, {"kdf": "none"}, {"salt": "00"}, {"more": 1}, {"lanes": "4"}],
)
def test_a_header_that_asks_for_the_impossible(backup: bytes, change: dict[str, object]) -> None:
    length = int.from_bytes(backup[18:22], "big")
    header = json.dumps({**json.loads(backup[22 : 22 + length]), **change}, sort_keys=True, separators=(",", ":"))
    rebuilt = backup[:18] + len(header).to_bytes(4, "big") + header.encode() + backup[22 + length :]
    with pytest.raises(BackupBroken, match="header"):
        open_backup(resealed(rebuilt), Secret(BACKUP))


def test_a_header_that_somebody_rewrote_opens_nothing(backup: bytes) -> None:
    """Cheaper stretching, with a digest that fits: the content is bound to the header that it was sealed with."""
    length = int.from_bytes(backup[18:22], "big")
    header = json.loads(backup[22 : 22 + length])
    header["lanes"] = 2
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    rebuilt = backup[:18] + len(text).to_bytes(4, "big") + text + backup[22 + length :]
    with pytest.raises(WrongPassphrase):
        open_backup(resealed(rebuilt), Secret(BACKUP))


@settings(max_examples=200)
@given(st.binary(max_size=400), st.booleans())
def test_no_bytes_do_worse_than_an_error(data: bytes, magic: bool) -> None:
    with pytest.raises((BackupBroken, BackupTooNew)):
        open_backup((MAGIC if magic else b"") + data, Secret(BACKUP))


# ---- where it goes ----


def test_it_never_overwrites_a_vault(path: Path, backup: bytes) -> None:
    filled(path).seal()
    before = path.read_bytes()
    with pytest.raises(VaultExists):
        Vault.restore(path, open_backup(backup, Secret(BACKUP)), protector(OTHER))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["vault.db"]


def test_replaced_the_old_one_is_kept_aside_and_opens(path: Path, backup: bytes) -> None:
    old = create(path)
    old.put(account(name="newer"), Secret("only here"))
    old.seal()
    aside = path.with_name("vault.db.kept")
    Vault.restore(path, open_backup(backup, Secret(BACKUP)), protector(OTHER), aside=aside).seal()
    assert {each.account.name for each in reopen(path, OTHER).records()} == {"work", "key file"}
    assert secret_of(reopen(aside), name="newer") == b"only here"
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_broken_vault_is_replaced_too(path: Path, backup: bytes) -> None:
    path.write_bytes(b"not a database any more")
    path.chmod(0o600)
    aside = path.with_name("vault.db.kept")
    Vault.restore(path, open_backup(backup, Secret(BACKUP)), protector(OTHER), aside=aside).seal()
    assert aside.read_bytes() == b"not a database any more"
    assert len(reopen(path, OTHER).records()) == 2


def test_an_unfinished_write_of_the_old_file_is_not_taken_for_the_new_ones(path: Path, backup: bytes) -> None:
    """The daemon was killed within a transaction: SQLite would roll its journal back into whatever lies there."""
    create(path).seal()
    before = path.read_bytes()

    def work(report: int) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("BEGIN IMMEDIATE")
        for more in range(20):  # more than memory may hold, so that the file is changed before it is committed
            connection.execute("UPDATE header SET ledger = zeroblob(?)", (200_000 + 5000 * more,))
        os.kill(os.getpid(), signal.SIGKILL)

    pid, reading = in_child(work)
    os.waitpid(pid, 0)
    os.close(reading)
    assert path.with_name("vault.db-journal").stat().st_size > 512
    assert path.read_bytes() != before
    aside, unfinished = path.with_name("vault.db.kept"), path.with_name("vault.db-journal").read_bytes()
    Vault.restore(path, open_backup(backup, Secret(BACKUP)), protector(OTHER), aside=aside).seal()
    assert path.with_name("vault.db.kept-journal").read_bytes() == unfinished  # it went with its file, unused
    assert len(reopen(path, OTHER).records()) == 2
    assert reopen(aside).records() == ()  # and the old one is rolled back with its own journal


@pytest.mark.promise(35)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_any_moment_there_is_the_old_vault_or_the_new_one(path: Path, backup: bytes, thorough: bool) -> None:
    kept = open_backup(backup, Secret(BACKUP))
    create(path).seal()
    old = path.read_bytes()
    seen: set[str] = set()
    for limit in range(1, 60, 1 if thorough else 3):
        for each in path.parent.iterdir():
            each.unlink()
        path.write_bytes(old)
        path.chmod(0o600)

        def work(report: int, limit: int = limit) -> None:
            steps = 0

            def count(*_: object) -> None:
                nonlocal steps
                steps += 1
                if steps == limit:
                    os.kill(os.getpid(), signal.SIGKILL)

            for name in ("link", "fsync"):
                real = getattr(os, name)
                setattr(
                    atomic_file.os, name, lambda *args, real=real, **more: (count(), real(*args, **more), count())[1]
                )
            engine_of = schema._engine

            def watched(place: Path) -> object:
                engine = engine_of(place)
                event.listen(engine, "before_cursor_execute", count)
                event.listen(engine, "commit", count)
                return engine

            schema._engine = watched  # type: ignore[assignment]
            Vault.restore(path, kept, protector(OTHER), aside=path.with_name("vault.db.kept"))
            os.write(report, b"done\n")

        pid, reading = in_child(work)
        os.waitpid(pid, 0)
        with os.fdopen(reading) as lines:
            survived = lines.read() == "done\n"
        try:
            assert len(reopen(path, OTHER).records()) == 2
            seen.add("new")
        except WrongPassphrase:
            assert reopen(path).records() == ()
            seen.add("old")
        if survived:
            break
    assert survived
    assert seen == {"old", "new"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reads_neither_vault_nor_what_was_kept_aside(path: Path, backup: bytes) -> None:
    for folder in (path.parent, *path.parent.parents):
        if folder.stat().st_mode & 0o005 != 0o005 and folder != path.parent:
            folder.chmod(folder.stat().st_mode | 0o005)
    create(path).seal()
    aside = path.with_name("vault.db.kept")
    Vault.restore(path, open_backup(backup, Secret(BACKUP)), protector(OTHER), aside=aside).seal()
    path.parent.chmod(0o755)  # even where somebody opened the folder

    def work(report: int) -> None:
        os.setgid(65534)
        os.setuid(65534)
        for place in (path, aside):
            try:
                place.read_bytes()
            except PermissionError:
                os.write(report, b"refused\n")

    pid, reading = in_child(work)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as lines:
        assert lines.read() == "refused\nrefused\n"


# ---- sealed anew ----


def rows(path: Path) -> dict[str, tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT name, id, version, wrapped_key, sealed FROM records").fetchall()
    return {row[0]: row[1:] for row in found}


def test_sealed_anew_every_record_and_every_key_is_another(path: Path) -> None:
    vault = filled(path)
    vault.seal_payload("p", b"old")
    before, told = rows(path), []
    shown = vault.records()
    vault.rotate(anew=True, progress=lambda done, total: told.append((done, total)))
    after = rows(path)
    assert told == [(1, 2), (2, 2)]
    for name, (record_id, version, key, sealed) in before.items():
        assert after[name][0] == record_id
        assert after[name][1] == version + 1  # type: ignore[operator]
        assert after[name][2] != key
        assert after[name][3] != sealed
    assert vault.records() == shown
    vault.seal()
    again = reopen(path)
    assert (secret_of(again), secret_of(again, name="key file")) == (CANARY.encode(), bytes(range(256)) * 9)
    rewrapped = rows(path)
    again.rotate()
    assert {name: row[3] for name, row in rows(path).items()} == {name: row[3] for name, row in rewrapped.items()}


def test_payload_keys_come_and_go(path: Path) -> None:
    from vault.errors import PayloadAltered

    vault = filled(path)
    first = vault.seal_payload("p", b"one")
    vault.rotate(anew=True)
    second = vault.seal_payload("p", b"two")
    vault.rotate(anew=True)
    third = vault.seal_payload("p", b"three")
    vault.seal()
    vault = reopen(path)
    assert [vault.open_payload("p", each) for each in (first, second, third)] == [b"one", b"two", b"three"]
    vault.forget_payload_keys()
    vault.seal()
    vault = reopen(path)
    assert vault.open_payload("p", third) == b"three"
    for lost in (first, second):
        with pytest.raises(PayloadAltered):
            vault.open_payload("p", lost)


def test_a_file_of_the_first_format_opens_and_is_marked_by_the_first_write(path: Path) -> None:
    filled(path).seal()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    vault = reopen(path)
    assert secret_of(vault) == CANARY.encode()
    assert VaultFile(path)._format == 1
    vault.put(account(name="third"), Secret("x"))
    assert VaultFile(path)._format == schema.SCHEMA_VERSION


def test_leases_of_an_earlier_moment_are_no_part_of_it(path: Path) -> None:
    clock = HandClock()
    vault = filled(path, clock)
    vault.lease("slack", "work", action_id="a", expires=clock.now + timedelta(minutes=1))
    kept = open_backup(made(vault), Secret(BACKUP))
    assert "a" not in {field.name for field in dataclasses.fields(kept)}
    assert [each.last_used for each in kept.records if each.account.name == "work"] == [clock.now]
