"""What is in force: applied, kept, altered; and what happens to actions by it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from goex.engine import breaker
from goex.engine.authorize import next_step
from goex.engine.breaker import Counts, Resting, began
from goex.engine.grant_issue import Choice
from goex.engine.rulebook import Rulebook, RulesAltered
from goex.journal.chain import Journal
from goex.journal.states import State
from mapper.catalog import Catalog
from policies.decisions import Allow, Ask, Deny, decide
from policies.errors import InvalidInput
from policies.grants import PERSON
from policies.jsonvalue import parse
from policies.limits import Breaker, Confinement
from policies.rules.cases import read
from tests.goex.engine.conftest import ASKER, Desk

KEY = b"k" * 32
BOT_LISTS = '@id("lists") permit (principal == Agent::"bot", action, resource == Method::"slack.users.list");'
NEVER = '@id("never") forbid (principal == Agent::"bot", action, resource);'
PUT_BACK = "INSERT INTO rulebook VALUES (:id, :files, :applied, :by, :mac, :entries)"
REQUEST, _, NOW = read({"call": "slack.users.list"}, Catalog.bundled())


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(tmp_path: Path, clock: Clock) -> Iterator[Journal]:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head", clock)
    made.unlock(b"j" * 32)
    yield made
    made.close()


def loaded(journal: Journal, clock: Clock, **more: object) -> Rulebook:
    made = Rulebook(journal, clock, Catalog.bundled(), **more)  # type: ignore[arg-type]
    made.load(KEY)
    return made


def came(rules: Rulebook) -> str:
    decision = decide(REQUEST, [], rules, NOW)
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(decision)]


def kinds(journal: Journal) -> list[str]:
    return [row.kind for row in reversed(journal.rows())]


def test_what_was_applied_is_in_force_after_a_restart(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock)
    assert (came(rules), rules.in_force.applied) == ("ask", "")
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    assert came(rules) == "allow"
    again = loaded(journal, clock)
    assert (came(again), again.in_force, again.trouble) == ("allow", rules.in_force, "")
    assert kinds(journal) == ["rules-load", "rules-apply", "rules-load"]
    facts = parse(journal.rows(kind="rules-apply")[0].facts)
    assert (facts["by"], facts["files"], facts["rules"]) == ("ann", ["a.cedar"], rules.in_force.root)


def test_before_they_are_read_nothing_is_permitted_and_everything_is_asked(journal: Journal, clock: Clock) -> None:
    loaded(journal, clock).apply({"a.cedar": BOT_LISTS}, by="ann")
    assert came(Rulebook(journal, clock, Catalog.bundled())) == "ask"


def test_rules_that_cannot_be_read_change_nothing(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock)
    rules.apply({"a.cedar": NEVER}, by="ann")
    with pytest.raises(InvalidInput):
        rules.apply({"a.cedar": "permit (principal"}, by="ann")
    assert (came(rules), came(loaded(journal, clock))) == ("deny", "deny")


def test_the_default_rules_go_only_when_a_file_of_their_name_is_applied(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock)
    rules.apply({"other.cedar": BOT_LISTS}, by="ann")
    assert "irreversible-asks" in {policy.name for policy in rules.book.policies}
    rules.apply({"default.cedar": "// none"}, by="ann")
    assert rules.book.policies == ()


# ---- altered on disk

ALTERED = {
    "a permit added": 'UPDATE rulebook SET files = \'{"a.cedar":"permit (principal, action, resource);"}\'',
    "nothing left of it": "UPDATE rulebook SET files = '{}'",
    "no JSON": "UPDATE rulebook SET files = 'x'",
    "a list": "UPDATE rulebook SET files = '[]'",
    "bytes": "UPDATE rulebook SET files = x'ff00'",
    "another MAC": "UPDATE rulebook SET mac = x'00'",
    "another moment": "UPDATE rulebook SET applied = '2020-01-01T00:00:00+00:00'",
    "another person": "UPDATE rulebook SET by = 'bot'",
    "another catalog": 'UPDATE rulebook SET entries = \'{"shop.keys":"00"}\'',
    "no catalog": "UPDATE rulebook SET entries = 'x'",
    "removed": "DELETE FROM rulebook",
}


@pytest.mark.sampled(5)
@pytest.mark.promise(14)
@pytest.mark.parametrize("name", ALTERED)
def test_altered_rules_permit_nothing_and_everything_is_asked(name: str, journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock)
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    assert rules.holds({"a.cedar": BOT_LISTS}, {}) and not rules.holds({"a.cedar": NEVER}, {})
    with journal.engine.begin() as connection:
        connection.execute(text(ALTERED[name]))
    assert not rules.holds({"a.cedar": BOT_LISTS}, {}), "applying them once more repairs what is recorded"
    again = loaded(journal, clock)
    assert "rules in the state database" in again.trouble
    decision = decide(REQUEST, [], again, NOW)
    assert isinstance(decision, Ask)
    assert "everything is asked for" in decision.reason
    assert kinds(journal)[-1] == "rules-altered"
    with pytest.raises(RulesAltered):
        _ = again.book
    # It stays so until the person applies rules again.
    assert came(loaded(journal, clock)) == "ask"
    again.apply({"a.cedar": BOT_LISTS}, by="ann")
    assert (came(again), came(loaded(journal, clock))) == ("allow", "allow")


@pytest.mark.promise(14)
def test_older_rules_that_are_put_back_are_not_believed(tmp_path: Path, journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock)
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    with journal.engine.begin() as connection:
        old = connection.execute(text("SELECT * FROM rulebook")).one()
    rules.apply({"a.cedar": NEVER}, by="ann")
    with journal.engine.begin() as connection:
        connection.execute(text("DELETE FROM rulebook"))
        connection.execute(text(PUT_BACK), dict(old._mapping))
    assert came(loaded(journal, clock)) == "ask"


@pytest.mark.promise(14)
def test_a_forged_hash_in_the_journal_helps_nobody(journal: Journal, clock: Clock) -> None:
    """Older rules, whose MAC is good, and the journal's newest hash made to fit them."""
    rules = loaded(journal, clock)
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    with journal.engine.begin() as connection:
        old = connection.execute(text("SELECT * FROM rulebook")).one()
        facts = connection.execute(text("SELECT facts FROM journal WHERE kind = 'rules-apply'")).scalar_one()
    rules.apply({"a.cedar": NEVER}, by="ann")
    with journal.engine.begin() as connection:
        connection.execute(text("DELETE FROM rulebook"))
        connection.execute(text(PUT_BACK), dict(old._mapping))
        connection.execute(text("UPDATE journal SET facts = :facts WHERE kind = 'rules-apply'"), {"facts": facts})
    assert came(loaded(journal, clock)) == "ask"


