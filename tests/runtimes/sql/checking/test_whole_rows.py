"""PostgreSQL takes a name for a column of any query around before it takes it for a whole row."""

from __future__ import annotations

import pytest

from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect
from tests.runtimes.sql.checking.schemas import shop


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM orders RETURNING (SELECT total FROM users AS total LIMIT 1)",
        "DELETE FROM orders WHERE (SELECT total FROM users AS total LIMIT 1) IS NOT NULL",
        "SELECT id, (SELECT total FROM users AS total LIMIT 1) FROM orders",
    ],
)
def test_an_alias_inside_hides_no_column_outside(text: str) -> None:
    (statement,) = check(text, shop(Dialect.POSTGRESQL), database="shop").statements
    said = {use.table: use.columns for use in statement.uses if use.verb == "select"}
    assert "total" in said["orders"]


def test_a_whole_row_is_all_of_its_columns() -> None:
    text = "SELECT id, (SELECT inner_one FROM users AS inner_one LIMIT 1) FROM orders"
    (statement,) = check(text, shop(Dialect.POSTGRESQL), database="shop").statements
    assert {use.table: use.columns for use in statement.uses} == {"orders": ("id",), "users": ()}
