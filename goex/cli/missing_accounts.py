"""What an action lacks, offered where it was missed: a login, or the open vault.

Rules: only on a terminal, and only after a yes; what would be asked for is said before. It goes on by itself as long as
each login brings something: one that didn't is not offered again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from goex.cli.output import Output, shown

if TYPE_CHECKING:
    from goex.cli.follow import Ended
    from goex.client import Client, Events

_NOT_BEGUN = "sealed"  # the code of what is refused before it is written down, since the vault wasn't opened yet


def carry_out(client: Client, begin: Callable[[], Events], out: Output, *, detach: bool = False) -> Ended:
    """Follow what `begin` asks for to its end, and once more as long as the person brings what it lacked. Raises
    GoexError, KeyboardInterrupt."""
    from goex.cli import vault_state
    from goex.cli.follow import follow
    from goex.client import Refused

    while True:
        try:
            ended = follow(client, begin(), out, detach=detach)
        except Refused as refused:
            if refused.code != _NOT_BEGUN or not vault_state.offer(client, out):
                raise
            continue
        if not _offer(client, ended, out):
            return ended


def _offer(client: Client, ended: Ended, out: Output) -> bool:
    """Whether the person logged in to everything that was missing, or unlocked the vault, so that it is worth trying
    again."""
    from vault.errors import VaultSealed

    problem = ended.finished.problem if ended.finished is not None else None
    if ended.finished is not None and problem is not None and problem.code == VaultSealed.code:
        from goex.cli import vault_state

        # One that has a plan may have begun.
        return not ended.finished.action.digest and vault_state.offer(client, out)
    if problem is None or problem.code != "consent":
        return False
    from goex.cli.prompt import Terminal

    terminal = None if out.as_json else Terminal.find()
    if terminal is None:
        return False
    from goex.cli.login import LoginOptions, run, say_done
    from goex.rpc import accounts_pb2 as ab

    reply = client.call("Accounts/Consents", ab.ConsentsRequest(action_id=ended.action_id), ab.ConsentsReply)
    for consent in reply.consents:
        label = f"{consent.service}/{consent.account}"
        if not terminal.agrees(
            f"Log in to {shown(label)} now, for {shown(', '.join(consent.scopes))}? (yes/no) [no]: "
        ):
            return False
        options = LoginOptions(service=consent.service, account=consent.account, scopes=tuple(consent.scopes))
        done = run(client, options, out)
        say_done(done, out)
        if set(consent.scopes) & set(done.dropped):
            return False
    return bool(reply.consents)
