"""Where an account is, when nobody said it; and what ends when a restored backup has it elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.entries import Place, end_left, entry, places
from policies.errors import InvalidInput
from vault.errors import VaultAbsent


@pytest.mark.parametrize("private", [True, False])
def test_a_service_without_an_address_is_told_both_ways_to_give_one(private: bool) -> None:
    """A document that names plain http on another machine leaves its service without one."""
    catalog = SimpleNamespace(service=lambda name: SimpleNamespace(name=name, base_url=""))
    person: Any = SimpleNamespace(
        engine=SimpleNamespace(core=SimpleNamespace(catalog=catalog)), vault_state=SimpleNamespace(records=lambda: ())
    )
    with pytest.raises(InvalidInput) as refused:
        entry(person, "notes", "", Place(private=private), "string", replace=False)
    assert "--base-url https://" in refused.value.next_step and "http://… with --private" in refused.value.next_step
    made = entry(person, "notes", "", Place(base_url="http://10.0.0.5:8080", private=True), "string", replace=False)
    assert made.base_url == "http://10.0.0.5:8080"


@pytest.mark.promise(24)
def test_grants_end_where_an_account_is_elsewhere_or_gone_and_stay_where_nothing_is_known() -> None:
    now = {"same": "https://a.example", "moved": "https://a.example", "gone": "https://a.example"}
    granted = [SimpleNamespace(id=name, service="slack", account=name) for name in (*now, "unknown")]
    ended: list[str] = []
    store = SimpleNamespace(grants=lambda: granted, revoke=lambda ids, **_: ended.extend(ids))

    def records() -> Any:
        if not now:
            raise VaultAbsent("There is no vault.")
        one = SimpleNamespace
        return [one(account=one(service="slack", name=name, base_url=url)) for name, url in now.items()]

    core = SimpleNamespace(grant_store=store)
    person: Any = SimpleNamespace(engine=SimpleNamespace(core=core), vault_state=SimpleNamespace(records=records))
    before = places(person)
    now |= {"moved": "https://b.example", "new": "https://a.example"}
    del now["gone"]
    end_left(person, before, places(person), "the person")
    assert sorted(ended) == ["gone", "moved"]
    now.clear()
    assert places(person) == {}
