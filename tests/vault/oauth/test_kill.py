"""Killed while a login is renewed: what is lost, what isn't, and what the person is told."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pytest

from tests.vault.oauth import leasing
from tests.vault.oauth.support import Hostile, Visit, answer, http, oauth_account, soon, token_set, tokens
from tests.vault.support import create, protector
from vault.oauth.broker import LoginBroker
from vault.oauth.errors import LoginExpired
from vault.oauth.token_set import TokenSet
from vault.store import Vault, utc_now


@dataclass
class Rotating:
    """A token endpoint that rotates, and revokes everything when a token older than `grace` rotations comes."""

    grace: int
    given: list[str] = field(default_factory=list)
    revoked: bool = False
    before_answer: threading.Event = field(default_factory=threading.Event)
    pause: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, link: socket.socket, visit: Visit) -> None:
        with self.lock:
            came = visit.form["refresh_token"]
            if self.revoked or came not in self.given[-1 - self.grace :]:
                self.revoked = True
                reply = answer({"error": "invalid_grant"}, status=400)
            else:
                self.given.append(f"refresh-{len(self.given) + 1}")
                reply = answer(
                    tokens(refresh_token=self.given[-1], access_token=f"access-{len(self.given)}", scope=None)
                )
            self.before_answer.set()
        time.sleep(self.pause)
        reply(link, visit)


def prepare(path: Path, hostile: Hostile, grace: int) -> Rotating:
    endpoint = Rotating(grace)
    made = token_set(hostile).stale()
    endpoint.given.append(made.refresh.reveal().decode())
    hostile.replies["/token"] = endpoint
    vault = create(path, utc_now)  # type: ignore[arg-type]
    vault.put(oauth_account(), made.to_secret())
    vault.seal()
    return endpoint


@dataclass
class Leasing:
    """A process that renews the login again and again: a fork of this one, so that its imports are paid for once."""

    path: Path
    pid: int = 0
    said: TextIO = field(init=False)

    def __enter__(self) -> TextIO:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(reading)
                sys.stdout = os.fdopen(writing, "w")
                asyncio.run(leasing.main(self.path))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writing)
        self.said = os.fdopen(reading)
        return self.said

    def __exit__(self, *_: object) -> None:
        """Kill -9."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.said.close()


async def lease_after(path: Path) -> tuple[Vault, str]:
    vault = Vault.open(path)
    vault.unlock(protector())
    given = await LoginBroker(vault, connect=lambda _: http()).lease("notes", "work", action_id="a1", expires=soon())
    return vault, given.secret.reveal().decode()


def kept(vault: Vault) -> TokenSet:
    return TokenSet.from_secret(vault.open_record("notes", "work").secret)


async def test_killed_between_the_servers_rotation_and_its_answer(path: Path, hostile: Hostile) -> None:
    """The new token is lost with the process. A server with a grace period gives another; the old is tried at once."""
    endpoint = prepare(path, hostile, grace=1)
    endpoint.pause = 5
    with Leasing(path):
        assert endpoint.before_answer.wait(300)
    endpoint.pause = 0
    vault = Vault.open(path)
    vault.unlock(protector())
    assert kept(vault).pending is not None and kept(vault).refresh.reveal() == endpoint.given[0].encode()
    vault.seal()
    vault, access = await lease_after(path)
    assert access == "access-3" and not endpoint.revoked
    assert kept(vault).refresh.reveal().decode() == endpoint.given[-1] and kept(vault).pending is None


@pytest.mark.promise(37)
async def test_without_a_grace_period_the_person_is_told_why(path: Path, hostile: Hostile) -> None:
    endpoint = prepare(path, hostile, grace=0)
    endpoint.pause = 5
    with Leasing(path):
        assert endpoint.before_answer.wait(300)
    endpoint.pause = 0
    with pytest.raises(LoginExpired, match="GoEx was stopped, or the connection broke") as caught:
        await lease_after(path)
    assert "goex auth login notes" in caught.value.next_step


@pytest.mark.promise(37)
@pytest.mark.slow
async def test_killed_at_any_moment(path: Path, hostile: Hostile) -> None:
    """With a server that takes the last token once more, no kill loses a login, and what is kept is always whole."""
    endpoint = prepare(path, hostile, grace=1)
    endpoint.pause = 0.002
    chance = random.Random(20300102)
    for _ in range(10):
        with Leasing(path) as said:
            assert select.select([said], [], [], 60)[0], "it says nothing"
            assert said.readline().startswith("access-")
            await asyncio.sleep(chance.random() * 0.4)
        vault, access = await lease_after(path)
        assert not endpoint.revoked
        assert access.startswith("access-") and kept(vault).pending is None
        assert kept(vault).refresh.reveal().decode() == endpoint.given[-1]
        opened = vault.open_record("notes", "work")
        vault.renew(opened, TokenSet.from_secret(opened.secret).stale().to_secret())
        vault.seal()
    assert len(endpoint.given) > 20
