"""What passkeys signed, judged by the verifier alone: rows made by who has the vault's key, with all hashes anew."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fido2 import cbor
from fido2.cose import ES256, RS256, EdDSA

import goex.journal.verify as verify
from goex.daemon import webauthn
from goex.daemon.passkey_statements import PREFIX
from goex.journal.walk import Walk
from goex.page_address import HOST, OLD_HOST, TERMINAL
from tests.support.authenticator import Authenticator, decoded, encoded

pytestmark = pytest.mark.promise(88)

AT = "2026-11-01T09:00:00.000000Z"
BY = "user 1000, process 9 (goex), on the user socket"
COSE: dict[str, Any] = {"ES256": ES256, "EdDSA": EdDSA, "RS256": RS256}
DIGEST, OTHER = "d" * 64, "e" * 64

Row = dict[str, Any]
Bend = Callable[["Rows"], object]


class Rows:
    """The rows of a journal, made one after the other."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.count = 0
        self.text_of = text_of  # of facts

    def add(self, kind: str, facts: Row, *, action: str = "", to: str = "", place: int | None = None) -> Row:
        row = {"at": AT, "action": action, "agent": "bot", "kind": kind, "from": "", "to": to, "facts": facts}
        self.rows.insert(len(self.rows) if place is None else place, row)
        return row

    def passkey(
        self, id: str, key: Authenticator, *, by: Authenticator | None = None, name: str = "", place: int | None = None
    ) -> Row:
        facts = registration(id, key, name or id)
        if by is not None:
            signed = {name: facts[name] for name in ("name", "credential_id", "public_key")}
            facts["assertion"] = self.assertion({"kind": "add-passkey", **signed}, by)
        return self.add("passkey-add", facts, place=place)

    def assertion(self, statement: Row, by: Authenticator) -> Row:
        self.count += 1
        full = {**statement, "rp_id": by.rp_id, "nonce": f"{self.count:032x}"}
        text = json.dumps(full, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        challenge = encoded(hashlib.sha256(PREFIX + text.encode()).digest())
        response = json.loads(by.get(json.dumps({"challenge": challenge})))["response"]
        return {
            "passkey": next(row["facts"]["id"] for row in self.rows if is_of(row, by)),
            "rp_id": by.rp_id,
            "credential_id": encoded(by.credential_id),
            "client_data": response["clientDataJSON"],
            "authenticator_data": response["authenticatorData"],
            "signature": response["signature"],
            "statement": text,
        }

    def assess(self, action: str, *services: str, digest: str = DIGEST) -> Row:
        facts = {"digest": digest, "risk": 2, "services": list(services)}
        return self.add("assess", facts, action=action, to="assessed")

    def yes(self, action: str, by: Authenticator, grants: list[Row], **said: Any) -> Row:
        statement = {
            "kind": "approve",
            "approval": "q-1",
            "action": action,
            "digest": DIGEST,
            "width": "once",
            "expires_seconds": 0,
            "bind_arguments": [],
            **said,
        }
        facts = {"grants": grants, "by": BY, "ledger": "", "assertion": self.assertion(statement, by)}
        return self.add("grant", facts, action=action)

    def present(self, by: Authenticator, **said: Any) -> Row:
        statement = {"kind": "presence", "terminal": "", "by": BY, **said}
        return self.add("presence", {"by": BY, "assertion": self.assertion(statement, by)})

    def export(self) -> bytes:
        """As `goex log --export` writes it."""
        last, made = verify.GENESIS, []
        for number, row in enumerate(self.rows, 1):
            last, hash = self._hash(number, row, last), last
            made.append({"number": number, **row, "previous": hash, "hash": last})
        head = {"number": len(made), "hash": last}
        first = {"goex": "journal", "format": 1, "wanted": {}, "whole": True, "head": head, "authenticated": True}
        text = b"".join(json.dumps(line).encode() + b"\n" for line in (first, *made))
        end = {"end": True, "rows": len(made), "head": head, "authenticated": True}
        return text + json.dumps({**end, "sha256": hashlib.sha256(text).hexdigest()}).encode() + b"\n"

    def walked(self) -> tuple[str, Walk]:
        """What `goex log --verify` says of the rows, and with what."""
        last, raws = verify.GENESIS, []
        for number, row in enumerate(self.rows, 1):
            last = self._hash(number, row, last)
            names = ("at", "action", "agent", "kind", "from", "to")
            raws.append((number, *(row[name] for name in names), self.text_of(row["facts"]), bytes.fromhex(last)))
        walk = Walk()
        return walk.over(raws), walk

    def _hash(self, number: int, row: Row, last: str) -> str:
        names = ("at", "action", "agent", "kind", "from", "to")
        body = [number, *(row[name] for name in names), self.text_of(row["facts"])]
        return hashlib.sha256(bytes.fromhex(last) + text_of(body).encode()).hexdigest()


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def is_of(row: Row, key: Authenticator) -> bool:
    return row["kind"] == "passkey-add" and bool(row["facts"]["credential_id"] == encoded(key.credential_id))


def registration(id: str, key: Authenticator, name: str) -> Row:
    cose = cbor.encode(COSE[key.kind].from_cryptography_key(key.key.public_key()))
    kept = {"id": id, "name": name, "credential_id": key.credential_id.hex(), "public_key": cose.hex()}
    return {
        "id": id,
        "name": name,
        "rp_id": key.rp_id,
        "credential_id": encoded(key.credential_id),
        "public_key": encoded(webauthn.spki(cose)),
        "passkey": {**kept, "rp_id": key.rp_id, "created": AT, "counter": 0, "used": None},
        "required": False,
        "by": BY,
    }


def grant(id: str = "g-000000000001", *, expires: str = "2026-11-01T09:10:00.000000Z", **more: Any) -> Row:
    made = {"id": id, "service": "slack", "account": "work", "scope": "chat:write", "width": "once"}
    return {**made, "expires": expires, "constraints": "{}", "methods": [], "only": False, "session": "", **more}


def bound(**more: Any) -> Row:
    """A grant that is bound to an argument, for ten minutes."""
    held: Row = {"constraints": '{"to":"#ops"}', "methods": ["chat.postMessage"]}
    return grant(**{"width": "permanent", **held, **more})


def line(number: int, times: int, **more: Any) -> Row:
    made: Row = {"width": "task", "scope": "m", "methods": ["m"], "expires": "2026-11-01T09:30:00.000000Z"}
    return {**grant(f"g-0123456789{number:02x}", **made), "times": times, "within": {}, **more}


def check(made: Rows) -> verify.Checked:
    """Whether an export of it is whole, which `goex log --verify` must say alike."""
    problem, walk = made.walked()
    try:
        found = verify.check(io.BytesIO(made.export()))
    except verify.Altered as error:
        assert problem, error
        assert problem.partition(" ")[2].partition(" ")[2].rstrip(".") in str(error)
        raise
    assert (problem, walk.signatures.signed, tuple(walk.signatures.unproven)) == ("", found.signed, found.unproven)
    return found


@pytest.fixture(scope="module")
def key() -> Authenticator:
    return Authenticator()


@pytest.fixture(scope="module")
def thief() -> Authenticator:
    return Authenticator()


@pytest.fixture
def made(key: Authenticator) -> Rows:
    """One passkey, and a yes of its."""
    key.counter = 0
    rows = Rows()
    rows.passkey("pk-1", key)
    rows.assess("a-1", "slack")
    rows.yes("a-1", key, [grant()])
    return rows


# ---- who may sign


@pytest.mark.parametrize("kind", COSE)
def test_the_first_one_needs_no_other(kind: str) -> None:
    key, rows = Authenticator(kind), Rows()
    rows.passkey("pk-1", key)
    rows.present(key)
    found = check(rows)
    assert (found.signed, found.unproven) == (1, ())


def test_one_that_another_signed_counts(made: Rows, key: Authenticator, thief: Authenticator) -> None:
    made.passkey("pk-2", thief, by=key)
    made.present(thief)
    assert (check(made).signed, check(made).unproven) == (3, ())


@pytest.mark.parametrize("removed", [False, True])
def test_no_row_gives_a_passkey_another_public_key(
    made: Rows, key: Authenticator, thief: Authenticator, removed: bool
) -> None:
    if removed:
        made.add("passkey-remove", {"id": "pk-1", "by": BY})
    other = Authenticator(credential_id=key.credential_id, key=thief.key)
    made.passkey("pk-1", other)
    made.present(other)
    with pytest.raises(verify.Altered, match="registers a passkey that is known already"):
        check(made)
    made.rows[-2]["facts"]["id"] = made.rows[-2]["facts"]["passkey"]["id"] = "pk-2"  # the credential is known, too
    made.rows[-1]["facts"]["assertion"]["passkey"] = "pk-2"
    with pytest.raises(verify.Altered, match="registers a passkey that is known already"):
        check(made)


def test_one_that_was_removed_doesnt_come_back(made: Rows, key: Authenticator) -> None:
    made.add("passkey-remove", {"id": "pk-1", "by": BY})
    made.passkey("pk-1", key)
    made.present(key)
    with pytest.raises(verify.Altered, match="registers a passkey that is known already"):
        check(made)


def test_one_that_an_earlier_version_took_again_is_named_and_no_forgery(made: Rows, key: Authenticator) -> None:
    made.add("passkey-remove", {"id": "pk-1", "by": BY})
    made.passkey("pk-2", key)
    made.present(key)
    made.rows[-1]["facts"]["assertion"]["passkey"] = "pk-2"
    (said,) = check(made).unproven
    assert "pk-2" in said


@pytest.mark.parametrize("before", ["", "passkey-remove", "passkeys-reset"])
def test_one_that_nobody_signed_is_named(
    made: Rows, thief: Authenticator, before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also behind rows that say that no other is left, which needn't be signed either."""
    if before:
        made.add(before, {"id": "pk-1", "passkeys": ["pk-1"], "by": BY})
    made.passkey("pk-2", thief, name="mine")
    made.present(thief)
    (said,) = check(made).unproven
    assert "the passkey pk-2 (mine) though no other passkey signed that" in said
    assert said in verify.in_words(check(made))
    file = tmp_path / "journal.jsonl"
    file.write_bytes(made.export())
    assert verify.main([str(file)]) == 3
    assert "Not proven: Row " in capsys.readouterr().out


def of_another_host(made: Rows, key: Authenticator, phone: Authenticator, **bent: str) -> None:
    facts = registration("pk-2", phone, "phone")
    spki = hashlib.sha256(decoded(facts["public_key"])).hexdigest()
    which = {"credential_id": facts["credential_id"], "public_key_sha256": spki, **bent}
    shown = json.dumps({"credential_json": which, "name": "phone"}, sort_keys=True, indent=1, ensure_ascii=False)
    request = hashlib.sha256(shown.encode()).hexdigest()
    what = "Adding a passkey for goex.example.org"
    made.present(key, waiting="pw-1", what=what, call="Add", request=request, whole="0" * 64)
    made.add("passkey-add", facts)


def test_one_of_another_host_is_what_a_passkey_confirmed(made: Rows, key: Authenticator) -> None:
    phone = Authenticator(rp_id="goex.example.org", origin="https://goex.example.org")
    of_another_host(made, key, phone)
    made.present(phone)
    found = check(made)
    assert (found.signed, found.unproven) == (3, ())


@pytest.mark.parametrize("bent", [{"public_key_sha256": "0" * 64}, {"credential_id": encoded(b"\1" * 32)}])
def test_what_confirmed_another_confirms_nothing_here(made: Rows, key: Authenticator, bent: dict[str, str]) -> None:
    of_another_host(made, key, Authenticator(rp_id="goex.example.org", origin="https://goex.example.org"), **bent)
    assert len(check(made).unproven) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", "pk-9"), ("rp_id", "evil.example"), ("credential_id", "00" * 32), ("public_key", None), ("name", "other")],
)
def test_what_a_restored_vault_takes_over_is_the_key_that_is_shown(
    made: Rows, key: Authenticator, thief: Authenticator, name: str, value: str | None
) -> None:
    """As `passkey` of the row that registers it has it."""
    evil: str = registration("pk-9", thief, "evil")["passkey"]["public_key"]
    made.rows[0]["facts"]["passkey"][name] = evil if value is None else value
    with pytest.raises(verify.Altered, match="as one"):
        check(made)


def test_what_was_signed_at_the_old_host_and_at_the_new_one_verify_together(made: Rows, key: Authenticator) -> None:
    """Whoever came from `localhost` has both kinds of passkey for a while, and uses either."""
    old = Authenticator(rp_id=OLD_HOST, origin=f"http://{OLD_HOST}:7464")
    inserted = Authenticator(rp_id=OLD_HOST, origin=f"{TERMINAL}{OLD_HOST}")
    made.passkey("pk-2", old, by=key)
    made.passkey("pk-3", inserted, by=old)
    for number, by in enumerate((key, old, inserted, key, old), 2):
        made.assess(f"a-{number}", "slack")
        made.yes(f"a-{number}", by, [grant()])
    last = made.present(old)["facts"]["assertion"]
    found = check(made)
    assert (found.signed, len(found.signers), found.unproven) == (9, 3, ())
    whole = dict(last)
    for name in ("signature", "authenticator_data", "client_data", "statement"):
        text = whole[name]
        middle = len(text) // 2
        last |= {**whole, name: text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]}
        with pytest.raises(verify.Altered):
            check(made)
    last |= {**whole, "rp_id": HOST}  # neither host's passkey passes for the other's
    with pytest.raises(verify.Altered, match="signed by another passkey than it says"):
        check(made)


