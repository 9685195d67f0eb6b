"""The shim: real programs that know nothing of Unix sockets reach the gateway through it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from policies.accounts import Origin
from tests.runtimes.gateway.support import TestCA, account, lease, opened, plan, planned, serving

SHIM = Path(__file__).parents[3] / "sandbox-images" / "base" / "goex" / "shim.py"

URLLIB = """
import json, sys, urllib.request
request = urllib.request.Request(sys.argv[1], json.dumps({"text": "hi"}).encode(), {"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request) as answer:
        print(answer.status, answer.headers["x-goex-well"], answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed", error)
"""


@pytest.fixture(scope="module")
def shim() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shim", SHIM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def program(*argv: str, env: dict[str, str] | None = None) -> tuple[int | None, str]:
    made = await asyncio.create_subprocess_exec(
        *argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": os.environ["PATH"], **(env or {})}
    )
    out, _ = await asyncio.wait_for(made.communicate(), 30)
    return made.returncode, out.decode()


async def through(
    tmp_path: Path, command: list[str], shim_module: ModuleType | None = None, **changes: Any
) -> tuple[Any, Any]:
    """Run a command behind the shim, against a gateway whose plan has one POST. {url} is filled in."""
    ca = TestCA()
    async with serving(ca.context("localhost")) as server:
        origin = Origin("https", "localhost", server.port)
        async with opened(plan(planned(origin, **changes)), [lease(account(origin, ca_pem=ca.pem))], tmp_path) as (
            box,
            watch,
        ):
            pem = tmp_path / "ca.pem"
            pem.write_text(box.container.ca_pem)
            sock = box.container.socket
            argv = [part.replace("{url}", f"{origin}/api/messages") for part in command]
            if shim_module is None:
                run = [sys.executable, str(SHIM), "--port", "0", "--socket", sock, "--ca", str(pem), "--", *argv]
                return await program(*run), watch
            port = shim_module.start(path=sock)
            return await program(*argv, env=shim_module.environment(port, ca=str(pem))), watch


async def test_a_program_behind_the_wrapper(tmp_path: Path) -> None:
    (code, out), watch = await through(tmp_path, [sys.executable, "-c", URLLIB, "{url}"])
    assert (code, out.split(" ", 2)[:2]) == (0, ["200", "1"]), out
    assert json.loads(out.split(" ", 2)[2]) == {"ok": True, "id": "m-1"}
    assert len(watch.exchanges) == 1


async def test_a_program_behind_the_thread(tmp_path: Path, shim: ModuleType) -> None:
    (code, out), _ = await through(tmp_path, [sys.executable, "-c", URLLIB, "{url}"], shim)
    assert (code, out[:5]) == (0, "200 1"), out


async def test_a_refusal_reaches_the_program(tmp_path: Path, shim: ModuleType) -> None:
    (_, out), watch = await through(tmp_path, [sys.executable, "-c", URLLIB, "{url}"], shim, path=("other",))
    assert out.startswith("403 ")
    assert "goex-refused" in out
    assert len(watch.refusals) == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl isn't installed")
async def test_curl(tmp_path: Path) -> None:
    command = ["curl", "-sS", "--json", '{"text":"hi"}', "{url}"]
    (code, out), _ = await through(tmp_path, command)
    assert code == 0, out
    assert json.loads(out)["ok"] is True


async def test_the_wrapper_becomes_the_command(tmp_path: Path) -> None:
    run = [sys.executable, str(SHIM), "--port", "0", "--"]
    assert (await program(*run, "sh", "-c", "echo $https_proxy; exit 7"))[0] == 7
    code, out = await program(*run, str(tmp_path / "missing"))
    assert (code, "missing" in out) == (127, True)
    assert (await program(sys.executable, str(SHIM)))[0] == 2
    code, out = await program(*run, "sh", "-c", "echo $$; ps -o ppid= -p $$ >/dev/null; exec sleep 0")
    assert code == 0


async def test_no_pump_stays_behind(tmp_path: Path) -> None:
    code, out = await program(
        sys.executable, str(SHIM), "--port", "0", "--", "sh", "-c", "cat /proc/$$/task/$$/children; kill -9 $$"
    )
    assert code == -9
    child = int(out.split()[0])
    for _ in range(60):
        if not _alive(child):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the pump still runs")


def _alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def test_a_socket_that_is_gone_is_an_error_not_a_hang(tmp_path: Path, shim: ModuleType) -> None:
    port = shim.start(path=str(tmp_path / "nothing"))
    env = shim.environment(port, ca="/nonexistent")
    code, out = await program(sys.executable, "-c", URLLIB, "https://localhost/x", env=env)
    assert (code, "502" in out) == (0, True), out
