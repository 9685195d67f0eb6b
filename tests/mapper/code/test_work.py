"""Reading a program takes work in proportion to its length, or ends: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mapper.code.abstract_values import Lit
from mapper.code.languages import read
from mapper.code.sent_requests import MAX_WORK, Seen

LINEAR: dict[str, tuple[str, Callable[[int], str]]] = {
    "for": ("python", lambda n: "".join(f"for a{i} in x:\n  b{i} = 1\n" for i in range(n))),
    "if": ("python", lambda n: "".join(f"if x:\n  b{i} = 1\n" for i in range(n))),
    "while": ("python", lambda n: "".join(f"while x:\n  b{i} = b{i} + 1\n" for i in range(n))),
    "try": ("python", lambda n: "".join(f"try:\n  b{i} = f()\nexcept E: pass\n" for i in range(n))),
    "match": ("python", lambda n: "match x:\n" + "".join(f"  case {i}: b{i} = 1\n" for i in range(n))),
    "left": ("python", lambda n: "".join(f"for i in [1, 2]:\n  if x: continue\n  else: break\nb{i} = 1\n"
                                         for i in range(n))),
    "with": ("python", lambda n: "import contextlib\n@contextlib.contextmanager\ndef m():\n  global v\n  v = 1\n"
             "  yield\n  v = 2\n" + "with m(): pass\n" * n),
    "async-with": ("python", lambda n: "class C:\n  async def __aenter__(self):\n    self.a = 1\n    return self\n"
                   "  async def __aexit__(self, *a): self.a = 2\nasync def m():\n" + "  async with C() as c: c.a\n" * n
                   + "m()\n"),
    "decorators": ("python", lambda n: "".join(f"@print\n@lambda f: 'x'\ndef f{i}(): pass\n" for i in range(n))),
    "operators": ("python", lambda n: "class C:\n  def __add__(self, o): self.x = o\n"
                  + "".join(f"c{i} = C()\n" for i in range(n))),
    "given-away": ("python", lambda n: "import other\n" + "".join(f"d{i} = [[1]]\nother.f(d{i})\n" for i in range(n))),
    "shell-if": ("shell", lambda n: "".join(f"if x; then b{i}=1; fi\n" for i in range(n))),
    "shell-case": ("shell", lambda n: "case x in\n" + "".join(f"a{i}) b{i}=1;;\n" for i in range(n)) + "esac\n"),
    "shell-while": ("shell", lambda n: "".join(f"while x; do b{i}=1; done\n" for i in range(n))),
}  # fmt: skip
BOUNDED: dict[str, tuple[str, Callable[[int], str]]] = {
    "keywords": ("python", lambda n: "f(" + ",".join(f"a{i}=1" for i in range(n)) + ")\n"),
    "append": ("python", lambda n: "x = []\n" + "x.append(1)\n" * n),
    "text": ("python", lambda n: "x = ''\n" + "x += 'a' + f()\n" * n),
    "class": ("python", lambda n: "class A:\n" + "".join(f"  def m{i}(self): pass\n" for i in range(n)) + "a = A()\n"
              + "".join(f"a.m{i}()\n" for i in range(n))),
    "bases": ("python", lambda n: "class A0: pass\nclass B0: pass\n" + "".join(
        f"class A{i + 1}(A{i}, B{i}): pass\nclass B{i + 1}(B{i}): pass\n" for i in range(n))),
    "objects": ("python", lambda n: "import other\nclass C:\n" + "".join(
        f"  def m{i}(self): self.a{i} = 1\n" for i in range(n)) + "c = C()\n" + "other.f(c)\n" * n),
    "slices": ("python", lambda n: f"x = [{'[1],' * n}]\n" + "x[q:]\n" * n),
    "again": ("shell", lambda n: "cat > f.py <<'EOF'\n" + "x=1\n" * n + "EOF\n" + "python f.py\n" * n),
}  # fmt: skip
# Programs short enough for the daemon's own process, which grow by each of their lines.
_LISTS = "L = [1, 2, 3]\n" + "L = L + L\n" * 9
_PIECES = {f"{i}": i for i in range(100)}
_EITHER = "C = A if q else B\n"


def _often(line: str) -> str:
    """A line in loops within loops, each of which is gone through twice."""
    return "".join(f"{' ' * depth}for a in q:\n" for depth in range(9)) + f"{' ' * 9}{line}\n"


SMALL = {
    "replace": "S = 'xxxx'\n" + "S = S.replace('x', 'xxxx')\n" * 30,
    "replace-itself": "S = 'x' * 200\n" + "S = S.replace('x', S)\n" * 30,
    "replace-nothing": "S = 'x'\n" + "S = S.replace('', 'xx')\n" * 30,
    "replace-in-part": "S = 'x' * 9999\nT = f'a{q}b'\n" + "T = T.join([T, T, T])\n" * 9 + _often("S.replace('x', T)"),
    "zfill": "'x'.zfill(99999999)\n",
    "bytes": "S = b'xxxx'\n" + "S = S + S + S + S\n" * 30,
    "quote": "from urllib.parse import quote\nS = '%' * 9999\n" + "S = quote(S)\n" * 60,
    "join": "T = ['x' * 9999]\n" + "T = T + T\n" * 11 + _often("''.join(T);" * 20),
    "split": "S = 'x' * 9999\n" + _often("S.split('x');" * 40),
    "percent": "S = '%s' * 4999\n" + _often("S % S;" * 90),
    "format": "S = '{}' * 4999\n" + _often("S.format(S);" * 40),
    "list-as-key": _LISTS + _often("L[L];" * 90),
    "any-of-many": f"D = {_PIECES}\n".replace(" ", "") + _often("D[q];" * 9),
    "shared-things": "from functools import partial as p\nA = B = 1\n"
    + "A, B = p(A, A, A), p(B, B, B)\n" * 24 + _EITHER,
    "shared-methods": "A = []; B = []\n" + "A, B = [A.a, A.a], [B.a, B.a]\n" * 24 + _EITHER,
    "bound": _LISTS + "from functools import partial as p\ndef g(*a): 0\nA = p(g, *L)\n" + "A = p(A, *L)\n" * 20
    + _often("A();" * 90),
    "methodcaller": _LISTS + "import operator\nA = operator.methodcaller('x', *L)\n" + _often("A(q);" * 90),
    "meeting": _LISTS + "B = L + [1]\nC = L + [1]\n" + _often(
        "if q: " + "".join(f"{chr(97 + i)} = " for i in range(26)) + "B\n" + " " * 9
        + "else: " + "".join(f"{chr(97 + i)} = " for i in range(26)) + "C"
    ),
    "json-body": "import requests\nS = '{\"a\": [' + '1,' * 4900 + '1]}'\n"
    + _often("requests.post('https://a.b', data=S);" * 12),
}  # fmt: skip


def lines(program: tuple[str, Callable[[int], str]], n: int) -> tuple[int, Seen]:
    """How many lines of the reader run, and what it saw."""
    language, made = program
    return lines_of(lambda: read("python" if language == "python" else "shell", made(n)))


def lines_of(reading: Callable[[], Seen]) -> tuple[int, Seen]:
    """The same, of any reading."""
    import sys

    count = 0

    def tracer(frame: object, event: str, _: object) -> Callable[..., object]:
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        seen = reading()
    finally:
        sys.settrace(before)
    return count, seen


@pytest.mark.sampled(5)
@pytest.mark.promise(16)
@pytest.mark.parametrize("name", LINEAR)
def test_twice_as_long_takes_twice_the_work(name: str) -> None:
    language, made = LINEAR[name]
    kind = "python" if language == "python" else "shell"
    once, twice = (read(kind, made(n)).spent for n in (300, 600))
    assert twice < 2.3 * once
    few, seen = lines(LINEAR[name], 100)
    many, _ = lines(LINEAR[name], 200)
    assert many < 2.5 * few  # what is counted is what is done
    assert not seen.notes


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BOUNDED)
def test_what_grows_faster_ends_with_a_note_that_says_what_to_do(name: str) -> None:
    language, made = BOUNDED[name]
    seen = read("python" if language == "python" else "shell", made(2000))
    assert seen.spent < 1.1 * MAX_WORK
    assert any("--method" in note for note in seen.notes) or seen.spent < MAX_WORK


def test_functions_that_call_each_other_take_the_work_that_is_counted() -> None:
    count = 5
    program = "import requests\n" + "".join(
        f"def f{i}(n, p):\n  requests.get('https://a.b/' + p)\n"
        f"  for j in ('x', 'y'):\n    f{(i + 1) % count}(n - 1, p + j)\n"
        for i in range(count)
    )
    done, seen = lines_of(lambda: read("python", program + "f0(3, '')\n", Seen(budget=10_000)))
    assert done < 100 * 10_000
    assert seen.requests


_PARSER = "import argparse, sys, gitlab\np = argparse.ArgumentParser()\n"


@pytest.mark.promise(16)
@pytest.mark.parametrize(
    "program",
    [
        "".join(f"p.add_argument('--a{i}')\n" for i in range(400)) + "p.parse_args()\n" * 400,
        "".join(f"p.set_defaults(a{i}=1)\n" for i in range(400)) + "p.parse_args(['x'])\n" * 400,
        "".join(f"p.add_argument('a{i}')\n" for i in range(100)) + f"W = {['b'] * 100}\n" + "p.parse_args(W)\n" * 400,
        f"g, S = gitlab.Gitlab(), '{'/a' * 4000}'\n" + "g.http_get(S)\n" * 90,
    ],
    ids=["options", "defaults", "words", "addresses"],
)
def test_arguments_and_addresses_take_the_work_that_is_counted(program: str) -> None:
    done, seen = lines_of(lambda: read("python", _PARSER + program, Seen(budget=20_000)))
    assert done < 50 * 20_000
    assert any("--method" in note for note in seen.notes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "program",
    [
        "".join(f"e{i} = {{'d': d}}\n" for i in range(400)),
        "def f(d, k):\n  d[k] = 'x'\n" + "".join(f"f(d, 'm{i}')\n" for i in range(400)),
        "".join(f"d['m{i}'] = 'x'\n" for i in range(100)),
    ],
)
def test_a_mapping_that_has_many_names_is_changed_often(program: str) -> None:
    head = "import requests\nd = {'a': 'x'}\n"
    changes = "".join(f"d['k{i}'] = 'a{i}'\n" for i in range(400))
    done, seen = lines_of(lambda: read("python", f"{head}{program}{changes}requests.get('https://a.b/' + d['k3'])\n"))
    assert done < 3_000_000
    assert len(seen.requests) == 1 and not seen.notes


def test_what_a_way_changes_is_known_where_ways_meet() -> None:
    """The control: nothing is lost by it."""
    program = """
