"""`goex.v1.Reversions`, on user.sock alone: what takes calls back, who says so, and how it did.

Rules: what comes with GoEx or from a document is shown and can't be removed; a developer's pair, and one that a model
proposed, is added with presence, after it was checked and shown. A model's proposal is added as just that: by its hash,
of which this service remembers what it was, so that nobody can bring it in as their own words or another's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from goex.daemon.person_context import PersonCalls, PersonContext
from goex.daemon.rpc_context import unary
from goex.engine.reversions import Added, Reversions
from goex.rpc import reversions_pb2 as pb
from goex.rpc import reversions_pb2_grpc as rpc
from mapper import pair_proposals, pairs
from mapper.catalog import Catalog
from policies.actions import ApiCalls, Code
from policies.errors import InvalidInput
from policies.jsonvalue import canonical
from policies.limits import Confinement, described
from policies.reversions import Pair, Result, Standing, undo_to_json

MAX_TEXT = 200_000  # characters of a file of pairs
MAX_PROPOSALS = 100  # that are remembered
MAX_SHOWN = 5000


class ReversionsService(PersonCalls, rpc.ReversionsServicer):
    """Everything about undo pairs."""

    def __init__(
        self,
        person: PersonContext,
        reversions: Reversions,
        complete: Callable[[list[dict[str, str]]], Awaitable[str]],
        confinement: Confinement,
    ) -> None:
        super().__init__(person)
        self._reversions = reversions
        self._complete = complete
        self._confinement = confinement
        self._proposed: dict[str, Pair] = {}

    @property
    def _catalog(self) -> Catalog:
        return self._person.engine.core.catalog

    @unary
    async def ListPairs(self, request: pb.ListPairsRequest, context: Any) -> pb.ListPairsReply:
        self._person.callers.peer(context)
        shown = [view for view in self._views(request.of) if not request.failed or view.standing == Standing.FAILED]
        return pb.ListPairsReply(
            pairs=shown[:MAX_SHOWN],
            trouble=self._reversions.trouble,
            strict=described(self._confinement).get("strict_undo", ""),
        )

    @unary
    async def ShowPair(self, request: pb.ShowPairRequest, context: Any) -> pb.ShowPairReply:
        self._person.callers.peer(context)
        if len(request.hash) < 6:
            raise InvalidInput("A pair's hash, or at least six characters of it, is needed.",
                               next_step="goex undo-pairs list shows them.")  # fmt: skip
        found = {pair.hash: (pair, added) for pair, added in self._known() if pair.hash.startswith(request.hash)}
        if len(found) != 1:
            raise InvalidInput(
                f"{'Several pairs begin' if found else 'No pair begins'} with {request.hash[:64]!r}.",
                next_step="goex undo-pairs list SERVICE shows them.",
            )
        ((pair, added),) = found.values()
        return self._shown(pair, added)

    @unary
    async def CheckPairs(self, request: pb.CheckPairsRequest, context: Any) -> pb.CheckPairsReply:
        self._person.callers.peer(context)
        return pb.CheckPairsReply(pairs=[self._shown(pair, None) for pair in self._read(request.name, request.text)])

    @unary
    async def AddPairs(self, request: pb.AddPairsRequest, context: Any) -> pb.AddPairsReply:
        self._person.callers.peer(context)
        instead: dict[str, object] = {}
        if request.proposal:
            if request.proposal not in self._proposed:
                raise InvalidInput("That wasn't proposed since the daemon started.",
                                   next_step="Ask again: goex undo-pairs propose SERVICE.METHOD")  # fmt: skip
            made: tuple[Pair, ...] = (self._proposed[request.proposal],)
            instead["proposal"] = {"method": made[0].method_id, "undo": undo_to_json(made[0].undo)}
        else:
            made = self._read(request.name, request.text)
        peer = await self._person.present(context, request.passphrase, "Adding undo pairs", instead=instead)
        rows = self._reversions.add(made, by=peer.describe())
        self._proposed.pop(request.proposal, None)
        return pb.AddPairsReply(pairs=[self._view(pair, row) for pair, row in zip(made, rows, strict=True)])

    @unary
    async def RemovePair(self, request: pb.RemovePairRequest, context: Any) -> pb.RemovePairReply:
        self._person.vault_state.require_open()
        self._reversions.added_one(request.hash)
        peer = await self._person.present(context, request.passphrase, "Removing an undo pair")
        return pb.RemovePairReply(method=self._reversions.remove(request.hash, by=peer.describe()).method)

    @unary
    async def RetryPair(self, request: pb.RetryPairRequest, context: Any) -> pb.RetryPairReply:
        self._person.vault_state.require_open()
        self._reversions.failed_one(request.hash)
        peer = await self._person.present(context, request.passphrase, "Using an undo pair again that failed")
        return pb.RetryPairReply(hash=self._reversions.retry(request.hash, by=peer.describe()))

    @unary
    async def ProposePair(self, request: pb.ProposePairRequest, context: Any) -> pb.CheckPairsReply:
        self._person.callers.peer(context)
        method = self._catalog.method(request.method)
        if method.undo is not None and self._reversions.standing(self._own(method.id).hash) is not Standing.FAILED:
            raise InvalidInput(
                f"{method.id} has a way back already.", next_step=f"See it with: goex undo-pairs list {method.id}"
            )
        pair = await pair_proposals.propose(self._catalog, method.id, self._complete)
        self._proposed[pair.hash] = pair
        while len(self._proposed) > MAX_PROPOSALS:
            del self._proposed[next(iter(self._proposed))]
        return pb.CheckPairsReply(pairs=[self._shown(pair, None)])

    @unary
    async def RestorePairs(self, request: pb.RestorePairsRequest, context: Any) -> pb.RestorePairsReply:
        peer = await self._person.present(context, request.passphrase, "Restoring undo pairs")
        return pb.RestorePairsReply(count=self._reversions.restore(by=peer.describe()))

    # ---- inside

    def _read(self, name: str, text: str) -> tuple[Pair, ...]:
        if len(text) > MAX_TEXT:
            raise InvalidInput(f"A file of undo pairs has at most {MAX_TEXT} characters.")
        return pairs.read_file(text, name[-80:] or "pairs.toml", self._catalog)

    def _own(self, method_id: str) -> Pair:
        pair = pairs.of_catalog(self._catalog, self._catalog.method(method_id))
        assert pair is not None
        return pair

    def _views(self, of: str) -> Iterator[pb.PairView]:
        """What was added and the catalog's, of a service or a method; without one the added and the used alone."""
        added = () if self._reversions.trouble else self._reversions.all_added()
        for row in added:
            if not of or row.method == of or row.method.startswith(f"{of}."):
                yield self._added_view(row)
        if of:
            for pair in self._of_catalog(of):
                yield self._view(pair, None)
        elif not self._reversions.trouble:
            yield from self._used_views({row.hash for row in added})

    def _of_catalog(self, of: str) -> Iterator[Pair]:
        service, _, method = of.partition(".")
        methods = [self._catalog.method(of)] if method else self._catalog.service(service).methods.values()
        for one in methods:
            if one.undo is not None:
                yield self._own(one.id)

    def _used_views(self, shown: set[str]) -> Iterator[pb.PairView]:
        """Pairs of the catalog that were used: which they are is told by the actions that used them."""
        used = {use.use.pair for use in self._reversions.uses()} - shown
        services = {row.method.partition(".")[0] for row in self._reversions.all_added()} | self._used_on(used)
        for name in (*self._bundled(), *sorted(services & self._catalog.services.keys())):
            for pair in self._of_catalog(name):
                if pair.hash in used:
                    used.discard(pair.hash)
                    yield self._view(pair, None)
        for hash in sorted(used):
            yield self._counted(pb.PairView(hash=hash, standing=self._reversions.standing(hash).value))

    def _used_on(self, hashes: set[str]) -> set[str]:
        """The services of the actions that these pairs took back."""
        actions = self._person.engine.core.actions
        undos = actions.those(one.use.action for one in self._reversions.uses() if one.use.pair in hashes)
        found: set[str] = set()
        for row in actions.those(undo.target for undo in undos.values()).values():
            match row.action():
                case ApiCalls(calls=calls):
                    found |= {call.service for call in calls}
                case Code(services=services):
                    found |= {service.partition("/")[0] for service in services}
        return found

    def _bundled(self) -> Iterable[str]:
        return [name for name, service in self._catalog.services.items() if service.source == "bundled"]

    def _known(self) -> Iterator[tuple[Pair, Added | None]]:
        if not self._reversions.trouble:
            yield from ((row.pair, row) for row in self._reversions.all_added() if row.pair is not None)
        for name in self._catalog.services:
            yield from ((pair, None) for pair in self._of_catalog(name))

    def _shown(self, pair: Pair, added: Added | None) -> pb.ShowPairReply:
        uses = [] if self._reversions.trouble else self._reversions.uses(pair.hash)
        return pb.ShowPairReply(
            pair=self._view(pair, added),
            undo_json=canonical(undo_to_json(pair.undo)).decode("utf-8"),
            uses=[
                pb.PairUse(
                    action=one.use.action,
                    call=one.use.call,
                    result=one.use.result.value,
                    why=one.use.why,
                    at=one.at,
                )
                for one in uses
            ],
        )

    def _added_view(self, row: Added) -> pb.PairView:
        if row.pair is not None:
            return self._view(row.pair, row)
        view = pb.PairView(hash=row.hash, method=row.method, source=row.source, added=row.added, by=row.by)
        view.stale = row.stale
        view.standing = self._reversions.standing(row.hash).value
        return self._counted(view)

    def _view(self, pair: Pair, added: Added | None) -> pb.PairView:
        undo = pair.undo
        view = pb.PairView(
            hash=pair.hash,
            method=pair.method_id,
            source=pair.source,
            standing=self._reversions.standing(pair.hash).value,
            fits=_fits(pair),
            calls=[f"{pair.service}.{call.method}" for call in undo.calls],
            pre=undo.pre.method if undo.pre is not None else "",
            guard=undo.guard.method if undo.guard is not None else "",
            verify=undo.verify.method if undo.verify is not None else "",
            note=undo.note,
            scopes=self._scopes(pair),
        )
        if added is not None:
            view.added, view.by, view.stale = added.added, added.by, added.stale
        view.stale = view.stale or pairs.why_unusable(self._catalog, pair)
        return self._counted(view)

    def _counted(self, view: pb.PairView) -> pb.PairView:
        for one in () if self._reversions.trouble else self._reversions.uses(view.hash):
            match one.use.result:
                case Result.WORKED:
                    view.worked += 1
                case Result.UNVERIFIED:
                    view.unverified += 1
                case Result.FAILED:
                    view.failure = one.use.why
        return view

    def _scopes(self, pair: Pair) -> list[str]:
        methods = self._catalog.service(pair.service).methods
        names = dict.fromkeys(pairs.methods_of(pair.undo))
        return [f"{name}: {' | '.join(methods[name].scopes)}" for name in names if name in methods]


def _fits(pair: Pair) -> str:
    if pair.request is not None:
        return f"exactly {canonical(dict(pair.request)).decode('utf-8')}"
    return ", ".join(f"{name} = {pattern}" for name, pattern in sorted(pair.when.items())) or "every call"
