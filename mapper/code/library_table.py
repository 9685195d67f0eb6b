"""What libraries ask for, made from their own source by `tools.library_tables`: one JSON file for each."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(name: str) -> Any:
    """The table of the library of that name."""
    return json.loads((files("mapper") / "code" / "library_tables" / f"{name}.json").read_text(encoding="utf-8"))
