"""A daemon's parts without its sockets, and a runtime whose every moment a test can hold."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goex.config import Config
from goex.daemon.app import App
from goex.engine.core import Principal, Request
from goex.engine.events import Approval
from goex.engine.grant_issue import Choice, Yes
from goex.journal.actions import ActionRow
from goex.journal.states import Event, State
from goex.paths import Paths
from policies.actions import Action, Files, Need, Outcome, Plan, Revert, UndoClass
from policies.grants import PERSON
from policies.services import Risk
from runtimes.base import Context, Footprint, Settlement
from tests.support.passphrases import cheap_passphrases
from vault.secret import Secret

VAULT, APPROVAL = "the vault's passphrase here", "another one for approving"
ACTION = Files(folder="/x", language="shell", program="true")
ASKER = Principal(agent="bot", session="conn-1", source="a test")
THE_PERSON = replace(ASKER, agent=PERSON, session="tty-1")
MEMORY = "/dev/shm" if Path("/dev/shm").is_mount() else "/tmp"  # short, as a socket's path is; no disk is waited for


def on(folder: str, program: str = "true") -> Files:
    return Files(folder=folder, language="shell", program=program)


class HeldRuntime:
    """Works on nothing. While `running` or `looking` is cleared, what runs or is looked at waits."""

    kind = "files"

    def __init__(self) -> None:
        self.risk = Risk.WRITE
        self.ran: list[str] = []
        self.footprints: dict[str, Footprint] = {}  # by action; without one: all of its folder, read and written
        self.touches = True
        self.undo_class = UndoClass.COMPENSATING
        self.failing: set[str] = set()  # targets whose revert doesn't succeed
        self.running, self.looking = asyncio.Event(), asyncio.Event()
        self.running.set()
        self.looking.set()

    def plan(self, action: Action) -> Plan:
        folder = action.folder if isinstance(action, Files) else "/x"
        need = Need(service="files", account=folder, scope="run", risk=self.risk, methods=("run",))
        return Plan(
            action=action,
            needs=(need,),
            undo_class=self.undo_class,
            undo_text="takes it back",
            resolved={},
            bounds={},
            catalog_hash="",
            image_id="i",
            limits={},
            lines=("a line",),
        )

    async def assess(self, action: Action, context: Context) -> Plan:
        return self.plan(action)

    async def prepare(self, plan: Plan, context: Context) -> None:
        pass

    async def execute(self, plan: Plan, context: Context) -> Outcome:
        self.ran.append(context.action_id)
        await self.running.wait()
        return Outcome(ok=True, summary="It ran.", touched=self.touches)

    async def settle(self, plan: Plan, context: Context) -> Settlement:
        await self.looking.wait()
        return Settlement(outcome=Outcome(ok=True, summary="It ran."))

    async def assess_revert(self, revert: Revert, plan: Plan, context: Context) -> Plan:
        return self.plan(revert)

    async def execute_revert(
        self, revert: Revert, revert_plan: Plan, plan: Plan, target: Context, context: Context
    ) -> Outcome:
        self.ran.append(context.action_id)
        if revert.target in self.failing:
            return Outcome(ok=False, summary="It stayed.", touched=False)
        return Outcome(ok=True, summary="It was taken back.")

    async def footprint(self, plan: Plan, context: Context) -> Footprint:
        folder = frozenset({f"files{plan.needs[0].account}"})
        return self.footprints.get(context.action_id, Footprint(reads=folder, writes=folder))

    async def forget(self, plan: Plan, context: Context) -> None:
        pass


class Desk:
    """An App whose vault is open, and short ways to bring an action where a test wants it."""

    def __init__(self, app: App) -> None:
        self.app, self.engine, self.core = app, app.engine, app.engine.core
        self.runtime = HeldRuntime()
        self.core.runtimes = {"files": self.runtime}

    def asker(self) -> Principal:
        """The agent as it is named now, if it is."""
        return replace(ASKER, since=self.core.grant_store.named_since(ASKER.agent))

    def ask(self, action: Action = ACTION, principal: Principal | None = None) -> str:
        return self.engine.begin(Request(action=action, detach=True), principal or self.asker())

    async def until(self, id: str, *states: State) -> ActionRow:
        for _ in range(60_000):
            if (row := self.core.actions.get(id)).state in states:
                return row
            await asyncio.sleep(0.005)
        raise AssertionError(f"It is {row.state}: {row.problem}")

    async def asked(self, action: Action = ACTION, principal: Principal | None = None) -> Approval:
        id = self.ask(action, principal)
        await self.until(id, State.ASKING)
        (found,) = self.core.approvals.of_action(id)
        return found

    def answer(self, question: Approval, **more: Any) -> Approval:
        if not more.pop("approve", True):
            return self.engine.asking.deny(question.id, by="the person").approval
        shown = more.pop("shown", question.digest)
        yes = Yes(**{"choice": Choice.ONCE, "by": "the person", **more})
        return self.engine.asking.approve(question.id, shown=shown, yes=yes).approval

    async def done(self, action: Action = ACTION) -> str:
        question = await self.asked(action)
        self.answer(question)
        await self.until(question.action_id, State.DONE)
        return question.action_id

    def allowed(self, action: Action = ACTION, plan: Plan | None = None) -> tuple[ActionRow, Plan]:
        """An action that was allowed, and that nobody carries out."""
        plan = plan or self.runtime.plan(action)
        with self.core.journal.transaction() as transaction:
            row = self.core.actions.create(
                transaction,
                id="a-allowed",
                agent=ASKER.agent,
                session=ASKER.session,
                intent="",
                action=action,
                source=ASKER.source,
                detached=True,
            )
            row = self.core.actions.step(transaction, row, Event.ASSESS, plan=plan)
            return self.core.actions.step(transaction, row, Event.ALLOW), plan

    def stranded(self, action: Action = ACTION, plan: Plan | None = None) -> ActionRow:
        """An action that ran when its daemon died."""
        row, _ = self.allowed(action, plan)
        for event in (Event.PREPARE, Event.RUN):
            row = self.core.stepped(row, event)
        return row


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir=MEMORY) as name:
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        made = Desk(app)
        yield made
        made.runtime.running.set()
        made.runtime.looking.set()
        await app.close()
