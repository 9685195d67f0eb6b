"""The terminal that other tests stand on: it waits, types, and says what it saw."""

from __future__ import annotations

import pytest

from tests.support.terminal import Terminal, TerminalError


def shell(script: str) -> Terminal:
    # A run under nohup ignores SIGHUP, and no shell can trap what was ignored when it began.
    return Terminal(["env", "--default-signal=HUP", "sh", "-c", script])


def test_it_answers_a_question_on_the_controlling_terminal() -> None:
    with shell("printf 'name? ' >/dev/tty; read name </dev/tty; echo \"hello $name\"; exit 3") as terminal:
        terminal.expect(r"name\? ")
        terminal.type("moon")
        assert terminal.expect(r"hello (\w+)").group(1) == "moon"
        assert terminal.wait() == 3


def test_what_was_expected_once_is_passed() -> None:
    with shell("echo one; echo two; echo one") as terminal:
        terminal.expect("one")
        terminal.expect("one")
        with pytest.raises(TerminalError, match="never said"):
            terminal.expect("one")


def test_colours_are_taken_out_even_when_they_come_in_pieces() -> None:
    with shell(r"printf 'a\033[3'; sleep 0.2; printf '1mb\033[0m\033]0;title\007c\n'") as terminal:
        terminal.expect("abc")


def test_silence_is_an_error_that_shows_the_screen() -> None:
    with shell("echo something else; sleep 20") as terminal, pytest.raises(TerminalError, match="something else"):
        terminal.expect("word", seconds=0.3)


def test_a_hidden_answer_is_not_on_the_screen() -> None:
    with shell("stty -echo; printf 'secret? '; read answer; stty echo; echo got ${#answer}") as terminal:
        terminal.expect(r"secret\? ")
        terminal.type("hunter")
        terminal.expect("got 6")
        terminal.wait()
        assert "hunter" not in terminal.text


def test_a_closed_window_ends_the_command() -> None:
    with shell("trap 'exit 7' HUP; echo ready; while :; do sleep 0.05; done") as terminal:
        terminal.expect("ready")
        terminal.hang_up()
        assert terminal.wait() in (7, -1)
