"""Calls of a small document, sent for real: importer, planner, gateway, the container's own program, a TLS server."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call
from policies.jsonvalue import JsonObject
from runtimes.gateway.plan import GatewayPlan
from runtimes.rest.planner import plan_calls
from runtimes.rest.run import job_file
from runtimes.rest.steps import Step
from tests.runtimes.gateway.authority import TestCA
from tests.runtimes.gateway.support import Answering, Seen, Watch, lease, ok, opened, serving

PROGRAM = Path(__file__).resolve().parents[3] / "sandbox-images/base/goex/run_calls.py"
_CA = TestCA()
SECRET = "goexcanary-7Qf3Zr9xW2kLmP0aa"


@dataclass(frozen=True)
class Sent:
    """What one run did: requests as the server got them, what the daemon was told, what the container got."""

    seen: tuple[Seen, ...]
    watch: Watch
    well: bool
    answers: tuple[bytes, ...]  # as the container read them

    @property
    def only(self) -> Seen:
        (one,) = self.seen
        return one


def imported(folder: Path, raw: Mapping[str, Any], name: str = "things") -> Catalog:
    """A catalog with the document as the service `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "document.json"
    place.write_text(json.dumps(raw))
    import_openapi(folder / "catalog.db", place, name, index=False)
    return Catalog.open(folder / "catalog.db")


def steps_of(catalog: Catalog, account: Account, *made: tuple[str, JsonObject]) -> tuple[Step, ...]:
    """The requests that these calls become."""
    action = ApiCalls(
        calls=tuple(
            Call(service=account.service, method=name, arguments=arguments, account="") for name, arguments in made
        )
    )
    return tuple(plan_calls(action, {(account.service, account.name): account}, catalog, "a1").steps)


def account_at(url: str, ca_pem: str = "", service: str = "things") -> Account:
    origin = Origin.parse(url)
    return Account(service=service, name="me", origins=(origin,), base_url=url, private=True, ca_pem=ca_pem)


async def send(
    folder: Path,
    raw: Mapping[str, Any],
    *made: tuple[str, JsonObject],
    secret: str = SECRET,
    answer: Answering = ok,
    base: str = "",
) -> Sent:
    """Import the document, plan the calls, and send them as the container does."""
    catalog = imported(folder / "import", raw)
    async with serving(_CA.context("localhost"), answer) as server:
        account = account_at(f"https://localhost:{server.port}{base}", _CA.pem)
        steps = steps_of(catalog, account, *made)
        plan = GatewayPlan(action_id="a1", requests=tuple(step.request for step in steps), seconds=200)
        run_dir = folder / "run"
        run_dir.mkdir()
        async with opened(plan, [lease(account, secret=secret)], run_dir) as (box, watch):
            job = json.loads(job_file(steps))["requests"]
            program = _program(box.container.socket)
            runner = program.Runner(ssl.create_default_context(cadata=box.container.ca_pem))
            answers: list[bytes] = []
            program.Tunnel.response_class = _recording(answers)
            well = await asyncio.to_thread(runner.run, job)
            return Sent(tuple(server.seen), watch, well, tuple(answers))


def _recording(answers: list[bytes]) -> type[HTTPResponse]:
    class Recording(HTTPResponse):
        def read(self, amt: int | None = None) -> bytes:
            answers.append(super().read(amt))
            return answers[-1]

    return Recording


def _program(socket: str) -> Any:
    """The container's program as a module, with the action's socket in the place of the mounted one."""
    spec = importlib.util.spec_from_file_location("run_calls", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["SOCKET"] = socket
    return module
