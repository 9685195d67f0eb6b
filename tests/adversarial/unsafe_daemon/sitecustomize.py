"""Takes defences out of a daemon of the tests': those whose names GOEX_TEST_WITHOUT holds. The controls of attacks that
come over a daemon's sockets; only a process whose PYTHONPATH names this folder loads it, and none that is shipped does.
"""

from __future__ import annotations

import os


def _references() -> None:
    from policies.actions import Need, Plan

    Need.unseen = property(lambda self: ())  # type: ignore[assignment, method-assign]
    Plan.unseen = property(lambda self: ())  # type: ignore[assignment, method-assign]


def _unknown_arguments() -> None:
    import policies.rules.arguments

    policies.rules.arguments.refers = lambda value: False  # type: ignore[attr-defined]


_DEFENCES = {"references": _references, "unknown arguments": _unknown_arguments}

for _name in os.environ.get("GOEX_TEST_WITHOUT", "").split(","):
    if _name:
        _DEFENCES[_name]()
