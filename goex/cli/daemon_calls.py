"""One call of a command to the daemon, with presence where it takes some."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from goex.cli.output import Output
    from goex.cli.prompt import Terminal
    from goex.client import Client, Reply

_SECONDS = 60.0
_LONG = 5.0  # seconds after which it is said what takes long


def call(
    out: Output,
    method: str,
    request: Message,
    reply: type[Reply],
    *,
    presence: bool = False,
    seconds: float = _SECONDS,
    slow: str = "",
) -> Reply:
    """Connect and make a call, with `presence` by `call_with_presence`; once more when the vault was sealed and the
    person unlocks it. Its answer is what `--json` prints. `slow`: what is said when it takes long, without presence.
    Raises GoexError."""
    from goex.cli import vault_state
    from goex.cli.connect import connect
    from goex.client import Refused

    with connect(out) as client:

        def made() -> Reply:
            if presence:
                return call_with_presence(client, method, request, reply, seconds=seconds)
            with said_if_long(out, slow):
                return client.call(method, request, reply, seconds=seconds)

        try:
            answer = made()
        except Refused as refused:
            if refused.code not in vault_state.IS_SEALED or not vault_state.offer(client, out):
                raise
            answer = made()
    out.message(answer)
    return answer


@contextmanager
def said_if_long(out: Output, text: str) -> Iterator[None]:
    """Say this once, on stderr, when what runs in it takes longer than some seconds; nothing for "". Nobody may be
    asked anything in it."""
    timer = threading.Timer(_LONG, out.progress, (text,))
    timer.daemon = True
    if text:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def call_with_presence(
    client: Client,
    method: str,
    request: Message,
    reply: type[Reply],
    terminal: Terminal | None = None,
    *,
    seconds: float = _SECONDS,
) -> Reply:
    """Make a call whose request holds the approval passphrase, by the rules of `with_presence`."""
    from goex.cli.prompt import with_presence

    # A request that holds another passphrase, too, calls this one so.
    field = "approval_passphrase" if hasattr(request, "approval_passphrase") else "passphrase"

    def send(passphrase: str) -> Reply:
        setattr(request, field, passphrase)
        return client.call(method, request, reply, seconds=seconds)

    return with_presence(send, terminal)
