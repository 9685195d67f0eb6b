"""Attacks, run inside a container: `main`, with their names as arguments, prints one JSON object, name to what came
of it. kernel_probes.py holds more of them; `PROGRAM` of test_container.py is both in one file.

A probe returns when its attack succeeded and raises when it was refused. Each runs in a process of its own, so that
one that is killed counts as refused and disturbs no other. System call numbers are those of x86-64.
"""

# The calls themselves are what is probed here, not the paths.
# ruff: noqa: PTH101, PTH116, PTH123
from __future__ import annotations

import ctypes
import json
import mmap
import os
import re
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number: int, *args: object) -> int:
    made = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(ctypes.c_long(number), *made)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def sleeper() -> int:
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    return child


def text(path: str) -> str:
    with open(path) as file:
        return file.read()


def must(holds: object) -> None:
    if not holds:
        raise OSError("it didn't come to that")


def mount_tmpfs() -> None:
    call(165, b"none", b"/tmp", b"tmpfs", 0, 0)


def new_user_namespace() -> None:
    call(272, 0x10000000)


def new_mount_namespace() -> None:
    call(272, 0x00020000)


def clone_new_user_namespace() -> None:
    child = call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)


def change_root() -> None:
    call(161, b"/tmp")


def make_device() -> None:
    call(133, b"/tmp/disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))


def trace_a_process() -> None:
    call(101, 16, sleeper(), 0, 0)


def read_a_process() -> None:
    child = sleeper()
    data = ctypes.create_string_buffer(8)
    local = struct.pack("QQ", ctypes.addressof(data), 8)
    call(310, child, local, 1, struct.pack("QQ", ctypes.addressof(data), 8), 1, 0)


def take_a_descriptor() -> None:
    call(438, os.pidfd_open(sleeper()), 1, 0)


def kernel_key() -> None:
    call(248, b"user", b"goex-probe", b"x", 1, -3)


def bpf_map() -> None:
    call(321, 0, struct.pack("IIIII", 2, 4, 4, 1, 0) + bytes(100), 120)


def page_fault_handler() -> None:
    call(323, 1)


def io_uring() -> None:
    call(425, 1, ctypes.create_string_buffer(120))


def performance_events() -> None:
    call(298, struct.pack("IIQ", 1, 112, 0) + bytes(24) + struct.pack("Q", 0x60) + bytes(64), 0, -1, -1, 0)


def file_watches() -> None:
    call(294, 0)


def socket_netlink() -> None:
    socket.socket(16, socket.SOCK_RAW, 0)


def socket_vsock() -> None:
    socket.socket(40, socket.SOCK_STREAM, 0)


def socket_packet() -> None:
    socket.socket(17, socket.SOCK_RAW, 0x0300)


def socket_raw() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def no_address_randomisation() -> None:
    call(135, 0x0040000)


def program_in_memory() -> None:
    descriptor = call(319, b"x", 0)
    with open("/usr/bin/true", "rb") as program:
        os.write(descriptor, program.read())
    subprocess.run([f"/proc/self/fd/{descriptor}"], pass_fds=[descriptor], check=True)


def calls_of_32_bit() -> None:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("53b814000000cd805bc3"))  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    got = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    must(got == os.getpid())


def kernel_log() -> None:
    call(103, 3, ctypes.create_string_buffer(4096), 4096)


def host_name_change() -> None:
    call(170, b"x", 1)


