"""What a notification says, and what a click on it may do. Pure.

Rules:

* Everything that a click can allow stands in the notification, whole. Where something had to be cut, that is said, and
  the buttons that allow are replaced by one that opens the terminal.
* A click allows a single read, once, and nothing else: any program that draws on the same screen can click. What needs
  presence or is a wider grant opens the terminal. The rule is here and again where the click arrives.
* Foreign text is escaped, stands behind a bar of its own (`│`, continued by `┊`), and is folded by us, so that it can't
  begin a line that looks like one of ours. Markup is escaped last, for servers that read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from policies.display_text import escape, shorten

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

Urgency = Literal["low", "normal", "critical"]

# The room that the servers give a body, less what stands in it beside the foreign text.
MOST_LINES = 14
WIDTH = 34  # cells; the narrowest notification of xfce has room for about so many
_LONGEST_NAME = 40
_SHOWN_DIGEST = 12

# What a button is for. `DEFAULT` is the name that servers give to a click on the body.
ONCE, SESSION, DENY, VIEW, DEFAULT = "once", "session", "deny", "view", "default"

_WISHES = {
    "read": "wants to read",
    "write": "wants to change something",
    "delete": "wants to delete something",
    "admin": "wants to change who may do what",
}
_UNDO = {
    "exact": "undo restores it exactly",
    "compensating": "undo makes up for it, traces may remain",
    "nothing": "nothing to take back",
}
_ENDS = {
    "approved": "Allowed",
    "denied": "Denied",
    "expired": "Timed out: no answer denies",
    "withdrawn": "Withdrawn: who asked is gone",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body. `bold` where the server reads markup: only our own words are ever bold."""

    text: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Button:
    """`key` is what the server says when it is clicked."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One notification, before it is fitted to a server. `allows`: a click on `once` may settle it."""

    title: str
    lines: tuple[Line, ...]
    buttons: tuple[Button, ...] = ()
    urgency: Urgency = "normal"
    category: str = "x-goex.approval"
    allows: bool = False
    cut: bool = False

    def body(self, *, markup: bool) -> str:
        """The body for a server that reads markup, or for one that doesn't."""
        if not markup:
            return "\n".join(line.text for line in self.lines)
        return "\n".join(f"<b>{_unmarked(line.text)}</b>" if line.bold else _unmarked(line.text) for line in self.lines)

    def with_hint(self, words: str) -> Card:
        """The same with one more line of ours at its end."""
        return replace(self, lines=(*self.lines, Line(words, bold=True)))


def question(approval: pb.Approval, *, count: int = 1) -> Card:
    """The card of a question that stands for `count` identical ones."""
    what, cut = _fitting(_foreign(approval))
    risk = approval.risk if approval.risk in _WISHES else "unknown"
    irreversible = approval.undo_class not in _UNDO
    allows = click_allows(approval) and not cut
    lines = [*what]
    if cut:
        more_lines = "1 more line isn't" if cut == 1 else f"{cut} more lines aren't"
        lines.append(Line(f"{more_lines} shown here.", bold=True))
    lines += _facts(approval, risk)
    if count > 1:
        lines.append(Line(f"Asked {count} times: each is allowed by itself; Deny denies all {count}.", bold=True))
    until = _clock(approval.deadline)
    lines.append(Line(f"No answer{f' by {until}' if until else ''} is a no."))
    lines.append(Line(f"Digest {_digest(approval)}"))
    return Card(
        title=f"{_who(approval.agent)} {_WISHES.get(risk, 'wants something of unknown risk')}"
        + (f" (×{count})" if count > 1 else ""),
        lines=tuple(lines),
        buttons=_buttons(approval, allows=allows, cut=bool(cut)),
        urgency="critical" if irreversible or risk not in ("read", "write") else "normal",
        allows=allows,
        cut=bool(cut),
    )


def click_allows(approval: pb.Approval) -> bool:
    """Whether a click may allow it once: a read, which the daemon wants no presence for."""
    return (
        approval.risk == "read"
        and not approval.presence
        and not approval.brief
        and "once" in approval.widths
        and bool(approval.lines)
        and bool(approval.digest)
    )


def more(waiting: int) -> Card:
    """The one card for all that has no room of its own."""
    words = "1 more waits" if waiting == 1 else f"{waiting} more wait"
    return Card(
        title=f"{words} for you",
        lines=(Line("Only the oldest are shown one by one."), Line("All of them: goex approve")),
        buttons=(Button(VIEW, "Show them"),),
        category="x-goex.summary",
    )


