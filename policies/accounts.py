"""Accounts: where a credential may go. Only the person writes these, and the vault seals them in.

An origin is `scheme://host[:port]`, normalised. Private, loopback and metadata addresses are refused unless the
account names the origin with `private`; plain `http` is possible only for such an account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from policies.databases import SERVICE, Address
from policies.errors import InvalidInput
from policies.host_names import normal_host

Format = Literal["string", "file", "basic", "oauth", "database"]

_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Scheme, host (lower case, IDNA, no trailing dot) and port, always explicit."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Origin:
        """Parse an origin or URL. Raises InvalidInput for user info, odd schemes, empty hosts, bad ports."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise InvalidInput(
                f"{text[:100]!r} isn't a URL: {error}.", next_step="Write it like https://chat.example.org."
            ) from error
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise InvalidInput(
                f"{text[:100]!r} isn't an http(s) URL.", next_step="Write it like https://chat.example.org."
            )
        if parts.username is not None or parts.password is not None:
            raise InvalidInput(
                "A URL with a user name or password in it isn't taken.", next_step="Leave them out of the URL."
            )
        return cls(parts.scheme, normal_host(parts.hostname), port or _DEFAULT_PORTS[parts.scheme])

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account of one service: everything about a credential but the secret itself.

    `format` is `string` (a token), `file` (a credential file; the thesis's two formats), `basic` (a user name and
    password), `oauth` (a login, whose tokens are sealed with the server that renews them) or `database`, which has no
    origins: its `base_url` is the database's own, without a password. `private` allows addresses that aren't public
    for exactly these origins, and such a database a connection without TLS; `ca_pem` is trusted for them instead of
    the system's.
    """

    service: str
    name: str
    origins: tuple[Origin, ...]
    base_url: str
    format: Format = "string"
    private: bool = False
    ca_pem: str = ""

    def __post_init__(self) -> None:
        if self.format == "database":
            self._check_database()
            return
        if not self.origins:
            raise InvalidInput("An account without an origin could never be used.")
        if Origin.parse(self.base_url) not in self.origins:
            raise InvalidInput(
                "An account's base URL must be within its own origins.", next_step="Add its origin, or mend the URL."
            )
        if not self.private and any(origin.scheme == "http" for origin in self.origins):
            raise InvalidInput(
                "Plain http would show the credential to the network.",
                next_step="Use https, or --private for a server on this machine or network.",
            )

    def _check_database(self) -> None:
        if self.service != SERVICE or self.origins or Address.parse(self.base_url)[0].url != self.base_url:
            raise InvalidInput("This isn't the entry of a database.", next_step="Add one with: goex db add NAME URL")

    @property
    def id(self) -> str:
        return f"{self.service}/{self.name}"
