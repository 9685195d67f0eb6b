"""Where tokens, keys and passwords of connected accounts must not be, and who may not touch them: end to end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import docker
import grpc
import pytest

from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from tests.adversarial.hunting import Hunt
from tests.adversarial.hunting_docker import of_action
from tests.goex.daemon.accounts import Person, refuses
from tests.goex.daemon.test_accounts_renewal import stolen
from tests.goex.daemon.test_services import services
from tests.services.keys import KeyService
from tests.services.oidc import WEB_SECRET, OidcServer
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import decide
from tests.support.waiting import until

METHODS = tuple(ab.DESCRIPTOR.services_by_name["Accounts"].methods)


@pytest.fixture(scope="module")
def server() -> Iterator[OidcServer]:
    with OidcServer() as running:
        yield running


@pytest.fixture(scope="module")
def home(server: OidcServer) -> Iterator[Daemon]:
    with Daemon() as running:
        Person(running, server).catalogue()
        yield running


@pytest.fixture
def person(home: Daemon, server: OidcServer) -> Iterator[Person]:
    made = Person(home, server)
    yield made
    for name in made.accounts():
        made.logout(name)


@pytest.mark.sampled(5)
@pytest.mark.promise(40)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_agents_have_none_of_these_calls(person: Person, method: object) -> None:
    name = method.name  # type: ignore[attr-defined]
    request = getattr(ab, method.input_type.name)()  # type: ignore[attr-defined]
    for token in ("", person.daemon.add_agent(f"agent-{name.lower()}")):
        channel = person.daemon.channel(person.daemon.agent_socket, token)
        kind = channel.unary_stream if name == "Login" else channel.unary_unary
        call = kind(
            f"/goex.v1.Accounts/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=lambda data: data,
        )
        with pytest.raises(grpc.RpcError) as caught:
            answer = call(request, timeout=300, metadata=(("authorization", f"Bearer {token}"),) if token else ())
            list(answer) if name == "Login" else None
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "goex.v1.Accounts" not in services(person.daemon, person.daemon.agent_socket)
    assert "goex.v1.Accounts" in services(person.daemon, person.daemon.user_socket)


@pytest.mark.promise(39)
@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into every process and container")
def test_tokens_are_in_the_vault_and_in_memory_alone(person: Person) -> None:
    said = []
    for event in person.stream(
        person.request("notes.read", "notes.write", client_id="web", client_secret=WEB_SECRET.encode())
    ):
        said.append(event.SerializeToString())
        if event.WhichOneof("what") == "open":
            person.browser.visit(event.open.url)
    tokens = stolen(person)
    values = [tokens.access.token.reveal().decode(), tokens.refresh.reveal().decode(), WEB_SECRET]
    person.server.late("/api/me", 50.0)
    journey = person.journey("me")
    approval = journey.asked()
    decide(person.daemon, approval)
    until(lambda: person.server.asked(grant_type="refresh_token", scope="notes.read"))
    time.sleep(3.0)  # both are in the vault by then; reading it while the daemon writes would disturb it
    tokens = stolen(person)
    values += [tokens.access.token.reveal().decode(), tokens.refresh.reveal().decode()]
    assert len(set(values)) == 5
    hunt = Hunt(*values)
    with docker.APIClient() as client:
        container = of_action(client, journey.action_id, person.daemon.run_dir)
        for where, search in container.searches.items():
            assert not any(search(hunt).values()), f"a token is in the container: {where}"
    person.server.now("/api/me")
    finished = journey.finished()
    assert not finished.HasField("problem"), finished.problem
    said += [approval.SerializeToString(), finished.SerializeToString()]
    said += [event.SerializeToString() for event in journey.seen]
    for command in (("auth", "list", "--json"), ("auth", "list"), ("vault", "list", "--json"), ("log", "--json"),
                    ("log", "--rows", "--json"), ("log", "--export", "-"), ("log", "--scopes", "--json")):  # fmt: skip
        done = person.daemon.goex(*command)
        said += [done.stdout.encode(), done.stderr.encode()]
    assert not any(hunt.pieces(*said).values()), "a token was shown"
    assert not any(hunt.tree(person.daemon.home).values()), "a token is in a file"
    assert not any(hunt.database(person.daemon.state_dir / "state.db").values()), "a token is in the journal"
    # The search finds what lies there.
    (person.daemon.home / "bait").write_text(values[0])
    assert hunt.tree(person.daemon.home)[values[0]]
    (person.daemon.home / "bait").unlink()


def test_errors_of_a_server_say_nothing_of_what_was_sent(person: Person) -> None:
    secret = "a client's secret that is the wrong one"
    with refuses("oauth-refused") as found:
        person.login(
            "notes.read", client_id="web", client_secret=secret.encode(), flow="client_credentials", account="robot"
        )
    assert secret not in str(found[0])
    assert not any(Hunt(secret).tree(person.daemon.home).values())
    (row,) = [row for row in _rows(person) if row["kind"] == "login-failed"][-1:]
    assert row["facts"]["why"] == "oauth-refused"


def test_what_connects_and_disconnects_is_journaled_with_who_and_what(person: Person) -> None:
    person.login("notes.read", "notes.write", browse=lambda url: person.browser.visit(url, allow=["notes.read"]))
    person.logout()
    rows = {row["kind"]: row["facts"] for row in _rows(person)}
    assert rows["login-begin"]["scopes"] == ["notes.read", "notes.write", "offline_access"]
    made = rows["account-login"]
    assert (made["account"], made["scopes"], made["refused"]) == (
        "notes/default", ["notes.read"], ["notes.write", "offline_access"],
    )  # fmt: skip
    assert made["issuer"] == person.server.issuer and made["origins"] == [person.server.issuer]
    assert rows["account-logout"]["revoked"] is True
    for kind in ("login-begin", "account-login", "account-logout"):
        assert "on the user socket" in rows[kind]["by"]


def _rows(person: Person) -> list[dict[str, Any]]:
    """The journal's rows, oldest first."""
    done = person.daemon.goex("log", "--export", "-")
    if done.returncode:
        raise AssertionError(done.stderr)
    return [row for line in done.stdout.splitlines() if "kind" in (row := json.loads(line))]


