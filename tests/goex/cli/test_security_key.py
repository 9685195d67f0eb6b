"""A security key at the terminal, where passkeys are required: packets of CTAP HID to a key of software.

No test here touched hardware: what the kernel's hidraw devices do is `fido2`'s part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from goex.rpc import goex_pb2 as pb
from tests.support.authenticator import Authenticator, Page
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.page import add_shop, ask_for_update
from tests.support.terminal import Terminal

PIN = "of the key: 4711"
PLUG = Path(__file__).parents[2] / "support" / "usb_key"


@dataclass
class Desk:
    daemon: Daemon
    token: str
    file: Path

    def ask(self, value: str) -> str:
        """An agent's question. Its id."""
        action = ask_for_update(self.daemon, self.token, value)
        found = self.daemon.person("Approvals", pb.ApprovalsRequest()).approvals
        return str(next(one.id for one in found if one.action_id == action))

    def approve(self, question: str) -> Terminal:
        terminal = self.daemon.terminal("approve", question)
        terminal.expect(r"\[no\]: ")
        terminal.type("y")
        return terminal

    def state(self, question: str) -> str:
        return str(self.daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question)).approvals[0].state)

    @property
    def counter(self) -> int:
        return int(json.loads(self.file.read_text())["counter"])


def write_key(file: Path, key: Authenticator) -> None:
    pem = key.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    made = {"credential_id": key.credential_id.hex(), "key": pem, "rp_id": key.rp_id, "counter": 10, "pin": PIN}
    file.write_text(json.dumps(made))


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with Daemon() as daemon:
        add_shop(daemon)
        token, key, file = daemon.add_agent("bot"), Authenticator(), daemon.home / "key.json"
        Page(daemon).add(key, name="usb")
        write_key(file, key)
        daemon.configure('[ask]\npresence = "passkey"\n')
        daemon.restart()
        daemon.env |= {"PYTHONPATH": str(PLUG), "GOEX_TEST_USB_KEY": str(file)}
        yield Desk(daemon, token, file)


@pytest.mark.promise(87)
@pytest.mark.promise(88)
def test_a_yes_is_what_the_key_signed_and_no_pin_is_kept(desk: Desk) -> None:
    question, before = desk.ask("sent"), desk.counter
    with desk.approve(question) as terminal:
        terminal.expect("PIN of your security key: ")
        terminal.type(PIN)
        terminal.expect("Touch your security key")
        assert terminal.wait() == 0
    assert PIN not in terminal.text
    assert (desk.state(question), desk.counter) == ("approved", before + 1)
    rows = desk.daemon.person("Log", pb.LogRequest(limit=200)).rows
    (signed,) = [json.loads(row.facts_json)["assertion"] for row in rows if "assertion" in row.facts_json]
    assert json.loads(signed["statement"])["approval"] == question
    assert desk.daemon.goex("log", "--verify").returncode == 0
    held = [file for file in desk.daemon.home.rglob("*") if file.is_file() and file != desk.file]
    assert not [file for file in held if PIN.encode() in file.read_bytes()]


@pytest.mark.promise(89)
def test_any_other_command_waits_for_the_key_and_goes_on(desk: Desk) -> None:
    with desk.daemon.terminal("agents", "add", "second") as terminal:
        terminal.expect("PIN of your security key: ")
        terminal.type(PIN)
        terminal.expect("Touch your security key")
        assert terminal.wait() == 0
    assert "second" in desk.daemon.goex("agents", "list").stdout


@pytest.mark.promise(87)
def test_a_wrong_pin_signs_nothing(desk: Desk) -> None:
    question, before = desk.ask("wrong"), desk.counter
    with desk.approve(question) as terminal:
        for _ in range(3):
            terminal.expect("PIN of your security key: ")
            terminal.type("of another key")
        terminal.expect("signed nothing: pin invalid")
        assert terminal.wait() != 0
    assert (desk.state(question), desk.counter) == ("pending", before)
    desk.daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))


@pytest.mark.promise(89)
def test_the_passphrase_is_no_answer_and_a_key_that_is_not_registered_is_none(desk: Desk) -> None:
    question, kept = desk.ask("strange"), desk.file.read_text()
    write_key(desk.file, Authenticator())
    try:
        with desk.approve(question) as terminal:
            terminal.expect("PIN of your security key: ")
            terminal.type(PIN)
            terminal.expect("signed nothing: no credentials")
            assert terminal.wait() != 0
        assert "Approval passphrase" not in terminal.text
        assert desk.state(question) == "pending"
        shown = desk.daemon.person("Approvals", pb.ApprovalsRequest(approval_id=question)).approvals[0].digest
        yes = pb.DecideRequest(approval_id=question, approve=True, digest=shown, passphrase=APPROVAL_PASSPHRASE)
        with pytest.raises(grpc.RpcError, match="needs your passkey"):
            desk.daemon.person("Decide", yes)
    finally:
        desk.file.write_text(kept)
        desk.daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))


@pytest.mark.promise(87)
def test_a_key_whose_count_goes_back_is_a_copy(desk: Desk) -> None:
    question, kept = desk.ask("copied"), json.loads(desk.file.read_text())
    desk.file.write_text(json.dumps({**kept, "counter": 1}))
    try:
        with desk.approve(question) as terminal:
            terminal.expect("PIN of your security key: ")
            terminal.type(PIN)
            terminal.expect("counts backwards")
            assert terminal.wait() != 0
        assert desk.state(question) == "pending"
    finally:
        desk.file.write_text(json.dumps(kept))
        desk.daemon.person("DenyAll", pb.DenyAllRequest(agent="bot"))
