"""Paths against templates: does a request's path fit, and whose is it where several do. Pure.

A slot takes what can be nothing but its own segments: a server that decodes twice, folds Unicode, or splits at an
encoded slash must not find another path in it. Where another method's template is more exact about the same path (a
name where ours has a slot), the path is that method's, whatever its upper and lower case.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.normal_form import nfkc
from runtimes.gateway.admission import No, Refused
from runtimes.gateway.plan import MethodRule, Slot
from runtimes.gateway.request_headers import refuse
from runtimes.gateway.urls import BadTarget, check_segment

Template = Sequence[str | Slot]
# For each part of a template: the segments that it took.
Taken = tuple[tuple[str, ...], ...]

_HIDDEN = frozenset(
    {"graphql", "graphiql", "gql", "batch", "$batch", "_batch", "bulk", "_bulk", "_msearch", "jsonrpc", "rpc"}
)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4}|&#|\\")
_VERB = re.compile(r":[A-Za-z][A-Za-z0-9_.\-]*\Z")
_FORMS = (".json", ".xml", ".html", ".csv", ".txt", ".js", ".rss", ".atom", ".yaml", ".yml", ".pdf", ".php")


def divide(template: Template, segments: Sequence[str]) -> Taken | None:
    """Which segments each part of the template stands for; None when their shape is another. A template has one `many`
    slot at most. Values aren't looked at."""
    many = next((place for place, part in enumerate(template) if isinstance(part, Slot) and part.many), None)
    spare = len(segments) - len(template)
    if spare < 0 or (spare and many is None):
        return None
    taken: list[tuple[str, ...]] = []
    start = 0
    for place in range(len(template)):
        end = start + 1 + (spare if place == many else 0)
        taken.append(tuple(segments[start:end]))
        start = end
    return tuple(taken) if all(_shaped(part, took) for part, took in zip(template, taken, strict=True)) else None


def slot_values(template: Template, taken: Taken) -> dict[str, str]:
    """The decoded value of each slot; of one with several segments, joined by slashes."""
    return {
        part.name: _value(part, took)
        for part, took in zip(template, taken, strict=True)
        if isinstance(part, Slot)
    }  # fmt: skip


def slot_differs(template: Template, taken: Taken) -> str:
    """Why a slot can't have its value, in words; "" when each can."""
    for part, took in zip(template, taken, strict=True):
        if isinstance(part, Slot) and (reason := _refused(part, took)):
            return reason
    return ""


@dataclass(frozen=True, slots=True)
class Rival:
    """The template of another method, prepared once: there may be hundreds, and each request is held against them."""

    template: Template
    lowered: Template
    names: tuple[tuple[int, str], ...]  # its plain parts by their place, as far as that is known
    size: int  # of a path that fits; 0: any

    @classmethod
    def of(cls, template: Template) -> Rival:
        lowered = tuple(_lowered(part) for part in template)
        names: list[tuple[int, str]] = []
        many = False
        for place, part in enumerate(lowered):
            if isinstance(part, Slot):
                many = many or part.many
            elif not many:
                names.append((place, part))
        return cls(template, lowered, tuple(names), 0 if many else len(lowered))

    def divide(self, lowered: Sequence[str]) -> Taken | None:
        if len(lowered) < len(self.lowered) or (self.size and self.size != len(lowered)):
            return None
        # Nearly all differ in one of these.
        if any(lowered[place] != name for place, name in self.names):
            return None
        return divide(self.lowered, lowered)


def rivals_of(rules: Sequence[MethodRule]) -> dict[str, tuple[Rival, ...]]:
    """By a rule's id: the paths of other methods at its origin, as far as they are known."""
    return {
        rule.id: tuple(
            Rival.of(template)
            for template in (
                *((*rule.base_path, *path) for path in rule.others),
                *(whole(other) for other in rules if _beside(rule, other)),
            )
            if not _never_closer(whole(rule), template)
        )
        for rule in rules
    }


def closer(ours: Template, mine: Taken, rivals: Sequence[Rival], segments: Sequence[str]) -> bool:
    """Whether the path, which fits `ours`, is (or could be to some server) rather another method's."""
    lowered = [_folded(segment) for segment in segments]
    while lowered and not lowered[-1]:
        lowered.pop()
    spellings = [lowered]
    if lowered and (bare := without_suffix(lowered[-1])) != lowered[-1]:
        spellings.append([*lowered[:-1], bare])
    exact = _exactness(ours, mine)
    for rival in rivals:
        for spelling in spellings:
            theirs = rival.divide(spelling)
            if theirs is None:
                continue
            named = _exactness(rival.template, theirs)
            if any(their > our for our, their in zip(exact, named, strict=False)):
                return True
    return False


def freedom(template: Template) -> tuple[int, ...]:
    """For sorting: templates that say more come first, compared from the left."""
    return tuple((2 if part.many else 1) if isinstance(part, Slot) else 0 for part in template)


def _shaped(part: str | Slot, took: tuple[str, ...]) -> bool:
    if isinstance(part, str):
        return took == (part,)
    return took[-1].endswith(part.end) and len(took[-1]) > len(part.end)


