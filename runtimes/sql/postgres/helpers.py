"""Functions that people made, as triggers, defaults and CHECKs call them: by name, each with what it calls in turn.

A call is looked for in a function's text, since nothing else says what it calls; so all functions of that name count,
and a name in a comment does, too. What a default, a CHECK or a rule calls the server itself has noted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from policies.jsonvalue import JsonValue
from runtimes.sql.postgres.link import Link

AGGREGATE = "aggregate_dummy"  # the text that each aggregate has: what it calls stands elsewhere
COMPUTING = frozenset({  # extensions whose functions in C only compute, though some give another value each time
    "uuid-ossp", "pgcrypto", "citext", "hstore", "ltree", "intarray", "pg_trgm", "unaccent", "fuzzystrmatch", "cube",
    "earthdistance", "seg", "isn", "tablefunc", "btree_gin", "btree_gist", "postgis", "vector", "pg_uuidv7",
})  # fmt: skip
KNOWN_C = ("moddatetime", "autoinc", "insert_username", "citext_eq")  # as is what these do for a trigger
LONGEST = 63  # bytes of a name that the server reads; what follows them is dropped
# Comments may stand in between; and one pattern's find must not hide another's.
_NAME, _QUOTED = r"([^\W\d][\w$]*+)", r'(?<!")"(?=((?:[^"]|""){1,63}+)"'
_BEFORE = r"(?:\.|\*/|(?<=[\n\r]))[ \t]*+"  # `row.name` may be a call, too
_PLAIN = tuple(
    map(re.compile, (rf"(?<![\w$])[\d$]*+{_NAME}\s*+(?:\(|--|/\*)", rf"\.\s*+{_NAME}", rf"{_BEFORE}{_NAME}"))
)
_IN_QUOTES = tuple(map(re.compile, (
    rf"{_QUOTED}\s*+(?:\(|--|/\*))",
    rf"\.\s*+{_QUOTED})",
    rf"{_BEFORE}{_QUOTED})",
    r'(?<!")"(?=((?:[^"]|""){63}+))',  # and more: the server drops what follows
)))  # fmt: skip
_BODY = "CASE WHEN p.prosqlbody IS NULL THEN p.prosrc ELSE pg_catalog.pg_get_function_sqlbody(p.oid) END"
_QUERY = """
SELECT p.oid::pg_catalog.int8, p.proname, l.lanname, p.provolatile, {body},
  (SELECT e.extname FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'
    AND EXISTS (SELECT 1 FROM pg_catalog.pg_roles r WHERE r.oid = p.proowner AND r.rolsuper) LIMIT 1)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
  AND (p.proname = ANY(%s::pg_catalog.text[]) OR p.oid = ANY(%s::pg_catalog.oid[]))
ORDER BY p.oid
"""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, procedure or aggregate that isn't the server's own."""

    oid: int
    name: str
    language: str
    volatility: str  # i, s or v, as pg_proc has it
    source: str
    extension: str  # that brought it; ""; ALTER EXTENSION ADD lets its owner add more, which only look so


@dataclass(frozen=True, slots=True)
class Functions:
    """All that are called from where `read` began."""

    by_oid: Mapping[int, Function]
    _by_name: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)

    def reached(self, texts: Iterable[str] = (), oids: Iterable[int] = ()) -> tuple[Function, ...]:
        """Those that these texts call, and these, with what they call in turn."""
        found: dict[int, Function] = {}
        waiting = [self.by_oid[oid] for oid in oids if oid in self.by_oid]
        waiting += [one for text in texts for name in sorted(_called(text)) for one in self._by_name.get(name, ())]
        while waiting:
            one = waiting.pop(0)
            if one.oid not in found:
                found[one.oid] = one
                waiting += [other for name in sorted(_called(one.source)) for other in self._by_name.get(name, ())]
        return tuple(found.values())

    def digest(self) -> JsonValue:
        """What they are, for the schema's hash."""
        return sorted(
            [one.name, one.language, hashlib.sha256(one.source.encode()).hexdigest()] for one in self.by_oid.values()
        )


def read(link: Link, major: int, texts: Iterable[str], oids: Iterable[int]) -> Functions:
    """The functions of those numbers, the ones that these texts call, and all that they call in turn."""
    found: dict[int, Function] = {}
    query = _QUERY.format(body=_BODY if major >= 14 else "p.prosrc")
    asked: set[str] = set()
    names, numbers = {name for text in texts for name in _called(text)}, list(oids)
    while names or numbers:
        rows = link.ask(query, sorted(names), numbers)
        asked |= names
        made = [
            Function(oid, name, language, volatility, source or "", extension or "")
            for oid, name, language, volatility, source, extension in rows
            if oid not in found
        ]
        found |= {one.oid: one for one in made}
        names, numbers = {name for one in made for name in _called(one.source)} - asked, []
    by_name: dict[str, tuple[Function, ...]] = {}
    for one in found.values():
        by_name[one.name] = (*by_name.get(one.name, ()), one)
    return Functions(found, by_name)


@lru_cache(maxsize=2048)  # many triggers call the same functions, each of which calls others
def _called(text: str) -> frozenset[str]:
    """The names that something is called by in a text."""
    plain = {name.lower() for pattern in _PLAIN for name in pattern.findall(text)}
    quoted = {name.replace('""', '"') for pattern in _IN_QUOTES for name in pattern.findall(text)}
    return frozenset(shortened(name) for name in plain | quoted)


def shortened(name: str) -> str:
    """A name as the server reads it."""
    return name.encode(errors="replace")[:LONGEST].decode(errors="ignore")
