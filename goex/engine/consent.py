"""What an account's credential must hold for a plan, and what it doesn't: looked at before anybody is asked.

Rules: a login that doesn't cover what a plan requires stops it with the exact scopes; nothing runs on hope. Where the
least scope isn't granted but another one that is granted allows the same methods, that one serves: some providers fold
scopes together. Scopes that GoEx cuts by itself are no server's, so no login can grant them; the gateway holds to them.
Credentials that aren't a login (keys, passwords, files) say nothing about scopes and are never stopped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from mapper.catalog import Catalog
from mapper.least_scopes import narrower, risk_of, suffices
from policies.accounts import Account, Origin
from policies.actions import Need, Plan
from policies.errors import ExitStatus, GoexError
from policies.services import OAuth, Service
from vault.errors import pasteable
from vault.lease import Lease
from vault.oauth.token_set import PROTOCOL_SCOPES

Holder = Literal["token", "gateway"]
AccountKey = tuple[str, str]  # service, account name


class Credentials(Protocol):
    """What is known of the credentials in the vault, without showing one."""

    def granted(self, service: str, name: str) -> frozenset[str] | None:
        """The scopes that a login has, spelled as at the server; None for what isn't a login."""
        ...

    def asks(self, service: str, name: str) -> bool:
        """Whether a token is asked for with the scopes of each action, as with a service account's file."""
        ...

    def narrows(self, account: Account, scopes: Iterable[str]) -> Holder | None:
        """Who holds a lease of the account to these scopes, by what was seen of its server; None: not seen yet."""
        ...


class Lender(Credentials, Protocol):
    """Hands out leases."""

    async def lease(
        self, service: str, name: str, *, action_id: str, expires: datetime, scopes: tuple[str, ...]
    ) -> Lease:
        """The account's credential for one action; of a login, a token that is good, narrowed to `scopes` (spelled as
        at the server) where the server can. Raises VaultError, Unavailable."""
        ...

    def distrust(self, service: str, name: str) -> None:
        """The service refused the credential: the next lease of a login gets a new token. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Consent:
    """What the person would have to agree to, at the provider, for one account."""

    service: str
    account: str
    scopes: tuple[str, ...]  # by the catalog's names


@dataclass(frozen=True, slots=True)
class Use:
    """What one account's token must hold for a plan: by the catalog's names, and as the server spells them."""

    scopes: tuple[str, ...]
    missing: tuple[str, ...]
    spelled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opens:
    """What the prompt says of one account's credential: who holds it to the action's scopes, and what it would open by
    itself. `scopes` None: everything that it was made for, which nobody here knows."""

    held_by: Holder
    scopes: tuple[str, ...] | None
    seen: bool  # False: the server wasn't asked yet whether it narrows


class NeedsConsent(GoexError):
    """An account isn't connected, or its login doesn't cover what an action needs. `difference`: the exact scopes."""

    code = "consent"
    exit_status = ExitStatus.SEALED

    def __init__(self, consents: tuple[Consent, ...], *, connected: bool = True) -> None:
        first = consents[0]
        label, scopes = f"{first.service}/{first.account}", ", ".join(first.scopes)
        super().__init__(
            f"The login of {label} doesn't cover {scopes}."
            if connected
            else f"{label} isn't connected{f'; this needs {scopes}' if scopes else ''}.",
            next_step=f"Allow it: {login_command(first)}",
        )
        self.consents = consents
        self.difference = tuple(scope for consent in consents for scope in consent.scopes)


def login_command(consent: Consent) -> str:
    """What the person types to agree."""
    scopes = "".join(f" --scope {pasteable(scope)}" for scope in consent.scopes)
    return f"goex auth login {pasteable(consent.service)} --account {pasteable(consent.account)}{scopes}"


def uses(plan: Plan, catalog: Catalog, credentials: Credentials) -> dict[AccountKey, Use]:
    """What each account's token must hold, of the needs that run: not of those that only an undo would have."""
    found: dict[AccountKey, list[Need]] = {}
    for need in plan.required:
        if need.service in catalog.services:
            found.setdefault((need.service, need.account), []).append(need)
    return {
        key: _use(catalog, catalog.service(key[0]), needs, _granted(catalog, credentials, key, needs))
        for key, needs in found.items()
    }


