"""`make trace` sees what runs in the command and in the daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import daemon as support
from tools.trace import Trace


@pytest.mark.thorough
def test_it_sees_what_a_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "GOEX", support.GOEX)  # which it replaces
    monkeypatch.setattr(support, "DAEMON", support.DAEMON)
    trace = Trace(tmp_path)
    with trace.daemon:
        ran = trace.measure("log")
    files = {one.partition(":")[0] for one in ran}
    assert {"goex/cli/main.py", "goex/daemon/rpc_context.py"} <= files
    assert not any(file.startswith(("tests/", "runtimes/sandbox/")) for file in files)
