"""Reads who gets something by a method: `audience` of a manifest.

`"nobody"`, `"anyone"` and `"unknown"` stand for themselves. A list names arguments: `"channel"` must be there,
`"attendees?"` may be absent, which is nobody then; a table says more (`of`, `absent`, `means`, `own`, `place`, as in
`policies.services.Audience`).
"""

from __future__ import annotations

from typing import Any

from mapper.toml_tables import Table
from policies.services import Audience, Risk

ANYONE = "anyone"
_WHOLE = {
    "nobody": (),
    ANYONE: (Audience(of="", absent=ANYONE),),
    "unknown": (Audience(of=""),),
}
_KEYS = {"of": str, "absent": str, "means": dict, "own": list, "place": bool}


def read(table: Table, risk: Risk, names: frozenset[str]) -> tuple[Audience, ...] | None:
    """Return the audience that the method's `table` declares; None where it declares none. `names` are its arguments.

    Raises ManifestError."""
    if not table.has("audience"):
        return None
    said = table.any("audience")
    if risk is Risk.READ:
        table.fail("a read reaches nobody, so there is nothing to say", "audience")
    if isinstance(said, str):
        if said not in _WHOLE:
            table.fail(f"must be a list of arguments, or one of: {', '.join(_WHOLE)}", "audience")
        return _WHOLE[said]
    if not isinstance(said, list) or not said:
        table.fail('must name an argument; where it reaches nobody, say "nobody"', "audience")
    return tuple(_entry(table, one, names) for one in said)


def _entry(table: Table, said: Any, names: frozenset[str]) -> Audience:
    if isinstance(said, str):
        made = Audience(of=said.removesuffix("?"), absent="" if said.endswith("?") else None, place="{" in said)
    else:
        if not isinstance(said, dict) or any(not isinstance(v, _KEYS.get(k, ())) for k, v in said.items()):
            table.fail(f"has entries that are texts, or tables of: {', '.join(_KEYS)}", "audience")
        own = tuple(str(one).lower() for one in said.get("own", ()))
        means = {str(name).lower(): str(who) for name, who in said.get("means", {}).items()}
        made = Audience(**{"of": "", **said, "own": own, "means": means})
    for name in made.arguments:
        if name.partition(".")[0] not in names:
            table.fail(f"names {name!r}, which is no argument of this method", "audience")
    return made
