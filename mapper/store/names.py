"""What an imported service is called, and which version is the main one. Pure.

Rules: the main version has the provider's own name, others have the version behind it (`compute-beta`); a name that
is taken is never given again, not even in other letters' case: then the main version, too, is called `gmail-v1`, and
if that is taken `google-gmail-v1`. Versions like `directory_v1` and `reports_v1` are parts of one API: the main
version of each part together is the main service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

# What the engine and the vault have of their own under a service's name: a permission, a credential, a kind of action.
RESERVED = frozenset({"goex", "model", "files", "code", "sql", "mongo"})

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


def main_versions(versions: Mapping[str, bool | None]) -> tuple[str, ...]:
    """The main version, or those of each part, sorted. `versions`: each with whether the provider prefers it."""
    parts: dict[str, list[str]] = {}
    for version in versions:
        parts.setdefault(part_of(version), []).append(version)
    if "" in parts:  # a whole API: its parts, if any, are something else
        parts = {"": parts[""]}
    chosen = {part: _main(found, versions) for part, found in parts.items()}
    if any(stable(version) for version in chosen.values()):
        chosen = {part: version for part, version in chosen.items() if stable(version)}
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


def _main(versions: list[str], preferred: Mapping[str, bool | None]) -> str:
    steady = [version for version in versions if stable(version)]
    wanted = [version for version in steady or versions if preferred[version]]
    return max(wanted or steady or versions, key=_rank)


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
