"""What is typed at a prompt for a secret, on a real terminal in a real shell, before a real daemon."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.goex.databases.conftest import Shop, shop
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.entries import Client
from tests.support.person import QUESTION
from tests.support.shell import Shell

__all__ = ["shop"]
WORDS = "correct horse battery staple"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    return Client(daemon)


@pytest.fixture
def bare() -> Iterator[Daemon]:
    with Daemon(init=False) as running:
        yield running


def test_init_says_each_rule_before_the_second_time_and_asks_again(bare: Daemon) -> None:
    with bare.terminal("vault", "init", "--passphrase") as terminal:
        terminal.expect("Vault passphrase: ")
        terminal.type("short")
        terminal.expect("The vault passphrase is too short. Use at least 8 characters")
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("The same again: ")
        terminal.type("something else")
        terminal.expect("typed in two different ways. Type it again.")
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("The same again: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("Approval passphrase [^:]*: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect("The approval passphrase must differ from the vault's passphrase.")
        terminal.expect("Approval passphrase [^:]*: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect("The same again: ")
        terminal.type(APPROVAL_PASSPHRASE)
        terminal.expect("The vault is unsealed")
        assert terminal.wait() == 0
    assert "passphrase in tests" not in terminal.text


def test_three_that_differ_end_it_and_nothing_reaches_the_shell(bare: Daemon) -> None:
    with Shell(bare) as shell:
        shell.goex("vault", "init", "--passphrase")
        for _ in range(3):
            shell.expect("Vault passphrase: ")
            shell.type(VAULT_PASSPHRASE)
            shell.expect("The same again: ")
            shell.press(f"another one\n{WORDS}\n{WORDS}\n")
        said = shell.back()
    assert "typed in two different ways" in said
    assert "battery" not in shell.text and "not found" not in shell.text
    assert (
        bare.goex("doctor", "--quick").stdout.count("absent") or "vault init" in bare.goex("doctor", "--quick").stdout
    )


@pytest.mark.promise(4)
@pytest.mark.parametrize("ends", ["interrupt", "stop by a signal", "end of input", "typed ahead"])
def test_whatever_ends_a_prompt_the_shell_gets_nothing_and_echoes(daemon: Daemon, ends: str) -> None:
    with Shell(daemon) as shell:
        shell.goex("vault", "approval")
        shell.expect("Present approval passphrase: ")
        if ends == "interrupt":
            shell.press(f"{WORDS}")
            shell.press("\x03")
        elif ends == "stop by a signal":
            shell.press(f"{WORDS}\x0e")
            shell.signal(signal.SIGTERM)
        elif ends == "end of input":
            shell.press("\x04")
        else:
            # The first is wrong, and what follows comes while the daemon looks at it.
            shell.type("not the passphrase at all")
            for _ in range(2):
                shell.expect("New approval passphrase|The same again")
                shell.type(WORDS)
            shell.press(f"{WORDS}\n{WORDS}\n")
        shell.back()
    asked, _, answered = shell.text.partition("The same again")
    if "The same again" in shell.text:
        # What comes while the daemon looks, no prompt being up, the terminal may echo; the shell gets none of it.
        answered = answered.partition("Try again.")[2]
        assert answered, shell.text
    assert "battery" not in asked + answered, shell.text
    assert "not found" not in shell.text, shell.text


def test_a_stopped_prompt_gives_the_terminal_back_and_asks_again(daemon: Daemon) -> None:
    with Shell(daemon) as shell:
        shell.goex("vault", "approval")
        shell.expect("Present approval passphrase: ")
        shell.press(f"{WORDS}\x1a")
        shell.back()
        shell.type("fg")
        shell.expect("Present approval passphrase: ")
        shell.press("\x03")
        shell.back()
    assert "battery" not in shell.text


def test_an_unlock_asks_again_after_a_wrong_passphrase(bare: Daemon) -> None:
    bare.init()
    bare.goex("vault", "seal")
    with Shell(bare) as shell:
        shell.goex("vault", "unlock")
        shell.expect("Vault passphrase: ")
        shell.type(WORDS)
        shell.expect("doesn't open this vault")
        shell.expect("Vault passphrase: ")
        shell.type(VAULT_PASSPHRASE)
        shell.expect("The vault is unsealed")
        shell.back()
    assert "battery" not in shell.text


def test_the_question_says_whether_the_passphrase_will_be_asked_for(shop: Shop) -> None:
    with Shell(shop.client.daemon) as shell:
        for number, asked in ((1, True), (2, False)):  # it is remembered on this terminal
            shell.goex("exec", "--db", shop.name, "--sql", f"UPDATE orders SET total = {number} WHERE id = {number}")
            begin = shell._at
            shell.expect(QUESTION)
            assert ("(passphrase)" in shell.text[begin:]) is asked
            assert "may ask" not in shell.text
            shell.type("once")
            if asked:
                shell.expect("Approval passphrase: ")
                shell.type(APPROVAL_PASSPHRASE)
            shell.expect("1 row changed")
            shell.back()


@pytest.mark.promise(4)
def test_a_deadline_that_passes_during_the_passphrase_is_said_once(shop: Shop) -> None:
    with Shell(shop.client.daemon) as shell:
        shell.goex("exec", "--ask", "4", "--db", shop.name, "--sql", "UPDATE orders SET total = 0 WHERE id = 1")
        shell.expect(QUESTION)
        shell.type("once")
        shell.expect("Approval passphrase: ")
        begin = shell._at
        shell.press("correct horse")
        shell.expect("The time to answer is over; no answer denies. Press Enter; what you typed isn't used.")
        shell.press(" battery staple\n")
        shell.expect("Nobody answered in time")
        said = shell.back()
    after = shell.text[begin:]
    for contradiction in ("settled", "went away", "Waiting for approval", "has ended meanwhile", "goex approve q-"):
        assert contradiction not in after, after
    assert "horse" not in said and "battery" not in shell.text
    assert shop.orders()[0][2] == 5
