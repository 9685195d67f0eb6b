"""What the terminal's question says: the short question first, and everything behind "more". Pure.

Rules: foreign text stands behind a bar of its own (`│`, continued by `┊`), escaped, so that it can't imitate a line of
ours; nothing is cut; each way to say yes is said in words of the very request.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from policies.display_text import counted, escape

if TYPE_CHECKING:
    from goex.rpc import goex_pb2 as pb

Style = Literal["", "bold", "dim", "warn", "added", "removed"]

UNDO_WORDS = {
    "exact": "Undo restores the earlier state exactly.",
    "compensating": "Undo makes up for it, and traces may remain.",
    "irreversible": "THIS CAN'T BE TAKEN BACK.",
    "nothing": "There is nothing to take back: it only reads.",
}
WIDTH_WORDS = {
    "once": "this very action, a single time; whatever differs from it is asked for again",
    "session": "every such call by this agent, whatever the arguments are, until its session ends (8 hours at most)",
    "arguments": "every such call by this agent with exactly these arguments, until the grant expires or you revoke it",
    "permanent": "every such call by this agent, whatever the arguments are, until the grant expires or you revoke it",
}
# The same, where the person is the one who asks.
YOURS = {
    **WIDTH_WORDS,
    "session": "every such call of yours from this terminal, whatever the arguments are (8 hours at most)",
    "arguments": "every such call of yours with exactly these arguments, until the grant expires or you revoke it",
    "permanent": "every such call of yours, whatever the arguments are, until the grant expires or you revoke it",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line for the terminal. `text` is fit to be shown: escaped, and no wider than the screen."""

    text: str
    style: Style = ""


def short(approval: pb.Approval, width: int, now: datetime) -> list[Line]:
    """The short question, folded to `width` columns; the full text where the daemon made no short one. Pure."""
    question = approval.question
    if not question.payload and not question.alone:
        return [*describe(approval, width, now), *choices(approval, width)]
    lines = [] if question.alone else [Line("─" * width, "dim")]
    for index, piece in enumerate(_fold(escape(question.sentence), width - 2)):
        lines.append(Line(f"┊ {piece}" if index else piece, "bold"))
    for text in question.payload:
        lines += _block(text, width)
    undo: Style = "warn" if question.irreversible else ""
    facts: tuple[tuple[str, str, Style], ...] = (
        ("Asks", ", ".join(part for part in (question.asks, approval.id) if part and not question.alone), ""),
        ("Worst", question.worst, ""),
        ("Undo", question.undo, undo),
        ("New", question.fresh, ""),
        *(("Note", note, "warn") for note in question.notes),
    )
    for name, text, style in facts:
        if text:
            lines += _fact(name, text, width, style)
    return lines


def answers(approval: pb.Approval) -> dict[str, str]:
    """What may be typed, and which answer it is: the keys that the daemon gives, and each answer's whole name."""
    able = (*offered(approval), "no", "later", "more")
    keys = {one.key: one.name for one in approval.question.answers if len(one.key) == 1 and one.name in able}
    return {"n": "no", "?": "more", **keys, **{name: name for name in able}}


def answers_line(approval: pb.Approval, now: datetime) -> str:
    """The answers with their keys, whether a yes needs the passphrase, and how long there is: the prompt itself."""
    able = answers(approval)
    said = [f"{one.key} {one.label}" for one in approval.question.answers if able.get(one.key) == one.name]
    shown = escape("  ".join(said or [*offered(approval), "no", "later", "? more"]))
    presence = f"  ({approval.presence_by or 'passphrase'})" if approval.presence else ""
    return f"{shown}{presence}  {_clock(approval.deadline, now)} [no]: "


