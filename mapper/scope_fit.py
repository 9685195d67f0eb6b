"""Whether a scope that a provider lists for a method really reaches what this call is about. Pure.

A provider lists a scope for a method also where it works for few: `drive.photos.readonly` may list files, and then
sees photos alone. Choosing it because it opens little would be choosing what doesn't work. Rules, each from what
scopes say and open, none about one provider:

* what the provider itself says that it refuses for these arguments, it refuses;
* a scope for administrators, partners or add-ons is no ordinary person's, unless the call asks as one;
* a scope over what the app made itself doesn't reach what was there before, and fits calls that make something new;
* a scope over the signed-in person's own things fits calls about that person, and no others; one over what the
  person owns fits calls that name nobody's;
* a scope over the files that were made or opened with the app fits calls that make one, and hardly those that look at
  one which was there;
* a scope that only looks at one kind of thing (`photos`, `availability`) fits calls that name that kind, as long as
  there is one that looks at all of them; of several kinds side by side (`sleep`, `location`), the one that is named,
  or that everyday words stand for;
* where a call may change something, and the provider lists a scope that changes and not the one that only looks at the
  same, looking doesn't do, and a scope that looks at something beside doesn't either;
* a scope of another service's is second to one of this service's own;
* a scope over what is said about things doesn't destroy them, nor reach what is in them where the call is about that;
  one that only looks doesn't change them by SQL;
* of the scopes of OpenID Connect `openid` says nobody's address or name, so that `email` and `profile` do.

Not fitting is a doubt, not a ban, but for what is refused: where nothing fits better, the least doubtful is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mapper.reach import Reach
from mapper.scope_text import SENDS_NO_BYTES, Limit, Said, said, stem, stems
from policies.actions import Call
from policies.jsonvalue import JsonValue
from policies.services import Method, Risk, Scope

REFUSED = 1000  # more than all doubts together

_DESTROYS = frozenset({"trash", "trashed", "delete", "deleted", "remove", "removed"})  # arguments, true or false
_SQL_CHANGE = re.compile(
    r"\s*(?:with\b.{0,2000}?\)\s*)?(insert|update|delete|merge|drop|truncate|alter|create|replace|grant|revoke)\b",
    re.IGNORECASE | re.DOTALL,
)
_SQL = re.compile(r"\bsql\b|(?<=[a-z])Sql\b", re.IGNORECASE)
_OWN_FOLDER = "appdata"
_FIRST_PERSON = frozenset({"my", "mine", "me", "i", "myself"})
_OWNED = ".owned"
_OWN_NAMES = frozenset({"me", "primary"})
# What people say where scopes name the kind of data.
_EVERYDAY = {
    "activity": "run ran workout step ride walk walked exercise calorie swim swam cycle cycling jog training yoga",
    "body": "weight weigh weighed height kilo bmi fat waist",
    "measurement": "weight weigh weighed height kilo bmi pulse",
    "sleep": "slept nap bedtime asleep",
    "nutrition": "meal food ate eat drank water snack breakfast lunch dinner",
    "heart": "pulse bpm",
    "glucose": "sugar",
    "monetary": "revenue earn earned earning money income cpm payout",
}
# What somebody asks who wants to know what is in a file, and what is asked about it.
_INSIDE = frozenset(stems("content text say said written wrote inside read download summarize summarise summary"))
_ABOUT = frozenset(
    stems("who when where size big large long owner own name title type kind modified changed created link shared id")
)
_EITHER = re.compile(r"\bmetadata or (?:the )?content\b|\balt=media\b", re.IGNORECASE)  # what a method answers
# OpenID Connect Core, 5.4: which claims a scope asks for. `openid` alone gives the number of an account.
_CLAIMS = {
    "profile": frozenset(stems("name called picture photo avatar profile locale")),
    "openid": frozenset(stems("id sub identifier number")),
}
_IDENTITY = frozenset({"openid", "email", "profile", "userinfo.email", "userinfo.profile"})
# What somebody says to be: then the word doesn't mean others.
_BEING = re.compile(r"\b(?:i['\u2019]?m|i am|as) an? ((?:[\w-]+ ){0,2}[\w-]+)", re.IGNORECASE)
_YOU = re.compile(r"\byou (\w+)(?:,? (?:or|and) (\w+))?")  # what somebody does to whom another's things belong
_FEW = 2  # methods of a service that a scope of another's opens when it is only there to help
_WHOLE = 5  # the best score: a value that is the kind's name
_SIDE_BY_SIDE = 3  # kinds that are several; of two, a call must name one by a value of its own
_ALIKE = 0.7  # the part of the largest's methods that scopes side by side open
_MAX_TEXT = 4000  # characters of a value or of the request
_MAX_WORDS = 400  # words of the arguments or the request that are looked at


@dataclass(frozen=True, slots=True)
class Candidate:
    """One scope that the provider lists for the method, what it says and what it opens."""

    scope: Scope
    said: Said
    reach: Reach
    here: int  # how many of the service's own methods it opens


def candidates(
    scopes: Mapping[str, Scope], names: Sequence[str], reach: Callable[[str], Reach], here: Callable[[str], int]
) -> dict[str, Candidate]:
    """The scopes of these names, with what is known about each."""
    return {
        name: Candidate(scopes[name], said(name, scopes[name].description), reach(name), here(name))
        for name in names
        if name in scopes
    }


def doubts(
    method: Method,
    call: Call | None,
    among: Mapping[str, Candidate],
    known: frozenset[str],
    looked: frozenset[str] = frozenset(),
    *,
    home: str = "",
    words: str = "",
) -> dict[str, int]:
    """How doubtful each candidate is for this call; 0: it fits.

    `known` are the bases of all scopes of the service that change things, `looked` of those that only look; `home` is
    the service as its provider calls it; `words` are the person's own, which choose between kinds of data alone.
    """
    facts = _Facts(method, call, words, home)
    facts.looked = looked
    facts.beginnings = frozenset(base[:end] for base in known for end, char in enumerate(base) if char == ".")
    found = {name: _refused(method, facts, name) for name in among}
    for name, each in among.items():
        found[name] += _limited(each, facts, known)
    for rule in (_aside, _claims, _others, _owned, _made, _opened, _subsets, _foreign, _elsewhere, _more, _kinds):
        sound = {name: each for name, each in among.items() if found[name] == 0}
        if len(sound) < 2:
            break
        for name in rule(sound, facts, known):
            found[name] += 1
    return found


class _Facts:
    """What a call says: words of its method, of its arguments' values, of the request."""

    def __init__(self, method: Method, call: Call | None, words: str, home: str) -> None:
        self.method = method
        self.home = home
        self.looked: frozenset[str] = frozenset()  # bases of the service's scopes that only look
        self.beginnings: frozenset[str] = frozenset()  # of the names of scopes that change things, up to a dot
        self.arguments: Mapping[str, JsonValue] = {**method.defaults, **(call.arguments if call is not None else {})}
        leaves = list(_leaves(self.arguments))[:_MAX_WORDS]
        self.values = [value for _, value in leaves if isinstance(value, str)]
        self.destroys = any(key.lower() in _DESTROYS for key, value in leaves if isinstance(value, bool))
        # One that says who asks: many others speak of administrators, too.
        asking = [set(stems(key)) for key, value in self.arguments.items() if value is True]
        self.as_admin = any({"admin", "access"} <= key and key & {"use", "as"} for key in asking)
        self.method_stems = {*stems(method.name), *stems(method.service)}
        parts = [part for value in self.values for part in re.split(r"[,;\s]+", value[:_MAX_TEXT])][:_MAX_WORDS]
        self.phrases = [tuple(stems(name)) for part in parts for name in _ids(part)]
        self.value_stems = {stem for phrase in self.phrases for stem in (*phrase, "".join(phrase))}
        self.whole = {"".join(stems(value)) for value in self.values if value.isidentifier()}
        asked = stems(words[:_MAX_TEXT])[:_MAX_WORDS]
        self.asked = [*asked, *_everyday(asked)]
        self.being = frozenset(stems(" ".join(_BEING.findall(words[:_MAX_TEXT]))))
        self.meant = _everyday(self.value_stems)
        self.everyday = self.meant | _everyday(asked)
        # What the path names: the things that the call is about, the last of them the item itself.
        self.path = {
            key: value
            for key, place in method.locations.items()
            if place == "path" and isinstance(value := self.arguments.get(key), str)
        }
        placed = re.findall(r"\{\+?(\w+)\}", method.path)
        self.item = placed[-1] if len(placed) > 1 else ""
        around = method.name.split(".")[:-1]
        self.noun = (stems(around[-1]) or [""])[-1] if around else ""
        self.own_folder = any(_OWN_FOLDER in value.lower() for value in self.values)
        self.me = any(value == "me" or value.endswith("/me") for value in self.values)
        self.inside = self._looks_inside() if method.risk is Risk.READ else self._changes_inside()
        self.sql_changes = any(_SQL_CHANGE.match(value) for value in self.values) and _takes_sql(method)

    def _looks_inside(self) -> bool:
        """Whether the request asks what is in a thing that the method may answer whole."""
        asked = set(self.asked)
        whole = _EITHER.search(self.method.description) is not None
        return whole and bool(asked & _INSIDE) and not asked & _ABOUT

    def _changes_inside(self) -> bool:
        """Whether the method takes a file's bytes, and the call says nothing that describes the file."""
        names = [
            name for name, value in self.arguments.items() if value not in (None, {}) and value not in (True, False)
        ]
        return SENDS_NO_BYTES in self.method.description and set(names) <= set(self.path)


