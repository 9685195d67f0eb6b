"""Functions that a program runs without naming them, and that may do something outside of the tables: by another
connection, a file, a program. That stays whatever is rolled back or undone, and no plan names it, so it is refused.

Where rows are read, these are what views, row security policies, casts and domains call, and what indexes, statistics
and CHECKs do, whose constant parts the server computes as it plans. Where rows are written, what triggers, defaults,
CHECKs and rules call comes to it. One that doesn't say what it does, since it is in another language, or makes a text
and runs that, is refused, too: for a text only where it can reach something that acts outside, in this database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from policies.errors import Unsupported
from runtimes.sql.contract import Program
from runtimes.sql.postgres import helpers
from runtimes.sql.postgres.helpers import COMPUTING, KNOWN_C, Function
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import (
    MAKES_TEXTS,
    RUNS_TEXTS,
    Reach,
    closure,
    fired,
    holds,
    named,
    without_comments,
    writes,
)
from runtimes.sql.postgres.relations import Catalog, Relation

# Relations with their children, what views (materialized ones where any is refreshed) stand on, and what keys write.
_BASE = """
WITH RECURSIVE base (oid) AS (
  SELECT pg_catalog.unnest(%s::pg_catalog.oid[])
  UNION SELECT next.oid FROM base JOIN (
    SELECT inhparent AS of, inhrelid AS oid FROM pg_catalog.pg_inherits
    UNION ALL SELECT w.ev_class, d.refobjid FROM pg_catalog.pg_rewrite w
      JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
      WHERE w.ev_type = '1' AND (c.relkind = 'v' OR %s) AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    UNION ALL SELECT confrelid, conrelid FROM pg_catalog.pg_constraint
      WHERE %s AND contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
  ) next ON next.of = base.oid
)
SELECT oid::pg_catalog.int8 FROM base ORDER BY 1
"""
# What these relations, and functions, call; also behind operators and aggregates. As it plans, the server computes what
# is immutable. `written`: what computes values there, too; `given`: also there, but for defaults, since all columns get
# theirs; `fired`: and the triggers.
_CALLED = """
WITH RECURSIVE base (oid, written, given, fired) AS (
  SELECT all_.oid, all_.oid = ANY(%s::pg_catalog.oid[]), all_.oid = ANY(%s::pg_catalog.oid[]),
    all_.oid = ANY(%s::pg_catalog.oid[]) FROM pg_catalog.unnest(%s::pg_catalog.oid[]) all_ (oid)
), calls (classid, objid, planned) AS (
  SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid, w.oid, false
    FROM base JOIN pg_catalog.pg_rewrite w ON w.ev_class = base.oid JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
    WHERE CASE WHEN w.ev_type <> '1' THEN base.written ELSE c.relkind = 'v' OR %s END
  UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, false
    FROM base JOIN pg_catalog.pg_policy p ON p.polrelid = base.oid JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
    WHERE c.relrowsecurity
  UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid, NOT (base.written OR base.given)
    FROM base JOIN pg_catalog.pg_constraint f ON f.conrelid = base.oid WHERE f.contype = 'c'
  UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, x.indexrelid, true
    FROM base JOIN pg_catalog.pg_index x ON x.indrelid = base.oid
  UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, NOT (base.written OR base.given)
    FROM base JOIN pg_catalog.pg_class c ON c.oid = base.oid WHERE c.relkind = 'p'  -- the key of its partitions
  UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid, true
    FROM base JOIN pg_catalog.pg_statistic_ext s ON s.stxrelid = base.oid
  UNION ALL SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, d.oid, false
    FROM base JOIN pg_catalog.pg_attrdef d ON d.adrelid = base.oid
    JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE base.written OR (base.given AND a.attgenerated <> '')
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid, false
    FROM base JOIN pg_catalog.pg_attribute a ON a.attrelid = base.oid JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE base.written AND t.typtype = 'd' AND NOT a.attisdropped
  UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, a.atttypid, false
    FROM base JOIN pg_catalog.pg_attribute a ON a.attrelid = base.oid JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE (base.written OR base.given) AND t.typtype IN ('r', 'm') AND NOT a.attisdropped
  UNION ALL SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, false
    FROM base JOIN pg_catalog.pg_trigger t ON t.tgrelid = base.oid
    WHERE base.fired AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
  UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, pg_catalog.unnest(%s::pg_catalog.oid[]), false
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
# No program that is let through, nor GoEx, makes extensions; a text that a trigger makes may (see _REACHED).
_EVENTS = """
SELECT evtfoid::pg_catalog.int8 FROM pg_catalog.pg_event_trigger WHERE evtenabled IN ('O', 'A')
  AND NOT coalesce(evttags <@ '{CREATE EXTENSION,ALTER EXTENSION,DROP EXTENSION}'::pg_catalog.text[], false)
"""
# What the catalog doesn't have, which functions may use with their owners' rights.
_UNSEEN = """
SELECT c.oid::pg_catalog.int8, c.relname FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND c.oid <> ALL(%s::pg_catalog.oid[])
"""
# What calls the server's own functions, which nothing notes.
_TEXTS = """
WITH base (oid) AS (SELECT pg_catalog.unnest(%s::pg_catalog.oid[])), fired (oid) AS (
  SELECT pg_catalog.unnest(%s::pg_catalog.oid[])
)
SELECT pg_catalog.pg_get_viewdef(c.oid) FROM base JOIN pg_catalog.pg_class c ON c.oid = base.oid
  WHERE c.relkind = 'v' OR (c.relkind = 'm' AND %s)
UNION ALL SELECT pg_catalog.concat(
    pg_catalog.pg_get_expr(p.polqual, p.polrelid), ' ', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
  FROM base JOIN pg_catalog.pg_policy p ON p.polrelid = base.oid JOIN pg_catalog.pg_class c ON c.oid = base.oid
  WHERE c.relrowsecurity
UNION ALL SELECT pg_catalog.pg_get_constraintdef(f.oid) FROM pg_catalog.pg_constraint f WHERE f.contypid <> 0
UNION ALL SELECT t.typdefault FROM pg_catalog.pg_type t WHERE t.typtype = 'd' AND t.typdefault IS NOT NULL
UNION ALL SELECT pg_catalog.pg_get_constraintdef(f.oid) FROM fired JOIN pg_catalog.pg_constraint f
  ON f.conrelid = fired.oid AND f.contype = 'c'
UNION ALL SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM fired JOIN pg_catalog.pg_attrdef d
  ON d.adrelid = fired.oid
UNION ALL SELECT pg_catalog.pg_get_ruledef(w.oid) FROM fired JOIN pg_catalog.pg_rewrite w
  ON w.ev_class = fired.oid AND w.ev_type <> '1'
UNION ALL SELECT pg_catalog.pg_get_triggerdef(t.oid) FROM fired JOIN pg_catalog.pg_trigger t
  ON t.tgrelid = fired.oid AND NOT t.tgisinternal
"""
# Foreign tables, of these relations, whose rows a program of the server's machine prints.
_PROGRAMS = """
SELECT c.relname FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_class c ON c.oid = f.ftrelid
  WHERE c.oid = ANY(%s::pg_catalog.oid[]) AND EXISTS (SELECT 1 FROM pg_catalog.unnest(f.ftoptions) o
    WHERE pg_catalog.starts_with(pg_catalog.lower(o), 'program='))
"""
# Functions that act and that GoEx's user may call, by name; by number those that run with another user's rights who may
# call such, or use the server's files: SECURITY DEFINER, and triggers of tables that foreign keys write.
_REACHED = """
WITH acts AS (
  SELECT p.oid, p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE NOT l.lanpltrusted AND (p.provolatile = 'v' OR l.lanname NOT IN ('c', 'internal'))
  AND (p.oid::pg_catalog.int8 >= 16384 OR (p.proacl IS NOT NULL AND p.proname ~ '^(lo_export$|pg_)'
    AND p.proname !~ '^pg_(ls|get|show|current|hba|ident)_'))  -- these look
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
    WHERE p.prosecdef AND l.lanname <> 'c'
  UNION SELECT t.tgfoid, c.relowner FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
    JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
    WHERE f.contype = 'f' AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))
)
SELECT proname::pg_catalog.text, 0::pg_catalog.int8 FROM able WHERE own AND proname IS NOT NULL
UNION SELECT NULL, lent.function::pg_catalog.int8 FROM lent JOIN able ON able.oid = lent.owner AND NOT able.own
ORDER BY 1, 2
"""
_TRUSTED = frozenset({"plpgsql", "sql", "internal", "plperl", "pltcl", "plv8"})  # they have SQL alone to reach out by
_SEEN = frozenset({"plpgsql", "sql", "internal"})  # whose texts say where they make and run another
_LOOKING = frozenset({  # extensions whose functions in C look at the server
    "pg_stat_statements", "pg_buffercache", "pgstattuple", "pageinspect", "pg_freespacemap", "pg_visibility",
    "pgrowlocks", "sslinfo", "old_snapshot",
})  # fmt: skip
_HARMLESS = COMPUTING | _LOOKING
_NO_FURTHER = frozenset({"lo", "refint", "tcn"})  # extensions whose functions in C do what any text may do by itself
_ACTING = r"lo_export|pg_file_\w+|pg_(?:terminate|cancel)_backend"
_SERVER = r"pg_(?:create|drop|reload|rotate|switch|promote|backup|start|stop|replication|stat_reset)\w*"
_EMITS = r'pg_logical_emit_message(?!"?\s*+\(\s*+true\b)'  # else it goes with the transaction
_OUTSIDE = re.compile(
    rf'(?i)\b(?:copy|dblink\w*|{_ACTING}|{_EMITS})\b|\b{_SERVER}"?\s*+(?:\(|--|/\*)|\bu&"|\bload\s*+\''
)
_CALLS = re.compile(rf"(?i)\b({_ACTING}|{_SERVER}|{_EMITS})\(")
_RUNS = re.compile(r"(?i)\b((?:query|table|schema|database|cursor)_to_xml\w*|ts_stat|ts_rewrite)\(")
_SPELLED = frozenset({"=", "<>", "<", "<=", ">", ">=", "~", "!~", "~~", "!~~", "~~*", "!~~*"})  # also IN, LIKE, CASE
_REFRESHES = re.compile(r"(?i)\brefresh\b")


def refuse_outside(link: Link, catalog: Catalog, program: Program, reaches: Iterable[Reach] = ()) -> None:
    """Raise Unsupported where the program, or what it brings about (`reaches`), may do something outside."""
    names = {use.table for one in program.statements for use in one.uses}
    _refuse(
        _called(link, catalog, names, tuple(reaches)),
        lambda: _reached(link, catalog),
        "Read the tables themselves." if program.reads_only else "Leave it to somebody with a backup.",
    )


def refuse_setting(link: Link, catalog: Catalog, tables: Iterable[str], writes: Iterable[Reach] = ()) -> None:
    """Raise Unsupported where setting recorded rows of these tables (by `writes`) may do something outside by now.
    Triggers of the tables are kept off, and each of their columns is given its value."""
    direct = tuple(writes)
    off = {reach.table for reach in direct}
    relations = {
        name: replace(one, triggers=()) if catalog.root(one).name in off else one
        for name, one in catalog.relations.items()
    }
    quiet = replace(catalog, relations=relations, by_oid={one.oid: one for one in relations.values()})
    found = _called(link, quiet, tables, tuple(closure(quiet, direct)), frozenset(direct), sets=True)
    step = "Have what calls that taken off, or set back to what it was when this ran; then try again."
    _refuse(found, lambda: _reached(link, catalog), step)


def _refuse(called: _Called, reached: Callable[[], str], step: str) -> None:
    for name in called.programs:
        raise _refused(f"the program of {name}", step)
    runs: dict[str, None] = {}  # what runs a text that can't be seen
    for text in called.texts:
        if (call := _CALLS.search(text)) is not None:
            raise _refused(call[1], step)
        runs |= dict.fromkeys(call[1] for call in _RUNS.finditer(text))
    for function in called.functions:
        if _acts(function):
            raise _refused(function.name, step)
        if _makes_texts(function):
            runs[function.name] = None
    if runs and (there := reached()):
        raise _refused(next(iter(runs)), step, f" (it runs SQL that it makes, and may reach {there})")


def _acts(function: Function) -> bool:
    """Whether it may act outside, by its own text; also where that can't be seen."""
    if function.language == "c":
        return not (function.volatility in "is" or function.extension in _HARMLESS or function.name in KNOWN_C)
    return function.language not in _TRUSTED or _OUTSIDE.search(without_comments(function.source)) is not None


def _makes_texts(function: Function) -> bool:
    if function.language == "c":
        return RUNS_TEXTS.fullmatch(function.name) is not None
    if function.extension:
        return False
    return function.language not in _SEEN or MAKES_TEXTS.search(without_comments(function.source)) is not None


def _reached(link: Link, catalog: Catalog) -> str:
    """Something that acts outside and that a text may name; "": nothing here does."""
    for name in sorted(catalog.far):
        return f"{name}, which another server keeps"
    rows = link.ask(_REACHED, list(KNOWN_C), sorted(_HARMLESS | _NO_FURTHER))
    for name, _ in rows:
        if name:
            return str(name)
    lent = {oid for _, oid in rows}
    for one in _called(link, catalog, (), (), lent=lent).functions if lent else ():
        if _acts(one) or _makes_texts(one):
            return f"{one.name}, which runs with another user's rights"
    return ""


def _functions(link: Link, catalog: Catalog, oids: Iterable[int]) -> Mapping[int, Function]:
    major = re.match(r"\d+", catalog.schema.version)
    return helpers.read(link, int(major[0]) if major else 0, (), sorted(oids)).by_oid


@dataclass(frozen=True, slots=True)
class _Called:
    """What may run: functions, the texts of what calls any, and foreign tables that run a program."""

    functions: list[Function]
    texts: list[str]
    programs: list[str]


def _called(
    link: Link,
    catalog: Catalog,
    names: Iterable[str],
    reaches: tuple[Reach, ...],
    given: frozenset[Reach] = frozenset(),
    *,
    sets: bool = False,
    lent: Iterable[int] | None = None,
) -> _Called:
    """What runs where these are read, and these reached (`given`: with each column's value). `sets`: with
    temporary tables. `lent`: only what these functions run, whose text doesn't say by which tables' triggers."""
    names = set(names)
    firing: list[Function] = []
    heads: list[str] = []  # what calls functions where rows are written
    reached: set[int] = set()
    written: set[int] = set()
    only_given: set[int] = set()
    found: dict[int, Function] = {one.oid: one for one in catalog.converts} if lent is None else {}
    for reach in reaches:
        names.add(reach.table)
        for _, trigger in fired(catalog, reach):
            heads.append(trigger.definition)
            firing.append(Function(0, trigger.function, trigger.language, "v", trigger.source, ""))
            found |= {one.oid: one for one in trigger.helpers}
        relation = catalog.relations.get(reach.table)
        for one in catalog.members(relation) if relation is not None else ():
            reached.add(one.oid)
            if reach.verb not in ("insert", "update", "alter") and not one.rules:
                continue
            (only_given if reach in given else written).add(one.oid)
            heads += [*one.rules, *(each.definition for each in one.checks)]
            heads += [each.default for each in one.columns if each.generated or reach not in given]
    roots = {oid for (oid,) in link.ask(_EVENTS)} if catalog.events and (reaches or sets) else set[int]()
    roots |= set(lent or ())
    watching = _functions(link, catalog, roots)
    found |= {oid: one for oid, one in watching.items() if oid in (lent or ()) or not one.extension}
    operators, casts, unseen = link.ask(_OPERATORS), link.ask(_CASTS), link.ask(_UNSEEN, sorted(catalog.by_oid))
    while True:
        sources = [without_comments(one.source) for one in (*firing, *found.values()) if one.language != "c"]
        said = "\n".join((*sources, *heads))
        refreshes = _REFRESHES.search(said) is not None
        others = unseen if lent is None else [*unseen, *((one.oid, one.plain) for one in catalog.relations.values())]
        hidden = {oid: name for oid, name in others if holds(said, name)}
        into = [oid for oid, name in hidden.items() if any(any(writes(text, name)) for text in (*sources, *heads))]
        beside = {oid for (oid,) in link.ask(_BASE, into, refreshes, True)}
        beside |= {oid for (oid,) in link.ask(_BASE, sorted(reached), False, False) if oid not in catalog.by_oid}
        base = [*(one.oid for one in _read(catalog, names)), *hidden, *beside]
        read = [oid for (oid,) in link.ask(_BASE, base, refreshes, False)]
        parts = sorted(written | beside), sorted(only_given), sorted(beside), sorted({*read, *written, *only_given})
        oids = {oid for (oid,) in link.ask(_CALLED, *parts, refreshes, sorted(found))}
        oids |= {function for sign, function in operators if (sources or heads) and (sign in _SPELLED or sign in said)}
        oids |= {function for (function,) in casts if sources}
        more = _functions(link, catalog, oids)
        named_there = named(catalog, said)
        if more.keys() <= found.keys() and named_there <= names:
            texts = [text for (text,) in link.ask(_TEXTS, read, sorted(beside), refreshes)]
            programs = [name for (name,) in link.ask(_PROGRAMS, read)]
            return _Called([*firing, *found.values()], [*texts, *heads], programs)
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


def _refused(name: str, step: str, how: str = "") -> Unsupported:
    said = f"This calls {name}, which may do something outside of the tables that nothing takes back{how}."
    return Unsupported(said, next_step=step)
