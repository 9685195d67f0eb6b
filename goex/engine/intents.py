"""From words to calls, for one principal, with a memory of the alternatives that were shown."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from goex.engine.core import Core, Principal, Request
from goex.engine.events import Mapped
from goex.engine.program_proposals import Wording
from goex.engine.unfinished import Unfinished, principal_key
from goex.journal.actions import ActionRow
from mapper.context import NOTHING_TOLD, Context
from policies.actions import Action, ApiCalls, Call, Intent, IntentMapping
from policies.errors import ExitStatus, InvalidInput
from policies.jsonvalue import canonical, parse
from policies.typed_json import to_json

if TYPE_CHECKING:
    from mapper.mapper import Mapper
    from mapper.ranking.index import Index

T = TypeVar("T")
CHOICES_KEPT = 200  # of all agents together
CHOICES_OF_ONE = 50
REJECTED_KEPT = 20  # of a vote, in the journal; the ballots have the class of every one


class Ambiguous(InvalidInput):
    """The mapping isn't sure enough to go on without the person."""

    code = "ambiguous"
    exit_status = ExitStatus.AMBIGUOUS


class NothingFits(InvalidInput):
    """Nothing in the catalog fits the words."""

    code = "nothing-fits"
    exit_status = ExitStatus.AMBIGUOUS


@dataclass(slots=True)
class Mappings:
    """Maps intents, and keeps each session's latest alternatives so that one of them can be chosen."""

    core: Core
    mapper: Callable[[], Mapper]
    connected: Callable[[], frozenset[str]]
    context: Callable[[], Context]
    told: frozenset[str]  # which facts of the context a model is told
    wording: Wording = field(init=False)
    _shown: Unfinished[tuple[str, str], IntentMapping] = field(
        default_factory=lambda: Unfinished(of_one=CHOICES_OF_ONE, of_agents=CHOICES_KEPT)
    )

    def __post_init__(self) -> None:
        self.wording = Wording(self.core, self.mapper)

    async def map(self, text: str, principal: Principal, answer: str = "") -> IntentMapping:
        """Which calls, which least scopes, how sure. Has no effect. `answer`: to what an earlier mapping asked."""
        asked = self._asked(text, principal) if answer else ""
        mapper = await self._ready()
        context = NOTHING_TOLD
        if mapper.model is not None:
            # An agent gets what the model makes of its words, so it isn't told what is the person's own.
            context = self.context().told(self.told, to_the_person=principal.owns_all)
            if answer:
                context = replace(context, asked=(asked, answer))
            self.core.quotas.model(principal.agent, principal.session, self.core.settings.model_calls)
        connected = self.connected()
        granted = self.core.grant_store.standing(principal.agent, principal.session)
        if mapper.model is None:
            read = partial(mapper.at_once, Intent(text=text), connected=connected, granted=granted)
            mapping = await _beside(read, principal)
        else:
            mapping = await mapper.map(
                Intent(text=text), connected=connected, granted=granted, agent=principal.agent, context=context
            )
        self._shown.keep(principal_key(principal.agent, principal.session), (principal.session, text), mapping)
        return mapping

    def forget(self, agent: str) -> None:
        """Drop what an agent was shown."""
        self._shown.forget(agent)

    def _asked(self, text: str, principal: Principal) -> str:
        """What was asked about these words. Raises InvalidInput: an answer to nothing would only add words."""
        shown = self._shown.get(principal_key(principal.agent, principal.session), (principal.session, text))
        if shown is None or shown.clarification is None:
            raise InvalidInput("Nothing was asked about these words.", next_step="Map them again: goex map")
        return shown.clarification.text

    async def explain(self, text: str, principal: Principal) -> tuple[str, ...]:
        """Which services and methods the words point to, and why: lines for a person."""
        mapper = await self._ready()
        return await _beside(partial(mapper.explain, Intent(text=text), connected=self.connected()), principal)

    async def ranking(self) -> Index:
        """What ranks the methods of the catalog for words, up to date."""
        return (await self._ready()).embedded.index

    async def _ready(self) -> Mapper:
        """The mapper, its ranking up to date: after an import that takes a while, and nobody else waits for it."""
        mapper = self.mapper()
        if mapper.embedded.stale:
            await asyncio.to_thread(lambda: mapper.embedded.index)
        return mapper

    def proposed(self, text: str) -> ApiCalls:
        """The calls in a model's own proposal. Raises InvalidInput with every rejection."""
        return ApiCalls(calls=self.mapper().parse(text))

    async def action_for(self, row: ActionRow, request: Request) -> Action:
        """The action for an action's intent: calls, or what the words are said to be about. Every vote is journaled."""
        if (request.database or request.code_services or request.folder) and self.mapper().model is not None:
            self.core.quotas.model(row.agent, row.session, self.core.settings.model_calls)
        if request.database:
            return await self.wording.statements(row, request)
        if request.code_services:
            return await self.wording.code(row, request)
        if request.folder:
            return await self.wording.program(row, request)
        return await self.calls_for(row, request)

    async def calls_for(self, row: ActionRow, request: Request) -> ApiCalls:
        """The calls for an action's intent. Raises Ambiguous or NothingFits; every vote is journaled."""
        if request.choice:
            shown = self._shown.get(principal_key(row.agent, row.session), (row.session, request.intent))
            if shown is None or not 1 <= request.choice <= len(shown.alternatives):
                raise InvalidInput("There is no such candidate for these words.", next_step="Map them again: goex map")
            chosen = shown.alternatives[request.choice - 1]
            self.core.journal.append(
                "choice", action_id=row.id, agent=row.agent, facts={"choice": request.choice, **_votes(shown)}
            )
            return _with_account(chosen.calls, request.account)
        principal = Principal(agent=row.agent, session=row.session, source=row.source)
        mapping = await self.map(request.intent, principal, request.answer)
        self.core.hub.publish(row.id, Mapped(mapping))
        facts = _votes(mapping) | ({"answer": request.answer} if request.answer else {})
        self.core.journal.append("votes", action_id=row.id, agent=row.agent, facts=facts)
        if mapping.clarification is not None:
            raise Ambiguous(
                f"The model asks: {mapping.clarification.text}",
                next_step="Answer it, or say the request again with what it asks for.",
            )
        if mapping.best is None:
            raise _nothing_fits(mapping, to_the_person=principal.owns_all)
        if not mapping.sure:
            shows = "`goex map` shows the readings" if principal.owns_all else "or call the method that is meant"
            raise Ambiguous(
                "These words aren't clear enough to act on.",
                next_step=f"Choose a reading of them, or say it more exactly; {shows}.",
            )
        return _with_account(mapping.best.calls, request.account)

    async def words(self, row: ActionRow) -> str:
        """The configured model's answer over an action's redacted outcome; "" without a model. Raises Exhausted."""
        mapper = self.mapper()
        if mapper.model is None:
            return ""
        self.core.quotas.model(row.agent, row.session, 1)  # a chosen reading asks for nothing else of the model
        return await mapper.answer(Intent(text=row.intent), canonical(parse(row.outcome)).decode("utf-8"))


