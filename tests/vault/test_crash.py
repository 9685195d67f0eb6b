"""Killed at any point, or out of disk: the vault opens, and holds the old state or the new one."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from policies.jsonvalue import JsonObject
from tests.vault.support import APPROVAL, CHEAP, account, create, protector, reopen, secret_of
from vault.aead import new_key
from vault.backup import keep, restore
from vault.errors import VaultAbsent, VaultExists, VaultUnwritable
from vault.keys import KeyedBy, Wrapping
from vault.schema import VaultFile
from vault.secret import Secret
from vault.store import Vault
from vault.unsealed import Unsealed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work: Callable[[int], None]) -> tuple[int, int]:
    """Fork; `work` gets a descriptor to report to. Returns the child's pid and the reading end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            work(writing)
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def churn(path: Path, begin: int) -> Callable[[int], None]:
    """Put, replace, rotate, for ever; report each step after it has returned."""

    def work(report: int) -> None:
        vault = reopen(path)
        os.write(report, b".\n")
        for step in range(begin, begin + 10_000):
            vault.put(account(name=f"n{step % 5}"), Secret(f"value {step}"), replace=True)
            os.write(report, f"{step}\n".encode())
            if step % 3 == 0:
                vault.rotate(protector() if step % 2 else None)

    return work


def test_kill_9_at_random_points(path: Path, thorough: bool) -> None:
    create(path).seal()
    chance = random.Random(20300102)
    reached = 0
    acknowledged: dict[str, int] = {}
    for _ in range(100 if thorough else 8):
        pid, reading = in_child(churn(path, reached))
        told = b""
        while told.count(b"\n") < 1 + chance.randrange(4):  # slow machine or fast: some steps, then a moment
            told += os.read(reading, 100)
        time.sleep(chance.uniform(0.0, 0.04))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(reading, "rb") as rest:
            told += rest.read()
        done = [int(line) for line in told.split(b"\n")[:-1] if line.isdigit()]
        for step in done:
            acknowledged[f"n{step % 5}"] = step
        reached = done[-1] + 1 if done else reached
        vault = reopen(path)
        assert vault.damage() == ()
        found = {record.account.name for record in vault.records()}
        assert found >= set(acknowledged), "an acknowledged secret was lost"
        for name in found:
            value = int(secret_of(vault, "slack", name).decode().removeprefix("value "))
            if value == reached:  # the step under way when it was killed
                acknowledged[name] = value
            else:
                assert value == acknowledged[name]
        if acknowledged.get(f"n{reached % 5}") == reached:
            reached += 1
        vault.seal()
    assert reached > (50 if thorough else 4), "too few steps were made for the kills to mean anything"
    assert [each.name for each in path.parent.iterdir() if each.suffix != ".db-journal"] == ["vault.db"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "what", ["put", "replace", "remove", "rotate", "anew", "rotate to another", "approval", "change"]
)
def test_kill_9_before_every_statement(path: Path, what: str) -> None:
    """Each statement of each write, and each commit, is the last thing that happens once."""
    vault = create(path)
    vault.put(account(), Secret("old"))
    vault.seal()
    kept = path.read_bytes()
    other = "another passphrase"
    jobs: dict[str, Callable[[Vault], object]] = {
        "put": lambda vault: vault.put(account(name="home"), Secret("new")),
        "replace": lambda vault: vault.put(account(), Secret("new"), replace=True),
        "remove": lambda vault: vault.remove("slack", "work"),
        "rotate": lambda vault: vault.rotate(),
        "anew": lambda vault: vault.rotate(anew=True),
        "rotate to another": lambda vault: vault.rotate(protector(other)),
        "approval": lambda vault: vault.check_approval(Secret("not the right one")),
        "change": lambda vault: vault.change_approval(Secret(APPROVAL), Secret("a new one, really"), cost=CHEAP),
    }
    survived, killed = False, 0
    for limit in range(1, 60):
        path.write_bytes(kept)

        def work(report: int, limit: int = limit) -> None:
            vault = reopen(path)
            seen = 0

            def count(*_: object) -> None:
                nonlocal seen
                seen += 1
                if seen == limit:
                    os.kill(os.getpid(), signal.SIGKILL)

            engine = vault._unsealed.file._engine  # type: ignore[union-attr]
            event.listen(engine, "before_cursor_execute", count)
            event.listen(engine, "commit", count)
            jobs[what](vault)
            os.write(report, b"done\n")

        pid, reading = in_child(work)
        _, status = os.waitpid(pid, 0)
        with os.fdopen(reading) as lines:
            survived = lines.read() == "done\n"
        killed += os.WIFSIGNALED(status)
        try:
            again = reopen(path)
        except Exception:
            assert what == "rotate to another"
            again = reopen(path, other)
        assert again.damage() == ()
        values = {record.account.name: secret_of(again, "slack", record.account.name) for record in again.records()}
        assert values in ({"work": b"old"}, {"work": b"new"}, {"work": b"old", "home": b"new"}, {})
        if not survived and what not in ("approval", "change"):
            assert values == {"work": b"old"}, "nothing had been committed"
        again.seal()
        if survived:
            break
    assert survived
    assert killed >= 3


