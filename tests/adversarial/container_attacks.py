"""The attacks on a container by name: what each tries, and which defences stand in its way.

With all of an attack's defences taken away it must succeed (the control: else it proves nothing); with all but one
taken away it must still be refused, so that each of them is enough on its own. The probes of the same names are in
container_probes.py and kernel_probes.py.
"""

from __future__ import annotations

from runtimes.sandbox.defences import Defence
from tests.adversarial.registry import Attack, Where

Defences = frozenset[Defence]


def only(*defences: Defence) -> Defences:
    return frozenset(defences)


RIGHTS = only(Defence.SECCOMP, Defence.CAPABILITIES, Defence.NON_ROOT)
CALLS = only(Defence.SECCOMP)
MASKED = only(Defence.MASKED_PATHS)
PROCESSES = only(Defence.PROCESSES)
OWNED = only(Defence.CAPABILITIES, Defence.NON_ROOT)

# ---- what the kernel is asked for

_CALLS: dict[str, tuple[str, Defences]] = {
    "mount_tmpfs": ("mount a file system over what is there", RIGHTS),
    "mount_by_the_new_calls": ("the same by fsopen, which old filters don't know", RIGHTS),
    "mount_control_groups": ("mount a control-group hierarchy, as the release_agent escape does", RIGHTS),
    "uncover_a_masked_file": ("unmount what covers /proc/keys", RIGHTS),
    "remount_the_root": ("make the read-only root writable again", RIGHTS),
    "new_user_namespace": ("become root of a user namespace of its own (unshare)", CALLS),
    "clone_new_user_namespace": ("the same by clone", CALLS),
    "clone3_new_user_namespace": ("the same by clone3, whose flags no filter can read", CALLS),
    "new_mount_namespace": ("have mounts of its own", RIGHTS),
    "join_a_namespace": ("enter a namespace by its file (setns)", RIGHTS),
    "change_root": ("chroot, and out by an open folder", RIGHTS),
    "make_device": ("make the file of the machine's disk", RIGHTS),
    "file_by_handle": ("open a file of the host by its inode number", RIGHTS),
    "become_another_user": ("change to another user's id", RIGHTS),
    "trace_a_process": ("ptrace", CALLS),
    "read_a_process": ("read another process's memory", CALLS),
    "write_a_process": ("write another process's memory", CALLS),
    "take_a_descriptor": ("take another process's open file", CALLS),
    "compare_kernel_objects": ("learn the order of the kernel's addresses (kcmp)", CALLS),
    "kernel_key": ("leave a key in the kernel, where others of that user find it", CALLS),
    "session_keyring": ("join a keyring", CALLS),
    "bpf_map": ("bpf", RIGHTS),
    "page_fault_handler": ("hold the kernel in a page fault (userfaultfd), as races want it", CALLS),
    "io_uring": ("do by io_uring what the filter refuses", CALLS),
    "performance_events": ("spy by the processor's counters", CALLS),
    "file_watches": ("use up the file watches that all containers of a user share", CALLS),
    "mark_file_systems": ("fanotify", CALLS),
    "system_v_queue": ("make a message queue", CALLS),
    "flush_every_disk": ("make the whole machine write its disks, again and again", CALLS),
    "splice_memory": ("map memory into a pipe (vmsplice)", CALLS),
    "local_descriptors": ("write the processor's descriptor table (modify_ldt)", CALLS),
    "socket_netlink": ("speak to the kernel by netlink", CALLS),
    "socket_vsock": ("speak to the hypervisor by vsock", CALLS),
    "socket_mptcp": ("a protocol with a long list of defects (MPTCP)", CALLS),
    "socket_ping": ("send ICMP", CALLS),
    "socket_packet": ("send raw frames", RIGHTS),
    "socket_raw": ("send raw packets", RIGHTS),
    "socket_xdp": ("send by AF_XDP, past the network stack", RIGHTS),
    "no_address_randomisation": ("run programs at addresses that are known", CALLS),
    "program_in_memory": ("run a program that lies in no file (memfd)", CALLS),
    "calls_of_32_bit": ("call the kernel by the numbers of another architecture", CALLS),
    "kernel_log": ("read the kernel's log", RIGHTS),
    "host_name_change": ("rename the machine", RIGHTS),
    "set_the_clock": ("set the machine's clock", RIGHTS),
    "plant_setuid_by_mode": ("leave a setuid file behind (chmod)", CALLS),
    "plant_setuid_by_open": ("leave a setuid file behind (open)", CALLS),
    "give_a_file_to_another": ("give a file to another user", OWNED),
}

# ---- what lies about

