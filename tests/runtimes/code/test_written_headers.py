"""Headers that change what a program's requests mean: passed on where their values stand in the program."""

from __future__ import annotations

import pytest

from policies.actions import Plan, UndoClass
from tests.runtimes.code.sending import sent
from tests.runtimes.code.support import GITHUB, SLACK, plan
from tests.runtimes.rest.support import declaring


def made_of(*lines: str) -> Plan:
    """The plan of a program that opens an issue, with the headers that it has after these lines."""
    call = "requests.post('https://api.github.com/repos/o/r/issues', json={'title': 't'}, headers=H)"
    return plan("\n".join(("import requests", "H = {}", *lines, call, "")), accounts=(GITHUB,))


def opened(made: Plan, *headers: str) -> str:
    return sent(made, GITHUB, "POST /repos/o/r/issues", {"title": "t"}, headers=headers)


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("lines", "header", "told"),
    [
        (
            ("H['Prefer'] = 'resolution=merge-duplicates'",),
            "resolution=merge-duplicates",
            ("resolution=merge-duplicates",),
        ),
        (('H.update({"Prefer": "tx=rollback, return=minimal"})',), "return=minimal,tx=rollback", ("tx=rollback",)),
        (("H.update({'prefer' : 'respond-async'})",), "respond-async", ("respond-async",)),
        (("h = ['Prefer: missing=default']",), "missing=default", ("missing=default",)),
        (("H['Pre' + 'fer'] = 'tx=rollback'",), "tx=rollback", ("tx=rollback",)),
        (
            ("H['Prefer'] = ','.join(['return=minimal', 'tx=rollback'])",),
            "return=minimal,tx=rollback",
            ("tx=rollback",),
        ),
        ((), "return=representation", ()),
        ((), "return=representation,handling=strict,max-affected=1", ()),
        ((), 'odata.maxpagesize=5, outlook.timezone="UTC"', ()),
    ],
)
def test_a_preference_that_changes_what_is_done_is_told(
    lines: tuple[str, ...], header: str, told: tuple[str, ...]
) -> None:
    made = made_of(*lines)
    assert opened(made, f"Prefer: {header}") == ""
    shown = [line.strip() for line in made.lines if line.strip().startswith("Prefer: ")]
    assert shown == [f'Prefer: "{one}", or left out' for one in told]
    for other in ("resolution=ignore-duplicates", f"{header}, handling=lenient", "return=minimal;x=1", "tx=commit"):
        assert opened(made, f"Prefer: {other}") == "header", other
    again = [f"Prefer: {header}", "Prefer: tx=commit"]
    assert opened(made, *again) == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "lines",
    [
        ("H['Prefer'] = value()",),
        ("H['Prefer'] = f'tx={value}'",),
        ("# we prefer a tx=rollback",),
        ("H['X-Prefer'] = 'tx=rollback'",),
    ],
)
def test_a_preference_that_is_not_written_out_is_refused(lines: tuple[str, ...]) -> None:
    made = made_of(*lines)
    assert opened(made, "Prefer: tx=rollback") == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("H['Bank-Version'] = '7'", "Bank-Version: 7"),
        ("H.update({'bank-version': '2024-02-03'})", "Bank-Version: 2024-02-03"),
        ("c = Client(api_version='beta.2')", "Bank-Version: beta.2"),
        ("c = {'apiVersion': '2024-02-03'}", "Bank-Version: 2024-02-03"),
        ("c = Client(github_version='2024-02-03')", "GitHub-Version: 2024-02-03"),
        ("run('curl -H \"Bank-Version: v3\"')", "Bank-Version: v3"),
        ("V = '7'; H['Bank-Version'] = V", "Bank-Version: 7"),
        ("V: str = '7'; H.update({'Bank-Version': V})", "Bank-Version: 7"),
        ("def h(v='7'): return {'Bank-Version': v}", "Bank-Version: 7"),
        ("js = \"{'Bank-Version': process.env.V ?? '7'}\"", "Bank-Version: 7"),
        ("js = \"{'Bank-Version': process.env.V || '7'}\"", "Bank-Version: 7"),
        ("js = \"const V = process.env.V || '7'; h.set('Bank-Version', V)\"", "Bank-Version: 7"),
        ("GITHUB_API_VERSION = '7'", "GitHub-Version: 7"),
        ("github_version: str = '7'", "GitHub-Version: 7"),
        ("H.update({'Bank-Version'          :\n               ('7')})", "Bank-Version: 7"),
    ],
)
def test_a_version_is_one_that_is_written_out(line: str, header: str) -> None:
    made = made_of(line)
    assert opened(made, header) == ""
    assert f'"{header.partition(": ")[2]}", or left out' in " ".join(permit_lines_of(made))
    assert made.undo_class is UndoClass.IRREVERSIBLE and "another version of the API" in made.undo_text
    other = made_of()
    for one, headers in ((made, ["Bank-Version: 1999-01-01"]), (other, [header])):
        assert opened(one, *headers) == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "line",
    [
        "H['Bank-Version'] = '{}-{}'.format('2024', '02')",
        "H['Bank-Version'] = '-'.join(['2024', '02'])",
        "Y = 2024; H['Bank-Version'] = f'{Y}-02'",
        "def h(v): return {'Bank-Version': v}\nH = h('2024-' + '02')",
        "class B:\n    V = '2024-02'\n    def h(self): return {'Bank-Version': self.V}\nH = B().h()",
        "H.update([('Bank-Version', '2024-' + '02')])",
        "h = Headers(); h.set('Bank-Version', '2024-' + '02')",
        "from bank import Bank; c = Bank(t, version='2024-02')",
    ],
)
def test_a_version_that_the_program_puts_together_is_told(line: str) -> None:
    made = made_of(line)
    assert opened(made, "Bank-Version: 2024-02") == ""
    assert 'bank-version: "2024-02", or left out' in [one.strip().lower() for one in permit_lines_of(made)]
    assert made.undo_class is UndoClass.IRREVERSIBLE and "another version of the API" in made.undo_text
    assert opened(made, "Bank-Version: 2024-03") == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("line", "header", "told", "undo_class"),
    [
        ("from square import Square", "Square-Version: 2026-09-16", "", UndoClass.COMPENSATING),
        ("import plaid", "Plaid-Version: 2020-09-14", "", UndoClass.COMPENSATING),
        ("js = \"const A = require('airtable')\"", "X-API-Version: 0.1.0", "", UndoClass.COMPENSATING),
        (
            "from supabase import create_client; c.table('t').upsert({})",
            "Prefer: return=representation,resolution=merge-duplicates",
            'Prefer: "resolution=merge-duplicates", or left out',
            UndoClass.IRREVERSIBLE,
        ),
        (
            "js = \"import { createClient } from '@supabase/supabase-js'; t.insert(r, { defaultToNull: false })\"",
            "Prefer: missing=default",
            'Prefer: "missing=default", or left out',
            UndoClass.IRREVERSIBLE,
        ),
        (
            "stripe.add_beta_version('link', 'v2')",
            "Stripe-Version: 2026-10-28.endive; link=v2",
            'Stripe-Version: "link=v2", or left out',
            UndoClass.IRREVERSIBLE,
        ),
        (
            "s = Stripe(k, {'apiVersion': '2023-10-16; link=v2'})",
            "Stripe-Version: 2023-10-16; link=v2",
            'apiVersion: "2023-10-16; link=v2", or left out',
            UndoClass.IRREVERSIBLE,
        ),
        (
            "c.beta.responses.create(betas=['agents=v1', 'other=v1'])",
            "OpenAI-Beta: agents=v1,other=v1",
            'OpenAI-Beta: "other=v1", or left out',
            UndoClass.IRREVERSIBLE,
        ),
    ],
)
def test_what_a_library_says_by_itself_is_told(line: str, header: str, told: str, undo_class: UndoClass) -> None:
    made = made_of(line)
    assert opened(made, header) == ""
    name, _, value = header.partition(": ")
    shown = [one.strip() for one in permit_lines_of(made)]
    assert told in shown if told else any(one.startswith(f"{name}: ") and f'"{value}"' in one for one in shown)
    assert made.undo_class is undo_class
    assert opened(made_of(), header) == "header"  # without the library


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("shape = 'square'", "Square-Version: 2026-09-16"),
        ("from square import Square", "Square-Version: 2019-01-01"),
        ("from square import Square", "Bank-Version: 2026-09-16"),
        ("from supabase import create_client", "Prefer: resolution=merge-duplicates"),
        ("t.upsert({})", "Prefer: resolution=merge-duplicates"),
        ("stripe.add_beta_version('link', 'v2')", "Stripe-Version: 2026-10-28.endive; other=v2"),
        ("stripe.add_beta_version('link', 'v2')", "Stripe-Version: link=v2; link=v2; other=v1"),
        ("", "Stripe-Version: 2026-10-28.endive; link=v2"),
        ("", "Prefer: handling=lenient"),
        ("", "Prefer: max-affected=1=2"),
    ],
)
def test_what_no_library_of_the_program_says_is_refused(line: str, header: str) -> None:
    assert opened(made_of(line), header) == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "line",
    [
        "SINCE = '2024-02-03'",
        "# as of 2024-02-03",
        "VERSION = '2024-02-03'",
        "H['Shop-Version'] = '2024-02-03'",
        "V = '2024-02-03'; H['Shop-Version'] = V",
        "V = '2024-02-03'; H['Bank-Version'] = V()",
        "V = '2024-02-03'; H['Bank-Version'] = V.next",
        "H['Shop-Api-Version'] = '2024-02-03'",
        "bank_version = '2024-02-03'",
        "BANK_API_VERSION = '2024-02-03'",
    ],
)
def test_a_date_or_version_of_something_else_is_no_headers_version(line: str) -> None:
    assert opened(made_of(line), "Bank-Version: 2024-02-03") == "header"


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("line", "header", "value"),
    [
        ("H['OpenAI-Beta'] = 'assistants=v1'", "OpenAI-Beta", "assistants=v1"),
        ("H = {'anthropic-beta': 'files-2025-04-14'}", "Anthropic-Beta", "files-2025-04-14"),
        ("run('curl -H \"anthropic-beta: files-2025-04-14\"')", "Anthropic-Beta", "files-2025-04-14"),
        ("c.beta.messages.create(betas=['files-2025-04-14'])", "Anthropic-Beta", "files-2025-04-14"),
        ("BETAS = ['files-2025-04-14']; c.create(betas=BETAS)", "Anthropic-Beta", "files-2025-04-14"),
        ("c.create(betas=('files-2025-04-14',))", "Anthropic-Beta", "files-2025-04-14"),
        ("betas: list[str] = ['files-2025-04-14']", "Anthropic-Beta", "files-2025-04-14"),
        ("BETA = 'files-2025-04-14'; c.create(betas=[BETA])", "Anthropic-Beta", "files-2025-04-14"),
        ("c.create(betas=[  # it's [new]\n  'files-2025-04-14'])", "Anthropic-Beta", "files-2025-04-14"),
    ],
)
def test_a_beta_is_told_and_leaves_no_way_back(line: str, header: str, value: str) -> None:
    made = made_of(line)
    assert opened(made, f"{header}: {value}") == ""
    assert f'{header}: "{value}", or left out' in [one.strip() for one in made.lines]
    assert made.undo_class is UndoClass.IRREVERSIBLE and f"with the header {header}" in made.undo_text
    assert opened(made, f"{header}: {value},other=v9") == "header"
    assert opened(made_of(), f"{header}: {value}") == "header"


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ("OpenAI-Beta: assistants=v2", True),
        ("Anthropic-Beta: token-counting-2024-11-01", True),
        ("Anthropic-Beta: managed-agents-2026-04-01,agent-memory-2026-07-22", True),
        ("Anthropic-Beta: user-profiles-2026-08-18", True),
        ("Anthropic-Beta: files-api-2025-04-14", True),  # as of its earlier releases
        ("Anthropic-Beta: managed-agents-2026-04-02", False),
        ("Anthropic-Beta: assistants=v2", False),
        ("OpenAI-Beta: token-counting-2024-11-01", False),
    ],
)
def test_what_a_library_asks_for_by_itself_passes_as_its_own_header(header: str, passes: bool) -> None:
    assert opened(made_of(), header) == ("" if passes else "header")


