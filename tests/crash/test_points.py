"""A seeded part of the crash matrix: points of some steps on every engine, or of each step and all that is killed in it
(`make crash` does many more)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SEED = 20_260_102
ROOT = Path(__file__).parents[2]
LONGEST = 1200  # seconds: ten times what it takes alone, so that only a hang ends it


@pytest.mark.slow
@pytest.mark.timeout(LONGEST + 60)
def test_some_points_on_every_engine(thorough: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.run", "1" if thorough else "0", "0", str(SEED)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    points, problems = map(int, re.findall(r"^(\d+) points, (\d+) problems", said, re.MULTILINE)[-1])
    assert (points >= (100 if thorough else 9), problems) == (True, 0), said[-6000:]
