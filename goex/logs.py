"""What a process that serves others writes of its work, to daemon.log or the person's terminal: GoEx's own words. A
library's may hold what it was given to send, a credential among it, or what a stranger sent, to command that terminal;
of its errors is written that there was one, of which type, and where. Whoever can connect may cause some: each is
written once in `TOLD_EVERY`, with how many there were since."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from policies.display_text import escape
from policies.errors import GoexError

log = logging.getLogger("goex.logs")

OURS = ("goex", "mapper", "policies", "runtimes", "vault")
TOLD_EVERY = 600.0  # seconds
DEEPEST = 5  # of what is written: what lies in it deeper is only named


class _Ours(logging.Filter):
    """Lets GoEx's own records through, and of a library's that it met an error."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[object, ...], tuple[float, int]] = {}  # by error: when, and how many since

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] not in OURS:
            if record.levelno < logging.ERROR:
                return False
            now, which = time.monotonic(), _which(record)
            at, since = self._told.get(which, (now - TOLD_EVERY, 0))
            if now - at < TOLD_EVERY:
                self._told[which] = at, since + 1
                return False
            self._told[which] = now, 0
            more = f"; {since} times more since the last time" if since else ""
            record.msg, record.args = f"met an error; what it said may hold data, and isn't written{more}", ()
            record.exc_text = record.stack_info = None
            return True
        record.msg, record.args = _own(record.msg), _own(record.args)
        return True


def _which(record: logging.LogRecord) -> tuple[object, ...]:
    """What tells one error from another: places in code alone, of which there are only so many."""
    error = record.exc_info[1] if record.exc_info else None
    at = error.__traceback__ if error is not None else None
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    raised = (type(error).__qualname__, at and at.tb_frame.f_code.co_filename, at and at.tb_lineno)
    return record.name, record.pathname, record.lineno, *raised


def _own(value: Any, deep: int = DEEPEST) -> Any:
    """What was given to be written; of a library's error, in lists and the like too, which type it is of."""
    holds = isinstance(value, Mapping | list | tuple | set | frozenset)
    if (isinstance(value, BaseException) and not isinstance(value, GoexError)) or (holds and not deep):
        return type(value).__qualname__
    if isinstance(value, Mapping):
        return {_own(name, 0): _own(each, deep - 1) for name, each in value.items()}
    own = tuple(_own(each, deep - 1) for each in value) if holds else value
    return list(own) if isinstance(value, list) else own


class _Formatter(logging.Formatter):
    """An exception's own text is written only where it is one of GoEx's. What others chose in it makes no line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escape(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(escape, _told(ei[1]))) if ei[1] is not None else ""


def _told(error: BaseException) -> list[str]:
    """The exception and those that it came of, the first first; each with where it was raised."""
    lines: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        places = [f"  at {frame.name} ({frame.filename}:{frame.lineno})" for frame in _frames(at.__traceback__)]
        said = f": {at}" if isinstance(at, GoexError) else ""
        lines = [f"{type(at).__qualname__}{said}", *places, *lines]
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return lines


def _frames(trace: TracebackType | None) -> traceback.StackSummary:
    return traceback.StackSummary.extract(traceback.walk_tb(trace), limit=-30, lookup_lines=False)


def own_words_to_stderr(level: str) -> None:
    """Write what GoEx itself logs from `level` on; what Python would write there by itself goes the same way."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Ours())
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # it would write a record's arguments
    sys.unraisablehook = lambda one: log.error("something met a defect as it ended", exc_info=one.exc_value)
    threading.excepthook = lambda one: log.error("a thread met a defect", exc_info=one.exc_value)
