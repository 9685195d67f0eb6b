"""How a command reaches the daemon."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from goex.cli.output import Output

if TYPE_CHECKING:
    from goex.client import Client
    from goex.paths import Paths


def paths() -> Paths:
    """The places of this environment."""
    from goex.paths import Paths

    return Paths.from_env(os.environ)


def connect(out: Output, *, start: bool = True) -> Client:
    """A client on the person's socket; the daemon is started when it isn't running, if `start`."""
    from goex.client import connect as reach

    return reach(paths(), start=start, progress=out.progress)
