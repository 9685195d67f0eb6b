"""One request after the other, from its rule to its answer: admitted, given its credential, told, sent, answered.

- A planned request is answered also when the container goes away, and so is a program's that changes something: undo
  stands on its answer. A read is broken off then, and so is an answer that flows.
- A body that turns out not to be allowed is never finished: the server has an unfinished request, and a closed line.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime

from policies.display_text import escape
from policies.errors import GoexError
from runtimes.gateway.admission import Admission, AskedHead, BodyWatch, Local, No, Ready, Refused, refusal_body
from runtimes.gateway.credential import AccountKey, CredentialedRequest, with_credential
from runtimes.gateway.head import BadHead
from runtimes.gateway.http_client import BadAnswer, BrokenAnswer, NoAnswer, UpstreamRequest
from runtimes.gateway.http_server import ClientConnection, ClientResponse, RequestBody
from runtimes.gateway.proxy_response import LargeAnswers, ProxiedResponse
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.report import Reporter, RequestReport
from runtimes.gateway.upstream import NotSent, RefusedAddress, Upstream
from vault.lease import Lease

JSON = [("content-type", "application/json")]


class ContainerGone(GoexError):
    """The container ended the connection."""

    code = "gone"


@dataclass(slots=True, kw_only=True)
class ProxyContext:
    """What the requests of one action share. Holds its leases."""

    leases: dict[AccountKey, Lease]
    placeholders: Collection[str]
    upstream: Upstream
    redactor: Awaitable[Redactor]
    reporter: Reporter
    deadline: float
    large: LargeAnswers = field(default_factory=LargeAnswers)


class Proxy:
    """The requests of one action: each is sent, answered here, or refused and reported."""

    def __init__(self, context: ProxyContext) -> None:
        self._context = context
        self._policy = context.reporter.policy

    async def request(self, client: ClientConnection, asked: AskedHead) -> bool:
        """One request from its head to its answer. Returns whether the connection goes on."""
        body, reply = RequestBody(client, asked.head), ClientResponse(client)
        decision = self._policy.admit(asked)
        if isinstance(decision, No):
            return await self._refuse(asked, body, reply, decision)
        if isinstance(decision, Local):
            return await self._answer_here(asked, body, reply, decision)
        request = ProxiedRequest(self._context, decision, client, body, reply)
        try:
            try:
                return await request.run()
            finally:
                self._policy.settle(decision, request.failed)
        except Refused as refused:
            return await self._refuse(asked, body, reply, refused.no)
        except ContainerGone:
            return False

    def close(self) -> None:
        self._context.leases.clear()
        self._context.upstream.close()

    async def _answer_here(self, asked: AskedHead, body: RequestBody, reply: ClientResponse, local: Local) -> bool:
        try:
            read = await body.whole(local.limit)
        except BadHead as error:
            return await self._refuse(asked, body, reply, _unframed(error))
        given = self._policy.answer(local, read)
        await reply.whole(given.status, given.headers, given.body, last=False)
        return True

    async def _refuse(self, asked: AskedHead, body: RequestBody, reply: ClientResponse, no: No) -> bool:
        where = f"{asked.origin}{asked.target.partition('?')[0]}"
        await self._context.reporter.refused(asked.head.method, where, no)
        if reply.began:
            return False  # its answer is cut off, which is all that can be said by now
        await body.drain()
        last = not body.done or self._context.reporter.over
        await reply.whole(no.status, JSON, refusal_body(no, asked.head.method, where), last=last)
        return not last


class ProxiedRequest:
    """One admitted request."""

    def __init__(
        self,
        context: ProxyContext,
        admission: Admission,
        client: ClientConnection,
        body: RequestBody,
        reply: ClientResponse,
    ) -> None:
        self._context = context
        self._admission = admission
        self._client = client
        self._body = body
        self._reply = reply
        self._report: RequestReport | None = None

    @property
    def failed(self) -> str:
        """Why it isn't well; "" when it is."""
        return "it was broken off" if self._report is None else self._report.failed

    async def run(self) -> bool:
        """Returns whether the connection goes on. Raises Refused, ContainerGone."""
        ready, watch = await self._ready()
        admission = self._admission = ready.admission
        report = self._report = RequestReport(self._context.reporter, admission, await self._context.redactor)
        lease = self._context.leases.get(admission.rule.account)
        try:
            if lease is None or lease.expires <= datetime.now(UTC):
                raise Refused(No("the lease of this account has ended", kind="lease"))
            async with asyncio.timeout_at(self._context.deadline):
                return await self._deliver(ready, watch, lease, report)
        except (RefusedAddress, Refused) as error:
            no = error.no if isinstance(error, Refused) else self._no("address", error.message)
            await report.refused(no)
            raise Refused(no) from error
        except TimeoutError:
            return await self._nothing(report, "The action's time limit passed before the answer's end.")
        except (NotSent, NoAnswer, BadAnswer) as error:
            known = error.status if isinstance(error, BadAnswer) and not isinstance(error, BrokenAnswer) else 0
            return await self._nothing(report, error.message, known)
        except (ContainerGone, OSError):
            await report.left()
            raise

    async def _ready(self) -> tuple[Ready, BodyWatch | None]:
        policy, admission = self._context.reporter.policy, self._admission
        if admission.inspect:
            try:
                found = policy.read(admission, await self._body.whole(admission.limit))
            except BadHead as error:
                raise Refused(_unframed(error)) from error
            if isinstance(found, No):
                raise Refused(found)
            return found, None
        head = admission.asked.head
        streamed = policy.stream(admission, -1 if head.chunked else head.length or 0)
        if isinstance(streamed, No):
            raise Refused(streamed)
        return streamed[0], streamed[1] if admission.body else None

    async def _deliver(self, ready: Ready, watch: BodyWatch | None, lease: Lease, report: RequestReport) -> bool:
        admission, upstream, origin = ready.admission, self._context.upstream, ready.admission.rule.origin
        try:
            request = with_credential(ready, lease)
        except GoexError as error:
            raise Refused(self._no("credential", error.message)) from error
        connection = await upstream.connect(origin, lease.account)
        try:
            await report.sending(ready)
            response = ProxiedResponse(
                admission, self._client, self._body, self._reply, report, self._context.placeholders,
                self._context.large,
            )  # fmt: skip
            call = upstream.request(connection, origin)
            try:
                await self._exchange(call, request, watch, response)
            except NoAnswer:
                # A kept connection that the server had closed meanwhile says nothing about the request; only a read
                # may find out by being sent again.
                if connection.fresh or admission.rule.method not in ("GET", "HEAD") or admission.body or call.status:
                    raise
                connection.close()
                connection = await upstream.connect(origin, lease.account, fresh=True)
                call = upstream.request(connection, origin)
                await self._exchange(call, request, watch, response)
        except BaseException:
            connection.close()
            raise
        if call.reusable:
            upstream.keep(connection)
        else:
            connection.close()
        return self._body.done and self._reply.ended

    async def _exchange(
        self, call: UpstreamRequest, request: CredentialedRequest, watch: BodyWatch | None, response: ProxiedResponse
    ) -> None:
        """Send, and give the answer back, both at once; until the answer's end, or the container's where nothing but
        the container wants the answer."""
        send = asyncio.create_task(self._send(call, request, watch))
        answer = asyncio.create_task(response.forward(call))
        gone = asyncio.create_task(self._gone(send))
        tasks = {send, answer, gone}
        try:
            left = set(tasks)
            while not answer.done():
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                if send in done:
                    send.result()
                if gone in done and not answer.done():
                    gone.result()
                    if response.for_record:
                        continue
                    raise ContainerGone("the container ended the connection")
            answer.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, call: UpstreamRequest, request: CredentialedRequest, watch: BodyWatch | None) -> None:
        """The request. A server that doesn't want the rest of it may have said so: its answer is read all the same."""
        admission = self._admission
        length = None if request.body is None else len(request.body)
        if watch is not None:
            length = -1 if admission.asked.head.chunked else admission.asked.head.length
        elif not length:
            length = 0 if admission.rule.method in ("POST", "PUT", "PATCH") else None
        headers = [("Accept-Encoding", "identity"), *request.headers]
        if admission.websocket:
            headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), *request.headers]
        with contextlib.suppress(NoAnswer):
            await call.begin(admission.rule.method, request.target, headers, length)
            if watch is None:
                await call.send(request.body or b"")
            else:
                await self._stream(call, watch)
            await call.finish()

    async def _stream(self, call: UpstreamRequest, watch: BodyWatch) -> None:
        try:
            while data := await self._body.read(self._admission.limit):
                watch.feed(data)
                await call.send(data)
            watch.finish()
        except BadHead as error:
            raise Refused(_unframed(error)) from error

    async def _gone(self, send: asyncio.Task[None]) -> None:
        """Return when the container went away."""
        await asyncio.wait({send})
        if self._admission.judged or not self._body.done or self._admission.websocket:
            await asyncio.Event().wait()
        with contextlib.suppress(OSError):
            await self._body.gone()

    async def _nothing(self, report: RequestReport, failed: str, status: int = 0) -> bool:
        """There is no answer, or not all of it: say so, to the daemon and, where that can still be, to the code."""
        headers = await report.nothing(failed, status)
        if self._reply.began:
            return False
        rule = self._admission.rule
        no = No(
            report.redactor.text(escape(failed)).rstrip("."), status=502, kind="no-answer", method_id=rule.method_id
        )
        body = refusal_body(no, rule.method, str(rule.origin))
        await self._reply.whole(502, [*JSON, *headers], body, last=True)
        return False

    def _no(self, kind: str, reason: str) -> No:
        return No(reason, kind=kind, method_id=self._admission.rule.method_id)


def _unframed(error: BadHead) -> No:
    if error.fault == "limits":
        return No(error.message, status=413, kind="size")
    return No(error.message, status=400, kind="framing")
