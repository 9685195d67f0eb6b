"""An engine with one imported service and one agent, whose answers are counted.

Import, catalog, undo pairs, assessment, rules, decision, questions, grants and journal are the shipped ones. What is
left out is what comes after the decision: a call that was allowed is journaled as done, and nothing is sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from goex.config import Config
from goex.daemon.app import App
from goex.engine.core import Principal, Request
from goex.engine.grant_issue import Choice, Yes
from goex.engine.tasks import TaskRuntime
from goex.journal.states import State
from goex.paths import Paths
from mapper.importing.files import import_openapi
from mapper.pairs import read_file
from policies.accounts import Account, Origin
from policies.actions import Action, ApiCalls, Call, Outcome, Plan
from policies.errors import GoexError
from policies.tasks import Allowance, Task
from runtimes.base import Context, Settlement
from runtimes.rest.plans import assess_calls
from runtimes.sandbox.contract import Profile
from vault.secret import Secret

URL = "https://tools.example"
_ENDS = (State.DONE, State.FAILED, State.DENIED)


@dataclass(frozen=True)
class Tool:
    """One method. `undo`: the tool of the suite that takes it back, and what it is called with."""

    name: str
    reads: bool
    arguments: tuple[str, ...]
    undo: tuple[str, Mapping[str, str]] | None = None


@dataclass(frozen=True)
class Made:
    """One call of the ground truth. `answer`: what it was answered; "" where that isn't known."""

    tool: str
    arguments: Mapping[str, Any]
    answer: str = ""

    @property
    def key(self) -> str:
        return json.dumps([self.tool, self.arguments], sort_keys=True)


def document(title: str, tools: Iterable[Tool]) -> dict[str, Any]:
    """These tools as an OpenAPI document: reads are GETs, all else is a POST."""
    paths: dict[str, Any] = {}
    for tool in tools:
        body = {"type": "object", "properties": {name: {} for name in tool.arguments}, "additionalProperties": False}
        answer = {"type": "object", "properties": {"id": {"type": "string"}}}
        content = {"application/json": {"schema": answer}}
        operation: dict[str, Any] = {
            "operationId": tool.name,
            "summary": tool.name,
            "responses": {"200": {"description": "ok", "content": content}},
        }
        if tool.reads:
            operation["parameters"] = [
                {"name": name, "in": "query", "schema": {"type": "string"}} for name in tool.arguments
            ]
        elif tool.arguments:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        paths[f"/{tool.name}"] = {"get" if tool.reads else "post": operation}
    return {"openapi": "3.0.3", "info": {"title": title, "version": "1"}, "servers": [{"url": URL}], "paths": paths}


def pairs(title: str, tools: Iterable[Tool]) -> str:
    """The undo pairs of these tools, as a developer writes them."""
    text = ""
    for tool in tools:
        if tool.undo is not None:
            body = ", ".join(f'{name} = "{value}"' for name, value in tool.undo[1].items())
            text += f'[[pair]]\nmethod = "{title}.{tool.name}"\n[pair.undo]\n'
            text += f'calls = [{{ method = "{tool.undo[0]}", arguments = {{ body = {{ {body} }} }} }}]\n'
    return text


class Recorder(TaskRuntime):
    """Assesses calls as GoEx does, and only says that it ran them."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def assess(self, action: Action, context: Context) -> Plan:
        assert isinstance(action, ApiCalls)
        return assess_calls(action, context, self._app.catalog, Profile(), "sha256:0", self._app.reversions)

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        return Outcome(ok=True, summary="recorded")

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        return Settlement(outcome=Outcome(ok=True, summary="recorded"))


@dataclass
class Calendar:
    """A clock that goes on by a day for each case."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@dataclass
