"""From words to statements on one database, or to a program on one folder or for services, by the configured model.

The model is told names and types, or names of files, and nothing else; what it says becomes an action that is assessed,
shown and decided on like one that somebody typed. Without a model there is no such way, and that is said.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from goex.engine.core import Core, Request
from goex.engine.events import Progressed
from goex.journal.actions import ActionRow
from mapper.stopping_rule import Experience
from policies.actions import Code, Files, Sql, UndoPolicy
from policies.display_text import escape
from policies.errors import Denied, ExitStatus, InvalidInput, Unsupported
from policies.grants import PERSON
from vault.lease import Lease

if TYPE_CHECKING:
    from mapper.mapper import Mapper
    from mapper.programs import Choice, Program
    from runtimes.sql.contract import Place, Schema
    from runtimes.sql.contract import Program as Checked

_ASKERS = 200  # whose model samples' agreement is remembered
_SHOWN = 3  # readings that are said when none is sure
_LONGEST = 300  # characters of one of them
REJECTED_KEPT = 20


class Unclear(InvalidInput):
    """The model's samples don't agree, or say that nothing fits."""

    code = "ambiguous"
    exit_status = ExitStatus.AMBIGUOUS


@runtime_checkable
class Describes(Protocol):
    """The runtime of statements."""

    async def described(self, database: str, action_id: str) -> tuple[Schema, Place, Lease]:
        """The schema of an entry's database, where it is, and what was lent for looking (ended by then)."""
        ...


@runtime_checkable
class Lists(Protocol):
    """The runtime of programs on folders."""

    async def names(self, folder: str) -> tuple[tuple[str, ...], int]:
        """The names in it, and how many more there are at least."""
        ...