@cache
def _kinds_of() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for kind, words in _EVERYDAY.items():
        for word in words.split():
            for form in (word, stem(f"{word}s")):  # "calories" has a stem of its own
                found[form] = found.get(form, frozenset()) | {kind}
    return found


def _everyday(words: Iterable[str]) -> frozenset[str]:
    """The kinds of data that everyday words stand for."""
    return frozenset().union(*(_kinds_of().get(word, frozenset()) for word in words))


def _takes_sql(method: Method) -> bool:
    """Whether the provider says that the method takes SQL: elsewhere "update …" is a text like any other."""
    return any(_SQL.search(text) for text in (method.name, method.description, str(method.parameters)))


def _ids(path: str) -> list[str]:
    """What a resource's path names: `users/me/dataTypes/sleep` is `sleep` and `me`, and no question of users."""
    return path.split("/")[::-1][::2] if "/" in path else [path]


def _leaves(value: JsonValue, key: str = "") -> list[tuple[str, JsonValue]]:
    found: list[tuple[str, JsonValue]] = []
    stack: list[tuple[str, JsonValue]] = [(key, value)]
    while stack and len(found) < _MAX_WORDS:
        name, one = stack.pop()
        if isinstance(one, Mapping):
            stack.extend((str(inner), item) for inner, item in one.items())
        elif isinstance(one, list | tuple):
            stack.extend((name, item) for item in one)
        else:
            found.append((name, one))
    return found


