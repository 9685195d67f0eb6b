"""What the later statements of a program may name: the schema, with the tables and columns that earlier ones add.

Rules: nothing gets another name here. Permissions are asked for by table and column, so a table or a column that a
statement renames is gone for those that follow, and from there on nothing new is known: neither its old name nor its
new one leads to rows that its own permissions keep. Only a table that the program itself made may be renamed.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from runtimes.sql.checking.dialects import GRAMMARS
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Column, Dialect, Schema, Statement, Table


class KnownTables:
    """The schema as it is for the next statement."""

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
            for action in tree.args["actions"]:
                self._alter(action, name)

    def _create(self, tree: exp.Create, name: str) -> None:
        there = name.casefold() in {one.casefold() for one in self.schema.tables}
        if self._renamed or there or not isinstance(tree.this, exp.Schema) or tree.args.get("expression") is not None:
            return
        columns = tuple(self._column(one) for one in tree.this.expressions if isinstance(one, exp.ColumnDef))
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
