"""The definition that a statement is going to leave, as SHOW CREATE TABLE will write it, found before it runs.

Rules: nothing of this is a guess that could be taken for the truth: it is compared to the letter with what stands, so
what was foreseen otherwise than the server does it is a definition that nothing equals. Columns and indexes are seen on
an empty temporary copy. Foreign keys, which no temporary table has, are written here. A view has no temporary kind: one
is made under another name and dropped again, and that only where somebody has to know what became of the first.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from policies.errors import GoexError, Unsupported
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Schema
from runtimes.sql.mariadb import errors
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.wire import ServerError, Wire

COPY = "goex_try"
BACKUP = "Leave it to somebody with a backup."
_MISSING = 1146
_COUNTER = re.compile(r"\A(\w+) AUTO_INCREMENT=(\d+)")  # behind ") ENGINE="
_OPTIONS = "\n) ENGINE="
_NAME = r"`(?:[^`]|``)*`"
LINK = re.compile(
    rf"  CONSTRAINT (?P<name>{_NAME}) FOREIGN KEY \((?P<columns>{_NAME}(?:, {_NAME})*)\)"
    rf" REFERENCES (?P<parent>{_NAME}) \((?P<parents>{_NAME}(?:, {_NAME})*)\)(?P<rest>.*)"
)
_MYISAM = "\n) ENGINE=MyISAM"
_FOREIGN_KEY = re.compile(rf"  CONSTRAINT {_NAME} FOREIGN KEY ")


class NotText(Unsupported):
    """A definition that holds bytes that aren't text: a default of a column of bytes."""


def shown(wire: Wire, name: str, *, counts: bool = False) -> str:
    """The definition as the server writes it, with the value of AUTO_INCREMENT where that `counts`; "": there is none.
    Raises NotText."""
    try:
        ((_, written, *_),) = wire.undecoded(f"SHOW CREATE TABLE {quoted(name)}")
    except ServerError as error:
        if error.number == _MISSING:
            return ""
        raise
    try:
        return written.decode() if counts else uncounted(written.decode())
    except UnicodeDecodeError:
        raise NotText(f"{name} has a default that isn't text.", next_step=BACKUP) from None


def uncounted(definition: str) -> str:
    """A definition without the value of AUTO_INCREMENT; a default or a comment may have such words, too."""
    lines, between, options = definition.rpartition(_OPTIONS)
    return lines + between + _COUNTER.sub(r"\1", options)


def counter(wire: Wire, table: str) -> str:
    """The option that sets AUTO_INCREMENT to what it is now."""
    found = _COUNTER.match(shown(wire, table, counts=True).rpartition(_OPTIONS)[2])
    return f"AUTO_INCREMENT = {found[2] if found else 1}"


def same(one: str, other: str) -> bool:
    """Whether two definitions are one; the order of foreign keys, which the server chooses, says nothing."""
    return bool(one) == bool(other) and parted(one) == parted(other)


def parted(definition: str) -> tuple[list[str], list[str]]:
    """The lines of a definition that are foreign keys, and the others, without the commas between them."""
    lines = [line.removesuffix(",") for line in definition.split("\n")]
    keys = [line for line in lines if _FOREIGN_KEY.match(line)]
    return sorted(keys), [line for line in lines if line not in keys]


# ---- on an empty copy


