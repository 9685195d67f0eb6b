"""One request of code that the rules admitted: told, sent, and its answer given back while it comes.

- The daemon has taken note of a request (`passing`) before its first byte leaves, and of how it ended (`answered`)
  before the end of its answer reaches the container. An answer that is one small JSON value is looked at whole before
  any of it is given; all others flow, without echoes, in bounded memory.
- Whoever reads slowly slows down whoever writes. When the container goes away, the request is broken off.
- A body that turns out not to be allowed is never finished: the server has an unfinished request, and a closed line.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from policies.display_text import escape
from policies.errors import GoexError
from policies.jsonvalue import JsonValue
from runtimes.gateway.admission import Admission, Dressed, Ready, dress, refusal_body
from runtimes.gateway.body_streams import Incoming, Reply
from runtimes.gateway.contract import Observer
from runtimes.gateway.head import BadHead, Head
from runtimes.gateway.http_client import Call, Headers, Wires
from runtimes.gateway.http_framing import BrokenBody, Unpacking
from runtimes.gateway.plan import Exchange
from runtimes.gateway.plan_check import AccountKey
from runtimes.gateway.policy import No
from runtimes.gateway.response_filter import beginning, content_type, is_json, looked_at, passed_headers
from runtimes.gateway.rule_match import RulePolicy, Watch
from runtimes.gateway.stream_redactor import Flow, Flowing, Overlong
from runtimes.gateway.tls_streams import Messages
from runtimes.gateway.upstream import BadAnswer, NoAnswer, NotSent, RefusedAddress
from runtimes.gateway.websocket_relay import NotSaid, Talk
from vault.lease import Lease

_SMALL = 2**20  # bytes of a JSON answer that is looked at whole
_SMALL_SECONDS = 3.0  # how long it may take to come
_PAUSE = 0.01  # seconds without a byte after which what is held back for more is looked at
_WORDS = 8000
JSON = (("content-type", "application/json"),)
_EVENTS = "text/event-stream"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")

Report = Callable[[str, str, No], Awaitable[None]]


class Stop(GoexError):
    """The request isn't sent any further: it is refused."""

    code = "refused"

    def __init__(self, no: No) -> None:
        super().__init__(no.reason)
        self.no = no


class Gone(GoexError):
    """The container ended the connection."""

    code = "gone"


@dataclass(slots=True, kw_only=True)
class Way:
    """What the requests of one action share on their way out. Holds its leases."""

    leases: dict[AccountKey, Lease]
    placeholders: Collection[str]
    policy: RulePolicy
    wires: Wires
    flowing: Awaitable[Flowing]
    observer: Observer
    deadline: float
    report: Report


