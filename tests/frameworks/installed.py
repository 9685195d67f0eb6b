"""The frameworks by the pins of requirements.txt, in an environment of their own in .cache/frameworks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def python() -> Path:
    """An interpreter that has the frameworks, installed when they are missing. Skips the test where that can't be."""
    pins = HERE / "requirements.txt"
    digest = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()[:16]
    place = ROOT / ".cache" / "frameworks" / digest
    found = place / "bin" / "python"
    if (place / ".done").exists():
        return found
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=550)
    install = [str(found), "-m", "pip", "--disable-pip-version-check", "install", "-q", "-r", str(pins)]
    said = subprocess.run(install, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=700, check=False)
    if said.returncode:
        pytest.skip(f"the frameworks can't be installed: {said.stderr.strip()[-200:]}")
    (place / ".done").touch()
    return found


def environment(**more: str) -> dict[str, str]:
    """Of a program that uses them: the client is this checkout's."""
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "PYTHONUNBUFFERED": "1"}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "clients" / "python"), **quiet, **more}
