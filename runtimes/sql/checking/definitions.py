"""CREATE, ALTER, DROP and TRUNCATE. Whether they can be taken back is the engine's survey to say."""

from __future__ import annotations

from sqlglot import exp

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking.allowlist import refused
from runtimes.sql.checking.dialects import UPKEEP
from runtimes.sql.checking.nodes import lower
from runtimes.sql.checking.row_bounds import Bound, of_query
from runtimes.sql.checking.scopes import Scope, Source
from runtimes.sql.checking.statements import Found, read_uses
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Dialect, Table, Use

_LOOK = "See what there is: goex db show NAME"
_KINDS = {"TABLE", "VIEW", "INDEX"}
_ONE = "Write one statement for each."


def truncate(tree: exp.TruncateTable, reads: Reads) -> Found:
    if len(tree.expressions) != 1:
        raise Unsupported("One statement writes one table.", next_step=_ONE)
    table = reads.table(tree.expressions[0])
    if table.name not in reads.schema.tables:
        raise refused(f"Writing to {table.name}")
    return Found(
        verb="truncate",
        table=table.name,
        uses=(Use(table=table.name, verb="truncate"),),
        everywhere=True,
    )


def drop(tree: exp.Drop, reads: Reads) -> Found:
    kind = str(tree.args.get("kind") or "").upper()
    if kind not in _KINDS:
        raise refused(f"DROP {kind}")
    if len(tree.args["tables"]) != 1:
        raise Unsupported("One statement writes one table.", next_step=_ONE)
    node = tree.args["tables"][0]
    if kind == "INDEX":
        return _drop_index(tree, node, reads)
    table = reads.table(node)
    if table.name not in reads.schema.tables:
        raise refused(f"Writing to {table.name}")
    if (table.kind == "view") != (kind == "VIEW"):
        raise InvalidInput(f"{table.name} is a {table.kind}.", next_step=_LOOK)
    return Found(
        verb="drop",
        table=table.name,
        uses=(Use(table=table.name, verb="drop"),),
        everywhere=True,
        bound=Bound() if kind == "TABLE" else Bound(most=0),
    )


def _drop_index(tree: exp.Drop, node: exp.Expr, reads: Reads) -> Found:
    """MariaDB names the table; elsewhere the table's `facts["indexes"]` says whose it is."""
    on = tree.args.get("cluster")
    if isinstance(on, exp.OnProperty):
        table = reads.table(on.this)
    else:
        name = reads.fold(node.this)
        owners = [
            table
            for table in reads.schema.tables.values()
            if name in [str(index).lower() for index in _listed(table.facts.get("indexes"))]
        ]
        if len(owners) != 1:
            raise InvalidInput(f"There is no index {name[:60]} in this database.", next_step=_LOOK)
        table = owners[0]
        if reads.dialect is Dialect.POSTGRESQL:
            home = table.name.rpartition(".")[0] or "public"
            if node.args.get("db") is not None and reads.fold(node.args["db"]) != home:
                raise InvalidInput(f"There is no index {name[:60]} there.", next_step=_LOOK)
            node.set("db", exp.to_identifier(home, quoted=True))
    return Found(verb="alter", table=table.name, uses=(Use(table=table.name, verb="alter"),))


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def create(tree: exp.Create, reads: Reads) -> Found:
    kind = str(tree.args.get("kind") or "").upper()
    if kind not in _KINDS:
        raise refused(f"CREATE {kind}")
    if kind == "INDEX":
        return _create_index(tree, reads)
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    node = schema.this if schema is not None else tree.this
    name = _new(node, reads)
    bound = Bound()
    if tree.args.get("expression") is not None:
        reads.query(tree.expression, None, {})
        if reads.dialect is Dialect.MARIADB and kind == "TABLE":
            bound = of_query(tree.expression, reads, with_=False)
    for like in tree.find_all(exp.LikeProperty):
        if reads.dialect is not Dialect.MARIADB or schema is not None or not isinstance(like.this, exp.Table):
            raise refused("LIKE in a definition")
        if reads.table(like.this).kind != "table":
            raise refused("LIKE anything but a table")
    if schema is not None and kind == "TABLE":
        _definitions(schema.expressions, None, name, reads)
    replaced = kind == "VIEW" and tree.args.get("replace") and name in reads.schema.tables
    if tree.args.get("replace") and not replaced and name in reads.schema.tables:
        raise refused("CREATE OR REPLACE TABLE")
    use = Use(table=name, verb="create")
    return Found(verb="create", table=name, uses=(use, *read_uses(reads)), bound=bound)


