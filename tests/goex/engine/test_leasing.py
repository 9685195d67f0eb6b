"""Leases as the engine takes them: for the least scopes, journaled, and never of a credential that opens more than the
person was told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

import pytest

from goex.engine.consent import Consent, Holder, NeedsConsent
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Need, Plan, UndoClass
from policies.errors import Conflict
from policies.services import Risk
from tests.goex.engine.conftest import Desk
from vault.lease import Lease
from vault.secret import Secret

ACCOUNT = Account(
    service="spotify", name="me", origins=(Origin.parse("https://api.spotify.com"),), base_url="https://api.spotify.com"
)
READ = "playlist-read-private"


class OneLogin:
    """A server that says of itself one thing, and does another."""

    def __init__(self, granted: Iterable[str], promises: Holder | None, does: Holder) -> None:
        self._granted, self._promises, self._does = frozenset(granted), promises, does
        self.asked: list[tuple[str, ...]] = []
        self.distrusted: list[tuple[str, str]] = []

    def granted(self, service: str, name: str) -> frozenset[str] | None:
        return self._granted

    def asks(self, service: str, name: str) -> bool:
        return False

    def narrows(self, account: Account, scopes: Iterable[str]) -> Holder | None:
        return self._promises

    async def lease(
        self, service: str, name: str, *, action_id: str, expires: datetime, scopes: tuple[str, ...]
    ) -> Lease:
        self.asked.append(scopes)
        return Lease(
            action_id=action_id,
            account=ACCOUNT,
            secret=Secret("t"),
            expires=expires,
            narrowed=self._does,
            scopes=scopes,
        )

    def distrust(self, service: str, name: str) -> None:
        self.distrusted.append((service, name))


def plan() -> Plan:
    def need(scope: str, method: str) -> Need:
        return Need(service="spotify", account="me", scope=scope, risk=Risk.READ, methods=(method,))

    return Plan(
        action=ApiCalls(calls=()),
        needs=(need(READ, "get_playlist"), need("catalog.read", "search")),
        undo_class=UndoClass.NOTHING,
        undo_text="",
        resolved={},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


@pytest.fixture
def desk_with_account(desk: Desk) -> Desk:
    desk.app.vault_state.vault.put(ACCOUNT, Secret("sealed"))
    return desk


@pytest.mark.sampled(3)
@pytest.mark.promise(41)
@pytest.mark.parametrize(
    ("promises", "does", "told"),
    [("token", "token", True), ("gateway", "gateway", True), (None, "gateway", True), (None, "token", True),
     ("gateway", "token", True), ("token", "gateway", False)],
)  # fmt: skip
async def test_a_credential_that_opens_more_than_was_told_isnt_used(
    desk_with_account: Desk, promises: Holder | None, does: Holder, told: bool
) -> None:
    core = desk_with_account.core
    core.lender = login = OneLogin([READ, "user-top-read"], promises, does)
    row, _ = desk_with_account.allowed()
    if not told:
        with pytest.raises(Conflict, match="more than this needs"):
            await core.leases(row, plan())
        return
    (lease,) = await core.leases(row, plan())
    assert lease.narrowed == does
    assert login.asked == [(READ,)], "a scope that GoEx cuts by itself is no server's"
    (noted,) = core.journal.rows(kind="lease", limit=5)
    assert json.loads(noted.facts) == {
        "service": "spotify", "account": "me", "narrowed": does, "scopes": [READ], "needed": [READ],
    }  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.promise(38)
@pytest.mark.parametrize(
    ("before", "after", "good"),
    [
        (OneLogin([READ], "token", "token"), OneLogin([READ], "token", "token"), True),
        (OneLogin([READ], "token", "token"), OneLogin([READ], "gateway", "gateway"), False),
        (OneLogin([READ], "token", "token"), OneLogin([READ], None, "gateway"), False),
        (OneLogin([READ], None, "token"), OneLogin([READ, "user-top-read"], "gateway", "gateway"), False),
        (OneLogin([READ], "gateway", "gateway"), OneLogin([READ, "user-top-read"], "gateway", "gateway"), False),
        (OneLogin([READ], "gateway", "gateway"), OneLogin([READ, "user-top-read"], "token", "token"), True),
        (OneLogin([READ, "user-top-read"], "gateway", "gateway"), OneLogin([READ], "gateway", "gateway"), True),
    ],
)
async def test_what_the_person_was_told_of_a_credential_holds_when_it_runs(
    desk_with_account: Desk, before: OneLogin, after: OneLogin, good: bool
) -> None:
    core = desk_with_account.core
    row, _ = desk_with_account.allowed()
    core.lender = before
    core.told(row, plan())
    core.lender = after
    if before.narrows(ACCOUNT, ()) != after.narrows(ACCOUNT, ()):
        core.told(row, plan())  # another window asks later: the first one's reader may be the one who says yes
    if good:
        assert await core.leases(row, plan())
        return
    with pytest.raises(Conflict, match="more now than when you were asked"):
        await core.leases(row, plan())


async def test_no_lease_of_a_login_that_lost_its_consent_meanwhile(desk_with_account: Desk) -> None:
    core = desk_with_account.core
    core.lender = login = OneLogin(["user-top-read"], None, "gateway")
    row, _ = desk_with_account.allowed()
    with pytest.raises(NeedsConsent) as refused:
        await core.leases(row, plan())
    assert refused.value.consents == (Consent("spotify", "me", (READ,)),)
    assert login.asked == []


async def test_an_answer_that_refuses_the_credential_makes_it_distrusted(desk_with_account: Desk) -> None:
    core = desk_with_account.core
    core.lender = login = OneLogin([READ], None, "gateway")
    row, _ = desk_with_account.allowed()
    context = core.context(row, None, await core.leases(row, plan()))
    context.note("answer", {"request": "call-0", "status": 200})
    context.note("answer", {"request": "call-0", "status": 403})
    assert login.distrusted == []
    context.note("answer", {"request": "call-0", "status": 401})
    assert login.distrusted == [("spotify", "me")]
