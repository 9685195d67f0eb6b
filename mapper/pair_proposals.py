"""A model's proposal for the way back of a method: what it is told, and how its answer is read.

Rules: it is told the catalog's entries alone, never a call, an answer or a name of the person's; what it says is
untrusted and becomes a pair only as `mapper.pairs` reads a model's: checked against the catalog, its values taken from
the request, the answer or what was read before, and never counted as the developer's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from mapper import pairs
from mapper.catalog import Catalog
from mapper.importing.risks import words
from policies.display_text import escape
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import parse
from policies.reversions import Pair
from policies.services import Method, Risk

MAX_METHODS = 40  # entries that a model is told
MAX_ANSWER = 20_000  # characters
TRIES = 3

Complete = Callable[[list[dict[str, str]]], Awaitable[str]]  # messages to words

_SYSTEM = """\
You propose how one API call can be taken back, as one JSON object and nothing else:
{"method": "<the method>", "undo": {"pre": T, "calls": [T, …], "guard": T, "verify": T, "note": "what remains"}}
T is {"method": "<name>", "arguments": {…}, "expect": [{"path": "$.a", "equals": V}, …]}; pre and guard may be left out.
pre is read before the call, guard before the undo (if its expectations don't hold, nothing is undone), verify after.
pre, guard and verify must be methods of risk "read". Expectations: equals, not_equals, exists (true), absent (true), or
{"status": [404]}. Every argument must be a reference: "$request.NAME" (an argument of the call), "$response.PATH" (its
answer), "$pre.PATH" (what was read before); true and false may be written out. Never invent a value or a method.
If there is no safe way back, answer {"none": "why"}."""


async def propose(catalog: Catalog, method_id: str, complete: Complete) -> Pair:
    """Ask for a way back of a method. Raises Unsupported when the model knows none, InvalidInput where nothing that it
    proposed can be taken, and what `complete` raises."""
    method = catalog.method(method_id)
    messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _told(catalog, method)}]
    wrong = ""
    for _ in range(TRIES):
        said = await complete(messages)
        try:
            return _read(said, method, catalog)
        except InvalidInput as error:
            wrong = error.message
            messages = [
                *messages[:2],
                {"role": "assistant", "content": said[:MAX_ANSWER]},
                {"role": "user", "content": f"That can't be taken: {wrong} Answer with the whole JSON object again."},
            ]
    raise InvalidInput(
        f"The model proposed nothing for {method_id} that can be taken: {escape(wrong)[:500]}",
        next_step="Write one yourself: goex undo-pairs add FILE",
    )


def _read(said: str, method: Method, catalog: Catalog) -> Pair:
    text = said[:MAX_ANSWER]
    start, end = text.find("{"), text.rfind("}")
    value = parse(text[start : end + 1], what="Its answer") if 0 <= start < end else None
    if not isinstance(value, dict):
        raise InvalidInput("There is no JSON object in it.")
    if set(value) == {"none"}:
        raise Unsupported(f"The model knows no safe way back of {method.id}: {escape(str(value['none']))[:300]}")
    undo = value.get("undo")
    if not isinstance(undo, dict) or set(value) - {"method", "undo"}:
        raise InvalidInput("It needs `method` and `undo`, and nothing else.")
    named = str(value.get("method", "")).removeprefix(f"{method.service}.")
    if named != method.name:
        raise InvalidInput(f"It is for {method.name}, not for {named[:60]!r}.")
    return pairs.from_json({"method": method.id, "undo": _local(undo, method.service)}, catalog, source="model")


def _local(undo: dict[str, Any], service: str) -> dict[str, Any]:
    """Models write full names; templates name methods of their own service."""
    text = json.dumps(undo)
    made: dict[str, Any] = json.loads(text)
    templates = [made.get(name) for name in ("pre", "guard", "verify")] + list(made.get("calls") or ())
    for template in templates:
        if isinstance(template, dict) and isinstance(template.get("method"), str):
            template["method"] = template["method"].removeprefix(f"{service}.")
    return {name: value for name, value in made.items() if value is not None}


def _told(catalog: Catalog, method: Method) -> str:
    methods = [method, *_near(catalog, method)]
    return "Data, as JSON:\n" + json.dumps(
        {"method": method.name, "methods": [_entry(one) for one in methods]}, ensure_ascii=False
    )


def _entry(method: Method) -> dict[str, Any]:
    own = method.parameters["properties"]
    return {
        "name": method.name,
        "description": method.description[:300],
        "http": f"{method.http} {method.path}",
        "risk": method.risk.word,
        "needs": list(method.parameters["required"]),
        "arguments": {name: {"type": about.get("type", "any")} for name, about in list(own.items())[:40]},
    }


def _near(catalog: Catalog, method: Method) -> Iterable[Method]:
    """The methods of its service that are about the same thing, as far as names tell."""
    service = catalog.service(method.service)
    own = {*words(method.name.replace(".", " ")), *words(method.path.replace("/", " "))}

    def near(outline: tuple[str, str, Risk]) -> tuple[int, str]:
        return -len(own & set(words(outline[0].replace(".", " ")))), outline[0]

    names = [name for name, _, _ in sorted(catalog.outlines(method.service), key=near) if name != method.name]
    return [service.methods[name] for name in names[:MAX_METHODS]]
