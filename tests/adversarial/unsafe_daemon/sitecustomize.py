"""Takes defences out of a daemon of the tests': those whose names GOEX_TEST_WITHOUT holds. The controls of attacks that
come over a daemon's sockets; a process whose PYTHONPATH names this folder loads it, or a fork that was started with
that (`forked`), and none that is shipped does.
"""

from __future__ import annotations

import os
from typing import Any


def _references() -> None:
    from policies.actions import Need, Plan

    Need.unseen = property(lambda self: ())  # type: ignore[assignment, method-assign]
    Plan.unseen = property(lambda self: ())  # type: ignore[assignment, method-assign]


def _unknown_arguments() -> None:
    import policies.rules.arguments

    policies.rules.arguments.refers = lambda value: False  # type: ignore[attr-defined]


def _lines(**changed: Any) -> None:
    """A task's lines are looked at with these fields changed."""
    from dataclasses import replace

    from policies import task_cover

    matched = task_cover._matched
    task_cover._matched = lambda uses, lines: matched(uses, [replace(one, **changed) for one in lines])


def _task_counts() -> None:
    from goex.engine.grant_store import GrantStore

    _lines(times=0)
    consume = GrantStore.consume
    GrantStore.consume = lambda self, at, used: consume(self, at, [one for one in used if one.width != "task"])  # type: ignore[method-assign]


def _what_the_vault_knows() -> None:
    from goex.daemon.anchor import Anchor

    async def write(self: Anchor) -> None:
        """It is told nothing."""

    Anchor.write = write  # type: ignore[method-assign]


def _older_vaults() -> None:
    from goex.daemon import rollback

    rollback.check = lambda journal, vault: False  # type: ignore[assignment]


def _private_files() -> None:
    import goex.paths

    goex.paths.check_file = lambda file: None  # type: ignore[assignment]
    goex.paths.check_held = lambda folder: None  # type: ignore[assignment]


def _names_times() -> None:
    from goex.engine.grant_store import GrantStore

    GrantStore.named_since = lambda self, name: ""  # type: ignore[method-assign]


def _told_seldom() -> None:
    import goex.daemon.acceptor

    goex.daemon.acceptor.TOLD_EVERY = 0.0


def _own_tables() -> None:
    import goex.journal.schema

    goex.journal.schema.check_kinds = lambda connection: None  # type: ignore[assignment]


def _task_bounds() -> None:
    _lines(within=None)


def _task_accounts() -> None:
    from policies import task_cover

    uses = task_cover._uses
    task_cover._uses = lambda plan: [(one, two, "work", four) for one, two, _, four in uses(plan)]  # type: ignore[assignment, return-value]


def _task_agents() -> None:
    from goex.engine.grant_store import GrantStore
    from policies import task_cover

    GrantStore.tasks = lambda self, agent: tuple(one for one in self._grants.values() if one.width == "task")  # type: ignore[method-assign]
    holds = task_cover._holds
    task_cover._holds = lambda grant, **how: holds(grant, **{**how, "agent": grant.agent, "session": grant.session})


def _task_sessions() -> None:
    from goex.engine.grant_store import GrantStore
    from policies import task_cover

    GrantStore.end_session = lambda self, session: None  # type: ignore[method-assign]
    holds = task_cover._holds
    task_cover._holds = lambda grant, **how: holds(grant, **{**how, "session": grant.session})


def _task_times() -> None:
    from goex.engine.grant_store import GrantStore
    from policies import task_cover

    GrantStore.forget_unused = lambda self: ()  # type: ignore[method-assign]
    holds = task_cover._holds
    task_cover._holds = lambda grant, **how: holds(grant, **{**how, "now": grant.created})


def _revoking() -> None:
    from goex.engine.grant_store import GrantStore

    GrantStore.revoke = lambda self, ids, **how: ()  # type: ignore[method-assign]


def _task_irreversible() -> None:
    from types import SimpleNamespace

    from policies import task_cover

    task_cover.UndoClass = SimpleNamespace(IRREVERSIBLE=None)  # type: ignore[assignment, misc]


def _asking_rules() -> None:
    from dataclasses import replace

    from goex.engine.rulebook import Rulebook

    judge = Rulebook.judge

    def judged(self: Rulebook, request: Any, now: Any) -> Any:
        said = judge(self, request, now)
        return said if request.plan.action.kind == "task" else replace(said, ask=())

    Rulebook.judge = judged  # type: ignore[method-assign]


