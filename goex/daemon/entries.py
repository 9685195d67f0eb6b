"""Account entries, as the person's calls make them: where a credential may go, and what ends when it changes.

An entry is the only place where a base URL, a private address or a CA comes from. Where the place of an account that
is replaced isn't said anew, it stays: what the catalog says about the service may have changed since, and that must not
send the credential elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from goex.daemon.person_context import PersonContext
from goex.journal.states import State
from policies.accounts import Account, Origin
from policies.databases import SERVICE
from policies.errors import GoexError, InvalidInput
from vault.errors import AccountExists, NoAccount, RecordAltered, nothing_to_remove, pasteable
from vault.record import Record

Format = Literal["string", "file", "oauth", "basic"]
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an account is, as the person said it; "" and nothing where it wasn't said."""

    base_url: str = ""
    origins: tuple[str, ...] = ()
    private: bool = False
    ca_pem: str = ""


def entry(
    person: PersonContext, service_name: str, name: str, place: Place, format: Format, *, replace: bool
) -> Account:
    """The account entry. Raises InvalidInput, UnknownName."""
    name = name or DEFAULT
    there = known(person, service_name, name)
    if replace and there is not None and there.format == "oauth" and format != "oauth":
        raise InvalidInput(
            f"{there.id} is a login, which a key doesn't take the place of.",
            next_step=f"Take it back first: goex auth logout {pasteable(service_name)} --account {pasteable(name)}",
        )
    if there is not None and not replace:
        raise AccountExists(
            f"There is an account {there.id} already.", next_step="Use --replace, or another account: --account NAME."
        )
    service = None
    if service_name != "model":
        service = person.engine.core.catalog.service(service_name)  # raises, with close matches
    kept = there if replace and not place.base_url else None
    base_url = place.base_url or (kept.base_url if kept else service.base_url if service else "")
    if not base_url:
        raise InvalidInput(
            f"{service_name} has no address of its own.",
            next_step="Say where it is: --base-url https://… (or http://… with --private, on this machine or network)",
        )
    origins = {Origin.parse(base_url), *(Origin.parse(origin) for origin in place.origins)}
    return Account(
        service=service_name,
        name=name,
        origins=tuple(sorted(origins | set(kept.origins if kept else ()))),
        base_url=base_url.rstrip("/"),
        format=format,
        private=place.private or (kept is not None and kept.private),
        ca_pem=place.ca_pem or (kept.ca_pem if kept else ""),
    )


def records(person: PersonContext) -> Iterable[Record]:
    """Every account; none without a vault."""
    return person.vault_state.records()


def known(person: PersonContext, service: str, name: str) -> Account | None:
    """The account of that name, if there is one."""
    return next(
        (one.account for one in records(person) if (one.account.service, one.account.name) == (service, name)), None
    )


def record(person: PersonContext, service: str, name: str) -> Record:
    """What can be shown of an account. Raises InvalidInput."""
    for one in records(person):
        if (one.account.service, one.account.name) == (service, name):
            return one
    raise InvalidInput(f"There is no account {service}/{name}.", next_step="See which there are: goex auth list")


def refuse_unknown(person: PersonContext, service: str, name: str) -> None:
    """Raise NoAccount for an account to remove that isn't there; one that was altered outside of GoEx is there."""
    with suppress(RecordAltered):
        to_remove(person, service, name)


def to_remove(person: PersonContext, service: str, name: str) -> Account:
    """The account of that name, or the service's only one. Raises NoAccount with those that may be meant,
    AccountUnclear, RecordAltered, InvalidInput for the entry of a database."""
    try:
        found = person.vault_state.resolve(service, name)
    except NoAccount:
        there = [one.account.id for one in records(person) if one.account.service != SERVICE]
        raise nothing_to_remove(service, name, there) from None
    refuse_database(found.service, found.name)
    return found


def refuse_database(service: str, name: str) -> None:
    """Raise InvalidInput for the entry of a database, which has commands of its own: it may hold something."""
    if service == SERVICE:
        raise InvalidInput(
            f"{SERVICE}/{name} is a database's entry.", next_step=f"Remove it with: goex db remove {pasteable(name)}"
        )


def users(person: PersonContext, service: str, name: str) -> tuple[str, ...]:
    """The actions that have the account's credential now, or are about to get it."""
    rows = person.engine.core.actions.in_states((State.ALLOWED, State.PREPARED, State.RUNNING))
    return tuple(
        row.id
        for row in rows
        if any((need.service, need.account) == (service, name) for need in row.the_plan().required)
    )


async def end_users(person: PersonContext, service: str, name: str, why: str) -> None:
    """Kill what runs with a credential that isn't the account's any more: its lease can't be called back."""
    for id in users(person, service, name):
        await person.engine.cancel(id, why=why)


def end_grants(person: PersonContext, service: str, name: str, by: str, why: str = "its account was removed") -> None:
    """Revoke what was granted on an account that is gone: another one may get its name, and be somebody else's."""
    grant_store = person.engine.core.grant_store
    gone = [grant.id for grant in grant_store.grants() if (grant.service, grant.account) == (service, name)]
    grant_store.revoke(gone, by=by, why=why)


def end_moved(person: PersonContext, account: Account, by: str) -> None:
    """Revoke what was granted on the account whose place this one is to take, where that was at another address: it was
    given for that place. The same account with a fresh credential keeps it."""
    there = known(person, account.service, account.name)
    if there is not None and there.base_url != account.base_url:
        end_grants(person, account.service, account.name, by, "its account leads elsewhere now")


def places(person: PersonContext) -> dict[tuple[str, str], str]:
    """Where each account is; none where the vault can't be read."""
    with suppress(GoexError):
        return {(one.account.service, one.account.name): one.account.base_url for one in records(person)}
    return {}


def end_left(
    person: PersonContext, before: Mapping[tuple[str, str], str], now: Mapping[tuple[str, str], str], by: str
) -> None:
    """Revoke what was granted on accounts that a backup doesn't have, or has `now` at another place than `before`."""
    for (service, name), place in before.items():
        if now.get((service, name)) != place:
            end_grants(person, service, name, by, "the restored backup has its account elsewhere, or not at all")
