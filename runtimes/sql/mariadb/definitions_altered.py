"""An ALTER of any parts, taken back by one that is made of the difference between two definitions.

Rules: what is compared are the lines that the server writes, and one that isn't understood is refused. Which values the
ALTER loses or changes is said by the types of the columns before and after it: where every value stays as it is, undo
only looks for what has come since; else the table's rows are kept (`definitions_kept`).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.contract import Schema, Table
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb.column_room import beyond
from runtimes.sql.mariadb.definitions_foreseen import Seen, shown
from runtimes.sql.mariadb.definitions_kept import names_one
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import Wire

Plain = Callable[[exp.ColumnDef, Table], bool]
_NAME = r"`(?:[^`]|``)*`"
_COLUMN = re.compile(rf"  (?P<name>{_NAME}) .*")
_KEY = re.compile(rf"  (?:PRIMARY KEY|(?:UNIQUE |FULLTEXT )?KEY (?P<name>{_NAME})) \((?P<columns>{_NAME}.*)")
_CHECK = re.compile(rf"  CONSTRAINT (?P<name>{_NAME}) CHECK .*")
_COMMENT = re.compile(r" COMMENT='(?:[^']|'')*'\Z")
_ACTIONS = (exp.ColumnDef, exp.Drop, exp.RenameColumn, exp.ModifyColumn, exp.AlterColumn, exp.AddConstraint)
# What a column may be filled with meanwhile: the same at each time (`definitions_kept` stops the clock).
_STEADY = re.compile(r"(?:NULL|[bx]?'.*'|-?[\d.]+(?:e[+-]?\d+)?|current_timestamp\(\d?\))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverse:
    """How an ALTER is taken back: `undo`, then the values of `fills` where they aren't as before, then `late`."""

    undo: str
    late: str = ""
    tried: tuple[str, str]  # the same of a copy, which has no foreign keys
    between: str = ""  # the definition that `undo` leaves, where there is a `late`
    forth: str = ""  # what leads from there to what the ALTER left, where the rest doesn't work
    expected: str  # the one that the ALTER leaves
    keeps: bool = False  # whether the rows have to be kept
    fills: tuple[str, ...] = ()  # columns whose values may be others once `undo` has run
    dropped: bool = False  # and surely are
    lost: str = ""  # as of `Definition`
    unknown: str = ""
    names: tuple[str, ...] = ()


class _Unread(Exception):
    """A definition that isn't understood."""


@dataclass(slots=True)
class _Parts:
    """A definition, taken apart into its lines."""

    columns: dict[str, str] = field(default_factory=dict)  # by name
    keys: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # full-text indexes, which stand behind the others
    checks: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # foreign keys
    options: str = ""

    @classmethod
    def of(cls, definition: str) -> _Parts:
        found = cls()
        links, lines = foreseen.parted(definition)
        found.links = links
        for line in lines[1:]:
            if found.options:
                raise _Unread  # partitions
            if column := _COLUMN.fullmatch(line):
                found.columns[_bare(column["name"])] = line
            elif _KEY.fullmatch(line):
                (found.texts if line.startswith("  FULLTEXT") else found.keys).append(line)
            elif _CHECK.fullmatch(line):
                found.checks.append(line)
            elif line.startswith(") "):
                found.options = line
            else:
                raise _Unread
        return found


def inverse(
    wire: Wire, tree: exp.Expr, table: Table, schema: Schema, plain: Plain, written: frozenset[str] = frozenset()
) -> Inverse | None:
    """How an ALTER, or an index's CREATE or DROP, is taken back; None: it can't be. `plain` says of a new column
    whether every row gets one value, and the same one that DEFAULT() gives later. `written`: columns that an UPDATE
    behind it writes. Raises Unsupported."""
    actions: list[exp.Expr] = tree.args.get("actions") or [] if isinstance(tree, exp.Alter) else []
    options: list[exp.Expr] = tree.args.get("options") or [] if isinstance(tree, exp.Alter) else []
    if any(not isinstance(one, _ACTIONS) for one in actions):
        return None
    if any(not isinstance(one, exp.SchemaCommentProperty) for one in options):
        return None
    try:
        return _inverse(wire, tree, actions, table, schema, plain, written)
    except _Unread:
        return None


