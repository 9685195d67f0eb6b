"""The one way from SQL text to what may run: read it, refuse what isn't listed, name every table, make it anew."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking import definitions, statements, variables, views
from runtimes.sql.checking.allowlist import allow, of_schema, refused
from runtimes.sql.checking.dialects import GRAMMARS, HEAD, INTO, SET, UPKEEP
from runtimes.sql.checking.functions import BY_GRAMMAR
from runtimes.sql.checking.parse import read, remade, write
from runtimes.sql.checking.statements import Found
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Column, Dialect, Program, Schema, Statement, Table, Use


def check(text: str, schema: Schema, *, database: str) -> Program:
    """What `text` would run on the database of that `schema`. `database` is its own name on the server: a table named
    with another one is refused.

    Each `Statement.sql` is made from the checked tree and runs alone, as it is: it has no parameters, so `%` and `:`
    in it mean nothing (psycopg: no parameters at all; SQLAlchemy: `exec_driver_sql`). In PostgreSQL tables are named
    with their schema. Raises InvalidInput (can't be read, unknown name) and Unsupported (read, but not allowed).
    """
    try:
        known = KnownTables(schema, database)
        made: list[Statement] = []
        kept: frozenset[str] = frozenset()  # variables that the statements before have set
        for tree in read(text, schema.dialect):
            inserted = any(use.verb == "insert" for statement in made for use in statement.uses)
            made.append(_statement(tree, known.schema, database, inserted, variables.known(tree, kept)))
            known.follow(tree, made[-1])
            kept = variables.after(tree, kept)
        return Program(dialect=schema.dialect, statements=tuple(made))
    except RecursionError:
        raise InvalidInput("The SQL is nested too deep.", next_step="Send less at a time.") from None
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):  # a tree of a shape that nobody thought of
        raise Unsupported(
            "The statement isn't of a kind that GoEx can check.", next_step="Write it in a plainer way."
        ) from None


def _statement(tree: exp.Expr, schema: Schema, database: str, inserted: bool, kept: frozenset[str]) -> Statement:
    statements.unlock(tree)
    allow(tree, schema, inserted=inserted, variables=kept)
    through = views.stands_for(tree, schema) if schema.dialect is Dialect.MARIADB else None
    if through is not None:
        _found(tree, Reads(schema, database))  # it names no more than the view shows
        tree = through
        allow(tree, schema, inserted=inserted, variables=kept)
    found = _found(tree, Reads(schema, database))
    statements.check_locks(tree, found)
    _name_servers_own(tree, schema)
    if tree.meta.get(HEAD):
        found = statements.explained(found)
    count = ""
    if found.bound.count is not None:
        counting = remade(found.bound.count, schema.dialect)
        _name_servers_own(counting, schema)
        allow(counting, schema)
        count = write(counting, schema.dialect)
    return Statement(
        sql=write(tree, schema.dialect),
        verb=found.verb,
        table=found.table,
        uses=found.uses,
        others=found.others,
        everywhere=found.everywhere,
        most=found.bound.most,
        sources=found.bound.sources,
        count_sql=count,
        returns_rows=found.returns_rows and not (tree.meta.get(SET) or tree.meta.get(INTO)),
    )


def _name_servers_own(tree: exp.Expr, schema: Schema) -> None:
    """Name PostgreSQL's functions with their schema where somebody's of the same name may be meant instead."""
    for node in list(tree.find_all(exp.Anonymous)) if schema.shadows else ():
        name = str(node.this).casefold()
        if name not in schema.shadows - BY_GRAMMAR or of_schema(node) or isinstance(node.parent, exp.Table):
            continue
        whole: exp.Expr = node
        while isinstance(whole.parent, exp.Filter | exp.WithinGroup) and whole.arg_key == "this":
            whole = whole.parent
        if whole is not node and not isinstance(whole.parent, exp.Window):
            continue  # sqlglot reads that in another way; `_not_shadowed` refuses it
        dot = exp.Dot(this=exp.to_identifier("pg_catalog"))
        whole.replace(dot)
        dot.set("expression", whole)


def _found(tree: exp.Expr, reads: Reads) -> Found:
    if reads.dialect is Dialect.POSTGRESQL:
        reads.root, reads.write = tree, lambda inner, ctes: statements.written_in(inner, reads, ctes)
    found = _statement_of(tree, reads)
    return found if not reads.written else statements.with_writes(found, reads)


def _statement_of(tree: exp.Expr, reads: Reads) -> Found:
    if tree.meta.get(UPKEEP):
        return definitions.upkeep(tree, reads)
    if isinstance(tree, exp.Insert):
        return statements.insert(tree, reads)
    if isinstance(tree, exp.Merge) and reads.dialect is Dialect.POSTGRESQL:
        return statements.merge(tree, reads)
    if isinstance(tree, exp.Update):
        return statements.update(tree, reads)
    if isinstance(tree, exp.Delete):
        return statements.delete(tree, reads)
    if isinstance(tree, exp.TruncateTable):
        return definitions.truncate(tree, reads)
    if isinstance(tree, exp.Drop):
        return definitions.drop(tree, reads)
    if isinstance(tree, exp.Create):
        return definitions.create(tree, reads)
    if isinstance(tree, exp.Alter):
        return definitions.alter(tree, reads)
    if isinstance(tree, exp.Comment) and reads.dialect is Dialect.POSTGRESQL:
        return definitions.comment(tree, reads)
    if isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery | exp.Values):
        return statements.select(tree, reads)
    raise refused(type(tree).__name__.upper())


class KnownTables:
    """What the later statements of a program may name: the schema, with the tables and columns that earlier ones add.

    Rules: nothing gets another name here. Permissions are asked for by table and column, so a table or a column that a
    statement renames is gone for those that follow, and from there on nothing new is known: neither its old name nor
    its new one leads to rows that its own permissions keep. Only a table that the program itself made may be renamed.
    """

    def __init__(self, schema: Schema, database: str) -> None:
        self.schema, self._database = schema, database
        self._made: set[str] = set()
        self._renamed = False  # something that was there before

    def follow(self, tree: exp.Expr, statement: Statement) -> None:
        """Take in what a checked statement does to definitions."""
        name = statement.table
        if isinstance(tree, exp.Create) and str(tree.args.get("kind")).upper() == "TABLE":
            self._create(tree, name)
        elif isinstance(tree, exp.Drop) and statement.verb == "drop":
            self._without(name)
        elif isinstance(tree, exp.Alter):
            for action in tree.args.get("actions") or ():
                self._alter(action, name)

    def _create(self, tree: exp.Create, name: str) -> None:
        there = name.casefold() in {one.casefold() for one in self.schema.tables}
        if self._renamed or there or tree.args.get("expression") is not None:
            return
        like = tree.find(exp.LikeProperty)
        if like is not None and isinstance(like.this, exp.Table):
            columns = self._reads().table(like.this).columns
        elif isinstance(tree.this, exp.Schema):
            columns = tuple(self._column(one) for one in tree.this.expressions if isinstance(one, exp.ColumnDef))
        else:
            return
        self._put(Table(name=name, columns=columns))
        self._made.add(name)

    def _alter(self, action: exp.Expr, name: str) -> None:
        table = self.schema.tables.get(name)
        if isinstance(action, exp.AlterRename):
            self._without(name)
            home = name.rpartition(".")[0] if self.schema.dialect is Dialect.POSTGRESQL else ""
            new = (f"{home}." if home else "") + self._reads().fold(action.this.this)
            free = new.casefold() not in {one.casefold() for one in self.schema.tables}
            if table is not None and name in self._made and free and not self._renamed:
                self._put(replace(table, name=new))
                self._made.add(new)
            else:
                self._renamed = True
        elif isinstance(action, exp.RenameColumn | exp.ModifyColumn) and table is not None:
            renamed = action.this if isinstance(action, exp.RenameColumn) else action.args.get("rename_from")
            if renamed is not None:
                node = renamed.this if isinstance(renamed, exp.Column) else renamed
                old = self._reads().target_column(table, node)
                self._put(replace(table, columns=tuple(one for one in table.columns if one.name != old)))
                self._renamed = True
        elif isinstance(action, exp.ColumnDef) and table is not None and not self._renamed:
            if action.find(exp.ComputedColumnConstraint):  # it would show other columns under its own name
                return
            column = self._column(action)
            if column.name.casefold() not in {one.name.casefold() for one in table.columns}:
                self._put(replace(table, columns=(*table.columns, column)))

    def _column(self, node: exp.ColumnDef) -> Column:
        kind, dialect = node.args.get("kind"), self.schema.dialect
        name = self._reads().fold(node.this) if dialect is Dialect.POSTGRESQL else str(node.this.name)
        return Column(name=name, type=str(GRAMMARS[dialect].generate(kind)) if kind is not None else "")

    def _reads(self) -> Reads:
        return Reads(self.schema, self._database)

    def _put(self, table: Table) -> None:
        self.schema = replace(self.schema, tables={**self.schema.tables, table.name: table})

    def _without(self, name: str) -> None:
        self.schema = replace(self.schema, tables={k: v for k, v in self.schema.tables.items() if k != name})


_FOLLOWS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


def refuse_referenced(program: Program, schema: Schema) -> None:
    """Raise Unsupported for a DROP TABLE that a foreign key of another table stands against.

    It is judged by the definitions, never by rows: a DROP of a table that another one points to fails on PostgreSQL and
    MariaDB whatever is in them; on SQLite once there are rows, unless the key takes them along. Where an earlier
    statement of the same program could make it work, it isn't judged.
    """
    earlier: set[tuple[str, str]] = set()  # verb, table
    for statement in program.statements:
        name = statement.table.casefold()
        if statement.verb == "drop" and not statement.sql.upper().rstrip(" ;").endswith(" CASCADE"):
            for child in _pointing(name, schema):
                if not any(_helps(schema.dialect, verb, table, name, child) for verb, table in earlier):
                    raise Unsupported(
                        f"{child} points to {statement.table} by a foreign key, so {statement.table} can't be dropped.",
                        next_step=f"Drop {child} first, in the same request.",
                    )
        earlier |= {(use.verb, use.table.casefold()) for use in statement.uses if _writes(use)}


def _pointing(name: str, schema: Schema) -> list[str]:
    """The other tables whose keys stand against a DROP of that one."""
    return [
        table.name
        for table in schema.tables.values()
        if table.name.casefold() != name
        and any(
            key.parent.casefold() == name
            and not (schema.dialect is Dialect.SQLITE and key.on_delete.upper() in _FOLLOWS)
            for key in table.foreign_keys
        )
    ]


def _helps(dialect: Dialect, verb: str, table: str, parent: str, child: str) -> bool:
    """Whether what an earlier statement did may let the DROP work."""
    if dialect is Dialect.SQLITE and table == parent:
        return True
    return table == child.casefold() and (dialect is Dialect.SQLITE or verb in ("drop", "alter"))


def _writes(use: Use) -> bool:
    return use.verb != "select"
