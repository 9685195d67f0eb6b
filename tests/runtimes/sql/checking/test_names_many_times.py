"""Statements whose names may each mean one of very many columns: they are refused before checking them takes long."""

# SQL here is made of the tests' own names.

from __future__ import annotations

import pytest

from policies.errors import InvalidInput, Unsupported
from runtimes.sql.checking import usage
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Column, Dialect, Schema, Table

WIDE = Table(name="wide", columns=tuple(Column(name=f"c{n}", type="integer") for n in range(1000)))
OTHER = Table(name="other", columns=(Column(name="which", type="integer"),))


def schema(dialect: Dialect) -> Schema:
    return Schema(dialect=dialect, version="3", tables={"wide": WIDE, "other": OTHER}, hash="")


def listed(text: str, number: int) -> str:
    return ", ".join(text.format(n) for n in range(number))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MOST_LOOKS", 20_000)


HARD = {
    "one table, many times": f"SELECT {listed('which', 300)} FROM other, {listed('wide AS w{}', 100)}",
    "queries in FROM": f"WITH c AS (SELECT * FROM wide) SELECT 1 FROM {listed('(SELECT * FROM c) AS w{}', 100)}",
    "joins by all names": "SELECT 1 FROM other " + " ".join(f"NATURAL JOIN wide AS w{n}" for n in range(50)),
    "within each other": "WITH "
    + ", ".join(f"a{n} AS (WITH b AS (SELECT 1) SELECT 1)" for n in range(250))
    + " SELECT 1",
}


@pytest.mark.parametrize("text", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("dialect", [Dialect.SQLITE, Dialect.MARIADB])
def test_too_many_meanings_are_refused(text: str, dialect: Dialect, few: None) -> None:
    with pytest.raises(InvalidInput, match="too many names"):
        check(text, schema(dialect), database="shop")


def test_too_many_tables_for_what_is_written_are_refused(few: None) -> None:
    text = f"UPDATE other, {listed('wide AS w{}', 100)} SET {listed('which = {}', 300)}"
    with pytest.raises(InvalidInput, match="too many names"):
        check(text, schema(Dialect.MARIADB), database="shop")


@pytest.mark.parametrize("dialect", Dialect)
def test_long_and_wide_statements_are_read(dialect: Dialect) -> None:
    joined = f"SELECT {listed('w0.c{}', 1000)} FROM {listed('wide AS w{}', 30)} WHERE w29.c999 = 1"
    named = f"WITH c AS (SELECT * FROM wide) SELECT {listed('c{}', 1000)}, {listed('c.c{}', 1000)} FROM c"
    for text in (joined, named):
        assert check(text, schema(dialect), database="shop").statements[0].uses[0].table == "wide"


def test_sqlite_tells_tables_apart_by_a_to_z_alone() -> None:
    kid, kelvin = Table(name="Kid"), Table(name="\u212aid")
    known = Schema(dialect=Dialect.SQLITE, version="3", tables={one.name: one for one in (kid, kelvin)}, hash="")
    assert check("SELECT 1 FROM KID", known, database="main").statements[0].uses[0].table == "Kid"


@pytest.mark.parametrize("name", ["other_which_seq", '"public"."other_which_seq"', "public.other_which_seq", "Mine"])
def test_a_sequence_that_numbers_another_table_is_not_moved(name: str) -> None:
    counted = Table(name="other", columns=(Column(name="which", type="integer", counter=True),))
    mine = Column(name="a", type="integer", default="nextval('public.\"Mine\"'::regclass)")
    tables = {"other": counted, "wide": WIDE, "more": Table(name="more", columns=(mine,))}
    known = Schema(dialect=Dialect.POSTGRESQL, version="17", tables=tables, hash="")
    with pytest.raises(Unsupported, match="numbers another table"):
        check(f"INSERT INTO wide (c0) VALUES (nextval('{name}'))", known, database="shop")
    assert check("INSERT INTO other (which) VALUES (nextval('other_which_seq'))", known, database="shop").statements
