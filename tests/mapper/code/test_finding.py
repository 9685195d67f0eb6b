"""The calls that are found in programs, and that nothing else is found."""

from __future__ import annotations

import pytest

from mapper import manifest
from mapper.catalog import Catalog
from mapper.code.abstract_values import plain
from mapper.code.found_calls import ANY, Finding, FoundCall
from mapper.code.languages import read
from mapper.code.method_finder import find
from tests.mapper.code.corpus import LARGER, PYTHON, SHELL, Sample


def told(call: FoundCall) -> str:
    """A call as the corpus writes it."""
    known = {name: repr(value) if not isinstance(value, str) or " " in value else value
             for name, value in call.arguments.items()}  # fmt: skip
    known.update({name: "?" for name in call.open if name != ANY})
    return " ".join([call.method_id, *(f"{name}={value}" for name, value in sorted(known.items())),
                     *(["?"] if ANY in call.open else [])])  # fmt: skip


def normal(written: str) -> str:
    """The arguments of a corpus line sorted by name."""
    return "".join(sorted(written.replace(" ", "")))


@pytest.mark.promise(52)
@pytest.mark.parametrize("sample", [*PYTHON, *LARGER, *SHELL], ids=lambda sample: sample.name.replace(" ", "-"))
def test_the_calls_of_a_program_are_found_and_nothing_else(sample: Sample) -> None:
    found = find(sample.language, sample.program, Catalog.bundled(), sample.services)  # type: ignore[arg-type]
    assert sorted({normal(told(call)) for call in found.calls}) == sorted(normal(call) for call in sample.calls), [
        told(call) for call in found.calls
    ]
    for word in sample.missed:
        assert any(word in one.text for one in found.unknown), found.unknown
    for word in sample.notes:
        assert any(word in note for note in found.notes), found.notes
    if not sample.missed:
        assert found.unknown == ()
    if not sample.notes:
        assert found.notes == ()


def test_calls_of_services_nobody_named_are_kept_apart() -> None:
    found = find("python", "import requests\nrequests.get('https://api.github.com/user')\n", Catalog.bundled(), ())
    assert found.calls == () and [call.method_id for call in found.others] == ["github.users.me"]
    assert found.hosts == ("api.github.com",)


TWINS = """
name = "twins"
title = "Twins"
description = "Two methods at one address."
base_url = "https://twins.example.org"
[scopes.all]
description = "All."
risk = "write"
[methods.one]
http = "POST /things/{id}"
description = "One."
scopes = ["all"]
risk = "write"
irreversible = "it stays."
[methods.one.parameters]
id = "string!"
size = "integer"
[methods.other]
http = "POST /things/{id}"
description = "The other."
scopes = ["all"]
risk = "write"
irreversible = "it stays."
[methods.other.parameters]
id = "string!"
size = "integer"
colour = "string"
"""


@pytest.mark.promise(52)
def test_what_could_be_two_methods_is_none() -> None:
    catalog = Catalog.of([manifest.load(TWINS, file="twins.toml")])
    program = "import requests\nrequests.post('https://twins.example.org/things/7', json={})\n"
    both = find("python", program.replace("{}", "{'size': 1}"), catalog, ("twins",))
    assert both.calls == () and "twins.one, twins.other" in both.unknown[0].text
    one = find("python", program.replace("{}", "{'colour': 'red'}"), catalog, ("twins",))
    assert [call.method_id for call in one.calls] == ["twins.other"]


def test_a_function_that_is_handed_on_may_be_called_by_anybody() -> None:
    program = """
import signal, schedule, requests
def leave(number, frame):
    requests.put(f"https://api.github.com/user/starred/meadow/{number}")
signal.signal(signal.SIGTERM, leave)
schedule.every().hour.do(lambda: requests.get("https://api.github.com/user/repos"))
"""
    found = find("python", program, Catalog.bundled(), ("github",))
    assert [(call.method_id, call.open) for call in found.calls] == [("github.stars.add", ("repo",)),
                                                                     ("github.repos.list", ())]  # fmt: skip


