"""Which tables a program reaches, and what is done to each. Pure.

A table is reached by a statement, by what foreign keys do (CASCADE, SET NULL, SET DEFAULT), or by the text of a trigger
function that names it, or of one that is called there. What isn't foreseen here shows when the program runs: the server
counts the rows that a transaction writes in each table, and more than was caught rolls everything back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from policies.errors import GoexError
from runtimes.sql.checking.parse import read, write
from runtimes.sql.contract import Dialect, Program, Statement, Verb
from runtimes.sql.postgres.helpers import AGGREGATE, LONGEST, Function, shortened
from runtimes.sql.postgres.relations import DELETE, INSERT, ROW, TRUNCATE, UPDATE, Catalog, Relation, Trigger, quoted
from runtimes.sql.reads_through import ANY

Why = Literal["statement", "cascade", "trigger"]

EVENTS: dict[Verb, int] = {"insert": INSERT, "update": UPDATE, "delete": DELETE, "truncate": TRUNCATE}
DATA: frozenset[Verb] = frozenset({"insert", "update", "delete", "truncate"})


@dataclass(frozen=True, slots=True)
class Reach:
    """One table and what is done to it. `columns` (): all."""

    table: str
    verb: Verb
    why: Why
    columns: frozenset[str] = frozenset()
    source: str = ""  # the table whose change brings it


_WORD = re.compile(r"\w+")
_DOLLARS = re.compile(r"[\w$]+")  # a name may hold `$`, and text may stand between some
_COMMENT = re.compile(r"('[^']*'|\"[^\"]*\")|--[^\n\r]*|/\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/")
_QUOTED = re.compile(r"'[^']*'|(\"[^\"]*\")")
_QUOTED_ELSE = re.compile(r"\\|\$[\w\x80-\U0010ffff]*\$")  # what may begin or end a text in another way
RUNS_TEXTS = re.compile(r"crosstab\w*|connectby|xpath_table")  # extensions' functions that run a text as SQL
MAKES_TEXTS = re.compile(  # GRANT EXECUTE ON runs none
    rf"\bexecute\b(?!\s++on[ \t\r\n])|_to_xml|\bts_(?:stat|rewrite)\b|\b(?:{RUNS_TEXTS.pattern})", re.IGNORECASE
)
# Where these are in a text, the words before a table's name don't say how it is written: a comment in between, or a
# name in quotes that holds more than a word.
_BETWEEN = re.compile(
    r"(?:\b(?:insert|merge|into|(?<!for )update|delete(?:\s++from)?|truncate(?:\s++table)?|only)[\s(]*+|\.\s*+)"
    r'(?:--|/\*)|\*/\s*+\.|(?<=[\n\r])[ \t]*+\.|"[\w$]*+[^\w$"][^"]*+"\s*+\.|" ?"[^"]*+"\s*+\.'
)
_OF = re.compile(r"(?<![\w$])[\w$]++\s*+\.\s*+")


def stated(program: Program) -> list[Reach]:
    """What its statements write themselves."""
    return [
        Reach(use.table, use.verb, "statement", frozenset(use.columns))
        for statement in program.statements
        for use in statement.uses
        if use.verb != "select"
    ]


def closure(catalog: Catalog, written: Iterable[Reach]) -> Iterator[Reach]:
    """What is `written`, and what that writes in turn; each once."""
    waiting = [*written]
    seen: set[Reach] = set()
    said: dict[str, list[tuple[Relation, Verb]]] = {}  # of each text, which is read once
    while waiting:
        reach = waiting.pop(0)
        if reach in seen:
            continue
        seen.add(reach)
        yield reach
        waiting += _cascades(catalog, reach)
        waiting += _stands_for(catalog, reach)
        for _, trigger in fired(catalog, reach):
            waiting += _written_by(catalog, trigger, reach.table, said)


def fired(catalog: Catalog, reach: Reach) -> Iterator[tuple[Relation, Trigger]]:
    """The triggers that may fire where that is done, each with its table. A row that an UPDATE moves to another
    partition goes from one and comes to the other."""
    relation = catalog.relations.get(reach.table)
    for one, trigger in catalog.firing(relation) if relation is not None else ():
        moves = reach.verb == "update" and relation is not None and relation.kind == "p" and trigger.events & ROW
        if trigger.events & (EVENTS.get(reach.verb, 0) | (INSERT | DELETE if moves else 0)):
            yield one, trigger


def _stands_for(catalog: Catalog, reach: Reach) -> Iterator[Reach]:
    """What is written in its place, or with it: of a partition the whole table, of a table those that inherit from it,
    of a view that writes the tables that it is made of."""
    relation = catalog.relations.get(reach.table)
    if relation is None or reach.verb not in DATA:
        return
    others = [one for one in catalog.relations.values() if one.parent == relation.oid and not one.partition]
    if relation.partition:
        others.append(catalog.root(relation))
    verbs: tuple[Verb, ...] = (reach.verb,)
    instead = any(trigger.events & EVENTS.get(reach.verb, 0) for trigger in relation.firing)  # its text says what
    if relation.kind == "v" and not instead:
        others += [catalog.by_oid[oid] for oid in relation.stands_on if oid in catalog.by_oid]
        verbs = ("insert", "update", "delete") if relation.rules else verbs
    for other in others:
        for verb in verbs:
            yield Reach(other.name, verb, "cascade", frozenset(), reach.table)


def _cascades(catalog: Catalog, reach: Reach) -> Iterator[Reach]:
    for key in catalog.pointing_to(reach.table):
        if reach.verb == "truncate" and key.child != reach.table:  # CASCADE; without it the server refuses
            yield Reach(key.child, "truncate", "cascade", frozenset(), reach.table)
            continue
        if reach.verb == "delete" and key.on_delete in "cnd":
            verb: Verb = "delete" if key.on_delete == "c" else "update"
        elif (
            reach.verb == "update"
            and key.on_update in "cnd"
            and (not reach.columns or reach.columns & set(key.parent_columns))
        ):
            verb = "update"
        else:
            continue
        columns = frozenset(key.columns) if verb == "update" else frozenset[str]()
        yield Reach(key.child, verb, "cascade", columns, reach.table)


def reads(catalog: Catalog, program: Program, reaches: Iterable[Reach]) -> Iterator[str]:
    """The tables that are named by what runs where rows are written (triggers, rules, defaults, CHECKs, and what these
    call), by casts and domains, or by the row security of what is read; ANY where that can't be seen."""
    heads: dict[str, None] = {}
    bodies: dict[str, None] = {}
    hidden = list(catalog.converts)  # functions that run with what is only read, too
    for reach in reaches:
        relation = catalog.relations.get(reach.table)
        if relation is None:
            continue
        for _, each in fired(catalog, reach):
            heads[each.definition.partition(" FOR EACH ")[2]] = None  # its WHEN, and what it calls with what
            bodies |= dict.fromkeys(each.texts)
        for one in catalog.members(relation):
            bodies |= dict.fromkeys((*one.rules, *(each.source for each in one.computing(reach.verb))))
    names = {use.table for one in program.statements for use in one.uses}
    waiting, found = [(name, False) for name in names], set[str]()
    seen: set[tuple[str, bool]] = set()
    while True:
        while waiting:
            name, beneath = waiting.pop()
            relation = catalog.relations.get(name)
            if relation is None or (name, beneath) in seen:
                continue
            seen.add((name, beneath))
            waiting += [(catalog.by_oid[oid].name, True) for oid in relation.stands_on if oid in catalog.by_oid]
            if relation.row_security or beneath:  # a view reads as its owner, whom other policies may hold
                found.update(relation.guards)
                waiting += [(guard, True) for guard in relation.guards]
                hidden += relation.judges
        bodies |= dict.fromkeys(each.source for each in hidden)
        texts = [without_comments(body) for body in bodies]
        told = named(catalog, "\n".join((*heads, *texts)))
        waiting += {(name, True) for name in told} - seen
        if not waiting:
            break
    found |= told - {reach.table for reach in reaches}
    if any(map(MAKES_TEXTS.search, texts)) or any(map(_opaque, hidden)):
        found.add(ANY)
    yield from sorted(found)


