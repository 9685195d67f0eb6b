"""What somebody would try who wants a login for themselves: echoes, silence, another person, what is left after logging
out, and connections that are held open."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote_plus, urlsplit

import pytest

from policies.errors import InvalidInput
from tests.services.oidc import Browser, OidcServer
from tests.vault.oauth.support import (
    CANARY,
    GOEX,
    Hostile,
    Reply,
    answer,
    begin,
    http,
    oauth_account,
    scopes,
    soon,
    token_set,
    tokens,
    visiting,
)
from tests.vault.oauth.test_device import code
from tests.vault.support import protector
from vault.errors import NoAccount, RecordReplaced
from vault.oauth import deposits, renewals, token_requests
from vault.oauth.broker import LoginBroker
from vault.oauth.code import CodeLogin
from vault.oauth.device import DeviceLogin
from vault.oauth.discovery import discover
from vault.oauth.errors import LoginDenied, OAuthError
from vault.oauth.loopback import Listener, Page
from vault.oauth.provider import EXCHANGE_GRANT, Client
from vault.oauth.responses import ACCESS_TOKEN_TYPE
from vault.secret import Secret
from vault.store import Vault

_MOST = 8  # narrowed tokens of a login that are remembered, to take them back; the real number takes long
SECRET = "p+ss/w0rd: of the client, é 31d7"


# ---- what a server repeats


@pytest.mark.parametrize(
    "repeated",
    [
        base64.b64encode(f"goex:{quote_plus(SECRET)}".encode()).decode(),
        base64.b64encode(f"goex:{SECRET}".encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        quote_plus(SECRET),
        SECRET[5:20],
        f"{CANARY}-refresh-1"[3:-3],
    ],
)
def test_a_secret_that_comes_back_in_other_clothes_is_not_shown(hostile: Hostile, repeated: str) -> None:
    made = token_set(hostile, client=Client(client_id="goex", client_secret=Secret(SECRET)))
    hostile.replies["/token"] = answer({"error": "invalid_client", "error_description": f"not {repeated}"}, status=401)
    with pytest.raises(OAuthError) as caught:
        token_requests.refresh(made, http())
    assert repeated not in str(caught.value)


# ---- silence about scopes


@pytest.mark.promise(38)
async def test_a_server_that_never_states_scopes_is_not_said_to_hold_anything(
    hostile: Hostile, live_vault: Vault
) -> None:
    """One that takes no notice of scopes is as silent as one that gave just what was asked for."""
    hostile.replies["/device"] = answer(code(interval=0))
    hostile.replies["/token"] = answer(tokens(scope=None, refresh_token=f"{CANARY}-refresh"))
    login = DeviceLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http())
    live_vault.put(oauth_account(), login.wait(300).to_secret())
    broker = LoginBroker(live_vault)
    assert broker.narrows("notes", "work", ["notes.read"]) != "token"
    for _ in range(2):
        given = await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"])
        assert given.narrowed == "gateway"
    assert broker.narrows("notes", "work", ["notes.read"]) == "gateway"


# ---- another person


def test_a_device_login_of_somebody_else_does_not_take_the_accounts_place(server: OidcServer) -> None:
    provider = discover(server.issuer, http())
    for who, good in (("ada", True), ("grace", False)):
        login = DeviceLogin.begin(provider, GOEX, scopes("openid notes.read"), http(), subject="ada")
        with ThreadPoolExecutor(1) as pool:
            typed = pool.submit(Browser(server, who).enter_code, login.verification_url, login.user_code)
            if good:
                assert login.wait(300).subject == "ada"
            else:
                with pytest.raises(LoginDenied):
                    login.wait(300)
            typed.result(300)


def test_a_device_login_that_does_not_say_whose_it_is_is_not_taken_for_the_same(hostile: Hostile) -> None:
    hostile.replies["/device"] = answer(code(interval=0))
    hostile.replies["/token"] = answer(tokens(scope="openid notes.read"))
    login = DeviceLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), subject="ada")
    with pytest.raises(LoginDenied):
        login.wait(300)
    # Where nobody is expected, it is a login like any other.
    login = DeviceLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http())
    assert login.wait(300).subject == ""


def test_a_login_in_which_the_server_drops_openid_is_not_taken_for_the_same(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer(tokens(scope="notes.read"))
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), subject="ada")
    login.paste(f"{login.redirect_uri}?code=c&state={login._state}&iss={hostile.issuer}")
    with pytest.raises(LoginDenied):
        login.wait(300)


def test_the_same_person_may_log_in_again(server: OidcServer) -> None:
    login = begin(server, "openid notes.read", subject="ada")
    with visiting(server, login.url):
        assert login.wait(300).subject == "ada"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/callback", "http://127.0.0.1:9/callback", "/callback"])
def test_an_address_elsewhere_is_not_this_logins_whatever_it_says(hostile: Hostile, elsewhere: str) -> None:
    hostile.replies["/token"] = answer(tokens())
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http())
    with pytest.raises(InvalidInput):
        login.paste(f"{elsewhere}?code=c&state={login._state}")
    with pytest.raises(InvalidInput):
        login.paste(f"{login.redirect_uri}?code=c&state={login._state}#more")
    login.paste(f"{login.redirect_uri}?code=c&state={login._state}")
    assert login.wait(300).granted == scopes("notes.read")


def test_scopes_that_a_login_adds_unasked_do_not_count(hostile: Hostile) -> None:
    hostile.replies |= {"/token": answer(tokens(scope="notes.read admin")), "/device": answer(code(interval=0))}
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("notes.read notes.write"), http())
    login.paste(f"{login.redirect_uri}?code=c&state={login._state}")
    for made in (
        login.wait(300),
        DeviceLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http()).wait(300),
        token_requests.client_credentials(
            hostile.provider(), Client(client_id="a", client_secret=Secret("b")), scopes("notes.read"), http()
        ),
    ):
        assert made.granted == scopes("notes.read")
        assert made.access.scopes == scopes("notes.read admin")  # what its token opens all the same


async def test_a_token_of_the_login_before_is_not_leased_for_the_next(hostile: Hostile, live_vault: Vault) -> None:
    """The person logged in anew while a token was exchanged: what comes is another login's, and perhaps another's."""
    asked, go = threading.Event(), threading.Event()

    def late(link: socket.socket, visit: object) -> None:
        asked.set()
        go.wait(300)
        answer(tokens(issued_token_type=ACCESS_TOKEN_TYPE))(link, visit)  # type: ignore[arg-type]

    hostile.replies["/token"] = late
    exchanging = token_set(hostile, provider=hostile.provider(grant_types=(EXCHANGE_GRANT,)), narrows="exchange")
    live_vault.put(oauth_account(), exchanging.to_secret())
    broker = LoginBroker(live_vault)
    leasing = asyncio.create_task(broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"]))
    assert await asyncio.to_thread(asked.wait, 10)
    live_vault.put(oauth_account(), replace(exchanging, family="e" * 32).to_secret(), replace=True)
    go.set()
    with pytest.raises(RecordReplaced):
        await leasing


# ---- what is left after logging out


@pytest.mark.promise(42)
async def test_taking_back_revokes_narrowed_tokens_too(hostile: Hostile, live_vault: Vault) -> None:
    narrow = answer(tokens(access_token=f"{CANARY}-narrow", refresh_token=f"{CANARY}-r2"))
    whole = answer(tokens(scope="notes.read notes.write", refresh_token=f"{CANARY}-r3"))
    hostile.replies |= {"/token": [narrow, whole], "/revoke": answer(b"")}
    live_vault.put(oauth_account(), token_set(hostile).to_secret())
    broker = LoginBroker(live_vault)
    await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"])
    assert (await broker.take_back("notes", "work")).done
    told = [each.form["token"] for each in hostile.asked("/revoke")]
    assert told == [f"{CANARY}-r3", f"{CANARY}-access", f"{CANARY}-narrow"]
    with pytest.raises(NoAccount):
        broker.login("notes", "work")
    assert not live_vault.while_unsealed()


async def test_taking_back_revokes_narrowed_tokens_that_were_let_go(hostile: Hostile, live_vault: Vault) -> None:
    """A 401 of a service says that one token isn't taken there; the others are as good as before."""

    def narrow(name: str, **more: object) -> Reply:
        return answer(tokens(access_token=f"{CANARY}-{name}", **more))

    hostile.replies |= {"/revoke": answer(b"")}
    hostile.replies["/token"] = [narrow("one"), narrow("short", expires_in=1)]
    made = token_set(hostile, narrows="refresh")
    live_vault.put(oauth_account(), made.to_secret())
    broker = LoginBroker(live_vault)
    await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"])
    broker.distrust("notes", "work")
    await broker.lease("notes", "work", action_id="a2", expires=soon(), scopes=["notes.read"])
    broker.distrust("notes", "work")
    await asyncio.sleep(1.1)  # one of them has run out by now
    assert (await broker.take_back("notes", "work")).done
    told = [each.form["token"] for each in hostile.asked("/revoke")]
    assert told == [f"{CANARY}-refresh-1", f"{CANARY}-first", f"{CANARY}-one"]
    assert not live_vault.while_unsealed()


