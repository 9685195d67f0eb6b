"""What an agent reads of actions: counted by size, a bounded part at a time, its own alone, and nothing of others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from goex.daemon import actions_service
from goex.daemon.actions_service import LONGEST_LIST, MOST_COMPARED, ActionsService
from goex.daemon.request_parser import LONGEST_KEY
from goex.daemon.rpc_context import Callers
from goex.engine.core import Principal, Request
from goex.engine.intents import Mappings
from goex.engine.peers import Peer, Sessions
from goex.engine.quota import Exhausted, Quotas
from goex.journal import actions as journal_actions
from goex.journal.actions import ActionRow
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken, JournalFailed
from goex.journal.states import Event, State
from goex.rpc import goex_pb2 as pb
from policies.actions import Action, ApiCalls, Call, Code, Files, Outcome, Revert
from policies.errors import GoexError
from policies.grants import ANONYMOUS, PERSON
from policies.limits import Quota
from policies.tasks import Allowance, Task
from tests.goex.engine.conftest import ACTION, ASKER, Desk, desk

__all__ = ["desk"]

LONG = 400_000  # characters that each action answered
QUOTA = Quota(requests=100)  # and so 16 MB of texts
OTHER = replace(ASKER, agent="other", session="conn-2", source="another test")
CALLS = ApiCalls(calls=(Call(service="slack", method="conversations.history", arguments={"channel": "#ops"}),))


class Refused(Exception):
    """What a caller is told: the status, and the problem."""


class Context:
    async def abort(self, code: Any, said: str, trailing_metadata: Any = ()) -> None:
        problem = pb.Problem.FromString(trailing_metadata[0][1])
        raise Refused(code.name, said, problem.code, problem.message, problem.next_step)


@dataclass(slots=True)
class Door:
    """The service as one caller has it."""

    desk: Desk
    principal: Principal = ASKER

    def service(self) -> ActionsService:
        callers = SimpleNamespace(
            principal=lambda _: self.principal, peer=lambda _: SimpleNamespace(away="", uid=1, pid=1, socket="agent")
        )
        return ActionsService(self.desk.engine, callers, self.desk.app.vault_state, None)  # type: ignore[arg-type]

    async def ask(self, method: str, request: Any) -> Any:
        """The reply, or of a stream the first event. Raises Refused."""
        called = getattr(self.service(), method)(request, Context())
        if not isinstance(called, AsyncIterator):
            return await called
        try:
            return await anext(called)
        finally:
            await called.aclose()  # type: ignore[attr-defined]

    def ran(self, id: str, action: Action = ACTION, principal: Principal = ASKER, size: int = LONG) -> str:
        """An action that is done, with a long answer."""
        actions, plan = self.desk.core.actions, self.desk.runtime.plan(action)
        said = Outcome(ok=True, summary="It ran.", results=({"status": 200, "body": "r" * size},))
        with self.desk.core.journal.transaction(lasting=False) as transaction:
            row = actions.create(
                transaction,
                id=id,
                agent=principal.agent,
                session=principal.session,
                intent="",
                action=action,
                source=principal.source,
                detached=True,
            )
            row = actions.step(transaction, row, Event.ASSESS, plan=plan)
            for event in (Event.ALLOW, Event.PREPARE, Event.RUN):
                row = actions.step(transaction, row, event)
            actions.step(transaction, row, Event.FINISH, outcome=said)
        return id


@pytest.fixture
def door(desk: Desk) -> Door:
    return Door(desk)


async def _again(door: Door) -> pb.Event:
    """How it stands, by a request with a key that was used, of an action that is over."""
    request = pb.ExecuteRequest(files=pb.FilesProgram(folder="/x", language="shell", program="true"), key="k1")
    async with aclosing(door.service().Execute(request, Context())) as events:
        return await anext(event async for event in events if event.WhichOneof("what"))


READS: dict[str, Callable[[Door], Any]] = {
    "list": lambda door: door.ask("List", pb.ListRequest(limit=3)),
    "brief list": lambda door: door.ask("List", pb.ListRequest(limit=3, brief=True)),
    "get": lambda door: door.ask("Get", pb.ActionId(id="a-0")),
    "result": lambda door: door.ask("Result", pb.ResultRequest(id="a-0", max_bytes=200)),
    "way back": lambda door: door.ask("WayBack", pb.WayBackRequest(verb="undo", moment="2020-01-01T00:00:00Z")),
    "keep for good": lambda door: door.ask("WayBack", pb.WayBackRequest(verb="commit", moment="2099-01-01T00:00:00Z")),
    "key": _again,
}


@pytest.mark.sampled(5)
@pytest.mark.promise(16)
@pytest.mark.parametrize("way", READS)
async def test_what_is_read_counts_by_its_size(door: Door, way: str) -> None:
    door.desk.core.quotas = Quotas(door.desk.core.journal, door.desk.core.clock, QUOTA)
    for number in range(3):
        door.ran(f"a-{number}")
    if way == "key":  # it would be told whole, each time
        keyed = door.desk.engine.begin(Request(action=ACTION, key="k1"), ASKER)
        await door.desk.until(keyed, State.ASKING)
        await door.desk.engine.cancel(keyed, why="a test")
        with door.desk.core.journal.engine.begin() as connection:
            answer = update(journal_actions.actions).where(journal_actions.actions.c.id == keyed)
            connection.execute(answer.values(outcome=door.desk.core.actions.get("a-0").outcome))
    with pytest.raises(Refused, match="quota of looks"):
        for _ in range(60):  # fewer than it has requests
            await READS[way](door)


KEYED: dict[str, tuple[str, Any]] = {
    "run": (
        "Execute",
        pb.ExecuteRequest(files=pb.FilesProgram(folder="/x", language="shell", program="true"), key="k1"),
    ),
    "undo": ("Revert", pb.RevertRequest(verb="undo", action_id="a-0", key="k1")),
}


async def _told(door: Door, way: str) -> tuple[list[str], str]:
    """The ids in what a request is answered, and the code of its end."""
    told = []
    try:
        async for event in getattr(door.service(), KEYED[way][0])(KEYED[way][1], Context()):
            told.append(event.action_id)
            if event.HasField("asking"):
                await door.desk.engine.cancel(event.action_id, why="a test")
    except Refused as refused:
        return told, refused.args[2]
    return told, ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", KEYED)
@pytest.mark.parametrize("amounts", [{"requests": 10}, {"looks": 1000}], ids=["requests", "looks"])
async def test_a_key_that_was_used_is_told_whatever_it_is_refused_for_now(
    door: Door, way: str, amounts: dict[str, float]
) -> None:
    """Else whoever sends it again takes it that nothing was begun."""
    core = door.desk.core
    door.ran("a-0", size=10)
    quotas, spent = core.quotas, Quotas(core.journal, core.clock, Quota(requests=10))
    with suppress(Exhausted):
        spent._spend(ASKER.agent, ASKER.session, amounts, spent=True)
    if "requests" in amounts:
        core.quotas = spent
        assert await _told(door, way) == ([], "exhausted")  # nothing was begun with it
    core.quotas = quotas
    (id,) = set((await _told(door, way))[0])
    core.quotas = spent
    assert await _told(door, way) == ([id], "exhausted")


async def test_before_the_vault_was_opened_no_key_is_known(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise Exhausted("No more.")

    door.desk.core.journal.lock()
    for way in KEYED:
        assert await _told(door, way) == ([], "unknown")
    monkeypatch.setattr(Quotas, "take", refused)
    with pytest.raises(Refused, match="No more"):  # so long a key was never used
        await door.ask("Revert", pb.RevertRequest(verb="undo", action_id="a-0", key="k" * (LONGEST_KEY + 1)))


@dataclass(slots=True)
class Spent:
    """A door whose agent has no request left, and began an action with a key before."""

    door: Door
    id: str

    async def ask(self, request: pb.ExecuteRequest | pb.RevertRequest) -> tuple[list[str], str, str]:
        """The ids that are told, and the code and the message of the end."""
        method = "Revert" if isinstance(request, pb.RevertRequest) else "Execute"
        told = []
        try:
            async for event in getattr(self.door.service(), method)(request, Context()):
                told.append(event.action_id)
        except Refused as refused:
            return told, refused.args[2], refused.args[3]
        return told, "", ""


@pytest.fixture
async def spent(door: Door) -> Spent:
    core = door.desk.core
    (id,) = set((await _told(door, "run"))[0])
    quotas = Quotas(core.journal, core.clock, Quota(requests=10))
    with suppress(Exhausted):
        quotas._spend(ASKER.agent, ASKER.session, {"requests": 10}, spent=True)
    core.quotas = quotas
    return Spent(door, id)


def _broken(*_: Any, **__: Any) -> Any:
    raise OperationalError("SELECT", {}, Exception("disk I/O error"))


@pytest.mark.parametrize("error", [JournalBroken, JournalFailed])
async def test_a_key_isnt_known_where_the_journal_cant_be_read(
    spent: Spent, error: type[GoexError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise error("it failed")

    monkeypatch.setattr(Journal, "rows", broken)
    assert (await spent.ask(KEYED["run"][1]))[:2] == ([], "unknown")


async def test_a_key_that_was_used_is_told_where_nobody_expected_the_error(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    (id,) = set((await _told(door, "run"))[0])
    monkeypatch.setattr(Quotas, "take", _broken)
    assert await _told(door, "run") == ([id], "error")


async def test_what_is_begun_is_told_though_its_first_event_cant_be(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key nobody could find out."""
    monkeypatch.setattr(ActionsService, "_told", _broken)
    request = pb.ExecuteRequest(files=pb.FilesProgram(folder="/x", language="shell", program="true"))
    told, code, _ = await Spent(door, "").ask(request)
    (begun,) = door.desk.core.actions.newest()
    assert (told, code) == ([begun.id], "error")