def without_comments(body: str) -> str:
    """A function's text without its comments, where they can be told: one within another can't."""
    bare = _COMMENT.sub(r"\1 ", body)
    return body if _QUOTED_ELSE.search(body) or "/*" in bare else bare


def without_texts(body: str) -> str:
    """A function's text without comments and without what is in single quotes, where these can be told."""
    bare = without_comments(body)
    plain = not (_QUOTED_ELSE.search(body) or "/*" in bare)
    return _QUOTED.sub(lambda found: found[1] or " ", bare) if plain else body


def named(catalog: Catalog, text: str) -> set[str]:
    """The tables and views whose names stand in a text."""
    words = set(map(shortened, (*_WORD.findall(text.lower()), *_DOLLARS.findall(text.lower()))))
    return {
        name
        for name, one in catalog.relations.items()
        if one.plain in words or quoted(one.plain)[: -1 if len(one.plain.encode()) >= LONGEST - 3 else None] in text
    }


def _opaque(function: Function) -> bool:
    """Whether its text doesn't say what it reads."""
    seen = function.language in ("plpgsql", "sql", "internal") and function.source != AGGREGATE
    return not seen and not (function.extension and function.volatility == "i")


def _written_by(
    catalog: Catalog, trigger: Trigger, table: str, said: dict[str, list[tuple[Relation, Verb]]]
) -> Iterator[Reach]:
    for text in trigger.texts:
        if text not in said:
            said[text] = [(one, verb) for one in catalog.relations.values() for verb in writes(text, one.plain)]
        for relation, verb in said[text]:
            if not relation.usable and catalog.relations[table].usable and not holds(text, relation.schema):
                continue  # another table of that name
            yield Reach(relation.name, verb, "trigger", frozenset(), table)


