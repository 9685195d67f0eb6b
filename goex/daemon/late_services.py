"""The person's services, each loaded by its first call: a daemon that serves agents seldom needs most of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor

from goex.daemon.credential_broker import CredentialBroker
from goex.daemon.person_context import PersonContext
from goex.engine.held_transactions import Holds
from goex.engine.reversions import Reversions
from goex.rpc import accounts_pb2, audit_pb2, databases_pb2, passkeys_pb2, reversions_pb2, rules_pb2, vault_pb2
from goex.rpc import accounts_pb2_grpc as accounts_rpc
from goex.rpc import audit_pb2_grpc as audit_rpc
from goex.rpc import databases_pb2_grpc as databases_rpc
from goex.rpc import passkeys_pb2_grpc as passkeys_rpc
from goex.rpc import reversions_pb2_grpc as reversions_rpc
from goex.rpc import rules_pb2_grpc as rules_rpc
from goex.rpc import vault_pb2_grpc as vault_rpc
from policies.limits import Confinement
from vault.lease import Lend


def late_services(
    person: PersonContext,
    *,
    broker: CredentialBroker,
    rules: Path,
    reversions: Reversions,
    complete: Callable[[list[dict[str, str]]], Awaitable[str]],
    confinement: Confinement,
    lend: Lend,
    holds: Holds,
    hold_hours: int,
) -> Mapping[str, Callable[[Any], None]]:
    """Return what adds each service to a server, by its name."""

    def make_vault() -> Any:
        from goex.daemon.vault_service import VaultService

        return VaultService(person)

    def make_accounts() -> Any:
        from goex.daemon.accounts_service import AccountsService

        return AccountsService(person, broker)

    def make_rules() -> Any:
        from goex.daemon.rules_service import RulesService

        return RulesService(person, rules)

    def make_reversions() -> Any:
        from goex.daemon.reversions_service import ReversionsService

        return ReversionsService(person, reversions, complete, confinement)

    def make_databases() -> Any:
        from goex.daemon.databases_service import DatabasesService

        return DatabasesService(person, lend, holds, hold_hours)

    def make_passkeys() -> Any:
        from goex.daemon.passkeys_service import PasskeysService

        return PasskeysService(person)

    def make_audit() -> Any:
        from goex.daemon.audit_service import AuditService

        return AuditService(person)

    services = (
        ("Vault", vault_pb2, vault_rpc.add_VaultServicer_to_server, make_vault),
        ("Accounts", accounts_pb2, accounts_rpc.add_AccountsServicer_to_server, make_accounts),
        ("Rules", rules_pb2, rules_rpc.add_RulesServicer_to_server, make_rules),
        ("Reversions", reversions_pb2, reversions_rpc.add_ReversionsServicer_to_server, make_reversions),
        ("Databases", databases_pb2, databases_rpc.add_DatabasesServicer_to_server, make_databases),
        ("Passkeys", passkeys_pb2, passkeys_rpc.add_PasskeysServicer_to_server, make_passkeys),
        ("Audit", audit_pb2, audit_rpc.add_AuditServicer_to_server, make_audit),
    )
    return {
        name: partial(add, LateService(file.DESCRIPTOR.services_by_name[name], make))
        for name, file, add, make in services
    }


class LateService:
    """Has the methods of `service` for a server, and hands each call to what `make` returns, which it makes once."""

    def __init__(self, service: ServiceDescriptor, make: Callable[[], Any]) -> None:
        self._make = make
        for method in service.methods:
            call = self._streaming(method.name) if method.server_streaming else self._unary(method.name)
            setattr(self, method.name, call)

    @cached_property
    def _made(self) -> Any:
        return self._make()

    def _unary(self, name: str) -> Callable[[Any, Any], Any]:
        async def call(request: Any, context: Any) -> Any:
            return await getattr(self._made, name)(request, context)

        return call

    def _streaming(self, name: str) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            async for item in getattr(self._made, name)(request, context):
                yield item

        return call
