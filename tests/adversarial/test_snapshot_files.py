"""Attacks by whoever could once write a folder of snapshots: what git then does as the daemon's user. Real git. In the
control it is asked as it would be without what GoEx tells it and looks at first."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import GoexError
from runtimes.files import gitprocess, kept_copies, previews, quota, snapshot
from runtimes.files.kept_copies import KeptCopies
from runtimes.files.snapshot import Repository
from runtimes.files.tree import Bounds, Walk

Plant = Callable[[Path, str], None]


def hook(repository: Path, command: str) -> None:
    """git runs it whenever a name of a snapshot comes or goes."""
    (repository / "hooks").mkdir(exist_ok=True)
    file = repository / "hooks" / "reference-transaction"
    file.write_text(f"#!/bin/sh\n{command}\n")
    file.chmod(0o700)


_REMOTE = """
[extensions]
	partialClone = origin
[remote "origin"]
	promisor = true
	url = ext::sh %s
[protocol "ext"]
	allow = always
"""


def lazy(repository: Path, command: str) -> None:
    """git runs it when something is missing that such a repository fetches when it is needed."""
    script = repository.with_name("fetched.sh")
    script.write_text(f"{command}\n")
    with (repository / "config").open("a") as config:
        config.write(_REMOTE % script)
    for pack in (repository / "objects" / "pack").iterdir():
        pack.unlink()


def elsewhere(repository: Path, command: str) -> None:
    """The same, in a configuration beside it, which git reads instead."""
    beside = repository.with_name("beside")
    beside.mkdir()
    subprocess.run(["cp", "-r", *map(str, repository.iterdir()), str(beside)], check=True)
    hook(beside, command)
    (repository / "commondir").write_text(str(beside))


def linked(repository: Path, shared: Path) -> None:
    """Contents go where others look."""
    shared.mkdir(mode=0o777)
    pack = repository / "objects" / "pack"
    for file in pack.iterdir():
        file.rename(shared / file.name)
    pack.rmdir()
    pack.symlink_to(shared)


PLANTED: dict[str, Plant] = {"a_hook": hook, "a_remote": lazy, "another_configuration": elsewhere}


def came_elsewhere(tmp_path: Path) -> bool:
    """Whether what a folder holds later is in a place of others."""
    work, place, shared = tmp_path / "work", tmp_path / "snapshots" / "one.git", tmp_path / "shared"
    work.mkdir()
    root = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        Repository(place).save("a-1/before", Walk(bounds=Bounds()), root)
        linked(place, shared)
        before = len(list(shared.iterdir()))
        (work / "a").write_text("a")
        with suppress(GoexError):
            Repository(place).save("a-2/before", Walk(bounds=Bounds()), root)
    finally:
        os.close(root)
    return len(list(shared.iterdir())) > before


def ran(tmp_path: Path, name: str) -> bool:
    """Whether a command that was left in a repository ran once the repository was used again."""
    work, place, marker = tmp_path / "work", tmp_path / "snapshots" / "one.git", tmp_path / "ran"
    work.mkdir()
    (work / "a").write_text("a")
    root = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        oid, _ = Repository(place).save("a-1/before", Walk(bounds=Bounds()), root)
        PLANTED[name](place, f"echo > {marker}")
        again = Repository(place)
        with suppress(GoexError):
            again.load(oid)
        with suppress(GoexError):
            again.drop("a-1")
    finally:
        os.close(root)
    return marker.exists()


@pytest.mark.promise(84)
@pytest.mark.parametrize("name", PLANTED)
def test_nothing_of_it_runs(tmp_path: Path, name: str) -> None:
    assert not ran(tmp_path, name)


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gitprocess, "_OPTIONS", gitprocess._OPTIONS[2:])
    monkeypatch.setattr(gitprocess.Git, "check", lambda self: None)
    monkeypatch.setattr(gitprocess.Git, "files", followed)
    for module in (snapshot, quota, previews):
        monkeypatch.setattr(module, "replace_file", written_over)


def followed(repository: gitprocess.Git) -> list[str]:
    found = os.walk(repository.path, followlinks=True)
    return [os.path.relpath(f"{folder}/{name}", repository.path) for folder, _, names in found for name in names]


def written_over(path: Path, data: bytes, *, durable: bool = False) -> None:
    path.write_bytes(data)


# What of a repository is elsewhere: a folder with files of the person's, or a file.
ELSEWHERE = (
    "refs",
    "refs/goex",
    "refs/goex/a-1",
    "lfs",
    "lfs/tmp",
    "lfs/objects",
    "lfs/objects/ab",
    "previews",
    "undone",
    "latest",
)
_CONTENT = f"abcd{'0' * 60}"
_OWN = ("id", "yarn.lock", "a/poetry.lock", "tmp/a", f"cd/{_CONTENT}", f"ab/cd/{_CONTENT}", f"objects/ab/cd/{_CONTENT}")


def harmed(tmp_path: Path, name: str, link: Callable[[Path, Path], None]) -> bool:
    """Whether files elsewhere are others once the repository was used again."""
    work, place, own = tmp_path / "work", tmp_path / "snapshots" / "one.git", tmp_path / "own"
    work.mkdir()
    root = os.open(work, os.O_RDONLY | os.O_DIRECTORY)

    def use(repository: Repository) -> None:
        (work / "a").write_text("a")
        for step in (
            lambda: previews.expire(repository),
            lambda: quota.mark(repository, "a-1", str(work)),
            lambda: repository.save("a-2/before", Walk(bounds=Bounds()), root),
            lambda: repository.drop("a-1"),
            repository.collect,
        ):
            with suppress(GoexError, OSError):
                step()

    try:
        Repository(place).save("a-1/before", Walk(bounds=Bounds()), root)
        elsewhere = place / name
        elsewhere.parent.mkdir(parents=True, exist_ok=True)
        if elsewhere.exists():
            elsewhere.rename(own)
        if name != "latest":
            for file in _OWN:
                (own / file).parent.mkdir(parents=True, exist_ok=True)
                (own / file).write_text("mine")
                os.utime(own / file, (0, 0))
        link(elsewhere, own)
        before = held(own)
        use(Repository(place))
        return held(own) != before
    finally:
        os.close(root)


def held(own: Path) -> dict[str, bytes]:
    """A file, or all files of a folder, with what they hold."""
    if own.is_file():
        return {"": own.read_bytes()}
    return {str(file.relative_to(own)): file.read_bytes() for file in own.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("name", PLANTED)
def test_control(tmp_path: Path, name: str) -> None:
    assert ran(tmp_path, name)


@pytest.mark.promise(84)
def test_nothing_comes_elsewhere(tmp_path: Path) -> None:
    assert not came_elsewhere(tmp_path)


@pytest.mark.usefixtures("unguarded")
def test_control_elsewhere(tmp_path: Path) -> None:
    assert came_elsewhere(tmp_path)


@pytest.mark.promise(84)
@pytest.mark.parametrize("name", ELSEWHERE)
def test_nothing_elsewhere_is_changed(tmp_path: Path, name: str) -> None:
    assert not harmed(tmp_path, name, Path.symlink_to)


@pytest.mark.usefixtures("unguarded")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_control_changed_elsewhere(tmp_path: Path, name: str) -> None:
    assert harmed(tmp_path, name, Path.symlink_to)


@pytest.mark.promise(84)
def test_a_file_with_another_name_isnt_written_to(tmp_path: Path) -> None:
    assert not harmed(tmp_path, "latest", Path.hardlink_to)


@pytest.mark.usefixtures("unguarded")
def test_control_another_name(tmp_path: Path) -> None:
    assert harmed(tmp_path, "latest", Path.hardlink_to)


@pytest.mark.promise(84)
def test_no_repository_is_made_elsewhere(tmp_path: Path) -> None:
    work, own, place = tmp_path / "work", tmp_path / "own", tmp_path / "snapshots" / "one.git"
    for folder in (work, own, place.parent):
        folder.mkdir()
    place.with_name("one.git.tmp-new").symlink_to(own)
    root = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        Repository(place).save("a-1/before", Walk(bounds=Bounds()), root)
    finally:
        os.close(root)
    assert not place.is_symlink() and not held(own)


def copied_elsewhere(tmp_path: Path) -> bool:
    """Whether the copy that a program worked on comes to where the folder of such copies is a link to."""
    own, place, copy = tmp_path / "own", tmp_path / "snapshots" / "copies", tmp_path / "snapshots" / "work" / "a-1"
    for folder in (own, copy / "tree"):
        folder.mkdir(parents=True)
    (copy / "tree" / "a").write_text("a")
    root = os.open(copy / "tree", os.O_RDONLY | os.O_DIRECTORY)
    try:
        made = Walk(bounds=Bounds()).run(root)
    finally:
        os.close(root)
    place.symlink_to(own)
    KeptCopies(place).keep("/folder", copy, replace(made, settled=True))
    return bool(held(own)) or not place.is_symlink()


@pytest.mark.promise(84)
def test_no_copy_is_kept_elsewhere(tmp_path: Path) -> None:
    assert not copied_elsewhere(tmp_path)


def test_control_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_copies, "make_private", lambda folder: None)
    assert copied_elsewhere(tmp_path)
