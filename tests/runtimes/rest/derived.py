"""What the tests of derived ways back share: catalogs of labelled documents, a small interpreter in place of container
and gateway, and actions that are run and taken back for real."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from mapper.catalog import Catalog
from mapper.importing.files import import_openapi
from policies.actions import Plan, Revert
from policies.reversions import Result, Standing, Use
from runtimes.gateway.plan import Exchange
from runtimes.gateway.response_values import Answers, judge
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import literal
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.steps import Step
from runtimes.rest.undo import planned_steps
from runtimes.sandbox.contract import Profile
from tests.mapper.importing.undo_specs import document
from tests.runtimes.rest.support import Bench, Hit, Service, account, calls
from tests.services.apis.notes import Notes

ACCOUNT = account("notes", "https://notes.example.org")
KEYED = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}


def made_catalog(folder: Path, *, keyed: bool = True) -> Catalog:
    """The documents of the labelled set as one service, whose POST of notes takes a key (unless not `keyed`)."""
    made = document("notes")
    forge = document("forge")
    made["paths"] |= {path: item for path, item in forge["paths"].items() if path.startswith("/user/starred")}
    made["paths"]["/notes"]["post"]["parameters"] += [KEYED] * keyed
    (folder / "notes.json").write_text(json.dumps(made))
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


def catalog_with_query(folder: Path, name: str) -> Catalog:
    """The same notes, whose POST has one more parameter in its query."""
    made = document("notes")
    made["paths"]["/notes"]["post"].setdefault("parameters", []).append(
        {"name": name, "in": "query", "schema": {"type": "string"}}
    )
    (folder / "notes.json").write_text(json.dumps(made))
    import_openapi(folder / "catalog.db", folder / "notes.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


def catalog_of(folder: Path, name: str) -> Catalog:
    """A document of the labelled set as the service `notes`."""
    (folder / f"{name}.json").write_text(json.dumps(document(name)))
    import_openapi(folder / "catalog.db", folder / f"{name}.json", "notes", index=False)
    return Catalog.open(folder / "catalog.db", alone=True)


class Kept:
    """A reversion set in memory."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.known: dict[str, Standing] = {}

    def added(self, method_id: str) -> tuple[Any, ...]:
        return ()

    def standing(self, pair: str) -> Standing:
        return self.known.get(pair, Standing.UNPROVEN)

    def used(self, use: Use) -> None:
        self.uses.append(use)
        if use.result is Result.FAILED:
            self.known[use.pair] = Standing.FAILED
        elif use.result is Result.WORKED:
            self.known.setdefault(use.pair, Standing.PROVEN)


def service() -> Notes:
    made = Notes()
    made.add(title="one", text="first", labels=["x"])
    made.add(title="two")
    made.stars.add(("o", "a"))
    return made


def carry(steps: tuple[Step, ...], to: Service, call_record: CallRecord) -> Step | None:
    """Send steps in order until one doesn't go well, which is returned."""
    for step in steps:
        request = step.request
        path = "/" + "/".join(str(literal(part, call_record.answers)) for part in request.path)
        body = literal(request.body, call_record.answers)
        query = literal(request.query, call_record.answers)
        status, value = to.handle(Hit(request.method, path, query, copy.deepcopy(body), dict(request.headers)))
        known = Answers()
        for id, answer in call_record.answers.items():
            known.keep(id, answer.body)
        failed = judge(request.expect, status, copy.deepcopy(value), "json" if value is not None else "empty", known)
        call_record.answers[step.id] = Answer.of(
            Exchange(request=step.id, status=status, well=not failed, body=value, failed=failed), ()
        )
        if not step.read:
            call_record.sent.append(step.id)
        if failed:
            return step
    return None


def do(made: list[tuple[str, Any]], to: Service, catalog: Catalog, bench: Bench) -> tuple[Plan, CallRecord]:
    action = calls(*((f"notes.{name}", arguments) for name, arguments in made))
    plan = assess_calls(action, bench.context("a1"), catalog, Profile(), "sha256:x")
    call_record = CallRecord()
    carry(planned_steps(plan), to, call_record)
    return plan, call_record


def names(catalog: Catalog) -> dict[str, str]:
    """The names that the calls above stand for."""
    found = {method.origin_id: method.name for method in catalog.methods()}
    return {
        "notes.post": found["POST /notes"],
        "notes.patch": found["PATCH /notes/{id}"],
        "notes.put": found["PUT /notes/{id}"],
        "notes.delete": found["DELETE /notes/{id}"],
        "notes.archive.post": found["POST /notes/{id}/archive"],
        "notes.unarchive.post": found["POST /notes/{id}/unarchive"],
        "user.starred.put": found["PUT /user/starred/{owner}/{repo}"],
        "user.starred.delete": found["DELETE /user/starred/{owner}/{repo}"],
    }


async def run(runtime: RestRuntime, bench: Bench, name: str, arguments: dict[str, Any], id: str = "a1") -> Plan:
    action = calls((f"notes.{names(runtime.catalog)[name]}", arguments))
    plan = await runtime.assess(action, bench.context(id))
    await runtime.prepare(plan, bench.context(id))
    outcome = await runtime.execute(plan, bench.context(id))
    assert outcome.ok, outcome.summary
    return plan


async def take_back(runtime: RestRuntime, bench: Bench, plan: Plan, id: str = "a1", by: str = "u1") -> Any:
    revert = Revert(verb="undo", target=id)
    revert_plan = await runtime.assess_revert(revert, plan, bench.context(id))
    return await runtime.execute_revert(revert, revert_plan, plan, bench.context(id), bench.context(by))
