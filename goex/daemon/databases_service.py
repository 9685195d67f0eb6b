"""`goex.v1.Databases`, on user.sock alone: which databases there are, and how changes there are taken back.

Rules: an entry is sealed only after it was connected to as it says, by a user whom the engine's own driver takes;
adding, replacing, changing and removing needs presence; a password goes in and never comes out; nothing here shows a
row. What is held by an entry keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from goex.daemon.entries import end_grants, end_users, known, records, users
from goex.daemon.person_context import PersonCalls, PersonContext
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import unary
from goex.engine.held_transactions import Held, Holds
from goex.journal.chain import stamp
from goex.rpc import databases_pb2 as db
from goex.rpc import databases_pb2_grpc as rpc
from policies.accounts import Account
from policies.databases import SERVICE, Address, DefaultPolicy, Terms
from policies.errors import Conflict, GoexError, InvalidInput, Unsupported
from policies.jsonvalue import JsonObject
from policies.typed_json import to_json
from runtimes.database_overview import Looks, Seen, SeenTable
from runtimes.sql.database_address import real_file
from vault.database import DatabaseSecret
from vault.errors import AccountExists, RecordReplaced, pasteable
from vault.lease import Lease, Lend
from vault.record import Record
from vault.secret import Secret

_LOOKING = "db"  # what a lease for looking is listed as
_LONGEST_URL = 2000
_MOST_TABLES = 1000  # with a policy of their own


class DatabasesService(PersonCalls, rpc.DatabasesServicer):
    """The entries."""

    def __init__(self, person: PersonContext, lend: Lend, holds: Holds, hold_hours: int) -> None:
        super().__init__(person)
        self._lend = lend
        self._holds = holds
        self._hold_hours = hold_hours

    @unary
    async def AddDatabase(self, request: db.AddDatabaseRequest, context: Any) -> db.DatabaseView:
        vault_state = self._person.vault_state
        vault_state.require_open()
        there = known(self._person, SERVICE, request.name)
        if there is not None and not request.replace:
            raise AccountExists(
                f"There is a database {request.name} already.", next_step="Use --replace, or another name."
            )
        if there is not None:
            self._refuse_held(request.name, "replaced")
        account, password = await in_thread(_entry, request)
        sealed = DatabaseSecret(password=password, terms=self._terms(request.terms))
        instead = {"url": _without_password(account, request)}
        peer = await self._person.present(context, request.passphrase, "Adding a database", instead=instead)
        secret = sealed.to_secret()
        now = datetime.now(UTC)
        lease = Lease(
            action_id=_LOOKING,
            account=account,
            secret=password,
            expires=now + timedelta(minutes=5),
            terms=sealed.terms,
        )
        seen = await self._looks(account).look(lease)
        if there is not None:
            end_grants(self._person, SERVICE, account.name, peer.describe())
            await end_users(self._person, SERVICE, account.name, "its database's entry was replaced")
            self._refuse_used(account.name, "replaced")
        vault_state.vault.put(account, secret, replace=there is not None)  # nothing is awaited since it was looked
        facts = {
            "database": account.name,
            "url": account.base_url,
            "private": account.private,
            "terms": to_json(sealed.terms),
            "replaced": there is not None,
            "by": peer.describe(),
            **vault_state.noted(),
        }
        self._person.engine.core.journal.append("database-add", facts=facts)
        return self._view(self._record(account.name), sealed.terms, seen)

    @unary
    async def ListDatabases(self, request: db.ListDatabasesRequest, context: Any) -> db.ListDatabasesReply:
        self._person.callers.peer(context)
        found = [one for one in records(self._person) if one.account.service == SERVICE]
        return db.ListDatabasesReply(databases=[self._view(one, self._known_terms(one.account.name)) for one in found])

    @unary
    async def ShowDatabase(self, request: db.ShowDatabaseRequest, context: Any) -> db.ShowDatabaseReply:
        self._person.callers.peer(context)
        record = self._record(request.name)
        with self._lend(request.name, _LOOKING) as lease:
            seen = await self._looks(lease.account).look(lease)
            terms = lease.terms or Terms()
        return db.ShowDatabaseReply(
            database=self._view(record, terms, seen), tables=[_table(table, terms) for table in seen.tables]
        )

    @unary
    async def SetPolicy(self, request: db.SetPolicyRequest, context: Any) -> db.DatabaseView:
        self._person.vault_state.require_open()
        account = self._record(request.name).account
        peer = await self._person.present(context, request.passphrase, "Changing how changes are taken back")
        opened = self._person.vault_state.vault.open_record(SERVICE, account.name)
        if opened.account != account:
            raise RecordReplaced(f"{account.id} was changed meanwhile.", next_step="Look at it, and ask again.")
        sealed = DatabaseSecret.from_secret(opened.secret)
        before, terms = sealed.terms, _changed(sealed.terms, request)
        secret = replace(sealed, terms=terms).to_secret()
        await in_thread(self._person.vault_state.vault.renew, opened, secret)  # refused if it isn't that one
        facts = {
            "database": account.name,
            "terms": to_json(terms),
            "before": to_json(before),
            "by": peer.describe(),
            **self._person.vault_state.noted(),
        }
        self._person.engine.core.journal.append("database-policy", facts=facts)
        return self._view(self._record(account.name), terms)

    @unary
    async def RemoveDatabase(self, request: db.RemoveDatabaseRequest, context: Any) -> db.RemoveDatabaseReply:
        vault_state = self._person.vault_state
        vault_state.require_open()
        name = self._record(request.name).account.name
        self._refuse_held(name, "removed")
        peer = await self._person.present(context, request.passphrase, "Removing a database's entry")
        await end_users(self._person, SERVICE, name, "its database's entry was removed")
        self._refuse_used(name, "removed")
        vault_state.vault.remove(SERVICE, name)  # nothing is awaited since it was looked
        end_grants(self._person, SERVICE, name, peer.describe())
        facts: JsonObject = {"database": name, "by": peer.describe(), **vault_state.noted()}
        self._person.engine.core.journal.append("database-remove", facts=facts)
        return db.RemoveDatabaseReply()

    # ---- inside

    def _looks(self, account: Account) -> Looks:
        """The runtime of that kind of database. Raises Unsupported."""
        kind = "mongo" if Address.parse(account.base_url)[0].engine == "mongodb" else "sql"
        runtime = self._person.engine.core.runtimes.get(kind)
        if runtime is None:
            raise Unsupported("GoEx can't drive this kind of database yet.")
        return cast(Looks, runtime)

    def _record(self, name: str) -> Record:
        for one in records(self._person):
            if (one.account.service, one.account.name) == (SERVICE, name):
                return one
        raise InvalidInput(f"There is no database {name[:60]!r}.", next_step="See which there are: goex db list")

    def _known_terms(self, name: str) -> Terms | None:
        """None while the vault is sealed: they are sealed with the password."""
        if self._person.vault_state.state != "unsealed":
            return None
        try:
            with self._lend(name, _LOOKING) as lease:
                return lease.terms
        except GoexError:
            return None

    def _terms(self, said: db.Terms) -> Terms:
        if len(said.tables) > _MOST_TABLES:
            raise InvalidInput(f"At most {_MOST_TABLES} tables can have a policy of their own.")
        return Terms(
            policy=cast(DefaultPolicy, said.policy or Terms().policy),
            hold_hours=said.hold_hours or self._hold_hours,
            tables={one.table: cast(DefaultPolicy, one.policy) for one in said.tables},
        )

    def _refuse_held(self, name: str, what: str) -> None:
        held = self._holds.held(name)
        if held:
            ids = ", ".join(each.row.id for each in held[:3]) + (f" and {len(held) - 3} more" if len(held) > 3 else "")
            raise Conflict(
                f"Its entry can't be {what}: the database holds the transaction of {ids}.",
                next_step=f"Commit or undo it first: goex commit {held[0].row.id}, goex undo {held[0].row.id}",
            )

    def _refuse_used(self, name: str, what: str) -> None:
        """As `_refuse_held`, also for what may come to hold something. It counts until something is awaited."""
        self._refuse_held(name, what)
        began = users(self._person, SERVICE, name)
        if began:
            raise Conflict(
                f"Its entry can't be {what}: {began[0]} began to use the database meanwhile.", next_step="Try again."
            )

    def _view(self, record: Record, terms: Terms | None, seen: Seen | None = None) -> db.DatabaseView:
        account = record.account
        address = Address.parse(account.base_url)[0]
        local = bool(address.path or address.socket)
        tls = "local" if local else "none" if account.private else "own CA" if account.ca_pem else "verified"
        return db.DatabaseView(
            name=account.name,
            url=account.base_url,
            engine=address.engine,
            tls=tls,
            terms=_terms_view(terms) if terms is not None else None,
            created=stamp(record.created),
            last_used=stamp(record.last_used) if record.last_used else "",
            held=[_held(each) for each in self._holds.held(account.name)],
            version=seen.version if seen is not None else "",
            tables=len(seen.tables) if seen is not None else 0,
            can=seen.can if seen is not None else (),
        )


def _entry(request: db.AddDatabaseRequest) -> tuple[Account, Secret]:
    """The account of a request, and its password. Raises InvalidInput. Blocks: it looks at SQLite's file."""
    if len(request.url) > _LONGEST_URL:
        raise InvalidInput(f"The URL is longer than {_LONGEST_URL} characters.", next_step="Make it shorter.")
    address, inside = Address.parse(request.url)
    if inside and request.password:
        raise InvalidInput("There are two passwords: one in the URL, and one beside it.", next_step="Leave one out.")
    if address.path:
        address = replace(address, path=real_file(address.path))
    if request.no_tls and request.ca_pem:
        raise InvalidInput("--no-tls and --ca exclude each other.", next_step="Leave one of them out.")
    account = Account(
        service=SERVICE,
        name=request.name,
        origins=(),
        base_url=address.url,
        format="database",
        private=request.no_tls or (address.on_this_machine and not request.ca_pem),
        ca_pem=request.ca_pem,
    )
    return account, Secret(inside) if inside else Secret(request.password)


