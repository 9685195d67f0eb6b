"""What keeps the embedded proposer from acting on a likely reading without asking. Pure but for the catalog's reading.

Being likely right isn't enough to act, since what a mistake costs is scope. Each rule here finds a reading that could
well be right and still leaves open what would be done, or under which scope:

* another reading stands close behind and needs other scopes;
* an argument with a few values decides which scope is least, and as it stands it takes more than another value would;
* the request goes on to something else, which the reading doesn't serve, or says when, whether or but for what it is
  to be done, or that it isn't: no call has a place for that;
* it names a part of a thing, and the reading does away with the whole;
* it names a time that isn't read here, or not as that;
* the call changes something, and says nothing of what to change; or it only looks, where a change is what is asked for.

None of it is about one service. Each gives a sentence for the person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mapper import dates
from mapper.catalog import Catalog
from mapper.least_scopes import least_scopes, narrower
from mapper.ranking import lexicon
from mapper.ranking.document_match import POLITE, plainly
from mapper.ranking.terms import STOP, marked_words, split_name, stem
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method, Risk

CLOSE, CLOSE_ELSEWHERE = 1.5, 4.0
"""In log odds: so far behind the first, another reading is still one that may be meant: one of the same service, whose
methods words tell apart; one of another service, where nothing says which is meant."""

_IDENTIFIER = re.compile(r"\w[@/:._-]\w|\d[A-Za-z]|[A-Za-z]\d|\d{9}")
_TRIED = 8  # values of an argument
_CONTENT = frozenset({"body", "whole", "mail"})  # places of arguments
_CHANGES = re.compile(r"(?:batch_?)?(?:[Uu]pdate|[Pp]atch|[Mm]odify|[Ss]et|[Cc]hange|[Ee]dit)(?![a-z])")

_OPENING = r"\W*(?:(?:hello|hey|hi|just|kindly|no|ok|okay|please|pls|so|well)\W+)*"
_QUESTION = re.compile(
    r"\W*(?:what|which|who|whose|whom|when|where|why|how|is|are|was|were|do|does|did|has|have|am)(?:['’]?s)?\b"
    rf"|{_OPENING}(?:(?:can|could|may|might|must|shall|should|will|would)\s+(?:he|i|it(?!\s+be\s+possible\b)|she|they|this)"
    r"|(?:may|might|must|shall|should|will)\s+we)\b",
    re.IGNORECASE,
)
_POLITELY = re.compile(
    rf"{_OPENING}(?:(?:can|could|will|would|won['’]?t)\s+\w+\b|mind\s+\w+ing\b)|\W*(?:please|pls)\b"
    r"|(?!\W*(?:may|might|must|shall|should)\b).*[\s,](?:ok|okay|please|pls)\s*\?\Z",
    re.IGNORECASE | re.DOTALL,
)
# What no call has a place for: that it isn't to be done, whether and when it is, and what it isn't done to.
_QUALIFIED = re.compile(
    rf"\A{_OPENING}(?:do\s+not|don['’]?t|never)\b"
    r"|(?<![\w./#@-])(?:(?:abort|avoid|cancel|prevent)\s+(?:clos|delet|merg|mov|post|publish|remov|send|shar)ing|after"
    r"|apart\s+from|as\s+soon\s+as(?!\s+(?:possible|you\s+can)\b)|before|but\s+not|daily|each\s+time|except(?:ing)?"
    r"|excluding|hourly|if"
    r"|in\s+case\s+(?:he|i|it|of|she|somebody|someone|that|the|there|they|we|you)|instead\s+of|later|monthly"
    r"|once\s+(?!again\b|more\b)\w+|other\s+than|rather\s+than|till|twice|unless|until|weekly|when(?:ever)?|while"
    r"|with\s+(?:(?:an?|the)\s+)?(?:assignee|attachments?|body|description|labels?|milestone)(?=\s+[\w@])"
    r"|without|(?:all|any|every)(?:body|one|thing)?\s+but|in\s+(?:an?|one|two|three|a\s+few)\s+"
    r"(?:second|minute|hour|day|week|month)s?|every\s+(?:\d+|second|minute|hour|day|week|month|morning|evening|night)"
    r"|(?:this|next)\s+(?:morning|afternoon|evening|night|week|weekend|month))(?![\w./@-])|,\s*not\s(?!\s*planned\b)",
    re.IGNORECASE,
)
_PART_OF = re.compile(r"\b(?:from|in|inside|of|on|within)\b", re.IGNORECASE)
_OPEN_TEXT = """
call check copy end export fetch find get issue let like list log new open plan power print pull put rate read run save
say show start tell test
"""
_LOOKS = frozenset(("browse", "count", "describe", "display", "find", "inspect", "list", "look", "show", "view"))
_ON = r"(?:and\s+then|then|after\s+that|afterwards|and\s+also|and|also|plus)"
_VERBS_TEXT = """
add allow answer append archive assign attach ban block book call cancel change check clear close copy create cut
delete deliver disable download drop edit email empty enable export fetch file find fix forward get give grant hide
import insert invite kick label leave let list lock mail make mark merge message move mute notify open pause pin post
print publish pull push put read rebuild reject remove rename reopen replace reply reset restart restore resume revoke
run save say schedule send set share show shut sort start stop submit suspend switch take tell trash turn unlock unpin
update upload wipe write
"""
_VERBS = frozenset(_VERBS_TEXT.split())
_OPEN = frozenset(_OPEN_TEXT.split())  # these may mean looking, or be no verbs: "open it", "log of today"
_AGAIN = re.compile(r"\W*(?:please\s+)?open\b.*\bagain\b", re.IGNORECASE | re.DOTALL)
_SECOND = re.compile(
    rf"(?<!\s)\s+{_ON}\s+(?:please\s+|just\s+|also\s+|then\s+)*(?:{'|'.join(sorted(_VERBS))})\b(?!['’])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Rival:
    """Another reading: `behind` the first by so much, in log odds. `excluded`: the request names another service, or
    something that is only there."""

    method: Method
    calls: tuple[Call, ...]
    behind: float
    excluded: bool = False


def doubts(
    catalog: Catalog, method: Method, calls: Sequence[Call], rivals: Sequence[Rival], phrase: str, words: str
) -> tuple[str, ...]:
    """Why to ask before these calls of `method` are made; () where nothing speaks against it.

    `phrase` is the request without what somebody wants said, `words` are all of it.
    """
    found = []
    if goes_on(phrase) and all(catalog.method(call.id).risk is Risk.READ for call in calls[:-1]):
        found.append(f"{method.id} would do a part of this; what comes after it is for another call.")
    if any(changes_nothing(catalog.method(call.id), call) for call in calls):
        found.append(f"{method.id} would change something, but the request doesn't give what.")
    if method.risk is Risk.READ and asks_for_change(phrase):
        found.append(f"{method.id} only looks, and a change seems to be asked for.")
    if method.risk is not Risk.READ and (asks(phrase) or _first(phrase) in _LOOKS):
        found.append(f"{method.id} may change something, and a question was asked.")
    if method.risk is not Risk.READ and (word := qualified(phrase)):
        found.append(f"The request says {word!r}, which {method.id} doesn't take into account.")
    if method.risk >= Risk.DELETE and of_a_part(method, phrase):
        found.append(f"{method.id} does away with the whole, and the request names a part of it.")
    if _takes_times(method) and (time := dates.unread(phrase)):
        found.append(f"{method.id} takes times, and {time!r} isn't read here. Give the dates, like 2026-05-01.")
    mine = _least(catalog, calls, words)
    close = [
        rival for rival in rivals
        if rival.behind < (CLOSE if rival.method.service == method.service else CLOSE_ELSEWHERE) and not rival.excluded
    ]  # fmt: skip
    other = next((rival for rival in close if not _same(catalog, rival, mine, words)), None)
    if other is not None:
        found.append(f"It may be {method.id} or {other.method.id}, which needs other permissions.")
    for call in calls:
        found += [
            f"{call.id} would need less if {name} were {value}."
            for name, value in cheaper(catalog, catalog.method(call.id), call, words)[:1]
        ]
    return tuple(found)


def twin(catalog: Catalog, calls: Sequence[Call], offered: Sequence[Method], words: str) -> Method | None:
    """A method of another service among `offered` that does the same to a thing of the same name ("delete alert 7": an
    alert, or an alert policy elsewhere), where no identifier and no word of the request says which is meant.
    """
    if not calls or _IDENTIFIER.search(words):
        return None
    mine = catalog.method(calls[-1].id)
    verb, thing = _verb_and_thing(mine)
    said = {stem(word) for word in re.findall(r"[a-z]+", words.lower())} - STOP
    if not thing or thing[-1] not in said:
        return None
    told = {word for word in said if word in _spoken_of(catalog, mine)}
    for other in offered:
        its_verb, its_thing = _verb_and_thing(other)
        alike = its_verb == verb and (thing[-1] in its_thing or "".join(its_thing).endswith(thing[-1]))
        if alike and _api(catalog, other) != _api(catalog, mine):
            its = _spoken_of(catalog, other)
            if all(word in its for word in told):
                return other
    return None


def _verb_and_thing(method: Method) -> tuple[str, list[str]]:
    """The stems of a method's verb and of what it is done to: `alertPolicies.delete` -> delete, (alert, policy)."""
    *path, last = method.name.split(".")
    return _stems(last)[0], _stems(path[-1]) if path else []


