"""Credentials that programs read from a file: sealed whole, lent as a token, and shown to code as a stand-in.

Rules: the file, as the person gave it (but for a refresh token that its server rotated), is sealed and never leaves the
daemon. Code gets a `FileTemplate`: the same file with a placeholder where the secret is, or, of a service account, with
a key that was made for nothing else and opens nothing. Three kinds are known by what is in them:

* `service_account`: Google's JSON with a private key. The daemon itself asks for access tokens with it (RFC 7523).
* `authorized_user`: Google's JSON with a refresh token. The daemon renews with it (RFC 6749 section 6).
* `text`: any other text, with its secret marked as `[[secret:…]]`, or nothing but the secret.

A file whose secret signs requests, or that holds another private key, can't be lent like this, and is refused.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import canonical, parse
from vault.lease import BY_CHANCE, FileTemplate
from vault.secret import Secret

Kind = Literal["service_account", "authorized_user", "text"]

LONGEST = 100_000  # bytes
GOOGLE_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"
STAND_IN = "goex"  # stands where a file has a secret that only the daemon needs
# A file that leads to nothing, for a token that has no file of its own: code asks its server, and so the gateway.
USERS_STAND_IN = {
    "type": "authorized_user", "client_id": STAND_IN, "client_secret": STAND_IN, "refresh_token": STAND_IN,
    "token_uri": GOOGLE_TOKENS,
}  # fmt: skip

# Not beyond where the next one begins: each unclosed one would be looked for to the end of the file.
_MARK = re.compile(r"\[\[secret:((?:(?!\[\[secret:).)*?)\]\]", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,79}")
_SIGNING = re.compile(r"aws_secret_access_key|AccountKey=|hmac_secret|consumer_secret", re.IGNORECASE)
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
# What a service account's file says that isn't secret and that libraries read.
_SERVICE_FACTS = ("type", "project_id", "client_email", "client_id", "auth_uri", "token_uri", "universe_domain")
_USER_FACTS = ("type", "client_id", "quota_project_id", "universe_domain", "account")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialFile:
    """A file as the person gave it. `name` and `variable`: what it is called where code runs, and the environment
    variable that leads there ("" for none)."""

    text: Secret
    name: str
    variable: str = ""

    @classmethod
    def of(cls, data: bytes, name: str = "", variable: str = "") -> CredentialFile:
        """A file's content, checked. Raises InvalidInput, Unsupported: neither quotes the file."""
        found = decoded(data)
        made = cls(text=Secret(found), name=name, variable=variable)
        kind = made.kind
        if kind != "text":
            made = cls(
                text=made.text,
                name=name or "credentials.json",
                variable=variable or GOOGLE_VARIABLE,
            )
        made = made if made.name else cls(text=made.text, name="credential", variable=made.variable)
        made.check()
        return made

    @property
    def kind(self) -> Kind:
        said = self._json().get("type")
        return said if said in ("service_account", "authorized_user") else "text"

    def check(self) -> None:
        """Raises InvalidInput, Unsupported for what can't be lent."""
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                "That can't be the name of a file.", next_step="Use letters, digits, dots, - and _, without a folder."
            )
        if self.variable and not _VARIABLE.fullmatch(self.variable):
            raise InvalidInput("That can't be a variable's name.", next_step="Write it like SERVICE_CREDENTIALS.")
        match self.kind:
            case "service_account":
                self.facts("client_email", "private_key", "token_uri")
                self.key()
            case "authorized_user":
                self.facts("client_id", "client_secret", "refresh_token")
            case "text":
                self._check_text()

    def facts(self, *names: str) -> tuple[str, ...]:
        """These members of a JSON file. Raises InvalidInput where one isn't there."""
        said = self._json()
        for name in names:
            if not isinstance(said.get(name), str) or not said[name]:
                raise InvalidInput(
                    f"The credential file has no {name}.", next_step="Download it from the provider again."
                )
        return tuple(str(said[name]) for name in names)

    def optional(self, name: str) -> str:
        """A member of a JSON file; "" where it isn't there."""
        said = self._json().get(name)
        return said if isinstance(said, str) else ""

    def renewed(self, refresh: Secret) -> CredentialFile:
        """An `authorized_user` file with another refresh token."""
        said = {**self._json(), "refresh_token": refresh.reveal().decode("utf-8")}
        return CredentialFile(text=Secret(json.dumps(said, indent=2)), name=self.name, variable=self.variable)

    @property
    def endpoint(self) -> str:
        """Where tokens are to be had with this file; "" for one that holds its token itself."""
        if self.kind == "service_account":
            return self.facts("token_uri")[0]
        return str(self._json().get("token_uri") or GOOGLE_TOKENS) if self.kind == "authorized_user" else ""

    def key(self) -> Any:
        """A service account's private key, for signing. Raises InvalidInput."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        found: Any = None
        with contextlib.suppress(ValueError, TypeError):  # which may quote it
            found = load_pem_private_key(self.facts("private_key")[0].encode("utf-8"), password=None)
        if not isinstance(found, RSAPrivateKey) or found.key_size < 2048:
            raise InvalidInput(
                "The service account's private key isn't an RSA key of 2048 bits or more, in PEM.",
                next_step="Download the file from the provider again.",
            )
        return found

    def secret(self) -> Secret:
        """The one secret in a text. Raises InvalidInput."""
        text = self.text.reveal().decode("utf-8")
        marked = {match[1] for match in _MARK.finditer(text)}
        if len(marked) > 1:
            raise InvalidInput(
                "The file has several secrets marked, and one can be lent.", next_step="Mark one of them."
            )
        return Secret(marked.pop() if marked else text.strip())

    def template(self, stand_in_key: str = "") -> FileTemplate:
        """What code gets in its place. `stand_in_key`: a private key (PEM) that was made to be looked at."""
        said = self._json()
        match self.kind:
            case "service_account":
                shown = {name: said[name] for name in _SERVICE_FACTS if isinstance(said.get(name), str)}
                shown |= {"private_key_id": STAND_IN, "private_key": stand_in_key}
                parts: tuple[str, ...] = (json.dumps(shown, indent=2),)
            case "authorized_user":
                shown = {name: said[name] for name in _USER_FACTS if isinstance(said.get(name), str)}
                shown |= {"client_secret": STAND_IN, "refresh_token": STAND_IN, "token_uri": self.endpoint}
                parts = (json.dumps(shown, indent=2),)
            case "text":
                text, secret = self.text.reveal().decode("utf-8"), self.secret().reveal().decode("utf-8")
                marked = _MARK.split(text)[::2] if _MARK.search(text) else text.split(secret)
                # Wherever it stands, marked or not.
                whole = len(secret) >= BY_CHANCE
                parts = tuple(part for each in marked for part in (each.split(secret) if whole else (each,)))
        return FileTemplate(name=self.name, parts=parts, variable=self.variable, endpoint=self.endpoint)

    def to_secret(self) -> Secret:
        """The whole as one secret, for the vault."""
        return Secret(
            canonical(
                {"file": 1, "name": self.name, "variable": self.variable, "text": self.text.reveal().decode("utf-8")}
            )
        )

    @classmethod
    def from_secret(cls, secret: Secret) -> CredentialFile:
        """Raises InvalidInput, which quotes nothing, for what is neither of `to_secret` nor a file's own text."""
        read: Any = None
        with contextlib.suppress(InvalidInput, UnicodeError):
            read = parse(secret.reveal(), limit=LONGEST * 2, what="The record")
        if isinstance(read, dict) and read.get("file") == 1:
            text, name, variable = read.get("text"), read.get("name"), read.get("variable")
            if isinstance(text, str) and isinstance(name, str) and isinstance(variable, str):
                return cls(text=Secret(text), name=name, variable=variable)
        return cls.of(secret.reveal())

    def _check_text(self) -> None:
        text = self.text.reveal().decode("utf-8")
        said = self._json().get("type")
        if said in ("external_account", "impersonated_service_account", "external_account_authorized_user"):
            raise Unsupported(
                "Credentials of this kind ask other services for tokens, and can't be lent.",
                next_step="Use a service account's file, or log in: goex auth login",
            )
        if "[[secret:" in _MARK.sub("", text):
            raise InvalidInput("A secret's mark has no end.", next_step="Close each one: token = [[secret:abc]]")
        if _SIGNING.search(text):
            raise Unsupported(
                "Requests with this credential are signed with the secret, which never leaves the vault.",
                next_step="Use a token, if the service has such.",
            )
        if _PRIVATE.search(text):
            raise Unsupported(
                "The file holds a private key, and what is done with it can't be done for it.",
                next_step="Of such files Google's service accounts can be lent.",
            )
        secret = self.secret().reveal().decode("utf-8")
        if not secret or any(char.isspace() or not char.isprintable() for char in secret):
            raise InvalidInput(
                "Which part of the file is the secret isn't known.",
                next_step="Mark it in the file, as [[secret:…]]: token = [[secret:abc]]",
            )

    def _json(self) -> dict[str, Any]:
        read: Any = None
        with contextlib.suppress(InvalidInput):  # which may quote it
            read = parse(self.text.reveal(), limit=LONGEST, what="The file")
        return read if isinstance(read, dict) else {}