def _inverse(
    wire: Wire,
    tree: exp.Expr,
    actions: list[exp.Expr],
    table: Table,
    schema: Schema,
    plain: Plain,
    written: frozenset[str],
) -> Inverse | None:
    own = shown(wire, table.name)
    was = _Parts.of(own)
    before, after = foreseen.seen(wire, tree, table.name)
    now = _Parts.of(after.definition)
    names = _surviving(actions, was, now)
    now.links = _links_after(actions, was, now, names, table, schema)
    renamed = {name for pair in names.items() if pair[0] != pair[1] for name in pair}
    for _, _, trigger, body, _ in table.facts["triggers"] if renamed else ():
        if names_one(str(body), renamed):
            raise Unsupported(
                f"The trigger {trigger} of {table.name} names a column that is renamed, and would go on doing so.",
                next_step="Drop the trigger first, and make it anew afterwards.",
            )
    changes = _changes(was, now, names, table.name)
    if changes.keys_on(_needed(was, now, names, table, schema)) or changes.rewritten & linked_columns(table, schema):
        return None  # a foreign key may stand against it, or the server drop an index that it made for one
    values = _values(before, after, actions, table, names, plain)
    if written:
        values.write(before, names, written)
    undo, late = changes.clauses(values.fills)
    steps = [one for one in (undo, late) if one]
    if values.refused or not steps or any("?" in _uncommented(one) for step in steps for one in step):
        return None
    alters = [f"ALTER TABLE {quoted(table.name)} {', '.join(one)}" for one in steps]
    first, second = (
        _alter(table.name, [clause for clause in one if clause not in changes.of_links]) for one in (undo, late)
    )
    back = foreseen.seen(wire, tree, table.name, [first, second])
    if not foreseen.same("\n".join([back[-1].definition, *was.links]), own):
        raise foreseen.not_as_it_was(table.name)
    between = "\n".join([back[2].definition, *changes.links_kept]) if late else own
    forth = _forth(_Parts.of(between), now, names, table.name) if values.fills else []
    if forth:
        plainly = [clause for clause in forth if "FOREIGN KEY" not in clause]
        again = foreseen.seen(wire, tree, table.name, [first, _alter(table.name, plainly)])
        forth = forth if again[-1].definition == after.definition else []
    new = [*(name for name in now.columns if name not in was.columns), *changes.new_indexes]
    changed = [names[name] for name in values.changed if names[name] in was.columns]
    return Inverse(
        undo=alters[0],
        late=alters[1] if late else "",
        tried=(first, second),
        between=between if late else "",
        forth=_alter(table.name, forth),
        expected="\n".join([after.definition, *now.links]),
        keeps=values.keeps,
        fills=tuple(values.fills),
        dropped=bool(values.dropped),
        lost="" if values.keeps else _any_row(table.name, values.lost),
        unknown="" if values.keeps else _any_row(table.name, values.unknown),
        names=(table.name, *new, *changed) if new or changed else (),
    )


def _forth(between: _Parts, now: _Parts, names: Mapping[str, str], table: str) -> list[str]:
    """The clauses that lead from the definition between two steps of the undo to the one that it began with."""
    try:
        changes = _changes(now, between, {new: old for old, new in names.items()}, table)
    except _Unread:
        return []
    return changes.clauses([])[0]


def _alter(table: str, clauses: list[str]) -> str:
    return f"ALTER TABLE {quoted(table)} {', '.join(clauses)}" if clauses else ""


def _any_row(table: str, conditions: Sequence[str]) -> str:
    return f"SELECT 1 FROM {quoted(table)} WHERE {' OR '.join(conditions)} LIMIT 1" if conditions else ""  # noqa: S608


# ---- what the ALTER leaves


def _surviving(actions: list[exp.Expr], was: _Parts, now: _Parts) -> dict[str, str]:
    """The columns that are still there, by what they were called, each with its new name."""
    dropped: set[str] = set()
    renames: dict[str, str] = {}
    for action in actions:
        if isinstance(action, exp.Drop) and str(action.args.get("kind")).upper() == "COLUMN":
            dropped |= {one.name.lower() for one in action.args["tables"]}
        elif isinstance(action, exp.RenameColumn):
            renames[action.this.name.lower()] = action.args["to"].name
        elif isinstance(action, exp.ModifyColumn) and action.args.get("rename_from") is not None:
            renames[action.args["rename_from"].name.lower()] = action.this.name
    there = {name.lower(): name for name in now.columns}
    found: dict[str, str] = {}
    for name in was.columns:
        if name.lower() not in dropped:
            new = there.get(renames.get(name.lower(), name).lower())
            if new is None or new in found.values():
                raise _Unread
            found[name] = new
    return found


