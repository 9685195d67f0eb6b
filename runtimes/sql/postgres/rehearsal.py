"""The undo of a program, tried in its own transaction before that ends, where a rule of the table may refuse it.

A constraint that was never validated, a key that triggers were kept off, a domain that was altered, a function in a
CHECK that is another by now: rows that break such a rule stay where they are, go when they are deleted, and nothing
lets them in again. Nothing in a definition says whether there are such rows, so it is tried with the ones it is about.
"""

from __future__ import annotations

from policies.errors import Conflict, InvalidInput, Unsupported
from runtimes.sql.contract import Job
from runtimes.sql.postgres import schema as catalogs
from runtimes.sql.postgres.capture import Books
from runtimes.sql.postgres.errors import Again, Locked
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.restore import Loose, Restoring
from runtimes.sql.postgres.schema import Catalog, Relation, calls
from runtimes.sql.postgres.strategy import Reach, Strategy
from runtimes.sql.records import read_image

IMAGE = "rows"


def doubtful(catalog: Catalog, strategy: Strategy) -> bool:
    """Whether a rule may keep out rows that undo would set, or keep in those that would go."""
    return any(_judged(catalog, reach) for reach in strategy.reaches if reach.table in strategy.tables)


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
    return any(reach.verb != "update" or not reach.columns or reach.columns & set(key.columns) for key in keys)


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
        if not trying.done and catalogs.load(link).schema.hash != catalog.schema.hash:
            raise Conflict("The tables' definitions wouldn't be as they were.")
    except (Again, Locked):
        raise
    except (Conflict, Unsupported, InvalidInput) as error:
        said = error.message.removesuffix(" Nothing was touched.").removesuffix(".")
        raise Unsupported(
            f"Undo couldn't put back what this changes: {said}. Nothing was touched.",
            next_step="Mend those rows or that rule first, or ask for it with the policy versioning.",
        ) from None
    link.do("ROLLBACK TO goex_rehearsal")
