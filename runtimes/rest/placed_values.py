"""Arguments written as the places of a request want them: query styles, the parts of a multipart body, bytes.

Rules: a document says what parts the items of a list or the keys of an object; a value that holds such a sign itself
would be another value, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from policies.errors import InvalidInput
from policies.media_types import MEDIA, OCTETS
from policies.services import Method
from runtimes.gateway.plan import Ref
from runtimes.gateway.request_headers import carries_credential
from runtimes.gateway.response_values import PART_TEXT, NoValue, decoded
from runtimes.rest.references import refs_in

_DEEPEST = 8
_JOINED = {"pipes": "|", "spaces": " "}


def queries(method: Method, placed: Mapping[str, Mapping[str, Any]], *, later: bool) -> dict[str, Any]:
    """The query. `later`: a value with references in it is left as it is, since the request is made anew."""
    made: dict[str, Any] = {name: flat(method, name, value, later) for name, value in placed["query"].items()}
    made |= {name: each(method, name, value) for name, value in placed["repeat"].items()}
    for place, sign in _JOINED.items():
        made |= {name: flat(method, name, value, later, sign) for name, value in placed[place].items()}
    for name, value in placed["text"].items():
        known = not (isinstance(value, Ref) or (later and refs_in(value)))
        made[name] = _dumped(method, name, value) if known else value
    for place in ("deep", "spread"):
        for name, value in placed[place].items():
            if later and refs_in(value):
                made[name] = value
                continue
            for key, one in _keys(method, name, value, place):
                if key in made or (place == "spread" and key in method.locations):
                    raise InvalidInput(f"{method.id}, {name}: its key {key[:60]!r} is another parameter's name.")
                if place == "spread" and carries_credential(key):
                    raise InvalidInput(f"{method.id}, {name}: its key {key[:60]!r} is a credential's name.")
                made[key] = one
    return made


def _keys(method: Method, name: str, value: Any, place: str, level: int = 0) -> list[tuple[str, Any]]:
    """The pairs of an object in the query."""
    if refs_in(value):
        raise InvalidInput(f"{method.id}, {name}: a part of a value can't come from an answer here.")
    if not isinstance(value, Mapping) or level > _DEEPEST:
        raise InvalidInput(f"{method.id}, {name} is sent by its keys, so it must be an object.")
    found: list[tuple[str, Any]] = []
    for key, one in value.items():
        own = key if place == "spread" else f"{name}[{key}]"
        if any(sign in key for sign in "[]&=") or not key:
            raise InvalidInput(f"{method.id}, {name}: {key[:60]!r} can't be a key in the query.")
        if isinstance(one, Mapping) and place == "deep":
            found += _keys(method, own, one, place, level + 1)
        elif isinstance(one, Mapping | list):
            raise InvalidInput(f"{method.id}, {name}: how {key[:60]!r} would be sent isn't defined.")
        else:
            found.append((own, None if one is None else flat(method, own, one)))
    return found


def each(method: Method, name: str, value: Any) -> Any:
    """The values of a parameter that is sent once for each."""
    if isinstance(value, list):
        return [flat(method, name, item) for item in value]
    return flat(method, name, value)


def flat(method: Method, name: str, value: Any, later: bool = False, sign: str = ",") -> Any:
    """A value where only text can stand: booleans in lower case, lists joined by `sign`, objects as JSON.

    `later`: a value with references in it is left as it is, since the request is made anew once they are filled.
    """
    if isinstance(value, Ref) or (later and refs_in(value)):
        return value
    if refs_in(value):
        raise InvalidInput(f"{method.id}, {name}: a part of a value can't come from an answer here, only all of it.")
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) and sign not in item for item in value):
        return sign.join(value)
    if method.origin_id and isinstance(value, list):
        # A document says what parts them; JSON in their place would be another value.
        if any(isinstance(item, list | dict) or (isinstance(item, str) and sign in item) for item in value):
            raise InvalidInput(f"{method.id}, {name}: its items are parted by {sign!r}, so none can hold one.")
        return sign.join(str(flat(method, name, item)) for item in value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dumped(method: Method, name: str, value: Any) -> str:
    if refs_in(value):
        raise InvalidInput(f"{method.id}, {name}: a part of a value can't come from an answer here, only all of it.")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def whole(method: Method, value: Any) -> Any:
    """A body that is one argument. Raises InvalidInput where it can't be one."""
    if value is None or isinstance(value, Ref) or method.body not in ("text", "bytes"):
        return value
    if not isinstance(value, str):
        raise InvalidInput(f"{method.id} wants its body as text.")
    if method.body == "bytes":
        _check_base64(method, "body", value)
    return value


def parts(method: Method, fields: Mapping[str, Any], files: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The parts of a multipart body: fields first, then files, so that a server knows what these are for."""
    made: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in fields.items() if value is not None and value != []
    ]
    for name, value in files.items():
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, Mapping) or ("text" in one) == ("base64" in one):
                raise InvalidInput(
                    f"{method.id}, {name} is a file.", next_step='Give {"name": …, "type": …} and "text" or "base64".'
                )
            if "base64" in one:
                _check_base64(method, name, one["base64"])
            file, media = one.get("name", "file"), one.get("type", OCTETS)
            if not (isinstance(file, str) and PART_TEXT.fullmatch(file) and MEDIA.fullmatch(str(media))):
                raise InvalidInput(f"{method.id}, {name}: the file's name or type can't be sent.")
            content = {key: one[key] for key in ("text", "base64") if key in one}
            made.append({"name": name, "file": file, "type": media, **content})
    return made or None


def _check_base64(method: Method, name: str, value: Any) -> None:
    if isinstance(value, Ref):
        return
    try:
        decoded(value)
    except NoValue:
        raise InvalidInput(f"{method.id}, {name} must be written in base64.") from None
