"""`[ask] presence = "passkey"`: whoever knows both passphrases and can write every file still needs a passkey."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import goex.daemon
from goex.daemon import webauthn
from goex.daemon.person_context import PersonContext, PresenceDue
from goex.daemon.waiting_calls import PasskeyDue
from goex.engine.peers import Peer, Presence, Terminal
from goex.rpc import databases_pb2 as db
from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from goex.rpc import rules_pb2 as rules
from goex.rpc import vault_pb2 as vpb
from tests.support.authenticator import Authenticator, Page
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.journey import problem

REQUIRED = '[ask]\npresence = "passkey"\n'


def call(daemon: Daemon, path: str, request: Any) -> Any:
    """One call on user.sock, of whatever kind, by its path."""
    modules = (pb, ppb, vpb, rules, db)
    service, method = path.split("/")
    described = next(
        module.DESCRIPTOR.services_by_name[service] for module in modules
        if service in module.DESCRIPTOR.services_by_name
    ).methods_by_name[method]  # fmt: skip
    reply = next(getattr(module, described.output_type.name) for module in modules
                 if hasattr(module, described.output_type.name))  # fmt: skip
    channel = daemon.channel(daemon.user_socket)
    kind = channel.unary_stream if described.server_streaming else channel.unary_unary
    done = kind(
        f"/goex.v1.{path}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )(request, timeout=300)
    return list(done) if described.server_streaming else done


def refused(work: Callable[[], Any]) -> pb.Problem:
    with pytest.raises(grpc.RpcError) as caught:
        work()
    return problem(caught.value)


@contextmanager
def running() -> Iterator[tuple[Daemon, Page, Authenticator]]:
    """A daemon that wants a passkey, and has one."""
    with Daemon(config=REQUIRED) as daemon:
        page, key = Page(daemon), Authenticator()
        page.add(key)
        yield daemon, page, key


@pytest.fixture(scope="module")
def required() -> Iterator[tuple[Daemon, Page, Authenticator]]:
    """One for all that leave its passkeys as they are."""
    with running() as made:
        yield made


@pytest.fixture
def own() -> Iterator[tuple[Daemon, Page, Authenticator]]:
    """One for a test alone."""
    with running() as made:
        yield made


FILES = [rules.RuleFile(name="mine.cedar", text='@id("all")\npermit(principal, action, resource);\n')]
KEYLOGGED: dict[str, Any] = {
    "Person/AddAgent": pb.AddAgentRequest(name="evil"),
    "Person/Present": pb.PresentRequest(),
    "Person/VaultPut": pb.VaultPutRequest(service="slack", account="evil", secret=b"xoxb-evil-token-000"),
    "Rules/ApplyRules": rules.ApplyRulesRequest(files=FILES),
    "Rules/WakeAgent": rules.WakeAgentRequest(agent="evil"),
    "Vault/Backup": vpb.BackupRequest(path="/tmp/never", passphrase="words of the backup"),
    "Vault/Rotate": vpb.RotateRequest(),
    "Vault/ChangeApproval": vpb.ChangeApprovalRequest(current=APPROVAL_PASSPHRASE, passphrase="quite another one"),
}


@pytest.mark.promise(89)
@pytest.mark.parametrize("path", KEYLOGGED)
def test_the_passphrase_does_nothing_any_more(required: tuple[Daemon, Page, Authenticator], path: str) -> None:
    daemon = required[0]
    request = type(KEYLOGGED[path])()
    request.CopyFrom(KEYLOGGED[path])
    for name in ("passphrase", "approval_passphrase"):
        if name in request.DESCRIPTOR.fields_by_name and not getattr(request, name):
            setattr(request, name, APPROVAL_PASSPHRASE)
    found = refused(lambda: call(daemon, path, request))
    assert found.code == "passkey", found
    assert "goex web" in found.next_step
    if path == "Rules/ApplyRules":
        assert not call(daemon, "Rules/InForce", rules.InForceRequest()).applied


@pytest.mark.promise(89)
def test_the_control_without_the_setting() -> None:
    with Daemon() as daemon:
        page, key = Page(daemon), Authenticator()
        page.add(key)
        assert daemon.add_agent("mine")
        put = KEYLOGGED["Person/VaultPut"]
        put.passphrase = APPROVAL_PASSPHRASE
        assert call(daemon, "Person/VaultPut", put).account == "evil"


@pytest.mark.promise(89)
def test_a_call_that_waits_is_let_through_once_when_a_passkey_confirms_it(
    required: tuple[Daemon, Page, Authenticator],
) -> None:
    daemon, page, key = required
    request = pb.AddAgentRequest(name="mine")
    found = refused(lambda: daemon.person("AddAgent", request))
    waiting = page.list().waiting[-1]
    assert tuple(found.details) == (waiting.id,)
    assert (waiting.what, waiting.call) == ("Naming an agent", "AddAgent")
    assert '"mine"' in waiting.request_json
    page.confirm(waiting.id, key)
    assert waiting.id not in [one.id for one in page.list().waiting]
    other = pb.AddAgentRequest(name="evil")
    assert refused(lambda: daemon.person("AddAgent", other)).code == "passkey"  # it was for the other
    done = daemon.goex("agents", "add", "mine")
    assert "passkey" in done.stderr and done.returncode != 0  # and for the process that asked
    assert daemon.person("AddAgent", request).token
    daemon.person("RemoveAgent", pb.RemoveAgentRequest(name="mine"))
    assert refused(lambda: daemon.person("AddAgent", request)).code == "passkey"  # once
    rows = daemon.person("Log", pb.LogRequest(limit=30)).rows
    assert "presence" in [row.kind for row in rows]
    assert daemon.person("VerifyLog", pb.VerifyLogRequest()).good


@pytest.mark.promise(89)
def test_a_secret_isnt_shown_with_what_waits(required: tuple[Daemon, Page, Authenticator]) -> None:
    daemon, page, _ = required
    refused(lambda: call(daemon, "Person/VaultPut", KEYLOGGED["Person/VaultPut"]))
    shown = next(one.request_json for one in page.list().waiting if one.call == "VaultPut")
    assert "slack" in shown
    assert "xoxb" not in shown and "eG94Y" not in shown


@pytest.mark.promise(89)
def test_neither_the_approval_passphrase_nor_a_password_in_a_url_is_shown(
    required: tuple[Daemon, Page, Authenticator],
) -> None:
    daemon, page, _ = required
    for path, request in (
        ("Vault/ChangeApproval", KEYLOGGED["Vault/ChangeApproval"]),
        ("Databases/AddDatabase", db.AddDatabaseRequest(name="shop", url="postgresql://u:hunter2@127.0.0.1/shop")),
    ):
        assert refused(lambda path=path, request=request: call(daemon, path, request)).code == "passkey"  # type: ignore[misc]
    waiting = page.list().waiting
    assert any('"postgresql://u:…@127.0.0.1:5432/shop"' in one.request_json for one in waiting)
    for secret in (APPROVAL_PASSPHRASE, "quite another one", "hunter2"):
        assert secret not in str(waiting)


@pytest.mark.promise(87)
def test_a_backup_that_waits_to_be_restored_is_named_by_what_is_in_it(
    required: tuple[Daemon, Page, Authenticator],
) -> None:
    """Its file can be exchanged after it was confirmed."""
    daemon, page, key = required
    path, words = daemon.home / "vault.backup", "words of the backup"
    backup = vpb.BackupRequest(path=str(path), passphrase=words)
    page.confirm(refused(lambda: call(daemon, "Vault/Backup", backup)).details[0], key)
    call(daemon, "Vault/Backup", backup)
    restore = vpb.RestoreRequest(path=str(path), backup_passphrase=words, replace=True, keyed_by="passphrase",
                                 passphrase=VAULT_PASSPHRASE)  # fmt: skip
    id = refused(lambda: call(daemon, "Vault/Restore", restore)).details[0]
    shown = json.loads(next(one.request_json for one in page.list().waiting if one.id == id))
    assert shown["path"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (shown["keyed_by"], shown["passphrase"]) == ("passphrase", "(not shown)")


@pytest.mark.promise(89)
def test_a_terminal_waits_for_the_passkey_and_goes_on(required: tuple[Daemon, Page, Authenticator]) -> None:
    daemon, page, key = required
    with daemon.terminal("agents", "add", "another") as terminal:
        terminal.expect("Confirm it on the page")
        page.confirm(next(one.id for one in page.list().waiting if "another" in one.request_json), key)
        assert terminal.wait() == 0
    assert [agent.name for agent in daemon.person("ListAgents", pb.ListAgentsRequest()).agents] == ["another"]


@pytest.mark.promise(89)
def test_no_first_passkey_no_presence_but_for_registering() -> None:
    with Daemon(config=REQUIRED) as daemon:
        page = Page(daemon)
        assert page.list().presence == "passkey"
        assert refused(lambda: daemon.add_agent("evil")).code == "passkey"
        made = ppb.AddPasskeyRequest(name="x", credential_json=Authenticator().create(page.begin()))
        assert refused(lambda: page.call("Add", made)).code == "presence"
        made.passphrase = "not this one"
        assert refused(lambda: page.call("Add", made)).code == "presence"
        both = [made, ppb.AddPasskeyRequest(name="evil", credential_json=Authenticator().create(page.begin()))]

        def added(request: ppb.AddPasskeyRequest) -> str:
            request.passphrase = APPROVAL_PASSPHRASE
            try:
                page.call("Add", request)
            except grpc.RpcError as error:
                return str(problem(error).code)
            return "added"

        with ThreadPoolExecutor(2) as threads:  # the passphrase suffices for the first one alone
            assert sorted(threads.map(added, both)) == ["added", "passkey-refused"]
        assert len(page.list().passkeys) == 1


NOW = datetime(2026, 11, 29, tzinfo=UTC)
PEER = Peer(socket="user", uid=1, gid=1, pid=7, connection="c", terminal=Terminal(1, 2, 3), program="x")


def at_a_terminal(passkeys: SimpleNamespace, proven: Callable[[], None] = lambda: None) -> PersonContext:
    """The person at PEER's, whose passphrase is right. `proven` is called when that was found."""

    async def prove(_: object) -> None:
        proven()

    given: dict[str, Any] = dict.fromkeys(each.name for each in fields(PersonContext))
    given["callers"] = SimpleNamespace(peer=lambda _: PEER, sessions=SimpleNamespace(of=lambda *_: ""))
    given["vault_state"] = SimpleNamespace(require_open=lambda: None, prove=prove)
    given |= {"presence": Presence(300, lambda: NOW), "passkeys": passkeys, "polkit": SimpleNamespace(mode="")}
    return PersonContext(**given)


