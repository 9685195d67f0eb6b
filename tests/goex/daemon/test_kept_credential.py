"""A credential that stays while its account's terms change: what is sealed anew is the one that is there by then."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.server_tools import tools_of
from goex.daemon.vault_calls import VaultCalls
from goex.daemon.vault_state import VaultState
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from runtimes.servers.definition import HOST
from runtimes.servers.runtime import CallsRuntime
from tests.vault.support import create
from vault.secret import Secret

OLD, NEW = Origin.parse(f"https://a.notes{HOST}"), Origin.parse(f"https://b.notes{HOST}")
ACCOUNT = Account(service="notes", name="default", origins=(OLD,), base_url=str(OLD))


async def test_what_is_lent_to_ask_a_server_for_its_tools_ends_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    vault = create(tmp_path / "state" / "vault.db")
    vault.put(ACCOUNT, Secret("first"))
    state = VaultState(vault.path)
    state._vault = vault

    async def look(_: object, name: str, context: Any) -> Any:
        assert [lease.action_id for lease in state.live_leases()] == [context.action_id]
        raise InvalidInput(name)

    monkeypatch.setattr(CallsRuntime, "look", look)
    core: Any = SimpleNamespace(
        runtimes={"calls": object.__new__(CallsRuntime)}, journal=SimpleNamespace(append=lambda *_, **__: None),
        clock=vault._clock, vault=state,
    )  # fmt: skip
    person: Any = SimpleNamespace(vault_state=state, engine=SimpleNamespace(core=core))
    peer: Any = SimpleNamespace(describe=lambda: "the person")
    service: Any = SimpleNamespace(name="notes")
    with pytest.raises(InvalidInput):
        await tools_of(person, CredentialBroker(state), service, peer)
    assert state.live_leases() == ()


@pytest.mark.parametrize("meanwhile", ["renewed", "replaced"])
async def test_what_happens_while_the_person_is_asked_isnt_undone(
    tmp_path: Path, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    vault = create(tmp_path / "state" / "vault.db")
    vault.put(ACCOUNT, Secret("first"))
    refused: list[str] = []

    async def present(*_: object) -> Any:
        if meanwhile == "renewed":
            vault.renew(vault.open_record("notes", "default"), Secret("rotated"))
        else:
            other = Account(service="notes", name="default", origins=(OLD,), base_url=f"{OLD}/other")
            vault.put(other, Secret("rotated"), replace=True)
        return SimpleNamespace(describe=lambda: "the person")

    async def abort(_: object, error: Any) -> None:
        refused.append(error.code)

    monkeypatch.setattr("goex.daemon.rpc_context.abort", abort)
    state = VaultState(vault.path)
    state._vault = vault
    core = SimpleNamespace(
        actions=SimpleNamespace(in_states=lambda _: ()), journal=SimpleNamespace(append=lambda *_, **__: None)
    )

    async def acknowledge() -> None: ...

    person: Any = SimpleNamespace(
        vault_state=state, present=present, engine=SimpleNamespace(core=core), acknowledge=acknowledge
    )
    request = pb.VaultPutRequest(service="notes", account="default", origins=[str(NEW)], keep=True)
    await VaultCalls(person).VaultPut(request, SimpleNamespace())
    opened = vault.open_record("notes", "default")
    assert opened.secret == Secret("rotated")
    assert opened.account.origins == ((NEW,) if meanwhile == "renewed" else (OLD,))
    assert refused == ([] if meanwhile == "renewed" else ["record-replaced"])
