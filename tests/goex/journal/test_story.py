"""Who decided on what, as rows of every shape tell it, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goex.cli import action_text
from goex.daemon.audit_views import decided_view
from goex.journal.chain import Journal, Row
from goex.journal.search import Wanted, find_rows
from goex.journal.story import Decided, decisions, story
from policies.jsonvalue import canonical

PERSON = "user 1000, process 9 (goex), on the user socket"
NO = {"problem": {"code": "denied", "message": "The person said no: not on Fridays.", "next_step": "", "details": []}}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    made.unlock(b"k" * 32)
    return made


def grant(id: str, width: str = "once") -> dict[str, str]:
    return {"id": id, "service": "slack", "account": "work", "scope": "chat:write", "width": width}


def decision(journal: Journal, *rows: tuple[str, dict[str, Any]]) -> Decided:
    for kind, facts in rows:
        journal.append(kind, action_id="a-1", agent="scout", facts=facts)
    found = decisions(journal, ["a-1"])["a-1"]
    assert story(journal, reversed(find_rows(journal, Wanted(action_id="a-1", limit=1000)))).decided == found
    return found


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("rows", "person", "words"),
    [
        ((), False, ""),
        (
            (("grant", {"grants": [grant("g-1")], "by": PERSON}), ("allow", {"grants": ["g-1"]})),
            True,
            "you allowed it (once: slack:chat:write)",
        ),
        (
            (
                ("grant", {"grants": [grant("g-1", "permanent")], "by": PERSON}),
                ("allow", {"grants": ["g-1"], "rules": ["ask-always"]}),
            ),
            True,
            "you allowed it (grant g-1 (slack:chat:write, permanent); asked because of rule ask-always)",
        ),
        ((("allow", {"grants": [], "rules": ["reads", "mine"]}),), False, "allowed by rules reads, mine"),
        ((("allow", {"grants": ["g-gone"]}),), False, "allowed by grant g-gone"),
        ((("deny", {"by": PERSON, **NO}),), True, "you denied it: not on Fridays."),
        (
            (("deny", {"by": "the rules", "rules": ["no-mail"], "problem": {"message": "Rule no-mail forbids it."}}),),
            False,
            "denied: Rule no-mail forbids it.",
        ),
        (
            (("deny", {"by": "the rules", "rules": ["a", "b"], "problem": {"message": "What can't be judged."}}),),
            False,
            "denied: rules a, b: What can't be judged.",
        ),
        ((("deny", {"by": "goex", "problem": {"message": "500 wait already."}}),), False, "denied: 500 wait already."),
        ((("expire", {"problem": {"message": "Nobody answered in time."}}),), False, "nobody answered"),
        ((("withdraw", {"problem": {"message": "Withdrawn: gone."}}),), False, "withdrawn"),
        ((("reject", {"problem": {"message": "No such method."}}),), False, "No such method."),
        # Given, and then not used: it was withdrawn.
        (
            (
                ("grant", {"grants": [grant("g-1")], "by": PERSON}),
                ("withdraw", {"problem": {"message": "Withdrawn: x."}}),
            ),
            False,
            "withdrawn",
        ),
        # What failed after it was allowed was allowed all the same.
        (
            (("allow", {"grants": [], "rules": ["r"]}), ("fail", {"problem": {"message": "It broke."}})),
            False,
            "allowed by rule r",
        ),
    ],
)
def test_a_decision_in_words(journal: Journal, rows: tuple[Any, ...], person: bool, words: str) -> None:
    found = decision(journal, *rows)
    assert found.person is person
    assert action_text.decided(decided_view(found)) == words


def test_many_grants_are_counted(journal: Journal) -> None:
    ids = [f"g-{number}" for number in range(5)]
    rows = (("grant", {"grants": [grant(id) for id in ids], "by": PERSON}), ("allow", {"grants": ids}))
    assert action_text.decided(decided_view(decision(journal, *rows))).endswith(" and 2 more)")


@pytest.mark.parametrize(
    "facts",
    [
        "",
        "null",
        "[]",
        "7",
        '"x"',
        "{",
        '{"grants": 7}',
        '{"grants": [7, null, {}]}',
        '{"problem": "x"}',
        '{"by": ["x"]}',
    ],
)
@pytest.mark.sampled(30)
@pytest.mark.parametrize("kind", ["grant", "allow", "deny", "request", "answer", "refused", "lease", "votes", "ask"])
def test_facts_of_any_shape_are_told_without_failing(journal: Journal, kind: str, facts: str) -> None:
    """Rows that an edited database holds: verifying tells that, and reading goes on."""
    row = Row(1, "2026-01-01T00:00:00.000000Z", "a-1", "scout", kind, "", "", facts, b"")
    told = story(journal, [row])
    assert action_text.decided(decided_view(told.decided)) is not None


def test_requests_are_joined_with_what_came_of_them(journal: Journal) -> None:
    url = "https://api.example.org:8443/v1/things?q=secret%20words#x"
    for kind, facts in (
        ("request", {"request": "call-0", "call": "things.list", "method": "GET", "url": url}),
        ("request", {"request": "call-1", "call": "things.add", "method": "POST", "url": "https://[broken"}),
        ("answer", {"request": "call-0", "status": 200, "well": True, "bytes": 12}),
        ("unanswered", {"request": "call-1", "why": "The time limit passed."}),
        ("refused", {"reason": "not in the plan", "method": "GET", "target": "evil.test/x"}),
        ("answer", {"request": "call-9", "status": 200}),
        ("lease", {"service": "things", "account": "work", "narrowed": "token", "scopes": ["read"]}),
    ):
        journal.append(kind, action_id="a-1", facts=facts)
    told = story(journal, reversed(find_rows(journal, Wanted(action_id="a-1"))))
    first, second, third = told.exchanges
    assert (first.host, first.path, first.call, first.status, first.bytes, first.well) == (
        "api.example.org:8443", "/v1/things", "things.list", 200, 12, True,
    )  # fmt: skip
    assert (second.path, second.status, second.failed) == ("https://[broken", 0, "The time limit passed.")
    assert (third.host, third.path, third.refused) == ("evil.test", "/x", "not in the plan")
    assert (
        canonical(dict(told.leases[0][1]))
        == b'{"account":"work","narrowed":"token","scopes":["read"],"service":"things"}'
    )
