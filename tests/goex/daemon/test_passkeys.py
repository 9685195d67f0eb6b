"""Passkeys over the wire: what one approves, and each way in which an answer is refused, with a control."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from goex.rpc import goex_pb2 as pb
from goex.rpc import passkeys_pb2 as ppb
from tests.support.authenticator import PRESENT, Authenticator, Page, decoded, encoded
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey, as_the_person_sees, problem, shell

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def key() -> Authenticator:
    return Authenticator()


@pytest.fixture(scope="module")
def page(daemon: Daemon, key: Authenticator) -> Page:
    """With one passkey registered."""
    page = Page(daemon)
    page.add(key)
    return page


@pytest.fixture
def question(daemon: Daemon, page: Page, folder: Path) -> Iterator[pb.Approval]:
    """A write that waits."""
    token = _token(daemon)
    journey = Journey(daemon, shell(folder, "echo x > x"), token=token)
    found = as_the_person_sees(daemon, journey.asked())
    yield found
    journey.leave()


_tokens: dict[int, str] = {}


def _token(daemon: Daemon) -> str:
    if daemon.pid not in _tokens:
        _tokens[daemon.pid] = daemon.add_agent("bot")
    return _tokens[daemon.pid]


def code(call: Callable[[], Any]) -> str:
    """The code of the problem that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return str(problem(caught.value).code)


@pytest.mark.promise(87)
def test_the_options_are_what_a_browser_takes(page: Page, key: Authenticator) -> None:
    made = json.loads(page.begin("phone"))
    assert made["rp"]["id"] == "goex.localhost"
    assert made["attestation"] == "none"
    assert made["authenticatorSelection"]["userVerification"] == "required"
    assert made["authenticatorSelection"]["residentKey"] == "preferred"
    assert [one["alg"] for one in made["pubKeyCredParams"]] == [-7, -8, -257]
    assert [decoded(one["id"]) for one in made["excludeCredentials"]] == [key.credential_id]
    asked = json.loads(page.challenge(presence=""))
    assert (asked["rpId"], asked["userVerification"]) == ("goex.localhost", "required")
    assert [decoded(one["id"]) for one in asked["allowCredentials"]] == [key.credential_id]
    assert page.challenge(presence="") != page.challenge(presence="")


@pytest.mark.promise(87)
def test_a_passkey_approves_what_it_signed(page: Page, key: Authenticator, question: pb.Approval) -> None:
    request = page.yes(question)
    assert code(lambda: page.decide(request)) == "presence"  # the control
    done = page.decide(page.signed(request, key))
    assert done.approval.state == "approved"
    assert page.list().passkeys[0].used


@pytest.mark.promise(87)
def test_an_answer_counts_once(page: Page, key: Authenticator, daemon: Daemon, folder: Path) -> None:
    journey = Journey(daemon, shell(folder, "echo again > x"), token=_token(daemon))
    signed = page.signed(page.yes(as_the_person_sees(daemon, journey.asked())), key)
    page.decide(signed)
    assert code(lambda: page.decide(signed)) == "passkey-refused"
    journey.leave()


