"""The vault of a running daemon: its keys change hands, it goes into a file and comes back, and nothing goes back
silently."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from tests.goex.daemon.vault_calls import accounts, call, put, refused, rotate, status
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, VAULT_PASSPHRASE, Daemon
from tests.support.journey import Journey, shell, undo
from tests.support.terminal import Terminal
from tests.support.waiting import until
from vault.backup import open_backup
from vault.keys import PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

BACKUP = "words for the backup alone"
NEW = "another passphrase of the vault"


def rows(daemon: Daemon, kind: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(daemon.state_dir / "state.db")) as database:
        found = database.execute("SELECT facts FROM journal WHERE kind = ? ORDER BY number", (kind,)).fetchall()
    return [json.loads(row[0]) for row in found]


def back_up(daemon: Daemon, path: Path, **facts: Any) -> vpb.BackupReply:
    given = {"path": str(path), "passphrase": BACKUP, "approval_passphrase": APPROVAL_PASSPHRASE, **facts}
    return call(daemon, "Backup", vpb.BackupRequest(**given))


def restore(daemon: Daemon, path: Path, **facts: Any) -> vpb.RestoreReply:
    given = {
        "path": str(path),
        "backup_passphrase": BACKUP,
        "keyed_by": "passphrase",
        "passphrase": NEW,
        "approval_passphrase": APPROVAL_PASSPHRASE,
        **facts,
    }
    return call(daemon, "Restore", vpb.RestoreRequest(**given))


def unlock(daemon: Daemon, passphrase: str) -> pb.VaultStatus:
    return daemon.person("VaultUnlock", pb.VaultUnlockRequest(passphrase=passphrase))


def files(daemon: Daemon) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in daemon.state_dir.glob("*vault.db*")}


@pytest.fixture
def own() -> Iterator[Daemon]:
    """A daemon for one test, with two accounts."""
    with Daemon() as made:
        put(made, "work")
        put(made, "home")
        yield made


# ---- who may


@pytest.mark.parametrize(
    "request_",
    [
        ("Rotate", vpb.RotateRequest()),
        ("Rotate", vpb.RotateRequest(anew=True)),
        ("Backup", vpb.BackupRequest(path="/tmp/never-written.goex", passphrase=BACKUP)),
    ],
    ids=["rotate", "anew", "backup"],
)
def test_the_vaults_keys_need_presence(daemon: Daemon, request_: tuple[str, Any]) -> None:
    method, request = request_
    assert refused(lambda: call(daemon, method, request)).code == "presence"
    request.approval_passphrase = "not the right one"
    assert refused(lambda: call(daemon, method, request)).code in ("presence", "approval-backoff")
    assert not Path("/tmp/never-written.goex").exists()


@pytest.mark.parametrize("method", list(vpb.DESCRIPTOR.services_by_name["Vault"].methods_by_name))
def test_no_call_of_it_is_on_the_agents_socket(daemon: Daemon, method: str) -> None:
    described = vpb.DESCRIPTOR.services_by_name["Vault"].methods_by_name[method]
    request = getattr(vpb, described.input_type.name)()
    with pytest.raises(grpc.RpcError) as caught:
        call(daemon, method, request, socket="agent")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


# ---- keys


def test_the_passphrase_is_changed_by_who_knows_it(own: Daemon) -> None:
    wrong = refused(lambda: rotate(own, keyed_by="passphrase", passphrase=NEW, current_passphrase="not it"))
    assert wrong.code == "wrong-passphrase"
    assert refused(lambda: rotate(own, keyed_by="passphrase", passphrase=NEW)).code == "invalid"
    same = refused(
        lambda: rotate(own, keyed_by="passphrase", passphrase=APPROVAL_PASSPHRASE, current_passphrase=VAULT_PASSPHRASE)
    )
    assert "another one" in same.message
    own.person("VaultSeal", pb.VaultSealRequest())
    unlock(own, VAULT_PASSPHRASE)  # nothing of that changed it
    done = rotate(own, keyed_by="passphrase", passphrase=NEW, current_passphrase=VAULT_PASSPHRASE)
    assert done[-1].done.state == "unsealed"
    own.restart(unlock=False)
    assert refused(lambda: unlock(own, VAULT_PASSPHRASE)).code == "wrong-passphrase"
    unlock(own, NEW)
    assert sorted(accounts(own)) == ["home", "work"]
    assert [row["passphrase"] for row in rows(own, "vault-rotate")] == [True]


def test_rotating_alone_keeps_the_passphrase(own: Daemon) -> None:
    assert rotate(own)[-1].done.records == 2
    own.restart()
    assert sorted(accounts(own)) == ["home", "work"]


def test_a_keyring_that_isnt_there_changes_nothing(own: Daemon) -> None:
    before = files(own)["vault.db"]
    problem = refused(lambda: rotate(own, keyed_by="keyring", current_passphrase=VAULT_PASSPHRASE))
    assert problem.code == "keyring-absent"
    own.restart()
    assert status(own).keyed_by == "passphrase"
    assert before


def test_sealed_anew_what_undo_needs_still_undoes(own: Daemon, folder: Path) -> None:
    (folder / "kept.txt").write_text("as it was")
    (folder / "kept.txt").chmod(0o666)
    done = Journey(own, shell(folder, "echo changed > kept.txt"), person=True).approve()
    with closing(sqlite3.connect(own.state_dir / "state.db")) as database:
        before = dict(database.execute("SELECT action_id || '/' || name, sealed FROM records").fetchall())
    steps = rotate(own, anew=True)
    told = {step.progress.of: (step.progress.done, step.progress.total) for step in steps if step.HasField("progress")}
    assert told["records"] == (2, 2)
    assert told["payloads"] == (len(before), len(before))
    with closing(sqlite3.connect(own.state_dir / "state.db")) as database:
        after = dict(database.execute("SELECT action_id || '/' || name, sealed FROM records").fetchall())
    assert before
    assert after.keys() == before.keys()
    assert not any(after[name] == before[name] for name in before)
    own.restart()
    back = Journey(own, undo(done.action.id), person=True)
    assert back.approve().action.state == "done"
    assert (folder / "kept.txt").read_text() == "as it was"
    assert own.person("VerifyLog", pb.VerifyLogRequest()).good


def test_the_approval_passphrase_is_changed_by_who_knows_it(own: Daemon) -> None:
    changed = "it is me, and nobody else"
    given = {"current": "surely not this", "passphrase": changed}
    assert refused(lambda: call(own, "ChangeApproval", vpb.ChangeApprovalRequest(**given))).code == "presence"
    given["current"] = APPROVAL_PASSPHRASE
    same = refused(
        lambda: call(own, "ChangeApproval", vpb.ChangeApprovalRequest(**{**given, "passphrase": VAULT_PASSPHRASE}))
    )
    assert "another one" in same.message
    call(own, "ChangeApproval", vpb.ChangeApprovalRequest(**given))
    assert refused(lambda: put(own, "third")).code == "presence"
    own.person("AddAgent", pb.AddAgentRequest(name="later", passphrase=changed))
    assert len(rows(own, "approval-change")) == 1


# ---- backups


def test_a_backup_is_one_closed_file_that_overwrites_nothing(own: Daemon, tmp_path: Path) -> None:
    place = tmp_path / "v.goex"
    reply = back_up(own, place)
    assert (reply.path, reply.bytes, reply.records) == (str(place), place.stat().st_size, 2)
    assert place.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["v.goex"]
    before = place.read_bytes()
    assert "there already" in refused(lambda: back_up(own, place)).message
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert "there already" in refused(lambda: back_up(own, link)).message
    assert not (tmp_path / "elsewhere").exists()
    assert refused(lambda: back_up(own, tmp_path / "no" / "folder")).code == "unavailable"
    assert refused(lambda: back_up(own, Path("relative"))).code == "invalid"
    assert refused(lambda: back_up(own, tmp_path / "x", passphrase=APPROVAL_PASSPHRASE)).code == "invalid"
    assert place.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "v.goex"]
    (noted,) = rows(own, "vault-backup")
    assert noted["path"] == str(place)
    assert noted["records"] == 2
    assert BACKUP not in json.dumps(noted)


def test_it_comes_back_on_another_machine(own: Daemon, tmp_path: Path) -> None:
    back_up(own, tmp_path / "v.goex")
    with Daemon(init=False) as other:
        wrong = refused(lambda: restore(other, tmp_path / "v.goex", approval_passphrase="not the person"))
        assert wrong.code == "presence"
        assert refused(lambda: restore(other, tmp_path / "v.goex", approval_passphrase="")).code == "presence"
        assert refused(lambda: restore(other, tmp_path / "v.goex", keyed_by="keyring")).code == "keyring-absent"
        assert status(other).vault == "absent"
        assert not files(other)
        reply = restore(other, tmp_path / "v.goex")
        assert (reply.vault.state, reply.vault.records, reply.kept_aside) == ("unsealed", 2, "")
        put(other, "third")
        other.restart(unlock=False)
        unlock(other, NEW)
        assert sorted(accounts(other)) == ["home", "third", "work"]
        (row,) = rows(other, "vault-restore")
        assert row["by"].startswith("user ")
        assert other.person("VerifyLog", pb.VerifyLogRequest()).good


@pytest.mark.promise(24, 30)
def test_restoring_over_the_vault_is_noted_and_nothing_of_before_passes(own: Daemon, tmp_path: Path) -> None:
    back_up(own, tmp_path / "v.goex")
    for name in ("third", "fourth", "fifth"):  # the file goes far beyond what the backup knew
        put(own, name)
    own.stop()
    before = (own.state_dir / "vault.db").read_bytes()
    own.start()
    own.unlock()
    assert refused(lambda: restore(own, tmp_path / "v.goex")).code == "vault-exists"
    assert refused(lambda: restore(own, tmp_path / "v.goex", replace=True, approval_passphrase="")).code == "presence"
    for bad in ({"keyed_by": "keyring"}, {"passphrase": "short"}, {"passphrase": APPROVAL_PASSPHRASE}):
        refused(lambda bad=bad: restore(own, tmp_path / "v.goex", replace=True, **bad))
        assert status(own).vault == "unsealed"  # what can't be done isn't begun
    own.add_agent("scout")
    reads = [pb.Allowance(service="slack", method="conversations.history", account=name) for name in ("home", "third")]
    task = pb.Task(title="Read", allows=reads, agent="scout")
    assert Journey(own, pb.ExecuteRequest(task=task), person=True).approve().action.state == "done"
    reply = restore(own, tmp_path / "v.goex", replace=True)
    grants = own.person("Grants", pb.GrantsRequest()).grants
    assert [one.account for one in grants if one.agent == "scout"] == ["home"]  # the other isn't in the backup
    aside = Path(reply.kept_aside)
    assert aside.stat().st_mode & 0o777 == 0o600
    assert sorted(accounts(own)) == ["home", "work"]
    for old in (before, aside.read_bytes()):
        own.stop()
        kept = (own.state_dir / "vault.db").read_bytes()
        (own.state_dir / "vault.db").write_bytes(old)
        own.start()
        assert "put back" in refused(own.unlock).message
        own.stop()
        (own.state_dir / "vault.db").write_bytes(kept)
        own.start()
        unlock(own, NEW)
    assert len(rows(own, "vault-restore")) == 1
    # The same backup once more: a second deed, with a row of its own.
    own.person("VaultSeal", pb.VaultSealRequest())
    restore(own, tmp_path / "v.goex", replace=True)
    assert [row["generation"] for row in rows(own, "vault-restore")][1] > rows(own, "vault-restore")[0]["generation"]


def test_a_restored_file_of_before_is_not_taken_again(own: Daemon, tmp_path: Path) -> None:
    """A file that once came from a backup says so itself; put back later, that doesn't help it."""
    back_up(own, tmp_path / "v.goex")
    restore(own, tmp_path / "v.goex", replace=True)
    own.stop()
    first = (own.state_dir / "vault.db").read_bytes()
    own.start()
    unlock(own, NEW)
    restore(own, tmp_path / "v.goex", replace=True)
    own.stop()
    (own.state_dir / "vault.db").write_bytes(first)
    own.start()
    assert "put back" in refused(lambda: unlock(own, NEW)).message
    assert len(rows(own, "vault-restore")) == 2


