"""Takes defences out of a daemon that is a fork, where all modules have been loaded already."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

_OURS = ("goex.", "mapper.", "policies.", "runtimes.", "vault.")


def take_away() -> None:
    """What `sitecustomize` does at a process's start. Modules that had imported a function that is another one now get
    the other one too, as they would if they were loaded after it. Plain functions alone are followed so: where a
    constant or a class that others hold by name is to be another one, its control doesn't show its hole, and fails."""
    before = {module.__name__: dict(vars(module)) for module in _modules()}

    from tests.adversarial.unsafe_daemon import sitecustomize  # noqa: F401 – loading it does it

    changed: dict[types.FunctionType, object] = {}
    for module in _modules():
        for name, was in before.get(module.__name__, {}).items():
            own = isinstance(was, types.FunctionType) and was.__module__ == module.__name__
            if own and vars(module).get(name) is not was:
                changed[was] = vars(module)[name]
    for module in _modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType) and value in changed:
                setattr(module, name, changed[value])


def _modules() -> Iterator[types.ModuleType]:
    yield from [module for name, module in list(sys.modules.items()) if name.startswith(_OURS)]
