"""What a program sends is told with the values that it has by then, however it comes there; else it is told as open.

Each program here was run: `sent` is what it sent.
"""

from __future__ import annotations

import re

import pytest

from mapper.code.abstract_values import choices, parts_of
from mapper.code.languages import read
from mapper.code.sent_requests import Seen
from policies.actions import Language

BASE = "https://api.example.com/"
HEAD = {
    "python": f"import requests\ndef post(x): requests.get(f'{BASE}{{x}}')\n"
    "def long(): return len(open(__file__).read()) > 3\n",
    "javascript": f"const post = async (x) => {{ await fetch('{BASE}' + x) }};\nconst long = process.argv.length > 1\n",
    "shell": f'post() {{ curl -s "{BASE}$1"; }}\n',
}


def _told(seen: Seen) -> list[str]:
    """The addresses that are asked for, as patterns."""
    return [
        "".join(re.escape(part) if isinstance(part, str) else ".*" for part in parts_of(one))
        for request in seen.requests
        for one in choices(request.url)
    ]


def _untold(language: Language, program: str, sent: str) -> list[str]:
    """What is sent and isn't told."""
    told = _told(read(language, HEAD[language] + program))
    return [one for one in sent.split() if not any(re.fullmatch(each, BASE + one) for each in told)]


