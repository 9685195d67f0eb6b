"""Where the arguments of a method are in a program's requests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from mapper.code.found_calls import FoundCall
from policies.services import Method, overrides
from runtimes.code.path_templates import HOLE
from runtimes.code.same_address import known_fields
from runtimes.gateway.request_headers import carries_credential

MOST_DEEP = 16  # brackets of a field that is held

_UNREAD = frozenset({"GET", "HEAD"})
_WATCHED: Mapping[str, Literal["json", "form", "none"]] = {"json": "json", "form": "form", "none": "none"}


class Places:
    """Where the arguments of a method are in a request that is sent in one way."""

    def __init__(self, method: Method, http: str, calls: Sequence[FoundCall]) -> None:
        names = [str(name) for name in method.parameters.get("properties", {}) if not overrides(name)]
        usual = "body" if method.body != "none" else "query"
        at = {name: str(method.locations.get(name, usual)) for name in names}
        self.path = [name for name in names if at[name] == "path"]
        self.several = [match["name"] for match in HOLE.finditer(method.path) if match["several"]]
        self.headers = [name for name in names if at[name] == "header"]
        rest = [name for name in names if at[name] not in ("path", "header")]
        if http == method.http:
            self.query = [name for name in rest if at[name] in ("query", "repeat")]
            self.body = [name for name in rest if at[name] == "body"]
            # Text, bytes and parts are streamed: no rule says anything about what is in them.
            self.format: Literal["json", "form", "any", "none"] = _WATCHED.get(method.body, "any")
        elif http in _UNREAD or http == "DELETE":
            self.query, self.body, self.format = rest, [], "none"
        else:
            self.query, self.body, self.format = [], rest, "form"
        # Of a call without a body, what isn't known by its value is in the query, too.
        said = {name for call in calls for name in (*call.query, *(call.open if call.body == "none" else ()))}
        self.query += [name for name in rest if name in said and name not in self.query]
        if any(call.body == "any" for call in calls):
            self.format = "any"
        elif self.format == "none" and any(call.body != "none" for call in calls):
            self.format = "json"
        # Parts of an argument that a query or form has as fields of their own: `metadata[order]`. Documents leave the
        # argument itself out, where a form can't have it whole.
        asked = [
            name
            for call in calls
            for name in (*call.query, *call.open)
            if base_of(name) in self.query
            if name not in names
        ]
        self.query += dict.fromkeys(asked)
        sent = [
            name
            for call in calls
            for name in (*call.fields, *call.open)
            if base_of(name) and name not in (*names, *asked) and not carries_credential(name, "token")
        ]
        if self.format != "form" or not known_fields(method):
            sent = []
        self.body += dict.fromkeys(sent)
        self.parts = tuple(dict.fromkeys((*asked, *sent)))
        self.all = dict.fromkeys((*self.path, *self.query, *self.body))

    def stands_once(self, part: str, open_: Collection[str]) -> bool:
        """Whether a part can be held to its values: a list's nameless element (`expand[]`) may come several times, and
        what some call leaves open (`metadata`) may have it too."""
        return (
            "[]" not in part
            and part.count("[") <= MOST_DEEP
            and not any(part.startswith(f"{name}[") for name in open_)
        )  # fmt: skip


def base_of(name: str) -> str:
    """The argument that a form's field is a part of; "" for one that is whole."""
    return name.partition("[")[0] if "[" in name else ""
