"""A container's output: the engine's frames taken apart, kept up to a cap, and the rest counted.

No I/O here. A frame is one byte for the stream (1 stdout, 2 stderr), three zero bytes, four bytes of length, data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policies.actions import Ended
from runtimes.sandbox.contract import Result, SandboxFailed

_HEADER = 8
_NAMES = {1: "stdout", 2: "stderr"}

Output = Callable[[str, bytes], None]


class Frames:
    """Feed it bytes as they come; it yields (stream, data). Data of an unfinished frame comes out at once."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0
        self._stream = ""

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Raises SandboxFailed when this isn't the engine's framing."""
        position = 0
        while position < len(data):
            if self._left:
                chunk = data[position : position + self._left]
                position += len(chunk)
                self._left -= len(chunk)
                yield self._stream, chunk
                continue
            taken = data[position : position + _HEADER - len(self._header)]
            position += len(taken)
            self._header += taken
            if len(self._header) == _HEADER:
                self._begin()

    def _begin(self) -> None:
        name = _NAMES.get(self._header[0])
        if name is None or any(self._header[1:4]):
            raise SandboxFailed("Docker sent output in an unknown form.", began=True)
        self._stream, self._left = name, int.from_bytes(self._header[4:], "big")
        self._header.clear()


class Collector:
    """Keeps at most `cap` bytes of each stream, hands on what it keeps, counts what it doesn't."""

    def __init__(self, cap: int, output: Output | None = None) -> None:
        self._cap = cap
        self._output = output
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.cut = 0

    def add(self, stream: str, data: bytes) -> None:
        kept = self._kept[stream]
        fits = data[: self._cap - len(kept)]
        self.cut += len(data) - len(fits)
        if fits:
            kept += fits
            if self._output is not None:
                self._output(stream, bytes(fits))

    @property
    def stdout(self) -> bytes:
        return bytes(self._kept["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self._kept["stderr"])

    def result(self, ended: Ended, exit_code: int | None, seconds: float) -> Result:
        """How the job ended, with what was kept of its output."""
        return Result(
            ended=ended, exit_code=exit_code, stdout=self.stdout, stderr=self.stderr, cut=self.cut, seconds=seconds
        )
