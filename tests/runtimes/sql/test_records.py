"""Images are written and read whole, whatever the sizes of their pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from policies.errors import Conflict
from runtimes.sql.records import read_image, write_image
from tests.support.databases import Kept


def pieces(*sizes: int) -> list[bytes]:
    return [random.Random(size).randbytes(size) for size in sizes]


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(
    "sizes",
    [(), (0,), (9,), (9, 200_000), (200_000, 9), (65_535, 65_536, 65_537), (200_000, 9, 300_000, 0, 5_000_000, 7)],
)
def test_pieces_of_every_size(sizes: tuple[int, ...], level: int) -> None:
    records, given = Kept(), pieces(*sizes)
    taken = write_image(records, "rows", iter(given), most=2**30, level=level)
    assert b"".join(read_image(records, "rows")) == b"".join(given)
    assert taken == sum(len(data) for name, data in records.items() if name != "db.rows")


def test_whoever_makes_the_pieces_fails_while_one_is_compressed() -> None:
    def made() -> Iterator[bytes]:
        yield from pieces(9, 3_000_000)
        raise KeyError("the connection is gone")

    records = Kept()
    with pytest.raises(KeyError):
        write_image(records, "rows", made(), most=2**30)
    assert records.get("db.rows") is None


def test_more_than_it_may_take() -> None:
    records = Kept()
    with pytest.raises(Conflict, match="larger than 1 MB"):
        write_image(records, "rows", iter(pieces(*[500_000] * 4)), most=2**20)
    assert records.get("db.rows") is None
