"""A daemon whose surroundings are bad: its settings, its databases, its disk, its sockets, its vault, another daemon.

Each is one clear error with a next step and the exit status of README's table; what was there before is there after.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.unbroken import unbroken, well_said
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.journey import Journey, decide, problem, shell

pytestmark = pytest.mark.docker


def said_well(done: CompletedProcess[str], status: int, *words: str) -> None:
    told = done.stdout + done.stderr
    assert done.returncode == status, told
    assert "Traceback" not in told, told
    assert "unforeseen" not in told
    assert "defect" not in told
    assert len(done.stderr.strip().splitlines()) >= 2, f"no next step: {told}"
    for word in words:
        assert word in told, (word, told)


def put(daemon: Daemon) -> None:
    request = pb.VaultPutRequest(service="slack", secret=b"kept", passphrase=APPROVAL_PASSPHRASE)
    daemon.person("VaultPut", request)


def still_there(daemon: Daemon) -> None:
    """The account and the journal of before are there, and the log verifies."""
    accounts = daemon.person("VaultList", pb.VaultListRequest()).accounts
    assert [account.service for account in accounts] == ["slack"]
    unbroken(daemon)


# ---- settings


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[ask]\nsecond = 5\n", ("second", "Did you mean seconds")),
        ("[aks]\nseconds = 5\n", ("aks", "Did you mean ask")),
        ("[ask]\nseconds = 'long'\n", ("seconds", "whole number")),
        ("[ask]\nseconds = 0\n", ("seconds", "between")),
        ("[ask\n", ("TOML",)),
        ("\x00\xff", ("TOML",)),
        ("[sandbox]\nruntime = 'none'\n", ("runtime", "runc")),
        ("[model]\nname = 'x'\n", ("base_url",)),
        ("[[agent_socket]]\npath = 'relative'\n", ("absolute",)),
    ],
)
def test_settings(text: str, words: tuple[str, ...]) -> None:
    bad = Daemon(config=text)
    try:
        done = bad.goex("daemon", "run")
        said_well(done, 2, "config.toml", *words)
        status = bad.goex("daemon", "start")
        assert status.returncode in (2, 8)
        assert "config.toml" in status.stderr
        assert "Traceback" not in status.stderr
    finally:
        bad.close()


# ---- databases


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One with an account in its vault and an action in its journal; tests stop it, spoil something, and mend it."""
    with Daemon() as running:
        put(running)
        Journey(running, shell(Path("/nonexistent"), "true")).finished()
        yield running


