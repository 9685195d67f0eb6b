"""The approval passphrase: right, wrong, too often, and over crashes."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from policies.errors import ExitStatus, InvalidInput
from tests.vault.support import APPROVAL, CHEAP, HandClock, create, protector, reopen
from vault.approval import FREE_MISTAKES, LONGEST_WAIT, Approval
from vault.errors import ApprovalBackoff, VaultUnwritable, WrongPassphrase
from vault.secret import Secret
from vault.store import Vault

WRONG = Secret("not the right one")


def test_right_and_wrong(vault: Vault) -> None:
    assert vault.check_approval(Secret(APPROVAL))
    assert not vault.check_approval(WRONG)
    assert not vault.check_approval(Secret(b"\xff\xfe"))
    assert not vault.check_approval(Secret(""))


def test_waits_grow_after_the_free_mistakes(vault: Vault, clock: HandClock) -> None:
    for _ in range(FREE_MISTAKES):
        assert not vault.check_approval(WRONG)
    waits = []
    for _ in range(12):
        with pytest.raises(ApprovalBackoff) as caught:
            vault.check_approval(Secret(APPROVAL))
        assert caught.value.exit_status is ExitStatus.DENIED
        waits.append(caught.value.seconds)
        clock.forward(caught.value.seconds - 0.01)
        with pytest.raises(ApprovalBackoff):
            vault.check_approval(Secret(APPROVAL))
        clock.forward(0.02)
        assert not vault.check_approval(WRONG)
    assert waits[:3] == [2, 4, 8]
    assert waits[-1] == LONGEST_WAIT


def test_the_right_one_resets_the_count(vault: Vault, clock: HandClock) -> None:
    for _ in range(FREE_MISTAKES):
        vault.check_approval(WRONG)
    clock.forward(3)
    assert vault.check_approval(Secret(APPROVAL))
    for _ in range(FREE_MISTAKES):
        assert not vault.check_approval(WRONG)


def test_mistakes_survive_a_restart(vault: Vault, path: Path, clock: HandClock) -> None:
    for _ in range(FREE_MISTAKES):
        vault.check_approval(WRONG)
    vault.seal()
    with pytest.raises(ApprovalBackoff):
        reopen(path, clock=clock).check_approval(Secret(APPROVAL))


def test_an_attempt_is_counted_before_it_is_looked_at(
    vault: Vault, path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that is killed while Argon2 runs has counted already."""

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("vault.approval.Approval.matches", killed)
        for _ in range(FREE_MISTAKES):
            with pytest.raises(KeyboardInterrupt):
                vault.check_approval(Secret(APPROVAL))
    with pytest.raises(ApprovalBackoff):
        reopen(path, clock=clock).check_approval(Secret(APPROVAL))


def test_a_clock_set_back_doesnt_lock_the_person_out(vault: Vault, clock: HandClock) -> None:
    for _ in range(FREE_MISTAKES):
        vault.check_approval(WRONG)
    clock.now -= timedelta(days=400)
    assert not vault.check_approval(WRONG)
    with pytest.raises(ApprovalBackoff) as caught:
        vault.check_approval(WRONG)
    assert caught.value.seconds <= LONGEST_WAIT


def test_many_guessing_at_once_win_nothing(vault: Vault) -> None:
    looked_at: list[bool] = []
    refused: list[float] = []

    def guess() -> None:
        try:
            looked_at.append(vault.check_approval(WRONG))
        except ApprovalBackoff as error:
            refused.append(error.seconds)

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert looked_at == [False] * FREE_MISTAKES
    assert len(refused) == 12 - FREE_MISTAKES


def test_an_attempt_that_cant_be_counted_isnt_looked_at(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    from vault.unsealed import Unsealed

    def full(*_: object, **__: object) -> None:
        raise VaultUnwritable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(Unsealed, "write", full)
        with pytest.raises(VaultUnwritable):
            vault.check_approval(Secret(APPROVAL))


def test_change(vault: Vault, path: Path, clock: HandClock) -> None:
    new = Secret("a quite different one")
    with pytest.raises(WrongPassphrase):
        vault.change_approval(WRONG, new, cost=CHEAP)
    with pytest.raises(InvalidInput):
        vault.change_approval(Secret(APPROVAL), Secret("short"), cost=CHEAP)
    vault.change_approval(Secret(APPROVAL), new, cost=CHEAP)
    again = reopen(path, clock=clock)
    assert again.check_approval(new)
    assert not again.check_approval(Secret(APPROVAL))


NEW = Secret("a quite different one")


def test_a_check_of_the_old_one_meanwhile_doesnt_bring_it_back(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old passphrase is tried, right, from just before the new one is written until just after."""
    said: list[bool] = []
    looking, changed = threading.Event(), threading.Event()
    really_matches, really_of = Approval.matches, Approval.of

    def slow(approval: Approval, passphrase: Secret) -> bool:
        if threading.current_thread() is other:
            looking.set()
            changed.wait(5)
        return really_matches(approval, passphrase)

    def of(*given: object) -> Approval:
        other.start()
        looking.wait(0.5)
        return really_of(*given)  # type: ignore[arg-type]

    other = threading.Thread(target=lambda: said.append(vault.check_approval(Secret(APPROVAL))))
    monkeypatch.setattr(Approval, "matches", slow)
    monkeypatch.setattr(Approval, "of", of)
    vault.change_approval(Secret(APPROVAL), NEW, cost=CHEAP)
    changed.set()
    other.join()
    assert said == [False]
    assert vault.check_approval(NEW)
    assert not vault.check_approval(Secret(APPROVAL))


def test_one_that_was_changed_elsewhere_while_it_was_checked_isnt_right_any_more(
    vault: Vault, path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Approval.matches

    def changed(approval: Approval, passphrase: Secret) -> bool:
        with monkeypatch.context() as patched:
            patched.setattr(Approval, "matches", really)
            vault.seal()
            reopen(path, clock=clock).change_approval(Secret(APPROVAL), NEW, cost=CHEAP)
            vault.unlock(protector())
        return really(approval, passphrase)

    with monkeypatch.context() as patched:
        patched.setattr(Approval, "matches", changed)
        assert not vault.check_approval(Secret(APPROVAL))
    assert vault.check_approval(NEW)


def test_guesses_by_changing_count_too(vault: Vault) -> None:
    for _ in range(FREE_MISTAKES):
        with pytest.raises(WrongPassphrase):
            vault.change_approval(WRONG, Secret("a quite different one"), cost=CHEAP)
    with pytest.raises(ApprovalBackoff):
        vault.change_approval(Secret(APPROVAL), Secret("a quite different one"), cost=CHEAP)


def test_the_default_cost_is_the_documented_one(path: Path) -> None:
    made = Vault.create(path, protector(), Secret(APPROVAL))
    parameters = made._unsealed.record_index.approval.parameters  # type: ignore[union-attr]
    assert (parameters["passes"], parameters["memory"], parameters["lanes"]) == (3, 64 * 1024, 4)
    create(path.with_name("other.db"))
