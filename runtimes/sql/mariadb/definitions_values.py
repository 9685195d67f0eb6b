"""What an ALTER does to the values of its table, said by the types of the columns before and after it.

Rules: a value that the server may write otherwise in a redo is refused; one that may be another after an undo is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from policies.errors import Unsupported
from runtimes.sql.contract import Table
from runtimes.sql.mariadb.column_room import beyond
from runtimes.sql.mariadb.definitions_foreseen import BACKUP, Seen
from runtimes.sql.mariadb.errors import quoted

Plain = Callable[[exp.ColumnDef, Table], bool]
# What a column may be filled with meanwhile: the same at each time (`definitions_kept` stops the clock).
_STEADY = re.compile(r"(?:NULL|[bx]?'.*'|-?[\d.]+(?:e[+-]?\d+)?|current_timestamp\(\d?\))?", re.IGNORECASE | re.DOTALL)


class Unread(Exception):
    """A definition that isn't understood."""


@dataclass(slots=True)
class Values:
    """What becomes of them."""

    keeps: bool = False
    refused: bool = False
    recounts: bool = False  # a column loses AUTO_INCREMENT
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


def values(
    before: Seen, after: Seen, actions: list[exp.Expr], table: Table, names: Mapping[str, str], plain: Plain
) -> Values:
    found = Values()
    for name, (kind, collation, nullable, extra) in before.columns.items():
        made, new = "GENERATED" in extra, names.get(name)
        if new is None:
            if "AUTO_INCREMENT" in extra:
                raise Unsupported(
                    f"{table.name} would lose the value that AUTO_INCREMENT has come to.", next_step=BACKUP
                )
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
        # The server numbers what is 0 in a column that gets AUTO_INCREMENT.
        counts, counts_after = ("AUTO_INCREMENT" in one for one in (extra, extra_after))
        found.recounts = found.recounts or counts > counts_after
        if (kind, collation, nullable, counts) == (kind_after, collation_after, nullable_after, counts_after):
            continue
        if _takes_the_moment(kind, kind_after) or (nullable > nullable_after and kind_after.startswith("timestamp")):
            raise Unsupported(
                f"The server may put the moment, or its date, into {name}, which would be another one in a redo.",
                next_step=BACKUP,
            )
        found.changed.append(name)
        room = beyond(kind, kind_after, quoted(new)) if collation == collation_after else ""
        other = (kind, collation) != (kind_after, collation_after)
        if (other and not room) or nullable > nullable_after or counts != counts_after:
            found.keeps = True
            found.fills.append(name)
            continue
        found.lost += [room] if kind != kind_after else []
        found.lost += [f"{quoted(new)} IS NULL"] if nullable != nullable_after else []
        if kind.lower().startswith("enum(") and kind != kind_after:
            found.unknown.append(beyond(kind, kind_after, quoted(name)))
    _added_values(found, actions, table, set(after.columns) - set(names.values()), plain)
    return found


def _takes_the_moment(kind: str, after: str) -> bool:
    return re.match(r"time\b", kind) is not None and re.match(r"(date|datetime|timestamp)\b", after) is not None


def _added_values(found: Values, actions: list[exp.Expr], table: Table, new: set[str], plain: Plain) -> None:
    defined = {one.name.lower(): one for one in actions if isinstance(one, exp.ColumnDef)}
    for name in sorted(new):
        node = defined.get(name.lower())
        if node is None:
            raise Unread
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
