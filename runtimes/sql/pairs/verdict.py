"""What the container wrote down about a pair, judged here, where neither statement, nor who made them, can reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonValue, parse

Rows = Mapping[str, Counter[tuple[str | None, ...]]]  # by table

_SHOWN = 4  # rows of a difference
_LONGEST = 120  # characters of one shown row


@dataclass(frozen=True, slots=True)
class Verdict:
    """`ok`: in each seed the undo gave back what there was, and in at least one of them the action changed something.
    `changed`: how many rows the action changed, over all seeds."""

    ok: bool
    changed: int
    lines: tuple[str, ...]


def judge(output: bytes, tables: Sequence[str], seeds: int) -> Verdict:
    """Raises InvalidInput when the container's output isn't whole, and Unsupported when the copy couldn't be made."""
    lines = output.splitlines()
    if len(lines) != seeds:
        raise InvalidInput(f"The tryout stopped: {len(lines)} of {seeds} tries were written down.")
    changed = refused = 0
    said: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            seen = parse(line)
        except InvalidInput:
            raise InvalidInput(f"What the tryout wrote down about try {number} can't be read.") from None
        if not isinstance(seen, Mapping):
            raise InvalidInput(f"What the tryout wrote down about try {number} can't be read.")
        if "failed" in seen:
            raise Unsupported(
                f"A copy of the tables couldn't be made: {seen.get('why')}",
                next_step="Use --policy reversal: it keeps the rows themselves.",
            )
        before, after = _rows(seen, "before", tables), _rows(seen, "after", tables)
        undone = _rows(seen, "undone", tables)
        rows = sum(sum(counted.values()) for counted in before.values())
        moved = _moved(before, after)
        if "action_refused" in seen:
            refused += 1
            if moved:
                return Verdict(False, changed, (*said, f"Try {number}: it was refused, and left something changed."))
            said.append(f"Try {number}: {rows} rows, refused by the database: {seen['action_refused']}")
            continue
        if "undo_refused" in seen:
            return Verdict(
                False, changed + moved, (*said, f"Try {number}: the undo was refused: {seen['undo_refused']}")
            )
        if undone != before:
            return Verdict(False, changed + moved, (*said, *_difference(number, before, undone)))
        changed += moved
        said.append(f"Try {number}: {rows} rows, {moved} changed, and as before after the undo.")
    if changed == 0:
        why = "refused each of them" if refused == seeds else "found nothing to change in any of them"
        return Verdict(False, 0, (*said, f"The action {why}, so nothing is known about its undo."))
    return Verdict(True, changed, tuple(said))


def _rows(seen: Mapping[str, JsonValue], name: str, tables: Sequence[str]) -> Rows:
    state = seen.get(name)
    if not isinstance(state, Mapping) or set(state) != set(tables):
        raise InvalidInput("What the tryout wrote down isn't about the tables that it was to try.")
    found: dict[str, Counter[tuple[str | None, ...]]] = {}
    for table, rows in state.items():
        if not isinstance(rows, list | tuple):
            raise InvalidInput("What the tryout wrote down isn't rows.")
        found[table] = Counter(
            tuple(None if value is None else str(value) for value in row)
            for row in rows
            if isinstance(row, list | tuple)
        )
    return found


def _moved(before: Rows, after: Rows) -> int:
    """How many rows are there only before or only after; an updated row counts once."""
    return sum(
        max(sum((before[table] - after[table]).values()), sum((after[table] - before[table]).values()))
        for table in before
    )


def _difference(number: int, before: Rows, undone: Rows) -> list[str]:
    lines = [f"Try {number}: after the undo it isn't as it was before."]
    for table in sorted(before):
        for mark, rows in (("missing", before[table] - undone[table]), ("instead", undone[table] - before[table])):
            for row in sorted(rows, key=repr)[:_SHOWN]:
                shown = ", ".join("NULL" if value is None else value.partition(":")[2] for value in row)
                lines.append(f"  {table}, {mark}: ({shown[:_LONGEST]})")
    return lines
