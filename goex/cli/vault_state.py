"""Whether the vault is open, before anything else is asked for: said, and at a terminal opened with its passphrase."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from goex.cli.output import Output, shown

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

_NOT_HERE = "Answer yes or no. The vault's passphrase is asked for after that, and isn't shown then."
_NAMED = 4  # grants, in one line
UNKNOWN = "unknown while sealed"
IS_SEALED = ("sealed", "vault-sealed")  # the codes of what is refused while it is


def require_open(client: Client, out: Output) -> pb.StatusReply:
    """The daemon's status, when its vault is open; a sealed one is offered to be opened. Raises VaultAbsent,
    VaultBroken, VaultSealed."""
    from vault.errors import VaultSealed

    found = usable(client)
    if found.vault == "sealed" and not offer(client, out, found):
        raise VaultSealed("The vault is sealed.", next_step="Unlock it with: goex vault unlock")
    return found


def offer(client: Client, out: Output, found: pb.StatusReply | None = None) -> bool:
    """On a terminal, ask whether to unlock the vault now, and do it. Returns whether it is open. Raises GoexError."""
    from goex.cli.prompt import Terminal

    terminal = None if out.as_json else Terminal.find()
    if terminal is None:
        return False
    found = found or usable(client)
    next_ = "; its passphrase is asked for next" if found.keyed_by == "passphrase" else ""
    question = f"The vault is sealed{next_}. Unlock it now (yes or no) [yes]: "
    return terminal.agrees(question, default=True, hint=_NOT_HERE) and unseal(client, found).state == "unsealed"


def unseal(client: Client, found: pb.StatusReply, descriptor: int = -1, *, accept_log: bool = False) -> pb.VaultStatus:
    """Open the vault. A wrong passphrase that was typed is asked for again. `accept_log` goes on with a log that isn't
    the one that the vault knows, for which the approval passphrase is asked. Raises GoexError."""
    from goex.cli.grant_bounds import TRIES
    from goex.cli.prompt import Terminal, with_presence
    from goex.cli.question_text import Line
    from goex.cli.secretinput import read_passphrase
    from goex.client import Refused
    from goex.rpc import goex_pb2 as pb
    from vault.errors import WrongPassphrase

    request = pb.VaultUnlockRequest(accept_log=accept_log)

    def call(approval_passphrase: str) -> pb.VaultStatus:
        request.approval_passphrase = approval_passphrase
        return client.call("Person/VaultUnlock", request, pb.VaultStatus)

    typed = descriptor < 0 and sys.stdin.isatty()
    for left in reversed(range(TRIES)):
        if found.keyed_by == "passphrase":
            request.passphrase = read_passphrase(
                "Vault passphrase: ", what="The vault's passphrase", descriptor=descriptor
            )
        try:
            return with_presence(call) if accept_log else call("")
        except Refused as refused:
            terminal = Terminal.controlling() if typed and left and refused.code == WrongPassphrase.code else None
            if terminal is None:
                raise
            terminal.write(Line(shown(refused.message), "warn"))
    raise AssertionError


def usable(client: Client) -> pb.StatusReply:
    """The daemon's status, when there is a vault that can be opened. Raises VaultAbsent, VaultBroken."""
    from goex.rpc import goex_pb2 as pb
    from vault.errors import VaultAbsent, VaultBroken

    found = client.status()
    if found.vault == "absent":
        raise VaultAbsent("There is no vault yet.", next_step="Make it with: goex vault init")
    if found.vault == "broken":
        client.call("Person/VaultUnlock", pb.VaultUnlockRequest(), pb.VaultStatus)  # which says how it is broken
        raise VaultBroken(
            f"The vault can't be used: {found.vault_trouble}",
            next_step="Restore a backup with: goex vault restore FILE --replace; see also: goex doctor",
        )
    return found


def no_use(client: Client) -> str:
    """What to say of what has no last use: while the vault is sealed it isn't known."""
    return UNKNOWN if client.status().vault == "sealed" else "never"


def check_first(client: Client, method: str, request: object, reply: type) -> tuple[str, ...]:
    """Have the daemon check a request whose secret isn't typed yet. Returns where the secret would go. Raises GoexError
    for whatever else is wrong with it."""
    from goex.client import Refused

    try:
        client.call(method, request, reply)  # type: ignore[arg-type]
    except Refused as refused:
        if refused.code != "secret":
            raise
        return refused.details
    raise AssertionError("A credential without a secret was taken.")


def say_grants_kept(client: Client, out: Output, service: str, account: str) -> None:
    """That grants on an account outlive its credential's replacement, and how to end them: GoEx can't tell whose a key
    is, and the next one may be somebody else's."""
    from goex.rpc import goex_pb2 as pb

    found = client.call("Person/Grants", pb.GrantsRequest(), pb.GrantsReply).grants
    kept = [grant.id for grant in found if (grant.service, grant.account) == (service, account)]
    if kept:
        many = "A grant" if len(kept) == 1 else f"{len(kept)} grants"
        ways = f"goex revoke {' '.join(kept)}" if len(kept) <= _NAMED else f"goex revoke --service {service}"
        out.progress(shown(f"{many} on {service}/{account} {'stays' if len(kept) == 1 else 'stay'} as before."))
        out.progress(shown(f"If this credential is somebody else's, or another workspace's, end that: {ways}"))


def say_where(out: Output, what: str, places: tuple[str, ...]) -> None:
    """Where a secret will go, before it is typed."""
    if places:
        out.progress(f"{what} will be sent to {', '.join(places)} and nowhere else.")
