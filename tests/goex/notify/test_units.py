"""The systemd units: written whole, ours alone, and what systemd itself says of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from goex.daemon.app import DRAIN_SECONDS, SETTLE_SECONDS
from goex.notify import units
from goex.notify.units import ForeignUnit
from tests.goex.cli.conftest import Inside, env, inside

__all__ = ["env", "inside"]


def test_systemd_finds_nothing_wrong_with_them(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not installed: systemd-analyze (Debian: systemd)")
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / 'a b%c$d"e\\f'), "XDG_RUNTIME_DIR": str(run)}
    files = units.install(home)
    command = ["systemd-analyze", "--user", "verify", *map(str, files)]
    done = subprocess.run(command, env={**home, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=300)
    said = [line for line in done.stderr.splitlines() if "goex" in line]
    assert (done.returncode, said) == (0, []), done.stderr
    # The control: it would have been said.
    files[0].write_text(
        files[0].read_text().replace("Restart=on-failure", "Restart=whenever").replace("ExecStart", "Exec")
    )
    done = subprocess.run(command, env={**home, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=300)
    assert "goex-daemon.service" in done.stderr


def test_what_decides_the_places_is_passed_on_and_nothing_else(tmp_path: Path) -> None:
    given = {"HOME": "/home/you", "XDG_STATE_HOME": '/a %b"c', "DOCKER_HOST": "unix:///x", "TOKEN": "secret"}
    text = units.text("goex-daemon.service", given)
    assert 'Environment="XDG_STATE_HOME=/a %%b\\"c"\n' in text
    assert 'Environment="DOCKER_HOST=unix:///x"\n' in text
    assert "secret" not in text
    assert "@" not in text.replace("SystemCallFilter=@", "").replace("~@", "").replace(" @", "")


def test_the_daemon_has_the_time_to_stop_that_it_takes() -> None:
    text = units.text("goex-daemon.service", {"HOME": "/home/you"})
    (stop,) = [float(line.partition("=")[2]) for line in text.splitlines() if line.startswith("TimeoutStopSec=")]
    killing, servers, the_rest = 30, 2, 5  # the engine's wait for what it killed, the sockets' servers, what is written
    assert stop >= DRAIN_SECONDS + killing + servers + SETTLE_SECONDS + the_rest


def test_they_are_written_and_removed(inside: Inside) -> None:
    folder = Path(inside.env["XDG_CONFIG_HOME"]) / "systemd" / "user"
    done = inside("notify", "--install")
    assert done.code == 0
    assert "systemctl --user enable --now goex-daemon goex-notify" in done.out
    assert sorted(file.name for file in folder.iterdir()) == sorted(units.NAMES)
    # Whoever can write there has their programs started as the person.
    assert [each.stat().st_mode & 0o077 for each in (folder, folder.parent)] == [0, 0]
    assert inside("notify", "--install").code == 0
    wants = folder / "default.target.wants"
    wants.mkdir()
    (wants / "goex-daemon.service").symlink_to(folder / "goex-daemon.service")
    assert inside("notify", "--uninstall").code == 0
    assert not list(folder.glob("**/goex-*"))
    assert "no units" in inside("notify", "--uninstall").out


@pytest.mark.parametrize("how", ["--install", "--uninstall"])
def test_a_unit_of_somebody_elses_is_left_alone(inside: Inside, how: str) -> None:
    folder = Path(inside.env["XDG_CONFIG_HOME"]) / "systemd" / "user"
    folder.mkdir(parents=True)
    (folder / "goex-daemon.service").write_text("[Service]\nExecStart=/bin/true\n")
    done = inside("notify", how)
    assert done.code == 6
    assert "wasn't written by GoEx" in done.err
    assert [file.name for file in folder.iterdir()] == ["goex-daemon.service"]


def test_a_link_in_the_units_place_is_not_followed(tmp_path: Path) -> None:
    folder = units.folder({"HOME": str(tmp_path)})
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("# Written by `goex notify --install`.\n")
    (folder / "goex-notify.service").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ForeignUnit):
        units.install({"HOME": str(tmp_path)})
    assert (tmp_path / "elsewhere").read_text().count("\n") == 1