def tried(wire: Wire, tree: exp.Expr, table: str, undo: str) -> str:
    """Run a statement and what takes it back on an empty copy, and compare: the definition in between, with the table's
    foreign keys. Raises Unsupported."""
    with copied(wire, table, tree):
        before = shown(wire, COPY)
        indexes = _full_text(shown(wire, table)) if not _full_text(before) else []
        stands = parted(_with_full_text(_of_table(before, table), indexes))[1] == parted(shown(wire, table))[1]
        wire.run(write(of_copy(tree, table), Dialect.MARIADB))
        # MyISAM has shorter keys than InnoDB, and only warns.
        stands = stands and not (_MYISAM in before and wire.rows("SHOW WARNINGS"))
        between = shown(wire, COPY)
        wire.run(on_copy(undo, table))
        back = shown(wire, COPY) == before
    if not back or not stands:
        raise not_as_it_was(table)
    keys, _ = parted(shown(wire, table))
    action = tree.args["actions"][0] if isinstance(tree, exp.Alter) else None
    if isinstance(action, exp.RenameColumn):
        keys = [_with_column(line, table, action.this.name, action.args["to"].name) for line in keys]
    return "\n".join([_with_full_text(_of_table(between, table), indexes), *keys])


@dataclass(frozen=True, slots=True)
class Seen:
    """What a copy was at one moment: its definition as the table's own would be, without foreign keys, and of each
    column its type, collation, nullability, and the rest that SHOW COLUMNS calls "extra"."""

    definition: str
    columns: dict[str, tuple[str, str, str, str]]


def seen(wire: Wire, tree: exp.Expr, table: str, undo: Sequence[str] = ()) -> list[Seen]:
    """Run a statement, and the ones that take it back, on an empty copy: what it is before, between, and after each.
    Raises Unsupported, also where the copy isn't defined as its table."""
    with copied(wire, table, tree):
        before, own = shown(wire, COPY), shown(wire, table)
        indexes = _full_text(own) if not _full_text(before) else []
        stands = parted(_with_full_text(_of_table(before, table), indexes))[1] == parted(own)[1]
        found = [_seen(wire, table, indexes)]
        for text in (run_on_copy(tree, table, own), *(on_copy(one, table) for one in undo)):
            if text:
                wire.run(text)
            # MyISAM has shorter keys than InnoDB, and only warns.
            stands = stands and not (_MYISAM in before and wire.rows("SHOW WARNINGS"))
            found.append(_seen(wire, table, indexes))
    if not stands:
        raise not_as_it_was(table)
    return found


def not_as_it_was(table: str) -> Unsupported:
    return Unsupported(f"{table} wouldn't be defined exactly as it was after an undo.", next_step=BACKUP)


def _seen(wire: Wire, table: str, indexes: list[str]) -> Seen:
    columns = {
        str(name): (str(kind), str(collation or ""), str(nullable), str(extra).upper())
        for name, kind, collation, nullable, _, _, extra, *_ in wire.rows(f"SHOW FULL COLUMNS FROM {quoted(COPY)}")
    }
    return Seen(_with_full_text(_of_table(shown(wire, COPY), table), indexes), columns)


def run_on_copy(tree: exp.Expr, table: str, definition: str) -> str:
    """The statement with the copy in the table's place, without the foreign keys that it drops, which no copy has; "":
    it does nothing else."""
    tree = of_copy(tree, table)
    if isinstance(tree, exp.Alter):
        links = {line.lower().split("`")[1] for line in parted(definition)[0]}
        left = [one for one in tree.args.get("actions") or () if not _drops_link(one, links)]
        tree.set("actions", left or None)
        if not left and not tree.args.get("options"):
            return ""
    return write(tree, Dialect.MARIADB)


def generated(wire: Wire, table: str, keys: Mapping[str, str]) -> frozenset[str]:
    """Which of these indexes, by name with their columns, the server made for a foreign key: they go where somebody
    makes another on the same columns. All, where that can't be seen."""
    if not keys:
        return frozenset()
    adds = ", ".join(f"ADD INDEX {quoted(f'{COPY}_{at}')} ({columns})" for at, columns in enumerate(keys.values()))
    try:
        wire.run(f"CREATE TEMPORARY TABLE {quoted(COPY)} LIKE {quoted(table)}")
        wire.run(f"ALTER TABLE {quoted(COPY)} {adds}")
        left = shown(wire, COPY)
    except ServerError as error:
        if error.number in errors.LOST:
            raise
        return frozenset(keys)
    finally:
        with contextlib.suppress(GoexError, ServerError):
            wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(COPY)}")
    return frozenset(name for name in keys if f"\n  KEY {name} (" not in left)


