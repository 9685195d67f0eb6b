"""The system's D-Bus: where it is, and how a call on it is made.

Rules: the bus is the one at the fixed address. DBUS_SYSTEM_BUS_ADDRESS is not believed: whoever starts the daemon could
name a bus of their own with it, and a polkit there that says yes. A call has a time-out, and an answer of another shape
than the interface documents is an error.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from policies.errors import Unavailable

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

ADDRESS = "unix:path=/run/dbus/system_bus_socket"
CALL_SECONDS = 10.0


class BusFailed(Unavailable):
    """The system bus, or a service on it, isn't there, doesn't answer, or answers something else. `name` is the D-Bus
    error's name, "" when there was no such answer."""

    code = "system-bus"

    def __init__(self, message: str, *, name: str = "", next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.name = name


async def connect(address: str = ADDRESS) -> MessageBus:
    """A connection to the system bus, over which descriptors can come. Raises BusFailed."""
    if not _there(address):  # its client is large, and would be loaded for nothing
        raise BusFailed("There is no system bus here (FileNotFoundError).")
    from dbus_fast.aio import MessageBus

    bus = None
    try:
        bus = MessageBus(bus_address=address, negotiate_unix_fd=True)
        async with asyncio.timeout(CALL_SECONDS):
            return await bus.connect()
    except Exception as error:  # the library raises what it meets: OSError, EOFError, its own
        if bus is not None:
            close(bus)
        raise BusFailed(f"There is no system bus here ({type(error).__name__}).") from error


def _there(address: str) -> bool:
    return not address.startswith("unix:path=/") or os.path.lexists(address.removeprefix("unix:path="))


def close(bus: MessageBus) -> None:
    """Hang up, whatever state the connection is in."""
    import contextlib

    with contextlib.suppress(Exception):
        bus.disconnect()


async def call(
    bus: MessageBus,
    destination: str,
    path: str,
    method: str,
    signature: str = "",
    body: list[Any] | None = None,
    *,
    answer: str = "",
    seconds: float = CALL_SECONDS,
) -> Any:
    """One call of `interface.Member`; returns the reply message, whose signature is `answer`. Raises BusFailed."""
    from dbus_fast import Message, MessageType

    interface, _, member = method.rpartition(".")
    asked = Message(
        destination=destination, path=path, interface=interface, member=member, signature=signature, body=body or []
    )
    try:
        async with asyncio.timeout(seconds):
            reply = await bus.call(asked)
    except TimeoutError:
        raise BusFailed(f"{destination} didn't answer {member} within {seconds:g} seconds.") from None
    except Exception as error:  # the connection broke, in one of the library's many ways
        raise BusFailed(f"The system bus went away ({type(error).__name__}).") from error
    if reply is None or reply.message_type is not MessageType.METHOD_RETURN:
        name = str(getattr(reply, "error_name", "") or "")
        raise BusFailed(f"{destination} refused {member} ({name or 'no answer'}).", name=name)
    if reply.signature != answer:
        raise BusFailed(f"{destination} answered {member} with something else than its interface says.")
    return reply
