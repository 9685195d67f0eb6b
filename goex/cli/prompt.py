"""The terminal, and the question that a person is asked before anything runs.

The interface's rules:

* What will be sent or run is shown whole, in order, never cut, with the worst that it lets happen and how it is taken
  back; all else is behind `?`. What doesn't fit is paged, and nothing can be approved before its last page was shown.
* Foreign text stands behind a bar of its own (`│`, continued by `┊`), with all that is invisible, or could command
  the terminal, as a visible escape. It can't imitate a line of ours.
* The default is no: Enter, end of input, an answer that isn't understood three times. What was typed before the
  question appeared is thrown away.
* What a wider answer than once means is said before it counts, in words of this very request
  (`goex.cli.question_text`).
* Answers and passphrases come from the controlling terminal alone. Without one, nothing can be decided here; there
  is no option, variable or default that approves.
* Passphrases aren't echoed, and are asked for only when the daemon says that presence is due.
* What is typed at such a prompt, or after it, never reaches the shell: the input is flushed when the prompt ends, in
  whatever way, and once more when the command ends.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from goex.cli.grant_bounds import TRIES, narrow, narrow_task, narrows
from goex.cli.question_text import (
    Line,
    answers,
    answers_line,
    choices,
    describe,
    folded,
    offered,
    short,
)
from policies.display_text import escape
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client, Refused
    from goex.rpc import goex_pb2 as pb

Gone = Callable[[], str]
T = TypeVar("T")

_CODES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "warn": "\x1b[1;33m", "added": "\x1b[32m", "removed": "\x1b[31m"}
_PASSKEY_SECONDS = 300.0  # that a call waits for a passkey at most
_LEAST_WIDTH = 30
_UNKNOWN_ANSWER = "That isn't one of the answers; ? shows what each means."
_HOW_TO_NARROW = "To narrow a task write like: y 2=1 3=0 10m."
_LATE_SECONDS = 60.0  # that a prompt stays which came to nothing while somebody may have been typing
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Verdict(Enum):
    """What the person did with one approval."""

    APPROVED = "approved"
    DENIED = "denied"
    LATER = "later"  # nothing was decided
    GONE = "gone"  # it was settled elsewhere, or ran out, while the question stood


EXPIRED = "The time to answer is over; no answer denies."


def settled_words(state: str) -> str:
    """How a question ended that somebody is being asked, by its state."""
    if state == "expired":
        return EXPIRED
    return "The request was withdrawn." if state == "withdrawn" else f"It was settled elsewhere: {state}."


class NotPresent(Denied):
    """The approval passphrase wasn't typed, or was wrong each time."""


class TooLate(Denied):
    """What a secret was asked for is over, while it was being typed."""


