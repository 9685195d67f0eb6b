"""Requests to the services that came later: found, never answered wrongly without asking, and in one set each."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from policies.actions import Call
from tests.mapper.phrasings import HELD_OUT, TRAINING, UNANSWERABLE, Phrasing
from tests.mapper.phrasings_more import HELD_OUT_MORE, TRAINING_MORE, UNANSWERABLE_MORE

CATALOG = Catalog.bundled()
PROPOSER = EmbeddedProposer(CATALOG)


@pytest.mark.parametrize("phrasing", [*TRAINING_MORE, *HELD_OUT_MORE], ids=lambda phrasing: phrasing[0])
def test_what_is_meant_can_be_called(phrasing: Phrasing) -> None:
    _, method, arguments = phrasing
    service, _, name = method.partition(".")
    whole = CATALOG.validate(Call(service=service, method=name, arguments=arguments)).arguments
    assert {key: whole[key] for key in arguments} == arguments


def test_every_service_is_asked_and_nothing_is_in_two_sets() -> None:
    for phrasings, least in ((TRAINING_MORE, 4), (HELD_OUT_MORE, 4)):
        services = [method.partition(".")[0] for _, method, _ in phrasings]
        for name in ("gmail", "google_calendar", "google_drive", "discord", "dropbox", "spotify"):
            assert services.count(name) >= least
    words = [words for words, _, _ in (*TRAINING, *HELD_OUT, *TRAINING_MORE, *HELD_OUT_MORE)]
    assert len({*words, *UNANSWERABLE, *UNANSWERABLE_MORE}) == len(words) + len(UNANSWERABLE) + len(UNANSWERABLE_MORE)


def found(phrasings: list[Phrasing], first: int) -> float:
    ranked = [[method.id for method in PROPOSER.candidates(words, limit=first)] for words, _, _ in phrasings]
    return sum(method in hits for (_, method, _), hits in zip(phrasings, ranked, strict=True)) / len(phrasings)


def test_the_method_is_found() -> None:
    assert found(TRAINING_MORE, 10) >= 0.95 and found(HELD_OUT_MORE, 10) >= 0.9


def judge(phrasing: Phrasing) -> tuple[bool, bool]:
    """Whether the first reading is right in all its arguments, and whether the proposer is sure."""
    words, method, wanted = phrasing
    proposed = PROPOSER.propose(words)
    if not proposed.readings or not proposed.readings[0].calls:
        return False, proposed.sure
    call = proposed.readings[0].calls[-1]
    defaults = CATALOG.method(call.id).defaults
    got = {name: value for name, value in call.arguments.items() if name in wanted or name not in defaults}
    return (call.id, got) == (method, wanted), proposed.sure


@pytest.mark.parametrize("phrasing", [*TRAINING_MORE, *HELD_OUT_MORE], ids=lambda phrasing: phrasing[0])
def test_a_sure_answer_is_right(phrasing: Phrasing) -> None:
    right, sure = judge(phrasing)
    assert right or not sure


def test_much_of_it_is_filled_without_a_model() -> None:
    """Measured: 15 of 24 right, 13 of them without asking; paths and some ids aren't read from a request yet."""
    judged = [judge(phrasing) for phrasing in HELD_OUT_MORE]
    assert sum(right for right, _ in judged) / len(judged) >= 0.5


@pytest.mark.parametrize("words", UNANSWERABLE_MORE)
def test_it_asks_rather_than_guesses(words: str) -> None:
    assert not PROPOSER.propose(words).sure
