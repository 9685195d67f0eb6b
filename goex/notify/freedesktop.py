"""The desktop's notification server, over the session bus (org.freedesktop.Notifications, version 1.2).

Rules:

* A signal counts only when it comes from the process that owns the server's name: any program on the session bus can
  send one that looks the same.
* Ids belong to one server. When the name changes hands every id is forgotten, since the new server gives the same
  numbers to other notifications, and a click on one of those isn't a click on ours.
* No call waits for ever on a server that hangs.

This is dbus-fast and not desktop-notifier, because that library can't replace a notification, hides expiry and errors,
keeps ids over a restart of the server, and doesn't say whether the server reads markup. What has no buttons goes
through it (`goex.notify.notices`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbus_fast import BusType, Message, MessageType, NameFlag, RequestNameReply, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusError

from goex.notify.card import DEFAULT, Card
from policies.display_text import escape
from policies.errors import Unavailable

APP = "GoEx"
ICON = Path(__file__).with_name("goex.svg")
OUR_NAME = "dev.goex.Notifier"

_SERVER = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_BUS = "org.freedesktop.DBus"
_BUS_PATH = "/org/freedesktop/DBus"
_SECONDS = 10.0
_ACTIVATION_SECONDS = 25.0
_RETURN_SECONDS = 3.0
_TRIES = 5  # a server may own its name before it answers
_URGENCY = {"low": 0, "normal": 1, "critical": 2}
_LONGEST_TIMEOUT = 2**31 - 1
# It shows a click on the body as one more button, and closes the notification where others invoke the default action.
_NO_DEFAULT = "Xfce Notify Daemon"


class NoSession(Unavailable):
    """The session bus isn't there, or went away."""

    code = "no-desktop"


class NoServer(Unavailable):
    """No notification server owns the name now, or it doesn't answer."""

    code = "no-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the server says of itself. `owner` is its unique name on the bus."""

    owner: str
    name: str
    version: str
    actions: bool
    markup: bool


