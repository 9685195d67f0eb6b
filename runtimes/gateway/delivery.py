"""One admitted request on its way: connect, acknowledge, send, read, redact, judge, report.

The daemon has acknowledged a request before its first byte leaves, and its answer before the container sees it. An
`Exchange` with status 0 means that there is no answer: if `sending` was told, what happened isn't known; if it
wasn't, the server has certainly not seen the request.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from policies.display_text import escape, shorten
from policies.errors import GoexError
from policies.jsonvalue import JsonValue, canonical
from runtimes.gateway.contract import Observer
from runtimes.gateway.plan import Exchange, GatewayPlan
from runtimes.gateway.plan_check import AccountKey, credential
from runtimes.gateway.policy import Composed, No, Policy, readable
from runtimes.gateway.redact import Redactor
from runtimes.gateway.response_values import Kind
from runtimes.gateway.upstream import Answer, BadAnswer, Link, NoAnswer, NotSent, RefusedAddress, Upstream
from vault.lease import Lease

_PASSED = frozenset({"content-type", "date", "etag", "last-modified", "retry-after"})
_RATE = re.compile(r"(x-)?ratelimit(-[a-z0-9-]{1,40})?")
_VISIBLE = re.compile(r"[\x20-\x7e]{0,4096}")
_TEXT = 2000
_IDEMPOTENT = ("GET", "HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the container gets."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Delivery:
    """The way out of one action. Holds its leases."""

    def __init__(
        self,
        plan: GatewayPlan,
        leases: Mapping[AccountKey, Lease],
        policy: Policy,
        upstream: Upstream,
        redactor: Awaitable[Redactor],
        observer: Observer,
        deadline: float,
    ) -> None:
        self._plan = plan
        self._leases = dict(leases)
        self._policy = policy
        self._upstream = upstream
        self._redactor = redactor
        self._observer = observer
        self._deadline = deadline

    async def deliver(self, composed: Composed) -> Given | No:
        """Send the request that the policy admitted, and settle it with the policy whatever happens."""
        failed = "it was broken off"
        try:
            given = await self._deliver(composed)
            failed = given.reason if isinstance(given, No) else dict(given.headers).get("x-goex-failed", "")
            return given
        finally:
            self._policy.settle(composed, failed)

    async def _deliver(self, composed: Composed) -> Given | No:
        planned = composed.planned
        lease = self._leases.get(planned.account)
        if lease is None or lease.expires <= datetime.now(UTC):
            return No("the lease of this account has ended")
        redactor = await self._redactor
        try:
            async with asyncio.timeout_at(self._deadline):
                answer = await self._ask(composed, lease, redactor)
        except RefusedAddress as error:
            return No(error.message)
        except _NotAcknowledged:
            return No("the daemon didn't take note of this request, so it isn't sent")
        except TimeoutError:
            return await self._nothing(composed, 0, "The action's time limit passed before there was an answer.")
        except BadAnswer as error:
            return await self._nothing(composed, error.status, error.message)
        except (NotSent, NoAnswer) as error:
            return await self._nothing(composed, 0, error.message)
        return await self._give(composed, answer, redactor)

    async def _ask(self, composed: Composed, lease: Lease, redactor: Redactor) -> Answer:
        planned = composed.planned
        secret = credential(planned, lease)
        link = await self._upstream.connect(planned.origin, lease.account)
        try:
            await self._observer.sending(planned.id, redactor.text(escape(composed.line)))
        except Exception as error:  # whatever stopped the daemon from noting it stops the request
            link.writer.close()
            raise _NotAcknowledged(str(error)) from error
        try:
            return await self._exchange(link, composed, secret)
        except NoAnswer:
            # A kept connection that the server had closed meanwhile says nothing about the request; only a read
            # may find out by being sent again.
            if link.fresh or planned.method not in _IDEMPOTENT:
                raise
            link = await self._upstream.connect(planned.origin, lease.account)
            return await self._exchange(link, composed, secret)

    async def _exchange(self, link: Link, composed: Composed, secret: tuple[str, str]) -> Answer:
        origin = composed.planned.origin
        return await self._upstream.exchange(link, origin, composed, secret, self._plan.max_response_bytes)

    async def _give(self, composed: Composed, answer: Answer, redactor: Redactor) -> Given:
        planned = composed.planned
        # In a thread: the answer's length is the server's choice, and other actions wait for this loop.
        body, value, kind = await asyncio.to_thread(_redacted, redactor, answer.body, self._plan.max_response_bytes)
        failed = redactor.text(self._policy.take(composed, answer.status, value, kind))
        text = "" if kind == "json" else shorten(body[: _TEXT * 4].decode("utf-8", "replace"), _TEXT)[0]
        await self._report(Exchange(
            request=planned.id, status=answer.status, well=not failed, body=value, text=text, failed=failed,
            size=len(answer.body),
        ))  # fmt: skip
        headers = [(name, redactor.text(value)) for name, value in answer.headers if _passes(name, value)]
        headers += _verdict(failed)
        if planned.method == "HEAD" or answer.status in (204, 304):
            body = b""
        return Given(status=answer.status, headers=tuple(headers), body=body)

    async def _nothing(self, composed: Composed, status: int, failed: str) -> Given:
        """There is no answer to give: say so, to the daemon and to the container."""
        await self._report(Exchange(
            request=composed.planned.id, status=status, well=False, body=None, failed=failed,
        ))  # fmt: skip
        body = canonical({"error": "goex-no-answer", "reason": failed})
        return Given(status=502, headers=(("content-type", "application/json"), *_verdict(failed)), body=body)

    async def _report(self, exchange: Exchange) -> None:
        try:
            await self._observer.answered(exchange)
        except Exception as error:
            # What the daemon couldn't keep it can't undo with: the action goes no further.
            self._policy.stop("the daemon couldn't keep an answer")
            raise Unreported("The daemon couldn't keep an answer.") from error


class Unreported(GoexError):
    """The daemon didn't take an answer, so the container doesn't get it either."""

    code = "unreported"


class _NotAcknowledged(GoexError):
    """The daemon didn't take note of a request."""