async def test_another_request_with_a_used_key_isnt_told_its_action(spent: Spent) -> None:
    """Of one that can't be read, and of one that an older GoEx would have noted as what it stood for, it can't be known
    which it is."""
    files = pb.FilesProgram(folder="/x", language="shell", program="false")
    assert (await spent.ask(pb.ExecuteRequest(files=files, key="k1")))[1:2] == ("invalid",)
    assert "another request" in (await spent.ask(pb.RevertRequest(verb="undo", action_id="a-0", key="k1")))[2]
    unknown = [pb.ExecuteRequest(key="k1"), _refer("a-0"), pb.ExecuteRequest(proposal="[]", key="k1")]
    unknown.append(pb.ExecuteRequest(code=pb.CodeProgram(again="a-0"), key="k1"))
    unknown[1].key = "k1"
    for request in unknown:
        told, code, said = await spent.ask(request)
        assert (told, code) == ([], "unknown") and spent.id in said


@pytest.mark.promise(16)
@pytest.mark.parametrize("why", ["long", "often"])
async def test_a_refused_request_with_a_used_key_costs_no_more_than_others(
    spent: Spent, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No quota holds it: it isn't read where it is long, nor where the looks are used up."""
    read: list[Any] = []
    for name in ("parse_execute", "parse_sent"):
        monkeypatch.setattr(actions_service, name, read.append, raising=False)
    files = pb.FilesProgram(folder="/x", language="shell", program="true" if why == "often" else "x" * MOST_COMPARED)
    if why == "often":
        with suppress(Exhausted):
            spent.door.desk.core.quotas.read(ASKER.agent, ASKER.session, 2**30)
    told, code, said = await spent.ask(pb.ExecuteRequest(files=files, key="k1"))
    assert (told, code) == ([], "unknown") and spent.id in said and not read


async def _same(door: Door, request: pb.ExecuteRequest, change: Callable[[], None]) -> None:
    """The same request is the same action, also where what it stands for has changed; and no other one is."""
    request.key, request.detach = "k1", True
    id = (await door.ask("Execute", request)).action_id
    change()
    assert (await door.ask("Execute", request)).action_id == id
    request.ask_seconds = 5
    told, code, said = await Spent(door, id).ask(request)
    assert (told, code) == ([], "invalid") and f"another request ({id})" in said
    quotas = door.desk.core.quotas = Quotas(door.desk.core.journal, door.desk.core.clock, Quota(requests=10))
    with suppress(Exhausted):
        quotas._spend(ASKER.agent, ASKER.session, {"requests": 10}, spent=True)
    request.ask_seconds = 0
    assert (await Spent(door, id).ask(request))[:2] == ([id], "exhausted")


async def test_a_program_that_is_run_again_is_the_same_request_when_more_is_known_of_it(door: Door) -> None:
    core, code = door.desk.core, Code(language="python", program="print(1)", services=("slack",))
    with core.journal.transaction(lasting=False) as transaction:
        made = {"agent": ASKER.agent, "session": ASKER.session, "source": "a test"}
        row = core.actions.create(transaction, **made, id="a-0", intent="", action=code, detached=True)

    def assessed() -> None:
        planned = replace(code, services=("slack/work",))
        plan = replace(door.desk.runtime.plan(code), action=planned, resolved={"permits": ()})
        with core.journal.transaction(lasting=False) as transaction:
            core.actions.step(transaction, row, Event.ASSESS, plan=plan)

    await _same(door, pb.ExecuteRequest(code=pb.CodeProgram(again="a-0")), assessed)


async def test_calls_that_refer_to_an_answer_are_the_same_request_whatever_it_is_now(door: Door) -> None:
    door.ran("a-0", size=10)

    def answered() -> None:
        with door.desk.core.journal.engine.begin() as connection:
            answer = update(journal_actions.actions).where(journal_actions.actions.c.id == "a-0")
            was = door.desk.core.actions.get("a-0").outcome
            connection.execute(answer.values(outcome=was.replace("rrr", "sss")))

    await _same(door, _refer("a-0"), answered)


async def test_a_proposal_is_the_same_request_whatever_the_catalog_makes_of_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Action] = [ACTION]
    monkeypatch.setattr(Mappings, "proposed", lambda *_: made[0])
    await _same(door, pb.ExecuteRequest(proposal="[]"), lambda: made.insert(0, CALLS))


