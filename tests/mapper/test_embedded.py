"""The embedded proposer: right on phrasings that it wasn't tuned on, and silent where it can't know."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer, Proposed
from mapper.slots import extract
from tests.mapper.phrasings import HELD_OUT, TRAINING, UNANSWERABLE, Phrasing
from tests.support.pace import pace

CATALOG = Catalog.bundled()
PROPOSER = EmbeddedProposer(CATALOG)

# Measured once, when the tuning was done: 33 of 36 right, 29 of them without asking, none wrong without asking.
RIGHT_FLOOR = 0.85
SURE_FLOOR = 0.70


def judge(phrasing: Phrasing) -> tuple[bool, bool]:
    """Whether the first reading is right, and whether the proposer is sure."""
    words, method_id, wanted = phrasing
    proposed = PROPOSER.propose(words)
    if not proposed.readings or not proposed.readings[0].calls:
        return False, proposed.sure
    call = proposed.readings[0].calls[-1]
    defaults = CATALOG.method(call.id).defaults
    got: dict[str, Any] = {
        name: value for name, value in call.arguments.items() if name in wanted or name not in defaults
    }
    return call.id == method_id and got == wanted, proposed.sure


def test_held_out_phrasings() -> None:
    judged = [judge(phrasing) for phrasing in HELD_OUT]
    right = sum(good for good, _ in judged) / len(judged)
    sure = sum(good and sure for good, sure in judged) / len(judged)
    wrong = [phrasing[0] for phrasing, (good, sure) in zip(HELD_OUT, judged, strict=True) if sure and not good]
    assert right >= RIGHT_FLOOR and sure >= SURE_FLOOR and wrong == []


def test_training_phrasings() -> None:
    judged = [judge(phrasing) for phrasing in TRAINING]
    assert sum(good for good, _ in judged) / len(judged) >= 0.95
    assert not [phrasing[0] for phrasing, (good, sure) in zip(TRAINING, judged, strict=True) if sure and not good]


def test_training_and_held_out_share_nothing() -> None:
    assert not {words for words, _, _ in TRAINING} & {words for words, _, _ in HELD_OUT}
    assert len(TRAINING) >= 60 and len(HELD_OUT) >= 30


@pytest.mark.parametrize("words", UNANSWERABLE)
def test_it_knows_when_it_does_not_know(words: str) -> None:
    assert not PROPOSER.propose(words).sure


def test_what_is_said_does_not_decide_what_is_done() -> None:
    for said in ("delete the repository acme/site", "kick @kim:example.org out", "close issue 3", "merge the pr"):
        proposed = PROPOSER.propose(f'send "{said}" to #ops on slack')
        assert proposed.sure
        assert proposed.readings[0].calls[0].id == "slack.chat.postMessage"
        assert proposed.readings[0].calls[0].arguments == {"channel": "#ops", "text": said}


def test_a_missing_argument_is_named() -> None:
    proposed = PROPOSER.propose("close issue 12 on github")
    assert not proposed.sure and any("owner" in note and "repo" in note for note in proposed.notes)


def test_what_has_no_place_is_named() -> None:
    proposed = PROPOSER.propose("archive slack channel C0ABCDEF12 C0HIJKLM34")
    assert not proposed.sure and any("C0HIJKLM34" in note for note in proposed.notes)


@pytest.mark.parametrize(
    "words", ['list the slack channels "secret" C0ABCDEF12', 'archive slack channel C0ABCDEF12 "secret"']
)
def test_what_was_named_never_changes_what_is_done(words: str) -> None:
    proposed = PROPOSER.propose(words)
    assert not proposed.sure and any("ask for something else" in note for note in proposed.notes)


@pytest.mark.parametrize(
    "words", ["approve the open issues of acme/site", "dismiss the comments on issue 7 of acme/site"]
)
@pytest.mark.parametrize("addressed", ["", "github: "])
def test_a_change_is_not_answered_by_a_look(words: str, addressed: str) -> None:
    proposed = PROPOSER.propose(addressed + words)
    assert not proposed.sure and any("only looks" in note for note in proposed.notes), proposed.notes


def test_what_a_list_has_no_use_for_keeps_it_from_being_sure() -> None:
    proposed = PROPOSER.propose('list the slack channels "secret" #ops')
    assert not proposed.sure and proposed.readings[0].method.id == "slack.conversations.list"


@pytest.mark.parametrize("words", ["order a pizza with olives", "what will the weather be like tomorrow"])
def test_it_says_when_nothing_does_what_is_asked(words: str) -> None:
    proposed = PROPOSER.propose(words)
    assert proposed.declined and not proposed.sure and any("Nothing in the catalog" in note for note in proposed.notes)


def test_settings_are_taken_by_name() -> None:
    proposed = PROPOSER.propose('send to slack channel=#ops text="a b=c"')
    assert proposed.readings[0].calls[0].arguments == {"channel": "#ops", "text": "a b=c"}


def test_an_alias_is_looked_up_first() -> None:
    calls = PROPOSER.propose('post "hi" to #team:example.org').readings[0].calls
    assert [call.id for call in calls] == ["matrix.rooms.resolve", "matrix.rooms.send"]
    assert calls[1].arguments["roomId"] == {"$from": 0, "path": "$.room_id"}


def test_a_connected_service_is_preferred() -> None:
    words = "create a room or channel"
    slack, matrix = (PROPOSER.propose(words, connected=frozenset({one})) for one in ("slack", "matrix"))

    def likely(proposed: Proposed) -> float:
        return max(
            reading.probability for reading in proposed.readings if reading.method.id == "slack.conversations.create"
        )

    assert likely(slack) > likely(matrix)


def test_a_named_service_wins_over_a_connected_one() -> None:
    found = PROPOSER.propose("list the channels on slack", connected=frozenset({"matrix", "github"}))
    assert found.readings[0].method.service == "slack"


def test_nothing_is_made_up() -> None:
    for words, _, _ in (*TRAINING, *HELD_OUT):
        for reading in PROPOSER.propose(words).readings:
            for call in reading.calls:
                defaults = CATALOG.method(call.id).defaults
                for name, value in call.arguments.items():
                    if isinstance(value, dict) or defaults.get(name) == value:
                        continue
                    for part in value if isinstance(value, list) else [value]:
                        assert str(part) in words, (words, name, part)


def test_it_is_deterministic_across_processes() -> None:
    code = (
        "from mapper.catalog import Catalog; from mapper.embedded import EmbeddedProposer as E;"
        "from tests.mapper.phrasings import HELD_OUT;"
        "p=E(Catalog.bundled()); print([(r.method.id, r.score) for w,_,_ in HELD_OUT for r in p.propose(w).readings])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 1000


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "text",
    [
        "set " * 2500,
        "rename x to " * 800,
        '"' * 10_000,
        "a" * 10_000,
        "#a:" * 3000,
        "say " + "in the channel " * 600,
        "x/" * 5000,
        "a.b@" * 2500,
        ("post " * 100 + " to ") + " on " * 30,
        "`'«“" * 2500,
        "\ue000\ue001 post \ue002",
        "x=" * 5000,
        "1 " * 5000,
        "https://github.com/" * 500,
        "the " * 2500 + "channel",
        "delete: " * 70,
    ],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    PROPOSER.propose(text[:10_000])
    assert time.process_time() - began < 200 * pace()


def test_slots_are_found_in_one_pass() -> None:
    """A pattern that looked at all the rest from each of these signs would take many minutes."""
    for sign in ("!", "!.", "@", "#", "$"):
        assert extract(sign * 300_000).slots == ()
    assert extract("join !.!abc:example.org").of("matrix-room") == ["!abc:example.org"]


def test_slots() -> None:
    found = extract("tell #ops about acme/site#4 and https://example.org by 5 pm, and/or kim@example.org", ["slack"])
    assert ("repo-owner", "acme") in [(slot.kind, slot.value) for slot in found.slots] or found.said
    plain = extract("close acme/site#4")
    assert plain.of("repo-owner") == ["acme"] and plain.of("repo-name") == ["site"] and plain.of("number") == ["4"]
    assert extract("meet at 5 pm").of("number") == []
    assert extract("this and/or that").of("repo-owner") == []


def test_an_empty_catalog_proposes_nothing() -> None:
    empty = Catalog.of([])
    assert EmbeddedProposer(empty).propose("send a message").readings == ()


@pytest.mark.parametrize(
    "words",
    ["show the repository on github", "List the pull requests of a repository.", "show the issue", "notify people"],
)
def test_a_complete_reading_does_not_win_over_a_nearer_one_that_lacks_something(words: str) -> None:
    proposed = PROPOSER.propose(words)
    assert not proposed.sure and any("doesn't give" in note for note in proposed.notes)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("send slack msg hi to #ops", "hi"),
        ("send a slack message hi there to #ops", "hi there"),
        ("send message hello to #ops", "hello"),
        ("send msg deploy is done to #ops", "deploy is done"),
        ("post hello in #ops", "hello"),
        # What only looks like the name of the thing is part of what is said.
        ("post slack is down in #ops", "slack is down"),
        ("send notes from standup to #ops", "notes from standup"),
        ("write note to self in #ops", "note to self"),
    ],
)
def test_the_name_of_the_thing_is_not_what_is_said(request_: str, said: str) -> None:
    found = PROPOSER.propose(request_)
    assert found.sure or said == "note to self", found.notes  # of that one it may ask: there are services for notes
    assert [dict(call.arguments) for call in found.readings[0].calls] == [{"channel": "#ops", "text": said}]


@pytest.mark.parametrize(
    "request_",
    [
        "send a message to #ops",
        "send slack msg to #ops",
        "send a slack message to bob in #ops",
        "post the message of the day in #ops",
    ],
)
def test_a_message_without_words_is_not_sent(request_: str) -> None:
    assert not PROPOSER.propose(request_).sure


@pytest.mark.parametrize(
    "words",
    [
        # It isn't to be done, perhaps isn't, or not now.
        'don\'t post "hello" in #general on slack',
        'never post "hello" in #general on slack',
        "dont delete repo acme/site",
        "should I merge pull request 7 of acme/site?",
        "hey, can I merge pull request 7 of acme/site?",
        "should pull request 7 of acme/site be merged, please?",
        "delete repo acme/site?",
        "delete repo acme/site when the migration is done",
        'post "hi" in #ops in an hour',
        "clear my calendar this afternoon",
        # It isn't to be done to all, or to something else.
        "kick everyone but @ann:example.org from #room:example.org",
        "delete the wiki of the repository acme/site",
        "delete the pins of discord channel 41771983423143937",
        "delete all messages in discord channel 41771983423143937",
        # It is to be done by another service.
        'email ann@example.com "hi" from my work outlook',
        "lock issue 5 in acme/site of codeberg.org",
        # Something else is to be done as well.
        'open an issue in acme/site titled "Door squeaks" with the label bug',
        "kick @ann:example.org from #room:example.org and ban them",
        # A time that isn't read, or not as that.
        "what's on my calendar next week",
        "what's on my calendar after Friday",
    ],
)
def test_what_no_call_has_a_place_for_is_asked_about(words: str) -> None:
    assert not PROPOSER.propose(words).sure


@pytest.mark.parametrize(
    "words",
    [
        "can you delete repo acme/site?",
        "what's on my calendar next Friday",
        'hey, can you post "hi" in #general on slack?',
        'hi, could you post "hi" in #general on slack?',
        "ok can you close issue 12 in acme/site?",
        "so can you close issue 12 in acme/site?",
        "close issue 12 in acme/site please?",
        "close issue 12 in acme/site, ok?",
        "can we close issue 12 in acme/site?",
        "would it be possible to close issue 12 in acme/site?",
        "mind closing issue 12 in acme/site?",
        "close issue 12 in acme/site, not planned",
    ],
)
def test_what_is_said_plainly_is_not(words: str) -> None:
    assert PROPOSER.propose(words).sure


@pytest.mark.parametrize(
    ("words", "to", "others"),
    [
        ("send an email to a@x.org, b@x.org and c@x.org saying hi", ["a@x.org", "b@x.org", "c@x.org"], {}),
        ("send an email to a@x.org bcc b@x.org saying hi", ["a@x.org"], {"bcc": ["b@x.org"]}),
        ('email a@x.org "hi" and cc b@x.org, c@x.org', ["a@x.org"], {"cc": ["b@x.org", "c@x.org"]}),
        ('email a@x.org about b@x.org "he is late"', ["a@x.org"], None),
        ('email a@x.org but not b@x.org "see you"', ["a@x.org"], None),
        ('email a@x.org, b@x.org in bcc, "see you"', ["a@x.org"], None),
        ("send an email from b@x.org to a@x.org saying hi", ["a@x.org"], None),
        ("email a@x.org (cc b@x.org) saying hi", ["a@x.org"], {"cc": ["b@x.org"]}),
        ("email a@x.org (cc'd), b@x.org saying hi", ["b@x.org"], None),
        ("email Ann <a@x.org> and Bob <b@x.org> saying hi", ["a@x.org", "b@x.org"], {}),
        ("email Ann Lee <a@x.org>, Bob Ray <b@x.org> saying hi", ["a@x.org", "b@x.org"], {}),
        ("email <a@x.org>, <b@x.org> saying hi", ["a@x.org", "b@x.org"], {}),
        ("email Ann (a@x.org) and Élodie (b@x.org) saying hi", ["a@x.org", "b@x.org"], {}),
        ("email a@x.org (and b@x.org) saying hi", ["a@x.org", "b@x.org"], {}),
        ("email a@x.org as well as b@x.org saying hi", ["a@x.org", "b@x.org"], {}),
        ("email a@x.org plus b@x.org saying hi", ["a@x.org", "b@x.org"], {}),
        ("email a@x.org / b@x.org saying hi", ["a@x.org", "b@x.org"], {}),
        ("email a@x.org | b@x.org saying hi", ["a@x.org", "b@x.org"], {}),
        ("send an email from Bob <b@x.org> to Ann <a@x.org> saying hi", ["a@x.org"], None),
        ("send an email about bob (b@x.org) to a@x.org saying hi", ["a@x.org"], None),
        ("email Ann <a@x.org>, Not Bob <b@x.org> saying hi", ["a@x.org"], None),
        ("email Ann <a@x.org>, Bob <b@x.org> in bcc saying hi", ["a@x.org"], None),
    ],
)
def test_an_address_gets_only_what_is_for_it(words: str, to: list[str], others: dict[str, list[str]] | None) -> None:
    """`others` None: there is one that the mail has no place for, so it isn't sent unasked."""
    proposed = PROPOSER.propose(words)
    made = dict(proposed.readings[0].calls[0].arguments)
    assert made["to"] == to and {name: made[name] for name in ("cc", "bcc") if name in made} == (others or {})
    assert others is not None or not proposed.sure


def test_a_title_ends_where_the_body_begins() -> None:
    call = (
        PROPOSER.propose("open an issue in acme/site titled Door squeaks with the body it hurts").readings[0].calls[0]
    )
    assert (call.arguments["title"], call.arguments["body"]) == ("Door squeaks", "it hurts")


def test_a_value_of_several_words_is_taken() -> None:
    call = PROPOSER.propose("close issue 12 in acme/site as not planned").readings[0].calls[0]
    assert call.arguments["state_reason"] == "not_planned"
