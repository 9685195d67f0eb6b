"""What programs' objects have where several ways part and meet, and what of them may be another by then."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

HEAD = (
    "import argparse, collections, functools, os, requests, sys, threading, types, typing\n"
    "from dataclasses import KW_ONLY, dataclass, field\nAPI = 'https://api.github.com'\n"
    "P = types.SimpleNamespace(x='a', dry=False)\n"
)
DELETES = "requests.delete(f'{API}/repos/o/{P.x}')\n"
KNOWN_A, KNOWN_B = "github.repos.delete owner=o repo=a", "github.repos.delete owner=o repo=b"
JS_HEAD = "class C { constructor() { this.x = 'a'; this.dry = false } set(v) { this.x = v } }\nconst c = new C()\n"
JS_DELETES = "fetch('https://api.github.com/repos/o/' + c.x, { method: 'DELETE' })\n"


def _find(program: str, language: str = "python") -> Finding:
    return find(language, program, Catalog.bundled(), ("github",))


def _told(program: str, language: str = "python") -> set[str]:
    return {normal(told(call)) for call in _find(program, language).calls}


EITHER = [
    "if os.path.exists('z'):\n    P.x = 'b'\n",
    "if os.path.exists('z'):\n    pass\nelse:\n    P.x = 'b'\n",
    "try:\n    open('z')\n    P.x = 'b'\nexcept OSError:\n    pass\n",
    "try:\n    open('z')\nexcept OSError:\n    P.x = 'b'\n",
    "match sys.argv[1]:\n    case 'x':\n        P.x = 'b'\n",
    "def put():\n    P.x = 'b'\nos.path.exists('z') and put()\n",
    "def put():\n    P.x = 'b'\nput() if os.path.exists('z') else None\n",
    "def put():\n    if w():\n        P.x = 'b'\n        return\n    P.dry = False\nput()\n",
    "for a in ('m', 'n'):\n    if w(a):\n        P.x = 'b'\n        continue\n    P.dry = False\n",
    "Q = types.SimpleNamespace(x='c')\n(P if w() else Q).x\nR = P\nif w():\n    R.x = 'b'\n",
    "@dataclass\nclass C:\n    x: str = 'a'\n    def __post_init__(self):\n        if os.environ.get('R'):\n"
    "            self.x = 'b'\nP = C()\n",
]


@pytest.mark.parametrize("program", EITHER)
def test_what_one_of_several_ways_leaves_an_object_is_told_beside_the_others(program: str) -> None:
    assert _told(HEAD + program + DELETES) == {normal(KNOWN_A), normal(KNOWN_B)}


ANY = [
    "for line in open('f'):\n    P.x = 'b' + P.x\n",
    "while w():\n    P.x = P.x + 'b'\n",
    "for line in open('f'):\n    if line:\n        P.x = line\n        continue\n",
    "def put():\n    P.x = 'b'\nthreading.Thread(target=put).start()\n",
    "def put():\n    P.x = 'b'\nw(put)\n",
    "class C:\n    def __init__(self):\n        self.x = 'a'\n    def put(self):\n        self.x = 'b'\nP = C()\n"
    "w(lambda: P.put())\n",
    "vars(P)['x'] = 'b'\n",
    "P.__dict__.update(x='b')\n",
    "setattr(P, 'x', 'b')\n",
    "setattr(P, w(), 'b')\n",
    "argparse.ArgumentParser().parse_args(namespace=P)\n",
    "[setattr(P, 'x', one) for one in w()]\n",
]


@pytest.mark.parametrize("program", ANY)
def test_what_may_be_anything_by_then_is_told_as_open(program: str) -> None:
    found = _find(HEAD + program + DELETES)
    assert [call.open for call in found.calls if normal(told(call)) not in (normal(KNOWN_A), normal(KNOWN_B))], found
    last = [call for call in found.calls if call.line == len((HEAD + program + DELETES).splitlines())]
    assert len(last) == 1 and last[0].open, found.calls


def test_a_flag_that_is_set_on_one_way_hides_nothing() -> None:
    assert _told(f"{HEAD}if '--dry' in sys.argv:\n    P.dry = True\nif not P.dry:\n    {DELETES}") == {normal(KNOWN_A)}
    found = _told(f"{JS_HEAD}if (process.argv[2]) c.dry = true\nif (!c.dry) {JS_DELETES}", "javascript")
    assert found == {normal(KNOWN_A)}


@pytest.mark.parametrize(
    "program",
    [
        "",
        "P.x = 'c'\nP.x = 'a'\n",
        "if w():\n    P.dry = True\nelse:\n    P.dry = False\n",
        "for line in open('f'):\n    P.line = line\n",
        "def put(p):\n    p.x = 'a'\nP.x = 'b'\nput(P)\n",
        "if w():\n    P = types.SimpleNamespace(x='a')\nelse:\n    P = types.SimpleNamespace(x='a', y=1)\n",
        "try:\n    P.time = w()\nexcept OSError:\n    P.time = 0\n",
        "w(lambda: P.x)\n",
    ],
)
def test_what_every_way_leaves_is_known(program: str) -> None:
    found = _find(HEAD + program + DELETES)
    assert {normal(told(call)) for call in found.calls} == {normal(KNOWN_A)} and not found.unknown, found


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        ("c.x = 'b'\n", {KNOWN_B}),
        ("c['x'] = 'b'\n", {KNOWN_B}),
        ("if (process.argv[2]) c.x = 'b'\n", {KNOWN_A, KNOWN_B}),
        ("if (process.argv[2]) c.set('b')\n", {KNOWN_A, KNOWN_B}),
        ("c.y = 'b'\n", {KNOWN_A}),
        ("c[name()] = 'b'\n", {"github.repos.delete owner=o repo=?"}),
        ("setTimeout(() => { c.x = 'b' }, 0)\nawait sleep(1)\n", {"github.repos.delete owner=o repo=?"}),
        ("ready().then(() => c.set('b'))\nawait sleep(1)\n", {"github.repos.delete owner=o repo=?"}),
    ],
)
def test_a_field_of_javascripts_object_is_what_it_was_given_last(program: str, calls: set[str]) -> None:
    assert _told(JS_HEAD + program + JS_DELETES, "javascript") == set(map(normal, calls))


FIELDS = [  # the fields of a class, what it is given, what it has
    ("@dataclass\nclass R:\n    k: str = field(default='z', kw_only=True)\n    x: str = ''", "'a'"),
    ("@dataclass\nclass R:\n    k: typing.ClassVar[str] = 'z'\n    x: str = ''", "'a'"),
    ("@dataclass\nclass R:\n    k: str = field(init=False, default='z')\n    x: str = ''", "'a'"),
    ("@dataclass\nclass R:\n    x: str\n    _: KW_ONLY\n    k: str = ''", "'a', k='z'"),
    ("class R(collections.namedtuple('R', 'x')):\n    @property\n    def y(self):\n        return self.x", "'a'"),
    ("class R(collections.namedtuple('R', 'x')):\n    @property\n    def x(self):\n        return 'a'", "'b'"),
    ("def kept(cls):\n    ALL.append(cls)\n    return cls\nALL = []\n@kept\n@dataclass\nclass R:\n    x: str", "'a'"),
    ("class B:\n    def __init_subclass__(cls):\n        w(cls)\n@dataclass\nclass R(B):\n    x: str", "'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "given"), FIELDS)
def test_what_a_class_is_given_by_place_goes_where_it_goes(made: str, given: str) -> None:
    assert _told(f"{HEAD}{made}\nP = R({given})\n{DELETES}") == {normal(KNOWN_A)}


@pytest.mark.parametrize(
    "made",
    [
        "class R(collections.namedtuple('R', 'x')):\n    def __new__(cls, x):\n        return w(x)",
        "@dataclass\nclass R:\n    x: str\n    def __new__(cls, *a):\n        return w()",
        "class R:\n    def __init__(self, x):\n        self.x = x\n    def __setattr__(self, n, v):\n        w(n, v)",
        "class R:\n    def __init__(self, x):\n        self.x = x\n    def __getattribute__(self, n):\n"
        "        return w(n)",
        "class M(type):\n    def __call__(cls, *a):\n        return w()\nclass R(metaclass=M):\n"
        "    def __init__(self, x):\n        self.x = x",
        "def other(cls):\n    cls.x = w()\n    return cls\n@other\nclass R:\n    x = 'a'\n    def __init__(self, x):\n"
        "        pass",
        "class B:\n    def __init_subclass__(cls):\n        cls.x = w()\nclass R(B):\n    x = 'a'\n"
        "    def __init__(self, x):\n        pass",
    ],
)
def test_a_class_that_changes_its_objects_tells_nothing_of_what_they_have(made: str) -> None:
    found = _find(f"{HEAD}{made}\nP = R('a')\n{DELETES}")
    assert normal(KNOWN_A) not in {normal(told(call)) for call in found.calls}, found
    assert all(call.open for call in found.calls)


CLASS = (
    "class C:\n    x = 'a'\n    @classmethod\n    def put(cls, v):\n        cls.x = v\n    def set(self, v):\n"
    "        type(self).x = v\nclass D(C):\n    pass\nd = D()\n"
)


@pytest.mark.parametrize(
    "program",
    ["C.x = 'b'", "D.x = 'b'", "C.put('b')", "d.set('b')", "d.__class__.x = 'b'", "setattr(C, 'x', 'b')",
     "setattr(C, w(), 'b')", "if w():\n    C.x = w()"],
)  # fmt: skip
def test_a_classs_attribute_that_is_changed_is_not_told_as_first_written(program: str) -> None:
    for place in ("D.x", "d.x", "D().x"):
        found = _find(f"{HEAD}{CLASS}{program}\nrequests.delete(f'{{API}}/repos/o/{{{place}}}')\n")
        assert [call.open for call in found.calls] == [("repo",)], found


@pytest.mark.parametrize("program", ["", "C.y = 'b'", "D.y = w()", "C.put"])
def test_a_classs_attribute_that_nothing_changes_is_told(program: str) -> None:
    for place in ("D.x", "d.x", "D().x", "C.x"):
        found = _told(f"{HEAD}{CLASS}{program}\nrequests.delete(f'{{API}}/repos/o/{{{place}}}')\n")
        assert found == {normal(KNOWN_A)}


def test_a_static_field_that_is_changed_is_not_told_as_first_written() -> None:
    head = "class C { static x = 'a'; static set(v) { this.x = v } }\n"
    sends = "fetch('https://api.github.com/repos/o/' + C.x, { method: 'DELETE' })"
    assert _told(head + sends, "javascript") == {normal(KNOWN_A)}
    for change in ("C.x = 'b'\n", "C.set('b')\n"):
        assert _told(head + change + sends, "javascript") == {normal("github.repos.delete owner=o repo=?")}
