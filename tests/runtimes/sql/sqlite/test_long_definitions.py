"""Definitions whose comments and quotes a pattern could read in many ways. Bounded by CPU time, on no clock."""

from __future__ import annotations

import apsw
import pytest

from runtimes.sql.sqlite.schema import _BOUND, _CONFLICT, read_schema
from tests.policies.test_http_heads import said

LONG = """
from runtimes.sql.sqlite.schema import _BOUND, _CONFLICT, _OPTION
for odd in ("/**/", "on/*", "on /**//**/", "on ", "on--", "on--\\n", " ", "'", '"', "`", "[", "on conflict ",
            "content=[ ", "content='", "content "):
    text = "CREATE TABLE t (a REFERENCES p ON " + odd * (200_000 // len(odd))
    _CONFLICT.findall(_BOUND.sub(lambda found: found[1] or " ", text)), _OPTION.findall(text)
    print("read")
"""


def test_a_long_definition_is_read_in_one_go() -> None:
    assert said(LONG) == ["read"] * 15


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a UNIQUE ON CONFLICT REPLACE", ["REPLACE"]),
        ("a UNIQUE ON/**/CONFLICT-- x\nIGNORE", ["IGNORE"]),
        (
            "a UNIQUE /* ' */ ON /* */ /* */ CONFLICT /* \" */ IGNORE, b UNIQUE ON conflict replace",
            ["IGNORE", "replace"],
        ),
        ("[a/*] UNIQUE ON CONFLICT REPLACE, 'b*/'", ["REPLACE"]),
        ("a DEFAULT '--' UNIQUE ON CONFLICT REPLACE", ["REPLACE"]),
        ("a REFERENCES p ON DELETE /* conflict replace */ CASCADE", []),
    ],
)
def test_what_a_conflict_brings_is_found_between_comments(text: str, found: list[str]) -> None:
    assert _CONFLICT.findall(_BOUND.sub(lambda one: one[1] or " ", text)) == found


@pytest.mark.parametrize("option", ["c=src", "cont='src'", "content=[src]", "content='it''s'", 'CONTENT="it\'s"'])
def test_what_an_index_shows_is_found(option: str) -> None:
    """FTS5 knows an option by its first letters, and a name in quotes may hold one."""
    db = apsw.Connection(":memory:")
    shown = "it's" if "it" in option else "src"
    db.execute(f'CREATE TABLE "{shown}" (a); INSERT INTO "{shown}" VALUES (\'held\')')
    db.execute(f"CREATE VIRTUAL TABLE f USING fts5(a, {option})")
    assert db.execute("SELECT a FROM f WHERE rowid = 1").fetchall() == [("held",)]
    assert read_schema(db).tables["f"].stands_on == (shown,)
