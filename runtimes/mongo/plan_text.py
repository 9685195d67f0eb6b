"""Plans and results of operations in plain words. Pure; foreign text is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from policies.actions import Plan
from policies.databases import Address
from policies.display_text import escape, escape_name, shorten
from policies.jsonvalue import parse
from runtimes.base import DryLine
from runtimes.mongo.backend import Collection
from runtimes.mongo.extjson import decode, shown
from runtimes.mongo.job import Ran
from runtimes.mongo.operations import Insert, Program, Write
from runtimes.mongo.operations import parse as parse_operations
from runtimes.mongo.records import Change
from runtimes.mongo.restore import named
from runtimes.sql.plan_text import barred

_MOST_SAMPLED = 50
_LONGEST = 2000  # characters of one document in a dry run


def where(name: str, address: Address, *, encrypted: bool) -> str:
    """`shop (MongoDB at db.example.org:27017, database shop, as app)`."""
    hosts = ", ".join(f"{host}:{port}" for host, port in address.hosts)
    tls = "" if encrypted else ", not encrypted"
    user = f", as {address.user}" if address.user else ", without a user"
    return escape_name(f"{name} (MongoDB at {hosts}{tls}, database {address.database}{user})")


_ONE_LINE = 200  # characters of an operation that stands on one line


def payload_lines(plan: Plan) -> tuple[str, ...]:
    """Every operation as it was asked for."""
    listed = list(plan.resolved["operations"])
    lines: list[str] = []
    for number, text in enumerate(listed, 1):
        short = json.dumps(parse(text), ensure_ascii=False)
        said = short if len(short) <= _ONE_LINE else json.dumps(parse(text), indent=2, ensure_ascii=False)
        lines += [f"Operation {number} of {len(listed)}:"] if len(listed) > 1 else []
        lines += barred(said)
    return tuple(lines)


def warning_lines(plan: Plan) -> tuple[str, ...]:
    """The writes without a condition, and what a server without transactions lets others see."""
    program = parse_operations(plan.resolved["operations"])
    tables = {one.collection: None for one in program.operations if isinstance(one, Write) and one.everywhere}
    lines = [escape_name(f"THE FILTER IS EMPTY: every document of {name}.") for name in tables]
    if not program.reads_only and not plan.resolved["transactions"]:
        lines.append("The server has no transactions: others may see it half done.")
    return tuple(lines)


def operations(texts: Iterable[str], program: Program) -> Iterator[str]:
    """Every operation as it was asked for, and what it does."""
    listed = list(texts)
    for number, text in enumerate(listed, 1):
        yield f"Operation {number} of {len(listed)}:" if len(listed) > 1 else "Operation:"
        yield from barred(json.dumps(parse(text), indent=2, ensure_ascii=False))
    for (collection, verb), uses in program.uses().items():
        yield escape_name(f"It {_DOES[verb]} {collection}.")
        if verb in ("update", "delete") and any(isinstance(one, Write) and one.everywhere for one in uses):
            yield escape_name(f"THE FILTER IS EMPTY: it is for every document of {collection}.")
        elif verb in ("update", "delete") and any(isinstance(one, Write) and one.lacking for one in uses):
            yield "Its filter may keep out nothing: it only asks that a field is lacking."


_DOES = {"find": "reads", "insert": "inserts into", "update": "changes documents of", "delete": "deletes documents of"}


def bounds(program: Program, bound: int, collections: dict[str, Collection], *, transactions: bool) -> Iterator[str]:
    """What is promised of the writes."""
    documents = counted(bound)
    for name in program.written:
        found = collections.get(name)
        if found is None:
            yield escape_name(f"There is no collection {name} yet: it is made, and an undo leaves it there, empty.")
        elif found.expires:
            yield escape_name(
                f"The server deletes documents of {name} by itself when they are old enough: what it deleted in "
                "between is a change by somebody else for an undo."
            )
    if transactions:
        yield f"All of it is one transaction; should it reach more than {documents}, none of it stays."
        yield "With it a marker is written into the collection goex_marks of the same database."
    else:
        yield f"It is held to {documents}."
        yield (
            "THIS SERVER HAS NO TRANSACTIONS: documents are written one after the other. Others may see it half done, "
            "and a failure in the middle is taken back document by document."
        )


def undo_text(*, transactions: bool) -> str:
    kept = "The documents are kept as they are before and after. "
    if transactions:
        return (
            f"{kept}Undo puts all of them back as they were, byte by byte, in one transaction, and is refused, with "
            "the difference, when one of them was changed since."
        )
    return (
        f"{kept}Undo puts each of them back as it was, byte by byte, one after the other, not all at once: it is "
        "refused, with the difference, when one of them was changed since. After a crash in the middle what others "
        "changed meanwhile in the documents that were being written counts as the action's own."
    )


def counted(number: int) -> str:
    return f"{number} document{'' if number == 1 else 's'}"


# What an undo does. A redo does again what the action did, and is said in the same words as that.
_BACK = {"inserted": "put back", "updated": "set back", "changed": "set back", "deleted": "removed"}


def _how(how: str, verb: str) -> str:
    return _BACK.get(how, how) if verb == "undo" else how


def changes(ran: Ran, verb: str = "") -> tuple[str, ...]:
    """`orders: 3 documents updated`, collection by collection; then what GoEx has to say of it. `verb`: the revert that
    did it."""
    lines = [f"{collection}: {counted(number)} {_how(how, verb)}" for collection, how, number in ran.counts]
    return tuple(escape(line) for line in (*lines, *ran.notes))


def tally(ran: Ran, verb: str = "") -> str:
    """All of it in a few words: of a revert (`verb`) what it does, of an action how many documents it changes."""
    parts = []
    if verb:
        done: dict[str, int] = {}
        for _, how, number in ran.counts:
            done[_how(how, verb)] = done.get(_how(how, verb), 0) + number
        parts = [f"{counted(number)} {how}" for how, number in done.items()]
    elif ran.counts:
        parts.append(f"{counted(len(ran.changes))} changed")
    found = [len(result["documents"]) for result in ran.results if "documents" in result]
    if found:
        parts.append(f"{counted(sum(found))} read")
    if others := len(ran.results) - len(found):
        parts.append(f"{others} answer{'' if others == 1 else 's'}")
    return ", ".join(parts) or "nothing changed"


def dry_lines(ran: Ran, verb: str = "") -> Iterator[DryLine]:
    """What would happen to which documents, as they are and as they would be. `verb`: of a revert."""
    for line in changes(ran, verb):
        yield DryLine("change", line)
    for change in ran.changes[:_MOST_SAMPLED]:
        yield from _sampled(change)
    if len(ran.changes) > _MOST_SAMPLED:
        yield DryLine("note", f"{_MOST_SAMPLED} of {len(ran.changes)} documents are shown.")
    for result in ran.results:
        for line in json.dumps(result, indent=2, ensure_ascii=False).split("\n"):
            yield DryLine("same", escape(line))


def _sampled(change: Change) -> Iterator[DryLine]:
    yield DryLine("hunk", named(change))
    if change.before is not None:
        yield DryLine("removed", _cut(change.before))
    if change.after is not None:
        yield DryLine("added", _cut(change.after))


def matched_lines(documents: Iterable[tuple[str, bytes]], cut: int) -> Iterator[DryLine]:
    """The documents that would be written, where what they would become isn't known."""
    for collection, document in documents:
        yield DryLine("same", f"{escape(collection)}: {_cut(document)}")
    if cut:
        yield DryLine("note", f"{cut} more are left out.")


def _cut(document: bytes) -> str:
    text, cut = shorten(shown(decode(document)), _LONGEST)
    return escape(text) + (f" … and {cut} characters more" if cut else "")


def inserted(program: Program) -> int:
    """How many documents a program inserts at most."""
    made = sum(len(one.documents) for one in program.operations if isinstance(one, Insert))
    return made + sum(1 for one in program.operations if isinstance(one, Write) and one.upsert)
