"""An answer on its way from the server to the container: looked at whole, or without echoes while it flows.

An answer that is judged, or is one small JSON value, is looked at whole before any of it is given; all others flow, in
bounded memory. Whoever reads slowly slows down whoever writes. The JSON answer that undo reads is looked at whole
however slowly it comes, up to a size. The answer to a change is read whether or not the program is there for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from runtimes.gateway.admission import Admission, No
from runtimes.gateway.http_client import BadAnswer, Headers, UpstreamRequest
from runtimes.gateway.http_framing import BrokenBody, Unpacking
from runtimes.gateway.http_server import ClientConnection, ClientResponse, RequestBody
from runtimes.gateway.plan import MethodRule
from runtimes.gateway.report import RequestReport
from runtimes.gateway.response_filter import (
    beginning,
    content_type,
    is_json,
    passed_headers,
    planned_headers,
    redacted,
)
from runtimes.gateway.stream_redactor import Overlong, RedactedStream, StreamRedactor
from runtimes.gateway.websocket import WebSocketProxy

_SMALL = 2**20  # bytes of a program's JSON answer that is looked at whole
_SMALL_SECONDS = 3.0  # how long it may take to come
_LARGE = 8 * 2**20  # bytes of a JSON answer that is looked at whole where undo reads it
_LARGE_AT_ONCE = 2
_UNREAD = 8 * _LARGE  # bytes of large answers that wait for the program to read them
_PAUSE = 0.01  # seconds without a byte after which what is held back for more is looked at
_TEXT = 8000
_REPLAYED = frozenset(
    {"idempotent-replayed", "x-idempotent-replayed", "idempotency-replayed", "x-idempotency-replayed"}
)
_EVENTS = "text/event-stream"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")


@dataclass(slots=True)
class LargeAnswers:
    """What one action's large answers that are looked at whole take: few are collected at once, and a program that
    doesn't read them isn't given them."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LARGE_AT_ONCE))
    unread: int = 0  # bytes


