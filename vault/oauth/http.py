"""The one way out to an authorization server. What comes back is JSON that was read strictly, or an error in words.

Rules: TLS verified, no redirects, public addresses only unless the person said private, size and time bounded (see
`vault.oauth.http_request`). An answer that isn't what the protocol says is refused whole. Nothing of a request, and
nothing of an answer but the server's own error words, gets into an error or a log.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, urlsplit

from policies.errors import InvalidInput
from policies.jsonvalue import canonical, parse
from vault.oauth.errors import AuthorizationServerBroken, Refused, Unreachable, quoted
from vault.oauth.provider import Client, Provider, check_url
from vault.secret import Secret

if TYPE_CHECKING:
    from vault.oauth.http_request import Failed, Reply, Resolve, Way

SECONDS = 30.0
LIMIT = 262_144
_LONGEST_WAIT = 3600.0
_ECHO = 8  # characters
_LOOKED_AT = 4096  # characters of a server's words; less than that is shown
_ERROR = re.compile(r"[ !#-\[\]-~]{1,100}")  # RFC 6749 section 5.2

Form = Mapping[str, str | Secret]


class Http:
    """Requests to authorization servers. `seconds` bounds each of them, whole; safe from several threads."""

    def __init__(
        self, *, private: bool = False, ca_pem: str = "", seconds: float = SECONDS, resolve: Resolve | None = None
    ) -> None:
        self.private = private
        self.ca_pem = ca_pem
        self._seconds = seconds
        self._resolve = resolve

    def metadata(self, url: str) -> dict[str, Any] | None:
        """A JSON document; None where there is none. Raises Unreachable, AuthorizationServerBroken, InvalidInput."""
        reply = self._get(url)
        # Sites answer unknown places with their front page, or with whatever their walls say.
        if 400 <= reply.status < 500 and reply.status != 429:
            return None
        if reply.status == 200 and reply.content_type == "text/html":
            return None
        if reply.status != 200:
            raise _odd(url, reply)
        return _object(url, reply)

    def keys(self, url: str) -> dict[str, Any]:
        """A JWK set. Raises Unreachable, AuthorizationServerBroken, InvalidInput."""
        reply = self._get(url)
        if reply.status != 200:
            raise _odd(url, reply)
        return _object(url, reply)

    def ask(self, url: str, form: Form, *, provider: Provider, client: Client) -> dict[str, Any]:
        """POST `form` to one of the provider's endpoints, as `client`. Returns the JSON of its success.

        Raises Refused (the protocol's own errors), Unreachable (also for 5xx and 429), AuthorizationServerBroken,
        InvalidInput, Unsupported.
        """
        reply = self._post(url, form, provider, client)
        body = _object(url, reply) if reply.status == 200 or 400 <= reply.status < 500 else {}
        error = body.get("error")
        if error is not None:
            raise _refused(url, error, body.get("error_description"), _secrets(form, client))
        if reply.status != 200:
            raise _odd(url, reply)
        return body

    def tell(self, url: str, form: Form, *, provider: Provider, client: Client) -> None:
        """POST `form` where a success has no content (RFC 7009). Raises what `ask` does."""
        reply = self._post(url, form, provider, client)
        if reply.status in (200, 204):
            return
        body = _object(url, reply) if 400 <= reply.status < 500 else {}
        if body.get("error") is not None:
            raise _refused(url, body["error"], body.get("error_description"), _secrets(form, client))
        raise _odd(url, reply)

    def register(self, url: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """POST a client's metadata (RFC 7591 section 3.1). Returns what the server registered. Raises what `ask` does,
        but Unsupported."""
        from vault.oauth import http_request

        check_url(url, private=self.private, what="The registration endpoint")
        try:
            reply = http_request.send_json(self._way(), "POST", url, canonical(dict(metadata)))
        except http_request.Failed as error:
            failure = error
        else:
            body = _object(url, reply) if reply.status in (200, 201) or 400 <= reply.status < 500 else {}
            if body.get("error") is not None:
                raise _refused(url, body["error"], body.get("error_description"), [])
            if reply.status not in (200, 201):
                raise _odd(url, reply)
            return body
        raise _failed(url, failure)

    def _get(self, url: str) -> Reply:
        from vault.oauth import http_request

        check_url(url, private=self.private, what="That address")
        try:
            return http_request.get(self._way(), url)
        except http_request.Failed as error:
            failure = error
        raise _failed(url, failure)

    def _post(self, url: str, form: Form, provider: Provider, client: Client) -> Reply:
        from vault.oauth import http_request

        check_url(url, private=self.private, what="That endpoint")
        method = client.method(provider)
        try:
            return http_request.post(
                self._way(),
                url,
                {name: _plain(value) for name, value in form.items()},
                client_id=client.client_id,
                secret=client.client_secret.reveal().decode("utf-8"),
                method=method,
            )
        except http_request.Failed as error:
            failure = error
        raise _failed(url, failure)

    def _way(self) -> Way:
        from policies.tls import client_context
        from vault.oauth import http_request

        return http_request.Way(
            private=self.private,
            context=client_context(self.ca_pem),
            resolve=self._resolve or http_request.system_resolve,
            seconds=self._seconds,
            limit=LIMIT,
        )


def _object(url: str, reply: Reply) -> dict[str, Any]:
    """The JSON object in a reply; {} for an error's page that isn't one. Raises AuthorizationServerBroken."""
    read: Any = None
    with contextlib.suppress(InvalidInput, UnicodeError):  # which hold the answer, and with it what may be a token
        found = parse(reply.body.decode("utf-8"), limit=LIMIT, what="The answer")
        canonical(found)  # half a character in a text of it could be neither kept nor sent
        read = found
    if isinstance(read, dict):
        return read
    if reply.status != 200:
        return {}
    what = "a web page" if reply.content_type == "text/html" else "something else than a JSON object"
    raise AuthorizationServerBroken(
        f"{_host(url)} answered with {what}.", next_step="Is that the right address of the authorization server?"
    )


def _refused(url: str, error: object, description: object, secrets: list[str]) -> Refused:
    if not isinstance(error, str) or not _ERROR.fullmatch(error) or (error not in _CODES and echoes(error, secrets)):
        raise AuthorizationServerBroken(f"{_host(url)} refused, with an error that isn't one.")
    if isinstance(description, str) and echoes(description, secrets):
        description = "it gives a reason that repeats a secret, and isn't shown"
    words = f" ({quoted(description)})" if isinstance(description, str) and description else ""
    return Refused(f"{_host(url)} refused: {quoted(error)}{words}.", next_step=_NEXT.get(error, _ELSE), error=error)


def _odd(url: str, reply: Reply) -> AuthorizationServerBroken | Unreachable:
    """The error for a status that isn't a success and says nothing more."""
    status = reply.status
    if status == 429 or status >= 500:
        wait = _seconds(reply.retry_after)
        asks = f" and wants to be left alone for {wait:.0f} seconds" if wait else ""
        # A gateway's page says nothing of what the server behind it has done.
        return Unreachable(
            f"{_host(url)} answers {status}{asks}.",
            next_step="Try again later.",
            sent=status >= 500,
            answered=True,
            seconds=wait,
        )
    if 300 <= status < 400:
        return AuthorizationServerBroken(
            f"{_host(url)} redirects elsewhere ({status}), and a secret isn't sent after that.",
            next_step="Give the address that it redirects to, if that is the server's own.",
        )
    return AuthorizationServerBroken(
        f"{_host(url)} answers {status}.", next_step="Is that the right address of the authorization server?"
    )


def _failed(url: str, failure: Failed) -> Unreachable | AuthorizationServerBroken:
    match failure.kind:
        case "address":
            return Unreachable(
                f"{_host(url)} leads to an address that isn't connected to: {failure.why}.",
                next_step="A server on this machine or network needs --private.",
            )
        case "answer":
            return AuthorizationServerBroken(f"The answer of {_host(url)} isn't read: {failure.why}.")
        case "unreachable":
            return Unreachable(
                f"{_host(url)} can't be reached: {failure.why}.",
                next_step="Check that address and your network, or try again later.",
                sent=failure.sent,
            )


def _secrets(form: Form, client: Client) -> list[str]:
    """What was sent and must not come back in words."""
    sent = [_plain(each) for each in form.values() if isinstance(each, Secret)]
    if client.client_secret:
        secret = _plain(client.client_secret)
        # As the header has them (RFC 6749 section 2.3.1), and as servers that leave the encoding out would read them.
        sent += [secret, f"{quote_plus(client.client_id)}:{quote_plus(secret)}", f"{client.client_id}:{secret}"]
    return [each for each in sent if each]


def echoes(text: str, secrets: list[str]) -> bool:
    """Whether `text` repeats a part of one of the secrets, as it is or encoded, wherever it was cut."""
    text = text[:_LOOKED_AT]
    there = {text[at : at + _ECHO] for at in range(len(text) - _ECHO + 1)}
    for secret in secrets:
        for written in _written(secret):
            if len(written) < _ECHO and written in text:
                return True
            if any(written[at : at + _ECHO] in there for at in range(len(written) - _ECHO + 1)):
                return True
    return False


def _written(secret: str) -> Iterator[str]:
    """A secret in the ways that a header, a form or a log writes it."""
    data = secret.encode("utf-8")
    yield from (secret, quote_plus(secret), quote(secret, safe=""), data.hex(), data.hex().upper())
    yield from (base64.b64encode(data).decode("ascii").rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("="))


def _plain(value: str | Secret) -> str:
    return value if isinstance(value, str) else value.reveal().decode("utf-8")


def _seconds(text: str) -> float:
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def _host(url: str) -> str:
    return quoted(urlsplit(url).hostname or "The server")


_CODES = frozenset(
    {
        "access_denied",
        "authorization_pending",
        "bad_refresh_token",
        "expired_token",
        "invalid_client",
        "invalid_client_metadata",
        "invalid_grant",
        "invalid_redirect_uri",
        "invalid_request",
        "invalid_scope",
        "invalid_target",
        "server_error",
        "slow_down",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
        "unsupported_token_type",
    }
)
"""The protocols' own words for what went wrong: they aren't anybody's secret."""

_ELSE = "Try again; if it repeats, see at the provider how the client is registered, and what it may ask for."
_BY_HAND = (
    "Register a desktop (native) app there yourself, with the redirect address http://127.0.0.1/callback, "
    "and give its id: --client-id ID"
)
_NEXT = {
    "invalid_client": "Check the client id and secret: the provider doesn't know them so.",
    "unauthorized_client": "Register the client for this kind of login at the provider.",
    "unsupported_grant_type": "The provider can't do this; log in another way.",
    "invalid_scope": "Check the scopes: the provider doesn't give all of them.",
    "access_denied": "Log in again, and allow it.",
    "invalid_redirect_uri": _BY_HAND,
    "invalid_client_metadata": _BY_HAND,
}
