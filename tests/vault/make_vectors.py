"""Makes tests/vectors/vault.json and tests/vectors/vault-v1.db: the sealed format, fixed for ever.

Run as `python -m tests.vault.make_vectors` when a new format version is added; vectors of an old version never change.
Randomness is a counter that is hashed, so that the JSON comes out the same every time.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from policies.accounts import Account, Origin
from policies.jsonvalue import canonical
from vault import aead
from vault.approval import Approval
from vault.header import Entry, Header, RecordIndex
from vault.keys import Cost, PassphraseProtector
from vault.record import SealedRecord
from vault.secret import Secret
from vault.store import Vault

VECTORS = Path(__file__).parent.parent / "vectors"
PASSPHRASE = "vectors are not a secret"
APPROVAL = "and neither is this one"
CHEAP = Cost(passes=1, memory=8 * 1024, lanes=1)
SECRETS = {"slack/work": b"xoxb-vector", "github/me": bytes(range(256))}


def counted(label: str) -> aead.Random:
    """Bytes that look random and are the same every time."""
    state = {"count": 0}

    def random(size: int) -> bytes:
        state["count"] += 1
        return hashlib.shake_256(f"{label} {state['count']}".encode()).digest(size)

    return random


def accounts() -> list[Account]:
    slack = Origin.parse("https://slack.com")
    own = Origin.parse("http://10.0.0.7:8080")
    return [
        Account(service="slack", name="work", origins=(slack,), base_url="https://slack.com/api"),
        Account(
            service="github",
            name="me",
            origins=(own, slack),
            base_url="http://10.0.0.7:8080",
            format="file",
            private=True,
        ),
    ]


def record_vectors() -> list[dict[str, Any]]:
    random = counted("record")
    master, vault_id = aead.new_key(random), random(16).hex()
    made = []
    for account in accounts():
        record = SealedRecord.make(
            account,
            Secret(SECRETS[account.id]),
            master,
            vault_id=vault_id,
            record_id=random(16).hex(),
            version=3,
            created="2030-01-02T03:04:05+00:00",
            updated="2030-01-02T03:04:06+00:00",
            random=random,
        )
        row = {key: value.hex() if isinstance(value, bytes) else value for key, value in record.to_row().items()}
        bound = aead.bound_to_record(vault_id, record.id, 3, account, record.created, record.updated)
        made.append(
            {
                "name": account.id,
                "vault_id": vault_id,
                "master": master.reveal().hex(),
                "row": row,
                "data_key_associated": canonical(aead.bound_to_data_key(vault_id, record.id, 3)).decode(),
                "secret_associated": canonical(bound).decode(),
                "secret": SECRETS[account.id].hex(),
                "bad": [{"change": change, "expect": "RecordAltered"} for change in _bad_rows(row)],
            }
        )
    return made


def _bad_rows(row: dict[str, Any]) -> list[dict[str, Any]]:
    flipped = {name: row[name][:-2] + f"{int(row[name][-2:], 16) ^ 1:02x}" for name in ("wrapped_key", "sealed")}
    return [
        {"id": "0" * 32},
        {"version": 2},
        {"version": 4},
        {"service": "matrix"},
        {"name": "other"},
        {"format": "string" if row["format"] == "file" else "file"},
        {"format": "neither"},
        {"base_url": json.loads(row["origins"])[0] + "/elsewhere"},
        {"base_url": "https://evil.example"},
        {"origins": '["https://evil.example"]'},
        {"origins": json.dumps([*json.loads(row["origins"]), "https://evil.example"], separators=(",", ":"))},
        {"origins": "[]"},
        {"origins": "not json"},
        {"private": 1 - row["private"]},
        {"private": 2},
        {"ca_pem": "-----BEGIN CERTIFICATE-----"},
        {"created": "2030-01-02T03:04:04+00:00"},
        {"updated": "2031-01-02T03:04:06+00:00"},
        {"updated": "yesterday"},
        {"wrapped_key": flipped["wrapped_key"]},
        {"sealed": flipped["sealed"]},
        {"sealed": row["sealed"][:40]},
        {"sealed": ""},
        {"wrapped_key": row["sealed"]},
    ]


def header_vectors() -> dict[str, Any]:
    random = counted("header")
    protector = PassphraseProtector(Secret(PASSPHRASE), cost=CHEAP, random=random)
    wrapping = protector.establish()
    vault_id, master, root = random(16).hex(), aead.new_key(random), aead.new_key(random)
    entry = Entry(service="slack", name="work", version=3, digest="00" * 32, last_used=datetime(2030, 1, 2, tzinfo=UTC))
    record_index = RecordIndex(
        root=root, approval=Approval.of(Secret(APPROVAL), CHEAP, random), entries={"ab" * 16: entry}
    )
    bound = aead.bound_to_master(vault_id, "passphrase", dict(wrapping.parameters))
    header = Header(
        vault_id=vault_id,
        generation=41,
        keyed_by="passphrase",
        parameters=wrapping.parameters,
        wrapped_master=aead.seal(wrapping.key, master, bound, random),
        record_index=b"",
    ).next(master, record_index, random)
    row = {key: value.hex() if isinstance(value, bytes) else value for key, value in header.to_row().items()}
    return {
        "passphrase": PASSPHRASE,
        "wrapping_key": wrapping.key.reveal().hex(),
        "master": master.reveal().hex(),
        "root": root.reveal().hex(),
        "row": row,
        "derived": {purpose: aead.derive(root, purpose).hex() for purpose in ("journal", "")},
        "bad": [
            {"change": {name: value}, "checksum": kind, "expect": expect}
            for name, value, kind, expect in (
                ("generation", 43, "stale", "VaultBroken"),
                ("ledger", "00" * 64, "stale", "VaultBroken"),
                ("checksum", "00" * 32, "stale", "VaultBroken"),
                ("generation", 43, "mended", "VaultBroken"),
                ("ledger", "00" * 64, "mended", "VaultBroken"),
                ("vault_id", "00" * 16, "mended", "WrongPassphrase"),
                ("wrapped_master", "00" * 60, "mended", "WrongPassphrase"),
                ("keyed_by", "nobody", "mended", "VaultBroken"),
                ("parameters", "{}", "mended", "VaultBroken"),
                ("parameters", "[]", "mended", "VaultBroken"),
            )
        ],
    }


def payload_vectors() -> list[dict[str, Any]]:
    random = counted("payload")
    root = aead.new_key(random)
    made = []
    for name, data in (("a1/captured", b"{}"), ("", b""), ("\u00fc/\u202e", bytes(range(256)))):
        sealed = aead.seal_payload(root, name, data, random)
        made.append({"root": root.reveal().hex(), "name": name, "data": data.hex(), "sealed": sealed.hex()})
    return made


def make() -> str:
    """The JSON text."""
    made = {"format": 1, "records": record_vectors(), "header": header_vectors(), "payloads": payload_vectors()}
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def make_file(path: Path) -> None:
    """A whole vault, with a payload sealed by it beside it in the JSON of the test."""
    random = counted("file")
    protector = PassphraseProtector(Secret(PASSPHRASE), cost=CHEAP, random=random)

    def clock() -> datetime:
        return datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    vault = Vault.create(path, protector, Secret(APPROVAL), clock=clock, random=random, approval_cost=CHEAP)
    for account in accounts():
        vault.put(account, Secret(SECRETS[account.id]))
    vault.seal()


if __name__ == "__main__":
    VECTORS.mkdir(exist_ok=True)
    (VECTORS / "vault.json").write_text(make())
    if not (VECTORS / "vault-v1.db").exists():
        import tempfile

        place = Path(tempfile.mkdtemp()) / "vault.db"
        make_file(place)
        (VECTORS / "vault-v1.db").write_bytes(place.read_bytes())
