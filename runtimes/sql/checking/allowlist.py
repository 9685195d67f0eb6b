"""Walks a tree and refuses whatever isn't listed in `nodes` and `functions`."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.checking.functions import BY_GRAMMAR, FUNCTIONS, LAST_KEYS, OPERATOR_CLASSES, TYPES
from runtimes.sql.checking.nodes import NODES, WORDS
from runtimes.sql.checking.variables import check_assigned, check_read
from runtimes.sql.contract import Dialect, Schema

_WIDE = re.compile(r"\*|[0-9]{3}")  # widths that come from an argument, or are hundreds and more
MAX_NAME = 128  # characters
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?|0[xX][0-9A-Fa-f]+|0b[01]+")
MAX_REPEAT = 10_000  # characters that repeat() and lpad() may make
_COLLATED = (exp.Collate, exp.CollateColumnConstraint, exp.CollateProperty)
_TEXT = {"Literal", "Identifier", "National", "HexString", "BitString", "RawString"}
_TIMES = {"repeat": 1, "space": 0, "lpad": 1, "rpad": 1, "zeroblob": 0, "randomblob": 0}
_STATEMENTS: dict[type[exp.Expr], str] = {
    exp.Transaction: "BEGIN", exp.Commit: "COMMIT", exp.Rollback: "ROLLBACK", exp.Set: "SET", exp.Copy: "COPY",
    exp.Pragma: "PRAGMA", exp.Attach: "ATTACH", exp.Detach: "DETACH", exp.Use: "USE", exp.Grant: "GRANT",
    exp.Merge: "MERGE", exp.LoadData: "LOAD DATA", exp.Kill: "KILL", exp.Describe: "DESCRIBE", exp.Show: "SHOW",
    exp.Analyze: "ANALYZE", exp.Comment: "COMMENT",
}  # fmt: skip


def allow(tree: exp.Expr, schema: Schema, *, inserted: bool = False, variables: frozenset[str] = frozenset()) -> None:
    """Raises Unsupported, naming the first thing that isn't allowed. `inserted`: an earlier statement of the program
    puts rows in. `variables` that it may read."""
    runs = isinstance(tree, exp.Query | exp.Insert | exp.Update | exp.Delete)  # a definition would keep the call
    writes = tree.find(exp.DML) is not None
    kept = {column.type.casefold() for table in schema.tables.values() for column in table.columns}
    for node in tree.walk():
        name = type(node).__name__
        if isinstance(node, exp.Command):
            raise refused(str(node.this).upper() or "This statement")
        if name not in NODES:
            raise refused(_STATEMENTS.get(type(node), "") or _readable(name))
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in NODES[name]:
                raise refused(f"{_readable(name)} with {part.strip('_').replace('_', ' ')}")
            for text in value if isinstance(value, list) else [value]:
                if isinstance(node.parent, exp.Parameter):
                    continue
                if isinstance(text, str) and name not in _TEXT and not (name == "Anonymous" and part == "this"):
                    _word(text, node)
        if isinstance(node, exp.Anonymous):
            if str(node.this).casefold() in LAST_KEYS[schema.dialect]:
                _last_key(node, known=inserted and runs)
            else:
                _function(node, schema)
        elif isinstance(node, exp.DataType):
            _type(node, kept)
        elif isinstance(node, exp.Opclass):
            named = node.expression
            if not isinstance(named, exp.Table) or named.sql().casefold() not in OPERATOR_CLASSES:
                raise refused(f"The operator class {named.sql()[:60]}")
        elif isinstance(node, exp.Dot):
            _dotted(node, schema)
        elif isinstance(node, exp.Lock) and (schema.dialect is not Dialect.POSTGRESQL or not writes):
            raise refused("SELECT with locks", "Leave the locks out, or let it stand in the statement that writes.")
        elif isinstance(node, exp.Parameter | exp.PropertyEQ):
            if schema.dialect is not Dialect.MARIADB or not runs:
                raise refused("A parameter or a variable")
            if isinstance(node, exp.Parameter):
                check_read(node, variables)
            else:
                check_assigned(node)
        elif isinstance(node, exp.EngineProperty) and not isinstance(node.this, exp.Var):
            raise refused(f"ENGINE {node.name[:60]}")
        elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(str(node.this)):
            raise refused(f"The number {str(node.this)[:60]}")
        elif isinstance(node, exp.HexString | exp.BitString) and not re.fullmatch("[0-9A-Fa-f]*", str(node.this)):
            raise refused("That value in hexadecimal")
        elif isinstance(node, exp.Identifier) and not 0 < len(str(node.this)) <= MAX_NAME:
            raise refused("A name that is empty, or that long,")


_PLAINER = "Say it in plain SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER or DROP statements, without that."
_PAST = "An undo couldn't take it back: run it past GoEx, as the table's owner."
_INSTEAD = {
    "SET": "Leave it out: GoEx sets its own connection up.",
    "USE": "Leave it out: an entry is one database.",
    "setval": "An undo sets no counter back: name the key in your INSERT, or run it past GoEx, as the table's owner.",
    **dict.fromkeys(("ANALYZE", "OPTIMIZE", "REINDEX", "VACUUM", "REFRESH"), _PAST),
}


def refused(what: str, next_step: str = "") -> Unsupported:
    """The error for what isn't listed; without `next_step` that of its kind."""
    next_step = next_step or _INSTEAD.get(what, _PLAINER)
    return Unsupported(f"{what} isn't on the list of what GoEx runs on a database.", next_step=next_step)


