"""Very many rows: how they come off the connection, and how the changed ones are found."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pymysql.err import OperationalError

from runtimes.sql.mariadb import bulk
from runtimes.sql.mariadb.kept import Counts, Kept
from runtimes.sql.mariadb.rows import Form

END = b"\xfe\0\0\x22\0"
LINES = ["", "N", "1,2", "x" * 8, "9" * 9, "a" * 249, "b" * 250, "c" * 2569, "d" * 70_000, "-1.5e-3,10:00:00,N"]


def stream(*contents: bytes, size: int) -> SimpleNamespace:
    """A connection that gives so many bytes of these packets at a time."""
    packets = [len(one).to_bytes(3, "little") + bytes([number % 256]) + one for number, one in enumerate(contents)]
    raw = b"".join(packets)
    pieces = iter([raw[at : at + size] for at in range(0, len(raw), size)])
    return SimpleNamespace(_rfile=SimpleNamespace(read1=lambda most: next(pieces, b"")))


def row(line: str) -> bytes:
    text = line.encode() + b"\n"
    size = len(text)
    if size < 251:
        return bytes([size]) + text
    return (b"\xfc" + size.to_bytes(2, "little") if size < 2**16 else b"\xfd" + size.to_bytes(3, "little")) + text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 256, 4099, 10**6])
def test_rows_come_whole_whatever_the_pieces(size: int) -> None:
    lines = LINES if size > 11 else LINES[:7]
    packets = [row(line) for line in lines * (300 if size > 4099 else 3)]
    assert bulk._read(stream(*packets, END, size=size)) == lines * (300 if size > 4099 else 3)


@pytest.mark.parametrize(
    ("packet", "error"),
    [
        (b"\xfb", bulk.TooLarge),
        (b"\xff\x48\x04#HY000gone", OperationalError),
        (row("a|b"), OperationalError),
    ],
)
@pytest.mark.parametrize("size", [1, 9, 10**6])
def test_what_isnt_a_row_ends_it(packet: bytes, error: type[Exception], size: int) -> None:
    with pytest.raises(error):
        bulk._read(stream(row("1,2"), packet, row("3,4"), END, size=size))


BEFORE = ["1,1,5,a", "1,12,5,b", "12,1,N,c"]


@pytest.mark.parametrize(
    ("heads", "changed"),
    [
        (["1,1,5,", "1,12,5,", "12,1,N,"], []),
        (["1,1,6,", "1,12,6,", "12,1,6,"], [0, 1, 2]),
        (["1,1,5,", "1,12,N,", "12,1,N,"], [1]),
        (["1,1,55,", "1,12,5,", "12,1,N,"], [0]),
        (["1,12,5,", "1,1,5,", "12,1,N,"], None),
        (["1,1,5,", "1,2,5,", "12,1,N,"], None),
        (["1,1,5,", "1,12,5,"], None),
        (["1,1,5,", "1,12,5,", "12,1,N,", "13,1,N,"], None),
    ],
)
def test_which_rows_changed(heads: list[str], changed: list[int] | None) -> None:
    """None: they aren't the same rows in the same order, so that they have to be compared by name."""
    form = Form("t", ("a", "b", "n", "s"), (("int", ""),) * 4, frozenset(), ("a", "b"), "-")
    kept, counted = Kept(form), Counts()
    assert kept.follow_heads(BEFORE, heads, 3, counted) == (changed is not None)
    if changed is not None:
        whole = [heads[at] + BEFORE[at].split(",", 3)[3] for at in changed]
        found = [(key, was, kept.full(was, now)) for key, was, now in kept.changed()]
        assert found == [(form.key_of(line), BEFORE[at], line) for at, line in zip(changed, whole, strict=True)]
        assert (counted.changed, counted.same) == (len(changed), 3 - len(changed))
