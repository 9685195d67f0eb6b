"""What leaves this machine as fine-tuning data holds the catalog's words and everyday ones, nothing else."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapper.catalog import Catalog
from mapper.raft import Decided, Recipe, document, examples
from mapper.redaction import Redactor, vocabulary
from policies.actions import Call
from policies.errors import InvalidInput
from policies.services import Method

CATALOG = Catalog.bundled()
POST = Call(
    service="slack",
    method="chat.postMessage",
    arguments={"channel": "#ops", "text": "the key is under"},
    account="mine",
)


def redact(words: str, *calls: Call) -> tuple[str, list[dict[str, object]]]:
    return Redactor(CATALOG).redact(words, calls, [CATALOG.method(call.id) for call in calls])


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("send a message to bob@corp.example", "send a message to <email_1>"),
        ("open https://corp.example/a?key=1 now", "open <link_1> now"),
        ('say "the vault opens at nine" to #ops', "say <text_1> to <name_1>"),
        ("say “in curly ones” there", "say <text_1> there"),
        ("read file 1x9Kq-00a and 4711", "read file <id_1> and <number_1>"),
        ("delete /srv/jo/diary.txt", "delete <path_1>"),
        ("tell Anna and anna about it: Anna", "tell <word_1> and <word_1> about it: <word_1>"),
        ("list the messages of prod-db.corp", "list the messages of <id_1>"),
        ("token=abc list messages", "<setting_1> list messages"),
        ("list qzxwvk messages", "list <word_1> messages"),
        ("list <text_9> messages", "list <id_1> messages"),
        ("Show the Slack channels that I have", "Show the Slack channels that I have"),
    ],
)
def test_of_the_words_only_known_ones_stay(words: str, kept: str) -> None:
    assert redact(words)[0] == kept


def test_an_arguments_value_is_the_same_placeholder_in_the_words() -> None:
    words, (call,) = redact('send "the key is under" to #ops from mine, THE KEY IS UNDER again', POST)
    assert words == "send <text_1> to <name_1> from <account_1>, <text_1> again"
    assert call == {"name": "slack.chat.postMessage", "arguments": {"channel": "<name_1>", "text": "<text_1>"}}


def test_what_the_catalog_names_stays_in_arguments() -> None:
    call = Call(
        service="slack",
        method="chat.postMessage",
        arguments={
            "channel": "#a",
            "text": {"$from": 0, "path": "$.messages[0].text"},
            "mine": [7, True, None, "", {"x": 1}],
        },
    )
    made = Redactor(CATALOG).redact("", [call], [CATALOG.method(call.id)])[1][0]["arguments"]
    assert made == {
        "channel": "<name_1>",
        "text": {"$from": 0, "path": "$.messages[0].text"},
        "<key_1>": ["<number_1>", True, None, "", {"<key_2>": "<number_2>"}],
    }


@given(st.text(min_size=1, max_size=60))
def test_no_unknown_word_gets_through(text: str) -> None:
    left = re.sub(r"<[a-z]+_\d+>", " ", redact(text)[0])
    assert not re.search(r"[\d_@#/<>=\"]", left)
    for word in re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)*", left):
        plain = word.lower().replace("’", "'")
        assert {plain, plain.removesuffix("'s")} & vocabulary() or plain == "i", word


# ---- RAFT


def candidates(_: str) -> list[Method]:
    return [CATALOG.method(f"slack.{name}") for name in ("chat.postMessage", "chat.update", "conversations.list")]


def made(*decided: Decided, **recipe: int) -> list[dict[str, object]]:
    return list(examples(decided, CATALOG, candidates, Recipe(**recipe)))


def test_an_example_quotes_the_right_document() -> None:
    (one,) = made(Decided(words="post it", calls=(POST,), label="approved"), with_answer=100, distractors=1)
    method = CATALOG.method(POST.id)
    assert one["oracle_context"] == document(method)
    assert f"##begin_quote## {method.description} ##end_quote##" in str(one["cot_answer"])
    assert method.description in str(one["oracle_context"])
    documents = one["context"]["sentences"][0]  # type: ignore[index]
    assert sorted(documents) == sorted([document(method), document(CATALOG.method("slack.chat.update"))])
    assert str(one["instruction"]).count("<DOCUMENT>") == 2
    assert str(one["instruction"]).endswith(str(one["question"]))


@pytest.mark.parametrize(("share", "with_it"), [(0, 0), (80, 8), (100, 10)])
def test_so_many_hold_the_right_document(share: int, with_it: int) -> None:
    many = [Decided(words="post " + "it " * n, calls=(POST,), label="approved") for n in range(1, 11)]
    found = made(*many, with_answer=share)
    assert len(found) == 10
    assert sum(one["oracle_context"] in one["context"]["sentences"][0] for one in found) == with_it  # type: ignore[index]


def test_the_order_of_the_journal_and_doubles_mean_nothing() -> None:
    a = Decided(words="post it", calls=(POST,), label="approved")
    b = Decided(words="write it", calls=(POST,), label="corrected", instead_of=("slack.chat.update",))
    assert json.dumps(made(a, b, a)) == json.dumps(made(b, a))
    assert json.dumps(made(a, b, seed=1)) == json.dumps(made(a, b, seed=1))


@pytest.mark.parametrize(
    "recipe", [{"with_answer": -1}, {"with_answer": 101}, {"distractors": -1}, {"distractors": 21}]
)
def test_a_recipe_that_cannot_be_meant(recipe: dict[str, int]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Recipe(**recipe)
    assert "--with-answer" in caught.value.next_step