def _task_questions() -> None:
    from goex.engine.rulebook import Rulebook
    from policies.decisions import Ruling

    judge = Rulebook.judge

    def judged(self: Rulebook, request: Any, now: Any) -> Any:
        given = {row.agent for row in self.journal.rows(kind="grant", limit=20)}
        if request.plan.action.kind == "task" and request.agent in given:
            return Ruling(permits={0: ("anything",)})
        return judge(self, request, now)

    Rulebook.judge = judged  # type: ignore[method-assign]


def _task_methods() -> None:
    from fnmatch import fnmatchcase

    from goex.engine import tasks
    from mapper.catalog import Catalog
    from policies import task_cover
    from policies.services import Risk

    class Pattern(str):
        """A name that equals whatever it fits."""

        def __eq__(self, other: object) -> bool:
            return fnmatchcase(str(other), str(self))

        def __hash__(self) -> int:
            return 0

    tasks._checked = lambda core, line, agent: (line, Risk.WRITE)
    entry_hash = Catalog.entry_hash
    Catalog.entry_hash = lambda self, ids: entry_hash(self, [one for one in ids if "*" not in one])  # type: ignore[method-assign]
    matched = task_cover._matched

    def fitting(uses: Any, lines: Any) -> Any:
        from dataclasses import replace

        return matched(uses, [replace(one, scope=Pattern(one.scope)) for one in lines])

    task_cover._matched = fitting


def _each_bounds() -> None:
    from policies import jsonpath

    items_at = jsonpath.items_at
    jsonpath.items_at = lambda answer, path, most, work=None: items_at(answer, path, 1_000_000)


def _places() -> None:
    from goex.engine.execution import Running

    Running.slots = lambda self, agent: self._agents  # type: ignore[method-assign]


def _what_was_asked_for() -> None:
    from goex.engine import authorize

    authorize.standing_state = lambda core, plan: ""  # type: ignore[assignment]


def _grants_that_end() -> None:
    from goex.daemon import accounts_service, vault_calls

    for module in (accounts_service, vault_calls):
        module.end_moved = lambda person, account, by: None  # type: ignore[attr-defined]


def _bounds_of_references() -> None:
    from policies import stages

    stages.MOST_REFERENCES = stages.MOST_FILLED = 10**9


def _only_reads() -> None:
    from goex.engine.engine import Engine

    Engine._check_reads = staticmethod(lambda wish, plan: None)  # type: ignore[method-assign]


def _where_a_plan_led() -> None:
    from dataclasses import replace

    from policies.accounts import Origin
    from runtimes.rest import requests, undo

    bind = requests.bind

    def bound(step: Any, answers: Any, catalog: Any, account: Any) -> Any:
        request = replace(step.request, origin=Origin.parse(account.base_url), base_path=())
        return bind(replace(step, request=request), answers, catalog, account)

    undo.bind = bound  # type: ignore[attr-defined]


def _keys_requests() -> None:
    from goex.engine.keys import Keys

    Keys.check_same = lambda self, id, request, principal: None  # type: ignore[method-assign]


_DEFENCES: dict[str, Any] = {
    "only reads": _only_reads,
    "where a plan led": _where_a_plan_led,
    "keys' requests": _keys_requests,
    "bounds of references": _bounds_of_references,
    "grants that end": _grants_that_end,
    "what was asked for": _what_was_asked_for,
    "places": _places,
    "references": _references,
    "unknown arguments": _unknown_arguments,
    "each bounds": _each_bounds,
    "task counts": _task_counts,
    "what the vault knows": _what_the_vault_knows,
    "older vaults": _older_vaults,
    "names' times": _names_times,
    "told seldom": _told_seldom,
    "private files": _private_files,
    "own tables": _own_tables,
    "task bounds": _task_bounds,
    "task accounts": _task_accounts,
    "task agents": _task_agents,
    "task sessions": _task_sessions,
    "task times": _task_times,
    "revoking": _revoking,
    "task irreversible": _task_irreversible,
    "asking rules": _asking_rules,
    "task questions": _task_questions,
    "task methods": _task_methods,
}

for _name in os.environ.get("GOEX_TEST_WITHOUT", "").split(","):
    if _name:
        _DEFENCES[_name]()
