"""The question to the person, on a real pseudo-terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from goex.cli.grant_bounds import TRIES
from goex.cli.output import Output
from goex.cli.question_text import answers_line, choices, describe, offered, short, summary
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.conftest import GOEX, Goex
from tests.goex.cli.fake import PASSPHRASE, Fake, approval, finished, mapped, problem, state
from tests.support.person import QUESTION
from tests.support.terminal import Terminal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKING = pb.Event(action_id="ac-0001", asking=approval())


class Screen:
    """A terminal with a command on it, and the bytes as they came."""

    def __init__(self, terminal: Terminal, raw: list[str]) -> None:
        self.terminal, self._raw = terminal, raw

    @property
    def raw(self) -> str:
        return "".join(self._raw)


@pytest.fixture
def on_terminal(env: dict[str, str]) -> Callable[..., object]:
    @contextmanager
    def run(*args: str, size: tuple[int, int] = (60, 100), **more: str) -> Iterator[Screen]:
        raw: list[str] = []
        with Terminal([*GOEX, *args], env={**env, **more}, size=size, shown=raw.append) as terminal:
            yield Screen(terminal, raw)

    return run


def answer(screen: Screen, said: str) -> None:
    screen.terminal.expect(QUESTION)
    screen.terminal.type(said)


# ---- what is shown


def text(shown: pb.Approval, width: int = 80) -> str:
    return "\n".join(line.text for line in describe(shown, width, NOW))


def test_everything_is_shown() -> None:
    said = text(approval())
    for piece in (
        "helper",
        "agent.sock, user 1000, process 7",
        "send slack msg hi to #ops",
        'channel = "#ops"',
        'text = "hi"',
        "slack:chat:write on account work (write, not granted yet)",
        "send messages as you",
        "the scope would also allow: slack.chat.update",
        "traces may remain",
        "deletes the message; others may have read it",
        "is not granted to helper",
        "ap-0001 of action ac-0001",
    ):
        assert piece in said


@pytest.mark.promise(8)
@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_nothing_is_cut_and_no_line_is_too_wide(width: int) -> None:
    from rich.cells import cell_len

    long = "".join(chr(ord("a") + n % 26) for n in range(5000)) + "宽" * 50 + "  end"
    lines = describe(approval(lines=[long], undo_text=long, intent=long), width, NOW)
    assert all(cell_len(line.text) <= width for line in lines)
    first = short(approval(lines=[long], undo_text=long, source=long, agent=long), width, NOW)
    assert all(cell_len(line.text) <= width for line in first)
    payload = [line.text for line in first if line.text.startswith("  ")]
    assert "".join(re.sub(r"^( {2}[│┊] | {6}┊)", "", text) for text in payload).count(long) >= 1
    joined = "".join(re.sub(r"^(  [│┊] |In words       | {13}┊ )", "", line.text) for line in lines)
    assert joined.count(long) == 3


def shortly(shown: pb.Approval, width: int = 80) -> str:
    return "\n".join(line.text for line in short(shown, width, NOW))


def test_the_short_question_has_the_payload_and_three_facts_and_one_line_of_answers() -> None:
    shown = approval()
    said = shortly(shown)
    for piece in (
        "“helper” wants to post a message on Slack (work): #ops.",
        '  │ channel = "#ops"',
        '  │ text = "hi"',
        "Asks   agent.sock, user 1000, process 7",
        "Worst  what is shown, once",
        "Undo   deletes the message; others may have read it",
        "New    first slack:chat:write",
    ):
        assert piece in said
    assert answers_line(shown, NOW).startswith("y once  a always so  s session  n no  ? more  ")
    assert "send messages as you" not in said  # behind `?`


def test_without_a_short_question_all_of_it_is_shown_at_once() -> None:
    """A daemon of an earlier version, or a plan that it can't say shortly."""
    said = shortly(approval(question=pb.Question(sentence="It wants something.", worst="nothing")))
    assert "What will run" in said and "You can answer" in said
    assert answers_line(approval(question=pb.Question()), NOW).startswith("once  session  arguments  permanent  no")


