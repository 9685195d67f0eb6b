"""Calls of imported services: names of several segments, whole bodies, repeated parameters; first as plans, then sent.

The documents have Google's form and pass the real importer; the container, the gateway and the TLS service are real.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.importing.install import import_google
from policies.actions import ApiCalls, Plan, UndoClass
from policies.decisions import Allow, Ask, Request, decide
from policies.digest import digest
from policies.errors import InvalidInput, Unsupported
from policies.grants import Grant, Width
from policies.jsonvalue import canonical
from policies.rules.book import RuleBook
from policies.services import Method, Risk
from policies.typed_json import from_json, to_json
from runtimes.gateway.client import GatewayClient
from runtimes.gateway.plan import PlannedRequest, Ref
from runtimes.gateway.urls import decode_path, encode_path
from runtimes.rest.planner import plan_calls
from runtimes.rest.plans import assess_calls
from runtimes.rest.requests import step_for
from runtimes.rest.runtime import RestRuntime
from runtimes.sandbox.contract import Limits, Profile
from runtimes.sandbox.docker import DockerSandbox
from tests.mapper.importing.documents import FULL, discovery, method, write
from tests.runtimes.rest.support import TOKEN, Bench, Hit, Service, account, calls, serving

NAME = {"type": "string", "location": "path", "required": True, "pattern": "^projects/[^/]+/things/.*$"}
BARE = {"type": "string", "location": "path", "required": True}
THING = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "Thing"}}},
}
METHODS = {
    "get": method("things.get", path="v1/{+name}", parameters={"name": NAME}),
    "approve": method(
        "things.approve",
        "POST",
        "v1/{+name}:approve",
        parameters={"name": NAME},
        request={"$ref": "Thing"},
        scopes=[FULL],
    ),
    "child": method("things.child", path="v1/{+name}/children/{id}", parameters={"name": NAME, "id": BARE}),
    "bare": method("things.bare", path="v1/bare/{id}", parameters={"id": BARE}),
    "verb": method("things.verb", "POST", "v1/bare/{id}:run", parameters={"id": BARE}),
    "free": method("things.free", path="v1/{+rest}", parameters={"rest": BARE}),
    "search": method(
        "things.search",
        parameters={
            "ids": {"type": "string", "location": "query", "repeated": True},
            "pages": {"type": "integer", "location": "query", "repeated": True},
            "q": {"type": "string", "location": "query"},
        },
    ),
    "create": method("things.create", "POST", request={"$ref": "Thing"}),
    "upload": method("things.upload", "POST", supportsMediaUpload=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("documents")
    write(folder, discovery(methods=METHODS, schemas={"Thing": THING}))
    report = import_google(folder / "catalog.db", folder, index=False)
    assert not report.problems
    return Catalog.open(folder / "catalog.db")


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ACCOUNT = account("things", "https://things.googleapis.com")


def requests(catalog: Catalog, action: ApiCalls) -> list[PlannedRequest]:
    accounts = {(ACCOUNT.service, ACCOUNT.name): ACCOUNT}
    return [step.request for step in plan_calls(action, accounts, catalog, "a1").steps]


def request(catalog: Catalog, method_name: str, /, **arguments: Any) -> PlannedRequest:
    (made,) = requests(catalog, calls((f"things.{method_name}", arguments)))
    return made


# ---- paths


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("get", {"name": "projects/p/things/t"}, ("v1", "projects", "p", "things", "t")),
        ("get", {"name": "projects/p q/things/t:1/ü"}, ("v1", "projects", "p q", "things", "t:1", "ü")),
        ("get", {"name": "projects/p/things/50%"}, ("v1", "projects", "p", "things", "50%")),
        ("approve", {"name": "projects/p/things/t"}, ("v1", "projects", "p", "things", "t:approve")),
        ("child", {"name": "projects/p/things/t", "id": "a/b"},
         ("v1", "projects", "p", "things", "t", "children", "a/b")),
        ("bare", {"id": "user:a@example.org"}, ("v1", "bare", "user:a@example.org")),
        ("verb", {"id": "x"}, ("v1", "bare", "x:run")),
    ],
)  # fmt: skip
def test_paths(catalog: Catalog, name: str, arguments: dict[str, Any], path: tuple[str, ...]) -> None:
    made = request(catalog, name, **arguments)
    assert made.path == path
    assert decode_path(encode_path(path)) == path  # what is encoded is read back as exactly these segments


BAD_NAMES = [
    "projects/p/things/../../../admin",
    "projects/p/things/..",
    "projects/p/things/./t",
    "projects/p/things//t",
    "/projects/p/things/t",
    "projects/p/things/t/",
    "projects/p/things/",
    "projects/p/things/%2e%2e",
    "projects/p/things/%2E./t",
    "projects/p/things/a%2Fb",
    "projects/p/things/a%252Fb",
    "projects/p/things/%252e%252e",
    "projects/p/things/..;x",
    "projects/p/things/a%5cb",
    "projects/p/things/a\\b",
    "projects/p/things/..\\..",
    "projects/p/things/t?alt=media",
    "projects/p/things/t#x",
    "projects/p/things/t\n",
    "projects/p/things/t\r\nX: y",
    "projects/p/things/t\0",
    "projects/p/things/t:setIamPolicy",
    "projects/p/things/t:cancel",
    "other/p",
    "",
]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("method_name", ["get", "free"])
def test_a_name_is_nothing_but_a_name(catalog: Catalog, method_name: str, name: str) -> None:
    if (method_name, name) == ("free", "other/p"):
        assert request(catalog, "free", rest=name).path == ("v1", "other", "p")
        return
    with pytest.raises(InvalidInput):
        request(catalog, method_name, **{"name" if method_name == "get" else "rest": name})


@pytest.mark.parametrize(
    "id",
    [
        "..",
        ".",
        "a/../b",
        "a\\..\\b",
        "",
        "x\n",
        "x:run",
        "x:setIamPolicy",
        "%2e%2e",
        "a%2F%2E%2E%2Fb",
        "%252e.",
        "..;",
        ".;x",
    ],
)
def test_one_segment_is_one_segment(catalog: Catalog, id: str) -> None:
    with pytest.raises(InvalidInput):
        request(catalog, "bare", id=id)


@given(text=st.text(max_size=40))
def test_whatever_is_accepted_stays_below_its_place(catalog: Catalog, text: str) -> None:
    try:
        made = request(catalog, "get", name=f"projects/p/things/{text}")
    except InvalidInput:
        return
    assert made.path[:4] == ("v1", "projects", "p", "things") and len(made.path) > 4
    sent = encode_path([str(part) for part in made.path])
    assert decode_path(sent) == made.path
    assert not set(sent) & set("?#\\ \r\n\0") and "/../" not in sent and not sent.endswith(("/", "/..", "/."))


def test_a_name_of_several_segments_cant_come_from_an_answer(catalog: Catalog) -> None:
    listed: tuple[str, dict[str, Any]] = ("things.search", {})
    taken = {"$from": 0, "path": "$.name"}
    for name, arguments in (("get", {"name": taken}), ("approve", {"name": taken}), ("verb", {"id": taken})):
        with pytest.raises(InvalidInput, match="can't come from an answer"):
            requests(catalog, calls(listed, (f"things.{name}", arguments)))
    # One whole segment can, as ever.
    made = requests(catalog, calls(listed, ("things.bare", {"id": taken})))
    assert made[1].path == ("v1", "bare", Ref("call-0", "$.name"))


# ---- queries and bodies


def test_a_repeated_parameter_is_sent_once_for_each_value(catalog: Catalog) -> None:
    made = request(catalog, "search", ids=["a,b", "c"], pages=[1, 2], q="x,y")
    assert made.query == {"ids": ["a,b", "c"], "pages": ["1", "2"], "q": "x,y"}
    assert request(catalog, "search", ids=[]).query == {"ids": []}


def test_a_body_is_the_argument_itself(catalog: Catalog) -> None:
    body = {"title": "x", "parts": [{"title": "y", "parts": []}]}
    made = request(catalog, "create", body=body)
    assert (made.body, made.body_format) == (body, "json")
    assert request(catalog, "create").body is None
    with pytest.raises(InvalidInput):
        request(catalog, "create", body={"title": "x", "$ref": ["call-0", "$"]})


def test_a_value_within_a_body_may_come_from_an_answer(catalog: Catalog) -> None:
    body = {"title": {"$from": 0, "path": "$.title"}}
    made = requests(catalog, calls(("things.bare", {"id": "x"}), ("things.create", {"body": body})))
    assert made[1].body == {"title": Ref("call-0", "$.title")}


def test_a_whole_body_and_parts_of_one_are_never_mixed(catalog: Catalog) -> None:
    made = catalog.method("things.create")
    mixed = replace(made, locations={**made.locations, "more": "body"})
    with pytest.raises(InvalidInput, match="no body for all of this"):
        _step(catalog, mixed, {"body": {"title": "x"}, "more": 1})


def test_what_cant_be_sent_is_refused(catalog: Catalog) -> None:
    with pytest.raises(Unsupported, match="bytes of a file"):
        request(catalog, "upload")
    with pytest.raises(Unsupported, match="bytes of a file"):
        _step(catalog, catalog.method("things.upload"), {})


def _step(catalog: Catalog, made: Method, arguments: dict[str, Any]) -> None:
    step_for(
        id="call-0",
        call=0,
        role="call",
        catalog=catalog,
        service=catalog.service("things"),
        method=made,
        account=ACCOUNT,
        arguments=arguments,
        expect=(),
    )


# ---- what is shown and granted


def assess(catalog: Catalog, folder: Path, action: ApiCalls) -> Plan:
    return assess_calls(action, Bench(folder, (ACCOUNT,)).context("a1"), catalog, Profile(), "sha256:x")


def test_the_plan_shows_everything_and_its_digest_covers_it(catalog: Catalog, tmp_path: Path) -> None:
    action = calls(("things.approve", {"name": "projects/p/things/t", "body": {"title": "x"}}))
    plan = assess(catalog, tmp_path, action)

    assert "POST https://things.googleapis.com/v1/projects/p/things/t:approve" in plan.lines[0]
    assert any("body" in line and '"title": "x"' in line for line in plan.lines)
    assert [(need.scope, need.risk.word) for need in plan.needs] == [(FULL, "write")]
    again = from_json(Plan, to_json(plan), "It")
    assert canonical(to_json(again)) == canonical(to_json(plan))
    digests = {
        digest(assess(catalog, tmp_path, calls(("things.approve", arguments))), agent="x")
        for arguments in (
            {"name": "projects/p/things/t", "body": {"title": "x"}},
            {"name": "projects/p/things/t", "body": {"title": "y"}},
            {"name": "projects/p/things/t", "body": {}},
            {"name": "projects/p/things/t"},
            {"name": "projects/p/things/u", "body": {"title": "x"}},
        )
    }
    assert len(digests) == 5


# ---- sent


class Things(Service):
    def handle(self, hit: Hit) -> tuple[int, Any]:
        if hit.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, {}
        return 200, {"name": hit.path, "title": "from the service"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(Things(), tmp_path) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runtime(
    sandbox_image: str, tmp_path_factory: pytest.TempPathFactory, catalog: Catalog
) -> AsyncIterator[RestRuntime]:
    folder = tmp_path_factory.mktemp("runtime")
    sandbox = DockerSandbox(f"tests-rest-{os.getpid()}", scratch_dir=folder / "scratch")
    gateway = GatewayClient(folder / "gateway")
    try:
        yield RestRuntime(sandbox, gateway, catalog, Profile(limits=Limits(seconds=200)))
    finally:
        await gateway.stop()
        await sandbox.close()


@pytest.mark.docker
async def test_through_the_real_gateway(runtime: RestRuntime, service: Service, tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "records",
        (account("things", service.url, ca_pem=service.ca_pem, private=True),),
    )
    body = {"title": 'Ünïcode & "quotes"', "parts": [{"title": {"$from": 0, "path": "$.title"}}]}
    action = calls(
        ("things.get", {"name": "projects/p q/things/a/b%"}),
        ("things.search", {"ids": ["a,b", "c&d"], "pages": [1, 2], "q": "x"}),
        ("things.approve", {"name": "projects/p/things/t", "body": body}),
        ("things.create", {}),
        ("things.create", {"body": {}}),
        ("things.verb", {"id": "a/b"}),
    )
    context = bench.context("a1")
    plan = await runtime.assess(action, context)
    await runtime.prepare(plan, context)
    outcome = await runtime.execute(plan, context)

    assert outcome.ok, outcome.summary
    got, searched, approved, bare, empty, verb = service.hits
    assert (got.method, got.path) == ("GET", "/v1/projects/p%20q/things/a/b%25")
    assert searched.raw_query == "q=x&ids=a%2Cb&ids=c%26d&pages=1&pages=2"
    assert (approved.method, approved.path) == ("POST", "/v1/projects/p/things/t:approve")
    assert approved.body == {"title": 'Ünïcode & "quotes"', "parts": [{"title": "from the service"}]}
    assert bare.body == {} and "content-type" not in bare.headers and bare.headers["content-length"] == "0"
    assert empty.body == {} and empty.headers["content-length"] == "2"
    assert (verb.method, verb.path) == ("POST", "/v1/bare/a%2Fb:run")
    assert all(TOKEN not in str(result) for result in outcome.results)


# ---- what an import is believed


def plan(catalog: Catalog, folder: Path, name: str, /, **arguments: Any) -> Plan:
    context = Bench(folder, (ACCOUNT,)).context("a1")
    return assess_calls(calls((f"things.{name}", arguments)), context, catalog, Profile(), "sha256:x")


@pytest.mark.promise(12)
def test_the_person_sees_that_a_service_was_imported(catalog: Catalog, tmp_path: Path) -> None:
    assert [
        line
        for line in plan(catalog, tmp_path, "bare", id="x").lines
        if "things was imported (google: things v1)" in line
    ]


@pytest.mark.promise(12)
def test_a_post_that_calls_itself_a_read_is_asked_for_like_a_change(tmp_path: Path) -> None:
    """Whoever can import could call any change a read, which its person's account allows with less."""
    peek = method("things.query", "POST", "v1/things:fold")
    write(tmp_path, discovery(methods={"query": peek, "list": method("things.list")}))
    import_google(tmp_path / "catalog.db", tmp_path, index=False)
    catalog = Catalog.open(tmp_path / "catalog.db")
    assert catalog.method("things.query").risk is Risk.READ

    made = plan(catalog, tmp_path, "query")
    assert made.risk is Risk.WRITE and made.undo_class is UndoClass.IRREVERSIBLE
    assert "only its imported document says" in made.undo_text
    grant = Grant(
        id="g1", agent="bot", service="things", account=ACCOUNT.name, scope=made.required[0].scope,
        width=Width.PERMANENT,
        created=NOW - timedelta(hours=1), expires=None, by="me", why="a0",
    )  # fmt: skip
    for each, allowed in ((made, Ask), (plan(catalog, tmp_path, "list"), Allow)):
        asked = Request(agent="bot", session="", digest=digest(each, agent="bot"), plan=each)
        decision = decide(asked, [grant], RuleBook.of({}), NOW)
        assert isinstance(decision, allowed), decision
        assert not isinstance(decision, Ask) or decision.presence


def test_what_changes_in_an_entry_is_another_action(tmp_path: Path) -> None:
    """An approval is for what was shown: an import between the question and the run makes it another one."""

    def imported(**more: Any) -> str:
        write(tmp_path, discovery(methods={"list": method("things.list", **more)}))
        import_google(tmp_path / "catalog.db", tmp_path, index=False)
        return digest(plan(Catalog.open(tmp_path / "catalog.db"), tmp_path, "list"), agent="bot")

    first = imported()
    assert imported() == first
    parameters = {"q": {"type": "string", "location": "query"}}
    changed = [
        imported(path="v1/others"), imported(httpMethod="DELETE"), imported(description="Else."),
        imported(parameters=parameters), imported(scopes=[FULL]),
    ]  # fmt: skip
    assert len({first, *changed}) == 6
