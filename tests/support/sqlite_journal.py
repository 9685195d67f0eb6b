"""A journal of SQLite as a transaction over several databases leaves it: it names a file, which is deleted with it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

MAGIC = bytes.fromhex("d9d505f920a163d7")


def naming(file: Path, pages: int) -> bytes:
    """One for a database of so many pages, which takes nothing of them back."""
    name = os.fsencode(file)
    head = MAGIC + struct.pack(">5I", 0, 0, pages, 512, 4096)
    return head.ljust(512, b"\0") + struct.pack(">I", 0) + name + struct.pack(">II", len(name), sum(name)) + MAGIC
