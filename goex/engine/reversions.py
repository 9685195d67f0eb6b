"""The reversion set beyond the catalog: pairs that a developer or a model supplied, and how every pair did.

Rules: it lies in state.db, beside the grants and kept as they are: each row carries a MAC under a key of the vault, and
each change journals one hash over all of them, so that a row which was edited, added, removed or put back from a copy
shows. Then nothing of it is believed, nothing counts as proven, and only what comes with GoEx takes anything back,
until the person restores it from the journal, whose rows hold all of it. What isn't secret isn't sealed: the catalog's
file, which imports write anew and no key protects, would be the wrong place. A use is on disk before it is spoken of.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete, desc, insert, select

from goex.journal.chain import Journal, Transaction, stamp
from goex.journal.errors import JournalBroken, JournalLocked
from goex.journal.schema import journal as journal_table
from goex.journal.schema import pair_uses, pairs
from mapper import pairs as pair_files
from mapper.catalog import Catalog
from policies.errors import Conflict, GoexError, InvalidInput
from policies.jsonvalue import canonical, parse
from policies.reversions import Pair, Result, Standing, Use
from policies.services import Source

_KINDS = ("pair-add", "pair-remove", "pair-use", "pair-restore")
_LIMIT = 64 * 2**20


class ReversionsAltered(Conflict):
    """What is known of undo pairs isn't what the daemon wrote."""

    code = "reversions-altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A pair as it was added. `pair` None: its methods aren't called as they were then, so it isn't used."""

    hash: str
    method: str
    source: Source
    body: str
    added: str
    by: str
    pair: Pair | None = None
    stale: str = ""  # why `pair` is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One use of a pair, and when."""

    use: Use
    at: str


