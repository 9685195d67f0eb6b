"""What a program falls back to, for variables that it isn't given and arguments that it is run without."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from policies.actions import Language
from tests.mapper.code.test_finding import normal, told

LIST = "github.issues.list owner=octo repo=hello"
HEAD = "import argparse, os, requests\n"
GET = "requests.get(f'https://api.github.com/repos/{R}/issues')\n"
PARSER = HEAD + "p = argparse.ArgumentParser()\n"


def _told(language: Language, program: str) -> list[str]:
    found = find(language, program, Catalog.bundled(), ("slack", "github"))
    return sorted({normal(told(call)) for call in found.calls})


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("python", HEAD + "R = os.environ.get('REPO') or 'octo/hello'\n" + GET),
        ("python", HEAD + "R = os.getenv('REPO') or os.getenv('GITHUB_REPOSITORY') or 'octo/hello'\n" + GET),
        ("python", HEAD + "A = os.getenv('API') or 'https://api.github.com'\n"
         "requests.get(A + '/repos/octo/hello/issues')\n"),
        ("javascript", "const base = process.env.API ?? 'https://api.github.com';\n"
         "await fetch(`${base}/repos/octo/hello/issues`);"),
        ("javascript", "const base = process.env.API || process.env['BASE'] || 'https://api.github.com';\n"
         "await fetch(base + '/repos/octo/hello/issues');"),
        ("shell", "curl ${API:-https://api.github.com}/repos/octo/hello/issues"),
    ],
)  # fmt: skip
def test_a_variable_that_is_not_given_is_what_the_program_falls_back_to(language: Language, program: str) -> None:
    assert _told(language, program) == [normal(LIST)]


@pytest.mark.parametrize(
    ("language", "program"),
    [
        ("python", HEAD + "R = os.environ.get('REPO_KEY') or 'octo/hello'\n" + GET),
        ("python", HEAD + "R = os.environ.get('GOEX_REPO') or 'octo/hello'\n" + GET),
        ("python", HEAD + "R = input() or 'octo/hello'\n" + GET),
        ("python", HEAD + "R = os.environ.get('REPO') and 'octo/hello'\n" + GET),
        ("javascript", "await fetch(`https://api.github.com/repos/${process.env.REPO_KEY ?? 'octo'}/hello/issues`);"),
        ("javascript", "await fetch(`https://api.github.com/repos/${x() ?? 'octo'}/hello/issues`);"),
    ],
)
def test_what_may_be_given_is_not_known(language: Language, program: str) -> None:
    assert normal(LIST) not in _told(language, program)


@pytest.mark.parametrize(
    "program",
    [
        "p.add_argument('--repo', '-r', default='octo/hello')\nR = p.parse_args().repo\n",
        "p.add_argument('-r', '--repo-name', default='octo/hello', type=str)\nR = p.parse_args(None).repo_name\n",
        "p.add_argument('repo', nargs='?', default='octo/hello')\nR = p.parse_args().repo\n",
        "g = p.add_argument_group('x')\ng.add_argument('--a', dest='repo', default='octo/hello')\n"
        "a, rest = p.parse_known_args()\nR = a.repo\n",
        "p.set_defaults(repo='octo/hello')\nR = p.parse_args().repo\n",
        "p.add_argument('--repo')\nR = p.parse_args().repo or 'octo/hello'\n",
        "p.add_argument('--other', action='store_true')\na = p.parse_args()\nR = 'x/y' if a.other else 'octo/hello'\n",
    ],
)
def test_an_argument_is_its_default(program: str) -> None:
    assert _told("python", PARSER + program + GET) == [normal(LIST)]


@pytest.mark.parametrize(
    "program",
    [
        "p.add_argument('--repo', required=True, default='octo/hello')\nR = p.parse_args().repo\n",
        "p.add_argument('repo', default='octo/hello')\nR = p.parse_args().repo\n",
        "p.add_argument('--repo', default='octo/hello')\nR = p.parse_args(['--repo', x()]).repo\n",
        "p.add_argument('--repo', default='octo/hello')\nR = p.parse_args(namespace=x()).repo\n",
        "p.add_argument('--repo', default='octo/hello')\np.set_defaults(**x())\nR = p.parse_args().repo\n",
        "p.add_argument('--repo', default='octo/hello')\np.add_argument(x(), default='a/b')\nR = p.parse_args().repo\n",
        "p.add_argument('--repo', default='octo/hello', **x())\nR = p.parse_args().repo\n",
        "p.add_argument('--repo', default='octo/hello', type=x)\nR = p.parse_args().repo\n",
        "p = argparse.ArgumentParser(argument_default='a/b')\np.add_argument('--repo')\n"
        "R = p.parse_args().repo or 'octo/hello'\n",
    ],
)
def test_an_argument_of_which_more_may_be_said_is_not_known(program: str) -> None:
    assert _told("python", PARSER + program + GET) == [normal("github.issues.list owner=? repo=?")]


def test_the_functions_of_commands_are_followed_with_what_they_are_given() -> None:
    program = """
import argparse, os
from slack_sdk import WebClient

def send(client, args):
    client.chat_postMessage(channel="C1", text=args.text)

def users(client, args):
    client.users_list(limit=100)