def _new(node: exp.Expr, reads: Reads) -> str:
    """The name that a new table will have; the node is made to say just that."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refused("That name for a table")
    name, db = reads.fold(node.this), node.args.get("db")
    if reads.dialect is not Dialect.POSTGRESQL:
        name = str(node.this.name)
    home = reads.fold(db) if db is not None else ""
    if "." in name + home:
        raise refused("A table with a dot in its name")
    if reads.dialect is Dialect.POSTGRESQL:
        known = {"public"} | {table.rpartition(".")[0] for table in reads.schema.tables if "." in table}
        if home and home not in known:
            raise Unsupported(
                f"There is no schema {home[:60]} in this database that GoEx may write.",
                next_step="Leave the schema out.",
            )
        node.set("this", exp.to_identifier(name, quoted=True))
        node.set("db", exp.to_identifier(home or "public", quoted=True))
        return name if home in ("", "public") else f"{home}.{name}"
    if home and home != (reads.database.lower() if reads.dialect is Dialect.MARIADB else "main"):
        raise Unsupported(f"{home[:60]} isn't this database.", next_step="Leave its name out.")
    node.set("db", None)
    if reads.dialect is Dialect.SQLITE and name.lower().startswith("sqlite_"):
        raise refused("A name that begins with sqlite_")
    return name


def _definitions(
    nodes: list[exp.Expr], table: Table | None, name: str, reads: Reads, beside: list[exp.Expr] | None = None
) -> None:
    """Columns and constraints: what they refer to has to be there, and expressions name their own table's columns.
    `beside`: what the same statement defines besides."""
    columns = [column.name for column in table.columns] if table is not None else []
    columns += [str(node.this.name) for node in (*nodes, *(beside or ())) if isinstance(node, exp.ColumnDef)]
    own = Source(tuple(reads.fold_column(column) if table else column.lower() for column in columns))
    own = Source(tuple({*own.columns, *columns} if own.columns else columns))  # as written, and folded
    scope = Scope({name: own})
    for node in nodes:
        _refer(node, name, reads)
        for part in node.find_all(exp.CheckColumnConstraint, exp.ComputedColumnConstraint, exp.DefaultColumnConstraint):
            reads.expressions([part.this], scope, {})
        if node.find(exp.Query):
            raise refused("A query in a definition")


def _refer(node: exp.Expr, name: str, reads: Reads) -> None:
    for reference in node.find_all(exp.Reference):
        target = reference.this.this if isinstance(reference.this, exp.Schema) else reference.this
        if isinstance(target, exp.Table) and reads.fold(target.this) == name.lower() and not target.args.get("db"):
            _new(target, reads)
            continue
        table = reads.table(target)
        reads.columns.setdefault(table.name, set())


def _create_index(tree: exp.Create, reads: Reads) -> Found:
    index = tree.this
    table = reads.table(index.args["table"])
    if index.this is None:
        raise InvalidInput("The index needs a name.", next_step="CREATE INDEX name ON …")
    params = index.args.get("params")
    scope = Scope({"": Source(tuple(reads.fold_column(column.name) for column in table.columns), table)})
    if params is not None:
        reads.expressions([params], scope, {})
    if tree.find(exp.Query):
        raise refused("A query in a definition")
    return Found(verb="alter", table=table.name, uses=(Use(table=table.name, verb="alter"), *read_uses(reads)))


def alter(tree: exp.Alter, reads: Reads) -> Found:
    if str(tree.args.get("kind") or "").upper() != "TABLE":
        raise refused(f"ALTER {tree.args.get('kind')}")
    table = reads.table(tree.this)
    if table.kind != "table":
        raise InvalidInput(f"{table.name} is a {table.kind}.", next_step=_LOOK)
    written: list[str] = []
    options = tree.args.get("options") or []
    known = all(isinstance(one, exp.SchemaCommentProperty | exp.AutoIncrementProperty) for one in options)
    if options and (reads.dialect is not Dialect.MARIADB or not known):
        raise refused("ALTER with options")
    if tree.args.get("not_valid") and reads.dialect is not Dialect.POSTGRESQL:
        raise refused("ALTER with NOT VALID")
    actions = tree.args.get("actions") or []
    for action in actions:
        if isinstance(action, exp.Drop):
            if str(action.args.get("kind")).upper() not in (
                "COLUMN",
                "CONSTRAINT",
                "INDEX",
                "FOREIGN KEY",
                "PRIMARY KEY",
            ):
                raise refused(f"ALTER TABLE DROP {action.args.get('kind')}")
            if str(action.args.get("kind")).upper() == "COLUMN":
                written += [reads.target_column(table, column.this) for column in action.args["tables"]]
        elif isinstance(action, exp.AlterRename):
            _new(action.this, reads)
            if reads.dialect is Dialect.POSTGRESQL:
                action.this.set("db", None)
        elif isinstance(action, exp.RenameColumn):
            written.append(reads.target_column(table, action.this.this))
        elif isinstance(action, exp.AlterColumn):
            written.append(reads.target_column(table, action.this))
            scope = Scope({"": Source(tuple(reads.fold_column(c.name) for c in table.columns), table)})
            reads.expressions([action.args.get("default") or None, action.args.get("using") or None], scope, {})
        elif isinstance(action, exp.ModifyColumn):
            old = action.args.get("rename_from") or action.this.this
            written.append(reads.target_column(table, old.this if isinstance(old, exp.Column) else old))
            _definitions([action.this], table, table.name, reads)
        elif isinstance(action, exp.ColumnDef):
            _definitions([action], table, table.name, reads, actions)
        elif isinstance(action, exp.AddConstraint):
            _definitions(action.expressions, table, table.name, reads, actions)
        else:
            raise refused(f"ALTER TABLE with {type(action).__name__}")
    use = Use(table=table.name, verb="alter", columns=tuple(dict.fromkeys(written)))
    return Found(verb="alter", table=table.name, uses=(use, *read_uses(reads)))


def comment(tree: exp.Comment, reads: Reads) -> Found:
    """PostgreSQL's COMMENT ON of a table, a view or a column."""
    kind, node = str(tree.args.get("kind") or "").upper(), tree.this
    column = node if kind == "COLUMN" and isinstance(node, exp.Column) and node.args.get("table") else None
    if column is not None:
        node = exp.Table(this=column.args["table"].copy(), db=column.args.get("db"))
    if kind not in ("TABLE", "VIEW", "COLUMN") or not isinstance(node, exp.Table):
        raise refused(f"COMMENT ON {kind}")
    table = reads.table(node)
    if table.name not in reads.schema.tables:
        raise refused(f"Writing to {table.name}")
    if column is None and (table.kind == "view") != (kind == "VIEW"):
        raise InvalidInput(f"{table.name} is a {table.kind}.", next_step=_LOOK)
    columns: tuple[str, ...] = ()
    if column is not None:
        columns = (reads.target_column(table, column.this),)
        column.set("table", node.this)
        column.set("db", node.args["db"])
    return Found(verb="alter", table=table.name, uses=(Use(table=table.name, verb="alter", columns=columns),))