def _drops_link(action: exp.Expr, links: set[str]) -> bool:
    kind = str(action.args.get("kind")).upper() if isinstance(action, exp.Drop) else ""
    return kind == "FOREIGN KEY" or (kind == "CONSTRAINT" and action.args["tables"][0].name.lower() in links)


def on_copy(undo: str, table: str) -> str:
    """What takes a statement back, with the copy in the table's place."""
    return undo.replace(f"ALTER TABLE {quoted(table)}", f"ALTER TABLE {quoted(COPY)}", 1).replace(
        f" ON {quoted(table)}", f" ON {quoted(COPY)}", 1
    )


@contextlib.contextmanager
def copied(wire: Wire, table: str, tree: exp.Expr) -> Iterator[None]:
    """Inside, an empty temporary copy of the table is there, for a statement. Raises Unsupported for what the server
    refuses of it."""
    try:
        wire.run(_copying(shown(wire, table), table, tree))
        try:
            yield
        finally:
            with contextlib.suppress(GoexError, ServerError):
                wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(COPY)}")
    except ServerError as error:
        raise Unsupported(
            f"Taking it back was tried on an empty copy, and failed: {error.said.message}", next_step=BACKUP
        ) from None


def _copying(definition: str, table: str, tree: exp.Expr) -> str:
    """InnoDB has no temporary table with a full-text index: it is left out where the statement names nothing of it.
    MyISAM has one, and makes the index of a foreign key, which it else leaves out."""
    indexes = _full_text(definition)
    makes = _makes_full_text(tree) or tree.find(exp.Reference) is not None
    if not indexes and not makes:
        return f"CREATE TEMPORARY TABLE {quoted(COPY)} LIKE {quoted(table)}"
    _, lines = parted(definition)
    held = {name.lower() for line in indexes for name in re.findall(_NAME, line)}
    engine = "MyISAM"
    if not makes and not held & {quoted(one.name).lower() for one in tree.find_all(exp.Identifier)}:
        engine, lines = "InnoDB", [line for line in lines if line not in indexes]
    head = lines[0].replace(f"CREATE TABLE {quoted(table)}", f"CREATE TEMPORARY TABLE {quoted(COPY)}", 1)
    parts = ",\n".join(lines[1:-1])
    return f"{head}\n{parts}\n{lines[-1].replace(') ENGINE=InnoDB', f') ENGINE={engine}', 1)}"


def _makes_full_text(tree: exp.Expr) -> bool:
    return "FULLTEXT" in write(tree, Dialect.MARIADB).upper()


def _full_text(definition: str) -> list[str]:
    return [line for line in parted(definition)[1] if line.startswith("  FULLTEXT KEY ")]


def _with_full_text(definition: str, indexes: list[str]) -> str:
    """The definition with these lines behind its other indexes, where the server writes them."""
    if not indexes:
        return definition
    lines = definition.split("\n")
    at = next(at for at, line in enumerate(lines) if at and not re.match(r"  (`|PERIOD |(\w+ )?KEY )", line))
    ends = "," if lines[at].startswith("  ") else ""
    added = [f"{line}," for line in indexes[:-1]] + [indexes[-1] + ends]
    return "\n".join([*lines[: at - 1], f"{lines[at - 1].removesuffix(',')},", *added, *lines[at:]])


def of_copy(tree: exp.Expr, table: str) -> exp.Expr:
    """The statement with the copy in the table's place."""
    copy = tree.copy()
    for node in copy.find_all(exp.Table):
        if node.name.lower() == table.lower():
            node.set("this", exp.to_identifier(COPY, quoted=True))
    return copy


def _of_table(definition: str, table: str) -> str:
    """The definition of the copy as the table's own, which is InnoDB's."""
    named = re.sub(rf"\ACREATE TEMPORARY TABLE {re.escape(quoted(COPY))}", f"CREATE TABLE {quoted(table)}", definition)
    return _as_innodb(named)


