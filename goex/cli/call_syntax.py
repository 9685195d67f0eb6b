"""Calls as they are written on the command line.

    --call slack.chat.postMessage channel=#ops text=hi --call slack.pins.add timestamp=@0.$.ts

Rules: what follows `--call SERVICE.METHOD` up to the next option belongs to it. `key=value` is text, whatever it
looks like; `key:=json` is a JSON value (`limit:=5`, `draft:=true`); `key=@0.$.path` takes the value at that path in
the answer to call 0 (calls count from 0, and only earlier ones can be referred to). Text that happens to look like
such a reference is written as JSON: `key:='"@0.$.path"'`. `body.title=…` is the member `title` of the object `body`,
as `goex catalog show` lists it. A key stands once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from policies.errors import InvalidInput
from policies.jsonvalue import parse as parse_json

_METHOD = re.compile(r"([A-Za-z0-9_\-]+)\.([A-Za-z0-9_\-.]+)")
_PAIR = re.compile(r"([A-Za-z_$][A-Za-z0-9_.$\[\]\-]*)(:?=)(.*)", re.DOTALL)
_REFERENCE = re.compile(r"@(\d{1,4})\.(\$.*)", re.DOTALL)


def gather(args: Sequence[str]) -> list[str]:
    """Fold `--call NAME key=value …` into `--call JSON`, since an option takes one value.

    Anything else stays as it is; what follows a bare `--` is left alone.
    """
    made: list[str] = []
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        if arg == "--":
            return [*made, "--", *args[index:]]
        if arg == "--call" and index < len(args):
            first, index = args[index], index + 1
        elif arg.startswith("--call="):
            first = arg.removeprefix("--call=")
        else:
            made.append(arg)
            continue
        group = [first]
        while index < len(args) and not args[index].startswith("-"):
            group.append(args[index])
            index += 1
        made += ["--call", json.dumps(group)]
    return made


def parse(groups: Sequence[str], account: str = "") -> list[dict[str, Any]]:
    """The calls of folded `--call` options: service, method, arguments, account. Raises InvalidInput."""
    return [_call(index, json.loads(group), account) for index, group in enumerate(groups)]


def _call(index: int, words: Sequence[str], account: str) -> dict[str, Any]:
    match = _METHOD.fullmatch(words[0])
    if match is None:
        raise InvalidInput(
            f"{words[0][:80]!r} isn't a method.",
            next_step="Write it like slack.chat.postMessage; see: goex catalog list",
        )
    arguments: dict[str, Any] = {}
    for word in words[1:]:
        key, value = _pair(index, word)
        inside, *names = key.split(".") if key.startswith("body.") else [key]
        at = arguments
        for name in names:
            at = at.setdefault(inside, {}) if isinstance(at, dict) else at
            inside = name
        if not isinstance(at, dict) or inside in at:
            raise InvalidInput(f"The argument {key} of {words[0]} stands twice.", next_step="Leave one out.")
        at[inside] = value
    return {"service": match[1], "method": match[2], "arguments": arguments, "account": account}


def _pair(index: int, word: str) -> tuple[str, Any]:
    match = _PAIR.fullmatch(word)
    if match is None:
        raise InvalidInput(
            f"{word[:80]!r} isn't an argument.", next_step="Write it like key=value, key:=json or key=@0.$.path."
        )
    key, sign, text = match.groups()
    if sign == ":=":
        return key, parse_json(text, what=f"The value of {key}")
    reference = _REFERENCE.fullmatch(text)
    if reference is None:
        return key, text
    number = int(reference[1])
    if number >= index:
        raise InvalidInput(
            f"{key} refers to call {number}, which isn't before call {index}.",
            next_step="Calls count from 0, and only an earlier one has an answer to take a value from.",
        )
    from policies.jsonpath import check_path

    check_path(reference[2])
    return key, {"$from": number, "path": reference[2]}