def _stems(name: str) -> list[str]:
    return [stem(word.lower()) for word in split_name(name).split()] or [""]


def _spoken_of(catalog: Catalog, method: Method) -> str:
    """A method's name, its service's and what it says of itself, in small letters: "mail" is a part of "gmail"."""
    return f"{split_name(method.id)} {catalog.service(method.service).title} {method.description}".lower()


def _api(catalog: Catalog, method: Method) -> str:
    service = catalog.service(method.service)
    return service.provider_name or service.name


def goes_on(phrase: str) -> bool:
    """Whether a request has a second thing to be done: "make a list and put … on it"."""
    return _SECOND.search(phrase) is not None


def asks(words: str) -> bool:
    """Whether the request is a question about how things are, or whether to do something."""
    return _QUESTION.match(words) is not None or (words.endswith("?") and _POLITELY.match(words) is None)


def qualified(phrase: str) -> str:
    """The words that say that it isn't to be done, when or whether it is, or what it leaves out; "" without any."""
    found = _QUALIFIED.search(phrase)
    return found[0].strip(" ,").lower() if found else ""


def of_a_part(method: Method, phrase: str) -> bool:
    """Whether what the method does away with is only what the thing named first is in: "the pins of the channel"."""
    *path, last = method.name.split(".")
    nouns = _stems(path[-1]) if path else _stems(last)[1:]
    at = _PART_OF.search(phrase)
    if at is None or len(nouns) != 1:
        return False
    part, whole = (
        {stem(word) for word in re.findall(r"(?<![\w/@.-])[a-z]+(?![\w/@.-])", words.lower())} - STOP
        for words in (phrase[: at.start()], phrase[at.end() :])
    )
    return _among(nouns[0], whole) and not _among(nouns[0], part) and len(part) > 1  # beside the verb


