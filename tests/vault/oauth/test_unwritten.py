"""Answers to a renewal that can't be written into the vault, or looked for beside it: no login is lost by that."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from policies.errors import GoexError, InvalidInput, Unavailable
from tests.vault.oauth.support import CANARY, Hostile, answer, http, oauth_account, soon, token_set, tokens
from tests.vault.support import protector
from vault.aead import new_key
from vault.errors import VaultChanged, VaultUnwritable
from vault.lease import Lease
from vault.oauth import deposits
from vault.oauth.broker import LoginBroker
from vault.oauth.token_set import Pending, TokenSet
from vault.secret import Secret
from vault.store import Vault

FULL = VaultUnwritable("The disk is full.")


def connect(vault: Vault, made: TokenSet) -> LoginBroker:
    vault.put(oauth_account(), made.to_secret(), replace=True)
    return LoginBroker(vault, connect=lambda _: http())


def kept(vault: Vault) -> TokenSet:
    return TokenSet.from_secret(vault.open_record("notes", "work").secret)


async def lease(broker: LoginBroker) -> Lease:
    return await broker.lease("notes", "work", action_id="a1", expires=soon())


async def lease_after_a_restart(vault: Vault) -> Lease:
    again = Vault.open(vault.path)
    again.unlock(protector())
    return await lease(LoginBroker(again, connect=lambda _: http()))


def unwritten(vault: Vault, monkeypatch: pytest.MonkeyPatch, error: GoexError) -> None:
    """The announcement is written, and nothing after it."""
    real, calls = vault.renew, []

    def failing(*given: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise error
        return real(*given)

    monkeypatch.setattr(vault, "renew", failing)


@pytest.mark.parametrize("error", [FULL, VaultChanged("Somebody wrote to it.")])
async def test_an_answer_that_the_vault_does_not_take_outlives_the_daemon(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch, error: GoexError
) -> None:
    hostile.replies["/token"] = [answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale())
    with monkeypatch.context() as patched:
        unwritten(live_vault, patched, error)
        with pytest.raises(type(error)):
            await lease(broker)
    assert (await lease_after_a_restart(live_vault)).secret == Secret(f"{CANARY}-access")
    assert len(hostile.asked("/token")) == 1


async def test_an_answer_that_only_memory_holds_is_kept_when_the_vault_is_sealed(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise FULL

    hostile.replies["/token"] = [answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale())
    with monkeypatch.context() as patched:
        unwritten(live_vault, patched, FULL)
        with pytest.MonkeyPatch.context() as beside:
            beside.setattr(deposits, "put", full)
            with pytest.raises(VaultUnwritable):
                await lease(broker)
        live_vault.seal()
    assert (await lease_after_a_restart(live_vault)).secret == Secret(f"{CANARY}-access")
    assert len(hostile.asked("/token")) == 1


def late_answers(vault: Vault) -> list[str]:
    return [each.name for each in vault.path.parent.iterdir() if ".late-" in each.name]


@pytest.mark.parametrize(("then", "times"), [("taken back", 1), ("recovered", 1), ("recovered", 2)])
async def test_nothing_is_put_beside_the_vault_for_a_login_that_needs_it_no_longer(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch, then: str, times: int
) -> None:
    def full(*_: Any) -> None:
        raise FULL

    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))
    hostile.replies["/revoke"] = answer(b"")
    broker = connect(live_vault, token_set(hostile).stale())
    for _ in range(times):
        with monkeypatch.context() as patched:
            unwritten(live_vault, patched, FULL)
            patched.setattr(deposits, "put", full)
            with pytest.raises(VaultUnwritable):
                await lease(broker)
        if then == "recovered":
            assert (await lease(broker)).secret == Secret(f"{CANARY}-access")
            live_vault.renew(live_vault.open_record("notes", "work"), kept(live_vault).stale().to_secret())
    if then == "taken back":
        assert (await broker.take_back("notes", "work")).done
        assert hostile.asked("/revoke")[0].form["token"] == f"{CANARY}-refresh-2"
    assert live_vault._unsealed is not None and len(live_vault._unsealed.parting) == 1
    live_vault.seal()
    assert late_answers(live_vault) == []


async def test_a_vault_is_sealed_also_when_nothing_can_be_written_beside_it(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise FULL

    hostile.replies["/token"] = [answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale())
    unwritten(live_vault, monkeypatch, FULL)
    monkeypatch.setattr(deposits, "put", full)
    with pytest.raises(VaultUnwritable):
        await lease(broker)
    live_vault.seal()
    assert live_vault.state == "sealed"


async def test_an_answer_that_is_too_large_does_not_cost_the_login(hostile: Hostile, live_vault: Vault) -> None:
    large = answer(tokens(access_token="a" * 16_000, refresh_token="b" * 16_000, scope=None))
    small = answer(tokens(refresh_token=f"{CANARY}-refresh-3", scope=None))
    hostile.replies["/token"] = [large, small]
    broker = connect(live_vault, replace(token_set(hostile), ca_pem="-" * 40_000).stale())
    with pytest.raises(InvalidInput):
        await lease(broker)
    assert (await lease_after_a_restart(live_vault)).secret == Secret(f"{CANARY}-access")
    assert [each.form["refresh_token"] for each in hostile.asked("/token")] == [f"{CANARY}-refresh-1", "b" * 16_000]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
async def test_an_answer_that_cannot_be_looked_for_is_not_asked_for_again(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The old refresh token, played again, may end the login: first it must be known that no answer is there."""
    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh-3", scope=None))
    key = new_key()
    made = replace(token_set(hostile).stale(), pending=Pending(at=datetime.now(UTC), deposit=key))
    broker = connect(live_vault, made)
    deposits.put(live_vault.path, replace(token_set(hostile), refresh=Secret(f"{CANARY}-refresh-2")), key)
    really = os.open

    def failing(path: Any, *given: Any, **named: Any) -> int:
        if ".late-" in str(path):
            raise OSError(number, os.strerror(number))
        return really(path, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", failing)
        with pytest.raises(Unavailable, match="beside the vault"):
            await lease(broker)
    assert not hostile.visits
    assert (await lease(broker)).secret == Secret(f"{CANARY}-first")
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-2") and not hostile.visits


@pytest.mark.parametrize("status", [200, 503])
async def test_a_login_whose_late_answer_cannot_be_looked_for_is_taken_back_as_it_is(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    hostile.replies["/revoke"] = answer(b"", status=status)
    key = new_key()
    broker = connect(live_vault, replace(token_set(hostile), pending=Pending(at=datetime.now(UTC), deposit=key)))
    deposits.put(live_vault.path, replace(token_set(hostile), refresh=Secret(f"{CANARY}-refresh-2")), key)
    really = os.open

    def failing(path: Any, *given: Any, **named: Any) -> int:
        if ".late-" in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(path, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", failing)
        said = await broker.take_back("notes", "work")
    assert not said.done and "beside the vault" in said.why and said.next_step
    assert ("503" in said.why) is (status == 503)
    assert hostile.asked("/revoke")[0].form["token"] == f"{CANARY}-refresh-1"
    assert live_vault.records() == () and late_answers(live_vault) == []


async def test_a_late_answer_of_a_login_that_was_replaced_is_not_left(hostile: Hostile, live_vault: Vault) -> None:
    """Nor one that was begun; an answer that is still looked for stays."""
    key = new_key()
    pending = Pending(at=datetime.now(UTC), deposit=key)
    broker = connect(live_vault, replace(token_set(hostile), pending=pending))
    other = replace(token_set(hostile), family="another", pending=pending)
    live_vault.put(oauth_account(name="other"), other.to_secret())
    deposits.put(live_vault.path, token_set(hostile), key)
    deposits.put(live_vault.path, other, key)
    begun = live_vault.path.with_name(f"{live_vault.path.name}.late-{token_set(hostile).family}.new")
    begun.write_bytes(b"half of it")
    broker.drop_orphans()
    assert len(late_answers(live_vault)) == 3
    live_vault.put(oauth_account(), replace(token_set(hostile), family="later").to_secret(), replace=True)
    broker.drop_orphans()
    assert late_answers(live_vault) == [f"{live_vault.path.name}.late-another"]
    live_vault.remove("notes", "other")
    await lease(broker)  # at which it is looked for, whatever removed the login
    assert late_answers(live_vault) == []


async def test_what_only_memory_holds_of_a_login_that_was_replaced_is_not_put_beside_the_vault(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise FULL

    hostile.replies["/token"] = [answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale())
    with monkeypatch.context() as patched:
        unwritten(live_vault, patched, FULL)
        patched.setattr(deposits, "put", full)
        with pytest.raises(VaultUnwritable):
            await lease(broker)
    live_vault.put(oauth_account(), replace(token_set(hostile), family="later").to_secret(), replace=True)
    broker.drop_orphans()
    live_vault.seal()
    assert late_answers(live_vault) == []


async def test_late_answers_stay_while_a_login_cannot_be_read(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key()
    broker = connect(live_vault, replace(token_set(hostile), pending=Pending(at=datetime.now(UTC), deposit=key)))
    deposits.put(live_vault.path, token_set(hostile), key)
    live_vault.put(oauth_account(), replace(token_set(hostile), family="later").to_secret(), replace=True)
    with monkeypatch.context() as patched:
        patched.setattr(live_vault, "damage", lambda: ("one",))
        broker.drop_orphans()
    assert len(late_answers(live_vault)) == 1
    broker.drop_orphans()
    assert late_answers(live_vault) == []
