"""Check an exported journal, with nothing but Python: `python -m goex.journal.verify FILE [--head HASH]`.

docs/audit.md has the format. Rules: every row's hash is recomputed over the hash before it and all of its fields; rows
that follow each other must fit; the last line must be there, count the rows, and hold the hash over all lines before;
in an export of everything the chain begins at its fixed beginning and ends at its head. Whoever can change the file can
make all of it anew, though: only a head that was written down elsewhere (`goex log --verify` prints it) proves that
it is the journal that was kept. What a passkey signed is checked with the public key that was registered for it: nobody
who lacks the authenticator can make that anew. What could only be so if it was never signed is named. Constant memory
but for a few hashes for each signature; this file stands alone and can be copied, and needs the package `cryptography`
for signatures alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

FORMAT = 1
GENESIS = hashlib.sha256(b"goex.v1.journal").hexdigest()
LONGEST_LINE = 128 * 2**20
PREFIX = b"goex.v1.passkey\0"
# Rows that may hold a passkey's assertion, and the kind of statement that it must be over.
SIGNED = {
    "grant": "approve",
    "presence": "presence",
    "passkey-add": "add-passkey",
    "passkey-remove": "remove-passkey",
    "page-session": "sign-in",
}
_ANSWERED = frozenset({"allow", "deny", "expire", "withdraw", "reject", "lose"})
_WIDTHS = {"once": "once", "session": "session", "arguments": "permanent", "permanent": "permanent"}
# The longest that a grant of each width lasts; once, however long was asked for.
_LONGEST = {"once": 600, "session": 8 * 3600, "arguments": 365 * 86_400, "permanent": 365 * 86_400}
_LONGEST_TASK = 8 * 3600
_SET_BACK = timedelta(minutes=1)  # that a clock may be between a grant and its row
_MOST_LINES, _MOST_TIMES = 20, 1000  # of a task
_TASK = ("goex", "task")  # the permission to begin one
_FRESH = "goex.localhost"  # below which each page has a name of its own
_FIELDS = ("number", "at", "action", "agent", "kind", "from", "to", "facts", "previous", "hash")


class Altered(ValueError):
    """The file isn't what was exported. The text says where."""


@dataclass(frozen=True)
class Checked:
    """What a file that is whole says."""

    rows: int
    first: int  # the first row's number; 0: there is none
    last: int
    whole: bool  # everything was exported, so that nothing can have been left out
    head: str  # the hash that the chain ended with
    head_number: int
    authenticated: bool  # when it was exported, GoEx had proven the head with its key
    head_given: bool  # and it is the one that the caller knows
    signed: int = 0  # rows whose passkey's signature is right
    unchecked: int = 0  # and rows whose signature couldn't be checked
    signers: tuple[str, ...] = ()  # the passkeys that signed
    unproven: tuple[str, ...] = ()  # in words: what no signature says, though one is to be expected


def check(file: BinaryIO, head: str = "") -> Checked:
    """Read it all. `head` is the hash that the chain must have ended with, as it was written down elsewhere.

    Raises Altered.
    """
    total = hashlib.sha256()
    lines = _lines(file)
    first_line, header = next(lines, (b"", {}))
    if header.get("goex") != "journal":
        raise Altered("Line 1 isn't the beginning of an exported journal.")
    if header.get("format") != FORMAT:
        raise Altered(f"Its format is {header.get('format')!r}; this program knows {FORMAT}.")
    whole = header.get("whole") is True and header.get("wanted") == {}
    total.update(first_line)
    count = first = number = 0
    last = GENESIS
    signatures = Signatures(whole=whole)
    for place, (text, value) in enumerate(lines, 2):
        if value.get("end") is True:
            if next(lines, None) is not None:
                raise Altered(f"Something follows line {place}, which says that it is the last.")
            found = _ended(header, value, total.hexdigest(), (count, first, number, last), whole, head)
            return replace(
                found,
                signed=signatures.signed,
                unchecked=signatures.unchecked,
                signers=tuple(sorted(signatures.signers)),
                unproven=tuple(signatures.unproven),
            )
        total.update(text)
        _row(value, place)
        if value["number"] <= number:
            raise Altered(f"Line {place}: row {value['number']} stands behind row {number}.")
        follows = value["number"] == number + 1
        if whole and not follows:
            raise Altered(f"Line {place}: row {number + 1} is missing: row {value['number']} follows.")
        if follows and value["previous"] != last:
            raise Altered(f"Line {place}: row {value['number']} doesn't follow the one before it.")
        said = (value["number"], value["at"], value["kind"], value["action"], value["facts"])
        if problem := signatures.row(*said):
            raise Altered(f"Line {place}: row {value['number']} {problem}.")
        count, number, last = count + 1, value["number"], value["hash"]
        first = first or number
    raise Altered("The last line is missing: the file was cut.")


