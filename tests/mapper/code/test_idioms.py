"""Idioms of honest programs are read; a variant of each of which something isn't known stays unknown."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.abstract_values import UNKNOWN, Fields, Json, Listed, Lit, Stream, Text, Value
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from mapper.code.shell_values import WORDS, changed, jq, printf
from policies.actions import Language
from tests.mapper.code.test_finding import normal, told

POST = "curl -d channel=C https://slack.com/api/chat.postMessage"
TO_SLACK = "https://slack.com/api"
ISSUES = "https://api.github.com/repos/octo/hello/issues"
LIST = "github.issues.list owner=octo repo=hello"
OCTOKIT = "import { Octokit } from '@octokit/rest'; const o = new Octokit({ auth: process.env.GITHUB_TOKEN });\n"
ASK = f"const ask = (u, {{ method = 'GET', body }} = {{}}) => fetch('{ISSUES}' + u, {{ method, body }});\n"


def _find(language: Language, program: str) -> Finding:
    return find(language, program, Catalog.bundled(), ("slack", "github"))


def _told(language: str, program: str) -> list[str]:
    return sorted({told(call) for call in _find(language, program).calls})


def _same(language: str, program: str, *calls: str) -> None:
    assert sorted(map(normal, _told(language, program))) == sorted(map(normal, calls)), _told(language, program)


@pytest.mark.parametrize(
    ("program", "call"),
    [
        (f'f() {{ curl -s "$@"; }}\nf -d channel=C {TO_SLACK}/chat.postMessage', "slack.chat.postMessage channel=C"),
        (
            f'f() {{ local m=$1; shift; curl -d "$@" "{TO_SLACK}/$m"; }}\nf chat.postMessage channel=C',
            "slack.chat.postMessage channel=C",
        ),
        (f'f() {{ until "$@"; do sleep 1; done; }}\nf {POST}', "slack.chat.postMessage channel=C"),
        (f'a=(-s)\na+=(-d channel=C)\ncurl "${{a[@]}}" {TO_SLACK}/chat.postMessage',
         "slack.chat.postMessage channel=C"),
        (f'a=(x -d channel=C)\ncurl "${{a[@]:1}}" {TO_SLACK}/chat.postMessage', "slack.chat.postMessage channel=C"),
        (f'a=(chat.postMessage)\ncurl -d channel=C "{TO_SLACK}/${{a[0]}}"', "slack.chat.postMessage channel=C"),
        (f'for ((i=0; i<3; i++)); do {POST}; done', "slack.chat.postMessage channel=C"),
        (f"while read -r x; do :; done < <({POST})", "slack.chat.postMessage channel=C"),
        (
            f"""b=$(jq -n --arg c C '{{channel: $c}}')\ncurl --json "$b" {TO_SLACK}/chat.postMessage""",
            "slack.chat.postMessage channel=C",
        ),
        (
            f"""jq -n --arg c C '{{channel: $c}}' > b.json\ncurl --json @b.json {TO_SLACK}/chat.postMessage""",
            "slack.chat.postMessage channel=C",
        ),
        (f"""echo '{{"channel":"C"}}' | curl --json @- {TO_SLACK}/chat.postMessage | jq .ok""",
         "slack.chat.postMessage channel=C"),
        (f"""cat <<E | curl --json @- {TO_SLACK}/chat.postMessage | jq .ok\n{{"channel":"C"}}\nE""",
         "slack.chat.postMessage channel=C"),
        (f"""b=$(printf '{{"channel":"%s"}}' C)\ncurl --json "$b" {TO_SLACK}/chat.postMessage""",
         "slack.chat.postMessage channel=C"),
        ('r=octo/hello\ncurl "https://api.github.com/repos/${r%%/*}/${r##*/}"',
         "github.repos.get owner=octo repo=hello"),
    ],
)  # fmt: skip
def test_a_shells_lists_and_what_it_prints_are_read(program: str, call: str) -> None:
    _same("shell", program, call)
    assert not _find("shell", program).unknown and not _find("shell", program).notes


@pytest.mark.parametrize(
    "program",
    [
        f'f() {{ curl -d channel=C "{TO_SLACK}/$1"; }}\nfor x in $(cat l); do set -- "$x"; done\nf "$@"',
        f'f() {{ shift; curl -d channel=C "{TO_SLACK}/$1"; }}\nf chat.postMessage',
        f'f() {{ if test -f x; then shift; fi; curl -d channel=C "{TO_SLACK}/$1"; }}\nf users.list $X',
        f'a=(chat.postMessage)\na[0]=$X\ncurl -d channel=C "{TO_SLACK}/${{a[0]}}"',
        f'a=($X)\ncurl -d channel=C "{TO_SLACK}/${{a[0]}}"',
        f'a=(*)\ncurl -d channel=C "{TO_SLACK}/${{a[0]}}"',
        f'm=chat.postMessage\nread -r m\ncurl -d channel=C "{TO_SLACK}/$m"',
        f'm=chat.postMessage\nprintf -v m %s "$X"\ncurl -d channel=C "{TO_SLACK}/$m"',
        f'm=chat.postMessage\nunset m[0]\ncurl -d channel=C "{TO_SLACK}/$m"',
        f'declare -u m=chat.postMessage\ncurl -d channel=C "{TO_SLACK}/$m"',
        f'm=$(echo chat.postMessage > f)\ncurl -d channel=C "{TO_SLACK}/$m"',
        f'm=$(cat <<E | tr a b\nchat.postMessage\nE\n)\ncurl -d channel=C "{TO_SLACK}/$m"',
    ],
)
def test_what_a_shells_list_may_be_otherwise_is_no_call(program: str) -> None:
    assert "slack.chat.postMessage" not in " ".join(_told("shell", program))


@pytest.mark.parametrize(
    ("program", "open_argument"),
    [
        (f'p=1\nwhile true; do curl "{ISSUES}?page=$p"; ((p++)); done', "page=?"),
        (f'p=1\nwhile true; do curl "{ISSUES}?page=$p"; let p+=1; done', "page=?"),
        (f'p=1\nwhile getopts x p; do curl "{ISSUES}?page=$p"; done', "page=?"),
        (f"""echo '{{"title":"A"}}' > b\nsed -i s/A/B/ b > b\ncurl --json @b {ISSUES}""", "?"),
        (f"""echo '{{"title":"A"}}' > b\necho more >> b\ncurl --json @b {ISSUES}""", "?"),
        (f"""echo '{{"title":"A"}}' > b\ncurl -o b https://example.org\ncurl --json @b {ISSUES}""", "?"),
        (f"""echo '{{"title":"A"}}' | curl --json @- {ISSUES} < other""", "?"),
        (f"""jq -n '{{title: "A"}} + $ARGS.named' --arg body x | curl --json @- {ISSUES}""", "?"),
        (f"""jq -n --arg t A '{{title: ($t, "B")}}' | curl --json @- {ISSUES}""", "title=?"),
    ],
)
def test_what_a_shell_changes_is_told_as_open(program: str, open_argument: str) -> None:
    assert any(open_argument in call.split() for call in _told("shell", program)), _told("shell", program)


