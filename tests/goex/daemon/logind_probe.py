"""Run by test_logind.py in a mount namespace of its own, as root: a system bus at its usual place, logind's interface
on it, and a GoEx daemon that hears it. Prints what came of it as JSON.

    logind_probe.py FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.support.bus import CONFIG, Login1
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.waiting import until

BUS = Path("/run/dbus/system_bus_socket")


async def main() -> None:
    folder = Path(sys.argv[1])
    BUS.parent.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(BUS.parent)]
    await asyncio.to_thread(subprocess.run, mount, check=True)
    (folder / "bus.conf").write_text(CONFIG.format(socket=BUS))
    command = ["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile"]
    bus = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    try:
        await asyncio.to_thread(until, BUS.exists)
        login = Login1(os.geteuid())
        await login.serve(f"unix:path={BUS}")
        with Daemon() as daemon:
            print(json.dumps(await story(daemon, login)))
        login.close()
    finally:
        bus.kill()
        await bus.wait()


async def story(daemon: Daemon, login: Login1) -> dict[str, Any]:
    def status() -> pb.StatusReply:
        return daemon.person("Status", pb.StatusRequest())

    def sealed() -> bool:
        return status().vault == "sealed"

    found: dict[str, Any] = {}
    await asyncio.to_thread(until, lambda: "on lock, before sleep" in status().sealing)
    found["says"] = status().sealing
    await login.lock()
    await asyncio.to_thread(until, sealed)
    found["lock"] = status().vault_trouble
    await asyncio.sleep(0.5)
    await login.signal(login.session_path, "org.freedesktop.login1.Session", "Unlock")
    await login.hint(False)
    await asyncio.sleep(0.5)
    found["after unlocking the screen"] = status().vault
    await asyncio.to_thread(daemon.unlock)
    found["held"] = login.held
    await login.sleep(True)
    await asyncio.to_thread(until, lambda: login.held == 0)
    found["when the machine may sleep"] = status().vault
    found["sleep"] = status().vault_trouble
    await login.sleep(False)
    await asyncio.to_thread(until, lambda: login.held == 1)
    found["awake"] = status().vault
    await asyncio.to_thread(daemon.unlock)
    add = pb.AddAgentRequest(name="later", passphrase=APPROVAL_PASSPHRASE)
    await asyncio.to_thread(daemon.person, "AddAgent", add)
    return found


asyncio.run(main())
