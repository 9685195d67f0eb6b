"""Checks of a plan and its leases as a whole, before a socket exists. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from policies.errors import InvalidInput
from runtimes.gateway.plan import GatewayPlan
from runtimes.gateway.plan_check import AccountKey, check_request
from runtimes.gateway.rules_check import check_rules
from vault.lease import Lease

MAX_REQUESTS = 200
MAX_RULES = 500
MAX_BYTES = 32 * 2**20
MAX_SECONDS = 3600.0


def check_opening(plan: GatewayPlan, leases: Sequence[Lease], now: datetime) -> Mapping[AccountKey, Lease]:
    """The leases by account. Raises InvalidInput for a plan or lease that can't be served safely."""
    if plan.by_rules and (plan.requests or len(plan.rules) > MAX_RULES):
        raise InvalidInput(f"A plan for code has no list of requests, and at most {MAX_RULES} rules.")
    if not plan.by_rules and (not plan.requests or len(plan.requests) > MAX_REQUESTS):
        raise InvalidInput(f"A plan has 1 to {MAX_REQUESTS} requests.")
    if not (0 < plan.seconds <= MAX_SECONDS):
        raise InvalidInput("A plan's time limit must be between 0 and 3600 seconds.")
    if not (0 < plan.max_request_bytes <= MAX_BYTES and 0 < plan.max_response_bytes <= MAX_BYTES):
        raise InvalidInput("A plan's size limits are out of bounds.")
    if len({request.id for request in plan.requests}) != len(plan.requests):
        raise InvalidInput("Two requests of a plan have one id.")
    held: dict[AccountKey, Lease] = {}
    for lease in leases:
        key = (lease.account.service, lease.account.name)
        if lease.action_id != plan.action_id:
            raise InvalidInput("A lease of another action can't be used.")
        if key in held:
            raise InvalidInput(f"There are two leases of {lease.account.id}.")
        if lease.expires <= now:
            raise InvalidInput(f"The lease of {lease.account.id} has expired.")
        held[key] = lease
    for request in plan.requests:
        check_request(request, held)
    check_rules(plan, held)
    return held