def _ended(
    header: dict[str, Any], end: dict[str, Any], total: str, seen: tuple[int, int, int, str], whole: bool, head: str
) -> Checked:
    count, first, number, last = seen
    if end.get("rows") != count:
        raise Altered(f"The last line counts {end.get('rows')}, and the rows are {count}: some were cut.")
    if end.get("sha256") != total:
        raise Altered("The lines aren't those that the last line has the hash of.")
    claimed = end.get("head")
    if not isinstance(claimed, dict) or claimed != header.get("head"):
        raise Altered("The first and the last line speak of different heads.")
    end_number, end_hash = claimed.get("number"), claimed.get("hash")
    if type(end_number) is not int or not isinstance(end_hash, str):
        raise Altered("The last line doesn't say where the chain ends.")
    if whole and (end_number, end_hash) != (number, last):
        raise Altered(f"The rows end at row {number}, and the head at row {end_number}.")
    if not whole and number > end_number:
        raise Altered(f"Row {number} stands behind the head, which is row {end_number}.")
    if number == end_number and last != end_hash:
        raise Altered(f"Row {number} isn't the one that the head speaks of.")
    if head and end_hash != head.strip().lower():
        raise Altered("The head isn't the one that you know.")
    return Checked(
        rows=count,
        first=first,
        last=number,
        whole=whole,
        head=end_hash,
        head_number=end_number,
        authenticated=end.get("authenticated") is True and header.get("authenticated") is True,
        head_given=bool(head),
    )


@dataclass
class _Key:
    name: str
    rp_id: str
    credential_id: str
    public_key: bytes  # SubjectPublicKeyInfo
    counter: int = 0
    live: bool = True


@dataclass(frozen=True)
class Assessed:
    """What an action's `assess` row says of its plan."""

    digest: str = ""
    services: tuple[str, ...] = ()