# ---- SQLite's ANALYZE and REINDEX, and the numbers of its file

_FILE = "sqlite_schema"  # what such a number is of


def upkeep(tree: exp.Expr, reads: Reads) -> Found:
    """What it uses: the tables whose indexes it goes through. Their names are made the schema's."""
    what, of = tree.meta[UPKEEP]
    if what.startswith("PRAGMA"):
        return Found(verb="alter", table=_FILE, uses=(Use(table=_FILE, verb="alter"),))
    tables = [table for table in reads.schema.tables.values() if table.kind == "table"]
    if of:
        wanted = lower(of)
        tables = [one for one in tables if lower(one.name) == wanted or wanted in _indexes(one)]
        if len(tables) != 1:
            raise InvalidInput(
                f"There is no table and no index {of[:80]} in this database.",
                next_step="See what there is: goex db show NAME",
            )
        (table,) = tables
        names = [table.name, *map(str, table.facts.get("indexes") or ())]
        tree.meta[UPKEEP] = what, next(name for name in names if lower(name) == wanted)
    if not tables:
        raise InvalidInput("There is no table in this database.", next_step="See what there is: goex db show NAME")
    return Found(verb="alter", table=tables[0].name, uses=tuple(Use(table=one.name, verb="alter") for one in tables))


def _indexes(table: Table) -> list[str]:
    listed = table.facts.get("indexes") or ()
    return [lower(str(name)) for name in listed] if isinstance(listed, list | tuple) else []