def _without_password(account: Account, request: db.AddDatabaseRequest) -> str:
    """The address as it was understood, with a mark where the request's has a password."""
    _, inside = Address.parse(request.url)
    scheme, _, rest = account.base_url.partition("://")
    user, _, where = rest.rpartition("@")
    return f"{scheme}://{user}:…@{where}" if inside else account.base_url


def _changed(terms: Terms, request: db.SetPolicyRequest) -> Terms:
    """Raises InvalidInput."""
    if request.unset:
        if request.table not in terms.tables:
            raise InvalidInput(
                f"{request.table[:60]!r} has no policy of its own.",
                next_step=f"See which have: goex db show {pasteable(request.name)}",
            )
        left = {table: policy for table, policy in terms.tables.items() if table != request.table}
        return replace(terms, tables=left)
    if not request.policy and not request.hold_hours:
        raise InvalidInput("There is nothing to change.", next_step="Name a policy, or --hold-hours.")
    policy = cast(DefaultPolicy, request.policy)
    if request.policy and request.table:
        if len(terms.tables) >= _MOST_TABLES:
            raise InvalidInput(f"At most {_MOST_TABLES} tables can have a policy of their own.")
        terms = replace(terms, tables={**terms.tables, request.table: policy})
    elif request.policy:
        terms = replace(terms, policy=policy)
    return replace(terms, hold_hours=request.hold_hours) if request.hold_hours else terms


def _terms_view(terms: Terms) -> db.Terms:
    return db.Terms(
        policy=terms.policy,
        hold_hours=terms.hold_hours,
        tables=[db.TablePolicy(table=table, policy=policy) for table, policy in sorted(terms.tables.items())],
    )


def _held(held: Held) -> db.HeldView:
    return db.HeldView(
        action_id=held.row.id,
        agent=held.row.agent,
        since=stamp(held.since),
        until=stamp(held.until),
        what=" ".join(_statements(held)),
        trouble=held.trouble,
    )


def _statements(held: Held) -> Iterator[str]:
    for one in held.plan.resolved["program"]["statements"]:
        yield f"{one['sql']};"


def _table(table: SeenTable, terms: Terms) -> db.TableView:
    return db.TableView(
        name=table.name,
        kind=table.kind,
        columns=[
            db.ColumnView(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                generated=column.generated,
                counter=column.counter,
            )
            for column in table.columns
        ],
        key=table.key,
        references=table.references,
        triggers=table.triggers,
        policy=terms.tables.get(table.name, terms.policy),
    )
