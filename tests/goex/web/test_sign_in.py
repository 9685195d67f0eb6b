"""Signing in at the public page: each way in which it is refused, with a control, on the wire and over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from goex.daemon.app import App
from goex.daemon.page_sessions import LASTS, MOST, NoPageSession, PageSessions
from goex.daemon.rpc_context import AWAY_KEY, Callers
from goex.daemon.waiting_calls import WaitingCalls
from goex.engine.peers import Peer, Presence, Sessions, Terminal
from goex.journal.verify import Signatures
from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from goex.web import daemon_calls
from goex.web.access import A_SECOND, AT_ONCE, MOST_SESSIONS, Access, Strangers, link_code
from goex.web.app import LARGEST_STRANGERS, LOOK_SECONDS
from goex.web.daemon_calls import STREAMED, UNARY
from tests.goex.web.test_access import HERE, send, session_of
from tests.support.authenticator import PRESENT, Authenticator, Page, decoded, encoded
from tests.support.daemon import APPROVAL_PASSPHRASE, VAULT_PASSPHRASE, Daemon
from tests.support.journey import problem
from tests.support.page import WebPage, add_shop, ask_for_update, page_of
from tests.support.ports import free_port
from tests.support.waiting import until
from vault.passkeys import NONE, Passkey, Passkeys

pytestmark = pytest.mark.promise(94)

HOST = "goex.example.org"
PUBLIC = f"https://{HOST}"
SIGN_IN = {"sign_in": ppb.SignInRequest()}


def phone_key(**more: Any) -> Authenticator:
    return Authenticator(rp_id=HOST, origin=PUBLIC, **more)


@pytest.fixture(scope="module")
def port() -> int:
    """Of the page on this machine."""
    return free_port()


@pytest.fixture(scope="module")
def daemon(port: int) -> Iterator[Daemon]:
    with Daemon(config=f'[web]\nport = {port}\npublic_url = "{PUBLIC}"\n') as running:
        yield running


@pytest.fixture(scope="module")
def web(daemon: Daemon, port: int) -> Iterator[WebPage]:
    with page_of(daemon, port) as made:
        yield made


@pytest.fixture(scope="module")
def key() -> Authenticator:
    return phone_key()


@pytest.fixture(scope="module")
def page(daemon: Daemon, key: Authenticator) -> Page:
    """Where the passkey was registered."""
    page = Page(daemon, PUBLIC)
    page.add(key)
    return page


class Refused(AssertionError):
    pass


def sign_in(daemon: Daemon, answer: str, *, by_link: bool = False) -> Any:
    """The call that a session lives as long as, with its first message. Raises Refused."""
    call = daemon.channel(daemon.user_socket).unary_stream(
        "/goex.v1.Passkeys/SignIn",
        request_serializer=ppb.SignInRequest.SerializeToString,
        response_deserializer=ppb.PageSession.FromString,
    )(ppb.SignInRequest(assertion_json=answer, by_link=by_link))
    try:
        return call, next(call)
    except grpc.RpcError as error:
        raise Refused(problem(error).code) from error


def status_as(daemon: Daemon, away: str, method: str = "Person/Status") -> str:
    """The code of what a call for that session ends with; "" when it is answered."""
    kind, reply = UNARY[method]
    call = daemon.channel(daemon.user_socket).unary_unary(
        f"/goex.v1.{method}", request_serializer=kind.SerializeToString, response_deserializer=reply.FromString
    )
    try:
        call(kind(), metadata=((AWAY_KEY, away),), timeout=300)
    except grpc.RpcError as error:
        return str(problem(error).code)
    return ""


def ended(call: Any) -> bool:
    """Whether a session's call ends, which is waited for."""
    try:
        return next(call, None) is None
    except grpc.RpcError:
        return True


def test_a_passkey_begins_a_session_that_lasts_as_long_as_its_call(
    daemon: Daemon, page: Page, key: Authenticator
) -> None:
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    assert status_as(daemon, session.id) == ""
    assert session.id in [one.id for one in page.list().sessions]
    call.cancel()
    until(lambda: status_as(daemon, session.id) == "session", "the session's end")
    assert session.id not in [one.id for one in page.list().sessions]


BENT: dict[str, dict[str, Any]] = {
    "forged origin": {"origin": f"https://evil.{HOST}"},
    "the loopback page": {"origin": HERE},
    "plain http": {"origin": f"http://{HOST}"},
    "within another page": {"crossOrigin": True},
    "wrong rp id": {"rp_id": "goex.localhost"},
    "not verified": {"flags": PRESENT},
    "not present": {"flags": 0x04},
    "registration": {"type": "webauthn.create"},
    "own challenge": {"challenge": encoded(b"\1" * 32)},
    "spoiled signature": {"spoil": True},
    "another key": {"key": Authenticator().key},
}


