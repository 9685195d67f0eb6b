"""Servers that lie, break off, hang or have ways of their own: what GoEx makes of them."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from policies.errors import GoexError, Unavailable, Unsupported
from tests.services.oidc import Browser, OidcServer
from tests.vault.oauth.support import (
    CANARY,
    GOEX,
    Hostile,
    Reply,
    answer,
    drip,
    hang,
    http,
    log_in,
    oauth_account,
    raw,
    scopes,
    soon,
    token_set,
    tokens,
)
from vault.errors import VaultUnwritable
from vault.lease import Lease
from vault.oauth import token_requests
from vault.oauth.broker import LoginBroker
from vault.oauth.code import CodeLogin, _serves
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, LoginExpired, MixUp, Refused, Unreachable
from vault.oauth.provider import EXCHANGE_GRANT, Client, Provider
from vault.oauth.token_set import TokenSet
from vault.secret import Secret
from vault.store import Vault

LOST = [raw(b""), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"), hang]
GARBAGE: dict[str, Reply] = {
    "a web page": answer(b"<html>hello</html>", kind="text/html"),
    "an empty answer": answer(b""),
    "half of JSON": answer(b'{"access_token": "x'),
    "a list": answer([tokens()]),
    "a key twice": answer(b'{"access_token":"a","access_token":"b","token_type":"Bearer"}'),
    "not UTF-8": answer(b'{"access_token":"\xff"}'),
    "no token": answer(tokens(access_token=None)),
    "a number as token": answer(tokens(access_token=7)),
    "a token with a line break": answer(tokens(access_token="a\r\nX-Evil: 1")),
    "a token with a blank": answer(tokens(access_token="a b")),
    "no kind": answer(tokens(token_type=None)),
    "a life that can't be": answer(tokens(expires_in=-1)),
    "a life that is no number": answer(tokens(expires_in="soon")),
    "scopes that can't be": answer(tokens(scope=["notes.read", 7])),
    "a scope in two lines": answer(tokens(scope="notes.read\nnotes.write")),
    "a refresh token that isn't one": answer(tokens(refresh_token={"a": 1})),
    "too much": answer(b'{"access_token":"' + b"a" * 300_000 + b'"}'),
    "not HTTP": raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "deep nesting": answer(b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "a bomb": answer(b"\x1f\x8b" + b"0" * 100, headers={"Content-Encoding": "gzip"}),
    "a redirect": answer(b"", status=307, headers={"Location": "https://elsewhere.example.org/token"}),
    "an error that isn't one": answer({"error": {"code": 5}}, status=400),
}


def connect(vault: Vault, made: TokenSet, seconds: float = 60.0) -> LoginBroker:
    vault.put(oauth_account(), made.to_secret(), replace=True)
    return LoginBroker(vault, connect=lambda _: http(seconds=seconds))


def kept(vault: Vault) -> TokenSet:
    return TokenSet.from_secret(vault.open_record("notes", "work").secret)


async def lease(broker: LoginBroker, wanted: str = "") -> Lease:
    return await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=wanted.split())


# ---- answers that can't be used ----


@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", GARBAGE)
async def test_an_answer_that_makes_no_sense_is_refused_whole(hostile: Hostile, live_vault: Vault, what: str) -> None:
    hostile.replies["/token"] = GARBAGE[what]
    made = token_set(hostile).stale()
    broker = connect(live_vault, made)
    with pytest.raises((AuthorizationServerBroken, Unreachable)) as caught:
        await lease(broker)
    assert CANARY not in str(caught.value) and "Evil" not in str(caught.value)
    after = kept(live_vault)
    assert replace(after, pending=None) == made  # nothing of it was taken, and the old isn't given up
    assert after.pending is not None
    assert len(hostile.asked("/token")) <= 2 and live_vault.live_leases() == ()


@pytest.mark.parametrize("kind", ["DPoP", "mac", "N_A"])
async def test_other_kinds_of_token_are_refused(hostile: Hostile, live_vault: Vault, kind: str) -> None:
    hostile.replies["/token"] = answer(tokens(token_type=kind))
    with pytest.raises(Unsupported, match="bearer tokens alone"):
        await lease(connect(live_vault, token_set(hostile).stale()))


@pytest.mark.parametrize("reply", [hang, drip])
async def test_a_server_that_does_not_come_to_an_end(hostile: Hostile, live_vault: Vault, reply: Reply) -> None:
    hostile.replies["/token"] = reply
    broker = connect(live_vault, token_set(hostile).stale(), seconds=2.0)
    with pytest.raises(Unreachable, match="didn't answer in time"):
        await asyncio.wait_for(lease(broker), 300)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_server_that_is_busy_is_left_alone(hostile: Hostile, live_vault: Vault, status: int) -> None:
    hostile.replies["/token"] = answer(b"<html>busy</html>", status=status, headers={"Retry-After": "17"})
    made = token_set(hostile).stale()
    with pytest.raises(Unreachable, match="17 seconds") as caught:
        await lease(connect(live_vault, made))
    assert caught.value.seconds == 17
    assert len(hostile.asked("/token")) == 1
    assert not kept(live_vault).ended


@pytest.mark.parametrize("error", ["invalid_client", "temporarily_unavailable", "unauthorized_client"])
async def test_a_refusal_that_says_nothing_of_the_login_does_not_end_it(
    hostile: Hostile, live_vault: Vault, error: str
) -> None:
    hostile.replies["/token"] = answer({"error": error, "error_description": "\x1b[2Jno"}, status=401)
    made = token_set(hostile).stale()
    with pytest.raises(Refused) as caught:
        await lease(connect(live_vault, made))
    assert caught.value.error == error and "\x1b" not in str(caught.value)
    assert kept(live_vault) == made


async def test_an_error_with_a_good_status_is_an_error(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer({**tokens(), "error": "invalid_grant"})
    with pytest.raises(Refused):
        token_requests.refresh(token_set(hostile), http())


@pytest.mark.promise(37)
async def test_a_server_that_is_down_is_asked_once_for_all_who_wait(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(b"", status=503)
    broker = connect(live_vault, token_set(hostile).stale())
    kinds = ["", "notes.read", "notes.write"]
    given = await asyncio.gather(*(lease(broker, kinds[number % 3]) for number in range(30)), return_exceptions=True)
    assert {type(each) for each in given} == {Unreachable}
    assert len(hostile.visits) == 1


# ---- answers that are lost ----


@pytest.mark.parametrize("lost", LOST)
async def test_a_lost_answer_is_asked_for_again_within_the_servers_grace(
    hostile: Hostile, live_vault: Vault, lost: Reply
) -> None:
    """Many servers take an old refresh token for a while after they rotated it: GoEx asks again at once."""
    hostile.replies["/token"] = [lost, answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale(), seconds=5.0 if lost is hang else 60.0)
    given = await lease(broker)
    assert given.secret == Secret(f"{CANARY}-access")
    assert [each.form["refresh_token"] for each in hostile.asked("/token")] == [f"{CANARY}-refresh-1"] * 2
    after = kept(live_vault)
    assert after.refresh == Secret(f"{CANARY}-refresh-2") and after.pending is None


async def test_a_lost_answer_is_asked_for_by_the_next_lease_too(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = [raw(b""), raw(b""), answer(tokens(refresh_token=f"{CANARY}-refresh-2"))]
    broker = connect(live_vault, token_set(hostile).stale())
    with pytest.raises(Unreachable):
        await lease(broker)
    assert kept(live_vault).pending is not None
    await lease(broker)
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-2")


async def test_what_a_full_disk_would_not_take_is_written_later(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile.replies["/token"] = [answer(tokens(refresh_token=f"{CANARY}-refresh-2", scope=None))]
    broker = connect(live_vault, token_set(hostile).stale())
    real, calls = live_vault.renew, []

    def full(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:  # the announcement fits, the answer doesn't
            raise VaultUnwritable("The disk is full.")
        return real(*given)

    monkeypatch.setattr(live_vault, "renew", full)
    with pytest.raises(VaultUnwritable):
        await lease(broker)
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-1")
    assert (await lease(broker)).secret == Secret(f"{CANARY}-access")
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-2") and kept(live_vault).pending is None
    assert len(hostile.asked("/token")) == 1


async def test_nothing_is_asked_when_it_cannot_be_announced(
    hostile: Hostile, live_vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = connect(live_vault, token_set(hostile).stale())

    def full(*_: Any) -> Any:
        raise VaultUnwritable("The disk is full.")

    monkeypatch.setattr(live_vault, "renew", full)
    with pytest.raises(VaultUnwritable):
        await lease(broker)
    assert not hostile.visits


# ---- servers with ways of their own ----


async def test_a_server_that_ignores_the_scopes_is_found_out(hostile: Hostile, live_vault: Vault) -> None:
    whole = answer(tokens(scope="notes.read notes.write"))
    hostile.replies["/token"] = whole
    broker = connect(live_vault, token_set(hostile))
    given = await lease(broker, "notes.read")
    assert given.narrowed == "gateway" and given.scopes == ("notes.read", "notes.write")
    assert kept(live_vault).narrows == "no"
    before = len(hostile.visits)
    assert (await lease(broker, "notes.write")).narrowed == "gateway"
    assert len(hostile.visits) == before  # and not asked again


@pytest.mark.promise(38)
async def test_silence_about_scopes_is_not_taken_for_narrowing(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(tokens(scope=None))
    given = await lease(connect(live_vault, token_set(hostile)), "notes.read")
    assert given.narrowed == "gateway"
    assert kept(live_vault).granted == scopes("notes.read notes.write")


async def test_a_server_that_refuses_to_narrow_is_not_asked_again(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer({"error": "invalid_scope"}, status=400)
    made = token_set(hostile)
    broker = connect(live_vault, made)
    given = await lease(broker, "notes.read")
    assert given.narrowed == "gateway" and given.secret == made.access.token
    assert kept(live_vault) == replace(made, narrows="no")
    await lease(broker, "notes.write")
    assert len(hostile.visits) == 1


async def test_a_server_that_calls_narrowing_the_end_is_not_believed_at_once(
    hostile: Hostile, live_vault: Vault
) -> None:
    no = answer({"error": "invalid_grant"}, status=400)
    hostile.replies["/token"] = [no, answer(tokens(scope=None, refresh_token=f"{CANARY}-refresh-2"))]
    broker = connect(live_vault, token_set(hostile))
    given = await lease(broker, "notes.read")
    assert given.narrowed == "gateway" and given.secret == Secret(f"{CANARY}-access")
    after = kept(live_vault)
    assert after.narrows == "no" and not after.ended and after.refresh == Secret(f"{CANARY}-refresh-2")


async def test_a_login_that_has_ended_ends_narrowing_too(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer({"error": "invalid_grant"}, status=400)
    with pytest.raises(LoginExpired):
        await lease(connect(live_vault, token_set(hostile)), "notes.read")
    assert kept(live_vault).ended and len(hostile.visits) == 2


async def test_a_server_that_shrinks_the_login_is_found_out_at_once(hostile: Hostile, live_vault: Vault) -> None:
    """Against RFC 6749 section 6. What is lost is the person's to allow again; it doesn't happen a second time."""
    narrow = answer(tokens(scope="notes.read", refresh_token=f"{CANARY}-narrow"))
    hostile.replies["/token"] = [narrow, narrow]
    broker = connect(live_vault, token_set(hostile))
    given = await lease(broker, "notes.read")
    assert given.scopes == ("notes.read",)
    after = kept(live_vault)
    assert after.narrows == "no" and after.granted == scopes("notes.read")
    assert "scope" not in hostile.visits[1].form
    with pytest.raises(GoexError, match=r"doesn't cover: notes\.write"):
        await lease(broker, "notes.write")
    assert len(hostile.visits) == 2


async def test_scopes_that_a_renewal_adds_do_not_count(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(tokens(scope="notes.read notes.write admin"))
    broker = connect(live_vault, token_set(hostile).stale())
    given = await lease(broker)
    assert "admin" in given.scopes and given.narrowed == "gateway"  # the token is what it is
    assert kept(live_vault).granted == scopes("notes.read notes.write")
    with pytest.raises(GoexError, match="doesn't cover: admin"):
        await lease(broker, "admin")


async def test_scopes_that_a_renewal_lacks_are_gone(hostile: Hostile, live_vault: Vault) -> None:
    """The person took one back at the provider."""
    hostile.replies["/token"] = answer(tokens(scope="notes.read"))
    broker = connect(live_vault, token_set(hostile).stale())
    await lease(broker)
    assert kept(live_vault).granted == scopes("notes.read")


async def test_an_exchange_that_gives_more_is_not_narrower(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(tokens(scope="notes.read admin"))
    made = token_set(hostile, provider=hostile.provider(grant_types=(EXCHANGE_GRANT,)), refresh=Secret(b""))
    given = await lease(connect(live_vault, made), "notes.read")
    assert given.narrowed == "gateway" and given.secret == made.access.token
    assert kept(live_vault).narrows == "no"


async def test_a_server_that_stops_exchanging_is_not_counted_on(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer({"error": "unsupported_grant_type"}, status=400)
    provider = hostile.provider(grant_types=(EXCHANGE_GRANT,))
    made = token_set(hostile, provider=provider, refresh=Secret(b""), narrows="exchange")
    broker = connect(live_vault, made)
    assert broker.narrows("notes", "work", ["notes.read"]) == "token"
    given = await lease(broker, "notes.read")
    assert given.narrowed == "gateway" and given.secret == made.access.token
    assert broker.narrows("notes", "work", ["notes.read"]) is None


async def test_an_exchange_that_gives_another_kind_is_not_used(hostile: Hostile, live_vault: Vault) -> None:
    kind = "urn:ietf:params:oauth:token-type:id_token"
    hostile.replies["/token"] = answer(tokens(scope="notes.read", issued_token_type=kind))
    made = token_set(hostile, provider=hostile.provider(grant_types=(EXCHANGE_GRANT,)), refresh=Secret(b""))
    assert (await lease(connect(live_vault, made), "notes.read")).secret == made.access.token


async def test_without_a_life_a_token_is_renewed_soon(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(tokens(expires_in=None, scope=None))
    broker = connect(live_vault, token_set(hostile).stale())
    await lease(broker)
    await lease(broker)
    assert len(hostile.visits) == 1
    after = kept(live_vault)
    obtained = after.access.obtained
    assert after.access.expires is None
    assert after.fresh(obtained) and not after.fresh(obtained.replace(year=obtained.year + 1))
    lasting = replace(after, refresh=Secret(b""))
    assert lasting.fresh(obtained.replace(year=obtained.year + 1))  # such as GitHub's, which never end


async def test_a_clock_that_was_set_back_makes_tokens_stale(hostile: Hostile) -> None:
    made = token_set(hostile)
    obtained = made.access.obtained
    assert made.fresh(obtained) and made.fresh(obtained.replace(microsecond=0))
    assert not made.fresh(obtained.replace(year=obtained.year - 1))


async def test_the_refresh_token_stays_when_none_comes(hostile: Hostile, live_vault: Vault) -> None:
    hostile.replies["/token"] = answer(tokens())
    await lease(connect(live_vault, token_set(hostile).stale()))
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-1")


@pytest.mark.parametrize(
    "spelled", ["notes.read,notes.write", ["notes.read", "notes.write"], "notes.read  notes.write "]
)
async def test_scopes_are_read_however_they_are_written(hostile: Hostile, live_vault: Vault, spelled: Any) -> None:
    hostile.replies["/token"] = answer(tokens(scope=spelled))
    given = await lease(connect(live_vault, token_set(hostile).stale()))
    assert given.scopes == ("notes.read", "notes.write")


async def test_a_renewal_for_somebody_else_is_not_taken(hostile: Hostile, live_vault: Vault) -> None:
    said = base64.urlsafe_b64encode(json.dumps({"iss": hostile.issuer, "sub": "mallory"}).encode()).decode()
    hostile.replies["/token"] = answer(tokens(id_token=f"x.{said}.y", refresh_token="theirs"))
    broker = connect(live_vault, token_set(hostile, subject="ada").stale())
    with pytest.raises(MixUp):
        await lease(broker)
    assert kept(live_vault).refresh == Secret(f"{CANARY}-refresh-1")


# ---- revocation ----


def test_revocation_takes_both_tokens_the_refresh_token_first(hostile: Hostile) -> None:
    hostile.replies["/revoke"] = answer(b"")
    assert token_requests.revoke(token_set(hostile), http()).done
    assert [each.form["token_type_hint"] for each in hostile.visits] == ["refresh_token", "access_token"]
    assert [each.form["token"] for each in hostile.visits] == [f"{CANARY}-refresh-1", f"{CANARY}-first"]


def test_a_server_that_revokes_refresh_tokens_alone_has_done_it(hostile: Hostile) -> None:
    hostile.replies["/revoke"] = [answer(b""), answer({"error": "unsupported_token_type"}, status=400)]
    assert token_requests.revoke(token_set(hostile), http()).done


@pytest.mark.parametrize("reply", [raw(b""), answer(b"", status=503), answer({"error": "invalid_client"}, status=401)])
def test_what_could_not_be_revoked_is_said(hostile: Hostile, reply: Reply) -> None:
    hostile.replies["/revoke"] = reply
    said = token_requests.revoke(token_set(hostile), http())
    assert not said.done and said.why and "provider's own page" in said.next_step
    assert CANARY not in repr(said)


def test_a_server_without_revocation_is_said(hostile: Hostile) -> None:
    said = token_requests.revoke(token_set(hostile, provider=hostile.provider(revocation_endpoint="")), http())
    assert not said.done and "no way" in said.why


# ---- answers to a login ----


def visit(login: CodeLogin, **query: str) -> int:
    """The person's browser is sent back with this."""
    server = OidcServer(port=1)
    return Browser(server).visit(f"{login.redirect_uri}?{urlencode(query)}").status