def test_a_key_of_an_answer_that_isnt_offered_means_nothing() -> None:
    from goex.cli.question_text import answers

    forged = pb.Question(answers=[pb.Answer(key="y", name="for-ever"), pb.Answer(key="yes", name="once")])
    found = answers(approval(widths=["once"], question=forged))
    assert set(found.values()) == {"once", "no", "later", "more"} and "y" not in found and "yes" not in found


TRICKS = {
    "ansi": "\x1b[2J\x1b[31mred",
    "title": "\x1b]0;owned\x07",
    "c1": "\x9b2J",
    "return": "safe\rrm -rf",
    "bidi": "\u202eevil\u2066",
    "zero width": "a\u200bb\ufeff",
    "newline": "x\nTaking it back\n  Undo restores the earlier state exactly.",
    "nbsp": "a\u00a0b",
    "backspace": "abc\b\b\bxyz",
    "markup": "[bold red]not markup[/]",
}
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\u00a0]")
NEED_FIELDS = ("service", "account", "scope", "risk", "description", "why")
FIELDS = ("agent", "undo_class", "undo_text", "risk", "reason", "deadline", "intent", "source", "id", "action_id")


@pytest.mark.promise(8)
@pytest.mark.parametrize("trick", TRICKS)
def test_no_shown_field_can_trick_the_terminal(trick: str) -> None:
    bad = TRICKS[trick]
    need = pb.NeedView(also=[bad], methods=[bad], **dict.fromkeys(NEED_FIELDS, bad))
    said = text(approval(lines=[bad], needs=[need], arguments=[bad], **dict.fromkeys(FIELDS, bad)))
    assert not HIDDEN.search(said.replace("\n", ""))
    facts = dict.fromkeys(("sentence", "asks", "worst", "undo", "fresh"), bad)
    first = shortly(approval(question=pb.Question(payload=[bad], notes=[bad], answers=[], **facts)))
    assert not HIDDEN.search(first.replace("\n", ""))
    assert not re.search(r"^(Taking it back|  Undo restores|y once)", first, re.MULTILINE)
    if trick == "newline":
        # A forged heading stands behind the bar, never at the beginning of a line.
        assert len(re.findall(r"^Taking it back$", said, re.MULTILINE)) == 1
        assert "\n  Undo restores" not in said
    if trick == "markup":
        assert "[bold red]not markup[/]" in said


def test_one_field_at_a_time_shows_the_escape() -> None:
    for field in FIELDS:
        if field != "undo_class":
            assert "\\u{202e}" in text(approval(**{field: "a\u202eb"})), field
    for field in (*NEED_FIELDS, "also", "methods"):
        value = ["a\u202eb"] if field in ("also", "methods") else "a\u202eb"
        need = pb.NeedView(**{"service": "s", "scope": "x", field: value})
        assert "\\u{202e}" in text(approval(needs=[need])), field


def test_unknown_undo_counts_as_irreversible() -> None:
    assert "CAN'T BE TAKEN BACK" in text(approval(undo_class="later"))
    assert "CAN'T BE TAKEN BACK" in text(approval(undo_class="irreversible"))


def test_a_width_that_we_cant_describe_isnt_offered() -> None:
    assert offered(approval(widths=["once", "for-ever"])) == ["once"]


WIDTHS = [
    pb.WidthView(name="once", words=["This very action, a single time."]),
    pb.WidthView(
        name="session",
        words=["The agent “helper” may post whatever it likes.", "All of it is logged.", "It ends in 8 hours."],
        until="2026-01-01T08:00:00.000000Z",
        warning="It can delete things that you haven't seen.",
    ),
    pb.WidthView(
        name="permanent", words=["It may post for a year.", "All of it is logged."], until="2027-01-01T00:00:00Z"
    ),
]


def answers(shown: pb.Approval, width: int = 80) -> str:
    return "\n".join(line.text for line in choices(shown, width))