def settled(approval: pb.Approval, *, here: bool) -> Card:
    """The second notification, when a question ended otherwise than by a click. `here`: in a window that we opened."""
    end = _ENDS.get(approval.state, "Settled")
    where = (" in the terminal" if here else " elsewhere") if approval.state in ("approved", "denied") else ""
    what, _ = _fitting(_foreign(approval)[:2])
    by = [Line(f"By {shorten(escape(approval.settled_by), 80)[0]}.")] if approval.settled_by and where else []
    return Card(
        title=f"{end}{where}", lines=(Line(f"{_who(approval.agent)} had asked:"), *what, *by), urgency="low",
        category="x-goex.settled",
    )  # fmt: skip


def many_settled(number: int) -> Card:
    """Instead of a notification for each, when many questions end at once."""
    return Card(
        title=f"{number} questions are settled",
        lines=(Line("How each ended: goex log"),),
        urgency="low",
        category="x-goex.settled",
    )


def words(title: str, *said: str, urgency: Urgency = "normal") -> Card:
    """A notification of plain words; each may be foreign."""
    lines = tuple(Line(shorten(escape(line), 300)[0]) for line in said if line)
    return Card(title=title, lines=lines, urgency=urgency, category="x-goex.notice")


def _buttons(approval: pb.Approval, *, allows: bool, cut: bool) -> tuple[Button, ...]:
    deny = Button(DENY, "Deny")
    if cut or approval.brief or not approval.lines:
        return (Button(VIEW, "Show it whole…"), deny)
    found = []
    if ONCE in approval.widths:
        found.append(Button(ONCE, "Allow once" if allows else "Allow once…"))
    if SESSION in approval.widths:
        found.append(Button(SESSION, "For the session…"))
    return (*(found or [Button(VIEW, "Show it whole…")]), deny)


def _who(agent: str) -> str:
    if agent == "person":
        return "Your own command"
    if agent in ("anonymous", ""):
        return "An agent without a name"
    # Some servers read markup in titles, and others show its escapes: so it has none.
    name, cut = shorten(escape(agent), _LONGEST_NAME)
    for char in "<>&":
        name = name.replace(char, f"\\u{{{ord(char):x}}}")
    return f"“{name}{'…' if cut else ''}”"


def _facts(approval: pb.Approval, risk: str) -> list[Line]:
    """The worst that it lets happen and how it is taken back, in the short question's words."""
    if approval.question.worst:
        question = approval.question
        said = (f"Worst: {question.worst}.", f"Undo: {question.undo}.")
        return [line for text in said for line in _folded(escape(text), "", bold=True)]
    undo = _UNDO.get(approval.undo_class, "THIS CAN'T BE TAKEN BACK")
    return [Line(f"Risk: {risk if risk != 'unknown' else 'unknown, counts as delete'}; {undo}.", bold=True)]


def _foreign(approval: pb.Approval) -> list[str]:
    """What will run, and what it uses, one text each: the short question, where the daemon made one."""
    question = approval.question
    if question.payload or question.alone:
        return [escape(text) for text in (question.sentence, *question.payload, *question.notes)]
    found = [part for line in approval.lines for part in line.split("\n")]
    if not approval.lines:
        found.append("The daemon didn't say what would run.")
    # Not `also`: a grant for once holds for this very action, whatever else its scope would open.
    uses = (f"uses {n.service}:{n.scope}{f' on {n.account}' if n.account else ''}" for n in approval.needs)
    return [escape(text) for text in (*found, *dict.fromkeys(uses))]


def _fitting(texts: Sequence[str]) -> tuple[list[Line], int]:
    """As many folded lines as there is room for, and how many had none."""
    lines = [line for text in texts for line in _folded(text, "│ ")]
    return lines[:MOST_LINES], max(len(lines) - MOST_LINES, 0)


def _folded(text: str, bar: str, *, bold: bool = False) -> list[Line]:
    from goex.cli.output import fold

    return [Line(("┊ " if index else bar) + piece, bold=bold) for index, piece in enumerate(fold(text, WIDTH))]


def _digest(approval: pb.Approval) -> str:
    return escape(approval.digest[:_SHOWN_DIGEST]) or "unknown"


def _clock(deadline: str) -> str:
    try:
        return datetime.fromisoformat(deadline).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return ""


def _unmarked(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
