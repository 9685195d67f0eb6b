"""Where an account is, when nobody said it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.entries import Place, entry
from policies.errors import InvalidInput


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
