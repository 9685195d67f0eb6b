"""Writes through a plain view of MariaDB, made writes of the table that it stands on.

Rules: the view shows columns of one table under their own names, for rows that a condition without a query within
chooses, and its CHECK OPTION, if it has one, has nothing to check. What the statement names has to be what the view
shows. The table takes the view's name as its alias, and the view's condition stands beside the statement's own: so
what is shown, decided on and kept is what the server would write, and rights are asked for the table. Anything else
stays a write of a view.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from policies.errors import GoexError
from runtimes.sql.checking.dialects import GRAMMARS
from runtimes.sql.checking.parse import read, remade
from runtimes.sql.contract import Dialect, Schema, Table
from runtimes.sql.reads_through import ANY

# Of a view's facts: [its definition, its CHECK OPTION, whether the server writes through it ("YES"), whether it
# compares texts as GoEx's connection does ("1"), the database that it is in].
VIEW = "view"
_OF_TABLE = frozenset({"this", "db", "alias"})  # all else (PARTITION, FOR SYSTEM_TIME, …) chooses rows
# What the grammar doesn't read, and what says nothing of tables.
_MATCH = re.compile(r"\(match (?:`(?:[^`]|``)*+`[.,]?)++ against ")
_UNREAD = re.compile(r" in boolean mode(?=\))| with query expansion(?=\))|(?<=[0-9]) using \w++(?=\))")
_COMPARES = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Is)
_COMBINES = (exp.And, exp.Or, exp.Not, exp.Paren)


def stands_for(tree: exp.Expr, schema: Schema) -> exp.Expr | None:
    """The statement that writes the table itself; None for one that writes no such view."""
    node = _target(tree)
    view = _view(node, schema) if node is not None else None
    if node is None or view is None:
        return None
    definition, option, writable, *_ = (str(part) for part in view.facts[VIEW])
    base = _plain(definition, view, schema) if writable == "YES" else None
    if base is None:
        return None
    name, condition = base
    if option != "NONE" and not _stays(tree, schema.tables[name], condition):
        return None
    made = tree.copy()
    node = _target(made)
    assert node is not None
    alias = node.args.get("alias")
    called = exp.to_identifier(alias.this.name if alias is not None else node.name, quoted=True)
    node.replace(_table(name, None if isinstance(made, exp.Insert) else called))
    if isinstance(made, exp.Delete):
        made.set("tables", [exp.Table(this=called.copy())])
    if condition is not None and not isinstance(made, exp.Insert):
        for column in condition.find_all(exp.Column):
            column.set("table", called.copy())
            column.set("db", None)
        where = made.args.get("where")
        both = condition if where is None else exp.And(this=exp.Paren(this=where.this), expression=condition)
        made.set("where", exp.Where(this=both))
    return remade(made, Dialect.MARIADB)


@lru_cache(maxsize=512)
def reads(definition: str, database: str) -> tuple[str, ...]:
    """The tables and views that a view of MariaDB names, by the definition that the server keeps, where each has its
    database before it; ANY where more than these may be read."""
    named = tables(definition)
    if named is None or "`(" in definition:  # the server quotes the names of functions that somebody wrote
        return (ANY,)
    found: dict[str, None] = {}
    for of, name in named:
        if of == database:
            found[name] = None
        elif of:
            found |= {f"{of}.{name}": None, ANY: None}  # it may be a view that comes back to this database
        else:
            found[ANY] = None
    return tuple(found)


@lru_cache(maxsize=512)
def tables(definition: str) -> tuple[tuple[str, str], ...] | None:
    """The tables and views in a definition, each with its database, which is "" where none is told; None where they
    can't be read."""
    try:
        tree = GRAMMARS[Dialect.MARIADB].parse(_UNREAD.sub("", _MATCH.sub("(0 + ", definition)))[0]
    except (SqlglotError, RecursionError):
        tree = None
    if tree is None:
        return None
    within = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    found: dict[tuple[str, str], None] = {}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in (*within, "dual")):
            found[table.db, table.name] = None  # JSON_TABLE is none
    return tuple(found)


