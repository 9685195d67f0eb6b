"""One run: a gateway opened for a fixed list of requests, a container that makes them, and what was seen.

Rules: the gateway's view counts, never what the container prints. Before a request leaves this machine it is noted, its
values are checked, and if it can change something it is recorded durably; its answer is recorded before anything that
follows it. The gateway is closed whatever happens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mapper.catalog import Catalog
from policies.actions import Ended
from policies.display_text import shorten
from policies.errors import GoexError
from policies.graphql import leaves_open
from policies.jsonvalue import JsonValue
from runtimes.base import Context, Records
from runtimes.gateway.contract import Gateway, GatewayFailed, Observer
from runtimes.gateway.plan import Exchange, GatewayPlan, Refusal, SentRequest
from runtimes.rest.plan_text import heading
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.references import plain, referring, refs_in
from runtimes.rest.requests import check_values
from runtimes.rest.steps import Step
from runtimes.sandbox.contract import Job, Profile, Sandbox, SandboxFailed
from runtimes.uninterrupted import uninterrupted

PROGRAM = ("/usr/bin/python3", "-I", "-S", "/goex/bin/run_calls.py")
MAX_NOTES = 40  # refusals that are noted one by one; a hostile program could cause any number


@dataclass(slots=True)
class Report:
    """What one run did, beside its answers. The texts are for people: "" where there is nothing to say.

    `trouble`: why the daemon itself stopped it. `unkept`: why an answer isn't in the record. `ending`: how the
    container ended, when not by itself and well. All three are GoEx's own words; `said` is what came with them from
    others: why no answer came, what value didn't fit, or what the container printed last.
    """

    ended: Ended = Ended.EXITED
    exit_code: int | None = None
    trouble: str = ""
    unkept: str = ""
    ending: str = ""
    said: str = ""
    refused: list[Refusal] = field(default_factory=list)
    exchanges: dict[str, Exchange] = field(default_factory=dict)  # the last one of each request
    sent: list[str] = field(default_factory=list)  # everything that left, reads too
    error: GoexError | None = None  # the provider's own, when it failed


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs steps in a container of their own."""

    sandbox: Sandbox
    gateway: Gateway
    catalog: Catalog
    profile: Profile

    async def run(
        self,
        steps: Sequence[Step],
        context: Context,
        call_record: CallRecord,
        records: Records | None,
        *,
        wanted: Mapping[str, Iterable[str]] | None = None,
        answered: Callable[[str], None] | None = None,
        leaving: Callable[[Step], None] | None = None,
    ) -> Report:
        """Send `steps` in order until one doesn't go well. Never raises for what happens while it runs.

        `call_record` is filled, and saved to `records` (None: not at all) around everything that isn't a read.
        `answered` is called with a request's id after its answer was saved, `leaving` with the step of a change before
        it is sent: what it raises keeps that from being sent. `wanted` names, for each request, the paths that must be
        kept even of a very large answer. Raises GoexError only when nothing was sent.
        """
        report = Report()
        watch = Watch(steps, context, call_record, records, report, self.catalog, wanted or {}, answered, leaving)
        observer = Observer(sending=watch.sending, answered=watch.answered, refused=watch.refused)
        plan = GatewayPlan(
            action_id=context.action_id,
            requests=tuple(step.request for step in steps),
            seconds=self.profile.limits.seconds,
        )
        folder = await self.gateway.open(plan, context.leases, observer)
        try:
            job = Job(
                action_id=context.action_id,
                argv=PROGRAM,
                files={"requests.json": job_file(steps), "ca.pem": self.gateway.ca_pem.encode()},
                socket_dir=folder,
            )
            result = await self.sandbox.run(job, self.profile)
            report.ended, report.exit_code = result.ended, result.exit_code
            if result.ended is not Ended.EXITED or result.exit_code != 0:
                report.ending = _ending(result.ended, result.exit_code)
                report.said = report.said or _last_line(result.stderr)
        except (SandboxFailed, GatewayFailed) as error:
            report.error, report.trouble = error, error.message
        finally:
            await closed(self.gateway.close(context.action_id))
        if report.error is not None and not report.sent:
            raise report.error
        if report.unkept:
            watch.save_again()
        return report


def job_file(steps: Sequence[Step]) -> bytes:
    """What the container is told: no secret, no credential's place, nothing but the requests."""
    return json.dumps({"requests": [_for_container(step) for step in steps]}).encode()


def _for_container(step: Step) -> dict[str, JsonValue]:
    """A request written out; of one whose values come from answers its name alone, since the gateway fills it."""
    request = step.request
    about: dict[str, JsonValue] = {
        "id": request.id,
        "origin": str(request.origin),
        "method": request.method,
        "attempts": request.attempts,
        "optional": request.optional,
    }
    if refs_in([list(request.path), request.query, request.body]):
        return about
    written = {
        "path": [*request.base_path, *request.path],
        "query": request.query,
        "body": request.body,
        "body_format": request.body_format,
    }
    return {**about, "written": plain(written)}