def permit_lines_of(made: Plan) -> list[str]:
    """What the question says of the calls, without the program's own text."""
    return [line for line in made.lines if line.startswith("    ")]


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ("X-GitHub-Api-Version: 2022-11-28", True),  # as the service says it
        ("X-GitHub-Api-Version: 2026-03-10", True),  # as PyGithub and octokit do
        ("X-GitHub-Api-Version: 2019-01-01", False),
        ("X-Stainless-Package-Version: 1.2.3", True),  # a client's own, which is left out
        ("MIME-Version: 1.0", True),
        ("Stripe-Version: 2026-10-28.endive", True),
        ("Notion-Version: 2025-09-03", True),
        ("Anthropic-Version: 2023-06-01", True),
        ("Anthropic-Version: 2022-01-01", False),
        ("X-Goog-Api-Version: 2026-11-01", True),  # as googleapiclient does for Compute Engine
        ("X-Goog-Api-Version: beta", False),
    ],
)
def test_versions_that_libraries_say_pass(header: str, passes: bool) -> None:
    assert opened(made_of(), header) == ("" if passes else "header")


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("wait", True),
        ("return=representation,", True),
        ('odata.include-annotations="*"', True),
        ('return=representation, odata.include-annotations="OData.V1.FormattedValue, Microsoft.CRM.*"', True),
        ('outlook.timezone="Pacific Standard Time"', True),
        ('outlook.timezone="UTC;resolution=merge-duplicates"', False),
        ('outlook.timezone="resolution=merge-duplicates"', False),
        ('odata.include-annotations="a.b,tx=rollback"', False),  # as PostgREST splits it
        ('odata.include-annotations="a.b,respond-async"', False),
        ('odata.include-annotations="a.b, tx=rollback', False),
        ('tx=odata.include-annotations="a.b"rollback', False),
        ("odata.include-annotations=*,odata.continue-on-error", False),
    ],
)
def test_preferences_on_the_answer_pass_as_clients_write_them(value: str, passes: bool) -> None:
    assert opened(made_of(), f"Prefer: {value}") == ("" if passes else "header")


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("preference", "undo_class"),
    [("resolution=merge-duplicates", UndoClass.IRREVERSIBLE), ("return=representation", UndoClass.COMPENSATING)],
)
def test_what_may_overwrite_by_a_preference_has_no_way_back(preference: str, undo_class: UndoClass) -> None:
    """The undo of an insert would delete a row that was there before."""
    made = plan(
        "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': 'C', 'text': 't'}, "
        f"headers={{'Prefer': '{preference}'}})",
        accounts=(SLACK,),
    )
    assert made.undo_class is undo_class
    assert ("with the header Prefer" in made.undo_text) == (undo_class is UndoClass.IRREVERSIBLE)


