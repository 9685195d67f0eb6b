"""The person's passkeys as the sealed record index holds them, beside the approval passphrase's verifier.

Rules: public keys are no secret, but which of them count is what the vault vouches for: an older index doesn't open,
so a passkey that was removed doesn't come back with a file. `required` is set once config.toml asked for passkeys while
there was one, and stays until none is left: whoever can edit that file can't go back to the passphrase by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

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


NONE = Passkeys()
