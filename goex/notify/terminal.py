"""Opens what a question is answered on: the page in the browser, or a terminal window with `goex approve ID` in it.

Rules: no shell, ever: a list of words, and the id must look like one of ours. A program is started only where it is
found, and what it is started with are this interpreter and this GoEx, not what PATH calls `goex`.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path

from policies.errors import InvalidInput, Unavailable

# What stands between a terminal and the command that it is to run. Those that take it as their last words come first.
_BEFORE_COMMAND: Mapping[str, tuple[str, ...]] = {
    "xdg-terminal-exec": (),
    "foot": (),
    "kitty": (),
    "gnome-terminal": ("--",),
    "kgx": ("--",),
    "ptyxis": ("--",),
    "wezterm": ("start", "--"),
    "xfce4-terminal": ("-x",),
    "mate-terminal": ("-x",),
    "terminator": ("-x",),
}
_USUAL = ("-e",)  # xterm's way, which Debian asks of every x-terminal-emulator
_KNOWN = (
    "gnome-terminal", "kgx", "ptyxis", "konsole", "xfce4-terminal", "mate-terminal", "foot", "kitty", "alacritty",
    "wezterm", "ghostty", "terminator", "urxvt", "st", "xterm",
)  # fmt: skip
_GOEX = "from goex.cli.main import main; main()"
_WINDOW = ("-I", "-c", "from goex.notify.window import main; main()")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class NoTerminal(Unavailable):
    """There is no terminal program to open."""

    code = "no-terminal"


def find(configured: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The words that the command is put after. The person's setting, $TERMINAL, the system's choice, then known ones.

    Raises NoTerminal; a setting that names a program that isn't there is not replaced by another.
    """
    path = env.get("PATH")
    if configured:
        return _setting(list(configured), path, "[notify] terminal in config.toml")
    if chosen := env.get("TERMINAL", ""):
        try:
            # Some write options into it; nothing of it is run by a shell.
            return _setting(shlex.split(chosen), path, "$TERMINAL")
        except (ValueError, NoTerminal):
            pass  # a stale variable doesn't keep the person from their terminal
    for name in ("xdg-terminal-exec", "x-terminal-emulator", *_KNOWN):
        if program := shutil.which(name, path=path):
            return [program, *_BEFORE_COMMAND.get(name, _USUAL)]
    raise NoTerminal(
        "No terminal program was found.", next_step='Name yours in config.toml: [notify] terminal = ["xterm", "-e"]'
    )


def page(approval_id: str, configured: Sequence[str], env: Mapping[str, str]) -> list[str] | None:
    """What opens the page at a question; None where a terminal is set in config.toml, or there is no browser."""
    if configured or not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return None
    try:
        webbrowser.get()
    except webbrowser.Error:
        return None
    return [sys.executable, "-I", "-c", _GOEX, "web", *(["--question", _checked(approval_id)] if approval_id else [])]


def command(approval_id: str) -> list[str]:
    """What runs in the window: `goex approve ID`, or without an id all that waits. Raises InvalidInput."""
    return [sys.executable, *_WINDOW, "approve", *([_checked(approval_id)] if approval_id else [])]


def _checked(approval_id: str) -> str:
    if not _ID.fullmatch(approval_id):
        raise InvalidInput("The daemon named a request in a way that isn't its own.", next_step="See: goex approve")
    return approval_id


async def start(words: Sequence[str], env: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start it, apart from us. Raises NoTerminal when it can't be."""
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            env=dict(env),
            cwd=env.get("HOME", "/"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise NoTerminal(f"The terminal {words[0]} can't be started: {error.strerror}.") from error


def _setting(words: list[str], path: str | None, where: str) -> list[str]:
    program = shutil.which(words[0], path=path) if words else None
    if program is None:
        raise NoTerminal(f"{where} names {words[0] if words else 'nothing'}, which isn't there.")
    if len(words) > 1:
        return [program, *words[1:]]
    return [program, *_BEFORE_COMMAND.get(Path(program).name, _USUAL)]
