"""What an authorization server says, read. Pure: bytes were parsed before, nothing is sent or looked up here.

Rules: an answer that isn't what the protocol says is refused whole. What a token opens is what the answer *states*;
silence is kept apart from a statement (`scopes` None), since RFC 6749 lets a server stay silent when it gave all that
was asked, and others are silent because they took no notice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from policies.accounts import Origin
from policies.errors import GoexError, InvalidInput, Unsupported
from vault.oauth.errors import AuthorizationServerBroken, quoted
from vault.oauth.provider import check_url
from vault.oauth.token_set import Access
from vault.secret import Secret

ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105

_TOKEN = re.compile(r"[!-~]{1,16384}")  # RFC 6749 appendix A.12 without the blank, which no header could carry
_SCOPE = re.compile(r"[!#-\[\]-~]{1,500}")  # RFC 6749 appendix A.4
_USER_CODE = re.compile(r"[!-~][ -~]{0,38}[!-~]")
_MOST_SCOPES = 500
_KINDS = ("dpop", "mac", "pop", "n_a", "jwt", "bot", "user")
_LONGEST_LIFE = 10 * 366 * 86_400
_LONGEST_ID_TOKEN = 65_536
_LONGEST_PAUSE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAnswer:
    """A token endpoint's success. `refresh` is empty where none was given; `scopes` None: nothing was said of them."""

    token: Secret
    refresh: Secret
    scopes: frozenset[str] | None
    expires_in: int | None
    id_token: str = field(repr=False)

    def access(self, now: datetime, asked: frozenset[str]) -> Access:
        """The access token, of scopes as stated, else (RFC 6749 section 5.1) as `asked`. `now`: before the request."""
        life = timedelta(seconds=self.expires_in) if self.expires_in is not None else None
        return Access(
            token=self.token,
            scopes=asked if self.scopes is None else self.scopes,
            obtained=now,
            expires=now + life if life is not None else None,
            stated=self.scopes is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """A device authorization endpoint's success (RFC 8628 section 3.2). Times are in seconds."""

    device_code: Secret
    user_code: str
    verification_url: str
    verification_url_complete: str
    expires_in: int
    interval: int


def read_token(body: Mapping[str, Any], *, asked: frozenset[str] = frozenset(), separator: str = " ") -> TokenAnswer:
    """Raises AuthorizationServerBroken; Unsupported for a kind of token that GoEx can't use."""
    kind = body.get("token_type")
    if not isinstance(kind, str):
        raise _broken("doesn't say what kind of token it gave")
    if kind.lower() != "bearer":
        named = f"the {kind}" if kind.lower() in _KINDS else "an unknown"
        raise Unsupported(
            f"The authorization server gave a token of {named} kind, and GoEx can use bearer tokens alone.",
            next_step="Register a client for plain bearer tokens (without DPoP, MAC or mTLS).",
        )
    issued = body.get("issued_token_type", ACCESS_TOKEN_TYPE)
    if issued != ACCESS_TOKEN_TYPE:
        raise _broken("gave something else than an access token")
    id_token = body.get("id_token", "")
    if not isinstance(id_token, str) or len(id_token) > _LONGEST_ID_TOKEN:
        raise _broken("gave an ID token that isn't one")
    return TokenAnswer(
        token=_token(body.get("access_token"), "an access token"),
        refresh=_token(body["refresh_token"], "a refresh token") if body.get("refresh_token") else Secret(b""),
        scopes=read_scopes(body.get("scope"), asked=asked, separator=separator),
        expires_in=_life(body.get("expires_in")),
        id_token=id_token,
    )


def read_device(body: Mapping[str, Any], *, private: bool) -> DeviceAnswer:
    """Raises AuthorizationServerBroken."""
    user_code = body.get("user_code")
    if not isinstance(user_code, str) or not _USER_CODE.fullmatch(user_code):
        raise _broken("gave a code that nobody can type")
    life = _life(body.get("expires_in"))
    if life is None:
        raise _broken("doesn't say how long its code is good for")
    pause = body.get("interval", 5)
    if not isinstance(pause, int) or isinstance(pause, bool) or not 0 <= pause <= _LONGEST_PAUSE:
        raise _broken("doesn't say how often to ask")
    # Google's name for it is older than the RFC's.
    page = _page(body.get("verification_uri", body.get("verification_url")), private=private)
    complete = body.get("verification_uri_complete")
    complete = _page(complete, private=private) if complete else ""
    if complete and Origin.parse(complete) != Origin.parse(page):
        complete = ""  # the person is shown the page alone, and their browser isn't led to somebody else's
    return DeviceAnswer(
        device_code=_token(body.get("device_code"), "a device code"),
        user_code=user_code,
        verification_url=page,
        verification_url_complete=complete,
        expires_in=life,
        interval=max(pause, 1),
    )


def read_scopes(said: object, *, asked: frozenset[str] = frozenset(), separator: str = " ") -> frozenset[str] | None:
    """The scopes of an answer; None where it names none. Raises AuthorizationServerBroken.

    Beside the RFC's blanks, commas and lists are read, as some large providers write them: a comma separates only when
    the whole isn't itself a scope that was asked for.
    """
    if said is None:
        return None
    if isinstance(said, list):
        parts = said
    elif isinstance(said, str):
        if separator == "," or ("," in said and " " not in said and said not in asked):
            parts = re.split(r"[, ]+", said)
        else:
            parts = said.split(" ")
    else:
        raise _broken("names scopes in a way that GoEx can't read")
    found = frozenset(part for part in parts if part != "")
    if len(found) > _MOST_SCOPES or not all(isinstance(each, str) and _SCOPE.fullmatch(each) for each in found):
        raise _broken("names scopes that can't be ones")
    return found


def check_scopes(scopes: frozenset[str]) -> None:
    """What may be asked for. Raises InvalidInput."""
    for each in scopes:
        if not _SCOPE.fullmatch(each):
            raise InvalidInput(
                f"{quoted(each)} can't be a scope.", next_step="A scope has visible ASCII characters, without blanks."
            )
    if len(scopes) > _MOST_SCOPES:
        raise InvalidInput(f"A login asks for at most {_MOST_SCOPES} scopes.")


def _token(value: object, what: str) -> Secret:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise _broken(f"gave {what} that isn't one" if value is not None else f"gave no {what.split(' ', 1)[1]}")
    return Secret(value)


def _life(value: object) -> int | None:
    """Seconds; None when it isn't said. Some servers write the number as a text."""
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise _broken("says of its token's life what can't be")
    return min(value, _LONGEST_LIFE)


def _page(value: object, *, private: bool) -> str:
    if not isinstance(value, str):
        raise _broken("names no page for the code")
    try:
        return check_url(value, private=private, what="The page for the code")
    except GoexError as error:
        raise AuthorizationServerBroken(f"The page for the code can't be used: {error.message}") from None


def _broken(what: str) -> AuthorizationServerBroken:
    return AuthorizationServerBroken(
        f"The authorization server {what}.", next_step="Nothing of its answer was kept. Tell its provider."
    )
