"""Leases of logins at a server that nobody here wrote."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policies.errors import GoexError
from tests.services.oidc import SERVICE_SECRET, OidcServer
from tests.support.waiting import until
from tests.vault.oauth.support import http, log_in, oauth_account, scopes, soon
from tests.vault.support import account, protector
from vault.basic import Basic
from vault.errors import NoAccount, RecordReplaced, VaultSealed
from vault.lease import Lease
from vault.oauth import deposits, token_requests
from vault.oauth.broker import LoginBroker
from vault.oauth.discovery import discover
from vault.oauth.errors import ConsentNeeded, LoginExpired, Unreachable
from vault.oauth.provider import Client
from vault.oauth.token_set import TokenSet
from vault.secret import Secret
from vault.store import Vault

ALL = "notes.read notes.write notes.delete"


def connect(vault: Vault, tokens: TokenSet) -> TokenSet:
    vault.put(oauth_account(), tokens.to_secret(), replace=True)
    return tokens


def kept(vault: Vault) -> TokenSet:
    return TokenSet.from_secret(vault.open_record("notes", "work").secret)


def keep(vault: Vault, tokens: TokenSet) -> None:
    vault.renew(vault.open_record("notes", "work"), tokens.to_secret())


async def announced(vault: Vault) -> None:
    """Wait until a renewal is on its way."""
    await asyncio.to_thread(until, lambda: kept(vault).pending is not None)


async def lease(broker: LoginBroker, wanted: str = "", action: str = "a1") -> Lease:
    return await broker.lease("notes", "work", action_id=action, expires=soon(), scopes=wanted.split())


def renewals(server: OidcServer, since: int = 0) -> list[dict[str, object]]:
    return server.asked(grant_type="refresh_token")[since:]


async def test_a_fresh_token_needs_no_request(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    before = len(server.asked())
    given = await lease(broker)
    assert given.secret == tokens.access.token
    assert given.narrowed == "gateway" and given.scopes == tuple(sorted(scopes(ALL)))
    assert len(server.asked()) == before
    assert [each.action_id for each in live_vault.live_leases()] == ["a1"]


async def test_a_lease_is_narrowed_by_a_renewal(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    assert broker.narrows("notes", "work", ["notes.read"]) is None
    given = await lease(broker, "notes.read")
    assert given.narrowed == "token" and given.scopes == ("notes.read",)
    secret = given.secret.reveal()
    assert server.me(secret)["scope"] == "notes.read"
    assert server.call("GET", "/api/notes", secret)[0] == 200
    assert server.call("POST", "/api/notes", secret, {"text": "no"})[0] == 403
    assert broker.narrows("notes", "work", ["notes.read"]) == "token"
    # The login itself is as wide as before, and what it renews with is whole (RFC 6749 section 6).
    after = kept(live_vault)
    assert after.granted == tokens.granted and after.access.scopes == scopes(ALL)
    assert token_requests.refresh(after, http()).access.scopes == scopes(ALL)


async def test_a_narrowed_token_is_used_again(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    connect(live_vault, log_in(server, ALL))
    first = await lease(broker, "notes.read")
    before = len(server.asked())
    assert (await lease(broker, "notes.read", "a2")).secret == first.secret
    assert len(server.asked()) == before
    other = await lease(broker, "notes.write", "a3")
    assert server.me(other.secret.reveal())["scope"] == "notes.write"
    assert len(server.asked()) == before + 1  # the server's way is known by now


async def test_a_lease_is_narrowed_by_an_exchange(
    exchanging: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    connect(live_vault, log_in(exchanging, ALL))
    given = await lease(broker, "notes.write")
    assert given.narrowed == "token" and given.scopes == ("notes.write",)
    assert exchanging.me(given.secret.reveal())["scope"] == "notes.write"
    assert kept(live_vault).narrows == "exchange"
    assert not renewals(exchanging)  # the refresh token wasn't touched


async def test_a_token_revoked_before_its_time_does_not_end_exchanges(
    exchanging: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(exchanging, ALL, login="zoe"))
    exchanging.forget(tokens.access.token.reveal())
    given = await lease(broker, "notes.read")
    assert exchanging.me(given.secret.reveal())["scope"] == "notes.read"
    assert kept(live_vault).narrows == "exchange"


async def test_scopes_that_the_login_lacks_are_the_persons_to_add(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    connect(live_vault, log_in(server, "notes.read"))
    before = len(server.asked())
    with pytest.raises(ConsentNeeded) as caught:
        await lease(broker, "notes.read notes.write")
    assert caught.value.scopes == ("notes.write",) and caught.value.code == "consent"
    assert (caught.value.service, caught.value.account) == ("notes", "work")
    assert len(server.asked()) == before and live_vault.live_leases() == ()


@pytest.mark.promise(37)
async def test_many_leases_are_one_flight(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    keep(live_vault, tokens.stale())
    before = len(renewals(server))
    given = await asyncio.gather(*(lease(broker, "", f"a{number}") for number in range(50)))
    assert len(renewals(server, before)) == 1
    assert {each.secret.reveal() for each in given} == {kept(live_vault).access.token.reveal()}
    assert len(live_vault.live_leases()) == 50


async def test_many_narrow_leases_are_a_flight_for_each_kind(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    keep(live_vault, tokens.stale())
    before = len(renewals(server))
    kinds = ["notes.read", "notes.write", "notes.delete", "notes.read notes.write"]
    given = await asyncio.gather(*(lease(broker, kinds[number % 4], f"a{number}") for number in range(40)))
    assert len(renewals(server, before)) == 5  # one each, and one that looks whether the login was harmed
    for each, wanted in zip(given, kinds * 10, strict=True):
        assert server.me(each.secret.reveal())["scope"] == wanted
    assert token_requests.refresh(kept(live_vault), http()).access.scopes == scopes(ALL)


async def test_whoever_gives_up_waiting_takes_nothing_from_the_others(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    keep(live_vault, tokens.stale())
    server.late("/token", 0.5)
    impatient = asyncio.create_task(lease(broker))
    patient = asyncio.create_task(lease(broker, "", "a2"))
    await asyncio.sleep(0.2)
    impatient.cancel()
    given = await patient
    assert server.me(given.secret.reveal())["sub"] == "ada"
    assert impatient.cancelled()


async def test_the_failure_of_the_flight_is_everybodys(server: OidcServer, live_vault: Vault) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    keep(live_vault, replace(tokens.stale(), refresh=Secret("never given")))
    broker = LoginBroker(live_vault)
    before = len(renewals(server))
    kinds = ["", "notes.read", "notes.write"]
    given = await asyncio.gather(
        *(lease(broker, kinds[number % 3], f"a{number}") for number in range(30)), return_exceptions=True
    )
    assert {type(each) for each in given} == {LoginExpired}
    assert len(renewals(server, before)) == 1
    assert live_vault.live_leases() == ()
    with pytest.raises(LoginExpired, match="goex auth login notes --account work"):
        await lease(broker)  # and it is known by now, without a request
    assert len(renewals(server, before)) == 1


async def test_rotation_is_durable(server: OidcServer, live_vault: Vault, broker: LoginBroker, path: Path) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    keep(live_vault, tokens.stale())
    await lease(broker)
    again = Vault.open(path)
    again.unlock(protector())
    after = TokenSet.from_secret(again.open_record("notes", "work").secret)
    assert after.refresh and after.refresh != tokens.refresh and after.pending is None
    assert after.family == tokens.family
    assert token_requests.refresh(after, http()).access.scopes == scopes(ALL)


async def test_the_use_of_an_old_refresh_token_ends_the_login(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="fred"))
    keep(live_vault, tokens.stale())
    live = await lease(broker)
    with pytest.raises(GoexError):
        token_requests.refresh(tokens, http())  # a thief, or a copy of the vault
    assert server.call("GET", "/api/me", live.secret.reveal())[0] == 401
    broker.distrust("notes", "work")
    with pytest.raises(LoginExpired) as caught:
        await lease(broker, "", "a2")
    assert caught.value.next_step == "Log in again: goex auth login notes --account work"
    assert kept(live_vault).ended and not kept(live_vault).refresh
    connect(live_vault, log_in(server, ALL, login="fred"))
    assert server.me((await lease(broker, "", "a3")).secret.reveal())["sub"] == "fred"


async def test_a_token_that_the_service_refuses_is_renewed(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="gus"))
    server.forget(tokens.access.token.reveal())
    first = await lease(broker)
    assert server.call("GET", "/api/me", first.secret.reveal())[0] == 401
    broker.distrust("notes", "work")
    second = await lease(broker, "", "a2")
    assert server.me(second.secret.reveal())["sub"] == "gus"
    assert (await lease(broker, "", "a3")).secret == second.secret


async def test_a_narrowed_token_that_the_service_refuses_is_asked_for_anew(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    connect(live_vault, log_in(server, ALL, login="ola"))
    first = await lease(broker, "notes.read")
    server.forget(first.secret.reveal())
    broker.distrust("notes", "work")
    second = await lease(broker, "notes.read", "a2")
    assert second.secret != first.secret
    assert server.me(second.secret.reveal())["scope"] == "notes.read"


async def test_a_revoked_login_says_what_to_do(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="hal"))
    assert token_requests.revoke(tokens, http()).done
    assert server.call("GET", "/api/me", tokens.access.token.reveal())[0] == 401
    broker.distrust("notes", "work")
    with pytest.raises(LoginExpired, match="Log in again"):
        await lease(broker)


async def test_an_answer_that_is_lost_is_asked_for_again(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    """The server has rotated, and the new token never came: this server then revokes all, and the person is told."""
    tokens = connect(live_vault, log_in(server, ALL, login="ida"))
    keep(live_vault, tokens.stale())
    server.drop("/token")
    before = len(renewals(server))
    with pytest.raises(LoginExpired, match="the answer to a renewal was lost"):
        await lease(broker)
    assert len(renewals(server, before)) == 2


async def test_a_server_that_is_down_is_not_the_end(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="jo"))
    keep(live_vault, tokens.stale())
    server.kill()
    try:
        with pytest.raises(Unreachable, match="nothing listens there"):
            await lease(broker)
        assert kept(live_vault).pending is None and not kept(live_vault).ended
        keep(live_vault, replace(tokens, access=replace(tokens.access, obtained=_ago(50), expires=_ago(-10))))
        given = await lease(broker, "", "a2")  # some life is left in it
        assert given.secret == tokens.access.token
    finally:
        server.start()
    keep(live_vault, kept(live_vault).stale())
    assert server.me((await lease(broker, "", "a3")).secret.reveal())["sub"] == "jo"


async def test_a_token_that_cannot_be_renewed_serves_to_its_end(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = replace(log_in(server, ALL), refresh=Secret(b""))
    connect(live_vault, replace(tokens, access=replace(tokens.access, obtained=_ago(59), expires=_ago(-1))))
    assert (await lease(broker)).expires == kept(live_vault).access.expires
    keep(live_vault, tokens.stale())
    with pytest.raises(LoginExpired, match="gave none to renew it with"):
        await lease(broker, "", "a2")


async def test_a_service_logs_in_by_itself(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    client = Client(client_id="service", client_secret=Secret(SERVICE_SECRET), auth_method="client_secret_post")
    provider = discover(server.issuer, http())
    tokens = connect(live_vault, token_requests.client_credentials(provider, client, scopes(ALL), http()))
    assert not tokens.refresh and tokens.renews
    given = await lease(broker, "notes.read")
    assert given.narrowed == "token" and server.me(given.secret.reveal())["scope"] == "notes.read"
    keep(live_vault, kept(live_vault).stale())
    assert server.me((await lease(broker, "", "a2")).secret.reveal())["scope"] == "notes.delete notes.read notes.write"


async def test_a_lease_ends_with_its_token(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    late = datetime.now(UTC) + timedelta(days=2)
    given = await broker.lease("notes", "work", action_id="a1", expires=late)
    assert given.expires == tokens.access.expires


async def test_a_sealed_vault_gives_nothing(server: OidcServer, live_vault: Vault, broker: LoginBroker) -> None:
    connect(live_vault, log_in(server, ALL))
    await lease(broker, "notes.read")
    remembered = live_vault.while_unsealed()
    assert remembered
    live_vault.seal()
    with pytest.raises(VaultSealed):
        await lease(broker, "notes.read")
    live_vault.unlock(protector())
    assert live_vault.while_unsealed() is not remembered and not live_vault.while_unsealed()
    before = len(renewals(server))
    await lease(broker, "notes.read")  # a new one: the old was forgotten with the keys
    assert len(renewals(server, before)) == 1


async def test_a_vault_that_is_sealed_meanwhile_gets_the_answer_later(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="kim"))
    keep(live_vault, tokens.stale())
    server.late("/token", 0.6)
    waiting = asyncio.create_task(lease(broker))
    await announced(live_vault)
    live_vault.seal()
    with pytest.raises(VaultSealed):
        await waiting
    left = [each for each in live_vault.path.parent.iterdir() if ".late-" in each.name]
    assert len(left) == 1 and left[0].stat().st_mode & 0o777 == 0o600
    live_vault.unlock(protector())
    before = len(renewals(server))
    given = await lease(LoginBroker(live_vault), "", "a2")  # a daemon that was started anew
    assert server.me(given.secret.reveal())["sub"] == "kim"
    assert not renewals(server, before) and not left[0].exists()
    keep(live_vault, kept(live_vault).stale())
    assert server.me((await lease(broker, "", "a3")).secret.reveal())["sub"] == "kim"


async def test_a_deposit_is_noise_without_its_announcement(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = log_in(server, ALL)
    deposits.put(live_vault.path, tokens, Secret(b"k" * 32))
    data = next(each for each in live_vault.path.parent.iterdir() if ".late-" in each.name).read_bytes()
    assert tokens.refresh.reveal() not in data and b"notes" not in data
    assert deposits.take(live_vault.path, tokens.family, Secret(b"l" * 32)) is None
    assert deposits.take(live_vault.path, tokens.family, Secret(b"k" * 32)) == tokens
    deposits.drop(live_vault.path, tokens.family)
    deposits.drop(live_vault.path, tokens.family)
    assert deposits.take(live_vault.path, tokens.family, Secret(b"k" * 32)) is None


async def test_keys_that_change_meanwhile_lose_nothing(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="lou"))
    keep(live_vault, tokens.stale())
    server.late("/token", 0.6)
    waiting = asyncio.create_task(lease(broker))
    await announced(live_vault)
    await asyncio.to_thread(live_vault.rotate, None, anew=True)
    assert server.me((await waiting).secret.reveal())["sub"] == "lou"
    assert kept(live_vault).pending is None


@pytest.mark.parametrize("what", ["removed", "replaced"])
async def test_an_account_that_changes_meanwhile_is_left_alone(
    server: OidcServer, live_vault: Vault, broker: LoginBroker, what: str
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="mia"))
    other = log_in(server, ALL, login="ned")
    keep(live_vault, tokens.stale())
    server.late("/token", 0.6)
    waiting = asyncio.create_task(lease(broker))
    await announced(live_vault)
    if what == "removed":
        live_vault.remove("notes", "work")
    else:
        connect(live_vault, other)
    with pytest.raises((RecordReplaced, NoAccount)):
        await waiting
    if what == "replaced":
        assert kept(live_vault) == other
        assert server.me((await lease(broker, "", "a2")).secret.reveal())["sub"] == "ned"


async def test_an_account_whose_terms_change_meanwhile_gets_the_answer(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL, login="ora"))
    keep(live_vault, tokens.stale())
    server.late("/token", 0.6)
    waiting = asyncio.create_task(lease(broker))
    await announced(live_vault)
    moved = replace(oauth_account(), base_url="https://api.example.org/v2")
    live_vault.change_account(live_vault.open_record("notes", "work").account, moved)
    given = await waiting
    assert given.account == moved == live_vault.open_record("notes", "work").account
    assert server.me(given.secret.reveal())["sub"] == "ora"
    assert kept(live_vault).pending is None and kept(live_vault).refresh != tokens.refresh


async def test_plain_and_basic_accounts(live_vault: Vault, broker: LoginBroker) -> None:
    live_vault.put(account(), Secret("a key"))
    basic = Basic(user="ada", password=Secret("open sesame"))
    live_vault.put(account(name="basic", format="basic"), basic.to_secret())
    given = await broker.lease("slack", "work", action_id="a1", expires=soon(), scopes=["any"])
    assert given.secret == Secret("a key") and given.narrowed == "gateway" and given.scopes == ()
    given = await broker.lease("slack", "basic", action_id="a1", expires=soon())
    assert given.secret == Secret("YWRhOm9wZW4gc2VzYW1l")
    assert given.redact == (Secret("open sesame"), Secret("ada:open sesame"))
    assert broker.granted("slack", "work") is None and broker.narrows("slack", "work", ["any"]) == "gateway"
    assert len(live_vault.live_leases()) == 2


def test_a_login_is_never_leased_as_it_is_sealed(live_vault: Vault, server: OidcServer) -> None:
    connect(live_vault, log_in(server, ALL))
    with pytest.raises(GoexError, match="isn't a credential by itself"):
        live_vault.lease("notes", "work", action_id="a1", expires=soon())


async def test_the_end_of_requests_can_be_waited_for(
    server: OidcServer, live_vault: Vault, broker: LoginBroker
) -> None:
    tokens = connect(live_vault, log_in(server, ALL))
    assert await broker.settled(0)
    keep(live_vault, tokens.stale())
    server.late("/token", 0.5)
    waiting = asyncio.create_task(lease(broker))
    await asyncio.sleep(0.1)
    assert not await broker.settled(0.01)
    assert await broker.settled(10)
    assert (await waiting).secret == kept(live_vault).access.token


def _ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)
