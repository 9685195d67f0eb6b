"""More attacks of container_probes.py, which it is put behind in the container; its rules hold here."""

# The calls themselves are what is probed here, not the paths.
# ruff: noqa: PTH101, PTH102, PTH110, PTH112, PTH123, PTH208
import ctypes
import os
import signal
import socket
import struct
import time

from tests.adversarial.container_probes import call, must, sleeper, text


def mount_by_the_new_calls() -> None:
    call(430, b"tmpfs", 0)


def mount_control_groups() -> None:
    os.mkdir("/tmp/groups")
    kinds = {line.split()[-1] for line in text("/proc/filesystems").splitlines()}
    if "cgroup" in kinds and os.path.isdir("/sys/fs/cgroup/memory"):
        call(165, b"none", b"/tmp/groups", b"cgroup", 0, b"memory")
    else:
        call(165, b"none", b"/tmp/groups", b"cgroup2", 0, 0)
    must(os.path.exists("/tmp/groups/cgroup.procs"))


def uncover_a_masked_file() -> None:
    call(166, b"/proc/keys", 2)


def remount_the_root() -> None:
    call(165, b"none", b"/", b"none", 0x1020, 0)
    open("/var/tmp/written", "w").close()


def clone3_new_user_namespace() -> None:
    given = struct.pack("8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    if call(435, given, len(given)) == 0:
        os._exit(0)


def join_a_namespace() -> None:
    call(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0x04000000)


def become_another_user() -> None:
    call(105, 1234)
    must(os.getuid() == 1234)


def write_a_process() -> None:
    data = ctypes.create_string_buffer(8)
    where = struct.pack("QQ", ctypes.addressof(data), 8)
    call(311, sleeper(), where, 1, where, 1, 0)


def compare_kernel_objects() -> None:
    call(312, sleeper(), os.getpid(), 1, 0, 0)


def session_keyring() -> None:
    call(250, 1, 0)


def mark_file_systems() -> None:
    call(300, 0x200, 0)


def system_v_queue() -> None:
    call(68, 0, 0o600)


def flush_every_disk() -> None:
    call(162)


def splice_memory() -> None:
    data = ctypes.create_string_buffer(8)
    call(278, os.pipe()[1], struct.pack("QQ", ctypes.addressof(data), 8), 1, 0)


def local_descriptors() -> None:
    call(154, 0, ctypes.create_string_buffer(64), 64)


def socket_mptcp() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)


def socket_ping() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)


def socket_xdp() -> None:
    socket.socket(44, socket.SOCK_RAW, 0)


def set_the_clock() -> None:
    """Set one of the clock's parameters to what it is."""
    known = ctypes.create_string_buffer(208)
    call(159, known)
    tick = struct.unpack_from("q", known, 88)[0]
    wanted = ctypes.create_string_buffer(208)
    struct.pack_into("i", wanted, 0, 0x4000)
    struct.pack_into("q", wanted, 88, tick)
    call(159, wanted)


def give_a_file_to_another() -> None:
    open("/tmp/given", "w").close()
    os.chown("/tmp/given", 1234, 1234)


def core_pattern() -> None:
    path = "/proc/sys/kernel/core_pattern"
    value = text(path)
    with open(path, "w") as file:
        file.write(value)


def interrupts() -> None:
    must("CPU0" in text("/proc/interrupts"))


def keys_of_others() -> None:
    must(text("/proc/keys").strip() or text("/proc/key-users").strip())


def module_parameters() -> None:
    must(os.listdir("/sys/module"))


def firmware_tables() -> None:
    must(os.listdir("/sys/firmware"))


def kernel_notes() -> None:
    with open("/sys/kernel/notes", "rb") as file:
        must(b"GNU" in file.read())


def disks_of_the_host() -> None:
    must(len(text("/proc/partitions").splitlines()) > 2)


def kernel_configuration() -> None:
    with open("/proc/config.gz", "rb") as file:
        must(file.read(2) == b"\x1f\x8b")


def count_the_containers() -> None:
    must(any(int(line.split()[2]) > 0 for line in text("/proc/cgroups").splitlines()[1:]))


def pressure_of_neighbours() -> None:
    must("total=" in text("/proc/pressure/cpu"))


def wakes_of_neighbours() -> None:
    must("TIMER" in text("/proc/softirqs"))


def change_our_programs() -> None:
    path = "/goex/bin/run_calls.py"
    os.chmod(path, 0o644)
    open(path, "r+b").close()


def password_file() -> None:
    must(text("/etc/shadow"))


def much_in_shared_memory() -> None:
    for number in range(6):
        with open(f"/dev/shm/much-{number}", "wb", buffering=0) as file:
            must(file.write(bytes(4 * 2**20)) == 4 * 2**20)


def many_files_in_tmp() -> None:
    for number in range(40_000):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))


def processors() -> None:
    """Two processes that are never idle, and whether the kernel ever had them wait."""
    for _ in range(2):
        if os.fork() == 0:
            while True:
                pass
    folders = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup")
    stat = next(f"{at}/cpu.stat" for at in folders if os.path.exists(f"{at}/cpu.stat"))
    waits = ""
    for _ in range(16):  # a busy machine may keep both below their share for a while
        time.sleep(0.25)
        waits = next((line for line in text(stat).splitlines() if line.startswith("nr_throttled")), "")
        must(waits in ("", "nr_throttled 0"))
    if waits:
        return
    must(os.path.exists("/sys/fs/cgroup/cpu.stat"))  # the root group, which has no limit, doesn't count


def shared_memory_of_a_neighbour() -> None:
    must(text(f"/dev/shm/{os.environ['NEIGHBOUR_SHM']}"))


def end_a_neighbour() -> None:
    os.kill(int(os.environ["NEIGHBOUR"]), 0)


def environment_of_a_neighbour() -> None:
    must("NEIGHBOURS_OWN" in text(f"/proc/{os.environ['NEIGHBOUR']}/environ"))


def root_of_a_neighbour() -> None:
    must(text(f"/proc/{os.environ['NEIGHBOUR']}/root{os.environ['NEIGHBOUR_FILE']}"))


def open_files_of_a_neighbour() -> None:
    must(text(f"/proc/{os.environ['NEIGHBOUR']}/fd/3"))