def test_each_width_is_said_in_the_daemons_words_for_this_request() -> None:
    shown = approval(widths=["once", "session", "permanent"], choices=WIDTHS)
    said = answers(shown)
    for view in WIDTHS:
        for text in (*view.words, view.warning):
            assert text[1:] in said
    assert said.count("ll of it is logged.") == 1  # what holds for all of them is said once
    assert "For all but once: all of it is logged." in said
    assert [line.style for line in choices(shown, 80) if "can delete" in line.text] == ["warn"]


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_no_word_of_a_width_is_cut(width: int) -> None:
    from rich.cells import cell_len

    long = "".join(chr(ord("a") + n % 26) for n in range(2000)) + "宽" * 50
    shown = approval(widths=["session"], choices=[pb.WidthView(name="session", words=[long], warning=long)])
    lines = choices(shown, width)
    assert all(cell_len(line.text) <= width for line in lines if "passphrase" not in line.text)
    joined = "".join(re.sub(r"^  (session   |          ) ", "", line.text) for line in lines)
    assert joined.count(long) == 2


@pytest.mark.parametrize("trick", TRICKS)
def test_no_word_of_a_choice_or_a_list_can_trick_the_terminal(trick: str) -> None:
    bad = TRICKS[trick]
    view = pb.WidthView(name="session", words=[bad], warning=bad)
    held = pb.NeedView(see=[bad], change=[bad], destroy=[bad], share=[bad], held_by="gateway", opens=[bad])
    shown = approval(lines=[bad], needs=[held], choices=[view], same_as=[bad], **dict.fromkeys(FIELDS, bad))
    listed = "\n".join(line.text for line in summary(shown, 80, NOW))
    for said in (answers(shown), text(shown), listed):
        assert not HIDDEN.search(said.replace("\n", ""))
        assert trick != "newline" or not re.search(r"^Taking it back$", said.split("What it needs")[0], re.MULTILINE)


def test_what_holds_a_credential_is_said() -> None:
    need = {"service": "mail", "scope": "send", "risk": "write"}
    token = pb.NeedView(**need, held_by="token", opens=["send"])
    gateway = pb.NeedView(**need, held_by="gateway", opens_all=True, held_by_seen=True)
    unseen = pb.NeedView(**need, held_by="gateway", opens=["send", "read"])
    assert "gives a token for this alone; it opens: send" in text(approval(needs=[token]), 200)
    assert "gateway holds the credential to this; by itself it opens: all" in text(approval(needs=[gateway]), 200)
    assert "wasn't seen yet" in text(approval(needs=[unseen]), 200)


def test_a_scope_says_what_its_holder_could_see_change_and_destroy_worst_first() -> None:
    need = pb.NeedView(
        service="mail", scope="all", see=["letters"], change=["labels"], destroy=["drafts"], share=["boxes"]
    )
    said = text(approval(needs=[need, need]))
    kinds = ["who has access: boxes", "destroy: drafts", "change: labels", "see: letters"]
    assert [said.index(kind) for kind in kinds] == sorted(said.index(kind) for kind in kinds)
    assert said.count("destroy: drafts") == 1  # what a scope is, is said once


# ---- what is decided


