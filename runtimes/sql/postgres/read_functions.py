"""Functions that run where rows are only read: those that views, row security policies, casts and domains call, and
those of indexes, statistics and CHECKs, whose constant parts the server computes as it plans.

A transaction that only reads keeps them from this database's tables, and it is rolled back. What they do outside of it
(by another connection, a file, a program) stays, and no plan names it: a read that may run one that does is refused,
as is one whose functions don't say what they do: in another language, or by a text that they make and run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from policies.errors import Unsupported
from runtimes.sql.contract import Program
from runtimes.sql.postgres import helpers
from runtimes.sql.postgres.helpers import COMPUTING, Function
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import MAKES_TEXTS, named, without_comments
from runtimes.sql.postgres.relations import Catalog, Relation

_WITH_CHILDREN = """
WITH RECURSIVE base (oid) AS (
  SELECT pg_catalog.unnest(%s::pg_catalog.oid[])
  UNION SELECT i.inhrelid FROM base JOIN pg_catalog.pg_inherits i ON i.inhparent = base.oid
)"""
# What relations with their children, and functions, call; also behind operators and aggregates. As it plans, the server
# computes what is immutable.
_CALLED = f"""{_WITH_CHILDREN}, calls (classid, objid, planned) AS (
  SELECT made.of::pg_catalog.oid, made.oid, made.planned FROM base JOIN (
      SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass AS of, w.oid, w.ev_class AS relation, false AS planned
        FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
        WHERE w.ev_type = '1' AND c.relkind = 'v'
      UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, p.polrelid, false
        FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid WHERE c.relrowsecurity
      UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid, f.conrelid, true
        FROM pg_catalog.pg_constraint f WHERE f.contype = 'c'
      UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, x.indexrelid, x.indrelid, true
        FROM pg_catalog.pg_index x
      UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, c.oid, true  -- the key of its partitions
        FROM pg_catalog.pg_class c WHERE c.relkind = 'p'
      UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid, s.stxrelid, true
        FROM pg_catalog.pg_statistic_ext s) made ON made.relation = base.oid
  UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid,
    pg_catalog.unnest(%s::pg_catalog.oid[]), false
), all_calls (classid, objid, planned) AS (
  SELECT classid, objid, planned FROM calls
  UNION SELECT d.refclassid, d.refobjid, a.planned FROM all_calls a
    JOIN pg_catalog.pg_depend d ON d.classid = a.classid AND d.objid = a.objid
    WHERE d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
)
SELECT DISTINCT p.oid::pg_catalog.int8 FROM all_calls a JOIN pg_catalog.pg_proc p ON p.oid = a.objid
WHERE a.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND (NOT a.planned OR p.provolatile = 'i') ORDER BY 1
"""
_OPERATORS = """
SELECT oprname, oprcode::pg_catalog.oid::pg_catalog.int8 FROM pg_catalog.pg_operator
WHERE oid::pg_catalog.int8 >= 16384 ORDER BY 1, 2
"""
# What calls the server's own functions, which nothing notes.
_TEXTS = """
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c
  WHERE c.relkind = 'v' AND c.oid = ANY(%s::pg_catalog.oid[])
UNION ALL SELECT pg_catalog.pg_get_expr(p.polqual, p.polrelid) FROM pg_catalog.pg_policy p
  JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
  WHERE c.relrowsecurity AND p.polqual IS NOT NULL AND c.oid = ANY(%s::pg_catalog.oid[])
UNION ALL SELECT pg_catalog.pg_get_constraintdef(f.oid) FROM pg_catalog.pg_constraint f WHERE f.contypid <> 0
"""
# Foreign tables, of these relations and their children, whose rows a program of the server's machine prints.
_PROGRAMS = f"""{_WITH_CHILDREN}
SELECT c.relname FROM base JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = base.oid
  JOIN pg_catalog.pg_class c ON c.oid = base.oid
  WHERE EXISTS (SELECT 1 FROM pg_catalog.unnest(f.ftoptions) o
    WHERE pg_catalog.starts_with(pg_catalog.lower(o), 'program='))
