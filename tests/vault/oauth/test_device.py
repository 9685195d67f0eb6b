"""Logins by a code that is typed elsewhere: at a real server, and at one that does anything."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from policies.errors import InvalidInput
from tests.services.oidc import Browser, OidcServer
from tests.vault.oauth.support import CANARY, GOEX, Hostile, answer, http, raw, scopes, tokens
from vault.oauth.device import DeviceLogin
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, LoginCancelled, LoginDenied, LoginTimedOut, Refused

PENDING = answer({"error": "authorization_pending"}, status=400)


def code(**changed: Any) -> dict[str, Any]:
    made = {
        "device_code": f"{CANARY}-device",
        "user_code": "WDJB-MJHT",
        "verification_uri": "http://127.0.0.1:1/device",
        "expires_in": 30,
        "interval": 1,
    }
    return {key: value for key, value in {**made, **changed}.items() if value is not None}


def begin(hostile: Hostile, wanted: str = "notes.read", **changed: Any) -> DeviceLogin:
    hostile.replies["/device"] = answer(code(**changed))
    return DeviceLogin.begin(hostile.provider(), GOEX, scopes(wanted), http())


def test_a_person_types_the_code(server: OidcServer) -> None:
    login = DeviceLogin.begin(discover(server.issuer, http()), GOEX, scopes("notes.read made.up"), http())
    assert login.user_code in login.verification_url_complete
    with ThreadPoolExecutor(1) as pool:
        typed = pool.submit(Browser(server).enter_code, login.verification_url, login.user_code)
        made = login.wait(300)
        assert typed.result(300).status == 200
    assert made.granted == scopes("notes.read") and made.dropped == scopes("made.up")
    assert server.me(made.access.token.reveal())["sub"] == "ada"
    assert made.renews and made.flow == "device"


@pytest.mark.parametrize(("subject", "revoked"), [("", ["refresh", "access"]), ("ada", [])])
def test_the_tokens_of_a_login_that_cannot_be_proven_are_given_back(
    hostile: Hostile, subject: str, revoked: list[str]
) -> None:
    hostile.replies["/device"] = answer(code())
    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh", id_token="a.b.c"))
    hostile.replies["/revoke"] = answer(b"")
    login = DeviceLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), subject=subject)
    with pytest.raises((AuthorizationServerBroken, Refused)):
        login.wait(300)
    assert [each.form["token"] for each in hostile.asked("/revoke")] == [f"{CANARY}-{each}" for each in revoked]


def test_tokens_of_a_failed_login_are_not_given_back_where_another_has_the_same_client(hostile: Hostile) -> None:
    hostile.replies["/device"] = answer(code())
    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh", id_token="a.b.c"))
    hostile.replies["/revoke"] = answer(b"")
    login = DeviceLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), alone=lambda: False)
    with pytest.raises((AuthorizationServerBroken, Refused)):
        login.wait(300)
    assert not hostile.asked("/revoke")


def test_a_person_says_no(server: OidcServer) -> None:
    login = DeviceLogin.begin(discover(server.issuer, http()), GOEX, scopes("notes.read"), http())
    Browser(server).enter_code(login.verification_url, login.user_code, abort=True)
    with pytest.raises(LoginDenied):
        login.wait(300)


def test_the_servers_pace_is_kept(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vault.oauth.device.SLOWER", 2)
    slower = answer({"error": "slow_down"}, status=400)
    hostile.replies["/token"] = [PENDING, slower, PENDING, answer(tokens())]
    login = begin(hostile)
    began, seen = time.monotonic(), []
    ask = login._http.ask

    def watched(*given: Any, **named: Any) -> Any:
        seen.append(time.monotonic() - began)
        return ask(*given, **named)

    monkeypatch.setattr(login._http, "ask", watched)
    assert login.wait(300).granted == scopes("notes.read")
    pauses = [after - before for before, after in zip([0.0, *seen], seen, strict=False)]
    assert all(pause >= wanted for pause, wanted in zip(pauses, [1, 1, 3, 3], strict=True))


def test_a_network_that_fails_is_given_time(hostile: Hostile) -> None:
    hostile.replies["/token"] = [raw(b""), answer(tokens())]
    login = begin(hostile)
    began = time.monotonic()
    assert login.wait(300).granted == scopes("notes.read")
    assert time.monotonic() - began >= 3


@pytest.mark.parametrize(
    ("error", "kind"),
    [("access_denied", LoginDenied), ("expired_token", LoginTimedOut), ("invalid_grant", Refused)],
)
def test_the_server_ends_it(hostile: Hostile, error: str, kind: type[Exception]) -> None:
    hostile.replies["/token"] = answer({"error": error}, status=400)
    with pytest.raises(kind):
        begin(hostile).wait(300)


def test_the_codes_own_life_ends_it(hostile: Hostile) -> None:
    hostile.replies["/token"] = PENDING
    began = time.monotonic()
    with pytest.raises(LoginTimedOut):
        begin(hostile, expires_in=2).wait(300)
    assert time.monotonic() - began < 100


def test_nobody_types_it(hostile: Hostile) -> None:
    with pytest.raises(LoginTimedOut):
        begin(hostile).wait(0)
    assert not hostile.asked("/token")


def test_it_is_called_off(hostile: Hostile) -> None:
    hostile.replies["/token"] = PENDING
    login = begin(hostile, interval=60)
    threading.Timer(0.1, login.cancel).start()
    with pytest.raises(LoginCancelled):
        login.wait(300)


def test_openid_is_left_out_where_it_would_prove_nothing(hostile: Hostile) -> None:
    hostile.replies["/device"] = answer(code())
    for provider in (hostile.provider(issuer=""), hostile.provider(jwks_uri="")):
        DeviceLogin.begin(provider, GOEX, scopes("openid notes.read"), http())
        assert hostile.asked("/device")[-1].form["scope"] == "notes.read"


@pytest.mark.parametrize(
    "changed",
    [
        {"device_code": None},
        {"device_code": 7},
        {"user_code": None},
        {"user_code": "A\x1b[2J"},
        {"user_code": "A" * 100},
        {"verification_uri": None},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "http://user:pass@127.0.0.1/"},
        {"verification_uri_complete": "file:///etc/passwd"},
        {"expires_in": None},
        {"expires_in": 0},
        {"interval": -1},
        {"interval": "5"},
        {"interval": 10_000},
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(hostile: Hostile, changed: dict[str, Any]) -> None:
    hostile.replies["/device"] = answer({**code(), **changed} if None not in changed.values() else code(**changed))
    with pytest.raises(AuthorizationServerBroken) as caught:
        DeviceLogin.begin(hostile.provider(), GOEX, scopes("notes.read"), http())
    assert CANARY not in str(caught.value) and "\x1b" not in str(caught.value)


def test_a_server_that_cannot(hostile: Hostile) -> None:
    with pytest.raises(InvalidInput, match="browser"):
        DeviceLogin.begin(hostile.provider(device_endpoint=""), GOEX, scopes("notes.read"), http())
