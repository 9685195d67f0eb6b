"""What a generator gives may be another by the time that it is asked for; a set has what was added to it."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code import languages, method_finder, method_match
from mapper.code.method_finder import find
from mapper.code.python import TOO_MUCH
from mapper.code.sent_requests import Seen
from runtimes.code import reader
from tests.mapper.code.test_finding import told

ISSUES = "https://api.github.com/repos/octo/hello/issues"
CALL = "slack.chat.postMessage channel="
PYTHON = "import requests\n\ndef post(c):\n"
PYTHON += "    requests.post('https://slack.com/api/chat.postMessage', json={'channel': c})\n"


def _told(program: str) -> list[str]:
    return sorted(told(call) for call in find("python", PYTHON + program, Catalog.bundled(), ("slack",)).calls)


@pytest.mark.parametrize(
    "program",
    [
        "c = 'C'\ndef g():\n    yield c\nit = g()\nc = 'D'\nfor x in it: post(x)\n",
        "c = 'C'\ndef g():\n    x = c\n    yield x\nit = g()\nc = 'D'\nfor x in it: post(x)\n",
        "class A:\n    def g(self):\n        while True: yield self.p\na = A()\na.p = 'C'\n"
        "for x in a.g():\n    post(x)\n    a.p = 'D'\n",
        "st = {'p': 'C'}\ndef g():\n    while True: yield st['p']\nfor x in g():\n    post(x)\n    st['p'] = 'D'\n",
        "cs = ['C']\ndef g(xs):\n    yield from xs\nit = g(cs)\ncs.append(input())\nfor x in it: post(x)\n",
        "def made():\n    return c\ndef g():\n    yield made()\nc = 'C'\nit = g()\nc = 'D'\nfor x in it: post(x)\n",
        "def g():\n    x = ['C']\n    yield x\n    yield x\nfor x in g():\n    post(x[0])\n    x[0] = 'D'\n",
    ],
)
def test_an_item_that_may_be_another_by_then_is_not_known(program: str) -> None:
    assert _told(program) == [f"{CALL}?"]


def test_an_item_that_cannot_be_another_is_known() -> None:
    program = "P = 'A'\ndef g(a):\n    for n in range(2):\n        x = f'{P}{a}{n}'\n        yield x\n"
    assert _told(f"{program}for x in g('C'): post(x)\n") == [f"{CALL}AC0", f"{CALL}AC1"]


def test_a_generator_of_javascript_that_reads_what_changes_is_not_known() -> None:
    program = "let u = '7'; function* g() { yield u; yield u }\n"
    program += f"for (const x of g()) {{ fetch('{ISSUES}/' + x); u = '8' }}"
    found = find("javascript", program, Catalog.bundled(), ("github",))
    assert [call.open for call in found.calls] == [("issue_number",)]


@pytest.mark.parametrize(
    ("program", "channels"),
    [
        ("cs = {'C'}\ncs.add(input())\n", "?C"),
        ("cs = {'C'}\ncs.add('D')\n", "CD"),
        ("cs = {'C'}\ncs.update(['D'], ['E'])\n", "CDE"),
        ("cs = {'C'}\ncs.update(input())\n", "?"),
        ("cs = {'C' for _ in w}\ncs.add(input())\n", "?"),
        ("cs = {'C' for _ in w}\ncs.update([input()])\n", "?"),
        ("cs = ['C' for _ in w]\ncs.insert(0, input())\n", "?"),
        ("cs = {'C', 'D'}\ncs.discard('D')\n", "CD"),
    ],
)
def test_what_is_added_to_a_set_is_in_it(program: str, channels: str) -> None:
    assert _told(f"{program}for c in cs:\n    post(c)\n") == [f"{CALL}{one}" for one in channels]


async def test_what_is_nested_too_deep_is_said_to_be_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*_: object) -> Seen:
        raise RecursionError

    catalog = Catalog.bundled()
    with monkeypatch.context() as patched:
        patched.setattr(method_match.Matching, "finding", deep)
        assert method_finder.matched(Seen(notes=["One."]), catalog, ()).notes == ("One.", TOO_MUCH)
    with monkeypatch.context() as patched:
        patched.setattr(languages, "read", deep)
        patched.setattr(reader, "read", deep)
        assert find("python", "pass", catalog, ()).notes == (TOO_MUCH,)
        assert (await reader.Reader().read("python", "pass", "person")).notes == [TOO_MUCH]
