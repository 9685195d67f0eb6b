"""The rules in force: a copy in the state database that only the person's `goex rules apply` changes.

Rules: the files in the person's folder are drafts; whoever edits them changes nothing. The copy carries a MAC under a
key of the vault, and the journal its hash, so that a copy which was edited, removed or put back from an older file
shows: then nothing is permitted by a rule and everything is asked for, until rules are applied again. The copy holds
for the imported catalog as it was then, too (`sealed`): of a method that this says anything else of now, rules forbid
and ask, and where one names its service or would permit it, the call is asked for. What stands in config.toml
(confinement) and what was denied lately (the breaker) come before any rule.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, desc, insert, select

from goex.engine.breaker import Counts, resting_text
from goex.engine.catalog_entries import entry, is_as_planned, is_imported
from goex.journal.chain import Journal, stamp
from goex.journal.errors import JournalBroken, JournalLocked
from goex.journal.schema import journal as journal_table
from goex.journal.schema import rulebook
from mapper.catalog import Catalog
from mapper.store.database import StoreUnreadable
from policies.actions import Plan
from policies.decisions import Request, Ruling
from policies.errors import Conflict, GoexError, Unavailable
from policies.jsonvalue import canonical, parse
from policies.limits import BREAKER, NOT_CONFINED, Breaker, Confinement
from policies.rules.book import RuleBook
from policies.tasks import Task

_LIMIT = 64 * 2**20
CATALOG_CHANGED = "catalog-changed"  # in the place of a rule that asks
_KINDS = ("rules-apply", "rules-load", "rules-distrust")


class RulesAltered(Conflict):
    """The rules in the state database aren't the ones that were applied."""

    code = "rules-altered"


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What was applied: file name -> text, when (UTC), by whom, and for which `entries` of the imported catalog (method
    -> hash; an earlier GoEx applied for none). Empty: the default rules alone."""

    files: Mapping[str, str] = field(default_factory=dict)
    applied: str = ""
    by: str = ""
    entries: Mapping[str, str] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """One hash over all of it."""
        return root_of(self.files, self.entries)


def root_of(files: Mapping[str, str], entries: Mapping[str, str]) -> str:
    """SHA-256 (hex) over these files, put in force for these entries."""
    bound = canonical(dict(entries)) if entries else b""
    return hashlib.sha256(b"goex.v1.rules\0" + canonical(dict(files)) + bound).hexdigest()


def unbound_text(methods: Mapping[str, str]) -> str:
    """That the imported catalog isn't what rules were applied for, and what to do; "" for no methods. `methods`: each
    with its entry now, hashed; "" where there is none."""
    there, gone = [id for id, now in methods.items() if now], [id for id, now in methods.items() if not now]
    said = []
    if there:
        said.append(
            f"The rules weren't applied for what the imported catalog says now of {_named(there)}, so that is asked"
            f" for. Look at it: goex catalog show {there[0]}. Then put the rules in force for it: goex rules apply"
        )
    if gone:
        said.append(
            f"The rules were applied for {_named(gone)}, and that is gone from the imported catalog, or can't be read"
            " there. Import it anew, or put the rules in force without it: goex rules apply"
        )
    return ". ".join(said)


def _named(methods: Sequence[str]) -> str:
    return ", ".join(methods[:3]) + (f" and {len(methods) - 3} more" if len(methods) > 3 else "")


@dataclass(slots=True)
class Rulebook:
    """Holds what is in force, and judges by it."""

    journal: Journal
    clock: Callable[[], datetime]
    catalog: Catalog
    confinement: Confinement = NOT_CONFINED
    breaker: Breaker = BREAKER
    counts: Counts = field(init=False)
    in_force: InForce = field(init=False, default_factory=InForce)
    trouble: str = field(init=False, default="The rules weren't read yet.")
    _book: RuleBook | None = field(init=False, default=None)
    _key: bytes = field(init=False, default=b"")
    _last: tuple[int, frozenset[str], Mapping[str, str]] | None = field(init=False, default=None)
    _told: tuple[tuple[int, str], Mapping[str, str]] | None = field(init=False, default=None)
    _telling: threading.Lock = field(init=False, repr=False, compare=False, default_factory=threading.Lock)

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

    def apply(self, files: Mapping[str, str], *, by: str, entries: Mapping[str, str] | None = None) -> InForce:
        """Put these files in force, for what the imported catalog said when it was looked at (`sealed`; None: now).
        Raises BadRule for what can't be, Conflict as `sealed`, and then nothing has changed."""
        self.require_read()
        book = RuleBook.of(files, self.catalog)
        entries = self.sealed(files) if entries is None else entries
        made = InForce(files=dict(files), applied=stamp(self.clock()), by=by, entries=dict(entries))
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
                    entries=canonical(dict(made.entries)).decode("utf-8"),
                )
            )
            facts = {"by": by, "rules": made.root, "files": changed, "count": len(book.policies)}
            transaction.append("rules-apply", facts=facts, anchored=True)
        self._book, self.in_force, self.trouble = book, made, ""
        return made

    def sealed(self, files: Mapping[str, str]) -> dict[str, str]:
        """What these files would be put in force for: each method, with its entry hashed, of the imported services that
        a rule names, and of all where a permit is for any; nothing of one that can't be read. Raises BadRule; Conflict
        where they are for what is imported, and none of that can be read. May run in a thread."""
        book, services = RuleBook.of(files, self.catalog), self.catalog.services
        if (trouble := self._trouble(book)) is not None:
            raise Conflict(trouble.message, next_step=trouble.next_step) from trouble
        generation = self.catalog.generation if self.catalog.trouble is None else -1
        names, made = self._names(book), dict[str, str]()
        for name in names:
            service = services.get(name)
            if service is not None and service.source == "imported":
                with suppress(StoreUnreadable):
                    made |= {f"{name}.{one}": entry(self.catalog, name, one) for one in service.methods}
        self._last = generation, names, made
        return made

    def catalog_notice(self) -> str:
        """What the person should know of the imported catalog under the rules in force, as one text. May run in a
        thread."""
        if self._book is not None and (trouble := self._trouble(self._book)) is not None:
            return str(trouble)
        return unbound_text(self.unbound())

    def unbound(self) -> Mapping[str, str]:
        """The methods of which the imported catalog doesn't say any more what rules were applied for, each with its
        entry now ("": none); of a catalog that can't be read, none. To be told about, not to decide on. May run in a
        thread."""
        with self._telling:  # whoever looks meanwhile waits for the same answer
            if self._book is None or self.catalog.trouble is not None:
                return {}
            key = self.catalog.generation, self.in_force.root
            if self._told is None or self._told[0] != key:
                last = self._last
                if last is None or last[0] != key[0] or not self._names(self._book) <= last[1]:
                    entries: Mapping[str, str] = self.sealed(self.in_force.files)
                else:
                    entries = last[2]  # it takes seconds where all of a large catalog is concerned
                self._told = key, self.differing(entries)
            return self._told[1]

    def differing(self, entries: Mapping[str, str]) -> dict[str, str]:
        """The methods of which these entries, of all that the rules in force name, don't say what those were applied
        for, each with its entry now; "" for none."""
        then, named = self.in_force.entries, self.book.services()
        anywhere = self.book.permits_anywhere()
        now = {id: one for id, one in entries.items() if anywhere or id.partition(".")[0] in named}
        return {id: now.get(id, "") for id in sorted({*then, *now}) if then.get(id) != now.get(id)}

    def holds(self, files: Mapping[str, str], entries: Mapping[str, str]) -> bool:
        """Whether exactly these files are in force for exactly these entries, and recorded as that."""
        try:
            return not self.trouble and self.in_force.root == root_of(files, entries) == self._stored().root
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
        said = self._book.judge(request, now)
        if said.forbid or said.ask or said.problem or not (why := self._why_unbound(request.plan, said, self._book)):
            return said
        return Ruling(ask=(CATALOG_CHANGED,), reason=why)

    # ---- inside

    def _names(self, book: RuleBook) -> frozenset[str]:
        """The services whose entries these rules are put in force for, where they are imported."""
        return frozenset(self.catalog.services) if book.permits_anywhere() else book.services()

    def _trouble(self, book: RuleBook) -> Unavailable | None:
        """Why the imported catalog can't be read, where these rules are for what is in it."""
        trouble = self.catalog.trouble
        if trouble is None or book.permits_anywhere():
            return trouble
        return trouble if any(is_imported(self.catalog, name) for name in book.services()) else None

    def _why_unbound(self, plan: Plan, said: Ruling, book: RuleBook) -> str:
        """Why a plan is asked for: rules weren't applied for the methods, of those that a rule permits and those of a
        service that one names. "": they were."""
        concerned = {
            f"{need.service}.{name}": entry(self.catalog, need.service, name)
            for place, need in enumerate(plan.required)
            if is_imported(self.catalog, need.service) and (place in said.permits or need.service in book.services())
            for name in need.methods
        }
        if concerned and (trouble := self.catalog.trouble) is not None:
            return str(trouble)
        if concerned and not is_as_planned(self.catalog, plan):  # what would run isn't what is compared
            return (
                f"What GoEx knows of the methods of this plan ({_named(tuple(concerned))}) changed since it was made, "
                "so it is asked for. Deny it, and let it be asked anew."
            )
        then = self.in_force.entries
        return unbound_text({id: now for id, now in concerned.items() if not now or then.get(id) != now})

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
                entries = parse(row.entries, limit=_LIMIT)
                found = InForce(files=files, applied=row.applied, by=row.by, entries=entries)
                if not hmac.compare_digest(self._mac(found), row.mac):
                    raise RulesAltered("The rules in the state database were altered.")
            expected = str(parse(last.facts).get("rules", "")) if last is not None else InForce().root
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
        bound = [dict(made.entries)] if made.entries else []
        body = canonical(["rules", dict(made.files), made.applied, made.by, *bound])
        return hmac.digest(self._key, body, hashlib.sha256)