def rubbish(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def noise(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[200 : len(data) : 3] = bytes(len(data[200 : len(data) : 3]))
    path.write_bytes(data)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        if path.name == "state.db":
            database.execute("update schema_version set version = 99")
        else:
            database.execute("pragma user_version = 99")
    database.close()


SPOILS: list[tuple[str, Callable[[Path], None]]] = [
    *(("vault.db", spoil) for spoil in (rubbish, folder_instead, newer)),
    *(("state.db", spoil) for spoil in (rubbish, noise, newer)),
    ("journal.head", rubbish),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "spoil"), SPOILS, ids=lambda part: part if isinstance(part, str) else part.__name__)
def test_a_spoilt_file(daemon: Daemon, tmp_path: Path, name: str, spoil: Callable[[Path], None]) -> None:
    daemon.stop()
    kept = tmp_path / "state"
    shutil.copytree(daemon.state_dir, kept)
    for file in (daemon.log, daemon.state_dir / "daemon.log"):
        file.unlink(missing_ok=True)
    spoil(daemon.state_dir / name)
    try:
        done = daemon.goex("vault", "unlock", stdin=f"{VAULT_PASSPHRASE}\n")  # starts the daemon, if it can be started
        # A daemon says itself what is wrong with its vault; with its log it doesn't start.
        vault = (10,) if spoil is newer else (1,)
        assert done.returncode in (vault if name == "vault.db" else (6, 7, 8)), f"nobody noticed: {done}"
        said_well(done, done.returncode)
        log = daemon.state_dir / "daemon.log"
        assert "Traceback" not in (log.read_text() if log.exists() else ""), log.read_text()
    finally:
        daemon.goex("daemon", "stop")
        shutil.rmtree(daemon.state_dir)
        shutil.copytree(kept, daemon.state_dir, symlinks=True)
        daemon.state_dir.chmod(0o700)
        daemon.start()
        daemon.unlock()
    still_there(daemon)


# ---- another daemon, stale sockets


def test_a_second_daemon_is_refused_and_the_first_unaffected(daemon: Daemon) -> None:
    pid = daemon.pid
    said_well(daemon.goex("daemon", "run"), 8, "runs already", str(pid), "daemon status")
    assert daemon.pid == pid
    assert daemon.person("Status", pb.StatusRequest()).pid == pid
    still_there(daemon)


def test_stale_sockets_are_replaced_and_other_things_are_not(daemon: Daemon) -> None:
    daemon.kill()
    assert daemon.user_socket.is_socket()
    daemon.start()
    daemon.unlock()
    daemon.stop()
    daemon.user_socket.write_text("somebody's")
    try:
        said_well(daemon.goex("daemon", "run"), 8, "user.sock", "Move it away")
        assert daemon.user_socket.read_text() == "somebody's"
    finally:
        daemon.user_socket.unlink()
        daemon.start()
        daemon.unlock()
    still_there(daemon)


# ---- its end


def test_what_runs_ends_and_what_is_asked_stays_open(daemon: Daemon, folder: Path) -> None:
    other = folder.with_name("other")  # what changes in a folder after it was shown is a reason to refuse
    other.mkdir()
    os.chown(other, folder.stat().st_uid, folder.stat().st_gid)
    waiting = Journey(daemon, shell(other, "echo later > later", detach=True))
    question = waiting.asked()
    running = Journey(daemon, shell(folder, "sleep 2; echo done > done", detach=True))
    decide(daemon, running.asked())
    while "running" not in running.states():
        running.until("state")
    os.kill(daemon.pid, signal.SIGTERM)
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began > 0.5, "it waited for what ran"
    assert (folder / "done").read_text() == "done\n"
    daemon.start()
    daemon.unlock()
    view = daemon.actions("Get", pb.ActionId(id=running.action_id), socket=daemon.user_socket)
    assert view.state == "done"
    assert [one.id for one in daemon.person("Approvals", pb.ApprovalsRequest()).approvals] == [question.id]
    follow = Journey(daemon, pb.ActionId(id=waiting.action_id), person=True)
    decide(daemon, question)
    assert follow.finished().action.state == "done"
    still_there(daemon)


# ---- the vault


def test_a_sealed_vault(daemon: Daemon, folder: Path) -> None:
    daemon.person("VaultSeal", pb.VaultSealRequest())
    try:
        said_well(daemon.goex("exec", "--shell", "true", "--folder", str(folder)), 7, "sealed", "goex vault unlock")
        assert daemon.goex("log", "--verify").returncode in (0, 7)
        said_well(daemon.goex("vault", "unlock", stdin="wrong\n"), 7, "passphrase")
    finally:
        daemon.unlock()
    still_there(daemon)


def test_no_vault(folder: Path) -> None:
    with Daemon(init=False) as empty:
        for command in (("exec", "--shell", "true", "--folder", str(folder)), ("vault", "unlock"), ("vault", "list")):
            said_well(empty.goex(*command, stdin="x\n"), 7, "goex vault init")
        assert empty.goex("daemon", "status").returncode == 0
        assert empty.goex("map", "send slack msg hi to #ops").returncode == 0
        assert "Traceback" not in empty.tail()


# ---- a full disk


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk(folder: Path) -> None:
    small = Daemon()
    state = small.state_dir.parent
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "none", str(state)]
    if subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode != 0:
        small.close()
        pytest.skip("mounting isn't permitted here")
    try:
        small.state_dir.mkdir(mode=0o700)
        with small:
            put(small)
            (folder / "precious").write_text("as it was")
            os.chown(folder / "precious", 65534, 65534)
            good = Journey(small, shell(folder, "echo 1 >> log"), person=True)
            assert good.approve().action.state == "done"
            asked = Journey(small, shell(folder, "rm precious"), person=True)
            question = asked.asked()
            fill(state / "filler")
            said_well(small.goex("exec", "--shell", "rm precious", "--folder", str(folder)), 8)
            with pytest.raises(grpc.RpcError) as caught:
                decide(small, question)
            well_said(problem(caught.value), 8)
            assert small.goex("log", "--limit", "5").returncode == 0
            assert (folder / "precious").read_text() == "as it was"
            with pytest.raises(grpc.RpcError) as caught:
                large = pb.VaultPutRequest(service="github", secret=b"x" * 50_000, passphrase=APPROVAL_PASSPHRASE)
                small.person("VaultPut", large)
            well_said(problem(caught.value), 8)
            small.kill()
            starting = small.goex("daemon", "start")
            assert "Traceback" not in starting.stdout + starting.stderr
            small.goex("daemon", "stop")

            (state / "filler").unlink()
            small.start()
            small.unlock()
            assert Journey(small, shell(folder, "echo 2 >> log"), person=True).approve().action.state == "done"
            assert (folder / "log").read_text() == "1\n2\n"
            assert (folder / "precious").read_text() == "as it was"
            still_there(small)
    finally:
        subprocess.run(["umount", "--lazy", str(state)], check=False)
        shutil.rmtree(small.home, ignore_errors=True)


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