def test_rules_of_another_vault_are_not_believed(journal: Journal, clock: Clock) -> None:
    loaded(journal, clock).apply({"a.cedar": BOT_LISTS}, by="ann")
    other = Rulebook(journal, clock, Catalog.bundled())
    other.load(b"x" * 32)
    assert came(other) == "ask"


# ---- confinement and the breaker come first


@pytest.mark.promise(15)
def test_confinement_comes_before_any_rule(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock, confinement=Confinement(hosts=("example.org",)))
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    decision = decide(REQUEST, [], rules, NOW)
    assert decision == Deny("slack.com isn't one of the hosts that actions are confined to.", ("confine",))


BREAKER = Breaker(denials=3, seconds=60, rest_seconds=600)


@pytest.mark.promise(15)
def test_after_many_denials_an_agent_rests_and_is_denied_at_once(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock, breaker=BREAKER)
    rules.apply({"a.cedar": BOT_LISTS}, by="ann")
    for _ in range(2):
        rules.counts.denied("bot")
    rules.counts.refuse_resting("bot")
    clock.now += timedelta(seconds=61)  # those two are forgotten
    for _ in range(3):
        assert came(rules) == "allow"
        rules.counts.denied("bot")
    with pytest.raises(Resting):
        rules.counts.refuse_resting("bot")
    decision = decide(REQUEST, [], rules, NOW)
    assert isinstance(decision, Deny)
    assert decision.rules == ("breaker",)
    rules.counts.refuse_resting("helper")
    assert set(rules.counts.resting()) == {"bot"}
    row = journal.rows(kind="breaker")[0]
    assert (row.agent, parse(row.facts)["denials"]) == ("bot", 3)

    again = loaded(journal, clock, breaker=BREAKER)  # a restart wakes nobody
    assert came(again) == "deny"
    clock.now += timedelta(seconds=600)
    assert came(again) == "allow"
    again.counts.refuse_resting("bot")


