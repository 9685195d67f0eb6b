"""The daemon seals by itself, says why, and stays sealed: real daemons, a real keyring, a real bus."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goex.config import Config
from goex.daemon import credential
from goex.daemon.app import App
from goex.daemon.credential import CredentialRefused, vault_passphrase
from goex.daemon.late_runtimes import LateRuntimes
from goex.engine.engine import Engine
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from tests.goex.daemon.vault_calls import call, status
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.passphrases import cheap_passphrases
from tests.support.waiting import until
from tests.vault.test_crash import in_child
from vault.secret import Secret


def why(daemon: Daemon) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(daemon.state_dir / "state.db")) as database:
        rows = database.execute("SELECT facts FROM journal WHERE kind = 'vault-seal' ORDER BY number").fetchall()
    return [(facts["why"], facts["by"]) for (text,) in rows for facts in [json.loads(text)]]


@pytest.mark.promise(34)
def test_idleness_seals_whoever_polls() -> None:
    """An agent that asks again and again, and a program of the person's user without a terminal, are no use."""
    with Daemon(config="[vault]\nseal_after = 3\n") as daemon:
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():
                daemon.actions("List", pb.ListRequest())
                daemon.actions("List", pb.ListRequest(), socket=daemon.user_socket)
                status(daemon)
                time.sleep(0.2)

        polling = threading.Thread(target=poll)
        polling.start()
        try:
            until(lambda: status(daemon).vault == "sealed")
        finally:
            stop.set()
            polling.join()
        assert status(daemon).vault_trouble == "it wasn't used for a while"
        assert status(daemon).sealing.startswith("after 3 s without use")
        assert why(daemon) == [("idle", "GoEx itself")]
        assert (daemon.state_dir / "sealed").stat().st_mode & 0o777 == 0o600


def test_the_person_at_a_terminal_keeps_it_open() -> None:
    """For longer than it stays open without anybody. One use takes a second or two, or several on a busy machine."""
    with Daemon(config="[vault]\nseal_after = 15\n") as daemon:
        begun, number = time.monotonic(), 0
        while time.monotonic() - begun < 20:
            number += 1
            with daemon.terminal("agents", "add", f"helper-{number}") as terminal:
                terminal.expect("Approval passphrase: ", seconds=300)
                terminal.type(APPROVAL_PASSPHRASE)
                terminal.wait()
            time.sleep(3)
        assert status(daemon).vault == "unsealed"
        assert why(daemon) == []


async def test_the_gateway_ends_with_the_keys_and_not_after_what_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran may take long to end: by then the vault may be unlocked again, and another action be served."""
    paths = Paths(config_dir=tmp_path / "config", state_dir=tmp_path / "state", run_dir=tmp_path / "run")
    paths.create()
    app = App(paths, Config(), lambda: None)
    ended: list[tuple[str, str]] = []

    async def cancel(engine: Engine, id: str, *, why: str) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        ended.append((id, app.vault_state.state))

    async def forget(runtimes: LateRuntimes) -> None:
        ended.append(("the gateway", app.vault_state.state))

    monkeypatch.setattr(Engine, "cancel", cancel)
    monkeypatch.setattr(LateRuntimes, "forget", forget)
    with cheap_passphrases():
        await app.vault_state.init("passphrase", Secret(b"a vault passphrase"), Secret(b"another passphrase"))
    monkeypatch.setattr(type(app.engine.core.actions), "in_states", lambda *_: [SimpleNamespace(id="ac-1")])
    await app.seal("asked")
    monkeypatch.undo()
    assert ended == [("ac-1", "unsealed"), ("the gateway", "sealed"), ("ac-1", "sealed")]
    await app.close()


def test_who_seals_is_in_the_log() -> None:
    with Daemon() as daemon:
        daemon.person("VaultSeal", pb.VaultSealRequest())
        (row,) = why(daemon)
        assert row[0] == "asked"
        assert row[1].startswith("user ")
        daemon.unlock()
        assert not (daemon.state_dir / "sealed").exists()


def test_nothing_is_lent_while_nothing_runs(daemon: Daemon) -> None:
    assert list(call(daemon, "Leases", vpb.LeasesRequest()).leases) == []
    daemon.person("VaultSeal", pb.VaultSealRequest())
    assert list(call(daemon, "Leases", vpb.LeasesRequest()).leases) == []
    daemon.unlock()


# ---- the keyring opens it at the start, unless it was sealed


RING = "gnome-keyring-daemon --foreground --components=secrets"
needs_gnome = pytest.mark.skipif(
    shutil.which("gnome-keyring-daemon") is None or shutil.which("dbus-daemon") is None,
    reason="gnome-keyring and dbus aren't installed",
)


@contextmanager
def session_with_keyring(folder: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """A session bus and an unlocked gnome-keyring; yields what finds them, and the keyring's process."""
    address = f"unix:path={folder}/session"
    (folder / "run").mkdir(mode=0o700)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "DBUS_SESSION_BUS_ADDRESS": address,
    }
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    bus = subprocess.Popen(["dbus-daemon", "--session", f"--address={address}", "--nofork", "--nopidfile"], **quiet)
    until(lambda: (folder / "session").exists())
    ring = subprocess.Popen([*RING.split(), "--unlock"], env=env, stdin=subprocess.PIPE, **quiet)
    assert ring.stdin is not None
    ring.stdin.write(b"a login password")
    ring.stdin.close()
    time.sleep(1)
    try:
        yield env, ring
    finally:
        for process in (ring, bus):
            process.kill()
            process.wait()


