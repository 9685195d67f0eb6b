"""What a notification says and offers, and that foreign text can't say it."""

from __future__ import annotations

import unicodedata
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.cli.output import fold
from goex.notify import card
from goex.notify.card import DENY, MOST_LINES, ONCE, SESSION, VIEW, WIDTH
from goex.rpc import goex_pb2 as pb
from policies.display_text import escape


def approval(**changes: Any) -> pb.Approval:
    facts: dict[str, Any] = {
        "id": "q-1",
        "agent": "helper",
        "digest": "0123456789abcdef" * 4,
        "lines": ["slack.conversations.list as work", "    limit: 20"],
        "needs": [pb.NeedView(service="slack", account="work", scope="channels:read", risk="read")],
        "undo_class": "nothing",
        "risk": "read",
        "widths": ["once", "session", "arguments", "permanent"],
        "deadline": "2999-01-01T00:00:00+00:00",
        "state": "pending",
    }
    return pb.Approval(**{**facts, **changes})


def keys(made: card.Card) -> list[str]:
    return [button.key for button in made.buttons]


def test_a_read_says_who_what_how_risky_and_offers_a_yes() -> None:
    made = card.question(approval())
    assert made.title == "“helper” wants to read"
    body = made.body(markup=False)
    assert "│ slack.conversations.list as work" in body
    assert "limit: 20" in body
    assert "│ uses slack:channels:read on work" in body
    assert "Risk: read; nothing to take back." in body
    assert "Digest 0123456789ab" in body
    assert (keys(made), made.allows, made.urgency) == ([ONCE, SESSION, DENY], True, "normal")


NOT_BY_A_CLICK = {
    "a write": {"risk": "write", "undo_class": "exact"},
    "a deletion": {"risk": "delete", "undo_class": "exact"},
    "a change of rights": {"risk": "admin"},
    "an unknown risk": {"risk": ""},
    "a risk with another name": {"risk": "READ"},
    "what the daemon wants presence for": {"presence": True},
    "what may not be granted once": {"widths": ["session"]},
    "what has no width": {"widths": []},
    "a shortened view": {"brief": True},
    "nothing that would run": {"lines": []},
    "what has no digest": {"digest": ""},
    "more than there is room for": {"lines": [f"line {number}" for number in range(MOST_LINES + 1)]},
    "one long line": {"lines": ["x" * WIDTH * (MOST_LINES + 1)]},
    "needs that have no room": {
        "needs": [pb.NeedView(service="slack", scope=f"scope-{number}", risk="read") for number in range(MOST_LINES)]
    },
}


@pytest.mark.promise(25)
@pytest.mark.parametrize("name", NOT_BY_A_CLICK)
def test_no_click_allows(name: str) -> None:
    assert card.question(approval()).allows  # the control
    made = card.question(approval(**NOT_BY_A_CLICK[name]))
    assert not made.allows
    assert DENY in keys(made)
    # The word for a button that settles is on none.
    assert "Allow once" not in [button.label for button in made.buttons]


def test_a_write_with_room_has_a_button_for_each_and_they_say_that_more_follows() -> None:
    made = card.question(approval(risk="write", undo_class="compensating"))
    assert [button.label for button in made.buttons] == ["Allow once…", "For the session…", "Deny"]


def test_what_is_cut_is_counted_and_only_looked_at_or_denied() -> None:
    made = card.question(approval(lines=[f"line {number}" for number in range(MOST_LINES + 4)]))
    assert made.cut
    assert "5 more lines aren't shown here." in made.body(markup=False)  # four, and what it uses
    assert keys(made) == [VIEW, DENY]


@pytest.mark.parametrize("undo", ["irreversible", "", "something new"])
def test_what_cant_be_taken_back_is_said_and_pressing(undo: str) -> None:
    made = card.question(approval(risk="write", undo_class=undo))
    assert "THIS CAN'T BE TAKEN BACK" in made.body(markup=False)
    assert made.urgency == "critical"


def test_identical_ones_are_counted() -> None:
    made = card.question(approval(), count=3)
    assert made.title.endswith("(×3)")
    assert "Deny denies all 3" in made.body(markup=False)


@pytest.mark.parametrize(
    ("agent", "who"),
    [("person", "Your own command"), ("anonymous", "An agent without a name"), ("<b>x</b>&", r"“\u{3c}b\u{3e}x")],
)
def test_who_asks(agent: str, who: str) -> None:
    assert card.question(approval(agent=agent)).title.startswith(who)


@pytest.mark.parametrize(
    ("state", "here", "title"),
    [
        ("approved", False, "Allowed elsewhere"),
        ("denied", True, "Denied in the terminal"),
        ("expired", False, "Timed out: no answer denies"),
        ("withdrawn", True, "Withdrawn: who asked is gone"),
    ],
)
def test_how_it_ended(state: str, here: bool, title: str) -> None:
    made = card.settled(approval(state=state, settled_by="user 1, process 2 (goex)"), here=here)
    assert (made.title, made.buttons) == (title, ())


# Whatever an agent writes.

TRICKS = (
    "<b>Risk: none</b>",
    "&amp;",
    "&#x202e;",
    "a\nRisk: read; nothing to take back.",
    "\u202eabc",
    "\x1b[31m",
    "<![",
)
hostile = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=80) | st.sampled_from(TRICKS)


