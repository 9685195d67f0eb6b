"""Least scopes over the whole of Google's catalog: what is chosen, how fast, and what people are told."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.evaluation.oracle import arguments_of, measure, outcome, resolve
from mapper.evaluation.scope_sets import covers, judge
from mapper.least_scopes import also, least_scopes, narrower, plain, reach_of, risk_of, scopes_of_calls
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Risk
from tests.google import google_catalog
from tests.support.pace import pace

__all__ = ["google_catalog"]

GMAIL = "gmail-v1"  # the plain name is that of the service which comes with GoEx
AUTH = "https://www.googleapis.com/auth/"
VECTORS = Path(__file__).parent.parent / "vectors" / "least_scopes.jsonl"
MORE = VECTORS.with_name("more_scopes.jsonl")
DEV = Path(__file__).parents[3] / "shared" / "data" / "scopes" / "scope_dev.jsonl"
NONE: frozenset[tuple[str, str, str]] = frozenset()


def cases(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def chosen(catalog: Catalog, *calls: tuple[str, dict[str, Any]], words: str = "") -> set[str]:
    made = [Call(service=i.split(".")[0], method=i.partition(".")[2], arguments=a, account="") for i, a in calls]
    return {scope.removeprefix(AUTH) for _, _, scope in least_scopes(catalog, made, NONE, words=words)}


@pytest.mark.promise(11)
def test_the_least_by_what_scopes_say_and_open(google_catalog: Catalog) -> None:
    judged = [(case, outcome(google_catalog, case, case["apis"])) for case in cases(VECTORS)]
    wrong = [
        f"{case['id']}, {case['why']}: {found.chosen}, not {found.acceptable} {found.reason}"
        for case, found in judged if found.judged != "accepted"
    ]  # fmt: skip
    assert wrong == []


def test_the_cases_are_many_and_of_many_services() -> None:
    found = cases(VECTORS)
    assert len(found) >= 160
    assert len({case["service"] for case in found}) >= 90


# Four sets (o1; o2 and o3; o4; o5), each written before the rule was tried on it: then 98.2 %, 98.7 %, 99.2 % and
# 97.5 % were accepted, 1.2 %, 0.9 %, 0.8 % and 0.6 % too wide. Since learnt: principles (`mapper.scope_fit`).
def test_the_rule_alone_on_cases_written_blind(google_catalog: Catalog) -> None:
    found = measure(google_catalog, cases(MORE))
    assert found.cases >= 660
    assert found.accepted_pct >= 99.5, found.failures
    assert found.excessive_pct <= 0.2, found.failures


@pytest.mark.skipif(not DEV.exists(), reason="the shared evaluation data isn't here")
def test_the_rule_alone_on_the_evaluation_set(google_catalog: Catalog) -> None:
    found = measure(google_catalog, cases(DEV))
    assert found.cases >= 90
    assert found.accepted_pct >= 98, found.failures
    assert found.excessive_pct <= 0.5, found.failures


def test_it_costs_next_to_nothing_over_the_whole_catalog(google_catalog: Catalog) -> None:
    """2 ms warm on an idle machine; loading methods would cost a hundred times more."""
    times = []
    for case in cases(VECTORS):
        methods = [resolve(google_catalog, case, api) for api in case["apis"]]
        calls = [
            Call(service=m.service, method=m.name, arguments=arguments_of(case, api, len(methods)))
            for m, api in zip(methods, case["apis"], strict=True)
            if m is not None
        ]
        least_scopes(google_catalog, calls, NONE)
        began = time.process_time()
        least_scopes(google_catalog, calls, NONE)
        times.append(time.process_time() - began)
    assert statistics.median(times) < pace()


def test_an_argument_that_a_scope_refuses(google_catalog: Catalog) -> None:
    plainly = {"userId": "me"}
    assert chosen(google_catalog, (f"{GMAIL}.users.messages.list", plainly)) == {"gmail.metadata"}
    assert chosen(google_catalog, (f"{GMAIL}.users.messages.list", {**plainly, "q": "from:a"})) == {"gmail.readonly"}
    one = {**plainly, "id": "m"}
    assert chosen(google_catalog, (f"{GMAIL}.users.messages.get", one)) == {
        "gmail.readonly"
    }  # its default format is full
    assert chosen(google_catalog, (f"{GMAIL}.users.messages.get", {**one, "format": "minimal"})) == {"gmail.metadata"}


def test_each_call_has_the_scope_that_serves_it(google_catalog: Catalog) -> None:
    """The lesser scope of another call isn't taken for one that it refuses."""
    calls = [
        Call(service=GMAIL, method="users.messages.list", arguments={"userId": "me", "q": "x"}),
        Call(service=GMAIL, method="users.labels.list", arguments={"userId": "me"}),
    ]
    first, second = scopes_of_calls(google_catalog, calls, NONE)
    assert first[2] == f"{AUTH}gmail.readonly"
    assert second[2] in (f"{AUTH}gmail.readonly", f"{AUTH}gmail.metadata", f"{AUTH}gmail.labels")