def test_a_kill_between_the_file_and_the_log_loses_neither(own: Daemon, tmp_path: Path) -> None:
    """The vault's file is in place, its row isn't written: it is noted when it is opened, once."""
    back_up(own, tmp_path / "v.goex")
    own.stop()
    path = own.state_dir / "vault.db"
    kept = open_backup((tmp_path / "v.goex").read_bytes(), Secret(BACKUP))
    floor = Vault.open(path).generation
    protector = PassphraseProtector(Secret(NEW))
    Vault.restore(path, kept, protector, floor=floor, by="user 0", aside=own.state_dir / "aside.db")
    for _ in range(2):
        own.start()
        unlock(own, NEW)
        own.stop()
        assert [row["by"] for row in rows(own, "vault-restore")] == ["user 0"]


def test_a_backup_of_another_vault_does_not_get_this_log(own: Daemon, tmp_path: Path) -> None:
    back_up(own, tmp_path / "v.goex")
    with Daemon() as other:
        for sealed in (False, True):
            if sealed:
                other.restart(unlock=False)
            before = files(other)
            problem = refused(lambda: restore(other, tmp_path / "v.goex", replace=True))
            assert "belongs to another vault" in problem.message
            assert files(other).keys() == before.keys()
        other.unlock()
        assert accounts(other) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: data[:-5], "backup-cut"),
        (lambda data: data[:100] + bytes([data[100] ^ 4]) + data[101:], "backup-broken"),
        (lambda data: b"x" * 500, "backup-broken"),
        (lambda data: b"", "backup-broken"),
    ],
    ids=["cut", "flipped", "something else", "empty"],
)
def test_a_bad_backup_changes_nothing(own: Daemon, tmp_path: Path, change: Any, code: str) -> None:
    back_up(own, tmp_path / "v.goex")
    bad = tmp_path / "bad.goex"
    bad.write_bytes(change((tmp_path / "v.goex").read_bytes()))
    before = {name: len(data) for name, data in files(own).items()}
    assert refused(lambda: restore(own, bad, replace=True)).code == code
    assert status(own).vault == "unsealed"
    assert sorted(accounts(own)) == ["home", "work"]
    assert files(own).keys() == before.keys()
    assert rows(own, "vault-restore") == []


