"""Wherever an answer is cut, no echo comes out; what isn't one does, unchanged, and as long as it was."""

from __future__ import annotations

import functools
import json
import os
import random
import sys
import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.gateway.partial_echo import PartialEcho
from runtimes.gateway.redaction_prefilter import Prefilter
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.stream_redactor import MAX_WAITING, Overlong, RedactedStream, StreamRedactor
from tests.runtimes.gateway.echoes import ENCODINGS
from tests.support.pace import pace

TOKEN = b"xoxb-2093847561-9f8e7d6c/+AbCdEfGhIjKl"
SECRETS = {
    "token": TOKEN,
    "json": b'{"a": "b%25\'<&>", "c": "\\\\n"}',
    "unicode": "pässwörd 秘密 🔑 + x".encode(),
    "bytes": bytes(range(0, 256, 11)),
    "short": b"abc",
}
PLAIN = json.dumps({"ok": True, "text": "a %20 b \\u00e9 &amp; c\n" * 40, "n": list(range(50))}).encode()

# How the answer comes: sizes of pieces, and after which of them the rest is waited for.
pieces = st.lists(st.tuples(st.integers(1, 400), st.booleans()), min_size=1, max_size=30)


@functools.cache
def flowing(secret: bytes) -> StreamRedactor:
    return StreamRedactor([secret], ordinary=130)


@functools.cache
def exact(secret: bytes) -> Redactor:
    """What finds echoes without a quick look beforehand."""
    return Redactor([secret])


def flow(data: bytes, cuts: Iterable[tuple[int, bool]], of: StreamRedactor) -> bytes:
    one, out, at = RedactedStream(of), [], 0
    for size, waits in cuts:
        out.append(one.feed(data[at : at + size]))
        if waits:
            out.append(one.flush())
        at += size
    return b"".join([*out, one.feed(data[at:]), one.end()])


