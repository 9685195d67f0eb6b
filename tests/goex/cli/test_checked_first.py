"""Whatever can be known is checked before a secret is asked for, and where it goes is said first: on a real terminal,
before a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.person import QUESTION

# What is wrong, and what is said of it. None of them asks for anything.
WRONG = {
    ("vault", "put", "slakc"): "Did you mean slack",
    ("vault", "put", "slack", "--base-url", "http://10.0.0.1/api"): "http",
    ("vault", "put", "slack", "--base-url", "nonsense"): "nonsense",
    ("vault", "put", "slack", "--origin", "ftp://x.example"): "ftp://x.example",
    ("vault", "put", "slack", "--private", "--base-url", "https://slack.com"): "",
    ("vault", "put", "slack", "--account", "there"): "There is an account slack/there already",
    ("vault", "put", "slack", "--account", "a b/c"): "name",
    ("vault", "remove", "slakc"): "There is no account slakc/default in the vault. Did you mean slack/there?",
    ("vault", "remove", "slack", "--account", "none"): "no account slack/none in the vault. Did you mean slack/there?",
    ("vault", "remove", "matrix"): "There is no account matrix/default in the vault. See which there are",
    ("auth", "login", "slakc", "--api-key"): "Did you mean slack",
    ("auth", "login", "slack", "--bearer", "--account", "there"): "There is an account slack/there already",
    ("auth", "login", "slakc", "--client-credentials", "--client-id", "x", "--scope", "y"): "Did you mean slack",
    ("auth", "logout", "slack", "--account", "none"): "no account slack/none in the vault. Did you mean slack/there?",
    ("auth", "logout", "slakc"): "There is no account slakc in the vault. Did you mean slack/there?",
    ("db", "add", "shop", "nosuch://host/x"): "postgresql://",
    ("db", "add", "a b/c", "postgresql://me@localhost/x"): "name",
    ("db", "add", "shop", "postgresql://me@db.example.org/x", "--no-tls"): "",
    ("db", "remove", "nowhere"): "There is no database 'nowhere'",
    ("db", "policy", "nowhere", "pairs"): "There is no database 'nowhere'",
    ("agents", "add", "no such name!"): "isn't a valid name",
    ("agents", "add", "ada"): "There is an agent 'ada' already",
    ("passkey", "reset"): "No passkey is registered",
    ("undo-pairs", "remove", "0123456789"): "There is no added undo pair",
    ("vault", "backup", "/nowhere/at/all"): "/nowhere/at isn't a folder that you can write in",
    ("vault", "restore", "/nowhere/at/all", "--replace"): "isn't a file that you can read",
}
SECRETS = ("Credential for", "passphrase: ", "API key for", "Token for", "Password of", "Client secret")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        running.add_agent("ada")
        with running.terminal("vault", "put", "slack", "--account", "there") as terminal:
            terminal.expect("will be sent to https://slack.com and nowhere else")
            terminal.expect("Credential for slack/there: ")
            terminal.type("xoxb-1")
            terminal.expect("Approval passphrase: ")
            terminal.type(APPROVAL_PASSPHRASE)
            assert terminal.wait() == 0
        yield running


@pytest.mark.sampled(14)
@pytest.mark.parametrize("command", [one for one, said in WRONG.items() if said], ids=" ".join)
def test_what_is_wrong_is_said_before_a_secret_is_typed(daemon: Daemon, command: tuple[str, ...]) -> None:
    with daemon.terminal(*command) as terminal:
        assert terminal.wait() not in (0, 3)
    assert WRONG[command] in terminal.text.replace("\n      ", " "), terminal.text
    assert not any(secret in terminal.text for secret in SECRETS), terminal.text
    if command[1] in ("remove", "logout"):
        assert "Connect it" not in terminal.text and "vault put" not in terminal.text


def test_a_keyring_that_is_not_there_is_said_first(daemon: Daemon) -> None:
    with daemon.terminal("vault", "rotate", "--keyring") as terminal:
        assert terminal.wait() == 8
    assert "There is no keyring service here" in terminal.text and "Present vault passphrase" not in terminal.text


def test_where_nothing_is_to_be_done_nothing_is_asked_for(daemon: Daemon) -> None:
    with daemon.terminal("rules", "wake", "ada") as terminal:
        assert terminal.wait() == 0
    assert "ada doesn't rest" in terminal.text and not any(secret in terminal.text for secret in SECRETS)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (("vault", "put", "github"), "https://api.github.com"),
        (("vault", "put", "model", "--base-url", "https://llm.example"), "https://llm.example"),
        (("vault", "put", "slack", "--origin", "https://more.example"), "https://more.example, https://slack.com"),
        (("auth", "login", "github", "--bearer"), "https://api.github.com"),
        (("db", "add", "shop", "postgresql://me@db.example.org/x"), "db.example.org:5432, by TLS"),
        (("db", "add", "shop", "postgresql://me@127.0.0.1/x"), "127.0.0.1:5432, unencrypted, on this machine"),
    ],
)
def test_where_it_will_go_is_said_before_it_is_typed(daemon: Daemon, command: tuple[str, ...], place: str) -> None:
    with daemon.terminal(*command) as terminal:
        terminal.expect(f"will be sent to {place} and nowhere else")
        terminal.expect("|".join(SECRETS))
        terminal.hang_up()


def test_a_sealed_vault_is_said_and_offered_to_be_unlocked_first(daemon: Daemon, tmp_path: Path) -> None:
    commands = (
        ("vault", "put", "slack"), ("auth", "login", "slack", "--api-key"), ("vault", "approval"),
        ("db", "add", "shop", "postgresql://me@db.example.org/x"), ("vault", "backup", str(tmp_path / "b")),
        ("vault", "rotate", "--passphrase"), ("vault", "passphrase"), ("vault", "remove", "slack"),
        ("auth", "logout", "slack"), ("agents", "add", "bob"), ("db", "remove", "shop"), ("rules", "apply"),
    )  # fmt: skip
    daemon.goex("vault", "seal")
    try:
        for command in commands:
            with daemon.terminal(*command) as terminal:
                terminal.expect(r"The vault is sealed; its passphrase is asked for next\. Unlock it now \(yes or no\) ")
                assert not any(secret in terminal.text for secret in SECRETS), terminal.text
                terminal.type("no")
                terminal.expect("Unlock it(?: with)?: goex vault unlock")
                assert terminal.wait() == 7
        for command in (
            *commands[:2],
            ("agents", "add", "bob"),
            ("vault", "remove", "slack"),
            ("auth", "logout", "slack"),
        ):
            ran = daemon.goex(*command, stdin="a secret\n")
            assert ran.returncode == 7 and "sealed" in ran.stderr and "goex vault unlock" in ran.stderr, ran.stderr
    finally:
        daemon.unlock()


@pytest.mark.parametrize("command", [("exec", "--call", "slack.conversations.list"), ("task", "task.json")])
@pytest.mark.parametrize("since", ["sealed", "restarted"])
def test_what_is_asked_for_unlocks_and_goes_on(daemon: Daemon, command: tuple[str, ...], since: str) -> None:
    (daemon.home / "task.json").write_text('{"allows": [{"method": "slack.conversations.list"}]}')
    if since == "sealed":
        daemon.goex("vault", "seal")
    else:
        daemon.restart(unlock=False)  # nothing is written down before it was opened
    with daemon.terminal(*command) as terminal:
        terminal.expect(r"Unlock it now \(yes or no\) \[yes\]: ")
        terminal.type("perhaps")
        terminal.expect(r"Answer yes or no\. The vault's passphrase is asked for after that, and isn't shown then\.")
        terminal.expect(r"Unlock it now \(yes or no\) \[yes\]: ")
        terminal.type()
        terminal.expect("Vault passphrase: ")
        terminal.type(VAULT_PASSPHRASE)
        terminal.expect(QUESTION)
        terminal.type("no")
        assert terminal.wait() == 3


def test_while_it_is_sealed_nothing_is_said_to_be_unused(daemon: Daemon) -> None:
    def said() -> str:
        return "".join(daemon.goex(*one).stdout for one in (("vault", "list"), ("auth", "list"), ("db", "list")))

    assert said().count("never") == 2
    daemon.goex("vault", "seal")
    try:
        assert "never" not in said() and said().count("unknown while sealed") == 2
    finally:
        daemon.unlock()


def test_without_a_terminal_nothing_is_unlocked(daemon: Daemon) -> None:
    daemon.goex("vault", "seal")
    try:
        assert daemon.goex("exec", "--call", "slack.conversations.list").returncode == 7
    finally:
        daemon.unlock()
