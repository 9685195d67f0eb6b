"""One run of a program: a gateway that is opened for its rules, a container, and what was seen.

Rules: the gateway's view counts, never what the program prints. Before a request leaves this machine it is noted, and
if it can change something recorded durably; its answer is recorded before the program gets it. A program that ends
while a change is unanswered doesn't end the run: undo stands on that answer, which is waited for until the deadline.
Placeholders are made anew for each run and stand in no journal. The gateway is closed whatever happens; it can be
opened before it is certain that the program runs, since nothing is given its socket until then.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mapper.catalog import Catalog
from policies.accounts import Account
from policies.actions import Code
from policies.display_text import escape
from policies.errors import Conflict, GoexError
from policies.reversions import NoReversions, ReversionSet
from policies.services import Placement, Service
from runtimes.base import Context
from runtimes.code import credentials, environment, record
from runtimes.code.permits import Accounts, Permit
from runtimes.code.plans import read_in_answer
from runtimes.code.record import Record, Sent
from runtimes.code.refused import Refusals
from runtimes.gateway.contract import Gateway, GatewayFailed, Observer
from runtimes.gateway.plan import Exchange, GatewayPlan, Refusal, SentRequest
from runtimes.rest.requests import placement_for
from runtimes.rest.run import closed
from runtimes.sandbox.contract import Job, Profile, Result, Sandbox, SandboxFailed
from vault.credential_file import STAND_IN

_GATEWAYS_LAST = 2.0  # seconds after the deadline, which the gateway keeps, within which it says what is unanswered
_USUAL = ("API_KEY", "TOKEN", "API_TOKEN", "ACCESS_TOKEN", "AUTH_TOKEN", "SECRET_KEY", "KEY", "SECRET", "PASSWORD")
_USERS = ("USER", "USERNAME", "EMAIL")  # whose name goes with a password; the gateway has its own
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")


@dataclass(slots=True)
class Report:
    """What one run did, beside its record. The texts are for people: "" where there is nothing to say."""

    result: Result | None = None
    refusals: Refusals = field(default_factory=Refusals)
    counted: dict[str, int] = field(default_factory=dict)  # requests that left, by method
    failed: dict[str, int] = field(default_factory=dict)  # those of them that weren't answered well
    placeholders: tuple[str, ...] = ()
    tried: list[tuple[str, SentRequest]] = field(default_factory=list)  # of a dry run: what would have left
    unkept: str = ""  # why an answer isn't in the record
    error: GoexError | None = None  # the provider's own, when it failed


@dataclass(frozen=True, slots=True)
class CodeRunner:
    """Runs programs, each in a container of its own."""

    sandbox: Sandbox
    gateway: Gateway
    catalog: Catalog
    profile: Profile
    reversions: ReversionSet = field(default_factory=NoReversions)

    def begin(
        self,
        action: Code,
        permits: Mapping[str, tuple[int, Permit]],
        accounts: Accounts,
        context: Context,
        kept: Record,
        *,
        dry: bool = False,
    ) -> Run:
        """Have a gateway opened for `action`'s program, which may call what `permits` (by their rules' ids) say. Finish
        or abandon what is returned. `kept` is filled, and written to the context's records; `dry`: what may leave is
        told in the report instead, and nothing leaves."""
        placeholders = {key: placeholder(self.catalog.service(key[0]), key) for key in accounts}
        report = Report(placeholders=tuple(placeholders.values()))
        report.refusals.permitted = frozenset(permit.method_id for _, permit in permits.values())
        watch = _Watch(permits, context, kept, report, self.catalog, dry, self.reversions)
        files = credentials.handed(context.leases, placeholders)
        held = placeholders_of(placeholders, context)
        leased = ((self.catalog.service(key[0]), one) for key, one in accounts.items() if key in held.values())
        bearers = (one for service, one in leased if is_bearer(placement_for(service, one)))
        files = credentials.with_googles(files, bearers)
        plan = GatewayPlan(
            action_id=context.action_id,
            rules=tuple(permit.rule for _, permit in permits.values()),
            placeholders=held,
            tokens=files.endpoints,
            seconds=self.profile.limits.seconds,
            code=True,
        )
        observer = Observer(sending=watch.sending, answered=watch.answered, refused=watch.refused)
        job = partial(
            environment.job,
            action_id=context.action_id,
            language=action.language,
            program=action.program,
            env={**variables(accounts, placeholders, self.catalog), **files.variables},
            files=files.files,
        )
        opening = asyncio.ensure_future(self.gateway.open(plan, context.leases, observer))
        opening.add_done_callback(lambda opened: opened.cancelled() or opened.exception())  # it may be abandoned
        return Run(self, context, watch, job, opening)


@dataclass(slots=True, eq=False)
class Run:
    """A program whose gateway is being opened."""

    by: CodeRunner
    context: Context
    watch: _Watch
    job: Callable[..., Job]
    opening: asyncio.Future[str]
    finishing: bool = False

    async def finish(self) -> Report:
        """Run it. Raises GoexError only when nothing was sent."""
        self.finishing = True
        report = self.watch.report
        folder = await self.opening
        deadline = asyncio.get_running_loop().time() + self.by.profile.limits.seconds + _GATEWAYS_LAST
        try:
            try:
                job = self.job(socket_dir=folder, ca_pem=self.by.gateway.ca_pem)
                report.result = await self.by.sandbox.run(job, self.by.profile, self.context.output)
            except (SandboxFailed, GatewayFailed) as error:
                report.error = error
            await self.watch.end(deadline)
        finally:
            await closed(self.by.gateway.close(self.context.action_id))
        if report.error is not None and not report.counted:
            raise report.error
        if report.unkept:
            self.watch.save_again()
        return report

    async def abandon(self) -> None:
        """Unless it is run: have its gateway closed, if it was this run that opened it."""
        if self.finishing:
            return
        try:
            await self.opening
        except GoexError:
            return
        await closed(self.by.gateway.close(self.context.action_id))


def placeholder(service: Service, account: tuple[str, str]) -> str:
    """A text that stands for an account's credential in one run, and is worth nothing elsewhere."""
    prefix = service.code.prefix
    words = "-".join(_NOT_WORD.sub("-", part).strip("-")[:24] for part in account)
    return f"{prefix}goex-{words}-{secrets.token_urlsafe(16)}"


