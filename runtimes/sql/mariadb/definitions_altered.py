"""An ALTER of any parts, taken back by one that is made of the difference between two definitions.

Rules: what is compared are the lines that the server writes, and one that isn't understood is refused. Which values the
ALTER loses or changes is said by the types of the columns before and after it: where every value stays as it is, undo
only looks for what has come since; else the table's rows are kept (`definitions_kept`).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.contract import Schema, Table
from runtimes.sql.mariadb import definitions_foreseen as foreseen
from runtimes.sql.mariadb import definitions_values
from runtimes.sql.mariadb.definitions_foreseen import shown
from runtimes.sql.mariadb.definitions_kept import names_one
from runtimes.sql.mariadb.definitions_values import Plain, Unread
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import Wire

_NAME = r"`(?:[^`]|``)*`"
_COLUMN = re.compile(rf"  (?P<name>{_NAME}) .*")
_KEY = re.compile(rf"  (?:PRIMARY KEY|(?:UNIQUE |FULLTEXT )?KEY (?P<name>{_NAME})) \((?P<columns>{_NAME}.*)")
_CHECK = re.compile(rf"  CONSTRAINT (?P<name>{_NAME}) CHECK .*")
_COMMENT = re.compile(r" COMMENT='(?:[^']|'')*'\Z")
_ACTIONS = (exp.ColumnDef, exp.Drop, exp.RenameColumn, exp.ModifyColumn, exp.AlterColumn, exp.AddConstraint)


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
    recounts: bool = False  # whether AUTO_INCREMENT comes back, whose value has to be added


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
                raise Unread  # partitions
            if column := _COLUMN.fullmatch(line):
                found.columns[_bare(column["name"])] = line
            elif _KEY.fullmatch(line):
                (found.texts if line.startswith("  FULLTEXT") else found.keys).append(line)
            elif _CHECK.fullmatch(line):
                found.checks.append(line)
            elif line.startswith(") "):
                found.options = line
            else:
                raise Unread
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
    except Unread:
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
    links = {_renamed_link(line, table.name, {new: old for old, new in names.items()}) for line in now.links}
    keys = {_called(line): _plainly(line) for line in was.keys if _plainly(line)}
    made = foreseen.generated(wire, table.name, keys) if links != set(was.links) else frozenset[str]()
    changes = _changes(was, now, names, table.name, made)
    if changes.keys_on(_needed(was, now, names, table, schema)) or changes.rewritten & linked_columns(table, schema):
        return None  # a foreign key may stand against it, or the server drop an index that it made for one
    values = definitions_values.values(before, after, actions, table, names, plain)
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
    expected = "\n".join([after.definition, *now.links])
    if values.keeps and foreseen.same(expected, own):
        raise Unsupported(
            f"{table.name} would be defined as before, so nobody could see whether that ran.",
            next_step="Use UPDATE for the values alone.",
        )
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
        expected=expected,
        keeps=values.keeps,
        fills=tuple(values.fills),
        dropped=bool(values.dropped),
        lost="" if values.keeps else _any_row(table.name, values.lost),
        unknown="" if values.keeps else _any_row(table.name, values.unknown),
        names=(table.name, *new, *changed) if new or changed else (),
        recounts=values.recounts,
    )


def _forth(between: _Parts, now: _Parts, names: Mapping[str, str], table: str) -> list[str]:
    """The clauses that lead from the definition between two steps of the undo to the one that it began with."""
    try:
        changes = _changes(now, between, {new: old for old, new in names.items()}, table)
    except Unread:
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
                raise Unread
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
            raise Unread  # the server counts those
        found += added
    return found


def _link(line: str) -> re.Match[str]:
    found = foreseen.LINK.fullmatch(line)
    if found is None:
        raise Unread
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
    found = {_first(_link(line)["columns"]) for line in stay}
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
        return any(one is None or _first(one["columns"]) in first for one in map(_KEY.fullmatch, self.keys))

    def clauses(self, fills: list[str]) -> tuple[list[str], list[str]]:
        """Those of one ALTER, and those that have to wait for the values of `fills`."""
        held = {quoted(name) for name in fills}
        waits = any(values and held & set(re.findall(_NAME, line)) for line, values in self.adds)
        adds = [f"ADD {line.strip()}" for line, _ in self.adds]
        behind = [*self.again, *adds]
        return [*self.drops, *self.columns, *([] if waits else behind)], behind if waits else []


def _changes(
    was: _Parts, now: _Parts, names: Mapping[str, str], table: str, made: frozenset[str] = frozenset()
) -> _Changes:
    """`made`: indexes that the server made for a foreign key. It makes another where one comes anew, and drops that."""
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
    links = {line: _renamed_link(line, table, back) for line in now.links}
    stays = _made_for([one for one in links.values() if one not in was.links], was.keys, made)
    if {_called(was.keys[at]) for at in stays} & {_called(line) for line in now.keys}:
        raise Unsupported(
            f"The server would replace an index of {table} that it made for a foreign key of these columns.",
            next_step=foreseen.BACKUP,
        )
    comes = _made_for([one for one in was.links if one not in links.values()], was.keys, made)
    _index_changes(found, was.keys, [_mapped_key(line, back) for line in now.keys], min(comes, default=len(was.keys)))
    _index_changes(found, was.texts, [_mapped_key(line, back) for line in now.texts], len(was.texts))
    for line in now.checks:
        if _called(line) not in map(_called, was.checks):
            found.drops.append(f"DROP CONSTRAINT {_called(line)}")
    found.adds += [(line, True) for line in was.checks if _called(line) not in map(_called, now.checks)]
    for line, mapped in links.items():
        if mapped not in was.links:
            found.drops.insert(0, f"DROP FOREIGN KEY {_link(line)['name']}")
            found.of_links.add(found.drops[0])
        else:
            found.links_kept.append(mapped)
    for line in was.links:
        if line not in links.values():
            if any(_link(line)["name"].lower() == _link(one)["name"].lower() for one in now.links):
                raise Unread
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


def _plainly(line: str) -> str:
    """The columns of an index that the server may have made for a foreign key; "": it has made none such."""
    found = re.fullmatch(rf"  KEY {_NAME} \(({_NAME}(?:, {_NAME})*)\)", line)
    return found[1] if found else ""


def _made_for(links: list[str], keys: list[str], made: frozenset[str]) -> list[int]:
    """The places of those indexes that lead with the columns of one of these foreign keys."""
    columns = [re.findall(_NAME, _link(line)["columns"]) for line in links]
    leading = [(at, re.findall(_NAME, _plainly(line))) for at, line in enumerate(keys) if _called(line) in made]
    return [at for at, held in leading if any(set(held[: len(one)]) == set(one) for one in columns)]


def _index_changes(found: _Changes, was: list[str], now: list[str], most: int) -> None:
    """Where the first differs, or at `most`, and all behind it: the server writes new ones behind the others."""
    same = 0
    while same < min(len(was), len(now), most) and was[same] == now[same]:
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


def _first(columns: str) -> str:
    """The first of the columns that an index or a foreign key names, in lower case. Raises Unread."""
    found = re.match(_NAME, columns)
    if found is None:
        raise Unread
    return _bare(found[0]).lower()


def _uncommented(clause: str) -> str:
    """A clause without its comment: of a character of four bytes the server shows a question mark everywhere else."""
    return re.sub(r" ?\bCOMMENT[ =]'(?:[^']|'')*'", "", clause)