class Server:
    """One connection. `clicked(id, key)`, `closed(id)` and `changed()` are called from the event loop.

    `about` is None while no server is there.
    """

    def __init__(
        self, clicked: Callable[[int, str], None], closed: Callable[[int], None], changed: Callable[[], None]
    ) -> None:
        self._clicked, self._closed, self._changed = clicked, closed, changed
        self._bus: MessageBus | None = None
        self._owner = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self.about: About | None = None

    async def connect(self) -> None:
        """Raises NoSession without a session bus, Unavailable when another notifier runs already."""
        try:
            self._bus = await MessageBus(bus_type=BusType.SESSION, auth_timeout=_SECONDS).connect()
        except Exception as error:
            # The library lets anything through: of sockets, of addresses, of authentication.
            raise NoSession(
                f"The desktop session's bus can't be reached ({type(error).__name__}).",
                next_step="Run it inside your desktop session; elsewhere use: goex approve --watch",
            ) from error
        self._bus.add_message_handler(self._heard)
        reply = await self._bus.request_name(OUR_NAME, NameFlag.DO_NOT_QUEUE)
        if reply not in (RequestNameReply.PRIMARY_OWNER, RequestNameReply.ALREADY_OWNER):
            raise Unavailable("A notifier runs in this session already.", next_step="Stop that one first.")
        for rule in (
            f"type='signal',sender='{_SERVER}',interface='{_SERVER}',path='{_PATH}'",
            f"type='signal',sender='{_BUS}',interface='{_BUS}',member='NameOwnerChanged',arg0='{_SERVER}'",
        ):
            await self._call(_BUS, _BUS_PATH, _BUS, "AddMatch", "s", rule)
        await self._look(activate=True)
        if self.about is None:
            self._changed()

    async def disconnected(self) -> None:
        """Returns when the session bus has gone."""
        assert self._bus is not None
        with suppress(Exception):
            await self._bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # the library's own gap

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._bus is not None:
            self._bus.disconnect()

    async def notify(self, card: Card, *, replaces: int = 0, seconds: float = 0) -> int:
        """Show it, in the place of the one called `replaces`, for `seconds` (0: until it is closed). Returns its id.

        Raises NoServer.
        """
        about = self.about
        if about is None:
            raise NoServer("No notification server is there.")
        actions: list[str] = []
        if about.actions:
            for button in card.buttons:
                actions += [button.key, button.label]
            if about.name != _NO_DEFAULT and actions:
                # A server may invoke a single action for a click on the body; with this, that is what it invokes.
                actions += [DEFAULT, ""]
        elif card.buttons:
            card = card.with_hint("Decide in a terminal: goex approve")
        hints = {
            "urgency": Variant("y", _URGENCY[card.urgency]),
            "category": Variant("s", card.category),
            "suppress-sound": Variant("b", True),
            "transient": Variant("b", False),
        }
        body = card.body(markup=about.markup)
        timeout = min(int(seconds * 1000), _LONGEST_TIMEOUT)
        answer = await self._call(
            about.owner, _PATH, _SERVER, "Notify", "susssasa{sv}i",
            APP, replaces, ICON.as_uri(), card.title, body, actions, hints, timeout,
        )  # fmt: skip
        return int(answer[0])

    async def take_down(self, id: int) -> None:
        """Close a notification; one that is closed already, or whose server is gone, is no error."""
        if self.about is not None:
            with suppress(NoServer):
                await self._call(self.about.owner, _PATH, _SERVER, "CloseNotification", "u", id)

    # The bus.

    async def _look(self, *, activate: bool) -> None:
        """See who the server is, starting the desktop's one when none runs, if `activate`."""
        if activate:
            # Refused where nothing is set up to be started, though a server may run.
            with suppress(NoServer):
                await self._call(
                    _BUS, _BUS_PATH, _BUS, "StartServiceByName", "su", _SERVER, 0, seconds=_ACTIVATION_SECONDS
                )
        with suppress(NoServer):
            owner = str((await self._call(_BUS, _BUS_PATH, _BUS, "GetNameOwner", "s", _SERVER))[0])
            name, _, version, _ = await self._call(owner, _PATH, _SERVER, "GetServerInformation")
            (can,) = await self._call(owner, _PATH, _SERVER, "GetCapabilities")
            self._owner = owner
            self.about = About(
                owner=owner,
                name=escape(str(name)[:80]),
                version=escape(str(version)[:80]),
                actions="actions" in can,
                markup="body-markup" in can,
            )
            self._changed()

    async def _look_again(self, owner: str) -> None:
        if not owner:
            # One that restarts comes back by itself; one that ended is started again, as any notification would do.
            await asyncio.sleep(_RETURN_SECONDS)
        for attempt in range(_TRIES):
            if self.about is not None:
                return
            await self._look(activate=not owner and attempt == 0)
            await asyncio.sleep(1.0 if self.about is None else 0.0)

    def _heard(self, message: Message) -> None:
        if message.message_type is not MessageType.SIGNAL:
            return
        match message.member, message.signature, message.body:
            case "NameOwnerChanged", "sss", [name, _, owner] if message.sender == _BUS and name == _SERVER:
                was_there, self._owner, self.about = self.about is not None, "", None
                if was_there:
                    self._changed()
                self._later(self._look_again(owner))
            case "ActionInvoked", "us", [id, key] if self._owner and message.sender == self._owner:
                self._clicked(id, key)
            case "NotificationClosed", "uu", [id, _] if self._owner and message.sender == self._owner:
                self._closed(id)

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(
        self,
        to: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        *body: Any,
        seconds: float = 0,
    ) -> list[Any]:
        assert self._bus is not None
        message = Message(
            destination=to, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
        try:
            async with asyncio.timeout(seconds or _SECONDS):
                reply = await self._bus.call(message)
        except (TimeoutError, DBusError, OSError, EOFError) as error:
            raise NoServer(f"{member} got no answer ({type(error).__name__}).") from error
        if reply.message_type is MessageType.ERROR:
            raise NoServer(f"{member} was refused: {escape(str(reply.error_name))}.")
        return list(reply.body)
