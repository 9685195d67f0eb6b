"""What the journal keeps of a vote: all of it, bounded."""

from __future__ import annotations

import pytest

from goex.engine.intents import REJECTED_KEPT, _nothing_fits, _votes
from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.mapper import Mapper
from mapper.proposals import parse_proposal
from mapper.tally import Tally
from policies.actions import Intent, IntentMapping, Rejected
from policies.jsonvalue import canonical

CATALOG = Catalog.bundled()
GOOD = 'slack.chat.postMessage(channel="#ops", text="a word that is hashed")'


def mapping(texts: list[str], **facts: object) -> IntentMapping:
    result = Tally(CATALOG).vote([parse_proposal(text, CATALOG, number) for number, text in enumerate(texts)])
    made: dict[str, object] = {
        "intent": Intent(text="x"),
        "alternatives": result.alternatives,
        "agreement": result.agreement,
        "samples": result.samples,
        "rejected": result.rejected,
        "proposer": "m",
        "sure": result.sure,
        "technique": "adaptive",
        "limit": 10,
        "confidence": 0.98765,
        "stopped": "settled",
        "ballots": result.ballots,
        "claims": (("slack:admin", 2),),
        **facts,
    }
    return IntentMapping(**made)  # type: ignore[arg-type]


def test_every_ballot_and_every_rejected_proposal_is_kept() -> None:
    kept = _votes(mapping([GOOD, GOOD, "I would rather not.", GOOD, "slack.chat.shout(text='x')"]))
    assert kept["ballots"][2] == "format" and kept["ballots"][4] == "hallucination"  # type: ignore[index]
    assert len(set(kept["ballots"])) == 3  # type: ignore[call-overload]
    assert [(r["sample"], r["class"], r["begins"]) for r in kept["rejected"]] == [  # type: ignore[attr-defined]
        (2, "format", "I would rather not."),
        (4, "hallucination", "slack.chat.shout(text='x')"),
    ]
    assert (kept["method"], kept["samples"], kept["samples_most"]) == ("adaptive", 5, 10)
    assert (kept["confidence"], kept["stopped"]) == (0.9877, "settled")
    assert kept["claims"] == [{"scope": "slack:admin", "samples": 2}]
    # Arguments of calls are in the action's request, and only there.
    assert b"a word that is hashed" not in canonical(kept)


def test_a_vote_of_a_hostile_model_stays_small() -> None:
    texts = [f"\x1b[3{n % 10}m" + "é" * 150_000 for n in range(50)]
    made = mapping(texts)
    assert all(isinstance(r, Rejected) for r in made.rejected)
    kept = _votes(made)
    assert len(kept["rejected"]) == REJECTED_KEPT and kept["rejected_more"] == 50 - REJECTED_KEPT  # type: ignore[arg-type]
    assert len(kept["ballots"]) == 50 and len(canonical(kept)) < 60_000  # type: ignore[arg-type]


def test_without_a_model_there_is_no_sampling_to_speak_of() -> None:
    kept = _votes(mapping([GOOD], technique="", proposer="embedded"))
    assert not {"method", "ballots", "stopped", "confidence"} & kept.keys()


@pytest.mark.parametrize("words", ["delete the message in #ops", "send a slack message"])
def test_words_without_a_value_are_told_which_and_how_to_give_it(words: str) -> None:
    made = Mapper(CATALOG, EmbeddedProposer(CATALOG)).at_once(Intent(text=words))
    assert made.best is None and made.lacking is not None
    method, missing = made.lacking
    said = {person: _nothing_fits(made, to_the_person=person) for person in (True, False)}
    assert all(method in one.message and all(name in one.message for name in missing) for one in said.values())
    assert f"goex catalog show {method}" in said[True].next_step
    assert method in said[False].next_step and "goex" not in said[False].next_step


def test_words_that_nothing_fits_lack_nothing() -> None:
    made = Mapper(CATALOG, EmbeddedProposer(CATALOG)).at_once(Intent(text="knit me a sweater"))
    assert made.lacking is None
    assert _nothing_fits(made, to_the_person=True).next_step == "See what there is: goex catalog list"
