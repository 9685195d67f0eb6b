"""The catalog as the wire's messages: the daemon answers with them, and the command line prints them.

Rules: all services come without methods, one service without its methods' arguments, one method whole, so that no
answer grows with a catalog of tens of thousands of methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from mapper.store.import_rows import Entry
from policies.jsonvalue import canonical
from policies.services import Method, Risk, Scope, Service, Source


def services_reply(
    catalog: Catalog, request: pb.ServicesRequest, accounts: Mapping[str, Sequence[str]]
) -> pb.ServicesReply:
    """What was asked for. `accounts`: those of each service. Raises UnknownName, StoreUnreadable."""
    if not request.service:
        trouble = catalog.trouble
        shown = [view for view in _brief(catalog, accounts) if view.main or request.versions]
        return pb.ServicesReply(services=shown, trouble=str(trouble) if trouble else "")
    service = catalog.service(request.service)
    view = _service(service, accounts, len(service.methods))
    if request.method:
        view.methods.append(method_view(catalog.method(f"{service.name}.{request.method}"), whole=True))
    else:
        view.scopes.extend(scope_view(scope) for _, scope in sorted(service.scopes.items()))
        if catalog.store is not None and service.source == "imported":
            undone = catalog.store.ways_back(service.name)
            entries = catalog.store.entries_of(service.name)
            view.methods.extend(_entry_view(entry, undone.get(entry.name, ())) for entry in entries)
        else:
            view.methods.extend(method_view(method) for method in service.methods.values())
    return pb.ServicesReply(services=[view])


def method_view(method: Method, *, whole: bool = False) -> pb.MethodView:
    """One method; with the schema of its arguments where it is `whole`."""
    undo = "nothing" if method.risk is Risk.READ else "irreversible"
    if method.undo is not None:
        undo = _undone_by((call.method for call in method.undo.calls), method.undo.source)
    return pb.MethodView(
        name=method.name,
        description=method.description,
        risk=method.risk.word,
        scopes=method.scopes,
        undo=undo,
        parameters_json=canonical(dict(method.parameters)).decode("utf-8") if whole else "",
        http=method.http,
        path=method.path,
        origin_id=method.origin_id,
        unsupported=method.unsupported,
    )


def _undone_by(methods: Iterable[str], source: Source) -> str:
    kind = "compensating" if source == "bundled" else f"compensating ({source})"
    return f"{kind}: {', '.join(methods)}"


def _entry_view(entry: Entry, undone_by: tuple[str, ...] = ()) -> pb.MethodView:
    undo = "nothing" if entry.risk is Risk.READ else "irreversible"
    if undone_by:
        undo = _undone_by(undone_by, "derived")
    return pb.MethodView(
        name=entry.name,
        description=entry.description,
        risk=entry.risk.word,
        scopes=entry.scopes,
        undo=undo,
        http=entry.http,
        path=entry.path,
        origin_id=entry.origin_id,
        unsupported=entry.unsupported,
    )


def scope_view(scope: Scope) -> pb.ScopeView:
    """One scope."""
    return pb.ScopeView(name=scope.name, description=scope.description, risk=scope.risk.word, virtual=scope.virtual)


def _brief(catalog: Catalog, accounts: Mapping[str, Sequence[str]]) -> list[pb.ServiceView]:
    own = Catalog.bundled().services
    made = [_service(service, accounts, len(service.methods)) for service in own.values()]
    facts = catalog.store.facts() if catalog.store is not None and catalog.trouble is None else ()
    made += [
        pb.ServiceView(
            name=fact.name,
            title=fact.title,
            base_url=fact.base_url,
            accounts=sorted(accounts.get(fact.name, ())),
            method_count=fact.methods,
            description=fact.description,
            source="imported",
            provider=fact.provider,
            provider_name=fact.provider_name,
            version=fact.version,
            main=fact.main,
        )
        for fact in facts
        if fact.name not in own
    ]
    return sorted(made, key=lambda view: view.name)


def _service(service: Service, accounts: Mapping[str, Sequence[str]], count: int) -> pb.ServiceView:
    return pb.ServiceView(
        name=service.name,
        title=service.title,
        base_url=service.base_url,
        accounts=sorted(accounts.get(service.name, ())),
        method_count=count,
        description=service.description,
        source=service.source,
        provider=service.provider,
        provider_name=service.provider_name,
        version=service.version,
        main=service.main,
    )