def test_whoever_comes_has_its_connection_also_in_its_next_session(desk: Desk) -> None:
    """By which the keys of an agent without a name are told apart."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    peer = Peer(socket="agent", uid=1, gid=1, pid=1, connection="c1", terminal=None, program="x")
    registry, sessions = SimpleNamespace(peer=lambda _: peer), Sessions(lambda: now[0], lambda _: None)
    callers = Callers(registry, sessions, desk.core.grant_store, desk.app.page_sessions)  # type: ignore[arg-type]
    context = SimpleNamespace(peer=lambda: "", invocation_metadata=lambda: ())
    first = callers.principal(context)
    now[0] += timedelta(minutes=31)
    later = callers.principal(context)
    assert first.session != later.session and first.connection == later.connection == "c1"


async def test_what_is_refused_for_how_things_stand_now_may_have_been_begun(door: Door) -> None:
    """Each is malformed only as long as what it refers to isn't there."""
    (id,) = set((await _told(door, "run"))[0])
    found = [pb.ExecuteRequest(code=pb.CodeProgram(again="a-gone"), key="k1"), _refer("a-gone")]
    found.append(pb.ExecuteRequest(proposal="no calls", key="k1"))
    found[1].key = "k1"
    for request in found:
        told, code, said = await Spent(door, id).ask(request)
        assert (told, code) == ([], "unknown") and id in said
        request.key = "k2"
        assert (await Spent(door, id).ask(request))[1] in ("invalid", "proposal")  # nothing was begun with it


