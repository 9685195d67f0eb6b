"""Runs planned steps against an MCP server, each in a container of its own, as `rest.run` runs requests.

Rules: a call is recorded before its container begins, its answer before anything that follows it; a call that began and
wasn't answered is open, and so is one that failed once its server had sent something out. Before a call a server shows
its tools: if they aren't the ones that were agreed on, nothing is called, and what it says now is kept for the person
to review.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mapper.catalog import Catalog
from policies.errors import GoexError, Unavailable
from runtimes.base import Context, Records
from runtimes.gateway.contract import Gateway, GatewayFailed
from runtimes.gateway.plan import Exchange
from runtimes.rest.records import CallRecord
from runtimes.rest.references import literal, refs_in
from runtimes.rest.requests import bind
from runtimes.rest.run import Report, Watch
from runtimes.rest.steps import Step
from runtimes.rest.verdicts import unmet
from runtimes.sandbox.contract import Profile, Sandbox, SandboxFailed
from runtimes.servers import session
from runtimes.servers.definition import Server, Servers
from runtimes.servers.way_out import WayOut

CHANGED = 409  # the status of a call that wasn't made, since the server's tools aren't the ones that were agreed on
STATUS = "the server answered with status"


@dataclass(frozen=True, slots=True)
class ServerRunner:
    """Runs the steps of one server."""

    server: Server
    servers: Servers
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
        """See `runtimes.rest.run.Runner.run`."""
        report = Report()
        watch = Watch(steps, context, call_record, records, report, self.catalog, wanted or {}, answered, leaving)
        for step in steps:
            try:
                await watch.sending(step.id, f"CALL {self.server.base_url}/{step.method}", None)
                exchange, unsure = await self._call(step, context, call_record, report)
            except (SandboxFailed, GatewayFailed) as error:
                if step.read or not (isinstance(error, SandboxFailed) and error.began):
                    _forget(step, call_record, report)
                report.error, report.trouble = error, error.message
                break
            except GoexError:
                break  # `report.trouble` says why it wasn't sent
            try:
                await watch.answered(exchange, unsure=unsure)
            except GoexError:
                break
            if not exchange.well and not step.request.optional:
                break
        if report.error is not None and not report.sent:
            raise report.error
        if report.unkept:
            watch.save_again()
        return report

    async def _call(
        self, step: Step, context: Context, call_record: CallRecord, report: Report
    ) -> tuple[Exchange, bool]:
        """Make a call. Returns its answer, and whether the server may have changed something beside it."""
        bound = step
        if refs_in(step.arguments):
            bound = bind(step, call_record.answers, self.catalog, context.accounts[step.service, step.account])
        call = session.call_of(step.method, literal(bound.arguments, call_record.answers))
        way = WayOut(self.server, self.catalog.service(step.service), self.gateway, context, step.account)
        what = session.told(
            self.server, [call], self.profile.limits, agreed=self.server.agreed, env=way.env, headers=way.headers
        )
        async with way.opened(self.profile.limits.seconds) as socket_dir:
            job = session.job(context.action_id, what, socket_dir=socket_dir, ca_pem=way.ca_pem)
            try:
                result = await self.sandbox.run(job, self.profile)
            except SandboxFailed as error:
                error.began = error.began and socket_dir is not None  # without a way out it changed nothing anywhere
                raise
            except Unavailable as error:  # its image isn't there: nothing began
                raise SandboxFailed(error.message, next_step=error.next_step) from error
        report.refused += way.refused
        found = session.read(result)
        if found.tools is not None and not found.answers:
            report.trouble = changed(self.server.name)
        return self._exchange(bound, found, way.hidden(found.failed), result.exit_code), way.changed

    def _exchange(self, step: Step, found: session.Said, why: str, exit_code: int | None) -> Exchange:
        """The answer as the rest of GoEx reads one. Status 0: none is known."""
        answer = found.answers.get(0)
        if answer is not None:
            status, body = session.body_of(answer)
            lines = unmet(step.request.expect, status, body)
            well = 200 <= status < 300 and not lines
            said = lines[0] if lines else "" if well else f"{STATUS} {status}"
            return Exchange(request=step.id, status=status, well=well, body=body, failed=said)
        if found.tools is not None:
            self.servers.note_seen(self.server.name, found.tools)
            return _refused(step, CHANGED, changed(self.server.name))
        if not found.begun:
            return _refused(step, 424, f"the server didn't get as far as the call: {why or f'it ended ({exit_code})'}")
        return Exchange(request=step.id, status=0, well=False, body=None, failed=why or "it gave no answer")


def changed(name: str) -> str:
    """Why a call wasn't made of a server whose tools changed."""
    return f"{name} says something else of its tools than you agreed to. See what: goex mcp review {name}"


def _refused(step: Step, status: int, why: str) -> Exchange:
    return Exchange(request=step.id, status=status, well=False, body={"goex": why}, failed=why)


def _forget(step: Step, call_record: CallRecord, report: Report) -> None:
    """A call whose container couldn't be had never happened."""
    for sent in (call_record.sent, report.sent):
        if step.id in sent:
            sent.remove(step.id)
