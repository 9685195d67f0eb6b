"""The screen under a pilot: what stands on it, and which keys do what."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets import Button

from goex.cli.screen.widgets import Text
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.fake import PASSPHRASE, serve
from tests.goex.cli.screen.support import Daemon, screen

HOSTILE = "\x1b[31mred\x1b]8;;http://evil\x07[bold]b[/bold][link=x]\u202eevil\u200b\r\n[@click=app.exit]"
LONG = [f"line {number}" for number in range(200)]


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "user.sock"


@pytest.fixture
def daemon(socket: Path) -> Iterator[Daemon]:
    made = Daemon()
    server = serve(socket, made)
    yield made
    made.hang_up()
    server.stop(0).wait()


async def test_the_whole_plan_stands_beside_the_queue(daemon: Daemon, socket: Path) -> None:
    daemon.ask(id="ap-0002", agent="other", risk="delete", lines=["rm -rf"], count=3, same_as=["x", "y"])
    async with screen(socket, size=(120, 40)) as seen:
        await seen.until("Answer within")
        said = seen.text
        for words in (
            "2 wait for you",
            "▶",
            "helper",
            "×3",
            "What will run",
            "slack.chat.postMessage",
            "Taking it back",
        ):
            assert words in said
        await seen.press("down")
        await seen.until("rm -rf")
        await seen.until("3 identical")


async def test_once_is_asked_again_in_words_and_then_told(daemon: Daemon, socket: Path) -> None:
    daemon.pending[0].choices.append(pb.WidthView(name="once", words=["This very call, one time."]))
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.moment()
        await seen.press("o")
        await seen.until("This very call, one time.")
        assert daemon.decided == []
        await seen.moment()
        await seen.press("y")
        await seen.until("allowed this once")
    decided = daemon.decided[0]
    assert (decided.approve, decided.width, decided.digest) == (True, "once", "d" * 64)


@pytest.mark.promise(27)
@pytest.mark.parametrize("keys", [("enter",), ("escape",), ("n",), ("x",), ("o",), ("space",)])
async def test_whatever_else_is_pressed_in_the_dialog_allows_nothing(
    daemon: Daemon, socket: Path, keys: tuple[str, ...]
) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("o")
        await seen.moment()
        await seen.press(*keys)
        await seen.moment()
    assert daemon.decided == []


async def test_a_dialog_too_must_have_stood_for_a_moment(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.moment()
        await seen.press("o", "y")
        await seen.until("only just appeared")
        assert daemon.decided == []
        await seen.moment()
        await seen.press("y")
        await seen.until(lambda: bool(daemon.decided))


async def test_keys_that_were_pressed_before_it_stood_there_count_for_nothing(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.press("o", "y", "d", "enter")
        await seen.moment()
        assert daemon.decided == []


@pytest.mark.promise(27)
async def test_what_does_not_fit_is_allowed_only_after_its_end_was_there(daemon: Daemon, socket: Path) -> None:
    daemon.pending.clear()
    daemon.ask(lines=LONG)
    async with screen(socket, size=(80, 24)) as seen:
        await seen.until("line 3")
        await seen.moment()
        await seen.press("o")
        await seen.until("Read it to its end first")
        for _ in range(3):
            await seen.press("space")
        await seen.press("o")
        assert "Allow it" not in seen.text
        for _ in range(20):
            await seen.press("pagedown")
        await seen.until("Approval")
        await seen.press("o")
        await seen.until("Allow it this once?")
    assert daemon.decided == []


async def test_every_line_of_it_is_on_the_screen_on_the_way(daemon: Daemon, socket: Path) -> None:
    daemon.pending.clear()
    daemon.ask(lines=[*LONG, "Q" * 300])
    async with screen(socket, size=(80, 24)) as seen:
        await seen.until("line 3")
        all_seen = set()
        for _ in range(30):
            for line in seen.text.splitlines():
                all_seen.add(line.partition("│ ")[2].strip(" │┊▅▄▃▂▁▆▇█"))
            await seen.press("pagedown")
        assert {f"line {number}" for number in range(200)} <= all_seen
        text = seen.app.query_one("#plan", Text)
        assert max(len(line.text) for line in text._lines) <= text.scrollable_content_region.width
        assert sum(line.text.count("Q") for line in text._lines) == 300


async def test_wider_grants_are_said_in_the_daemons_words(daemon: Daemon, socket: Path) -> None:
    shown = daemon.pending[0]
    del shown.widths[:]
    shown.widths.extend(["once", "session", "arguments", "permanent"])
    for name in shown.widths:
        words = [f"words of {name} {HOSTILE}"]
        shown.choices.append(pb.WidthView(name=name, words=words, warning=f"beware of {name}"))
    async with screen(socket) as seen:
        await seen.until("Approval")
        for key, name in (("s", "session"), ("g", "arguments"), ("a", "permanent")):
            await seen.moment()
            await seen.press(key)
            await seen.until(f"words of {name}")
            assert f"beware of {name}" in seen.text
            assert "\x1b" not in seen.text and "\\u{1b}[31mred" in seen.text
            await seen.press("escape")
        await seen.moment()
        await seen.press("g")
        await seen.moment()
        seen.app.screen.query_one("#ends").value = "7d"  # type: ignore[attr-defined]
        await seen.press("y")
        await seen.until(lambda: bool(daemon.decided))
    assert (daemon.decided[0].width, daemon.decided[0].expires_seconds) == ("arguments", 7 * 86_400)


async def test_a_time_that_is_none_decides_nothing(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("s")
        await seen.moment()
        for typed in ("0h", "7", "x", "12345h", "٣h"):
            seen.app.screen.query_one("#ends").value = typed  # type: ignore[attr-defined]
            await seen.press("y")
            await seen.until("isn't a time")
    assert daemon.decided == []


async def test_a_width_that_is_not_offered_is_no_key(daemon: Daemon, socket: Path) -> None:
    del daemon.pending[0].widths[:]
    daemon.pending[0].widths.append("once")
    async with screen(socket) as seen:
        await seen.moment()
        for key in ("s", "g", "a"):
            await seen.press(key)
            await seen.until("It can't be allowed")
        assert not seen.app.query_one("#allow-permanent", Button).display
    assert daemon.decided == []


async def test_deny_carries_the_reason_and_the_twins(daemon: Daemon, socket: Path) -> None:
    daemon.pending[0].same_as.append("ap-7")
    daemon.pending[0].count = 2
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("d")
        await seen.until("Deny it? All 2 identical ones are denied.")
        await seen.press(*"oddly quick", "enter")
        await seen.until("denied.")
    decided = daemon.decided[0]
    assert (decided.approve, decided.reason, list(decided.same_as)) == (False, "oddly quick", ["ap-7"])


async def test_what_is_pasted_presses_no_keys(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.moment()
        seen.app.post_message(events.Paste("oyd\r\n"))
        await seen.moment()
        assert "Allow it" not in seen.text and "Deny it" not in seen.text
    assert daemon.decided == []


async def test_a_defect_of_the_screen_shows_no_values(
    daemon: Daemon, socket: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        canary = "canary"
        print(len(canary) // 0)

    with pytest.raises(ZeroDivisionError):
        async with screen(socket) as seen:
            seen.app._tell(broken)
            await seen.moment()
    said = "".join(capsys.readouterr())
    assert "Internal error; the screen was closed." in said
    assert "canary" not in said and "Traceback" not in said


async def test_deny_can_be_left(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("d", "o", "y", "escape")
        await seen.until("Nothing was decided.")
    assert daemon.decided == []


async def test_buttons_do_what_their_keys_do(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.moment()
        await seen.pilot.click("#allow-once")
        await seen.until("Allow it this once?")
        await seen.moment()
        await seen.pilot.click("#yes")
        await seen.until(lambda: bool(daemon.decided))


async def test_presence_is_asked_for_when_the_daemon_wants_it(daemon: Daemon, socket: Path) -> None:
    daemon.presence = True
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("o")
        await seen.moment()
        await seen.press("y")
        await seen.until("allowed this once")
    assert daemon.decided[0].passphrase == PASSPHRASE


async def test_nothing_that_arrives_moves_the_selection(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        daemon.ask(id="ap-0000", place=1, lines=["something else"])
        daemon.ask(id="ap-0009", place=2)
        await seen.until("3 wait for you")
        assert seen.app.board.selected == "ap-0001"
        assert "something else" not in seen.text.partition("│  Plan")[2].partition("\n")[0]


async def test_another_text_under_the_same_id_is_shown_and_must_be_read_anew(daemon: Daemon, socket: Path) -> None:
    async with screen(socket, size=(80, 24)) as seen:
        await seen.until("What will run")
        await seen.press("end")
        await seen.moment()
        daemon.pending[0].digest = "e" * 64
        del daemon.pending[0].lines[:]
        daemon.pending[0].lines.extend(["another thing", *LONG])
        seen.app.board.fetched(daemon.pending[0])
        seen.app._draw()
        await seen.until("another thing")
        await seen.moment()
        await seen.press("o")
        await seen.until("Read it to its end first")
    assert daemon.decided == []


async def test_twins_that_come_are_counted_where_one_reads(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.until("What will run")
        daemon.pending[0].count = 2
        daemon.pending[0].same_as.append("ap-9")
        daemon._tell(daemon.pending[0])
        await seen.until("2 times: 1 identical ones wait")
        await seen.until("2 identical")


async def test_what_is_settled_elsewhere_vanishes_with_a_word(daemon: Daemon, socket: Path) -> None:
    daemon.ask(id="ap-0002", lines=["the other"])
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("o")
        await seen.until("Allow it this once?")
        daemon.settle("ap-0001", "approved", "the desk \x1b[31m")
        await seen.until("ap-0001: allowed by the desk")
        assert "Allow it" not in seen.text
        assert seen.app.board.selected == ""
        await seen.press("o", "y", "s", "d")
        await seen.moment()
        await seen.press("o", "y", "d")
        assert daemon.decided == []
        await seen.press("down")
        await seen.until("the other")


async def test_a_daemon_that_went_away_comes_back(daemon: Daemon, socket: Path) -> None:
    daemon.ask(id="ap-0002")
    there = threading.Event()
    async with screen(socket, back=there.is_set) as seen:
        await seen.moment()
        daemon.hang_up()
        await seen.until("the daemon is away")
        await seen.press("o", "d")
        await seen.until("nothing can be decided")
        daemon.pending.pop(0)
        there.set()
        await seen.until("1 ended while the daemon was away")
        assert seen.app.board.connected
        assert seen.app.board.selected == ""
    assert daemon.decided == []


async def test_time_runs_out_on_the_screen(daemon: Daemon, socket: Path) -> None:
    daemon.pending[0].deadline = "2020-01-01T00:00:00+00:00"
    async with screen(socket) as seen:
        await seen.until("0:00 left")
        await seen.moment()
        await seen.press("o")
        await seen.until("Its time has run out")
    assert daemon.decided == []


async def test_a_refusal_of_the_daemon_is_said(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        daemon.pending.clear()  # somebody was first, and the word of it is on its way
        await seen.press("o")
        await seen.moment()
        await seen.press("y")
        await seen.until("was settled already")


# ---- dry runs


async def test_a_dry_run_is_shown_with_its_progress(daemon: Daemon, socket: Path) -> None:
    daemon.dry_goes.clear()
    lines = [("change", "changed a"), ("hunk", "@@ -1 +1 @@"), ("removed", "old"), ("added", "new"), ("warning", "cut")]
    done = pb.DryRunReply(summary="1 changed.", lines=[pb.DryLine(kind=kind, text=text) for kind, text in lines])
    daemon.dry[-1].done.CopyFrom(done)
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.press("y")
        await seen.until("Running the program on the copy…")
        daemon.dry_goes.set()
        await seen.until("• changed a")
        assert "  - │ old" in seen.text and "  + │ new" in seen.text
        assert daemon.dry_asked[0].question == pb.DryRunQuestion(approval_id="ap-0001", digest="d" * 64)
        await seen.moment()
        await seen.press("o")
        await seen.until("Go back to the plan first")
        await seen.press("p")
        await seen.until("What will run")
        await seen.press("y")
        await seen.until("• changed a")
    assert len(daemon.dry_asked) == 1
    assert daemon.decided == []


async def test_leaving_ends_a_dry_run_that_is_under_way(daemon: Daemon, socket: Path) -> None:
    daemon.dry_goes.clear()
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.press("y")
        await seen.until("Running the program on the copy…")
        await seen.press("q")
    assert await asyncio.to_thread(daemon.dry_ended.wait, 10)


async def test_a_dry_run_that_fails_says_why(daemon: Daemon, socket: Path) -> None:
    daemon.dry.clear()
    async with screen(socket) as seen:
        await seen.until("Approval")
        await seen.press("y")
        await seen.until("There is no dry run: The daemon ended the dry run")


# ---- hostile text


def everywhere(shown: pb.Approval, text: str) -> None:
    """`text` in every field that holds words."""
    for field in shown.DESCRIPTOR.fields:
        if field.name in ("id", "state", "widths", "digest", "deadline", "undo_class", "choices", "needs", "kind"):
            continue
        if field.type == field.TYPE_STRING:
            value: Any = [text] if field.is_repeated else text
            if field.is_repeated:
                del getattr(shown, field.name)[:]
                getattr(shown, field.name).extend(value)
            else:
                setattr(shown, field.name, value)
    for need in shown.needs:
        for field in need.DESCRIPTOR.fields:
            if field.type == field.TYPE_STRING:
                if field.is_repeated:
                    getattr(need, field.name).append(text)
                else:
                    setattr(need, field.name, text)


@pytest.mark.promise(26)
async def test_hostile_text_in_every_field_is_only_text(daemon: Daemon, socket: Path) -> None:
    shown = daemon.pending[0]
    everywhere(shown, HOSTILE)
    del shown.same_as[:]
    daemon.dry[0].progress = HOSTILE
    daemon.dry[-1].done.CopyFrom(pb.DryRunReply(summary=HOSTILE, lines=[pb.DryLine(kind=HOSTILE, text=HOSTILE)]))
    daemon.dry[-1].done.lines.add(kind="added", text=HOSTILE)
    daemon.dry_goes.clear()

    def harmless() -> None:
        text = seen.text
        assert not any(ord(char) < 32 and char != "\n" for char in text), repr(text)
        assert not set("\u202e\u200b\u2066") & set(text)
        for strip in seen.app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                assert style is None or style.link is None
                assert style is None or "@click" not in (style.meta or {}) or "app.exit" not in str(style.meta)

    async with screen(socket, size=(140, 90)) as seen:
        await seen.until("[bold]b[/bold]")
        harmless()
        await seen.press("y")
        await seen.until("Dry run")
        harmless()
        daemon.dry_goes.set()
        await seen.until("  + │")
        harmless()
        await seen.press("p")
        await seen.moment()
        await seen.press("d")
        harmless()
        await seen.press("escape")
        daemon.settle("ap-0001", HOSTILE, HOSTILE)
        await seen.until("settled elsewhere")
        harmless()


@pytest.mark.promise(26)
@pytest.mark.parametrize("field", ["agent", "risk", "lines", "intent"])
async def test_hostile_text_in_the_queue_is_only_text(daemon: Daemon, socket: Path, field: str) -> None:
    shown = daemon.pending[0]
    if field == "lines":
        del shown.lines[:]
        shown.lines.append("\u202e" + HOSTILE)
    else:
        setattr(shown, field, "\u202e" + HOSTILE)
    if field == "intent":
        del shown.lines[:]
    async with screen(socket, size=(160, 40)) as seen:
        await seen.until("\\u{202e}\\u{1b}")
        assert not set("\u202e\x1b\x07\r") & set(seen.text)


# ---- the terminal


async def test_at_80_by_24_all_keys_can_be_read(daemon: Daemon, socket: Path) -> None:
    del daemon.pending[0].widths[:]
    daemon.pending[0].widths.extend(["once", "session", "arguments", "permanent"])
    async with screen(socket, size=(80, 24)) as seen:
        await seen.until("Who asks")
        for label in ("o Once", "s Session", "g Same", "a Always", "d Deny", "y Dry run", "q Quit"):
            assert label in seen.text


@pytest.mark.parametrize("size", [(59, 40), (80, 15), (20, 5)])
async def test_too_small_says_so_and_decides_nothing(daemon: Daemon, socket: Path, size: tuple[int, int]) -> None:
    async with screen(socket, size=size) as seen:
        await seen.until("too small")
        await seen.moment()
        await seen.press("o", "d", "y", "enter")
        await seen.moment()
        assert daemon.decided == [] and daemon.dry_asked == []
        await seen.pilot.resize_terminal(100, 40)
        await seen.until("Who asks")


async def test_shrinking_closes_a_dialog(daemon: Daemon, socket: Path) -> None:
    async with screen(socket) as seen:
        await seen.moment()
        await seen.press("o")
        await seen.until("Allow it this once?")
        await seen.pilot.resize_terminal(40, 10)
        await seen.until("too small")
        await seen.moment()
        await seen.press("y")
        await seen.moment()
    assert daemon.decided == []


async def test_without_colour_the_same_is_said(daemon: Daemon, socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    daemon.dry[-1].done.CopyFrom(pb.DryRunReply(summary="s", lines=[pb.DryLine(kind="added", text="new")]))
    async with screen(socket) as seen:
        await seen.until("▶")
        await seen.press("y")
        await seen.until("  + │ new")
        colours = {
            segment.style.color.name
            for strip in seen.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.style.color is not None
        }
        assert not colours & {"green", "red", "yellow"} or seen.app.no_color


async def test_a_thousand_questions_are_one_screen(daemon: Daemon, socket: Path) -> None:
    for number in range(1000):
        daemon.pending.append(pb.Approval(id=f"ap-1{number:04}", agent="busy", state="pending"))
    async with screen(socket) as seen:
        await seen.until("1001 wait for you")
        for _ in range(30):
            await seen.press("down")
        await seen.until("▶")
