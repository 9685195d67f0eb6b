"""Check an exported journal, with nothing but Python: `python -m goex.journal.verify FILE [--head HASH]`.

docs/audit.md has the format. Rules: every row's hash is recomputed over the hash before it and all of its fields; rows
that follow each other must fit; the last line must be there, count the rows, and hold the hash over all lines before;
in an export of everything the chain begins at its fixed beginning and ends at its head. Whoever can change the file can
make all of it anew, though: only a head that was written down elsewhere (`goex log --verify` prints it) proves that
it is the journal that was kept. Constant memory; this file stands alone and can be copied.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

FORMAT = 1
GENESIS = hashlib.sha256(b"goex.v1.journal").hexdigest()
LONGEST_LINE = 128 * 2**20
_FIELDS = ("number", "at", "action", "agent", "kind", "from", "to", "facts", "previous", "hash")


class Altered(ValueError):
    """The file isn't what was exported. The text says where."""


@dataclass(frozen=True)
class Checked:
    """What a file that is whole says."""

    rows: int
    first: int  # the first row's number; 0: there is none
    last: int
    whole: bool  # everything was exported, so that nothing can have been left out
    head: str  # the hash that the chain ended with
    head_number: int
    authenticated: bool  # when it was exported, GoEx had proven the head with its key
    head_given: bool  # and it is the one that the caller knows


def check(file: BinaryIO, head: str = "") -> Checked:
    """Read it all. `head` is the hash that the chain must have ended with, as it was written down elsewhere.

    Raises Altered.
    """
    total = hashlib.sha256()
    lines = _lines(file)
    first_line, header = next(lines, (b"", {}))
    if header.get("goex") != "journal":
        raise Altered("Line 1 isn't the beginning of an exported journal.")
    if header.get("format") != FORMAT:
        raise Altered(f"Its format is {header.get('format')!r}; this program knows {FORMAT}.")
    whole = header.get("whole") is True and header.get("wanted") == {}
    total.update(first_line)
    count = first = number = 0
    last = GENESIS
    for place, (text, value) in enumerate(lines, 2):
        if value.get("end") is True:
            if next(lines, None) is not None:
                raise Altered(f"Something follows line {place}, which says that it is the last.")
            return _ended(header, value, total.hexdigest(), (count, first, number, last), whole, head)
        total.update(text)
        _row(value, place)
        if value["number"] <= number:
            raise Altered(f"Line {place}: row {value['number']} stands behind row {number}.")
        follows = value["number"] == number + 1
        if whole and not follows:
            raise Altered(f"Line {place}: row {number + 1} is missing: row {value['number']} follows.")
        if follows and value["previous"] != last:
            raise Altered(f"Line {place}: row {value['number']} doesn't follow the one before it.")
        count, number, last = count + 1, value["number"], value["hash"]
        first = first or number
    raise Altered("The last line is missing: the file was cut.")


def _ended(
    header: dict[str, Any], end: dict[str, Any], total: str, seen: tuple[int, int, int, str], whole: bool, head: str
) -> Checked:
    count, first, number, last = seen
    if end.get("rows") != count:
        raise Altered(f"The last line speaks of {end.get('rows')} rows, and there are {count}: some were cut.")
    if end.get("sha256") != total:
        raise Altered("The lines aren't those that the last line has the hash of.")
    claimed = end.get("head")
    if not isinstance(claimed, dict) or claimed != header.get("head"):
        raise Altered("The first and the last line speak of different heads.")
    if whole and (claimed.get("number"), claimed.get("hash")) != (number, last):
        raise Altered(f"The rows end at row {number}, and the head at row {claimed.get('number')}.")
    if not whole and number > int(claimed.get("number", 0)):
        raise Altered(f"Row {number} stands behind the head, which is row {claimed.get('number')}.")
    if number == claimed.get("number") and last != claimed.get("hash"):
        raise Altered(f"Row {number} isn't the one that the head speaks of.")
    if head and claimed.get("hash") != head.strip().lower():
        raise Altered("The head isn't the one that you know.")
    return Checked(
        rows=count,
        first=first,
        last=number,
        whole=whole,
        head=str(claimed.get("hash")),
        head_number=int(claimed.get("number", 0)),
        authenticated=end.get("authenticated") is True and header.get("authenticated") is True,
        head_given=bool(head),
    )


def _row(value: dict[str, Any], place: int) -> None:
    """Recompute one row's hash. Raises Altered."""
    missing = [name for name in _FIELDS if name not in value]
    unknown = sorted(set(value) - {*_FIELDS, "facts_text"})
    if missing or unknown:
        raise Altered(f"Line {place} isn't a row: {', '.join([*missing, *unknown])[:100]!r} is wrong.")
    facts = value.get("facts_text")
    if facts is None:
        facts = _canonical(value["facts"])
    elif not isinstance(facts, str) or not _is(facts, value["facts"]):
        raise Altered(f"Line {place}: the facts of row {value['number']} aren't what their text says.")
    body = [value[name] for name in _FIELDS[:7]]
    if isinstance(body[0], bool) or not isinstance(body[0], int) or not all(isinstance(each, str) for each in body[1:]):
        raise Altered(f"Line {place} isn't a row: a field has the wrong type.")
    try:
        previous = bytes.fromhex(value["previous"])
        made = hashlib.sha256(previous + _canonical([*body, facts]).encode("utf-8")).hexdigest()
    except (ValueError, TypeError) as error:
        raise Altered(f"Line {place}: row {value['number']} can't be recomputed.") from error
    if made != value["hash"]:
        raise Altered(f"Line {place}: row {value['number']} isn't what was written.")


def _is(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return value is None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, dict[str, Any]]]:
    place = 0
    while text := file.readline(LONGEST_LINE):
        place += 1
        try:
            value = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            what = "is cut" if not text.endswith(b"\n") else "isn't JSON"
            raise Altered(f"Line {place} {what}.") from error
        if not isinstance(value, dict) or not text.endswith(b"\n"):
            raise Altered(f"Line {place} isn't a whole line of an export.")
        yield text, value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def in_words(found: Checked) -> str:
    """What was found, in a line."""
    rows = f"{found.rows} rows" + (f", {found.first} to {found.last}" if found.rows else "")
    what = "all of the journal" if found.whole else "a selection, in which only rows that follow each other are linked"
    if found.head_given:
        proof = "Its head is the one that you gave."
    elif found.authenticated:
        proof = "GoEx had proven this head when it wrote the file; compare it with one that you keep (--head)."
    else:
        proof = "The vault was sealed when it was written, so nothing proved this head; compare it (--head)."
    return f"Whole: {rows} ({what}). Head: row {found.head_number}, {found.head}. {proof}"


def main(argv: list[str] | None = None) -> int:
    """Exit status 0: whole; 1: altered; 2: it can't be read."""
    parser = argparse.ArgumentParser(prog="python -m goex.journal.verify", description="Check an exported journal.")
    parser.add_argument("file", help="what `goex log --export` wrote; - for standard input")
    parser.add_argument("--head", default="", help="the hash that the journal must have ended with")
    wanted = parser.parse_args(argv)
    try:
        if wanted.file == "-":
            found = check(sys.stdin.buffer, wanted.head)
        else:
            with Path(wanted.file).open("rb") as file:
                found = check(file, wanted.head)
    except Altered as error:
        print(f"Altered. {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"It can't be read: {error.strerror}.", file=sys.stderr)
        return 2
    print(in_words(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
