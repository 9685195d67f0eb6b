"""Notification servers of other kinds than those that can be installed here: what they can't do is made up for."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from dbus_fast import Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method

from goex.notify import freedesktop as servers
from goex.notify.card import Button, Card, Line
from goex.notify.freedesktop import NoServer, Server
from tests.support.desktop import INSTALL, NEEDED, Desktop

CARD = Card(title="A & B", lines=(Line("Risk", bold=True), Line("<b>x</b> & y")), buttons=(Button("deny", "Deny"),))


class Kind(ServiceInterface):
    """A server that says of itself what it is told to, and keeps what it is sent."""

    def __init__(self, name: str, can: list[str], *, answers: bool = True) -> None:
        super().__init__("org.freedesktop.Notifications")
        self.about, self.can, self.answers = name, can, answers
        self.got: list[dict[str, Any]] = []

    @dbus_method()
    def GetServerInformation(self) -> "ssss":  # noqa: F821, UP037
        return [self.about, "test", "1", "1.2"]

    @dbus_method()
    def GetCapabilities(self) -> "as":  # noqa: F722
        return self.can

    @dbus_method()
    async def Notify(
        self,
        app: "s",  # noqa: F821, UP037
        replaces: "u",  # noqa: F821, UP037
        icon: "s",  # noqa: F821, UP037
        title: "s",  # noqa: F821, UP037
        body: "s",  # noqa: F821, UP037
        actions: "as",  # noqa: F722
        hints: "a{sv}",  # noqa: F722
        expires: "i",  # noqa: F821, UP037
    ) -> "u":  # noqa: F821, UP037
        self.got.append({"app": app, "replaces": replaces, "icon": icon, "title": title, "body": body,
                         "actions": actions, "hints": hints, "expires": expires})  # fmt: skip
        if not self.answers:
            await asyncio.sleep(60)
        return 7


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; {INSTALL}")
    with Desktop("none") as made:
        yield made


@pytest.fixture
async def bus(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MessageBus]:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", desktop.env["DBUS_SESSION_BUS_ADDRESS"])
    made = await MessageBus().connect()
    yield made
    made.disconnect()


async def connected(bus: MessageBus, kind: Kind) -> Server:
    bus.export("/org/freedesktop/Notifications", kind)
    await bus.request_name("org.freedesktop.Notifications")
    made = Server(lambda id, key: None, lambda id: None, lambda: None)
    await made.connect()
    assert made.about is not None
    return made


async def test_one_without_buttons_and_markup_gets_words_instead(bus: MessageBus) -> None:
    kind = Kind("plain", ["body"])
    server = await connected(bus, kind)
    assert await server.notify(CARD) == 7
    (got,) = kind.got
    assert got["actions"] == []
    assert got["body"] == "Risk\n<b>x</b> & y\nDecide in a terminal: goex approve"
    server.close()


async def test_one_with_both_gets_buttons_and_escaped_text(bus: MessageBus) -> None:
    kind = Kind("rich", ["body", "body-markup", "actions"])
    server = await connected(bus, kind)
    await server.notify(CARD, replaces=3, seconds=2)
    (got,) = kind.got
    assert got["body"] == "<b>Risk</b>\n&lt;b&gt;x&lt;/b&gt; &amp; y"
    # A click on the body is bound to something that allows nothing, so that no server takes another action for it.
    assert got["actions"] == ["deny", "Deny", "default", ""]
    assert (got["app"], got["replaces"], got["expires"]) == ("GoEx", 3, 2000)
    assert got["icon"].startswith("file:///") and got["icon"].endswith("goex.svg")
    assert got["hints"] == {
        "urgency": Variant("y", 1),
        "category": Variant("s", "x-goex.approval"),
        "suppress-sound": Variant("b", True),
        "transient": Variant("b", False),
    }
    server.close()


async def test_one_that_would_show_the_body_as_a_button_gets_none_for_it(bus: MessageBus) -> None:
    kind = Kind("Xfce Notify Daemon", ["actions"])
    server = await connected(bus, kind)
    await server.notify(CARD)
    assert kind.got[0]["actions"] == ["deny", "Deny"]
    server.close()


async def test_one_that_hangs_is_not_waited_for_for_ever(bus: MessageBus, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await connected(bus, Kind("slow", ["body"], answers=False))
    monkeypatch.setattr(servers, "_SECONDS", 0.3)
    with pytest.raises(NoServer, match="no answer"):
        await server.notify(CARD)
    server.close()


async def test_without_one_nothing_is_shown_and_nothing_breaks(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", desktop.env["DBUS_SESSION_BUS_ADDRESS"])
    server = Server(lambda id, key: None, lambda id: None, lambda: None)
    await server.connect()
    assert server.about is None
    with pytest.raises(NoServer):
        await server.notify(CARD)
    await server.take_down(1)
    server.close()