def _value(slot: Slot, took: tuple[str, ...]) -> str:
    text = "/".join(took)
    return text[: len(text) - len(slot.end)] if slot.end else text


def _refused(slot: Slot, took: tuple[str, ...]) -> str:
    value = _value(slot, took)
    if slot.values:
        # A value that has a slash in it is one encoded segment, or (of `many`) several: it was shown either way.
        return "" if value in slot.values else f"{slot.name} is held to {_listed(slot.values)}"
    for segment in took:
        folded = nfkc(segment)
        if _ENCODED.search(segment) or any(char in text for text in (segment, folded) for char in "/\\?#;"):
            return f"{slot.name} holds a character that servers read in different ways"
        try:
            check_segment(folded)
        except BadTarget as error:
            return error.message
    if slot.form and re.search(slot.form, value) is None:
        return f"{slot.name} isn't of the form that the catalog says it has"
    if not slot.verbs and _VERB.search(value):
        return f"{slot.name} ends like another method of the same path"
    return ""


def _listed(values: tuple[str, ...]) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"


def _lowered(part: str | Slot) -> str | Slot:
    if isinstance(part, str):
        return _folded(part)
    return Slot(part.name, many=part.many, end=_folded(part.end))


def _folded(text: str) -> str:
    """As a server may compare it: without upper case and without the forms of one letter."""
    return visible(nfkc(text)).casefold()


def without_suffix(segment: str) -> str:
    """Without what servers leave out at a path's end: parameters of a segment, dots, blanks, the form of an answer."""
    text = segment.partition(";")[0].rstrip(". ")
    while form := next((one for one in _FORMS if text[-5:].lower().endswith(one)), ""):
        text = text[: -len(form)].rstrip(". ")
    return text


def visible(text: str) -> str:
    """Without characters that nobody sees, which some servers leave out."""
    return text if text.isascii() else "".join(char for char in text if unicodedata.category(char) != "Cf")


def _exactness(template: Template, taken: Taken) -> list[int]:
    """How exact a template is about each segment: 2 for a name, 1 for a slot with an end, 0 for a slot."""
    found: list[int] = []
    for part, took in zip(template, taken, strict=True):
        if isinstance(part, str):
            found.append(2)
        else:
            found += [0] * (len(took) - 1) + [1 if part.end else 0]
    return found


def routed(
    rules: Sequence[MethodRule], rivals: Mapping[str, Sequence[Rival]], method: str, segments: Sequence[str]
) -> list[tuple[MethodRule, Taken]]:
    """The rules of one origin whose path this is, the most exact ones first. Raises Refused where there is none."""
    shaped = [(rule, taken) for rule in rules if (taken := divide(whole(rule), segments)) is not None]
    verbs = sorted({rule.method for rule, _ in shaped})
    if not shaped:
        raise refuse("path", "no method with this path was allowed")
    mine = [(rule, taken) for rule, taken in shaped if rule.method == method]
    if not mine:
        raise refuse("method", f"{method} wasn't allowed here, only {' and '.join(verbs)}")
    found: list[tuple[MethodRule, Taken]] = []
    first: No | None = None
    for rule, taken in mine:
        if reason := _not_its(rule, taken, rivals[rule.id], segments):
            first = first or No(reason, kind="path", method_id=rule.method_id)
        else:
            found.append((rule, taken))
    if not found and first is not None:
        raise Refused(first)
    return sorted(found, key=lambda pair: freedom(whole(pair[0])))


def _not_its(rule: MethodRule, taken: Taken, rivals: Sequence[Rival], segments: Sequence[str]) -> str:
    """Why a path that has the rule's shape isn't the rule's, in words; "" when it is."""
    if reason := slot_differs(whole(rule), taken):
        return reason
    if closer(whole(rule), taken, rivals, segments):
        return "this path is another method's, which wasn't allowed"
    if rule.method == "POST" and _hidden(whole(rule), taken):
        return "a batch or GraphQL endpoint, whose requests couldn't be seen"
    return ""


def whole(rule: MethodRule) -> Template:
    return (*rule.base_path, *rule.path)


def is_graphql(rule: MethodRule) -> bool:
    last = next((part for part in reversed(whole(rule)) if part), "")
    return isinstance(last, str) and without_suffix(_folded(last)) in ("graphql", "gql")


def _never_closer(ours: Template, other: Template) -> bool:
    """Whether nothing that fits both could be the other's: it is no more exact at any place."""
    if len(ours) != len(other) or any(isinstance(part, Slot) and part.many for part in (*ours, *other)):
        return False
    exact, named = (_exactness(one, tuple(("",) for _ in one)) for one in (ours, other))
    return all(their <= our for our, their in zip(exact, named, strict=True))


def _beside(rule: MethodRule, other: MethodRule) -> bool:
    """Whether `other` is of another method at the same verb and origin."""
    return (other.origin, other.method) == (rule.origin, rule.method) and other.method_id != rule.method_id


def _hidden(template: Template, taken: Taken) -> bool:
    """Whether a free slot makes the path end in what takes several requests at once."""
    last = template[-1] if template else ""
    if not isinstance(last, Slot) or last.values:
        return False
    word = _folded(taken[-1][-1])
    return bool({word, without_suffix(word)} & _HIDDEN)
