"""The vote over a catalog: what no scope allows is out, and what no scope allows together isn't made."""

from __future__ import annotations

from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.tally import Tally, scopes_of
from policies.actions import Call, Rejected
from policies.errors import InvalidInput
from policies.services import Risk
from tests.mapper.test_scope_fit import AUTH, FILES, REFUSING, catalog

METADATA = f"{AUTH}files.metadata"


def listing(**arguments: Any) -> tuple[Call, ...]:
    return (Call(service="s", method="things.list", arguments=arguments),)


@pytest.fixture
def made() -> Catalog:
    return catalog(FILES, {"things.list": (Risk.READ, "files.metadata")}, q=REFUSING["q"], n={"type": "integer"})


def test_one_sample_that_no_scope_allows_is_rejected_and_the_others_count(made: Catalog) -> None:
    with pytest.raises(InvalidInput):
        scopes_of(made, listing(q="x"))
    result = Tally(made).vote([listing(), listing(q="x"), listing(), listing()])
    assert result.sure and result.agreement == 0.75
    assert [one.calls for one in result.alternatives] == [listing()]
    assert result.alternatives[0].scopes == (f"s:{METADATA}",)
    assert result.ballots[1] == "arguments"
    (refused,) = result.rejected
    assert isinstance(refused, Rejected) and (refused.sample, refused.klass) == (1, "arguments")
    assert "No scope allows s.things.list" in refused.reason and '"q":"x"' in refused.excerpt


def test_where_none_is_allowed_there_is_no_winner(made: Catalog) -> None:
    result = Tally(made).vote([listing(q="x")] * 3)
    assert not result.sure and result.alternatives == () and len(result.rejected) == 3


def test_what_is_put_together_must_be_allowed_together() -> None:
    """Each sample is; the majority of each argument together isn't, so that the most frequent whole one is taken."""
    refuse = {"type": "integer", "x-refused-scopes": {"files.metadata": [2]}}
    other = {"type": "integer", "x-refused-scopes": {"files.readonly": [2]}}
    both = catalog(FILES, {"things.list": (Risk.READ, "files.metadata files.readonly")}, a=refuse, b=other)
    samples = [listing(a=2, b=1)] * 2 + [listing(a=1, b=2)] * 2 + [listing(a=2, b=3), listing(a=3, b=2)]
    with pytest.raises(InvalidInput):
        scopes_of(both, listing(a=2, b=2))
    result = Tally(both).vote(samples)
    assert result.alternatives[0].calls in (listing(a=2, b=1), listing(a=1, b=2))
    assert not result.sure


def test_scopes_that_are_granted_are_preferred_and_named_once(made: Catalog) -> None:
    wide = catalog(FILES, {"things.list": (Risk.READ, "files.readonly files")})
    held = frozenset({("s", "", f"{AUTH}files")})
    twice = [(*listing(), *listing())] * 3
    assert Tally(wide).vote(twice).alternatives[0].scopes == (f"s:{AUTH}files.readonly",)
    assert Tally(wide, granted=held).vote(twice).alternatives[0].scopes == (f"s:{AUTH}files",)