def holds(text: str, name: str) -> bool:
    """Whether a name stands in a text."""
    return re.search(rf"(?<![\w$]){_named(name)}", text, re.IGNORECASE) is not None


def _named(name: str) -> str:
    """A pattern for a name, and its end: what is written may be longer than what the server reads."""
    return re.escape(name) + ("" if len(name.encode()) >= LONGEST - 3 else r"(?![\w$])")


def writes(source: str, plain: str) -> Iterator[Verb]:
    """How a function's text writes a table of that name; in every way, where that can't be told from it."""
    name = plain.lower()
    if name not in source.lower():
        return
    text, odd = _flat(source)
    if not holds(text, name):
        return
    named_ = _named(name)
    into, only = rf"\s+(?:only\s+)?{named_}", rf"[\s(]+(?:only[\s(]+)?{named_}"
    dynamic = odd or re.search(rf"\bexecute\b|\bmerge\s+into{into}", text) is not None
    for verb, pattern in (
        ("insert", rf"\binsert\s+into{into}"),
        ("update", rf"\bupdate{only}"),
        ("delete", rf"\bdelete\s+from{only}"),
    ):
        if dynamic or re.search(pattern, text) or (verb == "update" and _upserts(text, named_)):
            yield verb  # type: ignore[misc]
    if any(holds(one.partition("truncate")[2], name) for one in text.split(";") if re.search(r"\btruncate\b", one)):
        yield "truncate"


@lru_cache(maxsize=256)
def _flat(source: str) -> tuple[str, bool]:
    """A text without comments, quotes around names, and what names are of; and whether that hides how it writes."""
    bare = without_comments(source).lower()
    return _OF.sub("", bare.replace('"', "")), _BETWEEN.search(bare) is not None


def _upserts(text: str, name: str) -> bool:
    parts = (re.split(rf"\binto\s+{name}", statement, maxsplit=1) for statement in text.split(";"))
    return any(len(part) == 2 and re.search(r"\bdo\s+update\b", part[1]) for part in parts)


@lru_cache(maxsize=256)
def tree_of(statement: Statement) -> exp.Expr | None:
    """The tree of its text, where writing it again gives the same text."""
    try:
        trees = read(statement.sql, Dialect.POSTGRESQL)
        if len(trees) == 1 and write(trees[0], Dialect.POSTGRESQL) == statement.sql:
            return trees[0]
    except GoexError:
        pass
    return None
