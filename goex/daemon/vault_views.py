"""What the wire says of the vault."""

from __future__ import annotations

from goex.rpc import goex_pb2 as pb
from vault.store import Vault


def vault_status(vault: Vault) -> pb.VaultStatus:
    """Its state, how many accounts it holds, and which of them were altered."""
    damage = vault.damage() if vault.state == "unsealed" else ()
    return pb.VaultStatus(
        state=vault.state,
        keyed_by=vault.keyed_by,
        records=len(vault.records()),
        damage=[f"{each.service}/{each.name}: {each.what}" for each in damage],
    )
