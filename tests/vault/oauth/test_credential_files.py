"""Credential files: what is asked for with them, what code gets in their place, and what can't be lent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from policies.accounts import Account, Origin
from policies.errors import GoexError, InvalidInput, Unsupported
from runtimes.code import credentials, environment
from runtimes.gateway.token_endpoints import answer_token
from tests.vault.oauth.support import soon
from vault.credential_file import GOOGLE_TOKENS, CredentialFile, stand_in_key
from vault.errors import RecordReplaced, VaultUnwritable
from vault.lease import Lease
from vault.oauth.broker import LoginBroker
from vault.oauth.errors import Refused
from vault.secret import Secret
from vault.store import Vault

KEY = stand_in_key()
EMAIL = "robot@barn.iam.example.org"
PLACEHOLDER = "ya29.goex-notes-work-abcdefghijklmnop"


@dataclass
class TokenServer:
    """A token endpoint that checks what it gets, as Google's does."""

    url: str = ""
    seen: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    states_scope: bool = False
    refresh: str = "1//refresh-me"
    rotates: bool = False
    token: str = ""
    answers: str = ""  # "": a token; else the placeholder that the gateway would give
    asked: Event = field(default_factory=Event)
    go: Event | None = None  # what its answer waits for

    def answer(self, body: bytes) -> tuple[int, bytes]:
        form = dict(parse_qsl(body.decode()))
        self.seen.append(form)
        if self.answers:
            status, _, said = answer_token(self.answers, body, form=True)
            return status, said
        if self.status != 200:
            return self.status, json.dumps({"error": "invalid_grant", "error_description": form["assertion"]}).encode()
        if form["grant_type"] == "refresh_token":
            assert (form["refresh_token"], form["client_secret"]) == (self.refresh, "gocspx-hush")
        else:
            token = jwt.decode(form["assertion"], RSAKey.import_key(KEY), algorithms=["RS256"])
            claims, now = token.claims, datetime.now(UTC).timestamp()
            assert (claims["iss"], claims["aud"], token.header["kid"]) == (EMAIL, self.url, "key-1")
            assert claims["iat"] <= now < claims["exp"] <= claims["iat"] + 3600
            form["scope"] = claims["scope"]
        said_back: dict[str, Any] = {
            "access_token": self.token or f"ya29.real-{len(self.seen)}", "token_type": "Bearer", "expires_in": 3599,
        }  # fmt: skip
        self.asked.set()
        if self.go is not None:
            self.go.wait(300)
        if self.rotates:
            said_back["refresh_token"] = self.refresh = f"1//rotated-{len(self.seen)}"
        if self.states_scope:
            said_back["scope"] = form.get("scope", "")
        return 200, json.dumps(said_back).encode()


@contextmanager
def serving_tokens() -> Iterator[TokenServer]:
    made = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, said = made.answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}/token"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def endpoint() -> Iterator[TokenServer]:
    with serving_tokens() as made:
        yield made


def service_account(url: str, **changed: object) -> bytes:
    facts = {
        "type": "service_account", "project_id": "barn", "private_key_id": "key-1", "private_key": KEY,
        "client_email": EMAIL, "client_id": "1234", "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": url, "universe_domain": "googleapis.com",
    }  # fmt: skip
    return json.dumps({**facts, **changed}).encode()


def user(url: str) -> bytes:
    return json.dumps(
        {"type": "authorized_user", "client_id": "me.apps.example.org", "client_secret": "gocspx-hush",
         "refresh_token": "1//refresh-me", "token_uri": url}
    ).encode()  # fmt: skip


def put(vault: Vault, data: bytes, name: str = "work") -> None:
    origin = Origin.parse("http://127.0.0.1:9")
    account = Account(service="notes", name=name, origins=(origin,), base_url=str(origin), format="file", private=True)
    vault.put(account, CredentialFile.of(data).to_secret(), replace=True)


async def lease(broker: LoginBroker, *scopes: str) -> Lease:
    return await broker.lease("notes", "work", action_id="a1", expires=soon(), scopes=scopes)


