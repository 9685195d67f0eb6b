"""`goex.v1.Rules`, on user.sock alone: the rules in force, and trying out others.

Rules: what is in force changes by `ApplyRules` alone, with presence, and only into what was compared with what is in
force. Checking, testing and explaining change nothing, and are done in a thread: rules may be many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goex.daemon.person_context import PersonCalls, PersonContext
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import unary
from goex.daemon.rule_views import suggestions_view
from goex.engine.answers import answers
from goex.engine.catalog_entries import plan_hash
from goex.engine.grant_lookup import standing
from goex.engine.rulebook import Rulebook, root_of, unbound_text
from goex.journal.chain import stamp
from goex.rpc import rules_pb2 as pb
from goex.rpc import rules_pb2_grpc as rpc
from mapper.least_scopes import scopes_of_calls
from policies.actions import Call
from policies.decisions import Allow, Ask, Decision, Request, Rules, decide
from policies.digest import digest
from policies.display_text import escape
from policies.errors import Conflict, GoexError, InvalidInput
from policies.jsonvalue import parse
from policies.limits import described
from policies.rules import cases
from policies.rules.book import RuleBook, default_text
from policies.rules.drafts import Change, changes, read_folder, write_draft
from policies.rules.facts import questions
from policies.rules.rule_errors import Finding, check
from policies.rules.source import Policy
from policies.rules.suggestions import FILE, Suggested, added, suggested
from policies.services import Method

MAX_CASES = 8_000_000  # bytes of a table
MAX_SHOWN = 5000  # rules in one answer


class RulesService(PersonCalls, rpc.RulesServicer):
    """Everything about rules."""

    def __init__(self, person: PersonContext, folder: Path) -> None:
        super().__init__(person)
        self._folder = folder

    @property
    def _rules(self) -> Rulebook:
        return self._person.engine.core.rules

    @unary
    async def InForce(self, request: pb.InForceRequest, context: Any) -> pb.InForceReply:
        self._person.callers.peer(context)
        return await in_thread(self._in_force)

    @unary
    async def CheckRules(self, request: pb.CheckRulesRequest, context: Any) -> pb.CheckRulesReply:
        self._person.callers.peer(context)
        files = _files(request.files)
        found, findings = await in_thread(self._checked, files)
        wrong = any(one.error for one in findings)
        return pb.CheckRulesReply(
            findings=[_finding(one) for one in findings],
            changes=[_change(one) for one in changes(self._policies(), found)],
            rules=len(found),
            hash=self._hash(None if wrong else await in_thread(self._rules.sealed, files)),
            catalog=await in_thread(self._catalog),
        )

    @unary
    async def ApplyRules(self, request: pb.ApplyRulesRequest, context: Any) -> pb.InForceReply:
        self._person.callers.peer(context)
        files = _files(request.files)
        _, findings = await in_thread(self._checked, files)
        wrong = [one for one in findings if one.error]
        if wrong:
            one = wrong[0]
            raise InvalidInput(
                f"{one.file}:{one.line}:{one.column}: {one.says} Nothing was put in force.",
                next_step=one.next_step or "See all of it with: goex rules check",
            )
        entries = await in_thread(self._rules.sealed, files)  # before presence: what is looked at is put in force
        compared = self._hash(entries)
        if request.compared_with == compared and await in_thread(self._rules.holds, files, entries):
            return await in_thread(self._in_force)  # there is nothing to allow
        peer = await self._person.present(context, request.passphrase, "Putting rules in force")
        if not request.compared_with == compared == self._hash(entries):
            raise Conflict(
                "Other rules are in force than these were compared with, or the imported catalog changed since.",
                next_step="goex rules diff",
            )
        self._rules.apply(files, by=peer.describe(), entries=entries)
        return await in_thread(self._in_force)

    @unary
    async def TestRules(self, request: pb.TestRulesRequest, context: Any) -> pb.TestRulesReply:
        self._person.callers.peer(context)
        table = parse(request.cases_json, limit=MAX_CASES, what="The table")
        files = _files(request.files) if request.drafts else None
        results = await in_thread(self._tested, table, files)
        return pb.TestRulesReply(
            results=[
                pb.CaseResult(
                    name=one.name,
                    expected=one.expected,
                    expected_rule=one.wanted_rule,
                    came=one.came,
                    rules=one.rules,
                    reason=one.reason,
                    good=one.good,
                )
                for one in results
            ],
            failed=sum(not one.good for one in results),
        )

    @unary
    async def ExplainRules(self, request: pb.ExplainRulesRequest, context: Any) -> pb.ExplainRulesReply:
        self._person.callers.peer(context)
        core = self._person.engine.core
        then = ""
        if request.action_id:
            row = core.actions.get(request.action_id)
            plan = row.the_plan()
            situation = core.rules.counts.situation(row.agent, row.session)
            asked = Request(agent=row.agent, session=row.session, digest=row.digest, plan=plan, situation=situation)
            decision = self._person.engine.asking.decision(row, plan)
            then = self._then(row.id)
        else:
            asked = self._case(parse(request.case_json, what="The call"))
            grants = standing(core, asked.agent, asked.plan)
            decision = decide(asked, grants, core.rules, core.clock())
        return self._explained(asked, decision, then)

    @unary
    async def SuggestRules(self, request: pb.SuggestRulesRequest, context: Any) -> pb.SuggestRulesReply:
        self._person.callers.peer(context)
        return await in_thread(self._suggested)

    @unary
    async def ApplySuggestedRules(self, request: pb.ApplySuggestedRulesRequest, context: Any) -> pb.InForceReply:
        self._person.callers.peer(context)
        found = await in_thread(self._found)
        wanted = [one.text for one in found.rules if one.text in request.rules]
        if not wanted or len(wanted) != len(request.rules):
            raise Conflict("What you saw isn't suggested any more.", next_step="Look again: goex rules suggest")
        files = self._rules.in_force.files
        draft = read_folder(self._folder).get(FILE, "")
        if draft != files.get(FILE, ""):
            raise Conflict(f"Your draft {FILE} isn't what is in force.", next_step="goex rules diff, goex rules apply")
        files = {**files, FILE: added(draft, wanted)}
        _, findings = await in_thread(self._checked, files)
        if any(one.error for one in findings):
            raise Conflict("They can't be put beside the rules in force.", next_step="See: goex rules suggest --write")
        entries = await in_thread(self._rules.sealed, files)
        if other := self._rules.differing(entries):  # or all rules would be in force for what nobody looked at
            raise Conflict(escape(unbound_text(other)))
        peer = await self._person.present(context, request.passphrase, "Putting rules in force")
        if request.compared_with != self._hash():
            raise Conflict("Other rules are in force than these were compared with.", next_step="goex rules diff")
        write_draft(self._folder / FILE, files[FILE])
        self._rules.apply(files, by=peer.describe(), entries=entries)
        return await in_thread(self._in_force)

    @unary
    async def WakeAgent(self, request: pb.WakeAgentRequest, context: Any) -> pb.WakeAgentReply:
        peer = await self._person.present(context, request.passphrase, "Letting an agent go on")
        return pb.WakeAgentReply(rested=self._rules.counts.wake(request.agent, by=peer.describe()))

    # ---- inside

    def _in_force(self) -> pb.InForceReply:
        rules = self._rules
        rules.require_read()
        policies = self._policies()
        reply = pb.InForceReply(
            rules=[_view(one) for one in policies[:MAX_SHOWN]],
            applied=rules.in_force.applied,
            by=rules.in_force.by,
            hash=self._hash(),
            trouble=rules.trouble,
            confined=[pb.Confined(what=what, to=to) for what, to in described(rules.confinement).items()],
            resting=[pb.RestingAgent(agent=agent, until=stamp(at)) for agent, at in rules.counts.resting().items()],
            default_text=default_text(),
            folder=str(self._folder),
            catalog=self._catalog(),
        )
        try:
            drafts, findings = self._checked(read_folder(self._folder))
            reply.drafts.extend(_change(one) for one in changes(policies, drafts))
            if wrong := [one for one in findings if one.error]:
                reply.drafts_trouble = f"{wrong[0].file}:{wrong[0].line}:{wrong[0].column}: {wrong[0].says}"
        except GoexError as error:
            reply.drafts_trouble = error.message
        return reply

    def _suggested(self) -> pb.SuggestRulesReply:
        return suggestions_view(self._found(), self._person.engine.core.catalog)

    def _found(self) -> Suggested:
        core = self._person.engine.core
        if core.rules.trouble:
            raise Conflict(core.rules.trouble, next_step="Put your rules in force first: goex rules apply")
        return suggested(answers(core), core.rules.in_force.files, core.catalog)

    def _policies(self) -> tuple[Policy, ...]:
        return () if self._rules.trouble else self._rules.book.policies

    def _hash(self, entries: Mapping[str, str] | None = None) -> str:
        """What is in force, hashed; with the entries of the imported catalog that rules would be put in force for."""
        root = "" if self._rules.trouble else self._rules.in_force.root
        return root_of({"": root}, entries) if entries else root

    def _catalog(self) -> str:
        return escape(self._rules.catalog_notice())

    def _checked(self, files: Mapping[str, str]) -> tuple[tuple[Policy, ...], tuple[Finding, ...]]:
        core = self._person.engine.core
        return check(files, core.catalog, {agent.name for agent in core.grant_store.agents()})

    def _tested(self, table: Any, files: Mapping[str, str] | None) -> tuple[cases.Result, ...]:
        core = self._person.engine.core
        rules: Rules = core.rules.book if files is None else RuleBook.of(files, core.catalog)
        return cases.run(table, rules, core.catalog, self._scope)

    def _scope(self, method: Method) -> str:
        """The least scope that one call of a method alone is made under."""
        call = Call(service=method.service, method=method.name, arguments={}, account="default")
        return scopes_of_calls(self._person.engine.core.catalog, (call,), frozenset())[0][2]

    def _case(self, case: Any) -> Request:
        """The request of a call that nobody made, on the account that it would use. Raises InvalidInput."""
        core = self._person.engine.core
        if not isinstance(case, Mapping):
            raise InvalidInput("A call is a table.")
        case = dict(case)
        service = str(case.get("call", "")).partition(".")[0]
        if not case.get("account") and service in core.catalog.services:
            try:
                case["account"] = core.vault.resolve(service, "").name
            except GoexError:
                case["account"] = "default"  # none is connected yet: rules can be asked about all the same
        case["at"] = core.clock()
        request, _, _ = cases.read(case, core.catalog, self._scope)
        plan = replace(request.plan, catalog_hash=plan_hash(core.catalog, request.plan))
        situation = core.rules.counts.situation(request.agent, "")
        return Request(
            agent=request.agent,
            session="",
            digest=digest(plan, agent=request.agent),
            plan=plan,
            situation=situation,
        )

    def _explained(self, asked: Request, decision: Decision, then: str) -> pb.ExplainRulesReply:
        core = self._person.engine.core
        came, rules, reason = cases.outcome(decision)
        calls = []
        found = questions(
            asked.plan, agent=asked.agent, situation=asked.situation, now=core.clock(), catalog=core.catalog
        )
        for question in found:
            said = () if core.rules.trouble else core.rules.book.verdicts(question)
            calls.append(
                pb.ExplainedCall(
                    what=question.resource[1],
                    kind=question.kind,
                    verdicts=[
                        pb.RuleVerdict(rule=policy.name, effect=policy.effect.value, problem=answer.problem)
                        for policy, answer in said
                    ],
                )
            )
        return pb.ExplainRulesReply(
            agent=asked.agent,
            calls=calls,
            decision=came,
            rules=rules,
            grants=[grant.id for grant in decision.grants] if isinstance(decision, Allow) else _covering(core, asked),
            reason=reason,
            asked=[f"{need.service}:{need.scope}" for need in decision.needs] if isinstance(decision, Ask) else [],
            then=then,
        )

    def _then(self, action_id: str) -> str:
        """How an action was decided, as the journal has it."""
        for row in self._person.engine.core.journal.rows(action_id=action_id, limit=200):
            if row.kind not in ("allow", "deny", "expire"):
                continue
            facts = parse(row.facts)
            by = [
                *(f"rule {name}" for name in facts.get("rules", ())),
                *(f"grant {id}" for id in facts.get("grants", ())),
            ]
            return f"{row.kind} at {row.at[:19]} UTC" + (f", by {', '.join(by)}" if by else "")
        return ""


def _covering(core: Any, asked: Request) -> list[str]:
    """Grants that would cover some of it, were it not for the rules."""
    now = core.clock()
    return [
        grant.id
        for grant in standing(core, asked.agent, asked.plan)
        if any(
            grant.covers(need, agent=asked.agent, digest=asked.digest, session=asked.session, now=now)
            for need in asked.plan.required
        )
    ]


def _files(found: Iterable[pb.RuleFile]) -> dict[str, str]:
    made: dict[str, str] = {}
    for file in found:
        plain = file.name.replace("-", "").replace("_", "").replace(".", "")
        if not file.name.endswith(".cedar") or len(file.name) > 80 or not plain.isalnum() or file.name.startswith("."):
            raise InvalidInput(
                f"{file.name[:80]!r} can't be the name of a file of rules.",
                next_step="It is letters, digits, '-' and '_', and ends in .cedar.",
            )
        if file.name in made:
            raise InvalidInput(f"{file.name} stands there twice.")
        made[file.name] = file.text
    return made


def _view(policy: Policy) -> pb.RuleView:
    return pb.RuleView(
        name=policy.name,
        effect=policy.effect.value,
        file=policy.chunk.file,
        line=policy.chunk.line,
        text=policy.text,
    )


def _finding(found: Finding) -> pb.RuleFinding:
    return pb.RuleFinding(
        file=found.file,
        line=found.line,
        column=found.column,
        rule=found.rule,
        error=found.error,
        says=found.says,
        next_step=found.next_step,
    )


def _change(found: Change) -> pb.RuleChange:
    return pb.RuleChange(
        change=found.kind, name=found.name, effect=found.effect, before=found.before, after=found.after
    )
