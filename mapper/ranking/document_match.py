"""How well a method's documents fit a request: BM25 over fields, what is to be done, what the request leaves out.

This is all that there is for a service that nobody wrote words for: names, paths, titles, descriptions and parameters.
Rules: nothing here knows a service; what a word may stand for (`kin`) and which verbs do what (`deeds`) holds for any
API and is in `lexicon/kin.toml`. A word counts by how rare it is among the methods it has to choose between. Pure,
vectorised with numpy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from mapper.ranking import deed_model, lexicon
from mapper.ranking.features import RANKING_NAMES
from mapper.ranking.terms import STOP, marked_words, split_name, stem

FIELDS = ("name", "path", "title", "text", "head", "item", "about")
"""Where a word may stand: the operation's name, the fixed parts of its path, its title, all else it says; the last
fixed part of its path, what the path has an id of; the service's title and description (at its first method alone)."""

_SAID = FIELDS[:4]

DEEDS = ("read", "create", "update", "delete", "act")

FEATURES = (
    "name", "path", "title", "text", "covered", "left_out", "deed", "deed_wrong", "list", "item", "verb", "short",
    "deprecated", "object", "object_left", "owner", "filled", "holes", "ids", "likely", "served", "much", "about",
    "exact",
)  # fmt: skip

SIGNS = (
    "bias", "share", "margin", "covered", "deed", "left_out", "named", "words", "object", "served", "about",
)  # fmt: skip
"""What tells whether the first method by documents is right, and whether any is."""

SIDES = (
    "bias", "share", "margin", "covered", "named", "object", "served", "about",
    *(f"other_{name}" for name in RANKING_NAMES[1:]),
)  # fmt: skip
"""What tells whether a request is for a service that only its documents speak of, or for one of the lexicon's."""

_HTTP = {"get": "read", "head": "read", "put": "update", "patch": "update", "delete": "delete"}
_KIN = 0.7  # how much a word of the same meaning counts
_PAIR = 0.6
_RESPELLED = 0.9  # how much a word counts that is what a slip of the keyboard was meant to be
_UNHEARD = 1.5  # how rare a word counts that no method says
_OBJECT = 3  # words that may stand between a verb and its particle
POLITE = frozenset(
    ("please", "pls", "kindly", "now", "just", "can", "could", "would", "you", "i", "want", "need", "to", "lets")
)
"""What may stand before the verb of a request."""
_OBJECTS = frozenset(
    ("to", "that", "the", "a", "an", "my", "our", "on", "him", "her", "them", "us", "this", "everybody")
)
_SENT = frozenset(("text", "sms", "message", "email", "mail"))
_BREAKS = frozenset(("and", "then", "that", "with", "for", "from", "in", "at", "of", "to"))
_LISTING = frozenset(("list", "which", "who", "all", "every", "find", "search", "show", "what", "latest", "many"))
_IDS = frozenset(
    ("<uuid>", "<hexid>", "<fileid>", "<videoid>", "<channelid>", "<playlistid>", "<id1>", "<id2>", "<id3>",
     "<issueno>", "<snowflake>", "<orderid>", "<placeid>")
)  # fmt: skip
_NEAR_ID = 3  # words from a thing to its id
_PARTS_TEXT = """
in on at to from for of with into onto by via about under over that which who whose where so because and then if when
after before using through as inside within between against since until
"""
_PARTS = frozenset(_PARTS_TEXT.split())
_ID = re.compile(r"\}(?:\.\w+)?/?$")


@dataclass(frozen=True, slots=True)
class Concept:
    """A word of a request with all that may be said instead, each with how much it counts."""

    word: str
    said: Mapping[str, float]
    verb: bool  # says what is to be done
    weight: float
    thing: bool = False  # is, or is part of, what something is done to
    owner: bool = False  # an id stands behind it
    asks: bool = False  # is the verb of the request: "file" of "file an issue" is no file


@dataclass(frozen=True, slots=True)
class Query:
    """A request, for its match with documents."""

    concepts: tuple[Concept, ...]
    deed: str  # of `DEEDS`; "": not told
    lists: bool  # several things are wanted
    names: bool  # one thing is named by an id, an address, a name in quotes
    ends: bool  # the verb ends something, as many a DELETE does that isn't called so: to cancel, to revoke
    likely: tuple[float, ...]  # log probability of each of `deed_model.CLASSES`
    ids: int  # how many things are named by an id

    @property
    def terms(self) -> list[str]:
        """All terms whose postings are needed."""
        return list(dict.fromkeys(term for concept in self.concepts for term in concept.said))


