"""The allow-list: generated, reasoned, and without what must never be on it."""

from __future__ import annotations

import socket

import pytest

from runtimes.sandbox import seccomp
from tests.adversarial import calls

_NEVER = """
    acct add_key bpf chroot clock_settime delete_module execveat fanotify_init finit_module fsmount fsopen
    init_module inotify_init io_uring_setup ioperm iopl kcmp kexec_load keyctl lookup_dcookie mbind memfd_create
    modify_ldt mount mount_setattr move_mount name_to_handle_at open_by_handle_at open_tree perf_event_open
    pidfd_getfd pivot_root process_vm_readv process_vm_writev ptrace quotactl reboot request_key setgid setgroups
    setns setresuid setuid swapon sync sysfs syslog umount2 unshare userfaultfd ustat vmsplice shmget msgget mq_open
    rt_sigqueueinfo settimeofday adjtimex capset
"""


def test_default_is_refusal_and_no_foreign_architecture() -> None:
    profile = seccomp.profile()
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert all(entry["subArchitectures"] == [] for entry in profile["archMap"])


def test_every_rule_has_a_reason_and_nothing_dangerous_is_allowed() -> None:
    allowed: set[str] = set()
    for rule in seccomp.RULES:
        assert len(rule.why) >= 6 and rule.names
        if rule.error is None and not rule.group.startswith("shared"):
            allowed |= set(rule.names.split())
    assert allowed & set(_NEVER.split()) == set()
    assert {"execve", "read", "openat", "futex"} <= allowed


def test_shared_memory_is_for_those_who_ask_and_adds_its_four_calls_alone() -> None:
    def names(**asked: bool) -> set[str]:
        return {name for rule in seccomp.profile(**asked)["syscalls"] for name in rule["names"]}

    assert names(shared_memory=True) - names() == {"shmget", "shmat", "shmctl", "shmdt"}
    assert not names() - names(shared_memory=True)


def test_a_kernel_of_its_own_answers_the_calls_that_are_to_look_missing() -> None:
    def allowed(**asked: bool) -> set[str]:
        rules = seccomp.profile(**asked)["syscalls"]
        return {name for rule in rules for name in rule["names"] if rule["action"] == "SCMP_ACT_ALLOW"}

    assert allowed(own_kernel=True) - allowed() == {"clone3", "openat2"}


def test_filtered_calls_are_never_allowed_whole() -> None:
    filtered = {name for rule in seccomp.RULES if rule.args for name in rule.names.split()}
    whole = {name for rule in seccomp.RULES if not rule.args for name in rule.names.split()}
    assert filtered & whole == set()
    assert {"clone", "socket", "socketpair", "personality", "prctl", "ioctl", "openat", "fchmodat"} <= filtered


def allowed(call: str, *args: int) -> bool:
    """Whether a job on a folder may make it."""
    return any(
        all(
            args[arg["index"]] & arg["value"] == arg["valueTwo"]
            if arg["op"] == "SCMP_CMP_MASKED_EQ"
            else args[arg["index"]] == arg["value"]
            for arg in rule.get("args", ())
        )
        for rule in seccomp.profile(unix_sockets=False)["syscalls"]
        if call in rule["names"]
    )


def test_a_name_is_moved_but_leaves_no_device() -> None:
    noreplace, exchange, whiteout = 1, 2, 4
    assert all(allowed("renameat2", 0, 0, 0, 0, flags) for flags in (0, noreplace, exchange))
    assert not any(allowed("renameat2", 0, 0, 0, 0, flags | whiteout) for flags in (0, noreplace, exchange))


@pytest.mark.parametrize("flags", [0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK])
def test_a_job_on_a_folder_makes_no_socket_that_sends_to_a_socket_file(flags: int) -> None:
    unix = int(socket.AF_UNIX)
    assert not any(allowed("socket", unix, kind | flags, 0) for kind in range(16))
    kept = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
    assert all(allowed("socketpair", unix, kind | flags, 0) for kind in kept)
    # One of a pair for datagrams (which a raw one is, too) sends to whatever address it is told.
    assert not any(allowed("socketpair", unix, kind | flags, 0) for kind in range(16) if kind not in kept)


def test_each_call_has_a_line_of_its_own() -> None:
    """Mend a drift of the page with `python -m tests.adversarial.calls --write`."""
    allowed = {name for rule in seccomp.RULES for name in rule.names.split()}
    assert set(calls.words()) == allowed
    assert len(calls.WORDS.read_text().splitlines()) == len(allowed)
    assert calls.PAGE.read_text() == calls.render()
