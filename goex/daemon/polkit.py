"""Presence shown to polkit: the system's own dialog, instead of the approval passphrase or in addition to it.

Rules: nothing but a clear yes counts: no polkit, an error, a time-out, an unknown answer are all no. One dialog at a
time, so that a second request can't hide behind the first's. Root isn't asked about, since polkit says yes to root
whatever is asked. The dialog can't say what is approved (polkit takes words only from whom it trusts): the prompt of
GoEx does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import pwd
import secrets
from typing import TYPE_CHECKING, Literal

from goex.daemon import system_bus
from goex.daemon.system_bus import BusFailed
from goex.engine.peers import Peer

if TYPE_CHECKING:
    from dbus_fast.aio import MessageBus

log = logging.getLogger("goex.daemon")

ACTION = "org.goex.approve"
SECONDS = 45.0  # a dialog stays open for so long; below the 60 s that a command waits for its answer
_BUS = "org.freedesktop.DBus"
_NAME = "org.freedesktop.PolicyKit1"
_PATH = "/org/freedesktop/PolicyKit1/Authority"
_AUTHORITY = "org.freedesktop.PolicyKit1.Authority"
_MAY_ASK = 1  # AllowUserInteraction

Mode = Literal["off", "instead", "also"]


class Polkit:
    """Asks whether the person behind a peer may approve. `mode` is config.toml's [ask] polkit."""

    def __init__(self, mode: Mode, *, address: str = system_bus.ADDRESS, seconds: float = SECONDS) -> None:
        self.mode = mode
        self._address = address
        self._seconds = seconds
        self._asking = asyncio.Lock()

    async def allows(self, peer: Peer) -> bool:
        """Whether polkit says yes, after asking the person if need be. Never raises but for cancellation."""
        if peer.uid == 0 or peer.pid <= 0 or peer.started <= 0 or self._asking.locked():
            return False
        async with self._asking:
            try:
                return await self._ask(peer)
            except BusFailed as error:
                log.warning("polkit doesn't count: %s", error.message)
                return False

    async def _ask(self, peer: Peer) -> bool:
        from dbus_fast import Variant

        bus = await system_bus.connect(self._address)
        try:
            await self._check_owner(bus)
            cancellation = f"goex-{os.getpid()}-{secrets.token_hex(8)}"
            subject = [
                "unix-process",
                {
                    "pid": Variant("u", peer.pid),
                    "start-time": Variant("t", peer.started),
                    "uid": Variant("i", peer.uid),
                },
            ]
            answered = False
            try:
                reply = await system_bus.call(
                    bus,
                    _NAME,
                    _PATH,
                    f"{_AUTHORITY}.CheckAuthorization",
                    "(sa{sv})sa{ss}us",
                    [subject, ACTION, {}, _MAY_ASK, cancellation],
                    answer="(bba{ss})",
                    seconds=self._seconds,
                )
                answered = True
            finally:
                if not answered:  # the dialog goes away with whoever waits for it
                    with contextlib.suppress(BusFailed):
                        await asyncio.shield(self._cancel(bus, cancellation))
            return reply.body[0][0] is True
        finally:
            system_bus.close(bus)

    async def _check_owner(self, bus: MessageBus) -> None:
        """Raises BusFailed unless the system's own polkit answers there, started if need be."""
        call = functools.partial(system_bus.call, bus, _BUS, "/org/freedesktop/DBus", answer="u")
        with contextlib.suppress(BusFailed):  # it may run already, and not be one that the bus can start
            await call(f"{_BUS}.StartServiceByName", "su", [_NAME, 0])
        owner = await call(f"{_BUS}.GetConnectionUnixUser", "s", [_NAME])
        if owner.body[0] not in _system_users():
            raise BusFailed("what calls itself polkit isn't the system's")

    async def _cancel(self, bus: MessageBus, cancellation: str) -> None:
        await system_bus.call(
            bus,
            _NAME,
            _PATH,
            f"{_AUTHORITY}.CancelCheckAuthorization",
            "s",
            [cancellation],
            seconds=2.0,
        )


def _system_users() -> frozenset[int]:
    """Whom polkit may run as: root, or the user that distributions make for it."""
    found = {0}
    for name in ("polkitd", "polkituser"):
        with contextlib.suppress(KeyError):
            found.add(pwd.getpwnam(name).pw_uid)
    return frozenset(found)
