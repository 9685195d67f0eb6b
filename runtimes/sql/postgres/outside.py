"""Functions that a program runs without naming them, and that may do something outside of the tables: by another
connection, a file, a program. That stays whatever is rolled back or undone, and no plan names it, so it is refused.

Where rows are read, these are what views, row security policies, casts and domains call, and what indexes, statistics
and CHECKs do, whose constant parts the server computes as it plans. Where rows are written, what triggers, defaults,
CHECKs and rules call comes to it. One that doesn't say what it does, since it is in another language, or makes a text
and runs that, is refused, too: for a text only where it can reach something that acts outside, in this database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from policies.errors import Unsupported
from runtimes.sql.contract import Program
from runtimes.sql.postgres import helpers
from runtimes.sql.postgres.helpers import COMPUTING, KNOWN_C, Function
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import MAKES_TEXTS, Reach, fired, holds, named, without_comments
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
_CASTS = (
    "SELECT castfunc::pg_catalog.int8 FROM pg_catalog.pg_cast WHERE oid::pg_catalog.int8 >= 16384 AND castfunc <> 0"
)
# Triggers of tables that the catalog doesn't have, which functions may write with their owners' rights.
_UNSEEN = """
SELECT c.relname, t.tgfoid::pg_catalog.int8 FROM pg_catalog.pg_trigger t
  JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND c.oid <> ALL(%s::pg_catalog.oid[])
"""
# What calls the server's own functions, which nothing notes.
_TEXTS = """
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c
  WHERE c.relkind = 'v' AND c.oid = ANY(%s::pg_catalog.oid[])
UNION ALL SELECT pg_catalog.concat(
    pg_catalog.pg_get_expr(p.polqual, p.polrelid), ' ', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
  FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
  WHERE c.relrowsecurity AND c.oid = ANY(%s::pg_catalog.oid[])
UNION ALL SELECT pg_catalog.pg_get_constraintdef(f.oid) FROM pg_catalog.pg_constraint f WHERE f.contypid <> 0
UNION ALL SELECT t.typdefault FROM pg_catalog.pg_type t WHERE t.typtype = 'd' AND t.typdefault IS NOT NULL
"""
# Foreign tables, of these relations and their children, whose rows a program of the server's machine prints.
_PROGRAMS = f"""{_WITH_CHILDREN}
SELECT c.relname FROM base JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = base.oid
  JOIN pg_catalog.pg_class c ON c.oid = base.oid
  WHERE EXISTS (SELECT 1 FROM pg_catalog.unnest(f.ftoptions) o
    WHERE pg_catalog.starts_with(pg_catalog.lower(o), 'program='))
"""
# Functions that act and that GoEx's user may call, by name; by number those that run with another user's rights who may
# call such, or use the server's files: SECURITY DEFINER, and triggers of tables that foreign keys write.
_REACHED = """
WITH acts AS (
  SELECT p.oid, p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE NOT l.lanpltrusted AND (p.provolatile = 'v' OR l.lanname NOT IN ('c', 'internal'))
  AND (p.oid::pg_catalog.int8 >= 16384 OR (p.proacl IS NOT NULL AND p.proname ~ '^(lo_export$|pg_)'))
  AND p.proname <> ALL(%s::pg_catalog.name[])
  AND pg_catalog.format_type(p.prorettype, NULL) !~ '(_handler|^event_trigger)$'
  AND 'pg_catalog.internal'::pg_catalog.regtype <> ALL(p.proargtypes)
  AND p.oid NOT IN (SELECT lanvalidator FROM pg_catalog.pg_language)
  AND p.oid NOT IN (SELECT fdwvalidator FROM pg_catalog.pg_foreign_data_wrapper)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    JOIN pg_catalog.pg_roles r ON r.oid = p.proowner AND r.rolsuper
    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'
    AND e.extname = ANY(%s::pg_catalog.name[]))
), able AS (
  SELECT r.oid, pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER') AS own, acts.proname FROM pg_catalog.pg_roles r
    LEFT JOIN acts ON pg_catalog.has_function_privilege(r.oid, acts.oid, 'EXECUTE')
  WHERE acts.oid IS NOT NULL OR r.rolsuper OR r.rolreplication OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles s
    WHERE s.rolname IN ('pg_execute_server_program', 'pg_write_server_files')
    AND pg_catalog.pg_has_role(r.oid, s.oid, 'MEMBER'))
), lent (function, owner) AS (
  SELECT p.oid, p.proowner FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.prosecdef AND l.lanname <> 'c' AND p.prorettype <> 'pg_catalog.event_trigger'::pg_catalog.regtype
  UNION SELECT t.tgfoid, c.relowner FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
    JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
    WHERE f.contype = 'f' AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))
)
SELECT proname::pg_catalog.text, 0::pg_catalog.int8 FROM able WHERE own AND proname IS NOT NULL
UNION SELECT NULL, lent.function::pg_catalog.int8 FROM lent JOIN able ON able.oid = lent.owner AND NOT able.own
ORDER BY 1, 2
"""
_TRUSTED = frozenset({"plpgsql", "sql", "internal", "plperl", "pltcl", "plv8"})  # they have SQL alone to reach out by
_LOOKING = frozenset({  # extensions whose functions in C look at the server
    "pg_stat_statements", "pg_buffercache", "pgstattuple", "pageinspect", "pg_freespacemap", "pg_visibility",
})  # fmt: skip
_HARMLESS = COMPUTING | _LOOKING
_ACTING = r"lo_export|pg_file_\w+|pg_(?:terminate|cancel)_backend"
_SERVER = r"pg_(?:create|drop|reload|rotate|switch|promote|backup|start|stop|replication|stat_reset)\w*"
_OUTSIDE = re.compile(rf'(?i)\b(?:copy|dblink\w*|{_ACTING})\b|\b{_SERVER}"?\s*\(|\bu&"')
_CALLS = re.compile(rf"(?i)\b({_ACTING}|{_SERVER})\(")
_RUNS = re.compile(r"(?i)\b((?:query|table|schema|database|cursor)_to_xml\w*|ts_stat|ts_rewrite)\(")


def refuse_outside(link: Link, catalog: Catalog, program: Program, reaches: Iterable[Reach] = ()) -> None:
    """Raise Unsupported where the program, or what it brings about (`reaches`), may do something outside."""
    found, texts, read = _called(link, catalog, program, reaches)
    for (name,) in link.ask(_PROGRAMS, read):
        raise _refused(program, f"the program of {name}")
    runs: dict[str, None] = {}  # what runs a text that can't be seen
    for text in texts:
        if (call := _CALLS.search(text)) is not None:
            raise _refused(program, call[1])
        runs |= dict.fromkeys(call[1] for call in _RUNS.finditer(text))
    for function in found:
        if _acts(function):
            raise _refused(program, function.name)
        if _makes_texts(function):
            runs[function.name] = None
    for name in runs:
        if reached := _reached(link, catalog):
            raise _refused(program, name, f" (it runs SQL that it makes, and may reach {reached})")


def _acts(function: Function) -> bool:
    """Whether it may act outside, by its own text; also where that can't be seen."""
    if function.language == "c":
        return not (function.volatility in "is" or function.extension in _HARMLESS or function.name in KNOWN_C)
    return function.language not in _TRUSTED or _OUTSIDE.search(without_comments(function.source)) is not None


