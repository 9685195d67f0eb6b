"""Odd trees: deeper than any path may be long, nested repositories, holes, files that nobody may change."""

# Small calls on folders that have no path, and programs that end at once.
# ruff: noqa: ASYNC221, ASYNC240, PTH208

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import Conflict
from runtimes.files.handles import remove_tree
from tests.fakes.unsafe_no_sandbox import UnsafeNoSandbox
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo

DEEP = 60
LONG = "d" * 200  # 60 levels of it are 12,000 bytes: no system call takes such a path


def step_down(top: Path, levels: int, *, make: bool) -> int:
    """The folder that many levels below, open. Its path can't be written."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        if make:
            os.mkdir(LONG, dir_fd=fd)
        inner = os.open(LONG, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    return fd


def write(fd: int, name: str, text: str) -> None:
    file = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666, dir_fd=fd)
    os.write(file, text.encode())
    os.close(file)


def read(fd: int, name: str) -> str:
    file = os.open(name, os.O_RDONLY, dir_fd=fd)
    try:
        return os.read(file, 100).decode()
    finally:
        os.close(file)


@pytest.fixture
def deep(roots: Path) -> Iterator[Path]:
    fd = step_down(roots, DEEP, make=True)
    write(fd, "file", "as it was")
    os.close(fd)
    yield roots
    for name in os.listdir(roots):
        with_fd = os.open(roots, os.O_RDONLY)
        remove_tree(with_fd, os.fsencode(name))
        os.close(with_fd)


@pytest.mark.parametrize("large", [10**9, 5], ids=["packed", "large"])
async def test_a_tree_deeper_than_a_path_may_be_long(deep: Path, state: Path, large: int) -> None:
    def deed(top: Path) -> None:
        fd = step_down(top, DEEP, make=False)
        write(fd, "file", "changed")
        os.mkdir("new", dir_fd=fd)
        os.close(fd)

    way = Way(runtime(state, UnsafeNoSandbox(deed), large=large), deep)
    assert (await way.do()).ok
    for verb, text, names in (
        ("", "changed", ["file", "new"]),
        ("undo", "as it was", ["file"]),
        ("redo", "changed", ["file", "new"]),
    ):
        if verb:
            assert (await way.revert(verb)).ok
        fd = step_down(deep, DEEP, make=False)
        assert (read(fd, "file"), sorted(os.listdir(fd))) == (text, names)
        os.close(fd)


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "safe.directory=*", "-c", "gc.auto=0")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


async def test_a_repository_in_the_folder_is_files_as_any_others(owned: Path, state: Path) -> None:
    inner = owned / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / ".gitattributes").write_text("*.txt text eol=crlf\n*.c ident filter=nope\n")
    (inner / ".gitignore").write_text("ignored\n")
    (inner / "a.txt").write_bytes(b"a\r\nb\n")
    (inner / "b.c").write_bytes(b"$Id$\n")
    (inner / "ignored").write_text("ignored")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "a")
    (inner / "a.txt").write_bytes(b"staged\r\n")
    git(inner, "add", "a.txt")
    before, head = photo(owned), git(inner, "rev-parse", "HEAD")

    def deed(top: Path) -> None:
        git(top / "inner", "commit", "-q", "-m", "b")
        git(top / "inner", "checkout", "-q", "-b", "other")
        git(top / "inner", "gc", "-q", "--prune=now")
        (top / "inner" / "ignored").unlink()

    way = Way(runtime(state, UnsafeNoSandbox(deed)), owned)
    assert (await way.do()).ok
    after = photo(owned)
    assert git(inner, "rev-parse", "HEAD") != head
    assert (await way.revert("undo")).ok
    assert photo(owned) == before
    assert git(inner, "rev-parse", "HEAD") == head and "a.txt" in git(inner, "diff", "--cached", "--name-only")
    git(inner, "fsck", "--full", "--strict")
    assert (await way.revert("redo")).ok
    assert photo(owned) == after


async def test_holes_come_back_as_holes(owned: Path, state: Path) -> None:
    with (owned / "sparse").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(30 << 20)
        file.write(b"here")
    before = photo(owned)
    made = runtime(state)
    way = Way(made, owned, "rm sparse")
    assert (await way.do()).ok
    assert (await way.revert("undo")).ok
    assert photo(owned) == before
    assert (owned / "sparse").stat().st_blocks * 512 < 8 << 20
    assert sum(path.stat().st_blocks * 512 for path in state.rglob("*")) < 8 << 20


@pytest.fixture
def fixing() -> Iterator[list[Path]]:
    """Paths put into it are made immutable by the test, and free again after it."""
    found: list[Path] = []
    yield found
    for path in found:
        subprocess.run(["chattr", "-i", str(path)], check=False)


@pytest.mark.promise(66)
@pytest.mark.parametrize("place_of_it", ["file", "folder"])
async def test_what_nobody_may_change_is_refused_before_anything_is_touched(
    owned: Path, state: Path, fixing: list[Path], place_of_it: str
) -> None:
    (owned / "sub").mkdir()
    for name in ("a", "sub/b", "z"):
        (owned / name).write_text(name)

    def deed(top: Path) -> None:
        for name in ("a", "sub/b", "z"):
            (top / name).write_text("changed")

    way = Way(runtime(state, UnsafeNoSandbox(deed)), owned)
    assert (await way.do()).ok
    fixed = owned / "sub" / "b" if place_of_it == "file" else owned / "sub"
    fixing.append(fixed)
    if subprocess.run(["chattr", "+i", str(fixed)], capture_output=True, check=False).returncode:
        pytest.skip("this file system, or user, knows no immutable files")
    after = photo(owned)
    with pytest.raises(Conflict, match="nothing was touched") as refused:
        await way.revert("undo")
    assert any("sub" in line for line in refused.value.difference)
    assert photo(owned) == after
    subprocess.run(["chattr", "-i", str(fixed)], check=True)
    assert (await way.revert("undo")).ok
    assert (owned / "a").read_text() == "a" and (owned / "z").read_text() == "z"
