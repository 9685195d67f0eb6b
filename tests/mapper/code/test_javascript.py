"""JavaScript programs: what they send is found by reading them, and what can't be known is no call."""

from __future__ import annotations

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
