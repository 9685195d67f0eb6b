"""An action, its undo and its redo: the tree is compared by `photo`, which knows nothing of the runtime."""

# By paths and os calls, as the runtime does not do it.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from policies.errors import Conflict, Unsupported
from tests.runtimes.files.desk import Way, runtime
from tests.runtimes.files.photo import photo


def furnish(folder: Path) -> None:
    """A folder with something of everything."""
    (folder / "a.txt").write_text("one\n")
    (folder / "empty").mkdir()
    (folder / "deep").mkdir()
    inner = folder / "deep"
    for level in range(20):
        inner = inner / f"level{level}"
        inner.mkdir()
    (inner / "bottom").write_text("found")
    (folder / "link").symlink_to("a.txt")
    (folder / "etc").symlink_to("/etc")
    (folder / "loop").symlink_to("loop")
    os.link(folder / "a.txt", folder / "hard")
    (folder / "Case").write_text("upper")
    (folder / "case").write_text("lower")
    (folder / "new\nline").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/not-\xff-utf8")).write_text("y")
    with (folder / "sparse").open("wb") as file:
        file.seek(3_000_000)
        file.write(b"end")
    (folder / "crlf.txt").write_bytes(b"one\r\n$Id$\r\n")
    (folder / ".gitattributes").write_text("* text=auto eol=lf ident filter=lfs working-tree-encoding=UTF-16\n")
    (folder / ".gitignore").write_text("*\n")
    subprocess.run(["git", "init", "-q", str(folder / "nested")], check=True)
    (folder / "nested" / "file").write_text("z")
    (folder / "nested" / ".git" / "index.lock").write_text("")
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    os.setxattr(folder / "a.txt", "user.colour", b"blue\0green")
    os.setxattr(folder / "deep", "user.colour", b"red")
    (folder / "closed").mkdir(mode=0o700)
    (folder / "closed" / "in").write_text("in")
    (folder / "closed").chmod(0o500)
    os.utime(folder / "a.txt", ns=(1, 1_000_000_000_123_456_789))
    os.utime(folder / "link", ns=(1, 987_654_321), follow_symlinks=False)
    os.utime(folder / "empty", ns=(1, 5))
    if os.geteuid() == 0:
        owner = os.stat(folder)
        for top, folders, files in os.walk(os.fsencode(folder)):
            for name in [*folders, *files]:
                os.chown(os.path.join(top, name), owner.st_uid, owner.st_gid, follow_symlinks=False)


PROGRAM = """
echo two >> a.txt
rm -rf deep empty nested/.git
mkdir -p made/in
echo hello > made/in/file
mv Case moved
chmod 600 tool
rm link; ln -s /etc/passwd link
rm loop; mkdir loop; echo x > loop/x
mkfifo pipe
ln case case2
touch -d @77 crlf.txt
chmod 700 closed; rm closed/in; chmod 0 closed
: > sparse
mkdir locked; echo in > locked/in; chmod 0 locked
rm refs -r; echo now a file > refs
setfattr -n user.colour -v pink hard 2>/dev/null || true
"""


@pytest.fixture(params=["owned", "roots"])
def folder(request: pytest.FixtureRequest) -> Path:
    """Directly worked on, and worked on as a copy."""
    return Path(request.getfixturevalue(request.param))


@pytest.mark.promise(58)
async def test_undo_and_redo_restore_exactly(folder: Path, state: Path) -> None:
    furnish(folder)
    before = photo(folder)
    way = Way(runtime(state), folder, PROGRAM)
    outcome = await way.do()
    assert outcome.ok, (outcome.summary, outcome.stderr)
    after = photo(folder)
    assert b"/made/in/file" in after and b"/deep" not in after and after[b"/link"][4] == b"/etc/passwd"
    assert {line.split(" ")[0] for line in outcome.changes} >= {"created", "changed", "deleted", "mode"}
    assert "created made/in/file" in outcome.changes

    undone = await way.revert("undo")
    assert undone.ok, undone.summary
    assert photo(folder) == before
    redone = await way.revert("redo")
    assert redone.ok, redone.summary
    assert photo(folder) == after
    assert (await way.revert("undo")).ok
    assert photo(folder) == before


@pytest.mark.promise(60)
async def test_someone_else_s_change_is_a_conflict_and_nothing_is_touched(folder: Path, state: Path) -> None:
    furnish(folder)
    way = Way(runtime(state), folder, PROGRAM)
    assert (await way.do()).ok
    (folder / "crlf.txt").write_text("theirs")
    (folder / "theirs").write_text("new")
    now = photo(folder)
    with pytest.raises(Conflict) as caught:
        await way.revert("undo")
    assert caught.value.difference == ("changed crlf.txt",)  # what is only theirs is in nobody's way
    assert photo(folder) == now


async def test_undo_twice_is_refused(folder: Path, state: Path) -> None:
    furnish(folder)
    way = Way(runtime(state), folder, PROGRAM)
    await way.do()
    await way.revert("undo")
    with pytest.raises(Unsupported):
        await way.revert("undo")


async def test_commit_deletes_the_snapshot_and_ends_undo(folder: Path, state: Path) -> None:
    furnish(folder)
    way = Way(runtime(state), folder, PROGRAM)
    await way.do()
    after = photo(folder)
    assert list((state / "snapshots").glob("*.git"))
    await way.revert("commit")
    assert not list((state / "snapshots").glob("*.git"))
    assert photo(folder) == after
    for verb in ("undo", "redo"):
        with pytest.raises(Unsupported):
            await way.revert(verb)