POST = (
    "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': 'C', 'text': 't'}, "
    "headers={'Prefer': '%s'})"
)


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("preference", "named", "passes", "undo_class"),
    [
        ("' + chosen + '", (), False, UndoClass.COMPENSATING),  # it can't be sent
        ("' + chosen + '", ("slack.chat.postMessage",), False, UndoClass.COMPENSATING),
        ("resolution=merge-duplicates", (), True, UndoClass.IRREVERSIBLE),
    ],
)
def test_a_preference_that_a_document_declares_is_one_that_is_written_out(
    preference: str, named: tuple[str, ...], passes: bool, undo_class: UndoClass
) -> None:
    made = plan(POST % preference, *named, accounts=(SLACK,), catalog=declaring("Prefer", "Slack-Version"))
    for header in ("Prefer: resolution=merge-duplicates", "Slack-Version: 1"):
        body = {"channel": "C", "text": "t"}
        wanted = "" if passes and header.startswith("Prefer") else "header"
        assert sent(made, SLACK, "POST /api/chat.postMessage", body, headers=[header]) == wanted, header
    assert made.undo_class is undo_class
    assert not any(one in line for line in permit_lines_of(made) for one in ("Prefer: whatever", "Version: whatever"))


@pytest.mark.promise(65)
@pytest.mark.parametrize(
    ("header", "undo_class"),
    [
        ("X-Upsert", UndoClass.IRREVERSIBLE),
        ("X-Request-Id", UndoClass.COMPENSATING),
        ("If-Match", UndoClass.COMPENSATING),
    ],
)
def test_a_declared_header_that_the_program_may_choose_leaves_no_way_back(header: str, undo_class: UndoClass) -> None:
    made = plan(POST % "return=representation", accounts=(SLACK,), catalog=declaring(header))
    assert f"{header}: whatever the program makes it" in [one.strip() for one in made.lines]
    assert made.undo_class is undo_class
    assert (f"in the header {header}" in made.undo_text) == (undo_class is UndoClass.IRREVERSIBLE)


