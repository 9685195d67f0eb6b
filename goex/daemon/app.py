"""The daemon's parts, put together; and what happens when the vault opens and closes.

Order at the start: the journal's file, the catalog, the sockets; then, once the vault is open: the journal's key, the
grants, what the last daemon left (its containers first, then its actions). Until then every request is told to unlock.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from goex import __version__
from goex.config import Config
from goex.daemon.acceptor import Acceptor, Registry
from goex.daemon.actions_service import ActionsService
from goex.daemon.anchor import Anchor
from goex.daemon.autoseal import WORDS, AutoSeal, Why
from goex.daemon.away import Away
from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.grpc_server import serve
from goex.daemon.late_runtimes import LateRuntimes
from goex.daemon.late_services import late_services
from goex.daemon.model_context import model_context
from goex.daemon.page_sessions import PageSessions
from goex.daemon.passkeys import PasskeyPresence
from goex.daemon.person_context import Daemon, PersonContext
from goex.daemon.person_service import PersonService
from goex.daemon.person_threads import in_thread
from goex.daemon.polkit import Polkit
from goex.daemon.process_state import batch_scheduled, docker_state, state_id
from goex.daemon.rpc_context import Behind, Callers
from goex.daemon.steady_clock import SteadyClock
from goex.daemon.unlock import Opening, open_at_start
from goex.daemon.vault_state import VaultState
from goex.daemon.waiting_calls import WaitingCalls
from goex.engine.agent_threads import Threads
from goex.engine.core import Core, Settings
from goex.engine.engine import Engine
from goex.engine.grant_store import GrantStore
from goex.engine.held_transactions import Holds
from goex.engine.intents import Mappings
from goex.engine.peers import Presence, Sessions
from goex.engine.retention import Retention
from goex.engine.reversions import Reversions
from goex.journal.chain import Journal
from goex.journal.states import State
from goex.paths import Paths, check_held, make_open
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from mapper.catalog import Catalog
from policies.accounts import Origin
from policies.databases import SERVICE
from policies.errors import Denied, GoexError, Unsupported
from runtimes.files.runtime import FilesRuntime
from runtimes.files.tree import Bounds
from runtimes.sandbox.docker import DockerSandbox
from vault.lease import Lease

if TYPE_CHECKING:
    from mapper.mapper import Mapper

log = logging.getLogger("goex.daemon")

DRAIN_SECONDS = 60.0  # for what runs; killing the rest may take the engine 30 more
SETTLE_SECONDS = 20.0  # for renewals of logins; with all of that it fits into the unit's TimeoutStopSec
SWEEP_SECONDS = 30.0
LOOKING_SECONDS = 600.0  # that a credential is lent for at most, to look at a database
_PROPOSAL_SECONDS, _CONVERSATION_SECONDS = 60.0, 180.0  # of the model, for one mapping


@dataclass(slots=True)
class App:
    """One daemon."""

    paths: Paths
    config: Config
    stop: Callable[[], None]
    clock: Callable[[], datetime] = field(default_factory=SteadyClock)
    journal: Journal = field(init=False)
    grant_store: GrantStore = field(init=False)
    vault_state: VaultState = field(init=False)
    anchor: Anchor = field(init=False)
    broker: CredentialBroker = field(init=False)
    catalog: Catalog = field(init=False)
    sandbox: DockerSandbox = field(init=False)
    runtimes: LateRuntimes = field(init=False)
    engine: Engine = field(init=False)
    reversions: Reversions = field(init=False)
    holds: Holds = field(init=False)
    retention: Retention = field(init=False)
    sessions: Sessions = field(init=False)
    presence: Presence = field(init=False)
    passkeys: PasskeyPresence = field(init=False)
    page_sessions: PageSessions = field(init=False)
    waiting: WaitingCalls = field(init=False)
    registry: Registry = field(init=False)
    autoseal: AutoSeal = field(init=False)
    away: Away = field(init=False)
    _mapper: Mapper | None = None
    _servers: list[Any] = field(default_factory=list)
    _acceptors: list[Acceptor] = field(default_factory=list)
    _sweeping: asyncio.Task[None] | None = None
    _warming: asyncio.Task[object] | None = None

    def __post_init__(self) -> None:
        self.journal = Journal(self.paths.state_db, self.paths.journal_head, self.clock)
        unused = self.config.grants.unused_days
        self.grant_store = GrantStore(self.journal, self.clock, timedelta(days=unused) if unused else None)
        self.vault_state = VaultState(self.paths.vault_db)
        self.anchor = Anchor(self.journal, self.vault_state)
        self.broker = CredentialBroker(self.vault_state)
        self.catalog = Catalog.open(self.paths.catalog)
        self.presence = Presence(self.config.ask.presence_seconds, self.clock)
        self.passkeys = PasskeyPresence(
            self.vault_state,
            self.journal,
            self.clock,
            wanted=self.config.ask.presence == "passkey",
            page_key=self.paths.web_key,
            public_url=self.config.web.public_url,
        )
        self.page_sessions = PageSessions(
            self.clock, lambda: self.passkeys.known if self.vault_state.state == "unsealed" else None
        )
        self.waiting = WaitingCalls(self.clock)
        self.autoseal = AutoSeal(
            self.config.vault,
            seal=self.seal,
            unsealed=lambda: self.vault_state.state == "unsealed",
            busy=lambda: bool(self.engine.core.actions.in_states((State.PREPARED, State.RUNNING))),
            locked=self._forget_presence,
        )
        self.vault_state.used = self.autoseal.used
        self.sessions = Sessions(self.clock, self._session_ended, self.autoseal.used)
        self.registry = Registry(self.sessions.disconnected)
        self.sandbox = DockerSandbox(
            state_id(self.paths),
            scratch_dir=self.paths.state_dir / "sandbox",
            profiles_dir=self.paths.profiles,
            pool_dir=self.paths.run_dir / "waiting",  # beside the gateway's sockets, which are linked into it
            bounds=self.config.sandbox.bounds(),
        )
        self.reversions = Reversions(self.journal, self.clock, self.catalog)
        files = FilesRuntime(
            self.sandbox,
            self.paths.snapshots,
            self.config.sandbox.profile(),
            protected=(self.paths.config_dir, self.paths.run_dir),
            bounds=Bounds(files=self.config.files.max_entries, bytes=self.config.files.max_bytes),
            large=self.config.files.lfs_from,
            quota=self.config.files.quota,
            keep_days=self.config.files.keep_days,
        )
        self.runtimes = LateRuntimes(
            self.paths, self.config, files, self.sandbox, self.catalog, self.reversions, self._lend_database
        )
        core = Core(
            journal=self.journal,
            grant_store=self.grant_store,
            catalog=self.catalog,
            vault=self.vault_state,
            lender=self.broker,
            runtimes=self.runtimes,
            settings=Settings(
                ask_seconds=self.config.ask.seconds,
                confinement=self.config.confine,
                breaker=self.config.breaker,
                quota=self.config.limits,
                model_calls=self.config.model.calls,
                page_key=self.paths.web_key,
            ),
            clock=self.clock,
            acknowledge=self.anchor.acknowledge,
        )
        mappings = Mappings(
            core,
            self._the_mapper,
            self.vault_state.connected,
            lambda: model_context(self.config.model, self.vault_state, self.clock),
            frozenset(self.config.model.context),
        )
        self.engine = Engine(core, mappings)
        self.away = Away(
            self.config.notify,
            core,
            lambda: self.vault_state.vault,
            self.config.web.public_url,
            clock=self.clock,
        )
        self.vault_state.opened = Opening(
            self.journal, self.vault_state, self.anchor, self.reversions, self.engine, self.passkeys
        ).opened
        self.holds = Holds(self.engine)
        sure = self.clock.earliest if isinstance(self.clock, SteadyClock) else self.clock
        self.retention = Retention(self.engine, sure)

    # ---- life

    async def start(self) -> None:
        """Reap, listen, and open the vault where the keyring can."""
        asyncio.get_running_loop().set_default_executor(Threads())
        if (trouble := self.catalog.trouble) is not None:
            log.warning("imported services can't be used: %s", trouble)
        with suppress(GoexError):  # Docker may not be there yet; actions then say so
            reaped = await self.sandbox.reap()
            log.info("reaped %d containers of an earlier daemon", len(reaped))
        with suppress(GoexError):
            await self.runtimes.reap()
        with batch_scheduled():
            await self._listen()
        await open_at_start(self.vault_state, os.environ)
        self.autoseal.start()
        self.anchor.start()
        self.away.start()
        self._sweeping = asyncio.create_task(self._sweep())
        if self.config.model.configured:  # its client takes seconds to load, in which nobody else would be answered
            self._warming = asyncio.create_task(asyncio.to_thread(_load_client))

    async def close(self) -> None:
        """Take nothing new, let what runs end, and leave nothing behind."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self.away.close()
        self.page_sessions.end_all()
        await self.anchor.close()
        await self.autoseal.close()
        await self.engine.drain(DRAIN_SECONDS)
        for acceptor in self._acceptors:
            acceptor.stop_accepting()
        stopping = asyncio.gather(*(server.stop(1.0) for server in self._servers))
        await asyncio.wait([stopping], timeout=2.0)  # a call whose answer nobody takes doesn't end by itself
        for acceptor in self._acceptors:
            acceptor.hang_up()
        await stopping
        await self.runtimes.close()
        await self.sandbox.close()
        await self.broker.settled(SETTLE_SECONDS)  # later their answers would be lost with the process
        if self.journal.unlocked:
            with suppress(GoexError):
                self.vault_state.flush_uses()
                stopped: dict[str, object] = {"pid": os.getpid(), **self.vault_state.noted()}
                self.journal.append("daemon-stop", facts=stopped)
                await self.anchor.write()
        self.vault_state.seal()
        self.journal.close()

    async def seal(self, why: Why = "asked", by: str = "GoEx itself") -> None:
        """Forget the keys: what runs loses its credentials and is killed; presence is forgotten. The keys go even when
        something of that fails, and before a machine that goes to sleep waits for containers to end."""
        self._forget_whoever_came()
        try:
            if why != "sleep":
                await self._end_acting()
            self.vault_state.flush_uses()
            if self.journal.unlocked:
                self.journal.append("vault-seal", facts={**self.vault_state.noted(), "why": why, "by": by})
                await self.anchor.write()
        except GoexError as error:
            log.error("sealing goes on, though not all of it could be written: %s", error)
        finally:
            self.vault_state.seal(WORDS[why])
            self._forget_whoever_came()  # also while that was written: nothing of it outlives the keys
        log.info("the vault was sealed: %s", WORDS[why])
        # Also what began while the others were being ended. The gateway isn't ended after that: the person may have
        # unlocked the vault by then, and another action be served.
        await asyncio.gather(self._end_acting(), self.runtimes.forget())

    async def _end_acting(self) -> None:
        acting = self.engine.core.actions.in_states((State.ALLOWED, State.PREPARED, State.RUNNING))
        await asyncio.gather(*(self.engine.cancel(row.id, why="the vault was sealed") for row in acting))

    # ---- parts

    async def _listen(self) -> None:
        callers = Callers(self.registry, self.sessions, self.grant_store, self.page_sessions)

        async def present(context: Any, what: str) -> None:
            await person.present(context, "", what)

        actions = ActionsService(self.engine, callers, self.vault_state, present)
        person = PersonContext(
            engine=self.engine,
            callers=callers,
            vault_state=self.vault_state,
            presence=self.presence,
            passkeys=self.passkeys,
            page_sessions=self.page_sessions,
            waiting=self.waiting,
            polkit=Polkit(self.config.ask.polkit),
            actions=actions,
            daemon=Daemon(status=self._status, seal=lambda by: self.seal("asked", by), stop=self.stop),
            acknowledge=self.anchor.acknowledge,
        )
        both = {"Actions": lambda server: rpc.add_ActionsServicer_to_server(actions, server)}
        agent_backend = await self._serve("agent", both, callers.behind)
        user_backend = await self._serve(
            "user",
            {
                **both,
                "Person": lambda server: rpc.add_PersonServicer_to_server(PersonService(person), server),
                **late_services(
                    person,
                    broker=self.broker,
                    rules=self.paths.rules,
                    reversions=self.reversions,
                    complete=self._complete,
                    confinement=self.config.confine,
                    lend=self._lend_database,
                    holds=self.holds,
                    hold_hours=self.config.databases.hold_hours,
                ),
            },
        )
        own = frozenset({os.geteuid()})
        self._acceptors.append(
            Acceptor(self.paths.agent_socket, "agent", own, agent_backend, self.registry, self._turned_away)
        )
        self._acceptors.append(
            Acceptor(self.paths.user_socket, "user", own, user_backend, self.registry, self._turned_away)
        )
        for extra in self.config.agent_sockets:
            make_open(extra.path.parent)  # the socket is for other users, also under a unit's strict umask
            check_held(extra.path.parent)
            # The mode lets everybody try; whom the socket is for is checked by what the kernel says of the peer.
            mode = 0o666 if extra.uids - own else 0o600
            self._acceptors.append(
                Acceptor(extra.path, "agent", extra.uids or own, agent_backend, self.registry, self._turned_away, mode)
            )
        for acceptor in self._acceptors:
            await acceptor.start()

    async def _serve(
        self, kind: str, services: Mapping[str, Callable[[Any], None]], behind: Callable[[Any], Behind] | None = None
    ) -> str:
        path = self.paths.run_dir / f"grpc-{kind}.sock"
        with suppress(FileNotFoundError):
            path.unlink()
        server, address = await serve(path, services, behind, self.registry.hang_up)
        self._servers.append(server)
        return address

    def _the_mapper(self) -> Mapper:
        """Made when it is first needed: the model's client is slow to import, and many never use one."""
        if self._mapper is None:
            from mapper.embedded import EmbeddedProposer
            from mapper.mapper import Mapper

            model = None
            settings = self.config.model
            if settings.configured:
                from mapper.model import ModelProposer
                from mapper.techniques import Technique

                samples = settings.most_samples
                technique = Technique.named(settings.method, samples=samples)
                model = ModelProposer(
                    base_url=settings.base_url,
                    model=settings.name,
                    api_key=self._model_key,
                    technique=technique if settings.adaptive else technique.all_at_once(),
                    temperature=settings.temperature,
                    timeout=_CONVERSATION_SECONDS if technique.conversation else _PROPOSAL_SECONDS,
                )
            self._mapper = Mapper(
                self.catalog,
                EmbeddedProposer(self.catalog),
                model,
                threshold=settings.threshold,
                confidence=settings.confidence,
            )
        return self._mapper

    async def _complete(self, messages: list[dict[str, str]]) -> str:
        """What the model says to these messages. Raises Unsupported without one."""
        from mapper.model import ModelProposer

        model = self._the_mapper().model
        if not isinstance(model, ModelProposer):
            raise Unsupported("No model is configured.", next_step="See [model] in config.toml, or goex doctor.")
        return await model.complete(messages)

    @contextmanager
    def _lend_database(self, name: str, action_id: str) -> Iterator[Lease]:
        """A database's credential while somebody looks at it: nothing is decided on yet, and nothing is changed."""
        label = f"{action_id} (looking)"
        expires = self.clock() + timedelta(seconds=LOOKING_SECONDS)
        try:
            yield self.vault_state.lease(SERVICE, name, action_id=label, expires=expires)
        finally:
            self.vault_state.end_leases(label)

    def _model_key(self) -> str:
        """The model's key, from the vault, each time that it is needed. Raises Denied for a place that the record
        doesn't name: config.toml says which model is used, and only the person's record where its key may go."""
        if not self.config.model.account:
            return ""
        lease = self.vault_state.lease(
            "model", self.config.model.account, action_id="model", expires=self.clock() + timedelta(minutes=1)
        )
        self.vault_state.end_leases("model")
        if Origin.parse(self.config.model.base_url) not in lease.account.origins:
            raise Denied(
                f"The key model/{self.config.model.account} may not be sent to {self.config.model.base_url}.",
                next_step="Put it again with that --base-url, or mend [model] base_url in config.toml.",
            )
        return lease.secret.reveal().decode("utf-8")

    async def _status(self) -> pb.StatusReply:
        docker, image = await docker_state(self.sandbox, self.config.sandbox.profile())
        return pb.StatusReply(
            version=__version__,
            pid=os.getpid(),
            vault=self.vault_state.state,
            vault_trouble=self.vault_state.trouble
            or (self.vault_state.stays_sealed if self.vault_state.state == "sealed" else ""),
            keyed_by=self.vault_state.keyed_by,
            sealing=self.autoseal.describe(),
            docker=docker,
            image=image,
            pending=self.engine.core.approvals.queue.count(),
            agent_socket=str(self.paths.agent_socket),
            user_socket=str(self.paths.user_socket),
            state_dir=str(self.paths.state_dir),
            model=self.config.model.name,
            agent_sockets=[str(extra.path) for extra in self.config.agent_sockets],
            warnings=self.passkeys.warnings(),
        )

    def _forget_whoever_came(self) -> None:
        self._forget_presence()
        self.page_sessions.end_all()

    def _forget_presence(self) -> None:
        self.presence.forget()
        self.waiting.forget()

    def _session_ended(self, session: str) -> None:
        with suppress(GoexError):
            self.grant_store.end_session(session)

    def _turned_away(self, who: str) -> None:
        log.warning("refused %s", who)
        if self.journal.unlocked:
            with suppress(GoexError):
                self.journal.append("peer-refused", facts={"who": who})

    async def _sweep(self) -> None:
        """Sessions end by themselves, also when nobody calls."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sessions.sweep()
            with suppress(GoexError):
                if self.journal.unlocked:
                    self.grant_store.forget_unused()
                    await self.holds.end_overdue()
                    await self.retention.end_overdue()
                await in_thread(self.vault_state.flush_uses)


def _load_client() -> None:
    """Load the model's client, if it is installed; whoever uses the model is told if it isn't."""
    with suppress(ModuleNotFoundError):
        importlib.import_module("openai")