@pytest.mark.promise(87)
@pytest.mark.parametrize(
    "other",
    [
        {"width": "session"},
        {"expires_seconds": 60},
        {"bind_arguments": ["folder"]},
        {"approval_id": "q-000000000000"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_assertion_is_for_exactly_one_decision(
    page: Page, key: Authenticator, question: pb.Approval, other: dict[str, Any]
) -> None:
    signed = page.signed(page.yes(question), key)
    bent = pb.DecideRequest()
    bent.CopyFrom(signed)
    for name, value in other.items():
        if isinstance(value, list):
            bent.bind_arguments.extend(value)
        else:
            setattr(bent, name, value)
    assert code(lambda: page.decide(bent)) in ("passkey-refused", "invalid")
    page.decide(page.signed(page.yes(question), key))


@pytest.mark.promise(87)
def test_an_assertion_is_for_one_plan(page: Page, key: Authenticator, daemon: Daemon, folder: Path) -> None:
    """The challenge of another question's plan approves nothing here."""
    first = Journey(daemon, shell(folder, "echo 1 > x"), token=_token(daemon))
    second = Journey(daemon, shell(folder, "echo 2 > x"), token=_token(daemon))
    one, other = (as_the_person_sees(daemon, each.asked()) for each in (first, second))
    answer = page.signed(page.yes(one), key).assertion_json
    assert code(lambda: page.decide(page.yes(other, assertion_json=answer))) == "passkey-refused"
    forged = page.yes(other, digest=one.digest)
    assert code(lambda: page.call("Challenge", ppb.ChallengeRequest(decide=forged))) == "conflict"
    for each in (one, other):
        page.decide(page.signed(page.yes(each), key))
    for journey in (first, second):
        journey.leave()


@pytest.mark.promise(87)
def test_presence_signed_elsewhere_approves_nothing(page: Page, key: Authenticator, question: pb.Approval) -> None:
    answer = key.get(page.challenge(presence=""))
    assert code(lambda: page.decide(page.yes(question, assertion_json=answer))) == "passkey-refused"
    signed = page.signed(page.yes(question), key)
    present = pb.PresentRequest(assertion_json=signed.assertion_json)
    assert code(lambda: page.daemon.person("Present", present)) == "passkey-refused"


BENT: dict[str, dict[str, Any]] = {
    "forged origin": {"origin": "http://x.goex.localhost:7464"},
    "another host": {"origin": "https://goex.localhost.evil.example"},
    "no origin": {"origin": ""},
    "within another page": {"crossOrigin": True},
    "within a named page": {"topOrigin": "https://evil.example"},
    "wrong rp id": {"rp_id": "evil.example"},
    "not verified": {"flags": PRESENT},
    "not present": {"flags": 0x04},
    "registration": {"type": "webauthn.create"},
    "own challenge": {"challenge": encoded(b"\1" * 32)},
    "spoiled signature": {"spoil": True},
    "another key": {"key": Authenticator().key},
}


@pytest.mark.sampled(6)
@pytest.mark.promise(87)
@pytest.mark.parametrize("bent", BENT, ids=str)
def test_a_bent_answer_is_refused(page: Page, key: Authenticator, question: pb.Approval, bent: str) -> None:
    request = page.yes(question)
    assert code(lambda: page.decide(page.signed(request, key, **BENT[bent]))) == "passkey-refused"
    page.decide(page.signed(request, key))


@pytest.mark.promise(87)
def test_nobody_elses_credential_counts(page: Page, key: Authenticator, question: pb.Approval) -> None:
    stranger = Authenticator()
    request = page.yes(question)
    assert code(lambda: page.decide(page.signed(request, stranger))) == "passkey-refused"
    same_id = Authenticator(credential_id=key.credential_id, counter=10**6)
    assert code(lambda: page.decide(page.signed(request, same_id))) == "passkey-refused"
    page.decide(page.signed(request, key))


@pytest.mark.promise(87)
def test_a_copied_authenticator_is_found_by_its_count(page: Page, key: Authenticator, daemon: Daemon) -> None:
    request = pb.PresentRequest(assertion_json=key.get(page.challenge(presence="")))
    daemon.person("Present", request)
    clone = Authenticator(credential_id=key.credential_id, key=key.key, counter=key.counter - 1)
    assert code(lambda: page.confirm("", clone)) == "passkey-refused"
    rows = daemon.person("Log", pb.LogRequest(limit=5)).rows
    assert "passkey-cloned" in [row.kind for row in rows]
    page.confirm("", key)


@pytest.mark.promise(87)
@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", "{" * 5000, '{"response":{}}', '{"response":{"clientDataJSON":7}}', "x" * 1_000_000,
     '{"a":"' + "x" * 1_000_000 + '"}', '{"response":{"clientDataJSON":"' + encoded(b"\xff{}") + '"}}'],
    ids=lambda text: f"{text[:12]}-{len(text)}",
)  # fmt: skip
def test_what_is_no_answer_is_refused(page: Page, question: pb.Approval, text: str) -> None:
    if text:
        assert code(lambda: page.decide(page.yes(question, assertion_json=text))) == "passkey-refused"
    bad = ppb.AddPasskeyRequest(name="x", credential_json=text, passphrase=APPROVAL_PASSPHRASE, assertion_json=text)
    assert code(lambda: page.call("Add", bad)) == "passkey-refused"


@pytest.mark.promise(87)
@pytest.mark.parametrize(
    "cose",
    [b"", b"\xa1\x03\x26", b"\x9f" * 40, b"\x81" * 3000, b"\xa5\x01\x02\x03\x26\x20\x01\x21\x41\x01\x22\x41\x01"],
    ids=lambda cose: cose[:4].hex(),
)
def test_a_key_that_is_none_is_not_registered(page: Page, key: Authenticator, cose: bytes) -> None:
    made = Authenticator()
    before = len(page.list().passkeys)
    request = ppb.AddPasskeyRequest(name="bad", credential_json=made.create(page.begin("bad"), cose=cose or b"\x00"))
    assert code(lambda: page.challenge(add=request)) == "passkey-refused"
    assert len(page.list().passkeys) == before


@pytest.mark.promise(87)
@pytest.mark.parametrize("kind", ["EdDSA", "RS256"])
def test_other_algorithms(page: Page, key: Authenticator, question: pb.Approval, kind: str) -> None:
    second = Authenticator(kind)
    added = page.add(second, by=key, name=kind)
    page.decide(page.signed(page.yes(question), second))
    page.remove(added.id, second)


@pytest.mark.promise(87)
def test_a_further_one_needs_one_that_is_registered(page: Page, key: Authenticator) -> None:
    new = Authenticator()
    request = ppb.AddPasskeyRequest(name="mine", credential_json=new.create(page.begin("mine")))
    request.passphrase = APPROVAL_PASSPHRASE
    assert code(lambda: page.call("Add", request)) == "passkey-refused"  # the passphrase isn't the strongest any more
    request.assertion_json = new.get(page.challenge(add=request))
    assert code(lambda: page.call("Add", request)) == "passkey-refused"  # nor does it let itself in
    request.assertion_json = key.get(page.challenge(add=request))
    other = Authenticator()
    swapped = ppb.AddPasskeyRequest()
    swapped.CopyFrom(request)
    swapped.credential_json = other.create(page.begin("mine"))
    assert code(lambda: page.call("Add", swapped)) == "passkey-refused"  # nor another than what was signed
    request.assertion_json = key.get(page.challenge(add=request))
    page.remove(page.call("Add", request).id, key)


@pytest.mark.promise(87)
def test_a_registration_is_checked_like_an_assertion(page: Page, key: Authenticator) -> None:
    for bent in ({"origin": "https://evil.example"}, {"rp_id": "evil.example"}, {"flags": PRESENT},
                 {"crossOrigin": True}, {"type": "webauthn.get"}):  # fmt: skip
        new = Authenticator()
        assert code(lambda new=new, bent=bent: page.add(new, by=key, **bent)) == "passkey-refused"  # type: ignore[misc]
    assert code(lambda: page.add(key, by=key)) == "passkey-refused"  # registered already
    page.remove(page.add(Authenticator(), by=key).id, key)


@pytest.mark.promise(87)
def test_a_removed_one_counts_no_more(page: Page, key: Authenticator, question: pb.Approval) -> None:
    second = Authenticator()
    added = page.add(second, by=key)
    prepared = page.signed(page.yes(question), second)
    assert code(lambda: page.call("Remove", ppb.RemovePasskeyRequest(id=added.id, passphrase=APPROVAL_PASSPHRASE))) == (
        "passkey"
    )
    page.remove(added.id, key)
    assert code(lambda: page.decide(prepared)) == "passkey-refused"
    page.decide(page.signed(page.yes(question), key))
    assert code(lambda: page.add(second, by=key)) == "passkey-refused"  # nor comes back: the log takes none twice


@pytest.mark.promise(87)
def test_two_at_once_with_one_answer_settle_once(page: Page, key: Authenticator, question: pb.Approval) -> None:
    signed = page.signed(page.yes(question), key)
    results: list[str] = []

    def run() -> None:
        try:
            page.decide(signed)
            results.append("yes")
        except grpc.RpcError as error:
            results.append(problem(error).code)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["passkey-refused"] * 3 + ["yes"]


@pytest.mark.promise(89)
def test_a_reset_that_somebody_asked_for_is_said_everywhere(
    page: Page, key: Authenticator, question: pb.Approval, daemon: Daemon
) -> None:
    def notes() -> str:
        return " ".join(as_the_person_sees(daemon, question).question.notes)

    assert code(lambda: page.call("Reset", ppb.ResetPasskeysRequest())) == "presence"
    assert "passkey reset" not in notes()
    asked = page.call("Reset", ppb.ResetPasskeysRequest(passphrase=APPROVAL_PASSPHRASE))
    assert asked.reset_at == page.list().reset_at and not asked.done
    assert "goex passkey reset --cancel" in notes()
    assert "goex passkey reset --cancel" in daemon.goex("daemon", "status").stderr
    assert daemon.goex("passkey", "list").stderr.count("can be removed") == 1
    page.decide(page.signed(page.yes(question), key))  # any use ends it
    assert not page.list().reset_at
    page.call("Reset", ppb.ResetPasskeysRequest(passphrase=APPROVAL_PASSPHRASE))
    assert daemon.goex("passkey", "reset", "--cancel").returncode == 0
    assert not page.list().reset_at