def begun(provider: Provider, wanted: str = "notes.read", client: Client = GOEX) -> CodeLogin:
    return CodeLogin.begin(provider, client, scopes(wanted), http())


@pytest.mark.promise(36)
def test_another_state_neither_ends_nor_wins_a_login(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer(tokens())
    login = begun(hostile.provider())
    assert visit(login, code="theirs", state="wrong") == 400
    assert visit(login, code="theirs") == 400
    assert visit(login, error="access_denied", state="wrong") == 400
    assert visit(login, code="ours", state=login._state) == 200
    login.wait(300)
    assert [each.form["code"] for each in hostile.asked("/token")] == ["ours"]


@pytest.mark.promise(36)
def test_a_second_answer_neither_ends_nor_wins_a_login(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer(tokens())
    login = begun(hostile.provider())
    assert visit(login, code="first", state=login._state) == 200
    assert visit(login, code="second", state=login._state) == 410
    login.wait(300)
    assert [each.form["code"] for each in hostile.asked("/token")] == ["first"]


def test_parameters_that_come_twice_are_not_an_answer(hostile: Hostile) -> None:
    login = begun(hostile.provider())
    again = f"{login.redirect_uri}?state={login._state}&code=a&code=b"
    assert Browser(OidcServer(port=1)).visit(again).status == 400
    assert not login._over
    login.cancel()


@pytest.mark.promise(36)
@pytest.mark.parametrize("said", [{"iss": "https://other.example.org"}, {"iss": ""}, {}])
def test_an_answer_of_another_issuer_is_a_mix_up(hostile: Hostile, said: dict[str, str]) -> None:
    login = begun(hostile.provider(iss_in_answer=True))
    assert visit(login, code="x", state=login._state, **said) == 400
    with pytest.raises(MixUp):
        login.wait(300)
    assert not hostile.visits  # the code was sent to nobody


def test_an_issuer_that_says_more_than_it_promised_is_held_to_it(hostile: Hostile) -> None:
    login = begun(hostile.provider())
    visit(login, code="x", state=login._state, iss="https://other.example.org")
    with pytest.raises(MixUp):
        login.wait(300)


@pytest.mark.promise(36)
def test_where_nobody_named_the_issuer_an_answer_is_of_the_origin_that_the_code_goes_to(hostile: Hostile) -> None:
    hostile.replies["/token"] = answer(tokens())
    for other in ("https://other.example.org", "other", ""):
        login = begun(hostile.provider(issuer=""))
        assert visit(login, code="x", state=login._state, iss=other) == 400
        with pytest.raises(MixUp, match="would go to"):
            login.wait(300)
    assert not hostile.visits
    login = begun(hostile.provider(issuer=""))
    assert visit(login, code="x", state=login._state, iss=f"{hostile.issuer}/its/name") == 200
    login.wait(300)


def test_google_s_tokens_are_had_elsewhere_than_its_name_says() -> None:
    assert _serves("https://accounts.google.com", "https://oauth2.googleapis.com/token")
    assert not _serves("https://accounts.google.com", "https://oauth2.googleapis.com.example.org/token")
    assert not _serves("https://other.example.org", "https://oauth2.googleapis.com/token")


@pytest.mark.promise(36)
def test_one_server_does_not_get_anothers_code(server: OidcServer, hostile: Hostile) -> None:
    """The mix-up attack: a login at the attacker's server is sent on to the honest one, which answers the person."""
    attacker = hostile.provider(authorization_endpoint=discover(server.issuer, http()).authorization_endpoint)
    login = begun(attacker)
    assert Browser(server).visit(login.url).status == 400
    with pytest.raises(MixUp):
        login.wait(300)
    assert not hostile.asked("/token")


@pytest.mark.parametrize("query", [{}, {"code": ""}, {"code": "a\nb"}, {"token": "x"}])
def test_an_answer_without_a_code_is_refused(hostile: Hostile, query: dict[str, str]) -> None:
    login = begun(hostile.provider())
    visit(login, state=login._state, **query)
    with pytest.raises(AuthorizationServerBroken):
        login.wait(300)


def test_what_the_server_says_no_with_is_escaped(hostile: Hostile) -> None:
    login = begun(hostile.provider())
    visit(login, state=login._state, error="server_error", error_description="\x1b]0;x\x07" + "long " * 100)
    with pytest.raises(Refused) as caught:
        login.wait(300)
    assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_dead_token_endpoint_stores_nothing(hostile: Hostile) -> None:
    hostile.replies["/token"] = raw(b"")
    login = begun(hostile.provider())
    visit(login, code="x", state=login._state)
    with pytest.raises(Unavailable):
        login.wait(300)
    assert len(hostile.asked("/token")) == 1  # a code is good once


@pytest.mark.promise(36)
def test_without_pkce_there_is_no_login(hostile: Hostile) -> None:
    with pytest.raises(GoexError, match="PKCE"):
        begun(hostile.provider(pkce_methods=("plain",)))


def test_a_login_at_a_real_server_reads_back_whole(server: OidcServer) -> None:
    made = log_in(server, "openid notes.read")
    assert TokenSet.from_secret(made.to_secret()) == made


@pytest.mark.parametrize(("error", "status"), [("invalid_grant", 400), ("bad_refresh_token", 200)])  # GitHub's
async def test_a_login_whose_server_ended_it_says_why(
    hostile: Hostile, live_vault: Vault, error: str, status: int
) -> None:
    hostile.replies["/token"] = answer({"error": error, "error_description": "nope"}, status=status)
    broker = connect(live_vault, token_set(hostile).stale())
    with pytest.raises(LoginExpired, match="the provider takes it no longer"):
        await lease(broker)
    assert kept(live_vault).refresh == Secret(b"")
