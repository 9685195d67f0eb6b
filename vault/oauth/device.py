"""A login with a code that the person types elsewhere (RFC 8628): for machines without a browser.

Rules: the server's pace is kept: its interval, five seconds more at each `slow_down`, and twice the pause after each
failure of the network. The code ends when the server says so, and by its own life at the latest. Whoever shows the
code must say where it comes from: a code that somebody else sends to a person logs in that somebody.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from policies.errors import InvalidInput
from vault.oauth import idtoken
from vault.oauth.errors import LoginCancelled, LoginDenied, LoginTimedOut, Refused, Unreachable
from vault.oauth.http import Http
from vault.oauth.provider import DEVICE_GRANT, Client, Provider
from vault.oauth.responses import DeviceAnswer, TokenAnswer, read_device, read_token
from vault.oauth.token_requests import Clock, begin, check_login, proven, utc_now
from vault.oauth.token_set import TokenSet
from vault.secret import Secret

SLOWER = 5  # seconds, RFC 8628 section 3.5
_SLOWEST = 60.0


@dataclass(slots=True)
class DeviceLogin:
    """One login, begun: `user_code` is typed at `verification_url`, until `deadline` (UTC).

    `verification_url_complete` has the code in it already; "" where the server gives none. `wait` is called once, from
    any thread but an event loop's; `cancel` from any other.
    """

    user_code: str
    verification_url: str
    verification_url_complete: str
    deadline: datetime
    interval: float
    _device_code: Secret
    _provider: Provider
    _client: Client
    _asked: frozenset[str]
    _http: Http
    _clock: Clock
    _life: float
    _subject: str
    _alone: Callable[[], bool]
    _cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @classmethod
    def begin(
        cls,
        provider: Provider,
        client: Client,
        scopes: frozenset[str],
        http: Http,
        *,
        subject: str = "",
        alone: Callable[[], bool] = lambda: True,
        clock: Clock = utc_now,
    ) -> DeviceLogin:
        """Ask the server for a code. `subject`, where it is known, is who must log in; `alone`: whether, by then, no
        other login is at that server by that client, so that nothing but this one ends when it fails (see `give_back`).

        Raises what `Http.ask` does, InvalidInput when it can't do this.
        """
        check_login(provider, client, scopes, http)
        if not provider.device_endpoint:
            raise InvalidInput("The provider can't do logins by a code.", next_step="Log in with a browser.")
        if not (provider.issuer and provider.jwks_uri):
            scopes = scopes - {"openid"}  # nothing would show whose ID token it is
        form: dict[str, str | Secret] = {**provider.indicator}
        if scopes:
            form["scope"] = provider.separator.join(sorted(scopes))
        answer: DeviceAnswer = read_device(
            http.ask(provider.device_endpoint, form, provider=provider, client=client), private=http.private
        )
        return cls(
            user_code=answer.user_code,
            verification_url=answer.verification_url,
            verification_url_complete=answer.verification_url_complete,
            deadline=clock() + timedelta(seconds=answer.expires_in),
            interval=float(answer.interval),
            _device_code=answer.device_code,
            _provider=provider,
            _client=client,
            _asked=scopes,
            _http=http,
            _clock=clock,
            _life=float(answer.expires_in),
            _subject=subject,
            _alone=alone,
        )

    def wait(self, timeout: float) -> TokenSet:
        """Ask, at the server's pace and for at most `timeout` seconds, until the person has decided.

        Raises LoginTimedOut, LoginDenied, LoginCancelled, MixUp, Refused, AuthorizationServerBroken.
        """
        end = time.monotonic() + min(max(timeout, 0), self._life)
        pause = self.interval
        while True:
            left = end - time.monotonic()
            if self._cancelled.wait(max(0.0, min(pause, left))):
                raise LoginCancelled("The login was called off.", next_step="Start it again.")
            if left <= pause:
                raise LoginTimedOut("Nobody typed the code in time.", next_step="Start it again: the code is void.")
            now = self._clock()
            said: Mapping[str, Any] | None = None
            try:
                said = self._http.ask(
                    self._provider.token_endpoint,
                    {"grant_type": DEVICE_GRANT, "device_code": self._device_code, **self._provider.indicator},
                    provider=self._provider,
                    client=self._client,
                )
            except Unreachable as error:
                pause = min(max(pause * 2, error.seconds), _SLOWEST)
            except Refused as error:
                pause = self._next(error, pause)
            if said is not None:
                answer = read_token(said, asked=self._asked, separator=self._provider.separator)
                made = begin(self._provider, self._client, "device", answer, self._asked, self._http, now)
                return proven(made, self._http, self._subject, functools.partial(self._who, answer), alone=self._alone)

    def cancel(self) -> None:
        """End it. `wait` raises LoginCancelled. Idempotent."""
        self._cancelled.set()

    def _who(self, answer: TokenAnswer) -> str:
        """Who logged in, where the server says it: in this flow not every server does."""
        if "openid" not in self._asked or not answer.id_token:
            return ""
        return idtoken.check(
            answer.id_token,
            provider=self._provider,
            client=self._client,
            nonce=None,
            access=answer.token,
            http=self._http,
            now=self._clock(),
        )

    def _next(self, error: Refused, pause: float) -> float:
        match error.error:
            case "authorization_pending":
                return pause
            case "slow_down":
                return pause + SLOWER
            case "access_denied":
                raise LoginDenied("Access wasn't allowed.", next_step="Log in again when you want to allow it.")
            case "expired_token":
                raise LoginTimedOut("Nobody typed the code in time.", next_step="Start it again: the code is void.")
        raise error
