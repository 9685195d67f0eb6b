"""What must hold after anything that was thrown at a daemon."""

from __future__ import annotations

import re

from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon

# Control characters and those that steer the direction of text; a line feed is allowed, and nothing else of the kind.
COMMANDING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def unbroken(daemon: Daemon) -> None:
    """The daemon met no defect, still answers, and its log verifies."""
    logs = (daemon.log, daemon.state_dir / "daemon.log")
    said = "".join(path.read_text(errors="replace") for path in logs if path.exists())
    assert "Traceback" not in said, said[-5000:]
    assert "defect" not in said, said[-5000:]
    found = daemon.person("VerifyLog", pb.VerifyLogRequest())
    assert (found.good, found.authenticated) == (True, True), found


def well_said(problem: pb.Problem, status: int, *words: str) -> None:
    """A problem with that exit status: one sentence, a next step, and `words` (patterns) in them."""
    text = f"{problem.message} {problem.next_step}"
    assert problem.exit_status == status, problem
    assert problem.message.endswith((".", "?")), problem
    assert problem.next_step, problem
    assert len(text) < 2000
    assert "Traceback" not in text
    assert "defect" not in text
    for word in words:
        assert re.search(word, text), (word, text)
