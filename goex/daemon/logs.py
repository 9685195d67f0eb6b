"""What goes to daemon.log: GoEx's own words (`goex.logs`), and each defect that nobody else caught."""

from __future__ import annotations

import logging
import sys

from goex.logs import own_words_to_stderr

log = logging.getLogger("goex.daemon.logs")


def log_to_stderr(level: str) -> None:
    """Write what GoEx itself logs from `level` on; what Python would write there by itself goes the same way."""
    own_words_to_stderr(level)
    sys.excepthook = lambda kind, error, trace: log.critical("the daemon met a defect", exc_info=error)
