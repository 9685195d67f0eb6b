"""A module that is loaded when something of it is first used."""

from __future__ import annotations

import importlib
from typing import Any


class Late:
    """Stands for the module `name`. Any thread may be the first to use it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