def placeholders_of(made: Mapping[tuple[str, str], str], context: Context) -> dict[str, tuple[str, str]]:
    """Those that the gateway swaps: of accounts that something was leased of."""
    leased = {(lease.account.service, lease.account.name) for lease in context.leases}
    return {text: key for key, text in made.items() if key in leased}


def variables(
    accounts: Mapping[tuple[str, str], Account], placeholders: Mapping[tuple[str, str], str], catalog: Catalog
) -> dict[str, str]:
    """The variables by which a program finds its placeholders: those that the service's own libraries read, or by the
    service's name where the catalog doesn't say (`OPENAI_API_KEY`), and `GOEX_TOKEN_<SERVICE>`, `GOEX_URL_<SERVICE>`
    with `_<ACCOUNT>` after it where there are several. Without it the first account that was named is meant."""
    found: dict[str, str] = {}
    services = [service for service, _ in accounts]
    for (service, name), account in accounts.items():
        facts = catalog.service(service).code
        own = {f"GOEX_TOKEN_{_upper(service)}": placeholders[service, name]}
        own[f"GOEX_URL_{_upper(service)}"] = account.base_url
        for variable in facts.tokens or usual_variables(service):
            found.setdefault(variable, placeholders[service, name])
        if placement_for(catalog.service(service), account).format.lower().startswith("basic "):
            own |= dict.fromkeys((f"{_upper(service)}_{what}" for what in _USERS), STAND_IN)
        for variable, value in own.items():
            found.setdefault(variable, value)
            if services.count(service) > 1:
                found[f"{variable}_{_upper(name)}"] = value
    return {name: value for name, value in found.items() if name not in environment.VARIABLES}


def is_bearer(place: Placement) -> bool:
    """Whether a credential goes where what a token endpoint gives does."""
    return place.header.lower() == "authorization" and place.format.lower().startswith("bearer ")


def usual_variables(service: str) -> tuple[str, ...]:
    """The variables that libraries of a service read its credential from, where nobody said: by its name."""
    return tuple(f"{_upper(service)}_{what}" for what in _USUAL)


def _upper(name: str) -> str:
    return _NOT_WORD.sub("_", name).strip("_").upper() or "_"


