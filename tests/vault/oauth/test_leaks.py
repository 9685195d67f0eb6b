"""No token, code, verifier or client secret shows: not in an error, a log, a repr, a traceback or a file."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from policies.errors import Unsupported
from tests.services.oidc import WEB_SECRET, Browser, OidcServer
from tests.vault.oauth.support import (
    CANARY,
    GOEX,
    Hostile,
    answer,
    http,
    log_in,
    oauth_account,
    raw,
    scopes,
    soon,
    token_set,
    tokens,
)
from tests.vault.oauth.test_faults import GARBAGE
from vault.lease import Lease
from vault.oauth import token_requests
from vault.oauth.broker import LoginBroker
from vault.oauth.code import CodeLogin
from vault.oauth.device import DeviceLogin
from vault.oauth.discovery import discover
from vault.oauth.errors import OAuthError
from vault.oauth.provider import EXCHANGE_GRANT, Client
from vault.oauth.token_set import TokenSet
from vault.secret import Secret
from vault.store import Vault


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    caplog.set_level(logging.DEBUG)
    yield caplog


def shown(error: BaseException) -> str:
    """Everything that an error shows, and what it is kept together with."""
    seen: list[BaseException] = []
    left: list[BaseException] = [error]
    while left:
        each = left.pop()
        if each not in seen:
            seen.append(each)
            left += [one for one in (each.__cause__, each.__context__) if one is not None]
    parts = ["".join(traceback.format_exception(error))]
    for each in seen:
        parts += [str(each), repr(each), repr(each.args), repr(vars(each)), repr(getattr(each, "__notes__", ""))]
    return "\n".join(parts)


def every_word(made: TokenSet) -> list[str]:
    return [each.reveal().decode() for each in (made.access.token, made.refresh, made.client.client_secret) if each]


def hides(text: str, *words: str) -> None:
    for word in words:
        assert word and word not in text


@pytest.mark.sampled(5)
@pytest.mark.promise(39)
@pytest.mark.parametrize("what", GARBAGE)
async def test_errors_show_nothing(
    hostile: Hostile, live_vault: Vault, everything_logged: pytest.LogCaptureFixture, what: str
) -> None:
    client = Client(client_id="goex", client_secret=Secret(f"{CANARY}-client"))
    hostile.replies["/token"] = GARBAGE[what]
    hostile.replies["/revoke"] = GARBAGE[what]
    made = token_set(hostile, client=client).stale()
    live_vault.put(oauth_account(), made.to_secret())
    broker = LoginBroker(live_vault, connect=lambda _: http(seconds=1))
    with pytest.raises(Exception) as caught:
        await broker.lease("notes", "work", action_id="a1", expires=soon())
    hides(shown(caught.value), CANARY)
    narrow = replace(made, provider=replace(made.provider, grant_types=(EXCHANGE_GRANT,)))
    for work in (
        lambda: token_requests.refresh(made, http(seconds=1)),
        lambda: token_requests.exchange(narrow, http(seconds=1), scopes("notes.read")),
        lambda: token_requests.client_credentials(made.provider, client, scopes("notes.read"), http(seconds=1)),
    ):
        with pytest.raises(Exception) as caught:
            work()
        hides(shown(caught.value), CANARY)
    hides(repr(token_requests.revoke(made, http(seconds=1))), CANARY)
    hides(everything_logged.text, CANARY)


@pytest.mark.parametrize("reply", [raw(b""), answer({"error": "invalid_grant"}, status=400), *GARBAGE.values()])
def test_a_login_that_fails_shows_nothing(
    hostile: Hostile, everything_logged: pytest.LogCaptureFixture, reply: Any
) -> None:
    hostile.replies["/token"] = reply
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http(seconds=1))
    login.paste(f"{login.redirect_uri}?code={CANARY}-code&state={login._state}")
    words = (CANARY, login._state, login._verifier.reveal().decode(), login._nonce)
    hides(repr(login), *words)
    with pytest.raises(Exception) as caught:
        login.wait(300)
    hides(shown(caught.value), *words)
    hides(everything_logged.text, *words)


@pytest.mark.promise(39)
@pytest.mark.parametrize("cut", [slice(None), slice(0, 20), slice(8, None)])
def test_what_a_server_repeats_is_not_shown(hostile: Hostile, cut: slice) -> None:
    client = Client(client_id="goex", client_secret=Secret(f"{CANARY}-client-secret"))
    made = token_set(hostile, client=client)
    for secret in (f"{CANARY}-client-secret", f"{CANARY}-refresh-1"):
        for said in ({"error": "invalid_grant", "error_description": f"bad: {secret[cut]}!"}, {"error": secret[cut]}):
            hostile.replies["/token"] = answer(said, status=400)
            hostile.replies["/revoke"] = answer(said, status=400)
            with pytest.raises(OAuthError) as caught:
                token_requests.refresh(made, http())
            hides(shown(caught.value) + repr(token_requests.revoke(made, http())), secret[cut])
    hostile.replies["/token"] = answer(tokens(token_type=f"{CANARY}-access"))
    with pytest.raises(Unsupported) as other:
        token_requests.refresh(made, http())
    hides(shown(other.value), CANARY)
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http(seconds=1))
    login.paste(f"{login.redirect_uri}?error=no&error_description={login._state}&state={login._state}")
    with pytest.raises(OAuthError) as caught:
        login.wait(300)
    hides(shown(caught.value), login._state)


async def test_logins_that_go_well_show_nothing(
    server: OidcServer, live_vault: Vault, path: Path, everything_logged: pytest.LogCaptureFixture
) -> None:
    made = log_in(server, "openid notes.read notes.write", Client(client_id="web", client_secret=Secret(WEB_SECRET)))
    live_vault.put(oauth_account(), made.to_secret())
    broker = LoginBroker(live_vault)
    given = await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"])
    after = broker.login("notes", "work")
    assert after is not None
    words = [*every_word(made), *every_word(after), given.secret.reveal().decode()]
    hides(" ".join(repr(each) for each in (made, after, given, broker, made.access, made.client)), *words)
    hides(everything_logged.text, *words)
    live_vault.flush_uses()
    files = b"".join(each.read_bytes() for each in path.parent.iterdir())
    hides(files.decode("latin1"), *words, "notes.write")


def test_a_device_login_shows_nothing(server: OidcServer, everything_logged: pytest.LogCaptureFixture) -> None:
    login = DeviceLogin.begin(discover(server.issuer, http()), GOEX, scopes("notes.read"), http())
    words = [login._device_code.reveal().decode()]
    with ThreadPoolExecutor(1) as pool:
        typed = pool.submit(Browser(server).enter_code, login.verification_url, login.user_code)
        made = login.wait(300)
        typed.result(300)
    hides(repr(login) + repr(made) + everything_logged.text, *words, *every_word(made))


async def test_what_is_called_off_shows_nothing(
    hostile: Hostile, live_vault: Vault, everything_logged: pytest.LogCaptureFixture
) -> None:
    from tests.vault.oauth.support import hang

    hostile.replies["/token"] = hang
    live_vault.put(oauth_account(), token_set(hostile).stale().to_secret())
    broker = LoginBroker(live_vault, connect=lambda _: http(seconds=0.5))
    task = asyncio.create_task(broker.lease("notes", "work", action_id="a1", expires=soon()))
    await asyncio.sleep(0.1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await broker.settled(10)
    await asyncio.sleep(0.05)
    hides(everything_logged.text, CANARY)


def in_memory(word: str) -> list[Secret]:
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is Secret and word.encode() in each.reveal()]


@pytest.mark.promise(39)
async def test_a_sealed_vault_leaves_no_token_in_memory(hostile: Hostile, live_vault: Vault) -> None:
    """Neither of what was leased and narrowed, nor of what failed."""
    word = uuid4().hex  # other tests' tokens may still lie about
    narrow = answer(tokens(access_token=f"{word}-1", scope="notes.read", refresh_token=f"{word}-2"))
    whole = answer(tokens(access_token=f"{word}-3", scope=None, refresh_token=f"{word}-4"))
    hostile.replies["/token"] = [narrow, whole, *[answer(b"", status=503)] * 9]
    live_vault.put(oauth_account(), token_set(hostile, refresh=Secret(f"{word}-0")).to_secret())
    broker = LoginBroker(live_vault, connect=lambda _: http(seconds=2))
    for wanted, good in (("notes.read", True), ("notes.write", False)):
        given = await asyncio.gather(
            *(broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=[wanted]) for _ in range(5)),
            return_exceptions=True,
        )
        assert all(isinstance(each, Lease) == good for each in given)
    assert in_memory(word)
    del given
    live_vault.seal()
    assert not in_memory(word)


def test_what_is_loaded_late_is_not_loaded_before() -> None:
    """The daemon's start doesn't wait for requests, Authlib and what they bring."""
    import subprocess
    import sys

    code = (
        "import sys, vault.oauth.broker, vault.oauth.token_requests, vault.oauth.provider, vault.oauth.token_set;"
        "print([name for name in ('requests', 'authlib', 'joserfc', 'urllib3') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert said.stdout.strip() == "[]"


def test_the_canary_is_really_there(hostile: Hostile) -> None:
    """The same look finds it where it is: in a request that requests itself would have put into its error."""
    import requests

    with pytest.raises(requests.RequestException) as caught:
        requests.post("http://127.0.0.1:9/", data={"refresh_token": CANARY}, timeout=2)
    assert caught.value.request is not None and CANARY in str(caught.value.request.body)
    assert CANARY in shown(ValueError(tokens()))
