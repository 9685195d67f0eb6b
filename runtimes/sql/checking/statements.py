"""SELECT, INSERT, UPDATE and DELETE: what each uses, and how many rows it may write."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking import row_bounds
from runtimes.sql.checking.allowlist import refused
from runtimes.sql.checking.dialects import OR
from runtimes.sql.checking.nodes import lower
from runtimes.sql.checking.row_bounds import Bound
from runtimes.sql.checking.scopes import Scope, Source
from runtimes.sql.checking.usage import Reads
from runtimes.sql.contract import Dialect, Table, Use, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a tree turned out to do."""

    verb: Verb
    table: str
    uses: tuple[Use, ...]
    others: tuple[str, ...] = ()  # tables that it writes besides
    everywhere: bool = False
    bound: Bound = field(default_factory=Bound)
    returns_rows: bool = False


def unlock(tree: exp.Expr) -> None:
    """Leave the locks of a SELECT out: they would end with its action. NOWAIT and SKIP LOCKED change what is read, and
    stay, to be refused."""
    locks = tree.args.get("locks") or () if isinstance(tree, exp.Select) else ()
    if locks and all(lock.args.get("wait") is None for lock in locks):
        tree.set("locks", None)


def check_locks(tree: exp.Expr, found: Found) -> None:
    """Raises Unsupported for a lock on rows of a table that the statement doesn't write: who may read them may not keep
    others from them, for as long as the action is held."""
    written = {use.table for use in found.uses if use.verb in ("update", "delete")}
    for lock in tree.find_all(exp.Lock):
        query = lock.parent
        start = query.args.get("from_") if isinstance(query, exp.Select) else None
        sources = [start.this, *(join.this for join in query.args.get("joins") or ())] if query and start else []
        named = {one.name.lower() for one in lock.args.get("expressions") or ()}
        for one in sources:
            if named and one.alias_or_name.lower() not in named:
                continue
            home = str(one.args["db"].name) if isinstance(one, exp.Table) and one.args.get("db") else ""
            name = one.name if home in ("", "public") else f"{home}.{one.name}"
            if not isinstance(one, exp.Table) or name not in written:
                raise refused(
                    f"A lock on rows of {name[:60] or 'a query'}, which the statement doesn't write,",
                    "Name the table that it writes: FOR UPDATE OF name.",
                )


def select(tree: exp.Expr, reads: Reads) -> Found:
    reads.query(tree, None, {})
    return Found(verb="select", table="", uses=read_uses(reads), returns_rows=True)


def explained(found: Found) -> Found:
    """What EXPLAIN of it is: a query that names the same columns."""
    columns: dict[str, tuple[str, ...]] = {}
    for use in found.uses:
        known = columns.get(use.table, use.columns)
        columns[use.table] = tuple(dict.fromkeys((*known, *use.columns))) if known and use.columns else ()
    uses = tuple(Use(table=name, verb="select", columns=named) for name, named in columns.items())
    return Found(verb="select", table="", uses=uses, returns_rows=True)


def read_uses(reads: Reads) -> tuple[Use, ...]:
    found = []
    for name in sorted(reads.columns):
        order = [column.name for column in reads.known(name).columns]
        columns = tuple(column for column in order if column in reads.columns[name])
        found.append(Use(table=name, verb="select", columns=() if len(columns) == len(order) else columns))
    return tuple(found)


def _target(reads: Reads, node: exp.Expr | None) -> tuple[Table, str]:
    if not isinstance(node, exp.Table):
        raise refused("Writing to anything but a table")
    own = reads.fold(node.this) if isinstance(node.this, exp.Identifier) else ""
    alias = node.args.get("alias")
    table = reads.table(node)
    _writable(table, reads)
    if alias is not None and alias.args.get("columns"):
        raise refused("Renaming a table's columns")
    return table, reads.fold(alias.this) if alias is not None else own


def _writable(table: Table, reads: Reads) -> None:
    if table.name not in reads.schema.tables:
        raise refused(f"Writing to {table.name}")
    if table.kind == "other" and table.facts.get("module") not in _MODULES:
        raise refused(f"Writing to {table.name}, which is no plain table,")


_MODULES = ("fts5", "fts4", "rtree", "rtree_i32")  # of SQLite: what they write is in the file


