"""Logins in a browser, at a server that nobody here wrote."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from policies.errors import InvalidInput
from tests.services.oidc import WEB_SECRET, Browser, OidcServer
from tests.vault.oauth.support import (
    CANARY,
    GOEX,
    Hostile,
    answer,
    begin,
    http,
    log_in,
    scopes,
    token_set,
    tokens,
    visiting,
)
from vault.oauth.code import CodeLogin
from vault.oauth.discovery import discover
from vault.oauth.errors import AuthorizationServerBroken, LoginCancelled, LoginDenied, LoginTimedOut, Refused
from vault.oauth.provider import Client
from vault.secret import Secret

WEB = Client(client_id="web", client_secret=Secret(WEB_SECRET))


def test_a_person_logs_in(server: OidcServer) -> None:
    login = begin(server, "openid notes.read")
    with visiting(server, login.url) as visit:
        tokens = login.wait(300)
        page = visit.result(300)
    assert tokens.subject == "ada"
    assert tokens.granted == scopes("openid notes.read") and not tokens.dropped
    assert server.me(tokens.access.token.reveal())["scope"] == "notes.read openid"
    assert page.status == 200 and "go back to GoEx" in page.text


def test_the_browser_begins_with_pkce_state_and_nonce(server: OidcServer) -> None:
    login = begin(server, "openid notes.read")
    other = begin(server, "openid notes.read")
    asked, again = (parse_qs(urlsplit(each.url).query) for each in (login, other))
    assert asked["code_challenge_method"] == ["S256"]
    verifier = login._verifier.reveal()
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier).digest()).decode().rstrip("=")
    assert asked["code_challenge"] == [challenge] and len(verifier) >= 43
    assert asked["redirect_uri"] == [login.redirect_uri]
    for name in ("state", "nonce", "code_challenge", "redirect_uri"):
        assert asked[name] != again[name]
    login.cancel(), other.cancel()


@pytest.mark.parametrize("said", ["client_id=other", "a=b&redirect_uri=https%3A%2F%2Fe.example", "state", "%73cope="])
def test_a_page_whose_address_answers_for_goex_is_refused(hostile: Hostile, said: str) -> None:
    """Of two answers to one question the server might take the first."""
    provider = hostile.provider(authorization_endpoint=f"{hostile.issuer}/auth?{said}")
    with pytest.raises(InvalidInput, match="GoEx's to set"):
        CodeLogin.begin(provider, GOEX, scopes("notes.read"), http())
    mine = hostile.provider(authorization_endpoint=f"{hostile.issuer}/auth?tenant=barn")
    login = CodeLogin.begin(mine, GOEX, scopes("notes.read"), http())
    assert parse_qs(urlsplit(login.url).query)["tenant"] == ["barn"]
    login.cancel()


def test_the_tokens_of_somebody_else_are_given_back(server: OidcServer) -> None:
    login = begin(server, "openid notes.read", subject="ada")
    before = len(server.asked("/token/revocation", status=200))
    with visiting(server, login.url, login="bob"), pytest.raises(LoginDenied, match="Somebody else"):
        login.wait(300)
    assert len(server.asked("/token/revocation", status=200)) == before + 2


@pytest.mark.parametrize(("subject", "revoked"), [("", 2), ("ada", 0)])
def test_the_tokens_of_a_login_that_cannot_be_proven_are_given_back(
    hostile: Hostile, subject: str, revoked: int
) -> None:
    """Not when there is an earlier login: servers end all of a person's tokens with one."""
    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh", scope="openid notes.read"))
    hostile.replies["/revoke"] = answer(b"")
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), subject=subject)
    login.paste(f"{login.redirect_uri}?code=x&state={login._state}")
    with pytest.raises(AuthorizationServerBroken, match="ID token"):
        login.wait(300)
    assert len(hostile.asked("/revoke")) == revoked


@pytest.mark.parametrize(("alone", "revoked"), [(True, 2), (False, 0)])
def test_the_tokens_of_a_failed_login_are_dropped_where_giving_them_back_could_end_another(
    hostile: Hostile, caplog: pytest.LogCaptureFixture, alone: bool, revoked: int
) -> None:
    hostile.replies["/token"] = answer(tokens(refresh_token=f"{CANARY}-refresh", scope="openid notes.read"))
    hostile.replies["/revoke"] = answer(b"")
    login = CodeLogin.begin(hostile.provider(), GOEX, scopes("openid notes.read"), http(), alone=lambda: alone)
    login.paste(f"{login.redirect_uri}?code=x&state={login._state}")
    with pytest.raises(AuthorizationServerBroken, match="ID token"):
        login.wait(300)
    assert len(hostile.asked("/revoke")) == revoked
    assert ("could end another login" in caplog.text) is not alone and CANARY not in caplog.text


def test_which_logins_a_server_may_take_for_one(hostile: Hostile) -> None:
    there, elsewhere = token_set(hostile), "https://elsewhere.example.org"
    moved, renamed = hostile.provider(token_endpoint=elsewhere), hostile.provider(issuer=elsewhere)
    assert all(there.same_client(each, GOEX) for each in (hostile.provider(), moved, renamed))
    assert there.same_client(hostile.provider(), None) and not there.same_client(hostile.provider(), WEB)
    assert not there.same_client(hostile.provider(issuer="", token_endpoint=elsewhere), GOEX)
    unnamed = token_set(hostile, provider=hostile.provider(issuer=""))
    assert not unnamed.same_client(hostile.provider(issuer="", token_endpoint=elsewhere), None)


