"""How bytes are sealed: AES-256-GCM with everything that must not change as associated data.

Rules: a fresh random nonce for every sealing; associated data is the canonical JSON of a list whose first element
names the purpose, so that nothing sealed for one purpose opens for another. Keys travel as `Secret`. A sealed value
is nonce (12 bytes) then ciphertext with its tag. Opening gives the bytes or `Unopened`, never part of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from policies.accounts import Account
from policies.jsonvalue import JsonValue, canonical
from vault.secret import Secret

KEY_BYTES = 32
NONCE_BYTES = 12
_TAG_BYTES = 16
_SALT_BYTES = 16
_PAYLOAD_FORMAT = b"\x01"

Random = Callable[[int], bytes]


class Unopened(Exception):
    """The key, the associated data or the sealed bytes aren't those of the sealing. Never leaves the package."""


def new_key(random: Random = os.urandom) -> Secret:
    """A fresh 256-bit key."""
    return Secret(random(KEY_BYTES))


def seal(key: Secret, data: Secret, bound: Sequence[JsonValue], random: Random = os.urandom) -> bytes:
    """Seal `data` under `key`, bound to the associated data `bound`."""
    nonce = random(NONCE_BYTES)
    return nonce + AESGCM(key.reveal()).encrypt(nonce, data.reveal(), canonical(list(bound)))


def unseal(key: Secret, sealed: bytes, bound: Sequence[JsonValue]) -> Secret:
    """Open what `seal` made. Raises Unopened."""
    if len(key) != KEY_BYTES or len(sealed) < NONCE_BYTES + _TAG_BYTES:
        raise Unopened
    try:
        return Secret(AESGCM(key.reveal()).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], canonical(list(bound))))
    except InvalidTag:
        raise Unopened from None


def derive(root: Secret, purpose: str, salt: bytes | None = None) -> bytes:
    """A 32-byte key for `purpose` from the root secret (HKDF-SHA256): the same purpose gives the same key."""
    info = b"goex vault v1 derived\0" + purpose.encode("utf-8")
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=info).derive(root.reveal())


def bound_to_master(vault_id: str, keyed_by: str, parameters: JsonValue) -> list[JsonValue]:
    """Associated data of the wrapped master key."""
    return ["goex vault v1 master", vault_id, keyed_by, parameters]


def bound_to_record_index(vault_id: str, generation: int) -> list[JsonValue]:
    """Associated data of the record index: one that was sealed for another state of the file doesn't open."""
    return ["goex vault v1 ledger", vault_id, generation]


def bound_to_data_key(vault_id: str, record_id: str, version: int) -> list[JsonValue]:
    """Associated data of a record's wrapped data key."""
    return ["goex vault v1 data key", vault_id, record_id, version]


def bound_to_record(
    vault_id: str, record_id: str, version: int, account: Account, created: str, updated: str
) -> list[JsonValue]:
    """Associated data of a record's secret: which record it is, and everything that says where it may be sent."""
    return [
        "goex vault v1 record",
        vault_id,
        record_id,
        version,
        account.service,
        account.name,
        account.format,
        account.base_url,
        sorted(str(origin) for origin in account.origins),
        account.private,
        account.ca_pem,
        created,
        updated,
    ]


def bound_to_backup(number: int, header: str) -> list[JsonValue]:
    """Associated data of a backup's content: the format, and how its passphrase is stretched."""
    return ["goex vault v1 backup", number, header]


def seal_payload(root: Secret, name: str, data: bytes, random: Random = os.urandom) -> bytes:
    """Seal a payload of any number: each gets a key of its own, so that nonces can't run out."""
    salt = random(_SALT_BYTES)
    key = Secret(derive(root, "payload", salt))
    return _PAYLOAD_FORMAT + salt + seal(key, Secret(data), ["goex payload v1", name], random)


def open_payload(root: Secret, name: str, sealed: bytes) -> bytes:
    """Open what `seal_payload` made under the same name. Raises Unopened."""
    if sealed[:1] != _PAYLOAD_FORMAT or len(sealed) < 1 + _SALT_BYTES:
        raise Unopened
    salt = sealed[1 : 1 + _SALT_BYTES]
    key = Secret(derive(root, "payload", salt))
    return unseal(key, sealed[1 + _SALT_BYTES :], ["goex payload v1", name]).reveal()