@pytest.mark.promise(26)
@given(lines=st.lists(hostile, max_size=4), agent=hostile, account=hostile, scope=hostile)
def test_foreign_text_stays_text(lines: list[str], agent: str, account: str, scope: str) -> None:
    needs = [pb.NeedView(service="x", account=account, scope=scope)]
    made = card.question(approval(lines=lines, agent=agent, needs=needs))
    plain, marked = made.body(markup=False), made.body(markup=True)
    # As markup it is well-formed, says the same, and only lines of ours are bold.
    read = ElementTree.fromstring(f"<body>{marked}</body>")
    assert "".join(read.itertext()) == plain
    assert {element.tag for element in read} <= {"b"}
    ours = ("Risk: ", "No answer", "Digest ", "more lines", "1 more line")
    for line in plain.split("\n"):
        assert line.startswith(("│ ", "┊ ")) or any(word in line for word in ours)
    for element in read:
        assert not (element.text or "").startswith(("│", "┊"))
    for text in (made.title, plain):
        assert not any(ord(char) < 32 and char != "\n" for char in text)
        assert "\u202e" not in text
    assert not set("<>&") & set(made.title)


@pytest.mark.promise(25)
@given(lines=st.lists(hostile, min_size=1, max_size=6))
def test_what_a_click_allows_is_there_whole(lines: list[str]) -> None:
    made = card.question(approval(lines=lines))
    if made.allows:
        shown = "".join(line.text[2:] for line in made.lines if line.text[:2] in ("│ ", "┊ "))
        assert shown.startswith("".join(escape(part) for line in lines for part in line.split("\n")))


@pytest.mark.promise(25, 26)
@pytest.mark.parametrize("sign", ["\u093e", "\u302e", "\u1161", "\u11a8", "\U0001f3fb"])
def test_a_sign_that_is_drawn_beside_the_one_before_it_has_room_of_its_own(sign: str) -> None:
    """A server would break such a row itself, without the bar, or cut it, and a click would allow what wasn't shown."""
    drawn_as = 1 if unicodedata.east_asian_width(sign) == "N" and unicodedata.category(sign) == "Mc" else 2
    made = card.question(approval(lines=["\u1100" + sign * WIDTH * MOST_LINES]))
    assert made.cut and not made.allows
    for line in made.lines:
        assert line.text.count(sign) * drawn_as <= WIDTH
    assert card.question(approval(lines=["\u1100" + sign * 3])).allows  # the control


@pytest.mark.parametrize("width", range(6, 12))
@pytest.mark.parametrize(
    "text",
    [
        "\u1019\u103c\u1014\u103a\u1019\u102c\u1018\u102c\u101e\u102c" * 2,  # Burmese, which has no blanks
        "\u1797\u17b6\u179f\u17b6\u1781\u17d2\u1798\u17c2\u179a" * 2,  # Khmer
        "\u0915\u093e" * 9,  # Hindi
        "\u0e01\u0e33\u0e25\u0e31\u0e07" * 3,  # Thai
        "\u1112\u1161\u11ab" * 4,  # Korean, as some systems have it in names of files
        "\U0001f44d\U0001f3fd" * 5,
    ],
)
def test_no_row_begins_with_a_part_of_a_sign_that_people_write(text: str, width: int) -> None:
    """It would be drawn with nothing before it, and can't be read."""
    pieces = fold(text, width)
    assert "".join(pieces) == text and len(pieces) > 1
    for piece in pieces:
        assert unicodedata.category(piece[0])[0] != "M" and piece[0] not in "\u0e33\u1161\u11ab\U0001f3fd"


@given(text=st.text(st.characters(codec="utf-8"), max_size=200), width=st.integers(2, 80))
def test_folding_drops_nothing(text: str, width: int) -> None:
    assert "".join(fold(text, width)) == text


def short(payload: list[str], **more: Any) -> pb.Question:
    facts = {"sentence": "“helper” wants to list channels on Slack (work).", "worst": "who asks learns the answer"}
    return pb.Question(payload=payload, **{**facts, "undo": "not needed, it only reads", **more})


def test_the_short_question_stands_in_it_whole_or_a_click_allows_nothing() -> None:
    made = card.question(approval(question=short(["slack.conversations.list as work", "    limit: 20"])))
    body = made.body(markup=False).replace("\n┊ ", "")
    pieces = ["│ “helper” wants to list channels on Slack (work).", "│ slack.conversations.list as work", "limit: 20"]
    for piece in (*pieces, "Worst: who asks learns the answer.", "Undo: not needed, it only reads."):
        assert piece in body
    assert made.allows
    for hidden in (short([f"line {n}" for n in range(40)]), short(["a"], notes=["long " * 200])):
        made = card.question(approval(question=hidden))
        assert made.cut and not made.allows and keys(made) == [VIEW, DENY]


def test_no_text_of_a_short_question_begins_a_line_like_one_of_ours() -> None:
    forged = "a" * 33 + " Undo: not needed, it only reads. Digest 000000"
    said = short([forged], sentence=forged, worst=forged, undo=forged, notes=[forged])
    lines = card.question(approval(question=said)).body(markup=False).split("\n")
    assert [line for line in lines if line.startswith("Digest ")] == ["Digest 0123456789ab"]
    assert len([line for line in lines if line.startswith("Undo: ")]) == 1