class Passage:
    """One admitted request."""

    def __init__(
        self, way: Way, admission: Admission, head: Head, messages: Messages, incoming: Incoming, reply: Reply
    ) -> None:
        self._way = way
        self._messages = messages
        self._admission = admission
        self._head = head
        self._incoming = incoming
        self._reply = reply
        self._told = False  # the daemon waits for how it ended
        self._size = 0
        self._words = b""
        self.status = 0

    async def run(self) -> bool:
        """Returns whether the connection goes on. Raises Stop, Gone."""
        ready, watch = await self._ready()
        lease = self._way.leases.get(ready.admission.account)
        if lease is None or lease.expires <= datetime.now(UTC):
            raise Stop(No("the lease of this account has ended", kind="lease"))
        try:
            async with asyncio.timeout_at(self._way.deadline):
                return await self._deliver(ready, watch, lease)
        except RefusedAddress as error:
            raise Stop(No(error.message, kind="address", method_id=ready.admission.rule.method_id)) from error
        except TimeoutError:
            return await self._nothing("The action's time limit passed before the answer's end.")
        except (NotSent, NoAnswer, BadAnswer) as error:
            return await self._nothing(error.message)
        except (Gone, Stop, OSError) as error:
            words = f"It was refused: {error.message}." if isinstance(error, Stop) else "The code ended the connection."
            await self._ended(well=False, failed=words)
            raise

    async def _ready(self) -> tuple[Ready, Watch | None]:
        policy, admission = self._way.policy, self._admission
        try:
            if admission.inspect:
                found = policy.read(admission, await self._incoming.whole(admission.limit))
                watch: Watch | No | None = None
            else:
                length = -1 if self._head.chunked else self._head.length or 0
                found = policy.ready(admission, length)
                watch = policy.watch(admission) if admission.body else None
        except BadHead as error:
            raise Stop(unframed(error)) from error
        for one in (found, watch):
            if isinstance(one, No):
                raise Stop(one)
        assert isinstance(found, Ready) and not isinstance(watch, No)
        return found, watch

    async def _deliver(self, ready: Ready, watch: Watch | None, lease: Lease) -> bool:
        admission = self._admission = ready.admission
        flowing = await self._way.flowing
        dressed = self._dress(ready, lease)
        wire = await self._way.wires.connect(admission.origin, lease.account)
        try:
            await self._tell(ready, flowing)
            call = Call(wire, admission.origin)
            try:
                await self._exchange(call, dressed, watch, flowing)
            except NoAnswer:
                # A kept connection that the server had closed meanwhile says nothing about the request; only a read
                # may find out by being sent again.
                if wire.fresh or admission.rule.method not in ("GET", "HEAD") or admission.body or call.status:
                    raise
                wire.close()
                wire = await self._way.wires.connect(admission.origin, lease.account, fresh=True)
                call = Call(wire, admission.origin)
                await self._exchange(call, dressed, watch, flowing)
        except BaseException:
            wire.close()
            raise
        if call.reusable:
            self._way.wires.keep(admission.origin, wire)
        else:
            wire.close()
        return self._incoming.done and self._reply.ended

    def _dress(self, ready: Ready, lease: Lease) -> Dressed:
        try:
            return dress(ready, lease)
        except GoexError as error:
            raise Stop(No(error.message, kind="credential", method_id=ready.admission.rule.method_id)) from error

    async def _tell(self, ready: Ready, flowing: Flowing) -> None:
        observer, admission = self._way.observer, ready.admission
        try:
            if observer.passing is None:
                raise NotSent("nobody takes note")
            await observer.passing(admission.id, flowing.redactor.text(escape(admission.line)), ready.passed)
        except Exception as error:  # whatever stopped the daemon from noting it stops the request
            raise Stop(No("the daemon didn't take note of this request, so it isn't sent", kind="daemon")) from error
        self._told = True

    async def _exchange(self, call: Call, dressed: Dressed, watch: Watch | None, flowing: Flowing) -> None:
        """Send, and give the answer back, both at once; until the answer's end, or the container's."""
        send = asyncio.create_task(self._send(call, dressed, watch))
        answer = asyncio.create_task(self._answer(call, flowing))
        gone = asyncio.create_task(self._gone(send))
        tasks = {send, answer, gone}
        try:
            waited = set(tasks)
            while not answer.done():
                done, waited = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if send in done:
                    send.result()
                if gone in done and not answer.done():
                    gone.result()
                    raise Gone("the container ended the connection")
            answer.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, call: Call, dressed: Dressed, watch: Watch | None) -> None:
        """The request. A server that doesn't want the rest of it may have said so: its answer is read all the same."""
        admission = self._admission
        length = None if dressed.body is None else len(dressed.body)
        if watch is not None:
            length = -1 if self._head.chunked else self._head.length
        elif not length:
            length = 0 if admission.rule.method in ("POST", "PUT", "PATCH") else None
        headers = [("Accept-Encoding", "identity"), *dressed.headers]
        if admission.websocket:
            headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), *dressed.headers]
        with contextlib.suppress(NoAnswer):
            await call.begin(admission.rule.method, dressed.target, headers, length)
            if watch is None:
                await call.send(dressed.body or b"")
            else:
                await self._stream(call, watch)
            await call.finish()

    async def _stream(self, call: Call, watch: Watch) -> None:
        try:
            while data := await self._incoming.read(self._admission.limit):
                if (no := watch.feed(data)) is not None:
                    raise Stop(no)
                await call.send(data)
            if (no := watch.finish()) is not None:
                raise Stop(no)
        except BadHead as error:
            raise Stop(unframed(error)) from error

    async def _gone(self, send: asyncio.Task[None]) -> None:
        await asyncio.wait({send})
        if not self._incoming.done or self._admission.websocket:
            await asyncio.Event().wait()
        with contextlib.suppress(OSError):
            await self._incoming.gone()

    async def _answer(self, call: Call, flowing: Flowing) -> None:
        self.status, headers = await call.head(upgrade=self._admission.websocket)
        if self.status == 101:
            await self._talk(call, headers, flowing)
            return None
        rule, text = self._admission.rule, flowing.redactor.text
        asked = f"{rule.origin}{self._admission.target.partition('?')[0]}"
        given, leads = passed_headers(headers, asked, self._way.policy.covers, text)
        if leads:
            no = No(f"the answer leads to {leads}, which no rule has", kind="redirect", method_id=rule.method_id)
            await self._way.report(rule.method, asked, no)
        if self._admission.dropped:
            given.append(
                ("x-goex-dropped", ", ".join(name for name in self._admission.dropped if _TOKEN.fullmatch(name)))
            )
        if rule.method == "HEAD" or self.status in (204, 304):
            await self._ended(well=self._well)
            length = dict(headers).get("content-length", "") if rule.method == "HEAD" else ""
            await self._reply.begin(self.status, given, int(length) if length.isdigit() else None, last=self._last)
            return await self._reply.finish()
        kind = content_type(headers)
        try:
            unpacking = Unpacking([value.strip().lower() for name, value in headers if name == "content-encoding"])
            await self._body(call, flowing, given, kind, unpacking)
        except (BrokenBody, Overlong) as error:
            raise BadAnswer(self.status, f"The answer can't be passed on: {error.message}.") from error

    async def _talk(self, call: Call, headers: Headers, flowing: Flowing) -> None:
        way, reply = self._way, self._reply
        talk = Talk(call, self._messages, self._admission, flowing, way.placeholders, self._count)
        await reply.begin(101, talk.agreed(headers), None, last=False)
        try:
            await talk.run()
        except NotSaid as refused:
            raise Stop(refused.no) from refused
        await self._ended(well=True)

    @property
    def _well(self) -> bool:
        return 200 <= self.status < 300

    @property
    def _last(self) -> bool:
        return not self._incoming.done

    async def _body(
        self, call: Call, flowing: Flowing, headers: list[tuple[str, str]], kind: str, unpacking: Unpacking
    ) -> None:
        length = None if unpacking.packed else call.length
        limit = self._admission.rule.response_bytes
        if length is not None and length > limit:
            raise BadAnswer(self.status, f"The answer is longer than {limit} bytes.")
        early: list[bytes] = []
        small = is_json(kind) and (length is None or length <= _SMALL)
        if small and await self._collect(call, unpacking, early):
            await self._whole(flowing, headers, b"".join(early), kind)
            return
        await self._reply.begin(self.status, headers, -1 if length is None else length, last=self._last)
        flow = Flow(flowing)
        for piece in early:
            await self._give(flow.feed(piece))
        while (data := call.ready()) != b"":
            if data is None:
                await self._wait(call, flow, 0.0 if kind == _EVENTS else _PAUSE)
                continue
            for piece in unpacking.pieces(data):
                self._count(len(piece))
                await self._give(flow.feed(piece))
        unpacking.end()
        rest = flow.end()
        self._words += rest[: max(0, _WORDS - len(self._words))]
        await self._ended(well=self._well, text=beginning(self._words, kind))
        await self._reply.send(rest)
        await self._reply.finish()

    async def _collect(self, call: Call, unpacking: Unpacking, into: list[bytes]) -> bool:
        """Read the answer as long as it is small and comes quickly. Returns whether it is there."""
        try:
            async with asyncio.timeout(_SMALL_SECONDS):
                while (data := call.ready()) != b"":
                    if data is None:
                        await call.readable()
                        continue
                    for piece in unpacking.pieces(data):
                        self._count(len(piece))
                        into.append(piece)
                    if self._size > _SMALL:
                        return False
        except TimeoutError:
            return False
        unpacking.end()
        return True

    async def _whole(self, flowing: Flowing, headers: list[tuple[str, str]], body: bytes, kind: str) -> None:
        # In a thread: the answer is the server's choice, and other actions wait for this loop.
        body, value, read = await asyncio.to_thread(looked_at, flowing, body, _SMALL)
        text = "" if read == "json" else beginning(body, kind)
        await self._ended(well=self._well, body=value, text=text)
        await self._reply.whole(self.status, headers, body, last=self._last)

    async def _wait(self, call: Call, flow: Flow, pause: float) -> None:
        """Until there is more; what need not wait for it is given before."""
        try:
            if not pause:
                raise TimeoutError
            async with asyncio.timeout(pause):
                await call.readable()
        except TimeoutError:
            await self._give(flow.flush())
            await call.readable()

    async def _give(self, data: bytes) -> None:
        if len(self._words) < _WORDS:
            self._words += data[: _WORDS - len(self._words)]
        await self._reply.send(data)

    def _count(self, size: int) -> None:
        self._size += size
        limit = self._admission.rule.response_bytes
        if self._size > limit:
            raise BadAnswer(self.status, f"The answer is longer than {limit} bytes.")

    async def _nothing(self, failed: str) -> bool:
        """There is no answer, or not all of it: say so, to the daemon and, where that can still be, to the code."""
        await self._ended(well=False, failed=failed)
        if self._reply.began:
            return False
        words = (await self._way.flowing).redactor.text(escape(failed))
        rule = self._admission.rule
        no = No(words.rstrip("."), status=502, kind="no-answer", method_id=rule.method_id)
        body = refusal_body(no, rule.method, str(rule.origin))
        await self._reply.whole(502, (*JSON, ("x-goex-failed", "no-answer")), body, last=True)
        return False

    async def _ended(self, *, well: bool, body: JsonValue = None, text: str = "", failed: str = "") -> None:
        """Tell the daemon how it ended, once."""
        if not self._told:
            return
        self._told = False
        try:
            redactor = (await self._way.flowing).redactor
            await self._way.observer.answered(Exchange(
                request=self._admission.id, status=self.status, well=well, body=body, text=text,
                failed=redactor.text(failed), size=self._size,
            ))  # fmt: skip
        except Exception as error:
            # What the daemon couldn't keep it can't undo with: the action goes no further.
            self._way.policy.stop("the daemon couldn't keep an answer")
            raise Unreported("The daemon couldn't keep an answer.") from error


class Unreported(GoexError):
    """The daemon didn't take an answer, so the container doesn't get its end either."""

    code = "unreported"


def unframed(error: BadHead) -> No:
    if error.fault == "limits":
        return No(error.message, status=413, kind="size")
    return No(error.message, status=400, kind="framing")