@pytest.mark.parametrize("bent", BENT, ids=str)
def test_a_bent_answer_begins_nothing(daemon: Daemon, page: Page, key: Authenticator, bent: str) -> None:
    with pytest.raises(Refused, match="passkey-refused"):
        sign_in(daemon, key.get(page.challenge(**SIGN_IN), **BENT[bent]))
    sign_in(daemon, key.get(page.challenge(**SIGN_IN)))[0].cancel()


def test_an_answer_begins_one_session(daemon: Daemon, page: Page, key: Authenticator) -> None:
    answer = key.get(page.challenge(**SIGN_IN))
    sign_in(daemon, answer)[0].cancel()
    with pytest.raises(Refused, match="passkey-refused"):
        sign_in(daemon, answer)


def test_what_was_signed_for_one_thing_is_none_of_another(
    daemon: Daemon, shop: Path, page: Page, key: Authenticator
) -> None:
    """A session's signature approves nothing; an approval's, a confirmation's, a removal's begin no session."""
    ask_for_update(daemon, daemon.add_agent("bot"), "x")
    question = daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0]
    yes, mine = page.yes(question), page.list().passkeys[0].id
    removing = ppb.RemovePasskeyRequest(id=mine)
    for what in ({"decide": yes}, {"presence": ""}, {"remove": removing}):
        with pytest.raises(Refused, match="passkey-refused"):
            sign_in(daemon, key.get(page.challenge(**what)))

    def for_a_session() -> str:
        return key.get(page.challenge(**SIGN_IN))

    other = ppb.AddPasskeyRequest(name="other", credential_json=phone_key().create(page.begin("other")))
    other.assertion_json = for_a_session()
    for attempt in (
        lambda: page.decide(page.yes(question, assertion_json=for_a_session())),
        lambda: daemon.person("Present", pb.PresentRequest(assertion_json=for_a_session())),
        lambda: page.call("Remove", ppb.RemovePasskeyRequest(id=mine, assertion_json=for_a_session())),
        lambda: page.call("Add", other),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            attempt()
        assert problem(caught.value).code == "passkey-refused"
    sign_in(daemon, for_a_session())[0].cancel()  # the controls
    page.decide(page.signed(yes, key))


def test_a_session_isnt_presence_and_no_passphrase_counts_away(
    daemon: Daemon, shop: Path, page: Page, key: Authenticator
) -> None:
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    person = daemon.channel(daemon.user_socket)

    def away(method: str, request: Any, by: str) -> str:
        made = person.unary_unary(
            f"/goex.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=UNARY[method][1].FromString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            made(request, metadata=((AWAY_KEY, by),), timeout=300)
        return str(problem(caught.value).code)

    other_call, linked = sign_in(daemon, "", by_link=True)
    for by in (session.id, linked.id):
        ask_for_update(daemon, _token(daemon), f"by {by}")
        question = daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0]
        assert away("Person/Decide", page.yes(question), by) == "passkey"
        assert away("Person/Decide", page.yes(question, passphrase=APPROVAL_PASSPHRASE), by) == "passkey"
        assert away("Person/Present", pb.PresentRequest(passphrase=APPROVAL_PASSPHRASE), by) == "passkey"
        assert away("Passkeys/Reset", ppb.ResetPasskeysRequest(passphrase=APPROVAL_PASSPHRASE), by) == "passkey"
        assert away("Person/VaultUnlock", pb.VaultUnlockRequest(passphrase=VAULT_PASSPHRASE), by) == "denied"
        page.decide(page.yes(question, passphrase=APPROVAL_PASSPHRASE))  # the control: where GoEx runs
    call.cancel()
    other_call.cancel()


# What each call of the page does for somebody at the public page who has no passkey.
AWAY = {
    "needs a passkey": {
        "Person/Decide", "Person/DryRun", "Person/Present", "Actions/Revert", "Rules/ApplySuggestedRules",
        "Passkeys/Add", "Passkeys/Remove", "Passkeys/Reset",
    },
    "is refused": {"Person/VaultUnlock"},
    "takes something away": {
        "Person/DenyAll", "Person/Revoke", "Person/RemoveAgent", "Person/VaultSeal", "Passkeys/EndSession",
        "Actions/Cancel",
    },
    "says what is there": {
        "Person/Status", "Person/Approvals", "Person/WatchApprovals", "Person/Grants", "Person/ListAgents",
        "Accounts/ListAccounts", "Databases/ListDatabases", "Rules/InForce", "Rules/SuggestRules", "Passkeys/Begin",
        "Passkeys/List", "Passkeys/Challenge", "Audit/Actions", "Audit/Story", "Audit/Scopes", "Actions/WayBack",
    },
}  # fmt: skip


def test_of_each_call_of_the_page_it_is_known_what_it_does_away() -> None:
    known = [method for methods in AWAY.values() for method in methods]
    assert sorted(known) == sorted({**UNARY, **STREAMED})


class Afar:
    """Calls for one session at the public page; without one, of the page where GoEx runs."""

    def __init__(self, daemon: Daemon, session: str = "") -> None:
        self._channel = daemon.channel(daemon.user_socket)
        self._metadata = ((AWAY_KEY, session),) if session else ()

    def call(self, method: str, request: Any) -> Any:
        made = self._channel.unary_unary(
            f"/goex.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=UNARY[method][1].FromString,
        )
        return made(request, metadata=self._metadata, timeout=300)

    def stream(self, method: str, request: Any) -> Any:
        made = self._channel.unary_stream(
            f"/goex.v1.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=STREAMED[method][1].FromString,
        )
        return made(request, metadata=self._metadata, timeout=300)

    def refused(self, method: str, request: Any) -> str:
        """The code of the problem that it ends with; "" for none."""
        try:
            if method in UNARY:
                self.call(method, request)
            else:
                list(self.stream(method, request))
        except grpc.RpcError as error:
            return str(problem(error).code)
        return ""


@pytest.fixture
def afar(daemon: Daemon, page: Page, key: Authenticator) -> Iterator[tuple[Afar, Afar]]:
    """A session that a passkey began, and one that a link did."""
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    other_call, other = sign_in(daemon, "", by_link=True)
    yield Afar(daemon, session.id), Afar(daemon, other.id)
    call.cancel()
    other_call.cancel()


LOOK = pb.SqlProgram(database="shop", statements="SELECT status FROM orders")


def asked_to_look(daemon: Daemon) -> pb.Approval:
    """The question of an agent that wants to read, whole."""
    for event in daemon.actions("Execute", pb.ExecuteRequest(sql=LOOK, detach=True), token=_token(daemon)):
        if event.HasField("asking"):
            found = daemon.person("Approvals", pb.ApprovalsRequest(approval_id=event.asking.id)).approvals[0]
            assert isinstance(found, pb.Approval)
            return found
    raise AssertionError("nothing was asked")


def test_a_yes_to_a_read_is_signed_too_away(
    daemon: Daemon, shop: Path, page: Page, key: Authenticator, afar: tuple[Afar, Afar]
) -> None:
    here = Afar(daemon)
    for away in afar:
        question = asked_to_look(daemon)
        assert not question.presence
        yes = page.yes(question)
        assert away.refused("Person/Decide", yes) == "passkey"
        assert away.refused("Person/Decide", page.yes(question, passphrase=APPROVAL_PASSPHRASE)) == "passkey"
        asked = pb.ApprovalsRequest(approval_id=question.id)
        shown = away.call("Person/Approvals", asked).approvals[0]
        assert (shown.presence, shown.presence_by) == (True, "passkey")
        (listed,) = away.call("Person/Approvals", pb.ApprovalsRequest(brief=True)).approvals
        assert (listed.id, listed.presence, listed.presence_by) == (question.id, True, "passkey")
        watched = away.stream("Person/WatchApprovals", pb.ApprovalsRequest(brief=True))
        told = next(watched)
        watched.cancel()
        assert (told.id, told.presence, told.presence_by) == (question.id, True, "passkey")
        assert here.call("Person/Approvals", asked).approvals[0].state == "pending"
        away.call("Person/Decide", page.signed(yes, key))
        assert here.call("Person/Approvals", asked).approvals[0].state == "approved"
    question = asked_to_look(daemon)
    assert here.refused("Person/Decide", page.yes(question)) == ""  # the control: where GoEx runs


def test_away_there_is_no_dry_run_but_of_what_waits(daemon: Daemon, shop: Path, afar: tuple[Afar, Afar]) -> None:
    question = asked_to_look(daemon)
    done = _updated(daemon, "to be looked at")
    mine = pb.DryRunRequest(request=pb.ExecuteRequest(sql=LOOK))
    undo = pb.DryRunRequest(revert=pb.RevertRequest(action_id=done, verb="undo"))
    waits = pb.DryRunRequest(question=pb.DryRunQuestion(approval_id=question.id, digest=question.digest))
    for away in afar:
        assert away.refused("Person/DryRun", mine) == "denied"
        assert away.refused("Person/DryRun", undo) == "denied"
        assert away.refused("Person/DryRun", waits) == ""
    assert [Afar(daemon).refused("Person/DryRun", one) for one in (mine, undo)] == ["", ""]  # the control
    daemon.person("DenyAll", pb.DenyAllRequest(agent="other"))


def test_what_is_begun_away_a_passkey_confirms_first(
    daemon: Daemon, shop: Path, page: Page, key: Authenticator, afar: tuple[Afar, Afar]
) -> None:
    """A rule could let it run without a question."""
    done = _updated(daemon, "begun away")
    undo = pb.RevertRequest(action_id=done, verb="undo", detach=True)

    def begun() -> list[str]:
        found = daemon.actions("List", pb.ListRequest(), socket=daemon.user_socket).actions
        return [one.id for one in found if one.kind == "revert"]

    def asks(by: Afar) -> None:
        """It begins; its question is denied, so that it can be begun again."""
        events = by.stream("Actions/Revert", undo)
        question = next(event.asking for event in events if event.HasField("asking"))
        daemon.person("Decide", pb.DecideRequest(approval_id=question.id, approve=False))
        assert any(event.HasField("finished") for event in events)

    before = begun()
    passkeys, link = afar
    assert passkeys.refused("Actions/Revert", pb.RevertRequest(action_id="a-none", verb="undo")) == "invalid"
    assert not page.list().waiting
    for away in afar:
        assert away.refused("Actions/Revert", undo) == "passkey"
    first, _ = page.list().waiting
    assert (first.what, begun()) == (f"Undoing {done}", before)
    page.confirm(first.id, key)
    assert link.refused("Actions/Revert", undo) == "passkey"
    assert begun() == before
    asks(passkeys)
    assert len(begun()) == len(before) + 1
    assert passkeys.refused("Actions/Revert", undo) == "passkey"  # a confirmation is for one call
    for waiting in page.list().waiting:
        page.confirm(waiting.id, key)
    for by in (passkeys, link, Afar(daemon)):  # the last is the control: where GoEx runs no passkey is asked for
        asks(by)


def test_what_was_confirmed_for_one_session_is_for_no_other_of_the_pages_process(
    daemon: Daemon, page: Page, key: Authenticator
) -> None:
    """The page's process speaks for all of them, and for the page on this machine."""
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    other_call, other = sign_in(daemon, "", by_link=True)
    removed = page.add(phone_key(), by=key, name="lost").id
    ask = daemon.channel(daemon.user_socket).unary_unary(
        "/goex.v1.Passkeys/Remove",
        request_serializer=ppb.RemovePasskeyRequest.SerializeToString,
        response_deserializer=ppb.RemovePasskeyReply.FromString,
    )

    def remove(*metadata: tuple[str, str]) -> str:
        try:
            ask(ppb.RemovePasskeyRequest(id=removed), metadata=metadata, timeout=300)
        except grpc.RpcError as error:
            return str(problem(error).code)
        return ""

    mine = (AWAY_KEY, session.id)
    assert remove(mine) == "passkey"
    page.confirm(page.list().waiting[0].id, key)
    assert remove((AWAY_KEY, other.id)) == "passkey"
    assert remove() == "passkey"
    assert remove(mine) == ""  # the control
    call.cancel()
    other_call.cancel()


def test_a_copied_authenticator_begins_nothing(daemon: Daemon, page: Page, key: Authenticator) -> None:
    sign_in(daemon, key.get(page.challenge(**SIGN_IN)))[0].cancel()
    clone = phone_key(credential_id=key.credential_id, key=key.key, counter=key.counter - 1)
    with pytest.raises(Refused, match="passkey-refused"):
        sign_in(daemon, clone.get(page.challenge(**SIGN_IN)))
    assert "passkey-cloned" in [row.kind for row in daemon.person("Log", pb.LogRequest(limit=5)).rows]
    sign_in(daemon, key.get(page.challenge(**SIGN_IN)))[0].cancel()


def test_a_removed_passkey_takes_its_sessions_with_it(daemon: Daemon, page: Page, key: Authenticator) -> None:
    lost = phone_key()
    added = page.add(lost, by=key, name="lost")
    kept, other = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    call, session = sign_in(daemon, lost.get(page.challenge(**SIGN_IN)))
    late = lost.get(page.challenge(**SIGN_IN))
    assert status_as(daemon, session.id) == ""
    page.remove(added.id, key)
    assert status_as(daemon, session.id) == "session"
    assert ended(call)
    with pytest.raises(Refused, match="passkey-refused"):
        sign_in(daemon, late)
    assert status_as(daemon, other.id) == ""  # the control: another passkey's goes on
    kept.cancel()


def test_a_sealed_vault_ends_sessions_and_begins_none(
    daemon: Daemon, page: Page, key: Authenticator, web: WebPage
) -> None:
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    linked_call, linked = sign_in(daemon, "", by_link=True)
    early = key.get(page.challenge(**SIGN_IN))
    daemon.person("VaultSeal", pb.VaultSealRequest())
    try:
        assert status_as(daemon, session.id) == "session"
        assert ended(call)
        assert status_as(daemon, linked.id) == "session"
        assert ended(linked_call)
        with pytest.raises(Refused, match="sealed"):
            sign_in(daemon, early)
        with pytest.raises(Refused, match="sealed"):
            sign_in(daemon, "", by_link=True)
        assert at_public(web, "/enter", {"code": public_code(daemon)})[0] == 400
        with pytest.raises(grpc.RpcError):
            page.challenge(**SIGN_IN)
        status, _, body = at_public(web, "/sign-in/challenge")
        assert (status, b"sealed" in body) == (401, False)
    finally:
        daemon.unlock()
    assert {status_as(daemon, one.id) for one in (session, linked)} == {"session"}
    call, session = sign_in(daemon, key.get(page.challenge(**SIGN_IN)))
    daemon.person("VaultSeal", pb.VaultSealRequest())
    daemon.unlock()  # before anybody asked for it
    assert status_as(daemon, session.id) == "session"
    sign_in(daemon, key.get(page.challenge(**SIGN_IN)))[0].cancel()


@pytest.mark.parametrize("method", UNARY)
def test_no_call_is_made_for_a_session_that_has_ended(daemon: Daemon, page: Page, method: str) -> None:
    assert status_as(daemon, "ps-" + "0" * 32, method) == "session"


def test_a_flood_of_strangers_ends_no_challenge_of_an_approval(page: Page, key: Authenticator) -> None:
    asked = page.challenge(presence="")
    for _ in range(600):
        page.challenge(**SIGN_IN)
    answer = pb.PresentRequest(assertion_json=key.get(asked))
    page.daemon.person("Present", answer)


def test_the_log_has_the_signature_and_shows_another_origin(daemon: Daemon, page: Page, key: Authenticator) -> None:
    sign_in(daemon, key.get(page.challenge(**SIGN_IN)))[0].cancel()
    found = sorted(daemon.person("Log", pb.LogRequest(limit=1000)).rows, key=lambda row: row.number)
    rows = [(row.kind, json.loads(row.facts_json)) for row in found]
    added = [facts for kind, facts in rows if kind == "passkey-add"]
    begun = [facts for kind, facts in rows if kind == "page-session"][-1]

    def judged(facts: dict[str, Any]) -> str:
        signatures = Signatures(whole=True)
        for each in added:
            assert signatures.row(1, "", "passkey-add", "", each) == ""
        return signatures.row(2, "", "page-session", "", facts)

    assert judged(begun) == ""
    assert judged({**begun, "origin": "https://evil.example"}) == "isn't what the passkey approved"
    spoiled = bytearray(decoded(begun["assertion"]["signature"]))
    spoiled[-1] ^= 1
    assert judged({**begun, "assertion": {**begun["assertion"], "signature": encoded(bytes(spoiled))}})


# Over HTTP.


def at_public(web: WebPage, path: str, body: object = None, **more: str) -> tuple[int, dict[str, str], bytes]:
    """One request as it comes through the tunnel, once strangers may."""
    given = {"Host": HOST, "Origin": PUBLIC, **more}
    for _ in range(120):
        answer = send(web, path, body, **given)
        if answer[0] != 429:
            return answer
        threading.Event().wait(0.5)
    raise AssertionError("it stays busy")


def test_over_http_a_session_holds_at_its_origin_alone(
    daemon: Daemon, page: Page, web: WebPage, key: Authenticator
) -> None:
    status, headers, body = at_public(web, "/sign-in/challenge")
    options = json.loads(body)["options_json"]
    assert status == 200
    assert json.loads(options).get("allowCredentials", []) == []  # a stranger learns of no passkey
    status, headers, body = at_public(web, "/sign-in", {"assertion_json": key.get(options)})
    assert status == 200
    assert "set-cookie" not in {name.lower() for name in headers}
    token = json.loads(body)["token"]
    assert at_public(web, "/call/Person/Status", token=token)[0] == 200
    assert send(web, "/call/Person/Status", token=token)[0] == 401
    assert at_public(web, "/leave", token=token)[0] == 200
    assert at_public(web, "/call/Person/Status", token=token)[0] == 401


def public_code(daemon: Daemon) -> str:
    return str(daemon.goex("web", "--phone").stdout.strip().partition("#")[2])


def test_a_link_s_session_ends_with_the_vault_and_where_the_person_ends_it(
    daemon: Daemon, page: Page, web: WebPage
) -> None:
    def begun() -> tuple[str, str]:
        before = {one.id for one in page.list().sessions}
        token = json.loads(at_public(web, "/enter", {"code": public_code(daemon)})[2])["token"]
        assert at_public(web, "/call/Person/Status", token=token)[0] == 200  # the control
        (made,) = [one.id for one in page.list().sessions if one.id not in before]
        return token, made

    token, made = begun()
    page.call("EndSession", ppb.EndSessionRequest(id=made))
    assert at_public(web, "/call/Person/Status", token=token)[0] == 401
    token, _ = begun()
    daemon.person("VaultSeal", pb.VaultSealRequest())
    daemon.unlock()
    assert at_public(web, "/call/Person/Status", token=token)[0] == 401
    token, made = begun()
    assert at_public(web, "/leave", token=token)[0] == 200
    until(lambda: status_as(daemon, made) == "session", "the session's end")


def test_no_session_goes_on_at_the_daemon_that_the_page_has_ended(daemon: Daemon, page: Page, web: WebPage) -> None:
    """The page has room for as many, those on this machine among them: the oldest ends."""
    before = {one.id for one in page.list().sessions}
    at_public(web, "/enter", {"code": public_code(daemon)})
    (made,) = [one.id for one in page.list().sessions if one.id not in before]
    for _ in range(MOST_SESSIONS):
        session_of(web)
    until(lambda: status_as(daemon, made) == "session", "the session's end")


def test_an_empty_answer_is_no_link(page: Page, web: WebPage) -> None:
    assert at_public(web, "/sign-in", {"assertion_json": ""})[0] == 401


def test_nobody_beyond_the_tunnel_speaks_as_the_page_on_this_machine(daemon: Daemon, page: Page, web: WebPage) -> None:
    token = session_of(web)
    assert send(web, "/call/Person/Status", token=token)[0] == 200  # the control
    assert send(web, "/call/Person/Status", token=token, Host=HOST)[0] == 403
    assert send(web, "/enter", {"code": web.link().partition("#")[2]}, Host=HOST)[0] == 403


def test_a_link_opens_the_page_where_it_leads_alone(daemon: Daemon, page: Page, web: WebPage) -> None:
    here = web.link().partition("#")[2]
    assert at_public(web, "/enter", {"code": here})[0] == 401
    there = daemon.goex("web", "--phone").stdout.strip()
    assert there.startswith(f"{PUBLIC}/#")
    code = {"code": there.partition("#")[2]}
    assert send(web, "/enter", code)[0] == 401
    assert at_public(web, "/enter", code)[0] == 200  # the controls
    assert send(web, "/enter", {"code": here})[0] == 200


@pytest.mark.parametrize("path", ["/sign-in/challenge", "/sign-in"])
def test_another_host_or_origin_begins_nothing(page: Page, web: WebPage, path: str) -> None:
    assert at_public(web, path, {"assertion_json": "{}"})[0] in (200, 401)  # the control
    for headers in (
        {"Host": f"evil.{HOST}", "Origin": PUBLIC},
        {"Host": HOST, "Origin": "https://evil.example"},
        {"Host": HOST, "Origin": f"http://{HOST}"},
        {"Host": HOST, "Origin": PUBLIC, "Sec_Fetch_Site": "cross-site"},
        {"Host": HOST, "Origin": web.origin},
        {"Host": web.origin.partition("://")[2], "Origin": PUBLIC},
        {"Host": f"{HOST}.", "Origin": f"{PUBLIC}."},
        {"Host": f"{HOST}:443", "Origin": f"{PUBLIC}:443"},
        {"Host": HOST.upper(), "Origin": PUBLIC.upper()},
        {"Host": f"[::1]:{web.port}", "Origin": f"http://[::1]:{web.port}"},
    ):
        assert send(web, path, {"assertion_json": "{}"}, **headers)[0] in (403, 421)
    status, _, body = send(web, path, {"assertion_json": "{}"})  # the loopback page
    assert (status, b"opened by its link" in body) == (401, True)


def test_strangers_are_answered_seldom_and_a_session_goes_on(page: Page, web: WebPage, key: Authenticator) -> None:
    answer = key.get(json.loads(at_public(web, "/sign-in/challenge")[2])["options_json"])
    token = json.loads(at_public(web, "/sign-in", {"assertion_json": answer})[2])["token"]
    told = [send(web, "/sign-in", {"assertion_json": answer}, Host=HOST, Origin=PUBLIC)[0] for _ in range(3 * AT_ONCE)]
    assert set(told) == {401, 429}
    assert at_public(web, "/call/Person/Status", token=token)[0] == 200


def test_a_flood_of_strangers_keeps_nobody_out_who_names_a_registered_passkey(
    page: Page, web: WebPage, key: Authenticator
) -> None:
    mine = {"passkey": encoded(key.credential_id)}

    def ask(path: str, body: object) -> tuple[int, bytes]:
        for _ in range(20 * AT_ONCE):
            if send(web, "/sign-in/challenge", {"passkey": "x"}, Host=HOST, Origin=PUBLIC)[0] == 429:
                status, _, said = send(web, path, body, Host=HOST, Origin=PUBLIC)
                return status, said
        raise AssertionError("strangers are never refused")

    for _ in range(LOOKS):  # until the page has looked which passkeys there are, and it wasn't asked for a while
        status, said = ask("/sign-in/challenge", mine)
        if status == 200:
            break
        threading.Event().wait(0.5)
    assert status == 200
    answer = key.get(json.loads(said)["options_json"])
    threading.Event().wait(2.5 / A_SECOND)
    status, said = ask("/sign-in", {"assertion_json": answer})
    assert status == 200
    token = json.loads(said)["token"]
    assert at_public(web, "/call/Person/Status", token=token)[0] == 200
    told = {ask("/sign-in/challenge", mine)[0] for _ in range(3 * AT_ONCE)}
    assert told == {200, 429}  # they are answered seldom, too
    for other in ("", "x", encoded(b"\1" * 32), encoded(key.credential_id)[:-1]):
        assert 429 in {ask("/sign-in/challenge", {"passkey": other})[0] for _ in range(3)}


def test_what_a_stranger_sends_is_short(page: Page, web: WebPage) -> None:
    for path in ("/enter", "/sign-in", "/sign-in/challenge"):
        assert at_public(web, path, {"code": "x" * LARGEST_STRANGERS})[0] == 413
    for bad in (b"[]", b"null", b'"x"', b"{", b'{"passkey": 7}', b'{"assertion_json": {}}',
                b'{"assertion_json": "\\ud800", "passkey": "\\ud800"}'):  # fmt: skip
        assert at_public(web, "/sign-in/challenge", bad)[0] in (200, 400)
        assert at_public(web, "/sign-in", bad)[0] == 400
    for odd in ("null", "[]", '{"id": 7}', "[" * 20_000):
        assert at_public(web, "/sign-in", {"assertion_json": odd})[0] == 401


LOOKS = int(4 * LOOK_SECONDS)


def test_presence_at_the_terminal_of_goex_web_is_none_at_the_page() -> None:
    """The page's process has that terminal, and speaks for whoever came by a link, which each program can make."""
    with Daemon(config=f'[web]\nport = {free_port()}\npublic_url = "{PUBLIC}"\n') as daemon:
        key, page = phone_key(), Page(daemon, PUBLIC)
        page.add(key)
        add_shop(daemon)
        with daemon.terminal("web", "--no-browser") as terminal:
            terminal.expect(r"http://[0-9a-f]+\.goex\.localhost:")
            web = Running(daemon)
            here = session_of(web)
            answer = key.get(json.loads(at_public(web, "/sign-in/challenge")[2])["options_json"])
            away = json.loads(at_public(web, "/sign-in", {"assertion_json": answer})[2])["token"]

            def decide(value: str, **proof: str) -> dict[str, object]:
                ask_for_update(daemon, _token(daemon), value)
                question = daemon.person("Approvals", pb.ApprovalsRequest()).approvals[0]
                yes = {"approval_id": question.id, "approve": True, "width": "once", "digest": question.digest}
                return {**yes, **proof}

            yes = decide("typed", passphrase=APPROVAL_PASSPHRASE)
            assert send(web, "/call/Person/Decide", yes, token=here)[0] == 200
            yes = decide("remembered")
            status, _, body = at_public(web, "/call/Person/Decide", yes, token=away)
            assert (status, json.loads(body)["problem"]["code"]) == (400, "passkey")
            status, _, body = send(web, "/call/Person/Decide", yes, token=here)
            assert (status, json.loads(body)["problem"]["code"]) == (400, "presence")


class Running:
    """A page that somebody started."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.origin = self.link().partition("/#")[0]
        self.port = int(self.origin.rpartition(":")[2])

    def link(self) -> str:
        return self._daemon.goex("web", "--no-browser").stdout.strip()


def test_without_a_passkey_or_a_public_url_none_is_offered() -> None:
    config = f'[web]\nport = {free_port()}\npublic_url = "{PUBLIC}"\n'
    with Daemon(config=config) as daemon, page_of(daemon, None) as web:
        assert at_public(web, "/sign-in/challenge")[0] == 401
        Page(daemon, PUBLIC).add(phone_key())
        assert at_public(web, "/sign-in/challenge")[0] == 200
        daemon.stop()
        daemon.configure("")
    with Daemon() as daemon, page_of(daemon) as web:
        assert at_public(web, "/sign-in/challenge")[0] == 421
        assert daemon.goex("web", "--phone").returncode != 0


class TestClocks:
    def test_a_session_ends_after_twelve_hours_and_the_oldest_for_a_new_one(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        passkey = Passkey(id="pk-1", name="x", credential_id=b"1", public_key=b"1", rp_id=HOST, created=now)
        known = Passkeys(all=(passkey,))
        sessions = PageSessions(lambda: now, lambda: known)
        with ExitStack() as calls:
            made = [calls.enter_context(sessions.opened(passkey)) for _ in range(MOST + 1)]
            assert [one.over.is_set() for one in made] == [True] + [False] * MOST
            assert sessions.get(made[-1].id) is made[-1]
            now += LASTS
            with pytest.raises(NoPageSession):
                sessions.get(made[-1].id)

    def test_none_is_open_while_the_vault_is_sealed(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        passkey = Passkey(id="pk-1", name="x", credential_id=b"1", public_key=b"1", rp_id=HOST, created=now)
        known: Passkeys | None = Passkeys(all=(passkey,))
        sessions = PageSessions(lambda: now, lambda: known)
        with sessions.opened(passkey) as session:
            assert sessions.get(session.id)
            known = None
            with pytest.raises(NoPageSession):
                sessions.get(session.id)
            known = Passkeys(all=(passkey,))
            with pytest.raises(NoPageSession):
                sessions.get(session.id)

    def test_a_link_s_session_needs_no_passkey_and_an_open_vault(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        known: Passkeys | None = NONE
        sessions = PageSessions(lambda: now, lambda: known)
        with sessions.opened(None) as session:
            assert sessions.get(session.id)
            known = None
            with pytest.raises(NoPageSession):
                sessions.get(session.id)

    def test_a_session_that_begins_while_the_vault_is_being_sealed_ends_with_it(self) -> None:
        """What sealing waits for takes seconds; and the vault may be opened again before anybody asks."""
        now = datetime(2026, 1, 1, tzinfo=UTC)
        peer = Peer(socket="user", uid=1, gid=1, pid=1, connection="c", terminal=Terminal(1, 1, 1), program="x")
        sealing = App.__new__(App)
        sealing.page_sessions = sessions = PageSessions(lambda: now, lambda: NONE)
        sealing.presence = Presence(60, lambda: now)
        sealing.waiting = WaitingCalls(lambda: now)
        sealing.journal = SimpleNamespace(unlocked=False)  # type: ignore[assignment]
        sealing.runtimes = SimpleNamespace(forget=partial(asyncio.sleep, 0))  # type: ignore[assignment]
        calls, made = ExitStack(), []

        def meanwhile() -> None:
            sealing.presence.remember(peer)
            made.append(calls.enter_context(sessions.opened(None)))

        nothing = SimpleNamespace(actions=SimpleNamespace(in_states=lambda states: ()))
        sealing.engine = SimpleNamespace(core=nothing)  # type: ignore[assignment]
        sealing.vault_state = SimpleNamespace(flush_uses=meanwhile, seal=lambda why: None)  # type: ignore[assignment]
        with calls:
            asyncio.run(sealing.seal())
            assert made[0].over.is_set()
            with pytest.raises(NoPageSession):
                sessions.get(made[0].id)
        assert not sealing.presence.holds(peer)

    def test_strangers_may_ask_again_after_a_while(self) -> None:
        now = 0.0
        strangers = Strangers(lambda: now)
        assert [strangers.may() for _ in range(AT_ONCE + 1)] == [True] * AT_ONCE + [False]
        now += timedelta(seconds=2).total_seconds()
        assert [strangers.may() for _ in range(3)] == [True, True, False]

    def test_a_token_of_one_origin_is_none_of_another(self) -> None:
        access = Access(b"k" * 32, lambda: 1000.0)
        assert not access.enter(link_code(b"k" * 32, 1000.0, HERE), PUBLIC)
        assert access.enter(link_code(b"k" * 32, 1000.0, PUBLIC), PUBLIC)
        token = access.begin(PUBLIC, "ps-1")
        assert access.of(token, PUBLIC) is not None
        assert access.of(token, HERE) is None


@pytest.mark.parametrize("terminal", [Terminal(1, 1, 1), None])
def test_nobody_at_the_page_is_at_the_terminal_of_its_process(terminal: Terminal | None) -> None:
    peer = Peer(socket="user", uid=1, gid=1, pid=1, connection="c", terminal=terminal, program="x")
    sessions = PageSessions(lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: NONE)
    registry: Any = SimpleNamespace(peer=lambda _: peer)
    callers = Callers(registry, cast("Any", None), cast("Any", None), sessions)

    def seen(metadata: object) -> Peer:
        return callers.peer(SimpleNamespace(peer=lambda: "", invocation_metadata=lambda: metadata))

    assert seen(daemon_calls._metadata("")) == replace(peer, terminal=None)
    assert seen(()) == peer  # the control: the person's own command there
    with sessions.opened(None) as session:
        away = seen(daemon_calls._metadata(session.id))
        assert (away.terminal, away.page_session) == (None, session.id)
    with pytest.raises(NoPageSession):
        seen(daemon_calls._metadata(session.id))


def test_both_ends_name_the_session_alike() -> None:
    assert daemon_calls.AWAY_KEY == AWAY_KEY


@pytest.fixture(scope="module")
def shop(daemon: Daemon) -> Path:
    return add_shop(daemon)


def _updated(daemon: Daemon, value: str) -> str:
    """An update of `shop` that was allowed and is done; returns its id."""
    action = ask_for_update(daemon, _token(daemon), value)
    found = daemon.person("Approvals", pb.ApprovalsRequest()).approvals
    question = next(one for one in found if one.action_id == action)
    yes = {"approval_id": question.id, "approve": True, "width": "once", "digest": question.digest}
    daemon.person("Decide", pb.DecideRequest(**yes, passphrase=APPROVAL_PASSPHRASE))
    until(lambda: daemon.person_action(action) == "done", "the update's end")
    return action


_tokens: dict[int, str] = {}


def _token(daemon: Daemon) -> str:
    if daemon.pid not in _tokens:
        _tokens[daemon.pid] = daemon.add_agent("other")
    return _tokens[daemon.pid]


def test_each_session_at_the_public_page_has_grants_of_its_own() -> None:
    """All of them, and the page on this machine, come by the one connection of the page's process."""
    over: list[str] = []
    sessions = Sessions(lambda: datetime(2026, 1, 1, tzinfo=UTC), over.append)
    here = Peer(socket="user", uid=1, gid=1, pid=1, connection="c1", terminal=None, program="goex")
    phone, other = (replace(here, away="x", page_session=f"ps-{each}") for each in "12")
    made = [sessions.of(each, "person") for each in (here, phone, other)]
    assert len(set(made)) == 3
    assert [sessions.of(each, "person") for each in (here, phone, other)] == made
    sessions.disconnected("c1")
    assert sorted(over) == sorted(made)
