"""Which services a request names: those that are here, and products that nothing here serves.

Rules: a service that the words name is never another one, whatever its words are like. A name is one of the catalog's
(its name, its title, its host), one of `lexicon/products.toml`, or whatever stands before "API" where something is done
with it ("use the x API", never "turn the x API on"); an ordinary word is a name only where a name stands ("in linear",
"the linear API"), and a day of the week never is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mapper.catalog import Catalog
from mapper.ranking import lexicon
from mapper.ranking.terms import STOP, split_name, stem
from mapper.service_position import is_data
from policies.services import Service

if TYPE_CHECKING:  # numpy comes with it, which takes a moment
    from mapper.ranking.index import Hit, Index

_FILLER_WORDS = """
    api apis rest the openapi swagger http https web service services v1 v2 v3 public platform cloud and for of www app
    com org net io dev co local example developer developers docs server gateway data core main client admin
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_SECOND_LEVEL = frozenset(("ac", "co", "com", "edu", "gov", "net", "org"))  # of "com.au", which is nobody's name
_WORD = re.compile(r"[a-z0-9](?:[a-z0-9.'+-]*[a-z0-9])?")
_BEFORE = frozenset(
    ("in", "on", "via", "using", "through", "from", "to", "at", "with", "into", "onto", "inside", "within")
)
_BY = frozenset(("via", "using", "through", "by"))  # what something is done by
_URL = re.compile(r"https?://([^\s/:?#]+)", re.IGNORECASE)
_MARKED = re.compile(r"\A#|@")  # a channel's name, an address
_AFTER = frozenset(("api", "apis", "account", "workspace"))
_ANY_API = re.compile(
    r"\b(?:use|using|via|through|with|call|calling|in|from|over)\s+(?:the|our|my)\s+"
    r"([A-Za-z][A-Za-z0-9.-]{2,30}(?:\s[A-Z][A-Za-z0-9.-]{1,30})?)\s+(?:rest\s+)?api\b",
    re.IGNORECASE,
)
_ASKED = frozenset(("search", "browse", "query", "ask", "check"))  # whom one does this to is named
_APART = 6  # letters of a name that may be said in two words
_PAPERS = frozenset(("bill", "bills", "contract", "invoice", "invoices", "newsletter", "quote", "receipt", "receipts"))
_NO_NAME = frozenset(("same", "new", "old", "right", "other", "public", "private", "following", "rest", "http", "web"))


@dataclass(frozen=True, slots=True)
class Named:
    """`here`: the catalog's services that are named, and those that its words may be about besides where some are;
    `absent`: names of what isn't here, where nothing that is here is meant; `words`: those of the names of `here`."""

    here: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()

    @property
    def stems(self) -> frozenset[str]:
        """The stems of `words` and of their parts ("setlist.fm"), as `Index.find` takes them."""
        parts = (part for word in self.words for part in re.split(r"[^a-z0-9]+", word) if len(part) > 1)
        return frozenset(stem(word) for word in (*self.words, *parts))


