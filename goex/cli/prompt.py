"""The terminal, and the question that a person is asked before anything runs.

The interface's rules:

* Everything that is approved is shown: whole, in order, never cut. What doesn't fit is paged, and nothing can be
  approved before its last page was shown.
* Foreign text stands behind a bar of its own (`│`, continued by `┊`), with all that is invisible, or could command
  the terminal, as a visible escape. It can't imitate a line of ours.
* The default is no: Enter, end of input, an answer that isn't understood three times. What was typed before the
  question appeared is thrown away.
* What a choice means is said before it is made; standing grants are bound to these arguments unless the person
  loosens them.
* Answers and passphrases come from the controlling terminal alone. Without one, nothing can be decided here; there
  is no option, variable or default that approves.
* Passphrases aren't echoed, and are asked for only when the daemon says that presence is due.
"""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeVar

from policies.errors import Denied, InvalidInput
from policies.text import escape

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import goex_pb2 as pb

Style = Literal["", "bold", "dim", "warn"]
Gone = Callable[[], str]
T = TypeVar("T")

_CODES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "warn": "\x1b[1;33m"}
_TRIES = 3
_LEAST_WIDTH = 30

UNDO_WORDS = {
    "exact": "Undo restores the earlier state exactly.",
    "compensating": "Undo makes up for it, and traces may remain.",
    "irreversible": "THIS CAN'T BE TAKEN BACK.",
    "nothing": "There is nothing to take back: it only reads.",
}
WIDTH_WORDS = {
    "once": "this very action, a single time; whatever differs from it is asked for again",
    "session": "every such call by this agent until its session ends (it leaves, 30 idle minutes, or 8 hours)",
    "permanent": "every such call by this agent until the grant expires or you revoke it (goex revoke)",
}
# The same, where the person is the one who asks.
YOURS = {
    **WIDTH_WORDS,
    "session": "every such call of yours from this terminal, until 30 idle minutes or 8 hours have passed",
    "permanent": "every such call of yours until the grant expires or you revoke it (goex revoke)",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line for the terminal. `text` is fit to be shown: escaped, and no wider than the screen."""

    text: str
    style: Style = ""


class Verdict(Enum):
    """What the person did with one approval."""

    APPROVED = "approved"
    DENIED = "denied"
    LATER = "later"  # nothing was decided
    GONE = "gone"  # it was settled elsewhere, or ran out, while the question stood


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

    def secret(self, question: str) -> str:
        """A line that isn't echoed, without its newline. Raises InvalidInput at end of input."""
        with self._quiet():
            termios.tcflush(self._fd, termios.TCIFLUSH)
            self.write(Line(question, "bold"), end="")
            data = b""
            while not data.endswith(b"\n"):
                piece = os.read(self._fd, 4096)
                if not piece:
                    break
                data += piece
            self.write(Line(""))
        if not data:
            raise InvalidInput("Nothing was typed.", next_step="Run it again.")
        try:
            return data.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput("What was typed isn't UTF-8.", next_step="Set the terminal to UTF-8.") from None

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        before = termios.tcgetattr(self._fd)
        quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, before)


def describe(approval: pb.Approval, width: int, now: datetime) -> list[Line]:
    """Everything that an approval stands for, folded to `width` columns. Pure."""
    lines = [Line("─" * width, "dim"), *_label("Who asks", _who(approval), width)]
    if approval.source:
        lines += _label("Seen as", approval.source, width)
    if approval.intent:
        lines += _label("In words", approval.intent, width)
    lines += [Line(""), Line("What will run", "bold")]
    if not approval.lines:
        lines += _words("  The daemon didn't say. Don't approve this.", width, "warn")
    for text in approval.lines:
        lines += _block(text, width)
    lines += [Line(""), Line("What it needs", "bold")]
    if not approval.needs:
        lines += _words("  Nothing that is named. Don't approve this.", width, "warn")
    for need in approval.needs:
        lines += _need(need, width)
    irreversible = approval.undo_class not in ("exact", "compensating", "nothing")
    lines += [Line(""), Line("Taking it back", "bold")]
    undo = UNDO_WORDS["irreversible" if irreversible else approval.undo_class]
    lines += _words("  " + undo, width, "warn" if irreversible else "")
    if approval.undo_text:
        lines += _block(approval.undo_text, width)
    lines.append(Line(""))
    if approval.reason:
        lines += _label("Asked because", approval.reason, width)
    lines += _label("Risk", approval.risk or "unknown: counts as delete", width)
    lines += _label("Answer within", _left(approval.deadline, now), width)
    lines += _label("Approval", f"{approval.id} of action {approval.action_id}", width)
    return lines


