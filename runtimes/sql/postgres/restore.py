"""Setting recorded rows back, in one transaction that compares first, and proves at its end what it did.

Rules: rows are compared as the server writes them, so every bit counts. All tables are set by one statement: foreign
keys are then looked at when all of it is done, in whatever order rows and tables point to each other. Triggers that
people made are kept off while it runs. What keys do by themselves (cascades to rows that somebody added since) shows
in the server's count of written rows, and takes everything back. So it is done exactly, or not at all.

A transaction that touched temporary tables can't be held, so what is worked with there (`Scratch`) is temporary tables
in a transaction that is committed, and queries in front of each statement in one that is prepared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from policies.errors import Conflict, InvalidInput
from runtimes.sql.contract import Column, Ran, Reached, RowChange, Verb
from runtimes.sql.postgres.capture import Books, Counts
from runtimes.sql.postgres.errors import Misfit
from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.reach import Reach
from runtimes.sql.postgres.relations import Catalog, Relation, literal, quoted
from runtimes.sql.postgres.rows import SHOWN, Sample, values
from runtimes.sql.postgres.scratch import Queries, Scratch, Temporary

Loose = tuple[str, str, str]  # table, name and definition of a CHECK
_DIFFERENCES = 20  # that are listed
UNTOUCHED = "Nothing was touched."


@dataclass
class Restoring:
    """One revert in a transaction that has begun. `undo`: rows become as they were before; else as they became.
    `held`: that transaction is to be prepared."""

    link: Link
    catalog: Catalog
    relations: list[Relation]  # as the images number them
    undo: bool
    held: bool = False
    loose: frozenset[Loose] = frozenset()  # CHECKs that rows which come back may break
    done: bool = False  # it is so already
    touched: dict[str, Counts] = field(default_factory=dict)
    _wrote: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    _differing: dict[int, list[str]] = field(default_factory=dict)
    _live: list[int] = field(default_factory=list)  # the numbers of tables that have rows to set
    _then: dict[int, dict[str, int]] = field(default_factory=dict)  # without a key: how often each row is to be there
    _scratch: Scratch = field(init=False)

    def __post_init__(self) -> None:
        self._scratch = Queries(self.link) if self.held else Temporary(self.link)

    def load(self, image: Iterator[bytes]) -> None:
        """Bring the image to the server, and make of it what should be there now, and what should be there then."""
        self._scratch.load(image, 1 if self.undo else -1)
        self._live = [int(row[0]) for row in self._scratch.ask("SELECT DISTINCT k FROM pg_temp.goex_net ORDER BY k")]
        for k in self._live:
            try:
                self._table(k)
            except Misfit:
                said = f"Recorded rows don't fit the types of {self.relations[k].name} as they are now. {UNTOUCHED}"
                step = "Set those types back (an enum's labels, a domain's CHECK), then try again."
                raise Conflict(said, next_step=step) from None

    def written_by(self, xid: int) -> bool:
        """Whether some row is as recorded and carries the number of that transaction."""
        for k in self._live:
            if not self.relations[k].key:
                continue
            self._look(k)
            found = self._scratch.ask(
                f"SELECT 1 FROM pg_temp.goex_was_{k} w JOIN pg_temp.goex_now_{k} c ON w.image = c.image "
                f"WHERE c.writer = '{xid % 2**32}' LIMIT 1"
            )
            if found:
                return True
        return False

    def compare(self) -> None:
        """Raises Conflict, listing what isn't as recorded. Sets `done` where the goal is there already."""
        if not self._live:
            self.done = True
            return
        for k in self._live:
            self._look(k)
        differences = [line for k in self._live for line in self._differences(k, "was")]
        if not differences:
            self._collect()
            return
        # Rows without a key may look so for another reason: then nothing says that it is so already.
        if all(self.relations[k].key for k in self._live) and not any(
            line for k in self._live for line in self._differences(k, "goal")
        ):
            self.done = True
            return
        more = len(differences) - _DIFFERENCES
        listed = tuple(differences[:_DIFFERENCES]) + ((f"and {more} more",) if more > 0 else ())
        raise Conflict(
            f"Rows aren't as {'this action left them' if self.undo else 'they were before this action'}. {UNTOUCHED}",
            next_step="Look at what changed since, and set it right by an action of its own.",
            difference=listed,
        )

    def apply(self, books: Books) -> None:
        """Set the rows. Raises Conflict unless just these rows were written, and are now as they should be."""
        if self.done:
            return
        kept_off = [*self._keep_triggers_off(), *self._keep_checks_off()]
        self.link.do("SET CONSTRAINTS ALL DEFERRED")
        parked = {k: self._park(k) for k in self._live}
        parts, names = [], []
        for k in self._live:
            for name, text in self._statements(k):
                names.append(name)
                parts.append(f"{name} AS ({text})")
        numbers = ", ".join(f"(SELECT pg_catalog.count(*) FROM {name})" for name in names)
        found = self._scratch.ask(f"SELECT {numbers}", parts)[0]
        self.link.do("SET CONSTRAINTS ALL IMMEDIATE")
        wrote = dict(zip(names, map(int, found), strict=True))
        self._prove(wrote, parked, books)
        for statement in kept_off:
            self.link.do(statement)

    def writes(self) -> Iterator[Reach]:
        """What setting the rows writes, when they were compared."""
        for k in self._live if not self.done else ():
            name, (gone, _, new), changed = self.relations[k].name, self._planned(k), self._changed(k)
            if gone:
                yield Reach(name, "delete", "statement")
            if new:
                yield Reach(name, "insert", "statement")
            if changed:
                yield Reach(name, "update", "statement", frozenset(changed))

    def ran(self, notes: tuple[str, ...] = ()) -> Ran:
        """What it did, or would do."""
        verb: tuple[Verb, ...] = ("delete", "update", "insert")
        reached = []
        for k in self._live if not self.done else ():
            for number, rows in enumerate(self._planned(k)):
                if rows:
                    name = self.relations[k].name
                    reached.append(Reached(table=name, verb=verb[number], rows=rows))
        return Ran(reached=tuple(reached), sample=self.changes(), notes=notes)

    def changes(self) -> tuple[RowChange, ...]:
        if self.done:
            return ()
        sample = Sample()
        for k in self._live:
            for sign, side in ((">", "b"), ("<", "a")):
                sql = f"SELECT image FROM pg_temp.goex_net WHERE k = {k} AND n {sign} 0 ORDER BY image LIMIT {SHOWN}"
                for (text,) in self._scratch.ask(sql):
                    sample.add(k, side, text)
        return sample.changes(self.relations)

    # ---- what was, what is, what should be

    def _table(self, k: int) -> None:
        """`goex_was_K`: rows that have to be there now; `goex_goal_K`: rows that have to be there then."""
        relation = self.relations[k]
        for name, sign in (("was", ">"), ("goal", "<")):
            self._scratch.make(
                f"goex_{name}_{k}",
                f"SELECT image, image::{relation.sql} AS r, "
                f"abs(n)::pg_catalog.int4 AS n FROM pg_temp.goex_net WHERE k = {k} AND n {sign} 0",
                "n",
            )
            if relation.key and self._scratch.ask(f"SELECT 1 FROM pg_temp.goex_{name}_{k} WHERE n <> 1 LIMIT 1"):
                raise InvalidInput("The recorded rows can't be: one key has several.", next_step="goex log --verify")
        if relation.key:
            named = ", ".join(f"({_field('w', name)}) AS k{i}" for i, name in enumerate(relation.key))
            columns = ", ".join(f"k{i}" for i in range(len(relation.key)))
            self._scratch.make(
                f"goex_keys_{k}",
                f"SELECT DISTINCT {columns} FROM (SELECT {named} FROM (SELECT r FROM pg_temp.goex_was_{k} UNION ALL "
                f"SELECT r FROM pg_temp.goex_goal_{k}) w) d",
            )

    def _keys(self, k: int, left: str, right: str) -> str:
        return " AND ".join(f"{_field(left, name)} = {_field(right, name)}" for name in self.relations[k].key)

    def _look(self, k: int) -> None:
        """`goex_now_K`: the rows of the table that have one of those keys; without a key, those that look the same."""
        relation = self.relations[k]
        if relation.key:
            match = " AND ".join(f"t.{quoted(name)} = x.k{i}" for i, name in enumerate(relation.key))
            rows = (
                f"(t.*)::pg_catalog.text AS image, t.xmin::pg_catalog.text AS writer, "
                f"(t.*)::{relation.sql} AS r FROM {relation.sql} t JOIN pg_temp.goex_keys_{k} x ON {match}"
            )
        else:
            rows = (
                f"t.image, pg_catalog.row_number() OVER (PARTITION BY t.image) AS place "
                f"FROM (SELECT t.tableoid, t.ctid, (t.*)::pg_catalog.text AS image FROM {relation.sql} t) t "
                f"WHERE t.image IN (SELECT image FROM pg_temp.goex_net WHERE k = {k})"
            )
        # How many there are is all that a plan needs.
        self._scratch.make(f"goex_now_{k}", f"SELECT t.tableoid AS rel, t.ctid AS at, {rows}", "at")

    def _differences(self, k: int, side: str) -> Iterator[str]:
        """Lines on where the table isn't as `side` ("was" or "goal") says."""
        relation = self.relations[k]
        now, want = f"pg_temp.goex_now_{k}", f"pg_temp.goex_{side}_{k}"
        if not relation.key:
            # Without a key only the rows that would go have to be there: equal ones can't be told from each other.
            rows = self._scratch.ask(
                f"SELECT w.n - coalesce(f.n, 0) FROM {want} w LEFT JOIN (SELECT c.image, pg_catalog.count(*) AS n "
                f"FROM {now} c GROUP BY c.image) f ON f.image = w.image WHERE w.n > coalesce(f.n, 0) "
                f"LIMIT {_DIFFERENCES * 10}"
            )
            for (missing,) in rows:
                yield f"{relation.name}: {missing} row{'s' if missing != 1 else ''} changed or gone"
            return
        rows = self._scratch.ask(
            f"SELECT w.image, c.image FROM {want} w FULL JOIN {now} c ON {self._keys(k, 'w.r', 'c.r')} "
            f"WHERE w.image IS DISTINCT FROM c.image LIMIT {_DIFFERENCES * 10}"
        )
        for wanted, found in rows:
            yield self._difference(relation, wanted, found)

    @staticmethod
    def _difference(relation: Relation, wanted: str | None, found: str | None) -> str:
        text = found if wanted is None else wanted
        assert text is not None
        names = [column.name for column in relation.columns]
        row = dict(zip(names, values(text), strict=False))
        key = ", ".join(f"{name}={(row[name] or '')[:60]}" for name in relation.key)
        if wanted is None:
            return f"{relation.name} {key}: is there, and should not be"
        if found is None:
            return f"{relation.name} {key}: is gone"
        other = dict(zip(names, values(found), strict=False))
        changed = [name for name in names if row.get(name) != other.get(name)]
        return f"{relation.name} {key}: {', '.join(changed)} changed"

    # ---- setting

    def _collect(self) -> None:
        """Which rows go, come and change, by the place where they are."""
        for k in self._live:
            relation = self.relations[k]
            was, goal, now = (f"pg_temp.goex_{name}_{k}" for name in ("was", "goal", "now"))
            if relation.key:
                pair, place = self._keys(k, "g.r", "w.r"), self._keys(k, "w.r", "c.r")
                parts = {
                    "gone": f"SELECT c.rel, c.at FROM {was} w JOIN {now} c ON {place} "
                    f"WHERE NOT EXISTS (SELECT 1 FROM {goal} g WHERE {pair})",
                    "set": f"SELECT c.rel, c.at, g.r, w.r AS was FROM {goal} g JOIN {was} w ON {pair} "
                    f"JOIN {now} c ON {place}",
                    "new": f"SELECT g.r, 1 AS n FROM {goal} g WHERE NOT EXISTS (SELECT 1 FROM {was} w WHERE {pair})",
                }
            else:
                parts = {
                    "gone": f"SELECT c.rel, c.at FROM {was} w JOIN {now} c ON c.image = w.image AND c.place <= w.n",
                    "set": f"SELECT c.rel, c.at, w.r, w.r AS was FROM {was} w, {now} c WHERE false",
                    "new": f"SELECT g.r, g.n FROM {goal} g",
                }
                then = self._scratch.ask(
                    f"SELECT n.image, (coalesce(c.n, 0) - n.n)::pg_catalog.int8 FROM pg_temp.goex_net n LEFT JOIN "
                    f"(SELECT image, pg_catalog.count(*) AS n FROM {now} GROUP BY image) c ON c.image = n.image "
                    f"WHERE n.k = {k}"
                )
                self._then[k] = {str(image): int(number) for image, number in then}
            for name, sql in parts.items():
                self._scratch.make(f"goex_{name}_{k}", sql)

    def _planned(self, k: int) -> tuple[int, int, int]:
        """How many rows go, change and come."""
        if k in self._wrote:
            return self._wrote[k]
        relation = self.relations[k]
        if not relation.key:
            sums = [
                self._scratch.ask(f"SELECT coalesce(pg_catalog.sum(n), 0) FROM pg_temp.goex_{side}_{k}")[0][0]
                for side in ("was", "goal")
            ]
            return int(sums[0]), 0, int(sums[1])
        both, was, goal = self._scratch.ask(
            f"SELECT (SELECT pg_catalog.count(*) FROM pg_temp.goex_was_{k} w JOIN pg_temp.goex_goal_{k} g ON "
            f"{self._keys(k, 'w.r', 'g.r')}), (SELECT pg_catalog.count(*) FROM pg_temp.goex_was_{k}), "
            f"(SELECT pg_catalog.count(*) FROM pg_temp.goex_goal_{k})"
        )[0]
        return was - both, both, goal - both

    def _keep_triggers_off(self) -> list[str]:
        """Switch off what fires; the statements that switch it on again, just as it was."""
        back: list[str] = []
        for k in self._live:
            for relation, trigger in self.catalog.firing(self.relations[k]):
                if trigger.inherited:
                    continue
                self.link.do(f"ALTER TABLE {relation.sql} DISABLE TRIGGER {quoted(trigger.name)}")
                how = "ENABLE ALWAYS" if trigger.enabled == "A" else "ENABLE"
                back.append(f"ALTER TABLE {relation.sql} {how} TRIGGER {quoted(trigger.name)}")
        return back

    def _keep_checks_off(self) -> list[str]:
        """Take away the CHECKs that didn't hold for every row when the action ran (NOT VALID): a row that broke one
        comes back as it was. The statements that make them again, just as they were. In a transaction that is held
        readers would wait for the table meanwhile, so there they stay."""
        back: list[str] = []
        for k in self._live if not self.held else ():
            relation = self.relations[k]
            for check in relation.checks:
                if check.valid or (relation.name, check.name, check.definition) not in self.loose:
                    continue
                name = quoted(check.name)
                self.link.do(f"ALTER TABLE {relation.sql} DROP CONSTRAINT {name} RESTRICT")
                back.append(f"ALTER TABLE {relation.sql} ADD CONSTRAINT {name} {check.definition}")
                if check.comment:
                    back.append(f"COMMENT ON CONSTRAINT {name} ON {relation.sql} IS {literal(check.comment)}")
        return back

    def _changed(self, k: int) -> list[str]:
        """The columns that differ in some row that stays."""
        if k not in self._differing:
            self._differing[k] = self._compared(k)
        return self._differing[k]

    def _compared(self, k: int) -> list[str]:
        names = [column.name for column in self.relations[k].columns if not column.generated]
        if not names:
            return []
        tests = ", ".join(
            # By every byte: a collation of the column's own, or a cast of its type, may call different values the same.
            f'coalesce(pg_catalog.bool_or(ROW({_field("s.r", name)})::pg_catalog.text COLLATE "C" IS DISTINCT FROM '
            f'ROW({_field("s.was", name)})::pg_catalog.text COLLATE "C"), false)'
            for name in names
        )
        found = self._scratch.ask(f"SELECT {tests} FROM pg_temp.goex_set_{k} s")[0]
        return [name for name, differs in zip(names, found, strict=True) if differs]

    def _park(self, k: int) -> int:
        """Where rows that stay can't be taken out, the unique values that they will get may still be others' of them:
        make room, with NULL or a value that is free for a moment. Returns how many rows that wrote."""
        relation, changed = self.relations[k], set(self._changed(k))
        if self._replaces(relation, list(changed)):
            return 0
        pointed = {name for key in self.catalog.pointing_to(relation.name) for name in key.parent_columns}
        rows = 0
        for columns in relation.unique:
            free = [
                column
                for column in relation.columns
                if column.name in changed.intersection(columns) - pointed - set(relation.key)
            ]
            free.sort(key=lambda column: not column.nullable)
            found = next(((column.name, value) for column in free if (value := self._free(k, column))), None)
            if found is None:
                continue
            wanted = " AND ".join(f"{_field('o.r', name)} = {_field('s.was', name)}" for name in columns)
            moves = " OR ".join(
                f"{_field('s.r', name)} IS DISTINCT FROM {_field('s.was', name)}" for name in columns if name in changed
            )
            made = self._scratch.rows(
                f"UPDATE {relation.sql} t SET {quoted(found[0])} = {found[1]} FROM (SELECT s.rel, s.at, "
                f"pg_catalog.row_number() OVER () AS n FROM pg_temp.goex_set_{k} s JOIN pg_temp.goex_set_{k} o "
                f"ON {wanted} WHERE {moves}) g WHERE t.ctid = g.at AND t.tableoid = g.rel"
            )
            if made:
                self._look(k)
                self._scratch.again(
                    f"goex_set_{k}",
                    f"UPDATE pg_temp.goex_set_{k} s SET rel = c.rel, at = c.at FROM pg_temp.goex_now_{k} c "
                    f"WHERE {self._keys(k, 's.was', 'c.r')}",
                )
            rows += made
        return rows

    def _free(self, k: int, column: Column) -> str | None:
        """A value that no row of the table has, nor will have; None: none is known. What else a CHECK or a type says of
        it shows when it is written."""
        relation = self.relations[k]
        if column.nullable:
            return "NULL"
        if any(key.child == relation.name and column.name in key.columns for key in self.catalog.foreign):
            return None  # it would have to be there in another table
        kind = column.type.partition("(")[0]
        if kind in ("text", "character varying", "uuid"):
            return f"pg_catalog.gen_random_uuid()::{'uuid' if kind == 'uuid' else 'text'}"
        if kind not in ("smallint", "integer", "bigint", "numeric", "date"):
            return None
        name = quoted(column.name)
        return (
            f"greatest((SELECT pg_catalog.max(o.{name}) FROM {relation.sql} o), "
            f"(SELECT pg_catalog.max({_field('s.r', column.name)}) FROM pg_temp.goex_set_{k} s)) + g.n"
            + ("::pg_catalog.int4" if kind == "date" else "")
        )

    def _statements(self, k: int) -> Iterator[tuple[str, str]]:
        relation = self.relations[k]
        columns = [column.name for column in relation.columns if not column.generated]
        listed = ", ".join(map(quoted, columns))
        values_ = ", ".join(_field("n.r", name) for name in columns)
        changed = self._changed(k)
        replaced = changed and self._replaces(relation, changed)
        gone = f"SELECT rel, at FROM pg_temp.goex_gone_{k}"
        new = f"SELECT r, n FROM pg_temp.goex_new_{k}"
        if replaced:
            gone += f" UNION ALL SELECT rel, at FROM pg_temp.goex_set_{k}"
            new += f" UNION ALL SELECT r, 1 FROM pg_temp.goex_set_{k}"
        before = ""
        if replaced or self._any("gone", k):
            yield (
                f"d{k}",
                f"DELETE FROM {relation.sql} t USING ({gone}) g WHERE t.ctid = g.at AND t.tableoid = g.rel RETURNING 1",
            )
            before = f"(SELECT pg_catalog.count(*) FROM d{k}) >= 0"  # what goes makes room first
        if changed and not replaced:
            sets = ", ".join(f"{quoted(name)} = {_field('g.r', name)}" for name in changed)
            yield (
                f"u{k}",
                f"UPDATE {relation.sql} t SET {sets} FROM pg_temp.goex_set_{k} g "
                f"WHERE t.ctid = g.at AND t.tableoid = g.rel" + (f" AND {before}" if before else "") + " RETURNING 1",
            )
            before = " AND ".join(filter(None, (before, f"(SELECT pg_catalog.count(*) FROM u{k}) >= 0")))
        if replaced or self._any("new", k):
            into = f"({listed}) OVERRIDING SYSTEM VALUE" if columns else ""
            take = f"SELECT {values_} FROM ({new}) n, pg_catalog.generate_series(1, n.n)"
            yield f"i{k}", f"INSERT INTO {relation.sql} {into} {take} WHERE {before or 'true'} RETURNING 1"

    def _any(self, name: str, k: int) -> bool:
        return bool(self._scratch.ask(f"SELECT EXISTS (SELECT 1 FROM pg_temp.goex_{name}_{k})")[0][0])

    def _replaces(self, relation: Relation, changed: list[str]) -> bool:
        """Whether rows that stay are taken out and put back: where values of a unique index may change places."""
        return relation.crowded(changed) and replaceable(self.catalog, relation)

    # ---- proof

    def _prove(self, wrote: dict[str, int], parked: dict[int, int], books: Books) -> None:
        counts = books.since(self.link, self.catalog)
        names = {self.relations[k].name for k in self._live}
        stray = sorted(set(counts) - names)
        for k in self._live:
            relation = self.relations[k]
            found = counts.get(relation.name, Counts())
            gone, set_, new = (wrote.get(f"{letter}{k}", 0) for letter in "dui")
            self._wrote[k] = gone, set_, new
            set_ += parked[k]
            if found.inserted + found.updated != new + set_ or found.deleted + found.updated != gone + set_:
                stray.append(relation.name)
        if stray:
            raise Conflict(
                f"Rows of {', '.join(dict.fromkeys(stray))} that somebody else made since hang on what this would "
                "change. Nothing was touched.",
                next_step="Look at them first: they point to rows that would go.",
                difference=tuple(f"{name}: other rows would change too" for name in dict.fromkeys(stray)),
            )
        self.touched = counts
        for k in self._live:
            self._look(k)
            lines = list(self._differences(k, "goal") if self.relations[k].key else self._other_numbers(k))
            if lines:
                raise Conflict(
                    f"The rows couldn't be set exactly as they were recorded. {UNTOUCHED}",
                    next_step="Look at what computes or rounds their values now, and set them by an action of its own.",
                    difference=tuple(lines[:_DIFFERENCES]),
                )

    def _other_numbers(self, k: int) -> Iterator[str]:
        """Of a table without a key: rows that aren't there as often as they should be."""
        rows = self._scratch.ask(f"SELECT image, pg_catalog.count(*) FROM pg_temp.goex_now_{k} GROUP BY image")
        found = {str(image): int(number) for image, number in rows}
        if any(found.get(image, 0) != number for image, number in self._then[k].items()):
            yield f"{self.relations[k].name}: rows aren't there as often as they were"


def replaceable(catalog: Catalog, relation: Relation) -> bool:
    """Whether rows of it can be taken out and put back: a row that others point to with an action of their own would
    take those with it."""
    return all(key.on_delete == "a" for key in catalog.pointing_to(relation.name)) and relation.may("INSERT", "DELETE")


def _field(row: str, name: str) -> str:
    return f"({row if '.' in row else row + '.r'}).{quoted(name)}"
