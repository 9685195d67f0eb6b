"""JavaScript programs: what they send is found by reading them, and what can't be known is no call."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from mapper.catalog import Catalog
from mapper.code.abstract_values import Lit, Text, parts_of, plain
from mapper.code.languages import read
from mapper.code.method_finder import find
from mapper.code.sent_requests import Request, Seen


def sent(program: str) -> list[tuple[str, str, dict[str, object], str]]:
    """Method, address ("…" for what isn't known), body and its kind of each request, once each."""
    made = [(_known(one, "verb"), _address(one), dict(_items(one)), one.kind) for one in _read(program).requests]
    return [one for place, one in enumerate(made) if one not in made[:place]]


def _read(program: str) -> Seen:
    return read("javascript", program)


def _known(one: Request, name: str) -> str:
    known, value = plain(getattr(one, name))
    return str(value) if known else "?"


def _address(one: Request) -> str:
    return "".join(part if isinstance(part, str) else "…" for part in parts_of(one.url))


def _items(one: Request) -> list[tuple[str, object]]:
    return [(name, plain(value)[1] if plain(value)[0] else "?") for name, value in one.body.items]


API = "https://api.example.com"


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (f"await fetch('{API}/things')", ("GET", f"{API}/things", {}, "none")),
        (
            f"const base = '{API}'\nfetch(`${{base}}/a/${{process.argv[2]}}`, {{ method: 'delete' }})",
            ("DELETE", f"{API}/a/…", {}, "none"),
        ),
        (
            f"const body = JSON.stringify({{ a: 1, b: x }})\nfetch('{API}/a', {{ method: 'POST', body }})",
            ("POST", f"{API}/a", {"a": 1, "b": "?"}, "json"),
        ),
        (
            f"const m = {{ method: 'PUT' }}\nfetch('{API}/a', {{ ...m, body: new URLSearchParams({{ a: 'b' }}) }})",
            ("PUT", f"{API}/a", {"a": "b"}, "form"),
        ),
        (
            f"import axios from 'axios'\nconst api = axios.create({{ baseURL: '{API}' }})\napi.post('/a', {{ b: 2 }})",
            ("POST", f"{API}/a", {"b": 2}, "json"),
        ),
        (
            f"import got from 'got'\nawait got.post('{API}/a', {{ json: {{ b: 2, c: x }} }}).json()",
            ("POST", f"{API}/a", {"b": 2, "c": "?"}, "json"),
        ),
        (
            f"const got = require('got')\ngot('{API}/a', {{ method: 'PUT', form: {{ b: true }} }})",
            ("PUT", f"{API}/a", {"b": "true"}, "form"),
        ),
        (
            f"import {{ got }} from 'got'\ngot.post('a', {{ prefixUrl: '{API}', json: {{}} }})",
            ("POST", f"{API}/a", {}, "json"),
        ),
        (
            f"fetch(new Request('{API}/a', {{ method: 'POST', body: JSON.stringify({{ b: 2 }}) }}))",
            ("POST", f"{API}/a", {"b": 2}, "json"),
        ),
        (f"const asked = new Request('{API}/a')\nfetch(asked, x)", ("?", f"{API}/a", {}, "any")),
        (
            f"const axios = require('axios')\naxios({{ method: 'patch', url: '{API}/a', data: {{ b: 2 }} }})",
            ("PATCH", f"{API}/a", {"b": 2}, "json"),
        ),
        (
            "const https = require('node:https')\nhttps.get({ hostname: 'api.example.com', path: '/a' }, (r) => r)",
            ("GET", f"{API}/a", {}, "none"),
        ),
        (
            f"class Api {{ constructor(base) {{ this.base = base }}\nget(p) {{ return fetch(this.base + p) }} }}\n"
            f"const api = new Api('{API}')\napi.get('/a')",
            ("GET", f"{API}/a", {}, "none"),
        ),
        (
            f"async function go({{ id, verb = 'GET' }}) {{ return fetch(`{API}/${{id}}`) }}\n"
            "Promise.all([{ id: 'x' }].map((one) => go(one)))",
            ("GET", f"{API}/x", {}, "none"),
        ),
        (
            f"fetch('{API}/a').then((r) => r.json()).then((all) => all.map((one) => fetch('{API}/b')))",
            ("GET", f"{API}/b", {}, "none"),
        ),
        (f"const f = fetch\nif (process.env.X) {{ f('{API}/a') }}", ("GET", f"{API}/a", {}, "none")),
        (
            f"for (const n of ['1', '2']) {{ try {{ await fetch('{API}/' + n) }} catch {{ continue }} }}",
            ("GET", f"{API}/2", {}, "none"),
        ),
    ],
)
def test_a_request_is_found(program: str, found: tuple[str, str, dict[str, object], str]) -> None:
    assert found in sent(program), sent(program)


