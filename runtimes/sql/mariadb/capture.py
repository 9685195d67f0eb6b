"""Runs statements and keeps, of every row that they write, how it was before and how it is after.

* Before a statement: the rows that it may reach are locked and read, and the rows that its foreign keys may reach from
  there (cascades fire no triggers, and the server tells nobody of them). More than it writes is no harm.
* After it: the same rows are read again; rows that it put in are named by the server (RETURNING).
* Then the server's own count of changed rows has to be the number of rows that differ: so nothing was written beside
  them. If it isn't, everything is rolled back.
* INSERT … ON DUPLICATE KEY UPDATE and REPLACE choose rows by themselves: how these were before is read by another
  connection after the statement, which sees what was committed; they are locked then.
* Where rows can't be followed by name (no key, or the key itself is written) the whole table is locked and compared.
"""

# ruff: noqa: S608 (names are quoted, and values are literals made of recorded bytes)

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from policies.errors import Conflict, Unsupported
from runtimes.sql.contract import ForeignKey, Reached, RowChange, Schema, Table, Verb
from runtimes.sql.mariadb import rows
from runtimes.sql.mariadb.errors import quoted
from runtimes.sql.mariadb.kept import Counts, Kept, Touched
from runtimes.sql.mariadb.rows import LOCK, NULL, Form, Lines, keyed, select, select_all, select_keys, select_lines
from runtimes.sql.mariadb.steps import LIMIT, Step
from runtimes.sql.mariadb.wire import Did, Wire

WHOLE = 200_000  # rows of a table that is compared as a whole
SPARE = 100_000  # rows that may be locked and read beyond the ones that are written
_EVERY = 10**9
_WRITES_CHILD = {"CASCADE", "SET NULL", "SET DEFAULT"}


