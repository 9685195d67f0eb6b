"""What Python calls without a name (operators, properties, libraries), and what changes a list by another way to it, is
told, or what it changes isn't known. Each program was run, with a `requests` that noted what was sent.
"""

from __future__ import annotations

import pytest

from mapper.code.languages import read
from tests.mapper.code.test_control_flow import BASE, HEAD, _told, _untold

SETS = "        global v\n        v = 'b'\n"
SETTER = (
    "class C:\n    y = 'a'\n    @property\n    def x(self): return 'q'\n    @x.setter\n    def x(self, n): self.y = n\n"
)
MANAGER = (
    "import contextlib\nv = 'a'\n@contextlib.contextmanager\ndef m():\n    global v\n"
    "    v = 'b'\n    yield\n    v = 'c'\n"
)
INNER = "\npost('-'.join(q))"
OPERATORS = {
    "__add__": "c + 1", "__radd__": "1 + c", "__iadd__": "c += 1", "__eq__": "c == 1", "__ne__": "c != 1",
    "__lt__": "sorted([c, c])", "__contains__": "1 in c", "__getitem__": "c[1]", "__setitem__": "c[1] = 2",
    "__delitem__": "del c[1]", "__neg__": "-c", "__or__": "c | 1", "__getattr__": "c.z", "__setattr__": "c.z = 1",
    "__delattr__": "del c.z", "__abs__": "abs(c)", "__next__": "next(c)", "__del__": "del c", "__copy__":
    "import copy; copy.copy(c)", "__class_getitem__": "C[1]", "__truediv__": "c / 1",
}  # fmt: skip
RETURNING = {
    "__len__": ("0", "len(c)"), "__bool__": ("True", "if c: pass"), "__str__": ("'s'", "print(c)"),
    "__repr__": ("'s'", "repr(c)"), "__format__": ("'s'", "f'{c}'"), "__iter__": ("iter([1])", "for _ in c: pass"),
    "__hash__": ("1", "{c: 1}"), "__index__": ("0", "[1][c]"), "__int__": ("0", "int(c)"),
    "__fspath__": ("'s'", "import os; os.fspath(c)"), "__reversed__": ("[]", "reversed(c)"),
}  # fmt: skip
UNNAMED = [
    *[(f"v = 'a'\nclass C:\n    def {name}(self, *a):\n{SETS}c = C()\n{use}\npost(v)", "b")
      for name, use in OPERATORS.items()],
    *[(f"v = 'a'\nclass C:\n    def {name}(self, *a):\n{SETS}        return {given}\nc = C()\n{use}\npost(v)", "b")
      for name, (given, use) in RETURNING.items()],
    ("class C:\n    def __add__(self, o): post('a')\nC() + 1", "a"),
    ("class C:\n    def __eq__(self, o): return True\nclass D(C): pass\nif D() == None: post('a')", "a"),
    ("class P:\n    def __init__(self): self.x = ''\n    def __truediv__(self, o):\n        self.x += o\n"
     "        return self\np = P()\np / 'a' / 'b'\npost(p.x)", "ab"),
    # Properties, and what is like them.
    (f"{SETTER}c = C()\nc.x = 'b'\npost(c.y)", "b"),
    (f"{SETTER}class D(C): pass\nc = D()\nc.x += 'b'\npost(c.y)", "qb"),
    (f"{SETTER}c = C()\nsetattr(c, 'x', 'b')\npost(c.y)", "b"),
    (f"{SETTER}c, d = C(), C()\ne = c if long() else d\ne.x = 'b'\npost(e.y)", "b"),
    ("class C:\n    def __init__(self): self.x = 'a'\n    @property\n    def x(self): return self._x\n    @x.setter\n"
     "    def x(self, n): self._x = n + 'z'\npost(C().x)", "az"),
    ("class C:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, n): post(n)\n"
     "C().x = 'a'", "a"),
    ("class C:\n    y = 'a'\n    @property\n    def x(self): return 1\n    @x.deleter\n    def x(self): self.y = 'b'\n"
     "c = C()\ndel c.x\npost(c.y)", "b"),
    ("class C:\n    y = 'a'\n    def g(self): return 1\n    def s(self, n): self.y = n\n    x = property(g, s)\n"
     "c = C()\nc.x = 'b'\npost(c.y)", "b"),
    ("class C:\n    def __init__(self): self.x = 'a'\n    def g(self): return self._x\n    def s(self, n): "
     "self._x = n + 'z'\n    x = property(g, s)\npost(C().x)", "az"),
    (f"v = 'a'\nclass D:\n    def __set__(self, o, n):\n{SETS}class C:\n    x = D()\nC().x = 1\npost(v)", "b"),
    (f"import functools\nv = 'a'\nclass C:\n    @functools.cached_property\n    def x(self):\n{SETS}C().x\n"
     "post(v)", "b"),
    # What a class is made by, and what its library calls.
    (f"v = 'a'\nclass C:\n    def __new__(cls):\n{SETS}        return object.__new__(cls)\nC()\npost(v)", "b"),
    (f"v = 'a'\nclass M(type):\n    def __call__(cls):\n{SETS}class C(metaclass=M): pass\nC()\npost(v)", "b"),
    ("class M(type):\n    def __init__(cls, *a): post('a')\nclass C(metaclass=M): pass", "a"),
    (f"v = 'a'\nclass B:\n    def __init_subclass__(cls):\n{SETS}class C(B): pass\npost(v)", "b"),
    (f"v = 'a'\nclass D:\n    def __set_name__(self, o, n):\n{SETS}class C:\n    x = D()\npost(v)", "b"),
    (f"v = 'a'\ndef d(cls):\n{SETS}        return cls\n@d\nclass C: pass\npost(v)", "b"),
    ("class D:\n    def __init__(self, f): self.f = f\n    def __call__(self, *a):\n        post('x')\n"
     "        self.f(*a)\n@D\ndef g(n): post(n)\ng('a')", "x a"),
    (f"import threading\nv = 'a'\nclass T(threading.Thread):\n    def run(self):\n{SETS}t = T()\nt.start()\nt.join()\n"
     "post(v)", "b"),
    ("import threading\nclass T(threading.Thread):\n    def __init__(self, x):\n        super().__init__()\n"
     "        self.x = x\n    def run(self): post(self.x)\nT('a').start()", "a"),
    ("from html.parser import HTMLParser\nv = 'a'\nclass H(HTMLParser):\n    def handle_data(self, d):\n"
     f"{SETS}H().feed('b')\npost(v)", "b"),
    ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self): post('a')\n"
     "unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T))", "a"),
    (f"v = 'a'\nclass D(dict):\n    def __missing__(self, k):\n{SETS}D()['x']\npost(v)", "b"),
    (f"import other\nv = 'a'\nclass C:\n    def set(self):\n{SETS}other.calls_set(C())\npost(v)", "b"),
    ("import other\nclass C:\n    def set(self): post('a')\nother.calls_set(C())", "a"),
    ("import functools\nv = 'a'\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef _(x: int):\n"
     f"{SETS}f(1)\npost(v)", "b"),
    ("import copy\nclass C:\n    def __init__(self): self.x = 'a'\nc = C()\n"
     "d, e = copy.copy(c), copy.deepcopy([c])[0]\nd.x = 'b'\ne.x = 'c'\npost(c.x + d.x + e.x)", "abc"),
    # The order in which a class's bases are looked through.
    ("class A:\n    def n(self): return 'a'\nclass B(A):\n    def n(self): return 'b' + super().n()\nclass C(A):\n"
     "    def n(self): return 'c' + super().n()\nclass D(B, C): pass\npost(D().n())", "bca"),
    ("class A:\n    def n(self): return 'a'\nclass B(A): pass\nclass C(A):\n    def n(self): return 'c'\n"
     "class D(B, C): pass\npost(D().n())", "c"),
    ("class B: x = 'b'\nclass C: x = 'c'\nclass D(B, C): pass\npost(D().x)\npost(D.x)", "b b"),
    ("class A:\n    x = 'a'\nclass B(A):\n    def x(self): return 'b'\npost(B().x())", "b"),
    ("class A:\n    def n(self): return 'a'\nclass B(A):\n    def n(self): return 'b'\nclass C(B):\n"
     "    def n(self): return super(B, self).n()\npost(C().n())", "a"),
    ("class A:\n    @classmethod\n    def f(cls): post(cls.x)\nclass B(A):\n    x = 'b'\n    @classmethod\n"
     "    def f(cls): super().f()\nB.f()", "b"),
    # What stands around the body of a `with`.
    (f"{MANAGER}with m(): post(v)\npost(v)", "b c"),
    (f"{MANAGER.replace('@contextlib.contextmanager', '@k').replace('v =', 'k = contextlib.contextmanager; v =', 1)}"
     "with m(): post(v)\npost(v)", "b c"),
    ("import contextlib\nd = {'x': 'a'}\n@contextlib.contextmanager\ndef m(**k):\n    old = dict(d)\n    d.update(k)\n"
     "    yield\n    d.update(old)\nwith m(x='b'): post(d['x'])\npost(d['x'])", "b a"),
    ("import contextlib\nv = 'a'\n@contextlib.contextmanager\ndef m():\n    yield\n    post(v)\n"
     "with m(): v = 'b'", "b"),
    ("import contextlib\nclass C:\n    v = 'a'\n    @contextlib.contextmanager\n    def m(self):\n"
     "        self.v = 'b'\n        yield self\n        self.v = 'c'\nc = C()\n"
     "with c.m(): post(c.v)\npost(c.v)", "b c"),
]  # fmt: skip
# `q` is a list of 'a' alone, which gets a 'b' by another way to it.
SHARED = [
    "xs = [q]\nys = xs[:]\nys[0].append('b')", "for y in [q][:1]: y.append('b')", "xs = [q]\nxs.pop().append('b')",
    "xs = [q]\nxs[0:len(xs)][0].append('b')", "{'k': q}.pop('k').append('b')",
    "for y, _ in zip([q], 'z'): y.append('b')", "max([q]).append('b')", "next(iter([q])).append('b')",
    "([q] * 2)[0].append('b')", "{'a': q}.get(open(__file__).read(0) + 'a').append('b')",
    "import collections\ncollections.deque([q])[0].append('b')", "y, *_ = [q, 1]\ny.append('b')",
    "import collections\ncollections.defaultdict(list, k=q)['k'].append('b')", "dict(zip('k', [q]))['k'].append('b')",
    "{k: q for k in 'kl'}['k'].append('b')", "match q:\n    case y: y.append('b')",
    "match [q, 1]:\n    case [y, _]: y.append('b')", "def g(): yield q\nfor y in g(): y.append('b')",
    "def g():\n    for y in [q]: yield y\nfor y in g(): y.append('b')",
    "def g(): yield from [q]\nnext(g()).append('b')", "def g(y): yield y\nlist(g(q))[0].append('b')",
    "import other\nother.adds_b(q)", "import other\nother.adds_b(x=q)",
    "import other\nother.adds_b_to_each([q])", "import other\nother.Thing(q).adds_b()",
    "import other\nt = other.Thing()\nt.q = q\nt.adds_b()",
    "from dataclasses import dataclass, replace\n@dataclass\nclass R:\n    y: list\n"
    "replace(R(q)).y.append('b')",
    "q.__iadd__(['b'])", "[q].sort(key=lambda y: y.append('b'))", "xs = []\nxs.insert(0, q)\nxs[0].append('b')",
    "import collections\nR = collections.namedtuple('R', 'y')\nR(q)[0].append('b')",
    "xs = [0]\nxs[0] = q\nxs[0].append('b')",
    "try: raise ValueError(q)\nexcept ValueError as e: e.args[0].append('b')",
    "list(map(lambda z: q, [1]))[0].append('b')",
    "dict.fromkeys('k', q)['k'].append('b')", "d = {}\nd[open(__file__).read(0) + 'k'] = q\nd['k'].append('b')",
    "class C:\n    def __getitem__(self, k): return q\nC()[0].append('b')",
    "class C:\n    def __getattr__(self, k): return q\nC().z.append('b')",
    "class C:\n    def __iter__(self): return iter([q])\nfor y in C(): y.append('b')",
    "class C:\n    def __add__(self, o): return q\n(C() + 1).append('b')",
    "class D:\n    def __get__(self, *a): return q\nclass C: y = D()\nC().y.append('b')",
    "import functools\nclass C:\n    @functools.cached_property\n    def y(self): return q\nC().y.append('b')",
    "import functools\n@functools.lru_cache\ndef f(): return q\nf().append('b')",
]  # fmt: skip
OBJECTS = [
    "[c][:][0].x = 'b'", "def g(): yield c\nfor y in g(): y.x = 'b'", "import other\nother.sets_b(c)",
    "import other\nother.calls_set(c)", "setattr(c, open(__file__).read(0) + 'x', 'b')",
    "class W:\n    def __init__(self, o): object.__setattr__(self, 'o', o)\n"
    "    def __setattr__(self, k, n): setattr(self.o, k, n)\nW(c).x = 'b'",
]  # fmt: skip


