"""Records whose secret changes by itself, and pairs of user and password."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from policies.accounts import Origin
from policies.errors import InvalidInput
from tests.vault.support import SOON, HandClock, account, protector, reopen
from vault.basic import Basic
from vault.errors import NoAccount, RecordAltered, RecordReplaced, VaultSealed
from vault.secret import Secret
from vault.store import Vault


def test_a_renewed_secret_is_on_disk(vault: Vault, path: Path, clock: HandClock) -> None:
    vault.put(account(), Secret("first"))
    clock.forward(60)
    after = vault.renew(vault.open_record("slack", "work"), Secret("second"))
    assert after.secret == Secret("second") and after == vault.open_record("slack", "work")
    record = vault.records()[0]
    assert record.updated - record.created == timedelta(seconds=60) and record.verified
    vault.seal()
    assert reopen(path).open_record("slack", "work").secret == Secret("second")


def test_a_renewal_of_what_is_no_longer_there_changes_nothing(vault: Vault) -> None:
    vault.put(account(), Secret("first"))
    old = vault.open_record("slack", "work")
    vault.put(account(), Secret("the person's own"), replace=True)
    with pytest.raises(RecordReplaced):
        vault.renew(old, Secret("stale"))
    assert vault.open_record("slack", "work").secret == Secret("the person's own")
    vault.remove("slack", "work")
    with pytest.raises(NoAccount):
        vault.renew(old, Secret("stale"))
    vault.put(account(), Secret("another record of that name"))
    with pytest.raises(RecordReplaced):
        vault.renew(old, Secret("stale"))
    with pytest.raises(InvalidInput):
        vault.renew(vault.open_record("slack", "work"), Secret(""))


def test_of_many_renewals_of_one_state_one_wins(vault: Vault) -> None:
    vault.put(account(), Secret("first"))
    old = vault.open_record("slack", "work")
    won: list[int] = []

    def renew(number: int) -> None:
        try:
            vault.renew(old, Secret(f"number {number}"))
        except RecordReplaced:
            return
        won.append(number)

    threads = [threading.Thread(target=renew, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(won) == 1 and vault.open_record("slack", "work").secret == Secret(f"number {won[0]}")


def test_new_terms_keep_the_secret_that_is_there_by_now(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("first"))
    shown = vault.open_record("slack", "work").account
    moved = replace(shown, origins=(*shown.origins, Origin.parse("https://z.example.org")))
    vault.renew(vault.open_record("slack", "work"), Secret("rotated meanwhile"))
    vault.change_account(shown, moved)
    vault.seal()
    again = reopen(path)
    opened = again.open_record("slack", "work")
    assert (opened.account, opened.secret) == (moved, Secret("rotated meanwhile")) and again.damage() == ()
    with pytest.raises(RecordReplaced):  # it was agreed to of another account
        again.change_account(shown, moved)
    with pytest.raises(InvalidInput):
        again.change_account(moved, replace(moved, name="home"))
    assert again.open_record("slack", "work") == opened


def test_an_altered_record_is_not_opened(vault: Vault, path: Path) -> None:
    from tests.vault.support import database

    vault.put(account(), Secret("first"))
    with database(path) as connection:
        connection.execute("UPDATE records SET sealed = zeroblob(40)")
    with pytest.raises(RecordAltered):
        vault.open_record("slack", "work")


def test_a_sealed_vault_opens_nothing(vault: Vault, clock: HandClock) -> None:
    vault.put(account(), Secret("first"))
    opened = vault.open_record("slack", "work")
    memory = vault.while_unsealed()
    memory["x"] = 1
    vault.seal()
    for call in (
        lambda: vault.open_record("slack", "work"),
        lambda: vault.renew(opened, Secret("second")),
        lambda: vault.note_lease(opened, action_id="a", expires=clock() + SOON),
        vault.while_unsealed,
    ):
        with pytest.raises(VaultSealed):
            call()
    vault.unlock(protector())
    assert vault.while_unsealed() == {}


def test_a_lease_that_was_noted_ends_like_any_other(vault: Vault, clock: HandClock) -> None:
    vault.put(account(), Secret("first"))
    opened = vault.open_record("slack", "work")
    for past in (clock(), clock() - SOON, (clock() + SOON).replace(tzinfo=None)):
        with pytest.raises(InvalidInput):
            vault.note_lease(opened, action_id="a", expires=past)
    vault.note_lease(opened, action_id="a", expires=clock() + SOON)
    assert [each.action_id for each in vault.live_leases()] == ["a"]
    assert vault.records()[0].last_used == clock()
    vault.end_leases("a")
    assert vault.live_leases() == ()


def test_a_pair_reads_back(vault: Vault) -> None:
    pair = Basic(user="ada", password=Secret("pa:ss wörd"))
    assert Basic.from_secret(pair.to_secret()) == pair
    assert pair.credential() == Secret("YWRhOnBhOnNzIHfDtnJk")
    assert pair.echoes() == (Secret("pa:ss wörd"), Secret("ada:pa:ss wörd"))
    assert "pa:ss" not in repr(pair)
    vault.put(account(format="basic"), pair.to_secret())
    with pytest.raises(InvalidInput, match="isn't a credential by itself"):
        vault.lease("slack", "work", action_id="a", expires=vault._clock() + SOON)


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("a:b", "x"), ("a\n", "x"), ("a", ""), ("a", "x\r\ny")])
def test_a_pair_that_no_header_carries(user: str, password: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Basic(user=user, password=Secret(password)).to_secret()
    assert "x\r\ny" not in str(caught.value)


@pytest.mark.parametrize("kind", ["basic", "oauth"])
@pytest.mark.parametrize("text", ["open sesame", "{}", '{"user":1,"password":2}', "[]", "\x00"])
def test_what_is_not_of_its_format_is_not_stored(vault: Vault, kind: str, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        vault.put(account(format=kind), Secret(text))
    assert text not in str(caught.value) and caught.value.__context__ is None