@pytest.mark.promise(15)
def test_the_person_wakes_an_agent_and_never_rests(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock, breaker=BREAKER)
    for _ in range(50):
        rules.counts.denied(PERSON)
    rules.counts.refuse_resting(PERSON)
    assert PERSON not in [row.agent for row in journal.rows(kind="breaker")]
    for _ in range(3):
        rules.counts.denied("bot")
    assert not rules.counts.wake("helper", by="ann")
    assert rules.counts.wake("bot", by="ann")
    rules.counts.refuse_resting("bot")
    assert parse(journal.rows(kind="breaker")[0].facts) == {"by": "ann", "until": ""}
    assert not loaded(journal, clock, breaker=BREAKER).counts.resting()


def test_denials_while_it_rests_do_not_prolong_it(journal: Journal, clock: Clock) -> None:
    rules = loaded(journal, clock, breaker=BREAKER)
    for _ in range(30):
        rules.counts.denied("bot")
    clock.now += timedelta(seconds=600)
    rules.counts.refuse_resting("bot")
    assert len(journal.rows(kind="breaker")) == 1


# ---- how things stand


def test_actions_are_counted_by_agent_and_session(journal: Journal, clock: Clock) -> None:
    counts = Counts(journal, clock, Breaker())
    session = f"conn-1-bot-{int(clock.now.timestamp())}"
    for _ in range(3):
        counts.allowed("bot", session)
    clock.now += timedelta(seconds=61)
    counts.allowed("bot", "another-0")
    found = counts.situation("bot", session)
    assert (found.last_minute, found.last_hour, found.session_actions, found.session_seconds) == (1, 4, 3, 61)
    clock.now += timedelta(hours=1)
    assert counts.situation("bot", session).last_hour == 0
    assert counts.situation("helper", session).last_hour == 0


def test_after_a_restart_no_number_of_others_hides_what_an_agent_did_lately(
    journal: Journal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "READ_AT_ONCE", 2)
    clock.now -= timedelta(hours=2)
    journal.append("allow", agent="bot")
    clock.now += timedelta(hours=2)
    for agent in ("bot", "bot", "other", "other", "other"):
        journal.append("allow", agent=agent)
        clock.now += timedelta(seconds=20)
    counts = Counts(journal, clock, Breaker())
    counts.load()
    said = [counts.situation(agent, "") for agent in ("bot", "other")]
    assert [(one.last_minute, one.last_hour) for one in said] == [(0, 2), (2, 3)]