@pytest.mark.parametrize(("program", "sent"), UNNAMED)
def test_what_no_name_calls_is_told(program: str, sent: str) -> None:
    assert _untold("python", program, sent) == []


@pytest.mark.parametrize("program", SHARED)
def test_a_list_that_two_ways_lead_to_is_one(program: str) -> None:
    assert _untold("python", f"q = ['a']\n{program}{INNER}", "a-b") == []


@pytest.mark.parametrize("program", OBJECTS)
def test_an_object_that_others_have_may_be_changed_by_them(program: str) -> None:
    made = "class C:\n    x = 'a'\n    def set(self): self.x = 'b'\nc = C()\n"
    assert _untold("python", f"{made}{program}\npost(c.x)", "b") == []


SENDING = [
    "cs = [C(2), C(1)]\ncs.sort(key=lambda c: c.n)\nfor c in cs: c.run()", "max([c, C(2)], key=lambda c: c.n).run()",
    "import random\nrandom.choice([c]).run()", "cs = [c]\ncs.pop().run()", "import other\nother.render(c)\nc.run()",
    "from collections import deque\nq = deque([c])\nc.run()", "d = {}\nd[id(c)] = c\nc.run()",
    "import flask\napp = flask.Flask('a')\napp.c = c\nc.run()", "match c:\n    case _: pass\nc.run()",
    "def g(c): yield c\nfor each in g(c): pass\nc.run()", "try: raise ValueError(c)\nexcept ValueError: c.run()",
    "class D:\n    def __init__(self):\n        self.c = C(1)\nd = D()\nimport other\nother.f(d)\nd.c.run()",
    "import other\nd = {'s': requests.Session(), 'n': 1}\nother.render(d)\nd['s'].post(BASE + 'a')",
    "import other\ncs = [c, 'z']\nother.f(cs)\nfor each in cs: each.run()",
    "import other\nclass D(C):\n    def __init__(self):\n        super().__init__(1)\n        other.register(self)\n"
    "D().run()", "import typing\ntyping.cast(C, c).run()",
    "import contextlib\nwith contextlib.nullcontext(requests.Session()) as s: s.post(BASE + 'a')",
]  # fmt: skip


@pytest.mark.parametrize("program", SENDING)
def test_what_sends_requests_is_told_whoever_else_has_it(program: str) -> None:
    made = (
        f"BASE = {BASE!r}\nclass C:\n    def __init__(self, n):\n        self.n = n\n"
        "        self.s = requests.Session()\n"
        "    def run(self): self.s.post(BASE + 'a')\nc = C(1)\n"
    )
    assert _told(read("python", f"import requests\n{made}{program}"))


@pytest.mark.parametrize(
    "program",
    [
        "q = ['a', 'z']\npost(q[:1][0])", "q = ['a']\nlen(q[:5]), max(q), print(q)\npost(q[0])",
        "d = {'k': ['a']}\nimport json\njson.dumps(d)\npost(d['k'][0])",
        "class C:\n    x = 'a'\n    def __repr__(self): return f'{self.x}'\n"
        "    def __eq__(self, o): return self.x == o.x\nc = C()\nprint(c, c == c)\npost(c.x)",
    ],
)  # fmt: skip
def test_what_changes_nothing_leaves_what_is_known(program: str) -> None:
    assert [one.replace("\\", "") for one in _told(read("python", HEAD["python"] + program))] == [f"{BASE}a"]