class Terminal:
    """The controlling terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._plain = "NO_COLOR" in os.environ or os.environ.get("TERM", "dumb") == "dumb"

    @classmethod
    def find(cls) -> Terminal | None:
        """The terminal, when stdin and stdout are one and the process has one. Otherwise None."""
        return cls.controlling() if sys.stdin.isatty() and sys.stdout.isatty() else None

    @classmethod
    def controlling(cls) -> Terminal | None:
        """The controlling terminal, whatever stdin and stdout are: for passphrases. None without one."""
        try:
            fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        return cls(fd)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            found = os.get_terminal_size(self._fd)
        except OSError:
            return 80, 24
        return max(found.columns or 80, _LEAST_WIDTH), max(found.lines or 24, 5)

    def write(self, line: Line, end: str = "\n") -> None:
        code = "" if self._plain else _CODES.get(line.style, "")
        text = f"{code}{line.text}\x1b[0m{end}" if code else line.text + end
        data = text.encode(sys.stdout.encoding or "ascii", "backslashreplace")
        while data:
            data = data[os.write(self._fd, data) :]

    def show(self, lines: Sequence[Line]) -> bool:
        """Show all lines, a page at a time where they don't fit. False when the person left before the end."""
        page = self.size[1] - 2
        for index, line in enumerate(lines):
            if index and len(lines) > page and index % page == 0:
                answer = self.ask(f"-- {index} of {len(lines)} lines; Enter shows more, q leaves it undecided: ")
                if answer is None or answer.lower().startswith("q"):
                    return False
            self.write(line)
        return True

    def ask(self, question: str, gone: Gone | None = None) -> str | None:
        """One line of answer, stripped. None at end of input, or as soon as `gone()` gives a reason."""
        termios.tcflush(self._fd, termios.TCIFLUSH)
        self.write(Line(question, "bold"), end="")
        while not select.select([self._fd], [], [], 0.2)[0]:
            if gone is not None and gone():
                self.write(Line(""))
                return None
        data = os.read(self._fd, 4096)
        if not data:
            self.write(Line(""))
            return None
        return data.decode("utf-8", "replace").strip()

    def agrees(self, question: str, *, default: bool = False, hint: str = "Answer yes or no.") -> bool:
        """Whether the answer is a yes; Enter is `default`. What is neither yes nor no is asked again, after `hint`;
        three of these, like end of input, are a no."""
        for _ in range(TRIES):
            said = self.ask(question)
            if said is None:
                return False
            if said.lower() in ("", "y", "yes", "n", "no"):
                return said.lower() in ("y", "yes") or (not said and default)
            self.write(Line(hint, "warn"))
        return False

    def agrees_to(self, lines: Iterable[Line], question: str) -> bool:
        """Show these lines of ours folded and to their end, whatever else is printed where, and ask."""
        return self.show(list(folded(lines, self.size[0]))) and self.agrees(question)

    def secret(self, question: str, gone: Gone = lambda: "") -> str:
        """A line that isn't echoed, without its newline. Raises InvalidInput at end of input, TooLate as soon as
        `gone()` gives a reason and what was being typed has been read."""
        _flush_at_exit(self._fd)
        prompt = Line(question, "bold")
        with self._quiet(prompt):
            self.write(prompt, end="")
            data, late, until = b"", "", 0.0
            while not data.endswith(b"\n"):
                while not select.select([self._fd], [], [], 0.2)[0]:
                    if late and time.monotonic() > until:
                        raise TooLate(late)
                    if not late and (late := gone()):
                        # Whoever is typing would type the rest into the shell.
                        self.write(Line(""))
                        self.write(Line(f"{escape(late)} Press Enter; what you typed isn't used.", "warn"))
                        until = time.monotonic() + _LATE_SECONDS
                piece = os.read(self._fd, 4096)
                if not piece:
                    break
                data += piece
            self.write(Line(""))
            if late:
                raise TooLate(late)
        if not data:
            raise InvalidInput("Nothing was typed.", next_step="Run it again.")
        try:
            return data.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput("What was typed isn't UTF-8.", next_step="Set the terminal to UTF-8.") from None

    @contextmanager
    def _quiet(self, prompt: Line) -> Iterator[None]:
        """Without echo; the terminal is as it was, and its input empty, however this ends: a signal too, and while the
        process is stopped (Ctrl-Z)."""
        before = termios.tcgetattr(self._fd)
        quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]

        def end(number: int, _: object) -> None:
            raise SystemExit(128 + number)

        def stop(*_: object) -> None:
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, before)
            os.kill(os.getpid(), signal.SIGSTOP)
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, quiet)
            self.write(prompt, end="")

        with handling({**dict.fromkeys(_ENDING, end), signal.SIGTSTP: stop}):
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, quiet)
            try:
                yield
            finally:
                with suppress(termios.error):  # the terminal is gone
                    termios.tcsetattr(self._fd, termios.TCSAFLUSH, before)


