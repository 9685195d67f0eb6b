"""The approval passphrase: how it is kept, compared, and protected against guessing.

Rules: its verifier (Argon2id) lies in the sealed record index, so a stolen file gives nothing to guess against without
the vault's key. An attempt is counted, on disk, before it is looked at: killing the daemon doesn't win a guess. Three
mistakes are free; after each further one the wait doubles, up to five minutes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from policies.errors import InvalidInput
from policies.jsonvalue import JsonObject
from vault.aead import Random
from vault.keys import SALT_BYTES, Cost, check_passphrase, read_stretch_parameters, stretch, stretch_parameters
from vault.secret import Secret, hex_of, of_hex

FREE_MISTAKES = 3
LONGEST_WAIT = 300.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The verifier and the count of attempts since the last right one. Times are UTC."""

    parameters: JsonObject
    verifier: Annotated[Secret, str, hex_of, of_hex]
    failures: int = 0
    last: datetime | None = None

    @classmethod
    def of(cls, passphrase: Secret, cost: Cost, random: Random = os.urandom) -> Approval:
        """The verifier of a new passphrase. Raises InvalidInput when it is too easy to guess."""
        check_passphrase(passphrase, "approval passphrase")
        salt = random(SALT_BYTES)
        return cls(parameters=stretch_parameters(salt, cost), verifier=stretch(passphrase, salt, cost))

    def matches(self, passphrase: Secret) -> bool:
        """Whether this is the passphrase. Takes as long as Argon2id does."""
        salt, cost = read_stretch_parameters(self.parameters)
        try:
            return stretch(passphrase, salt, cost) == self.verifier
        except InvalidInput:
            return False

    def wait(self, now: datetime) -> float:
        """Seconds until the next attempt is looked at. A clock that was set back doesn't lengthen it."""
        if self.failures < FREE_MISTAKES or self.last is None:
            return 0.0
        due = min(LONGEST_WAIT, 2.0 ** min(self.failures - FREE_MISTAKES + 1, 20))
        waited = (now - self.last).total_seconds()
        return max(0.0, due - waited) if waited >= 0 else 0.0

    def attempted(self, now: datetime) -> Approval:
        """One more attempt, counted as wrong until it proves right."""
        return replace(self, failures=self.failures + 1, last=now)

    def proved(self) -> Approval:
        """The passphrase was right: the count starts again."""
        return replace(self, failures=0, last=None)
