"""What an agent can ask for, in one answer: accounts, databases, folders, and methods with what they still lack.

Rules: names alone, never an address, a scope that was given or anything of a credential; a list of methods is bounded,
whatever a catalog holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from goex.catalog_views import method_view, services_reply
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from policies.databases import SERVICE
from policies.errors import InvalidInput
from policies.services import Method

if TYPE_CHECKING:
    from mapper.ranking.index import Index

MOST_FOUND = 20
MOST_LISTED = 200
_USUAL_FOUND = 5
_USUAL_LISTED = 40
_LONGEST_TEXT = 300

Accounts = Mapping[str, Sequence[str]]


def found(catalog: Catalog, request: pb.FindRequest, accounts: Accounts, index: Index | None = None) -> pb.FindReply:
    """What was asked for; `index` ranks methods for a query. Raises UnknownName, InvalidInput, StoreUnreadable."""
    if sum(map(bool, (request.query, request.service, request.method))) > 1:
        raise InvalidInput("Ask by one of query, service and method.", next_step="Leave the others out.")
    if request.method:
        _, _, name = request.method.partition(".")
        if not name:
            raise InvalidInput("A method is named like slack.chat.postMessage.", next_step="Name its service, too.")
        return pb.FindReply(methods=[_whole(catalog.method(request.method), accounts)])
    if request.query:
        limit = min(request.limit or _USUAL_FOUND, MOST_FOUND)
        # The ranking knows nothing of accounts: of what fits, that which can be called comes first.
        from mapper.method_search import search  # its word lists are loaded by the first search

        hits = [catalog.method(hit.id) for hit in search(catalog, request.query, limit=limit * 4, index=index)]
        hits.sort(key=lambda method: method.service not in accounts)
        reply = _connected(catalog, accounts)
        reply.methods.extend(_whole(method, accounts) for method in hits[:limit])
        return reply
    if request.service:
        return _listed(catalog, request, accounts)
    return _connected(catalog, accounts)


def _connected(catalog: Catalog, accounts: Accounts) -> pb.FindReply:
    connected = sorted(name for name in accounts if name != SERVICE)
    known = services_reply(catalog, pb.ServicesRequest(), accounts).services
    return pb.FindReply(
        services=[_service(view) for view in known if view.name in connected],
        databases=sorted(accounts.get(SERVICE, ())),
        unconnected=sum(view.name not in connected for view in known),
    )


def _listed(catalog: Catalog, request: pb.FindRequest, accounts: Accounts) -> pb.FindReply:
    (view,) = services_reply(catalog, pb.ServicesRequest(service=request.service), accounts).services
    end = request.offset + min(request.limit or _USUAL_LISTED, MOST_LISTED)
    return pb.FindReply(
        services=[_service(view)],
        methods=[_method(view.name, each, accounts) for each in view.methods[request.offset : end]],
        next_offset=end if end < len(view.methods) else 0,
    )


def _service(view: pb.ServiceView) -> pb.FoundService:
    return pb.FoundService(name=view.name, title=view.title, accounts=view.accounts, methods=view.method_count)


def _whole(method: Method, accounts: Accounts) -> pb.FoundMethod:
    return _method(method.service, method_view(method, whole=True), accounts)


def _method(service: str, view: pb.MethodView, accounts: Accounts) -> pb.FoundMethod:
    names = sorted(accounts.get(service, ()))
    lacks = view.unsupported
    if not lacks and not names:
        lacks = f"{service} isn't connected; only the person can connect it"
    return pb.FoundMethod(
        id=f"{service}.{view.name}",
        description=_short(view.description),
        risk=view.risk,
        undo=view.undo,
        parameters_json=view.parameters_json,
        accounts=names,
        lacks=lacks,
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def by_service(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The names of accounts, by service."""
    made: dict[str, list[str]] = {}
    for service, name in pairs:
        made.setdefault(service, []).append(name)
    return made
