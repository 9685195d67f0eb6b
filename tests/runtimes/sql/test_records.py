"""Images are written and read whole, whatever the sizes of their pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from policies.errors import Conflict
from policies.jsonvalue import canonical, parse
from runtimes.sql.records import read_image, write_image
from tests.support.databases import Kept


def pieces(*sizes: int) -> list[bytes]:
    return [random.Random(size).randbytes(size) for size in sizes]


@pytest.mark.sampled(10)
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


class Ends(Exception):
    """The process is gone."""


def test_an_image_of_before_stays_whole_until_the_next_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.sql.records.PIECE", 2**16)
    old, new = pieces(9, 150_000), pieces(8, 300_000)
    for at in range(6):
        records, left = Kept(), [at]
        write_image(records, "rows", iter(old), most=2**30)

        def put(name: str, data: bytes, records: Kept = records, left: list[int] = left) -> None:
            if not left[0]:
                raise Ends
            left[0] -= 1
            Kept.put(records, name, data)

        records.put = put  # type: ignore[method-assign]
        try:
            write_image(records, "rows", iter(new), most=2**30)
        except Ends:
            whole = old if at < 3 else new  # the pieces and their list are written; the old pieces are emptied then
            assert b"".join(read_image(records, "rows")) == b"".join(whole), at
        else:
            assert at == 5
        del records.put
        write_image(records, "rows", iter(new), most=2**30)
        assert b"".join(read_image(records, "rows")) == b"".join(new), at


def test_an_image_of_an_older_version_is_read_and_written_after() -> None:
    records, given = Kept(), pieces(9, 200_000)
    write_image(records, "rows", iter(given), most=2**30)
    listed = parse(records["db.rows"])
    records["db.rows"] = canonical({"pieces": listed["pieces"], "sha256": listed["sha256"]})
    assert b"".join(read_image(records, "rows")) == b"".join(given)
    write_image(records, "rows", iter([b"new"]), most=2**30)
    assert b"".join(read_image(records, "rows")) == b"new"


@pytest.mark.parametrize("listed", [b"", b"[]", b"{}", b'{"pieces":"x","sha256":""}', b'{"first":null,"pieces":1}'])
def test_a_list_that_can_not_be_read(listed: bytes) -> None:
    records = Kept()
    records["db.rows"] = listed
    with pytest.raises(Conflict, match="isn't as it was written"):
        list(read_image(records, "rows"))
    with pytest.raises(Conflict, match="isn't as it was written"):
        write_image(records, "rows", iter([b"new"]), most=2**30)


def test_what_has_no_limit() -> None:
    records, given = Kept(), pieces(3_000_000)
    write_image(records, "rows", iter(given), most=None)
    assert b"".join(read_image(records, "rows")) == given[0]


def test_the_pieces_of_an_image_of_before_take_no_room() -> None:
    records, new = Kept(), pieces(8)
    write_image(records, "rows", iter(pieces(9, 5_000_000)), most=None)
    write_image(records, "rows", iter(new), most=None)
    assert sum(map(len, records.values())) < 200

    def full(name: str, data: bytes) -> None:
        if not data:
            raise Conflict("The disk is full.")
        Kept.put(records, name, data)

    records.put = full  # type: ignore[method-assign]
    write_image(records, "rows", iter(new), most=None)
    assert b"".join(read_image(records, "rows")) == b"".join(new)
