"""Logins that aren't over yet, and whether one may give back what it got without ending another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from policies.errors import GoexError
from vault.oauth.provider import Client, Provider
from vault.oauth.token_set import TokenSet


@dataclass(slots=True, eq=False)
class LoginUnderWay:
    """One login. `client` None: it is yet to be registered, under any id. `alone`: no other login of that client is at
    that server, in the vault or under way, nor was since this one began. `ends`: what may still bring its tokens, or
    keep them."""

    provider: Provider
    client: Client | None
    alone: bool
    ends: asyncio.Future[Any] | None = None

    def same_client(self, other: LoginUnderWay) -> bool:
        one, two = self.client, other.client
        may_be_one = one is None or two is None or one.client_id == two.client_id
        return may_be_one and self.provider.same_server(other.provider)


@dataclass(slots=True)
class LoginsUnderWay:
    """All of them."""

    _there: set[LoginUnderWay] = field(default_factory=set)

    def begin(self, provider: Provider, client: Client | None, kept: Iterable[TokenSet | None]) -> LoginUnderWay:
        """A login beside those that are under way, and those that are `kept`. One that can't be read may be of the same
        client."""
        try:
            alone = not any(one is not None and one.same_client(provider, client) for one in kept)
        except GoexError:
            alone = False
        login = LoginUnderWay(provider, client, alone)
        for other in self._there:
            if login.same_client(other):
                login.alone = other.alone = False
        self._there.add(login)
        return login

    def end(self, login: LoginUnderWay) -> None:
        """The person has done with it. It stays until no tokens can come any more."""
        if login.ends is None or login.ends.done():
            self._there.discard(login)
        else:
            login.ends.add_done_callback(lambda _: self._there.discard(login))
