"""What a PostgreSQL database holds, read in one query: tables, keys, triggers, and what GoEx's user may do."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from policies.jsonvalue import JsonValue, canonical
from runtimes.sql.checking.functions import EXTENSIONS
from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table
from runtimes.sql.postgres import helpers
from runtimes.sql.postgres.connection import PUBLIC
from runtimes.sql.postgres.helpers import Function
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.relations import Catalog, Check, Foreign, Relation, Trigger, called
from runtimes.sql.postgres.schema_query import COMPOSITES, QUERY
from runtimes.sql.reads_through import ANY, closure

_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


@dataclass(slots=True)
class _Parts:
    """What belongs to one relation, collected."""

    key: tuple[str, ...] = ()
    unique: list[tuple[str, ...]] = field(default_factory=list)
    others: bool = False
    texts: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    keys: list[ForeignKey] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    computes: tuple[Function, ...] = ()
    judged: bool = False
    guards: list[str] = field(default_factory=list)
    judges: tuple[Function, ...] = ()
    recast: bool = False
    typed: bool = False
    composites: list[JsonValue] = field(default_factory=list)


def load(link: Link) -> Catalog:
    """Read it, in the transaction that there is."""
    found = json.loads(link.ask_again("goex_schema", QUERY)[0][0])
    path = _path(link, found["path"])
    shadows, operators = (
        sorted({name for schema, name in found[kind] or () if schema in path}) for kind in ("shadows", "operators")
    )
    relations = found["relations"] or []
    names = {row[0]: called(row[1], row[2]) for row in relations}
    usable = {row[0] for row in relations if row[-1]}
    parts = {oid: _Parts() for oid in names}
    for oid, primary, unique, immediate, partial, expressions, exclusion, valid, text, index, columns in (
        found["indexes"] or []
    ):
        mine = parts[oid]
        mine.texts.append(text)
        if not valid:  # never finished, but kept up: rows may break it that are there all the same
            mine.others = mine.judged = True
            continue
        mine.indexes.append(index)
        if primary:
            mine.key = tuple(columns)
        elif (unique or exclusion) and (partial or expressions or exclusion or not immediate):
            mine.others = True
        elif unique:
            mine.unique.append(tuple(columns))
    extended = {
        name: home for extension, home, name in found["extended"] or () if name in EXTENSIONS.get(extension, ())
    }
    foreign = []
    for oid, judged in found["nested"] or ():
        parts[oid].judged |= judged
    for oid, schema, name in found["guards"] or ():
        parts[oid].guards.append(called(schema, name))
    for oid, *attribute in link.ask(COMPOSITES) if found["nested"] else ():
        parts[oid].composites.append(attribute)
    for oid, kind, name, parent, on_delete, on_update, columns, parents, text, inherited, valid, comment in (
        found["constraints"] or []
    ):
        parts[oid].texts.append(f"{name} {text}")
        if kind == "c":
            parts[oid].checks.append(Check(name, text, valid, comment or ""))
        if kind != "f" or parent not in names:
            continue
        if parent in usable:
            parts[oid].keys.append(
                ForeignKey(
                    name=name,
                    columns=tuple(columns),
                    parent=names[parent],
                    parent_columns=tuple(parents),
                    on_delete=_ACTIONS.get(on_delete, "NO ACTION"),
                    on_update=_ACTIONS.get(on_update, "NO ACTION"),
                )
            )
        if not inherited:
            foreign.append(
                Foreign(name, names[oid], tuple(columns), names[parent], tuple(parents), on_delete, on_update, valid)
            )
    triggers = found["triggers"] or []
    computes: dict[int, list[int]] = {}
    judges: dict[int, list[int]] = {}
    for some, pairs in ((computes, found["computes"]), (judges, found["judges"])):
        for oid, function in pairs or []:
            some.setdefault(oid, []).append(function)
    casts = found["casts"] or ()
    converts = {function for _, function, _, _ in casts if function} | {*(found["domains"] or ())}
    for oid, _, text, _ in casts:
        if oid in parts:
            parts[oid].recast |= text
    everywhere = not all(made for *_, made in casts)
    typed = {*names} if everywhere else {*(found["typed"] or ()), *(oid for oid, *_ in casts)}
    for oid in typed & parts.keys():
        parts[oid].typed = True
    functions = helpers.read(
        link,
        int(re.match(r"\d+", found["version"])[0]),  # type: ignore[index]
        [text for row in triggers for text in (_condition(row[4]), row[7])],
        sorted({function for one in (*computes.values(), *judges.values()) for function in one} | converts),
    )
    for oid, name, bits, enabled, text, language, function, source, _definer, inherited in triggers:
        called_ = functions.reached((_condition(text), source))
        parts[oid].texts.append(f"{text} {enabled} {hashlib.sha256(source.encode()).hexdigest()}")
        parts[oid].triggers.append(Trigger(name, bits, enabled, text, language, function, source, inherited, called_))
    for oid, oids in computes.items():
        parts[oid].computes = functions.reached(oids=oids)
    for oid, oids in judges.items():
        parts[oid].judges = functions.reached(oids=oids)
    made = [_relation(row, names[row[0]], parts[row[0]]) for row in relations]
    by_name = {each.name: each for each in made}
    stands_on = _stands_on(found["beneath"] or [], found["opaque"] or [])
    tables = {
        each.name: _table(each, parts[each.oid], *stands_on.get(each.name, ((), ()))) for each in made if each.seen
    }
    digest = hashlib.sha256(
        canonical(
            [[each.name, each.definition] for each in made]
            + [["more", found["events"], shadows or None, operators or None, functions.digest()]]
            + [["path", *path] for _ in path[1:2]]
            + [["extended", name, home] for name, home in sorted(extended.items())]
            + [["reads", name, *under] for name, (under, _) in sorted(stands_on.items())]
            + [["parts", name, *some] for name, (_, some) in sorted(stands_on.items()) if some]
        )
    ).hexdigest()
    return Catalog(
        schema=Schema(
            dialect=Dialect.POSTGRESQL,
            version=found["version"],
            tables=tables,
            hash=digest,
            shadows=frozenset(shadows),
            extended=extended,
            notes=_notes(int(found["prepared"]), bool(found["temp"]), bool(found["events"])),
        ),
        relations=by_name,
        by_oid={each.oid: each for each in made},
        foreign=tuple(foreign),
        counts=found["track"] == "on",
        prepared=int(found["prepared"]),
        temporary=bool(found["temp"]),
        events=bool(found["events"]),
        far=frozenset(found["far"] or ()),
        path=path,
        shadows=frozenset(shadows),
        operators=frozenset(operators),
        converts=tuple(
            one for one in functions.reached(oids=sorted(converts)) if not (one.extension and one.volatility == "i")
        ),
    )


def _path(link: Link, configured: str | None) -> tuple[str, ...]:
    """The schemas in which functions of the database look for names where a role or the database says so; `public` is
    one of them, and the server's own are found before all of them."""
    if not configured:
        return ("public",)
    link.ask("SELECT pg_catalog.set_config('search_path', %s, true)", configured)
    names = link.ask("SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]")[0][0]
    link.do(f"SET LOCAL search_path = {PUBLIC}")
    return tuple(dict.fromkeys((*(name for name in names if not name.startswith("pg_")), "public")))


