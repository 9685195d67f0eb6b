"""Run by test_polkit.py in a mount namespace of its own, as root: a system bus and the real polkitd at their usual
places, the rules that were given, a GoEx daemon of an ordinary user. Prints what came of it as JSON.

    polkit_probe.py FOLDER MODE RULE
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import grpc

from goex.units.places import POLICY
from tests.support.bus import CONFIG
from tests.support.waiting import until

USER = 65534
BUS = Path("/run/dbus/system_bus_socket")
POLKITD = "/usr/lib/polkit-1/polkitd"
RULE = 'polkit.addRule(function(action, subject) { if (action.id == "org.goex.approve") return %s; });'


def mounted(*places: str) -> None:
    for place in places:
        Path(place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", place], check=True)


def readable(prefix: Path) -> None:
    """Let the ordinary user run this Python, also where it lies in a closed home: in this namespace alone."""
    closed = next((each for each in (*reversed(prefix.parents), prefix) if each.stat().st_mode & 0o005 != 0o005), None)
    if closed is None or closed == prefix:
        return
    Path("/mnt/python").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", prefix, "/mnt/python"], check=True)
    mounted(str(closed))
    prefix.mkdir(parents=True)
    subprocess.run(["mount", "--bind", "/mnt/python", prefix], check=True)


def main() -> None:
    folder, mode, rule = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    mounted("/mnt", "/run/dbus", "/etc/polkit-1/rules.d", "/usr/share/polkit-1/actions")
    if rule != "no policy":
        Path("/usr/share/polkit-1/actions/org.goex.policy").write_text(POLICY.read_text())
    if rule in ("YES", "NO", "AUTH_SELF"):
        Path("/etc/polkit-1/rules.d/10-goex.rules").write_text(RULE % f"polkit.Result.{rule}")
    readable(Path(sys.base_prefix))
    if rule != "no bus":
        (folder / "bus.conf").write_text(CONFIG.format(socket=BUS))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        command = ["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile"]
        subprocess.Popen(command, **quiet)  # type: ignore[call-overload]  # ends with the namespace
        until(BUS.exists)
        if rule != "no polkit":
            polkit = subprocess.Popen([POLKITD, "--no-debug"], **quiet)  # type: ignore[call-overload]
            until(lambda: b"PolicyKit1" in names())
            if rule == "stopped":
                os.kill(polkit.pid, 19)
    os.chown(folder, USER, USER)
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    print(json.dumps(asked(mode)))


def names() -> bytes:
    command = [
        "dbus-send",
        "--system",
        "--print-reply",
        "--dest=org.freedesktop.DBus",
        "/",
        "org.freedesktop.DBus.ListNames",
    ]
    return subprocess.run(command, capture_output=True, check=False).stdout


def asked(mode: str) -> dict[str, object]:
    """What the daemon says to an ordinary user who adds an agent: with no passphrase, a wrong one, the right one."""
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import vault_pb2 as vpb
    from tests.goex.daemon.vault_calls import call
    from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
    from tests.support.journey import problem

    found: dict[str, object] = {}
    with Daemon(config=f"[ask]\npolkit = {mode}\n") as daemon:
        for what, passphrase in (("none", ""), ("wrong", "not the passphrase"), ("right", APPROVAL_PASSPHRASE)):
            try:
                daemon.person("AddAgent", pb.AddAgentRequest(name=f"agent-{what}", passphrase=passphrase))
                found[what] = "done"
            except grpc.RpcError as error:
                found[what] = problem(error).code
        try:
            daemon.person("Present", pb.PresentRequest(passphrase=APPROVAL_PASSPHRASE))
            found["present"] = "done"
        except grpc.RpcError as error:
            found["present"] = problem(error).code
        try:
            call(
                daemon,
                "ChangeApproval",
                vpb.ChangeApprovalRequest(current=APPROVAL_PASSPHRASE, passphrase="another one"),
            )
            found["change"] = "done"
        except grpc.RpcError as error:
            found["change"] = problem(error).code
        found["log"] = daemon.tail()
    return found


main()
