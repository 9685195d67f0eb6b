"""The rules in force: a copy in the state database that only the person's `goex rules apply` changes.

Rules: the files in the person's folder are drafts; whoever edits them changes nothing. The copy carries a MAC under a
key of the vault, and the journal its hash, so that a copy which was edited, removed or put back from an older file
shows: then nothing is permitted by a rule and everything is asked for, until rules are applied again. What stands in
config.toml (confinement) and what was denied lately (the breaker) come before any rule.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, desc, insert, select

from goex.engine.breaker import Counts, resting_text
from goex.journal.chain import Journal, stamp
from goex.journal.errors import JournalBroken, JournalLocked
from goex.journal.schema import journal as journal_table
from goex.journal.schema import rulebook
from policies.decisions import Request, Ruling
from policies.errors import Conflict, GoexError
from policies.jsonvalue import canonical, parse
from policies.limits import BREAKER, NOT_CONFINED, Breaker, Confinement
from policies.rules.book import RuleBook
from policies.rules.facts import NO_CATALOG, Catalogued
from policies.tasks import Task

_LIMIT = 64 * 2**20
_KINDS = ("rules-apply", "rules-load", "rules-distrust")


class RulesAltered(Conflict):
    """The rules in the state database aren't the ones that were applied."""

    code = "rules-altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What was applied: file name -> text, when (UTC) and by whom. Empty: the default rules alone."""

    files: Mapping[str, str] = field(default_factory=dict)
    applied: str = ""
    by: str = ""

    @property
    def root(self) -> str:
        """One hash over all of it."""
        return root_of(self.files)


def root_of(files: Mapping[str, str]) -> str:
    """SHA-256 (hex) over these files."""
    return hashlib.sha256(b"goex.v1.rules\0" + canonical(dict(files))).hexdigest()


@dataclass(slots=True)
class Rulebook:
    """Holds what is in force, and judges by it."""

    journal: Journal
    clock: Callable[[], datetime]
    catalog: Catalogued = NO_CATALOG
    confinement: Confinement = NOT_CONFINED
    breaker: Breaker = BREAKER
    counts: Counts = field(init=False)
    in_force: InForce = field(init=False, default_factory=InForce)
    trouble: str = field(init=False, default="The rules weren't read yet.")
    _book: RuleBook | None = field(init=False, default=None)
    _key: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        self.counts = Counts(self.journal, self.clock, self.breaker)

    # ---- what is in force

    def require_read(self) -> None:
        """Raise JournalLocked while nobody knows yet what is in force."""
        if not self._key:
            raise JournalLocked(
                "The vault hasn't been opened since the daemon started, so the rules aren't known yet.",
                next_step="Open it: goex vault unlock (or, the first time, goex vault init)",
            )

    def load(self, key: bytes, *, distrust: bool = False) -> None:
        """Read the copy under `key`; with `distrust` it counts as altered until rules are applied again. Never raises
        for a copy that was altered: `trouble` then says so."""
        self._key = key
        self.counts.load()
        if distrust:
            self.journal.append("rules-distrust", facts={"rules": ""})  # no files have that hash
        try:
            self._believe(self._stored())
        except RulesAltered as error:
            self._book, self.in_force, self.trouble = None, InForce(), error.message
            self.journal.append("rules-altered", facts={"problem": error.message})
            return
        self.journal.append("rules-load", facts={"rules": self.in_force.root})

    def apply(self, files: Mapping[str, str], *, by: str) -> InForce:
        """Put these files in force. Raises BadRule for what can't be, and then nothing has changed."""
        self.require_read()
        book = RuleBook.of(files, self.catalog)
        made = InForce(files=dict(files), applied=stamp(self.clock()), by=by)
        before = {} if self.trouble else self.in_force.files
        changed = sorted(name for name in {*files, *before} if files.get(name) != before.get(name))
        with self.journal.transaction() as transaction:
            transaction.connection.execute(delete(rulebook))
            transaction.connection.execute(
                insert(rulebook).values(
                    id=1,
                    files=canonical(dict(files)).decode("utf-8"),
                    applied=made.applied,
                    by=by,
                    mac=self._mac(made),
                )
            )
            facts = {"by": by, "rules": made.root, "files": changed, "count": len(book.policies)}
            transaction.append("rules-apply", facts=facts, anchored=True)
        self._book, self.in_force, self.trouble = book, made, ""
        return made

    def holds(self, files: Mapping[str, str]) -> bool:
        """Whether exactly these files are in force, and recorded as that."""
        try:
            return not self.trouble and self.in_force.root == root_of(files) == self._stored().root
        except RulesAltered:
            return False

    @property
    def book(self) -> RuleBook:
        """The rules that judge. Raises RulesAltered where nothing can be believed."""
        if self._book is None:
            raise RulesAltered(self.trouble, next_step="Look at your rules, then put them in force: goex rules apply")
        return self._book

    def naming(self, agent: str) -> tuple[str, ...]:
        """The names of the rules in force that name this agent; none while no rule can be believed."""
        return self._book.naming(agent) if self._book is not None else ()

    # ---- judging

    def judge(self, request: Request, now: datetime) -> Ruling:
        """See `policies.decisions.Rules`."""
        if (until := self.counts.until(request.agent, request.session)) is not None:
            return Ruling(forbid=("breaker",), refusal=resting_text(request.agent, until))
        if isinstance(request.plan.action, Task):  # each of its actions is judged by itself
            return Ruling(ask=("task",), reason="What a task allows is asked for as a whole.")
        refusal = self.confinement.refusal(
            request.plan, agent=request.agent, situation=request.situation, catalog=self.catalog
        )
        if refusal:
            return Ruling(forbid=("confine",), refusal=refusal)
        if self._book is None:
            why = f"{self.trouble} Until rules are applied again, everything is asked for."
            return Ruling(ask=("rules-altered",), reason=why)
        return self._book.judge(request, now)

    # ---- inside

    def _stored(self) -> InForce:
        with self.journal.read() as connection:
            row = connection.execute(select(rulebook)).first()
            last = connection.execute(
                select(journal_table.c.number, journal_table.c.facts)
                .where(journal_table.c.kind.in_(_KINDS))
                .order_by(desc(journal_table.c.number))
                .limit(1)
            ).first()
        found = InForce()
        try:
            if last is not None:
                self.journal.authentic(last.number)  # or an older row could be put there with older rules
            if row is not None:
                files = parse(row.files, limit=_LIMIT)
                found = InForce(files=files, applied=row.applied, by=row.by)
                if not hmac.compare_digest(self._mac(found), row.mac):
                    raise RulesAltered("The rules in the state database were altered.")
            expected = str(parse(last.facts).get("rules", "")) if last is not None else root_of({})
            if expected != found.root:
                raise RulesAltered("The rules in the state database were removed, or put back from a copy.")
        except (JournalBroken, ValueError, TypeError, AttributeError) as error:
            raise RulesAltered("The rules in the state database can't be read.") from error
        except GoexError as error:
            if isinstance(error, RulesAltered):
                raise
            raise RulesAltered("The rules in the state database can't be read.") from error
        return found

    def _believe(self, found: InForce) -> None:
        try:
            self._book = RuleBook.of(found.files, self.catalog)
        except GoexError as error:
            raise RulesAltered(f"The rules that were applied can't be read any more: {error.message}") from error
        self.in_force, self.trouble = found, ""

    def _mac(self, made: InForce) -> bytes:
        body = canonical(["rules", dict(made.files), made.applied, made.by])
        return hmac.digest(self._key, body, hashlib.sha256)