def _target(tree: exp.Expr) -> exp.Table | None:
    """The one table of a statement that can be put in another's place."""
    if tree.args.get("with_") or any(one.find(exp.Star) for one in [tree.args.get("returning")] if one is not None):
        return None
    if isinstance(tree, exp.Insert):
        plain = isinstance(tree.this, exp.Schema) and not tree.args.get("conflict") and not tree.args.get("alternative")
        node = tree.this.this if plain else None
    elif isinstance(tree, exp.Update | exp.Delete):
        more = ("tables", "using", "order", "limit", "returning") if isinstance(tree, exp.Delete) else ()
        node = None if any(tree.args.get(part) for part in more) else tree.this
    else:
        return None
    return node if isinstance(node, exp.Table) and not node.args.get("joins") else None


def _view(node: exp.Table, schema: Schema) -> Table | None:
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return None
    found = [one for name, one in schema.tables.items() if name.lower() == node.name.lower()]
    return found[0] if len(found) == 1 and found[0].kind == "view" and VIEW in found[0].facts else None


def _plain(definition: str, view: Table, schema: Schema) -> tuple[str, exp.Expr | None] | None:
    """The table that a view shows columns of, and which rows; None for a view of another kind."""
    try:
        (query,) = read(definition, Dialect.MARIADB)
    except GoexError:
        return None
    source = query.args["from_"].this if isinstance(query, exp.Select) and query.args.get("from_") else None
    more = {part for part, value in query.args.items() if value} - {"expressions", "from_", "where"}
    collates, database = (str(part) for part in view.facts[VIEW][3:])
    if not isinstance(source, exp.Table) or more or {part for part, value in source.args.items() if value} - _OF_TABLE:
        return None
    if source.db != database:
        return None
    shown = []
    for item in query.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(column, exp.Column) or column.name != item.alias_or_name:
            return None
        shown.append(column.name.lower())
    table = schema.tables.get(source.name)
    where = query.args.get("where")
    if table is None or table.kind != "table" or shown != [column.name.lower() for column in view.columns]:
        return None
    if not set(shown) <= {column.name.lower() for column in table.columns}:
        return None
    if where is not None and (where.find(exp.Query, exp.Parameter) or not (collates == "1" or _by_columns(where.this))):
        return None
    return table.name, exp.Paren(this=where.this.copy()) if where is not None else None


def _by_columns(condition: exp.Expr) -> bool:
    """Whether only columns are compared, with values as they are written: by the columns' own collations, then."""
    if isinstance(condition, _COMBINES):
        return all(_by_columns(part) for part in condition.iter_expressions())
    if not isinstance(condition, _COMPARES) or not isinstance(condition.this, exp.Column):
        return False
    values = (node for part in condition.iter_expressions() if part.arg_key != "this" for node in part.walk())
    return all(isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.Neg) for node in values)


def _stays(tree: exp.Expr, table: Table, condition: exp.Expr | None) -> bool:
    """Whether no row leaves what a view shows: nothing changes that its condition looks at."""
    if isinstance(tree, exp.Delete) or condition is None:
        return True
    computed = any(isinstance(node, exp.Func) and not isinstance(node, exp.Connector) for node in condition.walk())
    if not isinstance(tree, exp.Update) or table.triggers or computed:
        return False
    looked = {column.name.lower() for column in condition.find_all(exp.Column)}
    made = {column.name.lower() for column in table.columns if column.generated}
    moving = {str(name).lower() for name in table.facts.get("moving") or ()}
    changed = {column.name.lower() for item in tree.expressions for column in item.this.find_all(exp.Column)}
    return not looked & (made | moving | changed)


def _table(name: str, alias: exp.Identifier | None) -> exp.Table:
    made = exp.Table(this=exp.to_identifier(name, quoted=True))
    if alias is not None:
        made.set("alias", exp.TableAlias(this=alias.copy()))
    return made
