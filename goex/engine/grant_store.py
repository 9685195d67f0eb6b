"""Who is allowed what: grants and the agents that hold them, as the daemon believes them.

Rules: memory is the authority while the daemon runs, the tables are its durable copy. Each row carries a MAC, and each
change journals one hash over all live rows: a row that was edited, added, removed or put back from an older copy of
the file shows when the tables are read, and then nothing in them is believed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, desc, insert, select, update

from goex.engine import grant_rows
from goex.journal.chain import Journal, Transaction, stamp
from goex.journal.errors import JournalBroken, JournalLocked
from goex.journal.schema import Prepared, agents, grant_uses, grants, journal
from policies.actions import Need
from policies.display_text import counted
from policies.errors import Conflict, InvalidInput
from policies.grants import ANONYMOUS, PERSON, Grant, Width
from policies.jsonvalue import canonical, parse

_UPDATE = Prepared(update(grants).where(grants.c.id == bindparam("wanted")))
_USED = Prepared(insert(grant_uses).prefix_with("OR REPLACE"))

_MOST_COUNTED = 100  # grants of one permission that are counted
TOKEN_PREFIX = "goex_"  # noqa: S105  how a token looks, not one


class GrantsAltered(Conflict):
    """The grants or agents in the state database aren't the ones that the daemon wrote."""

    code = "ledger-altered"


@dataclass(frozen=True, slots=True)
class Agent:
    """A named agent. The token itself is kept nowhere."""

    name: str
    token_hash: bytes
    created: str


