"""The names in a folder, for a prompt: all of them that fit, nothing from outside, nothing of what files hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.errors import InvalidInput
from runtimes.files import folder_names as listing
from runtimes.files.folder_names import names


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    made = tmp_path / "desk"
    made.mkdir(mode=0o700)
    return made


def test_paths_from_the_folder_with_folders_marked(desk: Path) -> None:
    (desk / "b").mkdir()
    (desk / "b" / "c.txt").write_text("content")
    (desk / "a b").touch()
    assert names(str(desk), ()) == (("a b", "b/", "b/c.txt"), 0)


def test_nothing_outside_is_reached_by_a_link_and_no_repository_is_entered(desk: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").touch()
    (desk / "link").symlink_to(tmp_path / "outside")
    (desk / ".git").mkdir()
    (desk / ".git" / "config").touch()
    os.mkfifo(desk / "pipe")
    assert names(str(desk), ()) == ((".git/", "link", "pipe"), 0)


def test_names_that_would_say_something_else_are_escaped(desk: Path) -> None:
    (desk / "a\nb\u202e").touch()
    os.close(os.open(os.fsencode(desk) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    found, _ = names(str(desk), ())
    assert len(found) == 2
    assert all(name.isprintable() and name.encode("utf-8") for name in found)


def test_what_is_left_out_is_counted(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_NAMES", 5)
    for number in range(9):
        (desk / f"{number}").touch()
    assert names(str(desk), ()) == (("0", "1", "2", "3", "4"), 4)
    deep = desk
    monkeypatch.setattr(listing, "MAX_NAMES", 100)
    for _ in range(listing.MAX_DEPTH + 3):
        deep = deep / "d"
        deep.mkdir()
    found, more = names(str(desk), ())
    assert more == 1  # at least: what is deeper wasn't looked at
    assert max(name.count("d/") for name in found) == listing.MAX_DEPTH + 1


def test_a_folder_that_is_not_worked_on_is_not_listed(desk: Path, tmp_path: Path) -> None:
    for folder in ("/etc", str(tmp_path / "nowhere")):
        with pytest.raises(InvalidInput):
            names(folder, ())
    with pytest.raises(InvalidInput):
        names(str(desk), (desk,))


def test_no_descriptor_is_left_open(desk: Path) -> None:
    for number in range(300):
        (desk / f"{number}").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    names(str(desk), ())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
