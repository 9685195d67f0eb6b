"""`make bench`: measure everything, print a table, write bench.json.

A value means what the first lines of its module say; a name never changes its meaning, since numbers of different
days are compared. A group that fails is told and left out, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.bench import (
    beside,
    catalog_import,
    catalog_open,
    catalog_search,
    client_import,
    daemon_memory,
    databases,
    decision,
    execution,
    folders,
    gateway,
    gateway_stream,
    journal_append,
    lease,
    log_page,
    log_verification,
    mcp_call,
    memory,
    model_overhead,
    openapi_import,
    page_list,
    programs,
    question_size,
    request_map,
    sandbox,
    small_folder,
    sql_keys,
    unchanged_tree,
    warm_container,
)
from tools.bench.measure import Row, table

Group = Callable[[], Coroutine[Any, Any, tuple[Row, ...]]]

GROUPS: Mapping[str, Group] = {
    module.NAME: module.measure
    for module in (
        catalog_import, catalog_open, catalog_search, request_map, model_overhead, memory, decision, lease,
        journal_append, log_verification, log_page, question_size,
        gateway, gateway_stream, sandbox, warm_container, beside, execution, daemon_memory, programs,
        folders, unchanged_tree, small_folder, databases, sql_keys, openapi_import,
        mcp_call, client_import, page_list,
    )
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for. Returns the exit status: 0, or 1 when a group failed."""
    wanted = _arguments(argv)
    names = [name for name in GROUPS if not wanted.only or name in wanted.only]
    _say(_machine())
    rows: list[Row] = []
    failed = False
    began = time.monotonic()
    for number, name in enumerate(names, 1):
        _say(f"[{number}/{len(names)}] {name} …", end=" ")
        started = time.monotonic()
        try:
            found = asyncio.run(GROUPS[name]())
        except Exception as error:  # whatever it is, the other groups are still measured
            failed = True
            _say(f"failed: {type(error).__name__}: {error}")
            continue
        rows += found
        if not found:  # a peer that is needed isn't there, which the group has said
            _say("not measured")
            continue
        _say(f"{found[0].rounds} round{'s' * (found[0].rounds != 1)}, {time.monotonic() - started:.0f} s")
    _say(f"{time.monotonic() - began:.0f} s in all.\n")
    results = json.dumps([each.to_json() for each in rows], indent=2)
    wanted.output.write_text(results + "\n")
    print(results if wanted.json else table(rows))
    return 1 if failed else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure GoEx beside a floor, or a peer.")
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="measure this one (can be repeated)")
    parser.add_argument("--json", action="store_true", help="print the list instead of the table")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="where the list goes")
    return parser.parse_args(argv)


def _machine() -> str:
    place = tempfile.gettempdir()
    return (
        f"Python {platform.python_version()}, Linux {platform.release()}, {os.cpu_count()} processors, "
        f"load {os.getloadavg()[0]:.1f}; files in {place} ({_file_system(place)})"
    )


def _file_system(path: str) -> str:
    """The kind of file system below `path`: on one in memory a sync costs nothing."""
    found = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [(place, kind) for place, kind in found if Path(path).resolve().is_relative_to(place)]
    return max(holding, key=lambda each: len(each[0]), default=("", "unknown"))[1]


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