def test_kill_9_while_it_is_made(path: Path, thorough: bool) -> None:
    """The file appears whole or not at all, and a next attempt works."""
    chance = random.Random(7)
    begun = time.monotonic()
    create(path).seal()
    usual = time.monotonic() - begun
    appeared, absent = 0, 0
    for _ in range(20):
        path.unlink(missing_ok=True)
        pid, reading = in_child(lambda report: create(path).seal())
        time.sleep(chance.uniform(0.0, usual * 6))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        try:
            reopen(path).seal()
            appeared += 1
        except VaultAbsent:
            absent += 1
            create(path).seal()
            reopen(path).seal()
            assert [each.name for each in path.parent.iterdir()] == ["vault.db"]
        if not thorough and appeared > 2 and absent > 1:
            break
    assert appeared > 0
    assert absent > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 KiB."""
    place = tmp_path / "small"
    place.mkdir(mode=0o700)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k,mode=0700", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("this user can't mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_leaves_the_old_state(small_disk: Path, tmp_path: Path) -> None:
    path = small_disk / "vault.db"
    vault = create(path)
    big = account(name="big", format="file")
    vault.put(account(), Secret("old"))
    with pytest.raises(VaultUnwritable) as caught:
        vault.put(big, Secret(b"x" * 900_000))
    assert "full" in caught.value.message
    assert "space" in caught.value.next_step
    assert [record.account.name for record in vault.records()] == ["work"]
    assert secret_of(vault) == b"old"

    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError) as full:
        while True:
            file.write(b"x" * 1000)
    assert full.value.errno == errno.ENOSPC
    for refused in (
        lambda: vault.put(account(), Secret("new"), replace=True),
        lambda: vault.rotate(),
        lambda: vault.rotate(protector("another passphrase")),
        lambda: vault.remove("slack", "work"),
        lambda: vault.check_approval(Secret(APPROVAL)),
        lambda: vault.flush_uses(),
    ):
        with pytest.raises(VaultUnwritable):
            refused()
        assert secret_of(vault) == b"old"
    vault.seal()  # even though the time of use can't be written
    assert vault.state == "sealed"
    with pytest.raises(VaultUnwritable):
        create(small_disk / "second.db")
    assert sorted(each.name for each in small_disk.iterdir()) == ["filler", "vault.db"]

    shutil.copy(path, tmp_path / "as-it-was")
    filler.unlink()
    again = reopen(path)
    assert secret_of(again) == b"old"
    again.rotate()
    again.put(account(), Secret("new"), replace=True)
    assert secret_of(reopen(path)) == b"new"


class Ring:
    """A keyring that is a dict: what is in it, by entry."""

    keyed_by: KeyedBy = "keyring"

    def __init__(self) -> None:
        self.entries: dict[str, Secret] = {}

    def establish(self) -> Wrapping:
        entry = os.urandom(16).hex()
        self.entries[entry] = new_key()
        return self.recall({"entry": entry})

    def recall(self, parameters: JsonObject) -> Wrapping:
        entry = str(parameters["entry"])
        key, discard = self.entries[entry], lambda: self.entries.pop(entry, None)
        return Wrapping(keyed_by="keyring", parameters={"entry": entry}, key=key, discard=discard)  # type: ignore[arg-type]

    def rests_on(self, matches: Callable[[Secret], bool]) -> bool:
        return False


def failing_after_commit(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None] = lambda: None) -> None:
    """The disk takes each transaction, and fails when the folder is synced: SQLite tells that as an error."""
    really = VaultFile.writing

    @contextmanager
    def writing(file: VaultFile) -> Iterator[Connection]:
        with really(file) as connection:
            yield connection
        then()
        raise VaultUnwritable("The disk failed to read or write.")

    monkeypatch.setattr(VaultFile, "writing", writing)


def unlocks(path: Path, ring: Ring) -> None:
    vault = Vault.open(path)
    vault.unlock(ring)
    assert secret_of(vault) == b"old"
    vault.seal()


def test_an_error_after_the_commit_doesnt_cost_the_only_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    vault = Vault.create(path, ring, Secret(APPROVAL), approval_cost=CHEAP)
    vault.put(account(), Secret("old"))
    with monkeypatch.context() as patched:
        failing_after_commit(patched)
        with pytest.raises(VaultUnwritable):
            vault.rotate(ring)
    assert len(ring.entries) == 2  # the old one opens what is there when a power cut takes the commit back
    vault.seal()
    unlocks(path, ring)


def test_a_key_that_may_be_in_use_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file is wrapped by can't be read after the error."""
    ring = Ring()
    vault = Vault.create(path, ring, Secret(APPROVAL), approval_cost=CHEAP)
    vault.put(account(), Secret("old"))
    with monkeypatch.context() as patched:
        failing_after_commit(patched, then=lambda: path.chmod(0o666))
        with pytest.raises(VaultUnwritable):
            vault.rotate(ring)
    path.chmod(0o600)
    vault.seal()
    unlocks(path, ring)


