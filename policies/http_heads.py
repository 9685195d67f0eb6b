"""h11, for whoever reads heads of HTTP/1.1 that strangers send: they take a time in proportion to their length.

Rules: a run of blanks, which h11 itself tries to split in every way (hours for a megabyte), is read in one way; of more
lines than `MOST_LINES` none is read. h11's own module is changed: so have uvicorn, and others in the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import h11
from h11 import _abnf, _readers

__all__ = ["MOST_LINES", "h11"]

MOST_LINES = 256  # of fields in a head, or in trailers

_read = _readers._decode_header_lines


def _bounded(lines: Iterable[bytes]) -> Iterable[tuple[bytes, bytes]]:
    found = list(lines)
    if len(found) > MOST_LINES:
        raise h11.LocalProtocolError(f"more than {MOST_LINES} header lines")  # which h11 makes the peer's
    return _read(found)


def _in_one_way(pattern: str, part: str, possessive: str) -> re.Pattern[bytes]:
    if part not in pattern:
        raise ImportError("This release of h11 reads heads in another way than GoEx knows. Install h11 0.16.0.")
    return re.compile(pattern.replace(part, possessive, 1).encode())


_readers.header_field_re = _in_one_way(_abnf.header_field, ":[ \\t]*(", ":[ \\t]*+(")
_readers.chunk_header_re = _in_one_way(_abnf.chunk_header, ";.*)", ";[^\\r\\n]*+)")
_readers._decode_header_lines = _bounded
