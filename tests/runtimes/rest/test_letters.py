"""Letters: they say what the parts say to a parser that didn't write them, and no part can become a header."""

from __future__ import annotations

import base64
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import InvalidInput
from runtimes.gateway.plan import Ref
from runtimes.rest.mime import letter


def read(**parts: Any) -> Any:
    return message_from_bytes(base64.urlsafe_b64decode(letter("gmail.users.messages.send", parts)), policy=default)


def test_a_letter_says_what_was_asked_for() -> None:
    made = read(
        to=["bo@example.org", "kim.o'neil+x@mail.example.com"],
        cc=["lee@example.net"],
        bcc=["sam@example.net"],
        subject="Später — ünïcode, " + "und sehr lang " * 12 + "!",
        body="Hello\nBo,\r\n\r\nI'm late.\r.",
        inReplyTo="<CAF=abc@mail.example.org>",
    )
    assert made["To"] == "bo@example.org, kim.o'neil+x@mail.example.com"
    assert (made["Cc"], made["Bcc"]) == ("lee@example.net", "sam@example.net")
    assert made["Subject"].startswith("Später — ünïcode, und sehr") and made["Subject"].endswith("lang !")
    assert made["In-Reply-To"] == made["References"] == "<CAF=abc@mail.example.org>"
    assert made.get_content().replace("\r\n", "\n") == "Hello\nBo,\n\nI'm late.\n."
    assert made.get_content_type() == "text/plain" and "From" not in made and "Date" not in made


def test_the_same_parts_give_the_same_bytes() -> None:
    parts = {"to": ["bo@example.org"], "subject": "x", "body": "y"}
    assert letter("m", parts) == letter("m", dict(reversed(parts.items())))


@pytest.mark.parametrize(
    "address",
    [
        "bo@example.org\r\nBcc: eve@example.org",
        "bo@example.org\nBcc: eve@example.org",
        "bo@example.org\n",
        "bo@example.org, eve@example.org",
        "bo@example.org;eve@example.org",
        "Bo <eve@example.org>",
        '"bo@example.org" <eve@example.org>',
        "bo(comment)@example.org",
        "group: eve@example.org;",
        "=?utf-8?q?eve=40evil.example=2C?=@example.org",
        "bo",
        "bo@",
        "@example.org",
        "bo@exa mple.org",
        "bö@example.org",
        "bo@example.org\u2028Bcc: eve@example.org",
        ".bo@example.org",
        "bo@example..org",
        "b" * 250 + "@example.org",
        7,
    ],
)
@pytest.mark.parametrize("part", ["to", "cc", "bcc"])
def test_an_address_is_one_plain_address(part: str, address: Any) -> None:
    with pytest.raises(InvalidInput, match=part):
        letter("m", {part: [address], "body": "x"})


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\x0b", "\x85", "\u2028", "\u2029", "\x00"])
def test_a_subject_is_one_line(end: str) -> None:
    with pytest.raises(InvalidInput, match="subject"):
        letter("m", {"to": ["bo@example.org"], "subject": f"hi{end}Bcc: eve@example.org"})


@pytest.mark.parametrize("value", ["<a@b>\r\nBcc: eve@example.org", "a@b", "<a@b> <c@d>", "<>", 3])
def test_what_it_answers_is_one_message_id(value: Any) -> None:
    with pytest.raises(InvalidInput, match="inReplyTo"):
        letter("m", {"to": ["bo@example.org"], "inReplyTo": value})


def test_nothing_of_it_comes_from_an_answer_and_it_goes_to_few() -> None:
    with pytest.raises(InvalidInput, match="answer"):
        letter("m", {"to": [Ref("call-0", "$.email")], "body": "x"})
    with pytest.raises(InvalidInput, match="answer"):
        letter("m", {"to": ["bo@example.org"], "body": Ref("call-0", "$.text")})
    with pytest.raises(InvalidInput, match="at most 100"):
        letter("m", {"to": [f"p{n}@example.org" for n in range(60)], "bcc": [f"q{n}@example.org" for n in range(41)]})


words = st.text(max_size=120)


@given(subject=words, body=words, to=st.lists(st.sampled_from(["a@example.org", "b.c@example.net"]), max_size=3))
def test_whatever_the_parts_nothing_else_is_in_it(subject: str, body: str, to: list[str]) -> None:
    try:
        made = read(to=to, subject=subject, body=body)
    except InvalidInput:
        return
    headers = [] if not to else ["To"]
    headers += ["Subject"] if subject else []
    assert made.keys() == [*headers, "MIME-Version", "Content-Type", "Content-Transfer-Encoding"]
    assert (made["Subject"] or "") == subject
    assert [address.addr_spec for address in made["To"].addresses] == to if to else "To" not in made


@given(subject=st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=200))
def test_an_ordinary_subject_is_taken(subject: str) -> None:
    assert (read(to=["a@example.org"], subject=subject)["Subject"] or "") == subject