def test_a_key_that_nothing_is_wrapped_by_is_forgotten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    vault = Vault.create(path, ring, Secret(APPROVAL), approval_cost=CHEAP)
    vault.put(account(), Secret("old"))

    def full(*_: object, **__: object) -> None:
        raise VaultUnwritable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(Unsealed, "write", full)
        with pytest.raises(VaultUnwritable):
            vault.rotate(ring)
    assert len(ring.entries) == 1
    with pytest.raises(VaultExists):
        restore(path, keep(vault._unsealed, vault._clock()), ring, floor=0, by="me", at=vault._clock())  # type: ignore[arg-type]
    assert len(ring.entries) == 1
    vault.seal()
    unlocks(path, ring)


def test_a_new_vaults_key_stays_when_only_the_folder_couldnt_be_synced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    ring = Ring()
    with monkeypatch.context() as patched:
        patched.setattr("vault.atomic_file.sync_folder", failing)
        with pytest.raises(VaultUnwritable):
            Vault.create(path, ring, Secret(APPROVAL), approval_cost=CHEAP)
    vault = Vault.open(path)
    vault.unlock(ring)
    vault.put(account(), Secret("old"))
    kept = keep(vault._unsealed, vault._clock())  # type: ignore[arg-type]
    vault.seal()
    aside, new = path.with_name("aside"), Ring()
    with monkeypatch.context() as patched:
        placed = iter((None, failing))  # the name aside is synced, the new file's isn't

        def second(folder: Path) -> None:
            if (fails := next(placed)) is not None:
                fails(folder)

        patched.setattr("vault.atomic_file.sync_folder", second)
        with pytest.raises(VaultUnwritable):
            restore(path, kept, new, floor=0, by="me", at=vault._clock(), aside=aside)
    unlocks(path, new)


def test_a_file_that_is_locked_by_another_process(vault: Vault, path: Path) -> None:
    import sqlite3

    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(VaultUnwritable, match="Another process"):
            vault.put(account(), Secret("x"))
    finally:
        blocker.close()
    vault.put(account(), Secret("x"))
