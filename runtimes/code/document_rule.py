"""The rule for a program's GraphQL documents: those that are written in it, to the letter, and nothing beside them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from mapper.code.found_calls import FoundCall
from policies.accounts import Account, Origin
from policies.services import Method, Service
from runtimes.gateway.plan import MethodRule
from runtimes.rest.requests import credential_of, placement_for

DOCUMENT = "GraphQL document"  # no argument is called so, and no argument is known of what a document sends


def document_rule(
    number: int, service: Service, method: Method, account: Account, origin: Origin, calls: Sequence[FoundCall]
) -> MethodRule | None:
    """The rule; None where the service's credential has several places, or none that a program can use.

    A body has no field but `query` and what goes with it, so that nothing stands for another document: no hash of a
    stored one, and no list of several.
    """
    placement = placement_for(service, account)
    if placement.more or placement.at == "cookie":
        return None
    return MethodRule(
        id=f"rule-{number}",
        method_id=method.id,
        account=(account.service, account.name),
        origin=origin,
        base_path=tuple(unquote(part) for part in urlsplit(account.base_url).path.split("/") if part),
        method="POST",
        path=tuple(part for part in method.path.split("/") if part),
        fields={
            "query": tuple(dict.fromkeys(str(call.fields["query"]) for call in calls)),
            "variables": (),
            "operationName": (),
        },
        must=("query",),
        only=True,
        body_format="json",
        **credential_of(placement),
    )
