"""Functions that run where rows are only read: those that views, row security policies and casts call.

A transaction that only reads keeps them from this database's tables, and it is rolled back. What they do outside of it
(by another connection, a file, a program) stays, and no plan names it: a read that may run one that does is refused,
as is one whose functions don't say what they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from policies.errors import Unsupported
from runtimes.sql.contract import Program
from runtimes.sql.postgres import helpers
from runtimes.sql.postgres.helpers import Function
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import without_comments
from runtimes.sql.postgres.relations import Catalog, Relation

_CALLED = """
SELECT DISTINCT r.ev_class::pg_catalog.int8, d.refobjid::pg_catalog.int8
FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d
  ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
WHERE r.ev_class = ANY(%s::pg_catalog.oid[]) AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
ORDER BY 1, 2
"""
_TRUSTED = frozenset({"plpgsql", "sql", "internal", "plperl", "pltcl", "plv8"})  # they have SQL alone to reach out by
# Whose functions in C compute, or look at the server, though they give another value each time.
_LOOKING = frozenset({
    "uuid-ossp", "pgcrypto", "citext", "hstore", "ltree", "intarray", "pg_trgm", "unaccent", "fuzzystrmatch", "cube",
    "earthdistance", "seg", "isn", "tablefunc", "btree_gin", "btree_gist", "postgis", "vector", "pg_uuidv7",
    "pg_stat_statements", "pg_buffercache", "pgstattuple", "pageinspect", "pg_freespacemap", "pg_visibility",
})  # fmt: skip
_OUTSIDE = re.compile(r"(?i)\b(?:copy|dblink\w*|lo_export|pg_file_\w+|pg_(?:terminate|cancel)_backend)\b")


def refuse_outside(link: Link, catalog: Catalog, program: Program) -> None:
    """Raise Unsupported where reading what the program reads may do something outside of the tables."""
    read = list(_read(catalog, program))
    for relation in read:
        for function in relation.judges:  # a view's owner may be held by it where GoEx's user isn't
            _refuse(f"The row security of {relation.name}", function)
    views = {relation.oid: relation.name for relation in read if relation.kind == "v"}
    calls = link.ask(_CALLED, sorted(views)) if views else []
    if calls:
        major = re.match(r"\d+", catalog.schema.version)
        oids = sorted({function for _, function in calls})
        functions = helpers.read(link, int(major[0]) if major else 0, (), oids)
        for view, called in calls:
            for function in functions.reached(oids=(called,)):
                _refuse(f"The view {views[view]}", function)
    for function in catalog.converts if read else ():
        if function.language in _TRUSTED:
            _refuse("A cast or a domain", function)


def _read(catalog: Catalog, program: Program) -> Iterator[Relation]:
    """What the program reads, with what that stands on."""
    waiting = [use.table for one in program.statements for use in one.uses]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        relation = catalog.relations.get(name)
        if relation is None or name in seen:
            continue
        seen.add(name)
        waiting += _names(catalog, relation.stands_on)
        yield relation


def _names(catalog: Catalog, oids: Iterable[int]) -> list[str]:
    return [catalog.by_oid[oid].name for oid in oids if oid in catalog.by_oid]


def _refuse(said: str, function: Function) -> None:
    """Raises Unsupported."""
    if function.language == "c":
        harmless = function.volatility in "is" or function.extension in _LOOKING
    else:
        harmless = function.language in _TRUSTED and not _OUTSIDE.search(without_comments(function.source))
    if not harmless:
        raise Unsupported(
            f"{said} calls {function.name}, which may do something outside of the tables where rows are only read.",
            next_step="Read the tables themselves.",
        )