def test_the_one_value_that_a_document_has_for_a_version_passes() -> None:
    catalog = declaring("Slack-Version")
    method = catalog.method("slack.chat.postMessage")
    method.parameters["properties"]["Slack-Version"]["enum"] = ["7"]
    made = plan(POST % "return=representation", accounts=(SLACK,), catalog=catalog)
    for version, refused in (("7", ""), ("8", "header")):
        headers = [f"Slack-Version: {version}"]
        body = {"channel": "C", "text": "t"}
        assert sent(made, SLACK, "POST /api/chat.postMessage", body, headers=headers) == refused


def test_of_several_versions_the_one_that_is_meant_without_any_passes() -> None:
    catalog = declaring("Slack-Version")
    method = catalog.method("slack.chat.postMessage")
    method.parameters["properties"]["Slack-Version"] |= {"enum": ["6", "7", "8"], "default": "7"}
    made = plan(
        "V = {'Slack-Version': '5' + '5'}\n" + POST % "return=representation", accounts=(SLACK,), catalog=catalog
    )
    for version, refused in (("6", "header"), ("7", ""), ("8", "header"), ("55", "")):
        headers = [f"Slack-Version: {version}"]
        body = {"channel": "C", "text": "t"}
        assert sent(made, SLACK, "POST /api/chat.postMessage", body, headers=headers) == refused
    assert 'Slack-Version: "55" or "7", or left out' in [one.strip() for one in made.lines]


def test_a_field_of_a_body_is_no_header() -> None:
    made = made_of("B = {'beta': 'yes' + '', 'alphabeta': 'a' + 'b', 'version': '1' + '2'}")
    assert made.undo_class is UndoClass.COMPENSATING
    assert not [line for line in permit_lines_of(made) if "beta" in line.lower() or "version" in line.lower()]


def test_few_headers_are_added_to_those_that_are_written_out() -> None:
    made = made_of(*(f"H['A{number}-Version'] = '1' + '{number}'" for number in range(80)))
    assert len([line for line in permit_lines_of(made) if "-Version: " in line]) == 8
    assert (opened(made, "A7-Version: 17"), opened(made, "A8-Version: 18")) == ("", "header")