def test_a_wrong_backup_passphrase_changes_nothing(own: Daemon, tmp_path: Path) -> None:
    back_up(own, tmp_path / "v.goex")
    problem = refused(lambda: restore(own, tmp_path / "v.goex", replace=True, backup_passphrase="not these words"))
    assert (problem.code, "this backup" in problem.message) == ("wrong-passphrase", True)
    missing = refused(lambda: restore(own, tmp_path / "nothing", replace=True))
    assert "can't be read" in missing.message
    os.mkfifo(tmp_path / "pipe")
    assert "isn't a backup" in refused(lambda: restore(own, tmp_path / "pipe", replace=True)).message
    assert sorted(accounts(own)) == ["home", "work"]


@pytest.mark.promise(31)
def test_a_broken_vault_is_said_and_replaced_from_a_backup(own: Daemon, tmp_path: Path) -> None:
    back_up(own, tmp_path / "v.goex")
    own.stop()
    (own.state_dir / "vault.db").write_bytes(b"no vault any more" * 100)
    own.start()
    assert status(own).vault == "broken"
    assert "can't read the vault's file" in status(own).vault_trouble
    assert refused(own.unlock).code == "vault-broken"
    assert refused(lambda: put(own, "x")).code in ("vault-broken", "presence")
    reply = restore(own, tmp_path / "v.goex", replace=True)
    assert Path(reply.kept_aside).read_bytes() == b"no vault any more" * 100
    assert sorted(accounts(own)) == ["home", "work"]
    own.restart(unlock=False)
    unlock(own, NEW)


