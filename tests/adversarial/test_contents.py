"""Attacks on what others may read in a folder of root's, by a content that comes under a name that was there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from runtimes.files import workcopy
from tests.adversarial.test_folders import OTHER, Rights, attacked, needs_root, of_other, taken_over
from tests.runtimes.files.conftest import owned, place, roots, state

__all__ = ["owned", "place", "roots", "state"]

SECRET = "precious"  # of z-secret, which is root's alone


def read_by_other(folder: Path) -> bool:
    """Whether OTHER can read that content, as its owner or as everyone can."""
    return any(
        path.read_text() == SECRET and (at.st_uid == OTHER or at.st_mode & stat.S_IROTH)
        for path in folder.iterdir()
        if path.is_file() and (at := path.stat())
    )


ATTACKS = {
    "private_over_an_open_name": Rights(
        "import os; os.rename('z-secret', 'file'); os.chmod('file', 0o644)", read_by_other
    ),
    "private_written_into_an_open_file": Rights("open('file', 'w').write(open('z-secret').read())", read_by_other),
    "private_and_open_exchanged": Rights(
        "import os; a, b = open('file').read(), open('z-secret').read();"
        "open('file', 'w').write(b); open('z-secret', 'w').write(a)",
        read_by_other,
    ),
    "private_written_into_anothers_file": Rights(
        "open('a-mine', 'w').write(open('z-secret').read())", read_by_other, of_other
    ),
    "private_over_anothers_name": Rights("import os; os.rename('z-secret', 'a-mine')", read_by_other, of_other),
}


@pytest.mark.promise(59)
@pytest.mark.sampled(2)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_refused(name: str, roots: Path, state: Path) -> None:
    before, after, outcome = await attacked(ATTACKS[name], roots, state)
    assert not before
    assert not after
    assert any(line.startswith("not applied: ") for line in outcome.changes)


@pytest.mark.sampled(1)
@needs_root
@pytest.mark.parametrize("name", ATTACKS)
async def test_control(name: str, roots: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workcopy, "target", taken_over)
    _, after, _ = await attacked(ATTACKS[name], roots, state)
    assert after


@needs_root
async def test_what_was_open_may_be_copied(roots: Path, state: Path) -> None:
    """A content that everyone could read before comes under any name."""

    def got(folder: Path) -> int:
        return stat.S_IMODE((folder / "same").stat().st_mode) if (folder / "same").exists() else 0

    program = "import os, shutil; shutil.copy('file', 'same'); shutil.copy('file', 'other')"
    other = Rights(program, got, lambda folder: (folder / "other").write_text("x"))
    _, after, outcome = await attacked(other, roots, state)
    assert after == 0o644
    assert (roots / "other").read_text() == "plain"
    assert not any(line.startswith("not applied: ") for line in outcome.changes)
    assert os.getuid() == (roots / "other").stat().st_uid
