"""Bad requests about accounts, as any client can put them on the wire: one clear sentence, a next step, no defect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import accounts_pb2 as ab
from goex.rpc import vault_pb2 as vpb
from tests.goex.daemon.accounts import Person
from tests.goex.daemon.unbroken import COMMANDING, unbroken
from tests.services.oidc import OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import problem
from tests.vault.support import ca_pem

BIG = "x" * 1_000_000
PLACE = {"private": True}
MANY = [f"https://a{n}.example" for n in range(5000)]
NOT_UTF8 = b"\xff\xfe-not-text-7c1"


@pytest.fixture(scope="module")
def server() -> Iterator[OidcServer]:
    with OidcServer() as running:
        yield running


@pytest.fixture(scope="module")
def person(server: OidcServer) -> Iterator[Person]:
    with Daemon() as running:
        made = Person(running, server)
        made.catalogue()
        yield made
        unbroken(running)


def refused(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    found = problem(caught.value)
    assert "defect" not in found.message, found
    assert found.next_step, found
    said = f"{found.message}\n{found.next_step}"
    assert len(said) < 6000 and not COMMANDING.search(said), said
    return found


PUTS: dict[str, dict[str, Any]] = {
    "a password that isn't text": {"kind": "basic", "user": "ada", "secret": NOT_UTF8},
    "a token with NUL": {"kind": "bearer", "secret": b"a\0b"},
    "a token with a line's end": {"kind": "bearer", "secret": b"a\r\nX-Other: b"},
    "no secret": {"kind": "bearer"},
    "a huge token": {"kind": "bearer", "secret": BIG.encode()},
    "a user with a colon": {"kind": "basic", "user": "a:b", "secret": b"x"},
    "a user with an escape": {"kind": "basic", "user": "a\x1b[31m", "secret": b"x"},
    "a user with NUL": {"kind": "basic", "user": "a\0", "secret": b"x"},
    "a huge user": {"kind": "basic", "user": BIG, "secret": b"x"},
    "a kind that isn't": {"kind": "\x1b[31m", "secret": b"x"},
    "an account with a slash": {"kind": "bearer", "account": "a/b", "secret": b"x"},
    "an account with NUL": {"kind": "bearer", "account": "a\0b", "secret": b"x"},
    "an account that turns text round": {"kind": "bearer", "account": "a\u202eb", "secret": b"x"},
    "a huge account": {"kind": "bearer", "account": BIG, "secret": b"x"},
    "a service that isn't": {"kind": "bearer", "service": "no\x1b[31m", "secret": b"x"},
    "a base URL that isn't": {"kind": "bearer", "secret": b"x", "place": {"base_url": "\0"}},
    "a base URL that is a file": {"kind": "bearer", "secret": b"x", "place": {"base_url": "file:///etc/passwd"}},
    "a base URL with a user": {"kind": "bearer", "secret": b"x", "place": {"base_url": "https://a:b@example.org"}},
    "a base URL with a bad port": {"kind": "bearer", "secret": b"x", "place": {"base_url": "https://a:99999999"}},
    "a base URL with a bracket": {"kind": "bearer", "secret": b"x", "place": {"base_url": "https://[::1"}},
    "a huge base URL": {"kind": "bearer", "secret": b"x", "place": {"base_url": f"https://example.org/{BIG}"}},
    "an origin that isn't": {"kind": "bearer", "secret": b"x", "place": {"origins": ["\x1b"], **PLACE}},
    "many origins": {"kind": "bearer", "secret": b"x", "place": {"origins": MANY}},
    "a CA that isn't": {"kind": "bearer", "secret": b"x", "place": {"ca_pem": "\0", **PLACE}},
    "a CA that is a key": {"kind": "bearer", "secret": b"x", "place": {"ca_pem": "PRIVATE KEY", **PLACE}},
    "a huge CA": {"kind": "bearer", "secret": b"x", "place": {"ca_pem": BIG, **PLACE}},
}  # fmt: skip


@pytest.mark.sampled(15)
@pytest.mark.parametrize("case", PUTS)
def test_bad_credentials(person: Person, case: str) -> None:
    facts = {"service": "notes", "account": "bad", "place": PLACE, "passphrase": APPROVAL_PASSPHRASE, **PUTS[case]}
    found = refused(lambda: person.call("PutCredential", ab.PutCredentialRequest(**facts)))
    assert "not-text-7c1" not in str(found) and "xxxxxxxxxxxx" not in str(found)
    assert "bad" not in person.accounts()


LOGINS: dict[str, dict[str, Any]] = {
    "a client secret that isn't text": {"client_id": "web", "client_secret": NOT_UTF8, "flow": "client_credentials"},
    "a client secret that isn't text, in a browser": {"client_id": "web", "client_secret": NOT_UTF8},
    "a client secret with NUL": {"client_id": "web", "client_secret": b"a\0", "flow": "client_credentials"},
    "a huge client secret": {"client_id": "web", "client_secret": BIG.encode(), "flow": "client_credentials"},
    "a client id with NUL": {"client_id": "a\0b"},
    "a client id with a line's end": {"client_id": "a\r\nb"},
    "a huge client id": {"client_id": BIG},
    "a flow that isn't": {"flow": "\x1b[31mcode"},
    "a huge flow": {"flow": BIG},
    "a scope with NUL": {"scopes": ["a\0"]},
    "a scope with a blank": {"scopes": ["notes.read notes.write"]},
    "an empty scope": {"scopes": [""]},
    "a huge scope": {"scopes": [BIG]},
    "many scopes": {"scopes": ["notes.read"] * 5000},
    "an issuer that isn't": {"server": {"issuer": "\0"}},
    "an issuer with an escape": {"server": {"issuer": "https://a\x1b[31m.example"}},
    "an issuer that is a file": {"server": {"issuer": "file:///etc/passwd"}},
    "a huge issuer": {"server": {"issuer": f"https://example.org/{BIG}"}},
    "an issuer with a bracket": {"server": {"issuer": "https://[::1"}},
    "a token endpoint that isn't": {"server": {"token_endpoint": "javascript:alert(1)"}},
    "an authorization endpoint that isn't": {
        "server": {"token_endpoint": "https://example.org/t", "authorization_endpoint": "file:///etc/passwd"}
    },
    "an account with a slash": {"account": "a/b", "flow": "client_credentials"},
    "an account with an escape": {"account": "a\x1b[31m", "flow": "client_credentials"},
    "a huge account": {"account": BIG},
    "a service that isn't": {"service": "\0"},
    "another issuer confirmed": {"confirmed": {"issuer": "\x1b"}},
    "a CA that tokens have no room beside": {"place": {"ca_pem": ca_pem() * 100, **PLACE}},
    "a CA that isn't": {"place": {"ca_pem": "\0", **PLACE}},
}


@pytest.mark.parametrize("case", LOGINS)
def test_bad_logins(person: Person, case: str) -> None:
    facts: dict[str, Any] = {"account": "bad", "seconds": 2, **LOGINS[case]}
    scopes = facts.pop("scopes", ["notes.read"])
    found = refused(lambda: list(person.stream(person.request(*scopes, **facts))))
    assert "not-text-7c1" not in str(found) and found.code != "login-timed-out"
    assert not [name for name in person.accounts() if name != "default"]


def test_a_ca_that_tokens_have_no_room_beside_is_told_before_anything_is_asked(person: Person) -> None:
    place = ab.AccountPlace(ca_pem=ca_pem() * 100, **PLACE)
    request = person.request("notes.read", account="bad", place=place, passphrase="")
    before = len(person.server.asked())
    for told in (
        refused(lambda: list(person.stream(request))),
        refused(lambda: person.call("Offer", ab.OfferRequest(service="notes", account="bad", place=place))),
    ):
        assert "CA file" in told.message
        assert "the authority's certificate alone" in told.next_step
    assert len(person.server.asked()) == before


@pytest.mark.parametrize("text", ["\0", "\x1b[31m", "a/b", "\u202e", BIG, "a" * 301])
@pytest.mark.parametrize("call", ["Offer", "Logout", "FinishLogin"])
def test_bad_names(person: Person, call: str, text: str) -> None:
    requests: dict[str, tuple[Any, ...]] = {
        "Offer": (
            ab.OfferRequest(service=text),
            ab.OfferRequest(service="notes", place=ab.AccountPlace(base_url=text, private=True)),
            ab.OfferRequest(
                service="notes", server=ab.AuthorizationServer(issuer=text), place=ab.AccountPlace(**PLACE)
            ),
        ),
        "Logout": (
            ab.LogoutRequest(service=text, passphrase=APPROVAL_PASSPHRASE),
            ab.LogoutRequest(service="notes", account=text, passphrase=APPROVAL_PASSPHRASE),
        ),
        "FinishLogin": (ab.FinishLoginRequest(login_id=text), ab.FinishLoginRequest(redirect_url=text)),
    }
    for request in requests[call]:
        refused(lambda request=request: person.call(call, request))


@pytest.mark.parametrize("text", ["\0", "\x1b[31m", "\u202e", BIG])
def test_bad_looks(person: Person, text: str) -> None:
    assert not person.call("ListAccounts", ab.ListAccountsRequest(service=text)).accounts
    refused(lambda: person.call("Consents", ab.ConsentsRequest(action_id=text)))


@pytest.mark.parametrize(
    "path", ["/tmp/a\0b", "/tmp/" + "x" * 5000, "relative", "", "/", "/dev/null", "/proc/self/mem"]
)
def test_bad_paths_of_a_backup(person: Person, path: str) -> None:
    channel = person.daemon.channel(person.daemon.user_socket)
    backup = vpb.BackupRequest(path=path, passphrase="another one of mine", approval_passphrase=APPROVAL_PASSPHRASE)
    for name, request in (
        ("Backup", backup),
        ("Restore", vpb.RestoreRequest(path=path, backup_passphrase="another", replace=True)),
    ):
        call = channel.unary_unary(
            f"/goex.v1.Vault/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=lambda data: data,
        )
        refused(lambda call=call, request=request: call(request, timeout=300))
    assert not Path("/tmp/a").exists()