def file_by_handle() -> None:
    """The way out of old containers: open a file by its inode number, past every mount."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    call(303, -100, b"/goex/job/probes.py", handle, ctypes.byref(ctypes.c_int()), 0)
    call(304, os.open("/goex/job", os.O_RDONLY), handle, 0)


def sysctl_write() -> None:
    path = "/proc/sys/vm/swappiness"
    value = text(path)
    with open(path, "w") as file:
        file.write(value)


def sysrq() -> None:
    os.open("/proc/sysrq-trigger", os.O_WRONLY)


def kernel_memory() -> None:
    with open("/proc/kcore", "rb") as file:
        must(file.read(4) == b"\x7fELF")


def kernel_command_line() -> None:
    must(text("/proc/cmdline").strip())


def boot_id() -> None:
    must(text("/proc/sys/kernel/random/boot_id").strip())


def write_outside_tmp() -> None:
    open("/var/tmp/x", "w").close()


def program_in_tmp() -> None:
    with open("/usr/bin/true", "rb") as program, open("/tmp/true", "wb") as copy:
        copy.write(program.read())
    os.chmod("/tmp/true", 0o755)
    subprocess.run(["/tmp/true"], check=True)


def many_processes() -> None:
    for _ in range(100):
        sleeper()


def much_memory() -> None:
    block = bytearray(200 * 2**20)
    must(len(block))


def much_in_tmp() -> None:
    for number in range(6):
        with open(f"/tmp/much-{number}", "wb", buffering=0) as file:
            must(file.write(bytes(4 * 2**20)) == 4 * 2**20)


def large_file() -> None:
    with open("/tmp/large", "wb", buffering=0) as file:
        for _ in range(10):
            must(file.write(bytes(2**20)) == 2**20)


def many_open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (6000, 6000))
    must([os.open("/dev/null", os.O_RDONLY) for _ in range(5000)])


def descriptors_in_flight() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    file, kept = os.open("/dev/null", os.O_RDONLY), []
    for _ in range(1100):  # most programs may have 1,024 files, and that user so many in flight before they pass one
        if len(kept) % 100 == 0:
            pair = socket.socketpair()
        kept.append(pair)
        socket.send_fds(pair[0], [b"x"], [file])


def pending_signals() -> None:
    event, timer = struct.pack("QiiI44x", 0, 10, 0, 0), ctypes.create_string_buffer(8)
    for _ in range(3000):
        call(222, 1, event, timer)  # timer_create: each keeps a signal


def core_dump() -> None:
    os.chdir("/tmp")
    resource.setrlimit(resource.RLIMIT_CORE, (2**20, 2**20))
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    must(os.WCOREDUMP(os.waitpid(child, 0)[1]))


def host_abstract_socket() -> None:
    socket.socket(socket.AF_UNIX).connect("\0" + os.environ["HOST_ABSTRACT"])


def host_loopback() -> None:
    socket.create_connection(("127.0.0.1", int(os.environ["HOST_PORT"])), 3)


def host_interfaces() -> None:
    must({line.split(":")[0].strip() for line in text("/proc/net/dev").splitlines()[2:]} - {"lo"})


def host_shared_memory() -> None:
    call(30, int(os.environ["HOST_SHM"]), 0, 0o10000)


def host_processes() -> None:
    must(text(f"/proc/{os.environ['HOST_PID']}/comm") == os.environ["HOST_COMM"])


def host_groups() -> None:
    must(re.search("[0-9a-f]{64}", text("/proc/self/cgroup")))


def host_name() -> None:
    must(os.uname().nodename == os.environ["HOST_NAME"])


def plant_setuid_by_mode() -> None:
    open("/tmp/planted", "w").close()
    os.chmod("/tmp/planted", 0o4755)


def plant_setuid_by_open() -> None:
    os.open("/tmp/planted-too", os.O_CREAT | os.O_WRONLY, 0o6755)
    must(os.stat("/tmp/planted-too").st_mode & stat.S_ISUID)


def change_the_job() -> None:
    os.chmod("/goex/job/victim", 0o644)
    with open("/goex/job/victim", "w") as file:
        file.write("changed")


def folder_setuid_program() -> None:
    must(subprocess.run(["/work/setuid-id", "-u"], capture_output=True, text=True, check=True).stdout == "0\n")


def folder_device() -> None:
    os.open("/work/device", os.O_RDONLY | os.O_NONBLOCK)


def folder_socket() -> None:
    socket.socket(socket.AF_UNIX).connect("/work/socket")


def folder_submount() -> None:
    must(text("/work/mounted/inside"))


def attempt(name: str) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(30)  # long enough for a probe on a machine that is busy otherwise
        try:
            globals()[name]()
            os.write(writer, b"succeeded")
        except BaseException as error:
            os.write(writer, f"refused: {error}"[:300].encode())
        os.killpg(0, signal.SIGKILL)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    said = b""
    while chunk := os.read(reader, 4096):
        said += chunk
    os.close(reader)
    return said.decode() or f"refused: ended by signal {os.WTERMSIG(status)}"


def main() -> None:
    print(json.dumps({name: attempt(name) for name in sys.argv[1:]}))
