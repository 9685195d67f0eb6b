"""Multipart bodies are split in exactly one way, whole or in pieces; and what is streamed is watched across pieces."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.gateway.admission import Admission, No, Ready
from runtimes.gateway.multipart import BadParts, FirstPart, Part, PartReader, boundary_of, read_parts, write_parts
from runtimes.gateway.rule_match import RulePolicy
from tests.runtimes.gateway.ruled import MARKS, PLAN, WORK, Watched, asked, bearer, judge, rule

W = bearer()
TYPE = "multipart/form-data; boundary=xyz"


def field(name: str, value: str, more: str = "") -> bytes:
    return f'--xyz\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'.encode()


END = b"--xyz--\r\n"
GOOD = field("channel", "C1") + field("text", "") + field("f", "\x00--xy", '; filename="a.bin"') + END


def test_a_good_one_is_read_and_written_anew() -> None:
    parts = read_parts(GOOD, b"xyz")
    assert [(part.name, part.file, part.data) for part in parts] == [
        ("channel", False, b"C1"), ("text", False, b""), ("f", True, b"\x00--xy"),
    ]  # fmt: skip
    body, kind = write_parts(parts)
    assert read_parts(body, boundary_of(kind)) == parts
    assert b"xyz" not in body


@pytest.mark.parametrize(
    "more",
    ["\r\nContent-Type: text/plain", "\r\nContent-Type: text/plain; charset=UTF-8",
     '; filename="f"\r\nContent-Type: text/plain; charset=utf-16'],
)  # fmt: skip
def test_a_part_may_say_what_it_is(more: str) -> None:
    (part,) = read_parts(field("a", "x", more) + END, b"xyz")
    assert (part.data, part.type) == (b"x", more.partition("Type: ")[2])
    body, kind = write_parts((part,))
    assert read_parts(body, boundary_of(kind)) == (part,)


def test_a_file_that_is_named_in_the_long_way_alone_is_one() -> None:
    (part,) = read_parts(field("a", "x", "; filename*=UTF-8''b%20c") + END, b"xyz")
    assert (part.file, part.filename) == (True, "file")


@pytest.mark.parametrize("body", [b"--xyz", b"--xyz\r\n", GOOD[: -len(END)], field("a", "b"), b""])
def test_a_body_that_is_cut_short_has_no_parts(body: bytes) -> None:
    with pytest.raises(BadParts, match="without its end"):
        read_parts(body, b"xyz")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"preamble\r\n" + GOOD, "before the first"),
        (b"\r\n" + GOOD, "before the first"),
        (GOOD + b"epilogue", "after the last"),
        (GOOD.replace(END, b""), "without its end"),
        (END, "without a part"),
        (field("a", "b\n--xyz\r\nContent-Disposition: form-data; name=c\r\n\r\n") + END, "within a part"),
        (field("a", "b--xyz") + END, "within a part"),
        (field("a", "b") + b"--xyzz\r\n" + END, "a line's end"),
        (field("a", "b") + b"--xyz \r\n\r\n\r\n" + END, "a line's end"),
        (field("a", "b") + b"--xyz\n\n" + END, "a line's end"),
        (b"--xyz\r\n\r\nx\r\n" + END, "header line"),
        (b"--xyz\r\nContent-Disposition: attachment\r\n\r\nx\r\n" + END, "plain name"),
        (field('a"; name="b', "x") + END, "plain name"),
        (field("a", "x", "; name*=utf-8''b") + END, "plain name"),
        (field("a%5Fb", "x") + END, "plain name"),
        (field("a", "x", "\r\nContent-Disposition: form-data; name=b") + END, "header line"),
        (field("a", "x", "\r\nContent-Transfer-Encoding: base64") + END, "header line"),
        (field("a", "x", "\r\n folded") + END, "header line"),
        (field("a", "x", "\r\nContent-Type") + END, "header line"),
        (field("a", "x", '\r\nContent-Type: a\nContent-Disposition: form-data; name="b"') + END, "isn't one"),
        (field("a", "x").replace(b'"a"', b'"\xff"') + END, "isn't UTF-8"),
        (field("a", "x", "\r\nContent-Type: text/plain; charset=utf-16") + END, "charset"),
        (field("a", "x", f"\r\nContent-Type: {'a' * 5000}") + END, "too long"),
        (b"--xyz\r\n" + b"a" * 5000, "too long"),
        (b"".join(field(f"a{number}", "") for number in range(1001)) + END, "too many parts"),
    ],
)
def test_what_could_be_split_otherwise_is_refused(body: bytes, why: str) -> None:
    for size in (len(body), 1 if len(body) < 9000 else 1000):
        reader = PartReader(b"xyz", lambda part: None)
        with pytest.raises(BadParts, match=why):
            for at in range(0, len(body), size):
                reader.feed(body[at : at + size])
            reader.close()


def test_what_flows_through_is_not_kept() -> None:
    reader = PartReader(b"xyz", lambda part: None)
    reader.feed(GOOD[: -len(END) - 2])
    for _ in range(100):
        reader.feed(b"q" * 1000)
        assert len(reader._buffer) < 100
    other = PartReader(b"xyz", lambda part: None)
    with pytest.raises(BadParts, match="before the first"):
        other.feed(b"--xy!")


@pytest.mark.parametrize(
    "kind",
    [
        "multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="a\\"b"',
        "multipart/form-data; boundary=a; boundary=b", "multipart/form-data; boundary=a; charset=utf-8",
        "multipart/form-data; boundary*=utf-8''a", "multipart/form-data; boundary=" + "a" * 71,
        "multipart/form-data; x=1; boundary=a", 'multipart/form-data; boundary="a b"',
    ],
)  # fmt: skip
def test_one_plain_boundary(kind: str) -> None:
    with pytest.raises(BadParts):
        boundary_of(kind)
    found = judge("POST /api/uploads", W, body=GOOD, kind=kind)
    assert isinstance(found, No)
    assert found.kind == "body"


@given(
    data=st.lists(st.tuples(st.text("ab[]_", min_size=1, max_size=9), st.binary(max_size=30)), min_size=1, max_size=4),
    size=st.integers(1, 40),
)
@settings(max_examples=60)
def test_pieces_change_nothing(data: list[tuple[str, bytes]], size: int) -> None:
    parts = tuple(Part(name=name, file=True, filename="f", data=value) for name, value in data)
    body, kind = write_parts(parts)
    seen: list[Part] = []
    ended: list[bytes] = []
    reader = PartReader(boundary_of(kind), seen.append, ended.append)
    for at in range(0, len(body), size):
        reader.feed(body[at : at + size])
    reader.close()
    assert [part.name for part in seen] == [name for name, _ in data]
    assert ended == [value for _, value in data]
    assert read_parts(body, boundary_of(kind)) == parts


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("override", field("_method", "DELETE")),
        ("override", field("_METHOD[]", "DELETE")),
        ("credential", field("token", "abc")),
        ("credential", field("api_key", "abc")),
        ("field", field("dir", "out")),
        ("field", field("DIR[]", "out")),
        ("placeholder", field("a", MARKS[WORK])),
        ("body", b"--xyz\r\nX-Odd: 1\r\n\r\n\r\n"),
    ],
)
def test_a_streamed_form_is_watched(kind: str, extra: bytes) -> None:
    assert isinstance(judge("POST /api/uploads", W, body=GOOD, kind=TYPE), Ready)
    found = judge("POST /api/uploads", W, body=field("a", "b") + extra + END, kind=TYPE)
    assert isinstance(found, No)
    assert found.kind == kind


RELATED = (
    b"--=x=\nContent-Type: application/json\n\n"
    b'{"name":"a"}\n--=x=\nContent-Type: text/html\nContent-Disposition: attachment; filename="a"\n\n'
    b"<p>name=b</p>\n--=x=--"
)


@pytest.mark.parametrize("size", [3, 7, 10_000])
@pytest.mark.parametrize(
    ("extra", "passes"),
    [
        (b"", True),
        (b'\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE', False),
        (b"\ncontent-DISPOSITION : form-data;\n filename=a;\n\tNAME = _method\n\nDELETE", False),
        (b"\nContent-Disposition: form-data; name*=utf-8''_method\n\nDELETE", False),
        (b"\nContent-Disposition: form-data\n\nname=b", True),
    ],
)
def test_parts_that_belong_together_are_no_form(extra: bytes, passes: bool, size: int) -> None:
    policy = RulePolicy(PLAN)
    kind = 'Content-Type: multipart/related; boundary="=x="'
    admission = policy.admit(asked("POST /api/uploads", W, kind, "Transfer-Encoding: chunked"))
    assert isinstance(admission, Admission)
    watch = Watched(policy, admission)
    body = RELATED + b"\n--=x=" + extra + b"\n--=x=--"
    assert all(watch.feed(body[at : at + size]) is None for at in range(0, len(body), size)) == passes


def test_a_streamed_form_ends_with_its_last_part() -> None:
    policy = RulePolicy(PLAN)
    for body, passes in [(GOOD, True), (GOOD[:-6], False), (GOOD + b"\r\n", False)]:
        admission = policy.admit(asked("POST /api/uploads", W, f"Content-Type: {TYPE}", "Transfer-Encoding: chunked"))
        assert isinstance(admission, Admission)
        watch = Watched(policy, admission)
        assert (watch.feed(body) is None and watch.finish() is None) == passes


def test_a_streamed_form_has_no_closed_field() -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "uploads", closed=("as_user",)),))
    assert isinstance(judge("POST /api/uploads", W, body=GOOD, kind=TYPE, plan=plan), Ready)
    for name in ("as_user", "asUser", "as_user[]"):
        found = judge("POST /api/uploads", W, body=field(name, "1") + GOOD, kind=TYPE, plan=plan)
        assert isinstance(found, No)
        assert found.kind == "field"


def test_a_form_with_files_is_held_to_its_fields_where_the_rule_has_some() -> None:
    good = judge("POST /api/messages", W, body=GOOD, kind=TYPE)
    assert isinstance(good, Ready)
    assert good.sent.body == {"channel": "C1", "text": ""}
    assert good.body is not None
    assert [part.name for part in read_parts(good.body, boundary_of(dict(good.admission.headers)["Content-Type"]))] == [
        "channel", "text", "f",
    ]  # fmt: skip
    for bad in (
        GOOD.replace(b"C1", b"C3"),
        field("text", "").replace(b"\r\n\r\n", b"\r\n\r\n\xff") + GOOD,
        field("Channel", "C1", '; filename="a"') + GOOD,
        field(MARKS[WORK], "x", '; filename="a"') + GOOD,
        field("channel", "C1") + GOOD,
        field("as_user", "1") + GOOD,
        GOOD.replace(b'"channel"', b'"channel"; filename="a"'),
        field("token", "abc") + GOOD,
        field("channel", "C9", '; filename="a"') + GOOD,
    ):
        found = judge("POST /api/messages", W, body=bad, kind=TYPE)
        assert isinstance(found, No), bad


@pytest.mark.parametrize(
    "key",
    [b'"_method"', b'"_METHOD" ', b'"\\u005fmethod"', b'"_m\\u0065thod"\n', b'"$.xgafv"', b'"token"', b'"api_key"'],
)
@pytest.mark.parametrize("more", [("Transfer-Encoding: chunked",), ("Content-Length: 3000000",)])
def test_a_json_body_is_looked_at_however_long_it_is(key: bytes, more: tuple[str, ...]) -> None:
    policy = RulePolicy(PLAN)
    admission = policy.admit(asked("POST /api/things/t", W, "Content-Type: application/json", *more))
    assert isinstance(admission, Admission)
    assert admission.inspect
    for body, passes in [(b'{"a":1,%b:"DELETE"}' % key, False), (b'{"a":"_method"}', True)]:
        assert isinstance(policy.read(admission, body), Ready) == passes


# What is said about a file, in the first part of multipart/related, or as a body of its own.
FILE_TYPE = 'multipart/related; boundary="b1"'
CLOSED = replace(PLAN, rules=(rule(0, "PATCH", "files", body_format="any", closed=("trashed",)),))


def related(said: bytes, kind: bytes = b"application/json") -> bytes:
    file = b'--b1\r\nContent-Type: text/plain\r\n\r\n{"trashed": true}\r\n--b1--\r\n'
    return b"--b1\r\nContent-Type: " + kind + b"\r\n\r\n" + said + b"\r\n" + file


@pytest.mark.promise(51)
@pytest.mark.parametrize("size", [1, 7, 5000])
@pytest.mark.parametrize(
    ("body", "passes"),
    [
        (related(b'{"name": "report"}'), True),
        (related(b'{"name": "report", "trashed": true}'), False),
        (related(b'{"name": "report", "Trashed": true}'), False),
        (related(b'{"name": "report", "tr\\u0061shed": true}'), False),
        (related(b'{"_method": "DELETE"}'), False),
        (related(b"name=report"), False),
        (related(b'["trashed"]'), False),
        (related(b'{"a": 1, "a": 2}'), False),
        (b'{"trashed": true}', False),
        (b'--b2\r\n\r\n{"trashed": true}\r\n--b2--', False),
        (b"--b1\r\n\r\n{}", False),
        (b"--b1X\r\n\r\n{}\r\n" + related(b'{"trashed": true}'), False),
        (related(b'{"name": "report"}').replace(b"\r\n", b"\n"), True),
        (b"--b1\r\nContent-Transfer-Encoding: base64\r\n\r\nZQ==\r\n--b1--", False),
    ],
)
def test_what_is_said_about_a_file_has_no_field_that_is_closed(body: bytes, passes: bool, size: int) -> None:
    policy = RulePolicy(CLOSED)
    admission = policy.admit(asked("PATCH /api/files", W, f"Content-Type: {FILE_TYPE}", f"Content-Length: {len(body)}"))
    assert isinstance(admission, Admission), admission
    assert not admission.inspect
    watch = Watched(policy, admission)
    found = [watch.feed(body[at : at + size]) for at in range(0, len(body), size)]
    assert (all(one is None for one in found) and watch.finish() is None) == passes


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("multipart/related; boundary=b1", True),
        ('multipart/related; boundary="b1"; type="application/json"', True),
        ("multipart/related; type=application/json; boundary=b1", True),
        ('multipart/related; type="; boundary=b1"; boundary=b2', False),
        ("multipart/related; boundary=b1; boundary=b2", False),
        ('multipart/related; boundary=b1; start="<m>"', False),
        ("multipart/related", False),
    ],
)
def test_which_boundary_it_is_is_said_in_one_way(kind: str, passes: bool) -> None:
    policy = RulePolicy(CLOSED)
    body = related(b'{"name": "report"}')
    admission = policy.admit(asked("PATCH /api/files", W, f"Content-Type: {kind}", f"Content-Length: {len(body)}"))
    assert isinstance(admission, Admission)
    assert (Watched(policy, admission).feed(body) is None) == passes


def test_a_first_part_in_single_bytes_takes_no_longer_by_its_square() -> None:
    part = FirstPart('multipart/related; boundary="b1"')
    found = None
    for byte in related(b'{"name": "%b"}' % (b"x" * 200_000)):
        found = found or part.feed(bytes((byte,))) if found is None else found
    assert found == ("name",)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("kind", "body", "passes"),
    [
        ("", b'{"trashed": true}', False),
        ("text/plain", b'\xef\xbb\xbf{"trashed": true}', False),
        ("text/plain", b'{\n\t"trashed": true}', False),
        ("text/plain", b"{\\rtf1 trashed}", True),
        ("text/plain", b"{{ name }}", True),
        ("text/plain", b' \n{"trashed": true}', False),
        ("application/x-json", b'{"trashed": true}', False),
        ("application/octet-stream", b'{"trashed": true}', False),
        ("text/plain", b"trash {}", True),
        ("image/png", b"\x89PNG{}", True),
    ],
)
def test_an_object_that_is_not_said_to_be_json_is_not_passed_on_where_fields_are_closed(
    kind: str, body: bytes, passes: bool
) -> None:
    policy = RulePolicy(CLOSED)
    said = [f"Content-Type: {kind}"] if kind else []
    admission = policy.admit(asked("PATCH /api/files", W, *said, f"Content-Length: {len(body)}"))
    assert isinstance(admission, Admission), admission
    watch = Watched(policy, admission)
    assert all(watch.feed(body[at : at + 1]) is None for at in range(len(body))) == passes


@pytest.mark.promise(53)
def test_a_placeholder_is_found_across_pieces() -> None:
    policy = RulePolicy(PLAN)
    admission = policy.admit(asked("PUT /api/files/a?mode=safe", W, "Transfer-Encoding: chunked"))
    assert isinstance(admission, Admission)
    body = b"x" * 100 + MARKS[WORK].encode() + b"y" * 100
    for cut in range(101, 100 + len(MARKS[WORK])):
        watch = Watched(policy, admission)
        assert watch.feed(body[:cut]) is None
        refused = watch.feed(body[cut:])
        assert isinstance(refused, No)
        assert refused.kind == "placeholder"
