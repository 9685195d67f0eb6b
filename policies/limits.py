"""Confinement: bounds on what any action may touch, said in config.toml and not in rules.

Rules: an empty list confines nothing, another one names all that is allowed. What is mounted within an allowed folder
is the folder that it is elsewhere, too, and has to be within the allowed ones there as well. What a plan doesn't say
counts as outside where it should say it: a program on databases that names none isn't within the allowed ones. Taking
back (undo, commit) by the person isn't confined, since the confinement may be newer than what is taken back.

Strict undo is one of them: what changes something through a service then runs only with a way back that was proven
here, by having been used and read back; and nothing runs that can't be taken back at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from policies.actions import Plan, Revert, UndoClass, folders_of, other_paths_of
from policies.commits import each_of
from policies.display_text import counted
from policies.grants import PERSON
from policies.host_names import is_encoded, with_decoded_host
from policies.reversions import Standing
from policies.rules.facts import NO_CATALOG, Catalogued, Situation, hosts_of, plan_recipients

_SQL_KINDS = ("sql", "mongo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What is allowed at most. Hosts, recipients, databases and tables may hold `*`; 0 rows or actions is no limit.

    `folders` are absolute; what is below one is within it. `session_actions` is for agents, never for the person.
    `strict` is for everybody, `strict_agents` for the agents of these names, which may hold `*`.
    """

    folders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    rows: int = 0
    session_actions: int = 0
    strict: bool = False
    strict_agents: tuple[str, ...] = ()

    def refusal(self, plan: Plan, *, agent: str, situation: Situation, catalog: Catalogued = NO_CATALOG) -> str:
        """Why this plan is out of bounds, as the agent may read it; "" when it is within them."""
        if agent != PERSON and self.session_actions and situation.session_actions >= self.session_actions:
            return f"This session has had its {counted(self.session_actions, 'action')}, and isn't allowed more."
        if agent == PERSON and isinstance(plan.action, Revert) and plan.action.verb != "redo":
            return ""
        said = (self._refusal(one, agent, catalog) for one in each_of(plan) or (plan,))
        return next((why for why in said if why), "")

    def _refusal(self, plan: Plan, agent: str, catalog: Catalogued) -> str:
        """Why a plan that is none of several is out of bounds."""
        if self.folders and not all(self._holds(plan, folder) for folder in folders_of(plan)):
            return "This folder isn't one of those that actions are confined to."
        if self.hosts and (outside := _outside_hosts(hosts_of(plan), self.hosts)):
            return f"{outside} isn't one of the hosts that actions are confined to."
        if self.recipients:
            found, known = plan_recipients(plan, catalog)
            if outside := _outside_hosts(found, self.recipients):
                return f"{outside} isn't one of the recipients that actions are confined to."
            if not known:
                return (
                    "Who gets this isn't known before it runs, and actions are confined to certain recipients: name"
                    " each of them, and have nobody else told."
                )
        strict = self.strict or (self.strict_agents and not _outside((agent,), self.strict_agents))
        if strict and (why := unproven(plan)):
            return why
        return self._of_databases(plan)

    def _holds(self, plan: Plan, folder: str) -> bool:
        """Whether one of the allowed folders holds this one, which isn't mounted there from elsewhere."""
        mount, paths = other_paths_of(plan, folder)
        inner = all(any(_below(path, allowed) for allowed in self.folders) for path in paths)
        return any(_below(folder, allowed) and (inner or _below(allowed, mount)) for allowed in self.folders)

    def refuses_host(self, host: str) -> bool:
        """Whether this host isn't one of those that actions are confined to."""
        return bool(self.hosts) and bool(_outside_hosts((host,), self.hosts))

    def _of_databases(self, plan: Plan) -> str:
        works_on_data = plan.action.kind in _SQL_KINDS or "databases" in plan.resolved or "tables" in plan.resolved
        if not works_on_data:
            return ""
        for name, allowed in (("databases", self.databases), ("tables", self.tables)):
            if not allowed:
                continue
            said = plan.resolved.get(name)
            if not isinstance(said, list | tuple) or not said:
                return f"It doesn't say which {name} it works on, and actions are confined to certain ones."
            # Partitions that are used through their parent, which has to be one of the tables, and what triggers read.
            within = plan.resolved.get("within", ()) if name == "tables" else ()
            if outside := _outside((str(one) for one in said if one not in within), allowed):
                return f"{outside} isn't one of the {name} that actions are confined to."
        rows = plan.bounds.get("rows")
        if self.rows and (rows is None or rows > self.rows):
            return f"It may change more than the {counted(self.rows, 'row')} that one action may."
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """After `denials` within `seconds` an agent rests for `rest_seconds`: all that it asks for is denied at once. No
    number of denials (0) is never."""

    denials: int = 50
    seconds: int = 600
    rest_seconds: int = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What an agent may ask for: requests a minute, megabytes of them an hour, calls to a model an hour; mappings and
    assessments that are under way at once."""

    requests: int = 1200
    megabytes: int = 256
    model_calls: int = 2000
    at_once: int = 8


NOT_CONFINED = Confinement()
QUOTA = Quota()
BREAKER = Breaker()


def unproven(plan: Plan) -> str:
    """Why strict undo refuses this plan, and what to do; "" when it has an exact or a proven way back, or only reads.
    Statements of SQL have an exact one: where a pair fails, the rows that were kept take it back."""
    if isinstance(plan.action, Revert) and plan.action.verb != "redo":
        return ""
    if plan.undo_class is UndoClass.IRREVERSIBLE:
        return "Undo is strict, and this can't be taken back, so it isn't run. Without [undo] strict it is asked for."
    if plan.action.kind == "sql" or plan.undo_class is UndoClass.EXACT:
        return ""
    steps, undos = plan.resolved.get("steps"), plan.undo.get("calls")
    if not isinstance(steps, list | tuple):
        if plan.undo_class is UndoClass.NOTHING:
            return ""
        return (
            "Undo is strict, and this can't be undone exactly (on MongoDB only a replica set can), so it isn't run."
            " Without [undo] strict it is asked for."
        )
    proven = {undo["call"] for undo in undos or () if undo.get("standing") == Standing.PROVEN}
    for step in steps:
        if step["role"] == "call" and not step["read"] and step["call"] not in proven:
            name = f"{step['service']}.{step['method']}"
            return (
                f"Undo is strict, and the way back of {name} isn't proven here, so it isn't run. To prove it: without"
                " [undo] strict, run it once on something that doesn't matter, then undo it; goex undo-pairs list"
                f" {name} then says proven."
            )
    return ""


def _below(folder: str, allowed: str) -> bool:
    allowed = allowed.rstrip("/") or ""
    return folder == (allowed or "/") or folder.startswith(f"{allowed}/")


def _outside(found: Iterable[str], allowed: tuple[str, ...]) -> str:
    """The first of these that no pattern allows."""
    return next((one for one in sorted(found) if not any(fnmatchcase(one, pattern) for pattern in allowed)), "")


def _outside_hosts(found: Iterable[str], allowed: tuple[str, ...]) -> str:
    """As `_outside`, of hosts and of addresses at them, encoded or in letters. What can't be decoded is outside."""
    patterns = tuple({spelled(one.lower()) for one in allowed for spelled in (str, with_decoded_host)})
    names = {one: with_decoded_host(one) if one.isascii() else one for one in found}
    return next((one for one in sorted(names) if is_encoded(names[one]) or _outside((names[one],), patterns)), "")


def described(confinement: Confinement) -> Mapping[str, str]:
    """What is set, in words, for whoever lists the rules."""
    lists = ("folders", "hosts", "recipients", "databases", "tables")
    numbers = ("rows", "session_actions")
    made = {name: ", ".join(getattr(confinement, name)) for name in lists}
    made |= {name: str(getattr(confinement, name) or "") for name in numbers}
    made["strict_undo"] = "everybody" if confinement.strict else ", ".join(confinement.strict_agents)
    return {name: text for name, text in made.items() if text}