def test_what_is_opened_without_a_body_is_read() -> None:
    program = "import urllib.request as u\nu.urlopen('https://api.github.com/user')\nu.urlopen(u.Request(URL, {}))"
    program = program.replace("URL", "'https://api.github.com/repos/a/b/issues'").replace("{}", 'b\'{"title": "x"}\'')
    found = find("python", program, Catalog.bundled(), ("github",))
    assert [call.method_id for call in found.calls] == ["github.users.me", "github.issues.create"]


def test_accounts_say_where_a_service_is() -> None:
    program = "import requests\nrequests.get('https://git.example.org/api/v3/user')\n"
    catalog = Catalog.bundled()
    assert find("python", program, catalog, ("github",)).calls == ()
    found = find("python", program, catalog, ("github/work",), {"github": ["https://git.example.org/api/v3"]})
    assert [call.method_id for call in found.calls] == ["github.users.me"]
    elsewhere = find("python", program.replace("https:", "http:"), catalog, ("github",),
                     {"github": ["https://git.example.org/api/v3"]})  # fmt: skip
    assert elsewhere.calls == () and elsewhere.unknown


@pytest.mark.sampled(5)
@pytest.mark.promise(52)
@pytest.mark.parametrize(
    "program",
    [
        "(" * 5000 + ")" * 5000,
        "x = " + "+".join(["1"] * 20000),
        "def f():\n    f()\n    g()\ndef g():\n    f()\nf()\n" * 200,
        "x = ['a']\n" + "for a in x:\n  " * 1 + "x = x + x\n" * 100,
        "\n".join(f"def f{n}(a): return f{n + 1}(a) or f{n + 1}(a)" for n in range(60)) + "\nf0(1)",
        "a = 'x' * 100000000\nb = '%s' * 10**9 % a\n",
        "import requests\n" + "\n".join(f"requests.get('https://slack.com/api/m{n}')" for n in range(3000)),
        "f'{" * 300,
        "x = lambda: x()\nx()\n",
        "class A(A): pass\nA().b()\n",
        "class A:\n    def __init__(self): A()\nA()\n",
        "d = {}\nd['d'] = d\nd.update(d)\nfor k in d: d[k] = d\n",
        "\0",
        "import requests\nrequests.get(b'\\xff')\nrequests.get(1)\nrequests.get(None, params=[[]])\nrequests.get()\n",
        "import requests as r\nr.get('https://[::1', params='a=1;b')\nr.get('https://x:99999/')\n",
    ],
    ids=lambda program: str(len(program)),
)
@pytest.mark.parametrize("language", ["python", "shell"])
def test_no_program_breaks_the_reader(program: str, language: str) -> None:
    assert isinstance(find(language, program, Catalog.bundled(), ("slack",)), Finding)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("v = '%.2f' % 1.5", False),
        ("v = '%05d' % 3", False),
        ("v = '%*d' % (5, 3)", False),
        ("v = '%(a)x' % {'a': 30}", False),
        ("v = '%d of %s, 5%%' % (3, 'x')", "3 of x, 5%"),
        ("v = ['a'].pop()", False),
        ("v = ['a'] if x() else ['b']\nv.append('c')", False),
        ("v = 'b' if ['a'].pop() else 'c'", False),
        ("v = 'b' if ['a'].sort() else 'c'", "c"),
        ("d = {'v': 'a'}\nd.clear()\nv = d.get('v', 'b')", False),
        ("d = {'v': 'a'}\nd.popitem()\nv = d.get('v', 'b')", False),
    ],
)
def test_a_value_is_what_python_makes_of_it(lines: str, known: object) -> None:
    sending = "import requests\nrequests.post('https://a.example', json={'v': v})"
    (request,) = read("python", f"{lines}\n{sending}").requests
    found, value = plain(dict(request.body.items)["v"])
    assert (value if found else False) == known
