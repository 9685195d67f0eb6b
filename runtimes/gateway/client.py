"""The daemon's side of the gateway: starts the process, speaks with it, and notices when it dies.

The process gets one end of a socket pair and an empty environment; secrets go through the pair alone. It has a
session of its own, so a key pressed in the daemon's terminal doesn't end it. When it dies, every request that was
under way is answered with status 0 (what happened isn't known), `check` fails for its actions, and the next `open`
starts another, with another authority: read `ca_pem` after `open`. After `stop` nothing starts one but `start`: an
`open` that was under way fails, or it would begin a process while its event loop ends, and asyncio never ends a task
that is cancelled in the tick in which it forked.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policies.errors import InvalidInput, Unavailable
from policies.typed_json import from_json, to_json
from runtimes.gateway.contract import GatewayFailed, Observer
from runtimes.gateway.lease_json import lease_to_json
from runtimes.gateway.listener import private_folder, sweep
from runtimes.gateway.plan import Exchange, GatewayPlan, Refusal, SentRequest
from runtimes.gateway.rpc_frames import BrokenFrame, Conversation, Ended, Message
from vault.lease import Lease

_START_SECONDS = 30.0
_ANSWER_SECONDS = 30.0
_STOP_SECONDS = 3.0


@dataclass(slots=True)
class _Opened:
    observer: Observer
    folder: str = ""
    served_by: Conversation | None = None
    under_way: set[str] = field(default_factory=set)
    dead: bool = False


@dataclass(slots=True)
class _Running:
    process: asyncio.subprocess.Process
    conversation: Conversation
    ca_pem: str
    over: asyncio.Task[None]


class GatewayClient:
    """Implements `runtimes.gateway.contract.Gateway`. `run_dir` is the gateway's own: it sweeps it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._running: _Running | None = None
        self._opened: dict[str, _Opened] = {}
        self._lock = asyncio.Lock()
        self._stopped = False
        self._ended = 0  # how often `end` was called

    async def start(self) -> None:
        """Start the process, if there is none. Raises GatewayFailed."""
        self._stopped = False
        await self._started(self._ended)

    async def _started(self, ended: int) -> None:
        """Start the process, if there is none, for somebody who came when `end` had been called so often."""
        async with self._lock:
            if self._stopped:
                raise GatewayFailed("The gateway was stopped.", next_step="Ask again when the daemon is back.")
            if self._running is not None and self._running.conversation.over:
                await self._running.over
            if self._running is None and self._ended == ended:
                await self._start()
            if self._ended != ended:
                raise GatewayFailed("The vault was sealed.", next_step="Unlock it, then ask again: goex vault unlock")

    @property
    def ca_pem(self) -> str:
        if self._running is None:
            raise GatewayFailed("The gateway isn't running.")
        return self._running.ca_pem

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running.process.pid

    async def open(self, plan: GatewayPlan, leases: Sequence[Lease], observer: Observer) -> str:
        """See the contract. Raises InvalidInput for a plan that can't be served, GatewayFailed."""
        if plan.action_id in self._opened:
            raise InvalidInput("This action is served already.")
        opened, ended = _Opened(observer), self._ended
        self._opened[plan.action_id] = opened
        try:
            fields = {"plan": to_json(plan), "leases": [lease_to_json(lease) for lease in leases]}
            try:
                await self._open(opened, fields, ended)
            except GatewayFailed:
                # It may have died unnoticed before this; an action of which nothing was served can begin again.
                await self._open(opened, fields, ended)
        except BaseException:
            self._opened.pop(plan.action_id, None)
            raise
        return opened.folder

    async def _open(self, opened: _Opened, fields: Message, ended: int) -> None:
        await self._started(ended)
        running = self._running
        opened.served_by, opened.dead = (None if running is None else running.conversation), False
        reply = await self._call("open", **fields)
        if opened.dead:
            raise GatewayFailed("The gateway process died.")
        opened.folder = str(reply["folder"])

    def check(self, action_id: str) -> None:
        """Raise GatewayFailed when the process that served this action died."""
        opened = self._opened.get(action_id)
        if opened is None or opened.dead:
            raise GatewayFailed(
                "The gateway process died while it served this action.", next_step="Look at the action, then try again."
            )

    async def close(self, action_id: str) -> None:
        opened = self._opened.pop(action_id, None)
        if opened is None or opened.dead:
            return
        with contextlib.suppress(GatewayFailed):  # when it is gone, so are the socket and the leases
            await self._call("close", action_id=action_id)

    async def stop(self) -> None:
        """End the process. Whatever is being opened fails."""
        self._stopped = True
        await self.end()

    async def end(self) -> None:
        """End the process, and with it what its memory has of secrets. An `open` that is under way fails: what it would
        hand over was lent before. The next one starts another process."""
        self._ended += 1
        async with self._lock:
            running = self._running
            if running is None:
                return
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await running.conversation.close()
                    await running.process.wait()
            except TimeoutError:
                _kill(running.process)
            await running.over

    async def _call(self, op: str, **fields: object) -> Message:
        running = self._running
        if running is None:
            raise GatewayFailed("The gateway process died.")
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await running.conversation.call(op, **fields)
        except TimeoutError as error:
            # One that doesn't answer holds leases all the same, and nobody would be rid of it.
            _kill(running.process)
            await asyncio.wait({running.over})
            raise GatewayFailed("The gateway process didn't answer in time and was ended.") from error
        except Unavailable as error:
            gone = isinstance(error, Ended)
            raise GatewayFailed("The gateway process died." if gone else error.message) from error
        except BrokenFrame as error:
            raise InvalidInput("This plan is too large for the gateway.") from error

    async def _start(self) -> None:
        private_folder(self._run_dir)
        sweep(self._run_dir)
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", "-m", "runtimes.gateway.process", str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={"LC_ALL": "C.UTF-8"},
                    cwd="/",
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            ours.close()
            raise GatewayFailed(f"The gateway process can't be started: {error.strerror}.") from error
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            _kill(process)
            raise
        conversation = Conversation(reader, writer, self._handle)
        over = asyncio.create_task(self._listen(conversation, process))
        try:
            async with asyncio.timeout(_START_SECONDS):
                hello = await conversation.call("hello", run_dir=str(self._run_dir.absolute()))
        except BaseException as error:
            writer.close()
            _kill(process)
            if not isinstance(error, Ended | TimeoutError):
                raise
            raise GatewayFailed(
                "The gateway process ended while it started.", next_step="See `goex doctor`."
            ) from error
        self._running = _Running(process, conversation, str(hello["ca_pem"]), over)

    async def _listen(self, conversation: Conversation, process: asyncio.subprocess.Process) -> None:
        """Until the process is gone; then tell everyone who depended on it."""
        with contextlib.suppress(BrokenFrame, OSError):
            await conversation.run()
        _kill(process)  # one that closed or broke its end is of no use
        await process.wait()
        if self._running is not None and self._running.conversation is conversation:
            self._running = None
        for opened in [one for one in self._opened.values() if one.served_by is conversation]:
            opened.dead = True
            if opened.folder:
                shutil.rmtree(opened.folder, ignore_errors=True)
            for request in sorted(opened.under_way):
                with contextlib.suppress(Exception):
                    await opened.observer.answered(_unknown(request))

    async def _handle(self, op: str, message: Message) -> Message:
        opened = self._opened.get(str(message.get("action_id")))
        if opened is None:
            raise InvalidInput("There is no such action.")
        if op == "sending":
            request, sent = str(message["request"]), message["sent"]
            opened.under_way.add(request)
            try:
                said = None if sent is None else from_json(SentRequest, sent, "A request")
                await opened.observer.sending(request, str(message["text"]), said)
            except Exception:
                opened.under_way.discard(request)
                raise
        elif op == "answered":
            exchange = from_json(Exchange, message["exchange"], "An answer")
            opened.under_way.discard(exchange.request)
            await opened.observer.answered(exchange)
        elif op == "refused":
            await opened.observer.refused(from_json(Refusal, message["refusal"], "A refusal"))
        else:
            raise InvalidInput(f"The daemon doesn't know {op[:20]!r}.")
        return {}


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _unknown(request: str) -> Exchange:
    return Exchange(
        request=request,
        status=0,
        well=False,
        body=None,
        failed="The gateway process died after this request was sent; what happened isn't known.",
    )
