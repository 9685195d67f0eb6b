"""What is told from a function's text: what it calls, and which tables it writes, however that is spelled."""

from __future__ import annotations

import pytest

from runtimes.sql.postgres.helpers import _called
from runtimes.sql.postgres.reach import writes

_LONGEST = "a" * 63


@pytest.mark.promise(75)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("far/**/(1)", "far"),
        ("far/*/**/\\*/(1)", "far"),
        ("far -- then\n(1)", "far"),
        ('"far"/**/(1)', "far"),
        ("t./**/far", "far"),
        ("t.--then\n--and\nfar", "far"),
        ('t./**/"far"', "far"),
        (f"{_LONGEST}bc(1)", _LONGEST),
        (f'"{_LONGEST}bc"(1)', _LONGEST),
        (f'"{"é" * 40}"(1)', "é" * 31),
        ('1 AS "a", far(1) AS "("', "far"),
        ('1 AS "a.", far(1), 1 AS "b"', "far"),
    ],
)
def test_what_a_text_calls(text: str, name: str) -> None:
    assert name in _called(text)


@pytest.mark.promise(75)
@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("INSERT/**/INTO audit VALUES (1)", "insert"),
        ("INSERT INTO /* \\ */ audit VALUES (1)", "insert"),
        ("INSERT INTO public./* \\ */audit VALUES (1)", "insert"),
        ("INSERT INTO shop.public.audit VALUES (1)", "insert"),
        ("INSERT INTO public . audit VALUES (1)", "insert"),
        ('INSERT INTO "o-d".audit VALUES (1)', "insert"),
        ('INSERT INTO "o""d".audit VALUES (1)', "insert"),
        ("UPDATE ONLY (audit) SET id = 1", "update"),
        ("DELETE FROM ONLY(audit)", "delete"),
        ("INSERT INTO public . audit VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 1", "update"),
        ("MERGE INTO audit USING t ON true WHEN MATCHED THEN DELETE", "delete"),
        ("TRUNCATE TABLE other, audit", "truncate"),
    ],
)
def test_what_a_text_writes(text: str, verb: str) -> None:
    assert verb in set(writes(text, "audit"))


def test_a_name_that_is_longer_than_the_server_reads() -> None:
    assert list(writes(f"INSERT INTO {_LONGEST}b VALUES (1)", _LONGEST)) == ["insert"]


@pytest.mark.parametrize(
    "text",
    [
        "-- Writes the log.\n-- Then it reads on.\nINSERT INTO log SELECT id FROM audit -- the last\n;",
        "PERFORM 1 FROM audit FOR UPDATE; -- that row",
        "INSERT INTO audit_more VALUES (1); TRUNCATE other; SELECT id FROM audit",
        "INSERT INTO log SELECT 'a.b', audit.id FROM public.audit",
        "/* INSERT INTO audit */ DELETE FROM log WHERE id IN (SELECT id FROM audit)",
    ],
)
def test_what_only_reads_a_table_doesnt_write_it(text: str) -> None:
    assert list(writes(text, "audit")) == []