@pytest.mark.promise(55)
async def test_a_service_accounts_token_is_asked_for_with_the_actions_scopes_alone(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    put(live_vault, service_account(endpoint.url))
    first = await lease(broker, "notes.read", "notes.list")
    assert first.secret.reveal() == b"ya29.real-1"
    assert endpoint.seen[0]["scope"] == "notes.list notes.read"
    assert (await lease(broker, "notes.list", "notes.read")).secret == first.secret and len(endpoint.seen) == 1
    assert (await lease(broker, "notes.write")).secret.reveal() == b"ya29.real-2"
    assert endpoint.seen[1]["scope"] == "notes.write"
    # The server doesn't say which scopes it gave: then nobody but the gateway holds it to them.
    assert (first.narrowed, first.scopes) == ("gateway", ())
    assert first.expires <= datetime.now(UTC) + timedelta(minutes=10)
    assert broker.asks("notes", "work") and broker.granted("notes", "work") is None


async def test_a_token_whose_scopes_are_stated_is_held_by_the_service(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    endpoint.states_scope = True
    put(live_vault, service_account(endpoint.url))
    held = await lease(broker, "notes.read")
    assert (held.narrowed, held.scopes) == ("token", ("notes.read",))


async def test_a_new_file_and_a_refused_token_are_asked_for_anew(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    put(live_vault, service_account(endpoint.url))
    await lease(broker, "notes.read")
    put(live_vault, service_account(endpoint.url))
    assert (await lease(broker, "notes.read")).secret.reveal() == b"ya29.real-2"
    broker.distrust("notes", "work")
    assert (await lease(broker, "notes.read")).secret.reveal() == b"ya29.real-3"


async def test_a_refresh_token_that_is_rotated_is_sealed_before_its_token_is_used(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    endpoint.rotates = True
    put(live_vault, user(endpoint.url))
    first, second = await asyncio.gather(lease(broker, "notes.read"), lease(broker, "notes.write"))
    assert {each.secret.reveal() for each in (first, second)} == {b"ya29.real-1", b"ya29.real-2"}
    sealed = CredentialFile.from_secret(live_vault.open_record("notes", "work").secret)
    was = CredentialFile.of(user(endpoint.url))
    assert sealed.facts("refresh_token", "client_secret") == ("1//rotated-2", "gocspx-hush")
    assert (sealed.name, sealed.variable, sealed.endpoint) == (was.name, was.variable, was.endpoint)
    assert (await lease(broker, "notes.read")).secret == first.secret and len(endpoint.seen) == 2
    await lease(LoginBroker(live_vault), "notes.read")  # and after a restart, too
    assert sealed.kind == "authorized_user"


async def test_a_rotated_refresh_token_that_cannot_be_sealed_is_said(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise VaultUnwritable("The disk is full.")

    endpoint.rotates = True
    put(live_vault, user(endpoint.url))
    monkeypatch.setattr(live_vault, "renew", full)
    with pytest.raises(VaultUnwritable):
        await lease(broker, "notes.read")
    assert live_vault.live_leases() == ()


async def test_a_rotated_refresh_token_is_sealed_also_when_nobody_waits_for_it_any_more(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    endpoint.rotates, endpoint.go = True, Event()
    put(live_vault, user(endpoint.url))
    leasing = asyncio.create_task(lease(broker, "notes.read"))
    assert await asyncio.to_thread(endpoint.asked.wait, 10)
    leasing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leasing
    assert not await broker.settled(0.01)  # a daemon that stops waits for it
    endpoint.go.set()
    assert await broker.settled(10)
    assert refresh_token(live_vault) == "1//rotated-1"
    assert (await lease(broker, "notes.read")).secret.reveal() == b"ya29.real-1" and live_vault.live_leases()


@pytest.mark.parametrize("what", ["terms", "file"])
async def test_a_rotated_refresh_token_is_sealed_under_the_terms_that_are_there_by_then(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker, what: str
) -> None:
    endpoint.rotates, endpoint.go = True, Event()
    put(live_vault, user(endpoint.url))
    leasing = asyncio.create_task(lease(broker, "notes.read"))
    assert await asyncio.to_thread(endpoint.asked.wait, 10)
    account = live_vault.open_record("notes", "work").account
    if what == "terms":
        live_vault.change_account(account, replace(account, base_url="http://127.0.0.1:9/v2"))
    else:
        put(live_vault, user(endpoint.url).replace(b"1//refresh-me", b"1//another"))
    endpoint.go.set()
    if what == "terms":
        assert (await leasing).account.base_url == "http://127.0.0.1:9/v2"
        assert refresh_token(live_vault) == "1//rotated-1"
    else:
        with pytest.raises(RecordReplaced):
            await leasing
        assert refresh_token(live_vault) == "1//another"


async def test_the_token_of_a_file_that_was_replaced_meanwhile_is_not_lent_under_the_new_ones_terms(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    endpoint.go = Event()
    put(live_vault, user(endpoint.url))
    leasing = asyncio.create_task(lease(broker, "notes.read"))
    assert await asyncio.to_thread(endpoint.asked.wait, 10)
    elsewhere = Origin.parse("http://127.0.0.1:10")
    account = live_vault.open_record("notes", "work").account
    other = CredentialFile.of(user(endpoint.url).replace(b"1//refresh-me", b"1//another"))
    moved = replace(account, origins=(elsewhere,), base_url=str(elsewhere))
    live_vault.put(moved, other.to_secret(), replace=True)
    endpoint.go.set()
    with pytest.raises(RecordReplaced):
        await leasing


def refresh_token(vault: Vault) -> str:
    (found,) = CredentialFile.from_secret(vault.open_record("notes", "work").secret).facts("refresh_token")
    return found


async def test_a_token_needs_scopes(endpoint: TokenServer, live_vault: Vault, broker: LoginBroker) -> None:
    put(live_vault, service_account(endpoint.url))
    with pytest.raises(InvalidInput, match="named scopes"):
        await lease(broker)
    assert endpoint.seen == []


async def test_a_refusal_quotes_nothing_that_was_signed(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker
) -> None:
    put(live_vault, service_account(endpoint.url))
    endpoint.status = 400
    with pytest.raises(Refused) as refused:
        await lease(broker, "notes.read")
    assert endpoint.seen[0]["assertion"][:40] not in str(refused.value)
    assert "PRIVATE" not in repr(refused.value)


@pytest.mark.promise(55)
async def test_googles_own_library_reads_the_stand_in_and_gets_the_placeholder(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker, tmp_path: Path
) -> None:
    google = pytest.importorskip("google.oauth2.service_account")
    from google.auth.transport.requests import Request

    put(live_vault, service_account(endpoint.url))
    given = await lease(broker, "notes.read")
    handed = credentials.handed((given,), {("notes", "work"): PLACEHOLDER})
    text = handed.files["credentials.json"]
    assert handed.variables["GOOGLE_APPLICATION_CREDENTIALS"] == f"{environment.FOLDER}/credentials.json"
    assert str(handed.endpoints[0].origin) == endpoint.url.removesuffix("/token")
    assert handed.endpoints[0].path == ("token",)
    whole = KEY.replace("\n", "")
    assert not any(whole[at : at + 24] in text.replace("\\n", "") for at in range(120, len(whole) - 64, 8))
    assert "ya29.real" not in text and "key-1" not in text
    place = tmp_path / "credentials.json"
    place.write_text(text)
    endpoint.answers = PLACEHOLDER  # what the gateway answers at that address
    found = google.Credentials.from_service_account_file(str(place), scopes=["notes.read"])
    found.refresh(Request())
    assert (found.token, found.service_account_email) == (PLACEHOLDER, EMAIL)


@pytest.mark.promise(55)
async def test_a_persons_refresh_token_stays_in_the_daemon(
    endpoint: TokenServer, live_vault: Vault, broker: LoginBroker, tmp_path: Path
) -> None:
    google = pytest.importorskip("google.oauth2.credentials")
    from google.auth.transport.requests import Request

    put(live_vault, user(endpoint.url))
    given = await lease(broker)
    assert given.secret.reveal() == b"ya29.real-1" and given.file is not None
    text = given.file.filled(PLACEHOLDER)
    assert "hush" not in text and "refresh-me" not in text
    place = tmp_path / "adc.json"
    place.write_text(text)
    endpoint.answers = PLACEHOLDER
    found = google.Credentials.from_authorized_user_file(str(place))
    assert (found.token_uri, given.file.endpoint) == (GOOGLE_TOKENS, endpoint.url)  # it knows but the one of Google's
    found = google.Credentials(None, found.refresh_token, None, endpoint.url, found.client_id, found.client_secret)
    found.refresh(Request())
    assert found.token == PLACEHOLDER


@pytest.mark.parametrize(
    ("text", "secret", "shown"),
    [
        ("ghp_abc\n", "ghp_abc", "PLACE\n"),
        ("[default]\ntoken = [[secret:s3cret]]\n", "s3cret", "[default]\ntoken = PLACE\n"),
        ('{"a": "[[secret:x]]", "b": "[[secret:x]]"}', "x", '{"a": "PLACE", "b": "PLACE"}'),
        (
            "machine api.github.com login me password [[secret:p]]",
            "p",
            "machine api.github.com login me password PLACE",
        ),
    ],
)
async def test_a_marked_secret_is_lent_and_stood_in_for(
    live_vault: Vault, broker: LoginBroker, text: str, secret: str, shown: str
) -> None:
    put(live_vault, text.encode())
    given = await lease(broker)
    assert given.secret.reveal().decode() == secret and given.file is not None
    assert given.file.filled("PLACE") == shown
    assert not broker.asks("notes", "work")
    assert live_vault.lease("notes", "work", action_id="a", expires=soon()).secret == given.secret


def lent(text: bytes, secret: str) -> Lease:
    origin = Origin.parse("https://notes.example.org")
    account = Account(service="notes", name="work", origins=(origin,), base_url=str(origin), format="file")
    file = CredentialFile.of(text).template()
    return Lease(action_id="a", account=account, secret=Secret(secret), expires=soon(), file=file)


@pytest.mark.promise(55)
def test_a_secret_that_stands_there_again_unmarked_is_stood_in_for_too() -> None:
    given = lent(b"token = [[secret:hunter2hunter2]]\nurl = https://me:hunter2hunter2@host/\n", "hunter2hunter2")
    handed = credentials.handed((given,), {("notes", "work"): "PLACE"})
    assert handed.files == {"credential": "token = PLACE\nurl = https://me:PLACE@host/\n"}


@pytest.mark.promise(55)
def test_a_secret_that_stands_there_again_in_another_writing_is_not_handed_out() -> None:
    given = lent(b"token = [[secret:hunter2hunter2]]\nauth = bWU6aHVudGVyMmh1bnRlcjI=\n", "hunter2hunter2")
    with pytest.raises(InvalidInput, match="a second time") as refused:
        credentials.handed((given,), {("notes", "work"): "PLACE"})
    assert "hunter2" not in str(refused.value) + refused.value.next_step


async def test_a_file_that_only_leads_to_tokens_is_never_lent_itself(endpoint: TokenServer, live_vault: Vault) -> None:
    put(live_vault, service_account(endpoint.url))
    with pytest.raises(InvalidInput, match="leads to one"):
        live_vault.lease("notes", "work", action_id="a", expires=soon())


@pytest.mark.promise(55)
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"a = 1\nb = 2\n", InvalidInput),
        (b"[[secret:a]] [[secret:b]]", InvalidInput),
        (b"token: [[secret:two words]]", InvalidInput),
        (b"\xff\xfe", InvalidInput),
        (b"x" * 100_001, InvalidInput),
        (b"", InvalidInput),
        (b"aws_access_key_id = A\naws_secret_access_key = [[secret:b]]\n", Unsupported),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nQUFB\n-----END OPENSSH PRIVATE KEY-----\n", Unsupported),
        (b'{"type": "external_account", "audience": "x"}', Unsupported),
        (service_account("https://x.example.org/token", private_key="hunter2"), InvalidInput),
        (service_account("https://x.example.org/token", client_email=""), InvalidInput),
        (service_account("https://x.example.org/token", token_uri=7), InvalidInput),
        (b'{"type": "authorized_user", "client_id": "c"}', InvalidInput),
    ],
    ids=[
        "no place", "two places", "a name with a space", "no text", "too long", "nothing", "a signing key",
        "an SSH key", "an external account", "no key", "no address", "a number for a URL", "half an authorized user",
    ],
)  # fmt: skip
def test_what_cannot_be_lent_is_refused_without_being_quoted(data: bytes, error: type[GoexError]) -> None:
    with pytest.raises(error) as refused:
        CredentialFile.of(data)
    said = f"{refused.value} {refused.value.__cause__} {refused.value.__context__}"
    assert "hunter2" not in said and "two words" not in said and "[[secret:b" not in said


@pytest.mark.parametrize(
    "text", [b"[[secret:hunter2]\ntoken = [[secret:abc]]", b"[[secret:abc]] [[secret:", b"[[secret:" * 9000]
)
def test_a_mark_without_an_end_is_refused(text: bytes) -> None:
    """The secret in it would be handed on; and each is looked for only to where the next one begins."""
    with pytest.raises(InvalidInput, match="no end"):
        CredentialFile.of(text)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "x" * 90, "a\0b"])
def test_a_files_name_is_a_plain_one(name: str) -> None:
    if name:
        with pytest.raises(InvalidInput):
            CredentialFile.of(b"token", name)
    with pytest.raises(InvalidInput):
        CredentialFile.of(b"token", "x", "lower case")


def test_two_files_of_one_name_have_places_of_their_own() -> None:
    made = []
    for name in ("work", "home"):
        file = CredentialFile.of(b"[[secret:t]]", "cred.txt", "CRED")
        origin = Origin.parse("https://notes.example.org")
        account = Account(service="notes", name=name, origins=(origin,), base_url=str(origin), format="file")
        made.append(Lease(action_id="a", account=account, secret=Secret("t"), expires=soon(), file=file.template()))
    handed = credentials.handed(made, {("notes", "work"): "P1", ("notes", "home"): "P2"})
    assert handed.files == {"cred.txt": "P1", "notes-home-cred.txt": "P2"}
    assert handed.variables["CRED"].endswith("/cred.txt")
    assert handed.variables["GOEX_FILE_NOTES_HOME"].endswith("/notes-home-cred.txt")


def _googles(host: str, name: str = "work") -> Account:
    origin = Origin.parse(f"https://{host}")
    return Account(service="google_drive", name=name, origins=(origin,), base_url=str(origin))


def test_an_account_of_googles_without_a_file_has_one_that_leads_to_its_placeholder() -> None:
    """`google.auth.default()` takes no token, and looks for a file."""
    made = credentials.with_googles(
        credentials.Handed(), [_googles("notes.example.org"), _googles("www.googleapis.com")]
    )
    assert made.variables == {"GOOGLE_APPLICATION_CREDENTIALS": f"{environment.FOLDER}/google-user.json"}
    said = json.loads(made.files["google-user.json"])
    assert (said["type"], said["token_uri"]) == ("authorized_user", GOOGLE_TOKENS)
    assert {said[name] for name in ("client_id", "client_secret", "refresh_token")} == {"goex"}
    assert made.endpoints == (credentials.endpoint(("google_drive", "work"), GOOGLE_TOKENS),)


@pytest.mark.parametrize("host", ["notes.example.org", "googleapis.com.example.org", "xgoogleapis.com"])
def test_an_account_that_isnt_googles_has_no_such_file(host: str) -> None:
    assert credentials.with_googles(credentials.Handed(), [_googles(host)]) == credentials.Handed()


def test_a_file_of_the_accounts_own_stays_the_one() -> None:
    own = {"GOOGLE_APPLICATION_CREDENTIALS": "/goex/job/service-account.json"}
    made = credentials.with_googles(credentials.Handed(variables=dict(own)), [_googles("www.googleapis.com")])
    assert (made.variables, made.files, made.endpoints) == (own, {}, ())


def test_an_account_without_an_origin_isnt_googles() -> None:
    made = Account(
        service="db", name="shop", origins=(), base_url="postgresql://db.example.org:5432/shop", format="database"
    )
    assert credentials.with_googles(credentials.Handed(), [made]) == credentials.Handed()


def test_a_file_of_that_name_stays_what_it_is() -> None:
    own = credentials.Handed(files={"google-user.json": "P1", "goex-google-user.json": "P2"}, variables={"OWN": "/x"})
    made = credentials.with_googles(own, [_googles("www.googleapis.com")])
    assert (made.files["google-user.json"], made.files["goex-google-user.json"]) == ("P1", "P2")
    assert json.loads(made.files[made.variables["GOOGLE_APPLICATION_CREDENTIALS"].rpartition("/")[2]])


def test_no_file_leads_to_another_account_s_tokens() -> None:
    """One endpoint gives one account's."""
    other = credentials.endpoint(("google_calendar", "home"), GOOGLE_TOKENS)
    own = credentials.Handed(variables={"OWN": "/goex/job/own.json"}, endpoints=(other,))
    made = credentials.with_googles(own, [_googles("www.googleapis.com")])
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in made.variables and made.endpoints == (other,)