def test_a_functions_own_variable_is_not_the_one_outside() -> None:
    body = f'{{ local m=users.list; curl "{TO_SLACK}/$m"; }}'
    _same("shell", f'm=chat.postMessage\nf() {body}\nf\ncurl -d channel=C "{TO_SLACK}/$m"',
          "slack.chat.postMessage channel=C", "slack.users.list")  # fmt: skip
    assert any("second name" in note for note in _find("shell", f"x=a\ndeclare -n y=x\n{POST}").notes)


@pytest.mark.parametrize(
    ("args", "printed"),
    [
        (["-n", "--arg", "a", "x", '{a: $a, "b": [1, $a], c: {d: null}, $a}'],
         Fields((("a", Lit("x")), ("b", Listed((Lit(1), Lit("x")))), ("c", Fields((("d", Lit(None)),)))))),
        (["-nc", "--argjson", "n", "3", "{n: $n}"], Fields((("n", Lit(3)),))),
        (["-n", "--argjson", "n", "3.0", "{n: $n}"], Fields((("n", UNKNOWN),))),
        (["-n", "{a: (1, 2), b: \"x\\(.y)\", c: $none, d: .e | f}"],
         Fields((("a", UNKNOWN), ("b", UNKNOWN), ("c", UNKNOWN), ("d", UNKNOWN)))),
        (["{a, b: .c[1:2], d: \"}\"}", "file"], Fields((("a", UNKNOWN), ("b", UNKNOWN), ("d", Lit("}"))))),
        (["-n", "{a: [1, empty]}"], Fields((("a", UNKNOWN),))),
        (["-n", "{a: 1} # }"], UNKNOWN),
        (["-n", "{(\"a\"): 1}"], UNKNOWN),
        (["-n", "{a: 1}, {b: 2}"], UNKNOWN),
        (["-n", "{a: 01}"], Fields((("a", UNKNOWN),))),
    ],
)  # fmt: skip
def test_an_object_that_jq_makes(args: list[str], printed: Value) -> None:
    assert jq([Lit(arg) for arg in args]) == Json(printed)


