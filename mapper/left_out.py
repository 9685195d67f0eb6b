"""Words of a request that name a value which no argument took: "into develop", "as Bob", "except drafts".

Rules: only the request's own words are looked at, never what somebody wants said. A value stands behind a preposition.
It was taken where an argument holds it. Words that the method and its service have for themselves ("on github"), the
noun before a taken value ("in case 3b1f"), ordinary words ("for the team") and what is to be done ("to see who is in")
name none; behind "except" and the like any word does that no argument holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache

from mapper import dates
from mapper.catalog import Catalog
from mapper.ranking import lexicon
from mapper.ranking.terms import STOP, split_name, stem
from mapper.slots import Slots
from policies.actions import Call
from policies.jsonvalue import JsonValue

_PLACES = frozenset(("at", "in", "inside", "on", "to"))
_NARROWS = frozenset(("after", "before", "except", "excluding", "since", "till", "until", "without"))
_OTHERS_TEXT = "against as between by during for from into onto only through toward towards under with within"
_LEADS = _PLACES | _NARROWS | frozenset(_OTHERS_TEXT.split())
_OWNERS_TEXT = "a an her his its my our that the their these this those your"
_OWNERS = frozenset(_OWNERS_TEXT.split())
_SUBJECTS_TEXT = "he i it nobody she somebody someone there they we you"
_SUBJECTS = frozenset(_SUBJECTS_TEXT.split())  # a clause follows, no value
_ENDS_TEXT = """
and because but called containing entitled labeled labelled named of or over reading saying so stating tagged that then
titled using via when where which while who whose
"""
_ENDS = _LEADS | frozenset(_ENDS_TEXT.split())
_ORDINARY_TEXT = """
accident account advance agreed all always anybody anyone asked away behalf best care clarity default detail details
discussed early ever everybody everyone everything example expected fact free full fun good group instance later least
measure mentioned moment myself name once order ourselves overview planned possible promised purpose real reference
regards requested review right safe see short soon sure team time today total turn usual way well whatever whole
"""
_ORDINARY = STOP | frozenset(_ORDINARY_TEXT.split())
_TOKEN = re.compile(r"[^\s,;:()…]+(?::[^\s,;:()…]+)*|[,;:()…]")
_PART = re.compile(r"[^\W_]+")
_NO_PART = re.compile(r"['’]s(?!\w)|\bhttps?://[^\s/]+/")


def left_out(catalog: Catalog, calls: Sequence[Call], found: Slots) -> tuple[str, ...]:
    """The prepositions with the values behind them that no argument of these calls holds."""
    held = _parts(*_taken(calls, found))
    own = frozenset().union(*(_spoken(catalog, call.id) for call in calls))
    return tuple(dict.fromkeys(_named(_without_moments(found.phrase), held, own)))


def _named(phrase: str, held: frozenset[str], own: frozenset[str]) -> Iterator[str]:
    tokens = [token.rstrip(".?!'’\"") for token in _TOKEN.findall(phrase)]
    for at, lead in enumerate(token.lower() for token in tokens):
        if lead not in _LEADS:
            continue
        words: list[str] = []
        for after in range(at + 1, len(tokens)):  # a slice would copy the rest for each preposition
            word = tokens[after]
            lower = word.lower()
            if not _PART.search(word) or lower in _ENDS or (words and lower in _OWNERS):
                break
            words.append(word)
        if _is_value(lead, words, held, own):
            yield " ".join((lead, *words))


def _is_value(lead: str, words: Sequence[str], held: frozenset[str], own: frozenset[str]) -> bool:
    """Whether the words behind a preposition name something that isn't held."""
    first = words[0].lower() if words else ""
    if not words or first in _SUBJECTS:
        return False
    if lead == "to" and _is_plain(words[0]) and stem(first) not in own and (len(words) > 1 or stem(first) in verbs()):
        return False  # what is to be done
    new = [
        word for word, following in zip(words, (*words[1:], ""), strict=True)
        if not all(
            part in held or part in _ORDINARY or (stem(part) in own and lead not in _NARROWS) for part in _parts(word)
        ) and not (_is_plain(word) and following and _parts(following) <= held)
    ]  # fmt: skip
    if first in _OWNERS and (lead == "for" or lead in _PLACES) and all(map(_is_plain, new)):
        # Whom it helps ("for the team"), or the thing that it is done to in other words ("in my draft").
        return first == "the" and len(new) > 1
    return bool(new)


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.islower()


def _parts(*texts: str) -> frozenset[str]:
    return frozenset(part for text in texts for part in _PART.findall(_NO_PART.sub("", text.lower())))


def _taken(calls: Sequence[Call], found: Slots) -> Iterator[str]:
    """The texts of the arguments, without what is to be said."""
    said = {part.strip() for each in found.said for part in (each.text, *each.text.split(","))}
    for call in calls:
        yield from (text for text in texts(call.arguments) if text not in said)


def texts(value: JsonValue) -> Iterator[str]:
    """The texts and numbers in a value, at any depth."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _without_moments(phrase: str) -> str:
    """The phrase without its times: `Filler.unused` says which of them no argument took."""
    for moment in reversed(dates.find(phrase, datetime.now(UTC))):
        phrase = f"{phrase[: moment.start]},{phrase[moment.end :]}"
    return phrase


def _spoken(catalog: Catalog, method_id: str) -> frozenset[str]:
    """The stems of the words that a method and its service have for themselves."""
    method = catalog.method(method_id)
    service = catalog.service(method.service)
    names = (service.name, service.title, service.provider, method.id, *method.parameters.get("properties", {}))
    return frozenset(map(stem, _parts(*map(split_name, names), method.description, *method.words)))


@cache
def verbs() -> frozenset[str]:
    """The stems of words for what is done."""
    return frozenset(stem(word) for words in lexicon.kin().deeds.values() for word in words)
