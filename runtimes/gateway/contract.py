"""How the daemon speaks with the gateway process.

The gateway process holds live leases and its own CA, never the vault's keys. When the daemon's end of the socket
pair closes it drops everything and exits; when it dies, its actions fail clearly and a new one is started.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from policies.errors import Unavailable
from runtimes.gateway.plan import Exchange, GatewayPlan, Refusal, SentRequest
from vault.lease import Lease


class GatewayFailed(Unavailable):
    """The gateway process died or can't be started."""

    code = "gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """What the daemon wants to hear. `sending` must return before a request leaves this machine (it is journaled);
    raising from it refuses the request."""

    # The request's id ("call-0"; "rule-0#3": the third that this rule let pass), "POST https://host/path" (no query, no
    # body) and, of a program's, what it says.
    sending: Callable[[str, str, SentRequest | None], Awaitable[None]]
    answered: Callable[[Exchange], Awaitable[None]]
    refused: Callable[[Refusal], Awaitable[None]]


class Gateway(Protocol):
    """The gateway as the daemon sees it."""

    async def start(self) -> None: ...

    @property
    def ca_pem(self) -> str:
        """The certificate that containers must trust: made anew in each gateway process."""
        ...

    async def open(self, plan: GatewayPlan, leases: Sequence[Lease], observer: Observer) -> str:
        """Begin to serve an action. Returns the host path of a folder that holds its socket (`gw.sock`),
        to be mounted into its container and into no other."""
        ...

    async def close(self, action_id: str) -> None:
        """Stop serving: the socket is gone and the leases are dropped when this returns. Idempotent."""
        ...

    async def stop(self) -> None: ...