class House:
    """Asks for actions, answers each question with yes, and counts the questions."""

    app: App
    service: str
    clock: Calendar
    reads: frozenset[str] = frozenset()
    questions: int = 0
    problem: str = ""  # of the last action
    _session: str = field(default="s-0")
    _number: int = 0

    def begin(self) -> None:
        """A new day and session, and no question yet."""
        self.app.grant_store.end_session(self._session)
        self.clock.now += timedelta(days=1)
        self._number += 1
        self._session, self.questions = f"s{self._number}-{int(self.clock.now.timestamp())}", 0

    def calls(self, made: Sequence[Made]) -> Action:
        """One action, arguments where the document has them: a read's in the query, as text, a change's in the body."""
        return ApiCalls(
            calls=tuple(
                Call(service=self.service, method=one.tool, arguments=self.given(one), account="main") for one in made
            )
        )

    def given(self, call: Made) -> dict[str, Any]:
        if call.tool in self.reads:
            return {
                name: value if isinstance(value, str) else json.dumps(value) for name, value in call.arguments.items()
            }
        return {"body": dict(call.arguments)} if call.arguments else {}

    async def done(self, action: Action) -> bool:
        """Whether it ran, with a question or without."""
        return await self._ended(action, approve=True) is State.DONE

    async def unasked(self, action: Action) -> bool:
        """Whether it runs without a question; a question is denied."""
        before = self.questions
        state = await self._ended(action, approve=False)
        asked, self.questions = self.questions > before, before
        return state is State.DONE and not asked

    async def _ended(self, action: Action, *, approve: bool) -> State:
        engine = self.app.engine
        since = engine.core.grant_store.named_since("agent")
        principal = Principal(agent="agent", session=self._session, source="replay", since=since)
        try:
            id = engine.begin(Request(action=action, detach=True), principal)
        except GoexError as error:
            self.problem = error.message
            return State.FAILED
        while (row := engine.core.actions.get(id)).state not in _ENDS:
            if row.state is State.ASKING:
                for one in [one for one in engine.core.approvals.of_action(id) if one.state == "pending"]:
                    self.questions += 1
                    if approve:
                        engine.asking.approve(one.id, shown=one.digest, yes=Yes(choice=Choice.ONCE, by="the replay"))
                    else:
                        engine.asking.deny(one.id, by="the replay")
            await asyncio.sleep(0)
        if not approve:  # many refusals in a row would make the agent rest
            engine.core.rules.counts._denied.clear()
            engine.core.rules.counts._resting.clear()
        self.problem = row.problem
        return State(row.state)


def proposal(title: str, lines: Iterable[Mapping[str, Any]]) -> Any:
    """A task of these lines."""
    return Task(title=title[:100], allows=tuple(Allowance(**one) for one in lines), seconds=1800)


@asynccontextmanager
async def house(folder: Path, title: str, tools: Iterable[Tool]) -> AsyncIterator[House]:
    """One with these tools connected, and an agent."""
    tools = tuple(tools)
    paths = Paths(config_dir=folder / "config", state_dir=folder / "state", run_dir=folder / "run")
    paths.create()
    file = folder / "document.json"
    file.write_text(json.dumps(document(title, tools)))
    import_openapi(paths.catalog, file, title, index=False)  # nothing is looked for: calls are named
    clock = Calendar()
    app = App(paths, Config(), lambda: None, clock=clock)
    try:
        await app.vault_state.init(
            "passphrase", Secret(b"the vault's, for a replay"), Secret(b"approving, for a replay")
        )
        account = Account(service=title, name="main", origins=(Origin.parse(URL),), base_url=URL)
        app.vault_state.vault.put(account, Secret(b"no secret at all"))
        app.grant_store.add_agent("agent", by="replay")
        if text := pairs(title, tools):
            app.reversions.add(read_file(text, "pairs.toml", app.catalog), by="replay")
        app.engine.core.runtimes = {**app.engine.core.runtimes, "calls": Recorder(app)}
        yield House(app, title, clock, frozenset(tool.name for tool in tools if tool.reads))
    finally:
        await app.close()