def main(argv=None):
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("send")
    one.add_argument("--text", default="x")
    one.set_defaults(func=send)
    commands.add_parser("users").set_defaults(func=users)
    args = parser.parse_args(argv)
    args.func(WebClient(os.environ["SLACK_BOT_TOKEN"]), args)

main(["send"])
"""
    assert _told("python", program) == sorted(
        map(normal, ["slack.chat.postMessage channel=C1 text=?", "slack.users.list limit=100"])
    )


ARGUMENTS = """
p.add_argument('--repo', '-r', default='a/b')
p.add_argument('--count', type=int, default=1)
p.add_argument('--dry', action='store_true')
p.add_argument('name', nargs='?')
"""


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.argv = ['x', '--repo', 'octo/hello']\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv = ['x', '--count=3', '-r', 'octo/hello', '--dry', 'n']\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv += ['--repo=octo/hello']\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv.extend(['--repo', 'octo/hello'])\n@R = p.parse_args(sys.argv[1:]).repo\n",
        "from sys import argv\nargv.append('octo/hello')\n@R = p.parse_args().name\n",
        "import sys\ndef f(): sys.argv = ['x', 'octo/hello']\nf()\n@R = p.parse_args().name\n",
        "@R = p.parse_args(['--repo', 'octo/hello']).repo\n",
        "@def main(argv=None):\n    return p.parse_args(argv)\nR = main(['-r', 'octo/hello']).repo\n",
        "import sys\nsys.argv = ['x', '--dry']\n@R = 'octo/hello' if p.parse_args().dry else 'x/y'\n",
        "@import sys\na = p.parse_args(sys.argv[1:])\nR = a.name or 'octo/hello'\n",
    ],
)
def test_an_argument_that_the_program_gives_itself_is_that(program: str) -> None:
    assert _told("python", PARSER + program.replace("@", ARGUMENTS) + GET) == [normal(LIST)]


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.argv = ['x', '--rep', 'octo/hello']\n@R = p.parse_args().repo\n",  # short for --repo
        "import sys\nsys.argv = ['x', '-rocto/hello']\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv = ['x', '--', 'n']\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv = x()\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv[1:] = ['--repo', 'octo/hello']\n@R = p.parse_args().repo\n",
        "import sys\nif x():\n    sys.argv = ['x', '-r', 'c/d']\n@R = p.parse_args().repo\n",
        "import sys, other\nother.x(sys.argv)\n@R = p.parse_args().repo\n",
        "import sys\nsys.argv = ['x', 'n']\n@s = p.add_subparsers()\nR = p.parse_args().repo\n",
        "@p.add_argument('--more', action='append')\nR = p.parse_args(['--more', 'a']).repo\n",
        "@p.add_argument('-s', '--repo', dest='other')\nR = p.parse_args(['--repo', 'a']).repo\n",
    ],
)
def test_words_that_arent_known_leave_no_argument_known(program: str) -> None:
    assert _told("python", PARSER + program.replace("@", ARGUMENTS) + GET) == [
        normal("github.issues.list owner=? repo=?")
    ]


@pytest.mark.parametrize(
    "program",
    [
        "V = os.environ.get('REPO')\nR = V if V else 'octo/hello'\n",
        "import json\nV = os.getenv('DATA')\nR = (json.loads(V) if V else {'repo': 'octo/hello'})['repo']\n",
    ],
)
def test_a_choice_by_a_variable_that_is_not_given_is_the_other(program: str) -> None:
    assert _told("python", HEAD + program + GET) == [normal(LIST)]


@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ("quote('octo/x', safe='')", "octo/x"),
        ("quote('octo', '')", "octo"),
        ("quote_plus('a b')", "a+b"),
    ],
)
def test_a_text_that_is_quoted_whole_is_one_part_of_an_address(given: str, owner: str) -> None:
    program = f"import requests\nfrom urllib.parse import quote, quote_plus\nN = {given}\n"
    get = "requests.get(f'https://api.github.com/repos/{N}/hello/issues')\n"
    assert _told("python", program + get) == [normal(f"github.issues.list owner={owner} repo=hello")]


def test_a_text_that_is_quoted_with_whatever_left_as_it_is_is_not_known() -> None:
    program = "import requests\nfrom urllib.parse import quote\nN = quote('octo', safe=input())\n"
    get = "requests.get(f'https://api.github.com/repos/{N}/hello/issues')\n"
    assert _told("python", program + get) == [normal("github.issues.list owner=? repo=hello")]


@pytest.mark.parametrize(
    ("started", "call"),
    [
        ("python3 - <<'END'\n@END\n", "owner=a repo=b"),
        ("python3 - --repo octo/hello <<'END'\n@END\n", "owner=octo repo=hello"),
        ("python3 - --repo \"$(x)\" <<'END'\n@END\n", "owner=? repo=?"),
        ("python3 - $(x) <<'END'\n@END\n", "owner=? repo=?"),
        ("cat > /tmp/p.py <<'END'\n@END\npython3 /tmp/p.py -r octo/hello\n", "owner=octo repo=hello"),
    ],
)
def test_a_program_within_a_shell_s_is_read_with_its_arguments(started: str, call: str) -> None:
    program = PARSER + ARGUMENTS + "R = p.parse_args().repo\n" + GET
    assert _told("shell", started.replace("@", program)) == [normal(f"github.issues.list {call}")]
