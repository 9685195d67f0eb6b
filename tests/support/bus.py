"""A system bus of a test's own: a real dbus-daemon on a private socket, with what a test puts on it.

`Login1` is no systemd-logind (that one needs to be the machine's): it is a service of its own name that keeps to the
interface that org.freedesktop.login1(5) documents, as far as GoEx uses it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""

needs_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon isn't installed")


class Bus:
    """The bus. `stop` and `start` restart it on the same address."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "bus"
        self.address = f"unix:path={self.socket}"
        self._config = folder / "bus.conf"
        self._config.write_text(CONFIG.format(socket=self.socket))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self._config}", "--nofork", "--nopidfile"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(15_000):
            with socket.socket(socket.AF_UNIX) as trying, suppress(OSError):
                trying.connect(str(self.socket))  # it is there before anybody listens
                return
            time.sleep(0.02)
        raise AssertionError("the bus didn't come up")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        self.socket.unlink(missing_ok=True)


class Login1:
    """logind's manager and one session, on a bus."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.locked_hint = False
        self.session_path = "/org/freedesktop/login1/session/_31"
        self.inhibitors: list[tuple[list[Any], int]] = []  # what was asked, and our end of its pipe
        self.calls: list[str] = []
        self.bus: Any = None

    async def serve(self, address: str, name: str = "org.freedesktop.login1") -> None:
        from dbus_fast.aio import MessageBus

        self.bus = await MessageBus(bus_address=address, negotiate_unix_fd=True).connect()
        self.bus.add_message_handler(self._answer)
        if name:
            await self.bus.request_name(name)

    def close(self) -> None:
        for _, ours in self.inhibitors:
            os.close(ours)
        self.inhibitors.clear()
        if self.bus is not None:
            self.bus.disconnect()
            self.bus = None

    @property
    def held(self) -> int:
        """How many delay inhibitors are held now: the other end of their pipes is open."""
        count = 0
        for _, ours in self.inhibitors:
            try:
                count += os.read(ours, 1) != b""
            except BlockingIOError:
                count += 1
        return count

    async def lock(self, *, path: str = "") -> None:
        await self.signal(path or self.session_path, "org.freedesktop.login1.Session", "Lock")

    async def hint(self, locked: bool) -> None:
        from dbus_fast import Variant

        self.locked_hint = locked
        body = ["org.freedesktop.login1.Session", {"LockedHint": Variant("b", locked)}, []]
        await self.signal(self.session_path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", body)

    async def sleep(self, beginning: bool) -> None:
        manager = "org.freedesktop.login1.Manager"
        await self.signal("/org/freedesktop/login1", manager, "PrepareForSleep", "b", [beginning])

    async def signal(
        self, path: str, interface: str, member: str, signature: str = "", body: list[Any] | None = None, to: str = ""
    ) -> None:
        from dbus_fast import Message

        made = Message.new_signal(path, interface, member, signature, body or [])
        if to:
            made.destination = to
        await self.bus.send(made)

    def _answer(self, message: Any) -> Any:
        from dbus_fast import Message, MessageType, Variant

        if message.message_type is not MessageType.METHOD_CALL:
            return None
        self.calls.append(message.member)
        if message.member == "Inhibit":
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            self.inhibitors.append((list(message.body), ours))
            reply = Message.new_method_return(message, "h", [0], unix_fds=[theirs])
            asyncio.get_running_loop().call_later(0.3, os.close, theirs)  # sent by then; the other side has its own
            return reply
        if message.member == "ListSessions":
            return Message.new_method_return(
                message, "a(susso)", [[["1", self.uid, "somebody", "seat0", self.session_path]]]
            )
        if message.member == "Get":
            if message.body[1] == "User":
                value = Variant("(uo)", [self.uid, f"/org/freedesktop/login1/user/_{self.uid}"])
            else:
                value = Variant("b", self.locked_hint)
            return Message.new_method_return(message, "v", [value])
        return None
