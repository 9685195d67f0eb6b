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
