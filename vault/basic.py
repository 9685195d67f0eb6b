"""A user name and password (RFC 7617): sealed as a pair, leased as the one word that goes into the header."""

from __future__ import annotations

import base64
import contextlib
from dataclasses import dataclass

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from vault.secret import Secret

_LONGEST = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Basic:
    """`user` isn't secret by itself; it is sealed with the password all the same."""

    user: str
    password: Secret

    def check(self) -> None:
        """Raises InvalidInput for what the header can't carry."""
        if not self.user or ":" in self.user or not self.user.isprintable() or len(self.user) > _LONGEST:
            raise InvalidInput(
                "A user name for basic authentication has visible characters and no colon.",
                next_step="Give it as the service knows it.",
            )
        if not self.password or any(byte < 0x20 or byte == 0x7F for byte in self.password.reveal()):
            raise InvalidInput(
                "The password is empty, or has a line break or another control character.", next_step="Give it again."
            )

        with contextlib.suppress(UnicodeDecodeError):  # which holds the password
            self.password.reveal().decode("utf-8")
            return
        raise InvalidInput("The password isn't text in UTF-8.", next_step="Give it again, as UTF-8.")

    def credential(self) -> Secret:
        """What stands after `Basic ` in the header."""
        return Secret(base64.b64encode(self._pair()))

    def echoes(self) -> tuple[Secret, ...]:
        """What must not come back, beside the credential."""
        return (self.password, Secret(self._pair()))

    def to_secret(self) -> Secret:
        """The pair as one secret, for the vault. Raises InvalidInput."""
        self.check()
        return Secret(canonical({"user": self.user, "password": self.password.reveal().decode("utf-8")}))

    @classmethod
    def from_secret(cls, secret: Secret) -> Basic:
        """Raises InvalidInput, which quotes nothing, for anything else than `to_secret` made."""
        made: Basic | None = None
        with contextlib.suppress(InvalidInput, KeyError, TypeError, ValueError):
            read = parse(secret.reveal(), what="The record")
            user, password = read["user"], read["password"]
            if isinstance(user, str) and isinstance(password, str):
                made = cls(user=user, password=Secret(password))
        if made is None:  # raised here, so that the error doesn't carry the one that quotes the secret
            raise InvalidInput("This account's user name and password aren't readable.", next_step="Put them in again.")
        return made

    def _pair(self) -> bytes:
        return self.user.encode("utf-8") + b":" + self.password.reveal()