class Reversions:
    """`policies.reversions.ReversionSet`, durable. Every change is one transaction with its journal row."""

    def __init__(self, journal: Journal, clock: Callable[[], datetime], catalog: Catalog) -> None:
        self._journal = journal
        self._clock = clock
        self._catalog = catalog
        self._key = b""
        self.trouble = "The undo pairs weren't read yet."
        self._clear()

    def _clear(self) -> None:
        self._added: dict[str, Added] = {}
        self._uses: dict[tuple[str, str, int], Used] = {}
        self._standing: dict[str, Standing] = {}
        self._macs: dict[str, bytes] = {}
        self._generation = -1

    # ---- reading

    def load(self, key: bytes, *, distrust: bool = False) -> None:
        """Read the tables under `key`; with `distrust` after forgetting what is in them. Never raises for altered ones:
        `trouble` then says so."""
        self._key = key
        if distrust:
            with self._journal.transaction() as transaction:
                transaction.connection.execute(delete(pairs))
                transaction.connection.execute(delete(pair_uses))
                transaction.append("pair-restore", facts={"by": "goex", "count": 0, "uses": 0, "pairs": _EMPTY})
        try:
            self._read()
        except ReversionsAltered as error:
            self._clear()
            self.trouble = error.message
            self._journal.append("pairs-altered", facts={"problem": error.message})

    def added(self, method_id: str) -> tuple[Pair, ...]:
        """See `ReversionSet`."""
        if self.trouble:
            return ()
        self._parse_again()
        return tuple(one.pair for one in self._added.values() if one.method == method_id and one.pair is not None)

    def standing(self, pair: str) -> Standing:
        """See `ReversionSet`."""
        return Standing.UNBELIEVED if self.trouble else self._standing.get(pair, Standing.UNPROVEN)

    def all_added(self) -> tuple[Added, ...]:
        """Every pair that was added, by method."""
        self.require_believed()
        self._parse_again()
        return tuple(sorted(self._added.values(), key=lambda one: (one.method, one.hash)))

    def uses(self, pair: str = "") -> tuple[Used, ...]:
        """Every use (of one pair, or of all), newest first."""
        self.require_believed()
        found = (used for used in self._uses.values() if not pair or used.use.pair == pair)
        return tuple(sorted(found, key=lambda used: used.at, reverse=True))

    def require_believed(self) -> None:
        """Raise JournalLocked before the vault was opened, ReversionsAltered where nothing can be believed."""
        if not self._key:
            raise JournalLocked(
                "The vault hasn't been opened since the daemon started, so undo pairs aren't known yet.",
                next_step="Open it: goex vault unlock (or, the first time, goex vault init)",
            )
        if self.trouble:
            raise ReversionsAltered(self.trouble, next_step="Bring back what the journal says: goex undo-pairs restore")

    # ---- changing

    def add(self, made: Iterable[Pair], *, by: str) -> tuple[Added, ...]:
        """Add pairs. Raises InvalidInput for one that is there already, or failed before."""
        self.require_believed()
        new = tuple(made)
        for pair in new:
            if self._standing.get(pair.hash) is Standing.FAILED:
                raise InvalidInput(
                    f"This way back of {pair.method_id} failed before, so it isn't used again.",
                    next_step=f"Use it again: goex undo-pairs retry {pair.hash[:12]}. "
                    f"How it failed: goex undo-pairs show {pair.hash[:12]}",
                )
            if pair.hash in self._added and self._added[pair.hash].source == pair.source:
                raise InvalidInput(f"This way back of {pair.method_id} is there already.")
        rows = tuple(
            Added(
                hash=pair.hash,
                method=pair.method_id,
                source=pair.source,
                body=canonical(pair_files.to_json(pair)).decode("utf-8"),
                added=stamp(self._clock()),
                by=by,
                pair=pair,
            )
            for pair in new
        )
        with self._changing() as transaction:
            for row in rows:
                self._insert(transaction, row)
            facts = {"added": [_facts(row) for row in rows], "by": by, "pairs": self.root()}
            transaction.append("pair-add", facts=facts, anchored=True)
        return rows

    def remove(self, hash: str, *, by: str) -> Added:
        """Remove an added pair, by its hash or the beginning of it. What it did stays known. Raises InvalidInput."""
        row = self.added_one(hash)
        with self._changing() as transaction:
            transaction.connection.execute(delete(pairs).where(pairs.c.hash == row.hash))
            del self._added[row.hash]
            self._macs.pop(f"pair/{row.hash}")
            facts = {"removed": row.hash, "method": row.method, "by": by, "pairs": self.root()}
            transaction.append("pair-remove", facts=facts, anchored=True)
        return row

    def added_one(self, hash: str) -> Added:
        """The added pair of that hash, or with a hash that begins so. Raises InvalidInput."""
        self.require_believed()
        found = [one for one in self._added.values() if one.hash.startswith(hash)] if len(hash) >= 6 else []
        if len(found) != 1:
            raise InvalidInput(
                f"There is no added undo pair {hash[:64]!r}."
                if not found
                else f"Several pairs begin with {hash[:64]}.",
                next_step="goex undo-pairs list shows them; what comes with GoEx or a document can't be removed.",
            )
        return found[0]

    def failed_one(self, hash: str) -> str:
        """The pair of that hash, or with a hash that begins so, that failed. Raises InvalidInput."""
        self.require_believed()
        found = [pair for pair, standing in self._standing.items() if standing is Standing.FAILED]
        found = [pair for pair in found if pair.startswith(hash)] if len(hash) >= 6 else []
        if len(found) != 1:
            raise InvalidInput(
                f"There is no undo pair {hash[:64]!r} that failed."
                if not found
                else f"Several pairs begin with {hash[:64]}.",
                next_step="See those that failed with: goex undo-pairs list --failed",
            )
        return found[0]

    def retry(self, hash: str, *, by: str) -> str:
        """Let a pair be used again that failed; what its failures were stays known. Returns its hash. Raises
        InvalidInput."""
        pair = self.failed_one(hash)
        mine = [used for used in self._uses.values() if used.use.pair == pair]
        with self._changing() as transaction:
            for used in mine:
                if used.use.result is Result.FAILED:
                    row = replace(used, use=replace(used.use, result=Result.OPEN))
                    self._insert_use(transaction, row)
                    facts = {**_use_facts(row.use, row.at), "by": by, "failed": True, "pairs": self.root()}
                    transaction.append("pair-use", action_id=row.use.action, facts=facts, anchored=True)
        self._standing.pop(pair)
        for used in tuple(self._uses.values()):
            if used.use.pair == pair:
                self._keep_use(used)
        return pair

    def used(self, use: Use) -> None:
        """See `ReversionSet`. While nothing is believed, a use is journaled all the same, for `restore`."""
        key = use.pair, use.action, use.call
        if self.trouble:
            if self._key:
                self._journal.append("pair-use-aside", action_id=use.action, facts=_use_facts(use, ""))
            return
        known = self._uses.get(key)
        if known is not None and known.use == use:
            return
        row = Used(use=use, at=stamp(self._clock()))
        with self._changing() as transaction:
            self._insert_use(transaction, row)
            facts = {**_use_facts(use, row.at), "pairs": self.root()}
            transaction.append("pair-use", action_id=use.action, facts=facts)

    def restore(self, *, by: str) -> int:
        """Make the tables anew from the journal, once all of that was verified. Returns how many pairs and uses there
        are. Raises JournalBroken where the journal itself isn't what was written."""
        if not self._key:
            self.require_believed()
        found = self._journal.verify()
        if not found.good:
            raise JournalBroken(
                "The journal isn't what was written, so it can't bring anything back.", next_step="goex log --verify"
            )
        added, uses = self._told()
        self._clear()
        self.trouble = ""
        try:
            with self._journal.transaction() as transaction:
                transaction.connection.execute(delete(pairs))
                transaction.connection.execute(delete(pair_uses))
                for row in added.values():
                    self._insert(transaction, row)
                for use in uses.values():
                    self._insert_use(transaction, use)
                facts = {"by": by, "count": len(added), "uses": len(uses), "pairs": self.root()}
                transaction.append("pair-restore", facts=facts, anchored=True)
        except BaseException:
            self.load(self._key)
            raise
        return len(added) + len(uses)

    def root(self) -> str:
        """One hash over all of it, for the journal."""
        return hashlib.sha256(b"".join(mac for _, mac in sorted(self._macs.items()))).hexdigest()

    # ---- inside

    def _read(self) -> None:
        self._clear()
        with self._journal.read() as connection:
            rows = list(connection.execute(select(pairs)))
            uses = list(connection.execute(select(pair_uses)))
            last = connection.execute(
                select(journal_table.c.number, journal_table.c.facts)
                .where(journal_table.c.kind.in_(_KINDS))
                .order_by(desc(journal_table.c.number))
                .limit(1)
            ).first()
        try:
            if last is not None:
                self._journal.authentic(last.number)
            for row in rows:
                facts = {name: value for name, value in row._mapping.items() if name != "mac"}
                added = Added(**facts)
                self._check(self._mac_of(added), row.mac, f"The undo pair {row.hash[:12]}")
                self._keep(added)
            for row in uses:
                use = Use(pair=row.pair, action=row.action, call=row.call, result=Result(row.result), why=row.why)
                used = Used(use=use, at=row.at)
                self._check(self._mac_of_use(used), row.mac, f"The use of an undo pair by {row.action}")
                self._keep_use(used)
            expected = str(parse(last.facts, limit=_LIMIT).get("pairs", "")) if last is not None else _EMPTY
            if expected != self.root():
                raise ReversionsAltered("Undo pairs in the state database were removed, or put back from a copy.")
        except (JournalBroken, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReversionsAltered("The undo pairs in the state database can't be read.") from error
        except GoexError as error:
            if isinstance(error, ReversionsAltered):
                raise
            raise ReversionsAltered("The undo pairs in the state database can't be read.") from error
        self.trouble = ""

    @staticmethod
    def _check(expected: bytes, found: bytes, what: str) -> None:
        if not hmac.compare_digest(expected, found):
            raise ReversionsAltered(f"{what} in the state database was altered.")

    def _told(self) -> tuple[dict[str, Added], dict[tuple[str, str, int], Used]]:
        """What the journal's rows say, in their order."""
        added: dict[str, Added] = {}
        uses: dict[tuple[str, str, int], Used] = {}
        query = select(journal_table.c.kind, journal_table.c.at, journal_table.c.facts).where(
            journal_table.c.kind.in_((*_KINDS, "pair-use-aside"))
        )
        with self._journal.read() as connection:
            for kind, at, text in connection.execute(query.order_by(journal_table.c.number)):
                facts = parse(text, limit=_LIMIT)
                if kind == "pair-add":
                    added.update({one["hash"]: Added(**one) for one in facts["added"]})
                elif kind == "pair-remove":
                    added.pop(facts["removed"], None)
                elif kind.startswith("pair-use"):
                    use = Use(
                        pair=facts["pair"],
                        action=facts["action"],
                        call=facts["call"],
                        result=Result(facts["result"]),
                        why=facts["why"],
                    )
                    uses[use.pair, use.action, use.call] = Used(use=use, at=facts["at"] or at)
        return added, uses

    def _insert(self, transaction: Transaction, row: Added) -> None:
        facts = {**_facts(row), "mac": self._mac_of(row)}
        transaction.connection.execute(insert(pairs).prefix_with("OR REPLACE"), facts)
        self._keep(row)

    def _insert_use(self, transaction: Transaction, row: Used) -> None:
        facts = {**_use_facts(row.use, row.at), "mac": self._mac_of_use(row)}
        transaction.connection.execute(insert(pair_uses).prefix_with("OR REPLACE"), facts)
        self._keep_use(row)

    def _keep(self, row: Added) -> None:
        self._added[row.hash] = row
        self._macs[f"pair/{row.hash}"] = self._mac_of(row)
        self._generation = -1  # what it means is read when it is first needed

    def _keep_use(self, row: Used) -> None:
        use = row.use
        self._uses[use.pair, use.action, use.call] = row
        self._macs[f"use/{use.pair}/{use.action}/{use.call}"] = self._mac_of_use(row)
        now = self._standing.get(use.pair, Standing.UNPROVEN)
        if use.result is Result.FAILED:
            self._standing[use.pair] = Standing.FAILED
        elif use.result is Result.WORKED and now is Standing.UNPROVEN:
            self._standing[use.pair] = Standing.PROVEN

    def _parse_again(self) -> None:
        """What the pairs mean depends on the catalog, which an import may have changed."""
        try:
            generation = self._catalog.generation
        except GoexError:
            generation = -2
        if generation == self._generation:
            return
        self._generation = generation
        for hash, row in self._added.items():
            self._added[hash] = self._parsed(row)

    def _parsed(self, row: Added) -> Added:
        try:
            pair = pair_files.from_json(parse(row.body, limit=_LIMIT), self._catalog, source=row.source)
        except GoexError as error:
            return replace(row, pair=None, stale=error.message)
        if pair.hash != row.hash:
            return replace(row, pair=None, stale="The methods in it aren't called as they were when it was added.")
        return replace(row, pair=pair, stale="")

    def _changing(self) -> _Changing:
        return _Changing(self)

    def _mac_of(self, row: Added) -> bytes:
        return self._mac(canonical(["pair", _facts(row)]))

    def _mac_of_use(self, row: Used) -> bytes:
        return self._mac(canonical(["pair-use", _use_facts(row.use, row.at)]))

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)


class _Changing:
    """Reads the tables again when its transaction fails: memory never says more than the disk."""

    def __init__(self, reversions: Reversions) -> None:
        self._reversions = reversions

    def __enter__(self) -> Transaction:
        self._manager = self._reversions._journal.transaction()
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        failed = error[0] is not None
        try:
            return self._manager.__exit__(*error)
        except BaseException:
            failed = True
            raise
        finally:
            if failed:
                self._reversions.load(self._reversions._key)


def _facts(row: Added) -> Mapping[str, Any]:
    return {
        "hash": row.hash, "method": row.method, "source": row.source, "body": row.body, "added": row.added,
        "by": row.by,
    }  # fmt: skip


def _use_facts(use: Use, at: str) -> dict[str, Any]:
    return {
        "pair": use.pair, "action": use.action, "call": use.call, "result": use.result.value, "why": use.why, "at": at,
    }  # fmt: skip


_EMPTY = hashlib.sha256().hexdigest()
