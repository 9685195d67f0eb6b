"""A desktop of a test's own: an X server without a screen, a session bus, a notification server, and a pointer.

Rules: nothing of the machine's own session is touched (a free display, a bus at an address of its own which starts
nothing but xfce's settings); every wait has a time-out; only processes that were started here are ended, by their id.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.support import command
from tests.support.daemon import GOEX, Daemon
from tests.support.waiting import until

_BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
# Mouse buttons as a person of dunst's would have them: the left one does what a click on the body does, the right one
# opens the menu of actions, which `chooser` answers.
_DUNST = """\
[global]
    width = 480
    height = 400
    offset = 16x16
    font = Sans 11
    markup = full
    format = "<b>%s</b>\\n%b"
    dmenu = {folder}/chooser
    mouse_left_click = do_action, close_current
    mouse_middle_click = close_current
    mouse_right_click = context
[urgency_low]
    background = "#222222"
    foreground = "#ffffff"
[urgency_normal]
    background = "#285577"
    foreground = "#ffffff"
[urgency_critical]
    background = "#900000"
    foreground = "#ffffff"
"""
_CHOOSER = """\
#!/bin/sh
# Stands for dmenu: chooses the entry that the test has named.
cat >{folder}/menu
grep -F -- "$(cat {folder}/choice)" {folder}/menu | head -n 1
"""
_NOTIFYD = tuple(
    Path(place) / "notifyd" / "xfce4-notifyd"
    for place in (f"/usr/lib/{os.uname().machine}-linux-gnu/xfce4", "/usr/lib/xfce4", "/usr/libexec/xfce4")
)
NEEDED = ("Xvfb", "dbus-daemon", "xdotool", "import")
INSTALL = "make services installs them (Debian: xvfb dbus xdotool xfce4-notifyd dunst imagemagick)"


def program(server: str) -> str:
    """The notification server's program, "" when it isn't installed."""
    if server == "dunst":
        return shutil.which("dunst") or ""
    return next((str(path) for path in _NOTIFYD if path.exists()), "")


@dataclass(frozen=True)
class Window:
    """One window of the notification server, in pixels."""

    id: str
    x: int
    y: int
    width: int
    height: int


class Desktop:
    """A context manager. `server` is "xfce" or "dunst"; `size` is the screen's."""

    def __init__(self, server: str, *, size: tuple[int, int] = (1024, 768)) -> None:
        self.server = server
        self._size = size
        self.folder = Path(tempfile.mkdtemp(prefix="goex-d-", dir="/tmp"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.env: dict[str, str] = {}

    def __enter__(self) -> Desktop:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for name in list(self._processes)[::-1]:
            self.end(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The session.

    def start_server(self, *, wait: bool = True) -> None:
        """Start the notification server, and wait until it owns its name."""
        options = ["-conf", str(self.folder / "dunstrc")] if self.server == "dunst" else []
        self._run("server", program(self.server), *options)
        if wait:
            until(lambda: self.owner() != "", "the notification server")

    def end(self, name: str, number: int = signal.SIGTERM) -> None:
        """End one of what was started here ("server", "bus", "X") and wait for it."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def owner(self) -> str:
        """Who owns the notification server's name; "" when nobody does."""
        done = self.bus_call("GetNameOwner", "string:org.freedesktop.Notifications")
        return done.stdout.split('"')[1] if done.returncode == 0 else ""

    def bus_call(self, method: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        to = ("--dest=org.freedesktop.DBus", "/org/freedesktop/DBus", f"org.freedesktop.DBus.{method}")
        return self.tool("dbus-send", "--session", "--print-reply", *to, *arguments)

    def forge(self, *signal_words: str) -> None:
        """Send the notifier a signal as any program on the bus may: interface.member and arguments, on the server's
        path. To its own name, since a bus gives everybody what is sent to them, whatever they listen to."""
        to = ("--type=signal", "--dest=dev.goex.Notifier", "/org/freedesktop/Notifications")
        self.tool("dbus-send", "--session", *to, *signal_words)

    def log(self, name: str) -> str:
        """What "server", "bus" or "X" wrote so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def tool(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=300, check=False)

    # The screen.

    def windows(self) -> list[Window]:
        """The notifications that are on the screen, top first."""
        name = "xfce4-notifyd" if self.server == "xfce" else "Dunst"
        found = []
        for id in self.tool("xdotool", "search", "--onlyvisible", "--name", f"^{name}$").stdout.split():
            said = self.tool("xdotool", "getwindowgeometry", "--shell", id).stdout
            facts = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
            if int(facts.get("HEIGHT", 0)) > 20:
                found.append(Window(id, *(int(facts[key]) for key in ("X", "Y", "WIDTH", "HEIGHT"))))
        return sorted(found, key=lambda window: window.y)

    def window(self, number: int = 0) -> Window:
        """A notification, once it is there and has stopped to move."""
        until(lambda: len(self.windows()) > number, "a notification's window")
        seen: list[Window] = []
        deadline = time.monotonic() + 300
        while len(seen) < 4 or len(set(seen[-4:])) > 1:
            assert time.monotonic() < deadline, "The notifications don't come to rest."
            time.sleep(0.12)
            seen.append(self.windows()[number])
        return seen[-1]

    def press(self, label: str, labels: list[str], *, number: int = 0) -> None:
        """Press the button `label` of the notification `number`, whose buttons are `labels`, with the pointer."""
        self.aim(label, labels, number=number)()

    def aim(self, label: str, labels: list[str], *, number: int = 0) -> Callable[[], None]:
        """What presses, at once, where that button is now.

        dunst has no buttons: its menu is opened with the pointer, and the entry of that name is chosen.
        """
        window = self.window(number)
        if self.server == "dunst":
            (self.folder / "choice").write_text(label)
            return partial(self.click, window.x + window.width // 2, window.y + 20, button=3)
        y = window.y + window.height - 19
        buttons = self._buttons(window, y)
        assert len(buttons) == len(labels), f"{buttons} aren't {labels}"
        return partial(self.click, buttons[labels.index(label)], y)

    def click_body(self, number: int = 0) -> None:
        window = self.window(number)
        self.click(window.x + window.width // 2, window.y + 24)

    def click(self, x: int, y: int, *, button: int = 1) -> None:
        # And away again: servers keep what the pointer rests on.
        self.tool("xdotool", "mousemove", str(x), str(y), "click", str(button), "mousemove", "4", "700")

    def picture(self, file: Path) -> None:
        """The whole screen as PNG, by ImageMagick."""
        self.tool("import", "-window", "root", str(file))

    def _buttons(self, window: Window, y: int) -> list[int]:
        """The middles of xfce's buttons: what isn't the background's white on a line below their words."""
        area = f"{window.width - 4}x1+{window.x + 2}+{y}"
        said = self.tool("import", "-window", "root", "-crop", area, "-depth", "8", "txt:-").stdout
        # Shadows around a button are nearly white.
        inside = [line.split(",")[0] for line in said.splitlines()[1:] if line.split("#")[1][:2].upper() < "F5"]
        runs: list[list[int]] = []
        for x in map(int, inside):
            if not runs or x - runs[-1][-1] > 2:
                runs.append([])
            runs[-1].append(x)
        return [window.x + 2 + (run[0] + run[-1]) // 2 for run in runs if len(run) > 20]

    def _start(self) -> None:
        home = self.folder / "home"
        for folder in (home, self.folder / "services", self.folder / "run"):
            folder.mkdir(mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/bus",
            "LANG": "C.UTF-8",
            "GTK_A11Y": "none",
            "NO_AT_BRIDGE": "1",
        }
        reading, writing = os.pipe()
        size = f"{self._size[0]}x{self._size[1]}x24"
        self._run("X", "Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", keep=writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            self.env["DISPLAY"] = f":{pipe.readline().strip()}"
        (self.folder / "bus.conf").write_text(_BUS.format(folder=self.folder))
        (self.folder / "dunstrc").write_text(_DUNST.format(folder=self.folder))
        chooser = self.folder / "chooser"
        chooser.write_text(_CHOOSER.format(folder=self.folder))
        chooser.chmod(0o755)
        settings = Path("/usr/share/dbus-1/services/org.xfce.Xfconf.service")
        if settings.exists():
            shutil.copy(settings, self.folder / "services")
        self._run("bus", "dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork")
        until(lambda: (self.folder / "bus").exists(), "the session bus")

    def _run(self, name: str, *words: str, keep: int = -1) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                words,
                env=self.env or None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(keep,) if keep >= 0 else (),
            )


class Notifying:
    """`goex notify --json` for a daemon, on a desktop. A context manager; ended by SIGTERM."""

    def __init__(self, daemon: Daemon, desktop: Desktop, *, env: Mapping[str, str] | None = None) -> None:
        session = {name: desktop.env[name] for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS")}
        self._env = {**daemon.env, **session, **(env or {})}
        self._cwd = daemon.home
        self.events: list[dict[str, Any]] = []
        self._at = 0
        self._more = threading.Condition()

    def __enter__(self) -> Notifying:
        self._process = command.piped([str(GOEX), "notify", "--json"], env=self._env, folder=self._cwd)
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._listen)]
        self.said = ""
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def wait(self, seconds: float = 300.0) -> int:
        code = self._process.wait(seconds)
        for reader in self._readers:
            reader.join(5.0)
        return code

    def until(self, *names: str, seconds: float = 300.0, **facts: Any) -> dict[str, Any]:
        """The next event of one of these names, with these facts, after the last one that was waited for."""
        deadline = time.monotonic() + seconds
        with self._more:
            while True:
                for index in range(self._at, len(self.events)):
                    found = self.events[index]
                    if found["event"] in names and all(found.get(name) == value for name, value in facts.items()):
                        self._at = index + 1
                        return found
                if not self._more.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise AssertionError(f"No {names} {facts} in {seconds:g} s after:\n{self.events}\n{self.said}")

    def of(self, event: str) -> list[dict[str, Any]]:
        with self._more:
            return [found for found in self.events if found["event"] == event]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._more:
                self.events.append(json.loads(line))
                self._more.notify_all()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line.decode()


@contextlib.contextmanager
def recording_terminal(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """The words of a terminal program that writes down what it was asked to run, and stays until its file is gone."""
    written, stays = folder / "terminal.json", folder / "terminal.open"
    script = folder / "terminal.py"
    script.write_text(
        "import json, pathlib, sys, time\n"
        f"written, stays = pathlib.Path({str(written)!r}), pathlib.Path({str(stays)!r})\n"
        "runs = json.loads(written.read_text()) if written.exists() else []\n"
        "fresh = written.with_suffix('.new')\n"
        "fresh.write_text(json.dumps([*runs, sys.argv[1:]]))\n"
        "fresh.replace(written)\n"
        "while stays.exists():\n    time.sleep(0.05)\n"
    )
    yield [sys.executable, str(script)], written