@dataclass(slots=True)
class Wording:
    """Asks the model, and keeps of each principal how much its samples agreed."""

    core: Core
    mapper: Callable[[], Mapper]
    _experience: dict[str, Experience] = field(default_factory=dict)

    async def statements(self, row: ActionRow, request: Request) -> Sql:
        """Raises Unclear, Unsupported (no model), InvalidInput, Unavailable."""
        from mapper import databases, programs
        from runtimes.sql import schema_summary

        mapper = self.mapper()
        if mapper.model is None or mapper.plan is None:
            raise Unsupported(
                "Words about a database take a model, and none is configured.",
                next_step=f'Say it in SQL: goex exec --db {request.database} --sql "…". Or configure a [model].',
            )
        runtime = self.core.runtimes.get("sql")
        if not isinstance(runtime, Describes):
            raise Unsupported("Statements don't run here.", next_step="goex doctor")
        schema, place, lease = await runtime.described(request.database, row.id)
        pair = lease.terms is not None and lease.terms.policy == "pairs"

        checked = await asyncio.to_thread(_checker)

        def check(said: Program) -> Program:
            made = [
                ";\n".join(one.sql for one in checked(text, schema, database=place.database).statements) if text else ""
                for text in (said.code, said.undo if pair else "")
            ]
            return programs.Program(code=made[0], undo=made[1])

        self.core.hub.publish(row.id, Progressed(f"asking the model {mapper.model.name}"))
        shown = databases.shown(schema.dialect.value, schema_summary.tables(schema), request.intent)
        choice = await databases.propose(
            mapper.model, mapper.plan, self._of(row.agent), request.intent, shown, check, pair=pair
        )
        self._journal(row, choice)
        best = _best(choice, f"goex exec --db {request.database} --sql")
        policy: UndoPolicy = "pairs" if best.undo else ""
        return Sql(database=request.database, statements=best.code, undo=best.undo, policy=policy)

    async def program(self, row: ActionRow, request: Request) -> Files:
        """Raises Denied (an agent), Unclear, Unsupported (no model), InvalidInput (a folder that GoEx doesn't work on),
        Conflict. What the model makes of the names comes back before anybody is asked, so only the person may have it
        made: an agent would learn names that nobody showed it."""
        from mapper import folders

        if row.agent != PERSON:
            raise Denied(
                "Only the person says in words what is done on a folder.",
                next_step="Send the program itself; it runs there once the person says yes.",
            )
        mapper = self.mapper()
        if mapper.model is None or mapper.plan is None:
            raise Unsupported(
                "Words about a folder take a model, and none is configured.",
                next_step="Say it as a program: goex exec --folder DIR --shell '…'. Or set up [model] in config.toml.",
            )
        runtime = self.core.runtimes.get("files")
        if not isinstance(runtime, Lists):
            raise Unsupported("Programs on folders don't run here.", next_step="goex doctor")
        names, more = await runtime.names(request.folder)
        self.core.hub.publish(row.id, Progressed(f"asking the model {mapper.model.name}"))
        tree = folders.bounded(names, more)
        choice = await folders.propose(mapper.model, mapper.plan, self._of(row.agent), request.intent, tree)
        self._journal(row, choice)
        best = _best(choice, "goex exec --folder DIR --shell")
        language = "python" if best.language == "python" else "shell"
        return Files(folder=request.folder, language=language, program=best.code, undo=best.undo)

    async def code(self, row: ActionRow, request: Request) -> Code:
        """A program for the services that were named. Raises Unclear, Unsupported (no model), InvalidInput (a service
        that isn't there), Unavailable."""
        from mapper.code import program_proposals
        from mapper.programs import Sampler

        mapper = self.mapper()
        if not isinstance(mapper.model, Sampler) or mapper.plan is None:
            raise Unsupported(
                "Words for a program take a model, and none is configured.",
                next_step="Write it yourself: goex exec --code FILE --service …. Or set up [model] in config.toml.",
            )
        empty = self.core.resolved(Code(language="python", program="", services=request.code_services))
        services = empty.services if isinstance(empty, Code) else ()
        self.core.hub.publish(row.id, Progressed(f"asking the model {mapper.model.name}"))
        choice = await program_proposals.propose(
            mapper.model, mapper.plan, self._of(row.agent), request.intent, self.core.catalog, services
        )
        self._journal(row, choice)
        best = _best(choice, "goex exec --code FILE --service")
        language: Literal["python", "shell"] = "shell" if best.language == "shell" else "python"
        return Code(language=language, program=best.code, services=services)

    def _of(self, principal: str) -> Experience:
        found = self._experience.pop(principal, None) or Experience()
        while len(self._experience) >= _ASKERS:
            del self._experience[next(iter(self._experience))]
        self._experience[principal] = found
        return found

    def _journal(self, row: ActionRow, choice: Choice) -> None:
        facts: dict[str, object] = {
            "proposer": choice.proposer,
            "samples": choice.samples,
            "agreement": choice.agreement,
            "sure": choice.sure,
            "nothing": choice.nothing,
            "ballots": list(choice.ballots),
            "candidates": [
                {"calls": [], "scopes": [], "sha256": _hash(candidate.program), "votes": candidate.votes}
                for candidate in choice.candidates
            ],
            "rejected": [
                {"sample": one.sample, "class": one.klass, "reason": one.reason[:300]}
                for one in choice.rejected[:REJECTED_KEPT]
            ],
        }
        self.core.journal.append("votes", action_id=row.id, agent=row.agent, facts=facts)


def _checker() -> Callable[..., Checked]:
    from runtimes.sql.checking.check import check  # its parser takes a while to load

    return check


def _hash(program: Program) -> str:
    said = "\0".join((program.language, program.code, program.undo))
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()


def _best(choice: Choice, instead: str) -> Program:
    """The reading that the samples agree on. Raises Unclear, saying the readings that there are."""
    if choice.sure:
        return choice.candidates[0].program
    if not choice.candidates:
        if choice.nothing:
            raise Unclear("The model says that nothing here fits these words.", next_step="Say it more exactly.")
        why = escape(choice.rejected[0].reason[:_LONGEST]) if choice.rejected else "It said nothing."
        raise Unclear(f"No proposal of the model could be taken: {why}", next_step=f'Say it yourself: {instead} "…"')
    readings = "; ".join(
        f"{number}. ({candidate.votes} of {choice.samples}) {escape(candidate.program.code[:_LONGEST])}"
        for number, candidate in enumerate(choice.candidates[:_SHOWN], start=1)
    )
    raise Unclear(
        f"The model isn't sure what these words mean. It proposed: {readings}",
        next_step=f'Say it more exactly, or run what you mean: {instead} "…"',
    )