@pytest.mark.promise(89)
@pytest.mark.parametrize("required", [True, False])
async def test_the_passphrase_that_accepts_a_log_is_remembered_for_nothing_else(required: bool) -> None:
    person = at_a_terminal(SimpleNamespace(required=required))
    await person.present_with_passphrase(None, APPROVAL_PASSPHRASE, "Accepting the log")
    assert person.presence.holds(PEER) is not required


@pytest.mark.promise(4)
async def test_what_was_shown_lately_hands_out_no_keys() -> None:
    passkeys = SimpleNamespace(required=False)
    person = at_a_terminal(passkeys)
    await person.present(None, APPROVAL_PASSPHRASE, "Naming an agent")
    for passkeys.required, due in ((False, PresenceDue), (True, PasskeyDue)):
        assert await person.present(None, "", "Naming an agent") == PEER
        with pytest.raises(due):
            await person.present(None, "", "A backup of the vault", waits=False, lately=False)


@pytest.mark.promise(89)
async def test_a_passphrase_that_is_checked_while_the_first_passkey_comes_is_none() -> None:
    passkeys = SimpleNamespace(required=False)
    person = at_a_terminal(passkeys, lambda: setattr(passkeys, "required", True))
    with pytest.raises(PasskeyDue):
        await person.present(None, APPROVAL_PASSPHRASE, "Naming an agent")
    assert not person.presence.holds(PEER)


