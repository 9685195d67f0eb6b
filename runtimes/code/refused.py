"""What a program tried and wasn't let: told to the person with the catalogued call that it would have been.

Rules: a hostile program can cause any number of refusals, so the same one is counted and not said again, and there is
an end to different ones. What a request would have been is looked up in the catalog by its address; nothing is allowed
by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from mapper.catalog import Catalog
from policies.accounts import Origin
from policies.display_text import escape, shorten
from policies.errors import GoexError
from policies.jsonvalue import JsonObject
from runtimes.code.path_templates import template
from runtimes.code.permits import Accounts, callable_
from runtimes.gateway.plan import Refusal, Slot
from runtimes.gateway.routes import divide

MOST = 20  # different refusals that are told apart
_LONGEST = 300


@dataclass(slots=True)
class Refusals:
    """Those of one run. `permitted` are the methods that it may call."""

    permitted: frozenset[str] = frozenset()
    kinds: dict[tuple[str, str, str], int] = field(default_factory=dict)  # method, target, reason: how often
    known: dict[tuple[str, str, str], str] = field(default_factory=dict)  # the method that the gateway knew
    more: int = 0  # of kinds beyond the bound

    def add(self, refusal: Refusal) -> bool:
        """Count one. Returns whether it is the first of its kind that is told."""
        key = (refusal.method, refusal.target, refusal.reason)
        if key not in self.kinds and len(self.kinds) >= MOST:
            self.more += 1
            return False
        self.kinds[key] = self.kinds.get(key, 0) + 1
        self.known[key] = refusal.method_id
        return self.kinds[key] == 1

    @property
    def count(self) -> int:
        return sum(self.kinds.values()) + self.more

    def told(self, accounts: Accounts, catalog: Catalog) -> tuple[JsonObject, ...]:
        """For an outcome: what was tried, what that is in the catalog ("" when it isn't there), why, and how often;
        `held`: its method is permitted, with other values than these."""
        made = []
        for (method, target, reason), times in self.kinds.items():
            call = self.known[method, target, reason] or method_at(method, target, accounts, catalog)
            shown, _ = shorten(target, _LONGEST)
            made.append(
                {
                    "request": escape(f"{method} {shown}"),
                    "call": call,
                    "held": call in self.permitted,
                    "reason": escape(reason),
                    "times": times,
                }
            )
        return tuple(made)


def method_at(method: str, target: str, accounts: Accounts, catalog: Catalog) -> str:
    """The catalogued method at an address of one of these accounts; "" when there is none, or it isn't sure which."""
    try:
        url = urlsplit(target if "://" in target else f"https://{target}")
        origin = Origin.parse(f"{url.scheme}://{url.netloc}")
    except (ValueError, GoexError):
        return ""
    segments = [unquote(part) for part in url.path.split("/") if part]
    best: list[tuple[int, str]] = []
    for (service, _), account in accounts.items():
        base = [unquote(part) for part in urlsplit(account.base_url).path.split("/") if part]
        if origin not in account.origins or segments[: len(base)] != base:
            continue
        best += _fitting(method, segments[len(base) :], service, catalog)
    if not best:
        return ""
    most = max(fixed for fixed, _ in best)
    names = {name for fixed, name in best if fixed == most}
    return names.pop() if len(names) == 1 else ""


def _fitting(method: str, segments: Sequence[str], service: str, catalog: Catalog) -> list[tuple[int, str]]:
    found = []
    for each in catalog.service(service).methods.values():
        if each.http != method or not callable_(catalog, each.id):
            continue
        path = template(each, {})
        if divide(path, segments) is not None:
            found.append((sum(not isinstance(part, Slot) for part in path), each.id))
    return found


def proposal(told: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """The methods that a wider grant would name so that what was refused is let pass."""
    return tuple(dict.fromkeys(str(one["call"]) for one in told if one["call"] and not one["held"]))