_FILES: dict[str, tuple[str, Defences]] = {
    "sysctl_write": ("change a setting of the kernel", only(Defence.NON_ROOT, Defence.READ_ONLY_PATHS)),
    "core_pattern": (
        "name a program that the host runs when something crashes",
        only(Defence.NON_ROOT, Defence.READ_ONLY_PATHS),
    ),
    "sysrq": ("press the magic key", only(Defence.NON_ROOT, Defence.READ_ONLY_PATHS)),
    "kernel_memory": (
        "read the kernel's memory in /proc/kcore",
        only(Defence.NON_ROOT, Defence.CAPABILITIES, Defence.MASKED_PATHS),
    ),
    "kernel_command_line": ("read how the machine was booted", MASKED),
    "boot_id": ("tell the machine by its boot id", MASKED),
    "interrupts": ("watch keys being pressed in /proc/interrupts", MASKED),
    "keys_of_others": ("list the kernel's keys", MASKED),
    "module_parameters": ("read the kernel's parameters in /sys/module", MASKED),
    "firmware_tables": ("read the firmware's tables", MASKED),
    "kernel_notes": ("tell the kernel's exact build in /sys/kernel", MASKED),
    "kernel_configuration": ("read how the kernel was built", MASKED),
    "disks_of_the_host": ("list the machine's disks", MASKED),
    "write_outside_tmp": ("write where nothing is to be kept", only(Defence.READ_ONLY_ROOT)),
    "change_our_programs": (
        "change the program that the next step runs",
        only(Defence.READ_ONLY_ROOT, Defence.NON_ROOT),
    ),
    "password_file": ("read the file of passwords", only(Defence.NON_ROOT)),
    "program_in_tmp": ("bring a program of its own", only(Defence.NO_EXEC)),
    "change_the_job": ("change the job's own files on the host", only(Defence.READ_ONLY_JOB, Defence.NON_ROOT)),
    "host_groups": ("tell the container's id, and others', by control groups", only(Defence.CGROUPS)),
    "host_name": ("tell the machine by its name", only(Defence.HOSTNAME)),
    "folder_setuid_program": (
        "run a setuid program that lies in the person's folder",
        only(Defence.NO_NEW_PRIVILEGES, Defence.SECCOMP),
    ),
    "folder_device": ("open a device file that lies in the person's folder", only(Defence.DEVICES)),
    "folder_socket": ("speak to a program of the person's by a socket in the folder", CALLS),
    "folder_submount": ("reach what is mounted below the folder", only(Defence.SUBMOUNTS)),
}

# ---- more than its share

_SHARES: dict[str, tuple[str, Defences]] = {
    "many_processes": ("start processes without end", only(Defence.PIDS)),
    "much_memory": ("take memory without end", only(Defence.MEMORY)),
    "much_in_tmp": ("fill /tmp", only(Defence.TMP_SIZE)),
    "much_in_shared_memory": ("fill /dev/shm", only(Defence.TMP_SIZE)),
    "many_files_in_tmp": ("make empty files without end", only(Defence.TMP_SIZE)),
    "large_file": ("write one file without end", only(Defence.FILE_SIZE)),
    "many_open_files": ("open files without end", only(Defence.OPEN_FILES)),
    "descriptors_in_flight": (
        "send itself so many open files that other programs of that user can pass none",
        only(Defence.OPEN_FILES),
    ),
    "pending_signals": ("take all timers and queued signals of that user", only(Defence.SIGNALS)),
    "processors": ("keep every processor busy", only(Defence.CPUS)),
    "core_dump": ("have its memory written to a file of the host", only(Defence.CORE)),
}

# ---- what belongs to the host or to another action

_NEIGHBOURS: dict[str, tuple[str, Defences]] = {
    "host_abstract_socket": ("reach an abstract socket of the host's", only(Defence.NETWORK)),
    "host_loopback": ("reach a server on the host's loopback", only(Defence.NETWORK)),
    "host_interfaces": ("list the host's network interfaces", only(Defence.NETWORK)),
    "host_shared_memory": ("map another's System V memory", only(Defence.IPC, Defence.SECCOMP)),
    "shared_memory_of_a_neighbour": ("read another's file in /dev/shm", only(Defence.IPC)),
    "host_processes": ("list the host's processes", PROCESSES),
    "end_a_neighbour": ("signal a process of another action's", PROCESSES),
    "environment_of_a_neighbour": ("read its variables in /proc", PROCESSES),
    "root_of_a_neighbour": ("reach its files by /proc/PID/root", PROCESSES),
    "open_files_of_a_neighbour": ("reach its open files by /proc/PID/fd", PROCESSES),
    "count_the_containers": ("time the pool: count the machine's containers in /proc/cgroups", MASKED),
    "pressure_of_neighbours": ("tell when others work by the machine's pressure", MASKED),
    "wakes_of_neighbours": ("tell it by how often the processors were woken", MASKED),
}

_GROUPED = {**_CALLS, **_FILES, **_SHARES, **_NEIGHBOURS}
ATTACKS: dict[str, Defences] = {name: defences for name, (_, defences) in _GROUPED.items()}

_TESTS = "tests/adversarial/test_container.py"
ROWS = tuple(
    Attack(
        name=name,
        tries=tries,
        where=Where.NEIGHBOUR if name in _NEIGHBOURS else Where.CONTAINER,
        refused_by=tuple(sorted(defence.value for defence in defences)),
        test=f"{_TESTS}::test_refused[{name}]",
        control=f"{_TESTS}::test_control[{name}]",
    )
    for name, (tries, defences) in _GROUPED.items()
)


_LINKS = "tests/adversarial/test_links.py"
ROWS += tuple(
    Attack(name=name, tries=tries, where=Where.CONTAINER, refused_by=(refused_by,), test=test, control=test)
    for name, tries, refused_by, test in (
        (
            "folder_link_out",
            "reach what lies beside the person's folder by a link in it",
            "the folder is mounted alone",
            f"{_LINKS}::test_a_link_leads_nowhere_since_the_folder_is_there_alone",
        ),
        (
            "link_in_a_folders_place",
            "have the daemon write elsewhere, by a link where a folder was",
            "no link is followed",
            f"{_LINKS}::test_a_link_in_a_folders_place_is_not_gone_through",
        ),
        (
            "link_in_a_files_place",
            "have the daemon read a file of the host's, by a link where a file was",
            "no link is followed",
            f"{_LINKS}::test_a_link_in_a_files_place_is_not_read",
        ),
        (
            "log_of_the_engine",
            "leave what it prints in a log that others read",
            Defence.LOG.value,
            f"{_TESTS}::test_what_is_printed_stays_in_no_log",
        ),
    )
)