@cache
def _deeds() -> dict[str, str]:
    return {stem(word): deed for deed, words in lexicon.kin().deeds.items() for word in words}


@cache
def _kin() -> dict[str, dict[str, float]]:
    """Each word's stem with the stems of its kin."""
    found: dict[str, dict[str, float]] = {}
    for group in lexicon.kin().groups:
        stems = [stem(word) for word in group]
        for each in stems:
            found.setdefault(each, {}).update({other: _KIN for other in stems if other != each})
    for word, others in lexicon.kin().synonyms.items():
        found.setdefault(stem(word), {}).update({stem(other): _KIN for other in others if stem(other) != stem(word)})
    return found


def query(text: str, names: Collection[str] = ()) -> Query:
    """A request's words. `names` are stems of the name of the service that it names: they say nothing within it."""
    marked = list(plainly(marked_words(text)))
    named = any(word.startswith("<") and word != "<quoted>" for word, _ in marked)
    plain = [word for word, quoted in marked if not quoted and not word.startswith("<") and not word.endswith("/")]
    deeds, kin, fillers = _deeds(), _kin(), lexicon.kin().fillers
    concepts: list[Concept] = []
    deed, before = "", ""
    lists = ends = False
    thing, last, ids, first = 0, -9, 0, 0
    for place, (word, quoted) in enumerate(marked):
        if quoted or word.endswith("/"):
            continue
        if word.startswith("<"):
            thing += thing == 1
            if word in _IDS or (word == "<number>" and last == place - 1):
                ids += 1
                at = -2 if concepts and concepts[-1].weight < 1.0 else -1
                if concepts and place - last <= _NEAR_ID and not concepts[at].verb:
                    concepts[at] = replace(concepts[at], owner=True)
                last = -9
            continue
        stemmed = stem(word)
        if word in _LISTING:
            lists = True
        asking = stemmed in deeds and not deed and stemmed not in names
        if asking:
            deed, ends = deeds[stemmed], stemmed in _ends()
        if word in _PARTS:
            thing += thing == 1
        if word in STOP or word == "?" or stemmed in names:
            before = ""
            continue
        if word in fillers:
            if before:  # "check out": `checkout`
                concepts.append(Concept(before + stemmed, {stem(before + stemmed): 1.0}, False, _PAIR, thing == 1))
            before = ""
            continue
        said = {stemmed: 1.0, **kin.get(stemmed, {})}
        verb = stemmed in deeds
        thing = 1 if thing == 0 and not verb else thing
        concepts.append(Concept(stemmed, said, verb, 1.0, thing == 1, asks=asking))
        last = place
        if before:
            compound = stem(before + stemmed)
            for at in (first, len(concepts) - 1):  # "net worth" is said where "networth" is
                concepts[at] = replace(concepts[at], said={compound: _KIN, **concepts[at].said})
            pair = Concept(before + stemmed, {compound: 1.0}, False, _PAIR, thing == 1)
            concepts.append(pair)
        before, first = stemmed, len(concepts) - 1 - bool(before)
    asks = bool(plain) and (plain[0] in _LISTING or plain[0] in ("is", "are", "how", "when", "where", "did", "has"))
    if asks or (text.rstrip().endswith("?") and not deed):
        deed, ends = "read", False
    return Query(tuple(concepts), deed, lists, named, ends, deed_model.likely(marked), ids)


def respelled(found: Query, better: Mapping[str, str]) -> Query:
    """The wish with some of its words, slips of the keyboard, replaced by what was meant."""
    concepts = []
    for concept in found.concepts:
        if concept.weight == 1.0 and concept.word in better:
            word = better[concept.word]
            said = {term: share * _RESPELLED for term, share in {word: 1.0, **_kin().get(word, {})}.items()}
            concepts.append(Concept(word, said, word in _deeds(), 1.0, concept.thing, concept.owner))
        else:
            concepts.append(concept)
    return replace(found, concepts=tuple(concepts))


