"""Packages of npm that tests need, by the pins and hashes of a package-lock.json, in a folder of .cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

_CACHE = Path(__file__).resolve().parents[2] / ".cache"


def node_modules(source: Path, name: str) -> Path:
    """The packages that `source` pins, installed when they are missing. Skips the test where that can't be."""
    npm = shutil.which("npm")
    lock = (source / "package-lock.json").read_bytes()
    place = _CACHE / name / hashlib.sha256(lock).hexdigest()[:16]
    if place.exists():
        return place / "node_modules"
    if npm is None:
        pytest.skip("npm isn't installed")
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(source / file, fresh)
    # No script of a package runs: none of these needs one, and it would run as whoever tests.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    said = subprocess.run(
        command, cwd=fresh, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=550, check=False
    )
    if not said.returncode:
        with suppress(OSError):  # another test was first
            fresh.rename(place)
    shutil.rmtree(fresh, ignore_errors=True)
    if said.returncode:
        pytest.skip(f"npm can't install {name}: {said.stderr.strip()[-200:]}")
    return place / "node_modules"
