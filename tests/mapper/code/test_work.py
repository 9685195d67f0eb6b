"""Reading a program takes work in proportion to its length, or ends: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
    "again": ("shell", lambda n: "cat > f.py <<'EOF'\n" + "x=1\n" * n + "EOF\n" + "python f.py\n" * n),
}  # fmt: skip


def lines(program: tuple[str, Callable[[int], str]], n: int) -> tuple[int, Seen]:
    """How many lines of the reader run, and what it saw."""
    import sys

    count = 0

    def tracer(frame: object, event: str, _: object) -> Callable[..., object]:
        nonlocal count
        count += event == "line"
        return tracer

    language, made = program
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        seen = read("python" if language == "python" else "shell", made(n))
    finally:
        sys.settrace(before)
    return count, seen


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


@pytest.mark.parametrize("name", BOUNDED)
def test_what_grows_faster_ends_with_a_note_that_says_what_to_do(name: str) -> None:
    language, made = BOUNDED[name]
    seen = read("python" if language == "python" else "shell", made(2000))
    assert seen.spent < 1.1 * MAX_WORK
    assert any("--method" in note for note in seen.notes) or seen.spent < MAX_WORK


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