# ---- keys and passwords


@pytest.fixture(scope="module")
def keys(home: Daemon) -> Iterator[KeyService]:
    with KeyService() as running:
        for kind in ("basic", "key"):
            file = home.home / f"{kind}.json"
            file.write_text(json.dumps(running.document(kind)))
            done = home.goex("catalog", "import", "openapi", str(file), "--name", f"{kind}_service")
            assert done.returncode == 0, done.stderr
        yield running


def put(person: Person, service: str, kind: str, secret: str, **more: Any) -> ab.ConnectedAccount:
    request = ab.PutCredentialRequest(
        service=service, kind=kind, secret=secret.encode(), passphrase=APPROVAL_PASSPHRASE, **more
    )
    request.place.private = True
    made: ab.ConnectedAccount = person.call("PutCredential", request)
    return made


def echo(person: Person, service: str) -> tuple[pb.Finished, dict[str, object]]:
    """An action whose answer gives back the credential, in all the ways that the service knows."""
    from tests.support.journey import Journey

    call = pb.Call(service=service, method="echo", arguments_json="{}")
    finished = Journey(person.daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), person=True).approve()
    assert not finished.HasField("problem"), finished.problem
    (result,) = json.loads(finished.action.outcome_json)["results"]
    return finished, result["body"]


@pytest.mark.promise(39)
def test_a_user_name_and_password_go_out_as_basic_and_never_come_back(person: Person, keys: KeyService) -> None:
    password = "pass wörd:with/colons+and more"
    made = put(person, "basic_service", "basic", password, user="ada")
    assert made.kind == "basic"
    try:
        finished, body = echo(person, "basic_service")
        assert keys.seen[-1] == ("basic", "ada", password)
        assert body["well"] is True
        assert not any(Hunt(password).pieces(finished.SerializeToString(), json.dumps(body).encode()).values())
    finally:
        person.call("Logout", ab.LogoutRequest(service="basic_service", passphrase=APPROVAL_PASSPHRASE))


def test_an_api_key_goes_into_the_header_that_the_service_wants(person: Person, keys: KeyService) -> None:
    with refuses("invalid"):
        put(person, "key_service", "bearer", "k" * 30)
    made = put(person, "key_service", "api-key", "key-0123456789-abcdef")
    assert made.kind == "api key"
    try:
        finished, body = echo(person, "key_service")
        assert keys.seen[-1] == ("key", "", "key-0123456789-abcdef")
        assert body["well"] is True
        assert "key-0123456789-abcdef" not in finished.action.outcome_json
        (need,) = _question(person, "key_service").needs
        assert (need.held_by, need.opens_all) == ("gateway", True)
        with refuses("account-exists"):
            put(person, "key_service", "api-key", "another-0123456789")
        put(person, "key_service", "api-key", "another-0123456789", replace=True)
        echo(person, "key_service")
        assert keys.seen[-1] == ("key", "", "another-0123456789")
    finally:
        reply = person.call("Logout", ab.LogoutRequest(service="key_service", passphrase=APPROVAL_PASSPHRASE))
    assert not reply.revoked and "Delete it at the provider" in reply.next_step


def _question(person: Person, service: str) -> pb.Approval:
    from tests.support.journey import Journey

    call = pb.Call(service=service, method="echo", arguments_json="{}")
    return Journey(person.daemon, pb.ExecuteRequest(calls=pb.Calls(calls=[call])), person=True).asked()


@pytest.mark.parametrize(
    ("user", "password"), [("", "p" * 20), ("a:b", "p" * 20), ("ada", ""), ("ada", "line\nbreak"), ("a\nb", "p" * 20)]
)
def test_a_user_name_or_password_that_no_header_can_carry_is_refused(
    person: Person, keys: KeyService, user: str, password: str
) -> None:
    with refuses("invalid" if password else "secret"):
        put(person, "basic_service", "basic", password, user=user)


def test_a_login_isnt_replaced_by_a_key_nor_a_key_by_a_login(person: Person, keys: KeyService) -> None:
    person.login("notes.read")
    with refuses("account-exists"):
        put(person, "notes", "bearer", "t" * 30, replace=True)
    with pytest.raises(grpc.RpcError) as caught:
        person.daemon.person(
            "VaultPut", pb.VaultPutRequest(service="notes", secret=b"t" * 30, replace=True, private=True,
                                           passphrase=APPROVAL_PASSPHRASE)
        )  # fmt: skip
    assert "is a login" in (caught.value.details() or "")
    assert person.accounts()["default"].kind == "login"
    put(person, "notes", "bearer", "t" * 30, account="other")
    with refuses("account-exists"):
        person.login("notes.read", account="other")
    assert person.accounts()["other"].kind == "token"