class Signatures:
    """Goes over rows in their order: which passkeys are registered, and whether what they signed is what rows say."""

    def __init__(self, *, whole: bool, assessed: Callable[[str], Assessed] | None = None) -> None:
        """`whole`: no row is left out, so each key must be registered. `assessed`: an action's plan, for a caller that
        knows them and gives the rows alone that `concerns` names."""
        self.signed = self.unchecked = 0
        self.signers: set[str] = set()
        self.unproven: list[str] = []
        self._whole = whole
        self._keys: dict[str, _Key] = {}  # also those that were removed: none comes back
        self._nonces: set[str] = set()
        self._confirmed: dict[str, str] = {}  # what a passkey let through of the calls `Add`, by the request's hash
        self._promised: dict[str, str] = {}  # by action: the digest that was signed
        self._plans: dict[str, Assessed] = {}  # that wait for an answer
        self._assessed = assessed or (lambda action: self._plans.get(action, Assessed()))

    def concerns(self, kind: str, action: str) -> bool:
        """Whether a row may be signed, say which keys are registered, or change what was signed."""
        return action in self._promised if kind == "assess" else kind in SIGNED or kind == "passkeys-reset"

    def row(self, number: int, at: str, kind: str, action: str, facts: Any) -> str:
        """What is wrong with a row, or ""."""
        if not isinstance(facts, dict):
            return "can't be read" if kind in SIGNED else ""
        try:
            problem = ""
            if kind in SIGNED and "assertion" in facts:
                problem = self._assertion(number, at, kind, action, facts)
            return problem or self._note(number, kind, action, facts)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError):
            return "holds an assertion that can't be read" if "assertion" in facts else "can't be read"

    def _note(self, number: int, kind: str, action: str, facts: dict[str, Any]) -> str:
        """Keep what later rows are held against. Returns what is wrong with this one, or ""."""
        if kind == "passkey-add":
            return self._added(number, facts)
        if kind == "passkey-remove" and facts["id"] in self._keys:
            self._keys[facts["id"]].live = False
        elif kind == "passkeys-reset":
            for key in self._keys.values():
                key.live = False
        elif kind == "assess":
            found = Assessed(facts.get("digest", ""), tuple(facts.get("services", ())))
            self._plans[action] = found
            if self._promised.get(action, found.digest) != found.digest:
                return "puts another plan in the place of the one that a passkey approved"
        elif kind in _ANSWERED:
            self._plans.pop(action, None)
        return ""

    def _added(self, number: int, facts: dict[str, Any]) -> str:
        key = _Key(
            name=facts["name"],
            rp_id=facts["rp_id"],
            credential_id=facts["credential_id"],
            public_key=_decoded(facts["public_key"]),
        )
        same = [one for one in self._keys.values() if one.credential_id == key.credential_id]
        # An earlier version took a removed one again, by another id.
        if facts["id"] in self._keys or any(one.live or one.public_key != key.public_key for one in same):
            return "registers a passkey that is known already"
        kept = facts["passkey"]  # which the vault takes over when it is restored
        said = (kept["id"], kept["name"], kept["rp_id"], bytes.fromhex(kept["credential_id"]))
        if said != (facts["id"], key.name, key.rp_id, _decoded(key.credential_id)):
            return "registers two passkeys as one"
        if _spki(bytes.fromhex(kept["public_key"])) != key.public_key:
            return "registers two public keys as one"
        if "assertion" not in facts and self._keys and not self._was_confirmed(facts):
            self.unproven.append(
                f"Row {number} registers the passkey {facts['id']} ({key.name}) though no other passkey signed that: "
                "what it approved counts only if you added it, after all others were lost, or while GoEx or its "
                "machine broke off, or with an earlier version; compare it with: goex passkey list"
            )
        self._keys[facts["id"]] = key
        return ""

    def _was_confirmed(self, facts: dict[str, Any]) -> bool:
        """Whether a passkey signed a call that waited, and which adds this very one. It counts once."""
        spki = hashlib.sha256(_decoded(facts["public_key"])).hexdigest()
        which = {"credential_id": facts["credential_id"], "public_key_sha256": spki}
        shown = json.dumps(
            {"credential_json": which, "name": facts["name"]}, sort_keys=True, indent=1, ensure_ascii=False
        )
        what = self._confirmed.pop(hashlib.sha256(shown.encode()).hexdigest(), None)
        return what == f"Adding a passkey for {facts['rp_id']}"

    def _assertion(self, number: int, at: str, kind: str, action: str, facts: dict[str, Any]) -> str:
        said = facts["assertion"]
        key, text = self._keys.get(said["passkey"]), said["statement"]
        statement = json.loads(text)
        if problem := self._states(number, at, kind, action, facts, statement):
            return problem
        if kind == "grant":
            self._promised[action] = statement["digest"]
        if key is None and not self._whole:
            self.unchecked += 1
            return ""
        if key is None or not key.live:
            return "is signed by a passkey that isn't registered"
        if (key.rp_id, key.credential_id) != (said["rp_id"], said["credential_id"]) or statement["rp_id"] != key.rp_id:
            return "is signed by another passkey than it says"
        client, data = _decoded(said["client_data"]), _decoded(said["authenticator_data"])
        if problem := _unfit(json.loads(client), data, hashlib.sha256(PREFIX + text.encode()).digest(), key.rp_id):
            return problem
        counter = int.from_bytes(data[33:37], "big")
        if key.counter and counter <= key.counter:
            return "is signed by a copy of the passkey: its count goes back"
        if statement["nonce"] in self._nonces:
            return "holds an assertion that was used before"
        self._nonces.add(statement["nonce"])
        verifier = _verifier()
        if verifier is None:
            self.unchecked += 1
            return ""
        if not verifier(key.public_key, _decoded(said["signature"]), data + hashlib.sha256(client).digest()):
            return "isn't what the passkey signed"
        key.counter = counter
        self.signed += 1
        self.signers.add(f"{said['passkey']} ({key.name})")
        return ""

    def _states(
        self, number: int, at: str, kind: str, action: str, facts: dict[str, Any], statement: dict[str, Any]
    ) -> str:
        """Whether the row is what was approved."""
        wanted: dict[str, Any] = {"kind": SIGNED[kind]}
        if kind == "grant":
            wanted["action"] = action
            assessed = self._assessed(action)
            if self._whole or assessed.digest:
                wanted["digest"] = assessed.digest
            is_task = assessed.services == _TASK[:1] or not (self._whole or assessed.digest)
            if problem := _grants(at, facts["grants"], statement, is_task=is_task):
                return problem
            if lacking := _unbound(facts["grants"], statement):
                self.unproven.append(
                    f"Row {number}: the passkey bound the grants of {action} to {', '.join(lacking)}, to which none of "
                    "them holds: right only if an earlier grant covered what that was for"
                )
        elif kind == "passkey-add":
            wanted |= {name: facts[name] for name in ("name", "credential_id", "public_key")}
        elif kind == "passkey-remove":
            wanted["passkey"] = facts["id"]
        elif kind == "page-session":
            wanted["origin"] = facts["origin"]
        elif "waiting" not in statement:
            wanted["by"] = facts["by"]
        if any(statement.get(name) != value for name, value in wanted.items()):
            return "isn't what the passkey approved"
        if kind == "presence" and statement.get("call") == "Add":
            self._confirmed[statement["request"]] = statement["what"]
        return ""