def test_what_was_signed_at_a_page_is_of_its_host(made: Rows, key: Authenticator) -> None:
    at_page = Authenticator()
    made.passkey("pk-2", at_page, by=key)
    elsewhere = ("localhost", "evilgoex.localhost", "x.goex.localhost.evil.example", "")
    for host in ("goex.localhost", "0123456789abcdef.goex.localhost", *elsewhere):
        at_page.origin = f"http://{host}:7464"
        made.present(at_page)
        if host in elsewhere:
            with pytest.raises(verify.Altered, match="another page"):
                check(made)
            made.rows.pop()
        else:
            check(made)


def test_presence_is_of_who_signed_it(made: Rows, key: Authenticator) -> None:
    row = made.present(key)
    check(made)
    row["facts"]["by"] = "user 1000, process 10 (evil), on the user socket"
    with pytest.raises(verify.Altered, match="isn't what the passkey approved"):
        check(made)


def test_no_spelling_of_a_row_hides_its_signature(made: Rows) -> None:
    """From `goex log --verify`, which has the text of its facts as it was hashed."""
    made.rows[-1]["facts"]["grants"][0]["width"] = "permanent"
    made.text_of = lambda value: text_of(value).replace('"assertion":', '"assertion" :')
    problem, _ = made.walked()
    assert problem == "Row 3 grants more than the passkey approved."


