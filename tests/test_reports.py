"""A run of tests in several processes tells what its tests said, whatever that is, and what ended it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SAYS = (
    "import logging\ndef test_it():\n    logging.getLogger('x').error('record \\ud800')\n    assert False",
    "import warnings\ndef test_it():\n    warnings.warn('warning \\ud800')\n    assert False",
    "def test_it():\n    raise ValueError('failure \\ud800')",
)
ENDS = "import pytest\n@pytest.fixture(autouse=True)\ndef _ends(request):\n    request.node.repr_failure = None\n"

DESTRUCTORS = """
import ast, gc
class Kept:
    def __init__(self):
        self.itself = self
    def __del__(self):
        raise ValueError("bad")
def test_it():
    gc.set_threshold(1)
    for _ in range(2000):
        Kept()
        ast.parse("a = (b + c) * [d, e(f)]")
"""


def run(folder: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    for number, program in enumerate(programs):
        (folder / f"test_{number}.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--rootdir", str(folder), "-c", os.devnull]
    command += ["-p", "xdist.plugin", "-p", "tests.reports", "-p", "no:cacheprovider", str(folder)]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, timeout=300, check=False)


def test_what_isnt_utf8_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    """Nor does a destructor that raises during a parse end it."""
    done = run(tmp_path, *SAYS, DESTRUCTORS, "def test_good():\n    pass")
    assert done.returncode == 1
    assert "3 failed, 2 passed" in done.stdout
    for said in ("x:test_0.py:3 record \\ud800", "UserWarning: warning \\ud800", "E       ValueError: failure \\ud800"):
        assert said in done.stdout
    assert "ValueError: bad" in done.stdout


def test_what_ended_the_run_stands_at_its_end(tmp_path: Path) -> None:
    done = run(tmp_path, ENDS + "def test_it():\n    assert False", "def test_good():\n    pass")
    assert done.returncode == 3
    assert "'NoneType' object is not callable" in done.stderr.partition("What ended the run:")[2]
