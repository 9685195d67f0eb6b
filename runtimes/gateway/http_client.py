"""One request to a server, and its answer while it comes. Redirects aren't followed: they are answers.

Heads are written and read by h11; what follows them goes by `http_framing`.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.accounts import Origin
from policies.errors import GoexError, Unavailable
from policies.http_heads import h11
from runtimes.gateway.http_framing import Body, BrokenBody, Chunked
from runtimes.gateway.streams import Stream

_MAX_HEAD = 64 * 1024
_MOST_INTERIM = 16  # answers of 1xx before the answer

Headers = Sequence[tuple[str, str]]


class NoAnswer(Unavailable):
    """The request was sent, and what happened then isn't known."""

    code = "no-answer"


class BadAnswer(GoexError):
    """The server took the request, and its answer can't be passed on."""

    code = "bad-answer"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BrokenAnswer(BadAnswer):
    """The answer's body ended early, or isn't framed as its head says."""


class UpstreamRequest:
    """One request on a connection, and its answer. Raises NoAnswer, BadAnswer."""

    def __init__(self, stream: Stream, origin: Origin) -> None:
        self.stream = stream
        self._origin = origin
        self.status = 0
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        self._chunked = False
        self._sent = False
        self._body = Body(0)
        self._early = b""  # bytes that came with those before them
        self._lasts = False
        self._method = ""

    async def begin(self, method: str, target: str, headers: Headers, length: int | None) -> None:
        """Send the head. `length` of the body; -1: it is sent in chunks; None: there is none."""
        default = {"https": 443, "http": 80}[self._origin.scheme]
        host = f"[{self._origin.host}]" if ":" in self._origin.host else self._origin.host
        fields = [("Host", host if self._origin.port == default else f"{host}:{self._origin.port}"), *headers]
        if length is not None:
            fields.append(("Transfer-Encoding", "chunked") if length < 0 else ("Content-Length", str(length)))
        self._method = method
        self._chunked = length is not None and length < 0
        self._sent = not length
        head = self._http.send(h11.Request(method=method, target=target, headers=fields))
        if length is None:
            self._http.send(h11.EndOfMessage())
        await self._write(head or b"")

    async def send(self, data: bytes) -> None:
        """Send some of the body."""
        if data:
            await self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def finish(self) -> None:
        """The body was sent."""
        if self._chunked:
            await self._write(b"0\r\n\r\n")
        self._sent = True

    async def head(self, *, upgrade: bool = False) -> tuple[int, list[tuple[str, str]]]:
        """Status and headers (names in lower case) of the answer."""
        interim = 0
        try:
            while interim <= _MOST_INTERIM:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self.stream.read())
                elif isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                    if not upgrade:
                        raise BadAnswer(101, "The server changed the protocol, which nobody asked for.")
                    self._early = self._http.trailing_data[0]
                    return 101, _headers(event)
                elif isinstance(event, h11.Response):
                    self.status = event.status_code
                    return self._begin_body(event)
                elif isinstance(event, h11.InformationalResponse):
                    interim += 1
                else:
                    raise OSError("the connection ended")
        except (OSError, h11.RemoteProtocolError) as error:
            raise self._nothing(error) from error
        raise NoAnswer(f"{self._origin} sent more than {_MOST_INTERIM} interim answers (1xx) and no answer.")

    def _begin_body(self, head: h11.Response) -> tuple[int, list[tuple[str, str]]]:
        headers = _headers(head)
        named = dict(headers)
        if self._method == "HEAD" or head.status_code in (204, 304):
            self._body = Body(0)
        elif "transfer-encoding" in named:
            self._body = Chunked(strict=False)
        else:
            self._body = Body(int(named["content-length"]) if "content-length" in named else None)
        framed = isinstance(self._body, Chunked) or "content-length" in named or self._body.done
        closes = "close" in named.get("connection", "").lower() or head.http_version != b"1.1"
        self._lasts = framed and not closes
        self._early = self._http.trailing_data[0]
        return head.status_code, headers

    @property
    def length(self) -> int | None:
        """Bytes of the answer's body that are still to come, where that is known."""
        return self._body.left

    def ready(self) -> bytes | None:
        """What is there of the body; b"" at its end; None where it has to be waited for."""
        while not self._body.done:
            try:
                data = self._early or self.stream.ready()
            except OSError as error:
                raise self._broken("the connection broke off") from error
            if data is None:
                return None
            if content := self._take(data):
                return content
        return b""

    async def readable(self) -> None:
        """Until `ready` may have something."""
        await self.stream.readable()

    @property
    def reusable(self) -> bool:
        """Whether the next request may go the same way."""
        return self._lasts and self._sent and self._body.done and not self._body.rest and not self._early

    def early(self) -> bytes:
        """What came after the head of a 101."""
        data, self._early = self._early, b""
        return data

    def _take(self, data: bytes) -> bytes:
        self._early = b""
        try:
            if data:
                content = self._body.take(data)
                if not self._body.done:
                    self._early = self._body.rest
                return content
            self._body.end()
        except BrokenBody as error:
            raise self._broken(error.message) from error
        return b""

    async def _write(self, data: bytes) -> None:
        try:
            await self.stream.write(data)
        except OSError as error:
            raise self._nothing(error) from error

    def _nothing(self, error: Exception) -> NoAnswer:
        return NoAnswer(f"{self._origin} took the request and gave no answer: {type(error).__name__}.")

    def _broken(self, how: str) -> BrokenAnswer:
        return BrokenAnswer(self.status, f"The answer can't be read to its end: {how}.")


def _headers(head: h11.Response | h11.InformationalResponse) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
