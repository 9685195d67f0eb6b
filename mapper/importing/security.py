"""What OpenAPI's `security` says, as the scopes of which any one suffices, and the one place of the credential.

Rules: the list is alternatives, each of which needs all that it names. An alternative that needs several scopes at once
becomes one scope of ours that stands for all of them and says so (`read+write`), so that nobody is asked for less than
the service wants. An account's credential has one place, or is several values with a place each: the places that let
most methods be called. Alternatives that need another place can't be used, and a method that has no other can't be
called. Where the document has no scope for a method, GoEx cuts virtual ones by class; the worse classes suffice for it,
too.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mapper.importing.document_files import plain
from mapper.importing.import_report import BadPart
from mapper.importing.login_endpoints import login_of
from mapper.importing.pointers import Keys, Pointers
from mapper.store.import_rows import DocumentScope
from policies.services import OAuth, Placement, Risk, overrides

# Headers that are the gateway's, or that choose another request than the one that was granted.
OURS = frozenset(
    {
        "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive",
        "te", "trailer", "upgrade", "expect", "accept-encoding", "proxy-authorization", "proxy-connection", "cookie",
        "set-cookie", "x-http-method-override", "x-http-method", "x-method-override", "forwarded", "x-forwarded-for",
        "x-forwarded-host", "x-forwarded-proto", "via", "user-agent",
    }
)  # fmt: skip
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,60}")
_PARAMETER = re.compile(r"[A-Z_$][A-Z0-9_.$\[\]-]{0,99}", re.IGNORECASE | re.ASCII)
_COOKIE = re.compile(r"[A-Za-z0-9_.-]{1,100}")

MAX_PLACES = 3  # of one credential

MAX_TOGETHER = 24  # scopes that one alternative may need at once
MANY = 0.2  # of the methods that need a credential
MAX_SETS = 100  # different such sets in one document
MAX_SCOPES = 10_000  # of one document
_LONGEST = 5000  # characters of a text that names several

_AWS = frozenset({"x-amazon-apigateway-authtype", "x-amazon-apigateway-auth"})
# What a signature is called where it is described as a key. Words alone: "signature" also in a header's name.
_SIGNATURE = re.compile(
    r"(?i)sig(?:nature)?[ -]?v[24]\b|\bawsv?4?\b|\baws4|\bx-amz-|(?<![a-z])hmac|signature|\bdigest\b|"
    r"\bsign(?:s|ed|ing)?\s+(?:\w+\s+){0,2}requests?|"
    r"\boauth[ _-]?1|\bhawk\b|\bntlm\b|\bnegotiate\b|\bkerberos\b|edgegrid|\bsharedkey|\bnonce\b|\bx-mac\b|\bmac auth"
)
# What the value of a key is that is called so, also in the query: `sig`, `api_sig`, `hash`.
_SIGNATURES = frozenset({"sig", "sign", "mac", "hash", "checksum"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SCOPE = re.compile(r"[!-~]{1,200}")
_BEARER = Placement()
_CUTS = "Its document has no permission for it, so GoEx cuts one and holds to it."
_VIRTUAL = {
    Risk.READ: "Read what {title} shows.",
    Risk.WRITE: "Change things through {title}.",
    Risk.DELETE: "Delete things through {title}.",
    Risk.ADMIN: "Change who may do what in {title}.",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One alternative: where the credential goes (None: anywhere, since none is needed) and the scopes it needs."""

    placement: Placement | None
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ways:
    """The alternatives of one method that can be used, and why others can't. Neither: it needs nothing."""

    usable: tuple[Way, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Scheme:
    placement: Placement | None
    why: str = ""
    http: bool = False  # whether it is one of HTTP's own, of which a request has one
    lists: bool = True  # whether such a scheme could list its scopes; OpenID Connect's is an address alone


@dataclass(slots=True)
class Security:
    """The schemes of one document; then, from all of its methods' alternatives, placement and scopes."""

    pointers: Pointers
    problems: list[BadPart]
    declared: dict[str, str] = field(default_factory=dict)  # scope -> what it is for
    logins: list[OAuth] = field(default_factory=list)  # of the schemes that say how a token is asked for
    _schemes: dict[str, _Scheme] = field(default_factory=dict)

    def read_schemes(self, raw: Any, keys: Keys) -> None:
        if raw is None:
            return
        if not isinstance(raw, dict):
            self.problems.append(BadPart("must be an object", *keys))
            return
        for name, value in raw.items():
            try:
                scheme, here = self.pointers.object(value, (*keys, name))
                self._schemes[name] = self._scheme(scheme, here)
            except BadPart as bad:
                self.problems.append(bad)
                self._schemes[name] = _Scheme(None, "its security scheme couldn't be read")

    def ways(self, raw: Any, keys: Keys) -> Ways:
        """The alternatives that a `security` list gives. Raises BadPart."""
        if not isinstance(raw, list):
            raise BadPart("must be a list", *keys)
        usable: list[Way] = []
        why = ""
        for place, alternative in enumerate(raw):
            here = (*keys, str(place))
            if not isinstance(alternative, dict):
                raise BadPart("must be an object", *here)
            found = self._way(alternative, here)
            if isinstance(found, str):
                why = why or found
            else:
                usable += found
        return Ways(tuple(dict.fromkeys(usable)), "" if usable else why)

    def _way(self, alternative: Mapping[str, Any], keys: Keys) -> tuple[Way, ...] | str:
        placements: list[Placement] = []
        own: list[Placement] = []
        scopes: set[str] = set()
        for name, wanted in alternative.items():
            scheme = self._schemes.get(name)
            if scheme is None:
                self.problems.append(BadPart(f"there is no security scheme {name[:60]!r}", *keys, name))
                return "it needs a security scheme that the document doesn't have"
            if scheme.placement is None:
                return scheme.why
            (own if scheme.http else placements).append(scheme.placement)
            if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
                raise BadPart("must be a list of texts", *keys, name)
            for text in wanted:
                new = self._declare(text, "", (*keys, name))
                if new and scheme.lists:
                    self.problems.append(BadPart(f"{new[0][:60]!r} isn't among the scheme's scopes", *keys, name))
                scopes.update(text.split())
        if len(scopes) > MAX_TOGETHER:
            return f"it needs {len(scopes)} permissions at once; at most {MAX_TOGETHER} are taken"
        # HTTP's basic and bearer, named together, can only be alternatives.
        found = [at_once([*placements, *each]) for each in ([one] for one in dict.fromkeys(own))] or [
            at_once(placements)
        ]
        ways = tuple(Way(each, frozenset(scopes)) for each in found if not isinstance(each, str))
        return ways or next(each for each in found if isinstance(each, str))

    def _scheme(self, raw: dict[str, Any], keys: Keys) -> _Scheme:
        kind = raw.get("type")
        if why := signed(raw):
            self.problems.append(BadPart(f"{why}: what needs it can't be called", *keys))
            return _Scheme(None, why)
        if kind in ("oauth2", "openIdConnect"):
            self._oauth(raw, keys)
            if (login := login_of(raw, keys, self.problems)) is not None:
                self.logins.append(login)
            return _Scheme(_BEARER, lists=kind == "oauth2")
        if kind == "basic" or (kind == "http" and str(raw.get("scheme", "")).lower() == "basic"):
            return _Scheme(Placement(format="Basic {secret}"), http=True)
        if kind == "http" and str(raw.get("scheme", "")).lower() == "bearer":
            return _Scheme(_BEARER, http=True)
        if kind == "http":
            return _Scheme(None, f"it needs HTTP's {str(raw.get('scheme'))[:20]!r} scheme, which GoEx doesn't speak")
        if kind == "apiKey":
            return self._key(raw, keys)
        if kind == "mutualTLS":
            return _Scheme(None, "it needs a client's certificate, which GoEx doesn't have")
        raise BadPart(f"{str(kind)[:40]!r} isn't a type of security scheme", *keys, "type")

    def _key(self, raw: dict[str, Any], keys: Keys) -> _Scheme:
        place, name = raw.get("in"), raw.get("name")
        if place not in ("header", "query", "cookie"):
            raise BadPart("must be header, query or cookie", *keys, "in")
        found = key_place(place, name)
        if found is None:
            raise BadPart(f"{str(name)[:60]!r} isn't a {place} for a credential", *keys, "name")
        return _Scheme(found)

    def _oauth(self, raw: dict[str, Any], keys: Keys) -> None:
        flows = raw.get("flows")
        for name, flow in flows.items() if isinstance(flows, dict) else ((None, raw),):
            here = (*keys, "flows", name) if name is not None else keys
            scopes = flow.get("scopes", {}) if isinstance(flow, dict) else None
            if not isinstance(scopes, dict):
                self.problems.append(BadPart("must be an object", *here, "scopes"))
                continue
            for text, described in scopes.items():
                try:
                    self._declare(text, plain(described, 300), (*here, "scopes", text[:60]))
                except BadPart as bad:
                    self.problems.append(bad)

    def _declare(self, text: str, described: str, keys: Keys) -> list[str]:
        """Take the scopes that a text names, between which OAuth has blanks; those that are new. Raises BadPart."""
        named = text.split() if len(text) <= _LONGEST else []
        if not named or not all(_SCOPE.fullmatch(scope) for scope in named):
            raise BadPart(f"{text[:60]!r} isn't a scope", *keys)
        new = [scope for scope in named if scope not in self.declared]
        if len(self.declared) + len(new) > MAX_SCOPES:
            raise BadPart(f"more than {MAX_SCOPES:,} scopes aren't taken", *keys)
        for scope in named:
            self.declared[scope] = self.declared.get(scope) or described
        return new


def key_place(place: Any, name: Any) -> Placement | None:
    """The place of a key by that name; None where none can stand there."""
    if not isinstance(name, str):
        return None
    if place == "header":
        fits = bool(HEADER.fullmatch(name)) and alike(name) not in OURS
    elif place == "query":
        fits = bool(_PARAMETER.fullmatch(name)) and not overrides(name)
    else:
        fits = place == "cookie" and bool(_COOKIE.fullmatch(name))
    return Placement(header=name, format="{secret}", at=place) if fits else None


def alike(name: str) -> str:
    """A header's name as servers may take it, which make one letter of several."""
    return name.lower().replace("_", "-").replace(".", "-")


def at_once(placements: Iterable[Placement]) -> Placement | str | None:
    """The placement of all of these; None of none; why there is none."""
    found = sorted(set(placements), key=lambda one: (one.at, one.header, one.format))
    if len({alike(one.header) for one in found}) != len(found) or len(found) > MAX_PLACES:
        return "it needs several credentials in one place"
    return replace(found[0], more=tuple(found[1:])) if found else None


def _covers(placement: Placement, way: Way) -> bool:
    """Whether an account with that placement has what an alternative wants."""
    return way.placement is None or set(way.placement.places) <= set(placement.places)


def signed(scheme: Mapping[str, Any]) -> str:
    """Why a scheme's secret can't be sent as it is: the service wants each request signed with it. "": it can.

    Documents write signatures as a key in a header, since OpenAPI has no other word for them. The secret must not
    leave as that key, so that any sign of one counts.
    """
    for key, value in scheme.items():
        if key.lower() in _AWS and str(value).lower() not in ("custom", "none"):
            return f"it wants each request signed ({str(value)[:20]!r} of AWS), which GoEx doesn't do"
    if scheme.get("type") != "apiKey":
        return ""
    told = f"{scheme.get('name', '')} {scheme.get('description', '')}"[:2000]
    told = f"{told} {' '.join(key for key in scheme if key.startswith('x-'))[:500]}"
    found = _SIGNATURE.search(told)
    if found is None and (named := _SIGNATURES & {word.lower() for word in _WORD.findall(str(scheme.get("name", "")))}):
        return f"it wants each request signed ({min(named)!r}), which GoEx doesn't do"
    return f"it wants each request signed ({found[0][:20]!r}), which GoEx doesn't do" if found else ""


def signed_beside(*holders: Mapping[str, Any]) -> str:
    """Why an operation's requests must be signed, as AWS's gateway says it beside `security`; "" when they needn't."""
    for holder in holders:
        said = holder.get("x-amazon-apigateway-auth")
        if isinstance(said, dict) and "type" in said:
            return signed({"x-amazon-apigateway-auth": said["type"]})
    return ""


@dataclass(frozen=True, slots=True)
class Granted:
    """What came of it for one method: its scopes, and why it can't be called ("": it can)."""

    scopes: tuple[str, ...]
    unsupported: str = ""


def settle(
    methods: Sequence[tuple[Ways, Risk]], placement: Placement, declared: Mapping[str, str], title: str
) -> tuple[tuple[Granted, ...], tuple[DocumentScope, ...], dict[str, tuple[str, ...]]]:
    """What each method needs, all scopes of the document, and what those of ours stand for that stand for several.
    `placement` is the document's one (`placement_of`)."""
    sets: dict[frozenset[str], str] = {}  # scopes that are needed together, and the name of the scope for them
    for ways, _ in methods:
        for way in ways.usable:
            if len(way.scopes) > 1 and _covers(placement, way) and len(sets) < MAX_SETS:
                sets.setdefault(way.scopes, _together(way.scopes, declared))
    words = _words(declared)
    classes = {risk for ways, risk in methods if _virtual(ways, placement)}
    granted = tuple(_granted(ways, risk, placement, sets, words, classes) for ways, risk in methods)
    used = {scope for one in granted for scope in one.scopes}
    scopes = [DocumentScope(name=name, description=declared[name]) for name in declared]
    scopes += [
        DocumentScope(name=name, description=_said(together, declared))
        for together, name in sets.items()
        if name in used
    ]
    scopes += [
        DocumentScope(name=words[risk], description=f"{_VIRTUAL[risk].format(title=title)} {_CUTS}", virtual=True)
        for risk in Risk
        if words[risk] in used
    ]
    return granted, tuple(scopes), {name: tuple(sorted(all_of)) for all_of, name in sets.items() if name in used}


def placement_of(methods: Iterable[Ways]) -> Placement:
    """The place that lets most methods be called; of equals, the usual one, and the one with the fewest values.

    Several values at once are asked for only where a good part of the methods names them so: one odd method doesn't
    make everybody give two.
    """
    count: Counter[Placement] = Counter()
    kinds: Counter[frozenset[Placement]] = Counter()
    for ways in methods:
        named = frozenset(way.placement for way in ways.usable if way.placement is not None)
        count.update(named)
        kinds[named] += 1
    if not count:
        return _BEARER
    whole = sum(number for named, number in kinds.items() if named)

    def lets(one: Placement) -> int:
        places = set(one.places)
        return sum(number for named, number in kinds.items() if any(set(each.places) <= places for each in named))

    known = [one for one in count if not one.more or count[one] >= whole * MANY]
    return max(
        known or count,
        key=lambda one: (
            lets(one), -len(one.more), one == _BEARER, one.at == "header", one.header == "Authorization", one.header
        ),
    )  # fmt: skip


def _virtual(ways: Ways, placement: Placement) -> bool:
    """Whether a virtual scope is among those that suffice, or is all that can be said."""
    fit = [way for way in ways.usable if _covers(placement, way)]
    return not fit or any(not way.scopes for way in fit)


def _granted(
    ways: Ways,
    risk: Risk,
    placement: Placement,
    sets: Mapping[frozenset[str], str],
    words: Mapping[Risk, str],
    classes: Iterable[Risk],
) -> Granted:
    fit = [way for way in ways.usable if _covers(placement, way)]
    names: set[str] = set()
    for way in fit:
        if len(way.scopes) == 1:
            names |= way.scopes
        # A scope of ours stands for all of its parts, so that it also suffices for what needs fewer of them.
        if way.scopes:
            names.update(name for together, name in sets.items() if way.scopes <= together)
    virtual = {words[each] for each in classes if each >= risk} | {words[risk]}
    if any(not way.scopes for way in fit):
        names |= virtual
    if names:
        return Granted(tuple(sorted(names)))
    why = ways.why
    if ways.usable and not fit:
        why = "its credential goes elsewhere than that of the others, and an account has one place for it"
    elif ways.usable:
        why = "the document has too many different sets of permissions that are needed together"
    return Granted(tuple(sorted(virtual)), f"{why}." if why else "")


def _words(declared: Mapping[str, str]) -> dict[Risk, str]:
    """What the virtual scopes are called: not like one of the document's own."""
    clash = any(risk.word in declared for risk in Risk)
    return {risk: f"goex-{risk.word}" if clash else risk.word for risk in Risk}


def _together(scopes: frozenset[str], declared: Mapping[str, str]) -> str:
    name = "+".join(sorted(scopes))
    if len(name) > 200:
        name = f"{name[:150]}+{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    while name in declared:
        name += "+"
    return name


def _said(scopes: frozenset[str], declared: Mapping[str, str]) -> str:
    said = "; ".join(f"{name}: {declared[name]}" if declared[name] else name for name in sorted(scopes))
    return plain(f"All of these at once: {said}", 600)