def test_words_choose_between_kinds_and_never_a_wider_scope(google_catalog: Catalog) -> None:
    call = ("fitness.users.sessions.list", {"userId": "me"})
    assert chosen(google_catalog, call, words="how did I sleep") == {"fitness.sleep.read"}
    assert chosen(google_catalog, call, words="my heart rate while running") == {"fitness.heart_rate.read"}
    pushy = "use the drive scope, permanently delete everything, manage all of gmail, cloud-platform please"
    for method, arguments in (("drive.files.list", {}), (f"{GMAIL}.users.messages.send", {"userId": "me"})):
        assert chosen(google_catalog, (method, arguments), words=pushy) == chosen(google_catalog, (method, arguments))


def test_sql_that_changes_isnt_done_under_a_scope_that_only_looks(google_catalog: Catalog) -> None:
    def under(query: str) -> set[str]:
        return chosen(google_catalog, ("bigquery.jobs.query", {"projectId": "p", "body": {"query": query}}))

    assert under("SELECT 1") <= {"cloud-platform.read-only", "bigquery"}
    for query in ("DELETE FROM t WHERE true", "  drop table t", "with a as (select 1) insert into t select * from a"):
        assert under(query) == {"bigquery"}


def test_services_of_one_provider_share_a_scope(google_catalog: Catalog) -> None:
    calls = [
        Call(service="docs", method="documents.create", arguments={"body": {"title": "x"}}),
        Call(service="drive", method="permissions.create", arguments={"fileId": "f"}),
    ]
    assert least_scopes(google_catalog, calls, NONE) == (
        ("docs", "", f"{AUTH}drive.file"),
        ("drive", "", f"{AUTH}drive.file"),
    )


def test_what_is_granted_already_is_used(google_catalog: Catalog) -> None:
    call = Call(service="drive", method="files.get", arguments={"fileId": "f"}, account="home")
    wide = ("drive", "home", f"{AUTH}drive.readonly")
    assert least_scopes(google_catalog, [call], frozenset({wide})) == (wide,)
    elsewhere = frozenset({("drive", "work", f"{AUTH}drive.readonly")})
    assert least_scopes(google_catalog, [call], elsewhere) == (("drive", "home", f"{AUTH}drive.metadata.readonly"),)


def test_the_order(google_catalog: Catalog) -> None:
    def below(service: str, a: str, b: str) -> bool:
        return narrower(google_catalog, service, AUTH + a, AUTH + b)

    for service, a, b in (
        (GMAIL, "gmail.metadata", "gmail.readonly"),
        (GMAIL, "gmail.send", "gmail.compose"),
        ("calendar", "calendar.settings.readonly", "calendar.settings"),
        ("drive", "drive.file", "drive"),
        ("drive", "drive.readonly", "drive"),
        ("docs", "documents.readonly", "drive.readonly"),
        ("admin", "admin.directory.user.alias", "admin.directory.user"),
        ("compute", "compute", "cloud-platform"),
    ):
        assert below(service, a, b), (a, b)
        assert not below(service, b, a), (b, a)
        assert not below(service, a, a)
    for service, a, b in (
        (GMAIL, "gmail.labels", "gmail.metadata"),
        ("storage", "devstorage.read_write", "bigquery"),
    ):
        if b in google_catalog.service(service).scopes:
            assert not below(service, a, b)


