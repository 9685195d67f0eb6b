"""Echoes of a secret, taken out of an answer while it flows, in constant memory.

The same echoes as `redactor` finds are found, wherever the pieces are cut; each is overwritten, so that no length
changes and a length that was promised stays true. The rules:

- What is passed on holds no echo, and isn't the beginning of one that is still to end: the last bytes wait. An echo
  with ordinary escapes is at most `tail` long, so that many wait while more comes at once (`feed`).
- Where more isn't there yet (`flush`), only what may be the beginning of an echo waits: for bytes or for the end.
- Escapes and separators may be repeated without end, and an echo may be drawn out with them. Where a long run of
  those is among the last bytes, what has begun is looked for exactly; where that becomes longer than `MAX_WAITING`,
  the answer isn't passed on any further (`Overlong`).
- What an echo is overwritten with can't be a part of any echo, so that no new one comes together around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from policies.errors import GoexError, Unsupported
from runtimes.gateway.partial_echo import PartialEcho
from runtimes.gateway.redaction_prefilter import LOOKED_FOR, Matcher, Prefilter, encodings_alphabet
from runtimes.gateway.redactor import Redactor

MAX_WAITING = 2**20
_BLOCK = 32 * 1024  # bytes that wait at most for ordinary echoes, of ordinary secrets
_LONGEST_PART, _SHORTEST_PART = 1024, 400  # bytes of one spelled character that count as ordinary
_WORD = b"[redacted]"
_FILLERS = b"*~^|!?$@<>(){}\"'`.\x1a\xff\xfe\xfd\xfc\xc0\xc1"
_EVENT = 2  # characters of base64 at the end of a line (a server-sent event) that are passed on all the same


class Overlong(GoexError):
    """The answer can't be passed on in constant memory without a risk."""

    code = "overlong"