async def test_a_long_list_comes_in_pages(door: Door) -> None:
    ids = [door.ran(f"a-{number}") for number in range(12)]
    seen: list[str] = []
    while page := (await door.ask("List", pb.ListRequest(limit=1000, before=seen[-1] if seen else ""))).actions:
        assert sum(view.ByteSize() for view in page) <= LONGEST_LIST
        seen += [view.id for view in page]
    assert seen == [*reversed(ids)]
    door.principal = replace(ASKER, agent=PERSON)
    assert len((await door.ask("List", pb.ListRequest(limit=1000))).actions) == 12


async def test_a_list_ends_where_the_quota_does(door: Door) -> None:
    """Else an agent whose latest actions are long could list none of them, ever."""
    door.desk.core.quotas = Quotas(door.desk.core.journal, door.desk.core.clock, Quota(requests=10))
    ids = [door.ran(f"a-{number}") for number in range(6)]
    page = (await door.ask("List", pb.ListRequest(brief=True))).actions
    assert [view.id for view in page] == ids[:-5:-1]
    with pytest.raises(Refused, match="quota of looks"):
        await door.ask("List", pb.ListRequest(brief=True, before=page[-1].id))


@pytest.mark.parametrize(("verb", "moment"), [("undo", "2020-01-01T00:00:00Z"), ("commit", "2099-01-01T00:00:00Z")])
async def test_a_way_back_ends_where_the_quota_does(door: Door, verb: str, moment: str) -> None:
    """Each action counts once, and the way says where it isn't whole."""
    door.desk.core.quotas = Quotas(door.desk.core.journal, door.desk.core.clock, Quota(requests=10))
    ids = [door.ran(f"a-{number}", Files(folder=f"/{number}", language="shell", program="true")) for number in range(6)]
    *steps, last = (await door.ask("WayBack", pb.WayBackRequest(verb=verb, moment=moment))).steps
    assert sorted(step.action.id for step in steps) == ids[2:] and all(step.can for step in steps)
    assert last.action.id == ids[1] and not last.can and "quota" in last.why
    with pytest.raises(Refused, match="quota of looks"):
        await door.ask("WayBack", pb.WayBackRequest(verb=verb, moment=moment))


