"""Attacks on databases before they were allowed."""

from __future__ import annotations

from tests.adversarial.database_scene import STATEMENTS
from tests.adversarial.registry import Attack, Where

_TESTS = "tests/adversarial/test_databases.py"
_UNTRIED = ("nothing of a statement is tried on rows before it was allowed",)
_READ = ("servers read a statement and don't plan it",)
_FULL = ("a count compares every row in full",)
_SIZES = ("rules and limits go by tables' sizes",)
_TRIES = {
    "case": "tell a value by the time of a subquery that a CASE makes only where a guess is right",
    "exists": "tell a value by the time of an EXISTS behind a guess",
    "recursion": "tell a value by the time of a recursion behind a guess",
    "json": "tell a value by the time of JSON functions behind a guess",
    "pattern": "tell a value by the time of patterns",
    "error": "tell a value by an error that a right guess makes",
    "plain": "tell a value by how many plain comparisons follow on a guess",
    "key_and_plain": "tell one row's value by how many plain comparisons follow on a guess",
    "index": "tell a count by the time in which an index finds it",
    "insert_select": "tell a value by the rows that a query gives to an INSERT",
    "join": "tell a value by the time of a join behind a guess",
    "with": "tell a value by the time of a WITH",
    "returning": "tell a value by the time of a DELETE that gives rows back",
    "upsert": "tell a value by the time of an upsert's query",
    "view": "tell a value by the time of a view of the person's",
    "cascade": "tell a value by the rows that a cascade would reach, or by whether its permission is asked for",
    "rows_together": "tell a value by a limit on rows, with twenty statements that each find one or none",
}
_BY = {"plain": _FULL, "rows_together": _SIZES, "key_and_plain": _UNTRIED}
_OTHERS = (
    (
        "postgresql_samples",
        "have PostgreSQL's planner try a pattern on the samples of a column",
        "postgresql",
        "samples",
    ),
    ("postgresql_case", "tell a value in PostgreSQL by the time of a series behind a guess", "postgresql", "case"),
    ("postgresql_cascade", "tell a value in PostgreSQL by a division that fails for one row", "postgresql", "cascade"),
)


def _row(name: str) -> Attack:
    return Attack(
        name=f"database_{name}",
        tries=_TRIES[name],
        where=Where.DATABASE,
        refused_by=_BY.get(name, _UNTRIED),
        test=f"{_TESTS}::test_a_right_guess_makes_no_more_work_than_a_wrong_one[{name}]",
        control=f"{_TESTS}::test_control_it_is_told_by_the_work_where_it_runs[{name}]",
    )


ROWS: tuple[Attack, ...] = (
    *(_row(name) for name in STATEMENTS),
    *(
        Attack(
            name=f"database_{name}",
            tries=tries,
            where=Where.DATABASE,
            refused_by=_READ,
            test=f"{_TESTS}::test_{server}_reads_a_statement_and_plans_none[{case}]",
            control=f"{_TESTS}::test_control_a_plan_and_a_run_are_in_the_log[{case}]",
        )
        for name, tries, server, case in _OTHERS
    ),
    Attack(
        name="database_mariadb_key",
        tries="have MariaDB's EXPLAIN try a condition on the row that a key names",
        where=Where.DATABASE,
        refused_by=_READ,
        test=f"{_TESTS}::test_mariadb_reads_a_statement_and_no_row_for_it[key]",
        control=f"{_TESTS}::test_control_mariadbs_explain_tries_the_condition_on_a_row",
    ),
    Attack(
        name="database_mongodb_pattern",
        tries="tell a value in MongoDB by the time of a pattern",
        where=Where.DATABASE,
        refused_by=_UNTRIED,
        test=f"{_TESTS}::test_mongodb_is_asked_for_no_filter[pattern]",
        control=f"{_TESTS}::test_control_a_count_is_heard",
    ),
)
