"""Which methods others need beside them: the list that finds the id that a method wants, the session that it runs in.

"Clear out the old logs" is a list and then deletes; a record set belongs to a zone, and which zone is for a list of
zones to say. Names and paths tell: the list of the method's own resource; the list of whatever its path has an id of;
and for a method that is none of the usual ones, how its resource is made (`sessions.create` before `executeSql`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mapper.ranking.method_documents import Ranked
from mapper.ranking.terms import stem

MOST = 2
"""Companions that are known of one method, the nearest first."""
NONE = -1
"""Stands for a companion that there isn't."""

_LED = 3  # methods at the front whose companions are asked for
_ROOM = 2  # places at the end that these may take
_USUAL = frozenset({"list", "get", "create", "insert", "update", "patch", "delete", "search", "aggregatedList"})
_PLACEHOLDER = re.compile(r"\{\+?(\w+)\}")
_ID = re.compile(r"(?:sId|Id|_id|Name|Key)$")


def companions(methods: Sequence[Ranked]) -> list[tuple[int, ...]]:
    """For each method the numbers of its companions, `NONE` where there are fewer than `MOST`."""
    numbers: dict[tuple[int, str], int] = {}
    lists: dict[tuple[int, str], int] = {}
    for number, method in enumerate(methods):
        numbers.setdefault((method.family, method.name), number)
        resource, _, last = method.name.rpartition(".")
        if last == "list":
            lists.setdefault((method.family, stem(resource.rpartition(".")[2].lower())), number)
    found = []
    for number, method in enumerate(methods):
        own = [each for each in dict.fromkeys(_of(method, numbers, lists)) if each != number]
        found.append((*own[:MOST], *(NONE,) * (MOST - len(own))))
    return found


def _of(method: Ranked, numbers: Mapping[tuple[int, str], int], lists: Mapping[tuple[int, str], int]) -> Iterable[int]:
    resource, _, last = method.name.rpartition(".")
    if last != "list" and (own := numbers.get((method.family, f"{resource}.list"))) is not None:
        yield own
    for name in reversed(_PLACEHOLDER.findall(method.path)):
        above = lists.get((method.family, stem(_ID.sub("", name).lower())))
        if above is not None:
            yield above
    if last not in _USUAL and (made := numbers.get((method.family, f"{resource}.create"))) is not None:
        yield made


def accompanied(best: Sequence[int], of: Sequence[Sequence[int]]) -> list[int]:
    """As many of a ranking as before, its last places given to the companions of the first (`of`, for each method in
    the order of `best`) where they aren't among them."""
    wanted = [each for own in of[:_LED] for each in own if each != NONE]
    kept = list(best[: max(len(best) - _ROOM, 0)])
    for number in (*wanted, *best):
        if len(kept) >= len(best):
            break
        if number not in kept:
            kept.append(number)
    return kept