@pytest.mark.promise(36)
def test_the_server_wants_the_verifier(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    login._verifier = Secret("v" * 64)  # what whoever stole the code would have
    with visiting(server, login.url), pytest.raises(Refused) as caught:
        login.wait(300)
    assert caught.value.error == "invalid_grant"


def test_the_server_wants_a_challenge(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    parts = urlsplit(login.url)
    query = {name: value[0] for name, value in parse_qs(parts.query).items() if not name.startswith("code_challenge")}
    with visiting(server, parts._replace(query=urlencode(query)).geturl()), pytest.raises(Refused):
        login.wait(300)


def test_a_confidential_client_proves_itself(server: OidcServer) -> None:
    tokens = log_in(server, "notes.read", WEB, login="bob")
    assert server.me(tokens.access.token.reveal())["client"] == "web"


def test_a_wrong_client_secret_is_said(server: OidcServer) -> None:
    login = begin(server, "notes.read", Client(client_id="web", client_secret=Secret("not this one")))
    with visiting(server, login.url), pytest.raises(Refused, match="client id and secret") as caught:
        login.wait(300)
    assert caught.value.error == "invalid_client" and "not this one" not in str(caught.value)


def test_scopes_that_the_server_does_not_know_are_noticed(server: OidcServer) -> None:
    tokens = log_in(server, "notes.read made.up")
    assert tokens.asked == scopes("notes.read made.up")
    assert tokens.granted == scopes("notes.read")
    assert tokens.dropped == scopes("made.up")


def test_scopes_that_the_person_does_not_allow_are_noticed(server: OidcServer) -> None:
    tokens = log_in(server, "notes.read notes.delete", login="cleo", allow=["notes.read"])
    assert tokens.dropped == scopes("notes.delete")
    assert server.me(tokens.access.token.reveal())["scope"] == "notes.read"


def test_scopes_are_added_later(server: OidcServer) -> None:
    browser = Browser(server, "dora")
    first = begin(server, "notes.read")
    assert browser.visit(first.url).status == 200
    assert first.wait(300).granted == scopes("notes.read")
    more = begin(server, "notes.read notes.write")
    assert browser.visit(more.url).status == 200
    tokens = more.wait(300)
    assert tokens.granted == scopes("notes.read notes.write")
    assert server.me(tokens.access.token.reveal())["sub"] == "dora"


def test_somebody_else_cannot_take_over_an_account(server: OidcServer) -> None:
    login = begin(server, "openid notes.read", subject="ada")
    with visiting(server, login.url, login="mallory"), pytest.raises(LoginDenied, match="Somebody else"):
        login.wait(300)


def test_a_person_says_no(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    with visiting(server, login.url, deny=True) as visit, pytest.raises(LoginDenied, match="access_denied"):
        login.wait(300)
    assert "nothing was stored" in visit.result().text


def test_nobody_finishes_it(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    with pytest.raises(LoginTimedOut):
        login.wait(0.05)
    with pytest.raises(OSError):
        Browser(server).visit(login.redirect_uri)


def test_it_is_called_off(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    login.cancel()
    login.cancel()
    with pytest.raises(LoginCancelled):
        login.wait(300)


def test_a_browser_elsewhere(server: OidcServer) -> None:
    login = begin(server, "notes.read")
    landed = Browser(server).visit(login.url, leave=False)
    for wrong in ("", "https://example.org/", login.redirect_uri, landed.url.replace("state=", "state=x"), "http://["):
        with pytest.raises(InvalidInput):
            login.paste(wrong)
    login.paste(f"  {landed.url}\n")
    with pytest.raises(InvalidInput):
        login.paste(landed.url)
    assert login.wait(300).granted == scopes("notes.read")


def test_a_code_is_good_once(server: OidcServer) -> None:
    """The server takes back what a code gave when the code comes again; GoEx never sends it twice."""
    login = begin(server, "notes.read")
    landed = Browser(server, "eve").visit(login.url, leave=False)
    login.paste(landed.url)
    tokens = login.wait(300)
    code = parse_qs(urlsplit(landed.url).query)["code"][0]
    assert len([each for each in server.asked(grant_type="authorization_code") if each["status"] == 200]) >= 1
    provider = discover(server.issuer, http())
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": login.redirect_uri,
        "code_verifier": login._verifier,
    }
    with pytest.raises(Refused):
        http().ask(provider.token_endpoint, form, provider=provider, client=GOEX)
    assert server.call("GET", "/api/me", tokens.access.token.reveal())[0] == 401


def test_extra_parameters_cannot_replace_ours(server: OidcServer) -> None:
    provider = discover(server.issuer, http())
    for name in ("state", "redirect_uri", "code_challenge", "client_id", "response_mode", "request"):
        with pytest.raises(InvalidInput, match="GoEx's to set"):
            CodeLogin.begin(provider, GOEX, scopes("notes.read"), http(), extra={name: "x"})


def test_tls_is_verified_by_the_ca_that_the_person_gave() -> None:
    import ssl

    from tests.services.oidc import node
    from tests.vault.oauth.certificates import Authority
    from vault.oauth.errors import Unreachable

    if node() is None:
        pytest.skip("node 20 or newer isn't installed")
    good, other = Authority(), Authority()
    with OidcServer(tls=good.leaf("127.0.0.1")) as secure:
        reached = http(ca_pem=good.pem)
        login = CodeLogin.begin(discover(secure.issuer, reached), GOEX, scopes("openid notes.read"), reached)
        context = ssl.create_default_context(cadata=good.pem)
        assert Browser(secure, context=context).visit(login.url).status == 200
        tokens = login.wait(300)
        assert tokens.subject == "ada" and tokens.ca_pem == good.pem
        for ca_pem in ("", other.pem):
            with pytest.raises(Unreachable, match="certificate"):
                discover(secure.issuer, http(ca_pem=ca_pem))
