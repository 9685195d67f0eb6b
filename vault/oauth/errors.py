"""What can go wrong between GoEx and an authorization server, each with its own name and next step.

Rules: no error carries a token, a code, a secret or what a server sent beyond its own error code and description,
shortened and escaped. What the person must do is in `next_step`. An error that a foreign library raised isn't even
kept as the context of ours: it holds the request, and the request holds the secret.
"""

from __future__ import annotations

from policies.display_text import escape
from policies.errors import Denied, ExitStatus, GoexError, Unavailable
from vault.errors import VaultError, pasteable

_LONGEST_QUOTE = 200


class OAuthError(GoexError):
    """Root of what an authorization server, or a login there, can do wrong."""

    code = "oauth"


class AuthorizationServerBroken(OAuthError):
    """The server's answer isn't what the protocol says: not used, not even in part."""

    code = "oauth-server"


class MixUp(AuthorizationServerBroken):
    """An answer, metadata or ID token is of another issuer than the one that was asked. Nothing was sent to it."""

    code = "oauth-mix-up"


class Refused(OAuthError):
    """The server answered with an error of the protocol. `error` is its code, such as `invalid_grant`."""

    code = "oauth-refused"

    def __init__(self, message: str, *, next_step: str = "", error: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.error = error


class LoginDenied(Denied):
    """The person said no on the provider's page, or the provider did."""

    code = "login-denied"


class LoginTimedOut(GoexError):
    """Nobody finished the login in time. Nothing was stored."""

    code = "login-timeout"
    exit_status = ExitStatus.TIMED_OUT


class LoginCancelled(Denied):
    """The login was called off. Nothing was stored."""

    code = "login-cancelled"


class LoginExpired(VaultError):
    """The provider takes the account's tokens no longer, and only a login by the person brings new ones."""

    code = "login-expired"


class ConsentNeeded(VaultError):
    """The account's token doesn't hold the `scopes` (spelled as at the server): the person may add them by a login."""

    code = "consent"

    def __init__(self, service: str, account: str, scopes: tuple[str, ...]) -> None:
        super().__init__(
            f"The login of {service}/{account} doesn't cover: {', '.join(scopes)}.",
            next_step=f"Allow that too: {login_command(service, account)}",
        )
        self.service = service
        self.account = account
        self.scopes = scopes


class Unreachable(Unavailable):
    """The server can't be reached, or didn't answer. `sent`: whether it may have seen, and acted on, the request.

    `answered`: it said that it can't now. `seconds`: how long it asked to be left alone; 0 when it said nothing.
    """

    code = "oauth-unreachable"

    def __init__(
        self, message: str, *, next_step: str = "", sent: bool = False, answered: bool = False, seconds: float = 0
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.sent = sent
        self.answered = answered
        self.seconds = seconds


def login_command(service: str, account: str) -> str:
    """What the person types to log in (again)."""
    return f"goex auth login {pasteable(service)} --account {pasteable(account)}"


def login_expired(service: str, account: str, why: str) -> LoginExpired:
    return LoginExpired(
        f"The login of {service}/{account} has ended: {why}.",
        next_step=f"Log in again: {login_command(service, account)}",
    )


def quoted(text: str) -> str:
    """A server's words for a person: shortened, and nothing in them acts on a terminal."""
    cut = text[:_LONGEST_QUOTE]
    return escape(cut if len(cut) == len(text) else f"{cut}…")
