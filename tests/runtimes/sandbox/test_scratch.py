"""The files of jobs lie where no other user of the machine can look, and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from runtimes.sandbox.contract import SandboxFailed
from runtimes.sandbox.job_files import Scratch


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_modes_whatever_the_umask(tmp_path: Path) -> None:
    for umask in (0o000, 0o077):
        previous = os.umask(umask)
        try:
            folder = Scratch(tmp_path / f"s{umask}", "state", "me").put("job", {"a": b"x"})
        finally:
            os.umask(previous)
        assert (mode(folder), mode(folder / "a")) == (0o755, 0o444)
        assert (mode(folder.parent), mode(folder.parent.parent)) == (0o700, 0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_sees_nothing(tmp_path: Path) -> None:
    root = Path("/tmp", f"goex-scratch-test-{os.getpid()}")
    scratch = Scratch(root, "state", "me")
    target = scratch.put("job", {"a": b"x"}) / "a"
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            target.read_bytes()
            os._exit(1)
        except PermissionError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    scratch.close()
    root.rmdir()


def test_a_folder_that_someone_else_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    names = ["link"]
    if os.geteuid() == 0:  # who else could give a folder away?
        (tmp_path / "theirs").mkdir()
        os.chown(tmp_path / "theirs", 65534, 65534)
        names.append("theirs")
    for name in names:
        with pytest.raises(SandboxFailed, match="belongs to someone else"):
            Scratch(tmp_path / name, "state", "me").put("job", {"a": b"x"})


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SandboxFailed, match="can't be written"):
        Scratch(tmp_path / "file" / "x", "state", "me").put("job", {"a": b"x"})


def test_reap_removes_other_instances_and_follows_no_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    dead, mine = Scratch(root, "state", "dead"), Scratch(root, "state", "me")
    dead.put("job", {"a": b"x"})
    kept = mine.put("job", {"a": b"x"})
    (root / "link").symlink_to(outside)
    (root / "dead" / "job2").mkdir()
    (root / "dead" / "job2" / "link").symlink_to(outside)
    mine.reap()
    assert not (root / "dead").exists()
    assert (kept / "a").read_bytes() == b"x"
    assert (outside / "precious").read_text() == "x"
    Scratch(tmp_path / "never made", "state", "me").reap()


def test_a_place_is_found_without_being_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = Scratch(None, "state/../x", "me").put("job", {"a": b"x"})
    assert folder.is_relative_to(tmp_path)
    assert ".." not in str(folder)
