"""What an asker may go on with: bounded for each, and no agent makes the person's give way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goex.engine.core import Request
from goex.engine.stages import MOST_WAITING, Stages
from goex.engine.unfinished import Unfinished, principal_key
from goex.journal.states import State
from policies.grants import ANONYMOUS, PERSON
from tests.goex.engine.conftest import ASKER, Desk

ME = principal_key(PERSON, "tty-1")
WORDS = "post hi to #ops on slack"


def kept(unfinished: Unfinished[str, int], *whose: tuple[str, str]) -> list[bool]:
    return [unfinished.get(one, "first") is not None for one in whose]


@pytest.mark.promise(16)
def test_agents_push_out_nothing_of_the_persons() -> None:
    made: Unfinished[str, int] = Unfinished(of_one=2, of_agents=4)
    made.keep(ME, "first", 1)
    for number in range(20):
        made.keep(principal_key(ANONYMOUS, f"conn-{number}"), "words", number)
        made.keep(principal_key("named", "s"), str(number), number)
    assert kept(made, ME) == [True]


def test_connections_without_a_name_push_out_each_other_and_no_named_agents() -> None:
    made: Unfinished[str, int] = Unfinished(of_one=2, of_agents=4)
    made.keep(principal_key("named", "s"), "first", 1)
    flood = [principal_key(ANONYMOUS, f"conn-{number}") for number in range(20)]
    for each in flood:
        made.keep(each, "first", 1)
    assert kept(made, principal_key("named", "s"), *flood[-3:]) == [True] * 4
    assert not any(kept(made, *flood[:-3]))


def test_one_asker_keeps_its_newest_in_whatever_session() -> None:
    made: Unfinished[str, int] = Unfinished(of_one=2, of_agents=4)
    for key in ("first", "second", "first", "third"):
        made.keep(principal_key("named", f"session of {key}"), key, 1)
    own = principal_key("named", "another")
    assert [made.get(own, key) for key in ("first", "second", "third")] == [1, None, 1]
    made.forget("named")
    assert made.get(own, "first") is None


@pytest.mark.promise(16)
async def test_an_agents_mappings_leave_the_person_their_choice(desk: Desk) -> None:
    most = desk.engine.mapping._shown._of_agents = 20
    person = replace(ASKER, agent=PERSON, session="tty-1")
    await desk.engine.mapping.map(WORDS, person)
    for number in range(most + 10):
        stranger = replace(ASKER, agent=ANONYMOUS, session=f"conn-{number % 7}")
        await desk.engine.mapping.map(f"say {number}", stranger)
    id = desk.engine.begin(Request(intent=WORDS, choice=1, detach=True), person)
    await desk.until(id, State.FAILED)
    kinds = [row.kind for row in desk.core.journal.rows(action_id=id)]
    assert "choice" in kinds  # it goes on, as far as there is an account


def test_stages_keep_the_persons_questions_too(desk: Desk) -> None:
    """What waits for an answer about a filter is kept by the same rule."""
    made = Stages(desk.core, None)._waiting  # type: ignore[arg-type]
    made.keep(ME, ("words", ""), "the person's")  # type: ignore[arg-type]
    for number in range(2 * MOST_WAITING):
        made.keep(principal_key(ANONYMOUS, f"conn-{number}"), ("words", ""), "a flood's")  # type: ignore[arg-type]
    assert made.get(ME, ("words", "")) is not None