def test_so_many_rows_are_read_back_at_most(journal: Journal, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a clock that was set back had all of them read, and held."""
    monkeypatch.setattr(breaker, "READ_AT_ONCE", 2)
    monkeypatch.setattr(breaker, "MOST_READ_BACK", 5)
    for _ in range(9):
        journal.append("allow", agent="bot")
    clock.now -= timedelta(days=365)
    counts = Counts(journal, clock, Breaker())
    counts.load()
    assert counts.situation("bot", "").last_hour == 5


@pytest.mark.parametrize("session", ["", "x", "conn-1", "conn-99999999999999999999", "conn-²"])
def test_a_session_without_a_moment_began_long_ago(session: str) -> None:
    assert began(session) <= datetime(2100, 1, 1, tzinfo=UTC)


def test_counting_forgets_sessions_that_are_over(journal: Journal, clock: Clock) -> None:
    counts = Counts(journal, clock, Breaker())
    for number in range(2500):
        counts.allowed("bot", f"conn-{number}-{int(clock.now.timestamp())}")
        clock.now += timedelta(minutes=1)
    assert len(counts._sessions) <= 2001


# ---- through the engine


def applied(desk: Desk, rule: str) -> None:
    desk.core.rules.apply({"a.cedar": rule}, by="ann")


def facts(desk: Desk, id: str, kind: str) -> dict[str, object]:
    (row,) = (row for row in desk.core.journal.rows(action_id=id) if row.kind == kind)
    found: dict[str, object] = parse(row.facts)
    return found


async def test_a_permit_runs_without_a_question(desk: Desk) -> None:
    applied(desk, '@id("go") permit (principal == Agent::"bot", action == Action::"files", resource);')
    id = desk.ask()
    await desk.until(id, State.DONE)
    assert desk.core.approvals.of_action(id) == ()
    assert facts(desk, id, "allow")["rules"] == ["go"]
    assert desk.core.rules.counts.situation(ASKER.agent, ASKER.session).last_hour == 1


async def test_a_forbid_is_told_by_its_name_and_not_by_its_text(desk: Desk) -> None:
    applied(desk, '@id("never") @note("ann distrusts bot") forbid (principal, action, resource);')
    row = await desk.until(desk.ask(), State.DENIED)
    assert "Rule never forbids it." in row.problem
    assert "distrusts" not in row.problem
    assert facts(desk, row.id, "deny")["rules"] == ["never"]
    assert facts(desk, row.id, "deny")["by"] == "the rules"
    assert not desk.runtime.ran


async def test_the_person_is_told_where_a_rule_stands_and_an_agent_isnt(desk: Desk) -> None:
    applied(desk, '@id("never") forbid (principal, action, resource);')
    own = await desk.until(desk.ask(principal=replace(ASKER, agent=PERSON)), State.DENIED)
    step = str(parse(own.problem)["next_step"])
    assert "goex rules." in step and "Only you can change it" in step and "goex rules apply" in step
    others = await desk.until(desk.ask(), State.DENIED)
    assert parse(others.problem)["next_step"] == ""
    confined = next_step(Deny("", ("confine",)), PERSON)
    assert "goex rules" in confined and "config.toml" in confined


async def test_asking_each_time_asks_despite_a_permanent_grant(desk: Desk) -> None:
    desk.answer(await desk.asked(), choice=Choice.PERMANENT)
    await desk.until(desk.ask(), State.DONE)  # the grant alone is enough
    applied(desk, '@id("each") @effect("ask") forbid (principal, action, resource);')
    question = await desk.asked()
    assert (question.widths, "Rule each" in question.reason) == (("once",), True)
    assert facts(desk, question.action_id, "ask")["rules"] == ["each"]
    desk.answer(question)
    await desk.until(question.action_id, State.DONE)
    assert facts(desk, question.action_id, "allow")["rules"] == ["each"]


@pytest.mark.promise(14)
async def test_a_forbid_that_comes_while_it_is_asked_wins_over_the_yes(desk: Desk) -> None:
    question = await desk.asked()
    applied(desk, NEVER)
    desk.answer(question)
    row = await desk.until(question.action_id, State.DENIED)
    assert "Rule never forbids it." in row.problem
    assert not desk.runtime.ran


async def test_denials_by_rule_and_person_make_an_agent_rest(desk: Desk) -> None:
    desk.core.rules.counts.breaker = Breaker(denials=3, seconds=60, rest_seconds=600)
    for _ in range(2):
        desk.answer(await desk.asked(), approve=False)
    applied(desk, NEVER)
    await desk.until(desk.ask(), State.DENIED)
    with pytest.raises(Resting):
        desk.ask()
    assert desk.core.rules.counts.wake("bot", by="ann")
    await desk.until(desk.ask(), State.DENIED)


async def test_a_copy_of_the_whole_folder_carries_its_rules(desk: Desk, tmp_path: Path) -> None:
    """Moving the state to another machine isn't tampering."""
    applied(desk, NEVER)
    home = desk.app.paths.state_dir
    shutil.copytree(home, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    copied = Journal(tmp_path / "copy" / "state.db", tmp_path / "copy" / desk.app.paths.journal_head.name)
    copied.unlock(desk.app.vault_state.vault.derive("journal"))
    rules = Rulebook(copied, desk.core.clock, desk.core.catalog)
    rules.load(desk.app.vault_state.vault.derive("rules"))
    assert rules.trouble == ""
    assert came(rules) == "deny"
    copied.close()
