"""Calls of python-gitlab and jira in programs: which requests they are found to be."""

from __future__ import annotations

import pytest

from mapper.code.languages import read
from mapper.code.sent_requests import Request, Seen

HEAD = """
import gitlab, os
from jira import JIRA
from jira.client import JIRA as OTHER
gl = gitlab.Gitlab("https://git.example.org", private_token=os.environ["GITLAB_TOKEN"])
project = gl.projects.get(5, lazy=True)
cloud = JIRA("https://acme.atlassian.net", get_server_info=False)
own = JIRA(options={"server": "https://jira.example.org/", "rest_api_version": "3"}, get_server_info=False)
"""
GITLAB, CLOUD, OWN = (
    "https://git.example.org/api/v4/", "https://acme.atlassian.net/rest/api/2/", "https://jira.example.org/rest/api/3/"
)  # fmt: skip


def _part(value: object) -> str:
    parts = getattr(value, "parts", None)
    if parts is not None:
        return "".join(part if isinstance(part, str) else "?" for part in parts)
    return str(getattr(value, "value", "?"))


def _told(request: Request) -> str:
    names = [f"{name}={_part(value)}" for fields in (request.query, request.body) for name, value in fields.items]
    more = ["…"] if request.query.more or request.body.more else []
    url = _part(request.url)
    for base in (GITLAB, CLOUD, OWN):
        url = url.removeprefix(base)
    return " ".join([_part(request.verb), url, *names, *more])


def found(program: str) -> list[str]:
    seen: Seen = read("python", HEAD + program)
    return list(dict.fromkeys(map(_told, seen.requests)))  # a loop's body is gone through twice


