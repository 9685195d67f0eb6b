"""Reading strangers' documents in a process of its own, which is ended when one takes too long or too much memory.

Rules: what a document costs is bounded by its length (`Pointers.spend` counts), and this holds where a bound was
forgotten: nothing of a document is parsed in the process that writes the catalog. The child is this program, started
with the interpreter's own paths alone; it gets the text and gives back a document, checked again when it is written.
"""

from __future__ import annotations

import copyreg
import os
import pickle  # between two processes of one user and one program
import resource
import selectors
import struct
import subprocess
import sys
import time
from types import MappingProxyType, TracebackType
from typing import Any, BinaryIO

from mapper.importing.document_files import Broken, Source
from mapper.importing.import_report import BadPart

SECONDS = 120.0  # of the processor, that reading one document may take
_WAITS = 5  # times as long by the clock: on a busy machine a document isn't refused for what others do
_LOOKS = 1.0  # seconds between two looks at the time that the child has taken
MEMORY = 4 << 30  # bytes of address space
_LENGTH = struct.Struct(">Q")

copyreg.pickle(MappingProxyType, lambda one: (MappingProxyType, (dict(one),)))


def start(memory: int) -> subprocess.Popen[bytes]:
    """A child that reads documents from its standard input, with so many bytes of address space."""
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "mapper.importing.reader_process", str(memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # how it ended is said; a traceback would hold parts of the document
        start_new_session=True,  # a Ctrl-C is the parent's
    )


class Apart:
    """A child that reads documents one after the other; a new one is started where the last was ended."""

    def __init__(self, *, seconds: float = 0.0, memory: int = 0) -> None:
        self._seconds = seconds or SECONDS
        self._memory = memory or MEMORY
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Apart:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def read(self, kind: str, source: Source, *more: Any) -> Any:
        """What the reader called `kind` makes of a document. Raises BadPart as it does, and where it was ended."""
        child = self._running()
        try:
            _send(child.stdin, (kind, source, more))
            good, found = pickle.loads(self._received(child))  # noqa: S301 # from a child of this program
        except TimeoutError as error:
            self._end()
            raise BadPart(f"takes more than {self._seconds:.0f} seconds to read") from error
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self._end()
            raise BadPart("takes more memory to read than a document may, or can't be read at all") from error
        except BaseException:
            self._end()
            raise
        if good:
            return found
        what, line, keys = found
        raise BadPart(what, *keys) if line is None else Broken(what, line)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._end()
            self._child = start(self._memory)
        return self._child

    def _received(self, child: subprocess.Popen[bytes]) -> bytes:
        until, most = time.monotonic() + _WAITS * self._seconds, _processor_time(child) + self._seconds
        (length,) = _LENGTH.unpack(self._exactly(child, _LENGTH.size, until, most))
        if length > self._memory:
            raise EOFError
        return self._exactly(child, length, until, most)

    def _exactly(self, child: subprocess.Popen[bytes], count: int, until: float, most: float) -> bytes:
        made = bytearray()
        file = child.stdout
        if file is None:
            raise EOFError
        with selectors.DefaultSelector() as waiting:
            waiting.register(file, selectors.EVENT_READ)
            while len(made) < count:
                if not waiting.select(min(self._seconds, _LOOKS)):
                    if time.monotonic() > until or _processor_time(child) > most:
                        raise TimeoutError
                    continue
                piece = os.read(file.fileno(), min(count - len(made), 1 << 20))
                if not piece:
                    raise EOFError
                made += piece
        return bytes(made)

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for file in (child.stdin, child.stdout):
                if file is not None:
                    file.close()
            child.wait()


def _processor_time(child: subprocess.Popen[bytes]) -> float:
    """Seconds of the processor that `child` has taken. Raises OSError when it is gone."""
    return time.clock_gettime((~child.pid << 3) | 2)  # clock_getcpuclockid(3) of Linux


def _send(file: BinaryIO | Any, value: Any) -> None:
    data = pickle.dumps(value)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def _answer(kind: str, source: Source, more: tuple[Any, ...]) -> tuple[bool, Any]:
    from mapper.importing.readers import READERS

    try:
        return True, READERS[kind](source, *more)
    except BadPart as bad:
        return False, (bad.what, bad.line if isinstance(bad, Broken) else None, bad.keys)
    except MemoryError:
        return False, ("takes more memory to read than a document may", None, ())
    except Exception as error:  # noqa: BLE001 # whatever a document brings about ends with that document
        return False, (f"can't be read ({type(error).__name__})", None, ())


def main() -> None:
    """Answer the parent until it is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while head := source.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(head)
        kind, document, more = pickle.loads(source.read(length))  # noqa: S301 # from the parent
        _send(sink, _answer(kind, document, more))


if __name__ == "__main__":
    main()
