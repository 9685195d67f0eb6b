"""The service Vault: its keys, its backups, and what is lent out. On the person's socket alone."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from goex.daemon import backup_file, rollback
from goex.daemon.entries import end_left, places
from goex.daemon.person_context import PersonCalls, PersonContext, PresenceDue
from goex.daemon.person_threads import in_thread
from goex.daemon.rpc_context import streaming, unary
from goex.daemon.vault_state import WrongApproval
from goex.daemon.vault_views import vault_status
from goex.engine.peers import Peer
from goex.engine.reseal import reseal
from goex.rpc import goex_pb2 as pb
from goex.rpc import vault_pb2 as vpb
from goex.rpc import vault_pb2_grpc as rpc
from policies.errors import InvalidInput
from vault.aead import derive
from vault.backup import Kept, open_backup
from vault.errors import VaultExists
from vault.secret import Secret


class VaultService(PersonCalls, rpc.VaultServicer):
    """`goex vault rotate`, `passphrase`, `approval`, `backup`, `restore` and `leases`."""

    def __init__(self, person: PersonContext) -> None:
        super().__init__(person)
        self._rotating: set[asyncio.Task[None]] = set()

    @streaming
    async def Rotate(self, request: vpb.RotateRequest, context: Any) -> AsyncIterator[vpb.RotateStep]:
        what = "Rotating the vault's keys"
        peer = await self._person.present(context, request.approval_passphrase, what, lately=False)
        steps: asyncio.Queue[vpb.RotateStep | None] = asyncio.Queue()
        task = asyncio.create_task(self._rotate(request, peer, steps))
        self._rotating.add(task)  # it goes on when the person leaves
        task.add_done_callback(self._rotating.discard)
        task.add_done_callback(lambda _: steps.put_nowait(None))
        while (step := await steps.get()) is not None:
            yield step
        await task

    async def _rotate(self, request: vpb.RotateRequest, peer: Peer, steps: asyncio.Queue[Any]) -> None:
        loop = asyncio.get_running_loop()

        def tell(of: str, done: int, total: int) -> None:
            progress = vpb.RotateProgress(of=of, done=done, total=total)
            loop.call_soon_threadsafe(steps.put_nowait, vpb.RotateStep(progress=progress))

        vault_state, journal = self._person.vault_state, self._person.engine.core.journal
        before = vault_state.keyed_by
        await vault_state.rotate(
            keyed_by=request.keyed_by,
            passphrase=Secret(request.passphrase),
            current=Secret(request.current_passphrase),
            anew=request.anew,
            progress=lambda done, total: tell("records", done, total),
        )
        facts = {**rollback.noted(vault_state.vault), "by": peer.describe(), "anew": request.anew}
        facts |= {"keyed_by": vault_state.keyed_by, "keyed_by_before": before, "passphrase": bool(request.passphrase)}
        journal.append("vault-rotate", facts=facts)
        if request.anew:
            altered = await in_thread(reseal, journal, vault_state, lambda done, total: tell("payloads", done, total))
            # Those of altered payloads open nothing that is there; all others have the newest key now.
            await in_thread(vault_state.vault.forget_payload_keys)
            facts = {**rollback.noted(vault_state.vault), "altered": altered}
            journal.append("vault-payloads-anew", facts=facts)
        steps.put_nowait(vpb.RotateStep(done=vault_status(vault_state.vault)))

    @unary
    async def ChangeApproval(self, request: vpb.ChangeApprovalRequest, context: Any) -> pb.VaultStatus:
        peer = self._person.callers.peer(context)
        vault_state = self._person.vault_state
        vault_state.require_open()
        if self._person.passkeys.required:
            await self._person.present(context, "", "Changing the approval passphrase")
        await self._person.check_passphrase(request.current)
        await self._person.confirm(peer, "Changing the approval passphrase")
        await in_thread(vault_state.vault.change_approval, Secret(request.current), Secret(request.passphrase))
        self._person.presence.forget()
        self._person.engine.core.journal.append(
            "approval-change", facts={**rollback.noted(vault_state.vault), "by": peer.describe()}
        )
        return vault_status(vault_state.vault)

    @unary
    async def Backup(self, request: vpb.BackupRequest, context: Any) -> vpb.BackupReply:
        what = "A backup of the vault"
        peer = await self._person.present(context, request.approval_passphrase, what, lately=False)
        passphrase = Secret(request.passphrase)
        vault = self._person.vault_state.vault
        data = await in_thread(vault.backup, passphrase)
        kept = await in_thread(backup_file.write, Path(request.path), data, passphrase)
        facts = {
            **rollback.noted(vault),
            "by": peer.describe(),
            "path": request.path,
            "sha256": hashlib.sha256(data).hexdigest(),
            "records": len(kept.records),
        }
        self._person.engine.core.journal.append("vault-backup", facts=facts)
        return vpb.BackupReply(path=request.path, bytes=len(data), records=len(kept.records))

    @unary
    async def Restore(self, request: vpb.RestoreRequest, context: Any) -> vpb.RestoreReply:
        peer = self._person.callers.peer(context)
        vault_state, journal = self._person.vault_state, self._person.engine.core.journal
        path = Path(request.path)
        if vault_state.state != "absent" and not request.replace:
            raise VaultExists(
                "There is a vault already.",
                next_step="Use --replace: it is kept aside, and what runs with its credentials is ended.",
            )
        data = await in_thread(backup_file.read, path)
        kept = await in_thread(open_backup, data, Secret(request.backup_passphrase))
        instead = {
            "path": {"path": request.path, "sha256": hashlib.sha256(data).hexdigest(), "made": kept.made.isoformat()}
        }
        await self._present_for(kept, request.approval_passphrase, context, instead)
        if not await in_thread(journal.fits, derive(kept.root, "journal")):
            raise InvalidInput(
                "The log in this state folder belongs to another vault than this backup.",
                next_step="Stop the daemon, move the whole state folder away, then restore into a new one.",
            )
        # The backup is proven, and so is the person: from here on something changes.
        before = places(self._person)
        now = {(each.account.service, each.account.name): each.account.base_url for each in kept.records}
        end_left(self._person, before, now, peer.describe())  # at once: as soon as it is open, agents may ask
        aside = await vault_state.restore(
            kept,
            keyed_by=request.keyed_by,
            passphrase=Secret(request.passphrase),
            floor=lambda: rollback.floor(journal),
            by=peer.describe(),
            seal=lambda: self._person.daemon.seal(peer.describe()),
        )
        self._person.presence.forget()
        end_left(self._person, before, now, peer.describe())  # where none was known yet: the first unlock learns them
        return vpb.RestoreReply(
            vault=vault_status(vault_state.vault), made=kept.made.isoformat(), kept_aside=str(aside or "")
        )

    async def _present_for(self, kept: Kept, passphrase: str, context: Any, instead: Mapping[str, object]) -> None:
        """Presence before this vault while it can say so, else before the backup."""
        if self._person.vault_state.state == "unsealed":
            what = "Restoring a backup over this vault"
            await self._person.present(context, passphrase, what, lately=False, instead=instead)
            return
        if not passphrase:
            raise PresenceDue(
                "Restoring needs the approval passphrase that the backup was made with.",
                next_step="Type it when you are asked.",
            )
        if not await in_thread(kept.approval.matches, Secret(passphrase)):
            raise WrongApproval("That isn't the backup's approval passphrase.", next_step="Try again.")
        await self._person.confirm(self._person.callers.peer(context), "Restoring a backup")

    @unary
    async def Leases(self, request: vpb.LeasesRequest, context: Any) -> vpb.LeasesReply:
        self._person.callers.peer(context)
        leases = self._person.vault_state.live_leases()
        return vpb.LeasesReply(
            leases=[
                vpb.LeaseView(
                    action_id=each.action_id, service=each.service, account=each.name, expires=each.expires.isoformat()
                )
                for each in leases
            ]
        )
