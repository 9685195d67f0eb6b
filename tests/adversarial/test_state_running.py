"""Attacks on the files of a daemon that runs, which is killed afterwards: what was put in their place is never gone on
from. The control kills it with its own files in place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.adversarial.state_scene import refusal
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon, DaemonError


def named(daemon: Daemon, name: str) -> str:
    """The code that naming an agent ends with; "": it was named."""
    return refusal(lambda: daemon.person("AddAgent", pb.AddAgentRequest(name=name, passphrase=APPROVAL_PASSPHRASE)))


def copied(daemon: Daemon, *names: str) -> None:
    """Copies from before a change take the place of the files that are open."""
    kept = {file: file.read_bytes() for name in names if (file := daemon.state_dir / name).exists()}
    assert named(daemon, "between") == ""
    for file, data in kept.items():
        fresh = file.with_name("fresh")
        fresh.touch(mode=0o600)
        fresh.write_bytes(data)
        fresh.rename(file)


def cut(name: str) -> Callable[[Daemon], None]:
    return lambda daemon: os.truncate(daemon.state_dir / name, 0)


def linked(daemon: Daemon) -> None:
    head = daemon.state_dir / "journal.head"
    elsewhere = Path(daemon.home) / "elsewhere"
    head.rename(elsewhere)
    head.symlink_to(elsewhere)


PLACED: dict[str, Callable[[Daemon], None]] = {
    "log_exchanged_while_it_is_written": lambda daemon: copied(daemon, "state.db", "state.db-wal", "journal.head"),
    "log_cut_while_it_is_written": cut("state.db"),
    "newest_rows_cut_while_it_is_written": cut("state.db-wal"),
    "head_led_elsewhere": linked,
}


def goes_on(daemon: Daemon, place: Callable[[Daemon], None]) -> bool:
    """Whether a daemon that was killed goes on from its files, once they are what `place` made of them."""
    daemon.add_agent("first")
    place(daemon)
    named(daemon, "after")
    daemon.kill()
    try:
        daemon.start()
    except DaemonError as error:
        assert "isn't a regular file" in str(error)
        return False
    refused = refusal(daemon.unlock)
    assert refused in ("", "journal-broken", "journal-behind")
    return refused == ""


@pytest.mark.promise(7)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PLACED)
def test_it_is_refused(name: str) -> None:
    with Daemon() as daemon:
        assert not goes_on(daemon, PLACED[name])


def test_control() -> None:
    with Daemon() as daemon:
        assert goes_on(daemon, lambda daemon: None)


def _exchanged(daemon: Daemon, *names: str) -> str:
    copied(daemon, *names)
    return named(daemon, "after")


@pytest.mark.promise(30)
def test_a_vault_that_was_exchanged_is_written_no_more() -> None:
    """Nor does a wrong passphrase count in it, since none is looked at."""
    with Daemon() as daemon:
        assert _exchanged(daemon, "vault.db") == "vault-changed"


def test_control_vault() -> None:
    with Daemon() as daemon:
        assert _exchanged(daemon) == ""
