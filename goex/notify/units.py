"""The systemd units of the person's session: the daemon, and the notifier beside it.

Rules: units are written into the person's own folder, and nothing is switched on: which commands do that is said. A
unit of that name which isn't ours is left alone. The templates are in `goex/units`; of the environment they get only
what decides where GoEx keeps its things and where Docker is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from goex.paths import make_private
from policies.errors import Conflict, Unavailable

_OURS = "# Written by `goex notify --install`."
# Where `systemctl enable` puts its links.
_WANTED_BY = {
    "goex-daemon.service": "default.target.wants",
    "goex-notify.service": "graphical-session.target.wants",
}
NAMES = tuple(_WANTED_BY)
_PASSED_ON = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DOCKER_HOST")


class ForeignUnit(Conflict):
    """A unit of that name is there, and somebody else's."""

    code = "unit"


def folder(env: Mapping[str, str]) -> Path:
    """Where a person's own units are."""
    config = env.get("XDG_CONFIG_HOME", "")
    home = Path(env.get("HOME") or Path.home())
    return (Path(config) if config.startswith("/") else home / ".config") / "systemd" / "user"


def text(name: str, env: Mapping[str, str]) -> str:
    """The unit of that name for this installation."""
    template = resources.files("goex.units").joinpath(name).read_text(encoding="utf-8")
    variables = [f'Environment="{key}={_quoted(env[key])}"' for key in _PASSED_ON if env.get(key)]
    program = Path(sys.executable).with_name("goex")
    # `$` begins a variable in a command, and there only.
    start = f'"{_quoted(str(program)).replace("$", "$$")}"'
    return f"{_OURS}\n" + template.replace("@goex@", start).replace(
        "@environment@\n", "".join(f"{v}\n" for v in variables)
    )


def install(env: Mapping[str, str]) -> list[Path]:
    """Write both units. Returns their files. Raises ForeignUnit, Unavailable."""
    place = folder(env)
    files = [place / name for name in NAMES]
    for file in files:
        _check(file)
    try:
        make_private(place)
        for file in files:
            fresh = file.with_name(f".{file.name}.new")
            fresh.write_text(text(file.name, env), encoding="utf-8")
            fresh.chmod(0o644)
            fresh.replace(file)
    except OSError as error:
        raise Unavailable(f"{place} can't be written: {error.strerror}.", next_step="See: goex doctor") from error
    return files


def uninstall(env: Mapping[str, str]) -> list[Path]:
    """Remove both units, and the links that switched them on; returns the units that were there.

    Raises ForeignUnit, Unavailable.
    """
    place = folder(env)
    files = [file for name in NAMES if os.path.lexists(file := place / name)]
    for file in files:
        _check(file)
    try:
        for file in files:
            link = place / _WANTED_BY[file.name] / file.name
            if link.is_symlink():
                link.unlink()
            file.unlink()
    except OSError as error:
        raise Unavailable(f"{folder(env)} can't be written: {error.strerror}.") from error
    return files


def _check(file: Path) -> None:
    if not os.path.lexists(file):
        return
    try:
        ours = not file.is_symlink() and file.read_text(encoding="utf-8", errors="replace").startswith(_OURS)
    except OSError:
        ours = False
    if not ours:
        raise ForeignUnit(f"{file} wasn't written by GoEx.", next_step="Move it away, then try again.")


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
