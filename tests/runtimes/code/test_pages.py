"""Libraries that ask for page after page: each page passes, and nothing else of the address is freed."""

from __future__ import annotations

import pytest

from tests.runtimes.code.sending import sent
from tests.runtimes.code.support import GITHUB, SLACK, plan

ISSUES = "{ owner: 'a', repo: 'b', per_page: 100 }"
OCTOKIT = "const { Octokit } = require('@octokit/rest')\nconst o = new Octokit()\n"
CHANNELS = "const { WebClient } = require('@slack/web-api')\nconst web = new WebClient(token)\n"


def node(program: str) -> str:
    return f"node - <<'JS'\n{program}\nJS\n"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "program",
    [
        node(f"{OCTOKIT}o.paginate(o.rest.issues.listForRepo, {ISSUES}).then(console.log)"),
        node(f"{OCTOKIT}o.paginate('GET /repos/{{owner}}/{{repo}}/issues', {ISSUES}).then(console.log)"),
        node(
            f"{OCTOKIT}for await (const p of o.paginate.iterator(o.rest.issues.listForRepo, {ISSUES})) console.log(p)"
        ),
        "gh api --paginate 'repos/a/b/issues?per_page=100'",
        "gh api --paginate repos/a/b/issues",  # which asks for a hundred by itself
    ],
)
def test_githubs_later_pages_pass(program: str) -> None:
    made = plan(program, accounts=(GITHUB,), language="shell")
    for page in ("", "&page=2", "&page=9"):
        assert sent(made, GITHUB, f"GET /repos/a/b/issues?per_page=100{page}") == ""
    for other in ("per_page=5&page=2", "per_page=100&state=all", "page=2"):
        assert sent(made, GITHUB, f"GET /repos/a/b/issues?{other}") != "", other


@pytest.mark.promise(51)
def test_slacks_later_pages_pass() -> None:
    made = plan(
        node(f"{CHANNELS}for await (const p of web.paginate('conversations.list', {{ limit: 200 }})) console.log(p)"),
        language="shell",
    )
    form = "application/x-www-form-urlencoded"
    for body in (b"limit=200", b"limit=200&cursor=c2"):
        assert sent(made, SLACK, "POST /api/conversations.list", body, kind=form) == "", body
    assert sent(made, SLACK, "POST /api/conversations.list", b"limit=5&cursor=c2", kind=form) != ""


@pytest.mark.promise(51)
def test_slack_asks_for_two_hundred_unless_it_is_told() -> None:
    made = plan(
        node(f"{CHANNELS}for await (const p of web.paginate('conversations.list')) console.log(p)"), language="shell"
    )
    form = "application/x-www-form-urlencoded"
    for body in (b"limit=200", b"limit=200&cursor=c2"):
        assert sent(made, SLACK, "POST /api/conversations.list", body, kind=form) == "", body


@pytest.mark.promise(51)
def test_a_number_of_each_page_that_is_said_is_the_one_that_is_asked_for() -> None:
    made = plan("gh api --paginate repos/a/b/issues -X GET -f per_page=5", accounts=(GITHUB,), language="shell")
    assert sent(made, GITHUB, "GET /repos/a/b/issues?per_page=5&page=2") == ""
    assert sent(made, GITHUB, "GET /repos/a/b/issues?per_page=100&page=2") != ""
    made = plan('gh api --paginate "repos/a/b/issues?state=$S"', accounts=(GITHUB,), language="shell")
    assert sent(made, GITHUB, "GET /repos/a/b/issues?state=all&per_page=100&page=2") == ""


@pytest.mark.promise(51)
def test_pygithubs_later_pages_pass() -> None:
    made = plan(
        "import os\nfrom github import Auth, Github\n"
        "g = Github(auth=Auth.Token(os.environ['GITHUB_TOKEN']))\n"
        "for one in g.get_repo('a/b').get_issues(state='all'):\n    print(one.title)\n",
        accounts=(GITHUB,),
    )
    for page in ("", "&page=2"):
        assert sent(made, GITHUB, f"GET /repos/a/b/issues?state=all{page}") == ""
    for other in ("page=2", "state=open&page=2", "state=all&page=2&per_page=1"):
        assert sent(made, GITHUB, f"GET /repos/a/b/issues?{other}") != "", other
    assert sent(made, GITHUB, "GET /repos/a/b?page=2") != ""


@pytest.mark.promise(51)
def test_one_page_that_is_asked_for_stays_one() -> None:
    made = plan(node(f"{OCTOKIT}o.rest.issues.listForRepo({ISSUES})"), accounts=(GITHUB,), language="shell")
    assert sent(made, GITHUB, "GET /repos/a/b/issues?per_page=100") == ""
    assert sent(made, GITHUB, "GET /repos/a/b/issues?per_page=100&page=2") != ""