@contextmanager
def handling(handlers: Mapping[signal.Signals, Callable[[int, object], None] | signal.Handlers]) -> Iterator[None]:
    """These signals are handled so for a while. Nothing in another thread than the main one, which alone can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


_flushed: set[int] = set()


def _flush_at_exit(fd: int) -> None:
    """What is typed between a prompt and the end of the command is thrown away at that end: it may be a secret."""

    def flush() -> None:
        with suppress(OSError, ValueError, termios.error):
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else a command in the background would stop here
            termios.tcflush(fd, termios.TCIFLUSH)

    if fd not in _flushed:
        _flushed.add(fd)
        atexit.register(flush)


def decide(terminal: Terminal, client: Client, approval: pb.Approval, gone: Gone = lambda: "") -> Verdict:
    """Show one approval, ask, and tell the daemon. `gone()` says why the question is no longer open ("": it is).

    Raises GoexError when the daemon refuses the decision.
    """
    from goex.rpc import goex_pb2 as pb

    if not terminal.show(short(approval, terminal.size[0], datetime.now(UTC))):
        return Verdict.LATER
    request = pb.DecideRequest(approval_id=approval.id, digest=approval.digest)
    answer = _answer(terminal, approval, gone)
    reason = gone()
    if reason:
        terminal.write(Line(escape(reason), "warn"))
        return Verdict.GONE
    if answer == "later":
        return Verdict.LATER
    if answer.startswith("once "):
        answer, _, rest = answer.partition(" ")
        narrow_task(rest, request)
    if answer in offered(approval):
        request.approve, request.width = True, answer
        if answer != "once" and not narrow(terminal, approval, request):
            return Verdict.LATER
        try:
            with_presence(
                lambda passphrase: _send(client, request, passphrase),
                terminal,
                gone,
                lambda place: _send_signed(client, request, place, gone),
            )
        except TooLate:  # which was said on the terminal
            return Verdict.GONE
        return Verdict.APPROVED
    request.reason = answer.removeprefix("no").strip()
    request.same_as.extend(approval.same_as)
    client.decide(request)
    return Verdict.DENIED


def with_presence(
    call: Callable[[str], T],
    terminal: Terminal | None = None,
    gone: Gone = lambda: "",
    signed: Callable[[Terminal], T] | None = None,
) -> T:
    """`call("")`; when the daemon wants to see that the person is there, again with the approval passphrase, or where
    passkeys are required, after one confirmed it. `signed` makes a call that holds a security key's own assertion.

    The passphrase comes from the controlling terminal alone. Raises Denied without one, NotPresent after three wrong
    ones; TooLate when `gone()` says why it isn't asked for any more.
    """
    from goex.cli.security_key import plugged_in
    from goex.client import Refused

    passphrase = ""
    for attempt in range(TRIES + 1):
        try:
            return call(passphrase)
        except Refused as refused:
            if refused.code == "passkey":
                terminal = terminal or Terminal.controlling()
                if signed is not None and terminal is not None and plugged_in():
                    return signed(terminal)
                if refused.details:
                    return _confirmed(call, refused, terminal, gone)
            if refused.code != "presence":
                raise
            if attempt and passphrase:
                _note(terminal, escape(refused.message))
        if attempt == TRIES:
            break
        terminal = terminal or Terminal.controlling()
        if terminal is None:
            raise Denied(
                "This needs your approval passphrase, and there is no terminal to ask for it.",
                next_step="Run the same command in a terminal of your own.",
            )
        passphrase = terminal.secret("Approval passphrase: ", gone)
        if not passphrase:
            break
    why = f"The approval passphrase was wrong {TRIES} times" if passphrase else "Without the approval passphrase"
    raise NotPresent(f"{why}: nothing was changed.", next_step="Run it again when you have it.")


def _confirmed(call: Callable[[str], T], refused: Refused, terminal: Terminal | None, gone: Gone) -> T:
    """`call("")` once a passkey confirmed it: a security key that is plugged in, or on the page, which is waited for at
    a terminal. Raises Refused."""
    from goex.cli.security_key import plugged_in

    if terminal is None:
        raise refused
    if plugged_in():
        _confirm_by_key(refused, terminal, gone)
        return call("")
    _note(terminal, escape(f"{refused.message} Confirm it on the page (goex web); this waits. Ctrl-C ends it."))
    deadline = time.monotonic() + _PASSKEY_SECONDS
    while time.monotonic() < deadline and not gone():
        time.sleep(1.0)
        try:
            return call("")
        except type(refused) as again:
            if again.code != "passkey":
                raise
    raise refused


class _AtTerminal:
    """The person, as a security key asks them."""

    def __init__(self, terminal: Terminal, gone: Gone) -> None:
        self._terminal, self._gone = terminal, gone

    def tell(self, text: str) -> None:
        self._terminal.write(Line(text))

    def secret(self, prompt: str) -> str:
        return self._terminal.secret(prompt, self._gone)


def _confirm_by_key(refused: Refused, terminal: Terminal, gone: Gone) -> None:
    from goex.cli.connect import connect
    from goex.cli.output import Output
    from goex.cli.security_key import sign
    from goex.rpc import goex_pb2 as pb
    from goex.rpc import passkeys_pb2 as ppb

    _note(terminal, escape(refused.message))
    with connect(Output(as_json=False), start=False) as client:
        assertion = sign(client, ppb.ChallengeRequest(presence=refused.details[0]), _AtTerminal(terminal, gone))
        client.call("Person/Present", pb.PresentRequest(assertion_json=assertion), pb.PresentReply)


def _send_signed(client: Client, request: pb.DecideRequest, terminal: Terminal, gone: Gone) -> pb.Approval:
    from goex.cli.security_key import sign
    from goex.rpc import passkeys_pb2 as ppb

    request.ClearField("passphrase")
    request.assertion_json = sign(client, ppb.ChallengeRequest(decide=request), _AtTerminal(terminal, gone))
    return client.decide(request)


def _note(terminal: Terminal | None, text: str) -> None:
    if terminal is not None:
        terminal.write(Line(text, "warn"))


def _send(client: Client, request: pb.DecideRequest, passphrase: str) -> pb.Approval:
    request.passphrase = passphrase
    return client.decide(request)


def _answer(terminal: Terminal, approval: pb.Approval, gone: Gone) -> str:
    """One of the offered widths, "later", or "no" with a reason. Asking for more shows all of it, and asks again."""
    able = answers(approval)
    wrong = 0
    while wrong < TRIES:
        said = terminal.ask(answers_line(approval, datetime.now(UTC)), gone)
        if said is None or not said:
            return "no"
        word, _, rest = said.partition(" ")
        meant = able.get(word.lower(), "")
        if meant == "no":
            return f"no {rest.strip()}".strip()
        if meant == "more" and not rest:
            width = terminal.size[0]
            terminal.show([*describe(approval, width, datetime.now(UTC)), *choices(approval, width)])
        elif meant and not rest:
            return meant
        elif meant == "once" and approval.kind == "task" and narrows(rest):
            return f"once {rest}"
        else:
            wrong += 1
            task = meant == "once" and approval.kind == "task"
            terminal.write(Line(_HOW_TO_NARROW if task else _UNKNOWN_ANSWER, "warn"))
    return "no"