async def test_a_way_forward_is_whole_or_refused(door: Door) -> None:
    door.desk.core.quotas = Quotas(door.desk.core.journal, door.desk.core.clock, Quota(requests=10))
    for number in range(6):
        door.ran(f"a-{number}")
    with pytest.raises(Refused, match="quota of looks"):
        await door.ask("WayBack", pb.WayBackRequest(verb="redo", moment="2020-01-01T00:00:00Z"))


async def test_one_action_is_listed_however_long(door: Door) -> None:
    door.ran("a-0", size=3 * 2**20)
    assert len((await door.ask("List", pb.ListRequest())).actions) == 1


async def test_a_way_back_is_told_without_the_texts(door: Door) -> None:
    door.ran("a-0")
    reply = await door.ask("WayBack", pb.WayBackRequest(verb="undo", action_id="a-0"))
    assert [step.action.id for step in reply.steps] == ["a-0"] and reply.ByteSize() < 2000


def _read(monkeypatch: pytest.MonkeyPatch) -> list[ActionRow]:
    """Whatever rows are read from now on."""
    made, rows = journal_actions._row, []

    def noted(values: dict[str, Any]) -> ActionRow:
        rows.append(made(values))
        return rows[-1]

    monkeypatch.setattr(journal_actions, "_row", noted)
    return rows


