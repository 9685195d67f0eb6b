"""What a program's question says of a body, a header or a path, the gateway holds it to; what it can't, it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.importing import install
from mapper.importing.files import import_openapi
from policies.errors import InvalidInput
from policies.rules.facts import plan_recipients
from policies.typed_json import to_json
from runtimes.code.record import arguments_of, permits_of
from runtimes.gateway.plan import SentRequest
from tests.runtimes.code.sending import sent
from tests.runtimes.code.support import CATALOG, DRIVE, GITHUB, SLACK, plan
from tests.runtimes.rest.support import account

BASE = "https://api.bank.example/v1"
BANK = account("bank", BASE)
GMAIL = account("gmail", "https://gmail.googleapis.com/gmail/v1")
DISCORD = account("discord", "https://discord.com/api/v10")
MATRIX = account("matrix", "https://matrix.example.org")
TEXT = {"schema": {"type": "string"}}
ANY_OBJECT = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
BYTES = {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
FILE = "/drive/v3/files/F1"


def operation(id: str, *parameters: dict[str, Any], body: dict[str, Any] | None = None) -> dict[str, Any]:
    made = {
        "operationId": id,
        "summary": f"{id}.",
        "responses": {"200": {"description": "ok"}},
        "security": [{"k": []}],
    }
    return {**made, "parameters": list(parameters), **({"requestBody": body} if body else {})}


ID = {"name": "id", "in": "path", "required": True, **TEXT}
DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "Bank", "version": "1"},
    "servers": [{"url": BASE}],
    "components": {"securitySchemes": {"k": {"type": "http", "scheme": "bearer"}}},
    "paths": {
        "/transfers": {
            "post": operation(
                "createTransfer",
                {"name": "X-Tenant", "in": "header", **TEXT},
                {"name": "X-On-Behalf-Of", "in": "header", **TEXT},
                body=ANY_OBJECT,
            )
        },
        "/objects": {"post": operation("putObject", {"name": "name", "in": "query", **TEXT}, body=BYTES)},
        "/items/{id}": {"post": operation("touchItem", ID), "put": operation("putItem", ID, body=ANY_OBJECT)},
        "/items/{id}/delete": {"post": operation("deleteItemForever", ID)},
        "/items/purgeAll": {"post": operation("purgeAllItems")},
    },
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("bank")
    (folder / "bank.json").write_text(json.dumps(DOCUMENT))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(install, "rebuild", lambda *_: None)
        report = import_openapi(folder / "catalog.db", folder / "bank.json", name="bank")
    assert not report.problems, report
    return Catalog.open(folder / "catalog.db")


def program(*lines: str) -> str:
    head = "import os, requests\nH = {'Authorization': 'Bearer ' + os.environ['BANK_TOKEN']}\n"
    return head + "\n".join(lines) + "\n"


def post(path: str, more: str) -> str:
    return f"requests.post('{BASE}{path}', headers=H, {more})"


TRANSFER = {"to": "ann", "amount": 5}


@pytest.mark.promise(51)
def test_a_body_that_the_catalog_has_as_one_argument_is_held_to_what_is_written(catalog: Catalog) -> None:
    made = plan(program(post("/transfers", f"json={TRANSFER}")), accounts=(BANK,), catalog=catalog)
    assert any('body: {"to": "ann", "amount": 5}' in line for line in made.lines)
    assert sent(made, BANK, "POST /v1/transfers", TRANSFER) == ""
    for other in (
        {**TRANSFER, "to": "mallory"},
        {"to": "ann"},
        {**TRANSFER, "more": 1},
        {},
        [TRANSFER],
        {"body": TRANSFER},
    ):
        assert sent(made, BANK, "POST /v1/transfers", other) == "field", other
    (permit,) = permits_of(made)
    assert permit.arguments()[0]["body"] == TRANSFER  # so rules and grants see it as they see a planned call's
    left = SentRequest(rule="rule-0", slots={}, query=(), body=dict(TRANSFER), size=20)
    assert arguments_of(left, permit, catalog) == ({"body": TRANSFER}, True)


@pytest.mark.promise(51)
def test_values_of_several_calls_go_together_as_they_are_told(catalog: Catalog) -> None:
    calls = [
        post("/transfers", f"json={{'to': '{to}', 'amount': {amount}}}") for to, amount in (("ann", 5), ("bob", 7))
    ]
    made = plan(program(*calls), accounts=(BANK,), catalog=catalog)
    (line,) = [line for line in made.lines if "body: " in line]
    for to in ("ann", "bob"):
        for amount in (5, 7):
            assert sent(made, BANK, "POST /v1/transfers", {"to": to, "amount": amount}) == ""
            assert f'{{"to": "{to}", "amount": {amount}}}' in line


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    ("body", "told", "passes", "refused"),
    [
        (
            "json={'to': 'ann', 'amount': read()}",
            ['body.to: "ann"', "body.amount: whatever the program makes it"],
            [{"to": "ann", "amount": 9}],
            [{"to": "bob", "amount": 9}, {"to": "ann", "amount": 9, "more": 1}],
        ),
        (
            "json={**read(), 'to': 'ann'}",
            ['body.to: "ann"', "other fields of body: whatever the program makes it"],
            [{"to": "ann", "memo": 1}],
            [{"to": "bob"}, {"amount": 1}],
        ),
        ("json=read()", ["body: whatever the program makes it"], [{"to": "bob"}, {}], []),
        ("data=read()", ["body: whatever the program makes it"], [{"to": "bob"}], []),
    ],
    ids=["a value", "more fields", "all", "bytes"],
)
def test_what_is_not_held_is_said_to_be_free(
    catalog: Catalog, body: str, told: list[str], passes: list[Any], refused: list[Any]
) -> None:
    made = plan(program(post("/transfers", body)), accounts=(BANK,), catalog=catalog)
    assert [one for one in told if not any(one in line for line in made.lines)] == []
    assert [sent(made, BANK, "POST /v1/transfers", one) for one in passes] == [""] * len(passes)
    assert [sent(made, BANK, "POST /v1/transfers", one) for one in refused] == ["field"] * len(refused)


def test_a_method_that_was_named_is_said_to_be_free(catalog: Catalog) -> None:
    made = plan("pass", "bank.createTransfer", accounts=(BANK,), catalog=catalog)
    assert any("whatever its arguments are" in line for line in made.lines)


@pytest.mark.promise(51)
def test_a_mail_and_whose_it_is_are_held(catalog: Catalog) -> None:
    url = "https://gmail.googleapis.com/gmail/v1/users/me/messages/send"
    made = plan(f"import requests\nrequests.post('{url}', json={{'raw': 'QUJD'}})\n", accounts=(GMAIL,))
    assert any('raw: "QUJD"' in line for line in made.lines)
    path = "/gmail/v1/users/me/messages/send"
    assert sent(made, GMAIL, f"POST {path}", {"raw": "QUJD"}) == ""
    assert sent(made, GMAIL, f"POST {path}", {"raw": "RVZJTA"}) == "field"
    assert sent(made, GMAIL, f"POST {path.replace('me', 'boss@corp.example')}", {"raw": "QUJD"}) == "path"
    free = plan(f"import requests\nrequests.post('{url}', json={{'raw': made()}})\n", accounts=(GMAIL,))
    assert any("raw: whatever the program makes it" in line for line in free.lines)
    assert not plan_recipients(free, CATALOG)[1]  # nobody knows whom it reaches


@pytest.mark.promise(51)
def test_headers_that_the_gateway_passes_on_are_told(catalog: Catalog) -> None:
    made = plan(program(post("/transfers", f"json={TRANSFER}")), accounts=(BANK,), catalog=catalog)
    for name in ("X-Tenant", "X-On-Behalf-Of"):
        assert any(f"{name}: whatever the program makes it" in line for line in made.lines)


@pytest.mark.promise(51)
def test_a_body_that_is_streamed_is_told_also_where_the_query_is_held(catalog: Catalog) -> None:
    made = plan(program(post("/objects?name=a.txt", "data=b'hello'")), accounts=(BANK,), catalog=catalog)
    assert any("passed on unread" in line for line in made.lines)
    assert sent(made, BANK, "POST /v1/objects?name=a.txt", b"anything", kind="application/octet-stream") == ""


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "value", ["7%2Fdelete", "%2570urgeAll", "purgeAll%3Bx", "%EF%BD%90urgeAll", "purgeAll.json.txt"]
)
def test_a_written_value_is_no_other_methods_path(catalog: Catalog, value: str) -> None:
    with pytest.raises(InvalidInput, match="another method"):
        plan(program(post(f"/items/{value}", "json={}")), accounts=(BANK,), catalog=catalog)
    plan(program(post("/items/7", "json={}")), accounts=(BANK,), catalog=catalog)  # the control


@pytest.mark.promise(51)
@pytest.mark.parametrize(
    "value", ["%EF%BD%90urgeAll", "purgeAll.txt.json", "graphql.json", "Batch.JSON", "%EF%BD%82atch", "batch.xml.json"]
)
def test_a_free_value_is_no_other_methods_path_however_it_is_spelled(catalog: Catalog, value: str) -> None:
    made = plan(
        program("i = read()", f"requests.post('{BASE}/items/' + i, headers=H)"), accounts=(BANK,), catalog=catalog
    )
    assert sent(made, BANK, "POST /v1/items/7") == ""
    assert sent(made, BANK, f"POST /v1/items/{value}") == "path"


# ---- fields beyond those that are listed


MEMBER = "/api/v10/guilds/1111111111111111111/members/2222222222222222222"


@pytest.mark.promise(51)
def test_fields_that_neither_the_program_nor_the_catalog_names_are_told_or_refused() -> None:
    url, more = f"https://discord.com{MEMBER}", {"nick": "Bob", "roles": ["999"]}
    closed, opened, named = (
        plan(f"import requests\nrequests.patch('{url}', json={{'nick': 'Bob'}})\n", accounts=(DISCORD,)),
        plan(f"import requests\nrequests.patch('{url}', json={{'nick': 'Bob', **read()}})\n", accounts=(DISCORD,)),
        plan("pass", "discord.update_guild_member", accounts=(DISCORD,)),
    )
    for made, told in ((closed, ""), (opened, "any other field: whatever"), (named, "whatever its arguments are")):
        assert sent(made, DISCORD, f"PATCH {MEMBER}", {"nick": "Bob"}) == ""
        assert sent(made, DISCORD, f"PATCH {MEMBER}", more) == ("" if told else "field")
        assert not told or any(told in line for line in made.lines)


@pytest.mark.promise(15)
@pytest.mark.parametrize("more", ["", ", **read()"])
def test_recipients_are_known_where_no_other_field_gets_out(more: str) -> None:
    path = "/_matrix/client/v3/createRoom"
    body = {"name": "x", "topic": "t", "invite": ["@ann:example.org"]}
    call = f"requests.post('https://matrix.example.org{path}', json={{**{body}{more}}})"
    made = plan(f"import requests\n{call}\n", accounts=(MATRIX,))
    assert plan_recipients(made, CATALOG) == (frozenset({"@ann:example.org"}), not more)
    assert sent(made, MATRIX, f"POST {path}", {**body, "preset": "private_chat"}) == ""
    for name, value in (("visibility", "public"), ("invite_3pid", [{"address": "eve@evil.example"}])):
        assert sent(made, MATRIX, f"POST {path}", {**body, name: value}) == ("" if more else "field")


@pytest.mark.promise(15)
@pytest.mark.parametrize(("more", "known"), [("", True), (", made_up=1", False)])
def test_a_field_that_the_catalog_does_not_know_may_reach_somebody(more: str, known: bool) -> None:
    call = f"slack_sdk.WebClient(token='x').chat_postMessage(channel='C1', text='x'{more})"
    made = plan(f"import slack_sdk\n{call}\n", accounts=(SLACK,))
    assert plan_recipients(made, CATALOG) == (frozenset({"c1"}), known)
    assert not plan_recipients(plan("pass", "slack.chat.postMessage", accounts=(SLACK,)), CATALOG)[1]


def test_permits_are_read_back_as_they_were_made(catalog: Catalog) -> None:
    for body in (f"json={TRANSFER}", "json={'to': 'ann', **read()}", "json=read()"):
        made = plan(program(post("/transfers", body)), accounts=(BANK,), catalog=catalog)
        assert [to_json(permit) for permit in permits_of(made)] == made.resolved["permits"]


@pytest.mark.promise(51)
def test_what_is_said_about_a_file_is_held_to_the_fields_that_are_open() -> None:
    build = 'from googleapiclient.discovery import build\nd = build("drive", "v3")\n'
    made = plan(
        f"{build}d.files().update(fileId='F1', body={{'name': 'a'}}, media_body=m).execute()\n", accounts=(DRIVE,)
    )
    path = f"/upload{FILE}?uploadType=multipart"

    def related(said: str) -> bytes:
        file = "Content-Type: text/plain\r\n\r\nhi"
        return f"--b\r\nContent-Type: application/json\r\n\r\n{said}\r\n--b\r\n{file}\r\n--b--\r\n".encode()

    kind = "multipart/related; boundary=b"
    assert sent(made, DRIVE, f"PATCH {path}", related('{"name": "report"}'), kind=kind) == ""
    assert sent(made, DRIVE, f"PATCH {path}", related('{"name": "report", "trashed": true}'), kind=kind) == "field"
    assert sent(made, DRIVE, f"PATCH {path}", b'{"trashed": true}', kind="text/plain") == "body"


# ---- what programs really send


def test_a_list_is_sent_where_the_question_says_that_the_body_is_free() -> None:
    labels = "/repos/o/r/issues/1/labels"
    call = "github.Github('t').get_repo('o/r').get_issue(1).add_to_labels('a')"
    made = plan(f"import github\n{call}\n", accounts=(GITHUB,))
    assert sent(made, GITHUB, f"POST {labels}", ["a"]) == ""
    free = plan(f"import requests\nrequests.post('https://api.github.com{labels}', json=read())\n", accounts=(GITHUB,))
    assert any("any other field: whatever the program makes it" in line for line in free.lines)
    assert sent(free, GITHUB, f"POST {labels}", ["a"]) == ""


def test_a_field_may_be_called_as_something_in_the_path_is(catalog: Catalog) -> None:
    call = f"requests.put('{BASE}/items/7', headers=H, json={{'id': '7', 'a/b': 1}})"
    made = plan(program(call), accounts=(BANK,), catalog=catalog)
    assert any('body: {"id": "7", "a/b": 1}' in line for line in made.lines)
    assert sent(made, BANK, "PUT /v1/items/7", {"id": "7", "a/b": 1}) == ""
    assert sent(made, BANK, "PUT /v1/items/7", {"id": "8", "a/b": 1}) == "field"
    assert sent(made, BANK, "PUT /v1/items/8", {"id": "7", "a/b": 1}) == "path"


def test_none_in_json_is_told_and_sent(catalog: Catalog) -> None:
    made = plan(program(post("/transfers", "json={'to': 'ann', 'memo': None}")), accounts=(BANK,), catalog=catalog)
    assert any("body.memo: whatever the program makes it" in line for line in made.lines)
    assert sent(made, BANK, "POST /v1/transfers", {"to": "ann", "memo": None}) == ""
    assert sent(made, BANK, "POST /v1/transfers", {"to": "bob", "memo": None}) == "field"


def test_what_may_be_left_out_is_told_so(catalog: Catalog) -> None:
    calls = [post("/transfers", "json={'a.b': 1, 'n': read()}"), post("/transfers", "json={'a.b': 1, 'c': 2, 'n': 3}")]
    made = plan(program(*calls), accounts=(BANK,), catalog=catalog)
    assert any(line.strip() == "body.a.b: 1" for line in made.lines)
    assert any(line.strip() == "body.c: 2, or left out" for line in made.lines)
    assert sent(made, BANK, "POST /v1/transfers", {"a.b": 1, "n": 4}) == ""
    assert sent(made, BANK, "POST /v1/transfers", {"n": 4}) == "field"


@pytest.mark.promise(51)
def test_many_written_paths_are_a_plan_too(catalog: Catalog) -> None:
    triples = [(f"o{n}", f"r{n}", n) for n in range(12)]
    calls = [f"requests.get('https://api.github.com/repos/{o}/{r}/issues/{n}')" for o, r, n in triples]
    made = plan("import requests\n" + "\n".join(calls) + "\n", accounts=(GITHUB,))
    assert sent(made, GITHUB, "GET /repos/o3/r3/issues/3") == ""
    assert sent(made, GITHUB, "GET /repos/o99/r3/issues/3") == "path"