class Capture:
    """Of one program, in the transaction that is open on `wire`."""

    def __init__(self, wire: Wire, schema: Schema, *, most: int, alone: bool = False) -> None:
        """`alone`: the program writes with one statement only."""
        self.wire, self.schema, self.most, self.alone = wire, schema, most, alone
        self.early: frozenset[str] = frozenset()  # columns that the statement may change, where no others change
        self.kept: dict[str, Kept] = {}
        self.statement_tables: dict[str, None] = {}
        self.columns: dict[str, set[str]] = {}
        self.verbs: dict[str, set[Verb]] = {}  # how each table is written

    # ---- one statement

    def run(self, step: Step) -> Did:
        """Run it, and keep what it wrote. Raises Conflict, Unsupported; whoever called rolls back."""
        if step.table is None:
            return self.wire.run(step.statement.sql)
        table = step.table
        touched: dict[str, Touched] = {}
        for part in step.parts:
            self._reach(part, touched)
        event: Verb = "delete" if step.kind in ("delete", "replace") else "update"
        for part in step.parts:
            assert part.table is not None
            self.verbs.setdefault(part.table.name, set()).add(
                "insert" if step.kind in ("insert", "upsert", "replace") else event
            )
            if step.kind in ("update", "delete") or (whole(step) and step.kind in ("upsert", "replace")):
                self._follow(part.table, event, part.columns, touched, self.wire)
        if step.kind in ("insert", "upsert", "replace") and not whole(step):
            if step.kind != "insert":
                self._wholes_below(table, event, step.columns, touched)
            did, put = self._insert(step, table)
            self._chosen(step, table, put, touched)
        else:
            did, put = self.wire.run(step.statement.sql), []
        written = self._after(touched)
        self._account(step, did, written, put, touched)
        if self._rows() > self.most:
            raise rows.too_many(self.most)
        return did

    def _reach(self, step: Step, touched: dict[str, Touched]) -> None:
        """Lock and read the rows of its table that a statement may reach, where these are known before it runs."""
        table = step.table
        assert table is not None
        self.statement_tables[table.name] = None
        self.columns.setdefault(table.name, set()).update(step.columns)
        if whole(step):
            self._whole(table, touched)
        elif step.kind in ("update", "delete"):
            if self.alone and step.kind == "update" and not table.triggers:
                made = {name for name, form in table.facts["forms"].items() if form[3] == "stored"}
                self.early = step.columns | made | {str(name) for name in table.facts["moving"]}
            form = self._form(table)
            most, lines = self.most + SPARE, list[str]()
            for sql in step.reach({alias: form.ended(alias) for alias in step.aliases}):
                bounded = sql.endswith(LIMIT)
                sql = sql.removesuffix(LIMIT) + (f" LIMIT {most + 1}" if bounded else "")
                lines += select_lines(self.wire, sql + LOCK, most)
            if step.joined:
                lines = list(dict.fromkeys(lines))
            if self.early and not any(cascades(self.schema, table, "update", step.columns)):
                touched[table.name] = Touched(unmet=lines)
            else:
                self._meet(table, keyed(form, lines), touched)

    def _insert(self, step: Step, table: Table) -> tuple[Did, list[str]]:
        """Run an INSERT or REPLACE; how many rows it changed or took out, and the lines of the rows that it put in or
        came upon, as the server names them."""
        form = self._form(table)
        asked = f"{', ' if step.returning else ' RETURNING '}{form.line()}"
        before = self._replaced() if step.kind != "insert" else 0
        did = self.wire.run(step.statement.sql + asked)
        replaced = self._replaced() - before if step.kind != "insert" else 0
        put = [str(row[-1]) for row in did.rows if row[-1] is not None]
        if len(put) != len(did.rows):
            raise Conflict("A row is too large for the server to hand over (max_allowed_packet). Nothing was changed.")
        own = tuple(row[:-1] for row in did.rows) if step.returning else ()
        return Did(replaced, columns=did.columns[:-1] if step.returning else (), rows=own), put

    def _replaced(self) -> int:
        """How many rows this connection has changed or taken out by itself: what RETURNING doesn't tell."""
        sql = "SHOW SESSION STATUS WHERE variable_name IN ('Handler_update', 'Handler_delete')"
        return sum(int(value) for _, value in self.wire.rows(sql))

    def _chosen(self, step: Step, table: Table, put: list[str], touched: dict[str, Touched]) -> None:
        """How the rows that an INSERT put in or changed were before."""
        form = self._form(table)
        keys = {form.key_of(line) for line in put}
        if step.kind == "insert":
            self._meet_absent(table, keys, touched)
            return
        with _Snapshot(self.wire) as past:
            found = select_keys(past, form, keys, self.most + SPARE, "")
            if step.kind == "replace":
                for columns in self._uniques(table):
                    values = {form.value(line, columns) for line in put}
                    values = {one for one in values if NULL not in one}
                    for some in rows.batches(values):
                        where = form.among(columns, some)
                        sql = f"SELECT {form.ended()} FROM {quoted(table.name)} WHERE {where}"
                        found.update(select(past, form, sql, self.most + SPARE))
            self._meet(table, found, touched)
            self._meet_absent(table, keys - found.keys(), touched)
            event: Verb = "delete" if step.kind == "replace" else "update"
            self._follow(table, event, step.columns, touched, past)

    @staticmethod
    def _uniques(table: Table) -> list[tuple[str, ...]]:
        return [
            tuple(str(column) for column, _ in parts)
            for index, parts in table.facts["uniques"].items()
            if index != "PRIMARY"
        ]

    # ---- meeting rows

    def _form(self, table: Table) -> Form:
        return self._kept(table).form

    def _kept(self, table: Table) -> Kept:
        if table.name not in self.kept:
            self.kept[table.name] = Kept(Form.of(table, self.early))
        return self.kept[table.name]

    def _meet(self, table: Table, found: Lines, touched: dict[str, Touched]) -> None:
        self._kept(table).meet(found)
        touched.setdefault(table.name, Touched()).keys.update(found)

    def _meet_absent(self, table: Table, keys: set[str], touched: dict[str, Touched]) -> None:
        kept = self._kept(table)
        kept.absent = kept.absent or bool(keys)
        for key in keys:
            if key not in kept.before:
                kept.before[key] = kept.now[key] = None
        touched.setdefault(table.name, Touched()).keys.update(keys)

    def _whole(self, table: Table, touched: dict[str, Touched]) -> None:
        at = touched.setdefault(table.name, Touched())
        if not at.whole:
            at.whole = True
            self._meet(table, select_all(self.wire, self._form(table), WHOLE), touched)

    # ---- cascades

    def _follow(
        self, table: Table, event: Verb, columns: frozenset[str], touched: dict[str, Touched], by: Wire
    ) -> None:
        """The rows that foreign keys reach from the touched rows of `table`, and so on."""
        if not any(True for _ in cascades(self.schema, table, event, columns)):
            return
        waiting = [(table, event, columns, set(touched.get(table.name, Touched()).keys))]
        done: dict[tuple[str, str, frozenset[str]], set[str]] = {}
        while waiting:
            parent, event, columns, keys = waiting.pop()
            known = done.setdefault((parent.name, event, columns), set())
            keys = keys - known
            known |= keys
            reached = list(cascades(self.schema, parent, event, columns))
            if not keys or not reached:
                continue
            now = self.kept[parent.name]
            lines = [line for key in keys if (line := now.before.get(key) or now.now.get(key)) is not None]
            lines += [line for key in keys if (line := now.now.get(key)) is not None and line != now.before.get(key)]
            for child, link in reached:
                check_link(parent, child, link)
                falls = event == "delete" and link.on_delete == "CASCADE"
                next_event: Verb = "delete" if falls else "update"
                self.verbs.setdefault(child.name, set()).add(next_event)
                moves = frozenset(link.columns) if not falls else frozenset()
                if (moves & set(child.facts["identity"]) and not falls) or not child.facts["identity"]:
                    self._whole(child, touched)
                    found = set(touched[child.name].keys)
                else:
                    found = self._children(parent, child, link, lines, touched, by)
                waiting.append((child, next_event, moves, found))

    def _wholes_below(self, table: Table, event: Verb, columns: frozenset[str], touched: dict[str, Touched]) -> None:
        """Which rows a REPLACE takes out shows afterwards; tables without a key that hang on it are read before."""
        waiting = [(table, event, columns)]
        for parent, verb, moved in waiting:
            for child, link in cascades(self.schema, parent, verb, moved):
                falls = verb == "delete" and link.on_delete == "CASCADE"
                moves = frozenset(link.columns) if not falls else frozenset[str]()
                if (moves & set(child.facts["identity"])) or not child.facts["identity"]:
                    self._whole(child, touched)
                following: tuple[Table, Verb, frozenset[str]] = (child, "delete" if falls else "update", moves)
                if following not in waiting:
                    waiting.append(following)

    def _children(
        self, parent: Table, child: Table, link: ForeignKey, lines: list[str], touched: dict[str, Touched], by: Wire
    ) -> set[str]:
        form, above = self._form(child), self._form(parent)
        values = {above.value(line, link.parent_columns) for line in lines}
        keys: set[str] = set()
        for some in rows.batches(one for one in values if NULL not in one):
            sql = f"SELECT {form.ended()} FROM {quoted(child.name)} WHERE {form.among(link.columns, some)}"
            found = select(by, form, sql, self.most + SPARE, LOCK if by is self.wire else "")
            keys.update(found)
            self._meet(child, found, touched)
        return keys

    # ---- afterwards

    def _briefly(self, kept: Kept, lines: list[str], counted: Counts) -> bool:
        """Where an UPDATE that is alone touched all rows: read again only the columns that it may change."""
        form, width = kept.form, len(kept.form.key) + len(self.early)
        if width >= len(form.columns) or not form.many(self.wire, len(lines)):
            return False
        heads = select_lines(self.wire, f"SELECT {form.prefix(width)} FROM {quoted(form.table)}{LOCK}", _EVERY)
        return kept.follow_heads(lines, heads, width, counted)

    def again(self) -> None:
        """Read every row that was kept once more: a later statement may have reached what an earlier one wrote."""
        self._after({name: Touched(set(kept.before), whole=not kept.form.key) for name, kept in self.kept.items()})

    def _after(self, touched: dict[str, Touched]) -> dict[str, Counts]:
        """Read the touched rows again, and count what this statement did to them."""
        counts = {}
        for name, at in touched.items():
            kept = self.kept[name]
            counted = counts[name] = Counts()
            if at.unmet:
                if self._briefly(kept, at.unmet, counted):
                    continue
                self._meet(self.schema.tables[name], keyed(kept.form, at.unmet), touched)
            if at.whole:
                found = select_all(self.wire, kept.form, WHOLE + self.most)
            elif kept.form.many(self.wire, len(at.keys)):
                found = select_all(self.wire, kept.form, _EVERY)
                if found.keys() - at.keys:
                    found = {key: line for key, line in found.items() if key in at.keys}
            else:
                found = select_keys(self.wire, kept.form, at.keys, self.most + SPARE, LOCK)
            if kept.follow(found, len(at.keys), counted):
                continue
            if found.keys() - at.keys:
                if not at.whole:
                    # A key that is another by its bytes, and the same by its collation.
                    self._meet_absent(self.schema.tables[name], found.keys() - at.keys, {})
                else:
                    kept.absent = True
                    for key in found.keys() - kept.before.keys():
                        kept.before[key] = kept.now[key] = None
                at.keys.update(found)
            now = kept.now
            # In the order of the rows: in that of a set each look-up would miss the processor's cache.
            other = [key for key, line in found.items() if now[key] != line]
            if len(found) < len(at.keys):
                other += [key for key in at.keys - found.keys() if now[key] is not None]
            kept.stale()
            kept.first = False
            if not kept.absent and len(found) == len(at.keys):  # all of them were there, and still are
                now.update(found)
                counted.changed, counted.same = len(other), len(at.keys) - len(other)
                continue
            kept.absent = True
            for key in other:
                was, line = now[key], found.get(key)
                now[key] = line
                if was is None:
                    counted.added += 1
                elif line is None:
                    counted.gone += 1
                else:
                    counted.changed += 1
            counted.same = sum(now[key] is not None for key in at.keys) - counted.added - counted.changed
        return counts

    def _account(
        self, step: Step, did: Did, written: dict[str, Counts], put: list[str], touched: dict[str, Touched]
    ) -> None:
        """The server's count against ours. A table that was compared as a whole needs none."""
        assert step.table is not None
        name = step.table.name
        if touched.get(name, Touched()).whole:
            return
        own = {part.table.name: part.table for part in step.parts if part.table is not None}
        found = Counts()
        for one in own:
            found.add(written.get(one, Counts()))
        below = (cascades(self.schema, table, "delete", frozenset()) for table in own.values())
        cascaded = any(child.name in own for children in below for child, _ in children)
        cascaded = cascaded or (step.kind in ("delete", "replace") and len(written) > len(own))
        kept = self.kept[name]
        if step.kind == "update":
            well = did.changed == found.changed and not found.added and not found.gone
        elif step.kind == "delete":
            well = did.affected <= found.gone if cascaded else did.affected == found.gone and not found.changed
            well = well and not found.added
        elif step.kind == "insert":
            well = found.added == len(put) and not found.changed and not found.gone
        elif step.kind == "upsert":
            well = not found.gone and found.changed <= did.affected <= len(put)
        else:
            deleted = did.affected
            stayed = sum(1 for key in {kept.form.key_of(line) for line in put} if kept.now.get(key) is not None)
            most = found.changed + found.gone + found.same + len(put) - stayed
            well = deleted <= most and (cascaded or found.changed + found.gone <= deleted)
        if not well:
            raise Conflict(
                "The server changed other rows than the ones that were kept. Nothing was changed.",
                next_step="Try again, or use --policy versioning.",
            )

    # ---- what came of it

    def reached(self) -> tuple[Reached, ...]:
        """How many rows of each table were put in, changed and taken out."""
        found = []
        for name, counts in self._counts().items():
            for verb, number in counts.items():
                if number:
                    why: Literal["statement", "cascade"] = "statement" if name in self.statement_tables else "cascade"
                    columns = tuple(sorted(self.columns.get(name, ()))) if verb == "update" else ()
                    found.append(Reached(table=name, verb=verb, rows=number, why=why, columns=columns))
        return tuple(found)

    def _counts(self) -> dict[str, dict[Verb, int]]:
        found = {}
        for name, kept in self.kept.items():
            counts: dict[Verb, int] = {"insert": 0, "update": 0, "delete": 0}
            changed = kept.changed()
            if kept.absent:
                counts["insert"] = changed.was.count(None)
                counts["delete"] = changed.now.count(None)
            counts["update"] = len(changed) - counts["insert"] - counts["delete"]
            if self.verbs.get(name) == {"update"}:  # a row whose key was changed went, and came under another
                counts = {"update": counts["update"] + max(counts["insert"], counts["delete"])}
            found[name] = counts
        return found

    def _rows(self) -> int:
        return sum(sum(counts.values()) for counts in self._counts().values())

    def sample(self, most: int = 50) -> tuple[RowChange, ...]:
        found: list[RowChange] = []
        for name, kept in self.kept.items():
            for _, was, now in kept.changed():
                if len(found) >= most:
                    return tuple(found)
                found.append(
                    RowChange(table=name, before=kept.form.shown(was), after=kept.form.shown(kept.full(was, now)))
                )
        return tuple(found)


