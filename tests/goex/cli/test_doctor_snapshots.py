"""What `goex doctor` says of the room that snapshots take."""

from __future__ import annotations

from pathlib import Path

import pytest

from goex.cli.doctor import Check, checks


def snapshots(home: Path) -> list[Check]:
    env = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    return [check for check in checks(env, quick=True) if check.name == "snapshots"]


def test_the_room_that_snapshots_take_is_said_and_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert snapshots(tmp_path) == []
    config = tmp_path / "config" / "goex"
    config.mkdir(mode=0o700, parents=True)
    (config / "config.toml").write_text("[files]\nquota = 1000000\n")
    (config / "config.toml").chmod(0o600)
    repository = tmp_path / "state" / "goex" / "snapshots" / "x.git"
    repository.mkdir(parents=True)
    (repository / "pack").write_bytes(b"x" * 500_000)
    (found,) = snapshots(tmp_path)
    assert found.ok and "of at most 1.0 MB" in found.says and "503.8 kB" in found.says
    (repository / "more").write_bytes(b"x" * 450_000)
    (found,) = snapshots(tmp_path)
    assert not found.ok and not found.needed and "goex commit" in found.mend