async def test_what_is_to_be_revoked_is_bounded(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert renewals._MOST_LET_GO == renewals._MOST_NARROWED == 64
    for name in ("_MOST_LET_GO", "_MOST_NARROWED"):
        monkeypatch.setattr(renewals, name, _MOST)
    given = [answer(tokens(access_token=f"{CANARY}-{number}")) for number in range(_MOST + 3)]
    hostile.replies |= {"/token": given, "/revoke": answer(b"")}
    live_vault.put(oauth_account(), token_set(hostile, narrows="refresh").to_secret())
    broker = LoginBroker(live_vault)
    for _ in range(_MOST + 3):
        await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=["notes.read"])
        broker.distrust("notes", "work")
    assert (await broker.take_back("notes", "work")).done
    told = [each.form["token"] for each in hostile.asked("/revoke")]
    assert told[2:] == [f"{CANARY}-{number}" for number in range(3, _MOST + 3)]


async def test_taking_back_waits_for_a_renewal_and_takes_back_what_it_brought(
    hostile: Hostile, live_vault: Vault
) -> None:
    asked, go = threading.Event(), threading.Event()

    def late(link: socket.socket, visit: object) -> None:
        asked.set()
        go.wait(300)
        answer(tokens(refresh_token=f"{CANARY}-renewed"))(link, visit)  # type: ignore[arg-type]

    hostile.replies |= {"/token": late, "/revoke": answer(b"")}
    live_vault.put(oauth_account(), token_set(hostile, narrows="no").stale().to_secret())
    broker = LoginBroker(live_vault)
    leasing = asyncio.create_task(broker.lease("notes", "work", action_id="a1", expires=soon()))
    assert await asyncio.to_thread(asked.wait, 10)
    taking = asyncio.create_task(broker.take_back("notes", "work"))
    await asyncio.sleep(0.1)
    go.set()
    assert (await taking).done
    with contextlib.suppress(Exception):
        await leasing
    told = [each.form["token"] for each in hostile.asked("/revoke")]
    assert told[0] == f"{CANARY}-renewed"


