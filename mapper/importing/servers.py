"""Where an OpenAPI document's operations are: one base URL, or none, where only an account can know it. Pure.

Rules: https, or http on this very machine; a plain address without user, query, fragment or dot segments; of several
the first that is https. Variables take the values that the document gives them by default. What isn't such an address
is said, and the account has to name one: a document never decides where a credential goes that is there already.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from mapper.importing.import_report import BadPart
from policies.accounts import Origin
from policies.errors import InvalidInput

_URL = re.compile(r"https?://(?:[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?")
_HOLE = re.compile(r"\{([^{}]{1,100})\}")
_MOST = 50


def base_url(raw: dict[str, Any], swagger: bool, problems: list[BadPart]) -> str:
    """The base URL of a document; "" where there is none that can be used, and then `problems` say why."""
    candidates = _swagger(raw) if swagger else _servers(raw.get("servers"), ("servers",), problems)
    why: list[BadPart] = []
    good: list[str] = []
    for url, keys in candidates:
        wrong = wrong_with(url)
        if wrong:
            why.append(BadPart(f"{url[:100]!r} {wrong}, so an account has to say where it is", *keys))
        else:
            good.append(url.rstrip("/"))
    if not good:
        problems.extend(why[:3])
    return next((url for url in good if url.startswith("https:")), good[0] if good else "")


def same_place(servers: Any, url: str, own: Any = None) -> bool:
    """Whether an operation or a path that has servers for itself is at the document's address `url` as well: it names
    that, or all of the document's `own`. One of several alone may be the sandbox, where the rest is not."""
    found = {_place(one) for one, _ in _servers(servers, (), [])}
    ours = {_place(one) for one, _ in _servers(own, (), [])}
    if not url and not ours:
        return not any("://" in one for one, _ in _servers(servers, (), []))
    return (bool(url) and _place(url) in found) or (bool(ours) and ours <= found)


def _place(url: str) -> str:
    """An address without its scheme: documents write `//host`, `http:` and `https:` for one place."""
    scheme, colon, rest = url.partition("//")
    return rest.rstrip("/").lower() if colon and scheme in ("", "http:", "https:") else url.rstrip("/")


def _swagger(raw: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    host, below, schemes = raw.get("host"), raw.get("basePath", ""), raw.get("schemes", ["https"])
    if host is None:
        return []
    listed = schemes if isinstance(schemes, list) and schemes else ["https"]
    ways = [scheme for scheme in ("https", "http") if scheme in listed]
    path = str(below or "").strip("/")
    return [(f"{scheme}://{host}/{path}".rstrip("/"), ("host",)) for scheme in ways]


def _servers(raw: Any, keys: tuple[str, ...], problems: list[BadPart]) -> list[tuple[str, tuple[str, ...]]]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        problems.append(BadPart("must be a list", *keys))
        return []
    found = []
    for place, server in enumerate(raw[:_MOST]):
        here = (*keys, str(place))
        url = server.get("url") if isinstance(server, dict) else None
        if not isinstance(url, str) or not isinstance(server, dict):
            problems.append(BadPart("must be an object with a url", *here))
            continue
        found.append((_filled(url[:500], server.get("variables")), (*here, "url")))
    return found


def _filled(url: str, variables: Any) -> str:
    def value(match: re.Match[str]) -> str:
        about = variables.get(match[1]) if isinstance(variables, dict) else None
        default = about.get("default") if isinstance(about, dict) else None
        return str(default) if isinstance(default, str | int) and str(default) else match[0]

    return _HOLE.sub(value, url)


def wrong_with(url: str) -> str:
    """Why an address can't be a service's, in words; "" when it can."""
    if _HOLE.search(url):
        return "has a variable without a default"
    if "://" not in url:
        return "says no host"
    try:
        origin = Origin.parse(url)
    except InvalidInput:
        return "isn't an address"
    if not _URL.fullmatch(url) or any(part in (".", "..") for part in url.split("/")):
        return "isn't a plain https address"
    if origin.host.endswith(".invalid"):  # as the tools of MCP servers have it, and nothing on a network
        return "leads nowhere"
    if origin.scheme == "http" and not on_this_machine(origin.host):
        return "is plain http"
    return ""


def on_this_machine(host: str) -> bool:
    """Whether a host's name is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
