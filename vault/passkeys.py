"""The person's passkeys as the sealed record index holds them, beside the approval passphrase's verifier.

Rules: public keys are no secret, but which of them count is what the vault vouches for: an older index doesn't open,
so a passkey that was removed doesn't come back with a file. `required` is set once config.toml asked for passkeys while
there was one, and stays until none is left: whoever can edit that file can't go back to the passphrase by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from policies.jsonvalue import JsonValue

MOST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """One registered credential. `public_key` is COSE as the authenticator gave it; `counter` its highest signature
    count so far; `rp_id` the host that it was registered for. Times are UTC."""

    id: str
    name: str
    credential_id: bytes
    public_key: bytes
    rp_id: str
    created: datetime
    counter: int = 0
    used: datetime | None = None

    def to_json(self) -> JsonValue:
        return {
            "id": self.id,
            "name": self.name,
            "credential_id": self.credential_id.hex(),
            "public_key": self.public_key.hex(),
            "rp_id": self.rp_id,
            "created": self.created.isoformat(),
            "counter": self.counter,
            "used": self.used.isoformat() if self.used else None,
        }

    @classmethod
    def from_json(cls, value: JsonValue) -> Passkey:
        """Raises KeyError, TypeError or ValueError for anything else than `to_json` made."""
        return cls(
            id=str(value["id"]),
            name=str(value["name"]),
            credential_id=bytes.fromhex(value["credential_id"]),
            public_key=bytes.fromhex(value["public_key"]),
            rp_id=str(value["rp_id"]),
            created=datetime.fromisoformat(value["created"]),
            counter=int(value["counter"]),
            used=datetime.fromisoformat(value["used"]) if value["used"] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkeys:
    """All of them; whether the passphrase alone doesn't suffice; and from when on all may be removed with it."""

    all: tuple[Passkey, ...] = ()
    required: bool = False
    reset_at: datetime | None = None

    def find(self, credential_id: bytes, rp_id: str) -> Passkey | None:
        return next((one for one in self.all if (one.credential_id, one.rp_id) == (credential_id, rp_id)), None)

    def with_(self, *changed: Passkey) -> Passkeys:
        """With these, in place of those of the same id."""
        ids = {one.id for one in changed}
        return replace(self, all=(*(one for one in self.all if one.id not in ids), *changed))

    def without(self, ids: Iterable[str]) -> Passkeys:
        """Without those. When none is left, none is required either."""
        gone = frozenset(ids)
        left = tuple(one for one in self.all if one.id not in gone)
        return replace(self, all=left) if left else Passkeys()

    def to_json(self) -> JsonValue:
        return {
            "all": [one.to_json() for one in self.all],
            "required": self.required,
            "reset_at": self.reset_at.isoformat() if self.reset_at else None,
        }

    @classmethod
    def from_json(cls, value: JsonValue) -> Passkeys:
        """Raises KeyError, TypeError or ValueError for anything else than `to_json` made."""
        return cls(
            all=tuple(Passkey.from_json(one) for one in value["all"]),
            required=bool(value["required"]),
            reset_at=datetime.fromisoformat(value["reset_at"]) if value["reset_at"] else None,
        )


NONE = Passkeys()