def _grants(at: str, grants: list[dict[str, Any]], statement: dict[str, Any], *, is_task: bool) -> str:
    """Whether grants reach no further than a yes does: their width, end, bound arguments, and a task's lines."""
    more = "grants more than the passkey approved"
    width, seconds, bound = statement["width"], statement["expires_seconds"], statement["bind_arguments"]
    lines = [grant for grant in grants if grant["width"] == "task"]
    if lines and not (is_task and any((grant["service"], grant["scope"]) == _TASK for grant in grants)):
        return more
    lasts = _LONGEST[width] if width == "once" else min(seconds or _LONGEST[width], _LONGEST[width])
    for grant in grants:
        longest = min(seconds or _LONGEST_TASK, _LONGEST_TASK) if grant["width"] == "task" else lasts
        if grant["width"] not in ("task", _WIDTHS[width]):
            return more
        if _moment(grant["expires"]) > _moment(at) + timedelta(seconds=longest) + _SET_BACK:
            return more
        if (bound or width == "arguments") and not grant["methods"]:
            return more
        if width == "arguments" and not bound and not json.loads(grant["constraints"]):
            return more
    return more if lines and not _narrow(lines, dict(statement.get("narrowed", ()))) else ""


def _narrow(lines: list[dict[str, Any]], narrowed: dict[int, int]) -> bool:
    """Whether a task's lines are all from the first on but those that were taken out, and none is used more often than
    that. Each id is the task's own and the line's number."""
    base = lines[0]["id"][:-2]
    numbers = [int(line["id"][-2:], 16) for line in lines]
    if [line["id"] for line in lines] != [f"{base}{number:02x}" for number in numbers]:
        return False
    left = [number for number in range(max([*numbers, *narrowed]) + 1) if narrowed.get(number) != 0]
    if numbers != left or len(left) > _MOST_LINES or left[-1] >= _MOST_LINES:
        return False
    counts = [(line["times"], narrowed.get(number)) for number, line in zip(numbers, lines, strict=True)]
    return all(
        type(times) is int and (0 <= times <= _MOST_TIMES if most is None else 1 <= times <= min(most, _MOST_TIMES))
        for times, most in counts
    )