def test_a_name_in_a_file_does_nothing_to_a_terminal(
    made: Rows, thief: Authenticator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.passkey("pk-2", thief, name="\x1b[2J\u202e")
    file = tmp_path / "journal.jsonl"
    file.write_bytes(made.export())
    assert verify.main([str(file)]) == 3
    assert (capsys.readouterr().out.rstrip("\n")).isprintable()


# ---- what was signed

YEAR = "2027-11-01T09:00:00.000000Z"


@pytest.mark.parametrize(
    ("said", "grants"),
    [
        ({}, [grant(), grant("g-000000000002")]),
        ({"expires_seconds": 60}, [grant()]),  # once is ten minutes, whatever was chosen
        ({"width": "session"}, [grant(width="session", expires="2026-11-01T17:00:00.000000Z")]),
        ({"width": "permanent"}, [grant(width="permanent", expires=YEAR)]),
        ({"width": "permanent", "expires_seconds": 10**9}, [grant(width="permanent", expires=YEAR)]),
        ({"width": "permanent", "bind_arguments": ["to"]}, [bound(expires=YEAR)]),
        ({"width": "permanent", "bind_arguments": ["to"]}, [bound(), bound(constraints="{}")]),
        ({"width": "arguments", "expires_seconds": 600, "bind_arguments": ["to"]}, [bound()]),
        ({"width": "arguments", "expires_seconds": 600}, [bound()]),
    ],
)
def test_grants_that_a_yes_gives_are_right(key: Authenticator, said: Row, grants: list[Row]) -> None:
    assert given(key, grants, said).unproven == ()


ARGUMENTS = {"width": "arguments", "expires_seconds": 600, "bind_arguments": ["to"]}


@pytest.mark.parametrize(
    ("said", "grants"),
    [
        ({}, [grant(expires="2026-11-01T09:12:00.000000Z")]),
        ({}, [grant(expires="")]),
        ({}, [grant(width="session")]),
        ({"width": "session"}, [grant(width="session", expires=YEAR)]),
        ({"width": "permanent"}, [grant(width="permanent", expires="2999-01-01T00:00:00.000000Z")]),
        ({"width": "permanent", "expires_seconds": 600}, [grant(width="permanent", expires=YEAR)]),
        (ARGUMENTS, [bound(expires="2999-01-01T00:00:00.000000Z", constraints="{}", methods=[])]),
        (ARGUMENTS, [bound(expires="2026-11-01T09:12:00.000000Z")]),
        (ARGUMENTS, [bound(methods=[])]),
        (ARGUMENTS, [bound(), bound(methods=[])]),
        ({**ARGUMENTS, "bind_arguments": []}, [bound(constraints="{}")]),
        ({**ARGUMENTS, "width": "session"}, [bound(width="session", methods=[])]),
        ({}, [grant(), line(0, 1)]),
        ({}, [grant(service="goex", scope="task"), line(0, 1)]),
        ({}, [grant(), grant("g-000000000009", service="goex", scope="task"), line(0, 1)]),
    ],
)
def test_grants_that_reach_further_are_found(key: Authenticator, said: Row, grants: list[Row]) -> None:
    with pytest.raises(verify.Altered, match=r"grants more than the passkey approved|can't be read"):
        given(key, grants, said)


def given(key: Authenticator, grants: list[Row], said: Row, *services: str) -> verify.Checked:
    key.counter = 0
    rows = Rows()
    rows.passkey("pk-1", key)
    rows.assess("a-1", *(services or ("slack",)))
    rows.yes("a-1", key, copy.deepcopy(grants), **said)
    return check(rows)


def test_a_bound_argument_that_no_grant_holds_to_is_named(key: Authenticator) -> None:
    """Not a proof of anything: the calls that have it may have been covered before, and their grant has no row here."""
    (said,) = given(key, [bound(constraints="{}")], ARGUMENTS).unproven
    assert "bound the grants of a-1 to to" in said


def test_a_plan_that_was_signed_stays_the_plan(made: Rows) -> None:
    made.assess("a-1", "slack")  # the same one
    check(made)
    made.assess("a-2", "slack", digest=OTHER)
    check(made)
    made.assess("a-1", "slack", digest=OTHER)
    with pytest.raises(verify.Altered, match="puts another plan in the place of"):
        check(made)


BEGIN = grant(service="goex", scope="task", account="bot")


@pytest.mark.parametrize(
    ("narrowed", "lines"),
    [
        ([], [line(0, 3), line(1, 0)]),
        ([[1, 2]], [line(0, 1000), line(1, 2)]),
        ([[0, 0]], [line(1, 3), line(2, 1)]),
        ([[2, 0]], [line(0, 3), line(1, 1)]),
        ([[0, 1], [1, 0], [2, 2]], [line(0, 1), line(2, 2)]),
    ],
)
def test_lines_of_a_task_are_right(key: Authenticator, narrowed: list[list[int]], lines: list[Row]) -> None:
    said = {"narrowed": narrowed, "expires_seconds": 1800}
    assert given(key, [BEGIN, *lines], said, "goex").signed == 1


@pytest.mark.parametrize(
    "grants",
    [
        [line(0, 1)],
        [grant(), line(0, 1)],
        [BEGIN, line(0, 1), grant("g-000000000002", width="permanent")],
        [BEGIN, line(0, 1, width="permanent")],
    ],
)
def test_a_task_gives_its_lines_and_no_other_grants(key: Authenticator, grants: list[Row]) -> None:
    with pytest.raises(verify.Altered, match="grants more than the passkey approved"):
        given(key, grants, {}, "goex")


@pytest.mark.parametrize(
    ("narrowed", "lines"),
    [
        ([[1, 2]], [line(0, 1), line(1, 3)]),
        ([[1, 2]], [line(0, 1), line(1, 0)]),  # any number
        ([[1, 2]], [line(0, 1), line(5, 1_000_000)]),
        ([[1, 2]], [line(0, 1), line(2, 3)]),
        ([[1, 0]], [line(0, 1), line(1, 1)]),
        ([], [line(0, 1_000_000)]),
        ([], [line(0, -1)]),
        ([], [line(0, 1), line(0, 1)]),
        ([], [line(1, 1), line(0, 1)]),
        ([], [line(0, 1), line(1, 1, id="g-fedcba987601")]),
        ([[0, 1]], [line(0, 1, id="g-0123456789zz")]),
        ([[10, 1]], [*(line(number, 1) for number in range(10)), line(10, 9, id="g-01234567890A")]),
        ([], [line(number, 1) for number in range(21)]),
        ([], [line(0, 1, expires="2026-11-01T17:02:00.000000Z")]),
    ],
)
def test_other_lines_of_a_task_are_found(key: Authenticator, narrowed: list[list[int]], lines: list[Row]) -> None:
    with pytest.raises(verify.Altered, match=r"grants more than the passkey approved|can't be read"):
        given(key, [BEGIN, *lines], {"narrowed": narrowed}, "goex")
