"""A field of an object in JavaScript is missing only where nothing can have given it to the object."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import told

ISSUES = "https://api.github.com/repos/octo/hello/issues"
LIST = "github.issues.list owner=octo repo=hello"
OCTOKIT = "import { Octokit } from '@octokit/rest'; const o = new Octokit({ auth: process.env.GITHUB_TOKEN });\n"
TITLED = "{ owner: 'a', repo: 'b', title: 'T' }"

ASK = f"const ask = ({{ method = 'GET' }} = {{}}) => fetch('{ISSUES}', {{ method }});\n"


def _find(program: str) -> Finding:
    return find("javascript", program, Catalog.bundled(), ("github",))


def _told(program: str) -> list[str]:
    return sorted(told(call) for call in _find(program).calls)


def _asked(between: str) -> Finding:
    return _find(f"const p = {{}}; {between}; fetch('{ISSUES}', {{ method: p.method ?? 'GET' }})")


@pytest.mark.parametrize(
    "change",
    [
        "Object.assign(p, w())",
        "Object['assign'](p, w())",
        "Reflect.set(p, 'method', w())",
        "Object.defineProperty(p, 'method', { value: w() })",
        "Object.setPrototypeOf(p, w())",
        "p.z = p; p.z.method = w()",
        "Object.prototype.method = w()",
        "const get = () => p; get().method = w()",
        "const get = () => p; w(get())",
        "const q = p; w(q)",
        "w(p)",
        "w({ p })",
        "lib.fill(p)",
        "f(p); function f(x) { w(x) }",
        "f(); function f() { w(p) }",
        "function f() { w(p) }",
        "w.call(null, p)",
        "w`${p}`",
        "w(...[p])",
        "w(() => p)",
        "new w(p)",
        "with (p) { method = 'DELETE' }",
        "await w.then(() => lib.fill(p))",
        "await Promise.resolve(p).then(w)",
        "const m = new Map([['a', p]]); w(m)",
        "[p].forEach(w)",
        "[p].map(x => w(x))",
        "function* g() { yield p }; for (const x of g()) w(x)",
        "setTimeout(w, 0, p)",
        "globalThis.p = p; w()",
        "this.p = p; w(this)",
    ],
)
def test_what_an_object_may_have_been_given_is_not_missing(change: str) -> None:
    found = _asked(change)
    assert found.unknown, [told(call) for call in found.calls]


@pytest.mark.parametrize("change", ["console.log(p)", "p.other = 1", "JSON.stringify(p)", "Object.keys(p)"])
def test_what_nothing_can_have_given_an_object_is_missing(change: str) -> None:
    found = _asked(change)
    assert not found.unknown and LIST in [told(call) for call in found.calls]


def test_what_an_object_is_assigned_is_in_it() -> None:
    assert _told(f"const b = {{}}; Object.assign(b, {{ title: 'A' }}); {_created('b')}") == [
        "github.issues.create owner=octo repo=hello title=A"
    ]
    found = _asked("Object.assign(p, { method: 'POST' })")
    assert [call.method_id for call in found.calls] == ["github.issues.create"]
    assert _told(f"const b = {{ title: 'A' }}; w(b); {_created('b')}") == [
        "github.issues.create owner=octo repo=hello ?"
    ]


def _created(body: str) -> str:
    return f"fetch('{ISSUES}', {{ method: 'POST', body: JSON.stringify({body}) }})"


@pytest.mark.parametrize(
    "program",
    [
        f"const p = {{ meth\\u006fd: 'DELETE' }}; fetch('{ISSUES}', {{ method: p.method ?? 'GET' }})",
        f"const p = {{}}; p.meth\\u{{6f}}d = 'DELETE'; fetch('{ISSUES}', p)",
        f"fetch('{ISSUES}', {{ meth\\u006fd: w() }})",
        f"fetch('{ISSUES}', {{ get ['meth' + 'od']() {{ return 'DELETE' }} }})",
    ],
)
def test_a_fields_name_is_read_however_it_is_written(program: str) -> None:
    found = _find(program)
    assert found.unknown and not found.calls, _told(program)


def test_a_library_is_read_by_names_in_brackets_or_said_to_be_unread() -> None:
    assert _told(f"{OCTOKIT}o.rest.issues['create']({TITLED})") == ["github.issues.create owner=a repo=b title=T"]
    assert _told(f"globalThis['fetch']('{ISSUES}')") == [LIST]
    for program in (f"o.rest.issues[w()]({TITLED})", f"o[w()].issues.create({TITLED})", "o.hook.wrap('request', w)"):
        assert _find(OCTOKIT + program).unknown, program


CHANGED = "const p = { method: 'GET' }; "


@pytest.mark.parametrize(
    "change",
    [
        "const q = { p }; q.p.method = w()",
        "const q = { p }; const { p: r } = q; r.method = w()",
        "const q = { p }; Object.assign(q.p, w())",
        "const q = { a: { p } }; const r = q.a; r.p.method = w()",
        "const q = [p]; for (const x of q) x.method = w()",
        "const q = {}; q.p = p; q.p.method = w()",
        "const q = (1, p); q.method = w()",
        "const q = null || p; q.method = w()",
        "function f(...a) { a[1].method = w() } f(1, p)",
        "function f({ o }) { o.method = w() } f({ o: p })",
    ],
)
def test_what_is_changed_within_another_object_is_not_told(change: str) -> None:
    found = _find(f"{CHANGED}{change}; fetch('{ISSUES}', p)")
    assert found.unknown and not found.calls, [told(call) for call in found.calls]


def test_an_object_is_not_told_where_one_that_it_holds_is_changed_elsewhere() -> None:
    found = _find(f"const i = {{ method: 'GET' }}, p = {{ i }}, q = {{ i }}; q.i.method = w(); fetch('{ISSUES}', p.i)")
    assert found.unknown and not found.calls, [told(call) for call in found.calls]


@pytest.mark.parametrize(
    "change",
    [
        "const q = { p }; q.other = w()",
        "const q = { p }; q.p = {}",
        "const q = [p]; q.push(w())",
        "const q = { name: 'x' + p.method }; q.more = {}; q.more.a = w()",
    ],
)
def test_what_another_object_holds_besides_changes_nothing(change: str) -> None:
    assert _told(f"{CHANGED}{change}; fetch('{ISSUES}', p)") == [LIST]


@pytest.mark.parametrize(
    "given",
    [
        "const o = { method }; if (body) o.body = body",
        "const o = { method, headers: { Authorization: 'Bearer ' + config.token } }; o.headers.A = 'b'",
        "const o = { method, headers: {} }; if (body) { o.headers.A = 'b'; o.headers.C = 'd' }",
    ],
)
def test_options_that_are_added_to_stay_known(given: str) -> None:
    program = f"const config = {{ base: '{ISSUES}' }}; function ask(method, body) {{ {given}; fetch(config.base, o) }}"
    assert _told(f"{program}; ask('GET')") == [LIST]


@pytest.mark.parametrize(
    "between",
    [
        "const url = new URL('https://x.test'); url.searchParams.set('a', String(w()))",
        "w(encodeURIComponent(x()))",
        "async function* all() { const r = await fetch(u); yield* await r.json() }\nfor await (x of all()) x.a = 1",
        "async function* all() { const r = await fetch(u); for (const x of (await r.json()).items) yield x }\nall()",
        "class A { constructor(o) { this.method = o } } new A('POST')",
    ],
)
def test_a_field_is_missing_whatever_else_happens(between: str) -> None:
    found = _find(f"{ASK}{between}\nask()")
    assert LIST in [told(call) for call in found.calls]
    assert not [one for one in found.unknown if "method isn't known" in one.text]


@pytest.mark.parametrize(
    "between",
    [
        "const u = new URL('https://x.test'); u.searchParams.set('a', w(p))",
        "function* all() { yield c ? p : x } for (const x of all()) x.method = w()",
        "const r = await fetch(u); const z = c ? p : await r.json(); function* all() { yield z } w(...all())",
        "class A { set() { this.method = w() } } new A().set.call(p)",
        "const a = { set() { this.method = w() } }; a.set()",
        "class A { set() { this.method = w() } } const a = new A(); const o = { f: a.set }; o.f()",
        "class A { set() { this.method = w() } } const { set } = new A(); const o = { set }; o.set()",
        "function A() { this.method = w() } A.prototype.x = 1; new A()",
    ],
)
def test_a_field_is_not_missing_where_it_may_have_been_given(between: str) -> None:
    assert _find(f"const p = {{}}; {between}; fetch('{ISSUES}', {{ method: p.method ?? 'GET' }})").unknown
