"""Claude Code and Codex from npm, by the pins of package-lock.json, in .cache/coding-agents."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "coding-agents"


def client(name: str) -> str:
    """The command of a client, installed when it is missing. Skips the test where that can't be."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm isn't installed")
    lock = (HERE / "package-lock.json").read_bytes()
    place = CACHE / hashlib.sha256(lock).hexdigest()[:16]
    if not place.exists():
        fresh = place.with_name(f"{place.name}.{os.getpid()}")
        fresh.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, fresh)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        said = subprocess.run(
            command, cwd=fresh, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=550, check=False
        )
        if said.returncode:
            shutil.rmtree(fresh, ignore_errors=True)
            pytest.skip(f"npm can't install the clients: {said.stderr.strip()[-200:]}")
        fresh.rename(place)
    # Claude's own script, which would link the program of this platform, isn't run.
    own = next((place / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude"), None)
    return str(own if name == "claude" and own else place / "node_modules" / ".bin" / name)