class ServiceNames:
    """The names of one state of the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._phrases: dict[tuple[str, ...], set[str]] = {}
        self._own = lexicon.products().own
        self._context: set[tuple[str, ...]] = set()  # ordinary words: names where one stands
        self._initials: set[tuple[str, ...]] = set()  # those of these that are short alone, and names in capitals, too
        products = lexicon.products()
        plain, things = vocabulary(), {stem(word) for word in lexicon.kin().synonyms}
        for service, names in _of_catalog(catalog):
            for name in names:
                self._phrases.setdefault(name, set()).add(service)
                titled = name[0] != service and stem(name[0]) in things  # "Books API"
                ordinary = titled or name[0] in plain or name[0] in products.words
                if len(name) == 1 and (ordinary or len(name[0]) < 4) and name[0] not in products.names:
                    self._context.add(name)
                    if not ordinary:
                        self._initials.add(name)
        self._bundled = {service.name for service in _bundled(catalog)}
        self._about: dict[str, set[str]] = {}
        for service, word in _about(catalog):
            self._about.setdefault(word, set()).add(service)
        known = {word for phrase in self._phrases for word in phrase}
        for text in (*products.names, *products.words):
            phrase = tuple(_WORD.findall(text))
            here = phrase[0] in known if len(phrase) == 1 else any(self._phrases.get((word,)) for word in phrase)
            if phrase and not here:
                self._phrases.setdefault(phrase, set())
                if text in products.words:
                    self._context.add(phrase)
        self._longest = max(map(len, self._phrases), default=1)
        self._catalog = catalog
        self._things: dict[str, frozenset[str]] = {}

    def of(self, text: str) -> Named:
        """What `text` names."""
        words = [(each[0].removesuffix("'s"), each.start()) for each in _WORD.finditer(text.lower())]
        words = [each for each in words if not _MARKED.search(text[max(each[1] - 1, 0) : each[1] + len(each[0]) + 1])]
        here: set[str] = set()
        said: set[str] = set()
        absent: dict[str, None] = {}
        its: set[int] = set()  # places of words that an absent product's name stands before
        alone = False  # whether an ordinary word means nothing that is here
        at = 0
        while at < len(words):
            size = next((n for n in range(self._longest, 0, -1) if self._stands(words, at, n, text)), 0)
            if size:
                phrase = tuple(word for word, _ in words[at : at + size])
                found = self._phrases[phrase]
                here |= found
                if found:
                    here |= self._inside(phrase)
                    said.update(phrase)
                else:
                    name = " ".join(word for word, _ in words[at : at + size])
                    absent[name] = None
                    its.add(at + size)
                    data = is_data(text[: words[at][1]]) or (at + size < len(words) and words[at + size][0] in _PAPERS)
                    alone = alone or (name in self._own and not data) or (at > 0 and words[at - 1][0] in _BY)
            elif apart := self._apart(words[at : at + 2], text):
                here |= apart
                said.update(word for word, _ in words[at : at + 2])
                size = 2
            at += size or 1
        for host in _URL.findall(text.lower()):
            for phrase in ((label,) for label in host.split(".") if (label,) not in self._context):
                here |= self._phrases.get(phrase, set())
                if not self._phrases.get(phrase, "absent"):
                    absent[phrase[0]], alone = None, True
        for match in _ANY_API.finditer(text):
            phrase = tuple(_WORD.findall(match[1].lower()))
            if phrase and not set(phrase) & _NO_NAME and not any(self._knows(word) for word in phrase) and not here:
                absent[" ".join(phrase)] = None
        about = {
            service for at, (word, _) in enumerate(words) if at not in its for service in self._about.get(word, ())
        }
        if here:
            return Named(frozenset(here if alone else here | about), words=frozenset(said))
        return Named(absent=() if about and not alone else tuple(absent))

    def serves(self, name: str) -> bool:
        """Whether a name, or a word of it, is one of a service that is here, or what people call one ("the inbox")."""
        return any(self._knows(word) or word in self._about for word in _WORD.findall(name.lower()))

    def _knows(self, word: str) -> bool:
        return any(word in phrase for phrase, services in self._phrases.items() if services)

    def _stands(self, words: list[tuple[str, int]], at: int, size: int, text: str) -> bool:
        phrase = tuple(word for word, _ in words[at : at + size])
        if at + size > len(words) or phrase not in self._phrases:
            return False
        if phrase not in self._context:
            return True
        last, place = words[at + size - 1]
        if phrase in self._initials and text[place : place + len(last)].isupper() and not text.isupper():
            return True  # "on OSF project 73pnd"
        if at == 0 and text[place + len(last) :].lstrip().startswith(":"):
            return True  # "box: make a folder"
        before = words[at - 1][0] if at else ""
        after = words[at + size][0] if at + size < len(words) else ""
        if any(stem(after) in self._things_of(service) for service in self._phrases[phrase]):
            return True  # "a zoom meeting": what it has
        if before in _ASKED and (after in _BEFORE or after == "for"):
            return True  # "search notion for notes"
        ends = not after or after in _BEFORE or after in ("and", "then") or text[place + len(last) :][:1] in (",", ":")
        return after in _AFTER or (before in _BEFORE and ends)

    def _inside(self, phrase: tuple[str, ...]) -> set[str]:
        """The services whose own name stands in another one's: those that come with GoEx, as a document may be called
        "slack msg", and any where the rest are ordinary words."""
        found: set[str] = set()
        for size in range(1, len(phrase)):
            for at in range(len(phrase) - size + 1):
                name, rest = phrase[at : at + size], (*phrase[:at], *phrase[at + size :])
                its = self._phrases.get(name, set()) if name not in self._context else set()
                found |= its if all(word in vocabulary() for word in rest) else its & self._bundled
        return found

    def _apart(self, words: list[tuple[str, int]], text: str) -> set[str]:
        """The services whose name of one word is said in these two: "circle ci"."""
        if len(words) < 2 or text[words[0][1] + len(words[0][0]) : words[1][1]] not in (" ", "-"):
            return set()
        if any(word in STOP and not text[place].isupper() for word, place in words):
            return set()  # "read me the page", unlike "Just Eat"
        name = (words[0][0] + words[1][0],)
        return self._phrases.get(name, set()) if len(name[0]) >= _APART and name not in self._context else set()

    def _things_of(self, service: str) -> frozenset[str]:
        """The words that an imported service's methods are named of; none of one that comes with GoEx."""
        if service not in self._things:
            known = self._catalog.services.get(service)
            names = self._catalog.outlines(service) if known is not None and known.source == "imported" else ()
            found = {stem(word.lower()) for name, _, _ in names for word in split_name(name).split()}
            self._things[service] = frozenset(found - STOP)
        return self._things[service]


