"""The README's first command does what it says, without a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.synapse import find_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.docker
@pytest.mark.synapse
@pytest.mark.slow
@pytest.mark.skipif(find_python() is None, reason="the homeserver's environment isn't there: make services")
def test_the_demo_does_the_main_job_and_leaves_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "demo" / "demo.py")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
        start_new_session=True,  # no controlling terminal to ask on
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for said in (
        "every byte and mode as before",
        "the room, asked directly: ['Dinner is at eight']",
        "the room, asked directly: []",
        "The journal is whole",
    ):
        assert said in done.stdout
    assert done.stdout.count("? more  ") == 4
    home = next(word for word in done.stdout.split() if "/goex-demo-" in word)
    assert not Path(home).parent.exists()