def _unbound(grants: list[dict[str, Any]], statement: dict[str, Any]) -> list[str]:
    """The arguments that a yes binds grants to, and which none of them names."""
    named = {name for grant in grants for name in json.loads(grant["constraints"])}
    return sorted(set(statement["bind_arguments"]) - named)


def _moment(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _spki(cose: bytes) -> bytes:
    """A COSE key (ES256, EdDSA or RS256) as SubjectPublicKeyInfo, without a package. Raises ValueError, KeyError."""
    key, rest = _cbor(cose)
    if rest or not isinstance(key, dict):
        raise ValueError("not a COSE key")
    if key[3] == -7 and key[-1] == 1:
        x, y = (int.from_bytes(key[name], "big").to_bytes(32, "big") for name in (-2, -3))
        return bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004") + x + y
    if key[3] == -8 and key[-1] == 6:
        return bytes.fromhex("302a300506032b6570032100") + bytes(key[-2])
    if key[3] == -257:
        numbers = _der(0x30, b"".join(_der(2, b"\0" * (key[name][0] > 127) + key[name]) for name in (-1, -2)))
        return _der(0x30, bytes.fromhex("300d06092a864886f70d0101010500") + _der(3, b"\0" + numbers))
    raise ValueError("another algorithm")


def _der(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 128 + len(length)]) + length + body


def _cbor(data: bytes) -> tuple[Any, bytes]:
    """The first item of CBOR, of the forms that a COSE key has, and what follows it. Raises ValueError, IndexError."""
    kind, size, rest = data[0] >> 5, data[0] & 31, data[1:]
    if size > 27 or kind not in (0, 1, 2, 3, 5):
        raise ValueError("not a COSE key")
    if size > 23:
        long = 1 << (size - 24)
        size, rest = int.from_bytes(rest[:long], "big"), rest[long:]
    if kind < 2:
        return (-1 - size if kind else size), rest
    if kind < 5:
        if len(rest) < size:
            raise ValueError("cut")
        return (rest[:size] if kind == 2 else rest[:size].decode()), rest[size:]
    made: dict[Any, Any] = {}
    for _ in range(size):
        name, rest = _cbor(rest)
        value, rest = _cbor(rest)
        if isinstance(name, dict) or isinstance(value, dict) or name in made:
            raise ValueError("not a COSE key")
        made[name] = value
    return made, rest


def _unfit(client: dict[str, Any], data: bytes, challenge: bytes, rp_id: str) -> str:
    """Whether what the browser and the authenticator say is of this challenge."""
    if client["type"] != "webauthn.get" or _decoded(client["challenge"]) != challenge:
        return "isn't what the passkey was asked for"
    host = urlsplit(client["origin"]).hostname or ""
    page = host == rp_id or (rp_id == _FRESH and host.endswith(f".{rp_id}"))
    if not page or client.get("crossOrigin", False) or "topOrigin" in client:
        return "was signed on another page"
    if data[:32] != hashlib.sha256(rp_id.encode()).digest() or len(data) < 37 or data[32] & 5 != 5:
        return "was signed for another host, or without the person"
    return ""


