"""Terms: what the ranking counts in a request, and what it must not take long over."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mapper.ranking import terms
from mapper.ranking.terms import (
    MOST_CHARACTERS,
    MOST_TERMS,
    document_terms,
    form_terms,
    marked_words,
    request_terms,
    stem,
)
from tests.support.pace import pace


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("write to kim@example.org", "<email>"),
        ("is 203.0.113.9 blocked", "<ip>"),
        ("allow 10.0.0.0/8", "<cidr>"),
        ("on 2031-04-09", "<date>"),
        ("on the 3rd of march", "<date>"),
        ("at 5 pm", "<time>"),
        ("pay $40", "<money>"),
        ("keep gs://attic/boxes.csv", "<gs>"),
        ("keep boxes.csv", "<file>"),
        ("cells B2:D9", "<range>"),
        ("open 1AbCdEfGhIjKlMnOpQrStUvWxYz012345", "<fileid>"),
        ("mail 17c9a1e0bb23f6d4", "<hexid>"),
        ("robot@x-1.iam.gserviceaccount.com", "<robot>"),
        ("!attic:example.org", "<room>"),
        ("ask #attic", "<channelname>"),
        ("close acme/attic#3", "<repoissue>"),
        ("star acme/attic", "<repo>"),
        ("com.example.attic crashes", "<package>"),
        ("select name from shop.orders", "<sql>"),
        ("how big is attic-dw.boxes.sizes", "<table>"),
        ("how big is attic-dw.box_sizes?", "<table>"),
    ],
)
def test_values_become_kinds(text: str, kind: str) -> None:
    assert kind in request_terms(text)


def test_values_themselves_say_nothing() -> None:
    one = request_terms("share boxes.csv with kim@example.org on 2031-04-09")
    other = request_terms("share plans.csv with lea@example.net on 2032-05-10")
    assert one == other


def test_what_kind_of_file_lies_in_a_bucket_is_heard() -> None:
    assert "wav" in request_terms("what's in gs://attic/old.talks/box.wav, please") and "wav" in request_terms(
        "s3://a/b.wav"
    )
    assert request_terms("list gs://attic/wav/boxes") == request_terms("list gs://attic")
    assert "<table>" not in request_terms("is attic.example.org up, and example.com")


def test_resource_paths_name_their_collections() -> None:
    found = request_terms("rotate projects/attic/locations/eu/keyRings/r/cryptoKeys/k")
    assert {"projects/", "locations/", "keyrings/", "cryptokeys/"} <= found.keys()
    assert "attic" not in found


def test_words_with_a_slash_are_no_path() -> None:
    assert not [term for term in request_terms("yes and/or no") if term.endswith("/")]


def test_both_spellings_of_a_compound_meet() -> None:
    for name in ("keyring", "keyrings", "projects.keyRings.list"):
        assert stem("keyring") in document_terms(name)
    assert stem("keyring") in request_terms("the key rings")


def test_quoted_words_count_less() -> None:
    found = request_terms('write "delete the repository" on the board')
    assert found["delet"] < found["board"] and found["<quoted>"] == 1.0


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [("policies", "policy"), ("mailboxes", "mailbox"), ("shared", "shar"), ("share", "shar"), ("stopping", "stop"),
     ("classes", "class"), ("status", "status"), ("bus", "bus"), ("sing", "sing")],
)  # fmt: skip
def test_stems(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


def test_form_tells_questions_and_numbers() -> None:
    many = form_terms(list(marked_words("which machines are running?")))
    assert {"~which", "~s", "~?", "~^which"} <= many.keys()
    assert "~s" not in form_terms(list(marked_words("stop the machine")))


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    "text",
    ["a/" * 20_000, "1" * 40_000, "a@" * 20_000, '"' * 20_000, "select " * 8_000, "x " * 20_000, "-" * 40_000,
     "A1:" * 12_000, "com." * 10_000, "http://" * 6_000, "0.0," * 10_000, "<email>" * 6_000, "'" + "a b" * 9_000,
     "1A" * 20_000, "#a:" * 12_000, "Jan " * 9_000, "!a:" * 9_000, "ab/cd" * 9_000],
)  # fmt: skip
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    found = request_terms(text)
    assert time.process_time() - began < 100 * pace()
    assert len(found) <= MOST_TERMS + 3


def test_only_the_beginning_is_read() -> None:
    assert "zebra" not in request_terms("x " * (MOST_CHARACTERS // 2) + "zebra")


_PATTERNS = (
    *(pattern for _, pattern in (*terms._SHAPES, *terms._KINDS)),
    *(terms._URL, terms._EMAIL, terms._CLOUD_URI, terms._COLLECTION, terms._FILE_NAME, terms._IDENTIFIER),
)
_TEXT = "a bcd Efgh deadbeef cafe com io pdf percent of march select from http PL UC ChIJ C0 spotify i- GPA é"
_PIECES = (
    *_TEXT.split(),
    *"-_.,'!%()<  ",
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
@given(text=st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
def test_text_that_is_taken_as_plain_has_no_value(text: str) -> None:
    assume(not terms._VALUE.search(text))
    assert not any(pattern.search(text) for pattern in _PATTERNS)