def _scope(reads: Reads, table: Table, name: str) -> Scope:
    columns = tuple(reads.columns_of(table))
    return Scope({name: Source(columns, table)})


def _returning(tree: exp.Expr, reads: Reads, scope: Scope, ctes: dict[str, Source]) -> bool:
    returning = tree.args.get("returning")
    if returning is None:
        return False
    reads.expressions(returning.expressions, scope, ctes)
    return True


def _assigned(
    nodes: list[exp.Expr], table: Table, name: str, reads: Reads, scope: Scope, ctes: dict[str, Source]
) -> tuple[str, ...]:
    """The columns that `a = b` and `(a, b) = (…)` write; what they read is collected."""
    written: list[str] = []
    for node in nodes:
        if not isinstance(node, exp.EQ):
            raise refused("This kind of assignment")
        left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        for target in left:
            column = _part_of(target, table, reads, scope, ctes)
            if not isinstance(column, exp.Column):
                raise refused("Assigning to anything but a column")
            owner = column.args.get("table")
            if owner is not None and reads.fold(owner) != name:
                raise Unsupported(
                    f"One statement writes one table, and this one writes {table.name} and {reads.fold(owner)[:60]}.",
                    next_step="Write one statement for each.",
                )
            written.append(reads.target_column(table, column.this))
        values = node.expression.expressions if isinstance(node.expression, exp.Tuple) else [node.expression]
        reads.expressions([value for value in values if not _is_default(value)], scope, ctes)
    plainly = [node for node in nodes if isinstance(node.this, exp.Column)]
    if len(set(written)) != len(written) and len(plainly) == len(nodes):
        raise InvalidInput("A column is written twice.", next_step="Name each once.")
    order = [column.name for column in table.columns]
    return tuple(sorted(set(written), key=order.index))


def _part_of(target: exp.Expr, table: Table, reads: Reads, scope: Scope, ctes: dict[str, Source]) -> exp.Expr:
    """The column that an assignment writes: of PostgreSQL also an element of it, `tags[2]`, or a field, `at.city`."""
    if reads.dialect is not Dialect.POSTGRESQL:
        return target
    while isinstance(target, exp.Bracket):
        reads.expressions(target.expressions, scope, ctes)
        target = target.this
    owner = target.args.get("table") if isinstance(target, exp.Column) else None
    if owner is not None and not target.args.get("db") and reads.fold(owner) in [one.name for one in table.columns]:
        return exp.Column(this=owner.copy())  # no table may stand there
    return target


# ---- writes inside of WITH, and MERGE: PostgreSQL's


def written_in(tree: exp.Expr, reads: Reads, ctes: dict[str, Source]) -> tuple[tuple[Use, ...], tuple[str, ...] | None]:
    """What a writing statement inside of WITH uses, and the columns that it gives."""
    if isinstance(tree, exp.Insert):
        found = insert(tree, reads, ctes)
    elif isinstance(tree, exp.Update):
        found = update(tree, reads, ctes)
    else:
        assert isinstance(tree, exp.Delete)
        found = delete(tree, reads, ctes)
    returning = tree.args.get("returning")
    table = reads.schema.tables[found.table]
    columns = reads.outputs(returning.expressions, _scope(reads, table, "")) if returning is not None else ()
    return tuple(use for use in found.uses if use.verb != "select"), columns


def with_writes(found: Found, reads: Reads) -> Found:
    """The statement with what its WITH writes. Of a SELECT that is what it does."""
    first = reads.written[0]
    own = tuple(use for use in found.uses if use.verb != "select")
    uses = (*own, *(use for use in reads.written if use not in own), *read_uses(reads))
    if own:
        return replace(found, uses=uses, bound=Bound())
    return replace(found, verb=first.verb, table=first.table, uses=uses, bound=Bound())