@pytest.mark.sampled(5)
@pytest.mark.promise(16)
@pytest.mark.parametrize("verb", ["undo", "redo", "commit"])
@pytest.mark.parametrize("principal", [ASKER, replace(ASKER, agent=ANONYMOUS)], ids=["named", "unnamed"])
async def test_of_others_no_history_is_read(
    door: Door, verb: str, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        door.ran(f"a-other-{number}", principal=OTHER)
        door.ran(f"a-near-{number}", principal=replace(principal, agent=ANONYMOUS, session="conn-9"))
    door.principal = principal
    rows = _read(monkeypatch)
    moment = "2020-01-01T00:00:00Z" if verb != "commit" else "2099-01-01T00:00:00Z"
    reply = await door.ask("WayBack", pb.WayBackRequest(verb=verb, moment=moment, everyone=True))
    assert not reply.steps and not rows


def _refer(id: str) -> pb.ExecuteRequest:
    arguments = json.dumps({"channel": "#ops", "text": {"$from": id, "path": "$"}})
    return pb.ExecuteRequest(
        calls=pb.Calls(calls=[pb.Call(service="slack", method="chat.postMessage", arguments_json=arguments)])
    )


ASKS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "get": lambda id: ("Get", pb.ActionId(id=id)),
    "watch": lambda id: ("Watch", pb.ActionId(id=id)),
    "cancel": lambda id: ("Cancel", pb.ActionId(id=id)),
    "result": lambda id: ("Result", pb.ResultRequest(id=id)),
    "list": lambda id: ("List", pb.ListRequest(before=id)),
    "undo to": lambda id: ("WayBack", pb.WayBackRequest(verb="undo", action_id=id)),
    "redo to": lambda id: ("WayBack", pb.WayBackRequest(verb="redo", action_id=id)),
    "commit to": lambda id: ("WayBack", pb.WayBackRequest(verb="commit", action_id=id)),
    "task": lambda id: ("WayBack", pb.WayBackRequest(verb="undo", task=id)),
    "undo": lambda id: ("Revert", pb.RevertRequest(verb="undo", action_id=id)),
    "redo": lambda id: ("Revert", pb.RevertRequest(verb="redo", action_id=id)),
    "commit": lambda id: ("Revert", pb.RevertRequest(verb="commit", action_id="a-mine", also=[id])),
    "preview": lambda id: ("Preview", pb.PreviewRequest(action_id=id)),
    "preview of an undo": lambda id: (
        "Preview",
        pb.PreviewRequest(revert=pb.RevertRequest(verb="undo", action_id=id)),
    ),
    "run again": lambda id: ("Execute", pb.ExecuteRequest(code=pb.CodeProgram(again=id))),
    "refer to": lambda id: ("Execute", _refer(id)),
}
KINDS: dict[str, Action] = {
    "calls": CALLS,
    "files": Files(folder="/y", language="shell", program="true"),
    "revert": Revert(verb="undo", target="a-5ecret"),
    "code": Code(language="python", program="x", services=(), methods=(), profile="code"),
    "task": Task(title="t", allows=(Allowance(service="x", method="y"),), seconds=60, agent="other"),
}


@pytest.mark.sampled(5)
@pytest.mark.promise(24)
@pytest.mark.parametrize("way", ASKS)
async def test_anothers_id_is_as_unknown_as_one_that_isnt_there(
    door: Door, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    door.ran("a-mine", size=10)
    for kind, action in KINDS.items():
        door.ran(f"a-{kind}", action, OTHER)
    rows = _read(monkeypatch)
    for kind in KINDS:
        said = []
        for id in (f"a-{kind}", "a-absent"):
            method, request = ASKS[way](id)
            with pytest.raises(Refused) as caught:
                await door.ask(method, request)
            said.append([str(part).replace(id, "…") for part in caught.value.args])
        assert said[0] == said[1] and "There is no" in said[0][3], kind
        # Of which not even its length is to be felt.
        assert not [row for row in rows if row.id == f"a-{kind}"], kind


async def test_a_coding_agent_s_tool_is_judged_whatever_else_of_its_is_looked_at(door: Door) -> None:
    """Its hook waits for seconds alone, and a mapping may take longer."""
    quotas = door.desk.core.quotas
    async with AsyncExitStack() as mappings:
        for _ in range(quotas.quota.at_once):
            await mappings.enter_async_context(quotas.turn(ASKER.agent, ASKER.session))
        async with asyncio.timeout(300):
            reply = await door.ask("Judge", pb.JudgeRequest(tool="Read", kind="read", folder="/tmp"))
    assert isinstance(reply, pb.JudgeReply)