def token_of(secret: Secret) -> Secret:
    """The token in what is sealed of a file, where it is lent as it is; what isn't of `to_secret` is its own token.

    Raises InvalidInput for a file that only leads to tokens.
    """
    read: Any = None
    with contextlib.suppress(InvalidInput, UnicodeError):
        read = parse(secret.reveal(), limit=LONGEST * 2, what="The record")
    if not isinstance(read, dict) or read.get("file") != 1:
        return secret
    made = CredentialFile.from_secret(secret)
    if made.kind != "text":
        raise InvalidInput("This account's file isn't a credential by itself: it leads to one.")
    return made.secret()


def decoded(data: bytes) -> str:
    """A file's content as text. Raises InvalidInput, which doesn't quote it."""
    if len(data) > LONGEST:
        raise InvalidInput(f"The credential file is longer than {LONGEST} bytes.", next_step="Name the right file.")
    text: str | None = None
    with contextlib.suppress(UnicodeDecodeError):  # which holds the data
        text = data.decode("utf-8")
    if text is None or "\0" in text:
        raise InvalidInput(
            "The credential file isn't text in UTF-8.",
            next_step="Save a text in another encoding as UTF-8. A binary file, like a PKCS#12, can't be lent.",
        )
    if text.startswith("\ufeff") and not _MARK.search(text):
        raise InvalidInput(
            "The credential file begins with a byte order mark, which isn't part of a credential.",
            next_step="Save it as UTF-8 without one.",
        )
    return text


def stand_in_key() -> str:
    """A fresh private key (PEM, RSA) that nobody trusts: for files that code reads."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
