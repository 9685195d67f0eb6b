"""Bodies of code's requests: what a rule holds is what the server reads, with its type, or the request is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from runtimes.gateway.admission import No, Ready
from runtimes.gateway.head import BadHead
from tests.runtimes.gateway.ruled import PLAN, bearer, judge, rule

FORM = "application/x-www-form-urlencoded"
W = bearer()


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("allowed", "in_json", "other"),
    [(1, b"1", b'"1"'), ("1", b'"1"', b"1"), (True, b"true", b'"true"'), (1, b"1", b"true"), (2.5, b"2.5", b'"2.5"'),
     ({"n": 1}, b'{"n":1}', b'{"n":"1"}'), (["a", "b"], b'["a","b"]', b'"a,b"'), (1, b"1", b"1.0"), (1, b"1", b"1e0")],
)  # fmt: skip
def test_json_keeps_the_types_of_a_permit_s_values_and_a_form_their_texts(
    allowed: Any, in_json: bytes, other: bytes
) -> None:
    plan = replace(
        PLAN, rules=(rule(0, "POST", "messages", body_format="json", fields={"a": (allowed,)}, must=("a",)),)
    )
    found = judge("POST /api/messages", W, body=b'{"a":' + other + b"}", plan=plan)
    assert isinstance(found, No), found
    assert found.kind == "field"
    assert isinstance(judge("POST /api/messages", W, body=b'{"a":' + in_json + b"}", plan=plan), Ready)
    as_text = in_json.strip(b'"') if isinstance(allowed, str) else in_json
    body = b"a=" + quote(as_text).encode()
    assert isinstance(judge("POST /api/messages", W, body=body, kind=FORM, plan=plan), Ready)


def parts(*lines: str) -> bytes:
    """A multipart body of such parts: `name=text`, or `name@text` for a file."""
    out = ""
    for line in lines:
        at = min(line.index(mark) for mark in "=@" if mark in line)
        file = '; filename="f"' if line[at] == "@" else ""
        out += f'--b\r\nContent-Disposition: form-data; name="{line[:at]}"{file}\r\n\r\n{line[at + 1 :]}\r\n'
    return f"{out}--b--\r\n".encode()


PARTS = "multipart/form-data; boundary=b"


@pytest.mark.promise(57)
def test_a_file_among_the_parts_of_a_body_is_told() -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", body_format="json", fields={"a": ("x",), "b": ()}),))
    with_file, without = (
        judge("POST /api/messages", W, body=parts("a=x", b), kind=PARTS, plan=plan) for b in ("b@y", "b=y")
    )
    assert isinstance(with_file, Ready), with_file
    assert with_file.sent is not None
    assert (with_file.sent.body, with_file.sent.file) == ({"a": "x"}, True)
    assert isinstance(without, Ready)
    assert without.sent is not None
    assert (without.sent.body, without.sent.file) == ({"a": "x", "b": "y"}, False)


@pytest.mark.promise(51)
@pytest.mark.parametrize("body", [parts("a@x"), parts("a=x", "a@y"), parts("a@y", "a=x")])
def test_a_file_is_no_value_of_a_field(body: bytes) -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", body_format="json", fields={"a": ("x",)}),))
    found = judge("POST /api/messages", W, body=body, kind=PARTS, plan=plan)
    assert isinstance(found, No), found
    assert found.kind == "field"


def test_what_has_too_many_values_is_refused_with_what_to_do() -> None:
    """Also where a rule holds no field: JSON is looked at for credentials. Anything else is passed on unread."""
    plan = replace(PLAN, rules=(rule(0, "POST", "messages"),))
    body = b"[" + b"1," * 500_001 + b"1]"
    found = judge("POST /api/messages", W, body=body, plan=plan)
    assert isinstance(found, No)
    assert (found.status, found.hint) == (413, "Send it in several requests.")
    assert "500,000 values" in found.reason
    assert isinstance(judge("POST /api/messages", W, body=body, kind="application/octet-stream", plan=plan), Ready)
    assert isinstance(judge("POST /api/messages", W, body=b"[" + b"1," * 400_000 + b"1]", plan=plan), Ready)


HELD = replace(
    PLAN,
    rules=(
        rule(
            0, "POST", "messages", body_format="json", fields={"a": ("x",), "b": ()}, must=("a",),
            written={"contenttype": ("application/vnd.api+json",)},
        ),
    ),
)  # fmt: skip


def said(body: bytes, kind: str, *headers: str) -> str:
    """ "" where it passes, else the kind of its refusal."""
    try:
        found = judge("POST /api/messages", W, *headers, body=body, kind=kind, plan=HELD)
    except BadHead as error:
        return error.fault
    return found.kind if isinstance(found, No) else ""


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"a":"x","a":"y"}', "application/json"),
        (b'{"a":"y","\\u0061":"x"}', "application/json"),
        (b'{"a":"x","b":{"c":1,"c":2}}', "application/json"),
        (b'\xef\xbb\xbf{"a":"x"}', "application/json"),
        ('{"a":"x"}'.encode("utf-16"), "application/json"),
        ('{"a":"x"}'.encode("utf-16-le"), "application/json"),
        ('{"a":"x"}'.encode("utf-32-be"), "application/json"),
        (b'{"a":"x"}', "application/json; charset=utf-16"),
        (b'{"a":"x"}', "application/json; charset=utf-7"),
        (b'{"a":"x"}', 'application/json; charset="utf-7"'),
        (b'{"a":"x"/**/}', "application/json"),
        (b'{"a":"x"}//', "application/json"),
        (b"{'a':'x'}", "application/json"),
        (b'{"a":"x",}', "application/json"),
        (b'{"a":"x","b":NaN}', "application/json"),
        (b'{"a":"x","b":1e999}', "application/json"),
        (b'{"a":"x","b":-Infinity}', "application/json"),
        (b'{"a":"x","b":' + b"9" * 5000 + b"}", "application/json"),
        (b'{"a":"x","b":"\\ud800"}', "application/json"),
        (b'{"a":"x"}{"a":"y"}', "application/json"),
        (b'{"a":"x"}\n{"a":"y"}', "application/json"),
        (b'[{"a":"x"}]', "application/json"),
        (b'"a"', "application/json"),
        (b'{"a":"x","A":"y"}', "application/json"),
        (b'{"a":"x","a ":"y"}', "application/json"),
        (b'{"a":"x","a\\u0000":"y"}', "application/json"),
        (b'{"a":"x","\\uff41":"y"}', "application/json"),
        (b'{"a":"x","a[]":"y"}', "application/json"),
        (b'{"a":"x"}', "text/plain"),
        (b'{"a":"x"}', "application/xml"),
        (b'{"a":"x"}', "application/x-ndjson"),
        (b'[{"a":"x"}]', ""),
        (b"a=x", ""),
        (b'{"a":"x"}', "application/json, text/plain"),
        (b"a=x&a=y", FORM),
        (b"a=x&%61=y", FORM),
        (b"a=x&A=y", FORM),
        (b"a=x&a%20=y", FORM),
        (b"a=x&+a=y", FORM),
        (b"a=x&a%00=y", FORM),
        (b"a=x&a[]=y", FORM),
        (b"a=x&a[0]=y", FORM),
        (b"a=x&a.b=y", FORM),
        (b"a=x;a=y", FORM),
        (b"a=x&[a]=y", FORM),
        (b"a=x&a]=y", FORM),
        (b"a=x&]a=y", FORM),
        (b"a=x&[[a][b]=y", FORM),
        (b"a=x&a%00b=y", FORM),
        (b"a=x&!a=y", FORM),
        (b"a=x&[_method]=DELETE", FORM),
        (b"a=x&_method]=DELETE", FORM),
        (b"a=x&.method=DELETE", FORM),
        (b"a=x&_method%00b=DELETE", FORM),
        (b"a=x&[access_token]=y", FORM),
        (b"a=x&access_token]=y", FORM),
        (b"a=x&access_token%00b=y", FORM),
        (b"a=x&request_id[]=y", FORM),
        (b"a=x&c[d=y", FORM),
        (b"a=x&b%5B=y", FORM),
        (b"a=x&access[token=y", FORM),
        (b"a=x&idempotency.key=y", FORM),
        (b"a=x&idempotency+key=y", FORM),
        (b"a=x&+request_id=y", FORM),
        (b"a=x&a:int=y", FORM),
        (b"a=x&'a'=y", FORM),
        (b"a=x&[%22a%22]=y", FORM),
        (b"a=x&a%E2%80%8B=y", FORM),
        (b"a=x&a%01=y", FORM),
        (b"b=1&" * 900 + b"a=x", FORM),
        (b"a=x&[idempotency_key]=y", FORM),
        (b"a=x+", FORM),
        (b"a=x%20", FORM),
        (b"a=x%0", FORM),
        (b"a=x%zz", FORM),
        (b"a=x%ff", FORM),
        (b"a=x%u0078", FORM),
        (b"a=x&b=\xff", FORM),
        (b"a=x&&a=y", FORM),
        (b"a=x&_charset_=utf-7", FORM),
        (b"a=x&_method=DELETE", FORM),
        (b'{"a":"x","_charset_":"utf-7"}', "application/json"),
        (parts("a=x", "a=y"), PARTS),
        (parts("a=x", "_charset_=utf-7"), PARTS),
        (parts("a=x", "A=y"), PARTS),
        (parts("a=x", "[a]=y"), PARTS),
        (parts("a=x", "c[d=y"), PARTS),
        (parts(*["b=1"] * 900, "a=x"), PARTS),
        (parts("a=x", "_method]=DELETE"), PARTS),
        (parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=utf-7; x=utf-8\r\n\r\n"), PARTS),
        (parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=utf-16\r\n\r\n"), PARTS),
        (
            parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=utf-8; charset=utf-7\r\n\r\n"),
            PARTS,
        ),
        (parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset*=utf-8''utf-7\r\n\r\n"), PARTS),
        (parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n"), PARTS),
        (parts("a=x").replace(b'name="a"', b"name=a"), PARTS),
        (parts("a=x").replace(b'name="a"', b'name="a"; name="b"'), PARTS),
        (b"before" + parts("a=x"), PARTS),
        (parts("a=x") + parts("a=y"), PARTS),
        (parts("a=x"), "multipart/form-data; boundary=b; boundary=c"),
        (parts("a=x"), "multipart/form-data; charset=utf-16; boundary=b"),
        (parts("a=x"), "multipart/mixed; boundary=b"),
    ],
)
def test_what_a_service_could_read_otherwise_than_it_was_judged_is_refused(body: bytes, kind: str) -> None:
    assert said(body, kind) != ""


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"a":"x"}', "application/json"),
        (b'{"a":"x"}', "application/json; charset=utf-8"),
        (b'{"a":"x"}', 'application/json; charset="UTF-8"'),
        (b' \r\n{ "b" : [1.5e3, null] , "\\u0061" : "\\u0078" }', "application/vnd.api+json"),
        ('{"a":"x","b":"ü"}'.encode(), "application/json"),
        (b"a=x", FORM),
        (b"a=x&b=1+2%2B3", f"{FORM}; charset=utf-8"),
        (b"%61=%78&b=%C3%BC", FORM),
        (b"a=x&b=1&b=2", FORM),
        (b"a=x" + b"&b=1" * 1200, FORM),
        (b"a=x&b[]=1&[c]=2&d[e][f=3&b]=4", FORM),
        (b'{"a":"x","c[d":1}', "application/json"),
        (parts("a=x", "b=y"), PARTS),
        (parts("a=x").replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"), PARTS),
        (parts("a=x").replace(b"\r\n\r\n", b'\r\nContent-Type: text/plain; charset="UTF-8"; x=y\r\n\r\n'), PARTS),
        (parts("a=x"), 'multipart/form-data; boundary="b"'),
    ],
)
def test_a_body_that_reads_in_one_way_alone_passes(body: bytes, kind: str) -> None:
    assert said(body, kind) == ""


NODE = "text/plain;charset=UTF-8"  # what fetch says of a text


@pytest.mark.promise(51)
@pytest.mark.parametrize("kind", [FORM, f"{FORM}; charset=utf-8", "", NODE, "text/plain; charset=utf-8"])
def test_json_that_is_not_said_to_be_json_leaves_as_json_where_the_method_takes_json_alone(kind: str) -> None:
    """As curl says of `-d '{…}'`, GitHub's own examples have it; Python's requests says nothing of a text,
    and fetch and aiohttp that it is one."""
    ready = judge("POST /api/messages", W, body=b'{ "a":"\\u0078" }', kind=kind, plan=HELD)
    assert isinstance(ready, Ready)
    assert ready.body == b'{"a":"x"}'
    assert dict(ready.admission.headers)["Content-Type"] == "application/json"
    for body in (b'{"a":"y"}', b'{"a":"x","a":"y"}', b'{"a":"x","A":"y"}', b'{"a":"x"}&a=y', b' {"a":"x"}', b'["a"]'):
        assert said(body, kind) != "", body
    twice = b'{"a":"x","access_token":"y"}'
    assert said(twice, kind) == said(twice, "application/json") != ""


@pytest.mark.promise(51)
@pytest.mark.parametrize("body_format", ["any", "form"])
def test_json_that_is_said_to_be_a_form_leaves_as_a_form_elsewhere(body_format: str) -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", body_format=body_format),))
    ready = judge("POST /api/messages", W, body=b'{"a":"x"}', kind=FORM, plan=plan)
    assert isinstance(ready, Ready)
    assert (ready.body, dict(ready.admission.headers)["Content-Type"]) == (b"%7B%22a%22%3A%22x%22%7D=", FORM)


@pytest.mark.promise(51)
def test_a_text_is_read_as_json_only_where_the_method_takes_json_alone() -> None:
    for body_format in ("form", "any"):
        held = rule(0, "POST", "messages", body_format=body_format, fields={"a": ("x",)}, must=("a",))
        refused = judge("POST /api/messages", W, body=b'{"a":"x"}', kind=NODE, plan=replace(PLAN, rules=(held,)))
        assert isinstance(refused, No), refused
        assert "JSON or a form" in refused.reason
    other = replace(PLAN, rules=(rule(0, "POST", "messages", body_format="json", fields={"a": ("x",)}, must=("a",)),))
    for kind in ("text/plain", "text/plain; charset=utf-16", f"{NODE}; x=y", "text/html; charset=utf-8", "text/xml"):
        assert isinstance(judge("POST /api/messages", W, body=b'{"a":"x"}', kind=kind, plan=other), No)


@pytest.mark.promise(51)
@pytest.mark.parametrize("kind", [FORM, "", NODE])
def test_json_that_is_not_said_to_be_json_takes_no_credential(kind: str) -> None:
    one = rule(0, "POST", "messages", body_format="json", credential_at="body", credential_name="token")
    body = b'{"token":"' + W.split()[-1].encode() + b'"}'
    plan = replace(PLAN, rules=(one,))
    assert isinstance(judge("POST /api/messages", body=body, plan=plan), Ready)
    assert isinstance(judge("POST /api/messages", body=body, kind=kind, plan=plan), No)


def read_as(held: str, sent: str, kind: str = FORM, **more: Any) -> str:
    """ "" where a field beside one that is held to a value passes, else why it is refused."""
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", **{"fields": {held: ("5",)}, **more}),))
    body = f"{held}=5&{quote(sent)}=6".encode() if kind == FORM else parts(f"{held}=5", f"{sent}=6")
    found = judge("POST /api/messages", W, body=body, kind=kind, plan=plan)
    return found.reason if isinstance(found, No) else ""


@pytest.mark.promise(51)
@pytest.mark.parametrize("kind", [FORM, PARTS])
@pytest.mark.parametrize(
    ("held", "sent"),
    [("user[id]", sent) for sent in ("user.id", "User.ID", "user[.id]", "model.user.id", "model.user[id]", "id")]
    + [("user[id]", sent) for sent in ("model[0].user.id", "a[b].user.id.x")]
    + [("user.id", sent) for sent in ("user[id]", "user[.id]", "[user]id", "model.user.id", "model[user][id]", "Id")]
    + [("user_id", sent) for sent in ("model.user_id", "model[user_id]", "model.UserId", "[0].user_id", "m.user_id[0]")]
    + [("user_id", sent) for sent in ("[]user_id", "[].user_id", "[]user_id[]")]
    + [("model.user_id", sent) for sent in ("user_id", "model[user_id]", "UserId", "x.model.user_id")],
)  # fmt: skip
def test_a_field_with_dots_or_a_prefix_passes_for_no_other(held: str, sent: str, kind: str) -> None:
    assert read_as(held, sent, kind) == f"the name {sent} could be taken for {held}"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("held", "sent"),
    [("user[id]", "user[name]"), ("user[id]", "user.name"), ("user[id]", "user_id"), ("user.id", "order.name"),
     ("user_id", "metadata[user]"), ("user_id", "model.user"), ("user_id", "a.b.c"), ("user[id]", "name")],
)  # fmt: skip
def test_another_field_with_dots_passes(held: str, sent: str) -> None:
    assert read_as(held, sent) == read_as(held, sent, PARTS) == ""


def test_parts_that_the_program_is_known_to_send_pass_and_those_left_out_do_not() -> None:
    known = {"user_id": ("5",), "metadata": (), "a.user_id": (), "b[user_id]": ()}
    for sent in ("metadata[user_id]", "a.user_id", "b[user_id]"):
        assert read_as("user_id", sent, fields=known) == ""
    assert read_as("user_id", "c.user_id", fields=known) != ""
    for kind in (FORM, PARTS):
        assert read_as("x", "model.as_user", kind, fields={}, closed=("as_user",)) != ""
        assert read_as("x", "model.as_other", kind, fields={}, closed=("as_user",)) == ""
        assert read_as("x", "model.mode", kind, fields={}, query={"mode": ("safe",)}) != ""
        free = read_as("x", "metadata[mode]", kind, fields={"x": (), "metadata": ()}, query={"mode": ("safe",)})
        assert free == "", "a part of a free field, in a body that is watched, too"
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", body_format="json", fields={"user_id": ("5",)}),))
    body = b'{"user_id":"5","model.user_id":"6"}'
    assert isinstance(judge("POST /api/messages", W, body=body, plan=plan), Ready), "names in JSON have no parts"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "header",
    [
        "Content-Encoding: gzip",
        "Content-Encoding: identity, gzip",
        "Content-Type: text/plain",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: 3",
        "Idempotency-Key: 1\r\nIdempotency-Key: 2",
        "X-Http-Method-Override: DELETE",
        "X-Method: DELETE",
        "X-Original-Url: /admin",
        "Prefer: tx=rollback",
    ],
)
def test_a_head_that_gives_a_body_another_meaning_is_refused(header: str) -> None:
    assert said(b'{"a":"x"}', "application/json", *header.split("\r\n")) != ""


def test_what_is_sent_is_what_was_judged() -> None:
    """Written anew: decoded names, one encoding, no charset but UTF-8."""
    for body, kind, sent, as_kind in (
        (b'{"\\u0061": "x", "b":1.50}', "application/json;charset=UTF-8", b'{"a":"x","b":1.5}', "json; charset=utf-8"),
        (b"%61=x&b=1+2", f"{FORM};charset=utf-8", b"a=x&b=1%202", FORM),
    ):
        ready = judge("POST /api/messages", W, body=body, kind=kind, plan=HELD)
        assert isinstance(ready, Ready), ready
        assert ready.body == sent
        assert dict(ready.admission.headers)["Content-Type"].endswith(as_kind)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "query",
    ["q=x&q=y", "q=y&q=x", "q=x&q=x", "q=x&%71=y", "q=x&Q=y", "q=x&q[]=y", "q=x&q%5B0%5D=y", "q=x+", "q=x%20", "q=x&q",
     "q=x;q=y", "q=x&&q=y", "q=x&=y", "q=%ff", "q=%2578", "r=x", "q=x&_charset_=utf-7", "q=x%00", "q=x#"],
)  # fmt: skip
def test_a_query_that_could_be_read_otherwise_is_refused(query: str) -> None:
    plan = replace(PLAN, rules=(rule(0, "GET", "x", query={"q": ("x", "1 2"), "free": ()}, must=("q",)),))
    assert isinstance(judge(f"GET /api/x?{query}", W, plan=plan), No)


@pytest.mark.parametrize(
    ("query", "sent"),
    [("q=x", "q=x"), ("%71=%78", "q=x"), ("q=1+2", "q=1%202"), ("q=1%202&free=a%2Bb", "free=a%2Bb&q=1%202"),
     ("q=x&free=1&free=2", "free=1&free=2&q=x")],
)  # fmt: skip
def test_a_query_leaves_as_it_was_judged(query: str, sent: str) -> None:
    plan = replace(PLAN, rules=(rule(0, "GET", "x", query={"q": ("x", "1 2"), "free": ()}, must=("q",)),))
    ready = judge(f"GET /api/x?{query}", W, plan=plan)
    assert isinstance(ready, Ready), ready
    assert ready.admission.target.partition("?")[2] == sent


@pytest.mark.promise(49)
def test_many_held_parts_are_looked_for_in_many_fields_at_once() -> None:
    """Thousands of each would take minutes, were each field compared with each part."""
    fields: dict[str, tuple[str, ...]] = {f"a[{number}]": ("1",) for number in range(1000)}
    plan = replace(
        PLAN, rules=(rule(0, "POST", "messages", body_format="form", fields={**fields, "b": ()}, only=True),)
    )
    body = "&".join(f"b[{number}]=1" for number in range(9990))
    began = time.process_time()
    assert isinstance(judge("POST /api/messages", W, body=body.encode(), kind=FORM, plan=plan), Ready)
    for other in ("a", "a[7][x]", "a.7", "A[7]", "a[7][]", "[]"):
        found = judge("POST /api/messages", W, body=f"{body}&{other}=1".encode(), kind=FORM, plan=plan)
        assert isinstance(found, No) and found.kind == "field", other
    assert time.process_time() - began < 10


@pytest.mark.promise(51)
def test_a_part_is_no_other_held_part_s_either() -> None:
    plan = replace(PLAN, rules=(rule(0, "POST", "messages", fields={"a[b]": ("1",), "a[b][c]": ("2",)}),))
    for body in (b"a[b]=1&a[b][c]=2", b"a[b]=1", b"a[b][c]=2"):
        assert isinstance(judge("POST /api/messages", W, body=body, kind=FORM, plan=plan), No), body
