"""The Vault service with scripted answers, for what the command line shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from goex.rpc import vault_pb2_grpc as rpc


class FakeVault(rpc.VaultServicer):
    """What came in is in `requests`."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.leases = [
            vpb.LeaseView(
                action_id="ac-0001", service="slack", account="work", expires="2026-01-02T03:14:05.123456+00:00"
            )
        ]

    def Rotate(self, request: Any, context: Any) -> Iterator[vpb.RotateStep]:
        self.requests.append(request)
        for of, total in (("records", 2), ("payloads", 5)) if request.anew else (("records", 2),):
            for done in range(1, total + 1):
                yield vpb.RotateStep(progress=vpb.RotateProgress(of=of, done=done, total=total))
        keyed_by = request.keyed_by or "passphrase"
        yield vpb.RotateStep(done=pb.VaultStatus(state="unsealed", keyed_by=keyed_by, records=2))

    def ChangeApproval(self, request: Any, context: Any) -> pb.VaultStatus:
        self.requests.append(request)
        return pb.VaultStatus(state="unsealed", keyed_by="passphrase", records=2)

    def Backup(self, request: Any, context: Any) -> vpb.BackupReply:
        self.requests.append(request)
        return vpb.BackupReply(path="/media/stick/vault.goex", bytes=1234, records=2)

    def Restore(self, request: Any, context: Any) -> vpb.RestoreReply:
        self.requests.append(request)
        return vpb.RestoreReply(
            vault=pb.VaultStatus(state="unsealed", keyed_by=request.keyed_by, records=2),
            made="2026-01-02T03:04:05.123456+00:00",
            kept_aside="/state/goex/vault.db.replaced-20260102T030405Z" if request.replace else "",
        )

    def Leases(self, request: Any, context: Any) -> vpb.LeasesReply:
        return vpb.LeasesReply(leases=self.leases)
