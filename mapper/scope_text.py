"""What a scope says about itself: by its name and its description, before any method is looked at. Pure.

Rules: a provider's own word for "only look" at the end of a name is believed, since it is the provider who enforces
it; else the description's verbs decide, the worst of them. What says nothing that is understood deletes. Limits are
words that say a scope reaches less than what it seems to: only what this app made, only when an add-on runs, only
for administrators, only the signed-in person. They don't make a scope safer; they make it likely not to suffice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from policies.services import Risk

# An imported method's description says this where its bytes are a file's, and what describes the file is sent.
SENDS_NO_BYTES = "What describes the file is sent; a file's bytes can't be."

_SEPARATORS = re.compile(r"[.:/]+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_LOOKS = re.compile(r"(?:^|[._:/-])(?:read[-_.]?only|read|viewer|view)$")
_CHANGES = re.compile(r"(?:^|[._:/-])(?:read[-_.]?write|write|write[-_.]?only|edit|full[-_.]?control)$")

# What may stand for whole scopes: the verbs of descriptions, by the worst that they allow.
_ACCESS = r"permissions?|roles?|access(?! to| using)|who can|members?|users"
_VERBS = (
    (Risk.ADMIN, re.compile(
        r"\b(?:administer|administrate|full control|shar(?:e|ing)\b(?! with)|"
        rf"(?:manage|change|edit|update|add|remove)\b[^.;]{{0,60}}\b(?:{_ACCESS})\b)"
    )),
    (Risk.DELETE, re.compile(r"\b(?:delet\w*|remov\w*|revok\w*|eras\w*|permanently|manag\w*|control|everything)\b")),
    (Risk.WRITE, re.compile(
        r"\b(?:edit|create|creat\w+|add|change|modify|send|compose|update|write|insert|upload|publish|submit|import|"
        r"configure|move|organi[sz]e|make|set|store|turn|interact|index|label|apply|use|post|enter|perform\w*)\b"
    )),
    (Risk.READ, re.compile(
        r"\b(?:see|view|read|download|list|get|search|receive|know|copy|look|find|translate|usage|associate|info\w*)\b"
    )),
)  # fmt: skip
_EXCEPT = re.compile(r"\b(?:but not|excluding|not including|without|except|even if|even when)\b[^.;]*")
_COPIES = re.compile(r"\bmove a copy\b")
_APART = re.compile(r"(?<=[.;])\s+")

_ROLES = frozenset({"app", "admin", "bot", "import", "addon", "addons", "system", "debug"})
_ROLE_NAME = re.compile(r"\w{3,}partner\b|\w-\w*-?audit\b")
_ROLE_WORDS = re.compile(r"\b(?:on their own behalf|add-on|audit process|owned by your organi[sz]ation)\b")
_OWN_WORDS = re.compile(r"\b(?:created by (?:the|this) app|its own|itself|application has been installed in)\b")
_USED_WORDS = re.compile(r"\bonly the specific\b[^.;]{0,60}\byou use with this app\b")


class Limit(Enum):
    """A way in which a scope reaches less than what its methods suggest."""

    ROLE = "role"  # for administrators, partners, add-ons, apps on their own behalf
    OWN = "own"  # only what the app itself made
    SELF = "self"  # only the signed-in person's own
    METADATA = "metadata"  # what is said about things, not what is in them
    USED = "used"  # only what was made or opened with the app


@dataclass(frozen=True, slots=True)
class Said:
    """A scope's words. `risk` is the worst that they allow; `looks`: the name itself says that it only looks."""

    risk: Risk
    looks: bool
    limits: frozenset[Limit]
    base: str  # the name without the provider's address and without its word for looking or changing
    segments: tuple[str, ...]  # of `base`
    ordinary: str  # for whom `X.admin.Y` or `X.app.Y` is a special version of: the base of `X.Y`; "" where it isn't one
    about: frozenset[str]  # stems of the name's and the description's words


@lru_cache(maxsize=4096)
def said(name: str, description: str) -> Said:
    """What the words of a scope say."""
    bare = bare_name(name)
    lower = bare.lower()
    looks = _LOOKS.search(lower) is not None
    base = _CHANGES.sub("", _LOOKS.sub("", lower)) or lower
    segments = tuple(segment for segment in _SEPARATORS.split(base) if segment)
    text = description.lower()
    risk = Risk.READ if looks else _said_risk(lower, text)
    return Said(
        risk=risk,
        looks=looks,
        limits=frozenset(_limits(segments, text)),
        base=base,
        segments=segments,
        ordinary=_ordinary(segments, text),
        about=frozenset(stems(f"{bare} {description}")),
    )


def bare_name(name: str) -> str:
    """A scope's name without the address that providers put before it."""
    if "://" not in name:
        return name
    rest = name.split("://", 1)[1].rstrip("/")
    return rest.partition("/auth/")[2] or rest


def stems(text: str) -> list[str]:
    """The words of a text or a name in camel case, in lower case and without the ending of plurals."""
    return [stem(word.lower()) for word in _WORD.findall(text)]


def stem(word: str) -> str:
    """`word` as singular, roughly: what is compared is treated alike, so it needn't be one."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        return word[:-1]
    return word


def _said_risk(name: str, text: str) -> Risk:
    own = _CHANGES.search(name)
    kept = " ".join(part for part in _APART.split(text) if not part.startswith("i "))
    kept = _COPIES.sub("copy", _EXCEPT.sub("", kept))
    if "private service:" in kept:
        kept = ""
    found = next((risk for risk, verbs in _VERBS if verbs.search(kept)), Risk.DELETE)
    return max(found, Risk.WRITE) if own else found


def _ordinary(segments: tuple[str, ...], text: str) -> str:
    inner = [place for place, segment in enumerate(segments) if segment in ("admin", "app") and place > 0]
    if not inner or inner[0] == len(segments) - 1 or _ROLE_WORDS.search(text):
        return ""
    return ".".join(segment for place, segment in enumerate(segments) if place != inner[0])


def _limits(segments: tuple[str, ...], text: str) -> list[Limit]:
    found = []
    special = (_ROLES & set(segments[1:-1]) and segments[-2:] != ("app", "created")) or (
        len(segments) > 1 and segments[-1] in ("bot", "import")
    )
    if special or _ROLE_NAME.search(segments[0] if segments else "") or _ROLE_WORDS.search(text):
        found.append(Limit.ROLE)
    if segments[-1:] in (("created",), ("appdata",)) or _OWN_WORDS.search(text):
        found.append(Limit.OWN)
    if "me" in segments[1:] or segments[:1] in (("user",), ("userinfo",)):
        found.append(Limit.SELF)
    if _USED_WORDS.search(text):
        found.append(Limit.USED)
    if "metadata" in segments:
        found.append(Limit.METADATA)
    return found
