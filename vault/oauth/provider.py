"""An authorization server, as its metadata or the person described it, and the client that GoEx is there.

Rule: every endpoint is an https URL, or http where the person allowed private places, and carries no user name or
fragment.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from policies.accounts import Origin
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonObject
from policies.typed_json import SPARSE
from vault.oauth.errors import quoted
from vault.secret import Secret, text_of

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")

_LONGEST_URL = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An authorization server. What is "" or () isn't known, or isn't there.

    `iss_in_answer`: it promises its name in every authorization response (RFC 9207). `offline`: it has the scope
    offline_access, without which such servers often give nothing to renew a token with. `separator` stands between
    scopes; a blank, except at servers that have their own way. `resource`: what its tokens are for and nothing else
    (RFC 8707), said in each request for one.
    """

    issuer: str = ""
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    device_endpoint: str = ""
    revocation_endpoint: str = ""
    registration_endpoint: str = ""
    jwks_uri: str = ""
    iss_in_answer: bool = False
    offline: bool = False
    auth_methods: tuple[str, ...] = ()
    grant_types: tuple[str, ...] = ()
    pkce_methods: tuple[str, ...] = ()
    separator: str = " "
    resource: str = ""

    @property
    def registers(self) -> bool:
        """Whether GoEx registers itself there (RFC 7591): only where the resource itself named this server, since a
        client made in passing is rarely one that a provider lets near the rest of its scopes."""
        return bool(self.registration_endpoint and self.resource)

    @property
    def indicator(self) -> dict[str, str]:
        """The parameter that says what a token is for; none where that isn't said."""
        return {"resource": self.resource} if self.resource else {}

    def same_server(self, other: Provider) -> bool:
        """Whether tokens of both may come from one server."""
        return self.token_endpoint == other.token_endpoint or (self.issuer != "" and self.issuer == other.issuer)

    def check(self, *, private: bool) -> None:
        """Raises InvalidInput for endpoints that a secret must not be sent to."""
        for name in ENDPOINTS:
            url = getattr(self, name)
            if url:
                check_url(url, private=private, what=f"The {name.replace('_', ' ')}")
        if self.resource:
            check_url(self.resource, private=private, what="The resource")
        if self.separator not in (" ", ","):
            raise InvalidInput("Scopes are separated by a blank or a comma.")

    def to_json(self) -> JsonObject:
        return {
            each.name: list(value) if isinstance(value, tuple) else value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Provider:
        """Raises TypeError or ValueError for anything else than `to_json` made."""
        read: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}
        made = cls(**read)
        for each in fields(cls):
            if type(getattr(made, each.name)) is not type(each.default):
                raise TypeError(each.name)
        return made


ENDPOINTS = (
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "device_endpoint",
    "revocation_endpoint",
    "registration_endpoint",
    "jwks_uri",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What GoEx is registered as. `auth_method` "" takes what the server names, the header before the body.
    `registered`: GoEx did so itself, for one login's redirect address."""

    client_id: str
    client_secret: Annotated[Secret, str, text_of, Secret] = field(default_factory=lambda: Secret(b""))
    auth_method: str = ""
    registered: bool = field(default=False, metadata=SPARSE)

    def method(self, provider: Provider) -> str:
        """How the client proves itself to `provider`. Raises Unsupported."""
        if self.auth_method:
            if self.auth_method not in AUTH_METHODS:
                raise Unsupported(
                    f"GoEx can't prove a client by {quoted(self.auth_method)}.",
                    next_step=f"Register one for {', '.join(AUTH_METHODS)}.",
                )
            return self.auth_method
        if not self.client_secret:
            return "none"
        wanted = AUTH_METHODS[:2]
        if provider.auth_methods and not any(each in provider.auth_methods for each in wanted):
            raise Unsupported(
                f"{quoted(provider.issuer)} takes no client secret in a header or a body.",
                next_step="Register a client without a secret (a public, native one).",
            )
        return next((each for each in wanted if not provider.auth_methods or each in provider.auth_methods), wanted[0])

    def check(self) -> None:
        """Raises InvalidInput."""
        if not self.client_id or len(self.client_id) > _LONGEST_URL or not self.client_id.isprintable():
            raise InvalidInput(
                "A login needs the client id that GoEx was registered with.", next_step="Give it with --client-id."
            )
        text = ""
        with contextlib.suppress(UnicodeDecodeError):  # which holds the secret
            text = self.client_secret.reveal().decode("utf-8")
        if self.client_secret and (not text or len(text) > _LONGEST_URL or not text.isprintable()):
            raise InvalidInput(
                f"A client secret is at most {_LONGEST_URL} visible characters, in UTF-8.",
                next_step="Give it as the provider shows it.",
            )
        if self.auth_method in AUTH_METHODS[:2] and not self.client_secret:
            raise InvalidInput("That way of proving a client needs its secret.", next_step="Give the client secret.")


def check_url(url: str, *, private: bool, what: str) -> str:
    """`url`, when it is one that a secret may be sent to. Raises InvalidInput."""
    if len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url or "#" in url:
        raise InvalidInput(
            f"{what} isn't a URL that GoEx would use.", next_step="Give an https URL without a fragment."
        )
    try:
        origin = Origin.parse(url)
    except InvalidInput as error:
        raise InvalidInput(f"{what} can't be used: {error.message}", next_step=error.next_step) from None
    if origin.scheme != "https" and not private:
        raise InvalidInput(
            f"{what} isn't https: anybody on the way could read the tokens.",
            next_step="Use https, or --private for a server on this machine or network.",
        )
    return url
