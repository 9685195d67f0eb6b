"""A value of the request that no argument took: the embedded proposer says it and asks."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.left_out import left_out
from mapper.slots import extract
from policies.actions import Call
from tests.mapper.phrasings_left_out import DROPPED, USED
from tests.policies.test_http_heads import said as run

CATALOG = Catalog.bundled()
PROPOSER = EmbeddedProposer(CATALOG)


def test_what_no_argument_took_is_asked_about() -> None:
    assert [words for words in DROPPED if PROPOSER.propose(words).sure] == []


def test_what_was_taken_and_courtesy_are_not() -> None:
    read = ((words, PROPOSER.propose(words)) for words in USED)
    assert [(words, proposed.notes) for words, proposed in read if not proposed.sure] == []


def test_it_says_what_it_leaves_out() -> None:
    notes = PROPOSER.propose("merge pull request 4 in octo/hello into develop as Bob").notes
    assert notes == ("The request says 'into develop', 'as Bob', which github.pulls.merge doesn't take into account.",)


MERGE = Call(service="github", method="pulls.merge", arguments={"owner": "octo", "repo": "hello", "pull_number": 4})
SPEAK = Call(service="slack", method="chat.postMessage", arguments={"channel": "#ops", "text": "Bob"})


@pytest.mark.parametrize(
    ("call", "words", "said"),
    [
        (MERGE, "merge 4 of octo/hello into the release branch", ("into the release branch",)),
        (MERGE, "merge pull request 4 into octo/hello", ()),
        (MERGE, "merge 4 of octo/hello into it", ()),
        (MERGE, "merge 4 in the hello repo for the readers", ()),  # whom it helps
        (MERGE, "merge 4 in octo/hello for the beta milestone", ("for the beta milestone",)),
        (MERGE, "merge 4 in octo/hello for Ann and as Bob", ("for Ann", "as Bob")),
        (MERGE, "merge 4 in octo/hello with the code", ()),  # a word of the method's own
        (MERGE, "merge 4 in octo/hello without the code", ("without the code",)),  # which here takes something away
        (MERGE, "merge 4 in octo/hello to see what breaks", ()),
        (MERGE, "merge 4 in octo/hello to Develop", ("to Develop",)),
        (MERGE, "merge number 4 from Ann’s fork", ("from Ann’s fork",)),
        (MERGE, "merge 4 in octo/hello as it is green", ()),
        (MERGE, "merge 4 in project hello", ()),  # the noun before a taken value
        (MERGE, "merge https://github.com/octo/hello/pull/4", ()),
        (MERGE, "merge 4 from https://github.com/octo/hello", ()),
        (MERGE, "merge 4 from https://octo.example", ("from https://octo.example",)),
        (SPEAK, 'post "Bob" in #ops as Bob', ("as Bob",)),  # what is said holds no value
        (SPEAK, 'post "as Bob" in #ops', ()),
        (SPEAK, 'post "hi" in #ops as 山田', ("as 山田",)),
    ],
)
def test_values_behind_prepositions(call: Call, words: str, said: tuple[str, ...]) -> None:
    assert left_out(CATALOG, (call,), extract(words)) == said


LONG = """
from mapper.catalog import Catalog
from mapper.left_out import left_out
from mapper.slots import Slots
from policies.actions import Call

catalog, call = Catalog.bundled(), Call(service="github", method="pulls.merge", arguments={})
for each in ("to ", "as Bob ", "in my ", "a:", "as'", "tomorrow ", "except http://"):
    left_out(catalog, (call,), Slots((), (), (), "", each * (1_000_000 // len(each))))
    print("read")
"""


def test_its_time_grows_with_the_requests_length_alone() -> None:
    assert run(LONG) == ["read"] * 7
