"""How people speak: the words that come with GoEx, read from `mapper/lexicon`.

`general.toml` holds what is true of all services, `elsewhere.toml` what people ask of what isn't here, `kin.toml` and
`synonyms.toml` what holds for any API.
`<provider>/<service>.toml` holds one service: phrases that point to it, requests near it that it can't serve, words for
its things, and whole requests for its methods. A file that isn't there is an empty lexicon; one that can't be read is a
fault of the package and says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from policies.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLexicon:
    """The words for one service. Keys of `nouns` are resource paths, of `asks` method names; `*` is any characters."""

    speaks: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    nouns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralLexicon:
    """Words of all services: what a method's last word is called, spellings, popular services, and who is meant."""

    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # last word of a method -> how it is asked for
    popular: Mapping[str, int] = field(
        default_factory=dict
    )  # provider's name of a service -> 1 (some) to 3 (everybody)
    lexicons: Mapping[str, str] = field(default_factory=dict)  # bundled service -> file of the lexicon, without .toml
    hints: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # provider's name -> more phrases that speak of it
    elsewhere: tuple[str, ...] = ()  # requests that no service here is about
    foreign: tuple[str, ...] = ()  # names of others' products
    worlds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # what isn't here -> requests about it


@dataclass(frozen=True, slots=True)
class Kin:
    """What holds for any API: verbs by what they do, and words that are used for the same thing. `ends`: verbs that
    end something; `fillers`: words that a request for anything may have; `phrases`: verbs of several words by what they
    mean; `spoken`: nouns that are verbs, too; `synonyms`: what people say, with what documents call it, which doesn't
    hold the other way round."""

    deeds: Mapping[str, tuple[str, ...]]
    groups: tuple[tuple[str, ...], ...]
    ends: tuple[str, ...] = ()
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spoken: frozenset[str] = frozenset()
    fillers: frozenset[str] = frozenset()
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@cache
def kin() -> Kin:
    """The words that hold for any API. Raises InvalidInput for a broken file."""
    found = _read("kin")
    kin = found.get("kin", {})
    return Kin(
        _lists(found.get("deeds", {})),
        tuple(map(tuple, kin.get("groups", ()))),
        tuple(kin.get("ends", ())),
        _lists(found.get("phrases", {})),
        frozenset(kin.get("spoken", ())),
        frozenset(kin.get("fillers", ())),
        _lists(_read("synonyms").get("synonyms", {})),
    )


@dataclass(frozen=True, slots=True)
class Products:
    """Names of products: those that are nothing else, and those that are ordinary words, too. Of `names`, those in
    `own` have mail, calendars and the like of their own."""

    names: frozenset[str]
    words: frozenset[str]
    own: frozenset[str]


@cache
def products() -> Products:
    """The products that people name. Raises InvalidInput for a broken file."""
    found = _read("products")
    own = frozenset(found.get("own", ()))
    return Products(frozenset(found.get("names", ())) | own, frozenset(found.get("words", ())), own)


def of_service(provider: str, name: str) -> ServiceLexicon:
    """The lexicon of a provider's service; empty when there is none. Raises InvalidInput for a broken file."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", provider) or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        return ServiceLexicon()
    found = _read(f"{provider}/{name}")
    return ServiceLexicon(
        speaks=tuple(found.get("speaks", ())),
        cannot=tuple(found.get("cannot", ())),
        nouns=_lists(found.get("nouns", {})),
        asks=_lists(found.get("asks", {})),
    )


@cache
def general() -> GeneralLexicon:
    """The lexicon of all services. Raises InvalidInput for a broken file."""
    found = _read("general")
    outside = found.get("outside", {})
    return GeneralLexicon(
        verbs=_lists(found.get("verbs", {})),
        popular={name: int(rank) for rank, names in found.get("popular", {}).items() for name in names},
        lexicons=dict(found.get("lexicons", {})),
        hints=_lists(found.get("hints", {})),
        elsewhere=tuple(outside.get("asks", ())),
        foreign=tuple(outside.get("names", ())),
        worlds=_lists(_read("elsewhere").get("elsewhere", {})),
    )


def pattern(key: str) -> re.Pattern[str]:
    """A lexicon's key as a pattern: `*` stands for any characters."""
    return re.compile(".*".join(re.escape(part) for part in key.split("*")))


def _lists(found: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(value) for key, value in found.items()}


def _read(name: str) -> dict[str, Any]:
    source = files("mapper") / "lexicon" / f"{name}.toml"
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The lexicon {name}.toml can't be read: {error}.", next_step="Mend the file or install GoEx anew."
        ) from error