def test_once(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve", "ap-0001") as screen:
        answer(screen, "once")
        screen.terminal.expect("Allowed")
        assert screen.terminal.wait() == 0
    (decided,) = fake.decided
    assert (decided.approve, decided.width, decided.digest) == (True, "once", "d" * 64)
    assert decided.approval_id == "ap-0001"
    assert screen.terminal.text.index('text = "hi"') < screen.terminal.text.index("? more")


def test_the_key_of_once_is_once(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve", "ap-0001") as screen:
        answer(screen, "y")
        screen.terminal.expect("Allowed")
        assert screen.terminal.wait() == 0
    assert [(one.approve, one.width, one.digest) for one in fake.decided] == [(True, "once", "d" * 64)]


def test_more_shows_everything_and_asks_again(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve", "ap-0001") as screen:
        screen.terminal.expect(QUESTION)
        assert "What it needs" not in screen.terminal.text
        for _ in range(4):  # looking costs none of the three tries
            screen.terminal.type("?")
            screen.terminal.expect("What it needs")
            screen.terminal.expect("a single time")
            screen.terminal.expect(QUESTION)
        assert fake.decided == []
        screen.terminal.type("")
        screen.terminal.expect("Denied")
    assert [decided.approve for decided in fake.decided] == [False]


@pytest.mark.parametrize("said", ["", "no", "n"])
def test_the_default_is_no(on_terminal: Callable[..., object], fake: Fake, said: str) -> None:
    with on_terminal("approve") as screen:
        answer(screen, said)
        screen.terminal.expect("Denied")
        screen.terminal.wait()
    assert [decided.approve for decided in fake.decided] == [False]


@pytest.mark.parametrize(
    "said",
    [("yy", "yes", "ok"), ("ONCE please", "y please", "o"), ("1", "allow", "?y"), ("on", "on", "on")],
    ids=" ".join,
)
def test_only_a_whole_answer_approves(on_terminal: Callable[..., object], fake: Fake, said: tuple[str, ...]) -> None:
    with on_terminal("approve") as screen:
        for one in said:
            answer(screen, one)
        screen.terminal.expect("Denied")
        screen.terminal.wait()
    assert [decided.approve for decided in fake.decided] == [False]


def test_a_mistyped_narrowing_of_a_task_is_asked_for_again(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending[0].kind = "task"
    with on_terminal("approve") as screen:
        answer(screen, "y 2=1 10x")
        screen.terminal.expect("write like: y 2=1 3=0 10m")
        answer(screen, "y 2=1 10m")
        screen.terminal.wait()
    decided = fake.decided[0]
    assert [(one.line, one.times) for one in decided.narrowed] == [(1, 1)]
    assert (decided.approve, decided.expires_seconds) == (True, 600)


def test_the_end_of_input_is_no(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        screen.terminal.expect(QUESTION)
        os.write(screen.terminal._screen, b"\x04")
        screen.terminal.expect("Denied")
        screen.terminal.wait()
    assert [decided.approve for decided in fake.decided] == [False]


def test_the_reason_goes_to_the_agent(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "no wrong channel")
        screen.terminal.wait()
    assert fake.decided[0].reason == "wrong channel"


def test_later_decides_nothing(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "later")
        screen.terminal.expect("Left open")
        screen.terminal.wait()
    assert fake.decided == []


def test_ctrl_c_decides_nothing(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        screen.terminal.expect(QUESTION)
        os.write(screen.terminal._screen, b"\x03")
        assert screen.terminal.wait() == 130
    assert fake.decided == []


def test_what_was_typed_before_the_question_doesnt_count(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        screen.terminal.type("y")
        screen.terminal.type("once")
        screen.terminal.expect(QUESTION)
        screen.terminal.type("")
        screen.terminal.expect("Denied")
        screen.terminal.wait()
    assert [decided.approve for decided in fake.decided] == [False]


def test_a_width_that_isnt_offered_cant_be_chosen(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending = [approval(widths=["once"])]
    with on_terminal("approve") as screen:
        for _ in range(3):
            answer(screen, "permanent")
        screen.terminal.expect("Denied")
    assert "revoke it" not in screen.terminal.text


def test_what_is_bound_to_arguments_is_bound_to_all_of_them(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "arguments")
        screen.terminal.expect(r"\[none\]: ")
        screen.terminal.type("")
        screen.terminal.expect(r"usual time\]: ")
        screen.terminal.type("7d")
        screen.terminal.expect("Allowed")
    (decided,) = fake.decided
    assert list(decided.bind_arguments) == ["channel", "text"]
    assert decided.expires_seconds == 7 * 86_400


def test_the_person_may_let_values_go(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "arguments")
        screen.terminal.expect(r"\[none\]: ")
        screen.terminal.type("text")
        screen.terminal.expect(r"usual time\]: ")
        screen.terminal.type("")
        screen.terminal.expect("Allowed")
    (decided,) = fake.decided
    assert (decided.width, list(decided.bind_arguments), decided.expires_seconds) == ("arguments", ["channel"], 0)


@pytest.mark.parametrize("width", ["session", "permanent"])
def test_the_wider_ones_are_bound_to_nothing_and_say_so(
    on_terminal: Callable[..., object], fake: Fake, width: str
) -> None:
    with on_terminal("approve") as screen:
        answer(screen, width)
        screen.terminal.expect(r"usual time\]: ")
        screen.terminal.type("")
        screen.terminal.expect("Allowed")
    assert "whatever the arguments are" in screen.terminal.text
    assert (fake.decided[0].width, list(fake.decided[0].bind_arguments)) == (width, [])


@pytest.mark.parametrize(
    ("first", "second"), [("no_such", None), ("channel, text", None), ("", "soon"), ("", "0h"), ("text", "7 years")]
)
def test_a_bound_that_isnt_understood_approves_nothing(
    on_terminal: Callable[..., object], fake: Fake, first: str, second: str | None
) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "arguments")
        for _ in range(TRIES if second is None else 1):
            screen.terminal.expect(r"\[none\]: ")
            screen.terminal.type(first)
        for _ in range(TRIES if second is not None else 0):
            screen.terminal.expect(r"usual time\]: ")
            screen.terminal.type(str(second))
        screen.terminal.expect("Left open")
    assert fake.decided == []


def test_a_bound_that_isnt_understood_is_asked_for_again(on_terminal: Callable[..., object], fake: Fake) -> None:
    with on_terminal("approve") as screen:
        answer(screen, "arguments")
        for said in ("texst", "text"):
            screen.terminal.expect(r"\[none\]: ")
            screen.terminal.type(said)
        for said in ("7 days", "7d"):
            screen.terminal.expect(r"usual time\]: ")
            screen.terminal.type(said)
        screen.terminal.expect("Allowed")
    (decided,) = fake.decided
    assert (list(decided.bind_arguments), decided.expires_seconds) == (["channel"], 7 * 86_400)


def test_the_usual_end_is_said(on_terminal: Callable[..., object], fake: Fake) -> None:
    until = pb.WidthView(name="session", words=["Everything."], until="2027-03-04T05:06:07+00:00")
    fake.pending = [approval(choices=[until])]
    with on_terminal("approve") as screen:
        answer(screen, "session")
        screen.terminal.expect(r"It ends after \(like 12h or 7d\) \[2027-03-0[345] \d\d:06")


def test_a_no_is_for_the_identical_ones_that_were_shown_and_says_so(
    on_terminal: Callable[..., object], fake: Fake
) -> None:
    fake.pending = [approval(count=3, same_as=["ap-0002", "ap-0003"])]
    with on_terminal("approve") as screen:
        screen.terminal.expect("Asked 3 times: a yes is for one of them, a no for all")
        answer(screen, "no too many")
        screen.terminal.expect("Denied")
    (decided,) = fake.decided
    assert (decided.reason, list(decided.same_as)) == ("too many", ["ap-0002", "ap-0003"])


def test_a_yes_is_never_for_the_identical_ones(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending = [approval(count=2, same_as=["ap-0002"])]
    with on_terminal("approve") as screen:
        screen.terminal.expect("Asked 2 times: a yes is for one of them")
        answer(screen, "once")
        screen.terminal.expect("Allowed")
    assert [(one.approval_id, list(one.same_as)) for one in fake.decided] == [("ap-0001", [])]


def test_long_ones_are_paged_to_the_end_before_the_question(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending = [approval(lines=[f"line {n}" for n in range(100)])]
    with on_terminal("approve", size=(24, 80)) as screen:
        screen.terminal.expect("of 1.. lines; Enter shows more")
        assert "? more" not in screen.terminal.text
        while True:
            screen.terminal.type("")
            if screen.terminal.expect(f"Enter shows more|{QUESTION}")[0].endswith("[no]: "):
                break
        assert all(f"line {n}\n" in screen.terminal.text for n in range(100))
        screen.terminal.type("once")
        screen.terminal.expect("Allowed")


def test_leaving_the_pages_decides_nothing(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending = [approval(lines=[f"line {n}" for n in range(100)])]
    with on_terminal("approve", size=(24, 80)) as screen:
        screen.terminal.expect("Enter shows more")
        screen.terminal.type("q")
        screen.terminal.expect("Left open")
    assert fake.decided == []


# ---- presence


def test_the_passphrase_is_asked_for_and_not_echoed(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.presence = True
    with on_terminal("approve") as screen:
        answer(screen, "once")
        screen.terminal.expect("Approval passphrase: ")
        screen.terminal.type("not that one")
        screen.terminal.expect("isn't the approval passphrase")
        screen.terminal.expect("Approval passphrase: ")
        screen.terminal.type(PASSPHRASE)
        screen.terminal.expect("Allowed")
        screen.terminal.wait()
    assert PASSPHRASE not in screen.raw
    assert "not that one" not in screen.raw
    assert [decided.passphrase for decided in fake.decided] == [PASSPHRASE]


@pytest.mark.parametrize("said", [["", ""], ["a", "b", "c"]])
def test_without_it_nothing_is_approved(on_terminal: Callable[..., object], fake: Fake, said: list[str]) -> None:
    fake.presence = True
    with on_terminal("approve") as screen:
        answer(screen, "once")
        for one in said:
            screen.terminal.expect("Approval passphrase: ")
            screen.terminal.type(one)
            if not one:
                break
        screen.terminal.expect("nothing was changed")
    assert fake.decided == []


def test_echo_comes_back_after_ctrl_c(on_terminal: Callable[..., object], fake: Fake) -> None:
    import termios

    fake.presence = True
    with on_terminal("approve") as screen:
        answer(screen, "once")
        screen.terminal.expect("Approval passphrase: ")
        fd = screen.terminal._screen
        assert not termios.tcgetattr(fd)[3] & termios.ECHO
        os.write(fd, b"\x03")
        assert screen.terminal.wait() == 130
        assert termios.tcgetattr(fd)[3] & termios.ECHO


# ---- without a terminal


@pytest.mark.promise(4)
def test_no_terminal_no_approval(goex: Goex, fake: Fake) -> None:
    for stdin in (b"once\n", b"yes\n" * 10, b""):
        ran = goex("approve", "ap-0001", stdin=stdin)
        assert ran.code == 3
        assert "Approving needs a terminal" in ran.err
        assert goex("approve", "--json", stdin=stdin).code == 0
        assert goex("approve", stdin=stdin).code == 0
    assert fake.decided == []


@pytest.mark.promise(4)
def test_no_option_and_no_variable_approves(env: dict[str, str], fake: Fake) -> None:
    loud = {f"GOEX_{name}": "1" for name in ("YES", "APPROVE", "ASSUME_YES", "APPROVAL_PASSPHRASE", "WIDTH")}
    goex = Goex({**env, **loud, "YES": "1"})
    for option in ("--yes", "-y", "--approve", "--force", "--once"):
        assert goex("approve", "ap-0001", option, stdin=b"once\n").code == 2
    assert goex("approve", "ap-0001", stdin=b"once\n").code == 3
    assert fake.decided == []


def test_presence_isnt_read_from_a_pipe(goex: Goex, fake: Fake) -> None:
    fake.presence = True
    ran = goex("agents", "add", "helper", stdin=f"{PASSPHRASE}\n".encode())
    assert ran.code == 3
    assert "there is no terminal" in ran.err


def test_denying_needs_no_terminal(goex: Goex, fake: Fake) -> None:
    assert goex("deny", "ac-0001", "--reason", "not now").code == 0
    assert [(one.approve, one.reason) for one in fake.decided] == [(False, "not now")]


# ---- inline, while `goex exec` waits


def test_exec_asks_inline(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.events = [state("assessed", "ask", "asking"), ASKING, Fake.WAIT, finished()]
    with on_terminal("exec", "send", "hi") as screen:
        answer(screen, "once")
        screen.terminal.expect("Sent")
        screen.terminal.expect("goex undo ac-0001")
        assert screen.terminal.wait() == 0
    assert [one.approve for one in fake.decided] == [True]
    assert fake.requests[0].intent == "send hi"


def test_exec_inline_default_is_no(on_terminal: Callable[..., object], fake: Fake) -> None:
    denied = finished(problem=problem("denied", 3, "You said no."))
    fake.events = [ASKING, Fake.WAIT, denied]
    with on_terminal("exec", "send", "hi") as screen:
        answer(screen, "")
        screen.terminal.expect("You said no")
        assert screen.terminal.wait() == 3
    assert [one.approve for one in fake.decided] == [False]


def test_the_question_ends_when_it_was_settled_elsewhere(on_terminal: Callable[..., object], fake: Fake) -> None:
    settled = pb.Event(action_id="ac-0001", asking=approval(state="denied"))
    fake.events = [ASKING, Fake.WAIT, settled, finished(problem=problem("denied", 3))]
    with on_terminal("exec", "send") as screen:
        screen.terminal.expect(QUESTION)
        fake.settled.put(pb.DecideRequest())
        screen.terminal.expect("settled elsewhere")
        assert screen.terminal.wait() == 3
    assert fake.decided == []


def test_the_daemon_leaving_ends_the_question(on_terminal: Callable[..., object], fake: Fake) -> None:
    import grpc

    fake.events = [ASKING, Fake.WAIT, grpc.StatusCode.INTERNAL]
    with on_terminal("exec", "send") as screen:
        screen.terminal.expect(QUESTION)
        fake.settled.put(pb.DecideRequest())
        screen.terminal.expect("The daemon went away")
        assert screen.terminal.wait() == 1


def test_a_restart_doesnt_ask_again_what_was_answered(on_terminal: Callable[..., object], fake: Fake) -> None:
    import grpc

    fake.scripts = [[ASKING, grpc.StatusCode.UNAVAILABLE], [ASKING, Fake.WAIT, finished()]]
    with on_terminal("exec", "send") as screen:
        answer(screen, "once")
        assert screen.terminal.wait() == 0
    assert len(re.findall(QUESTION, screen.terminal.text)) == 1
    assert [type(request).__name__ for request in fake.requests] == ["ExecuteRequest", "ActionId"]


def test_one_that_was_put_off_isnt_asked_again_but_waited_for(on_terminal: Callable[..., object], fake: Fake) -> None:
    import grpc

    fake.scripts = [[ASKING, grpc.StatusCode.UNAVAILABLE], [ASKING, Fake.WAIT, finished()]]
    with on_terminal("exec", "send") as screen:
        answer(screen, "later")
        for _ in range(2):
            screen.terminal.expect("goex approve ap-0001")
        fake.settled.put(pb.DecideRequest())
        assert screen.terminal.wait() == 0
    assert len(re.findall(QUESTION, screen.terminal.text)) == 1
    assert screen.terminal.text.count("goex approve ap-0001") == 2


def test_ctrl_c_cancels_the_action(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.events = [state("prepared", "run", "running"), Fake.WAIT, finished()]
    with on_terminal("exec", "send") as screen:
        screen.terminal.expect("Running")
        os.kill(screen.terminal.pid, signal.SIGINT)
        assert screen.terminal.wait() == 130
    assert fake.cancelled == ["ac-0001"]


def test_an_ambiguous_request_offers_its_candidates(on_terminal: Callable[..., object], fake: Fake) -> None:
    unsure = finished(problem=problem("ambiguous", 5, "Two readings fit."))
    fake.scripts = [[mapped(), unsure], [finished()]]
    with on_terminal("exec", "send") as screen:
        screen.terminal.expect(r"\(1-2\) \[none\]: ")
        screen.terminal.type("2")
        assert screen.terminal.wait() == 0
    assert [request.choice for request in fake.requests] == [0, 2]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("said", ["", "3", "0", "x", "²"])
def test_no_candidate_by_default(on_terminal: Callable[..., object], fake: Fake, said: str) -> None:
    fake.scripts = [[mapped(), finished(problem=problem("ambiguous", 5))]]
    with on_terminal("exec", "send") as screen:
        screen.terminal.expect(r"\[none\]: ")
        screen.terminal.type(said)
        assert screen.terminal.wait() == 5
    assert len(fake.requests) == 1


def test_the_output_of_an_action_cant_command_the_terminal(on_terminal: Callable[..., object], fake: Fake) -> None:
    data = "héllo\n\x1b[2Jgone\u202e".encode()
    halves = [pb.Event(action_id="a", output=pb.Output(stream="stdout", data=d)) for d in (data[:2], data[2:])]
    fake.events = [*halves, finished()]
    with on_terminal("exec", "send", TERM="xterm") as screen:
        assert screen.terminal.wait() == 0
    assert "\x1b[2J" not in screen.raw
    assert "\u202e" not in screen.raw
    assert "héllo" in screen.raw
    assert "\\u{1b}[2Jgone\\u{202e}" in screen.raw


@pytest.mark.parametrize("shape", ["printf 'once\\nonce\\n' | {}", "{} </dev/null", "{} | cat"])
def test_a_terminal_behind_a_pipe_isnt_asked(env: dict[str, str], fake: Fake, shape: str) -> None:
    command = shape.format(" ".join(f"'{word}'" for word in (*GOEX, "approve", "ap-0001")))
    with Terminal(["/bin/sh", "-c", command], env=env) as terminal:
        terminal.expect("Approving needs a terminal", seconds=10)
        terminal.wait()
    assert "? more" not in terminal.text
    assert fake.decided == []


def test_a_list_is_read_on_a_narrow_terminal(on_terminal: Callable[..., object], fake: Fake) -> None:
    fake.pending[:] = [approval(agent="a-helper-with-a-long-name", lines=["word " * 30], count=2, place=1)]
    with on_terminal("approve", "--list", size=(24, 60), TERM="xterm", COLUMNS="60") as screen:
        assert screen.terminal.wait() == 0
    said = re.sub(r"\x1b\[[0-9;]*m", "", screen.raw).replace("\r", "").splitlines()
    assert max(map(len, said)) <= 60
    assert said[0].startswith("1.  ap-0001  the agent “a-helper-with-a-long-name”")
    assert said[1].startswith("    ")
    assert any(line.startswith("  ┊ word") for line in said)


def test_foreign_words_stay_behind_their_bar(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(False)
    out.console = Console(file=sys.stdout, force_terminal=True, width=40, color_system=None)
    out.barred("word " * 20 + "\nWhat it needs")
    said = capsys.readouterr().out.splitlines()
    assert len(said) > 2
    assert all(line.startswith("  ┊ " if index else "  │ ") and len(line) <= 40 for index, line in enumerate(said))


def test_a_rules_line_that_goes_on_cant_look_like_another_change(
    on_terminal: Callable[..., object], fake: Fake, env: dict[str, str]
) -> None:
    rules = Path(env["XDG_CONFIG_HOME"]) / "goex" / "rules"
    rules.mkdir(parents=True)
    rules.parent.chmod(0o700)
    text = f'@id("one") permit (principal, action, resource) when {{ "{"added two: " * 12}" == "x" }};'
    (rules / "mine.cedar").write_text(text)
    with on_terminal("rules", "apply", size=(24, 60)) as screen:
        screen.terminal.expect(r"in force\? \[y/N\] ")
        screen.terminal.type("n")
        assert screen.terminal.wait() == 3
    said = screen.raw.replace("\r", "").splitlines()
    assert [line for line in said if line.startswith("added")] == ["added one: runs without asking"]
    assert len([line for line in said if line.startswith("  ┊ ")]) > 1
