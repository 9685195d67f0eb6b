"""What a revert works with on the server beside the tables themselves: named sets of rows, made from the image.

In a transaction that is committed they are temporary tables. PostgreSQL prepares no transaction that touched one, so in
one that is to be held each set is a query in front of the statements that use it, over the image as parameters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.rows import line

_LOAD = (
    "CREATE TEMPORARY TABLE goex_raw (k pg_catalog.int4, side pg_catalog.text, image pg_catalog.text) ON COMMIT DROP"
)
_COPY = "COPY pg_temp.goex_raw FROM STDIN"
# What has more "b" than "a" was there before; a row's place among others says nothing.
_NET = """
CREATE TEMPORARY TABLE goex_net ON COMMIT DROP AS
  SELECT k, image, {sign} * pg_catalog.sum(CASE side WHEN 'a' THEN 1 ELSE -1 END)::pg_catalog.int4 AS n
  FROM pg_temp.goex_raw GROUP BY k, image HAVING pg_catalog.sum(CASE side WHEN 'a' THEN 1 ELSE -1 END) <> 0;
DROP TABLE pg_temp.goex_raw;
ANALYZE pg_temp.goex_net
"""


class Scratch(Protocol):
    """Sets of rows by name, for statements of one transaction. Statements name them `pg_temp.goex_…`."""

    def load(self, image: Iterator[bytes], sign: int) -> None:
        """Make `goex_net` (k, image, n) of an image: how many more of each row there are after it than before,
        times `sign`."""
        ...

    def make(self, name: str, sql: str, analyze: str = "") -> None:
        """Call what a query gives by a name, in place of what had it."""
        ...

    def again(self, name: str, update: str) -> None:
        """Bring a set up to date whose rows were written since it was made."""
        ...

    def ask(self, sql: str, parts: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; `parts` are named statements in front of it."""
        ...

    def rows(self, sql: str) -> int:
        """Run a statement that writes; how many rows it wrote."""
        ...


_NAMED = re.compile(r"\bpg_temp\.(?=goex_)")


class Temporary:
    """Temporary tables, which end with the transaction."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._made: set[str] = set()

    def load(self, image: Iterator[bytes], sign: int) -> None:
        self._link.do(_LOAD)
        self._link.copy_in(_COPY, image)
        self._link.do(_NET.format(sign=sign))

    def make(self, name: str, sql: str, analyze: str = "") -> None:
        gone = f"DROP TABLE pg_temp.{name}; " if name in self._made else ""
        self._made.add(name)
        self._link.do(
            f"{gone}CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {sql}; "
            f"ANALYZE pg_temp.{name}{f' ({analyze})' if analyze else ''}"
        )

    def again(self, name: str, update: str) -> None:
        self._link.do(update)

    def ask(self, sql: str, parts: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        return self._link.ask(f"WITH {', '.join(parts)} {sql}" if parts else sql)

    def rows(self, sql: str) -> int:
        return self._link.rows(sql)


class Queries:
    """Queries in front of each statement. A set that is made of a table is looked for anew by each of them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._made: dict[str, str] = {}
        self._net: tuple[list[int], list[str], list[int]] = [], [], []

    def load(self, image: Iterator[bytes], sign: int) -> None:
        found: Counter[tuple[int, str]] = Counter()
        for each in _lines(image):
            number, side, text = line(each)
            found[number, text] += sign if side == "a" else -sign
        net = [(number, text, n) for (number, text), n in found.items() if n]
        self._net = [row[0] for row in net], [row[1] for row in net], [row[2] for row in net]
        columns = "%s::pg_catalog.int4[], %s::pg_catalog.text[], %s::pg_catalog.int4[]"
        # Of several arrays it is syntax of its own, whatever functions there are.
        self._made = {"goex_net (k, image, n)": f"SELECT * FROM unnest({columns})"}

    def make(self, name: str, sql: str, analyze: str = "") -> None:
        self._made[name] = _NAMED.sub("", sql).replace("%", "%%")

    def again(self, name: str, update: str) -> None:
        """It is looked for anew as it is."""

    def ask(self, sql: str, parts: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        return self._link.ask(self._whole(sql, parts), *self._net)

    def rows(self, sql: str) -> int:
        return len(self.ask("SELECT 1 FROM written", (f"written AS ({sql} RETURNING 1)",)))

    def _whole(self, sql: str, parts: Iterable[str]) -> str:
        made = [f"{name} AS MATERIALIZED ({query})" for name, query in self._made.items()]
        rest = _NAMED.sub("", ", ".join(("", *parts)) + " " + sql).replace("%", "%%")
        return f"WITH {', '.join(made)}{rest}"


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines of an image that comes in pieces."""
    waiting = b""
    for piece in pieces:
        *whole, waiting = (waiting + piece).split(b"\n")
        yield from whole
    if waiting:
        yield waiting
