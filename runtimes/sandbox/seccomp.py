"""The system calls that a job may make, each with its reason; everything else fails with EPERM.

Rules: a call is on the list because ordinary programs need it, never because it seems harmless; an argument is
filtered where one value of it is the attack; only the machine's own architecture is allowed (no 32-bit calls, which
would come in by other numbers); a filter can't look behind a pointer, so a call that hides its flags there is
answered with ENOSYS, upon which libraries take the older call.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass, replace
from typing import Any, Literal

_CLONE_NAMESPACES = 0x7E020000  # every CLONE_NEW… flag that clone(2) takes
_CREATES = 0o20000100  # O_CREAT | __O_TMPFILE
_WHITEOUT = 1 << 2  # RENAME_WHITEOUT
_SETID = stat.S_ISUID | stat.S_ISGID
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_STREAM, _DGRAM, _SEQPACKET, _TYPE_MASK = 1, 2, 5, 0xF
_ANY_PROTOCOL, _TCP, _UDP = 0, 6, 17


@dataclass(frozen=True, slots=True)
class Arg:
    """A condition on one argument: its value, or with `mask` its masked bits, equal `value` (64 bits compared)."""

    index: int
    value: int
    mask: int | None = None

    def to_json(self) -> dict[str, Any]:
        if self.mask is None:
            return {"index": self.index, "value": self.value, "op": "SCMP_CMP_EQ"}
        return {"index": self.index, "value": self.mask, "valueTwo": self.value, "op": "SCMP_CMP_MASKED_EQ"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Calls by name, allowed (when every condition holds) or answered with `error`, and why."""

    names: str
    why: str
    args: tuple[Arg, ...] = ()
    error: int | None = None
    group: Literal["", "unix", "shared-memory"] = ""

    def to_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "names": self.names.split(),
            "action": "SCMP_ACT_ALLOW" if self.error is None else "SCMP_ACT_ERRNO",
        }
        if self.error is not None:
            made["errnoRet"] = self.error
        if self.args:
            made["args"] = [arg.to_json() for arg in self.args]
        return made


def _one_of(names: str, why: str, index: int, values: tuple[int, ...]) -> tuple[Rule, ...]:
    return tuple(Rule(names, why, (Arg(index, value),)) for value in values)


def _inet(family: int, kind: int, protocol: int) -> Rule:
    why = "TCP and UDP on loopback, where the way out is offered; no raw sockets, no MPTCP, SCTP or ICMP"
    return Rule("socket", why, (Arg(0, family), Arg(1, kind, _TYPE_MASK), Arg(2, protocol)))


_FILES = (
    Rule("read pread64 readv preadv preadv2 lseek readahead fadvise64", "read files"),
    Rule("write pwrite64 writev pwritev pwritev2 fsync fdatasync sync_file_range", "write files, and see them on disk"),
    Rule("close close_range dup dup2 dup3 fcntl flock", "handle descriptors and locks"),
    Rule("stat fstat lstat newfstatat statx access faccessat faccessat2", "ask about files"),
    Rule("statfs fstatfs getcwd chdir fchdir umask readlink readlinkat getdents getdents64", "walk folders"),
    Rule("mkdir mkdirat rmdir unlink unlinkat rename renameat", "make and remove names"),
    Rule("renameat2", "the same, but for what leaves the file of a device", (Arg(4, 0, _WHITEOUT),)),
    Rule("link linkat symlink symlinkat", "links; they resolve inside the container's own mounts"),
    Rule("truncate ftruncate fallocate copy_file_range sendfile splice", "size and copy files; bound by RLIMIT_FSIZE"),
    Rule("utime utimes utimensat futimesat", "set times"),
    Rule("chown fchown fchownat lchown", "give a file to a group that its owner is in; more takes a capability"),
    Rule("getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr", "read attributes"),
    Rule("setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr", "user attributes; others take rights"),
    Rule("open", "open what exists: the mode argument means nothing then", (Arg(1, 0, _CREATES),)),
    Rule("openat", "the same, relative to a folder", (Arg(2, 0, _CREATES),)),
    Rule("open", "create, but never setuid or setgid: that would lend the folder owner's rights", (Arg(2, 0, _SETID),)),
    Rule("openat", "the same, relative to a folder", (Arg(3, 0, _SETID),)),
    Rule("creat chmod fchmod", "set a mode, but never setuid or setgid", (Arg(1, 0, _SETID),)),
    Rule("fchmodat fchmodat2", "the same, relative to a folder", (Arg(2, 0, _SETID),)),
    Rule("mknod", "named pipes, no devices", (Arg(1, stat.S_IFIFO, 0o170000 | _SETID),)),
    Rule("mknodat", "the same, relative to a folder", (Arg(2, stat.S_IFIFO, 0o170000 | _SETID),)),
    Rule("openat2", "hides its mode behind a pointer", error=errno.ENOSYS),
)

