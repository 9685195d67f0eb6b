"""Which terminal is opened, and with what; and where there is no desktop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from goex.cli.notify import NoDesktop, check_desktop
from goex.config import BadConfig, Notify, parse
from goex.notify import terminal
from goex.notify.terminal import NoTerminal
from policies.errors import InvalidInput


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for name in ("xterm", "gnome-terminal", "foot", "mine"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return tmp_path


def test_the_setting_comes_first_and_is_not_replaced(path: Path) -> None:
    env = {"PATH": str(path), "TERMINAL": "foot"}
    assert terminal.find(["mine", "--run"], env) == [str(path / "mine"), "--run"]
    assert terminal.find(["gnome-terminal"], env) == [str(path / "gnome-terminal"), "--"]
    with pytest.raises(NoTerminal, match="names gone"):
        terminal.find(["gone"], env)


def test_then_the_variable_then_what_is_there(path: Path) -> None:
    env = {"PATH": str(path)}
    assert terminal.find([], {**env, "TERMINAL": "foot"}) == [str(path / "foot")]
    assert terminal.find([], {**env, "TERMINAL": "mine -x"}) == [str(path / "mine"), "-x"]
    assert terminal.find([], {**env, "TERMINAL": "gone"}) == [str(path / "gnome-terminal"), "--"]
    assert terminal.find([], {**env, "TERMINAL": "'"}) == [str(path / "gnome-terminal"), "--"]
    (path / "x-terminal-emulator").symlink_to(path / "xterm")
    assert terminal.find([], env) == [str(path / "x-terminal-emulator"), "-e"]


def test_without_one_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoTerminal) as caught:
        terminal.find([], {"PATH": str(tmp_path)})
    assert "[notify] terminal" in caught.value.next_step


@pytest.mark.parametrize("variable", ["mine; touch {place}", "mine $(touch {place})", "mine `touch {place}`"])
def test_nothing_of_the_variable_is_run_by_a_shell(path: Path, variable: str) -> None:
    place = path / "made"
    words = terminal.find([], {"PATH": str(path), "TERMINAL": variable.format(place=place)})
    assert words[0] == str(path / "gnome-terminal") or words[0] == str(path / "mine")
    assert not place.exists()


def test_what_runs_is_this_goex_with_the_id() -> None:
    assert terminal.command("q-0123456789ab") == [
        sys.executable, "-I", "-c", "from goex.notify.window import main; main()", "approve", "q-0123456789ab",
    ]  # fmt: skip
    assert terminal.command("")[-1] == "approve"


@pytest.mark.parametrize("id", ["-q", "--watch", "q 1", "q;1", "q\n", "q'", "../q", "q" * 65, "é", "q\x00"])
def test_an_id_that_isnt_the_daemons_opens_nothing(id: str) -> None:
    with pytest.raises(InvalidInput):
        terminal.command(id)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "DBUS_SESSION_BUS_ADDRESS"),
        ({"DISPLAY": ":0"}, "DBUS_SESSION_BUS_ADDRESS"),
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}, "DISPLAY"),
    ],
)
def test_without_a_desktop_the_other_ways_are_named(env: dict[str, str], says: str) -> None:
    with pytest.raises(NoDesktop) as caught:
        check_desktop(env)
    assert says in caught.value.message
    assert "goex approve --watch" in caught.value.next_step
    assert "goex web" in caught.value.next_step


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_with_one_it_goes_on(display: str) -> None:
    check_desktop({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", display: ":0"})


def test_the_settings() -> None:
    assert parse({}).notify == Notify(terminal=(), most=4)
    made = parse({"notify": {"terminal": ["foot", "--app-id=goex"], "most": 2}}).notify
    assert made == Notify(terminal=("foot", "--app-id=goex"), most=2)


@pytest.mark.parametrize(
    "table", [{"terminal": "xterm -e"}, {"terminal": [""]}, {"terminal": [1]}, {"most": 0}, {"most": 21}, {"mode": 1}]
)
def test_settings_that_are_refused(table: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match=r"\[notify\]"):
        parse({"notify": table})
