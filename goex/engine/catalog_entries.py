"""What a permission is bound to in the imported catalog: the entries of methods as they were when it was given.

Rules: a document is imported anew without presence, so what was allowed of a method was allowed of its entry alone. A
manifest that comes with GoEx changes with GoEx alone, and nothing is bound to it.
"""

from __future__ import annotations

from mapper.catalog import Catalog
from policies.actions import Plan
from policies.errors import GoexError
from policies.rules.facts import LOCAL


def is_imported(catalog: Catalog, name: str) -> bool:
    """Whether this is a service that doesn't come with GoEx, though it may have been removed just now."""
    service = catalog.services.get(name)
    return service.source == "imported" if service is not None else name not in LOCAL


def entry(catalog: Catalog, service: str, method: str) -> str:
    """A method's entry as it is now, hashed; "" where there is none."""
    try:
        return catalog.entry_hash((f"{service}.{method}",))
    except GoexError:
        return ""


def is_as_planned(catalog: Catalog, plan: Plan) -> bool:
    """Whether what GoEx knows of a plan's methods, those of its undo among them, is what it knew then; always where
    none of them is imported."""
    if not any(is_imported(catalog, need.service) for need in plan.needs):
        return True
    try:
        return plan_hash(catalog, plan) == plan.catalog_hash
    except GoexError:
        return False


def plan_hash(catalog: Catalog, plan: Plan) -> str:
    """`Plan.catalog_hash` as it would be now. Raises UnknownName, StoreUnreadable."""
    ids = {f"{need.service}.{name}" for need in plan.needs if need.service not in LOCAL for name in need.methods}
    ids |= {f"{one['service']}.{one['method']}" for undo in plan.undo.get("calls", ()) for one in undo.get("steps", ())}
    return catalog.entry_hash(ids)
