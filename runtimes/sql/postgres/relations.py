"""A PostgreSQL database at one moment, as the server's catalog tells it: tables, keys, triggers, privileges. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from policies.jsonvalue import JsonValue, canonical
from runtimes.sql.contract import Column, Schema, Verb
from runtimes.sql.postgres.helpers import Function

# Bits of pg_trigger.tgtype.
ROW, BEFORE, INSERT, DELETE, UPDATE, TRUNCATE = 1, 2, 4, 8, 16, 32
_CALLS = re.compile(r"\w\"?\(|\b(?:CURRENT_|LOCALTIME|SESSION_USER)")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger that somebody made (none of those that keep foreign keys)."""

    name: str
    events: int  # bits as above
    enabled: str  # O, A, R or D, as pg_trigger has it
    definition: str
    language: str
    function: str
    source: str
    inherited: bool
    helpers: tuple[Function, ...] = ()  # that it calls, and they call

    @property
    def fires(self) -> bool:
        return self.enabled in "OA"

    @property
    def texts(self) -> tuple[str, ...]:
        """All that runs when it fires."""
        return (self.source, *(one.source for one in self.helpers))


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK. One that isn't `valid` (NOT VALID) holds for what is written from then on alone."""

    name: str
    definition: str
    valid: bool
    comment: str = ""

    @property
    def steady(self) -> bool:
        """Whether what it says of a row can't become another: it calls nothing, and no clock."""
        return not calls(self.definition)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A foreign key, whole."""

    name: str
    child: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str  # a letter of pg_constraint
    on_update: str
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Relation:
    """One table as undo has to know it. `key` identifies a row; (): only all of its columns together do."""

    oid: int
    schema: str
    plain: str
    name: str  # as in `Schema.tables`
    kind: str  # pg_class.relkind
    persistence: str
    partition: bool
    parent: int | None
    stands_on: tuple[int, ...]  # of a view: the tables and views that its query names
    inherited: bool  # others inherit from it (of a partitioned table: its partitions)
    row_security: bool
    guards: tuple[str, ...]  # what its row security policies read
    judges: tuple[Function, ...]  # that these call, and they call
    recast: bool  # somebody made a cast between its row type and text
    typed: bool  # a column's type isn't the server's own, or somebody made a cast that its columns may meet
    usable: bool  # GoEx's user may use its schema; else it is known since a view leads to it
    owned: bool
    privileges: frozenset[str]
    seen: bool
    rules: tuple[str, ...]
    columns: tuple[Column, ...]
    always: frozenset[str]  # GENERATED ALWAYS AS IDENTITY
    sequences: tuple[str, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    others_unique: bool  # a unique index beside the key whose columns aren't all listed in `unique`
    triggers: tuple[Trigger, ...]
    checks: tuple[Check, ...]
    computes: tuple[Function, ...]  # that its defaults, CHECKs, rules and what else computes call, and they call
    composites: str  # a digest of the fields of row types that its columns hold; "": none do
    judged: bool  # a column's type (a domain, a row type) may have conditions of its own
    definition: str  # a digest of columns, constraints, indexes, triggers and rules

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.plain)}"

    @property
    def shape(self) -> str:
        """What a row's text can be read back by."""
        columns: list[JsonValue] = [[column.name, column.type] for column in self.columns]
        return hashlib.sha256(canonical([*columns, *([self.composites] if self.composites else [])])).hexdigest()

    @property
    def firing(self) -> tuple[Trigger, ...]:
        return tuple(trigger for trigger in self.triggers if trigger.fires)

    @property
    def mendable(self) -> bool:
        """Whether a constraint of it alone can be taken away and made again, just as it was."""
        return self.owned and self.kind == "r" and not self.inherited and self.parent is None

    def computing(self, verb: Verb) -> tuple[Function, ...]:
        """The functions that may run where that is done to it, beside triggers'; a rule may stand for anything."""
        return self.computes if verb in ("insert", "update", "alter") or self.rules else ()

    def crowded(self, changed: Iterable[str]) -> bool:
        """Whether an UPDATE of those columns may fail for the order in which it comes to its rows (a value of a unique
        index that another of them still has), or since the server itself gives one of them its value."""
        changed = set(changed)
        unique = {name for columns in self.unique for name in columns}
        computed = {column.name for column in self.columns if column.generated}  # from columns that may be among those
        return bool(changed) and (self.others_unique or bool((unique | self.always) & (changed | computed)))

    def may(self, *privileges: str) -> bool:
        return self.owned or self.privileges.issuperset(privileges)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The whole database at one moment."""

    schema: Schema
    relations: Mapping[str, Relation]
    by_oid: Mapping[int, Relation]
    foreign: tuple[Foreign, ...]
    counts: bool  # track_counts
    prepared: int  # max_prepared_transactions
    temporary: bool  # temporary tables may be made
    events: bool  # event triggers watch definitions
    far: frozenset[
        str
    ]  # names of tables that other servers keep, and of what leads there, also where GoEx's user can't see
    path: tuple[str, ...]  # the schemas in which triggers look for names that stand there without one
    shadows: frozenset[str]  # functions in these that have the name of one of the server's own
    operators: frozenset[str]  # operators that somebody made there
    # That casts and domains call, which any expression may hold unseen, and they call; what extensions compute isn't.
    converts: tuple[Function, ...]

    def root(self, relation: Relation) -> Relation:
        """The partitioned table that a partition is of; else the table itself."""
        while relation.partition and relation.parent is not None and relation.parent in self.by_oid:
            relation = self.by_oid[relation.parent]
        return relation

    def members(self, relation: Relation) -> tuple[Relation, ...]:
        """A table and its partitions."""
        if relation.kind != "p":
            return (relation,)
        return (relation, *(one for one in self.relations.values() if one.partition and self.root(one) is relation))

    def firing(self, relation: Relation) -> tuple[tuple[Relation, Trigger], ...]:
        """The triggers that fire where a table is written, each once: a partition may have its own."""
        return tuple(
            (one, trigger)
            for one in self.members(relation)
            for trigger in one.firing
            if one is relation or not trigger.inherited
        )

    def pointing_to(self, name: str) -> tuple[Foreign, ...]:
        return tuple(each for each in self.foreign if each.parent == name)


def calls(expression: str) -> bool:
    """Whether an expression, as the server writes it, calls a function or looks at a clock: it may say something else
    of the same row another time."""
    return _CALLS.search(expression) is not None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string literal; standard_conforming_strings is on."""
    return "'" + text.replace("'", "''") + "'"


def called(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"