def _stands_on(edges: list[list[str]], opaque: list[list[str]]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """What reading a relation reads besides, also of relations that GoEx's user can't see; and what of that is there
    since it, or what it stands on, has children."""
    sides: dict[str, dict[str, list[str]]] = {
        "view": {called(*one): [ANY] for one in opaque},
        "child": {},
        "parent": {},
    }
    for way, schema, name, other_schema, other in edges:
        sides[way].setdefault(called(schema, name), []).append(called(other_schema, other))
    views, children, above = sides.values()
    beneath = {name: [*views.get(name, ()), *children.get(name, ())] for name in {*views, *children}}
    found = {}
    for name in {*beneath, *above}:
        read = closure(name, beneath, above)
        own = {*closure(name, views, above), *(one for each in read for one in views.get(each, ()))}
        found[name] = tuple(read), tuple(one for one in read if one not in own)
    return found


def _notes(prepared: int, temporary: bool, events: bool) -> tuple[str, ...]:
    said = [
        f"Changes can be held here (versioning): {prepared} prepared transactions are allowed at a time."
        if prepared
        else "Changes can't be held here (versioning): max_prepared_transactions is 0."
    ]
    if not temporary:
        said.append("Rows can't be set back here: GoEx's user may not make temporary tables (GRANT TEMPORARY).")
    if events:
        said.append("Event triggers watch this database: what needs triggers of GoEx's own can't be taken back.")
    return tuple(said)


def _condition(definition: str) -> str:
    """Of a trigger's definition what is before the function that it runs, so also its WHEN."""
    return definition.rpartition(" EXECUTE ")[0]


def _relation(row: list[Any], name: str, parts: _Parts) -> Relation:
    (
        oid,
        schema,
        plain,
        kind,
        persistence,
        partition,
        children,
        row_security,
        owned,
        privileges,
        some,
        parent,
        stands_on,
        rules,
        raw,
        usable,
    ) = row
    raw = raw or []
    columns = tuple(
        Column(
            name=column,
            type=type_,
            nullable=not required,
            generated=bool(generated),
            default=default or "",
            counter=bool(identity) or bool(sequence) or "nextval(" in (default or ""),
        )
        for column, type_, required, generated, identity, default, _collation, sequence in raw
    )
    own_rules = tuple(rule for rule in rules or () if kind not in "vm" or " AS\n    ON SELECT " not in rule)
    about = [kind, persistence, partition, children, row_security, raw, rules, sorted(parts.texts)]
    about += [*([sorted(parts.guards)] if parts.guards else []), *(["cast"] if parts.recast else [])]
    return Relation(
        oid=oid,
        schema=schema,
        plain=plain,
        name=name,
        kind=kind,
        persistence=persistence,
        partition=partition,
        parent=parent,
        stands_on=tuple(stands_on or ()),
        inherited=children,
        row_security=row_security,
        guards=tuple(parts.guards),
        judges=parts.judges,
        recast=parts.recast,
        typed=parts.typed,
        usable=usable,
        owned=owned,
        privileges=frozenset((privileges or "").split(",")) - {""},
        seen=bool(privileges) or some or owned,
        rules=own_rules,
        columns=columns,
        always=frozenset(column[0] for column in raw if column[4] == "a"),
        sequences=tuple(sorted({_sequence(column) for column in raw} - {""})),
        key=parts.key,
        unique=tuple(parts.unique),
        others_unique=parts.others,
        triggers=tuple(parts.triggers),
        checks=tuple(parts.checks),
        computes=parts.computes,
        judged=parts.judged,
        composites=hashlib.sha256(canonical(parts.composites)).hexdigest() if parts.composites else "",
        definition=hashlib.sha256(canonical(about)).hexdigest(),
    )


def _sequence(column: list[Any]) -> str:
    """The sequence that a column's default takes its next value from."""
    default, named = column[5] or "", column[7]
    if named:
        return str(named)
    if "nextval('" in default:
        return str(default.split("nextval('", 1)[1].split("'", 1)[0])
    return ""


def _table(relation: Relation, parts: _Parts, stands_on: tuple[str, ...], children: tuple[str, ...]) -> Table:
    return Table(
        name=relation.name,
        kind="table" if relation.kind in "rp" else "view" if relation.kind == "v" else "other",
        columns=relation.columns,
        key=relation.key,
        unique=relation.unique,
        foreign_keys=tuple(parts.keys),
        triggers=tuple(trigger.name for trigger in relation.triggers),
        stands_on=stands_on,
        parts=children,
        facts={"indexes": sorted(parts.indexes), "partition": relation.partition},
    )