# ---- where nobody types


def test_a_passphrase_from_a_descriptor(own: Daemon, tmp_path: Path) -> None:
    own.restart(unlock=False)

    def goex(*arguments: str, given: str) -> subprocess.CompletedProcess[str]:
        reading, writing = os.pipe()
        os.write(writing, given.encode())
        os.close(writing)
        try:
            return subprocess.run(
                [str(GOEX), *arguments, "--passphrase-fd", str(reading)],
                env=own.env,
                stdin=subprocess.DEVNULL,
                pass_fds=(reading,),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        finally:
            os.close(reading)

    assert goex("vault", "unlock", given="not it at all\n").returncode != 0
    assert status(own).vault == "sealed"
    done = goex("vault", "unlock", given=VAULT_PASSPHRASE + "\n")
    assert (done.returncode, status(own).vault) == (0, "unsealed"), done.stderr
    closed = own.goex("vault", "unlock", "--passphrase-fd", "77")
    assert (closed.returncode, "descriptor 77" in closed.stderr) == (2, True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o644, 0o604])
def test_a_credential_opens_the_vault_at_the_start(own: Daemon, tmp_path: Path, mode: int) -> None:
    own.stop()
    credential = tmp_path / "goex.vault-passphrase"
    credential.write_text(VAULT_PASSPHRASE + "\n")
    credential.chmod(mode)
    own.env["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    own.start()
    # Root's file whose group may read is what systemd makes with an access list; then root's group reads it, no other.
    good = mode in (0o400, 0o600) or (mode == 0o440 and os.geteuid() == 0)
    until(lambda: status(own).vault == "unsealed" if good else "others can reach it" in own.tail())
    assert status(own).vault == ("unsealed" if good else "sealed")
    assert VAULT_PASSPHRASE not in own.tail()


def test_an_ordinary_variable_opens_nothing(own: Daemon) -> None:
    own.stop()
    own.env |= dict.fromkeys(("GOEX_PASSPHRASE", "GOEX_VAULT_PASSPHRASE", "goex.vault-passphrase"), VAULT_PASSPHRASE)
    own.start()
    assert status(own).vault == "sealed"


# ---- at a terminal


def test_the_approval_passphrase_is_changed_at_a_terminal_and_forgotten_there(own: Daemon) -> None:
    changed = "it is me, and nobody else"
    with own.terminal("vault", "approval") as terminal:
        terminal.expect("Present approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect(r"New approval passphrase [^:]*: ")
        terminal.type(changed)
        terminal.expect("The same again: ")
        terminal.type(changed)
        terminal.wait()
        assert "was changed" in terminal.text
        assert changed not in terminal.text
    own.person("AddAgent", pb.AddAgentRequest(name="later", passphrase=changed))


@pytest.mark.promise(4)
def test_a_backup_and_new_keys_ask_for_presence_of_their_own(own: Daemon, tmp_path: Path) -> None:
    """Typed a moment ago on this very terminal, for something else: who was let do that isn't given all secrets."""
    script = (
        f"{GOEX} agents add one >/dev/null; {GOEX} agents add two >/dev/null; echo added; "
        f"{GOEX} vault rotate >/dev/null; {GOEX} vault backup {tmp_path / 'v.goex'}"
    )
    with Terminal(["sh", "-c", script], env=own.env, cwd=own.home) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        found = terminal.expect("added|Approval passphrase: ")
        assert found[0] == "added"  # the second one was remembered: the control
        found = terminal.expect("Approval passphrase: |Backup passphrase")
        assert found[0] == "Approval passphrase: "
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect("Backup passphrase")
        terminal.type(BACKUP)
        terminal.expect("The same again: ")
        terminal.type(BACKUP)
        found = terminal.expect("Approval passphrase: |read back and opened")
        assert found[0] == "Approval passphrase: "
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.wait()
        assert "read back and opened" in terminal.text
        assert BACKUP not in terminal.text
    assert (tmp_path / "v.goex").stat().st_mode & 0o777 == 0o600


@pytest.mark.promise(4)
def test_presence_is_forgotten_when_it_is_sealed(own: Daemon) -> None:
    """Typed a moment ago on this very terminal: after sealing it is asked for again."""
    script = (
        f"{GOEX} agents add one >/dev/null; {GOEX} agents add two >/dev/null; echo added; "
        f"{GOEX} vault seal >/dev/null; {GOEX} vault unlock; {GOEX} agents add three"
    )
    with Terminal(["sh", "-c", script], env=own.env, cwd=own.home) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        found = terminal.expect("added|Approval passphrase: ")
        assert found[0] == "added"  # the second one was remembered: the control
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.wait()
