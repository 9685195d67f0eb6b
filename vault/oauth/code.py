"""A login in the person's browser: authorization code with PKCE on a loopback redirect (RFC 8252, 7636, 9700).

Rules: PKCE by S256, always. One answer is taken, and only with this login's state: another state, or a second answer,
neither ends the login nor wins it. Where the server promises its name in the answer (RFC 9207) it must be there, and
wherever it is there it must be the right one, before the code is sent anywhere: so one server can't have another's
code sent to itself. Of a server whose name nobody gave it must at least be of the origin that the code goes to. With
openid, a nonce is bound in and the ID token checked. Nothing is stored here.
"""

from __future__ import annotations

import contextlib
import hmac
import queue
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from policies.accounts import Origin
from policies.errors import GoexError, InvalidInput, Unavailable
from vault.oauth import idtoken
from vault.oauth.errors import (
    AuthorizationServerBroken,
    LoginCancelled,
    LoginDenied,
    LoginTimedOut,
    MixUp,
    Refused,
    quoted,
)
from vault.oauth.http import Http, echoes
from vault.oauth.loopback import Listener, Page
from vault.oauth.provider import Client, Provider
from vault.oauth.registration import register
from vault.oauth.responses import TokenAnswer, read_token
from vault.oauth.token_requests import Clock, begin, check_login, proven, utc_now
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

OURS = frozenset(
    {
        "client_id",
        "client_secret",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "request",
        "request_uri",
        "resource",
        "response_mode",
        "response_type",
        "scope",
        "state",
    }
)
"""Parameters of the authorization request that no manifest sets."""

_CODE = re.compile(r"[ -~]{1,4096}")
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{0,200}")
_LONGEST_ANSWER = 16_384
# Issuers whose tokens are to be had at other origins, by their documentation.
_SERVES = {"https://accounts.google.com": ("https://oauth2.googleapis.com", "https://www.googleapis.com")}

_BACK = "You can close this page and go back to GoEx."
_TAKEN = Page(status=200, heading="Thank you", text=f"GoEx has the provider's answer. {_BACK}")
_DENIED = Page(status=200, heading="Not connected", text=f"Access wasn't allowed, and nothing was stored. {_BACK}")
_ENDED = Page(status=410, heading="Over", text="This login has been answered, or has ended. Start another one in GoEx.")
_STRANGE = Page(
    status=400,
    heading="Not this login",
    text="GoEx waits for another answer. If you didn't start this, close the page.",
)
_MIXED = Page(
    status=400,
    heading="Not connected",
    text="This answer isn't from the provider that was asked. Nothing was sent or stored; don't log in there again.",
)


@dataclass(frozen=True, slots=True)
class _Code:
    """The one answer that was taken."""

    value: Secret


