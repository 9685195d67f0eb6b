"""Run by test_polkit.py in a mount namespace of its own, as root. For each case of a mode and a rule: a system bus and
the real polkitd at their usual places, that rule, a GoEx daemon of an ordinary user. Prints what came of each as JSON.

    polkit_probe.py FOLDER CASES
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    folder, cases = Path(sys.argv[1]), json.loads(sys.argv[2])
    mounted("/mnt", "/run/dbus", "/etc/polkit-1/rules.d", "/usr/share/polkit-1/actions")
    readable(Path(sys.base_prefix))
    (folder / "bus.conf").write_text(CONFIG.format(socket=BUS))
    os.chown(folder, USER, USER)
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        ask(theirs)
        os._exit(0)
    theirs.close()
    found = []
    with ours.makefile("rw") as lines:
        for mode, rule in cases:
            with authority(folder, rule):
                print(mode, file=lines, flush=True)
                found.append(json.loads(lines.readline()))
    print(json.dumps(found))


@contextmanager
def authority(folder: Path, rule: str) -> Iterator[None]:
    """Polkit as the case has it."""
    policy = Path("/usr/share/polkit-1/actions/org.goex.policy")
    rules = Path("/etc/polkit-1/rules.d/10-goex.rules")
    if rule != "no policy":
        policy.write_text(POLICY.read_text())
    if rule in ("YES", "NO", "AUTH_SELF"):
        rules.write_text(RULE % f"polkit.Result.{rule}")
    processes: list[subprocess.Popen[bytes]] = []
    if rule != "no bus":
        processes.append(quietly("dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--nopidfile"))
        until(BUS.exists)
        if rule != "no polkit":
            processes.append(quietly(POLKITD, "--no-debug"))
            until(lambda: b"PolicyKit1" in names())
    try:
        yield
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        for file in (BUS, policy, rules):
            file.unlink(missing_ok=True)


def quietly(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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


def ask(link: socket.socket) -> None:
    """As the ordinary user, a daemon for each mode that is asked for, and what it says."""
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    from tests.support.daemon import Daemon
    from tests.support.forks import ForkServer

    with ForkServer() as Daemon.forks, link.makefile("rw") as lines:
        for mode in lines:
            try:
                found = asked(mode.strip())
            except Exception as error:  # it is this case's alone
                found = dict.fromkeys(("none", "wrong", "right", "present", "change"), "") | {"log": repr(error)}
            print(json.dumps(found), file=lines, flush=True)


def asked(mode: str) -> dict[str, str]:
    """What the daemon says to an ordinary user who adds an agent: with no passphrase, a wrong one, the right one."""
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import vault_pb2 as vpb
    from tests.goex.daemon.vault_calls import call
    from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
    from tests.support.journey import problem

    found: dict[str, str] = {}
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


if __name__ == "__main__":
    main()