ENUM = "from enum import Enum, IntEnum\nclass C(str, Enum):\n    RED = 'red'\n"
SUPPRESS = "from contextlib import suppress\n"
SUBMIT = "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor()\n"
PYTHON = [
    # Members of enumerations, written into a text.
    (ENUM + "post(f'{C.RED}')", "C.RED"),
    (ENUM + "post(str(C.RED))", "C.RED"),
    (ENUM + "post('%s' % C.RED)", "C.RED"),
    (ENUM + "from urllib.parse import urlencode\npost('?' + urlencode({'a': C.RED}))", "?a=C.RED"),
    ("from enum import Enum\nclass C(int, Enum):\n    RED = 1\npost(C.RED)", "C.RED"),
    # What is evaluated where it is defined.
    ("n = 'a'\ndef f(x=n):\n    post(x)\nn = 'b'\nf()", "a"),
    ("n = 'a'\nf = lambda x=n: post(x)\nn = 'b'\nf()", "a"),
    ("n = 'a'\nclass C:\n    x = n\nn = 'b'\npost(C.x)\npost(C().x)", "a"),
    ("n = 'a'\nclass C:\n    def f(self, x=n): post(x)\nn = 'b'\nC().f()", "a"),
    ("fs = []\nfor n in ('a', 'b'):\n    fs.append(lambda n=n: post(n))\nn = 'c'\nfor f in fs: f()", "a b"),
    ("def f(x, acc=[]):\n    acc.append(x)\n    post('-'.join(acc))\nf('a')\nf('b')", "a a-b"),
    ("class C:\n    x = ['a']\n    def add(self, v): self.x.append(v)\nC().add('b')\npost('-'.join(C().x))", "a-b"),
    # What a final block changes after a way that it doesn't end.
    ("v = 'a'\ndef f():\n    global v\n    try: return v\n    finally: v = 'b'\npost(f())\npost(v)", "a b"),
    ("v = 'a'\nfor x in open(__file__):\n    try: break\n    finally: v = 'b'\npost(v)", "b"),
    ("d = {'a': 'x'}\ndef f():\n    try: return d\n    finally: d['a'] = 'y'\npost(f()['a'])", "y"),
    ("class M:\n    def __enter__(self): return self\n    def __exit__(self, *a):\n        global v\n        v = 'b'\n"
     "v = 'a'\ndef f():\n    with M(): return 1\nf()\npost(v)", "b"),
    # Ways that end early.
    ("v = 'a'\nfor x in open(__file__):\n    if long():\n        v = 'b'\n        continue\n    w = 1\npost(v)", "b"),
    ("v = 'a'\nfor x in 'pq':\n    if long():\n        v = 'b'\n        break\n    v = 'a'\npost(v)", "b"),
    ("v = 'a'\nfor x in ('p', 'q'):\n    if long():\n        v = 'b'\n        break\n    v = 'c'\npost(v)", "b"),
    ("v = 'a'\nwhile True:\n    if long():\n        v = 'b'\n        break\npost(v)", "b"),
    ("v = 'a'\nfor x in ('p', 'q'):\n    if long(): break\nelse:\n    v = 'b'\npost(v)", "a"),
    ("v = 'a'\ndef f():\n    global v\n    if long():\n        v = 'b'\n    else:\n        v = 'c'\nf()\npost(v)", "b"),
    ("def o():\n    v = 'a'\n    def f():\n        nonlocal v\n        if long():\n            v = 'b'\n"
     "            return\n        v = 'c'\n    f()\n    post(v)\no()", "b"),
    ("v = 'a'\ntry:\n    v = 'b'\n    int('q')\n    v = 'c'\nexcept ValueError:\n    post(v)", "b"),
    ("v = 'a'\ndef f():\n    global v\n    v = 'b'\n    int('q')\n    v = 'c'\n"
     "try: f()\nexcept ValueError: post(v)", "b"),
    ("def f():\n    v = 'a'\n    try:\n        if long():\n            v = 'b'\n            return\n        v = 'c'\n"
     "    finally:\n        post(v)\nf()", "b"),
    (SUPPRESS + "with suppress(ValueError):\n    raise ValueError\npost('a')", "a"),
    (SUPPRESS + "v = 'a'\nwith suppress(ValueError):\n    v = 'b'\n    int('q')\n    v = 'c'\npost(v)", "b"),
    ("class M:\n    def __enter__(self): pass\n    def __exit__(self, *a): post(v); return True\nv = 'a'\nwith M():\n"
     "    v = 'b'\n    int('q')\n    v = 'c'\npost(v)", "b"),
    ("a = b = c = 'x'\nfor n in open(__file__).readlines()[:9]:\n    c = b\n    b = a\n    a = 'y'\npost(c)", "y"),
    ("v = 'a'\nmatch len('long'):\n    case n if (v := 'b') and n < 2:\n        post('no')\n    case _:\n"
     "        post(v)", "b"),
    ("v = 'a'\n[v := x for x in ('p', 'q')]\npost(v)", "q"),
    ("def f(n, x):\n    post(x)\n    if n: f(n - 1, x + 'b')\nf(3, 'a')", "a ab abb abbb"),
    # Several names for one list or mapping.
    ("d = {'a': 'x'}\ne = d\ne['a'] = 'y'\npost(d['a'])", "y"),
    ("d = {'a': 'x'}\ndef f(q): q['a'] = 'y'\nf(d)\npost(d['a'])", "y"),
    ("ds = [{'a': 'x'}]\nfor d in ds: d['a'] = 'y'\npost(ds[0]['a'])", "y"),
    ("d = {'a': 'x'}\ne = d\nif long(): e['a'] = 'y'\npost(d['a'])", "y"),
    ("a = ['x']\nb = a\nb += ['y']\npost('-'.join(a))", "x-y"),
    ("xs = ['a']\nadd = xs.append\nadd('b')\npost('-'.join(xs))", "a-b"),
    ("import heapq\nxs = ['a', 'b']\nheapq.heappop(xs)\npost('-'.join(xs))", "b"),
    ("d = {'a': 'x', 'b': 'y'}\ndel d['a']\npost(d.get('a', 'z'))", "z"),
    # What runs at another time.
    ("v = 'a'\ng = (v + x for x in ['p', 'q'])\nv = 'b'\nfor x in g: post(x)", "bp bq"),
    ("v = 'a'\ndef g():\n    post(v)\n    yield 1\nit = g()\nv = 'b'\nnext(it)", "b"),
    ("v = 'a'\nm = map(lambda x: post(v), [1])\nv = 'b'\nlist(m)", "b"),
    ("import threading\nv = 'a'\nt = threading.Thread(target=lambda: post(v))\nv = 'b'\nt.start()", "b"),
    (SUBMIT + "v = 'a'\ndef f():\n    global v\n    v = 'b'\nex.submit(f)\npost(v)", "a"),
    ("import signal, os\nv = 'a'\ndef h(*a):\n    global v\n    v = 'b'\nsignal.signal(10, h)\nv = 'c'\n"
     "os.kill(os.getpid(), 10)\npost(v)", "b"),
    ("import asyncio\nv = 'a'\nasync def f(): post(v)\nasync def main():\n    global v\n    c = f()\n    v = 'b'\n"
     "    await c\nasyncio.run(main())", "b"),
    ("import asyncio\nv = 'a'\ndef f(): post(v)\nasync def main():\n    global v\n    c = asyncio.to_thread(f)\n"
     "    v = 'b'\n    await c\nasyncio.run(main())", "b"),
    ("import functools\nv = 'a'\n@functools.lru_cache\ndef f(): return v\nf()\nv = 'b'\npost(f())", "a"),
    # In which order items are, and how many.
    ("post('-'.join(reversed(['a', 'b'])))", "b-a"),
    ("post('-'.join(sorted(['b', 'a'])))", "a-b"),
    ("xs = ['a']\nfor x in xs:\n    post(x)\n    if len(xs) < 3: xs.append(x + 'b')", "a ab abb"),
    # What a class has.
    ("class A:\n    def __call__(self, x): post(x)\nA()('a')", "a"),
    ("from dataclasses import dataclass, field\nX = False\n@dataclass\nclass C:\n    a: str = field(default='q',"
     " init=X)\n    b: str = 'w'\npost(C('z').a)", "q"),
    ("def deco(f):\n    return lambda self, x: f(self, 'b')\nclass C:\n    @deco\n    def go(self, x): post(x)\n"
     "C().go('a')", "b"),
    ("class C:\n    def x(self): return 'a'\n    def x(self): return 'b'\npost(C().x())", "b"),
    ("class C:\n    def x(self): return 'a'\nC.x = lambda self: 'b'\npost(C().x())", "b"),
]  # fmt: skip
JAVASCRIPT = [
    ("let v = 'a'; class C { x = v }; v = 'b'; await post(new C().x)", "b"),
    ("class C { constructor() { const { b = 'a' } = {}; this.b = b } }; await post(new C().b)", "a"),
    ("const C = class { go() { return post('a') } }; await new C().go()", "a"),
    ("class C { static x = 'a'; static { C.x = 'b' } }; await post(C.x)", "b"),
    ("class A { x() { return 'a' } }; A.prototype.x = () => 'b'; await post(new A().x())", "b"),
    ("let v = 'a'; async function f() { await null; await post(v) }; const p = f(); v = 'b'; await p", "b"),
    ("const fs = []; for (let i of ['a', 'b']) fs.push(() => post(i)); for (const f of fs) await f()", "a b"),
    ("let v = 'a'; o: for (const x of ['p', 'q']) { for (const y of ['r']) { if (long) { v = 'b'; continue o } }"
     " v = 'c' }\nawait post(v)", "b"),
    ("let v = 'a'; o: for (const x of ['p', 'q']) { for (const y of ['r']) { if (long) { v = 'b'; break o } }"
     " v = 'c' }\nawait post(v)", "b"),
    ("let v = 'a'; switch (process.argv.length) { case 2: if (long) { v = 'b'; break } v = 'c'; break; "
     "default: v = 'd' }\nawait post(v)", "b"),
    ("for (const x of ['p', 'q']) { switch (x) { case 'p': if (long) break; post('n') }\nawait post(x) }", "p q"),
    ("let v = 'a'; try { v = 'b'; JSON.parse('{'); v = 'c' } catch { }\nawait post(v)", "b"),
    ("const [a, , b] = ['a', 'c', 'b']; await post(b)", "b"),
    (f"const u = new URL('{BASE}a'); const w = u; w.pathname = '/b'; await fetch(u)", "b"),
]  # fmt: skip
SHELL = [
    ('f() { if [ -f "$0" ]; then c=b; return; fi; c=a; }\nf; post "$c"', "b"),
    ('f() { case "$0" in *sh) c=b; return;; esac; c=a; }\nf; post "$c"', "b"),
    ('f() { c=b; [ -f "$0" ] && return; c=a; }\nf; post "$c"', "b"),
    ('f() { for x in p q; do c=$x; [ -f "$0" ] && return; c=w; done; c=a; }\nf; post "$c"', "p"),
    ('c=a\nfor x in p q; do if [ -f "$0" ]; then c=b; break; fi; c=a; done\npost "$c"', "b"),
    ('c=a\nwhile true; do if [ -f "$0" ]; then c=b; break; fi; c=a; done\npost "$c"', "b"),
    ('c=a\nfor x in p q; do for y in r; do if [ -f "$0" ]; then c=b; continue 2; fi; done; c=d; done\npost "$c"', "b"),
    ('a=x; b=x; c=x\nfor i in $(seq 9); do c=$b; b=$a; a=y; done\npost "$c"', "y"),
    ('c=a\n[ -f "$0" ] && c=b && [ ! -f "$0" ] && c=d\npost "$c"', "b"),
    ('c=a\ncleanup() { post "$c"; }\ntrap cleanup EXIT\nc=b', "b"),
    ("c=a\ntrap 'post \"$c\"' EXIT\nf() { c=b; exit 0; c=d; }\nf\nc=z", "b"),
]