@pytest.mark.promise(89)
def test_the_setting_alone_takes_nothing_back(own: tuple[Daemon, Page, Authenticator]) -> None:
    """Whoever can write config.toml can't go back to the passphrase; the last passkey can."""
    daemon, page, key = own
    daemon.configure("")
    daemon.restart()
    assert page.list().presence == "passkey"
    assert refused(lambda: daemon.add_agent("evil")).code == "passkey"
    page.remove(page.list().passkeys[0].id, key)
    assert page.list().presence == "passphrase"
    assert daemon.add_agent("mine")


@pytest.mark.promise(89)
def test_a_removed_passkey_comes_back_with_no_file(own: tuple[Daemon, Page, Authenticator], tmp_path: Path) -> None:
    daemon, page, key = own
    stolen = Authenticator()
    added = page.add(stolen, by=key, name="stolen")
    daemon.stop()
    shutil.copytree(daemon.state_dir, tmp_path / "before")
    daemon.start()
    daemon.unlock()
    page.remove(added.id, key)
    for file in ("vault.db", "state.db"):
        daemon.kill()
        for now in daemon.state_dir.glob(f"{file}*"):
            shutil.copy(now, tmp_path / f"now-{now.name}")
            now.unlink()
        for old in (tmp_path / "before").glob(f"{file}*"):
            shutil.copy(old, daemon.state_dir / old.name)
        heads = {}
        if file == "state.db":
            heads = {name: (daemon.state_dir / name).read_bytes() for name in ("journal.head",)}
            shutil.copy(tmp_path / "before" / "journal.head", daemon.state_dir)
        daemon.start()
        found = refused(daemon.unlock)
        assert "put back" in found.message or "older" in found.message or "vault knows" in found.message, found.message
        if file == "state.db":  # the passphrases suffice to accept the log, which takes away what it allowed
            accept = pb.VaultUnlockRequest(
                passphrase=VAULT_PASSPHRASE, accept_log=True, approval_passphrase=APPROVAL_PASSPHRASE
            )
            daemon.person("VaultUnlock", accept)
            assert [one.name for one in page.list().passkeys] == ["laptop"]
            assert page.list().presence == "passkey"
            assert refused(lambda: page.confirm("", stolen)).code == "passkey-refused"
            page.confirm("", key)
            return
        daemon.kill()
        for old in daemon.state_dir.glob(f"{file}*"):
            old.unlink()
        for now in tmp_path.glob(f"now-{file}*"):
            shutil.copy(now, daemon.state_dir / now.name.removeprefix("now-"))
        assert not heads
        daemon.start()
        daemon.unlock()
        assert len(page.list().passkeys) == 1


