"""What a scope lets someone see, change, destroy, and decide the access to, in plain words. Pure.

Rules: all of it comes from the methods that the catalog knows the scope to open, each by its own risk. Of a service
that comes with GoEx the methods are described in GoEx's own words, and these are said; an imported document's are its
provider's, so that the kinds of things are named which its methods are named for. Where nothing is known to be opened,
nothing is said; what isn't named is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mapper.catalog import Catalog
from mapper.least_scopes import opened, reach_of
from mapper.scope_text import said
from policies.services import Risk

_NAMED = 6  # of each class; the others are counted
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]*)?")
_LOOKING = re.compile(r"(?:Show|List|Read|Find|Get|Tell|Search|Look up)\s+(?=\S)")
_DELETING = re.compile(r"Delet")


@dataclass(frozen=True, slots=True)
class Meaning:
    """Each in phrases; `share` is who has access to what."""

    see: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    destroy: tuple[str, ...] = ()
    share: tuple[str, ...] = ()


def meaning(catalog: Catalog, service: str, scope: str) -> Meaning:
    """What the scope opens. Raises UnknownName."""
    methods = opened(catalog, service, scope)
    own = catalog.service(service).source != "imported"
    found: dict[Risk, list[str]] = {risk: [] for risk in Risk}
    for name, text, risk in methods:
        if own and text != name:
            # Doing away with something is said as that, also where it is as bad as giving access away.
            found[Risk.DELETE if risk is Risk.ADMIN and _DELETING.match(text) else risk].append(_phrase(text))
        else:
            found[risk].append(thing(name))
    more = {} if own else _elsewhere(catalog, service, scope, methods)
    see, change, destroy, share = (_named(found[risk], own, more.get(risk, "")) for risk in Risk)
    return Meaning(see, change, destroy, share)


def thing(method: str) -> str:
    """The kind of thing that a method is about, by its name: what stands before its verb (`users.messages.list`), or
    after it (`get_channel`)."""
    segments = [segment for segment in method.split(".") if not _VERSION.fullmatch(segment)]
    if len(segments) > 1:
        return _plain(_WORD.findall(segments[-2])) or segments[-2]
    words = _WORD.findall(method)
    return _plain(words[1:] or words) or method


def _named(phrases: Sequence[str], own: bool, more: str) -> tuple[str, ...]:
    counted = Counter(phrases)
    order = list(counted) if own else sorted(counted, key=lambda phrase: (-counted[phrase], phrase))
    kept = order if len(order) <= _NAMED + 1 else order[:_NAMED]
    rest = len(order) - len(kept)
    others = [f"{rest} other {'things' if own else 'kinds of things'}"] if rest else []
    return (*kept, *others, *([more] if more else []))


def _elsewhere(catalog: Catalog, service: str, scope: str, here: Sequence[tuple[str, str, Risk]]) -> dict[Risk, str]:
    """What the scope opens in other services of the provider, by risk."""
    known = catalog.scope(service, scope)
    reach = reach_of(catalog, service, scope)
    others = 0 if known.virtual else max(reach.services.bit_count() - 1, 0)
    if not others:
        return {}
    words = f"things in {others} other service{'s' if others > 1 else ''} of its provider"
    # A provider that calls a scope read-only holds to it, whatever is said of single methods elsewhere.
    looks = said(scope, known.description).looks
    return {
        risk: words
        for risk in Risk
        if reach.count(risk) > sum(each is risk for _, _, each in here) and (risk is Risk.READ or not looks)
    }


def _phrase(text: str) -> str:
    """A description's first sentence, as what can be seen or done."""
    first = re.split(r"(?<=[^.])[.:](?:\s|$)", text.strip(), maxsplit=1)[0]
    looked_at = _LOOKING.sub("", first, count=1) if _LOOKING.match(first) else first
    return looked_at[:1].lower() + looked_at[1:] if looked_at[1:2].islower() or looked_at[1:2] == " " else looked_at


def _plain(words: Sequence[str]) -> str:
    return " ".join(word.lower() for word in words)
