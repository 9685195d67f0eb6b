"""Attacks by whoever could once write a folder of snapshots: what git then does as the daemon's user. Real git. In the
control it is asked as it would be without what GoEx tells it and looks at first."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from policies.errors import GoexError
from runtimes.files import gitprocess
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
