"""What a login brought: the tokens, and everything that says where and how they may be renewed.

Rules: tokens and the provider and client that they belong to are one record, sealed together, so that no edit of a
configuration can send them elsewhere. Scopes are as the server spells them. `granted` is what the server *said*, never
what was asked for. What is kept of a token's life is in UTC, by this machine's clock.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from policies.typed_json import from_json, to_json
from vault.oauth.provider import Client, Provider
from vault.secret import Secret

Flow = Literal["code", "device", "client_credentials"]
Narrows = Literal["unknown", "refresh", "exchange", "no"]

PROTOCOL_SCOPES = frozenset({"offline_access"})
"""Scopes that open nothing at the service: they say how tokens are given."""

_FORMAT = 1
_LIMIT = 65_536
_SKEW = timedelta(seconds=60)
_UNSAID_LIFE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One access token. `expires` None: the server doesn't say, and it is taken as one that lasts.

    `stated`: the server said which scopes it has. Unstated, `scopes` is what was asked for, and nothing shows that the
    server took notice of it: such a token is never said to be held to them.
    """

    token: Secret
    scopes: frozenset[str]
    obtained: datetime
    expires: datetime | None
    stated: bool = False

    def fresh(self, now: datetime, wanted: timedelta = timedelta(0)) -> bool:
        """Whether it is good for `wanted`, or at least for half of its life (which may be shorter than that).

        A clock that was set back makes it stale: then its age can't be known.
        """
        if now < self.obtained - _SKEW:
            return False
        if self.expires is None:
            return True
        life = self.expires - self.obtained
        return self.expires - now > min(wanted, life / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A renewal that was begun, and whose answer may have been lost. `deposit` opens an answer that came too late."""

    at: datetime
    deposit: Secret = field(default_factory=lambda: Secret(b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """A login's tokens. `family` names the login: it stays over renewals and changes with the next login.

    `asked` are the scopes that were asked for, `access.scopes` those of the present token, `granted` those of the
    login: what a renewal can bring back. `narrows` is what was seen of the server: whether it narrows a token, and how.
    `ended` says why the login has ended, "" while it lives. `private` and `ca_pem` are how its server is reached.
    """

    provider: Provider
    client: Client
    flow: Flow
    family: str
    access: Access
    refresh: Secret = field(default_factory=lambda: Secret(b""))
    asked: frozenset[str]
    granted: frozenset[str]
    subject: str = ""
    private: bool = False
    ca_pem: str = ""
    narrows: Narrows = "unknown"
    pending: Pending | None = None
    ended: str = ""

    @property
    def dropped(self) -> frozenset[str]:
        """What was asked for and wasn't granted: servers drop scopes without a word."""
        return self.asked - self.granted

    @property
    def expires(self) -> datetime | None:
        """When the present access token ends; None when the server didn't say."""
        return self.access.expires

    @property
    def renews(self) -> bool:
        """Whether GoEx can get another access token without the person."""
        return bool(self.refresh) or self.flow == "client_credentials"

    def same_client(self, provider: Provider, client: Client | None) -> bool:
        """Whether these may be of that server and client. None: one that is yet to be registered, under any id."""
        if client is not None and client.client_id != self.client.client_id:
            return False
        return self.provider.same_server(provider)

    def fresh(self, now: datetime, wanted: timedelta = timedelta(0)) -> bool:
        """Whether the present access token will do for `wanted`."""
        if self.access.expires is None and self.renews:
            return _SKEW * -1 <= now - self.access.obtained < _UNSAID_LIFE
        return self.access.fresh(now, wanted)

    def stale(self) -> TokenSet:
        """The same, with an access token that nobody will take for fresh."""
        return replace(self, access=replace(self.access, obtained=_LONG_AGO, expires=_LONG_AGO))

    def to_secret(self) -> Secret:
        """The whole as one secret, for the vault."""
        return Secret(
            canonical(
                {
                    "v": _FORMAT,
                    "provider": dict(self.provider.to_json()),
                    "client": to_json(self.client),
                    "flow": self.flow,
                    "family": self.family,
                    "access": {
                        "token": _shown(self.access.token),
                        "scopes": sorted(self.access.scopes),
                        "obtained": self.access.obtained.isoformat(),
                        "expires": self.access.expires.isoformat() if self.access.expires else None,
                        "stated": self.access.stated,
                    },
                    "refresh": _shown(self.refresh),
                    "asked": sorted(self.asked),
                    "granted": sorted(self.granted),
                    "subject": self.subject,
                    "private": self.private,
                    "ca_pem": self.ca_pem,
                    "narrows": self.narrows,
                    "pending": (
                        {"at": self.pending.at.isoformat(), "deposit": self.pending.deposit.reveal().hex()}
                        if self.pending
                        else None
                    ),
                    "ended": self.ended,
                }
            )
        )

    @classmethod
    def from_secret(cls, secret: Secret) -> TokenSet:
        """Raises InvalidInput, which quotes nothing, for anything else than `to_secret` made."""
        made: TokenSet | None = None
        with contextlib.suppress(InvalidInput, KeyError, TypeError, ValueError, AttributeError):
            made = cls._read(secret)
        if made is None:  # raised here, so that the error doesn't carry the one that quotes the secret
            raise InvalidInput(
                "The tokens of this account aren't in a form that this GoEx knows.", next_step="Log in again."
            )
        return made

    @classmethod
    def _read(cls, secret: Secret) -> TokenSet:
        read = parse(secret.reveal(), limit=_LIMIT, what="The record")
        access, pending = read["access"], read["pending"]
        if read["v"] != _FORMAT or read["flow"] not in get_args(Flow) or read["narrows"] not in get_args(Narrows):
            raise ValueError("format")
        return cls(
            provider=Provider.from_json(read["provider"]),
            client=from_json(Client, read["client"], "The client"),
            flow=read["flow"],
            family=_text(read["family"]),
            access=Access(
                token=Secret(_text(access["token"])),
                scopes=_scopes(access["scopes"]),
                obtained=_time(access["obtained"]),
                expires=_time(access["expires"]) if access["expires"] is not None else None,
                stated=access.get("stated") is True,
            ),
            refresh=Secret(_text(read["refresh"])),
            asked=_scopes(read["asked"]),
            granted=_scopes(read["granted"]),
            subject=_text(read["subject"]),
            private=read["private"] is True,
            ca_pem=_text(read["ca_pem"]),
            narrows=read["narrows"],
            pending=(
                Pending(at=_time(pending["at"]), deposit=Secret(bytes.fromhex(pending["deposit"])))
                if pending is not None
                else None
            ),
            ended=_text(read["ended"]),
        )


_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def _shown(secret: Secret) -> str:
    return secret.reveal().decode("utf-8")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _scopes(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise TypeError("scopes")
    return frozenset(_text(each) for each in value)


def _time(value: object) -> datetime:
    made = datetime.fromisoformat(_text(value))
    if made.tzinfo is None:
        raise ValueError("zone")
    return made