class ProxiedResponse:
    """The answer to one request."""

    def __init__(
        self,
        admission: Admission,
        client: ClientConnection,
        asked: RequestBody,
        reply: ClientResponse,
        report: RequestReport,
        placeholders: Collection[str],
        large: LargeAnswers,
    ) -> None:
        self._admission = admission
        self._client = client
        self._asked = asked
        self._reply = reply
        self._report = report
        self._redactor = report.redactor
        self._placeholders = placeholders
        self._large = large
        rule = admission.rule
        self._change = isinstance(rule, MethodRule) and not rule.read
        self._for_undo = isinstance(rule, MethodRule) and rule.answered
        self._text = b""  # the first bytes of what was passed on

    @property
    def for_record(self) -> bool:
        """Whether the answer is read on where the container has gone: that to a change is, unless it flows."""
        return self._change and not self._reply.began

    async def forward(self, call: UpstreamRequest) -> None:
        """Read the answer and give it, until its end. Raises NoAnswer, BadAnswer, Refused."""
        admission, reply = self._admission, self._reply
        status, headers = await call.head(upgrade=admission.websocket)
        self._report.status = status
        self._report.replayed = any(name in _REPLAYED and value.strip().lower() == "true" for name, value in headers)
        if status == 101:
            await self._websocket(call, headers)
            return
        given = await self._headers(headers)
        if admission.rule.method == "HEAD" or status in (204, 304):
            given += await self._report.answer(None, "empty")
            length = dict(headers).get("content-length", "") if admission.rule.method == "HEAD" else ""
            await reply.begin(status, given, self._told(int(length)) if length.isdigit() else None, last=self._last)
            await reply.finish()
            return
        try:
            unpacking = Unpacking([value.strip().lower() for name, value in headers if name == "content-encoding"])
            await self._body(call, given, content_type(headers), unpacking)
        except (BrokenBody, Overlong) as error:
            raise BadAnswer(status, f"The answer can't be passed on: {error.message}.") from error

    async def _headers(self, headers: Headers) -> list[tuple[str, str]]:
        """The headers that the container gets."""
        rule, text = self._admission.rule, self._redactor.text
        if self._admission.judged:
            return planned_headers(headers, text)
        asked = f"{rule.origin}{self._admission.target.partition('?')[0]}"
        more = rule.headers if isinstance(rule, MethodRule) else ()
        given, leads = passed_headers(headers, asked, self._report.reporter.policy.covers, text, more)
        if leads:
            no = No(f"the answer leads to {leads}, which no rule has", kind="redirect", method_id=rule.method_id)
            await self._report.reporter.refused(rule.method, asked, no)
        if self._admission.dropped:
            dropped = ", ".join(name for name in self._admission.dropped if _TOKEN.fullmatch(name))
            given.append(("x-goex-dropped", dropped))
        return given

    async def _websocket(self, call: UpstreamRequest, headers: Headers) -> None:
        assert isinstance(self._redactor, StreamRedactor)
        proxy = WebSocketProxy(
            call, self._client, self._admission, self._redactor, self._placeholders, self._count
        )  # fmt: skip
        await self._reply.begin(101, proxy.agreed(headers), None, last=False)
        await proxy.run()
        await self._report.ended(well=True)

    def _told(self, length: int) -> int | None:
        """The length, as far as the container may have it: a number may be an echo, too."""
        return None if self._redactor.finds(b"%d" % length) else length

    @property
    def _last(self) -> bool:
        return not self._asked.done

    async def _body(
        self, call: UpstreamRequest, headers: list[tuple[str, str]], kind: str, unpacking: Unpacking
    ) -> None:
        length = None if unpacking.packed else call.length
        limit = self._admission.answer_limit
        if length is not None and length > limit:
            raise BadAnswer(self._report.status, f"The answer is longer than {limit} bytes.")
        early: list[bytes] = []
        if await self._whole(call, headers, kind, unpacking, early):
            return
        assert isinstance(self._redactor, StreamRedactor)
        told = -1 if length is None or self._told(length) is None else length
        await self._reply.begin(self._report.status, headers, told, last=self._last)
        stream = RedactedStream(self._redactor)
        for piece in early:
            await self._give(stream.feed(piece))
        while (data := call.ready()) != b"":
            if data is None:
                await self._wait(call, stream, 0.0 if kind == _EVENTS else _PAUSE)
                continue
            for piece in unpacking.pieces(data):
                self._count(len(piece), unpacking.packed)
                await self._give(stream.feed(piece))
                await asyncio.sleep(0)  # where both ends are quick, nothing else here waits
        unpacking.end()
        rest = stream.end()
        self._text += rest[: max(0, _TEXT - len(self._text))]
        await self._report.answer(None, "other", beginning(self._text, kind))
        await self._reply.send(rest)
        await self._reply.finish()

    async def _whole(
        self,
        call: UpstreamRequest,
        headers: list[tuple[str, str]],
        kind: str,
        unpacking: Unpacking,
        early: list[bytes],
    ) -> bool:
        """Look at the answer whole, where that can be, and give it. Returns whether that was so; else `early` has what
        was read of it."""
        length = None if unpacking.packed else call.length
        judged, most = self._admission.judged, _LARGE if self._for_undo else _SMALL
        if not judged and (not is_json(kind) or (length is not None and length > most)):
            return False
        if await self._collect(call, unpacking, early, self._admission.answer_limit if judged else _SMALL):
            given = await self._looked_at(early, kind)
        elif self._for_undo:
            async with self._large.turns:
                if not await self._collect(call, unpacking, early, most):
                    return False
                given = await self._looked_at(early, kind)
        else:
            return False
        await self._give_whole(headers, *given)
        return True

    async def _collect(self, call: UpstreamRequest, unpacking: Unpacking, into: list[bytes], most: int) -> bool:
        """Read the answer as long as it has at most `most` bytes, and one that nothing stands on as long as it comes
        quickly. Returns whether it is there."""
        waits = self._admission.judged or self._for_undo
        try:
            async with asyncio.timeout(None if waits else _SMALL_SECONDS):
                while (data := call.ready()) != b"":
                    if data is None:
                        await call.readable()
                        continue
                    for piece in unpacking.pieces(data):
                        self._count(len(piece), unpacking.packed)
                        into.append(piece)
                        await asyncio.sleep(0)
                    if self._report.size > most:
                        return False
        except TimeoutError:
            return False
        unpacking.end()
        return True

    async def _looked_at(self, body: list[bytes], kind: str) -> tuple[bytes, list[tuple[str, str]]]:
        """Report a whole answer. Returns its body without echoes, and the headers that tell what the policy says."""
        limit = self._admission.answer_limit if self._admission.judged else _LARGE
        # In a thread: the answer is the server's choice, and other actions wait for this loop.
        clean, value, read = await asyncio.to_thread(redacted, self._redactor, b"".join(body), limit)
        body.clear()
        return clean, await self._report.answer(value, read, "" if read == "json" else beginning(clean, kind))

    async def _give_whole(self, headers: list[tuple[str, str]], body: bytes, said: list[tuple[str, str]]) -> None:
        self._large.unread += len(body)
        try:
            if self._large.unread > _UNREAD:
                raise OSError("the program doesn't read its answers")
            await self._reply.whole(self._report.status, [*headers, *said], body, last=self._last)
        finally:
            self._large.unread -= len(body)

    async def _wait(self, call: UpstreamRequest, stream: RedactedStream, pause: float) -> None:
        """Until there is more; what need not wait for it is given before."""
        try:
            if not pause:
                raise TimeoutError
            async with asyncio.timeout(pause):
                await call.readable()
        except TimeoutError:
            await self._give(stream.flush())
            await call.readable()

    async def _give(self, data: bytes) -> None:
        if len(self._text) < _TEXT:
            self._text += data[: _TEXT - len(self._text)]
        await self._reply.send(data)

    def _count(self, size: int, packed: bool = False) -> None:
        self._report.size += size
        limit = self._admission.answer_limit
        if self._report.size > limit:
            how = "unpacks to more" if packed else "is longer"
            raise BadAnswer(self._report.status, f"The answer {how} than {limit} bytes.")