class GrantStore:
    """Grants and agents. Every change is one transaction with its journal row."""

    def __init__(self, journal_: Journal, clock: Callable[[], datetime], lapse: timedelta | None = None) -> None:
        """A permanent grant that wasn't used for as long as `lapse` doesn't hold any more; None: it does."""
        self._journal = journal_
        self._clock = clock
        self._key: bytes | None = None
        self.lapse = lapse
        self._clear()

    def _clear(self) -> None:
        self._grants: dict[str, Grant] = {}
        self._by_key: dict[tuple[str, str, str, str], set[str]] = {}
        self._by_agent: dict[str, set[str]] = {}
        self._by_session: dict[str, set[str]] = {}
        self._once_of: dict[str, set[str]] = {}  # by action: what was given to it alone
        self._agents: dict[str, Agent] = {}
        self._macs: dict[str, bytes] = {}
        self._names: list[str] = []  # of `_macs`, sorted

    # ---- reading

    def load(self, key: bytes) -> None:
        """Read the tables under `key`. Raises GrantsAltered, and then holds nothing."""
        self._clear()
        self._key = key
        with self._journal.read() as connection:
            found_grants = list(connection.execute(select(grants)))
            found_agents = list(connection.execute(select(agents)))
            found_uses = {row.id: row for row in connection.execute(select(grant_uses))}
            last = connection.execute(
                select(journal.c.number, journal.c.facts)
                .where(journal.c.kind.in_(("grant", "revoke", "consume", "agent-add", "agent-remove", "allow")))
                .order_by(desc(journal.c.number))
                .limit(1)
            ).first()
        try:
            self._journal.authentic(last.number if last else 1)  # or an older hash could be put there with older rows
            for row in found_grants:
                uses = found_uses.get(row.id)
                grant = grant_rows.grant_from(dict(row._mapping), dict(uses._mapping) if uses else None)
                mac = self._mac(grant_rows.body(grant))
                if not hmac.compare_digest(mac, row.mac):
                    raise GrantsAltered(f"Grant {row.id} in the state database was altered.")
                if uses and not hmac.compare_digest(self._mac(grant_rows.uses_body(grant)), uses.mac):
                    raise GrantsAltered(f"The uses of grant {row.id} in the state database were altered.")
                self._keep(grant, mac)
            for row in found_agents:
                agent = Agent(row.name, row.token_hash, row.created)
                mac = self._mac(_agent_body(agent))
                if not hmac.compare_digest(mac, row.mac):
                    raise GrantsAltered(f"Agent {row.name!r} in the state database was altered.")
                self._agents[agent.name] = agent
                self._seal(f"agent/{agent.name}", mac)
            expected = parse(last.facts).get("ledger", "") if last else hashlib.sha256().hexdigest()
            if expected != self._root():
                raise GrantsAltered("Grants or agents in the state database were removed, or put back from a copy.")
        except (GrantsAltered, JournalBroken, ValueError, TypeError, KeyError) as error:
            self._clear()
            self._key = None
            if isinstance(error, GrantsAltered):
                raise
            raise GrantsAltered("The grants in the state database can't be read.") from error

    def distrust(self, key: bytes) -> None:
        """Start again with nobody allowed anything, and no agent named."""
        self._key = key
        with self.changing() as transaction:
            transaction.connection.execute(delete(grants))
            transaction.connection.execute(delete(agents))
            transaction.append("revoke", facts={"grants": ["all"], "by": "goex", "ledger": self._root()})

    def root(self) -> str:
        """One hash over everything live, for the journal."""
        return self._root()

    def matching(self, agent: str, needs: Iterable[Need]) -> tuple[Grant, ...]:
        """The grants that could concern these needs (`Grant.covers` decides)."""
        now = self._clock()
        found: dict[str, Grant] = {}
        for need in needs:
            for id in self._by_key.get((agent, need.service, need.account, need.scope), ()):
                if not self._lapsed(self._grants[id], now):
                    found[id] = self._grants[id]
        return tuple(found.values())

    def standing(self, agent: str, session: str) -> frozenset[tuple[str, str, str]]:
        """(service, account, scope) that this agent holds now without further asking and without constraints."""
        now = self._clock()
        return frozenset(
            (grant.service, grant.account, grant.scope)
            for grant in (self._grants[id] for id in self._by_agent.get(agent, ()))
            if not grant.constraints
            and not grant.methods
            and not grant.is_over(now)
            and (grant.width is Width.PERMANENT or (grant.width is Width.SESSION and grant.session == session))
            and not self._lapsed(grant, now)
        )

    def tasks(self, agent: str) -> tuple[Grant, ...]:
        """The lines of this agent's tasks, in the order of each task."""
        found = (self._grants[id] for id in self._by_agent.get(agent, ()))
        return tuple(sorted((one for one in found if one.width is Width.TASK), key=lambda one: one.id))

    def of_task(self, action_id: str) -> tuple[str, ...]:
        """The ids of all lines that a task has had, ended ones too."""
        query = select(grants.c.id).where(grants.c.why == action_id, grants.c.width == Width.TASK.value)
        with self._journal.read() as connection:
            return tuple(connection.execute(query).scalars())

    def live(self, id: str) -> Grant | None:
        """A grant as it is now; None once it was used, revoked or never there."""
        return self._grants.get(id)

    def unused(self, action_id: str) -> tuple[str, ...]:
        """The ids of the live grants that were given to that action alone: once-grants, and what its task allows."""
        return tuple(self._once_of.get(action_id, ()))

    def given(self, agent: str, need: Need) -> int:
        """How often the agent was given this permission before, for anything: to be told, not to decide on. A row that
        isn't as it was written doesn't count."""
        query = select(grants).where(
            grants.c.agent == agent,
            grants.c.service == need.service,
            grants.c.account == need.account,
            grants.c.scope == need.scope,
            grants.c.created >= self.named_since(agent),  # not another's of that name
        )
        with self._journal.read() as connection:
            rows = [dict(row._mapping) for row in connection.execute(query.limit(_MOST_COUNTED))]
        return sum(
            hmac.compare_digest(self._mac(grant_rows.body(grant_rows.grant_from(row))), row["mac"]) for row in rows
        )

    def grants(self, *, everything: bool = False) -> tuple[Grant, ...]:
        """Live grants, newest first; with `everything` also used, expired and revoked ones."""
        now = self._clock()
        if everything:
            with self._journal.read() as connection:
                uses = {row.id: dict(row._mapping) for row in connection.execute(select(grant_uses))}
                rows = connection.execute(select(grants))
                found = [grant_rows.grant_from(dict(row._mapping), uses.get(row.id)) for row in rows]
        else:
            found = [
                grant
                for grant in self._grants.values()
                if (grant.expires is None or now < grant.expires) and not self._lapsed(grant, now)
            ]
        return tuple(sorted(found, key=lambda grant: grant.created, reverse=True))

    def ends(self, grant: Grant) -> datetime | None:
        """When it ends if nobody uses it; None: never by itself."""
        lapses = [grant.unused_since() + self.lapse] if self.lapse and grant.width is Width.PERMANENT else []
        return min([*lapses, *([grant.expires] if grant.expires else [])], default=None)

    def forget_unused(self) -> tuple[Grant, ...]:
        """Revoke the permanent grants that nobody used for too long, and those whose time is over."""
        now = self._clock()
        over = [id for id, grant in self._grants.items() if grant.expires is not None and now >= grant.expires]
        lapsed = [id for id, grant in self._grants.items() if self._lapsed(grant, now)]
        days = counted(self.lapse.days if self.lapse else 0, "day")
        done = self.revoke([id for id in lapsed if id not in over], by="goex", why=f"not used for {days}")
        return (*done, *self.revoke(over, by="goex", why="its time was over"))

    def _lapsed(self, grant: Grant, now: datetime) -> bool:
        """Whether it is a permanent grant that wasn't used for too long."""
        if self.lapse is None or grant.width is not Width.PERMANENT:
            return False
        return now >= grant.unused_since() + self.lapse

    def agents(self) -> tuple[Agent, ...]:
        return tuple(sorted(self._agents.values(), key=lambda agent: agent.name))

    def agent_of(self, token: str) -> str | None:
        """The name behind a token, or None when no agent has it. Raises JournalLocked before the first unlock."""
        if self._key is None:
            raise _unopened()
        wanted = _token_hash(token)
        found = None
        for agent in self._agents.values():
            if hmac.compare_digest(agent.token_hash, wanted):
                found = agent.name
        return found

    def named_since(self, name: str) -> str:
        """When an agent got its name; "" for who has none."""
        return self._agents[name].created if name in self._agents else ""

    # ---- changing

    def grant(
        self,
        transaction: Transaction,
        made: Iterable[Grant],
        *,
        by: str,
        action_id: str = "",
        proof: Mapping[str, str] | None = None,
    ) -> tuple[Grant, ...]:
        """Add grants, for that action; with the passkey's assertion that allows them, if one does."""
        added = tuple(made)
        for grant in added:
            if grant.width is not Width.ONCE and grant.agent == ANONYMOUS:
                raise InvalidInput(
                    "An agent without a name gets once-grants only.", next_step="goex agents add NAME gives it one."
                )
            mac = self._mac(grant_rows.body(grant))
            transaction.connection.execute(insert(grants), {**grant_rows.row_of(grant), "mac": mac})
            self._keep(grant, mac)
        facts = {"grants": [grant_rows.facts(grant) for grant in added], "by": by, "ledger": self._root()}
        transaction.append(
            "grant",
            action_id=added[0].why if added else action_id if proof else "",
            agent=added[0].agent if added else "",
            facts={**facts, "assertion": dict(proof)} if proof else facts,
            anchored=any(grant.width is not Width.ONCE for grant in added),
        )
        return added

    def consume(self, transaction: Transaction, used: Iterable[Grant]) -> None:
        """Mark once-grants as used, and count the uses of the others, in the transaction of the caller's own journal
        row (which holds `root()`). Raises Conflict for one that isn't live any more."""
        now = self._clock()
        for grant in used:
            known = self._grants.get(grant.id)
            if known is None:
                raise Conflict(f"Grant {grant.id} was used or revoked meanwhile.")
            if known.times and known.uses >= known.times:
                raise Conflict(f"Grant {grant.id} was used up meanwhile.")
            known = replace(known, uses=known.uses + 1, last_used=now)
            mac = self._mac(grant_rows.uses_body(known))
            _USED.run(transaction.connection, {"id": known.id, **grant_rows.uses_of(known), "mac": mac})
            if grant.width is Width.ONCE:
                self._replace(transaction, replace(known, used=now))
            elif grant.width is Width.TASK:
                self._replace(transaction, known)  # its count is under its MAC, and in the journal's hash
            else:
                self._grants[known.id] = known

    def revoke(self, ids: Iterable[str], *, by: str, why: str = "") -> tuple[Grant, ...]:
        """Revoke grants at once. Unknown ids raise InvalidInput and nothing is revoked."""
        wanted = tuple(dict.fromkeys(ids))
        for id in wanted:
            if id not in self._grants:
                raise InvalidInput(
                    f"There is no live grant {id[:40]!r}, so nothing was revoked.",
                    next_step="Name those that are live: goex grants lists them.",
                )
        live = [self._grants[id] for id in wanted]
        if not live:
            return ()
        now = self._clock()
        with self.changing() as transaction:
            done = tuple(self._replace(transaction, replace(grant, revoked=now)) for grant in live)
            transaction.append(
                "revoke",
                agent=done[0].agent,
                facts={"grants": [grant.id for grant in done], "by": by, "why": why, "ledger": self._root()},
                anchored=True,
            )
        return done

    def end_session(self, session: str) -> None:
        """Revoke what was granted for that session."""
        self.revoke(sorted(self._by_session.get(session, ())), by="goex", why="the session ended")

    def sessions(self) -> frozenset[str]:
        """Sessions that live session grants belong to."""
        return frozenset(self._by_session)

    def check_agent_name(self, name: str) -> None:
        """Raise InvalidInput for a name that no agent can have, or that one has."""
        if not (name.replace("-", "").replace("_", "").isalnum() and name.isascii() and 1 <= len(name) <= 40):
            raise InvalidInput(
                f"{name[:60]!r} isn't a valid name for an agent.",
                next_step="Use 1 to 40 ASCII letters, digits, '-' or '_'.",
            )
        if name in (ANONYMOUS, PERSON):
            raise InvalidInput(f"{name!r} is a name of GoEx's own.", next_step="Choose another.")
        if name in self._agents:
            raise InvalidInput(
                f"There is an agent {name!r} already.",
                next_step=f"Choose another name, or remove that agent first: goex agents remove {name}",
            )

    def add_agent(self, name: str, *, by: str) -> str:
        """Name an agent; returns its token, which is shown once and kept nowhere."""
        self.check_agent_name(name)
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        agent = Agent(name, _token_hash(token), stamp(self._clock()))
        mac = self._mac(_agent_body(agent))
        with self.changing() as transaction:
            transaction.connection.execute(
                insert(agents).values(name=name, token_hash=agent.token_hash, created=agent.created, mac=mac)
            )
            self._agents[name] = agent
            self._seal(f"agent/{name}", mac)
            transaction.append("agent-add", agent=name, facts={"by": by, "ledger": self._root()}, anchored=True)
        return token

    def remove_agent(self, name: str, *, by: str) -> None:
        """Forget an agent: its token stops working and its grants are revoked."""
        if name not in self._agents:
            raise InvalidInput(f"There is no agent {name[:40]!r}.", next_step="goex agents list")
        self.revoke(sorted(self._by_agent.get(name, ())), by=by, why="the agent was removed")
        with self.changing() as transaction:
            transaction.connection.execute(delete(agents).where(agents.c.name == name))
            del self._agents[name]
            self._unseal(f"agent/{name}")
            transaction.append("agent-remove", agent=name, facts={"by": by, "ledger": self._root()}, anchored=True)

    def changing(self, *, lasting: bool = True) -> _Changing:
        """A journal transaction after whose failure memory is what it was before."""
        return _Changing(self, lasting)

    # ---- inside

    def _keep(self, grant: Grant, mac: bytes) -> None:
        """Memory holds what is live; used and revoked grants are history, in the table."""
        if grant.revoked is None and grant.used is None:
            self._grants[grant.id] = grant
            for index, key in self._indexed(grant):
                index.setdefault(key, set()).add(grant.id)
            self._seal(f"grant/{grant.id}", mac)
        elif self._grants.pop(grant.id, None) is not None:
            for index, key in self._indexed(grant):
                index[key].discard(grant.id)
                if not index[key]:
                    del index[key]
            self._unseal(f"grant/{grant.id}")

    def _indexed(self, grant: Grant) -> list[tuple[dict[Any, set[str]], Any]]:
        """Where a grant is found by what."""
        found: list[tuple[dict[Any, set[str]], Any]] = [(self._by_agent, grant.agent)]
        if grant.width is not Width.TASK:  # its method is no scope
            found.append((self._by_key, (grant.agent, grant.service, grant.account, grant.scope)))
        if grant.session:
            found.append((self._by_session, grant.session))
        if grant.width in (Width.ONCE, Width.TASK):
            found.append((self._once_of, grant.why))
        return found

    def _replace(self, transaction: Transaction, grant: Grant) -> Grant:
        mac = self._mac(grant_rows.body(grant))
        row = grant_rows.row_of(grant)
        changed = {"used": row["used"], "revoked": row["revoked"]}
        _UPDATE.run(transaction.connection, {**changed, "mac": mac, "wanted": grant.id})
        self._keep(grant, mac)
        return grant

    def _seal(self, name: str, mac: bytes) -> None:
        if name not in self._macs:
            insort(self._names, name)
        self._macs[name] = mac

    def _unseal(self, name: str) -> None:
        if self._macs.pop(name, None) is not None:
            del self._names[bisect_left(self._names, name)]

    def _mac(self, body: bytes) -> bytes:
        if self._key is None:
            raise _unopened()
        return hmac.digest(self._key, body, hashlib.sha256)

    def _root(self) -> str:
        return hashlib.sha256(b"".join(map(self._macs.__getitem__, self._names))).hexdigest()


class _Changing:
    """Reads the grant store again when its transaction fails: memory never says more than the disk."""

    def __init__(self, grant_store: GrantStore, lasting: bool) -> None:
        self._grant_store, self._lasting = grant_store, lasting

    def __enter__(self) -> Transaction:
        self._manager = self._grant_store._journal.transaction(lasting=self._lasting)
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        failed = error[0] is not None
        try:
            return self._manager.__exit__(*error)
        except BaseException:
            failed = True
            raise
        finally:
            if failed and self._grant_store._key is not None:
                self._grant_store.load(self._grant_store._key)


def _unopened() -> JournalLocked:
    return JournalLocked(
        "The vault hasn't been opened since the daemon started, so nobody is known yet.",
        next_step="Open it: goex vault unlock (or, the first time, goex vault init)",
    )


def _token_hash(token: str) -> bytes:
    return hashlib.sha256(b"goex.v1.agent\0" + token.encode("utf-8", "surrogatepass")).digest()


def _agent_body(agent: Agent) -> bytes:
    return canonical(["agent", agent.name, agent.token_hash.hex(), agent.created])