def _links_after(
    actions: list[exp.Expr], was: _Parts, now: _Parts, names: Mapping[str, str], table: Table, schema: Schema
) -> list[str]:
    """The lines of its foreign keys, which no copy has."""
    gone = {
        one.name.lower()
        for action in actions
        if isinstance(action, exp.Drop) and str(action.args.get("kind")).upper() in ("FOREIGN KEY", "CONSTRAINT")
        for one in action.args["tables"]
    }
    kept = [line for line in was.links if _bare(_link(line)["name"]).lower() not in gone]
    found = [_renamed_link(line, table.name, names) for line in kept]
    for action in actions:
        nodes = action.expressions if isinstance(action, exp.AddConstraint) else [action]
        if not any(node.find(exp.Reference) for node in nodes):
            continue
        added = foreseen.foreign_keys(nodes, table.name, list(now.columns), schema)
        numbered = f"{table.name}_ibfk_".lower()
        if not added or any(_bare(_link(line)["name"]).lower().startswith(numbered) for line in (*added, *found)):
            raise _Unread  # the server counts those
        found += added
    return found


def _link(line: str) -> re.Match[str]:
    found = foreseen.LINK.fullmatch(line)
    if found is None:
        raise _Unread
    return found


def _renamed_link(line: str, table: str, names: Mapping[str, str]) -> str:
    found = _link(line)
    parents = _mapped(found["parents"], names) if found["parent"] == quoted(table) else found["parents"]
    return foreseen.link(found["name"], _mapped(found["columns"], names), found["parent"], parents, found["rest"])


def _mapped(text: str, names: Mapping[str, str]) -> str:
    """A text with other names for the columns in it."""
    return re.sub(_NAME, lambda one: quoted(names.get(_bare(one[0]), _bare(one[0]))), text)


def _needed(was: _Parts, now: _Parts, names: Mapping[str, str], table: Table, schema: Schema) -> set[str]:
    """The columns that an index has to lead with for the foreign keys that stay, and those that point here."""
    back = {new: old for old, new in names.items()}
    stay = set(was.links) & {_renamed_link(line, table.name, back) for line in now.links}
    found = {_bare(re.match(_NAME, _link(line)["columns"])[0]).lower() for line in stay}  # type: ignore[index]
    keys = [key for one in schema.tables.values() for key in one.foreign_keys]
    return found | {key.parent_columns[0].lower() for key in keys if key.parent.lower() == table.name.lower()}


def linked_columns(table: Table, schema: Schema) -> set[str]:
    """The columns of its foreign keys, and those that others' point to, in lower case."""
    keys = [key for one in schema.tables.values() for key in one.foreign_keys]
    found = {column.lower() for key in table.foreign_keys for column in key.columns}
    parents = [key for key in keys if key.parent.lower() == table.name.lower()]
    return found | {column.lower() for key in parents for column in key.parent_columns}


# ---- the difference


@dataclass(slots=True)
class _Changes:
    """What makes the definition after it the one before, as clauses."""

    columns: list[str] = field(default_factory=list)
    drops: list[str] = field(default_factory=list)  # of indexes, checks and foreign keys
    again: list[str] = field(default_factory=list)  # of indexes that come back at once, behind others
    adds: list[tuple[str, bool]] = field(default_factory=list)  # and whether it looks at values
    of_links: set[str] = field(default_factory=set)  # those that are about foreign keys
    keys: list[str] = field(default_factory=list)  # lines of indexes that come or go
    rewritten: set[str] = field(default_factory=set)  # columns that are written down anew, in lower case
    links_kept: list[str] = field(default_factory=list)
    new_indexes: list[str] = field(default_factory=list)

    def keys_on(self, first: set[str]) -> bool:
        """Whether an index comes or goes that leads with one of those columns."""
        leading = [re.match(_NAME, str(_KEY.fullmatch(line)["columns"])) for line in self.keys]  # type: ignore[index]
        return any(_bare(one[0]).lower() in first for one in leading if one is not None)

    def clauses(self, fills: list[str]) -> tuple[list[str], list[str]]:
        """Those of one ALTER, and those that have to wait for the values of `fills`."""
        held = {quoted(name) for name in fills}
        waits = any(values and held & set(re.findall(_NAME, line)) for line, values in self.adds)
        adds = [f"ADD {line.strip()}" for line, _ in self.adds]
        behind = [*self.again, *adds]
        return [*self.drops, *self.columns, *([] if waits else behind)], behind if waits else []