def secrets_of(plan: GatewayPlan, leases: Mapping[AccountKey, Lease]) -> list[bytes]:
    """What must not come back: each secret, what its lease names beside it and, where one is a user and password in
    base64, those too."""
    found = [each.reveal() for lease in leases.values() for each in (lease.secret, *lease.redact)]
    sent = [(one.credential_format, one.account) for one in plan.requests]
    sent += [(one.credential_format, one.account) for one in plan.rules]
    for written, account in sent:
        if written.lower().startswith("basic "):
            try:
                pair = base64.b64decode(leases[account].secret.reveal(), validate=True)
            except (binascii.Error, ValueError):
                continue
            found += [pair, pair.partition(b":")[2]]
    return found


def _redacted(redactor: Redactor, body: bytes, limit: int) -> tuple[bytes, JsonValue, Kind]:
    """A body without echoes, and what it reads as."""
    body = redactor.clean(body)
    value, kind = readable(body, limit)
    if kind == "json" and redactor.finds(canonical(value)):
        # Spelled so that only a JSON parser sees it: escapes within escapes, an encoding of an encoding.
        value = redactor.value(value)
        body = canonical(value)
    return body, value, kind


def _passes(name: str, value: str) -> bool:
    return (name in _PASSED or _RATE.fullmatch(name) is not None) and _VISIBLE.fullmatch(value) is not None


def _verdict(failed: str) -> tuple[tuple[str, str], ...]:
    if not failed:
        return (("x-goex-well", "1"),)
    said = shorten(escape(failed), 300)[0].encode("ascii", "backslashreplace").decode("ascii").strip()
    return (("x-goex-well", "0"), ("x-goex-failed", said or "it didn't go well"))
