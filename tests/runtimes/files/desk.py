"""What the files tests stand on: contexts, records, and an action's whole way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from policies.actions import Files, Outcome, Plan, Revert
from policies.jsonvalue import JsonObject
from runtimes.base import Context, Records
from runtimes.files.runtime import FilesRuntime
from runtimes.sandbox.contract import Sandbox
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox


class MemoryRecords:
    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        self.held[name] = data

    def get(self, name: str) -> bytes | None:
        return self.held.get(name)


class DiskRecords:
    """Records that a killed process leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, data: bytes) -> None:
        new = self.folder / f".{name}.new"
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.folder / name)

    def get(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None


def context(action_id: str = "a1", records: Records | None = None) -> Context:
    return Context(
        action_id=action_id,
        agent="agent",
        accounts={},
        granted=frozenset(),
        leases=(),
        records=records if records is not None else MemoryRecords(),
        note=_ignore,
        progress=lambda text: None,
        output=lambda stream, data: None,
    )


def _ignore(kind: str, facts: JsonObject) -> None:
    return None


class Way:
    """One action on its whole way, step by step."""

    def __init__(
        self,
        runtime: FilesRuntime,
        folder: Path,
        program: str = "true",
        *,
        action_id: str = "a1",
        language: str = "shell",
        records: Records | None = None,
    ) -> None:
        self.runtime = runtime
        self.action = Files(folder=str(folder), language=language, program=program)  # type: ignore[arg-type]
        self.context = context(action_id, records)
        self.plan: Plan | None = None

    async def prepared(self) -> Way:
        self.plan = await self.runtime.assess(self.action, self.context)
        await self.runtime.prepare(self.plan, self.context)
        return self

    async def do(self) -> Outcome:
        await self.prepared()
        assert self.plan is not None
        return await self.runtime.execute(self.plan, self.context)

    async def revert(self, verb: str) -> Outcome:
        assert self.plan is not None
        revert = Revert(verb=verb, target=self.context.action_id)  # type: ignore[arg-type]
        plan = await self.runtime.assess_revert(revert, self.plan, self.context)
        return await self.runtime.execute_revert(revert, plan, self.plan, self.context, context("r1"))


def runtime(state: Path, sandbox: Sandbox | None = None, **options: object) -> FilesRuntime:
    return FilesRuntime(sandbox or UnsafeNoSandbox(), state / "snapshots", **options)  # type: ignore[arg-type]


Deed = Callable[[Path], None]
