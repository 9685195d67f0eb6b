"""Clients that JavaScript programs make, and what may change what they ask for."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

NAMED = ("github", "gmail", "google_calendar", "google_drive")
GOOGLE = "import { google } from 'googleapis'\nconst drive = google.drive({ version: 'v3', auth })\n"
OCTOKIT = "import { Octokit } from '@octokit/rest'\nimport { retry } from '@octokit/plugin-retry'\n"
AXIOS = "import axios from 'axios'\nconst api = axios.create({ baseURL: 'https://api.github.com' })\n"
GOT = "import got from 'got'\n"
ASKS = "new Own({}).rest.users.getAuthenticated()"
USER, TITLED = "github.users.me", "github.issues.create owner=a repo=b title=T"


def _find(program: str) -> Finding:
    return find("javascript", program, Catalog.bundled(), NAMED)


def _told(program: str) -> list[str]:
    return sorted({normal(told(call)) for call in _find(program).calls})


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (f"{GOOGLE}await drive.files.list({{ q: 'x' }})", ["google_drive.files.list q=x"]),
        (f"{GOOGLE}drive.files.delete({{ fileId: 'f' }}, (err) => 1)", ["google_drive.files.delete fileId=f"]),
        (
            f"{GOOGLE}drive.files.update({{ fileId: 'f', requestBody: {{ name: 'n' }} }}, {{ timeout: 5 }})",
            ["google_drive.files.update fileId=f name=n"],
        ),
        (
            f"{GOOGLE}drive.permissions.create({{ fileId: 'f', resource: {{ type: 'anyone', role: 'reader' }} }})",
            ["google_drive.permissions.create fileId=f type=anyone role=reader"],
        ),
        (
            "const { google } = require('googleapis')\nconst api = google.gmail('v1')\n"
            "api.users.messages.trash({ userId: 'me', id: 'm' })",
            ["gmail.users.messages.trash userId=me id=m"],
        ),
        (
            "const { drive } = require('@googleapis/drive')\ndrive({ version: 'v3' }).drives.list()",
            ["google_drive.drives.list"],
        ),
        (
            "import { calendar_v3 } from 'googleapis'\nnew calendar_v3.Calendar({ auth }).colors.get({})",
            ["google_calendar.colors.get"],
        ),
        (
            f"{OCTOKIT}const Own = Octokit.plugin(retry).defaults({{ userAgent: 'x' }})\n"
            "new Own({ auth: t }).rest.issues.create({ owner: 'a', repo: 'b', title: 'T' })",
            [TITLED],
        ),
        (
            f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', headers: {{ a: 'b' }} }})\n"
            "await api.post('repos/a/b/issues', { json: { title: 'T' } }).json()",
            [TITLED],
        ),
        (f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com/' }}).extend({{}})\napi('user')", [USER]),
        (
            f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', hooks: {{ beforeRequest: "
            "[(options) => { options.headers.authorization = token() }] } })\napi.get('user')",
            [USER],
        ),
        (
            "import ky from 'ky'\nconst api = ky.create({ prefixUrl: 'https://api.github.com' })\n"
            "await api.get('user').json()",
            [USER],
        ),
        (
            "const r = new Request('https://api.github.com/repos/a/b/issues', { method: 'POST' })\n"
            "fetch(r, { signal, body: JSON.stringify({ title: 'T' }) })",
            [TITLED],
        ),
        (
            "const axios = require('axios')\naxios.defaults.baseURL = 'https://api.github.com'\n"
            "axios.defaults.headers.common.Authorization = t()\naxios.get('/user')",
            [USER],
        ),
        (
            "import axios from 'axios'\naxios.defaults.baseURL = 'https://api.github.com'\n"
            "axios.create({ timeout: 5 }).get('/user')",
            [USER],
        ),
        (
            f"{AXIOS}api.interceptors.request.use((config) => {{ config.headers.X = t(); config.at = 1\n"
            "console.log(`${config.url}`); return config })\napi.get('/user')",
            [USER],
        ),
        (
            f"{AXIOS}api.interceptors.request.use((config) => {{ [1].map((one) => one + 1)\n"
            "if (!t()) { return config }\nconfig.headers.X = 1; return config })\napi.get('/user')",
            [USER],
        ),
        (
            f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', searchParams: {{ page: 2 }} }})\n"
            "api('user/repos?sort=updated')\n"
            "got('https://api.github.com/user/repos?sort=updated', { searchParams: { page: 2 } })",
            ["github.repos.list page=2"],
        ),
        (
            "import axios from 'axios'\nconst api = axios.create({ baseURL: 'https://api.github.com', "
            "method: 'delete' })\napi('/repos/a/b')\napi({ url: '/repos/a/c' })\napi.get('/user')",
            ["github.repos.delete owner=a repo=b", "github.repos.delete owner=a repo=c", USER],
        ),
        (
            f"{AXIOS}api.interceptors.response.use((r) => r, async (e) => {{\nconst {{ config, response }} = e\n"
            "if (response?.status === 429 && !config._again) { config._again = true; return api(config) }\n"
            "return Promise.reject(e) })\napi.get('/user')",
            [USER],
        ),
        (
            f"{AXIOS}api.interceptors.response.use(undefined, (e) => {{ const asked = e.config\n"
            "asked.headers.Authorization = t(); return axios.request(asked) })\napi.get('/user')",
            [USER],
        ),
        (
            "import { request } from 'undici'\nconst { body } = await request('https://api.github.com/user/repos', "
            "{ query: { page: 2 } })\nawait body.json()",
            ["github.repos.list page=2"],
        ),
        (
            "const { Pool } = require('undici')\nconst pool = new Pool('https://api.github.com')\n"
            "pool.request({ path: '/repos/a/b/issues', method: 'POST', body: JSON.stringify({ title: 'T' }) })",
            [TITLED],
        ),
        (
            "class A {\nstatic get root() { return 'https://api.github.com' }\nstatic of(x) { return new A(x) }\n"
            "constructor(x) { this.x = x }\nget path() { return '/' + this.x }\nset x(v) { this.y = v }\n"
            "get x() { return this.y }\ngo() { return fetch(A.root + this.path) } }\nA.of('user').go()",
            [USER],
        ),
    ],
)
def test_a_clients_calls_are_found_and_no_others(program: str, calls: list[str]) -> None:
    found = _find(program)
    assert _told(program) == sorted(map(normal, calls)) and not found.unknown, (found.unknown, found.notes)


@pytest.mark.parametrize(
    "program",
    [
        "import { google } from 'googleapis'\ngoogle.drive({ version: v() }).files.list({})",
        "import { google } from 'googleapis'\ngoogle.drive({ version: 'v3', rootUrl: 'https://x.test' }).files.list()",
        f"{GOOGLE}google.options({{ rootUrl: 'https://x.test' }})",
        f"{GOOGLE}drive.files.list({{}}, {{ rootUrl: 'https://x.test' }})",
        f"{GOOGLE}drive.files.list({{}}, options())",
        f"{GOOGLE}drive.files.create({{ requestBody: {{ name: 'a' }}, resource: {{ name: 'b' }} }})",
        f"{GOOGLE}drive.files.everything({{}})",
        f"{GOOGLE}drive.files[name()]({{}})",
        f"{GOT}const api = got.extend({{ prefixUrl: base() }})\napi.get('user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', ...more() }})\napi.get('user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', url: 'x' }})\napi.get('user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com' }})\napi.get('https://x.test/user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com' }})\napi.paginate('user/repos')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', hooks: {{ beforeRequest: "
        "[(options) => { options.url.pathname = '/user/repos' }] } })\napi.get('user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', hooks: {{ beforeRequest: "
        "[(options) => { change(options) }] } })\napi.get('user')",
        f"{GOT}const api = got.extend({{ prefixUrl: 'https://api.github.com', hooks: hooks() }})\napi.get('user')",
        "fetch(new Request('https://api.github.com/user'), w())",
        "fetch(new Request('https://api.github.com/user', w()), { signal })",
        "import { request } from 'undici'\nrequest('https://api.github.com/user', { ...options() })",
        "import { request } from 'undici'\nrequest('https://api.github.com', { path: '/user' })",
        "import { Client } from 'undici'\nnew Client('https://api.github.com').request({ path: p(), method: 'GET' })",
        "class A {\nset x(v) { this.y = w(v) }\nget x() { return this.y }\n"
        "go() { return fetch('https://api.github.com/' + this.x) } }\nconst a = new A()\na.x = 'user'\na.go()",
        f"{AXIOS}axios.defaults.baseURL = 'https://a.test'\nmain()\naxios.defaults.baseURL = 'https://b.test'",
        f"{AXIOS}axios.defaults.params = {{ a: 1 }}",
        f"{AXIOS}axios.defaults.params.a = 1",
        f"{AXIOS}axios.defaults = w()",
        f"{AXIOS}api.defaults.baseURL = 'https://x.test'",
        f"{AXIOS}const other = api\nother.defaults.params.a = 1",
        f"{AXIOS}api.defaults[w()] = 1",
        f"{AXIOS}api.interceptors.request.use((config) => {{ config.url = '/user/repos'; return config }})",
        f"{AXIOS}api.interceptors.request.use((config) => {{ config.params.a = 1; return config }})",
        f"{AXIOS}api.interceptors.request.use((config) => {{ const c = config; c.url = 'x'; return c }})",
        f"{AXIOS}api.interceptors.request.use((config) => ({{ ...config, method: 'delete' }}))",
        f"{AXIOS}axios.interceptors.request.use(change)",
        f"{AXIOS}api.interceptors.request.use(() => ({{ url: '/user/repos', method: 'get' }}))",
        f"{AXIOS}const mine = {{ url: '/user' }}\napi.interceptors.request.use((config) => mine)",
        f"{AXIOS}api.interceptors.request.use(async (config) => {{ if (x) return other(); return config }})",
        f"{AXIOS}api.interceptors.request.use(function (config) {{ arguments[0].url = '/x'; return config }})",
        f"{AXIOS}api.interceptors.request.handlers.push(change)",
        f"{AXIOS}axios.defaults.transformRequest.push((d) => w(d))",
        f"{AXIOS}Object.assign(api.defaults, {{ baseURL: 'https://x.test' }})",
        f"{OCTOKIT}const Own = Octokit.plugin(...w())\n{ASKS}",
        f"{OCTOKIT}const Own = Octokit.plugin(mine)\n{ASKS}",
        f"{OCTOKIT}const Own = Octokit.defaults({{}}, ...w())\n{ASKS}",
        f"{OCTOKIT}class Own extends Octokit {{ go() {{ this.rest.users.list() }} }}\nnew Own().go()",
        f"{GOOGLE}drive.files.list({{ q: 'x' }}, ...w())",
        f"{AXIOS}api.interceptors.response.use(null, (e) => {{ e.config.url = '/user'; return api(e.config) }})",
        f"{AXIOS}api.interceptors.response.use(null, (e) => {{ e.config.data.a = 1; return api(e.config) }})",
        f"{AXIOS}api.interceptors.response.use(null, (e) => {{ change(e.config); return api(e.config) }})",
        f"{AXIOS}api.interceptors.response.use(null, (e) => api({{ ...e.config, url: '/user' }}))",
        f"{AXIOS}api.interceptors.response.use(null, (e) => api(Object.assign(e.config, more())))",
    ],
)
def test_what_may_ask_for_something_else_is_said(program: str) -> None:
    assert _find(program).unknown, _told(program)


@pytest.mark.parametrize(
    "program",
    [
        f"{OCTOKIT}const Own = Octokit.plugin((o) => o.hook.wrap('request', w))\n{ASKS}",
        f"{OCTOKIT}const Own = Octokit.defaults({{ baseUrl: 'https://x.test' }})\n{ASKS}",
        f"{OCTOKIT}const Own = Octokit.defaults(w())\n{ASKS}",
    ],
)
def test_a_client_of_its_own_kind_calls_nothing_that_is_known(program: str) -> None:
    assert not _find(program).calls


@pytest.mark.parametrize(
    "program",
    [
        "axios.create({ transformRequest: [w], baseURL }).post('/repos/a/b/issues', { title: 'T' })",
        "api.post('/repos/a/b/issues', { title: 'T' }, { transformRequest: w })",
        "axios.create({ adapter: w, baseURL }).post('/repos/a/b/issues', { title: 'T' })",
        "api.get('/user/repos', { params: { page: 2 }, paramsSerializer: w })",
        "fetch('https://api.github.com/repos/a/b/issues', ...w())",
    ],
)
def test_what_is_written_otherwise_before_it_is_sent_is_open(program: str) -> None:
    found = _find(f"{AXIOS}const baseURL = 'https://api.github.com'\n{program}")
    assert found.unknown or (found.calls and all(call.open for call in found.calls)), found
    assert not [
        one for one in _told(f"{AXIOS}{program}") if one in (normal(TITLED), normal("github.repos.list page=2"))
    ]


DOCUMENT = "query($login: String!) { user(login: $login) { name } }"
PARTED = DOCUMENT.replace("{ name }", "${f}")
REQUEST = "import { GraphQLClient, gql, request } from 'graphql-request'\n"
AT_GITHUB = "https://api.github.com/graphql"
WITH_CLIENT = f"{REQUEST}const client = new GraphQLClient('{AT_GITHUB}', {{ headers: {{ a: t }} }})\n"
OF_OCTOKIT = "const { graphql } = require('@octokit/graphql')\n"


@pytest.mark.parametrize(
    "program",
    [
        f"{WITH_CLIENT}await client.request('{DOCUMENT}', {{ login: 'a' }})",
        f"{WITH_CLIENT}client.setHeader('a', 'b').rawRequest('{DOCUMENT}', {{ login: 'a' }}).then(console.log)",
        f"{WITH_CLIENT}await client.request({{ document: '{DOCUMENT}', variables: {{ login: 'a' }} }})",
        f"{WITH_CLIENT}const q = gql`{DOCUMENT}`\nawait client.request(q, {{ login: 'a' }})",
        f"{WITH_CLIENT}const f = '{{ name }}'\nclient.request(gql`{PARTED}`, {{ login: 'a' }})",
        f"{REQUEST}await request('{AT_GITHUB}', '{DOCUMENT}', {{ login: 'a' }}, {{ a: t }})",
        f"{REQUEST}await request({{ url: '{AT_GITHUB}', document: '{DOCUMENT}', variables: {{ login: 'a' }} }})",
        f"{OF_OCTOKIT}await graphql('{DOCUMENT}', {{ login: 'a', headers: {{ authorization: t }} }})",
        f"{OF_OCTOKIT}await graphql({{ query: '{DOCUMENT}', login: 'a' }})",
        f"{OF_OCTOKIT}const mine = graphql.defaults({{ headers: {{ authorization: t }} }})\n"
        f"await mine('{DOCUMENT}', {{ login: 'a' }})",
        f"{OCTOKIT}await new Octokit().graphql('{DOCUMENT}', {{ login: 'a', headers: {{ b: 'c' }} }})",
        f"{OCTOKIT}await new Octokit().graphql.defaults({{ headers: {{ b: t }} }})('{DOCUMENT}', {{ login: 'a' }})",
    ],
)
def test_a_document_is_read_as_its_client_sends_it(program: str) -> None:
    found = _find(program)
    assert [call.method_id for call in found.calls] == ["github.graphql"], found
    assert found.calls[0].fields == {"query": DOCUMENT, "variables": {"login": "a"}}
    assert found.unknown == ()


@pytest.mark.parametrize(
    "program",
    [
        f"{REQUEST}new GraphQLClient('{AT_GITHUB}', {{ fetch: own }}).request('{DOCUMENT}')",
        f"{REQUEST}new GraphQLClient('{AT_GITHUB}', {{ requestMiddleware: (r) => own(r) }}).request('{DOCUMENT}')",
        f"{REQUEST}new GraphQLClient('{AT_GITHUB}', own).request('{DOCUMENT}')",
        f"{WITH_CLIENT}client.batchRequests([{{ document: '{DOCUMENT}' }}])",
        f"{WITH_CLIENT}client.request(gql`${{own}}`)",
        f"{REQUEST}import other from 'graphql-tag'\nrequest('{AT_GITHUB}', other`{DOCUMENT}`)",
        f"{OF_OCTOKIT}graphql.defaults({{ baseUrl: 'https://example.org' }})('{DOCUMENT}')",
        f"{OF_OCTOKIT}graphql('{DOCUMENT}', {{ baseUrl: 'https://example.org' }})",
        f"{OF_OCTOKIT}graphql('{DOCUMENT}', {{ request: {{ hook: own }} }})",
        f"{OF_OCTOKIT}graphql(own)",
    ],
)
def test_a_document_that_may_be_another_or_go_elsewhere_is_no_call(program: str) -> None:
    found = _find(program)
    assert not any("query" in call.fields for call in found.calls)  # without it, no permit is made of a call
    assert found.calls or found.unknown


@pytest.mark.parametrize(
    "program",
    [
        f"import {{ batchRequests as all }} from 'graphql-request'\nall('{AT_GITHUB}', [{{ document: '{DOCUMENT}' }}])",
        f"const gr = require('graphql-request')\ngr.own('{AT_GITHUB}', '{DOCUMENT}')",
        f"const {{ withCustomRequest }} = require('@octokit/graphql')\nwithCustomRequest(own)('{DOCUMENT}')",
    ],
)
def test_what_else_a_graphql_library_sends_is_told(program: str) -> None:
    assert [one.text for one in _find(program).unknown if "GraphQL library" in one.text]


def test_the_name_of_an_operation_is_sent_beside_it() -> None:
    (named,) = _find(f"{WITH_CLIENT}client.request('query Mine {{ viewer {{ login }} }}')").calls
    assert named.open == ("operationName",)
    (bare,) = _find(f"{WITH_CLIENT}client.request('{{ viewer {{ login }} }}')").calls
    assert bare.open == ()


def test_octokit_sends_no_variables_where_there_are_none() -> None:
    (call,) = _find(f"{OF_OCTOKIT}graphql('{{ viewer {{ login }} }}', {{ headers: {{ a: t }} }})").calls
    assert call.fields == {"query": "{ viewer { login } }"}


@pytest.mark.parametrize(
    ("program", "call"),
    [
        ("new Octokit().paginate('GET /repos/{owner}/{page}/issues', { owner: 'a', page: 'b' })",
         "github.issues.list owner=a repo=b page=?"),
        ("new Octokit().paginate('POST /repos/a/b/issues', { title: 'T' })",
         "github.issues.create owner=a repo=b title=T"),
    ],
)  # fmt: skip
def test_later_pages_free_nothing_but_a_parameter(program: str, call: str) -> None:
    assert _told(f"{OCTOKIT}{program}") == [normal(call)]