import requests
x, y = input(), input()
url = "https://slack.com/api/"
if x:
    name = "chat.postMessage"
else:
    name = "chat.delete"
for i in range(3):
    if y:
        continue
    other = 1
requests.post(url + name)
"""
    assert [repr(one.url).rpartition("/")[2] for one in read("python", program).requests] == [
        "chat.postMessage')",
        "chat.delete')",
    ]


@pytest.mark.sampled(5)
@pytest.mark.promise(16)
@pytest.mark.parametrize("name", SMALL)
def test_a_short_program_that_grows_takes_little_work_and_memory(name: str) -> None:
    import tracemalloc

    budget = 10_000
    tracemalloc.start()
    try:
        done, seen = lines_of(lambda: read("python", SMALL[name], Seen(budget=budget)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(SMALL[name]) <= 1000
    assert not any("valid" in note for note in seen.notes)
    assert peak < 50 * 2**20
    assert done < 100 * budget


def test_a_short_program_never_ends_its_reading_by_an_error() -> None:
    digits = "S = '9' * 5000\n('{' + S + '}').format(1)\n"
    for program in ("range(99999999999999999999999)\n", digits, "S = b'x' + 'x'\n", "'x'.zfill('x')\n"):
        assert not read("python", program).notes


def test_long_texts_that_are_written_out_stay_known() -> None:
    """The control: what isn't made larger is no bound's."""
    long = "line\\n" * 5000
    program = f"""
import requests
S = "{long}".replace("line", "word").strip().lower()
requests.post("https://slack.com/api/chat.postMessage", json={{"text": S}})
for one in "#a,#b".split(","):
    requests.post("https://slack.com/api/chat.postMessage", json={{"channel": one.replace("#", "%23")}})
"""
    bodies = [dict(one.body.items) for one in read("python", program).requests]
    assert bodies[0] == {"text": Lit(("word\n" * 5000).strip())}
    assert [body["channel"] for body in bodies[1:]] == [Lit("%23a"), Lit("%23b")]
