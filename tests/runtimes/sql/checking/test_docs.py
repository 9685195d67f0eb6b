"""docs/sql.md names every function that may be called, and no other. Written anew with GOEX_WRITE_DOCS=1."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

from runtimes.sql.checking.functions import FUNCTIONS
from runtimes.sql.contract import Dialect

DOCS = Path(__file__).parents[4] / "docs" / "sql.md"
TITLES = {Dialect.POSTGRESQL: "PostgreSQL", Dialect.MARIADB: "MariaDB and MySQL", Dialect.SQLITE: "SQLite"}


def _section(dialect: Dialect) -> str:
    names = textwrap.fill(" ".join(sorted(FUNCTIONS[dialect])), 110, break_on_hyphens=False)
    return f"### {TITLES[dialect]}\n\n```text\n{names}\n```\n"


def test_the_page_lists_the_functions_that_may_be_called() -> None:
    written = DOCS.read_text()
    if os.environ.get("GOEX_WRITE_DOCS"):
        for dialect, title in TITLES.items():
            written = re.sub(
                rf"### {title}\n\n```text\n.*?```\n", lambda _, d=dialect: _section(d), written, flags=re.S
            )
        DOCS.write_text(written)
    for dialect in TITLES:
        assert _section(dialect) in written