def test_a_shared_scope_opens_all_its_services(google_catalog: Catalog) -> None:
    here = reach_of(google_catalog, "docs", f"{AUTH}drive")
    assert here == reach_of(google_catalog, "sheets", f"{AUTH}drive")
    assert here.methods > 100
    assert here.services.bit_count() >= 7
    assert reach_of(google_catalog, "storage", f"{AUTH}cloud-platform").methods > 10_000


def test_risk_is_never_lower_than_words_or_methods_say(google_catalog: Catalog) -> None:
    for service in (GMAIL, "drive", "calendar", "chat", "admin", "youtube"):
        for name in google_catalog.service(service).scopes:
            found = risk_of(google_catalog, service, name)
            assert found >= reach_of(google_catalog, service, name).risk
    assert risk_of(google_catalog, GMAIL, f"{AUTH}gmail.settings.sharing") is Risk.ADMIN
    assert risk_of(google_catalog, "docs", f"{AUTH}documents") is Risk.DELETE  # its methods write, its words delete


@pytest.mark.promise(11)
def test_what_else_is_grouped_counted_and_worst_first(google_catalog: Catalog) -> None:
    said = also(google_catalog, "drive", f"{AUTH}drive", {"files.get"})
    risks = [Risk.parse(line.split(":")[0]) for line in said]
    assert risks == sorted(risks, reverse=True)
    assert len(said) <= 4
    assert "permanently deletes" in " ".join(said)
    assert "in 7 other services" in said[0]
    assert all(len(line) < 600 for line in said)
    wide = also(google_catalog, "storage", f"{AUTH}cloud-platform", set())
    reach = reach_of(google_catalog, "storage", f"{AUTH}cloud-platform")
    for line, risk in zip(wide, sorted(Risk, reverse=True), strict=True):
        assert line.startswith(f"{risk.word}: ")
        assert _total(line) == reach.count(risk)
    assert also(google_catalog, GMAIL, f"{AUTH}gmail.send", {"users.messages.send"}) == ()


def _total(line: str) -> int:
    parts = line.partition(": ")[2].split("; ")
    counted = [part for part in parts if part.split(" ")[0].isdigit()]
    return len(parts) - len(counted) + sum(int(part.split(" ")[0]) for part in counted)


def test_plain_words(google_catalog: Catalog) -> None:
    said = plain(google_catalog, "drive", f"{AUTH}drive.file")
    assert said.startswith("See, edit, create, and delete only the specific Google Drive files")
    assert "opens 8 services" in said
    assert "change who has access" in said
    assert "reaches only what the app made itself" in plain(google_catalog, "calendar", f"{AUTH}calendar.app.created")
    assert "doesn't say what chat.bot is" in plain(google_catalog, "chat", f"{AUTH}chat.bot")


def test_too_much_and_too_little(google_catalog: Catalog) -> None:
    method = google_catalog.method(f"{GMAIL}.users.messages.list")
    acceptable = [[f"{AUTH}gmail.readonly"]]

    def judged(*scopes: str) -> str:
        return judge(google_catalog, [method], [AUTH + scope for scope in scopes], acceptable)

    assert judged("gmail.readonly") == "accepted"
    assert judged("gmail.modify") == "excessive"  # all that, and more
    assert judged("gmail.readonly", "gmail.send") == "excessive"
    assert judged("gmail.metadata") == "insufficient"  # narrower
    assert judged("gmail.settings.sharing") == "excessive"  # doesn't even cover it, and is riskier
    assert judged() == "insufficient"
    assert not covers(google_catalog, [method], [f"{AUTH}gmail.send"])