def _nothing_fits(mapping: IntentMapping, *, to_the_person: bool) -> NothingFits:
    """Why no call came of the words, and what to say instead."""
    if mapping.lacking is None:
        step = "goex catalog list" if to_the_person else "look it up without words, or name the service"
        return NothingFits("Nothing in the catalog fits these words.", next_step=f"See what there is: {step}")
    method, missing = mapping.lacking
    step = f"Add {'it' if len(missing) == 1 else 'them'} to your words (what it takes: goex catalog show {method})"
    if not to_the_person:
        step = f"Say {'it' if len(missing) == 1 else 'them'}, too, or call {method} with its arguments"
    return NothingFits(f"{method} comes nearest, but the words don't give {', '.join(missing)}.", next_step=f"{step}.")


def _with_account(calls: tuple[Call, ...], account: str) -> ApiCalls:
    """The calls, those without an account with this one."""
    return ApiCalls(calls=tuple(call if call.account else replace(call, account=account) for call in calls))


_agents = ThreadPoolExecutor(1, thread_name_prefix="goex-words")  # one: what reads words holds the interpreter's lock


async def _beside(read: Callable[[], T], principal: Principal) -> T:
    """Read an agent's words in a thread, where nobody else waits for it; the person's at once."""
    return read() if principal.owns_all else await asyncio.get_running_loop().run_in_executor(_agents, read)


def _votes(mapping: IntentMapping) -> dict[str, object]:
    """For the journal: arguments as hashes, since they are in the action's own request once one is chosen. What was
    rejected is in no request, so its beginning is kept. All of it is bounded."""
    facts: dict[str, object] = {
        "proposer": mapping.proposer,
        "samples": mapping.samples,
        "agreement": mapping.agreement,
        "sure": mapping.sure,
        "candidates": [
            {
                "calls": [call.id for call in candidate.calls],
                "sha256": hashlib.sha256(canonical([to_json(call) for call in candidate.calls])).hexdigest(),
                "scopes": list(candidate.scopes),
                "votes": candidate.votes,
            }
            for candidate in mapping.alternatives
        ],
        "rejected": [
            {"sample": r.sample, "class": r.klass, "reason": r.reason[:300], "begins": r.excerpt, "size": r.size}
            for r in mapping.rejected[:REJECTED_KEPT]
        ],
    }
    if mapping.technique:
        facts |= {
            "method": mapping.technique,
            "samples_most": mapping.limit,
            "confidence": round(mapping.confidence, 4),
            "stopped": mapping.stopped,
            "ballots": list(mapping.ballots),
            "claims": [{"scope": name, "samples": count} for name, count in mapping.claims],
        }
    if mapping.clarification is not None:
        facts["clarification"] = mapping.clarification.text
    if len(mapping.rejected) > REJECTED_KEPT:
        facts["rejected_more"] = len(mapping.rejected) - REJECTED_KEPT
    return facts