class _Snapshot:
    """Another connection, which sees what was committed at this moment."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __enter__(self) -> Wire:
        self._past = self._wire.peer()
        self._past.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        return self._past

    def __exit__(self, *_: object) -> None:
        self._past.close()


def whole(step: Step) -> bool:
    """Whether the table is compared as a whole: its rows can't be followed by name through this statement."""
    table = step.table
    assert table is not None
    if not table.facts["identity"] or step.moves_keys:
        return True
    if step.kind in ("upsert", "replace") and table.facts["partitioned"]:
        return True  # the server counts what it replaces there twice
    if step.kind == "replace":
        forms = table.facts["forms"]
        for parts in table.facts["uniques"].values():
            if any(prefix is not None or forms[str(column)][3] == "virtual" for column, prefix in parts):
                return True
    return False


def cascades(schema: Schema, parent: Table, event: Verb, columns: frozenset[str]) -> Iterable[tuple[Table, ForeignKey]]:
    """The foreign keys through which writing `parent` writes another table, or itself. `columns` () of an update:
    any."""
    made = {name for name, form in parent.facts["forms"].items() if form[3]}
    for child in schema.tables.values():
        for link in child.foreign_keys:
            if link.parent != parent.name:
                continue
            if event == "delete":
                if link.on_delete in _WRITES_CHILD:
                    yield child, link
            elif link.on_update in _WRITES_CHILD:
                reached = columns | made
                if not columns or parent.triggers or reached & set(link.parent_columns):
                    yield child, link


def check_link(parent: Table, child: Table, link: ForeignKey) -> None:
    """Raises Unsupported for a foreign key whose two sides aren't written down in the same way."""
    for above, below in zip(link.parent_columns, link.columns, strict=True):
        kind, charset, _, generated = parent.facts["forms"].get(above, ["", "", "", "virtual"])
        other, other_charset, *_ = child.facts["forms"][below]
        alike = kind == other or {kind, other} <= {"char", "varchar"} or {kind, other} <= {"binary", "varbinary"}
        if generated == "virtual" or not alike or charset != other_charset or kind in ("enum", "set"):
            raise Unsupported(
                f"What {child.name} would lose with {parent.name} can't be kept: {link.name} joins unlike columns.",
                next_step="Use --policy versioning.",
            )
