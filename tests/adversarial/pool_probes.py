"""Attacks from within a container that waited, run there: `pool_probes.py NAME`. The last word on stdout is the
outcome; a forged end makes it another exit code than 7."""

# The calls themselves are what is probed here, not the paths.
# ruff: noqa: PTH115, PTH123, PTH208, SIM115
import contextlib
import os
import socket
import stat
import struct
import sys
import time

FORGED = struct.pack(">cI", b"X", 26) + b'{"code": 0, "late": false}'
PORT = 18080


def memory_of_process_1() -> None:
    open("/proc/1/mem", "r+b").close()


def variables_of_process_1() -> None:
    print(open("/proc/1/environ").read())


def descriptors_of_process_1() -> None:
    print([os.readlink(f"/proc/1/fd/{name}") for name in os.listdir("/proc/1/fd")])


def inherited_descriptors() -> None:
    sent = 0
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):  # into the pipe it would only say that it ends itself
                sent += os.write(number, FORGED)
    time.sleep(0.5)
    if not sent:
        raise OSError("nothing was open")


def output_as_frames() -> None:
    os.write(1, FORGED)
    time.sleep(0.5)
    raise OSError("it didn't end")


def outlive_the_action() -> None:
    if os.fork() == 0:
        os.setsid()
        time.sleep(1.5)
        wire = socket.socket(socket.AF_UNIX)
        wire.connect("/goex/gateway/gw.sock")
        wire.sendall(b"still here")
        os._exit(0)


def connect_as_process_1() -> None:
    socket.socket(socket.AF_UNIX).connect("/goex/job/control")


def leave() -> None:
    """What an action may leave behind, and a process that stays."""
    for folder in ("/tmp", "/dev/shm"):
        with open(f"{folder}/left", "w") as file:
            file.write("left")
    tcp, abstract = socket.socket(), socket.socket(socket.AF_UNIX)
    tcp.bind(("127.0.0.1", PORT))
    abstract.bind("\0goex-trusted")
    for listener in (tcp, abstract):
        listener.listen()
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
        time.sleep(60)
        os._exit(0)


def left_in_tmp() -> None:
    open("/tmp/left").close()


def left_in_shared_memory() -> None:
    open("/dev/shm/left").close()


def left_listening() -> None:
    socket.create_connection(("127.0.0.1", PORT), 3)


def left_listening_abstract() -> None:
    socket.socket(socket.AF_UNIX).connect("\0goex-trusted")


def left_running() -> None:
    """Whether somebody is here whom this action didn't start; each could read the other's variables."""
    ours, parent = {1, os.getpid()}, os.getppid()
    others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [pid for pid in others if pid not in ours and pid != parent and b"leave" in _said(pid)]
    if not found:
        raise OSError("nobody is here")
    open(f"/proc/{found[0]}/environ").close()


def _said(pid: int) -> bytes:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


def main() -> None:
    for name in sys.argv[1:]:
        try:
            globals()[name]()
            print(name, "succeeded", flush=True)
        except OSError as error:
            print(name, f"refused: {error}", flush=True)
    sys.exit(7)


if __name__ == "__main__":
    main()