def _makes_texts(function: Function) -> bool:
    made = function.language != "c" and not function.extension
    return made and MAKES_TEXTS.search(without_comments(function.source)) is not None


def _reached(link: Link, catalog: Catalog) -> str:
    """Something that acts outside and that a text may name; "": nothing here does."""
    for name in sorted(catalog.far):
        return f"{name}, which another server keeps"
    rows = link.ask(_REACHED, list(KNOWN_C), sorted(_HARMLESS))
    for name, _ in rows:
        if name:
            return str(name)
    for one in _functions(link, catalog, {oid for _, oid in rows}).values():
        if _acts(one) or _makes_texts(one):
            return f"{one.name}, which runs with another user's rights"
    return ""


def _functions(link: Link, catalog: Catalog, oids: Iterable[int]) -> Mapping[int, Function]:
    major = re.match(r"\d+", catalog.schema.version)
    return helpers.read(link, int(major[0]) if major else 0, (), sorted(oids)).by_oid


def _called(
    link: Link, catalog: Catalog, program: Program, reaches: Iterable[Reach]
) -> tuple[list[Function], list[str], list[int]]:
    """The functions that may run with it, the texts of what calls any, and what is read for all of it."""
    names = {use.table for one in program.statements for use in one.uses}
    firing: list[Function] = []
    heads: list[str] = []  # what calls functions where rows are written
    found = {one.oid: one for one in catalog.converts if one.language in _TRUSTED}
    for reach in reaches:
        names.add(reach.table)
        for _, trigger in fired(catalog, reach):
            heads.append(trigger.definition)
            firing.append(Function(0, trigger.function, trigger.language, "v", trigger.source, ""))
            found |= {one.oid: one for one in trigger.helpers}
        relation = catalog.relations.get(reach.table)
        for one in catalog.members(relation) if relation is not None else ():
            heads += [*one.rules, *(each.definition for each in one.checks), *(each.default for each in one.columns)]
            found |= {each.oid: each for each in one.computing(reach.verb)}
    operators, casts, unseen = link.ask(_OPERATORS), link.ask(_CASTS), link.ask(_UNSEEN, sorted(catalog.by_oid))
    while True:
        read = sorted(one.oid for one in _read(catalog, names))
        oids = {oid for (oid,) in link.ask(_CALLED, read, sorted(found))}
        sources = [without_comments(one.source) for one in (*firing, *found.values()) if one.language != "c"]
        oids |= {function for sign, function in operators if any(sign in text for text in (*sources, *heads))}
        oids |= {function for (function,) in casts if sources}
        oids |= {function for name, function in unseen if any(holds(text, name) for text in sources)}
        more = _functions(link, catalog, oids)
        named_there = named(catalog, "\n".join((*sources, *heads)))
        if more.keys() <= found.keys() and named_there <= names:
            texts = [text for (text,) in link.ask(_TEXTS, read, read)]
            return [*firing, *found.values()], [*texts, *heads], read
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


def _refused(program: Program, name: str, how: str = "") -> Unsupported:
    return Unsupported(
        f"This calls {name}, which may do something outside of the tables that nothing takes back{how}.",
        next_step="Read the tables themselves." if program.reads_only else "Leave it to somebody with a backup.",
    )