@pytest.mark.parametrize(
    ("line", "requests"),
    [
        ("gl.auth()", ["GET user"]),
        ("gl.projects.get('acme/site')", ["GET projects/acme%2Fsite"]),
        ("gl.projects.list(search='x', per_page=20)", ["GET projects search=x per_page=20"]),
        ("gl.projects.list(get_all=True)", ["GET projects …"]),
        ("gl.projects.list(topic=['a', 'b'])", ["GET projects …"]),
        ("project.issues.create({'title': 'T', 'labels': 'a'})", ["POST projects/5/issues title=T labels=a"]),
        ("project.issues.get(7).notes.create({'body': 'B'})",
         ["GET projects/5/issues/7", "POST projects/5/issues/7/notes body=B"]),
        ("project.issues.update(7, {'title': 'T'})", ["PUT projects/5/issues/7 title=T"]),
        ("project.issues.delete(7)", ["DELETE projects/5/issues/7"]),
        ("i = project.issues.get(7, lazy=True)\ni.state_event = 'close'\ni.save()",
         ["PUT projects/5/issues/7 state_event=close …"]),
        ("for i in project.issues.list(state='opened'):\n    i.delete()",
         ["GET projects/5/issues state=opened", "DELETE projects/5/issues/?"]),
        ("gl.projects.get('acme/site').issues.create({'title': 'T'})",
         ["GET projects/acme%2Fsite", "POST projects/?/issues title=T"]),
        ("gl.projects.get('acme/site', lazy=True).branches.delete('a/b')",
         ["DELETE projects/acme%2Fsite/repository/branches/a%2Fb"]),
        ("project.mergerequests.get(3, lazy=True).merge()", ["PUT projects/5/merge_requests/3/merge …"]),
        ("project.pipelines.get(9, lazy=True).retry()", ["POST projects/5/pipelines/9/retry"]),
        ("project.pipelines.create({'ref': 'main'})", ["POST projects/5/pipeline ref=main"]),
        ("project.files.create({'file_path': 'a/b.md', 'branch': 'main'})",
         ["POST projects/5/repository/files/a%2Fb.md branch=main"]),
        ("project.files.delete('a/b.md', branch='main', commit_message='M')",
         ["DELETE projects/5/repository/files/a%2Fb.md branch=main commit_message=M"]),
        ("project.issues.get(7, lazy=True).time_estimate('3h')",
         ["POST projects/5/issues/7/time_estimate duration=3h"]),
        ("with gitlab.Gitlab() as g:\n    g.groups.get(3)", ["GET https://gitlab.com/api/v4/groups/3"]),
        ("gl.http_post('/projects/5/star', post_data={'a': 'b'})", ["POST projects/5/star a=b"]),
        ("OTHER('https://acme.atlassian.net').myself()", ["GET serverInfo", "GET myself"]),
        ("cloud.issue('OPS-1', fields='summary')", ["GET issue/OPS-1 fields=summary"]),
        ("own.project('OPS')", ["GET project/OPS"]),
        ("cloud.search_issues('project = OPS')", ["GET field", "GET search/jql jql=project = OPS …"]),
        ("own.search_issues('project = OPS')", ["GET field", "GET search jql=project = OPS …"]),
        ("for i in cloud.search_issues('a = b', use_post=True):\n    cloud.add_comment(i, 'B')",
         ["GET field", "POST search/jql jql=a = b …", "POST issue/?/comment body=B"]),
        ("cloud.add_comment(cloud.issue('OPS-1'), 'B')", ["GET issue/OPS-1", "POST issue/OPS-1/comment body=B"]),
        ("cloud.issue(cloud.issue('OPS-1'))", ["GET issue/OPS-1"]),
        ("cloud.create_issue(fields={'project': {'key': 'OPS'}}, prefetch=False)", ["POST issue fields=?"]),
        ("cloud.create_issue(project='OPS', issuetype={'name': 'Task'})",
         ["GET project/OPS", "POST issue fields=?", "GET issue/?"]),
        ("cloud.transition_issue('OPS-1', '31')", ["POST issue/OPS-1/transitions transition=? fields=? update=?"]),
        ("cloud.transition_issue('OPS-1', 'Done')",
         ["GET issue/OPS-1/transitions", "POST issue/OPS-1/transitions transition=? fields=? update=?"]),
        ("cloud.issue('OPS-1').update(summary='S')",
         ["GET issue/OPS-1", "PUT issue/? fields=? update=?", "GET issue/?"]),
        ("cloud.issue('OPS-1').delete()", ["GET issue/OPS-1", "DELETE issue/? deleteSubtasks=?"]),
    ],
)  # fmt: skip
def test_a_function_is_the_requests_that_it_sends(line: str, requests: list[str]) -> None:
    assert found(f"{line}\n") == requests


@pytest.mark.parametrize(
    "line",
    [
        "gl.projects.unheard_of(5)",
        "project.unheard_of()",
        "gl.http_get(input())",
        "gl.http_get('https://elsewhere.example.com/')",
        "gl.session.get('https://elsewhere.example.com/')",
        "gitlab.Gitlab.from_config('work').projects.get(5).unheard_of()",
        "cloud.unheard_of()",
        "cloud.issue_link('1')",
    ],
)
def test_what_isnt_known_is_no_request(line: str) -> None:
    assert found(f"{line}\n") == []


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        ("gitlab.Gitlab(url=input()).projects.get(5)", "GET ?/api/v4/projects/5"),
        ("gitlab.Gitlab(**input()).projects.get(5)", None),
        ("gitlab.Gitlab('https://git.example.org', api_version='5').projects.get(5)", None),
        ("JIRA(**input()).myself()", "GET ?/serverInfo"),
        ("JIRA(options={'server': 'https://a.example.org', 'rest_path': 'x'}).myself()", "GET ?/serverInfo"),
        ("JIRA(options={**input()}).myself()", "GET ?/serverInfo"),
        ("JIRA().myself()", "GET ?/serverInfo"),
    ],
)
def test_a_client_of_which_the_server_isnt_known_asks_nobody_that_is(made: str, asked: str | None) -> None:
    assert found(f"{made}\n")[:1] == ([asked] if asked else [])