_PROCESSES = (
    Rule("execve exit exit_group wait4 waitid", "run programs and wait for them"),
    Rule("fork vfork", "start processes; bound by the pids limit"),
    Rule("clone", "start processes and threads, without new namespaces", (Arg(0, 0, _CLONE_NAMESPACES),)),
    Rule("clone3", "hides its namespace flags behind a pointer", error=errno.ENOSYS),
    Rule("getpid getppid gettid getpgid getpgrp getsid setpgid setsid", "know and group processes"),
    Rule("getuid geteuid getgid getegid getresuid getresgid getgroups capget", "know who one is; no call changes it"),
    Rule("kill tkill tgkill pidfd_open pidfd_send_signal", "signal the container's own processes"),
    Rule("set_tid_address set_robust_list get_robust_list rseq arch_prctl", "what the C library does for a thread"),
    Rule("sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler "
         "sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getattr getcpu",
         "count processors and yield; real-time priority takes a capability"),
    Rule("getpriority setpriority ioprio_get ioprio_set", "be nicer; less nice takes a capability"),
    Rule("getrlimit setrlimit prlimit64 getrusage times", "know limits and lower them; raising takes a capability"),
    Rule("futex futex_waitv membarrier", "locks between threads"),
    *_one_of("personality", "the plain Linux personality, or asking which it is", 0, (0, 0xFFFFFFFF)),
    *_one_of("prctl", "names, death signals, dumpability, subreaper, no-new-privileges, asking for capabilities, timer "
             "slack, names of memory areas", 0, (1, 2, 3, 4, 15, 16, 23, 29, 30, 36, 37, 38, 39, 40, 0x53564D41)),
)  # fmt: skip

_MEMORY = (
    Rule("brk mmap munmap mprotect mremap madvise msync", "memory; bound by the memory limit"),
    Rule("mlock mlock2 mlockall munlock munlockall", "keep pages in memory; bound by RLIMIT_MEMLOCK"),
    Rule("pkey_alloc pkey_free pkey_mprotect", "protection keys, which JavaScript engines use"),
)

_TIME_AND_SIGNALS = (
    Rule("clock_gettime clock_getres gettimeofday time clock_nanosleep nanosleep", "read clocks and sleep; never set"),
    Rule("alarm getitimer setitimer pause", "interval timers"),
    Rule("timer_create timer_delete timer_getoverrun timer_gettime timer_settime", "timers"),
    Rule("timerfd_create timerfd_gettime timerfd_settime", "timers as descriptors"),
    Rule("rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack "
         "restart_syscall signalfd signalfd4", "handle signals"),
)  # fmt: skip

_WAITING = (
    Rule("poll ppoll select pselect6", "wait for descriptors"),
    Rule("epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2", "wait for many"),
    Rule("pipe pipe2 eventfd eventfd2", "talk between own processes"),
)

_SOCKETS = (
    Rule("socket", "Unix sockets: the action's way out is one", (Arg(0, _AF_UNIX),), group="unix"),
    *(_inet(family, kind, protocol) for family in (_AF_INET, _AF_INET6)
      for kind, own in ((_STREAM, _TCP), (_DGRAM, _UDP)) for protocol in (_ANY_PROTOCOL, own)),
    # One for datagrams could send to any socket file, for which the others would have to be made anew.
    *(Rule("socketpair", "pairs within the container", (Arg(0, _AF_UNIX), Arg(1, kind, _TYPE_MASK)))
      for kind in (_STREAM, _SEQPACKET)),
    Rule("socketpair", "the same for datagrams", (Arg(0, _AF_UNIX),), group="unix"),
    Rule("bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt",
         "use the sockets that can be made"),
    Rule("sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg", "send and receive on them"),
)  # fmt: skip

_SYSTEM = (
    Rule("uname sysinfo getrandom", "the kernel's name, memory and load, random numbers"),
    *_one_of(
        "ioctl",
        "terminal questions, which isatty() and shells ask; there never is a terminal",
        1,
        (0x5401, 0x802C542A, 0x5413, 0x540F, 0x5410),
    ),
    *_one_of("ioctl", "bytes waiting, blocking or not, close on exec", 1, (0x541B, 0x5421, 0x5451, 0x5450)),
)

_SHARED_MEMORY = (
    Rule("shmget shmat shmctl shmdt", "System V segments of the container's own IPC namespace; bound by the memory "
         "limit: a PostgreSQL server doesn't start without one", group="shared-memory"),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *_FILES, *_PROCESSES, *_MEMORY, *_TIME_AND_SIGNALS, *_WAITING, *_SOCKETS, *_SYSTEM, *_SHARED_MEMORY,
)  # fmt: skip

# What is left out on purpose, so that nobody adds it without knowing: inotify, fanotify, SysV and POSIX queues (they
# count per user over all containers, so a neighbour would notice), userfaultfd, io_uring, bpf, perf_event_open,
# keyctl, ptrace, process_vm_*, pidfd_getfd, kcmp, the mount family, unshare, setns, chroot, pivot_root, name_to_handle,
# memfd_create and execveat (programs that lie in no file), set*uid and set*gid, vmsplice, tee, modify_ldt, syslog,
# sync (a machine-wide flush), clock setting, modules, kexec, reboot, quotas, swap.


def profile(*, unix_sockets: bool = True, shared_memory: bool = False, own_kernel: bool = False) -> dict[str, Any]:
    """The profile in the engine's form. Without `unix_sockets` no Unix socket can be made, only pairs;
    `shared_memory` is for images that hold a database server. With `own_kernel` (runsc, which answers EPERM whatever
    error is asked for) the calls that are to look as if they weren't there are left to that kernel, which isn't the
    host's: without clone3's ENOSYS no thread would start.

    A job that works on a person's folder gets the latter: a socket file in that folder may lead to a program of
    the person's, and the network namespace doesn't stand between them.
    """
    groups = {"", *(["unix"] if unix_sockets else []), *(["shared-memory"] if shared_memory else [])}
    rules = [rule for rule in RULES if rule.group in groups]
    if own_kernel:
        rules = [replace(rule, error=None) for rule in rules]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": [rule.to_json() for rule in rules],
    }