def test_what_jq_and_printf_print_otherwise_is_not_known() -> None:
    for args in (
        ["-r", ".a"],
        ["-n", "--slurpfile", "a", "f", "{a: $a}"],
        ["-f", "x.jq"],
        ["-n"],
        ["--indent", "1", "{}"],
    ):
        assert jq([Lit(arg) for arg in args]) == UNKNOWN
    assert jq([WORDS, Lit("{a: 1}")]) == UNKNOWN and jq([Lit("-n"), UNKNOWN, Lit("{a: 1}")]) == UNKNOWN
    assert printf([Lit("%s-%s\\n"), Lit("a"), UNKNOWN]) == Text(("a-", None, "\n"))
    for args in (["%s", "a", "b"], ["%5s", "a"], ["\\x41"], ["-v", "a"], ["%s"]):
        assert printf([Lit(arg) for arg in args]) == UNKNOWN
    assert printf([Lit("%s"), Stream(UNKNOWN)]) == UNKNOWN


@pytest.mark.parametrize(
    ("known", "how", "value"),
    [
        ("octo/hello/x", "%%/*", "octo"), ("octo/hello/x", "%/*", "octo/hello"), ("octo/hello/x", "##*/", "x"),
        ("octo/hello/x", "#*/", "hello/x"), ("v1.2", "#v", "1.2"), ("a.json", "%.json", "a"), ("aB", "^^", "AB"),
        ("aB", ",,", "ab"), ("abcdef", ":1:3", "bcd"), ("abc", ":1", "bc"), ("abc", "%x", "abc"),
    ],
)  # fmt: skip
def test_a_text_is_cut_as_bash_cuts_it(known: str, how: str, value: str) -> None:
    assert changed(known, how) == Lit(value)
    assert changed(known, "%[a-z]") == changed(known, "#$x") == changed(known, "/a/b") == UNKNOWN


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (f"{ASK}ask('?state=open')", ("github.issues.list owner=octo repo=hello state=open",)),
        (f"{ASK}ask('/7/lock', {{ method: 'PUT' }})", ("github.issues.lock owner=octo repo=hello issue_number=7",)),
        (f"const o = {{}}; fetch('{ISSUES}', {{ method: o?.method ?? 'GET' }})", (LIST,)),
        (f"const g = (o) => fetch('{ISSUES}', {{ headers: h, ...o }}); g()", (LIST,)),
        (
            f"const g = (b) => fetch('{ISSUES}', {{ method: 'POST', ...(b && {{ body: JSON.stringify(b) }}) }});"
            "g({ title: 'A' })",
            ("github.issues.create owner=octo repo=hello title=A",),
        ),
        (
            "class A { constructor(b) { Object.assign(this, { b }) } get(p) { return fetch(this.b + p) } }\n"
            f"class B extends A {{ constructor() {{ super('{ISSUES}') }} one() {{ return super.get('/7') }} }}\n"
            "new B().one()",
            ("github.issues.get owner=octo repo=hello issue_number=7",),
        ),
        (
            f"function* all() {{ yield 7; yield* [8] }}\nfor (const n of all()) fetch(`{ISSUES}/${{n}}`)",
            ("github.issues.get owner=octo repo=hello issue_number=7",
             "github.issues.get owner=octo repo=hello issue_number=8"),
        ),
        (f"{OCTOKIT}o.rest.issues.create({{ owner: 'a', repo: 'b', title: 'T' }})",
         ("github.issues.create owner=a repo=b title=T",)),
        (f"{OCTOKIT}o.paginate(o.rest.issues.listForRepo, {{ owner: 'a', repo: 'b' }})",
         ("github.issues.list owner=a repo=b page=?",)),
        (
            f"{OCTOKIT}const route = 'GET /repos/{{owner}}/{{repo}}/issues'\n"
            "for await (const p of o.paginate.iterator(route, { owner: 'a', repo: 'b' })) console.log(p)",
            ("github.issues.list owner=a repo=b page=?",),
        ),
    ],
)  # fmt: skip
def test_javascripts_defaults_classes_generators_and_octokits_functions(program: str, calls: tuple[str, ...]) -> None:
    _same("javascript", program, *calls)
    assert not _find("javascript", program).unknown