@pytest.mark.parametrize(
    "program",
    [
        f"let url = '{API}/a'\nok && (url = other())\nfetch(url)",  # assigned where it may not be reached
        f"const {{ url = '{API}/a' }} = JSON.parse(text)\nfetch(url)",
        f"let method = 'GET'\nmethod ??= pick()\nfetch('{API}/' + method, {{ method: pick() }})",
        "fetch(await (await fetch('/x')).text())",
    ],
)
def test_what_is_not_certain_is_not_known(program: str) -> None:
    for one in _read(program).requests:
        verb, url = plain(one.verb)[0], isinstance(one.url, Lit | Text)
        assert not (verb and url and plain(one.url)[0] and str(plain(one.url)[1]).startswith(API)), one


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("eval(text)", "runs text as a program"),
        ("new Function('a', text)()", "runs text as a program"),
        ("const { exec } = require('child_process')", "runs programs of its own"),
        ("import net from 'node:net'", "opens connections"),
        ("const m = await import(name)", "imports by a name"),
        ("fetch('https://x.example'", "can't be read"),
    ],
)
def test_what_is_hidden_is_said(program: str, said: str) -> None:
    assert any(said in note for note in _read(program).notes), _read(program).notes


def test_the_catalogs_methods_are_found_in_node_programs_also_inside_a_shell_program() -> None:
    url = "https://slack.com/api/chat.postMessage"
    program = f"fetch('{url}', {{ method: 'POST', body: JSON.stringify({{ channel: 'C1', text: t }}) }})"
    inside = f"set -e\nnode --input-type=module - <<'JS'\n{program}\nJS\n"
    for language, text in (("javascript", program), ("shell", inside)):
        found = find(language, text, Catalog.bundled(), ["slack"])  # type: ignore[arg-type] # both are languages
        assert [(call.method_id, call.fields) for call in found.calls] == [
            ("slack.chat.postMessage", {"channel": "C1"})
        ], found


def test_deep_and_long_programs_end() -> None:
    for program in ("(" * 5000 + ")" * 5000, "x = " + "[" * 3000, "a." * 20_000 + "b", "f(" * 2000, "`${" * 1500):
        assert _read(program).requests == []


