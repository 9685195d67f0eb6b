"""The gateway's own process: it parses hostile bytes, and holds live leases and its certificate authority.

It speaks with the daemon over one socket, given by descriptor. Secrets come in through that socket alone. When the
daemon's end closes, everything is dropped and the process ends at once. It writes no log: what there is to say goes
to the daemon.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from policies.errors import InvalidInput
from policies.typed_json import from_json, to_json
from runtimes.gateway.certificates import Authority
from runtimes.gateway.contract import GatewayFailed, Observer
from runtimes.gateway.lease_json import lease_from_json
from runtimes.gateway.listener import SocketFolder, sweep
from runtimes.gateway.plan import Exchange, GatewayPlan, Refusal, SentRequest
from runtimes.gateway.plan_check import check_opening
from runtimes.gateway.rpc_frames import BrokenFrame, Conversation, Message
from runtimes.gateway.server import ActionServer
from vault.hardening import harden_process, keep_one_heap

_PR_SET_NO_NEW_PRIVS = 38


class GatewayProcess:
    """Answers the daemon: `hello`, `open`, `close`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._conversation = Conversation(reader, writer, self._handle)
        self._authority = Authority()
        self._run_dir: Path | None = None
        self._servers: dict[str, ActionServer] = {}

    async def run(self) -> None:
        """Until the daemon's end closes."""
        try:
            await self._conversation.run()
        finally:
            if self._run_dir is not None:
                sweep(self._run_dir)

    async def _handle(self, op: str, message: Message) -> Message:
        if op == "hello":
            self._run_dir = Path(message["run_dir"])
            return {"ca_pem": self._authority.ca_pem}
        if op == "open":
            return await self._open(message)
        if op == "close":
            server = self._servers.pop(message["action_id"], None)
            if server is not None:
                await server.close()
            return {}
        raise InvalidInput(f"The gateway doesn't know {op[:20]!r}.")

    async def _open(self, message: Message) -> Message:
        plan = from_json(GatewayPlan, message["plan"], "The plan")
        leases = check_opening(plan, [lease_from_json(raw) for raw in message["leases"]], datetime.now(UTC))
        if plan.action_id in self._servers or self._run_dir is None:
            raise InvalidInput("This action is served already.")
        folder = SocketFolder(self._run_dir)
        server = ActionServer(plan, leases, folder, self._authority, self._observer(plan.action_id))
        self._servers[plan.action_id] = server
        try:
            await server.start()
        except OSError:
            del self._servers[plan.action_id]
            folder.remove()
            raise
        return {"folder": str(folder.path)}

    def _observer(self, action_id: str) -> Observer:
        async def tell(op: str, **fields: Any) -> None:
            await self._conversation.call(op, action_id=action_id, **fields)

        async def sending(request: str, text: str, sent: SentRequest | None) -> None:
            await tell("sending", request=request, text=text, sent=None if sent is None else to_json(sent))

        async def answered(exchange: Exchange) -> None:
            await tell("answered", exchange=to_json(exchange))

        async def refused(refusal: Refusal) -> None:
            await tell("refused", refusal=to_json(refusal))

        return Observer(sending=sending, answered=answered, refused=refused)


async def serve(descriptor: int) -> None:
    end = socket.socket(fileno=descriptor)
    end.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=end)
    # An exception that nobody awaited could quote what it handled: nothing is printed.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    await GatewayProcess(reader, writer).run()


def harden() -> None:
    """Make this process unreadable and undumpable before it holds anything.

    Raises GatewayFailed when the kernel doesn't agree: a reason to end, never one to go on without.
    """
    held = harden_process()
    if not (held.untraceable and held.no_core):
        raise GatewayFailed("The gateway can't hide its memory.")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise GatewayFailed(f"The gateway can't give up new privileges: {os.strerror(ctypes.get_errno())}.")
    keep_one_heap()
    # The daemon decides when it ends, by closing its end; a key pressed in a terminal doesn't.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)


def main() -> None:
    harden()
    status = 0
    try:
        asyncio.run(_main(int(sys.argv[1])))
    except Exception:  # noqa: BLE001  a traceback could quote what it handled
        status = 1
    os._exit(status)


async def _main(descriptor: int) -> None:
    try:
        await serve(descriptor)
    except BrokenFrame:
        os._exit(1)
    # At once: no task gets to say goodbye, no destructor runs.
    os._exit(0)


if __name__ == "__main__":
    main()
