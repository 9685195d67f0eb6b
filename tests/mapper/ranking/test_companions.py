"""Methods that others need beside them are retrieved with them."""

from __future__ import annotations

import pytest

from mapper.ranking.companions import MOST, NONE, accompanied, companions
from mapper.ranking.index import Index
from mapper.ranking.method_documents import Ranked
from tests.google import indexed


def method(name: str, path: str, family: int = 0) -> Ranked:
    return Ranked(
        service="dns", name=name, origin_id=name, family=family, description="", http="GET", path=path, read=True,
        main=True,
    )  # fmt: skip


METHODS = [
    method("zones.list", "v1/{project}/zones"),
    method("records.list", "v1/{project}/zones/{zone}/records"),
    method("records.delete", "v1/{project}/zones/{zone}/records/{recordId}"),
    method("sessions.create", "v1/{+database}/sessions"),
    method("sessions.run", "v1/{+session}:run"),
    method("zones.list", "v1/zones", family=1),
    method("records.get", "v1/records/{record}", family=1),
]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, ()),  # a list needs no list
        (1, (0,)),  # the list of what its path has an id of
        (2, (1, 0)),  # first its own resource's
        (3, ()),
        (4, (3,)),  # what none of the usual ones does, needs its resource made
        (6, ()),  # another family's list isn't its own
    ],
)
def test_by_names_and_paths(number: int, expected: tuple[int, ...]) -> None:
    assert companions(METHODS)[number] == (*expected, *(NONE,) * (MOST - len(expected)))


def test_they_take_the_last_two_places_alone() -> None:
    best = list(range(10, 30))
    of = [(1, 2), (3, NONE), (10, 11), (4, 5), *[(NONE, NONE)] * 16]
    made = accompanied(best, of)
    assert made == [*range(10, 28), 1, 2]
    assert accompanied(best, [(11, 12), (NONE, 13), *[(NONE, NONE)] * 18]) == best  # there already
    assert accompanied([], []) == [] and accompanied([7], [(1, 2)]) == [1]


def test_over_the_whole_catalog() -> None:
    pytest.importorskip("googleapiclient")
    index = Index.open(indexed())
    found = [hit.origin_id for hit in index.search("point www.example.com at 192.0.2.7, proj net-lab", limit=20)]
    assert found[0].startswith("dns.resourceRecordSets.") and "dns.managedZones.list" in found[18:]
    assert [hit.origin_id for hit in index.search("point www.example.com at 192.0.2.7, proj net-lab", limit=14)] == (
        found[:14]
    )
