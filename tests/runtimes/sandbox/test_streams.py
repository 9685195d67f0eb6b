"""Frames come apart however they are cut; the cap holds for each stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.sandbox.contract import SandboxFailed
from runtimes.sandbox.output_frames import Collector, Frames

FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12)


@given(FRAMES, st.lists(st.integers(1, 30), max_size=60), st.integers(1, 60))
def test_any_cut_of_the_bytes_gives_the_same_output(frames: list[tuple[int, bytes]], cuts: list[int], cap: int) -> None:
    wire = b"".join(bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for stream, data in frames)
    parser, handed = Frames(), {"stdout": b"", "stderr": b""}

    def output(stream: str, data: bytes) -> None:
        handed[stream] += data

    collector = Collector(cap, output)
    position = 0
    for step in [*cuts, len(wire)]:
        for stream, data in parser.feed(wire[position : position + step]):
            collector.add(stream, data)
        position += step
    out = b"".join(data for stream, data in frames if stream == 1)
    err = b"".join(data for stream, data in frames if stream == 2)
    assert (collector.stdout, collector.stderr) == (out[:cap], err[:cap])
    assert handed == {"stdout": out[:cap], "stderr": err[:cap]}
    assert collector.cut == len(out[cap:]) + len(err[cap:])


@pytest.mark.parametrize("header", [b"\x00\0\0\0\0\0\0\1", b"\x03\0\0\0\0\0\0\1", b"\x01\0\0\1\0\0\0\1", b"HTTP/1.1"])
def test_another_framing_is_refused(header: bytes) -> None:
    with pytest.raises(SandboxFailed) as caught:
        list(Frames().feed(header))
    assert caught.value.began
