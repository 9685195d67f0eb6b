"""What bounds a standing grant or a task beside its width, asked for on a terminal: an end, values, how often."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from goex.cli.question_text import Line, meaning, words
from policies.display_text import escape

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

TRIES = 3
_NARROWED = re.compile(r"(?P<line>[0-9]{1,2})=(?P<times>[0-9]{1,4})|(?P<minutes>[0-9]{1,3})m")


class Terminal(Protocol):
    """What is needed of `goex.cli.prompt.Terminal`, which imports this module."""

    @property
    def size(self) -> tuple[int, int]: ...

    def write(self, line: Line) -> None: ...

    def ask(self, question: str) -> str | None: ...


def narrow(terminal: Terminal, approval: pb.Approval, request: pb.DecideRequest) -> bool:
    """Bounds of a standing grant, the narrowest by default; first what it means. False: the person left it."""
    for line in meaning(approval, request.width, terminal.size[0]):
        terminal.write(line)
    if request.width == "arguments" and not _let_go(terminal, approval, request):
        return False
    from goex.cli.output import local

    usual = next((one.until for one in approval.choices if one.name == request.width), "")
    ends = f"It ends after (like 12h or 7d) [{escape(local(usual)) if usual else 'the usual time'}]: "
    return _understood(terminal, ends, lambda said: _end(said, request))


def _understood(terminal: Terminal, question: str, take: Callable[[str], str]) -> bool:
    """Ask until `take`, which returns what is wrong with an answer, has nothing against it. False: the person left
    it, or it was never understood."""
    for _ in range(TRIES):
        said = terminal.ask(question)
        wrong = None if said is None else take(said)
        if not wrong:
            return wrong is not None
        terminal.write(Line(wrong, "warn"))
    return False


def _end(said: str, request: pb.DecideRequest) -> str:
    match = re.fullmatch(r"(\d{1,4}) ?([hd])", said)
    if said and (match is None or int(match[1]) == 0):
        return "That isn't a time like 12h or 7d."
    if match is not None:
        request.expires_seconds = int(match[1]) * {"h": 3600, "d": 86_400}[match[2]]
    return ""


def narrows(said: str) -> bool:
    """Whether these words make a task's lines and time smaller: `2=1 3=0 10m`."""
    return all(_NARROWED.fullmatch(word) for word in said.split())


def narrow_task(said: str, request: pb.DecideRequest) -> None:
    """Put into `request` what `narrows` has understood."""
    for match in map(_NARROWED.fullmatch, said.split()):
        if match and match["line"]:
            request.narrowed.add(line=max(int(match["line"]) - 1, 0), times=int(match["times"]))
        elif match:
            request.expires_seconds = max(int(match["minutes"]), 1) * 60


def _let_go(terminal: Terminal, approval: pb.Approval, request: pb.DecideRequest) -> bool:
    """Which of the values needn't be the same. False: the person left it."""
    if not approval.arguments:
        return True
    names = ", ".join(escape(name) for name in approval.arguments)
    for line in words(f"It holds for these very values of: {names}.", terminal.size[0]):
        terminal.write(line)
    which = "Which of them may be anything? (names with commas) [none]: "
    return _understood(terminal, which, lambda said: _bind(said, approval, request))


def _bind(said: str, approval: pb.Approval, request: pb.DecideRequest) -> str:
    free = {name.strip() for name in said.split(",") if name.strip()} - {"none"}
    if wrong := free - set(approval.arguments):
        return f"There is no {escape(', '.join(sorted(wrong)))}."
    bound = [name for name in approval.arguments if name not in free]
    if not bound:
        return "That leaves no value to hold it to, which is permanent."
    request.bind_arguments.extend(bound)
    return ""