def choices(approval: pb.Approval, width: int) -> list[Line]:
    """What can be answered, each in words."""
    lines = [Line(""), Line("You can answer", "bold")]
    for name in offered(approval):
        lines += _choice(name, (YOURS if approval.agent == "person" else WIDTH_WORDS)[name], width)
    lines += _choice("no", "don't run it (Enter is no; words after it tell the agent why)", width)
    lines += _choice("later", "leave it open for now", width)
    if approval.presence:
        lines += _words("  Allowing it may ask for your approval passphrase.", width, "dim")
    return lines


def offered(approval: pb.Approval) -> list[str]:
    """The widths that the daemon offers and that we can describe."""
    return [width for width in approval.widths if width in WIDTH_WORDS]


def decide(terminal: Terminal, client: Client, approval: pb.Approval, gone: Gone = lambda: "") -> Verdict:
    """Show one approval, ask, and tell the daemon. `gone()` says why the question is no longer open ("": it is).

    Raises GoexError when the daemon refuses the decision.
    """
    from goex.rpc import goex_pb2 as pb

    width = terminal.size[0]
    if not terminal.show(describe(approval, width, datetime.now(UTC))):
        return Verdict.LATER
    for line in choices(approval, width):
        terminal.write(line)
    request = pb.DecideRequest(approval_id=approval.id, digest=approval.digest)
    answer = _answer(terminal, approval, gone)
    reason = gone()
    if reason:
        terminal.write(Line(escape(reason), "warn"))
        return Verdict.GONE
    if answer == "later":
        return Verdict.LATER
    if answer in offered(approval):
        request.approve, request.width = True, answer
        if answer != "once" and not _narrow(terminal, approval, request):
            return Verdict.LATER
        with_presence(lambda passphrase: _send(client, request, passphrase), terminal)
        return Verdict.APPROVED
    request.reason = answer.removeprefix("no").strip()
    client.decide(request)
    return Verdict.DENIED


def with_presence(call: Callable[[str], T], terminal: Terminal | None = None) -> T:
    """`call("")`; when the daemon wants to see that the person is there, again with the approval passphrase.

    The passphrase comes from the controlling terminal alone. Raises Denied without one, or after three wrong ones.
    """
    from goex.client import Refused

    passphrase = ""
    for attempt in range(_TRIES + 1):
        try:
            return call(passphrase)
        except Refused as refused:
            if refused.code != "presence":
                raise
            if attempt and passphrase:
                _note(terminal, escape(refused.message))
        if attempt == _TRIES:
            break
        terminal = terminal or Terminal.controlling()
        if terminal is None:
            raise Denied(
                "This needs your approval passphrase, and there is no terminal to ask for it.",
                next_step="Run the same command in a terminal of your own.",
            )
        passphrase = terminal.secret("Approval passphrase: ")
        if not passphrase:
            break
    raise Denied("Without the approval passphrase nothing was changed.", next_step="Try again when you have it.")


def _note(terminal: Terminal | None, text: str) -> None:
    if terminal is not None:
        terminal.write(Line(text, "warn"))


def _send(client: Client, request: pb.DecideRequest, passphrase: str) -> pb.Approval:
    request.passphrase = passphrase
    return client.decide(request)


def _answer(terminal: Terminal, approval: pb.Approval, gone: Gone) -> str:
    """One of the offered widths, "later", or "no" with a reason."""
    widths = offered(approval)
    for _ in range(_TRIES):
        said = terminal.ask(f"Your answer ({', '.join([*widths, 'no', 'later'])}) [no]: ", gone)
        if said is None or not said:
            return "no"
        word, _, rest = said.partition(" ")
        word = word.lower()
        if word in ("no", "n"):
            return f"no {rest.strip()}".strip()
        if not rest and word in (*widths, "later"):
            return word
        terminal.write(Line("That isn't one of the answers; write the whole word.", "warn"))
    return "no"


