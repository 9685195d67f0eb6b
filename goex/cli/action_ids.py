"""How a command names an action: its id, the beginning of it, or `last`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from policies.errors import InvalidInput

if TYPE_CHECKING:
    from goex.client import Client

LAST = "last"
_LEAST_ID = 4  # characters of an id that may stand for the whole
_KINDS = {"q-": "request for approval", "g-": "grant"}  # whose ids begin so

ActionArgument = Annotated[
    str,
    typer.Argument(metavar="[ID]", help="An action's id; default: the newest action that fits.", show_default=False),
]


def resolve(client: Client, wanted: str) -> str:
    """The id that `wanted` stands for: itself, the one action whose id begins so, or for `last` the newest. Raises
    InvalidInput.
    """
    kind = _KINDS.get(wanted[:2])
    if kind is not None:
        raise InvalidInput(f"{wanted[:60]!r} is the id of a {kind}, not of an action.", next_step="See: goex log")
    recent = client.actions(limit=200)
    if wanted == LAST:
        if not recent:
            raise InvalidInput("There is no action yet.", next_step='Ask for one: goex exec "…"')
        return recent[0].id
    close = {action.id for action in recent if action.id.startswith(wanted)} if len(wanted) >= _LEAST_ID else set()
    if len(close) > 1 and wanted not in close:
        raise InvalidInput(f"{wanted!r} fits {len(close)} actions.", next_step="Write more of the id.")
    return next(iter(close)) if len(close) == 1 else wanted
