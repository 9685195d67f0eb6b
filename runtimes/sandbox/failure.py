"""How a job ended, from facts alone.

Rules: the facts come from the engine, the clock and ourselves; nothing that the job wrote is looked at, so a job
can't talk itself into another class. What we did comes before what we found. An exit code is the job's own claim:
137 means a SIGKILL or a program that says so, and only facts decide between time-out, memory and neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.actions import Ended

_SIGKILLED = 128 + 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known once the container is gone.

    `cause` is why *we* ended it, None when we didn't; `memory_hit`: the kernel killed a process of the container at
    its memory limit; `seconds` is our clock around the run, `allowed` the job's deadline, which is kept inside too.
    """

    cause: Ended | None
    exit_code: int | None
    memory_hit: bool
    seconds: float
    allowed: float


def classify(facts: Facts) -> tuple[Ended, int | None]:
    """The class, and the exit code where the job had one of its own.

    A job that survives the loss of a child to the memory limit counts as out of memory too, whatever its exit code:
    its work may be half done, and the exit code beside the class tells the rest.
    """
    if facts.cause is not None:
        return facts.cause, None
    if facts.exit_code == _SIGKILLED and facts.seconds >= facts.allowed:
        return Ended.TIMEOUT, None
    if facts.memory_hit:
        return Ended.OUT_OF_MEMORY, facts.exit_code
    return Ended.EXITED, facts.exit_code