"""
_TRUSTED = frozenset({"plpgsql", "sql", "internal", "plperl", "pltcl", "plv8"})  # they have SQL alone to reach out by
_LOOKING = frozenset({  # extensions whose functions in C look at the server
    "pg_stat_statements", "pg_buffercache", "pgstattuple", "pageinspect", "pg_freespacemap", "pg_visibility",
})  # fmt: skip
_ACTING = r"lo_export|pg_file_\w+|pg_(?:terminate|cancel)_backend"
_SERVER = r"pg_(?:create|drop|reload|rotate|switch|promote|backup|start|stop|replication|stat_reset)\w*"
_OUTSIDE = re.compile(rf'(?i)\b(?:copy|dblink\w*|{_ACTING})\b|\b{_SERVER}"?\s*\(|\bu&"')
_RUNS = r"(?:query|table|schema|database|cursor)_to_xml\w*|ts_stat|ts_rewrite"
_CALLS = re.compile(rf"(?i)\b({_ACTING}|{_SERVER}|{_RUNS})\(")


def refuse_outside(link: Link, catalog: Catalog, program: Program) -> None:
    """Raise Unsupported where reading what the program reads may do something outside of the tables."""
    found, texts, read = _called(link, catalog, {use.table for one in program.statements for use in one.uses})
    for (name,) in link.ask(_PROGRAMS, read):
        raise _refused(f"the program of {name}")
    for text in texts:
        if (call := _CALLS.search(text)) is not None:
            raise _refused(call[1])
    for function in found:
        if function.language == "c":
            harmless = function.volatility in "is" or function.extension in COMPUTING | _LOOKING
        else:
            said = without_comments(function.source)
            runs = not function.extension and MAKES_TEXTS.search(said)
            harmless = function.language in _TRUSTED and not (runs or _OUTSIDE.search(said))
        if not harmless:
            raise _refused(function.name)


def _called(link: Link, catalog: Catalog, names: set[str]) -> tuple[Iterable[Function], list[str], list[int]]:
    """The functions that may run where these tables are read, the texts of their views and policies, and what is read
    for all of it."""
    major = re.match(r"\d+", catalog.schema.version)
    operators = link.ask(_OPERATORS)
    found = {one.oid: one for one in catalog.converts if one.language in _TRUSTED}
    while True:
        read = sorted(one.oid for one in _read(catalog, names))
        oids = {oid for (oid,) in link.ask(_CALLED, read, sorted(found))}
        sources = [without_comments(one.source) for one in found.values() if one.language != "c"]
        oids |= {function for sign, function in operators if any(sign in source for source in sources)}
        more = helpers.read(link, int(major[0]) if major else 0, (), sorted(oids)).by_oid
        named_there = named(catalog, "\n".join(without_comments(one.source) for one in more.values()))
        if more.keys() <= found.keys() and named_there <= names:
            return found.values(), [text for (text,) in link.ask(_TEXTS, read, read)], read
        found, names = {**found, **more}, names | named_there


def _read(catalog: Catalog, names: Iterable[str]) -> Iterator[Relation]:
    """What these are, with what that stands on, and what its row security reads."""
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        relation = catalog.relations.get(name)
        if relation is None or name in seen:
            continue
        seen.add(name)
        waiting += [*_names(catalog, relation.stands_on), *relation.guards]
        yield relation


def _names(catalog: Catalog, oids: Iterable[int]) -> list[str]:
    return [catalog.by_oid[oid].name for oid in oids if oid in catalog.by_oid]


def _refused(name: str) -> Unsupported:
    return Unsupported(
        f"What this reads calls {name}, which may do something outside of the tables where rows are only read.",
        next_step="Read the tables themselves.",
    )
