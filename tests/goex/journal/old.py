"""A state database as GoEx wrote it before actions were found by risk and service (schema 1), with its head.

tests/vectors/journal-v1 holds it as SQL: three actions of `scout` (asked for in words and allowed once; allowed for
good; run on that grant) and one of `other` that was refused. Its keys are K and L below.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from goex.journal.chain import Journal

VECTORS = Path(__file__).parents[2] / "vectors" / "journal-v1"
KEY, LEDGER_KEY = b"k" * 32, b"l" * 32
ROWS = 33


def restored(folder: Path) -> None:
    """Lay the old files out in `folder`."""
    database = sqlite3.connect(folder / "state.db")
    database.executescript((VECTORS / "state.sql").read_text(encoding="utf-8"))
    database.close()
    (folder / "journal.head").write_bytes(bytes.fromhex((VECTORS / "head.hex").read_text()))


def opened(folder: Path) -> Journal:
    """The journal in `folder`, unlocked; an old one is migrated."""
    journal = Journal(folder / "state.db", folder / "journal.head")
    journal.unlock(KEY)
    return journal
