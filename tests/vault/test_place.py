"""The file's place: modes, owners, links, and what an unprivileged user can and can't do."""

from __future__ import annotations

import os
import stat
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import InvalidInput
from tests.vault.support import CHEAP, account, create, protector, reopen, secret_of
from vault.errors import VaultAbsent, VaultBroken, VaultExposed, VaultUnwritable
from vault.secret import Secret
from vault.store import Vault

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def as_nobody(work: Callable[[], None]) -> None:
    """Run `work` in a child as an unprivileged user; fails with the child's traceback."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as report:
        told = report.read()
    os.waitpid(pid, 0)
    assert not told, told


def test_modes_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "deep" / "state" / "vault.db"
        vault = create(path)
        vault.put(account(), Secret("x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_nlink == 1
    assert [each.name for each in path.parent.iterdir()] == ["vault.db"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666, 0o610])
def test_a_file_that_others_can_reach_is_refused(vault: Vault, path: Path, mode: int) -> None:
    vault.seal()
    path.chmod(mode)
    for attempt in (lambda: Vault.open(path), lambda: vault.unlock(protector()), lambda: vault.records()):
        with pytest.raises(VaultExposed) as caught:
            attempt()
        assert "chmod 600" in caught.value.next_step
    assert stat.S_IMODE(path.stat().st_mode) == mode, "it is refused, not mended in silence"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_folder_that_others_can_reach_is_refused(vault: Vault, path: Path, mode: int) -> None:
    vault.seal()
    path.parent.chmod(mode)
    with pytest.raises(VaultExposed) as caught:
        Vault.open(path)
    assert "chmod 700" in caught.value.next_step


def test_no_vault_is_made_in_a_folder_that_others_can_reach(path: Path) -> None:
    path.parent.chmod(0o755)
    with pytest.raises(VaultExposed):
        create(path)
    assert not list(path.parent.iterdir())


@needs_root
def test_another_users_file_is_refused(vault: Vault, path: Path) -> None:
    vault.seal()
    os.chown(path, 12345, -1)
    with pytest.raises(VaultExposed, match="another user"):
        Vault.open(path)


def test_links_and_folders_are_refused(vault: Vault, path: Path) -> None:
    vault.seal()
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(VaultBroken, match="regular"):
        Vault.open(link)
    with pytest.raises(VaultBroken, match="regular"):
        Vault.open(path.parent)
    with pytest.raises(VaultAbsent):
        Vault.open(path / "under-a-file")


def test_a_path_with_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "a ?b#c%20d'e" / "vault.db"
    create(path).put(account(), Secret("x"))
    assert secret_of(reopen(path)) == b"x"
    assert [each.name for each in path.parent.iterdir()] == ["vault.db"]


@needs_root
def test_an_unprivileged_user_makes_and_uses_one(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    tmp_path.chmod(0o711)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)

    def work() -> None:
        path = folder / "vault.db"
        vault = create(path)
        vault.put(account(), Secret("x"))
        vault.rotate()
        vault.seal()
        assert secret_of(reopen(path)) == b"x"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # Read-only, a write fails clearly, and the state stays.
        path.chmod(0o400)
        try:
            Vault.open(path)
        except VaultUnwritable as error:
            assert "chmod 600" in error.next_step
        else:
            raise AssertionError("a read-only vault was opened")
        path.chmod(0o600)
        vault = reopen(path)
        folder.chmod(0o500)
        try:
            vault.put(account(name="home"), Secret("y"))
        except VaultUnwritable as error:
            assert "intact" in error.message
        else:
            raise AssertionError("written without a rollback journal")
        try:
            create(folder / "second.db")
        except VaultUnwritable as error:
            assert "denied" in error.message
        else:
            raise AssertionError("made in a read-only folder")
        folder.chmod(0o700)
        vault.seal()
        assert secret_of(reopen(path)) == b"x"

    as_nobody(work)


@needs_root
def test_an_unprivileged_user_cant_read_another_users(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("x"))
    path.parent.parent.chmod(0o755)

    def work() -> None:
        for attempt in (lambda: path.open("rb"), lambda: list(path.parent.iterdir())):
            try:
                attempt()
            except PermissionError:
                continue
            raise AssertionError("it could be read")

    as_nobody(work)


def test_a_poor_approval_passphrase_leaves_no_file(path: Path) -> None:
    with pytest.raises(InvalidInput):
        Vault.create(path, protector(), Secret("short"), approval_cost=CHEAP)
    assert not list(path.parent.iterdir())
