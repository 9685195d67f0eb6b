"""`goex notify`: the questions that wait for you, on your desktop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.output import Json, Output, shown
from policies.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from goex.paths import Paths

_OTHERWISE = "Without one, decide in a terminal (goex approve --watch) or on the page (goex web)."
_SWITCH_ON = ("systemctl --user daemon-reload", "systemctl --user enable --now goex-daemon goex-notify")
_SWITCH_OFF = ("systemctl --user stop goex-notify goex-daemon", "systemctl --user daemon-reload")
_EVENTS = {
    "shown": "shown: {title}",
    "clicked": "clicked: {button}",
    "opened": "opened a terminal for {approval}",
    "settled": "{approval} is settled: {state}",
    "notice": "said: {title}",
    "trouble": "{message}",
}


class NoDesktop(Unavailable):
    """There is no desktop session here."""

    code = "no-desktop"


def run(
    install: Annotated[bool, typer.Option("--install", help="Write systemd units that start it with you.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Remove those units.")] = False,
    as_json: Json = False,
) -> None:
    """Show what waits for you as desktop notifications, until Ctrl-C. A click allows a single read, once, or denies;
    everything else opens the page, or a terminal."""
    out = Output(as_json)
    if install and uninstall:
        raise InvalidInput("It is either --install or --uninstall.")
    if install or uninstall:
        _units(out, install=install)
        return
    from goex.cli.connect import paths

    check_desktop(os.environ)
    _serve(out, paths())


def check_desktop(env: Mapping[str, str]) -> None:
    """Raises NoDesktop, with the other ways, where no notification could be seen."""
    bus = env.get("DBUS_SESSION_BUS_ADDRESS") or os.path.exists(os.path.join(env.get("XDG_RUNTIME_DIR", "/-"), "bus"))  # noqa: PTH110, PTH118
    if not bus:
        raise NoDesktop("There is no desktop session here: DBUS_SESSION_BUS_ADDRESS isn't set.", next_step=_OTHERWISE)
    if not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        raise NoDesktop("There is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set.", next_step=_OTHERWISE)


def _serve(out: Output, where: Paths) -> None:
    import asyncio

    from goex.config import load
    from goex.notify.notifier import Notifier

    settings = load(where.config_file).notify

    async def serve() -> None:
        await Notifier(where, settings, os.environ, lambda event, facts: _tell(out, event, facts)).run()

    out.progress("Showing what waits for you; Ctrl-C leaves.")
    asyncio.run(serve())


def _tell(out: Output, event: str, facts: Mapping[str, Any]) -> None:
    out.json({"event": event, **facts})
    if event == "daemon":
        out.progress("The daemon runs." if facts["running"] else "The daemon went away; waiting for it.")
    elif event == "server":
        name = f"{facts['name']} {facts.get('version', '')}" if facts["name"] else ""
        out.progress(f"Shown by {name}." if name else "No notification server is there; waiting for one.")
    elif event in _EVENTS:
        out.progress(_EVENTS[event].format(**facts))


def _units(out: Output, *, install: bool) -> None:
    from goex.notify import units

    files = (units.install if install else units.uninstall)(os.environ)
    commands = (_SWITCH_ON if install else _SWITCH_OFF) if files else ()
    out.json({"files": [str(file) for file in files], "commands": list(commands)})
    if out.as_json:
        return
    if not files:
        out.say("There were no units of GoEx's.")
        return
    for file in files:
        out.say(f"{'Wrote' if install else 'Removed'} {shown(str(file))}.")
    if install:
        out.say("Stop a daemon that runs already (goex daemon stop), then switch them on with:")
    else:
        out.say("Stop what still runs, and let systemd forget them:")
    for command in commands:
        out.say(f"  {command}")
