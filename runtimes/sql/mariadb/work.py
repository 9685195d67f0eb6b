"""The statements of one action, run in the transaction that is open, with the rows that they wrote."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

from policies.errors import Conflict, Unsupported
from policies.jsonvalue import JsonValue
from runtimes.sql.bounds import ResultRows, beyond
from runtimes.sql.checking import variables
from runtimes.sql.checking.parse import read
from runtimes.sql.contract import Dialect, Job, Limits, Ran, Reached, Result, Schema
from runtimes.sql.mariadb import errors, restore
from runtimes.sql.mariadb.capture import Capture
from runtimes.sql.mariadb.orphans import Loose, dangling
from runtimes.sql.mariadb.steps import Step, counts
from runtimes.sql.mariadb.survey import Looked
from runtimes.sql.mariadb.wire import Did, Wire

_LATER = 34567.891  # seconds


class Work:
    """The statements of a job, run one after the other in the open transaction."""

    def __init__(self, wire: Wire, now: Schema, looked: Looked, job: Job) -> None:
        self._wire, self._looked, self._job = wire, looked, job
        alone = sum(step.kind != "select" for step in looked.steps for _ in step.parts) == 1
        self.capture = Capture(wire, now, most=job.rows, alone=alone) if looked.exact else None
        self.results: list[Result] = []
        self.counters: tuple[str, ...] = ()
        self._plain: list[Reached] = []
        self._schema = now
        self.loose: dict[str, Loose] = {}
        self.exact = looked.exact  # whether its rows are kept

    def run(self) -> None:
        writes = [step for step in self._looked.steps if step.kind != "select"]
        counters: dict[str, None] = {}
        # One moment for the whole program: what is looked for beforehand is what the statement finds. And no key that
        # another action got.
        self._wire.run("SET SESSION timestamp = UNIX_TIMESTAMP(SYSDATE(6)), last_insert_id = 0")
        try:
            for step in self._looked.steps:
                self._job.progress(f"{step.statement.verb} {step.statement.table}".rstrip())
                did = self._one(step)
                if step.returning or (step.kind == "select" and step.statement.returns_rows):
                    self.results.append(_result(did, self._job.limits))
                if step.kind in ("insert", "upsert", "replace") and step.table is not None:
                    for column in step.table.columns:
                        if counts(column):
                            counters[f"{step.table.name}.{column.name}"] = None
            if self.capture is not None and len(writes) > 1:
                self.capture.again()
            if self.capture is not None:
                self.loose = dangling(
                    self._wire, self.capture.kept, self._schema, held=self._job.policy == "versioning"
                )
                self._rehearse()
        finally:
            if not self._wire.broken:
                self._wire.run("SET SESSION timestamp = DEFAULT")
        self.counters = tuple(counters)

    def _one(self, step: Step) -> Did:
        if step.kind == "select" and not step.statement.returns_rows:  # it sets variables
            return self._wire.run(step.statement.sql)
        if step.kind == "select":
            return self._wire.limited(step.statement.sql, self._job.limits.result_rows)
        if self.capture is not None:
            return self.capture.run(step)
        did = self._wire.run(step.statement.sql)
        rows = max(did.changed, did.affected, len(did.rows))
        self._plain.append(Reached(table=step.statement.table, verb=step.statement.verb, rows=rows))
        if sum(one.rows for one in self._plain) > self._job.rows:
            raise beyond(self._job.rows)
        return did

    def _rehearse(self) -> None:
        """Where triggers would fire when it is taken back: take it back and do it again, and see."""
        assert self.capture is not None
        kept = [one for one in self.capture.kept.values() if one.changed()]
        if not any(self._schema.tables[one.form.table].triggers for one in kept):
            return
        undo = [
            restore.Rows(
                one.form,
                {key: one.full(was, now) for key, was, now in one.changed()},
                {key: was for key, was, _ in one.changed()},
                loose=self.loose.get(one.form.table, {}),
            )
            for one in kept
        ]
        names = frozenset[str]()
        for statement in self._job.program.statements:
            for tree in read(statement.sql, Dialect.MARIADB) if "@" in statement.sql else ():
                names = variables.after(tree, names)
        if names:  # undo and redo come on another connection, where none is set
            self._wire.run("SET " + ", ".join(f"@{name} = NULL" for name in sorted(names)))
        self._wire.run("SAVEPOINT goex")
        # Undo and redo come at another moment: a trigger that writes the time would write another one.
        self._wire.run(f"SET SESSION timestamp = UNIX_TIMESTAMP(SYSDATE(6)) + {_LATER}")
        try:
            restore.restore(self._wire, undo, self._schema)
            restore.restore(self._wire, [restore.Rows(one.form, one.want, one.expect) for one in undo], self._schema)
        except Conflict as error:
            if self._job.policy == "versioning":  # rolling back needs no rows
                self.exact = False
                self._wire.run("ROLLBACK TO SAVEPOINT goex")
                return
            raise Unsupported(
                f"The triggers of {', '.join(sorted(one.form.table for one in kept))} change rows when they are put"
                " back, so undo wouldn't be exact. Nothing was changed.",
                next_step="Use --policy versioning: it is held until you commit or undo it.",
            ) from error
        self._wire.run("ROLLBACK TO SAVEPOINT goex")

    def ran(self, more: tuple[str, ...] = ()) -> Ran:
        reached = self.capture.reached() if self.capture is not None else tuple(self._plain)
        sample = self.capture.sample() if self.capture is not None else ()
        return Ran(
            reached=reached,
            results=tuple(self.results),
            sample=sample,
            counters=self.counters,
            notes=(*self._looked.notes, *more),
        )


def _result(did: Did, limits: Limits) -> Result:
    found = ResultRows(did.columns, limits)
    for row in did.rows:
        values = tuple(_json(value) for value in row)
        if found.fits(sum(len(value) if isinstance(value, str) else 8 for value in values)):
            found.rows.append(values)
    return found.result(found.seen + did.more)


def _json(value: Any) -> JsonValue:
    if value is None or isinstance(value, bool | int | str | float):
        return value
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.timedelta):
        return errors.duration(value)
    return str(value)