class StreamRedactor(Redactor):
    """A redactor for whole answers and for streams. Raises Unsupported for secrets that can't be overwritten."""

    def __init__(self, secrets: Iterable[bytes], ordinary: int | None = None) -> None:
        """`ordinary`: bytes that one spelled character may take before it counts as drawn out."""
        values = {secret for secret in secrets if secret}
        self.prefilter = Prefilter(values)
        super().__init__(values, self.prefilter.may_hold if self.prefilter.works else None)
        self.partial = PartialEcho(values)
        # Every character is one part; in base64, a third more.
        parts = max((len(value) * 4 // 3 + 4 for value in values), default=0)
        ordinary = ordinary or min(_LONGEST_PART, max(_SHORTEST_PART, _BLOCK // max(1, parts)))
        self.tail = parts * ordinary
        self.near = min(self.tail, LOOKED_FOR * ordinary)
        self.waiting = max(MAX_WAITING, 2 * self.tail)
        self.runs = _Runs((ordinary - 100) // 2)
        alphabet = encodings_alphabet(values)
        self.filler = next((bytes([one]) for one in _FILLERS if one not in alphabet), None)
        if self.filler is None:
            raise Unsupported("A secret of this action has every character, so no echo of it can be overwritten.")
        plain = not alphabet.intersection(b"[]") and not self.finds(_WORD)
        self.word = _WORD if plain else b""

    def drop(self) -> None:
        """Let go of the secrets: nothing more is passed on."""
        super().drop()
        self.partial.drop()

    def mask(self, length: int) -> bytes:
        assert self.filler is not None
        return self.word.ljust(length, self.filler) if len(self.word) <= length else self.filler * length


class RedactedStream:
    """One answer's body."""

    def __init__(self, redactor: StreamRedactor) -> None:
        self._of = redactor
        self._at = 0  # where in the stream what is held begins
        self._last = 0  # no echo is in what comes after this, as far as it has come
        self._held = bytearray()
        self._sent = 0  # of what is held, the bytes that were passed on already: they may begin an echo all the same
        self._look_at = 0
        self.echoes = 0

    @property
    def waiting(self) -> int:
        """Bytes that were taken and not yet passed on."""
        return len(self._held) - self._sent

    def feed(self, data: bytes) -> bytes:
        """Take bytes; returns those that can be passed on while more is to come. Raises Overlong."""
        self._look(data)
        if len(data) >= self._of.tail and not self._may_hold() and not self._of.runs.among(data[-self._of.tail :]):
            return self._pass(data)
        self._held += data
        end = self._clean(final=False)
        length = len(self._held)
        keep = min(end, max(0, length - self._of.tail))
        if keep and self._among_the_last():
            if length < min(self._look_at, self._of.waiting):
                return b""
            keep = min(keep, self._of.partial.find(bytes(self._held)))
            # A run that goes on is looked at again when there is twice as much.
            self._look_at = 0 if keep else 2 * length
        return self._release(keep)

    def _pass(self, data: bytes) -> bytes:
        """What is held, and of `data`, in which no echo is or begins, all but the last bytes: copied once."""
        cut = len(data) - self._of.tail
        with memoryview(self._held) as held, memoryview(data) as view:
            passed = b"" if self._of.dropped else b"".join((held[self._sent :], view[:cut]))
            self._at += len(held) + cut
        self._held[:] = data[cut:]
        self._sent = self._look_at = 0
        return passed

    def _may_hold(self) -> bool:
        """Whether an echo may be in what is held and what comes with it."""
        return self._last > self._at

    def _look(self, data: bytes) -> None:
        """Look quickly at what comes, and over the border to what is held. What is drawn out may go unseen there."""
        near, prefilter = self._of.near, self._of.prefilter
        border = bytes(self._held[-near:]) + data[:near] if near else b""
        seen = prefilter.may_hold(border) or (len(data) > near and prefilter.may_hold(data))
        if seen or self._of.runs.among(border):
            self._last = self._at + len(self._held) + len(data)

    def flush(self) -> bytes:
        """Everything that can be passed on now, since it may be long until more comes. Raises Overlong."""
        if not self.waiting:
            return b""
        end = self._clean(final=False)
        held = bytes(self._held)
        keep = min(end, self._of.partial.find(held))
        rest = held[keep:]
        if keep < len(held) and rest.endswith(b"\n") and len(rest.strip()) <= _EVENT and not self._of.finds(rest):
            # The end of an event or of a line, and a letter or two of base64 before it.
            return self._release(keep, also=len(held) - keep)
        return self._release(keep)

    def end(self) -> bytes:
        """What is left, at the end of the answer."""
        self._clean(final=True)
        return self._release(len(self._held))

    def _among_the_last(self) -> bool:
        with memoryview(self._held) as held, held[-self._of.tail :] as last:
            return self._of.runs.among(last)

    def _release(self, keep: int, also: int = 0) -> bytes:
        """Pass on what stands before `keep`, and `also` that many bytes after it, which stay to be looked at."""
        if len(self._held) - keep > self._of.waiting:
            raise Overlong("the answer holds something that could go on as an echo of the secret without an end")
        if self._of.dropped:
            return b""
        passed = bytes(memoryview(self._held)[self._sent : keep + also])
        self._sent = max(self._sent, keep + also) - keep
        del self._held[:keep]
        self._at += keep
        return passed

    def _clean(self, *, final: bool) -> int:
        """Overwrite the echoes that are there. Returns where those begin that may still grow (or the length)."""
        held = self._held
        if not self._may_hold():
            return len(held)
        while True:
            growing = len(held)
            again = False
            for start, end in self._of.spans(bytes(held)):
                begin = max(start, self._sent)
                if end == len(held) and not final:
                    growing = min(growing, start)  # base64 after it would be taken in with it
                    continue
                if begin >= end:
                    continue
                held[begin:end] = self._of.mask(end - begin)
                self.echoes += 1
                again = True
            if not again:
                return growing


class _Runs:
    """Whatever a spelling may repeat without end, often enough to draw out an echo beyond the ordinary."""

    def __init__(self, length: int) -> None:
        half = max(1, length // 2)
        ways = (rb"\\{%d}" % length, b"(?:25){%d}" % half, b"0{%d}" % length, rb"(?:[ :,\-]|\\x|%%|0x){%d}" % half)
        self._matcher = Matcher(ways, secret=False)
        self._slow = re.compile(b"|".join(ways))

    def among(self, data: bytes | memoryview) -> bool:
        return self._matcher.finds(data) if self._matcher.works else self._slow.search(data) is not None