def _as_innodb(definition: str) -> str:
    return re.sub(r"(?m)^\) ENGINE=MyISAM", ") ENGINE=InnoDB", definition)


# ---- of what can't be tried


def untried(wire: Wire, tree: exp.Expr, table: str, schema: Schema) -> str:
    """The definition of a table that is made or renamed, or gets a foreign key; "" for others, and where no temporary
    one can be made. Raises ServerError for columns and keys that no table can have."""
    action = tree.args["actions"][0] if isinstance(tree, exp.Alter) else None
    if isinstance(action, exp.AlterRename):
        old = tree.this.name
        keys, rest = parted(shown(wire, old))
        return "\n".join([*rest, *(_with_table(line, old, table) for line in keys)]).replace(
            quoted(old), quoted(table), 1
        )
    if isinstance(action, exp.AddConstraint):
        before = shown(wire, table)
        columns = [column.name for column in schema.tables[table].columns]
        added = foreign_keys(action.expressions, table, columns, schema)
        return "\n".join([before, *added]) if added else ""
    if not isinstance(tree, exp.Create) or str(tree.args.get("kind")).upper() != "TABLE":
        return ""
    try:
        return _made(wire, tree, table)
    except NotText:
        raise
    except (ServerError, Unsupported) as error:
        if isinstance(error, ServerError) and error.number in errors.OF_COLUMNS:
            raise
    return _made_with_keys(wire, tree, table, schema)


def _made(wire: Wire, tree: exp.Expr, table: str, engine: str = "") -> str:
    """The definition of a table that is made, without foreign keys. Raises ServerError and Unsupported."""
    copy = of_copy(tree, table)
    properties = copy.args.get("properties")
    written = [exp.TemporaryProperty(), *(properties.expressions if properties else ())]
    if engine:
        written = [one for one in written if not isinstance(one, exp.EngineProperty)]
        written.append(exp.EngineProperty(this=exp.var(engine)))
    copy.set("properties", exp.Properties(expressions=written))
    wire.run(write(copy, Dialect.MARIADB))
    try:
        return _of_table(shown(wire, COPY), table)
    finally:
        wire.run(f"DROP TEMPORARY TABLE IF EXISTS {quoted(COPY)}")


def _made_with_keys(wire: Wire, tree: exp.Create, table: str, schema: Schema) -> str:
    """The same of one with foreign keys: MyISAM has a temporary table of it, which leaves them out, but not the indexes
    that the server makes for them."""
    if not isinstance(tree.this, exp.Schema):
        return ""
    columns = [node.name for node in tree.this.expressions if isinstance(node, exp.ColumnDef)]
    keys = foreign_keys(tree.this.expressions, table, columns, schema)
    if not keys:
        return ""
    try:
        made = _made(wire, tree, table, "MyISAM")
    except NotText:
        raise
    except (ServerError, Unsupported):
        return ""
    return "\n".join([made, *keys])


def of_view(wire: Wire, sql: str, name: str, scratch: str) -> str:
    """The definition of the view `name` that `sql` makes, seen on a view `scratch` that is dropped again; "": it can't
    be made any more. Raises GoexError and ServerError where the connection is lost."""
    (tree,) = read(sql, Dialect.MARIADB)
    made = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    made.set("this", exp.to_identifier(scratch, quoted=True))
    drop = f"DROP VIEW IF EXISTS {quoted(scratch)}"
    try:
        wire.run(drop)  # an earlier look may have been cut off
        wire.run(write(tree, Dialect.MARIADB))
        try:
            return shown(wire, scratch).replace(quoted(scratch), quoted(name), 1)
        finally:
            wire.run(drop)
    except ServerError as error:
        if error.number in errors.LOST:
            raise
        return ""


# ---- the lines of foreign keys


