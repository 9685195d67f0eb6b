"""Classes of Python programs: enumerations, fields, managers, and those that come from a library's client."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

API = "https://api.github.com"
REPO = "github.repos.get owner=a repo=b"
HEAD = (
    "import argparse, collections, contextlib, dataclasses, enum, functools, httpx, requests, types, typing\n"
    "from dataclasses import dataclass, field\n"
    f"API = '{API}'\n"
)
SESSION = (
    "class S(requests.Session):\n    def request(self, method, url, *args, **kwargs):\n"
    "        kwargs.setdefault('timeout', 5)\n        return super().request(method, API + url, *args, **kwargs)\n"
)
CLIENT = "class C(httpx.Client):\n    def __init__(self):\n        super().__init__(base_url=API)\n"


def _find(program: str) -> Finding:
    return find("python", HEAD + program, Catalog.bundled(), ("github",))


def _told(program: str) -> list[str]:
    return sorted({normal(told(call)) for call in _find(program).calls})


ENUMERATIONS = [  # its bases, what it has, what is asked for
    ("enum.Enum", "A = '/repos/a/b'", "requests.get(API + E.A.value)"),
    ("str, enum.Enum", "A = '/repos/a/b'", "requests.get(API + E.A)"),
    ("str, enum.Enum", "A = '/repos/a/b'", "requests.get(API + E.A.value)"),
    ("enum.StrEnum", "A = 'a'", "requests.get(f'{API}/repos/{E.A}/b')"),
    ("str, enum.Enum", "A = 'a'; def __str__(self): return self.value", "requests.get(f'{API}/repos/{E.A}/b')"),
    ("enum.Enum", "a = 'x'; B = 'x'", "requests.get(f'{API}/repos/{E.B.name}/b')"),
    ("enum.StrEnum", "GET = enum.auto()", "requests.request(E.GET, API + '/repos/a/b')"),
    ("enum.Enum", "A = '/repos/a/b'; B = '/x'", "requests.get(API + E['A'].value)"),
    ("enum.Enum", "A = 'a'", "for one in E:\n    requests.get(f'{API}/repos/{one.value}/b')"),
    ("enum.Enum", "A = 1; B = 2", "P = {E.A: '/repos/a/b', E.B: '/x'}\nrequests.get(API + P[E.A])"),
    ("enum.Enum", "A = 1; B = 2", "P = {E.A: '/repos/a/b'}\nrequests.get(API + P.get(E.A, '/x'))"),
    (
        "str, enum.Enum",
        "A = '/repos/{owner}/b'; def at(self, **k): return API + self.value.format(**k)",
        "requests.get(E.A.at(owner='a'))",
    ),
    (
        "enum.Enum",
        "A = ('GET', '/repos/a/b'); def __init__(self, v, p): self.v, self.p = v, p",
        "requests.request(E.A.v, API + E.A.p)",
    ),
]
UNSURE = [
    ("enum.Enum", "A = 'b'", "requests.get(f'{API}/repos/a/{E.A}')"),
    ("enum.Enum", "A = 'b'; B = w()", "requests.get(f'{API}/repos/a/{E(w()).value}')"),
    ("enum.Enum", "A = 'b'; def __new__(cls, v): return w(v)", "requests.get(f'{API}/repos/a/{E.A.value}')"),
    ("enum.Enum", "A = enum.auto()", "requests.get(f'{API}/repos/a/{E.A.value}')"),
    ("str, enum.Enum", "A = 'b'; def __str__(self): return w(self)", "requests.get(f'{API}/repos/a/{E.A}')"),
    ("enum.Enum", "X = 'c'; b = 'c'", "requests.get(f'{API}/repos/a/{E.b.name}')"),
    ("enum.Enum", "A = 'b'; value = property(w)", "requests.get(f'{API}/repos/a/{E.A.value}')"),
    (
        "enum.StrEnum",
        "b = enum.auto(); def _generate_next_value_(*a): return w()",
        "requests.get(f'{API}/repos/a/{E.b}')",
    ),
]


def _enum(bases: str, body: str, rest: str) -> str:
    return "\n".join([f"class E({bases}):", *(f"    {line}" for line in body.split("; ")), rest])


@pytest.mark.parametrize("parts", ENUMERATIONS)
def test_a_member_of_an_enumeration_is_known(parts: tuple[str, str, str]) -> None:
    found = _find(_enum(*parts))
    assert _told(_enum(*parts)) == [normal(REPO)] and not found.unknown, found


@pytest.mark.parametrize("parts", UNSURE)
def test_a_member_that_may_be_otherwise_is_not_told(parts: tuple[str, str, str]) -> None:
    assert normal(REPO) not in _told(_enum(*parts))


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        ("P = types.SimpleNamespace(repo='/repos/a/b')\nrequests.get(API + P.repo)", [REPO]),
        ("requests.get('https://api.github.com/repos/{o}/{r}'.format_map({'o': 'a', 'r': 'b'}))", [REPO]),
        ("import string\nU = string.Template('https://api.github.com/repos/${owner}/$repo')\n"
         "requests.get(U.substitute({'owner': 'a'}, repo='b'))", [REPO]),
        ("with contextlib.ExitStack() as stack:\n    c = stack.enter_context(httpx.Client(base_url=API))\n"
         "    c.get('/repos/a/b')", [REPO]),
        ("R = collections.namedtuple('R', 'owner repo')\nr = R('a', repo='b')\n"
         "requests.get(f'{API}/repos/{r.owner}/{r.repo}')", [REPO]),
        ("class R(typing.NamedTuple):\n    owner: str\n    repo: str = 'b'\nr = R('a')\n"
         "requests.get(f'{API}/repos/{r.owner}/{r.repo}')", [REPO]),
        ("@dataclass\nclass R:\n    owner: str\n@dataclass\nclass S(R):\n    repo: str\ns = S('a', 'b')\n"
         "requests.get(f'{API}/repos/{s.owner}/{s.repo}')", [REPO]),
        ("@dataclass\nclass R:\n    repo: str\n    http: object = field(default_factory=requests.Session, repr=False)\n"
         "    def __post_init__(self):\n        self.url = f'{API}/repos/{self.repo}'\n"
         "r = R('a/b')\nr.http.get(r.url)", [REPO]),
        ("@contextlib.contextmanager\ndef made(base):\n    s = requests.Session()\n    s.headers['A'] = 'b'\n"
         "    yield base, s\nwith made(API) as (base, s):\n    s.get(f'{base}/repos/a/b')", [REPO]),
        (f"{SESSION}S().get('/repos/a/b')", [REPO]),
        (f"{SESSION}with S() as s:\n    s.request('GET', '/repos/a/b', params={{}})", [REPO]),
        (f"{SESSION}S().post('/repos/a/b/issues', json={{'title': 'T'}})",
         ["github.issues.create owner=a repo=b title=T"]),
        ("class S(requests.Session):\n    def __init__(self, token):\n        super().__init__()\n"
         "        self.headers['Authorization'] = token\n    def repo(self, name):\n"
         "        return self.get(f'{API}/repos/{name}')\nS('t').repo('a/b')", [REPO]),
        (f"{CLIENT}C().get('/repos/a/b')", [REPO]),
        (f"{CLIENT}    def get(self, url, **kwargs):\n        return super().get('/repos' + url, **kwargs)\n"
         "C().get('/a/b')",
         [REPO]),
        ("class S(requests.Session):\n    def __init__(self):\n        super().__init__()\n"
         "        self.params.update({'page': '2'})\nS().get(API + '/user/repos')", ["github.repos.list page=2"]),
        ("class S(requests.Session):\n    pass\ns = S()\ns.params['page'] = '2'\ns.get(API + '/user/repos')",
         ["github.repos.list page=2"]),
        ("class M:\n    def request(self, method, url, **k):\n        return super().request(method, API + url, **k)\n"
         "class S(M, requests.Session):\n    timeout = 5\n    headers = {'A': 'b'}\nS().get('/repos/a/b')", [REPO]),
        ("class S(requests.Session):\n    pass\ns = S()\ns.auth = ('a', 'b')\ns.verify = w()\n"
         "s.get(API + '/repos/a/b')", [REPO]),
        ("class S(requests.Session):\n    pass\nclass T(S):\n    pass\nT().get(API + '/repos/a/b')", [REPO]),
    ],
)  # fmt: skip
def test_what_classes_give_is_read(program: str, calls: list[str]) -> None:
    found = _find(program)
    assert _told(program) == sorted(map(normal, calls)) and not found.unknown, (_told(program), found.unknown)


@pytest.mark.sampled(17)
@pytest.mark.parametrize(
    "program",
    [
        "P = types.SimpleNamespace(repo='b')\nQ = P\nQ.repo = w()\nrequests.get(f'{API}/repos/a/{P.repo}')",
        "P = types.SimpleNamespace(**w())\nrequests.get(f'{API}/repos/a/{P.repo}')",
        "import string\nrequests.get(API + string.Template('/repos/a/$b').substitute(w()))",
        "import string\nrequests.get(API + string.Template('/repos/a/$b').safe_substitute({}))",
        "import string\nrequests.get(API + string.Template(w()).substitute(b='b'))",
        "R = collections.namedtuple('R', w())\nrequests.get(f'{API}/repos/a/{R(1).repo}')",
        "class M(w.Model):\n    repo: str = 'b'\nrequests.get(f'{API}/repos/a/{M(repo=x()).repo}')",
        "class M(w.Model):\n    repo: str = 'b'\nrequests.get(f'{API}/repos/a/{M(**x()).repo}')",
        "class M(w.Model):\n    repo: str\n    @w.field_validator('repo')\n    def f(cls, v):\n        return x(v)\n"
        "requests.get(f'{API}/repos/a/{M(repo=\"b\").repo}')",
        "@dataclass\nclass R:\n    repo: str\n    def __post_init__(self):\n        self.repo = w()\n"
        "requests.get(f'{API}/repos/a/{R(\"b\").repo}')",
        "@contextlib.contextmanager\ndef made():\n    yield 'b', w()\nwith made() as (_, n):\n"
        "    requests.get(f'{API}/repos/a/{n}')",
        "N = ['b']\n@contextlib.contextmanager\ndef made():\n    yield N[0]\nm = made()\nN[0] = w()\nwith m as n:\n"
        "    requests.get(f'{API}/repos/a/{n}')",
        f"{SESSION}S().get(w())",
        f"{SESSION}    def send(self, request, **kwargs):\n        request.url = w()\n"
        "        return super().send(request, **kwargs)\nS().get('/repos/a/b')",
        "class S(requests.Session):\n    request = functools.partialmethod(requests.Session.request, json={})\n"
        "S().get(API + '/repos/a/b')",
        "def _r(self, m, u, **k):\n    return w(m, u)\nclass S(requests.Session):\n    request = _r\n"
        "S().get(API + '/repos/a/b')",
        "class S(requests.Session):\n    send = staticmethod(w)\nS().get(API + '/repos/a/b')",
        "class S(requests.Session):\n    pass\ns = S()\ns.request = lambda m, u, **k: w(m, u)\n"
        "s.get(API + '/repos/a/b')",
        "class C(httpx.Client):\n    base_url = w()\nC().get(API + '/repos/a/b')",
        f"{CLIENT}    def _merge_url(self, url):\n        return w(url)\nC().get('/repos/a/b')",
        "class C(httpx.Client):\n    def __init__(self):\n        super().__init__(base_url=w())\n"
        "C().get('/repos/a/b')",
    ],
)
def test_what_may_be_otherwise_is_not_told(program: str) -> None:
    found = _find(program)
    assert (found.unknown or all(call.open for call in found.calls)) and normal(REPO) not in _told(program), found


def test_a_sessions_parameters_are_those_that_it_was_given_last() -> None:
    program = "s = requests.Session()\ns.params['page'] = '2'\ns.get(API + '/repos/a/b/issues')\n"
    program += (
        "s.params.update(state='all')\ns.get(API + '/repos/a/b/issues')\ns.params[w()] = 1\ns.get(API + '/user')\n"
    )
    assert _told(program) == sorted(map(normal, (
        "github.issues.list owner=a page=2 repo=b",
        "github.issues.list owner=a page=2 repo=b state=all",
        "github.users.me page=2 state=all ?",
    )))  # fmt: skip


def test_what_an_answer_lacks_or_has_is_both_read() -> None:
    head = "from github import Github\nrepo = Github('t').get_repo('a/b')\nfor i in repo.get_issues():\n"
    for test in ("i.pull_request is not None", "i.pull_request is None", "not i.pull_request"):
        called = _told(f"{head}    if {test}:\n        continue\n    i.create_comment('x')\n")
        assert any(call for call in _find(f"{head}    if {test}:\n        continue\n    i.create_comment('x')\n").calls
                   if call.method_id == "github.comments.create"), called  # fmt: skip


@pytest.mark.parametrize(
    ("program", "asked"),
    [
        ("for i in repo.get_issues():\n    i.pull_request\n", True),
        ("for i in repo.get_issues():\n    i.title\n", False),
        ("repo.get_issue(7).pull_request\n", False),
        ("for i in repo.get_issues():\n    i.pull_request = 1\n", False),
    ],
)
def test_pygithub_asks_for_what_a_list_left_out(program: str, asked: bool) -> None:
    head = "from github import Github\nrepo = Github('t').get_repo('a/b', lazy=True)\n"
    found = find("python", head + program, Catalog.bundled(), ("github",))
    opened = [call for call in found.calls if call.method_id == "github.issues.get" and "issue_number" in call.open]
    assert bool(opened) is asked
