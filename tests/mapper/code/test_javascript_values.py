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