@dataclass(slots=True)
class _Watch:
    permits: Mapping[str, tuple[int, Permit]]
    context: Context
    kept: Record
    report: Report
    catalog: Catalog
    dry: bool
    reversions: ReversionSet = field(default_factory=NoReversions)
    over: bool = False  # the program has ended: nothing more leaves
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _numbers: dict[str, int] = field(default_factory=dict)  # by request
    _left: dict[str, str] = field(default_factory=dict)  # requests under way, and their rules

    async def sending(self, request: str, target: str, sent: SentRequest | None) -> None:
        if sent is None:
            raise AssertionError("a request of a plan, in code")
        if self.over:
            raise Conflict("The program has ended.")
        place, permit = self.permits[sent.rule]
        method, _, url = target.partition(" ")
        if self.dry:
            self.report.tried.append((f"{permit.method_id} as {permit.account} → {target}", sent))
            raise Conflict("This is a dry run: the request would be sent, and isn't.")
        facts = {"request": request, "call": permit.method_id, "method": method, "url": url}
        if not permit.read:
            arguments, whole = record.arguments_of(sent, permit, self.catalog)
            noted = Sent(
                number=len(self.kept.sent),
                request=request,
                permit=place,
                arguments=arguments,
                whole=whole,
                keys=sent.keys,
                more=record.says_more(sent, permit, self.catalog),
            )
            record.note_sent(self.context.records, noted)
            self.kept.sent.append(noted)
            self._numbers[request] = noted.number
        self.context.note("request", facts)
        self._left[request] = sent.rule
        self.report.counted[permit.method_id] = self.report.counted.get(permit.method_id, 0) + 1
        self.context.progress(escape(f"{permit.method_id} as {permit.account} → {target}"))

    async def answered(self, exchange: Exchange) -> None:
        rule = self._left.pop(exchange.request, "")
        if not rule:
            return
        self._answered.set()
        permit = self.permits[rule][1]
        number = self._numbers.get(exchange.request)
        if exchange.status == 0:  # nothing came back: whether it happened isn't known
            self.context.note("unanswered", {"request": exchange.request, "why": exchange.failed})
            self._fail(permit)
            return
        wanted = partial(read_in_answer, permit, self.catalog, self.reversions)
        answer = record.answer_of(exchange, permit, self.catalog, wanted())
        if not answer.well:
            self._fail(permit)
        try:
            if number is not None:
                answers = record.answers_of(self.kept, number, answer, replayed=exchange.replayed, wanted=wanted())
                self.kept.answers.update(answers)
                for each, given in answers.items():
                    record.note_answer(self.context.records, each, given)
                answer = answers.get(number, answer)
            facts: dict[str, Any] = {"request": exchange.request, "status": exchange.status, "well": answer.well}
            self.context.note("answer", {**facts, "bytes": exchange.size, "sha256": answer.sha256})
        except Exception as error:
            said = error.message if isinstance(error, GoexError) else type(error).__name__
            self.report.unkept = f"the answer to {exchange.request} couldn't be kept: {said}"
            raise

    async def refused(self, refusal: Refusal) -> None:
        if self.report.refusals.add(refusal):
            facts = {"reason": refusal.reason, "method": refusal.method, "target": refusal.target}
            self.context.note("refused", facts)
            self.context.progress(escape(f"Refused: {refusal.method} {refusal.target}"))

    async def end(self, deadline: float) -> None:
        """The program has ended: let nothing more leave, and wait for the answers to the changes that left, until
        `deadline` (of the loop's clock). Undo stands on them."""
        self.over = True
        told = False
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while changes := self._changes():
                    if not told:
                        self.context.progress(escape(f"The program has ended. Waiting for the answer to {changes}."))
                        told = True
                    self._answered.clear()
                    await self._answered.wait()

    def _changes(self) -> str:
        """The methods of the changes that are unanswered."""
        permits = (self.permits[rule][1] for rule in self._left.values())
        return ", ".join(dict.fromkeys(permit.method_id for permit in permits if not permit.read))

    def save_again(self) -> None:
        """What couldn't be kept while it ran may be kept now: without it there is no undo."""
        with suppress(Exception):
            for number, answer in self.kept.answers.items():
                record.note_answer(self.context.records, number, answer)
            self.report.unkept = ""

    def _fail(self, permit: Permit) -> None:
        self.report.failed[permit.method_id] = self.report.failed.get(permit.method_id, 0) + 1