@pytest.mark.promise(42)
async def test_taking_back_finds_an_answer_that_came_after_sealing(hostile: Hostile, live_vault: Vault) -> None:
    asked, go = threading.Event(), threading.Event()

    def late(link: socket.socket, visit: object) -> None:
        asked.set()
        go.wait(300)
        answer(tokens(refresh_token=f"{CANARY}-late"))(link, visit)  # type: ignore[arg-type]

    hostile.replies |= {"/token": late, "/revoke": answer(b"")}
    made = token_set(hostile, narrows="no").stale()
    live_vault.put(oauth_account(), made.to_secret())
    broker = LoginBroker(live_vault)
    leasing = asyncio.create_task(broker.lease("notes", "work", action_id="a1", expires=soon()))
    assert await asyncio.to_thread(asked.wait, 10)
    live_vault.seal()
    go.set()
    with pytest.raises(Exception, match="sealed"):
        await leasing
    live_vault.unlock(protector())
    place = deposits._place(live_vault.path, made.family)
    assert place.exists()
    assert (await broker.take_back("notes", "work")).done
    assert hostile.asked("/revoke")[0].form["token"] == f"{CANARY}-late"
    assert not place.exists()


# ---- connections that are held open


def test_visitors_that_drip_do_not_keep_the_browser_out() -> None:
    """Anyone on this machine can connect; who sends a byte now and then is never silent."""
    seen: list[str] = []

    def visited(query: str) -> Page:
        seen.append(query)
        return Page(status=200, heading="a", text="b")

    listener = Listener("/callback", visited)
    over = threading.Event()

    def drip(link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            link.sendall(b"GET /callback HTTP/1.1\r\nX-Slow: ")
            while not over.wait(0.2):
                link.sendall(b"a")

    held = [socket.create_connection(("127.0.0.1", listener.port), timeout=10) for _ in range(8)]
    threads = [threading.Thread(target=drip, args=(link,)) for link in held]
    for each in threads:
        each.start()
    try:
        time.sleep(0.5)
        with socket.create_connection(("127.0.0.1", listener.port), timeout=300) as link:
            link.sendall(f"GET /callback?a=b HTTP/1.1\r\nHost: 127.0.0.1:{listener.port}\r\n\r\n".encode())
            with contextlib.suppress(OSError):
                link.recv(4096)
        assert seen == ["a=b"]
    finally:
        over.set()
        listener.close()
        for link, each in zip(held, threads, strict=True):
            link.close()
            each.join(5)


_STRANGER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
host, source = sys.argv[3:]
with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as link:
    link.settimeout(60)
    if source:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.bind((host.replace("127.0.0.1", "127.0.0.2"), int(source)))
    link.connect((host, int(sys.argv[1])))
    try:
        link.sendall(sys.argv[2].encode())
        sys.exit(len(link.recv(10)))
    except OSError:
        pass
"""


@pytest.mark.promise(36)
@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can be somebody else")
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "by the port of a connection of ours"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_another_user_of_this_machine_cannot_answer_a_login(hostile: Hostile, host: str, beside: bool) -> None:
    """Not even one who saw the whole address, state and challenge, and comes from the port that a browser waits at, of
    another address of this machine."""
    hostile.replies["/token"] = answer(tokens())
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http())
    port = urlsplit(login.redirect_uri).port
    head = f"GET /callback?code=theirs&state={login._state} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as waiting, socket.socket(family) as link:
        if beside:
            waiting.connect((host, port))
        source = str(waiting.getsockname()[1]) if beside else ""
        words = [sys.executable, "-c", _STRANGER, str(port), head, host, source]
        done = subprocess.run(words, check=False, timeout=300)
        assert done.returncode == 0, "it was answered"
        link.connect((host, port))
        link.sendall(head.replace("theirs", "mine").encode())
        assert link.recv(15).startswith(b"HTTP/1.1 200")
    assert login.wait(300).granted == scopes("notes.read")
    assert hostile.asked("/token")[0].form["code"] == "mine"


def test_a_life_in_the_past_is_never_leased(hostile: Hostile) -> None:
    made = token_set(hostile)
    assert made.access.expires is not None
    assert not made.access.fresh(made.access.expires + timedelta(seconds=1))