@pytest.mark.parametrize(("program", "sent"), PYTHON)
def test_python_sends_what_is_told(program: str, sent: str) -> None:
    assert not _untold("python", program, sent)


@pytest.mark.parametrize(("program", "sent"), JAVASCRIPT)
def test_javascript_sends_what_is_told(program: str, sent: str) -> None:
    assert not _untold("javascript", program, sent)


@pytest.mark.parametrize(("program", "sent"), SHELL)
def test_a_shell_sends_what_is_told(program: str, sent: str) -> None:
    assert not _untold("shell", program, sent)


@pytest.mark.parametrize(
    ("language", "program", "told"),
    [
        ("python", "d = {'a': 'x'}\ne = d.copy()\ne['a'] = 'y'\npost(d['a'])", ["x"]),
        ("python", "d = {'a': 'x'}\ndef f(q): q['a'] = 'y'\nf(d)\npost(d['a'])", ["y"]),
        ("python", "for x in ('p', 'q'):\n    if long(): continue\n    post(x)", ["p", "q"]),
        ("python", "v = 'a'\nif long():\n    v = 'b'\n    raise SystemExit\npost(v)", ["a"]),
        ("python", "import asyncio\nasync def f(x): post(x)\nasyncio.run(f('a'))", ["a"]),
        ("javascript", "let v = 'a'\nif (long) { v = 'b'; process.exit() }\nawait post(v)", ["a"]),
        ("shell", 'c=a\nif [ -f x ]; then c=b; exit 1; fi\npost "$c"', ["a"]),
        ("shell", 'c=a\n( c=b; exit 1 )\npost "$c"', ["a"]),
    ],
)
def test_what_is_so_on_every_way_that_goes_on_is_known(language: Language, program: str, told: list[str]) -> None:
    found = {one for one in _told(read(language, HEAD[language] + program)) if not one.endswith(".*")}
    assert found == {re.escape(BASE + one) for one in told}


def test_what_a_trap_runs_that_is_made_while_the_program_runs_is_said() -> None:
    assert any("trap" in note for note in read("shell", 'trap "$(cat handler)" EXIT').notes)