def _changes(was: _Parts, now: _Parts, names: Mapping[str, str], table: str) -> _Changes:
    found, back = _Changes(), {new: old for old, new in names.items()}
    moved = _moved([name for name in was.columns if name in names], [back[one] for one in now.columns if one in back])
    at = " FIRST"
    for name, line in was.columns.items():
        new = names.get(name)
        if new is None:
            found.columns.append(f"ADD COLUMN {line.strip()}{at}")
        elif name in moved or _mapped(now.columns[new], back) != line:
            found.columns.append(f"CHANGE COLUMN {quoted(new)} {line.strip()}{at if name in moved else ''}")
            found.rewritten.add(name.lower())
        elif new != name:
            found.columns.append(f"RENAME COLUMN {quoted(new)} TO {quoted(name)}")
        at = f" AFTER {quoted(name)}"
    found.columns = [f"DROP COLUMN {quoted(name)}" for name in now.columns if name not in back] + found.columns
    for old, new_ones in ((was.keys, now.keys), (was.texts, now.texts)):
        _index_changes(found, old, [_mapped_key(line, back) for line in new_ones])
    for line in now.checks:
        if _called(line) not in map(_called, was.checks):
            found.drops.append(f"DROP CONSTRAINT {_called(line)}")
    found.adds += [(line, True) for line in was.checks if _called(line) not in map(_called, now.checks)]
    links = {line: _renamed_link(line, table, back) for line in now.links}
    for line, mapped in links.items():
        if mapped not in was.links:
            found.drops.insert(0, f"DROP FOREIGN KEY {_link(line)['name']}")
            found.of_links.add(found.drops[0])
        else:
            found.links_kept.append(mapped)
    for line in was.links:
        if line not in links.values():
            if any(_link(line)["name"].lower() == _link(one)["name"].lower() for one in now.links):
                raise _Unread
            found.adds.append((line, True))
            found.of_links.add(f"ADD {line.strip()}")
    if now.options != was.options:
        found.columns.append(_options(was.options, now.options))
    return found


def _options(was: str, now: str) -> str:
    """The clause that makes a definition's options those before: the comment alone, where only that differs."""
    comment, comment_now = _COMMENT.search(was), _COMMENT.search(now)
    said = comment[0].strip() if comment else "COMMENT=''" if comment_now else ""
    return said if _COMMENT.sub("", was) == _COMMENT.sub("", now) else f"{_COMMENT.sub('', was)[2:]} {said}".strip()


def _moved(was: list[str], now: list[str]) -> set[str]:
    """The fewest of them that have to change their place for one order to become the other."""
    ends: list[list[str]] = []  # of each length, the row of columns in order that ends earliest
    place = {name: at for at, name in enumerate(was)}
    for name in now:
        at = bisect.bisect_left([place[row[-1]] for row in ends], place[name])
        ends[at : at + 1] = [[*(ends[at - 1] if at else []), name]]
    return set(was) - set(ends[-1] if ends else [])


def _index_changes(found: _Changes, was: list[str], now: list[str]) -> None:
    """Where the first differs, and all behind it: the server writes new ones behind the others."""
    same = 0
    while same < min(len(was), len(now)) and was[same] == now[same]:
        same += 1
    called, called_now = {_called(line) for line in was}, {_called(line) for line in now}
    for line in now[same:]:
        drop = f"DROP INDEX {_called(line)}" if _called(line) else "DROP PRIMARY KEY"
        (found.again if _called(line) in called else found.drops).append(drop)
    found.adds += [(line, line.startswith(("  UNIQUE", "  PRIMARY"))) for line in was[same:]]
    # What comes back at once, or as another, is in no foreign key's way.
    found.keys += [line for line in (*was, *now) if _called(line) in called ^ called_now]
    found.new_indexes += [_bare(_called(line)) for line in now if line not in was and _called(line)]