def opens(
    plan: Plan, accounts: Mapping[AccountKey, Account], catalog: Catalog, credentials: Credentials
) -> dict[AccountKey, Opens]:
    """What the prompt says of each account's credential."""
    made: dict[AccountKey, Opens] = {}
    for key, use in uses(plan, catalog, credentials).items():
        granted = credentials.granted(*key)
        if granted is None or key not in accounts:
            made[key] = Opens("gateway", None, seen=True)
            continue
        holder = credentials.narrows(accounts[key], use.spelled) if use.spelled else "gateway"
        service = catalog.service(key[0])
        names = login_facts(service).held(own_scopes(service), granted)
        strange = (
            granted - PROTOCOL_SCOPES - {spelled for name in names for spelled in login_facts(service).spell(name)}
        )
        made[key] = Opens(holder or "gateway", (*sorted(names), *sorted(strange)), seen=holder is not None)
    return made


def least(now: Opens, before: Opens | None) -> Opens:
    """What a person may rely on who was told both, one after the other: the less that was said to be open."""
    if before is None:
        return now
    return Opens(
        "token" if "token" in (now.held_by, before.held_by) else "gateway",
        _shared(now.scopes, before.scopes),
        seen=now.seen,
    )


def wider(told: Opens, now: Opens | None) -> bool:
    """Whether a credential that only the gateway holds opens more than was told. One that can't be looked at does."""
    if now is None:
        return True
    if told.held_by == "token":
        return True
    return told.scopes is not None and (now.scopes is None or not set(now.scopes) <= set(told.scopes))


def _shared(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple(scope for scope in one if scope in other)


def unconnected(service: Service, name: str) -> Account:
    """The account that a login to the service would make, as far as planning needs one."""
    origin = Origin.parse(service.base_url)
    return Account(
        service=service.name,
        name=name,
        origins=(origin,),
        base_url=service.base_url,
        private=origin.scheme == "http",
    )


def login_facts(service: Service) -> OAuth:
    """How the service spells its scopes; as the catalog does, where nothing is known."""
    return service.oauth or OAuth()


def own_scopes(service: Service) -> tuple[str, ...]:
    """The provider's own scopes, without those that GoEx cuts."""
    return tuple(name for name, scope in service.scopes.items() if not scope.virtual)


def _granted(
    catalog: Catalog, credentials: Credentials, key: AccountKey, needs: Iterable[Need]
) -> frozenset[str] | None:
    """What an account's login has; of one whose tokens are asked for anew, what is needed of it."""
    granted = credentials.granted(*key)
    if granted is None and credentials.asks(*key):
        facts = login_facts(catalog.service(key[0]))
        return frozenset(name for need in needs for name in facts.spell(need.scope))
    return granted


def _use(catalog: Catalog, service: Service, needs: Iterable[Need], granted: frozenset[str] | None) -> Use:
    if granted is None:
        return Use((), (), ())
    facts = login_facts(service)
    held = facts.held(own_scopes(service), granted)
    taken: dict[str, None] = {}
    lacking: dict[str, None] = {}
    for need in needs:
        scope = service.scopes.get(need.scope)
        if scope is not None and scope.virtual:
            continue
        serving = need.scope if need.scope in held else _in_its_stead(catalog, need, held)
        if serving:
            taken[serving] = None
        else:
            lacking[need.scope] = None
    spelled = dict.fromkeys(name for scope in taken for name in facts.spell(scope))
    return Use(tuple(taken), tuple(lacking), tuple(spelled))


def _in_its_stead(catalog: Catalog, need: Need, held: frozenset[str]) -> str:
    """The least granted scope that allows all that the need is for; "" when there is none."""
    able = [
        scope
        for scope in sorted(held)
        if all(suffices(catalog, need.service, method, scope) for method in need.methods)
    ]
    if not able:
        return ""
    mildest = min(risk_of(catalog, need.service, scope) for scope in able)
    able = [scope for scope in able if risk_of(catalog, need.service, scope) == mildest]
    least = [scope for scope in able if not any(narrower(catalog, need.service, other, scope) for other in able)]
    return (least or able)[0]
