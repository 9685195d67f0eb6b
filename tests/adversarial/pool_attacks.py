"""The attacks on containers that wait, as rows: on what tells their end, and on the action after one's own."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

# What each attack on process 1 tries, who refuses it, and the line of wait.py that the control takes away.
PROCESS_1: dict[str, tuple[str, str, tuple[str, str]]] = {
    "memory_of_process_1": (
        "write the memory of the process that tells how it ended",
        "process 1 can't be dumped",
        ("if prctl(_DUMPABLE, 0, 0, 0, 0) != 0:", "if False:"),
    ),
    "variables_of_process_1": (
        "read that process's variables",
        "process 1 can't be dumped",
        ("if prctl(_DUMPABLE, 0, 0, 0, 0) != 0:", "if False:"),
    ),
    "descriptors_of_process_1": (
        "list, and open, what that process has open",
        "process 1 can't be dumped",
        ("if prctl(_DUMPABLE, 0, 0, 0, 0) != 0:", "if False:"),
    ),
    "inherited_descriptors": (
        "tell its own end on a descriptor that was left open",
        "a job inherits none by which it speaks for process 1",
        ('let_go({pipes[2], *channel(job["argv"])})', "pass"),
    ),
    "output_as_frames": (
        "print what process 1 says at the end",
        "output is framed by process 1",
        ("control.sendall(frame(pipes[descriptor], data))", "control.sendall(data)"),
    ),
    "outlive_the_action": (
        "go on, and send, after its own end",
        "everything is killed at the end",
        ("os.kill(-1, signal.SIGKILL)", "pass"),
    ),
    "connect_as_process_1": (
        "connect where process 1 did",
        "the place is gone before there is a job",
        ("", ""),
    ),
}

# Those that a program on a folder can try. What it could inherit of its process 1 are the standard streams, which are
# its own by then: `output_as_frames` writes to one.
ON_A_FOLDER = ("memory_of_process_1", "variables_of_process_1", "descriptors_of_process_1", "output_as_frames")

NEXT: dict[str, str] = {
    "left_in_tmp": "leave a file in /tmp for the next action, or read the last one's",
    "left_in_shared_memory": "the same in /dev/shm",
    "left_listening": "listen where the next action's proxy will be",
    "left_listening_abstract": "listen at an abstract address that the next action trusts",
    "left_running": "leave a process that reads the next action's variables",
}

_TESTS = "tests/adversarial/test_pool.py"
ROWS = (
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.POOL,
            refused_by=(refused_by,),
            test=f"{_TESTS}::test_refused[{name}]",
            control=f"{_TESTS}::test_control[{name}]",
        )
        for name, (tries, refused_by, _) in PROCESS_1.items()
    ),
    *(
        Attack(
            name=f"{name}_on_a_folder",
            tries=f"{PROCESS_1[name][0]}, from a program on a folder",
            where=Where.POOL,
            refused_by=(PROCESS_1[name][1],),
            test=f"{_TESTS}::test_refused_on_a_folder[{name}]",
            control=f"{_TESTS}::test_control_on_a_folder[{name}]",
        )
        for name in ON_A_FOLDER
    ),
    *(
        Attack(
            name=name,
            tries=tries,
            where=Where.POOL,
            refused_by=("a container is used once",),
            test=f"{_TESTS}::test_nothing_is_left_for_the_next[{name}]",
            control=f"{_TESTS}::test_control_a_container_that_is_used_twice[{name}]",
        )
        for name, tries in NEXT.items()
    ),
)