def _refused(method: Method, facts: _Facts, scope: str) -> int:
    """What the provider's own words about a parameter refuse under this scope (`x-refused-scopes`)."""
    for name, schema in method.parameters.get("properties", {}).items():
        refused = schema.get("x-refused-scopes")
        if not refused:
            continue
        for refusing, values in refused.items():
            if scope != refusing and not scope.endswith("/" + refusing):
                continue
            value = facts.arguments.get(name, schema.get("default"))
            # Some values are refused, none is given, and what the provider takes then isn't known: it may be one.
            if (value is None or value in values) if values else value is not None:
                return REFUSED
    return 0


def _limited(each: Candidate, facts: _Facts, known: frozenset[str]) -> int:
    limits = each.said.limits
    if Limit.ROLE in limits and each.said.ordinary and each.said.ordinary not in known:
        limits = limits - {Limit.ROLE}  # nobody else has one, so it is no special version of it
    found = 0
    if Limit.ROLE in limits and not facts.as_admin:
        found += 4
    if Limit.ROLE not in limits and facts.as_admin:
        found += 1
    if Limit.OWN in limits and not (facts.own_folder if each.said.base.endswith(_OWN_FOLDER) else _makes(facts)):
        found += 2
    if Limit.METADATA in limits and (facts.destroys or facts.inside):
        found += 2
    if each.said.looks and facts.sql_changes:
        found += 2
    return found


