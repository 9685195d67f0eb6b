"""Which tables and columns a tree reads and writes. Every name has to be the schema's, or the statement's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking.allowlist import refused
from runtimes.sql.checking.catalog_tables import CATALOG
from runtimes.sql.checking.functions import CHECKS, PRAGMAS, RECORDS, ROW_FUNCTIONS, UNIT_FIRST
from runtimes.sql.checking.nodes import UNITS, lower, plain
from runtimes.sql.checking.scopes import Scope, Source, names_of_values
from runtimes.sql.checking.unlisted_columns import rowids, unlisted
from runtimes.sql.contract import Dialect, Schema, Table, Use

_LOOK = "See what there is: goex db show NAME"
MOST_OUTPUTS = 5_000  # columns of a query, which grow with two to the power of its parts; servers have fewer
MOST_LOOKS = 2_000_000  # at tables and columns that a statement's names may mean: each name at each of them


class Reads:
    """Collects the columns that are read, by table, while it walks."""

    def __init__(self, schema: Schema, database: str) -> None:
        self.schema, self.database, self.dialect = schema, database, schema.dialect
        self.columns: dict[str, set[str]] = {}
        self.root: exp.Expr | None = None  # the statement: of PostgreSQL its own WITH may write
        self.written: list[Use] = []  # by a WITH
        self.write: Callable[[exp.Expr, dict[str, Source]], tuple[tuple[Use, ...], tuple[str, ...] | None]] | None = (
            None
        )
        self.given: set[str] = set()  # names of a WITH, which what is in it sees before they are defined
        self._begun: dict[int, tuple[str, ...] | None] = {}  # by their ids: what recursive queries begin with, walked
        self._looks = 0
        self._listed: dict[str, dict[str, str]] = {}  # by the tables' names
        self._folded: dict[str, list[str]] = {}
        for name in schema.tables:
            self._folded.setdefault(self._alike(name), []).append(name)

    def look(self, number: int) -> None:
        """Count looks at what a name may mean. Raises InvalidInput where a statement needs too many."""
        self._looks += number
        if self._looks > MOST_LOOKS:
            raise InvalidInput(
                "The statement has too many names for the tables and columns that each of them may mean.",
                next_step="Send less at a time.",
            )

    def _alike(self, name: str) -> str:
        return lower(name) if self.dialect is Dialect.SQLITE else name.casefold()

    def columns_of(self, table: Table) -> dict[str, str]:
        """The schema's names of a table's columns by what they are compared as."""
        if table.name not in self._listed:
            found = self._listed[table.name] = {}
            for column in table.columns:
                found.setdefault(self.fold_column(column.name), column.name)
        return self._listed[table.name]

    # ---- names

    def fold(self, name: exp.Expr | str) -> str:
        """How a name is compared in this scope: PostgreSQL folds what isn't quoted, the others take any case."""
        if isinstance(name, str):
            return lower(name)
        text = str(name.name)
        if self.dialect is Dialect.POSTGRESQL and name.args.get("quoted"):
            return text
        return lower(text)

    def table(self, node: exp.Table) -> Table:
        """The schema's table of that name. The node is renamed to what it is called there."""
        if not isinstance(node.this, exp.Identifier) or node.args.get("catalog"):
            raise refused(f"The table {node.sql()[:60]}")
        if node.args.get("partition") and self.dialect is not Dialect.MARIADB:
            raise refused("PARTITION behind a table")
        name, db = self.fold(node.this), node.args.get("db")
        wanted = name
        if self.dialect is Dialect.POSTGRESQL and any("." in self.fold(part) for part in (node.this, db) if part):
            raise refused("A table with a dot in its name")  # it would be taken for one of another schema
        if db is not None:
            home = self.fold(db)
            if self.dialect is Dialect.POSTGRESQL:
                wanted = name if home == "public" else f"{home}.{name}"
            elif f"{home}.{name}" in CATALOG[self.dialect]:
                wanted = f"{home}.{name}"
            elif home != (self.database.lower() if self.dialect is Dialect.MARIADB else "main"):
                raise Unsupported(f"{home}.{name} isn't in this database.", next_step=_LOOK)
        if wanted in CATALOG[self.dialect]:
            home_, _, last_ = wanted.rpartition(".")
            node.set("this", exp.to_identifier(last_, quoted=True))
            node.set("db", exp.to_identifier(home_, quoted=True) if home_ else None)
            return CATALOG[self.dialect][wanted]
        found = self._find(wanted, str(node.name))
        if found is None:
            raise InvalidInput(f"There is no table {wanted[:80]} in this database.", next_step=_LOOK)
        table = self.schema.tables[found]
        schema, _, last = found.rpartition(".") if self.dialect is Dialect.POSTGRESQL else ("", "", found)
        node.set("this", exp.to_identifier(last, quoted=True))
        node.set(
            "db", exp.to_identifier(schema or "public", quoted=True) if self.dialect is Dialect.POSTGRESQL else None
        )
        return table

    def known(self, name: str) -> Table:
        """The table of that name, of the database or of the server's own."""
        return self.schema.tables.get(name) or CATALOG[self.dialect][name]

    def _find(self, wanted: str, written: str) -> str | None:
        if self.dialect is Dialect.POSTGRESQL:
            return wanted if wanted in self.schema.tables else None
        if written in self.schema.tables:
            return written
        near = self._folded.get(self._alike(wanted), [])
        return near[0] if len(near) == 1 else None

    # ---- queries

    def query(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Source]) -> tuple[str, ...] | None:
        """Walks a query; gives its output columns where they are known."""
        ctes = self.with_(node, parent, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, parent, ctes)
        if isinstance(node, exp.SetOperation):
            # Walked once: within each other these would take a time that doubles with each.
            begun = id(node.this)
            left = self._begun.pop(begun) if begun in self._begun else self.query(node.this, parent, ctes)
            self.query(node.expression, parent, ctes)
            self.look(len(left or ()))
            scope = Scope({"": Source(left)}, parent, frozenset(self.fold(name) for name in left or ()))
            self._parts(node, scope, ctes, ("order", "limit", "offset"))
            return left
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, parent, ctes)
            if any(node.args.get(part) for part in ("joins", "where", "group", "having", "laterals", "windows")):
                raise refused("A bracketed query with more behind it")
            self._parts(node, Scope({"": Source(inner)}, parent), ctes, ("order", "limit", "offset"))
            return inner
        if isinstance(node, exp.Values):
            self.expressions(node.expressions, Scope(parent=parent), ctes)
            return names_of_values(node)
        raise refused(f"{type(node).__name__} as a query")

    def with_(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Source]) -> dict[str, Source]:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        self.look(len(ctes) + len(self.given))
        known, before = dict(ctes), self.given
        if self.dialect is Dialect.SQLITE or with_.args.get("recursive"):  # each sees those behind it, and itself
            self.given = before | {self.fold(cte.args["alias"].this) for cte in with_.expressions}
        for cte in with_.expressions:
            if isinstance(cte.this, exp.Insert | exp.Update | exp.Delete) and node is self.root and self.write:
                uses, given = self.write(cte.this, known)
                self.written += uses
                alias = cte.args["alias"]
                called = tuple(self.fold(column) for column in alias.args.get("columns") or ())
                known[self.fold(alias.this)] = Source(called or given)
                continue
            if not isinstance(cte.this, exp.Query | exp.Values):
                raise Unsupported(
                    "A statement that writes inside of WITH isn't allowed.",
                    next_step="Write two statements: they run in one transaction.",
                )
            name = self.fold(cte.args["alias"].this)
            named = tuple(self.fold(column) for column in cte.args["alias"].args.get("columns") or ())
            if with_.args.get("recursive"):
                # Its own columns are those of what it begins with.
                begins = cte.this.this if isinstance(cte.this, exp.SetOperation) and not named else None
                if begins is not None:
                    self._begun[id(begins)] = self.query(begins, parent, known)
                known[name] = Source(named or self._begun.get(id(begins), ()))
            columns = self.query(cte.this, parent, known)
            known[name] = Source(named or columns)
        self.given = before
        return known

    def _select(self, node: exp.Select, parent: Scope | None, ctes: dict[str, Source]) -> tuple[str, ...] | None:
        if not node.expressions and not (self.dialect is Dialect.POSTGRESQL and isinstance(node.parent, exp.Exists)):
            raise InvalidInput("A SELECT names no columns.", next_step="Name some, or *.")
        scope = Scope(parent=parent)
        start = node.args.get("from_")
        if (
            start
            and self.dialect is Dialect.MARIADB
            and start.this.name.lower() == "dual"
            and "dual" not in self._folded
        ):
            node.set("from_", None)
        if node.args.get("from_"):
            self.source(node.args["from_"].this, scope, ctes)
        for join in node.args.get("joins") or ():
            self.join(join, scope, ctes)
        for lateral in node.args.get("laterals") or ():
            self.source(lateral, scope, ctes)
        outputs: list[str] | None = []
        for item in node.expressions:
            names = self._output(item, scope)
            if outputs is None or names is None:
                outputs = None
                continue
            outputs += names
            if len(outputs) > MOST_OUTPUTS:
                raise _too_wide()
        aliases = frozenset(self.fold(item.args["alias"]) for item in node.expressions if isinstance(item, exp.Alias))
        if self.dialect is Dialect.SQLITE:
            scope.aliases = aliases
        self.expressions(node.expressions, scope, ctes)
        self._parts(node, scope, ctes, ("distinct", "where", "windows", "limit", "offset"))
        scope.aliases = aliases
        self._parts(node, scope, ctes, ("group", "having", "order"))
        return None if outputs is None else tuple(outputs)

    def outputs(self, items: list[exp.Expr], scope: Scope) -> tuple[str, ...] | None:
        """The names of what a RETURNING gives, where they are known."""
        found = [self._output(item, scope) for item in items]
        return None if None in found else tuple(name for names in found for name in names or ())

    def _output(self, item: exp.Expr, scope: Scope) -> list[str] | None:
        if isinstance(item, exp.Alias):
            return [self.fold(item.args["alias"])]
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            sources: Iterable[Source | None] = (
                scope.sources.values()
                if isinstance(item, exp.Star)
                else [scope.sources.get(self.fold(item.args["table"]))]
            )
            found: list[str] = []
            for source in sources:
                if source is None or source.columns is None:
                    return None
                self.look(1 + len(source.columns))
                found += source.columns
                if len(found) > MOST_OUTPUTS:
                    raise _too_wide()
            return found
        if isinstance(item, exp.Column):
            return [self.fold(item.this)]
        if isinstance(item, exp.Dot):
            item = item.expression
        if isinstance(item, exp.Anonymous):
            return [str(item.this).lower()]  # as PostgreSQL calls it
        return [""]

    # ---- what FROM offers

    def source(self, node: exp.Expr, scope: Scope, ctes: dict[str, Source]) -> None:
        alias = node.args.get("alias")
        name = self.fold(alias.this) if alias is not None and alias.this is not None else ""
        columns_as = (alias.args.get("columns") or ()) if alias is not None else ()
        named = tuple(self.fold(one.this if isinstance(one, exp.ColumnDef) else one) for one in columns_as)
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Anonymous):
                called = str(node.this.this).lower()
                if node.args.get("db") is not None or called not in ROW_FUNCTIONS[self.dialect]:
                    raise refused(f"The function {called[:60]} as a table")
                if called in RECORDS and not named:
                    raise refused(f"{called} without its columns", "Define them behind it: AS t(a integer, b text).")
                self.expressions(node.this.expressions, scope, ctes)
                self._add(scope, name or called, self._rows(called, name, named, node))
            elif isinstance(node.this, exp.JSONTable):
                self.expressions([node.this.this], scope, ctes)
                shown = node.this.args["schema"].expressions
                self._add(scope, name, Source(tuple(self.fold(one.this) for one in shown)))
            elif node.args.get("db") is None and self.fold(node.this) in ctes:
                source = ctes[self.fold(node.this)]
                self._add(scope, name or self.fold(node.this), Source(named) if named else source)
            else:
                own = self.fold(node.this)
                table = self.table(node)
                if (own in ctes or own in self.given) and node.args.get("db") is None:  # it would be WITH's
                    raise refused(f"The table {own[:60]}, whose name WITH gives away,", "Choose another name in WITH.")
                self.columns.setdefault(table.name, set())
                columns = tuple(self.columns_of(table))
                self.look(len(columns))
                if named:
                    raise refused("Renaming a table's columns")
                self._add(scope, name or own, Source(columns, table))
            for join in node.args.get("joins") or ():
                self.join(join, scope, ctes)
        elif isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):  # a bracketed join
                self.source(node.this, scope, ctes)
                for join in node.args.get("joins") or ():
                    self.join(join, scope, ctes)
            else:
                columns_ = self.query(node.this, scope.parent, ctes)
                self._add(scope, name, Source(named or columns_))
                for join in node.args.get("joins") or ():
                    self.join(join, scope, ctes)
        elif isinstance(node, exp.Lateral):
            if isinstance(node.this, exp.Subquery):
                self._add(scope, name, Source(named or self.query(node.this.this, scope, ctes)))
            else:
                called = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
                if called not in ROW_FUNCTIONS[self.dialect]:
                    raise refused(f"The function {called[:60]} as a table")
                self.expressions([node.this], scope, ctes)
                self._add(scope, name or called, self._rows(called, name, named, node))
        elif isinstance(node, exp.Unnest):
            self.expressions(node.expressions, scope, ctes)
            offset = node.args.get("offset")  # its name where the alias names it
            ordinal = (self.fold(offset),) if isinstance(offset, exp.Identifier) else ("ordinality",) if offset else ()
            # One array goes by the alias; of several each is "unnest".
            one = (name or "unnest",)
            columns_ = (("unnest",) * len(node.expressions) if len(node.expressions) > 1 else one) + ordinal
            self._add(scope, name or "unnest", Source((*named, *columns_[len(named) :])))
        elif isinstance(node, exp.Values):
            self.expressions(node.expressions, scope, ctes)
            self._add(scope, name, Source(named or names_of_values(node)))
        else:
            raise refused(f"{type(node).__name__} in FROM")

    def join(self, node: exp.Join, scope: Scope, ctes: dict[str, Source]) -> None:
        self.source(node.this, scope, ctes)
        if node.args.get("on") is not None:
            self.expressions([node.args["on"]], scope, ctes)
        for column in node.args.get("using") or ():
            self._column(self.fold(column), "", scope)
        if str(node.args.get("method") or "").upper() == "NATURAL":
            self.look(len(scope.sources))
            for source in scope.sources.values():
                if source.table is not None:
                    self.everything(source.table)

    def _rows(self, called: str, name: str, named: tuple[str, ...], node: exp.Expr) -> Source:
        """What a function that gives rows offers."""
        ordinal = ("ordinality",) if node.args.get("ordinality") else ()
        columns = (ROW_FUNCTIONS[self.dialect][called] or (name or called,)) + ordinal
        if self.dialect is Dialect.SQLITE and called.removeprefix("pragma_") in CHECKS:
            for table in self.schema.tables.values():
                self.everything(table)
        if self.dialect is Dialect.SQLITE and called.removeprefix("pragma_") in PRAGMAS:
            self.columns.setdefault("sqlite_schema", set()).add("sql")  # read under that name
        return Source((*named, *columns[len(named) :]))

    def _add(self, scope: Scope, name: str, source: Source) -> None:
        if name in scope.sources and name:
            raise InvalidInput(f"The name {name[:60]} is given to two tables.", next_step="Give each an alias.")
        scope.sources[name or f" {len(scope.sources)}"] = source

    # ---- expressions

    def expressions(self, nodes: Iterable[exp.Expr | None], scope: Scope, ctes: dict[str, Source]) -> None:
        waiting = [node for node in nodes if node is not None]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Column):
                self._reference(node, scope)
            elif isinstance(node, exp.Opclass):
                waiting.append(node.this)
            elif isinstance(node, exp.Query):
                self.query(node, scope, ctes)
            elif isinstance(node, exp.Table | exp.DML):
                raise refused(f"{type(node).__name__} inside of an expression")
            elif isinstance(node, exp.Star):
                if not isinstance(node.parent, exp.Anonymous):
                    self.look(len(scope.sources))
                    for source in scope.sources.values():
                        if source.table is not None:
                            self.everything(source.table)
            else:
                children = list(node.iter_expressions())
                if isinstance(node, exp.Anonymous) and str(node.this).lower().removeprefix("pragma_") in PRAGMAS:
                    raise refused(f"The function {node.name[:60]} but in FROM")
                if isinstance(node, exp.Anonymous) and str(node.this).lower() in UNIT_FIRST and children:
                    if not isinstance(children[0], exp.Column | exp.Var) or children[0].name.upper() not in UNITS:
                        raise refused(f"That unit for {node.name[:60]}")
                    children = children[1:]
                waiting += children

    def _parts(self, node: exp.Expr, scope: Scope, ctes: dict[str, Source], names: tuple[str, ...]) -> None:
        for name in names:
            value = node.args.get(name)
            self.expressions(value if isinstance(value, list) else [value], scope, ctes)

    def _reference(self, node: exp.Column, scope: Scope) -> None:
        table = node.args.get("table")
        if not isinstance(node.this, exp.Identifier | exp.Star):  # a call with a schema before it
            raise refused(f"What stands behind the dot of {node.sql()[:60]}")
        if isinstance(node.this, exp.Star):
            found = self._scope_of(self.fold(table) if table is not None else "", scope)
            if found.table is not None:
                self.everything(found.table)
            return
        alias = self.fold(table) if table is not None else ""
        if node.args.get("db") is not None:  # a table named with its schema: its name alone says as much
            owner = self._scope_of(alias, scope).table
            home = self.fold(node.args["db"])
            if owner is None or not self.is_home(home, owner):
                raise InvalidInput(
                    f"The statement has no table {home[:60]}.{alias[:60]}.", next_step="Name one that is in its FROM."
                )
            node.set("db", None)
        self._column(self.fold(node.this), alias, scope)
        plain(node.this)

    def is_home(self, home: str, table: Table) -> bool:
        """Whether a table is in the schema, or the database, of that name."""
        if self.dialect is Dialect.POSTGRESQL:
            return home == (table.name.rpartition(".")[0] or "public")
        return home == (self.database.lower() if self.dialect is Dialect.MARIADB else "main")

    def _scope_of(self, alias: str, scope: Scope) -> Source:
        at: Scope | None = scope
        while at is not None:
            if alias in at.sources:
                return at.sources[alias]
            at = at.parent
        raise InvalidInput(f"The statement has no table {alias[:60]}.", next_step="Name one that is in its FROM.")

    def _column(self, name: str, alias: str, scope: Scope) -> None:
        if alias:
            source = self._scope_of(alias, scope)
            if source.columns is None and self.dialect is Dialect.POSTGRESQL:  # it might be a call, see ROW_FUNCTIONS
                raise refused(f"A column of {alias[:60]}, whose columns aren't known,", "Name its columns: AS t(a, b).")
            if not self._take(source, name):
                raise InvalidInput(f"{alias[:60]} has no column {name[:60]}.", next_step=_LOOK)
            return
        at: Scope | None = scope
        perhaps = False  # an alias, or a column of a source whose columns aren't known: then it may be further out, too
        rows: list[Source] = []  # PostgreSQL takes it for a whole row only where no query around has that column
        while at is not None:
            self.look(len(at.sources))
            taken = [source for source in at.sources.values() if self._take(source, name)]
            if any(source.columns is not None for source in taken):
                return
            if self.dialect is Dialect.POSTGRESQL and name in at.sources:
                rows.append(at.sources[name])
            perhaps = perhaps or bool(taken) or name in at.aliases
            at = at.parent
        for whole in rows:
            if whole.table is not None:
                self.everything(whole.table)
        if rows:
            return
        if perhaps:
            return
        raise InvalidInput(f"There is no column {name[:60]} in the statement's tables.", next_step=_LOOK)

    def _take(self, source: Source, name: str) -> bool:
        if source.table is None:
            return source.columns is None or source.has(name)
        if self.dialect is Dialect.SQLITE and name in unlisted(source.table):
            return True
        column = self.columns_of(source.table).get(name)
        if column is not None:
            self.columns.setdefault(source.table.name, set()).add(column)
            return True
        if self.dialect is Dialect.POSTGRESQL and name == "ctid" and source.table.kind == "table":
            self.everything(source.table)  # where a row is, which the server gives to who may read all of it
            return True
        if self.dialect is not Dialect.SQLITE or name not in rowids(source.table):
            return False
        # The key goes by that name too, where it is a whole number.
        self.columns.setdefault(source.table.name, set()).update(source.table.key if len(source.table.key) == 1 else ())
        return True

    def fold_column(self, name: str) -> str:
        return name if self.dialect is Dialect.POSTGRESQL else lower(name)

    def everything(self, table: Table) -> None:
        if self.dialect is Dialect.MARIADB and table.name in CATALOG[self.dialect]:
            raise refused(f"All of {table.name}, which also counts rows,", "Name the columns that you need.")
        self.look(len(table.columns))
        self.columns.setdefault(table.name, set()).update(column.name for column in table.columns)

    def inserted(self, table: Table, nodes: list[exp.Expr]) -> tuple[str, ...]:
        """The schema's names of the columns that an INSERT names; the rowid is one of them only where it is the key."""
        found: list[str] = []
        hidden = rowids(table) - {self.fold_column(column.name) for column in table.columns}
        for node in nodes:
            if self.dialect is Dialect.SQLITE and self.fold(node) in hidden:
                plain(node)
                found += [column.name for column in table.columns if column.counter]
            else:
                found.append(self.target_column(table, node))
        return tuple(found)

    def target_column(self, table: Table, node: exp.Expr) -> str:
        """The schema's name of a column that is written. Raises InvalidInput."""
        name = self.fold(node)
        plain(node)
        column = self.columns_of(table).get(name)
        if column is not None:
            return column
        raise InvalidInput(f"{table.name} has no column {name[:60]}.", next_step=_LOOK)


def _too_wide() -> InvalidInput:
    return InvalidInput(f"A query has more than {MOST_OUTPUTS} columns.", next_step="Name those that you want.")
