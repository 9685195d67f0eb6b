"""What an imported service is called, and which version is the main one. Pure.

Rules: the main version has the provider's own name, others have the version behind it (`compute-beta`); a name that
is taken is never given again, not even in other letters' case: then the main version, too, is called `gmail-v1`, and
if that is taken `google-gmail-v1`. Versions like `directory_v1` and `reports_v1` are parts of one API: the main
version of each part together is the main service.

Which version is the main one: what has that name already, as long as it is there, since accounts and grants stand under
it. Else the newest stable version, as providers' own lists of what they prefer grow old; but not one with fewer than
half the methods of the largest (another part of the API, called by the next number), nor one that adds nothing to what
its provider prefers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

# What the engine and the vault have of their own under a service's name: a permission, a credential, a kind of action.
RESERVED = frozenset({"goex", "model", "files", "code", "db", "sql", "mongo"})

SERVICE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,59}")
METHOD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
MAX_METHOD_NAME = 200

_PART = re.compile(r"([a-z]+)_(v[0-9].*)")
_NUMBERS = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.[0-9]+)*")


def part_of(version: str) -> str:
    """Which part of its API a version is ("directory" of `directory_v1`); "" when it is the whole."""
    match = _PART.fullmatch(version)
    return match[1] if match else ""


def stable(version: str) -> bool:
    """Whether a version is neither alpha nor beta nor another preview: `v3`, `2.1`, `directory_v1`."""
    return _NUMBERS.fullmatch(_bare(version)) is not None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an API: the names of its methods, and whether its provider prefers it (None: it doesn't say)."""

    methods: frozenset[str]
    preferred: bool | None = None


def main_versions(versions: Mapping[str, Version], kept: Collection[str] = ()) -> tuple[str, ...]:
    """The main version, or those of each part, sorted. `kept`: those that are main already, and so remain."""
    parts: dict[str, list[str]] = {}
    for version in versions:
        parts.setdefault(part_of(version), []).append(version)
    whole = "" in parts if not kept else any(not part_of(version) for version in kept)
    # A whole API: its parts, if any, are something else; and the other way round.
    parts = {part: found for part, found in parts.items() if (part == "") is whole}
    chosen = {part: _main({version: versions[version] for version in found}) for part, found in parts.items()}
    chosen.update({part_of(version): version for version in kept})
    if any(stable(version) for version in chosen.values()):
        chosen = {part: version for part, version in chosen.items() if stable(version) or version in kept}
    return tuple(sorted(chosen.values()))


def service_name(wanted: Iterable[str], taken: Callable[[str], bool]) -> str:
    """The first of the wanted names that isn't taken; "" when all are."""
    return next((name for name in wanted if SERVICE_NAME.fullmatch(name) and not taken(name)), "")


def wishes(provider: str, provider_name: str, version: str, *, main: bool) -> tuple[str, ...]:
    """The names for a version, best first. `version` is one, or several joined by `+`."""
    own = re.sub(r"[^A-Za-z0-9_-]", "_", provider_name)
    suffix = re.sub(r"[^A-Za-z0-9_-]", "_", version.split("+")[0])
    long = f"{own}-{suffix}" if suffix else f"{own}-{provider}"
    named = (long, f"{provider}-{long}", *(f"{provider}-{long}-{number}" for number in range(2, 10)))
    return (own, *named) if main else named


def _main(versions: Mapping[str, Version]) -> str:
    filled = {version: about for version, about in versions.items() if about.methods} or versions
    newest = sorted(filled, key=_rank, reverse=True)
    preferred = [version for version in newest if filled[version].preferred]
    steady = [version for version in newest if stable(version)]
    if not steady:
        return (preferred or newest)[0]
    wanted = next((version for version in preferred if version in steady), None)
    covered = filled[wanted].methods if wanted is not None else frozenset[str]()
    most = max(len(filled[version].methods) for version in steady)
    for version in steady:
        methods = filled[version].methods
        if 2 * len(methods) >= most and (version == wanted or not methods <= covered):
            return version
    return wanted or steady[0]


def _rank(version: str) -> tuple[int, int, int, str]:
    bare = _bare(version)
    match = _NUMBERS.match(bare)
    numbers = (int(match[1][:9]), int((match[2] or "0")[:9])) if match else (0, 0)
    return (*numbers, {"beta": 2, "preview": 1}.get(_word(bare), 0), bare)


def _bare(version: str) -> str:
    match = _PART.fullmatch(version)
    return match[2] if match else version


def _word(version: str) -> str:
    return next((word for word in ("alpha", "beta", "preview") if word in version), "")
