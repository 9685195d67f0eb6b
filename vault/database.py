"""What is sealed of a database's entry: the password, and how changes there are taken back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from policies.databases import Terms
from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from policies.typed_json import from_json, to_json
from vault.secret import Secret

_LONGEST = 8192  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSecret:
    """`password` is empty where the database asks for none. The terms aren't secret; sealed, nobody edits them."""

    password: Secret
    terms: Terms = field(default_factory=Terms)

    def to_secret(self) -> Secret:
        """Both as one secret, for the vault. Raises InvalidInput, which quotes nothing."""
        if len(self.password) > _LONGEST or b"\0" in self.password.reveal():
            raise InvalidInput(
                f"The password is longer than {_LONGEST} bytes, or holds a NUL.", next_step="Give it again."
            )
        text: str | None = None
        with contextlib.suppress(UnicodeDecodeError):  # which holds the password
            text = self.password.reveal().decode("utf-8")
        if text is None:
            raise InvalidInput("The password isn't text in UTF-8.", next_step="Give it again, as UTF-8.")
        return Secret(canonical({"password": text, "terms": to_json(self.terms)}))

    @classmethod
    def from_secret(cls, secret: Secret) -> DatabaseSecret:
        """Raises InvalidInput, which quotes nothing, for anything else than `to_secret` made."""
        made: DatabaseSecret | None = None
        with contextlib.suppress(InvalidInput, KeyError, TypeError, ValueError, AttributeError):
            read = parse(secret.reveal(), what="The record")
            if isinstance(read["password"], str):
                made = cls(password=Secret(read["password"]), terms=from_json(Terms, read["terms"], "The terms"))
        if made is None:  # raised here, so that the error doesn't carry the one that quotes the secret
            raise InvalidInput("This database's entry isn't readable.", next_step="Add it again: goex db add")
        return made