def foreign_keys(nodes: Sequence[exp.Expr], table: str, columns: Sequence[str], schema: Schema) -> list[str]:
    """The lines of the foreign keys among the parts of a definition; []: there are none, or one isn't understood."""
    found: list[str] = []
    unnamed = 0
    for node in nodes:
        parts = node.expressions if isinstance(node, exp.Constraint) else [node]
        name = node.name if isinstance(node, exp.Constraint) else ""
        for part in parts:
            own, reference = _reference(part)
            if reference is None:
                continue
            unnamed += not name
            line = _key(name or f"{table}_ibfk_{unnamed}", own, reference, table, columns, schema)
            if not line:
                return []
            found.append(line)
    return found


def _reference(node: exp.Expr) -> tuple[list[str], exp.Reference | None]:
    """The columns that refer to others, and what they refer to."""
    if isinstance(node, exp.ForeignKey):
        return [one.name for one in node.expressions], node.args.get("reference")
    if isinstance(node, exp.ColumnDef):
        kinds = [one.args.get("kind") for one in node.args.get("constraints") or ()]
        return [node.name], next((one for one in kinds if isinstance(one, exp.Reference)), None)
    return [], None


def _key(
    name: str, own: list[str], reference: exp.Reference, table: str, columns: Sequence[str], schema: Schema
) -> str:
    target = reference.this
    if not isinstance(target, exp.Schema):
        return ""
    parent, others = target.this.name, columns
    if parent.lower() != table.lower():
        alike = [one for one in schema.tables.values() if one.name.lower() == parent.lower()]
        found = schema.tables.get(parent) or (alike[0] if len(alike) == 1 else None)
        if found is None:
            return ""
        parent, others = found.name, [column.name for column in found.columns]
    else:
        parent = table
    referring, referred = _listed(own, columns), _listed([one.name for one in target.expressions], others)
    if not referring or not referred:
        return ""
    actions = ""
    for event in ("ON DELETE ", "ON UPDATE "):
        said = [str(one).upper() for one in reference.args.get("options") or () if str(one).upper().startswith(event)]
        actions += "".join(f" {one}" for one in said if one != f"{event}RESTRICT")  # which isn't written
    return f"  CONSTRAINT {quoted(name)} FOREIGN KEY ({referring}) REFERENCES {quoted(parent)} ({referred}){actions}"


def _listed(names: Sequence[str], columns: Sequence[str]) -> str:
    """Columns as they are spelled in their table; "": one isn't there."""
    spelled = {column.lower(): column for column in columns}
    if not names or any(name.lower() not in spelled for name in names):
        return ""
    return ", ".join(quoted(spelled[name.lower()]) for name in names)


def _with_table(line: str, old: str, new: str) -> str:
    """A foreign key of a table that is renamed: names that the server gave go with it, and so does a key to itself."""
    found = LINK.fullmatch(line)
    if found is None:
        return line
    number = re.fullmatch(rf"`{re.escape(quoted(old)[1:-1])}(_ibfk_\d+)`", found["name"])
    name = f"`{quoted(new)[1:-1]}{number[1]}`" if number else found["name"]
    parent = quoted(new) if found["parent"] == quoted(old) else found["parent"]
    return link(name, found["columns"], parent, found["parents"], found["rest"])


def _with_column(line: str, table: str, old: str, new: str) -> str:
    """A foreign key of a table of which a column is renamed."""
    found = LINK.fullmatch(line)
    if found is None:
        return line

    def renamed(names: str) -> str:
        return re.sub(_NAME, lambda one: quoted(new) if one[0].lower() == quoted(old).lower() else one[0], names)

    parents = renamed(found["parents"]) if found["parent"] == quoted(table) else found["parents"]
    return link(found["name"], renamed(found["columns"]), found["parent"], parents, found["rest"])


def link(name: str, columns: str, parent: str, parents: str, rest: str) -> str:
    return f"  CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {parent} ({parents}){rest}"