@dataclass(slots=True)
class CodeLogin:
    """One login, listening since it was begun. `url` is where the person's browser begins.

    `wait` is called once, from any thread but an event loop's; `paste` and `cancel` from any other.
    """

    url: str = field(repr=False)  # has the state in it
    redirect_uri: str
    _provider: Provider
    _client: Client
    _asked: frozenset[str]
    _http: Http
    _clock: Clock
    _subject: str
    _alone: Callable[[], bool]
    _state: str = field(repr=False)
    _verifier: Secret
    _nonce: str = field(repr=False)
    _listener: Listener = field(repr=False)
    _answers: queue.SimpleQueue[_Code | GoexError] = field(repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _over: bool = False

    @classmethod
    def begin(
        cls,
        provider: Provider,
        client: Client | None,
        scopes: frozenset[str],
        http: Http,
        *,
        redirect_path: str = "/callback",
        extra: Mapping[str, str] | None = None,
        subject: str = "",
        alone: Callable[[], bool] = lambda: True,
        clock: Clock = utc_now,
    ) -> CodeLogin:
        """Begin to listen. Without a `client` GoEx registers itself at the provider first. `extra` goes into the
        authorization request; `subject`, where it is known, is who must log in (an earlier login's
        `TokenSet.subject`); `alone`: whether, by then, no other login is at that server by that client, so that nothing
        but this one ends when it fails (see `give_back`).

        Raises InvalidInput, Unsupported, Unavailable when nothing can listen here, and what `register` raises.
        """
        if client is None and not provider.registers:
            raise InvalidInput("A login needs a client id.", next_step="Give it with --client-id.")
        check_login(provider, client, scopes, http)
        extra = dict(extra or {})
        if not provider.authorization_endpoint:
            raise InvalidInput("The provider has no page for a login in a browser.", next_step="Use the device code.")
        if provider.pkce_methods and "S256" not in provider.pkce_methods:
            raise InvalidInput(
                f"{quoted(provider.issuer)} can't do PKCE with S256, without which a code could be stolen.",
                next_step="Use the device code, or another way to log in.",
            )
        if taken := sorted(OURS & extra.keys()):
            raise InvalidInput(f"A login's {', '.join(taken)} is GoEx's to set.", next_step="Leave it out.")
        query = parse_qsl(urlsplit(provider.authorization_endpoint).query, keep_blank_values=True)
        if taken := sorted(OURS & {name for name, _ in query}):
            # Beside ours it would stand twice, and which one counts would be the server's guess.
            raise InvalidInput(
                f"The address of the provider's page says {', '.join(taken)}, which is GoEx's to set.",
                next_step="Give the page's address without it: --authorization-endpoint https://…",
            )
        if not _PATH.fullmatch(redirect_path):
            raise InvalidInput("The redirect's path has plain characters after a slash.", next_step="Use /callback.")
        if "openid" in scopes and not provider.issuer:
            raise InvalidInput("openid needs an issuer.", next_step="Give the issuer, or leave openid out.")
        answers: queue.SimpleQueue[_Code | GoexError] = queue.SimpleQueue()
        state, nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        made: list[CodeLogin] = []
        ready = threading.Event()

        def visited(query: str) -> Page:
            ready.wait(5)
            return made[0]._visited(query) if made else _ENDED

        try:
            listener = Listener(redirect_path, visited)
        except OSError as error:
            raise Unavailable(
                f"GoEx can't listen on this machine for the login's answer: {error.strerror}.",
                next_step="Use the device code.",
            ) from None
        try:
            from vault.oauth.http_request import authorization_url

            if client is None:
                client = register(provider, listener.url, http)
            if "openid" in scopes:
                extra["nonce"] = nonce
            url = authorization_url(
                provider.authorization_endpoint,
                client_id=client.client_id,
                redirect_uri=listener.url,
                scope=provider.separator.join(sorted(scopes)),
                state=state,
                verifier=verifier,
                extra={**extra, **provider.indicator},
            )
        except BaseException:
            listener.close()
            raise
        login = cls(
            url=url,
            redirect_uri=listener.url,
            _provider=provider,
            _client=client,
            _asked=scopes,
            _http=http,
            _clock=clock,
            _subject=subject,
            _alone=alone,
            _state=state,
            _verifier=Secret(verifier),
            _nonce=nonce,
            _listener=listener,
            _answers=answers,
        )
        made.append(login)
        ready.set()
        return login

    def wait(self, timeout: float) -> TokenSet:
        """Wait, at most `timeout` seconds, for the person to finish, then fetch the tokens.

        Raises LoginTimedOut, LoginDenied, LoginCancelled, MixUp, Refused, AuthorizationServerBroken, Unreachable.
        """
        try:
            answer = self._answers.get(timeout=max(timeout, 0))
        except queue.Empty:
            answer = LoginTimedOut("Nobody finished the login in time.", next_step="Start it again.")
        finally:
            self._end()
        if isinstance(answer, GoexError):
            raise answer
        return self._tokens(answer.value)

    def paste(self, address: str) -> None:
        """The address that a browser on another machine ended on, whole. `wait` then goes on.

        Raises InvalidInput for an address that isn't this login's: it goes on waiting.
        """
        text = address.strip()
        expected = urlsplit(self.redirect_uri)
        parts = None
        with contextlib.suppress(ValueError):
            parts = urlsplit(text)
        if parts is None or len(text) > _LONGEST_ANSWER or parts[:3] != expected[:3] or parts.fragment:
            raise InvalidInput(
                "That isn't the address that this login ends on.",
                next_step=f"Copy all of the browser's address line; it begins with {self.redirect_uri}?",
            )
        page = self._visited(parts.query)
        if page in (_STRANGE, _ENDED):
            raise InvalidInput(
                "That address is of another login, or this one is over.",
                next_step="Finish the page that this login opened, then copy its last address.",
            )

    def cancel(self) -> None:
        """End it. `wait` raises LoginCancelled. Idempotent."""
        self._settle(LoginCancelled("The login was called off.", next_step="Start it again."))
        self._end()

    def _end(self) -> None:
        with self._lock:
            self._over = True
        self._listener.close()

    def _settle(self, answer: _Code | GoexError) -> bool:
        with self._lock:
            if self._over:
                return False
            self._over = True
        self._answers.put(answer)
        return True

    def _visited(self, query: str) -> Page:
        """Judge one answer. Only one with the right state counts; the first that counts is the only one."""
        if len(query) > _LONGEST_ANSWER:
            return _STRANGE
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=50)
        except ValueError:
            return _STRANGE
        said = dict(pairs)
        state = said.get("state", "")
        # Parameters must not come twice (RFC 6749 section 3.1): which one counts would be anybody's guess.
        if len(said) != len(pairs) or not hmac.compare_digest(state.encode("utf-8", "replace"), self._state.encode()):
            return _STRANGE
        answer, page = self._judge(said)
        return page if self._settle(answer) else _ENDED

    def _judge(self, said: Mapping[str, str]) -> tuple[_Code | GoexError, Page]:
        issuer = self._provider.issuer
        if ("iss" in said or self._provider.iss_in_answer) and issuer and said.get("iss") != issuer:
            what = f"is of {quoted(said['iss'])}" if "iss" in said else "doesn't say whose it is"
            return MixUp(
                f"The answer to a login at {quoted(issuer)} {what}.",
                next_step="Nothing was sent. Don't log in there again before you know why.",
            ), _MIXED
        if "error" in said:
            return _denied(said, [self._state, self._nonce]), _DENIED
        if "iss" in said and not issuer and not _serves(said["iss"], self._provider.token_endpoint):
            return MixUp(
                f"The answer is of {quoted(said['iss'])}, and its code would go to "
                f"{quoted(self._provider.token_endpoint)}.",
                next_step="Nothing was sent. If the first is your provider's own name, give it: --issuer URL "
                "--client-id ID; if not, don't log in there again.",
            ), _MIXED
        if not _CODE.fullmatch(said.get("code", "")):
            return AuthorizationServerBroken("The provider's answer has no code in it."), _DENIED
        return _Code(Secret(said["code"])), _TAKEN

    def _tokens(self, code: Secret) -> TokenSet:
        now = self._clock()
        said = self._http.ask(
            self._provider.token_endpoint,
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self.redirect_uri,
                "code_verifier": self._verifier,
                **self._provider.indicator,
            },
            provider=self._provider,
            client=self._client,
        )
        answer = _read(said, self._asked, self._provider)
        made = begin(self._provider, self._client, "code", answer, self._asked, self._http, now)
        return proven(made, self._http, self._subject, lambda: self._who(answer), alone=self._alone)

    def _who(self, answer: TokenAnswer) -> str:
        """Who logged in; "" where openid wasn't granted."""
        granted = self._asked if answer.scopes is None else answer.scopes
        if "openid" not in self._asked or "openid" not in granted:
            return ""
        return idtoken.check(
            answer.id_token,
            provider=self._provider,
            client=self._client,
            nonce=self._nonce,
            access=answer.token,
            http=self._http,
            now=self._clock(),
        )


def _serves(issuer: str, token_endpoint: str) -> bool:
    """Whether an issuer that nobody named has this token endpoint: both are of one origin, or known to be one's."""
    with contextlib.suppress(InvalidInput):
        one, other = Origin.parse(issuer), Origin.parse(token_endpoint)
        return one == other or str(other) in _SERVES.get(str(one), ())
    return False


def _read(said: Mapping[str, object], asked: frozenset[str], provider: Provider) -> TokenAnswer:
    return read_token(said, asked=asked, separator=provider.separator)


def _denied(said: Mapping[str, str], secrets: list[str]) -> GoexError:
    error, words = quoted(said["error"]), said.get("error_description", "")
    if echoes(said["error"] + words, secrets):
        return Refused("The provider refused the login, in words that repeat a secret.", next_step="Start it again.")
    why = f"{error} ({quoted(words)})" if words else error
    if said["error"] == "access_denied":
        return LoginDenied(f"Access wasn't allowed: {why}.", next_step="Log in again when you want to allow it.")
    return Refused(f"The provider refused the login: {why}.", next_step="Start it again.", error=error)
