"""Requests that a program sends by another way than the function's own name, and what isn't read, which a note says."""

from __future__ import annotations

from typing import Literal

import pytest

from mapper.code.abstract_values import Lit, Text
from mapper.code.languages import read

_U = "https://api.example.com/x"
_SLACK = """
import asyncio, aiohttp
class Slack:
    {how}def __{letter}enter__(self):
        self.session = aiohttp.ClientSession(base_url="https://slack.com/api/")
        return self
    {how}def __{letter}exit__(self, *why):
        {wait}self.session.close()
    async def call(self, method):
        async with self.session.get(method) as answer:
            return await answer.json()
async def main():
    {how}with Slack() as slack:
        await slack.call("users.list")
asyncio.run(main())
"""
SENT: dict[str, tuple[Literal["python", "javascript", "shell"], str, set[str]]] = {
    "with": ("python", _SLACK.format(how="", letter="", wait=""), {"GET https://slack.com/api/users.list"}),
    "async-with": (
        "python",
        _SLACK.format(how="async ", letter="a", wait="await "),
        {"GET https://slack.com/api/users.list"},
    ),
    "decorators": (
        "python",
        f"import requests\n@requests.delete\n@lambda f: '{_U}'\ndef name(): pass\n",
        {f"DELETE {_U}"},
    ),
    "tables": (
        "python",
        f"import pandas as pd\npd.read_csv('{_U}')\npd.read_json('rows.json')\npd.read_json(rows)\n",
        {f"GET {_U}"},
    ),
    "methodcaller": (
        "python",
        f"import operator, requests\noperator.methodcaller('delete', '{_U}')(requests)\n",
        {f"DELETE {_U}"},
    ),
    "attrgetter": (
        "python",
        f"import operator, requests\noperator.attrgetter('put')(requests)('{_U}')\n",
        {f"PUT {_U}"},
    ),
    "call": ("javascript", f"fetch.call(null, '{_U}', {{ method: 'PUT' }})", {f"PUT {_U}"}),
    "apply": ("javascript", f"fetch.apply(null, ['{_U}', {{ method: 'PUT' }}])", {f"PUT {_U}"}),
    "bind": ("javascript", f"const f = fetch.bind(null, '{_U}'); f({{ method: 'PUT' }})", {f"PUT {_U}"}),
    "bind-this": ("javascript", f"const f = fetch.bind(globalThis); f('{_U}')", {f"GET {_U}"}),
    "Reflect": ("javascript", f"Reflect.apply(fetch, null, ['{_U}'])", {f"GET {_U}"}),
    "Reflect-get": ("javascript", f"Reflect.get(globalThis, 'fetch')('{_U}')", {f"GET {_U}"}),
    "own-call": ("javascript", f"function f(a) {{ return fetch('{_U}' + a) }} f.call(null, 'y')", {f"GET {_U}y"}),
    "own-bind": ("javascript", f"function f(a) {{ return fetch('{_U}' + a) }} f.bind(null, 'y')()", {f"GET {_U}y"}),
    "of-a-client": (
        "javascript",
        f"const axios = require('axios'); const post = axios.post.bind(axios); post('{_U}')",
        {f"POST {_U}"},
    ),
    "coproc": ("shell", f"coproc curl {_U}\n", {f"GET {_U}"}),
    "watch": ("shell", f"watch -n 5 curl {_U}\n", {f"GET {_U}"}),
}
NOTED: dict[str, tuple[Literal["python", "javascript", "shell"], str, str]] = {
    "sys-modules": ("python", f"import sys\nsys.modules['requests'].delete('{_U}')\n", "reaches names by text"),
    "dict": ("python", f"import requests\nrequests.__dict__['delete']('{_U}')\n", "reaches names by text"),
    "getattribute": (
        "python",
        f"import requests\nobject.__getattribute__(requests, 'delete')('{_U}')\n",
        "reaches names by text",
    ),
    "pycurl": ("python", "import pycurl\n", "opens connections of its own"),
    "replaced": ("python", f"import requests\nrequests.get = requests.delete\nrequests.get('{_U}')\n", "replaces"),
    "replaced-by-its-own": (
        "python",
        "import requests\ndef send(*a): pass\nrequests.Session.send = send\n",
        "replaces",
    ),
    "replaced-fetch": ("javascript", f"globalThis.fetch = (u) => 1; fetch('{_U}')", "replaces"),
    "replaced-axios": ("javascript", "const axios = require('axios'); axios.get = axios.delete;", "replaces"),
    "constructor": ("javascript", "const F = (() => {}).constructor; F('return fetch(1)')()", "runs text"),
    "constructor-called": (
        "javascript",
        "new (Object.getPrototypeOf(async function () {}).constructor)('fetch(1)')()",
        "runs text",
    ),
    "alias": ("shell", f"alias ls='curl {_U}'\nls\n", "what alias does"),
    "network-file": ("shell", "echo x > /dev/tcp/api.example.com/80\n", "opens a connection"),
    "network-read": ("shell", "cat < /dev/tcp/api.example.com/80\n", "opens a connection"),
    "awk": ("shell", f"awk 'BEGIN {{ system(\"curl {_U}\") }}'\n", "what awk does"),
    "env": ("shell", f"env -S 'curl {_U}'\n", "what env runs"),
    "mapfile": ("shell", f"mapfile -C 'curl {_U}' -c 1 lines < f\n", "what mapfile does"),
    "tar": ("shell", "tar --to-command='curl x' -xf a.tar\n", "what tar does"),
    "path": ("shell", "cp /usr/bin/curl ./x\n./x https://api.example.com\n", "what another file does"),
    "make": ("shell", "make release\n", "what make does"),
}
PLAIN: dict[str, tuple[Literal["python", "javascript", "shell"], str]] = {
    "api-key": ("python", "import os, stripe\nstripe.api_key = os.environ['K']\nstripe.max_network_retries = 2\n"),
    "exports": ("javascript", "module.exports = () => 1; exports.x = () => 2; module.exports.y = () => 3;"),
    "class-name": ("javascript", "class C { name() { return this.constructor.name } } new C().name()"),
    "of-prototype": ("javascript", "Object.prototype.hasOwnProperty.call({}, 'a')"),
    "text-commands": ("shell", "awk -F'|' '{ print $1 || $2 }' f | sort -u\nmapfile -t a < f\ntar -czf a.tgz d\n"),
    "system-path": ("shell", "/usr/bin/jq . f\n/bin/ls\nenv A=1 sort f\n"),
}


def _said(value: object) -> str:
    if isinstance(value, Lit):
        return str(value.value)
    return "".join(part if isinstance(part, str) else "…" for part in value.parts) if isinstance(value, Text) else "?"


@pytest.mark.parametrize("language, program, sent", SENT.values(), ids=SENT)
def test_a_request_by_another_way_is_found(
    language: Literal["python", "javascript", "shell"], program: str, sent: set[str]
) -> None:
    found = read(language, program).requests
    assert {f"{_said(one.verb)} {_said(one.url)}" for one in found} == sent


@pytest.mark.parametrize("language, program, said", NOTED.values(), ids=NOTED)
def test_what_is_not_read_is_said(language: Literal["python", "javascript", "shell"], program: str, said: str) -> None:
    notes = read(language, program).notes
    assert any(said in note for note in notes), notes


@pytest.mark.parametrize("language, program", PLAIN.values(), ids=PLAIN)
def test_what_sends_nothing_has_no_note(language: Literal["python", "javascript", "shell"], program: str) -> None:
    seen = read(language, program)
    assert (seen.requests, seen.unread, seen.notes) == ([], [], [])
