"""One action on one connection: surveyed, run, settled, taken back.

Every transaction sees one state of the database (REPEATABLE READ); where somebody else changes the same rows, it is
rolled back and tried again. What is committed was in the records before: the rows, and the transaction's number, by
which the server says after a crash what became of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Literal, TypeVar

from policies.errors import Conflict, GoexError, InvalidInput, Unavailable, Unsupported
from runtimes.sql.contract import (
    Doubtful,
    Job,
    Limits,
    Policy,
    Program,
    Ran,
    Reached,
    Schema,
    Settled,
    Survey,
    turned,
)
from runtimes.sql.postgres import belongings, held, records, schema, survey
from runtimes.sql.postgres.capture import Books, Running, select
from runtimes.sql.postgres.errors import Again, Locked, Lost
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.outside import refuse_outside, refuse_setting
from runtimes.sql.postgres.records import IMAGE, Did, Step
from runtimes.sql.postgres.rehearsal import doubtful, loose, rehearse
from runtimes.sql.postgres.relations import Catalog, literal
from runtimes.sql.postgres.restore import Restoring
from runtimes.sql.postgres.settle import Settling, recorded_rows, server
from runtimes.sql.postgres.strategy import choose
from runtimes.sql.records import write_image

T = TypeVar("T")
_TRIES = 5  # of a transaction that others' changes broke
_ALREADY = "It was so already."
_OF_ROWS = frozenset({"select", "insert", "update", "delete"})  # all other verbs lock a table against its readers


class PostgresSession:
    """See `runtimes.sql.contract.Session`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._stopped = False
        self._seen: Catalog | None = None  # what `schema` read last

    def schema(self) -> Schema:
        with self._naming(), self._ending():
            self._link.begin("READ ONLY")
            self._seen = schema.load(self._link)
            return self._seen.schema

    def survey(self, program: Program, policy: Policy, limits: Limits) -> Survey:
        with self._naming(program, policy), self._ending():
            self._link.begin("READ ONLY")
            seen = self._seen if self._seen is not None else schema.load(self._link)
            return survey.survey(self._link, seen, program, policy)

    def trial(self, job: Job) -> Ran:
        def attempt() -> Ran:
            running = self._start(job)
            with closing(running.pieces()) as pieces:
                for _ in pieces:
                    pass
            return self._ran(running, job)

        return self._trying(job, attempt)

    def run(self, job: Job) -> Ran:
        if job.program.reads_only:
            return self._trying(job, lambda: self._read(job))
        return self._trying(job, lambda: self._run(job))

    def commit(self, job: Job) -> None:
        steps = records.steps(job.records)
        step = next((each for each in reversed(steps) if each.gid), None)
        if step is None:
            return
        with self._ending():
            if held.held(self._link, step.gid) is None:
                if self.settle(job).state in ("done", "unknown"):
                    return
                raise Conflict("Its transaction isn't held any more: it was rolled back.", next_step="Ask for it anew.")
            records.keep_step(job.records, Step("commit", step.xid, step.gid, server(self._link)))
            self._finish(f"COMMIT PREPARED {literal(step.gid)}")

    def settle(self, job: Job) -> Settled:
        with self._ending():
            return self._settle(job)

    def compare(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        with self._ending():
            found = self._settle(job)
            over = self._over(found, verb, job)
            if over is not None:
                return over
            state = self._recorded(job)
            if found.state == "held":
                return Ran(reached=state.ran.reached, sample=state.ran.sample)
            if state.made:
                self._link.begin()
                self._made(schema.load(self._link), state, verb)
                return _of_table(state, verb)
            self._link.begin()
            restoring = recorded_rows(self._link, job, state, verb)
            self._compare(restoring)
            return restoring.ran((_ALREADY,) if restoring.done else ())

    def revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        return self._trying(job, lambda: self._revert(job, verb))

    def roll_back(self, job: Job) -> Settled:
        with self._ending():
            gid = held.gid_of(job.id)
            xid = held.held(self._link, gid)
            if xid is None:
                return self._settle(job)
            self._end_held(job, xid, gid)
            return Settled(state="undone", evidence=(f"transaction {xid} was rolled back",))

    def interrupt(self) -> None:
        self._stopped = True
        self._link.cancel()

    def close(self) -> None:
        self._link.close()

    # ---- transactions

    def _settle(self, job: Job) -> Settled:
        found = Settling(self._link, job).look()
        self._link.rollback()
        return found

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Whatever happens inside, no transaction is left open by it."""
        self._link.rollback()
        self._link.revive()
        try:
            yield
        finally:
            self._link.rollback()

    def _trying(self, job: Job, attempt: Callable[[], T]) -> T:
        """Run a transaction, again where others came in between; an error names who is in the way."""
        self._stopped = False
        until = time.monotonic() + job.limits.seconds
        for left in reversed(range(_TRIES)):
            try:
                with self._naming(job.program, job.policy), self._ending():
                    return attempt()
            except Again:
                if not left or self._stopped or time.monotonic() > until:
                    raise
                time.sleep(0.02 * (_TRIES - left))
        raise AssertionError

    @contextmanager
    def _naming(self, program: Program | None = None, policy: Policy = "reversal") -> Iterator[None]:
        """An error inside names who is in the way of the program, or of reading the catalog."""
        try:
            yield
        except Locked as error:
            raise self._blamed(program, policy, error) from None

    def _blamed(self, program: Program | None, policy: Policy, error: Locked) -> Locked:
        uses = [use for one in program.statements for use in one.uses] if program is not None else []
        tables = {use.table for use in uses if use.verb != "select"}
        read = {use.table for use in uses if use.verb == "select"}
        altered = {use.table for use in uses if use.verb not in _OF_ROWS}
        catalog, near = None, set[str]()
        try:
            with self._ending():
                if program is not None:
                    catalog = schema.load(self._link)
                    tables |= set(choose(catalog, program, policy).tables)
                    # Also those whose rows are looked at for a foreign key.
                    near = {
                        name
                        for key in catalog.foreign
                        for name in (key.child, key.parent)
                        if tables & {key.child, key.parent}
                    }
        except Locked:
            pass  # its own statements wait for the same
        except GoexError:
            return error
        return held.blamed(self._link, catalog, tables | near, read, altered, error)

    def _finish(self, sql: str) -> None:
        """The statement that makes it permanent. Raises Doubtful where its answer never came."""
        try:
            self._link.do(sql)
        except Lost:
            raise Doubtful(
                "The connection broke while it was being made permanent.", next_step="GoEx looks at what became of it."
            ) from None

    def _step(self, job: Job, did: Did, gid: str = "") -> None:
        """Note the number of this transaction, durably, before it is made permanent."""
        xid, server = self._link.ask(
            "SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text, "
            "pg_catalog.pg_postmaster_start_time()::pg_catalog.text"
        )[0]
        records.keep_step(job.records, Step(did, int(xid), gid, str(server)))

    # ---- running

    def _start(self, job: Job) -> Running:
        """Begin a transaction; the catalog is as it was planned with, and the program may be run."""
        emptied = {one.table for one in job.program.statements if one.verb == "truncate"}
        names = []
        if emptied:
            known = schema.load(self._link).relations
            names = [known[name].sql for name in sorted(emptied) if name in known]
        self._link.begin()
        for name in names:
            # Before this transaction sees anything: rows that come after its first look would go uncaught.
            self._link.do(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
        catalog = self._planned_with(job)
        strategy = choose(catalog, job.program, job.policy)
        refuse_outside(self._link, catalog, job.program, strategy.foreseen)
        return Running(self._link, catalog, strategy, job, Books.open(self._link))

    def _planned_with(self, job: Job) -> Catalog:
        """The catalog in this transaction. Raises Conflict where it isn't the one that was planned with."""
        catalog = schema.load(self._link)
        if catalog.schema.hash != job.schema_hash:
            raise Conflict("The database's tables changed since this was planned.", next_step="Ask for it again.")
        return catalog

    def _read(self, job: Job) -> Ran:
        self._link.begin("READ ONLY")
        refuse_outside(self._link, self._planned_with(job), job.program)
        return Ran(reached=(), results=tuple(select(self._link, one.sql, job) for one in job.program.statements))

    def _run(self, job: Job) -> Ran:
        running = self._start(job)
        strategy = running.strategy
        kept = strategy.method != "none"
        with closing(running.pieces()) as pieces:
            if kept:
                write_image(job.records, IMAGE, pieces, most=job.limits.image_bytes)
            else:
                for _ in pieces:
                    pass
        if kept and job.policy != "versioning" and doubtful(running.catalog, strategy):
            rehearse(self._link, running.catalog, strategy, job)
        made, definition, belonging = self._check_definitions(running, job)
        ran = self._ran(running, job)
        relations = running.relations
        records.keep_state(
            job.records,
            records.State(
                tables=strategy.tables if kept else (),
                shapes=tuple(each.shape for each in relations) if kept else (),
                keys=tuple(each.key for each in relations) if kept else (),
                image=kept,
                ran=ran,
                why="" if kept or made else "Its rows were not kept, only its transaction was.",
                made=made,
                definition=definition,
                belongings=belonging,
                loose=tuple(sorted(loose(relations))) if kept else (),
            ),
        )
        if job.policy == "versioning" and (ran.reached or strategy.definitions):
            self._hold(job, "hold")
        else:
            self._step(job, "run")
            self._finish("COMMIT")
        return ran

    def _ran(self, running: Running, job: Job) -> Ran:
        reached = running.reached()
        if running.strategy.definitions:
            reached = tuple(
                Reached(table=use.table, verb=use.verb, rows=0)
                for one in job.program.statements
                for use in one.uses
                if use.verb != "select"
            )
        counters = running.strategy.counters
        said = (f"Counters moved on: {', '.join(counters)}.",) if counters else ()
        return Ran(
            reached=reached,
            results=tuple(running.results),
            sample=running.changes(),
            counters=counters,
            notes=said,
        )

    def _check_definitions(self, running: Running, job: Job) -> tuple[str, str, str]:
        """Of a program without definitions: none changed on the way. Of a CREATE TABLE under reversal: the table that
        it made, and the digests of its definition and belongings."""
        strategy = running.strategy
        if strategy.definitions:
            if job.policy == "versioning":
                return "", "", ""
            name = job.program.statements[0].table
            made = schema.load(self._link).relations.get(name)
            if made is None:
                raise Conflict("The table wasn't made. Nothing was touched.")
            return name, made.definition, belongings.digest(self._link, made)
        if strategy.triggers and schema.load(self._link).schema.hash != job.schema_hash:
            raise Conflict("A trigger changed the database's definitions on the way. Nothing was touched.")
        return "", "", ""

    def _hold(self, job: Job, did: Did) -> None:
        gid = held.gid_of(job.id)
        self._step(job, did, gid)
        try:
            self._finish(f"PREPARE TRANSACTION {literal(gid)}")
        except (Unsupported, InvalidInput) as error:
            raise Unsupported(
                f"The server can't hold this transaction. {error.message}",
                next_step="Ask for it with the policy reversal.",
            ) from None
        except Unavailable as error:
            raise Unavailable(
                f"The server can't hold one more transaction. {error.message}",
                next_step="Commit or undo held actions, or raise max_prepared_transactions.",
            ) from None
        try:
            found = held.held(self._link, gid)
        except Lost:
            raise Doubtful("The connection broke when the transaction was held.") from None
        if found is None:
            raise Conflict("The server didn't hold the transaction. Nothing was touched.", next_step="Try again.")

    # ---- taking back

    def _recorded(self, job: Job) -> records.State:
        state = records.read_state(job.records)
        if state is None:
            raise Conflict("What undo needs isn't in the records.", next_step="goex log --verify")
        return state

    def _over(self, found: Settled, verb: Literal["undo", "redo"], job: Job) -> Ran | None:
        """The answer where nothing is to be done, or can be."""
        if not job.program.reads_only:
            state = self._recorded(job)
            if not (state.image or state.made or state.ran.reached):  # the server counted no row that it wrote
                return Ran(reached=(), notes=(_ALREADY,))
        if verb == "undo" and found.state in ("undone", "nothing"):
            return Ran(reached=(), notes=(_ALREADY,))
        if verb == "redo":
            if found.state == "done":
                return Ran(reached=(), notes=(_ALREADY,))
            if found.state == "held":
                return Ran(reached=(), notes=("It is held: its after-state is there for you to commit.",))
            if found.state == "nothing":
                raise Unsupported("It never ran: there is nothing to do again.", next_step="Ask for it anew.")
        return None

    def _revert(self, job: Job, verb: Literal["undo", "redo"]) -> Ran:
        found = self._settle(job)
        over = self._over(found, verb, job)
        if over is not None:
            return over
        state = self._recorded(job)
        self._link.rollback()
        if found.state == "held":
            step = next(each for each in reversed(records.steps(job.records)) if each.gid)
            self._end_held(job, step.xid, step.gid)
            return Ran(reached=turned(state.ran.reached), sample=(), notes=("Its transaction was rolled back.",))
        self._link.begin()
        if state.made:
            return self._revert_table(job, state, verb)
        committed = any(step.did == "commit" for step in records.steps(job.records))
        held = verb == "redo" and job.policy == "versioning" and not committed
        restoring = recorded_rows(self._link, job, state, verb, held=held)
        self._compare(restoring)
        if restoring.done:  # by somebody else: from here on it is undone, or done again, all the same
            self._step(job, verb)
            self._finish("COMMIT")
            return restoring.ran((_ALREADY,))
        books = Books.open(self._link)
        restoring.apply(books)
        if restoring.catalog.schema.hash != schema.load(self._link).schema.hash:
            raise Conflict("The tables' definitions wouldn't be as they were. Nothing was touched.")
        ran = restoring.ran()
        if held:
            self._hold(job, "redo")
        else:
            self._step(job, verb)
            self._finish("COMMIT")
        return ran

    def _compare(self, restoring: Restoring) -> None:
        """Raises Conflict where rows aren't as recorded, and Unsupported where setting them would do more by now."""
        restoring.compare()
        if not restoring.done:
            tables = [relation.name for relation in restoring.relations]
            refuse_setting(self._link, restoring.catalog, tables, restoring.writes())

    def _end_held(self, job: Job, xid: int, gid: str) -> None:
        """Roll back what is held. Raises, and changes nothing, where it isn't any more."""
        records.keep_step(job.records, Step("undo", xid, gid, server(self._link)))
        self._finish(f"ROLLBACK PREPARED {literal(gid)}")

    # ---- a table that was created

    def _made(self, catalog: Catalog, state: records.State, verb: Literal["undo", "redo"]) -> None:
        """Raises Conflict unless the table is as it was left: made, and empty (or not there)."""
        refuse_setting(self._link, catalog, (state.made,))
        relation = catalog.relations.get(state.made)
        if verb == "redo":
            if relation is not None:
                raise Conflict(
                    f"{state.made} is there. Nothing was touched.",
                    next_step="Rename or drop that table first.",
                    difference=(f"{state.made}: is there",),
                )
            return
        if relation is None or relation.definition != state.definition:
            said, how = "The table was changed", "is gone" if relation is None else "isn't defined as it was made"
        elif state.belongings and belongings.digest(self._link, relation) != state.belongings:
            said = "What belongs to the table changed"
            how = "was granted, commented, or given policies, options or statistics since"
        elif self._link.ask(f"SELECT 1 FROM {relation.sql} LIMIT 1"):
            said, how = "The table got rows", "has rows"
        else:
            return
        raise Conflict(
            f"{said} since. Nothing was touched.",
            next_step="If it is to go all the same, drop it by an action of its own."
            if relation is not None
            else "Nothing is left of it to take back.",
            difference=(f"{state.made}: {how}",),
        )

    def _revert_table(self, job: Job, state: records.State, verb: Literal["undo", "redo"]) -> Ran:
        relation = schema.load(self._link).relations.get(state.made)
        if verb == "undo" and relation is not None:
            self._link.rollback()
            self._link.begin()
            self._link.do(f"LOCK TABLE {relation.sql} IN ACCESS EXCLUSIVE MODE")  # before it sees anything
        self._made(schema.load(self._link), state, verb)
        if verb == "undo":
            assert relation is not None
            self._link.do(f"DROP TABLE {relation.sql} RESTRICT")
        else:
            self._link.do(job.program.statements[0].sql)
            again = schema.load(self._link).relations.get(state.made)
            same = again is not None and again.definition == state.definition
            if again is None or not same or state.belongings not in ("", belongings.digest(self._link, again)):
                raise Conflict(f"{state.made} wouldn't be as it was. Nothing was touched.")
        self._step(job, verb)
        self._finish("COMMIT")
        return _of_table(state, verb)


def _of_table(state: records.State, verb: Literal["undo", "redo"]) -> Ran:
    return Ran(reached=(Reached(table=state.made, verb="drop" if verb == "undo" else "create", rows=0),))