def _verifier() -> Callable[[bytes, bytes, bytes], bool] | None:
    """Checks a signature (ES256, EdDSA or RS256); None where the package for it isn't installed."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
        from cryptography.hazmat.primitives.serialization import load_der_public_key
    except ImportError:
        return None

    def check(public_key: bytes, signature: bytes, message: bytes) -> bool:
        key = load_der_public_key(public_key)
        try:
            if isinstance(key, ec.EllipticCurvePublicKey):
                key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
            elif isinstance(key, ed25519.Ed25519PublicKey):
                key.verify(signature, message)
            elif isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
            else:
                return False
        except InvalidSignature:
            return False
        return True

    return check


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _row(value: dict[str, Any], place: int) -> None:
    """Recompute one row's hash. Raises Altered."""
    missing = [name for name in _FIELDS if name not in value]
    unknown = sorted(set(value) - {*_FIELDS, "facts_text"})
    if missing or unknown:
        raise Altered(f"Line {place} isn't a row: {', '.join([*missing, *unknown])[:100]!r} is wrong.")
    facts = value.get("facts_text")
    if facts is None:
        facts = _canonical(value["facts"])
    elif not isinstance(facts, str) or not _is(facts, value["facts"]):
        raise Altered(f"Line {place}: the facts of row {value['number']} aren't what their text says.")
    body = [value[name] for name in _FIELDS[:7]]
    if isinstance(body[0], bool) or not isinstance(body[0], int) or not all(isinstance(each, str) for each in body[1:]):
        raise Altered(f"Line {place} isn't a row: a field has the wrong type.")
    try:
        previous = bytes.fromhex(value["previous"])
        made = hashlib.sha256(previous + _canonical([*body, facts]).encode("utf-8")).hexdigest()
    except (ValueError, TypeError) as error:
        raise Altered(f"Line {place}: row {value['number']} can't be recomputed.") from error
    if made != value["hash"]:
        raise Altered(f"Line {place}: row {value['number']} isn't what was written.")


def _is(text: str, value: Any) -> bool:
    try:
        return _canonical(json.loads(text)) == _canonical(value)  # to Python 1, 1.0 and true are equal
    except (ValueError, RecursionError):
        return value is None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, dict[str, Any]]]:
    place = 0
    while text := file.readline(LONGEST_LINE):
        place += 1
        try:
            value = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            what = "is cut" if not text.endswith(b"\n") else "isn't JSON"
            raise Altered(f"Line {place} {what}.") from error
        if not isinstance(value, dict) or not text.endswith(b"\n"):
            raise Altered(f"Line {place} isn't a whole line of an export.")
        yield text, value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def in_words(found: Checked) -> str:
    """What was found, in a line."""
    rows = f"{found.rows} row{'s' * (found.rows != 1)}" + (f", {found.first} to {found.last}" if found.rows else "")
    what = "all of the journal" if found.whole else "a selection, in which only rows that follow each other are linked"
    if found.head_given:
        proof = "Its head is the one that you gave."
    elif found.authenticated:
        proof = "GoEx had proven this head when it wrote the file; compare it with one that you keep (--head)."
    else:
        proof = "The vault was sealed when it was written, so nothing proved this head; compare it (--head)."
    said = f"Whole: {rows} ({what}). Head: row {found.head_number}, {found.head}. {proof}"
    if found.signed:
        those = "1 row is" if found.signed == 1 else f"{found.signed} rows are"
        said += f" {those} signed by passkeys: {', '.join(found.signers)}."
    if found.unchecked:
        why = "the package cryptography isn't here" if _verifier() is None else "the row that registers the key isn't"
        said += f" {found.unchecked} signature{'s' * (found.unchecked != 1)} couldn't be checked: {why}."
    return said + "".join(f" Not proven: {each}." for each in found.unproven)


def _plain(text: str) -> str:
    """Without what a terminal would take for something else than text: the file may be anybody's."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0: whole; 1: altered; 2: it can't be read; 3: whole, but not all could be checked or is signed."""
    import argparse  # the daemon has no use for it

    parser = argparse.ArgumentParser(prog="python -m goex.journal.verify", description="Check an exported journal.")
    parser.add_argument("file", help="what `goex log --export` wrote; - for standard input")
    parser.add_argument("--head", default="", help="the hash that the journal must have ended with")
    wanted = parser.parse_args(argv)
    try:
        if wanted.file == "-":
            found = check(sys.stdin.buffer, wanted.head)
        else:
            with Path(wanted.file).open("rb") as file:
                found = check(file, wanted.head)
    except Altered as error:
        print(_plain(f"Altered. {error}"), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"It can't be read: {error.strerror}.", file=sys.stderr)
        return 2
    print(_plain(in_words(found)))
    return 3 if found.unchecked or found.unproven else 0


if __name__ == "__main__":
    sys.exit(main())