@pytest.mark.promise(34)
@needs_gnome
def test_a_keyring_opens_it_at_the_start_and_not_after_it_was_sealed(tmp_path: Path) -> None:
    with session_with_keyring(tmp_path) as (env, _):
        more = {"DBUS_SESSION_BUS_ADDRESS": env["DBUS_SESSION_BUS_ADDRESS"]}
        more["PYTHON_KEYRING_BACKEND"] = "keyring.backends.SecretService.Keyring"
        with Daemon(env=more, init=False) as daemon:
            daemon.person("VaultInit", pb.VaultInitRequest(keyed_by="keyring", approval_passphrase=APPROVAL_PASSPHRASE))
            daemon.restart(unlock=False)
            until(lambda: status(daemon).vault == "unsealed")
            daemon.person("VaultSeal", pb.VaultSealRequest())
            for end in (daemon.stop, daemon.kill):  # an orderly end, and a crash
                end()
                daemon.start()
                until(lambda: "the vault stays sealed until you run goex vault unlock" in daemon.tail())
                assert status(daemon).vault == "sealed"
                assert status(daemon).vault_trouble == "you asked for it"
            daemon.person("VaultUnlock", pb.VaultUnlockRequest())
            daemon.restart(unlock=False)
            until(lambda: status(daemon).vault == "unsealed")

            # To a passphrase, and back.
            steps = call(
                daemon,
                "Rotate",
                vpb.RotateRequest(
                    keyed_by="passphrase", passphrase=VAULT_PASSPHRASE, approval_passphrase=APPROVAL_PASSPHRASE
                ),
            )
            assert steps[-1].done.keyed_by == "passphrase"
            daemon.restart()
            steps = call(
                daemon,
                "Rotate",
                vpb.RotateRequest(
                    keyed_by="keyring",
                    current_passphrase=VAULT_PASSPHRASE,
                    approval_passphrase=APPROVAL_PASSPHRASE,
                ),
            )
            assert steps[-1].done.keyed_by == "keyring"
            daemon.restart(unlock=False)
            until(lambda: status(daemon).vault == "unsealed")


@needs_gnome
@pytest.mark.thorough  # the keyring has half a minute to answer
def test_a_keyring_that_stops_answering_leaves_it_sealed_and_is_named(tmp_path: Path) -> None:
    with session_with_keyring(tmp_path) as (env, ring):
        more = {"DBUS_SESSION_BUS_ADDRESS": env["DBUS_SESSION_BUS_ADDRESS"]}
        more["PYTHON_KEYRING_BACKEND"] = "keyring.backends.SecretService.Keyring"
        with Daemon(env=more, init=False) as daemon:
            daemon.person("VaultInit", pb.VaultInitRequest(keyed_by="keyring", approval_passphrase=APPROVAL_PASSPHRASE))
            daemon.stop()
            os.kill(ring.pid, 19)
            daemon.start()
            assert status(daemon).vault == "sealed"
            until(lambda: "didn't answer within" in daemon.tail(), seconds=60.0)
            os.kill(ring.pid, 18)
            daemon.person("VaultUnlock", pb.VaultUnlockRequest())
            assert status(daemon).vault == "unsealed"


# ---- credentials


@pytest.mark.parametrize(
    ("mode", "good"),
    [(0o400, True), (0o600, True), (0o404, False), (0o440, None), (0o460, False), (0o420, False), (0o644, False)],
)
def test_who_may_reach_a_credential(tmp_path: Path, mode: int, good: bool | None) -> None:
    file = tmp_path / credential.NAME
    file.write_bytes(b"four words in it\n")
    file.chmod(mode)
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    if good is None:  # root's own group, which systemd's access list shows as
        good = os.geteuid() == 0
    if good:
        found = vault_passphrase(env)
        assert found is not None
        assert found.reveal() == b"four words in it"
    else:
        with pytest.raises(CredentialRefused, match="others can reach it"):
            vault_passphrase(env)


def test_what_is_no_credential(tmp_path: Path) -> None:
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert vault_passphrase({}) is None
    assert vault_passphrase(env) is None
    file = tmp_path / credential.NAME
    for data in (b"", b"\n", b"x" * 5000):
        file.write_bytes(data)
        file.chmod(0o600)
        with pytest.raises(CredentialRefused, match="empty, or longer"):
            vault_passphrase(env)
        file.unlink()
    (tmp_path / "real").write_bytes(b"four words in it")
    file.symlink_to(tmp_path / "real")
    with pytest.raises(CredentialRefused, match="can't be opened"):
        vault_passphrase(env)
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(CredentialRefused, match="regular file"):
        vault_passphrase(env)
    with pytest.raises(CredentialRefused, match="absolute"):
        vault_passphrase({"CREDENTIALS_DIRECTORY": "relative"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_ordinary_user_takes_roots_credential_and_its_own_and_nobody_elses(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o005)

    def taken(owner: int, group: int, mode: int) -> str:
        folder = tmp_path / f"{owner}-{group}-{mode:o}"
        folder.mkdir()
        file = folder / credential.NAME
        file.write_bytes(b"four words in it")
        os.chown(file, owner, group)
        file.chmod(mode)

        def work(report: int) -> None:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                found = vault_passphrase({"CREDENTIALS_DIRECTORY": str(folder)})
                os.write(report, b"taken" if found else b"none")
            except CredentialRefused as error:
                os.write(report, error.message.encode())

        pid, reading = in_child(work)
        os.waitpid(pid, 0)
        with os.fdopen(reading) as said:
            return said.read()

    assert taken(65534, 65534, 0o400) == "taken"
    assert "others can reach it" in taken(65534, 65534, 0o440)
    assert "another user" in taken(65533, 65534, 0o440)
    assert "others can reach it" in taken(0, 0, 0o444)
    assert "can't be opened" in taken(0, 0, 0o400)
