"""Whatever goes in comes out, for any bytes and names."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.errors import InvalidInput
from tests.vault.support import account, secret_of
from vault.secret import Secret
from vault.store import Vault

_names = st.text(st.characters(categories=("L", "N", "P", "S"), exclude_characters="/"), min_size=1, max_size=40)


@settings(max_examples=20)
@given(data=st.binary(min_size=1, max_size=5000), service=_names, name=_names)
def test_any_file_comes_back(vault: Vault, data: bytes, service: str, name: str) -> None:
    try:
        vault.put(account(service, name, format="file"), Secret(data), replace=True)
    except InvalidInput as refused:
        assert "name" in refused.message
        return
    assert secret_of(vault, service, name) == data
    assert vault.damage() == ()
    vault.remove(service, name)


@settings(max_examples=20)
@given(name=st.text(max_size=30), data=st.binary(max_size=3000))
def test_any_payload_comes_back(vault: Vault, name: str, data: bytes) -> None:
    try:
        sealed = vault.seal_payload(name, data)
    except InvalidInput:
        return
    assert vault.open_payload(name, sealed) == data