# What Python would make something else of, or JavaScript's own numbers and texts.
EXPRESSIONS = (
    "7/2", "'1'+1", "1+'1'", "-7 % 3", "(0-7) % 3", "2**53+1", "9007199254740992+1", "9007199254740993", "1/0",
    "1e400", "0x20000000000001", "5.5-0.5", "true+1", "'a'*3", "'a%s' % 'b'", "[1]+[2]", "'x'+true", "'a'+null",
    "`${true} ${1.5} ${5.0}`", "`${null}`", "`${1e-7}`", "`${1e20}`", "1===true", "1==true", "'1'==1",
    "null===undefined", "null==undefined", "['a','b'][0-1]", "({true:'x'})[true]", "'a-b-a'.replace('a','x')",
    "' a '.trim()", "'a b'.split(' ')", "encodeURIComponent('a/b(c)')", "String(new URLSearchParams({a:true,b:1.50}))",
    "[1,true,'c'].join('-')", "JSON.parse('[5.0,1e2]')", "Object.keys(['q'])", "(5).toString()", "String(false)",
    "(()=>{const l=['x'];l.push('y','z');return l})()", "(()=>{const l=['x'];l.unshift('y');return l})()",
    "[3,1,2].sort()", "[1,2].reverse()", "[1,2].pop()", "[1,2].shift()", "[1,2].splice(0,1)", "['a'].push('b')",
    "['b','a'].sort()?'t':'n'", "['a'].shift()?'t':'n'", "NaN?'a':'b'", "Number.NaN?'a':'b'", "Infinity?'a':'b'",
    "undefined?'a':'b'", """new URLSearchParams({a:"b c(~*)'",d:1}).toString()""",
    "new URLSearchParams('?a=b&c').toString()", "String(new URLSearchParams(`a=${'b c'}`))",
    "(()=>{const p=new URLSearchParams({a:'b'});p.append('c','d');return p.toString()})()",
    "(()=>{const p=new URLSearchParams('a=b&c=d');p.set('a','e');p.delete('c');return `${p}`})()",
    "(()=>{const p=new URLSearchParams('b=1&a=2');p.sort();return p.toString()})()",
    "(()=>{const p=new URLSearchParams(x?'a=1':'b=2');p.set('c',3);return p.toString()})()",
    "new URL('https://a.example').toString()", "new URL('https://A.example:443/b/../c d').toString()",
    "new URL('https://a.example?b=c').toString()", "new URL('https://a.example/%2e%2E/b').toString()",
    "(()=>{const u=new URL('https://a.example/b?c=d');u.searchParams.set('e','f');return u.toString()})()",
    "(()=>{const u=new URL('https://a.example/b');const q=u.searchParams;q.set('e','f');return u.toString()})()",
    "(()=>{const u=new URL('https://a.example/b');u.pathname='/c';return u.toString()})()",
    "(()=>{const u=new URL('https://a.example/b');u['hash']='c';return u.toString()})()",
    "(()=>{const o={a:1};o.b='c';o.a+=2;return o})()", "(()=>{const o={a:1,b:2};delete o.b;return o})()",
)  # fmt: skip
FOLDED = {"'1'+1": "11", "5.5-0.5": 5, "'x'+true": "xtrue", "'a-b-a'.replace('a','x')": "x-b-a", "(5).toString()": "5",
          "new URL('https://a.example').toString()": "https://a.example/"}  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="it is compared with what node makes of it")
def test_what_is_read_of_an_expression_is_what_node_makes_of_it() -> None:
    runs = subprocess.run(
        ["node", "-p", f"const x=1;JSON.stringify([{','.join(EXPRESSIONS)}])"],
        capture_output=True,
        check=True,
        timeout=300,
    )
    for expression, made in zip(EXPRESSIONS, json.loads(runs.stdout), strict=True):
        assert read_of(expression) in ("?", json.dumps(made)), expression


def test_what_stands_in_an_expression_is_read() -> None:
    assert {one: json.loads(read_of(one)) for one in FOLDED} == FOLDED


def read_of(expression: str) -> str:
    """An expression's value as JSON; "?" where it isn't known."""
    ((_, _, fields, _),) = sent(f"fetch('{API}', {{ method: 'POST', body: JSON.stringify({{ v: {expression} }}) }})")
    return "?" if fields["v"] == "?" else json.dumps(fields["v"])


def test_a_number_is_read_as_json_writes_it() -> None:
    body = "JSON.stringify({ a: 5.0, b: 1e3, c: 2.5, d: 1e400, e: 0x10 })"
    ((_, _, fields, _),) = sent(f"fetch('{API}/a', {{ method: 'POST', body: {body} }})")
    assert [repr(fields[name]) for name in "abce"] == ["5", "1000", "2.5", "16"]


