"""The undo of a program, tried in its own transaction before that ends, where a rule of the table may refuse it.

A constraint that was never validated, a key that triggers were kept off, a domain that was altered, a function in a
CHECK that is another by now: rows that break such a rule stay where they are, go when they are deleted, and nothing
lets them in again. Nothing in a definition says whether there are such rows, so it is tried with the ones it is about.
The same goes for rows whose unique values have changed places, where others point to them with an action of their own:
they can't be taken out and put back, and each may only get its value when the other has left it.
"""

from __future__ import annotations

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Job
from runtimes.sql.postgres import schema
from runtimes.sql.postgres.capture import Books
from runtimes.sql.postgres.errors import Again, Locked
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import Reach
from runtimes.sql.postgres.records import IMAGE
from runtimes.sql.postgres.relations import BEFORE, UPDATE, Catalog, Relation, calls
from runtimes.sql.postgres.restore import Loose, Restoring, replaceable
from runtimes.sql.postgres.strategy import Strategy
from runtimes.sql.records import read_image


def doubtful(catalog: Catalog, strategy: Strategy) -> bool:
    """Whether a rule may keep out rows that undo would set, or keep in those that would go."""
    reaches = [reach for reach in strategy.reaches if reach.table in strategy.tables]
    return any(_judged(catalog, reach) for reach in reaches) or any(
        _crowded(catalog.relations[table], catalog, [reach for reach in reaches if reach.table == table])
        for table in strategy.tables
    )


def _crowded(relation: Relation, catalog: Catalog, reaches: list[Reach]) -> bool:
    """Whether values of a unique index may have to change places among rows that can't be taken out for that."""
    if replaceable(catalog, relation):
        return False
    columns: set[str] = set()
    for reach in reaches:
        if reach.verb == "update":
            columns |= written(catalog, reach)
    if {"insert", "delete"} <= {reach.verb for reach in reaches}:  # a row that goes and comes again was changed
        columns |= {column.name for column in relation.columns}
    return relation.crowded(columns)


def _judged(catalog: Catalog, reach: Reach) -> bool:
    pointing = catalog.pointing_to(reach.table)
    if reach.verb in ("insert", "update") and any(not key.valid for key in pointing):
        return True
    if reach.verb == "insert":
        return False
    table = catalog.relations[reach.table]
    for relation in (each for each in catalog.relations.values() if catalog.root(each) is table):
        if relation.judged or any(not check.valid or not check.steady for check in relation.checks):
            return True
        if any(column.generated and calls(column.default) for column in relation.columns):
            return True
    keys = [key for key in catalog.foreign if key.child == reach.table]
    return any(reach.verb != "update" or written(catalog, reach) & set(key.columns) for key in keys)


def written(catalog: Catalog, reach: Reach) -> frozenset[str]:
    """The columns that an UPDATE may change: all of them where a trigger has a say."""
    relation = catalog.relations[reach.table]
    triggers = (trigger for _, trigger in catalog.firing(relation))
    if reach.columns and not any(trigger.events & UPDATE and trigger.events & BEFORE for trigger in triggers):
        return reach.columns
    return frozenset(column.name for column in relation.columns)


def loose(relations: list[Relation]) -> frozenset[Loose]:
    """The CHECKs that rows may break which are there (NOT VALID), and that undo can take away for its own time."""
    return frozenset(
        (relation.name, check.name, check.definition)
        for relation in relations
        if relation.mendable
        for check in relation.checks
        if not check.valid
    )


def rehearse(link: Link, catalog: Catalog, strategy: Strategy, job: Job) -> None:
    """Take the program back by the rows that it recorded, and forget that. Raises Unsupported where it can't be."""
    link.do("SAVEPOINT goex_rehearsal")
    try:
        relations = [catalog.relations[name] for name in strategy.tables]
        trying = Restoring(link, catalog, relations, undo=True, loose=loose(relations))
        trying.load(read_image(job.records, IMAGE))
        trying.compare()
        trying.apply(Books.open(link))
        if not trying.done and schema.load(link).schema.hash != catalog.schema.hash:
            raise Conflict("The tables' definitions wouldn't be as they were.")
    except (Again, Locked):
        raise
    except (Conflict, Unsupported, InvalidInput) as error:
        said = error.message.removesuffix(" Nothing was touched.").removesuffix(".")
        raise Unsupported(
            f"Undo couldn't put back what this changes: {said}. Nothing was touched.",
            next_step="Mend those rows or that rule first, or ask for it with --policy versioning.",
        ) from None
    link.do("ROLLBACK TO goex_rehearsal")
