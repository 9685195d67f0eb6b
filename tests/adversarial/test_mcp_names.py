"""Tools whose names two methods share: what a client shows of one would be said of a call of the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from goex.mcp import server
from goex.mcp.server import Door, shared_names
from goex.mcp.tools import TOOLS
from goex.rpc import goex_pb2 as pb

LONG = "shop." + "a" * 70
METHODS = {
    "shop.items.read": "read",
    "shop.items_read": "delete",  # of another method, whose tool would have that name
    f"{LONG}1": "read",
    f"{LONG}2": "delete",  # names are cut to 64 letters
    "goex.call": "read",  # as GoEx's own
    "shop.alone": "read",
}


def door() -> Door:
    found = {id: pb.FoundMethod(id=id, risk=risk, parameters_json="{}") for id, risk in METHODS.items()}
    link: Any = SimpleNamespace()
    return Door(link, lambda _: SimpleNamespace(token="", session=""), found)  # type: ignore[arg-type, return-value]


def misleading(made: Door) -> list[str]:
    """The tools that are said to read, and whose calls change something; or that are said to be something twice."""
    names = [tool.name for tool in made.tools]
    twice = [name for name in names if names.count(name) > 1]
    read = [tool.name for tool in made.tools[len(TOOLS) :] if tool.annotations and tool.annotations.read_only_hint]
    return twice + [name for name in read if made._methods[name].risk != "read"]


@pytest.mark.promise(90)
async def test_no_tool_is_another_ones() -> None:
    made = door()
    assert not misleading(made)
    assert [tool.name for tool in made.tools[len(TOOLS) :]] == ["shop_alone"]
    for name in ("shop_items_read", "shop_" + "a" * 59):
        with pytest.raises(MCPError, match="Unknown tool"):
            await made.call_tool(None, types.CallToolRequestParams(name=name))  # type: ignore[arg-type]


def test_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names may be shared, a tool that is said to read deletes."""
    monkeypatch.setattr(server, "shared_names", lambda methods: frozenset())
    assert {"shop_items_read", "goex_call"} <= set(misleading(door()))


def test_names_are_counted_with_goex_s_own() -> None:
    assert shared_names(["a.b"]) == frozenset()
    assert shared_names(["a.b", "a_b", "goex.find"]) == {"a_b", "goex_find"}
