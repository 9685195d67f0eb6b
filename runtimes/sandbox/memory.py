"""Whether the kernel killed something of a container at its memory limit: read from its control group, from outside.

The engine tells too, but not always: its own watch fails where control groups are mounted in an unusual way. The
counter here is the kernel's, and nothing in the container can write it. It is gone with the container; so the image's
`supervise` holds the end back for a moment after such a kill, longer than the pause between two looks.
"""

from __future__ import annotations

from pathlib import Path

PAUSE = 0.1  # seconds between two looks


def counter(pid: int) -> Path | None:
    """The file that counts kills in the control group of that process; None where this machine doesn't show it."""
    try:
        groups = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
        # A mount's name may hold what isn't UTF-8, or what ends a line elsewhere.
        table = Path("/proc/self/mountinfo").read_bytes().decode("utf-8", "surrogateescape")
        mounts = [line.split(" ") for line in table.split("\n") if line]
    except OSError:
        return None
    for _, controllers, path in groups:
        for mount in mounts:
            kind, options = mount[mount.index("-") + 1], mount[-1].split(",")
            root, place = mount[3], Path(mount[4])
            below = path.removeprefix(root.rstrip("/")).lstrip("/")
            if controllers == "" and kind == "cgroup2":
                file = place / below / "memory.events"
            elif "memory" in controllers.split(",") and kind == "cgroup" and "memory" in options:
                file = place / below / "memory.oom_control"
            else:
                continue
            # The container's own group, never one that it shares with others.
            if below and file.is_file():
                return file
    return None


def hit(file: Path) -> bool:
    """Whether the counter is above zero. Raises OSError when the group is gone."""
    for line in file.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value != "0":
            return True
    return False