def merge(tree: exp.Merge, reads: Reads) -> Found:
    ctes = reads.with_(tree, None, {})
    table, name = _target(reads, tree.this)
    scope = _scope(reads, table, name)
    reads.source(tree.args["using"], scope, ctes)
    reads.expressions([tree.args["on"]], scope, ctes)
    uses: dict[Verb, set[str]] = {}
    for when in tree.args["whens"].expressions:
        reads.expressions([when.args.get("condition")], scope, ctes)
        then = when.args["then"]
        if isinstance(then, exp.Update):
            uses.setdefault("update", set()).update(_assigned(then.expressions, table, name, reads, scope, ctes))
        elif isinstance(then, exp.Insert):
            named = then.this.expressions if isinstance(then.this, exp.Tuple) else []
            written = {reads.target_column(table, one.this if isinstance(one, exp.Column) else one) for one in named}
            uses.setdefault("insert", set()).update(written or {column.name for column in table.columns})
            values = _row(then.expression) if then.expression is not None else []
            reads.expressions(values, scope, ctes)
        elif isinstance(then, exp.Var) and str(then.this).upper() == "DELETE":
            uses.setdefault("delete", set())
        elif not (isinstance(then, exp.Var) and str(then.this).upper() == "DO NOTHING"):
            raise refused("A MERGE that does that")
    if not uses:
        raise refused("A MERGE that does nothing")
    order = [column.name for column in table.columns]
    found = [Use(table=table.name, verb=verb, columns=tuple(sorted(uses[verb], key=order.index))) for verb in uses]
    source = tree.args["using"]
    plain = isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not ctes
    sources = (table.name, reads.table(source).name) if plain else ()
    return Found(
        verb="insert", table=table.name, uses=(*found, *read_uses(reads)), bound=Bound(sources=sources), everywhere=True
    )


# ---- insert


def insert(tree: exp.Insert, reads: Reads, outer: dict[str, Source] | None = None) -> Found:
    ctes = reads.with_(tree, None, outer or {})
    node: Any = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(node, exp.Schema):
        node = node.this
    table, name = _target(reads, node)
    if isinstance(tree.this, exp.Schema) and _commands(tree, table, reads):
        columns = ()
    elif isinstance(tree.this, exp.Schema):
        columns = reads.inserted(table, tree.this.expressions)
        if len(set(columns)) != len(columns):
            raise InvalidInput("A column is written twice.", next_step="Name each once.")
    source = tree.expression
    if isinstance(source, exp.Values):
        reads.expressions([_value for row in source.expressions for _value in _row(row)], Scope(), ctes)
        bound = row_bounds.of_values(len(source.expressions))
    elif isinstance(source, exp.Query):
        reads.query(source, None, ctes)
        bound = row_bounds.of_query(source, reads, with_=bool(ctes))
    elif tree.args.get("default"):
        bound = row_bounds.of_values(1)
    else:
        raise refused("An INSERT from that")
    _own_sequences(tree, table, reads)
    scope = _scope(reads, table, name)
    verbs: list[Use] = [Use(table=table.name, verb="insert", columns=columns)]
    conflict = tree.args.get("conflict")
    if conflict is not None:
        if reads.dialect is Dialect.MARIADB and isinstance(source, exp.Select):
            _also(source, reads, scope, ctes)
        verbs += _conflict(conflict, table, name, reads, scope, ctes)
    if str(tree.args.get("alternative") or "").upper() == "REPLACE":
        verbs.append(Use(table=table.name, verb="delete"))
    returns = _returning(tree, reads, scope, ctes)
    return Found(verb="insert", table=table.name, uses=(*verbs, *read_uses(reads)), bound=bound, returns_rows=returns)


def _own_sequences(tree: exp.Insert, table: Table, reads: Reads) -> None:
    """nextval() moves a sequence, which is told beforehand and not set back: none that numbers another table."""
    calls = [call for call in tree.find_all(exp.Anonymous) if str(call.this).lower() == "nextval"]
    named = {_sequence(str(call.expressions[0].this)) for call in calls}
    for one in reads.schema.tables.values() if named else ():
        for column in one.columns if one.name != table.name else ():
            numbers = {_sequence(found) for found in _NEXTVAL.findall(column.default)}
            numbers |= {f"{one.name}_{column.name}_seq"} if column.counter else set()
            if numbers & named:
                raise refused(f"nextval of {min(numbers & named)[:60]}, which numbers another table,")


def _sequence(name: str) -> str:
    return name.lower().replace('"', "").removeprefix("public.")


_NEXTVAL = re.compile(r"nextval\('([^']*)'", re.IGNORECASE)
_COMMANDS = ("rebuild", "optimize", "integrity-check")


