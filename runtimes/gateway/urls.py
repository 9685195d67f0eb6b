"""Targets of requests: read strictly, once; and written by us from decoded parts.

Paths are compared as decoded segments, queries as decoded multisets. What a server could read in another way than we
do is refused: dot segments (encoded or not), empty segments, backslashes, semicolons, bad percent signs, control
characters, anything beyond ASCII that isn't percent-encoded UTF-8.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, unquote, unquote_to_bytes

from policies.errors import GoexError, InvalidInput
from policies.host_names import normal_host
from policies.normal_form import nfkc

MAX_SEGMENT = 1024
MAX_QUERY_VALUE = 65_536
_DECODED = 3  # times that servers in a row may decode what we sent

_SAFE_PATH = "!$'()*,:@"  # legal in a segment, and read alike everywhere
_RAW_PATH = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,=:@%/]*")
_RAW_QUERY = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,=:@%/?\[\]]*")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Mn"})  # categories
_FILLERS = frozenset("\u115f\u1160\u2800")  # letters that nobody sees; NFKC makes others of them one of these
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9\-_.]{1,253})(?::(?P<port>[0-9]{1,5}))?")


class BadTarget(GoexError):
    """A target that can't be read in exactly one way."""

    code = "target"


def authority(text: str, default_port: int | None = None) -> tuple[str, int]:
    """`host[:port]` as (host, port). Raises BadTarget for user info, odd spellings, and a port that is missing."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise BadTarget("the host isn't written as host:port")
    host = match["host"].lower()
    try:
        normal = normal_host(host)
    except InvalidInput as error:
        raise BadTarget("the host isn't a name or address") from error
    if normal != host.strip("[]"):
        raise BadTarget("the host isn't written in its one normal form")
    port = int(match["port"]) if match["port"] else default_port
    if port is None or not 0 < port < 65536:
        raise BadTarget("the host needs a port")
    return normal, port


def split_target(target: str) -> tuple[str, str]:
    """An origin-form target as (path, query), raw. Raises BadTarget."""
    if not target.startswith("/"):
        raise BadTarget("the target isn't a path")
    path, _, query = target.partition("?")
    return path, query


def decode_path(path: str) -> tuple[str, ...]:
    """The decoded segments of a raw path. A path that ends with `/` has "" as its last one. Raises BadTarget."""
    if not path.startswith("/"):
        raise BadTarget("the path doesn't begin with a slash")
    if "\\" in path or ";" in path or not _RAW_PATH.fullmatch(path):
        raise BadTarget("the path holds a character that servers read in different ways")
    segments = tuple(_decode(part, plus=False) for part in path[1:].split("/"))
    if path == "/":
        return ()
    if any(not segment for segment in segments[:-1]):
        raise BadTarget("the path holds an empty segment")
    for segment in segments:
        check_segment(segment, may_be_empty=True)
    return segments


def encode_path(segments: Sequence[str]) -> str:
    """The path of decoded segments, each encoded as exactly one."""
    return "/" + "/".join(quote(segment, safe=_SAFE_PATH) for segment in segments)


def check_segment(segment: str, *, may_be_empty: bool = False) -> str:
    """Return `segment` when it can be one path segment. Raises BadTarget for what a server could read as more.

    A slash within it is sent encoded; a server that decodes before it splits must still not find a dot segment.
    """
    if not segment and not may_be_empty:
        raise BadTarget("a path segment is empty")
    if len(segment) > MAX_SEGMENT:
        raise BadTarget("a path segment is too long")
    if _CONTROL.search(segment):
        raise BadTarget("a path segment holds a control character")
    if is_dots(segment):
        raise BadTarget("a path segment is a dot segment")
    return segment


def is_dots(text: str) -> bool:
    """Whether a server may find a dot segment in it: some take several characters for one, leave out blanks,
    characters that nobody sees and a segment's parameters (`..;x`), or decode a path more than once."""
    return any(_has_dots(each) for each in readings(text))


def readings(text: str) -> Iterator[str]:
    """The text, and what it becomes where servers in a row each decode it; normalised (NFKC), each once."""
    for _ in range(1 + _DECODED):
        text = nfkc(text)
        yield text
        if "%" not in text or (decoded := unquote(text)) == text:
            return
        text = decoded


def _has_dots(folded: str) -> bool:
    if "." not in folded:
        return False
    seen = "".join(char for char in folded if unicodedata.category(char) not in _UNSEEN and char not in _FILLERS)
    return any(piece.partition(";")[0] in (".", "..") for piece in re.split(r"[/\\]", seen))


def unclosed(name: str) -> bool:
    """Whether a name of a query or a form has a bracket that isn't closed: PHP reads `user[id` as `user_id`."""
    _, bracket, rest = name.partition("[")
    return bool(bracket) and "]" not in rest


def decode_query(query: str, *, form: bool = False, ordered: bool = False) -> tuple[tuple[str, str], ...]:
    """The decoded pairs of a raw query (or of a form body), sorted, or as they come. Raises BadTarget."""
    if not query:
        return ()
    if not form and not _RAW_QUERY.fullmatch(query):
        raise BadTarget("the query holds a character that servers read in different ways")
    pairs = []
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if not name:
            raise BadTarget("the query holds a pair without a name")
        pairs.append((_decode(name, plus=True), _decode(value, plus=True)))
    return tuple(pairs) if ordered else tuple(sorted(pairs))


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs as a query or a form body; everything but unreserved characters is encoded."""
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def _decode(text: str, *, plus: bool) -> str:
    if _BAD_PERCENT.search(text):
        raise BadTarget("a percent sign without two hex digits")
    try:
        return unquote_to_bytes(text.replace("+", " ") if plus else text).decode("utf-8")
    except UnicodeError as error:
        raise BadTarget("percent-encoded bytes that aren't UTF-8") from error
