"""The permission to run programs, in plain words: what it lets somebody do beside what the calls in them need. Pure."""

from __future__ import annotations

from mapper.scope_effects import Meaning
from policies.actions import Need
from runtimes.code.scopes import MAY_CHANGE, SERVICE


def is_code(need: Need) -> bool:
    return need.service == SERVICE


def doing(scope: str, which: str) -> str:
    """`run any program that changes things through services, as far as it may call them,`."""
    what = "changes things through" if scope == MAY_CHANGE else "only reads from"
    return f"run {which} that {what} services, each call as often as a program may,"


def description(need: Need) -> str:
    what = "change things through" if need.scope == MAY_CHANGE else "only read from"
    return (
        f"Run a program of its own writing that may {what} services, in a container without network or token. Each"
        " method that it may call is a permission of its own."
    )


def meaning(need: Need) -> Meaning:
    """Nothing beyond what its calls may, which stands with them."""
    return Meaning()