def _commands(tree: exp.Insert, table: Table, reads: Reads) -> bool:
    """Whether it is INSERT INTO index (index) VALUES ('rebuild'), which changes no document of a full-text index."""
    if not str(table.facts.get("module", "")).startswith("fts"):
        return False
    named = [reads.fold(column) for column in tree.this.expressions]
    source = tree.expression
    values = [_row(row) for row in source.expressions] if isinstance(source, exp.Values) else []
    if named != [lower(table.name)] or len(values) != 1 or len(values[0]) != 1:
        return False
    (value,) = values[0]
    return isinstance(value, exp.Literal) and value.is_string and value.this in _COMMANDS


def _also(query: exp.Select, reads: Reads, scope: Scope, ctes: dict[str, Source]) -> None:
    """ON DUPLICATE KEY may name what the SELECT reads from."""
    again = Scope()
    if query.args.get("from_"):
        reads.source(query.args["from_"].this, again, ctes)
    for join in query.args.get("joins") or ():
        reads.join(join, again, ctes)
    for name, source in again.sources.items():
        scope.sources.setdefault(name, source)


def _is_default(node: exp.Expr) -> bool:
    return isinstance(node, exp.Var) and str(node.this).upper() == "DEFAULT"


def _row(row: exp.Expr) -> list[exp.Expr]:
    values = row.expressions if isinstance(row, exp.Tuple) else [row]
    return [value for value in values if not _is_default(value)]


def _conflict(
    node: exp.OnConflict, table: Table, name: str, reads: Reads, scope: Scope, ctes: dict[str, Source]
) -> list[Use]:
    reads.expressions(node.args.get("conflict_keys") or (), scope, ctes)
    if node.args.get("constraint"):  # one of its keys, whichever has that name
        keys = {name for columns in (table.key, *table.unique) for name in columns}
        reads.columns.setdefault(table.name, set()).update(keys)
    if not node.expressions:
        reads.expressions([node.args.get("where"), node.args.get("index_predicate")], scope, ctes)
        return []
    both = Scope(dict(scope.sources))
    if not node.args.get("duplicate"):
        both.sources["excluded"] = Source(tuple(reads.fold_column(column.name) for column in table.columns), table)
    # VALUES(column) of ON DUPLICATE KEY names a column of the target by itself.
    for call in list(node.find_all(exp.Anonymous)):
        if str(call.this).upper() in ("VALUES", "VALUE"):
            for argument in call.expressions:
                reads.target_column(table, argument.this if isinstance(argument, exp.Column) else argument)
    columns = _assigned(node.expressions, table, name, reads, both, ctes)
    reads.expressions([node.args.get("where"), node.args.get("index_predicate")], both, ctes)
    return [Use(table=table.name, verb="update", columns=columns)]


# ---- update, delete


def update(tree: exp.Update, reads: Reads, outer: dict[str, Source] | None = None) -> Found:
    ctes = reads.with_(tree, None, outer or {})
    node = tree.this
    table, name = _target(reads, node)
    joins = list(node.args.get("joins") or ())
    targets = {name: (table, list(tree.expressions))}
    if joins and reads.dialect is Dialect.MARIADB:
        targets = _written(tree, reads, node, joins)
        name, (table, _) = next(iter(targets.items()))
    scope = _scope(reads, *_target(reads, node))
    for join in joins:
        reads.join(join, scope, ctes)
    if tree.args.get("from_"):
        reads.source(tree.args["from_"].this, scope, ctes)
    uses: dict[str, Use] = {}
    for alias, (one, nodes) in targets.items():
        columns = _assigned(nodes, one, alias, reads, scope, ctes)
        if one.name in uses:
            raise Unsupported(f"The statement writes {one.name} under two names.", next_step=_EACH)
        uses[one.name] = Use(table=one.name, verb="update", columns=columns)
    reads.expressions([tree.args.get("where"), tree.args.get("order"), tree.args.get("limit")], scope, ctes)
    returns = _returning(tree, reads, scope, ctes)
    others = [tree.args["from_"].this] if tree.args.get("from_") else []
    bound = row_bounds.of_rows(tree, node, others, table, name, reads)
    replaced = (Use(table=table.name, verb="delete"),) if tree.meta.get(OR) == "REPLACE" else ()
    return Found(
        verb="update",
        table=table.name,
        uses=(*uses.values(), *replaced, *read_uses(reads)),
        others=tuple(uses)[1:],
        everywhere=tree.args.get("where") is None,
        bound=bound if len(uses) == 1 else Bound(),
        returns_rows=returns,
    )


