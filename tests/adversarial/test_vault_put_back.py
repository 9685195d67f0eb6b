"""Attacks by whoever puts a copy of vault.db back, beside the newest log, once the daemon was killed: what the person
changed, and what the vault counted, since the copy was made. In the control the log isn't asked how old the file is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from goex.rpc import vault_pb2 as vpb
from tests.adversarial.grant_scene import unsafe
from tests.adversarial.state_scene import refusal
from tests.support.authenticator import Authenticator, Page
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon

_OTHER = "it is me, and nobody else"


def _with_passphrase(daemon: Daemon, passphrase: str) -> str:
    """What becomes of a call that needs presence."""
    return refusal(lambda: daemon.person("AddAgent", pb.AddAgentRequest(name="late", passphrase=passphrase)))


def _change(daemon: Daemon) -> None:
    call = daemon.channel(daemon.user_socket).unary_unary(
        "/goex.v1.Vault/ChangeApproval",
        request_serializer=vpb.ChangeApprovalRequest.SerializeToString,
        response_deserializer=pb.VaultStatus.FromString,
    )
    call(vpb.ChangeApprovalRequest(current=APPROVAL_PASSPHRASE, passphrase=_OTHER), timeout=300)
    assert _with_passphrase(daemon, APPROVAL_PASSPHRASE) == "presence"


def _guess(daemon: Daemon) -> None:
    said = [_with_passphrase(daemon, f"is it number {number}") for number in range(4)]
    assert said == ["presence"] * 3 + ["approval-backoff"]


def _asked_for(daemon: Daemon) -> Any:
    """What was done before the copy: a passkey, and a reset of all that somebody asked for."""
    page, key = Page(daemon), Authenticator()
    page.add(key)
    page.call("Reset", ppb.ResetPasskeysRequest(passphrase=APPROVAL_PASSPHRASE))
    assert page.list().reset_at
    return key


def _used(daemon: Daemon, key: Authenticator) -> None:
    page = Page(daemon)
    page.confirm("", key)
    assert not page.list().reset_at


@dataclass(frozen=True, slots=True)
class PutBack:
    """What is done before the copy and after it, and whether the copy takes the latter back."""

    change: Callable[..., None]
    won: Callable[[Daemon], bool]
    before: Callable[[Daemon], Any] | None = None


CHANGES = {
    "an_approval_passphrase_of_before": PutBack(
        _change, lambda daemon: not _with_passphrase(daemon, APPROVAL_PASSPHRASE)
    ),
    "guesses_that_are_forgotten": PutBack(_guess, lambda daemon: _with_passphrase(daemon, "is it this") == "presence"),
    "a_reset_that_was_ended": PutBack(_used, lambda daemon: bool(Page(daemon).list().reset_at), _asked_for),
}


def put_back(daemon: Daemon, name: str) -> str:
    """Play it; returns what unlocking the copy is refused with."""
    one = CHANGES[name]
    more = () if one.before is None else (one.before(daemon),)
    file = daemon.state_dir / "vault.db"
    kept = file.read_bytes()
    one.change(daemon, *more)
    daemon.kill()
    file.write_bytes(kept)
    daemon.start()
    unlock = pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE)
    try:
        daemon.person("VaultUnlock", unlock)
    except grpc.RpcError:
        return refusal(lambda: daemon.person("VaultUnlock", unlock))
    return ""


@pytest.mark.promise(30)
@pytest.mark.parametrize("name", CHANGES)
def test_it_is_refused(name: str) -> None:
    with Daemon() as daemon:
        assert put_back(daemon, name) == "conflict"
        assert daemon.person("Status", pb.StatusRequest()).vault == "sealed"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CHANGES)
def test_control(name: str) -> None:
    with Daemon(env=unsafe("older vaults")) as daemon:
        assert put_back(daemon, name) == ""
        assert CHANGES[name].won(daemon)