@pytest.mark.parametrize(
    ("changed", "address"),
    [
        ("const u = new URL('%s/a?b=1'); u.searchParams.set('c', '2')", f"{API}/a?…"),
        ("const u = new URL('%s/a?b=1'); u.search = '?c=2'", f"{API}/a?…"),
        ("const u = new URL(`%s/a/${process.argv[2]}/b`); u.searchParams.set('c', '2')", f"{API}/a/…/b?…"),
        ("const p = new URLSearchParams({ b: 1 }); p.set('c', '2'); const u = '%s/a?' + p.toString()", f"{API}/a?…"),
        ("const u = new URL('%s/a'); u.pathname = '/b'", "…"),
    ],
)
def test_an_address_that_is_changed_is_known_as_far_as_it_stays(changed: str, address: str) -> None:
    ((_, found, _, _),) = sent(f"{changed % API}\nfetch(u)")
    assert found == address


def test_a_form_that_is_changed_is_a_form_of_any_fields() -> None:
    program = (
        f"const p = new URLSearchParams({{ a: 'b' }})\np.append('c', d)\nfetch('{API}', {{ method: 'POST', body: p }})"
    )
    (request,) = _read(program).requests
    assert (request.kind, request.body.more) == ("form", True)


ADDRESSES = (
    "https://a.example/f?q='root' in parents", "https://A.example:443/a b/\"c\"/[d]|{e}`f<g>h",
    "https://a.example:080/x?y=[z]|^`{}\"<>#f`\"<> [x]", "HTTPS://a.example/é?ü=😀#ä", "https://a.example:8080/%zz%2F?%",
    "http://1.2.3.4:80?x#y", "https://a.example?x?y#a#b", "https://a.example/'q'?'q'#'q'", "  https://a.example/x y  ",
    "https://a.example/~!$&()*+,;=:@-._|?~!$&()*+,;=:@-._|", "https://a.example/../x", "https://a.example/x/.",
    "https://a.example/%2E%2e/x", "https://a.example/%2e#", "https://u:p@a.example/", "https://a.example\\x",
    "https://0x7f.1/", "https://a.example/^",
)  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node isn't there")
def test_an_address_is_read_as_node_writes_it() -> None:
    made = f"console.log(JSON.stringify({json.dumps(ADDRESSES)}.map((one) => new URL(one).href)))"
    done = subprocess.run(["node", "-e", made], capture_output=True, check=True, timeout=300)
    for given, written in zip(ADDRESSES, json.loads(done.stdout), strict=True):
        found = {url for _, url, _, _ in sent(f"fetch(new URL({json.dumps(given, ensure_ascii=False)}))")}
        odd = any(one in given for one in ("/.", "%2", "u:p", "\\", "0x", "^")) and "%zz" not in given
        assert found == {"…" if odd and "[z]" not in given else written}, given


def test_each_of_several_addresses_is_kept() -> None:
    program = f"const u = new URL(x ? '{API}/a' : '{API}/b')\nu.searchParams.set('c', 'd')\nfetch(u)"
    assert [url for _, url, _, _ in sent(program)] == [f"{API}/a?…", f"{API}/b?…"]


POST = f"fetch('{API}/a', {{ method: 'POST', body: JSON.stringify(%s) }})"


