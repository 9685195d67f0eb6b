"""What an attack is, for the table of attacks in docs/attacks.md; each file of attacks says its own.

An attack counts when the shipped thing refuses it *and* the same attack succeeds in its control, where exactly what is
named in `refused_by` is taken away. Where several are named each of them is enough alone, so the control takes all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """Whose wall is attacked."""

    CONTAINER = "container"
    NEIGHBOUR = "neighbours"
    POOL = "pool"
    GATEWAY = "gateway"
    CODE = "code mode"
    GRANTS = "grants and rules"
    DATABASE = "databases"
    FOLDER = "folders"
    STATE = "state on disk"
    LIMITS = "limits"
    MCP = "the MCP server"
    SERVERS = "MCP servers inside"
    HOOK = "hooks of coding agents"
    PAGE = "the page"


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to break out, break in, or get at what is another's. `test` and `control` are test ids."""

    name: str
    tries: str
    where: Where
    refused_by: tuple[str, ...]
    test: str
    control: str

    def __post_init__(self) -> None:
        if not (self.name and self.tries and self.refused_by):
            raise ValueError(f"{self.name}: an attack has a name, says what it tries, and who refuses it")
