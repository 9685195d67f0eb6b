"""The conversation between daemon and gateway: calls in both directions over one socket pair.

A frame is four bytes of length (big endian) and that many bytes of JSON, an object. A call carries `op` and a
number; its answer carries the same number and either `done` (an object) or `failed` (code, message, next step).
A frame that is too long, or isn't what it should be, ends the conversation: both ends are ours, so it is a fault
or an attack. An unforeseen exception crosses as its type's name alone, since its text might quote a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from policies.errors import GoexError, InvalidInput, Unavailable, Unsupported

MAX_FRAME = 64 * 2**20
_LENGTH = struct.Struct(">I")

Message = dict[str, Any]
Handler = Callable[[str, Message], Awaitable[Message]]


class BrokenFrame(GoexError):
    """The other end wrote something that isn't a frame."""

    code = "frame"


class Ended(Unavailable):
    """The conversation is over: the other end is gone."""

    code = "ended"


def encode(message: Message, limit: int = MAX_FRAME) -> bytes:
    """One frame. Raises BrokenFrame when it would be longer than `limit`, or isn't JSON."""
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise BrokenFrame("This message can't be written as a frame.") from error
    if len(body) > limit:
        raise BrokenFrame(f"A frame of {len(body)} bytes is longer than {limit}.")
    return _LENGTH.pack(len(body)) + body


async def read(reader: asyncio.StreamReader, limit: int = MAX_FRAME) -> Message | None:
    """The next frame, None at the end of the stream. Raises BrokenFrame."""
    try:
        head = await reader.readexactly(_LENGTH.size)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BrokenFrame("The stream ended within a frame.") from None
        return None
    except OSError:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > limit:
        raise BrokenFrame(f"A frame of {length} bytes is longer than {limit}.")
    try:
        message = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError) as error:
        raise BrokenFrame("The stream ended within a frame.") from error
    except (ValueError, RecursionError) as error:
        raise BrokenFrame("A frame isn't JSON.") from error
    if not isinstance(message, dict):
        raise BrokenFrame("A frame isn't an object.")
    return message


class Conversation:
    """One end. `handler(op, message)` answers the other end's calls; each runs in a task of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.over = False

    async def call(self, op: str, **fields: Any) -> Message:
        """Ask the other end. Raises what it failed with, or Ended when it is gone."""
        if self.over:
            raise Ended("The other end is gone.")
        self._number += 1
        number = self._number
        frame = encode({"op": op, "n": number, **fields})
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._write(frame)
            return await future
        finally:
            self._waiting.pop(number, None)

    async def run(self) -> None:
        """Read until the other end closes. Raises BrokenFrame. Whoever still waits gets Ended."""
        try:
            while (message := await read(self._reader)) is not None:
                self._take(message)
        finally:
            self.over = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Ended("The other end is gone."))
            for task in self._tasks:
                task.cancel()
            self._writer.close()

    async def close(self) -> None:
        self.over = True
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _take(self, message: Message) -> None:
        number = message.get("n")
        if not isinstance(number, int):
            raise BrokenFrame("A frame has no number.")
        if "op" in message:
            task = asyncio.create_task(self._answer(number, str(message["op"]), message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        future = self._waiting.get(number)
        if future is None or future.done():
            return
        if "failed" in message:
            future.set_exception(_error(message["failed"]))
        else:
            future.set_result(message.get("done") or {})

    async def _answer(self, number: int, op: str, message: Message) -> None:
        try:
            reply: Message = {"n": number, "done": await self._handler(op, message)}
        except GoexError as error:
            reply = {"n": number, "failed": [error.code, error.message, error.next_step]}
        except Exception as error:  # noqa: BLE001  its text may quote anything: only the type's name crosses
            reply = {"n": number, "failed": ["error", f"{op} failed: {type(error).__name__}.", ""]}
        try:
            frame = encode(reply)
        except BrokenFrame as error:
            frame = encode({"n": number, "failed": [error.code, error.message, ""]})
        with contextlib.suppress(Ended):
            await self._write(frame)

    async def _write(self, frame: bytes) -> None:
        try:
            self._writer.write(frame)
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            self.over = True
            raise Ended("The other end is gone.") from error


def _error(failed: Any) -> GoexError:
    code, message, next_step = (str(part) for part in failed)
    kind = {"invalid": InvalidInput, "unsupported": Unsupported}.get(code, Unavailable)
    return kind(message, next_step=next_step)