def describe(approval: pb.Approval, width: int, now: datetime) -> list[Line]:
    """Everything that an approval stands for, folded to `width` columns. Pure."""
    lines = [Line("─" * width, "dim"), *_label("Who asks", who(approval), width)]
    if approval.source:
        lines += _label("Seen as", approval.source, width)
    if approval.intent:
        lines += _label("In words", approval.intent, width)
    if approval.count > 1:
        others = approval.count - 1
        wait = f"{counted(others, 'identical one')} wait{'s' * (others == 1)}"
        lines += _label("How often", f"{approval.count} times: {wait}", width)
    lines += [Line(""), Line("What will run", "bold")]
    if not approval.lines:
        lines += words("  The daemon didn't say. Don't approve this.", width, "warn")
    for text in approval.lines:
        lines += _block(text, width)
    lines += [Line(""), Line("What it needs", "bold")]
    if not approval.needs:
        lines += words("  Nothing that is named. Don't approve this.", width, "warn")
    told: set[tuple[str, str, str]] = set()
    for need in approval.needs:
        # What a scope is, is said once, however many things it is needed for.
        lines += _need(need, width, again=(need.service, need.account, need.scope) in told)
        told.add((need.service, need.account, need.scope))
    irreversible = approval.undo_class not in ("exact", "compensating", "nothing")
    lines += [Line(""), Line("Taking it back", "bold")]
    undo = UNDO_WORDS["irreversible" if irreversible else approval.undo_class]
    if approval.kind == "task" or irrevocable_undo(approval):  # a task does nothing itself
        undo = f"{approval.question.undo[:1].upper()}{approval.question.undo[1:]}."
    lines += words("  " + undo, width, "warn" if irreversible else "")
    reads = approval.undo_class == "nothing" and approval.kind != "task"
    if approval.undo_text and not reads:  # of reading the line above says all
        lines += _block(approval.undo_text, width)
    lines.append(Line(""))
    if approval.reason:
        lines += _label("Asked because", approval.reason, width)
    lines += _label("Risk", approval.risk or "unknown: counts as delete", width)
    lines += _label("Answer within", left(approval.deadline, now), width)
    if approval.waiting > 1:
        lines += _label("In the queue", f"number {approval.place} of {approval.waiting}", width)
    lines += _label("Approval", f"{approval.id} of action {approval.action_id}", width)
    return lines


def choices(approval: pb.Approval, width: int) -> list[Line]:
    """What can be answered, each in words of this request."""
    lines = [Line(""), Line("You can answer", "bold")]
    said = {choice.name: choice for choice in approval.choices}
    names = offered(approval)
    standing = [set(said[name].words) for name in names if name != "once" and name in said]
    common = set.intersection(*standing) if len(standing) > 1 else set()
    for name in names:
        if name not in said:
            lines += _choice(name, (YOURS if approval.agent == "person" else WIDTH_WORDS)[name], width)
            continue
        own = [text for text in said[name].words if text not in common] or [WIDTH_WORDS[name]]
        for index, text in enumerate(own):
            lines += _choice("" if index else name, text, width)
        if said[name].warning:
            lines += _choice("", said[name].warning, width, "warn")
    every = next((list(said[name].words) for name in names if name != "once" and name in said), [])
    for text in every:
        if text in common:
            lines += words(f"  For all but once: {text[:1].lower()}{text[1:]}", width)
    duplicates = approval.count - 1
    rest = (
        f", nor {'the identical one' if duplicates == 1 else f'any of the {duplicates} identical ones'}"
        if duplicates > 0
        else ""
    )
    lines += _choice("no", f"don't run it{rest} (Enter is no; words after it tell the agent why)", width)
    lines += _choice("later", "leave it open for now", width)
    if approval.presence_by == "passkey":
        lines += words(
            "  A yes needs your passkey: a security key that is plugged in, or on the page (goex web)", width, "dim"
        )
    elif approval.presence:
        lines += words("  You'll be asked for your approval passphrase.", width, "dim")
    return lines


def meaning(approval: pb.Approval, name: str, width: int) -> list[Line]:
    """What one way to say yes means, whole."""
    view = next((choice for choice in approval.choices if choice.name == name), None)
    if view is None:
        return _choice(name, (YOURS if approval.agent == "person" else WIDTH_WORDS)[name], width)
    lines = [line for index, text in enumerate(view.words) for line in _choice("" if index else name, text, width)]
    return [*lines, *(_choice("", view.warning, width, "warn") if view.warning else [])]


def summary(approval: pb.Approval, width: int, now: datetime) -> list[Line]:
    """One that waits, for a list: not enough to approve it by."""
    undo = {"exact": "can be undone", "compensating": "can be made up for", "nothing": "only reads"}
    way_back = undo.get(approval.undo_class, "CAN'T BE TAKEN BACK")
    if approval.kind == "task":
        way_back = "undone together"
    elif irrevocable_undo(approval):
        way_back = approval.question.undo
    facts = [who(approval), approval.risk or "unknown risk", way_back]
    if approval.count > 1:
        facts.append(f"{approval.count} times")
    facts.append(f"{left(approval.deadline, now)} left")
    place = f"{approval.place}." if approval.place else "-"
    pieces = _fold(escape(f"{approval.id}  {', '.join(facts)}"), width - 4)
    lines = [Line(("" if index else place).ljust(4) + piece, "bold") for index, piece in enumerate(pieces)]
    for text in (*([f"“{approval.intent}”"] if approval.intent else []), *approval.lines):
        lines += _block(text, width)
    return lines