def test_a_call_that_every_scope_refuses_is_an_error(google_catalog: Catalog) -> None:
    from dataclasses import replace

    from mapper.least_scopes import _Search

    method = google_catalog.method(f"{GMAIL}.users.messages.list")
    only = replace(method, scopes=(f"{AUTH}gmail.metadata",))
    call = Call(service=GMAIL, method="users.messages.list", arguments={"userId": "me", "q": "x"})
    with pytest.raises(InvalidInput, match="with these arguments"):
        _Search(google_catalog, GMAIL, frozenset()).best([(only, call)])


DRIVE_GET, DRIVE_UPDATE = "drive-v3.files.get", "drive-v3.files.update"
WORK, HANDED_IN = "classroom.courses.courseWork.list", "classroom.courses.courseWork.studentSubmissions.list"


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("words", "method", "arguments", "least"),
    [
        ("what does 1A say?", DRIVE_GET, {"fileId": "1A"}, "drive.readonly"),
        ("read me 1A", DRIVE_GET, {"fileId": "1A"}, "drive.readonly"),
        ("how big is 1A", DRIVE_GET, {"fileId": "1A"}, "drive.metadata.readonly"),
        ("who can read 1A", DRIVE_GET, {"fileId": "1A"}, "drive.metadata.readonly"),
        ("overwrite 1A", DRIVE_UPDATE, {"fileId": "1A"}, "drive.file"),
        ("write what it says into 1A", DRIVE_UPDATE, {"fileId": "1A", "body": {"name": "B"}}, "drive.metadata"),
        ("move 1A", DRIVE_UPDATE, {"fileId": "1A", "addParents": "2B"}, "drive.metadata"),
        ("who am I", "oauth2.userinfo.get", {}, "userinfo.email"),
        ("what's my name there", "oauth2.userinfo.get", {}, "userinfo.profile"),
        ("my user id", "oauth2.userinfo.get", {}, "openid"),
        ("what is due in my biology class?", WORK, {"courseId": "1"}, "classroom.coursework.me.readonly"),
        ("I'm a student in course 1. What is due there?", WORK, {"courseId": "1"}, "classroom.coursework.me.readonly"),
        ("as a new student I want to see what is due", WORK, {"courseId": "1"}, "classroom.coursework.me.readonly"),
        ("I am a tutor, what do my students do?", WORK, {"courseId": "1"}, "classroom.coursework.students.readonly"),
        ("what have my students to do?", WORK, {"courseId": "1"}, "classroom.coursework.students.readonly"),
        ("did I hand it in?", HANDED_IN, {"courseId": "1", "courseWorkId": "2"},
         "classroom.student-submissions.me.readonly"),
        ("list what my students handed in", HANDED_IN, {"courseId": "1", "courseWorkId": "2"},
         "classroom.student-submissions.students.readonly"),
    ],
)  # fmt: skip
def test_what_a_request_is_about(
    google_catalog: Catalog, words: str, method: str, arguments: dict[str, Any], least: str
) -> None:
    method = method if method.split(".")[0] in google_catalog.services else method.replace("-v3", "")
    assert chosen(google_catalog, (method, arguments), words=words) == {least}


def test_calls_whose_common_scope_suffices_ask_for_that_one(google_catalog: Catalog) -> None:
    drive = DRIVE_GET.split(".")[0] if DRIVE_GET.split(".")[0] in google_catalog.services else "drive"
    listed: dict[str, Any] = {}
    calls = ((f"{drive}.files.list", listed), (f"{drive}.files.delete", {"fileId": "1A"}))
    assert chosen(google_catalog, *calls, words="delete what ends in .bak") == {"drive.file"}


def test_a_method_without_a_provider_s_scope_claims_none(google_catalog: Catalog) -> None:
    case = {"service": "webfonts", "version": "v1", "args": {}, "min_scopes": [[]]}
    assert outcome(google_catalog, case, ["webfonts.webfonts.list"]).judged == "accepted"
    assert outcome(google_catalog, {**case, "min_scopes": [["x"]]}, ["webfonts.webfonts.list"]).chosen == ()
