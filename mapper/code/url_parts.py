"""An address that a program asks for, taken apart as far as it is known."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mapper.code.abstract_values import UNKNOWN, Fields, Form, Lit, Value, parts_of
from mapper.code.routes import GAP, HOLE, Place, Segment


class Address:
    """An address, taken apart as far as it is known."""

    def __init__(self, place: Place, segments: tuple[Segment, ...], query: Fields, shown: str) -> None:
        self.place = place
        self.segments = segments
        self.query = query
        self.shown = shown

    @classmethod
    def of(cls, url: Value) -> Address | None:
        parts = parts_of(url)
        if not isinstance(parts[0], str):
            return None
        forms = [part.fields for part in parts if isinstance(part, Form)]
        written = "".join(part if isinstance(part, str) else "" if isinstance(part, Form) else GAP for part in parts)
        written = written.partition("#")[0].strip()
        try:
            split = urlsplit(written)
            split.port  # noqa: B018 # asking is what checks it
        except ValueError:
            return None
        if split.scheme not in ("http", "https", "goex-url") or not split.hostname or GAP in split.netloc:
            return None
        if split.username is not None:
            return None
        place = Place.of(f"{split.scheme}://{split.netloc}")
        if place is None:
            return None
        segments = tuple(_segment(one) for one in split.path.removeprefix("/").split("/")) if split.path else ()
        if segments and segments[-1] == ():
            segments = segments[:-1]
        query = Fields()
        try:
            pairs = parse_qsl(split.query, keep_blank_values=True, max_num_fields=200)
        except ValueError:
            return None
        for name, value in pairs:
            if GAP in name:
                query = Fields(query.items, True)
            else:
                query = query.merged(Fields(((name, UNKNOWN if GAP in value else Lit(value)),)))
        for form in forms:
            query = query.merged(form)
        host = place.host if place.scheme != "goex-url" else f"({place.host})"
        path = "/".join("".join(p if isinstance(p, str) else "…" for p in one) for one in segments)
        return cls(place, segments, query, f"{host}/{path}")


def _segment(written: str) -> Segment:
    made: list[Any] = []
    for place, part in enumerate(written.split(GAP)):
        if place:
            made.append(HOLE)
        if part:
            made.append(part)
    return tuple(made)