@pytest.mark.promise(89)
def test_a_backup_brings_none_back_and_loses_none(tmp_path: Path) -> None:
    with Daemon() as daemon:
        page, first, second = Page(daemon), Authenticator(), Authenticator()
        added = page.add(first)
        backup = daemon.home / "vault.backup"
        words = "words of the backup"
        call(daemon, "Vault/Backup", vpb.BackupRequest(
            path=str(backup), passphrase=words, approval_passphrase=APPROVAL_PASSPHRASE))  # fmt: skip
        page.add(second, by=first, name="second")
        page.remove(added.id, second)
        call(daemon, "Vault/Restore", vpb.RestoreRequest(
            path=str(backup), backup_passphrase=words, approval_passphrase=APPROVAL_PASSPHRASE, replace=True,
            keyed_by="passphrase", passphrase=VAULT_PASSPHRASE))  # fmt: skip
        assert [one.name for one in page.list().passkeys] == ["second"]
        assert refused(lambda: page.confirm("", first)).code == "passkey-refused"
        page.confirm("", second)


TAKE = {
    "_prove",
    "check_approval",
    "check_passphrase",
    "matches",
    "present_with_passphrase",
    "prove",
    "require_passphrase",
}


@pytest.mark.promise(89)
def test_only_these_take_the_passphrase_itself() -> None:
    """Whatever else needs presence asks `present`, which a passkey alone satisfies; so a new call does, too."""
    taken: dict[str, list[str]] = {}
    for file in sorted(Path(goex.daemon.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            called = node.attr if isinstance(node, ast.Attribute) else ""
            if called in TAKE:
                taken.setdefault(file.name, []).append(called)
    assert {name: sorted(set(found)) for name, found in taken.items()} == {
        "passkeys_service.py": [
            "_prove",
            "require_passphrase",
        ],  # the first passkey, and the removal of all a day later
        "person_context.py": ["check_passphrase", "present_with_passphrase", "prove"],
        "vault_calls.py": ["present_with_passphrase"],  # accepting a log takes away what was allowed
        "vault_service.py": [
            "check_passphrase",
            "matches",
        ],  # a backup's own, where there is no vault; a changed passphrase
        "vault_state.py": ["check_approval", "matches"],  # which `prove` calls; a restored vault of two passphrases
    }


@pytest.mark.promise(89)
def test_a_public_url_has_passkeys_of_its_own() -> None:
    with Daemon(config='[web]\npublic_url = "https://goex.example.org"\n') as daemon:
        here, there = Page(daemon), Page(daemon, "https://goex.example.org")
        laptop = Authenticator()
        phone = Authenticator(rp_id="goex.example.org", origin="https://goex.example.org")
        here.add(laptop)
        request = ppb.AddPasskeyRequest(name="phone", credential_json=phone.create(there.begin("phone")))
        request.assertion_json = laptop.get(here.challenge(add=request))
        assert here.call("Add", request).rp_id == "goex.example.org"
        there.confirm("", phone)
        here.confirm("", laptop)
        for page, key in ((here, phone), (there, laptop)):
            assert refused(lambda page=page, key=key: page.confirm("", key)).code == "passkey-refused"  # type: ignore[misc]
        assert refused(lambda: Page(daemon, "https://evil.example").begin()).code == "invalid"


@pytest.mark.promise(87)
def test_whoever_confirms_a_passkey_of_another_address_sees_and_signs_which() -> None:
    """Two that differ in their credential alone are shown differently, and the other isn't let through."""
    with Daemon(config='[web]\npublic_url = "https://goex.example.org"\n') as daemon:
        here, there = Page(daemon), Page(daemon, "https://goex.example.org")
        laptop = Authenticator()
        here.add(laptop)
        requests = []
        for _ in range(2):
            key = Authenticator(rp_id="goex.example.org", origin="https://goex.example.org")
            requests.append(ppb.AddPasskeyRequest(name="phone", credential_json=key.create(there.begin("phone"))))
        ids = []
        for request in requests:
            found = refused(lambda request=request: here.call("Add", request))  # type: ignore[misc]
            ids.append(found.details[0])
        views = {one.id: one for one in here.list().waiting}
        mine, other = (json.loads(views[id].request_json)["credential_json"] for id in ids)
        assert mine["credential_id"] != other["credential_id"]
        assert mine["public_key_sha256"] != other["public_key_sha256"]
        assert views[ids[0]].request != views[ids[1]].request
        here.confirm(ids[0], laptop)
        assert refused(lambda: here.call("Add", requests[1])).code == "passkey"
        added = here.call("Add", requests[0])
        assert added.credential_id == mine["credential_id"]
        spki = hashlib.sha256(webauthn.spki(added.public_key)).hexdigest()
        assert spki == mine["public_key_sha256"]
        found = daemon.person("VerifyLog", pb.VerifyLogRequest())
        assert (found.good, list(found.unproven)) == (True, [])  # the log says which call was confirmed