def _called(line: str) -> str:
    found = _KEY.fullmatch(line) or _CHECK.fullmatch(line)
    return (found["name"] if found is not None else "") or ""


def _mapped_key(line: str, names: Mapping[str, str]) -> str:
    """An index's line with other names for its columns; its own and what is said of it stay."""
    start = line.index("(")
    depth, end = 0, len(line)
    for one in re.finditer(rf"{_NAME}|[()]", line[start:]):
        depth += (one[0] == "(") - (one[0] == ")")
        if not depth:
            end = start + one.end()
            break
    return line[:start] + _mapped(line[start:end], names) + line[end:]


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`")


def _uncommented(clause: str) -> str:
    """A clause without its comment: of a character of four bytes the server shows a question mark everywhere else."""
    return re.sub(r" ?\bCOMMENT[ =]'(?:[^']|'')*'", "", clause)


# ---- the values


@dataclass(slots=True)
class _Values:
    """What becomes of them."""

    keeps: bool = False
    refused: bool = False
    fills: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # columns that may hold more than before
    dropped: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # conditions for rows that undo would change
    unknown: list[str] = field(default_factory=list)  # and that it couldn't put back

    def write(self, before: Seen, names: Mapping[str, str], written: frozenset[str]) -> None:
        """Take in that these columns are written, too."""
        self.keeps = True
        held = {name.lower() for name in written}
        for name, new in names.items():
            made = "GENERATED" in before.columns[name][3]
            if new.lower() in held and not made and name not in self.fills:
                self.fills.append(name)
                self.dropped.append(name)


def _values(
    before: Seen, after: Seen, actions: list[exp.Expr], table: Table, names: Mapping[str, str], plain: Plain
) -> _Values:
    found = _Values()
    for name, (kind, collation, nullable, extra) in before.columns.items():
        made, new = "GENERATED" in extra, names.get(name)
        if new is None:
            if not made:
                found.keeps = True
                found.dropped.append(name)
                found.fills.append(name)
                column = next(one for one in table.columns if one.name == name)
                found.refused = found.refused or _STEADY.fullmatch(column.default) is None
            continue
        kind_after, collation_after, nullable_after, extra_after = after.columns[new]
        if made or "GENERATED" in extra_after:
            found.keeps = found.keeps or not made or "GENERATED" not in extra_after
            found.fills += [] if made else [name]
            continue
        if (kind, collation, nullable) == (kind_after, collation_after, nullable_after):
            continue
        found.changed.append(name)
        room = beyond(kind, kind_after, quoted(new)) if collation == collation_after else ""
        other = (kind, collation) != (kind_after, collation_after)
        if (other and not room) or nullable > nullable_after:
            found.keeps = True
            found.fills.append(name)
            continue
        found.lost += [room] if kind != kind_after else []
        found.lost += [f"{quoted(new)} IS NULL"] if nullable != nullable_after else []
        if kind.lower().startswith("enum(") and kind != kind_after:
            found.unknown.append(beyond(kind, kind_after, quoted(name)))
    _added_values(found, actions, table, set(after.columns) - set(names.values()), plain)
    return found


def _added_values(found: _Values, actions: list[exp.Expr], table: Table, new: set[str], plain: Plain) -> None:
    defined = {one.name.lower(): one for one in actions if isinstance(one, exp.ColumnDef)}
    for name in sorted(new):
        node = defined.get(name.lower())
        if node is None:
            raise _Unread
        if plain(node, table):
            column = quoted(name)
            # By value and by every byte: a collation may call different texts the same, and bytes alone round a float.
            same = f"{column} <=> DEFAULT({column}) AND CAST({column} AS BINARY) <=> CAST(DEFAULT({column}) AS BINARY)"
            found.lost.append(f"NOT ({same})")
            continue
        found.keeps = True
        defaults = node.find_all(exp.DefaultColumnConstraint)
        moment = "timestamp" in str(node.args.get("kind")).lower()
        if moment or any(not isinstance(one.this, exp.Literal | exp.Null | exp.Boolean) for one in defaults):
            found.refused = True  # another value at each time