def _among(noun: str, words: Collection[str]) -> bool:
    """Whether one of the words is the noun, or one is short for the other ("repo")."""
    return any(noun.startswith(word) or word.startswith(noun) for word in words if len(word) > 2)


def asks_for_change(phrase: str) -> bool:
    """Whether the request begins with a verb for changing something."""
    return _first(phrase) in _changing() or _AGAIN.match(phrase) is not None


def _takes_times(method: Method) -> bool:
    return any(
        schema.get("format") in ("date-time", "google-datetime", "date")
        for schema in method.parameters.get("properties", {}).values()
    )


def _first(phrase: str) -> str:
    """The word that a request begins with, a verb of several words as one ("get rid of" is to delete)."""
    return next((word for word, quoted in plainly(marked_words(phrase)) if quoted or word not in POLITE), "")


@cache
def _changing() -> frozenset[str]:
    """The verbs for changing something."""
    known = {word for deed, words in lexicon.kin().deeds.items() if deed != "read" for word in words}
    return frozenset(known | _VERBS) - _OPEN


def changes_nothing(method: Method, call: Call) -> bool:
    """Whether a call that is there to change what exists carries nothing that it would change it to."""
    if method.risk is Risk.READ:
        return False
    last = method.name.rpartition(".")[2]
    content = [name for name, place in method.locations.items() if place in _CONTENT]
    given = any(method.defaults.get(name) or call.arguments.get(name) for name in content)
    return bool(content) and not given and _CHANGES.match(last) is not None


def cheaper(catalog: Catalog, method: Method, call: Call, words: str) -> list[tuple[str, str]]:
    """Values of arguments, with their names, under which a narrower scope than this call's would do."""
    found: list[tuple[str, str]] = []
    for name, schema in method.parameters.get("properties", {}).items():
        refused = {value for values in (schema.get("x-refused-scopes") or {}).values() for value in values}
        if not refused or call.arguments.get(name, schema.get("default")) not in {*refused, None}:
            continue
        mine = _least(catalog, (call,), words)
        for value in [each for each in schema.get("enum", ()) if each not in refused][:_TRIED]:
            changed = replace(call, arguments={**call.arguments, name: value})
            other = _least(catalog, (changed,), words)
            if any(narrower(catalog, method.service, a, b) for _, a in other - mine for _, b in mine - other):
                found.append((name, str(value)))
    return found


def _same(catalog: Catalog, rival: Rival, mine: frozenset[tuple[str, str]], words: str) -> bool:
    calls = rival.calls or (Call(service=rival.method.service, method=rival.method.name, arguments={}),)
    return {scope for _, scope in _least(catalog, calls, words)} == {scope for _, scope in mine}


def _least(catalog: Catalog, calls: Sequence[Call], words: str) -> frozenset[tuple[str, str]]:
    """The least scopes with their services; none where no scope allows it."""
    try:
        return frozenset(
            (service, scope) for service, _, scope in least_scopes(catalog, calls, frozenset(), words=words)
        )
    except InvalidInput:
        return frozenset()