def test_a_graphql_document_that_octokit_is_given_is_read() -> None:
    document = "query { viewer { login } }"
    assert _told("javascript", f"{OCTOKIT}o.graphql('{document}')")
    found = _find("javascript", f"{OCTOKIT}o.graphql('{document}', {{ baseUrl: 'https://x.test' }})")
    assert not found.calls and found.unknown
    assert [call.open for call in _find("javascript", f"{OCTOKIT}o.graphql(process.argv[2])").calls] == [("query",)]


@pytest.mark.parametrize(
    "program",
    [
        f"{ASK}ask('', options)",
        f"{ASK}const p = {{}}; fill(p); function fill(x) {{ x.method = word() }}\nask('', p)",
        f"{ASK}const p = {{ __proto__: other }};\nask('', p)",
        f"const o = JSON.parse(text()); fetch('{ISSUES}', {{ method: o.method ?? 'GET' }})",
        f"const g = (o) => fetch('{ISSUES}', {{ ...o }}); g(process.argv)",
        "class A { constructor(o) { this.m = 'GET'; Object.assign(this, o) }\n"
        f"go() {{ fetch('{ISSUES}', {{ method: this.m }}) }} }}\nnew A(JSON.parse(text())).go()",
        f"function* m() {{ yield 'GET'; yield word() }}\nfor (const method of m()) fetch('{ISSUES}', {{ method }})",
        f"{OCTOKIT}o.rest.issues.create({{ owner: 'a', repo: 'b', title: 'T', baseUrl: 'https://x.test' }})",
        f"{OCTOKIT}o.rest.issues.createEach({{ owner: 'a', repo: 'b' }})",
        f"{OCTOKIT}o.paginate(word(), {{ owner: 'a', repo: 'b' }})",
    ],
)
def test_a_field_that_may_be_there_is_not_taken_for_missing(program: str) -> None:
    assert _find("javascript", program).unknown, _told("javascript", program)


PYTHON = f"import requests, contextlib, functools\nURL = '{TO_SLACK}/chat.postMessage'\n"
PYTHON += "def post(c):\n    requests.post(URL, json={'channel': c})\n"


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (
            "@contextlib.contextmanager\ndef made():\n    s = requests.Session()\n    try:\n        yield s, 'C'\n"
            "    finally:\n        s.close()\nwith made() as (s, c):\n    s.post(URL, json={'channel': c})\n",
            ("slack.chat.postMessage channel=C",),
        ),
        (
            "def names():\n    yield 'C'\n    yield from ('D', 'E')\nfor c in names():\n    post(c)\n",
            tuple(f"slack.chat.postMessage channel={c}" for c in "CDE"),
        ),
        (
            "def send(text=None):\n    more = {'text': text} if text else {}\n"
            "    requests.post(URL, json={'channel': 'C', **more})\nsend()\nsend('hi')\n",
            ("slack.chat.postMessage channel=C", "slack.chat.postMessage channel=C text=hi"),
        ),
        (
            "@functools.lru_cache(maxsize=None)\ndef send(c):\n    post(c)\nsend('C')\n",
            ("slack.chat.postMessage channel=C",),
        ),
        (
            "cs = [c for c in ('C', 'D') if c != x]\ncs.append('E')\nfor c in cs:\n    post(c)\n",
            tuple(f"slack.chat.postMessage channel={c}" for c in "CDE"),
        ),
    ],
)
def test_pythons_managers_generators_and_merged_mappings(program: str, calls: tuple[str, ...]) -> None:
    _same("python", PYTHON + program, *calls)


@pytest.mark.parametrize(
    "program",
    [
        "def names():\n    yield 'C'\n    yield input()\nfor c in names():\n    post(c)\n",
        "def names():\n    yield 'C'\n    yield from open('l')\nfor c in names():\n    post(c)\n",
        "def names():\n    yield 'C'\nwith contextlib.closing(names()) as cs:\n    for c in cs:\n        post(c)\n",
        "def names():\n    yield 'C'\ncs = list(names())\ncs.insert(0, input())\nfor c in cs:\n    post(c)\n",
        "def names():\n    yield 'C'\ncs = list(names())\ncs[0] = input()\nfor c in cs:\n    post(c)\n",
    ],
)
def test_an_item_that_is_not_known_is_told_as_open(program: str) -> None:
    assert "slack.chat.postMessage channel=?" in _told("python", PYTHON + program)


def test_a_mapping_that_may_have_anything_in_it_is_told_as_open() -> None:
    assert _told("python", f"{PYTHON}requests.post(URL, json={{'channel': 'C', **made()}})\n") == [
        "slack.chat.postMessage channel=C ?"
    ]
