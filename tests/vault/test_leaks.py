"""A canary is kept in the vault, and looked for everywhere that it must not be. Each search finds a planted copy."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import InvalidInput
from tests.vault.support import APPROVAL, CANARY, PASSPHRASE, SOON, HandClock, account, ca_pem, protector, reopen
from vault.errors import RecordAltered
from vault.secret import Secret
from vault.store import Vault


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that anybody logs, at the finest level."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    logging.getLogger("sqlalchemy").setLevel(1)
    yield stream
    logging.getLogger("sqlalchemy").setLevel(logging.NOTSET)
    root.setLevel(level)
    root.removeHandler(handler)


def forms(text: str) -> list[bytes]:
    """How a value may lie about: plain, hex, base64, reversed, UTF-16."""
    import base64

    raw = text.encode()
    return [raw, raw.hex().encode(), base64.b64encode(raw)[:-4], raw[::-1], text.encode("utf-16-le")]


def held(data: bytes, text: str) -> bool:
    return any(form in data for form in forms(text))


def test_not_in_the_file_at_any_time(vault: Vault, path: Path, clock: HandClock) -> None:
    big = account(name="big", format="file")
    vault.put(account(), Secret(CANARY))
    vault.put(big, Secret(CANARY * 5000))
    vault.put(account(), Secret(CANARY + "2"), replace=True)
    vault.lease("slack", "work", action_id="a", expires=clock() + SOON)
    vault.rotate(protector("another passphrase"))
    payload = vault.seal_payload("undo", CANARY.encode())
    vault.seal()
    everything = b"".join(each.read_bytes() for each in path.parent.iterdir()) + payload
    for text in (CANARY, PASSPHRASE, APPROVAL, "another passphrase"):
        assert not held(everything, text)
    path.with_name("planted").write_bytes(b"x" + CANARY.encode().hex().encode() + b"x")
    assert held(b"".join(each.read_bytes() for each in path.parent.iterdir()), CANARY)


def test_keys_are_not_in_the_file(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret(CANARY))
    inside = vault._unsealed
    assert inside is not None
    everything = path.read_bytes()
    for key in (inside.master, inside.record_index.root, inside.wrapping.key, inside.record_index.approval.verifier):
        for form in (key.reveal(), key.reveal().hex().encode()):
            assert form not in everything
    assert inside.header.wrapped_master in everything, "what is looked for as raw bytes is found"


def test_replaced_sealed_bytes_are_overwritten(vault: Vault, path: Path) -> None:
    vault.put(account(), Secret(CANARY * 20))
    connection = sqlite3.connect(path)
    (old_key, old_sealed) = connection.execute("SELECT wrapped_key, sealed FROM records").fetchone()
    connection.close()
    assert old_sealed in path.read_bytes()
    vault.put(account(), Secret("short"), replace=True)
    assert old_sealed not in path.read_bytes()
    assert old_key not in path.read_bytes()


def test_not_shown_by_any_object(vault: Vault, clock: HandClock) -> None:
    secret = Secret(CANARY)
    vault.put(account(), secret)
    lease = vault.lease("slack", "work", action_id="a", expires=clock() + SOON)
    guard = protector(CANARY + " passphrase")
    inside = vault._unsealed
    assert inside is not None
    key_hex = inside.master.reveal().hex()
    for thing in (
        secret,
        lease,
        vault,
        guard,
        inside,
        inside.wrapping,
        inside.record_index,
        vault.records(),
        vault.live_leases(),
    ):
        for shown in (repr(thing), str(thing), f"{thing}", f"{thing!r:>40}", "%s %r" % (thing, thing)):  # noqa: UP031
            assert CANARY not in shown
            assert key_hex not in shown
    assert CANARY in repr([CANARY, secret])
    for spilled in (pickle.dumps, copy.deepcopy, copy.copy, json.dumps, hash, vars, bytes, list):
        with pytest.raises(TypeError):
            spilled(secret)
    with pytest.raises(TypeError):
        pickle.dumps(lease)


def test_not_in_tracebacks_even_with_locals(vault: Vault, path: Path) -> None:
    wrong = Secret(CANARY)
    vault.put(account(), wrong)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET private = 1")
    connection.commit()
    connection.close()
    attempts = [
        lambda: vault.put(account(name="b"), Secret(CANARY + "\n")),
        lambda: vault.put(account(), wrong),
        lambda: vault.lease("slack", "work", action_id="a", expires=vault._clock() + SOON),
        lambda: Vault.open(path).unlock(protector(CANARY + " passphrase")),
        lambda: vault.change_approval(Secret(CANARY), Secret("a new passphrase")),
        lambda: vault.open_payload("x", vault.seal_payload("y", b"z")),
    ]
    told = ""
    for attempt in attempts:
        try:
            attempt()
        except Exception as error:
            told += _whole(error)
        else:
            raise AssertionError("nothing was raised")
    inside = vault._unsealed
    assert inside is not None
    keys = (inside.master, inside.record_index.root, inside.wrapping.key)
    for hidden in (CANARY, *(key.reveal().hex() for key in keys), *(repr(key.reveal())[2:-1] for key in keys)):
        assert hidden not in told
        try:
            careless = hidden  # noqa: F841 - a local variable, as carelessness would leave it
            raise ValueError
        except ValueError as error:
            assert repr(hidden) in _whole(error)


def _whole(error: BaseException) -> str:
    """All that a reporter which shows local variables would show."""
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(report.format()) + repr(error) + str(error)


def test_not_in_any_log(vault: Vault, path: Path, logged: io.StringIO, clock: HandClock) -> None:
    vault.put(account(), Secret(CANARY))
    vault.lease("slack", "work", action_id="a", expires=clock() + SOON)
    vault.rotate(protector("another passphrase"))
    vault.check_approval(Secret(APPROVAL))
    vault.seal()
    again = reopen(path, "another passphrase")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET ca_pem = 'x'")
    connection.commit()
    connection.close()
    with pytest.raises(RecordAltered) as caught:
        again.resolve("slack")
    logging.getLogger("goex.vault").error("caught", exc_info=caught.value)
    assert "caught" in logged.getvalue()
    assert "BEGIN" in logged.getvalue(), "SQLAlchemy's own log is looked at too"
    for hidden in (CANARY, PASSPHRASE, APPROVAL, "another passphrase"):
        assert hidden not in logged.getvalue()
        logging.getLogger("sqlalchemy.engine").debug("planted %s", hidden)
        assert hidden in logged.getvalue()


@pytest.mark.parametrize(
    "value",
    [b"", b"a\nb", b"a\rb", b"tab\t", b"a\0", b"\x7f", b"\x1b[31m", b" padded", b"padded ", b"x" * 65_537],
)
def test_strings_that_dont_fit_a_header(vault: Vault, value: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        vault.put(account(), Secret(value))
    quoted = value.decode().strip()
    assert len(quoted) < 2 or quoted not in str(caught.value)
    assert vault.records() == ()


def test_sizes_of_files(vault: Vault) -> None:
    file = account(format="file")
    with pytest.raises(InvalidInput):
        vault.put(file, Secret(b"x" * 1_000_001))
    with pytest.raises(InvalidInput):
        vault.put(file, Secret(b""))
    vault.put(file, Secret(b"\0" * 1_000_000))


@pytest.mark.parametrize(
    "changed",
    [
        {"service": ""},
        {"service": "a/b"},
        {"service": "x" * 101},
        {"name": ""},
        {"name": " work"},
        {"name": "a\u202eb"},
        {"name": "a\x1b[0m"},
        {"format": "xml"},
        {"base_url": "https://api.example.org/?token=x"},
        {"base_url": "https://api.example.org/#x"},
        {"ca_pem": "not a certificate"},
        {"ca_pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
        {"ca_pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
        {"ca_pem": ca_pem() + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
        {"ca_pem": ca_pem() * 700},
    ],
    ids=lambda changed: repr(changed)[:40],
)
def test_accounts_that_cant_be_stored(vault: Vault, changed: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        vault.put(account(**{"service": "slack", "name": "work", **changed}), Secret("x"))
    assert vault.records() == ()