_EACH = "Write one statement for each."
Targets = dict[str, tuple[Table, list[exp.Expr]]]  # by the name that a table has there: what is assigned to it


def _written(tree: exp.Update, reads: Reads, node: exp.Table, joins: list[exp.Join]) -> Targets:
    """The tables of a MariaDB join that its assignments write."""
    tables: dict[str, Table] = {}
    for part in [node, *(join.this for join in joins)]:
        if not isinstance(part, exp.Table) or not isinstance(part.this, exp.Identifier):
            continue
        alias = part.args.get("alias")
        tables[reads.fold(alias.this) if alias is not None else reads.fold(part.this)] = reads.table(part)
    found: Targets = {}
    for item in tree.expressions:
        column = item.this
        owner = column.args.get("table") if isinstance(column, exp.Column) else None
        if owner is not None:
            name = reads.fold(owner)
        else:
            reads.look(len(tables))
            having = [n for n, t in tables.items() if reads.fold(column.this) in reads.columns_of(t)]
            if len(having) != 1:
                raise InvalidInput(f"It isn't clear which table {column.name[:60]} is of.", next_step="Name it.")
            name = having[0]
        if name not in tables:
            raise Unsupported(f"{name[:60]} isn't a table that the statement can write.", next_step=_EACH)
        _writable(tables[name], reads)
        found.setdefault(name, (tables[name], []))[1].append(item)
    return found


def delete(tree: exp.Delete, reads: Reads, outer: dict[str, Source] | None = None) -> Found:
    ctes = reads.with_(tree, None, outer or {})
    using = list(tree.args.get("using") or ())
    named = list(tree.args.get("tables") or ())
    base = tree.this
    if not isinstance(base, exp.Table):
        raise refused("DELETE from that")
    if reads.dialect is Dialect.MARIADB and using:  # DELETE FROM a USING a JOIN b, or USING a, b
        if base.args.get("alias"):
            raise refused("An alias in front of USING")
        named, base = [base, *(join.this for join in base.args.get("joins") or ())], using[0]
        for other in using[1:]:
            base.append("joins", exp.Join(this=other))
        tree.set("using", [base])
        using = []
    scope = Scope()
    reads_before = dict(reads.columns)
    reads.source(base, scope, ctes)
    for other in using:
        reads.source(other, scope, ctes)
    tables: dict[str, tuple[str, Table]] = {}  # by their names: how they are called there
    for node in named or [None]:
        name = reads.fold(node.this) if node is not None else next(iter(scope.sources))
        source = scope.sources.get(name)
        if source is None or source.table is None:
            raise InvalidInput(f"The statement has no table {name[:60]}.", next_step="Name one that is in its FROM.")
        table = source.table
        _writable(table, reads)
        if table.name in tables:
            raise Unsupported(f"The statement writes {table.name} under two names.", next_step=_EACH)
        tables[table.name] = name, table
        if node is not None:
            node.set("db", None)
            if len(scope.sources) > 1 or base.args.get("alias"):
                node.set("this", exp.to_identifier(_alias_of(base, name, reads), quoted=True))
            else:
                reads.table(node)
        if not reads.columns.get(table.name) and table.name not in reads_before:
            reads.columns.pop(table.name, None)
    name, table = next(iter(tables.values()))
    bound = row_bounds.of_rows(tree, base, using, table, name, reads)
    reads.expressions([tree.args.get("where"), tree.args.get("order"), tree.args.get("limit")], scope, ctes)
    returns = _returning(tree, reads, scope, ctes)
    return Found(
        verb="delete",
        table=table.name,
        uses=(*(Use(table=one, verb="delete") for one in tables), *read_uses(reads)),
        others=tuple(tables)[1:],
        everywhere=tree.args.get("where") is None,
        bound=bound if len(tables) == 1 else Bound(),
        returns_rows=returns,
    )


def _alias_of(base: exp.Expr, name: str, reads: Reads) -> str:
    for node in base.find_all(exp.Table):
        alias = node.args.get("alias")
        if alias is not None and reads.fold(alias.this) == name:
            return str(alias.this.name)
        if alias is None and isinstance(node.this, exp.Identifier) and reads.fold(node.this) == name:
            return str(node.this.name)
    return name