def named_first(
    index: Index, named: Named, text: str, *, connected: Collection[str] = frozenset(), limit: int = 20
) -> list[Hit]:
    """The ranking of a request that names services: where only its documents speak of one of these, of them alone."""
    if not index.untold(named.here):
        return index.search(text, connected=connected, limit=limit)
    return index.search(text, connected=connected, limit=limit, chooser=lambda *_: tuple(named.here), names=named.stems)


def _bundled(catalog: Catalog) -> list[Service]:
    """The services of a catalog that come with GoEx."""
    found = [catalog.services[name] for name in Catalog.bundled().services if name in catalog.services]
    return [service for service in found if service.source == "bundled"]


def _of_catalog(catalog: Catalog) -> Iterator[tuple[str, set[tuple[str, ...]]]]:
    """Every service with its names; Google's, which are ordinary words, by their whole titles alone."""
    facts = catalog.store.facts() if catalog.store is not None and catalog.trouble is None else ()
    own = {service.name: service for service in _bundled(catalog)}
    for name, service in own.items():
        yield name, set(_names(name, service.title, ""))
    for fact in facts:
        if fact.name not in own and fact.main:
            if fact.provider == "google":
                title = tuple(word for word in _WORD.findall(fact.title.lower()) if word not in ("api", "apis"))
                yield fact.name, {title} if title[:1] == ("google",) and len(title) > 1 else set()
                continue
            yield fact.name, set(_names(fact.name, fact.title, fact.base_url if fact.provider == "openapi" else ""))


# What people call the services that everybody has: said beside another's name, they are meant, too.
_USUAL = {
    "gmail": "gmail email emails mail mails inbox e-mail",
    "google_calendar": "calendar calendars meeting meetings event events appointment",
    "google_drive": "drive doc docs document documents",
}


def _about(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """(service, word) of the services that are called by ordinary words."""
    for service in _bundled(catalog):
        yield from ((service.name, word) for word in _USUAL.get(service.name, "").split())
    for fact in catalog.store.facts() if catalog.store is not None and catalog.trouble is None else ():
        if fact.provider == "google" and fact.main:
            told = [word for word in _WORD.findall(fact.title.lower()) if word not in _FILLERS and word != "google"]
            if len(told) == 1:
                yield from ((fact.name, form) for form in (told[0], told[0].removesuffix("s"), f"spread{told[0]}"))


def _names(name: str, title: str, url: str) -> Iterator[tuple[str, ...]]:
    for text in (name.replace("_", " ").replace("-", " "), title):
        words = tuple(word for word in _WORD.findall(text.lower()) if word not in _FILLERS)
        if 0 < len(words) <= 4 and not all(word.isdigit() for word in words):
            yield words
    host = re.match(r"https?://([^/:]+)", url)
    if host and not re.fullmatch(r"[0-9.]+|localhost", host[1]):
        whole = host[1].lower().split(".")
        for at in range(len(whole) - 1):
            if whole[at] not in _SECOND_LEVEL:
                yield (".".join(whole[at:]),)  # "a post on dev.to"
        own = whole[:-1]  # "dev.to" isn't called "to", nor "fec.gov" "gov"
        while own and own[-1] in _SECOND_LEVEL:
            own.pop()
        labels = [label for label in own if label not in _FILLERS]
        if labels:
            yield (labels[-1],)


@cache
def vocabulary() -> Collection[str]:
    """The ordinary words that the lexicon's own examples are made of."""
    general = lexicon.general()
    texts: Iterable[str] = (*general.elsewhere, *(ask for asks in general.worlds.values() for ask in asks))
    return frozenset(word for text in texts for word in _WORD.findall(text.lower())) | frozenset(
        word for words in general.verbs.values() for text in words for word in _WORD.findall(text.lower())
    )


__all__ = ("Named", "ServiceNames", "named_first")
