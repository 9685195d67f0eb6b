"""The vault as its callers use it: make, put, lease, remove, seal, unlock, rotate."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from policies.errors import ExitStatus, InvalidInput
from policies.jsonvalue import JsonObject
from tests.vault.support import (
    APPROVAL,
    CHEAP,
    PASSPHRASE,
    SOON,
    HandClock,
    account,
    create,
    protector,
    reopen,
    secret_of,
)
from vault.errors import (
    AccountExists,
    AccountUnclear,
    NoAccount,
    PayloadAltered,
    VaultAbsent,
    VaultChanged,
    VaultExists,
    VaultSealed,
    WrongPassphrase,
)
from vault.keys import KeyringProtector, PassphraseProtector, Wrapping
from vault.secret import Secret
from vault.store import Vault


def test_a_secret_comes_back_after_sealing_and_unlocking(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("xoxb-1"))
    vault.put(account("github", "me", format="file"), Secret(b"\x00\r\n\xff" * 100))
    assert vault.state == "unsealed"
    vault.seal()
    assert vault.state == "sealed"
    again = reopen(path)
    assert again.keyed_by == "passphrase"
    assert secret_of(again) == b"xoxb-1"
    assert secret_of(again, "github", "me") == b"\x00\r\n\xff" * 100


def test_create_refuses_an_existing_file_and_leaves_it(path: Path) -> None:
    path.write_bytes(b"mine")
    with pytest.raises(VaultExists):
        create(path)
    assert path.read_bytes() == b"mine"
    assert [each.name for each in path.parent.iterdir()] == ["vault.db"]


def test_create_never_replaces_a_file_that_appears_meanwhile(path: Path) -> None:
    class Slow(PassphraseProtector):
        def establish(self) -> Wrapping:
            path.write_bytes(b"mine")
            return super().establish()

    with pytest.raises(VaultExists):
        Vault.create(path, Slow(Secret(PASSPHRASE), cost=CHEAP), Secret(APPROVAL), approval_cost=CHEAP)
    assert path.read_bytes() == b"mine"
    assert [each.name for each in path.parent.iterdir()] == ["vault.db"]


def test_create_refuses_a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")
    with pytest.raises(VaultExists):
        create(path)


def test_open_without_a_vault(path: Path) -> None:
    with pytest.raises(VaultAbsent) as caught:
        Vault.open(path)
    assert "goex vault init" in caught.value.next_step
    assert caught.value.exit_status is ExitStatus.SEALED


@pytest.mark.promise(31)
def test_a_wrong_passphrase_changes_nothing(vault: Vault, path: Path) -> None:
    vault.seal()
    before = path.read_bytes()
    closed = Vault.open(path)
    with pytest.raises(WrongPassphrase):
        closed.unlock(protector("something else here"))
    assert closed.state == "sealed"
    assert path.read_bytes() == before
    closed.unlock(protector())


def test_the_wrong_kind_of_protector_is_told(vault: Vault, path: Path) -> None:
    vault.seal()
    with pytest.raises(InvalidInput, match="keyed by the passphrase"):
        vault.unlock(KeyringProtector(timeout=1))


def test_a_composed_and_a_decomposed_passphrase_are_one(path: Path) -> None:
    Vault.create(path, protector("caf\u00e9 au lait"), Secret(APPROVAL), approval_cost=CHEAP)
    reopen(path, "cafe\u0301 au lait")


@pytest.mark.parametrize("poor", ["short", "aaaaaaaaaaaa", "abababababab", "         ", "x" * 2000])
def test_poor_passphrases_are_refused(path: Path, poor: str) -> None:
    with pytest.raises(InvalidInput):
        Vault.create(path, protector(poor), Secret(APPROVAL), approval_cost=CHEAP)
    with pytest.raises(InvalidInput):
        Vault.create(path, protector(), Secret(poor), approval_cost=CHEAP)
    assert not path.exists()


def test_a_passphrase_must_be_text(path: Path) -> None:
    with pytest.raises(InvalidInput, match="text"):
        Vault.create(path, PassphraseProtector(Secret(b"\xff\xfe" * 8), cost=CHEAP), Secret(APPROVAL))


def test_one_passphrase_for_both_uses_is_refused_everywhere(path: Path) -> None:
    with pytest.raises(InvalidInput, match="another one"):
        Vault.create(path, protector(APPROVAL), Secret(APPROVAL), approval_cost=CHEAP)
    vault = create(path)
    with pytest.raises(InvalidInput, match="another one"):
        vault.change_approval(Secret(APPROVAL), Secret(PASSPHRASE), cost=CHEAP)
    with pytest.raises(InvalidInput, match="another one"):
        vault.rotate(protector(APPROVAL))
    vault.rotate(protector("quite another one"))
    with pytest.raises(InvalidInput, match="another one"):
        vault.change_approval(Secret(APPROVAL), Secret("quite another one"), cost=CHEAP)
    vault.change_approval(Secret(APPROVAL), Secret(PASSPHRASE), cost=CHEAP)  # nobody's now


def test_sealed_it_lists_and_does_nothing_else(vault: Vault) -> None:
    vault.put(account(), Secret("xoxb-1"))
    payload = vault.seal_payload("p", b"data")
    vault.seal()
    vault.seal()
    (record,) = vault.records()
    assert (record.account, record.verified, record.last_used) == (account(), False, None)
    for refused in (
        lambda: vault.put(account(name="two"), Secret("x")),
        lambda: vault.remove("slack", "work"),
        lambda: vault.resolve("slack"),
        lambda: vault.lease("slack", "work", action_id="a", expires=vault._clock() + SOON),
        lambda: vault.rotate(),
        lambda: vault.rotate(protector("another passphrase")),
        lambda: vault.derive("journal"),
        lambda: vault.seal_payload("p", b"data"),
        lambda: vault.open_payload("p", payload),
        lambda: vault.check_approval(Secret(APPROVAL)),
        lambda: vault.change_approval(Secret(APPROVAL), Secret("a new passphrase")),
        lambda: vault.flush_uses(),
        lambda: vault.damage(),
    ):
        with pytest.raises(VaultSealed):
            refused()
    vault.end_leases("a")
    assert vault.live_leases() == ()


def test_sealing_forgets_the_keys(vault: Vault) -> None:
    vault.put(account(), Secret("xoxb-1"))
    vault.seal()
    assert vault._unsealed is None
    assert not [value for value in vars(vault).values() if isinstance(value, Secret)]


def test_put_needs_replace_to_replace(vault: Vault, clock: HandClock, path: Path) -> None:
    vault.put(account(), Secret("one"))
    made = vault.records()[0].created
    with pytest.raises(AccountExists):
        vault.put(account(), Secret("two"))
    assert secret_of(vault) == b"one"
    clock.forward(60)
    vault.put(account(ca_pem=""), Secret("two"), replace=True)
    (record,) = vault.records()
    assert (record.created, record.updated) == (made, made + timedelta(seconds=60))
    assert secret_of(reopen(path)) == b"two"


def test_replace_moves_the_origins_with_the_secret(vault: Vault) -> None:
    from policies.accounts import Origin

    vault.put(account(), Secret("one"))
    moved = account(origins=(Origin.parse("https://new.example.org"),), base_url="https://new.example.org")
    vault.put(moved, Secret("two"), replace=True)
    assert vault.resolve("slack") == moved


def test_remove(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("one"))
    vault.put(account(name="home"), Secret("two"))
    vault.remove("slack", "work")
    with pytest.raises(NoAccount):
        vault.remove("slack", "work")
    again = reopen(path)
    assert [record.account.name for record in again.records()] == ["home"]
    assert again.damage() == ()


def test_resolve_names_the_choices_and_the_command(vault: Vault) -> None:
    with pytest.raises(NoAccount) as none:
        vault.resolve("slack")
    assert "goex vault put slack" in none.value.next_step
    with pytest.raises(NoAccount) as pasted:
        vault.resolve("x; rm -rf ~ \x1b[0m")
    assert "goex vault put 'x; rm -rf ~ \\u{1b}[0m'" in pasted.value.next_step
    vault.put(account(), Secret("one"))
    assert vault.resolve("slack").name == "work"
    with pytest.raises(NoAccount, match="work"):
        vault.resolve("slack", "home")
    vault.put(account(name="home"), Secret("two"))
    with pytest.raises(AccountUnclear, match="home, work") as unclear:
        vault.resolve("slack")
    assert "--service slack/home" in unclear.value.next_step
    assert vault.resolve("slack", "home").name == "home"


def test_leases_are_listed_until_they_end_or_expire(vault: Vault, clock: HandClock) -> None:
    vault.put(account(), Secret("one"))
    lease = vault.lease("slack", "work", action_id="a1", expires=clock() + timedelta(seconds=10))
    vault.lease("slack", "work", action_id="a2", expires=clock() + timedelta(seconds=99))
    assert lease.account == account()
    assert lease.secret == Secret("one")
    assert [each.action_id for each in vault.live_leases()] == ["a1", "a2"]
    clock.forward(10)
    assert [each.action_id for each in vault.live_leases()] == ["a2"]
    vault.end_leases("a2")
    vault.end_leases("a2")
    assert vault.live_leases() == ()
    for passed in (clock(), clock().replace(tzinfo=None)):
        with pytest.raises(InvalidInput):
            vault.lease("slack", "work", action_id="a3", expires=passed)
    with pytest.raises(NoAccount):
        vault.lease("slack", "nobody", action_id="a3", expires=clock() + SOON)


def test_last_use_is_noted_and_written_later(vault: Vault, clock: HandClock, path: Path) -> None:
    vault.put(account(), Secret("one"))
    before = path.read_bytes()
    clock.forward(5)
    secret_of(vault)
    assert path.read_bytes() == before, "a lease must not wait for the disk"
    assert vault.records()[0].last_used == clock()
    vault.seal()
    assert reopen(path).records()[0].last_used == clock()


def test_last_use_survives_other_writes(vault: Vault, clock: HandClock, path: Path) -> None:
    vault.put(account(), Secret("one"))
    secret_of(vault)
    at = clock()
    clock.forward(5)
    vault.put(account(name="home"), Secret("two"))
    vault.put(account(), Secret("three"), replace=True)
    vault.rotate()
    vault.flush_uses()
    assert {record.account.name: record.last_used for record in reopen(path).records()} == {"work": at, "home": None}


def test_a_lease_runs_no_argon2(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.put(account(), Secret("one"))

    def slow(*_: object, **__: object) -> bytes:
        raise AssertionError("Argon2 ran")

    monkeypatch.setattr("vault.keys.hash_secret_raw", slow)
    assert secret_of(vault) == b"one"
    with pytest.raises(AssertionError):
        vault.check_approval(Secret(APPROVAL))


def test_rotation_keeps_everything_and_the_old_key_opens_nothing(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("one"))
    vault.put(account(name="home", format="file"), Secret(b"\n\n"))
    key, payload = vault.derive("journal"), vault.seal_payload("undo", b"rows")
    master = vault._unsealed.master  # type: ignore[union-attr]
    number = vault.generation
    vault.rotate()
    assert vault._unsealed.master != master  # type: ignore[union-attr]
    assert vault.generation > number
    for get in (lambda: vault, lambda: reopen(path)):
        each = get()
        assert secret_of(each) == b"one"
        assert secret_of(each, "slack", "home") == b"\n\n"
        assert each.derive("journal") == key
        assert each.open_payload("undo", payload) == b"rows"
        assert each.check_approval(Secret(APPROVAL))
        assert each.damage() == ()


def test_rotation_to_another_passphrase(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("one"))
    vault.rotate(protector("brand new passphrase"))
    with pytest.raises(WrongPassphrase):
        reopen(path)
    again = reopen(path, "brand new passphrase")
    again.rotate()
    assert secret_of(reopen(path, "brand new passphrase")) == b"one"


def test_rotation_to_a_poor_passphrase_is_refused(vault: Vault, path: Path) -> None:
    with pytest.raises(InvalidInput):
        vault.rotate(protector("aaaaaaaa"))
    reopen(path)


def test_derived_keys_differ_by_purpose_and_vault(vault: Vault, tmp_path: Path) -> None:
    other = create(tmp_path / "other" / "vault.db")
    assert len(vault.derive("journal")) == 32
    assert len({vault.derive("journal"), vault.derive("snapshots"), other.derive("journal")}) == 3


def test_payloads_open_under_their_own_name_only(vault: Vault) -> None:
    sealed = vault.seal_payload("a/captured", b"body")
    assert vault.open_payload("a/captured", sealed) == b"body"
    assert b"body" not in sealed
    assert vault.seal_payload("a/captured", b"body") != sealed
    for name, bad in (
        ("b/captured", sealed),
        ("a/captured", sealed[:-1]),
        ("a/captured", sealed[:-1] + bytes([sealed[-1] ^ 1])),
        ("a/captured", b"\x02" + sealed[1:]),
        ("a/captured", b"\x01" + bytes([sealed[1] ^ 1]) + sealed[2:]),
        ("a/captured", sealed[:10]),
        ("a/captured", b""),
    ):
        with pytest.raises(PayloadAltered):
            vault.open_payload(name, bad)


def test_somebody_else_writing_is_noticed_and_not_overwritten(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret("one"))
    second = reopen(path)
    second.put(account(name="theirs"), Secret("two"))
    with pytest.raises(VaultChanged):
        vault.put(account(name="mine"), Secret("three"))
    second.put(account(), Secret("four"), replace=True)
    with pytest.raises(VaultChanged):
        secret_of(vault)
    vault.seal()
    vault.unlock(protector())
    assert [record.account.name for record in vault.records()] == ["theirs", "work"]


def test_what_another_process_writes_while_a_passphrase_is_tried_is_taken_over(vault: Vault, path: Path) -> None:
    class Slow(PassphraseProtector):
        def recall(self, parameters: JsonObject) -> Wrapping:
            vault.put(account(name="meanwhile"), Secret("two"))
            return super().recall(parameters)

    second = Vault.open(path)
    second.unlock(Slow(Secret(PASSPHRASE), cost=CHEAP))
    assert [record.account.name for record in second.records()] == ["meanwhile"]
    second.put(account(), Secret("three"))


def test_another_key_while_a_passphrase_is_tried_is_noticed(vault: Vault, path: Path) -> None:
    class Slow(PassphraseProtector):
        def recall(self, parameters: JsonObject) -> Wrapping:
            found = super().recall(parameters)
            vault.rotate(protector("another passphrase"))
            return found

    second = Vault.open(path)
    with pytest.raises(VaultChanged):
        second.unlock(Slow(Secret(PASSPHRASE), cost=CHEAP))
    assert second.state == "sealed"


def test_a_replaced_or_removed_file_is_noticed(vault: Vault, path: Path, tmp_path: Path) -> None:
    vault.put(account(), Secret("one"))
    copy = path.read_bytes()
    path.unlink()
    with pytest.raises(VaultChanged):
        secret_of(vault)
    path.touch(mode=0o600)
    path.write_bytes(copy)
    with pytest.raises(VaultChanged):
        vault.put(account(name="home"), Secret("two"))
    vault.seal()
    vault.unlock(protector())
    assert secret_of(vault) == b"one"


def test_unlocking_twice_keeps_the_leases(vault: Vault, clock: HandClock) -> None:
    vault.put(account(), Secret("one"))
    vault.lease("slack", "work", action_id="a1", expires=clock() + SOON)
    with pytest.raises(WrongPassphrase):
        vault.unlock(protector("something else here"))
    vault.unlock(protector())
    assert [each.action_id for each in vault.live_leases()] == ["a1"]


def test_many_threads_at_once(vault: Vault, path: Path) -> None:
    for number in range(4):
        vault.put(account(name=f"n{number}"), Secret(f"secret-{number}"))
    wrong: list[object] = []

    def use(number: int) -> None:
        try:
            for turn in range(15):
                if secret_of(vault, "slack", f"n{number}") != f"secret-{number}".encode():
                    wrong.append(number)
                if turn % 5 == 0:
                    vault.put(account("github", f"t{number}-{turn}"), Secret("x"))
                if number == 0 and turn % 7 == 0:
                    vault.rotate()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(reopen(path).records()) == 4 + 4 * 3
