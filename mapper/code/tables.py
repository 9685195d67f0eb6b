"""Libraries known by tables, made from their own source (`mapper.code.tabulating`)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mapper.code.values import Fields, Thing, Value

if TYPE_CHECKING:
    from mapper.code.python import Reader


@cache
def _table(name: str) -> Any:
    return json.loads((files("mapper") / "code" / "library_tables" / f"{name}.json").read_text(encoding="utf-8"))


@cache
def slack_json() -> frozenset[str]:
    """The names of slack_sdk's functions that send JSON; the others send a form."""
    return frozenset(_table("slack_sdk")["json"])


def made(name: str, args: list[Value], given: Fields) -> Value | None:
    return None


def called(reader: Reader, owner: Thing, name: str, args: list[Value], given: Fields) -> Value | None:
    return None


def attribute(owner: Thing, name: str) -> Value | None:
    return None