def _word(text: str, node: exp.Expr) -> None:
    if text.upper() in WORDS or re.fullmatch(r"[0-9]{1,6}", text):
        return
    if isinstance(node.parent, _COLLATED) and re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)+", text):
        return
    if isinstance(node, exp.DataType) and re.fullmatch(r"[A-Za-z]\w*(?: [A-Za-z]\w*)*", text, re.ASCII):
        return  # of SQLite, as it was written; what it is is looked at by `_type`
    if isinstance(node.parent, exp.Kwarg) and re.fullmatch(r"[a-z_]{1,30}", text):  # a listed function's argument
        return
    raise refused(f"“{text[:60]}”")


def _last_key(node: exp.Anonymous, *, known: bool) -> None:
    """With an argument MariaDB's sets it; PostgreSQL's currval names its sequence."""
    plain = not node.expressions
    if str(node.this).casefold() == "currval":
        plain = len(node.expressions) == 1 and _sequence(node.expressions[0])
    if not plain or not known:
        raise refused(
            f"{node.name[:60]} of anything but an INSERT before it",
            "Let it stand, without an argument, in a statement that follows the INSERT in the same request.",
        )


def _sequence(node: exp.Expr) -> bool:
    """Whether it is a sequence's name in quotes, or asks for the one of a column."""
    if isinstance(node, exp.Anonymous) and str(node.this).casefold() == "pg_get_serial_sequence":
        return len(node.expressions) == 2 and all(map(_sequence, node.expressions))
    return isinstance(node, exp.Literal) and node.is_string


_SERIAL = ("currval", "pg_get_serial_sequence")


def of_schema(node: exp.Anonymous) -> exp.Dot | None:
    """The node that names a function's schema, where it is named: it stands around FILTER, too."""
    around: exp.Expr = node
    while isinstance(around.parent, exp.Filter | exp.WithinGroup) and around.arg_key == "this":
        around = around.parent
    return around.parent if isinstance(around.parent, exp.Dot) and around.arg_key == "expression" else None


def _dotted(node: exp.Dot, schema: Schema) -> None:
    """The server's own functions may be named with their schema, and those of extensions, with theirs."""
    if isinstance(node.parent, exp.DataType) and isinstance(node.expression, exp.Identifier):
        return  # `_type` looked at it
    called = node.expression
    while isinstance(called, exp.Filter | exp.WithinGroup):
        called = called.this
    home = node.this.this if isinstance(node.this, exp.Identifier) else ""
    plain = isinstance(called, exp.Anonymous) and schema.dialect is Dialect.POSTGRESQL
    if not plain or home not in ("pg_catalog", schema.extended.get(str(called.this).casefold())):
        raise refused(f"What stands behind the dot of {node.sql()[:60]}")
    if home == "pg_catalog" and str(called.this).casefold() in BY_GRAMMAR:
        raise refused(f"{called.name[:60]} with a schema")


def _function(node: exp.Anonymous, schema: Schema) -> None:
    name, dialect = node.this, schema.dialect
    around = node.parent if isinstance(node.parent, exp.Anonymous) and dialect is Dialect.POSTGRESQL else None
    if around is not None and (str(around.this).casefold(), str(name).casefold()) == _SERIAL:
        return  # its call looked at it
    home, dot = schema.extended.get(str(name).casefold()), of_schema(node)
    if home is not None and home == ("public" if dot is None else dot.this.name):
        return
    if not isinstance(name, str) or name.casefold() not in FUNCTIONS[dialect]:
        raise refused(
            f"The function {str(node.name)[:60]}",
            _INSTEAD.get(str(name).casefold(), "Use one that computes from its arguments, or write the value itself."),
        )
    if name.casefold() in ("printf", "format") and dialect is not Dialect.MARIADB:
        first = node.expressions[0] if node.expressions else None
        if not (isinstance(first, exp.Literal) and first.is_string and not _WIDE.search(str(first.this))):
            raise refused(
                f"{name} with anything but a plain format", "Write the format as text, with widths below 100."
            )
    first = node.expressions[0] if node.expressions else None
    if name.casefold() == "array" and not (len(node.expressions) == 1 and isinstance(first, exp.Query)):
        raise refused("ARRAY of anything but a query")
    if name.casefold() == "nextval" and not (isinstance(first, exp.Literal) and node.find_ancestor(exp.Insert)):
        raise refused("nextval outside of an INSERT, or of anything but a sequence's name in quotes,")
    place = _TIMES.get(name.casefold())
    if place is not None:
        arguments: list[Any] = node.expressions
        count = arguments[place] if len(arguments) > place else None
        if not (isinstance(count, exp.Literal) and str(count.this).isdigit() and int(count.this) <= MAX_REPEAT):
            raise refused(f"{name} with anything but a number up to {MAX_REPEAT}")


def _type(node: exp.DataType, kept: set[str]) -> None:
    kind = node.this
    if isinstance(kind, exp.DataType.Type) and kind.name in TYPES:
        return
    spelled = str(node.args.get("kind") or "")
    if kind == exp.DataType.Type.USERDEFINED and spelled.casefold() in kept:
        return
    raise refused(f"The type {spelled[:60] or getattr(kind, 'value', kind)}")


def _readable(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