@dataclass(slots=True)
class Watch:
    """What is noted around each request of a run."""

    steps: Sequence[Step]
    context: Context
    call_record: CallRecord
    records: Records | None
    report: Report
    catalog: Catalog
    wanted: Mapping[str, Iterable[str]]
    on_answer: Callable[[str], None] | None
    on_leaving: Callable[[Step], None] | None

    def step(self, request: str) -> Step:
        return next(step for step in self.steps if step.id == request)

    @property
    def keeps(self) -> bool:
        """Whether this run is recorded: a run of reads alone has nothing that could be taken back."""
        return self.records is not None and any(not step.read for step in self.steps)

    def save(self) -> None:
        if self.records is not None and self.keeps:
            self.call_record.save(self.records)

    def save_again(self) -> None:
        """What couldn't be kept while it ran may be kept now: without it there is no undo."""
        with suppress(Exception):
            self.save()
            self.report.unkept = ""

    async def sending(self, request: str, target: str, sent: SentRequest | None) -> None:
        step = self.step(request)
        try:
            if refs_in(step.arguments):
                check_values(step, self.call_record.answers, self.catalog)
            if not step.read and self.on_leaving is not None:
                self.on_leaving(step)
        except GoexError as error:
            self.report.trouble = _said(error)
            if isinstance(error.__cause__, GoexError):
                self.report.said = _said(error.__cause__)  # it may quote what a service supplied
            raise
        try:
            if not step.read and request not in self.call_record.sent:
                self.call_record.sent.append(request)
                self.save()
            method, _, url = target.partition(" ")
            facts = {"request": request, "call": step.method_id, "method": method, "url": url}
            self.context.note("request", facts)
        except Exception as error:
            self.report.trouble = f"it couldn't be noted: {_said(error)}"
            if request in self.call_record.sent and not step.read:
                self.call_record.sent.remove(request)
            raise
        self.report.sent.append(request)
        self.context.progress(heading(step))

    async def answered(self, exchange: Exchange, *, unsure: bool = False) -> None:
        """Keep an answer. `unsure`: one that isn't well doesn't say that nothing was done."""
        if exchange.status == 0:  # nothing came back: whether it happened isn't known, and that is no answer
            self.report.trouble, self.report.said = "no answer came back", exchange.failed
            self.context.note("unanswered", {"request": exchange.request, "why": exchange.failed})
            return
        answer = Answer.of(exchange, self.wanted.get(exchange.request, ()))
        document = self.catalog.method(self.step(exchange.request).method_id).document
        if not exchange.well and (unsure or (document and leaves_open(exchange.status, exchange.body))):
            answer = replace(answer, unsure=True)
        self.report.exchanges[exchange.request] = exchange
        self.call_record.answers[exchange.request] = answer
        try:
            self.save()
            facts: dict[str, Any] = {"request": exchange.request, "status": exchange.status, "well": exchange.well}
            facts["bytes"] = exchange.size
            self.context.note("answer", {**facts, "sha256": answer.sha256})
            if self.on_answer is not None:
                self.on_answer(exchange.request)
        except Exception as error:
            self.report.unkept = f"the answer to {exchange.request} couldn't be kept: {_said(error)}"
            raise

    async def refused(self, refusal: Refusal) -> None:
        self.report.refused.append(refusal)
        if len(self.report.refused) <= MAX_NOTES:
            facts = {"reason": refusal.reason, "method": refusal.method, "target": refusal.target}
            self.context.note("refused", facts)


def wanted_paths(*plans: JsonValue) -> dict[str, set[str]]:
    """Every path that a plan's JSON refers to, by request: what must be kept even of a very large answer."""
    found: dict[str, set[str]] = {}
    for plan in plans:
        for ref in refs_in(referring(plan)):
            found.setdefault(ref.request, set()).add(ref.path)
    return found


async def closed(closing: Any) -> None:
    """Close the gateway even while this task is being cancelled; one that died has nothing left to close."""
    with suppress(GatewayFailed):
        await uninterrupted(closing)


def _said(error: Exception) -> str:
    return (error.message if isinstance(error, GoexError) else type(error).__name__).rstrip(".")


def _ending(ended: Ended, exit_code: int | None) -> str:
    if ended is not Ended.EXITED:
        return f"the container ended by: {ended.value}"
    return f"the container ended with code {exit_code}"


def _last_line(stderr: bytes) -> str:
    return shorten(stderr.decode(errors="replace").strip().rpartition("\n")[2], 200)[0]