def _narrow(terminal: Terminal, approval: pb.Approval, request: pb.DecideRequest) -> bool:
    """Bounds of a standing grant, the narrowest by default. False: the person left it."""
    if approval.arguments:
        names = ", ".join(escape(name) for name in approval.arguments)
        for line in _words(f"It holds for these very values of: {names}.", terminal.size[0]):
            terminal.write(line)
        said = terminal.ask("Which of them may be anything? (names with commas, or all) [none]: ")
        if said is None:
            return False
        free = {name.strip() for name in said.split(",") if name.strip()} - {"none"}
        unknown = free - {*approval.arguments, "all"}
        if unknown:
            terminal.write(Line(f"There is no {escape(', '.join(sorted(unknown)))}; it stays undecided.", "warn"))
            return False
        request.bind_arguments.extend(n for n in approval.arguments if n not in free and "all" not in free)
    else:
        for line in _words(
            "It can't be bound to values: it will hold whatever the arguments are.", terminal.size[0], "warn"
        ):
            terminal.write(line)
    said = terminal.ask("It ends after (like 12h or 7d) [the usual time]: ")
    if said is None:
        return False
    if said:
        match = re.fullmatch(r"(\d{1,4}) ?([hd])", said)
        if match is None or int(match[1]) == 0:
            terminal.write(Line("That isn't a time like 12h or 7d; it stays undecided.", "warn"))
            return False
        request.expires_seconds = int(match[1]) * {"h": 3600, "d": 86_400}[match[2]]
    return True


def _who(approval: pb.Approval) -> str:
    if approval.agent == "person":
        return "you, at the command line"
    return f"the agent “{approval.agent}”" if approval.agent != "anonymous" else "an agent without a name"


def _need(need: pb.NeedView, width: int) -> list[Line]:
    account = f" on account {need.account}" if need.account else ""
    granted = "granted already" if need.granted else "not granted yet"
    why = f", for the {need.why}" if need.why and need.why != "action" else ""
    also = need.also[0] if len(need.also) == 1 else "" if need.also else "nothing else that is known"
    said = [f"{need.service}:{need.scope}{account} ({need.risk or 'unknown risk'}, {granted}{why})"]
    said.append(f"  lets it: {need.description or 'nothing is known about this scope'}")
    if need.methods:
        said.append(f"  used for: {', '.join(need.methods)}")
    said.append(f"  the scope would also allow: {also}".rstrip())
    if len(need.also) > 1:
        said.extend(f"    {other}" for other in need.also)
    # A line break in a folder's name would begin a line that looks like one of these.
    return [line for text in said for line in _block(escape(text), width)]


def _label(name: str, text: str, width: int) -> list[Line]:
    label = f"{name:<14} "
    pieces = _fold(escape(text), max(width - len(label), 10))
    return [Line((label if index == 0 else " " * 13 + "┊ ") + piece) for index, piece in enumerate(pieces)]


def _block(text: str, width: int) -> list[Line]:
    lines = []
    for part in text.split("\n"):
        pieces = _fold(escape(part, newlines=False), width - 4)
        lines += [Line(("  │ " if index == 0 else "  ┊ ") + piece) for index, piece in enumerate(pieces)]
    return lines


def _words(text: str, width: int, style: Style = "") -> list[Line]:
    indent = " " * (len(text) - len(text.lstrip()))
    return [Line(piece, style) for piece in textwrap.wrap(text, width, subsequent_indent=indent)]


def _choice(name: str, says: str, width: int) -> list[Line]:
    pieces = textwrap.wrap(says, max(width - 13, 10))
    return [Line(f"  {name if index == 0 else '':<10} {piece}") for index, piece in enumerate(pieces)]


def _fold(text: str, width: int) -> list[str]:
    """`text` in pieces of at most `width` cells; nothing is dropped, blanks at a border neither."""
    from goex.cli.output import fold

    return fold(text, width)


def _left(deadline: str, now: datetime) -> str:
    try:
        seconds = int((datetime.fromisoformat(deadline) - now).total_seconds())
    except (ValueError, TypeError):
        return escape(deadline) or "a time that isn't known"
    return f"{max(seconds, 0) // 60} min {max(seconds, 0) % 60} s"
