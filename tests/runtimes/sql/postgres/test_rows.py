"""A row's text is read back as it was written, in time that grows with its length alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtimes.sql.postgres.rows import escaped, unescaped, values

_TEXT = st.text(st.sampled_from('ab"\\(), \n\t\r\x0b{}'), max_size=8)


def _written(value: str | None) -> str:
    """As record_out writes it."""
    if value is None:
        return ""
    if value and not set(value) & set('"\\(), \n\t\r\x0b\x0c'):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'


@given(st.lists(st.none() | _TEXT, min_size=2, max_size=4))
def test_a_row_is_read_as_it_was_written(row: list[str | None]) -> None:
    text = f"({','.join(map(_written, row))})"
    assert values(unescaped(escaped(text)).decode()) == row


def test_a_row_of_backslashes_ends(thorough: bool) -> None:
    """Taken apart one by one, each with a copy of all the rest, this would go on for minutes."""
    long = '\\"x' * (1_000_000 if thorough else 100_000)
    text = f"(1,{_written(long)})"
    assert values(unescaped(escaped(text)).decode()) == ["1", long]
