"""A home as an older GoEx left it: it opens, verifies, keeps its grants, and what was done then is undone now.

tests/vectors/state-first.tar.gz was written at commit 5490475. `scout` ran a program on `notes` and an update in
`shop.db`, both allowed once; then a program allowed for good, which was undone. Paths are part of what was allowed, so
the home lies where it lay.
"""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.journey import Journey, shell, undo

VECTOR = Path(__file__).parents[1] / "vectors" / "state-first.tar.gz"
HOME = Path("/tmp/goex-state-of-0")
TOKEN = "goex_PZoVCp8sLpF1Hwlr2BTrH3lB_6S4Scp2DXxI_Yyi_3s"  # scout's, good in that home alone
CONFIG = "[grants]\nunused_days = 0\n[files]\nkeep_days = 36500\n"  # what was written stays as old as it is
FILES, SQL, UNDONE = "a-0185f809f4af", "a-5207f7de1046", "a-e191ebd04c1a"
UNTIL = datetime(2027, 11, 23, 18, 49, 26, tzinfo=UTC)  # no grant lasts longer than a year

pytestmark = pytest.mark.docker


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with HOME.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir(0o700)
        # GNU tar: tarfile's times are floats, and a file whose nanoseconds differ was touched.
        subprocess.run(["tar", "-xzpf", VECTOR, "--no-same-owner", "-C", HOME], check=True)
        with Daemon(home=HOME, init=False, config=CONFIG) as running:
            running.unlock()
            yield running


def verified(daemon: Daemon) -> bool:
    done = daemon.goex("log", "--verify")
    return done.returncode == 0 and done.stdout.startswith("The journal is whole: ")


def contents(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def test_what_an_older_version_did_is_listed_verified_and_undone(daemon: Daemon) -> None:
    assert verified(daemon)
    listed = daemon.goex("log").stdout
    assert all(id in listed for id in (FILES, SQL, UNDONE)), listed
    assert contents(HOME / "notes") == {"plan.txt": "second\n", "new/file": "made\n"}
    for id in (SQL, FILES):
        assert Journey(daemon, undo(id), person=True).approve().action.state == "done"
    assert contents(HOME / "notes") == {"plan.txt": "first\n", "old.txt": "gone soon\n"}
    assert sqlite3.connect(HOME / "shop.db").execute("SELECT price FROM item ORDER BY id").fetchall() == [(2,), (5,)]
    assert verified(daemon)


def test_a_grant_of_an_older_version_holds_for_its_agent_and_folder_alone(daemon: Daemon) -> None:
    assert f"{UNTIL:%Y-%m-%d %H:%M:%S}" in daemon.goex("grants", "--all").stdout
    program = "echo third >> plan.txt"
    journey = Journey(daemon, shell(HOME / "notes", program), token=TOKEN)
    if datetime.now(UTC) < UNTIL:
        assert journey.finished().action.state == "done"
    else:
        journey.asked()
    for folder, token in ((HOME / "notes", daemon.add_agent("other")), (HOME / "elsewhere", TOKEN)):
        folder.mkdir(exist_ok=True)
        Journey(daemon, shell(folder, program), token=token).asked()
    assert verified(daemon)
