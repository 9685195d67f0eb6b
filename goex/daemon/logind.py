"""What logind says of the machine and the person's sessions: locked, going to sleep, awake again.

Rules: only logind itself is believed (the owner of its name, as the bus says), and only about sessions of this user.
A delay inhibitor is held while awake, so that the machine doesn't sleep before the vault is sealed; it is let go when
that is done, or after a while in any case. Nothing here unlocks anything. The bus and logind may go away and come back:
then all is set up anew. Where there is none, `state` says so, once in the log, and it is looked for now and then.

The interface is logind's, org.freedesktop.login1(5): Manager.Inhibit, Manager.PrepareForSleep, Session.Lock, and the
session's LockedHint, which desktops set that lock the screen by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from goex.daemon import system_bus
from goex.daemon.system_bus import BusFailed

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

log = logging.getLogger("goex.daemon")

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds between two attempts to reach it
SEALING_SECONDS = 4.0  # logind gives five by default (InhibitDelayMaxSec)
_NAME = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_SESSION = "org.freedesktop.login1.Session"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_BUS = "org.freedesktop.DBus"
_BUS_PATH = "/org/freedesktop/DBus"
_RULES = (
    f"type='signal',sender='{_NAME}',interface='{_MANAGER}',member='PrepareForSleep',path='{_PATH}'",
    f"type='signal',sender='{_NAME}',interface='{_SESSION}',member='Lock'",
    f"type='signal',sender='{_NAME}',interface='{_PROPERTIES}',member='PropertiesChanged',"
    f"path_namespace='{_PATH}/session'",
    f"type='signal',sender='{_BUS}',interface='{_BUS}',member='NameOwnerChanged',arg0='{_NAME}'",
)

Told = Callable[[], Awaitable[None]]


class Logind:
    """Watches logind until it is closed. `locked` is awaited when a session of this user is locked, `sleeping` before
    the machine sleeps; neither for longer than SEALING_SECONDS while the machine waits for it."""

    def __init__(
        self,
        locked: Told,
        sleeping: Told,
        *,
        address: str = system_bus.ADDRESS,
        uid: int | None = None,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self._locked = locked
        self._sleeping = sleeping
        self._address = address
        self._uid = os.geteuid() if uid is None else uid
        self._first_wait = first_wait
        self._owner = ""
        self._inhibitor = -1
        self._signals: asyncio.Queue[Message] = asyncio.Queue(maxsize=1000)
        self._watching: asyncio.Task[None] | None = None
        self.state = "not looked for yet"

    @property
    def watching(self) -> bool:
        """Whether logind is there, and heard."""
        return bool(self._owner)

    def start(self) -> None:
        """Begin to watch, in the background."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching, and let the machine sleep."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        self._let_sleep()

    async def _watch(self) -> None:
        wait, said = self._first_wait, ""
        while True:
            bus: MessageBus | None = None
            try:
                bus = await system_bus.connect(self._address)
                await self._attend(bus)
                wait = self._first_wait
                log.info("logind is heard: the vault is sealed on lock and before sleep, as config.toml says")
                said = ""
                await self._listen(bus)
                self.state = "the system bus went away"
            except BusFailed as error:
                self.state = error.message
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  watching must go on
                self.state = f"failed ({type(error).__name__})"
            finally:
                self._owner = ""
                self._let_sleep()
                if bus is not None:
                    system_bus.close(bus)
            if self.state != said:
                said = self.state
                log.info("logind isn't heard, so locking and sleeping don't seal the vault: %s", said)
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _attend(self, bus: MessageBus) -> None:
        """Subscribe, and find logind. A bus without it is one on which it may still appear."""
        while not self._signals.empty():
            self._signals.get_nowait()
        bus.add_message_handler(self._keep)
        for rule in _RULES:
            await system_bus.call(bus, _BUS, _BUS_PATH, f"{_BUS}.AddMatch", "s", [rule])
        with contextlib.suppress(BusFailed):
            await system_bus.call(bus, _BUS, _BUS_PATH, f"{_BUS}.StartServiceByName", "su", [_NAME, 0], answer="u")
        try:
            reply = await system_bus.call(bus, _BUS, _BUS_PATH, f"{_BUS}.GetNameOwner", "s", [_NAME], answer="s")
        except BusFailed as error:
            raise BusFailed("There is no logind here.", name=error.name) from None
        await self._found(bus, reply.body[0])

    async def _found(self, bus: MessageBus, owner: str) -> None:
        self._owner = owner
        if owner:
            self.state = "heard"
            await self._hold(bus)
            if await self._locked_now(bus):  # while nobody listened
                await self._within(self._locked)
        else:
            self.state = "logind went away"
            self._let_sleep()

    def _keep(self, message: Message) -> None:
        """Called for every message that comes: the signals wait for their turn."""
        from dbus_fast import MessageType

        if message.message_type is MessageType.SIGNAL:
            with contextlib.suppress(asyncio.QueueFull):  # that many at once: the first ones have sealed it
                self._signals.put_nowait(message)

    async def _listen(self, bus: MessageBus) -> None:
        """Until the connection ends."""
        gone = asyncio.ensure_future(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]
        try:
            while True:
                coming = asyncio.ensure_future(self._signals.get())
                await asyncio.wait((gone, coming), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return
                await self._handle(bus, coming.result())
        finally:
            gone.cancel()
            await asyncio.wait({gone})  # to await it would take a cancellation of this task for its own
            if not gone.cancelled():
                gone.exception()  # looked at

    async def _handle(self, bus: MessageBus, signal: Message) -> None:
        if signal.sender == _BUS and signal.member == "NameOwnerChanged":
            if signal.signature == "sss" and signal.body[0] == _NAME:
                await self._found(bus, signal.body[2])
            return
        if not self._owner or signal.sender != self._owner:
            return  # anybody on the bus can send a signal to us
        if (signal.interface, signal.member) == (_MANAGER, "PrepareForSleep") and signal.signature == "b":
            if signal.body[0]:
                await self._within(self._sleeping)
                self._let_sleep()
            else:
                await self._hold(bus)
        elif _locks(signal) and await self._ours(bus, signal.path or ""):
            await self._within(self._locked)

    async def _within(self, told: Told) -> None:
        """Let sealing go on for a while; what isn't done by then goes on, and the machine may sleep."""
        task = asyncio.ensure_future(told())
        done, _ = await asyncio.wait((task,), timeout=SEALING_SECONDS)
        if not done:
            log.warning("sealing takes longer than the machine waits")
        elif task.exception() is not None:
            log.error("sealing failed", exc_info=task.exception())

    async def _ours(self, bus: MessageBus, path: str) -> bool:
        """Whether that session is this user's. One that can't be asked counts as ours: sealing is the safe side."""
        try:
            reply = await system_bus.call(
                bus, _NAME, path, f"{_PROPERTIES}.Get", "ss", [_SESSION, "User"], answer="v", seconds=2.0
            )
            value: Any = reply.body[0].value
            return int(value[0]) == self._uid
        except (BusFailed, TypeError, ValueError, IndexError):
            return True

    async def _locked_now(self, bus: MessageBus) -> bool:
        """Whether a session of this user says that it is locked."""
        with contextlib.suppress(BusFailed, ValueError):
            listed = await system_bus.call(bus, _NAME, _PATH, f"{_MANAGER}.ListSessions", answer="a(susso)")
            for _, uid, _, _, path in listed.body[0]:
                if uid == self._uid and await self._hint(bus, path):
                    return True
        return False

    async def _hint(self, bus: MessageBus, path: str) -> bool:
        with contextlib.suppress(BusFailed):
            reply = await system_bus.call(
                bus, _NAME, path, f"{_PROPERTIES}.Get", "ss", [_SESSION, "LockedHint"], answer="v", seconds=2.0
            )
            return reply.body[0].value is True
        return False

    async def _hold(self, bus: MessageBus) -> None:
        """Take the delay inhibitor. Without it sleep still seals, if there is time."""
        self._let_sleep()
        try:
            reply = await system_bus.call(
                bus,
                _NAME,
                _PATH,
                f"{_MANAGER}.Inhibit",
                "ssss",
                ["sleep", "GoEx", "The vault is sealed first", "delay"],
                answer="h",
            )
            self._inhibitor = reply.unix_fds[reply.body[0]]
        except (BusFailed, IndexError) as error:
            log.warning("the machine may sleep before the vault is sealed: %s", error)

    def _let_sleep(self) -> None:
        held, self._inhibitor = self._inhibitor, -1
        if held >= 0:
            os.close(held)


def _locks(signal: Message) -> bool:
    """Whether it says that a session was locked."""
    if (signal.interface, signal.member) == (_SESSION, "Lock"):
        return True
    if (signal.interface, signal.member, signal.signature) != (_PROPERTIES, "PropertiesChanged", "sa{sv}as"):
        return False
    changed = signal.body[1].get("LockedHint") if signal.body[0] == _SESSION else None
    return changed is not None and changed.value is True