def plainly(marked: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """The words with two-word verbs said in one ("get rid of" is to delete, "call it off" to cancel), and with a verb
    before a noun that says what somebody does ("text +49…" is to send a text)."""
    words = list(marked)
    phrases = _phrases()
    at = 0
    while at < len(words):
        word, quoted = words[at]
        if not quoted:
            for particles, verbs in phrases.get(word, ()):
                places = _follow(words, at + 1, particles)
                if places:
                    for place in reversed(places):
                        del words[place]
                    words[at : at + 1] = [(verb, False) for verb in verbs]
                    break
        at += 1
    first = next((n for n, (word, quoted) in enumerate(words) if quoted or word not in POLITE), len(words))
    if first + 1 < len(words) and words[first][0] in lexicon.kin().spoken:
        after = words[first + 1][0]
        if after.startswith("<") or after in _OBJECTS:
            words.insert(first, ("send" if words[first][0] in _SENT else "create", False))
    return iter(words)


def _follow(words: Sequence[tuple[str, bool]], at: int, particles: Sequence[str]) -> list[int]:
    """Where these particles stand one after the other from `at` on, a short object allowed before the first."""
    for begin in range(at, min(at + _OBJECT + 1, len(words) - len(particles) + 1)):
        if all(words[begin + n] == (particle, False) for n, particle in enumerate(particles)):
            return list(range(begin, begin + len(particles)))
        if len(particles) > 1 or words[begin][0] in _deeds() or words[begin][0] in _BREAKS:
            break
    return []


@cache
def _phrases() -> dict[str, list[tuple[list[str], list[str]]]]:
    """By its first word: the particles of each two-word verb, and the verbs that say the same."""
    found: dict[str, list[tuple[list[str], list[str]]]] = {}
    for meant, phrases in lexicon.kin().phrases.items():
        for phrase in phrases:
            first, *rest = phrase.split()
            found.setdefault(first, []).append((rest, meant.split("_")))
    for each in found.values():
        each.sort(key=lambda one: -len(one[0]))
    return found


@cache
def _ends() -> frozenset[str]:
    return frozenset(stem(word) for word in lexicon.kin().ends)


def deed(name: str, http: str, path: str) -> str:
    """What a method does, of `DEEDS`: by the verb that its name begins or ends with, else by HTTP's."""
    words = [stem(word) for word in re.findall(r"[a-z]+", split_name(name).lower())]
    known = _deeds()
    method = http.lower()
    item = _ID.search(path) is not None
    if method in ("get", "head", "delete"):
        return _HTTP[method]
    for word in (words[:1] + words[-1:]) if words else ():
        if word in ("post", "put", "patch"):
            continue
        if word in known and known[word] != "act":
            return known[word]
    if method == "post":
        tail = path.rstrip("/").rpartition("/")[2]
        return "update" if item else known.get(stem(re.split(r"[^A-Za-z]", tail)[0].lower()), "create")
    return _HTTP.get(method, "act")


def matched(found: Query, postings: Mapping[tuple[str, str], Any], facts: Mapping[str, Any]) -> Any:
    """`FEATURES` for each of the methods that compete.

    `postings`: for (term, field) a dense array over these methods, absent where none has it. `facts`: of each method
    `deed` (a number in `DEEDS`), `item`, `many` (words in name and path), `deprecated`, `holes` (ids in its path),
    `heads` (words of `head`) and `family`, whose methods stand together.
    """
    words = _words(found, postings, facts["family"])
    deeds = facts["deed"]
    wanted = DEEDS.index(found.deed) if found.deed else -1
    same = deeds == wanted if wanted >= 0 else np.zeros(len(deeds), bool)
    wrong = _wrong(found.deed, deeds)
    if found.ends:
        deletes = deeds == DEEDS.index("delete")
        same, wrong = same | deletes, np.where(deletes, 0.0, wrong)
    item = facts["item"].astype(bool)
    read = deeds == 0
    columns = (
        *(words[field] for field in _SAID),
        words["covered"],
        np.maximum(facts["many"] - words["called"], 0) / 4,
        same,
        wrong,
        read & ~item & (found.lists & (not found.names)),
        item & found.names,
        words["verb"],
        1 / np.sqrt(np.maximum(facts["many"], 1)),
        facts["deprecated"],
        words["object"],
        np.maximum(facts["heads"] - words["head"], 0) / np.maximum(facts["heads"], 1),
        words["owner"],
        words["filled"],
        np.maximum(facts["holes"] - found.ids, 0) / 2,
        np.maximum(found.ids - facts["holes"], 0) / 2,
        np.array(found.likely)[np.where(read & ~item, 0, deeds + 1)],
        *(words[name] for name in ("served", "much", "about", "exact")),
    )
    rows = np.empty((len(columns), len(deeds)))
    for place, column in enumerate(columns):
        rows[place] = column
    return rows.T


def _words(found: Query, postings: Mapping[tuple[str, str], Any], family: Any) -> dict[str, Any]:
    """What the request's words say of each method; of its whole service: `served`, `much`, `about`."""
    count = len(family)
    names = (*_SAID, "covered", "exact", "called", "head", "verb", "object", "owner", "filled")
    sums = {name: np.zeros(count) for name in names}
    starts = np.flatnonzero(np.diff(family, prepend=-1))
    sizes = np.diff(starts, append=count)
    whole = {name: np.zeros(len(starts)) for name in ("served", "much", "about")}
    total = things = owners = services = 1e-9
    nothing = np.zeros(count, np.float32)
    for concept in found.concepts:
        best = {field: _best(concept, postings, field, nothing) for field in FIELDS}
        anywhere = np.maximum.reduce([best[field] for field in _SAID])
        called = np.maximum(best["name"], best["path"])
        own = np.maximum.reduce([postings.get((concept.word, field), nothing) for field in _SAID])
        rare = _rarity(own if own.any() else anywhere) * concept.weight
        if concept.verb:
            sums["verb"] += np.maximum(best["name"], best["title"]) * min(rare, 2.0)
        for field in _SAID:
            if best[field] is not nothing:
                sums[field] += rare * best[field]
        if concept.thing and not concept.verb:
            sums["object"] += rare * best["head"]
            things += rare
        if concept.weight < 1.0:
            continue
        sums["covered"] += rare * anywhere
        sums["exact"] += rare * own * (not concept.asks)
        total += rare if anywhere.any() else _UNHEARD
        sums["called"] += called > 0
        sums["head"] += best["head"] > 0
        if concept.owner:
            sums["owner"] += rare * best["item"]
            sums["filled"] += rare * ((best["item"] == 0) & (best["text"] > 0))
            owners += rare
        if len(starts) > 1 and not concept.verb:
            own = np.maximum.reduceat(anywhere, starts)
            unusual = _rarity(own)
            whole["served"] += unusual * own
            services += unusual
            whole["much"] += unusual * np.sqrt(np.add.reduceat(called, starts) / sizes)
            spoken = np.maximum.reduceat(best["about"], starts)
            whole["about"] += _rarity(spoken) * spoken
    scale = max(len(found.concepts), 1) ** 0.5
    by = {
        **dict.fromkeys(_SAID, scale), **dict.fromkeys(("covered", "exact"), total), "object": things,
        **dict.fromkeys(("owner", "filled"), owners),
    }  # fmt: skip
    over = {"served": services, "much": scale, "about": scale}
    return {
        **{name: column / by.get(name, 1.0) for name, column in sums.items()},
        **{name: np.repeat(column / over[name], sizes) for name, column in whole.items()},
    }


def _best(concept: Concept, postings: Mapping[tuple[str, str], Any], field: str, nothing: Any) -> Any:
    """How well each method's field says a concept; `nothing` where none does."""
    columns = [
        postings[term, field] * np.float32(share)
        for term, share in concept.said.items()
        if (term, field) in postings
    ]  # fmt: skip
    return np.maximum.reduce(columns) if columns else nothing


def _rarity(said: Any) -> float:
    """How rare a word is that these say."""
    frequency = float((said > 0).sum())
    return float(np.log(1 + (len(said) - frequency + 0.5) / (frequency + 0.5)))


def _wrong(wanted: str, deeds: Any) -> Any:
    """Where a method does what can't be meant: it changes what is to be looked at, or deletes what isn't to go."""
    if not wanted:
        return np.zeros(len(deeds))
    if wanted == "read":
        return (deeds != 0).astype(float)
    return ((deeds == 0) | ((deeds == DEEDS.index("delete")) & (wanted != "delete"))).astype(float)


def signs(found: Query, rows: Any, scores: Any, named: bool) -> Any:
    """`SIGNS` of a ranking, its best rows and scores (as log shares) first."""
    at = {name: place for place, name in enumerate(FEATURES)}
    words = sum(concept.weight == 1.0 for concept in found.concepts)
    return np.array(
        [
            1.0,
            float(np.exp(scores[0])),
            min(float(scores[0] - scores[1]), 4.0) if len(scores) > 1 else 4.0,
            float(rows[0, at["covered"]]),
            float(rows[0, at["deed"]]),
            float(rows[0, at["left_out"]]),
            float(named),
            min(words, 8) / 8,
            *(float(rows[0, at[name]]) for name in ("object", "served", "about")),
        ]
    )
