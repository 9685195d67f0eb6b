"""The sealed format as fixed bytes: what was written once opens for ever, and each altered one fails by its class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.vault import make_vectors
from tests.vault.make_vectors import APPROVAL, PASSPHRASE, SECRETS, VECTORS
from tests.vault.support import HandClock, secret_of
from vault import aead, errors, schema
from vault.header import Header, _checksum
from vault.keys import PassphraseProtector
from vault.record import SealedRecord
from vault.secret import Secret
from vault.store import Vault

FIXED: dict[str, Any] = json.loads((VECTORS / "vault.json").read_text())
BLOBS = ("wrapped_key", "sealed", "wrapped_master", "ledger", "checksum")


def row(columns: dict[str, Any]) -> tuple[Any, ...]:
    """The columns as a row of their table."""
    table = schema.records if "service" in columns else schema.header
    values = {name: bytes.fromhex(value) if name in BLOBS else value for name, value in columns.items()}
    return tuple(values[column.name] for column in table.columns)


def test_the_code_still_makes_them() -> None:
    assert json.loads(make_vectors.make()) == FIXED, "the format changed: give it a new version and new vectors"


@pytest.mark.parametrize("vector", FIXED["records"], ids=lambda vector: vector["name"])
def test_records(vector: dict[str, Any]) -> None:
    master = Secret(bytes.fromhex(vector["master"]))
    record = SealedRecord.from_row(row(vector["row"]))
    assert record.open(master, vector["vault_id"]).reveal().hex() == vector["secret"]


@pytest.mark.parametrize("vector", FIXED["records"], ids=lambda vector: vector["name"])
def test_records_by_plain_aes_gcm(vector: dict[str, Any]) -> None:
    """The format in two lines, without any of our code."""
    key, sealed = (bytes.fromhex(vector["row"][name]) for name in ("wrapped_key", "sealed"))
    data_key = AESGCM(bytes.fromhex(vector["master"])).decrypt(
        key[:12], key[12:], vector["data_key_associated"].encode()
    )
    opened = AESGCM(data_key).decrypt(sealed[:12], sealed[12:], vector["secret_associated"].encode())
    assert opened.hex() == vector["secret"]


@pytest.mark.parametrize(
    ("vector", "bad"),
    [(vector, bad) for vector in FIXED["records"] for bad in vector["bad"]],
    ids=lambda value: str(value.get("change", value.get("name")))[:50],
)
def test_altered_records(vector: dict[str, Any], bad: dict[str, Any]) -> None:
    master = Secret(bytes.fromhex(vector["master"]))
    with pytest.raises(getattr(errors, bad["expect"])):
        SealedRecord.from_row(row({**vector["row"], **bad["change"]})).open(master, vector["vault_id"])


def test_the_header() -> None:
    vector = FIXED["header"]
    header = Header.from_row(row(vector["row"]))
    wrapping = PassphraseProtector(Secret(vector["passphrase"])).recall(header.parameters)
    assert wrapping.key.reveal().hex() == vector["wrapping_key"]
    master = header.open_master(wrapping.key)
    assert master.reveal().hex() == vector["master"]
    record_index = header.open_record_index(master)
    assert record_index.root.reveal().hex() == vector["root"]
    assert record_index.approval.matches(Secret(APPROVAL))
    for purpose, key in vector["derived"].items():
        assert aead.derive(record_index.root, purpose).hex() == key


@pytest.mark.parametrize(
    "bad", FIXED["header"]["bad"], ids=lambda bad: f"{next(iter(bad['change']))} {bad['checksum']}"
)
def test_altered_headers(bad: dict[str, Any]) -> None:
    columns = {**FIXED["header"]["row"], **bad["change"]}
    if bad["checksum"] == "mended":
        columns["checksum"] = _checksum(row(columns)[:-1]).hex()
    with pytest.raises(getattr(errors, bad["expect"])) as caught:
        header = Header.from_row(row(columns))
        wrapping = PassphraseProtector(Secret(PASSPHRASE)).recall(header.parameters)
        try:
            master = header.open_master(wrapping.key)
        except aead.Unopened:
            raise errors.wrong_key(header.keyed_by) from None
        header.open_record_index(master)
    assert caught.type.__name__ == bad["expect"]


@pytest.mark.parametrize("vector", FIXED["payloads"], ids=lambda vector: repr(vector["name"]))
def test_payloads(vector: dict[str, Any]) -> None:
    root, sealed = Secret(bytes.fromhex(vector["root"])), bytes.fromhex(vector["sealed"])
    assert aead.open_payload(root, vector["name"], sealed).hex() == vector["data"]
    for position in range(len(sealed)):
        spoiled = bytearray(sealed)
        spoiled[position] ^= 1
        with pytest.raises(aead.Unopened):
            aead.open_payload(root, vector["name"], bytes(spoiled))
    with pytest.raises(aead.Unopened):
        aead.open_payload(root, vector["name"] + "x", sealed)
    with pytest.raises(aead.Unopened):
        aead.open_payload(Secret(bytes(32)), vector["name"], sealed)


def test_a_whole_vault_of_format_1_still_opens(path: Path) -> None:
    path.touch(mode=0o600)
    path.write_bytes((VECTORS / "vault-v1.db").read_bytes())
    vault = Vault.open(path, clock=HandClock())
    assert vault.unlock(PassphraseProtector(Secret(PASSPHRASE))) == ()
    for account in make_vectors.accounts():
        assert vault.resolve(account.service, account.name).id == account.id
        assert secret_of(vault, account.service, account.name) == SECRETS[account.id]
    assert vault.check_approval(Secret(APPROVAL))
    vault.rotate()
    assert vault.damage() == ()