def _aside(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those that look at something beside, where looking doesn't do: of one beginning the provider lists a scope that
    changes, and not the one that only looks at the same (`contacts`, not `contacts.readonly`)."""
    if facts.method.risk is Risk.READ:
        return []
    looking = {each.said.base for each in among.values() if each.said.looks}
    changing = {each.said.base: each.said.segments[:1] for each in among.values() if not each.said.looks}
    without = {first for base, first in changing.items() if base in facts.looked - looking}
    return [
        name
        for name, each in among.items()
        if each.said.looks and each.said.base not in changing and each.said.segments[:1] in without
    ]


def _claims(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those of OpenID Connect that don't say what was asked about the person."""
    told = {each.said.segments[-1]: name for name, each in among.items() if each.said.base in _IDENTITY}
    asked = set(facts.asked)
    if "openid" not in told or not asked:
        return []
    wanted = next((claim for claim, words in _CLAIMS.items() if words & asked), "email")
    return [name for claim, name in told.items() if claim != wanted] if wanted in told else []


def _subsets(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those that look at one kind of thing which the call doesn't name, where others look at all, or change all."""
    narrow, wide = [], 0
    for name, each in among.items():
        if _is_general(each, facts, known):
            wide += each.said.risk is Risk.READ or facts.method.risk is not Risk.READ
        elif Limit.METADATA not in each.said.limits and not _named(each, facts):
            narrow.append(name)
    return narrow if wide else []


def _is_general(each: Candidate, facts: _Facts, known: frozenset[str]) -> bool:
    """Whether it looks at all that another changes, or is a service's own root, or changes things itself."""
    if each.said.risk is not Risk.READ:
        return True
    base = each.said.base
    if len(each.said.segments) > 1:
        return each.said.looks and base in known
    if not each.said.looks:
        return _at_home(each, facts)
    return base in known or base in facts.beginnings


def _named(each: Candidate, facts: _Facts) -> bool:
    things = [segment for segment in each.said.segments if segment not in _OWN_NAMES]  # `me` says whose, not what
    last = things[-1] if things else ""
    mine = set(stems(last)) | {"".join(stems(last))}
    return bool(mine & (facts.method_stems | facts.value_stems))


def _foreign(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Another service's that are of use here only beside this one's own: they open next to nothing of it, or only
    look where the call changes something."""
    own = {name for name, each in among.items() if _at_home(each, facts)}
    changes = facts.method.risk is not Risk.READ
    return [
        name
        for name, each in among.items()
        if own and name not in own and each.reach.home and (each.here <= _FEW or (changes and each.said.looks))
    ]


def _at_home(each: Candidate, facts: _Facts) -> bool:
    return facts.home != "" and (each.reach.home == facts.home or each.said.segments[:1] == (facts.home.lower(),))


def _elsewhere(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those that change some named kind of thing, where another names the very thing that the method changes."""
    if not facts.noun or facts.method.risk is Risk.READ:
        return []
    naming = {name for name, each in among.items() if facts.noun in each.said.about}
    narrow = {name for name, each in among.items() if len(each.said.segments) > 1}
    return sorted(narrow - naming) if naming & narrow else []


def _others(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those over other people's things where the call is about the person, or the other way round."""
    mine = {name for name, each in among.items() if Limit.SELF in each.said.limits}
    if not mine or len(mine) == len(among):
        return []
    if facts.me or (facts.asked and _asks_for_own(among, mine, facts)):
        return sorted(set(among) - mine)
    return sorted(mine)


def _owned(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those over everybody's, where another does the same to what the person owns, and the call names nobody's."""
    if any(value not in _OWN_NAMES for key, value in facts.path.items() if key != facts.item):
        return []
    owned = {(each.said.base.removesuffix(_OWNED), each.said.looks) for each in among.values() if _is_owned(each)}
    return [name for name, each in among.items() if not _is_owned(each) and (each.said.base, each.said.looks) in owned]


def _is_owned(each: Candidate) -> bool:
    return each.said.base.endswith(_OWNED)


def _made(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those over files that were there before, where the call makes a new one and a scope is for those alone."""
    folder = {name for name, each in among.items() if each.said.base.endswith(_OWN_FOLDER)}
    if facts.own_folder and folder:  # nothing else makes files there
        return sorted(set(among) - folder)
    looking = any(each.said.looks for each in among.values())  # then it makes something else: no file without a change
    if looking or not _makes(facts):
        return []
    used = {name for name, each in among.items() if Limit.USED in each.said.limits}
    return sorted(set(among) - used) if used else []


def _makes(facts: _Facts) -> bool:
    """Whether the call makes something new, which lies in nothing that was there."""
    return not facts.path and facts.method.name.split(".")[-1] in ("create", "insert")


def _opened(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Those over files that were opened with the app, where the call looks at one that was there, and another looks."""
    if facts.method.risk is not Risk.READ or not facts.path:
        return []
    looking = any(each.said.looks and not each.said.limits for each in among.values())
    return [name for name, each in among.items() if Limit.USED in each.said.limits] if looking else []


def _more(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Of two that look, one at what the other does and at one kind more (`analytics`, `analytics-monetary`): the first
    where that kind is named. What is named so may show more, and never changes more."""
    plain = {each.said.base: name for name, each in among.items() if each.said.looks}
    words = {*facts.asked, *facts.everyday, *facts.value_stems}
    behind = []
    for name, each in among.items():
        first, _, kind = each.said.base.rpartition("-")
        if each.said.looks and kind and first in plain:
            behind.append(plain[first] if words & set(stems(kind)) else name)
    return behind


def _asks_for_own(among: Mapping[str, Candidate], mine: set[str], facts: _Facts) -> bool:
    if any(among[name].said.segments[0] in ("user", "userinfo") for name in mine):
        return False  # a profile is named by the call itself
    own = set().union(*(among[name].said.segments for name in mine))
    others = [each for name, each in among.items() if name not in mine]
    theirs = stems(" ".join(segment for each in others for segment in each.said.segments if segment not in own))
    done = stems(" ".join(" ".join(found) for each in others for found in _YOU.findall(each.scope.description.lower())))
    return bool(_FIRST_PERSON & set(facts.asked)) and not ({*theirs, *done} - facts.being) & set(facts.asked)


def _kinds(among: Mapping[str, Candidate], facts: _Facts, known: frozenset[str]) -> list[str]:
    """Of several kinds of data side by side, those that aren't named."""
    behind: list[str] = []
    for family, group in _families(among):
        shared = set.intersection(*(set(among[name].said.segments) for name in family))
        scores = {name: _score(among[name], shared, facts) for name in group}
        best = max(scores.values())
        if len(family) < _SIDE_BY_SIDE and best < _WHOLE and not _told(group, among, shared, facts):
            continue
        if best:
            behind += [name for name, score in scores.items() if score < best]
        elif any(each.said.risk is Risk.READ for name, each in among.items() if name not in group):
            behind += [name for name in family if among[name].said.looks]  # none is meant: there is one of no kind
    return behind


def _families(among: Mapping[str, Candidate]) -> Iterator[tuple[list[str], list[str]]]:
    """Scopes of one name's beginning that all look, or all do the same at worst, and open about as much as each other;
    and with several that look, all others of that beginning that name a kind."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name, each in among.items():
        if len(each.said.segments) > 1:
            worst = 0 if each.said.looks else max(each.said.risk, each.reach.risk)
            groups.setdefault((each.said.segments[0], worst), []).append(name)
    for names in groups.values():
        most = max(among[name].reach.methods for name in names)
        alike = [name for name in names if among[name].reach.methods >= _ALIKE * most]
        if len(alike) > 1:
            # A word in a call may say which of several like each other is meant. It never makes more be changed.
            looking = all(among[name].said.looks for name in names)
            yield alike, names if looking and len(alike) >= _SIDE_BY_SIDE else alike


def _score(each: Candidate, shared: set[str], facts: _Facts) -> int:
    """How well the call names the scope's kind: by a value that is nothing else, whole or first in a list, all its
    words, some of them or what stands for them, in the request alone."""
    own = [segment for segment in each.said.segments if segment not in shared]
    kind = [stem for segment in own for stem in stems(segment) if stem not in ("and", "or", "of")]
    if not kind:
        return 0
    joined = "".join(kind)
    if joined in facts.whole:
        return _WHOLE
    if any("".join(phrase) == joined or phrase[:1] == tuple(kind[:1]) for phrase in facts.phrases):
        return 4
    if set(kind) & facts.value_stems:
        return 3 if set(kind) <= facts.value_stems else 2
    if set(kind) & facts.meant:
        return 2
    return 1 if set(kind) & ({*facts.asked} | facts.everyday) else 0


def _told(group: Sequence[str], among: Mapping[str, Candidate], shared: set[str], facts: _Facts) -> bool:
    """Whether everyday words stand for the kind of just one of them: a ride is an activity, and no sleep."""
    kinds = [stem for name in group for each in among[name].said.segments if each not in shared for stem in stems(each)]
    return len({kind for kind in kinds if kind in facts.everyday}) == 1