@pytest.mark.parametrize("which", SECRETS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_the_sieve_lets_nothing_through_that_is_an_echo(name: str, which: str) -> None:
    secret = SECRETS[which]
    prefilter, redactor = flowing(secret).prefilter, exact(secret)
    for before in (b"", b"ab", b"\\", os.urandom(50), PLAIN):
        data = before + ENCODINGS[name](secret) + PLAIN
        if redactor.finds(data):
            assert prefilter.may_hold(data)


@pytest.mark.sampled(11)
@pytest.mark.promise(54)
@pytest.mark.parametrize("which", ["token", "json", "unicode", "bytes"])
@pytest.mark.parametrize("name", ENCODINGS)
@settings(max_examples=12)
@given(cuts=pieces, before=st.binary(max_size=20), after=st.binary(max_size=20), number=st.integers(0, 2**32))
def test_no_split_lets_an_echo_through(
    name: str, which: str, cuts: list[tuple[int, bool]], before: bytes, after: bytes, number: int
) -> None:
    of, echo = flowing(SECRETS[which]), ENCODINGS[name](SECRETS[which])
    filling = random.Random(number).choice([b"", PLAIN, b"\n\n", b"%25", b"\\" * 40, echo, echo[: len(echo) // 2]])
    data = before + filling + echo + filling + after + echo + after
    out = flow(data, cuts, of)
    assert len(out) == len(data)
    assert not exact(SECRETS[which]).finds(out)
    if exact(SECRETS[which]).finds(echo):
        assert echo not in out


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_cut_in_two_and_every_byte_alone(name: str) -> None:
    of = flowing(TOKEN)
    data = b"data: <" + ENCODINGS[name](TOKEN) + b">\n\n"
    whole = flow(data, [], of)
    for at in range(0, len(data), 3):
        assert flow(data, [(at, True)], of) == whole
    byte_by_byte = flow(data, [(1, True)] * len(data), of)
    assert not exact(TOKEN).finds(byte_by_byte)
    assert len(byte_by_byte) == len(data)


@pytest.mark.promise(54)
@pytest.mark.parametrize("which", ["token", "json", "unicode", "bytes"])
@pytest.mark.parametrize("name", ["percent", "html, hex", "json, every character", "hex", "base64 in lines"])
def test_a_wait_anywhere_before_and_in_an_echo(name: str, which: str) -> None:
    """After what is like a part of one: backslashes, a percent sign, a letter, a line's end."""
    of, echo = flowing(SECRETS[which]), ENCODINGS[name](SECRETS[which])
    for before in (b"\\" * 5, b"%25", b"&#", b"A\n", echo[: len(echo) // 2], b" " * 90):
        for at in range(len(before) + 12):
            out = flow(before + echo + before, [(at, True)], of)
            assert not exact(SECRETS[which]).finds(out)


@settings(max_examples=40)
@given(data=st.binary(max_size=3000), cuts=pieces)
def test_what_holds_no_echo_comes_out_as_it_is(data: bytes, cuts: list[tuple[int, bool]]) -> None:
    for secret in (TOKEN, SECRETS["unicode"]):
        assert not Redactor([secret]).finds(data)
        assert flow(data, cuts, flowing(secret)) == data


def test_only_the_echo_is_overwritten() -> None:
    out = flow(b"<" + TOKEN + b">" + PLAIN, [(9, True), (5, False)], flowing(TOKEN))
    assert out.startswith(b"<[redacted]")
    assert out.endswith(b">" + PLAIN)
    assert set(out[11 : len(TOKEN) + 1]) == {ord("*")}


def test_echoes_that_overlap_or_come_together_around_another() -> None:
    secret = b"abcabcab-0123456789"
    of = flowing(secret)
    inner = secret[:7] + secret + secret[7:]
    for data in (secret * 5, inner, secret[:8] + secret, inner + b"[redacted]" + inner):
        for size in range(1, len(data)):
            out = flow(data, [(size, size % 2 == 0)] * 9, of)
            assert not exact(secret).finds(out)
            assert len(out) == len(data)


@pytest.mark.parametrize("secret", [b"redacted", b"[redacted]", b"***~~~", b"edact", b"*~^|!?$@<>"])
def test_what_it_is_overwritten_with_never_spells_a_secret(secret: bytes) -> None:
    of = flowing(secret)
    data = b"]" + secret * 3 + b"[" + secret[:3] + secret + secret[3:]
    out = flow(data, [(4, True)], of)
    assert not exact(secret).finds(out)
    assert len(out) == len(data)


def test_an_event_is_passed_on_at_once() -> None:
    """Also one whose last character is how the secret's base64 begins."""
    for ending in (b"", b"G", b"eG", b"x"):  # how the token and its base64 begin
        one = RedactedStream(flowing(TOKEN))
        event = b'data: {"n": 1}' + ending + b"\n\n"
        assert one.feed(event) + one.flush() == event
        assert one.waiting == 0


def test_what_was_passed_on_early_still_begins_an_echo() -> None:
    """One letter of base64 and a line's end go out; the rest of the echo doesn't."""
    echo = ENCODINGS["base64 at 0"](TOKEN)
    one = RedactedStream(flowing(TOKEN))
    first = one.feed(echo[:1] + b"\n\n") + one.flush()
    assert first == echo[:1] + b"\n\n"
    rest = one.feed(echo[1:] + b">") + one.end()
    assert echo[4:12] not in rest
    assert len(rest) == len(echo)


def test_the_beginning_of_an_echo_waits_and_something_else_after_it_frees_it() -> None:
    one = RedactedStream(flowing(TOKEN))
    assert one.feed(b"data: " + TOKEN[:9]) + one.flush() == b"data: "
    assert one.feed(b"?\n") + one.flush() == TOKEN[:9] + b"?\n"


@pytest.mark.sampled(15)
@pytest.mark.promise(54)
@pytest.mark.parametrize("run", [b"\\", b"25", b" ", b"-", b"0"])
@pytest.mark.parametrize("times", [100, 60_000])
@pytest.mark.parametrize("place", [4, len(TOKEN) // 2])
def test_echoes_that_are_drawn_out(run: bytes, times: int, place: int) -> None:
    """Also in the middle, which is what the quick look wants to see."""
    of, long = flowing(TOKEN), run * times
    spelled = {
        b"\\": b"".join((long if at == place else b"\\") + b"u%04x" % byte for at, byte in enumerate(TOKEN)),
        b"25": b"".join(b"%" + (long if at == place else b"") + b"%02x" % byte for at, byte in enumerate(TOKEN)),
        b"0": b"".join(b"&#" + (long if at == place else b"") + b"%d;" % byte for at, byte in enumerate(TOKEN)),
    }
    echo = spelled.get(run) or (long.join([TOKEN[:place].hex().encode(), TOKEN[place:].hex().encode()]))
    data = PLAIN + echo + PLAIN
    assert exact(TOKEN).finds(data)
    for size in (900, 7000, 50_000):
        out = flow(data, [(size, False)] * (len(data) // size), of)
        assert not exact(TOKEN).finds(out)
        assert len(out) == len(data)
        assert out.startswith(PLAIN)
        assert out.endswith(PLAIN)


def test_what_never_ends_is_not_waited_for_in_memory() -> None:
    one = RedactedStream(flowing(TOKEN))
    one.feed(TOKEN[:5].hex().encode())
    with pytest.raises(Overlong):
        for _ in range(2 * MAX_WAITING // 65536):
            one.feed(b" " * 65536)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("piece", [b" ", b"-", b"\0", b"25", b"\\n", b"78 ", b"x", b"%78", b"AAAA\n"])
def test_ordinary_repetition_flows_in_bounded_memory(piece: bytes) -> None:
    of = StreamRedactor([TOKEN])
    one, block, came = RedactedStream(of), piece * (65536 // len(piece)), 0
    for _ in range(40):
        came += len(one.feed(block))
        assert one.waiting <= MAX_WAITING
    assert came + len(one.end()) == 40 * len(block)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("secret", [b"\\xoxb-1234567890", b"\\\\n-1234567890", b"ab\\-1234567890"])
@pytest.mark.parametrize("end", [b"", b"1", b"\\1"])
def test_what_has_begun_is_found_in_time_in_proportion(secret: bytes, end: bytes) -> None:
    """Quadratic patterns would need minutes for this, and the service chooses what it answers."""
    partial = PartialEcho([secret])
    began = time.process_time()
    partial.find(b"\\" * 300_000 + end)
    assert time.process_time() - began < 1000 * pace()
    for cut in range(1, len(secret)):
        assert partial.find(b"<" + secret[:cut]) <= 1


@pytest.mark.parametrize("which", SECRETS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_quick_look_beforehand_changes_nothing_of_what_is_redacted(name: str, which: str) -> None:
    of, secret = flowing(SECRETS[which]), SECRETS[which]
    for data in (ENCODINGS[name](secret), PLAIN + ENCODINGS[name](secret) + b"\\" + ENCODINGS[name](secret), PLAIN):
        assert of.clean(data) == exact(secret).clean(data)
        assert of.finds(data) == exact(secret).finds(data)


def test_patterns_are_built_for_the_first_answer_that_may_need_them() -> None:
    of = StreamRedactor([TOKEN])
    flow(b'{"ok": true}' * 40 + b"}", [(12, True), (120, True)], of)
    assert of.text("application/json") == "application/json"
    assert of._patterns is of.partial._built is None
    assert flow(b"<" + TOKEN, [(5, True)], of) == b"<[redacted]".ljust(len(TOKEN) + 1, b"*")
    of.drop()
    assert of._patterns == of.partial._built == []


def test_without_the_matcher_everything_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert Prefilter([TOKEN]).may_hold(b"nothing")
    of = StreamRedactor([TOKEN], ordinary=130)
    out = flow(PLAIN + TOKEN + PLAIN, [(1000, False)] * 3, of)
    assert not exact(TOKEN).finds(out)


def test_no_secret_no_change_and_no_wait() -> None:
    one = RedactedStream(StreamRedactor([]))
    assert one.feed(PLAIN) == PLAIN
    assert one.end() == b""
