"""Attacks where two features meet, or where something is said beside what is looked at."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_COMBINED = "tests/adversarial/test_combined.py"
_DRIVE = "tests/adversarial/test_mcp_drive.py"
_HEADS = "tests/adversarial/test_gateway_heads.py"
_RACE = "tests/goex/web/test_access.py::test_a_link_that_is_used_by_many_at_once_opens_once"


def _combined(name: str, tries: str, refused_by: str) -> Attack:
    return Attack(
        name=f"combined_{name}",
        tries=tries,
        where=Where.GRANTS,
        refused_by=(refused_by,),
        test=f"{_COMBINED}::test_refused[{name}]",
        control=f"{_COMBINED}::test_control[{name}]",
    )


def _drive(name: str, tries: str) -> Attack:
    return Attack(
        name=f"server-{name.replace('_', '-')}",
        tries=tries,
        where=Where.SERVERS,
        refused_by=("an answer has the id of its request, and is no request",),
        test=f"{_DRIVE}::test_its_own_answer_counts[{name}]",
        control=f"{_DRIVE}::test_control[{name}]",
    )


def _head(name: str, tries: str) -> Attack:
    return Attack(
        name=f"code_echo_{name}",
        tries=tries,
        where=Where.CODE,
        refused_by=("answers are framed anew",),
        test=f"{_HEADS}::test_no_echo_comes_beside_it[{name}]",
        control=f"{_HEADS}::test_control[{name}]",
    )


ROWS: tuple[Attack, ...] = (
    _combined(
        "read_for_a_change",
        "have something read for a request that is said to only read, and then posts it",
        "all of a request is looked at before anything is read",
    ),
    _combined(
        "earlier_answer_in_a_task",
        "have an earlier action's answer stand where a task lets a text be anything",
        "what an answer fills in is in no task",
    ),
    _combined(
        "undone_elsewhere",
        "have something taken back where its account leads to later",
        "an undo goes where its action went",
    ),
    _combined(
        "answered_for_another",
        "use the key of something harmless for something else",
        "a key is for one request",
    ),
    _drive("answer_to_another", "answer another request's id first"),
    _drive("answer_by_a_text", "answer with the id as a text"),
    _drive("answer_without_an_id", "answer without an id"),
    _drive("several_at_once", "answer with a list of answers"),
    _drive("asks_a_model", "ask for a model's words under the id of the request"),
    _drive("asks_the_person", "ask the person something under the id of the request"),
    _drive("other_tools_now", "say in the middle of a call that its tools are others"),
    _head("early_hints", "have the secret said back in a head before the answer's own"),
    _head("many_before_it", "the same in a head that says the server is at work"),
    _head("status_line", "the same in the words of the status line"),
    _head("chunk_extension", "the same behind a chunk's size"),
    _head("trailer", "the same in a trailer"),
    _head("behind_the_end", "the same behind the answer's end"),
    Attack(
        name="one_link_many_tabs",
        tries="open the page with one link from many tabs at the same time",
        where=Where.PAGE,
        refused_by=("a link is taken once",),
        test=_RACE,
        control=_RACE,
    ),
)