@pytest.mark.parametrize(
    ("program", "body", "known"),
    [
        ("let a = 'x'; if (b) { let a = 'y'; log(a) }\n{ const a = 'z' }\n", "{ a }", {"a": "x"}),
        ("let a = 'x'; for (const a of ['y']) { log(a) }\n", "{ a }", {"a": "x"}),
        ("let a = 'x'; try { f() } catch (a) { log(a) }\n", "{ a }", {"a": "x"}),
        ("let a = 'x'\nif (b) { a = 'x' }\n", "{ a }", {"a": "x"}),
        ("let a = 'x'\nfunction f() { a = 'y' }\nf()\n", "{ a }", {"a": "?"}),
        ("let a\nasync function f() { a = 'y' }\nawait f()\n", "{ a }", {"a": "?"}),
        ("let a = 'x'\nfunction f() { if (b) a = 'y'; else a = 'z' }\nf()\n", "{ a }", {"a": "?"}),
        ("let a = 'x'\nfunction f() { let a = 'y'; a = 'z' }\nf()\n", "{ a }", {"a": "x"}),
        ("let a = 'x'\non('b', () => { a++ })\n", "{ a }", {"a": "?"}),
        ("const o = { a: 'x' }\nfunction f(p) { p.a = 'y' }\nf(o)\n", "o", {}),
        ("const o = { a: 'x' }\nconst f = (p) => { delete p.a }\nf(o)\n", "o", {}),
        ("const o = { a: 'x' }\nconst p = o\np.a = 'y'\n", "o", {}),
        ("const o = { a: 'x' }\nconst p = o\no.a = 'y'\n", "p", {}),
        ("const o = { a: 'x' }\nconst p = b || o\nObject.assign(p, { a: 'y' })\n", "o", {}),
        ("const o = { a: 'x' }\n;[o].forEach((p) => { p.a = 'y' })\n", "o", {}),
        ("const o = { a: 'x' }\nclass C { f(p) { p.a = 'y' } }\nnew C().f(o)\n", "o", {}),
        ("const o = { a: 'x' }\nfunction f() { if (b) o.a = 'y'; else o.a = 'z' }\nf()\n", "o", {}),
        ("const o = { a: 'x' }\no.b = 'y'\nfunction f(p) { log(p.a) }\nf(o)\n", "o", {"a": "x", "b": "y"}),
        ("const o = { a: 'x' }\nconst p = { ...o }\np.a = 'y'\n", "o", {"a": "x"}),
    ],
)
def test_a_name_is_the_variable_that_it_is_in_node(program: str, body: str, known: dict[str, object]) -> None:
    assert [found for _, _, found, _ in sent(program + POST % body)] == [known]


@pytest.mark.parametrize(
    "program",
    [
        "function add(p) { p.searchParams.set('c', 'd') }\nconst u = new URL('%s/a'); add(u); fetch(u)",
        "const u = new URL('%s/a'); const { searchParams } = u; searchParams.set('c', 'd'); fetch(u)",
        "const u = new URL('%s/a'); const q = u.searchParams; q.append('c', 'd'); fetch(u)",
        "const u = new URL('%s/a'); const p = u; p.search = 'c=d'; fetch(u)",
    ],
)
def test_an_address_that_is_changed_under_another_name_is_asked_anew(program: str) -> None:
    assert [url for _, url, _, _ in sent(program % API)] == [f"{API}/a?…"]


def test_a_client_that_a_function_makes_is_known() -> None:
    program = f"let api\nfunction begin() {{ api = axios.create({{ baseURL: '{API}' }}) }}\nbegin()\napi.get('/a')"
    assert sent(f"const axios = require('axios')\n{program}") == [("GET", f"{API}/a", {}, "none")]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("l: { c = 'B'; break l; }", "B"),
        ("l: if (x) break l;", "A"),
        ("l: for (const a of ['1']) { for (;;) { break l; } }", "A"),
        ("({ c } = { c: 'B' });", "B"),
        ("((c = 'B'));", "B"),
    ],
)
def test_what_follows_a_label_or_an_assignment_in_parentheses_is_read(line: str, value: str) -> None:
    program = f"let c = 'A'; {line} fetch('{API}/a', {{ method: 'POST', body: JSON.stringify({{ c }}) }})"
    assert sent(program) == [("POST", f"{API}/a", {"c": value}, "json")]