def irrevocable_undo(approval: pb.Approval) -> bool:
    """Whether it takes something back, and can't be redone: that is no danger like that of what can't be undone."""
    known = approval.undo_class in ("exact", "compensating", "nothing")
    return approval.kind == "revert" and bool(approval.question.undo) and not known


def offered(approval: pb.Approval) -> list[str]:
    """The widths that the daemon offers and that we can describe."""
    return [width for width in approval.widths if width in WIDTH_WORDS]


def who(approval: pb.Approval) -> str:
    """Who asks, for a person."""
    if approval.agent == "person":
        return "you, at the command line"
    return f"the agent “{approval.agent}”" if approval.agent != "anonymous" else "an agent without a name"


def _need(need: pb.NeedView, width: int, *, again: bool) -> list[Line]:
    account = f" on account {need.account}" if need.account else ""
    granted = "granted already" if need.granted else "not granted yet"
    why = f", for the {need.why}" if need.why and need.why != "action" else ""
    said = [f"{need.service}:{need.scope}{account} ({need.risk or 'unknown risk'}, {granted}{why})"]
    if not again:
        said.append(f"  lets it: {need.description or 'nothing is known about this scope'}")
    if need.methods:
        said.append(f"  used for: {', '.join(need.methods)}")
    if not again:
        said += [*_opened(need), *_held(need)]
    # A line break in a folder's name would begin a line that looks like one of these.
    return [line for text in said for line in _block(escape(text), width)]


def _opened(need: pb.NeedView) -> list[str]:
    """What a scope is good for beside this: in kinds of things, worst first, or as a list."""
    means = [
        f"    {name}: {'; '.join(found)}"
        for name, found in (
            ("who has access", need.share),
            ("destroy", need.destroy),
            ("change", need.change),
            ("see", need.see),
        )
        if found
    ]
    if means:
        return ["  whoever holds it could", *means]
    if not need.also:
        return ["  the scope would also allow: nothing else that is known"]
    if len(need.also) == 1:
        return [f"  the scope would also allow: {need.also[0]}"]
    return ["  the scope would also allow:", *(f"    {other}" for other in need.also)]


def _held(need: pb.NeedView) -> list[str]:
    """What holds the credential to this, and what it would open by itself."""
    if not need.held_by:
        return []
    opens = "all that it was made for" if need.opens_all else ", ".join(need.opens) or "nothing that is known"
    if need.held_by == "token":
        return [f"  the service gives a token for this alone; it opens: {opens}"]
    unseen = "" if need.held_by_seen else " (it wasn't seen yet whether the service narrows its tokens)"
    return [f"  GoEx's gateway holds the credential to this{unseen}; by itself it opens: {opens}"]


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


def words(text: str, width: int, style: Style = "") -> list[Line]:
    """Words of ours, wrapped."""
    indent = " " * (len(text) - len(text.lstrip()))
    return [Line(piece, style) for piece in textwrap.wrap(text, width, subsequent_indent=indent)]


def _choice(name: str, says: str, width: int, style: Style = "") -> list[Line]:
    pieces = _fold(escape(says), max(width - 13, 10))
    return [Line(f"  {name if index == 0 else '':<10} {piece}", style) for index, piece in enumerate(pieces)]


def folded(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Lines on a screen: what one goes on with never begins where a line of ours does."""
    for line in lines:
        for index, piece in enumerate(_fold(line.text, width - 4)):
            yield Line(f"  ┊ {piece}" if index else piece, line.style)


def _fold(text: str, width: int) -> list[str]:
    """`text` in pieces of at most `width` cells; nothing is dropped, blanks at a border neither."""
    from goex.cli.output import fold

    return fold(text, width)


def _fact(name: str, text: str, width: int, style: Style) -> list[Line]:
    pieces = _fold(escape(text), max(width - 7, 10))
    return [Line(("      ┊" if index else f"{name:<6} ") + piece, style) for index, piece in enumerate(pieces)]


def left(deadline: str, now: datetime) -> str:
    """How long there is to answer, for a person."""
    try:
        seconds = int((datetime.fromisoformat(deadline) - now).total_seconds())
    except (ValueError, TypeError):
        return escape(deadline) or "a time that isn't known"
    return f"{max(seconds, 0) // 60} min {max(seconds, 0) % 60} s"


def _clock(deadline: str, now: datetime) -> str:
    try:
        seconds = max(int((datetime.fromisoformat(deadline) - now).total_seconds()), 0)
    except (ValueError, TypeError):
        return "?:??"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}:{seconds:02}" if minutes < 600 else f"{minutes // 60} h"
