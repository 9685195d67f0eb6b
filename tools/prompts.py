"""How long the questions are that a person is asked, over a corpus: `python -m tools.prompts`.

The corpus is every method of the bundled services with made-up arguments, programs for folders and for services,
statements, MongoDB operations, and reverts. Of each question the words besides the payload are counted, and the lines
on a terminal of 80 columns; beside them the same of the whole text, which is behind `?`.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from goex.cli.question_text import answers_line, choices, describe, short
from goex.daemon.action_views import need_view
from goex.daemon.approval_views import escaped
from goex.daemon.duration_text import Asked, widths
from goex.daemon.question import Standing, question
from goex.engine import grant_issue
from goex.journal.actions import ActionRow
from goex.journal.states import State
from goex.rpc import goex_pb2 as pb
from mapper.catalog import Catalog
from policies.accounts import Account, Origin
from policies.actions import ApiCalls, Call, Code, Files, Mongo, Plan, Revert, Sql, UndoClass
from policies.databases import SERVICE as DATABASE
from policies.databases import Address
from policies.decisions import Ask, Request, decide
from policies.digest import digest
from policies.errors import GoexError
from policies.rules.facts import Situation
from runtimes.base import Context
from runtimes.code.plans import assess_code, look
from runtimes.files import plans as files_plans
from runtimes.files.folder import Folder
from runtimes.files.tree import Bounds, Manifest
from runtimes.mongo import plans as mongo_plans
from runtimes.mongo.backend import Facts
from runtimes.mongo.operations import parse as mongo_program
from runtimes.rest.plans import assess_calls, assess_commit
from runtimes.sandbox.contract import Profile
from runtimes.sql import plans as sql_plans
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Column, Dialect, Limits, Place, Policy, Reached, Schema, Survey, Table
from tools.sample_values import example

COLUMNS, LINES, WORDS = 80, 24, 60
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
AGENT = "claude-code"
_SOURCE = "user 1000, process 4242 (claude), on the agent socket"


class NoRules:
    """No rule says anything."""

    def judge(self, request: Request, now: datetime) -> Any:
        from policies.decisions import Ruling

        return Ruling()


@dataclass(frozen=True, slots=True)
class Case:
    """A question of the corpus."""

    name: str
    plan: Plan
    agent: str = AGENT
    target: str = ""
    last: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """Words besides the payload, and lines with it."""

    name: str
    words: int
    lines: int
    words_whole: int
    lines_whole: int


def corpus() -> Iterator[Case]:
    """Every kind of question."""
    catalog = Catalog.bundled()
    yield from _methods(catalog)
    yield from _programs(catalog)
    yield from _statements()
    yield from _reverts(catalog)


def size(case: Case, catalog: Catalog) -> Size:
    """Return how long one question is."""
    approval = asked(case, catalog)
    lines = short(approval, COLUMNS, NOW)
    prompt = answers_line(approval, NOW)
    ours = [line.text for line in lines if not line.text.startswith(("  │", "  ┊", "─"))]
    words = sum(len(text.removeprefix("┊").replace(" ┊", " ").split()) for text in (*ours, prompt))
    whole = [*describe(approval, COLUMNS, NOW), *choices(approval, COLUMNS)]
    whole_words = len(" ".join(line.text for line in whole).split()) - sum(len(line.split()) for line in approval.lines)
    return Size(case.name, words, len(lines) + 1, whole_words, len(whole) + 1)


def asked(case: Case, catalog: Catalog) -> pb.Approval:
    """The approval as the daemon makes it, of an agent that was never allowed anything."""
    plan = case.plan
    row = row_of(case)
    wanted = Request(
        agent=case.agent, session="s-1", digest=digest(plan, agent=case.agent), plan=plan, situation=Situation()
    )
    decision = decide(wanted, (), NoRules(), NOW)
    assert isinstance(decision, Ask), decision
    offered = grant_issue.choices(plan, decision)
    view = Asked(row=row, plan=plan, needs=decision.needs, duplicates=0, now=NOW, unused=timedelta(days=90))
    standing = Standing(decision=decision, given=lambda need: 0, target=case.target, last=case.last)
    return escaped(
        pb.Approval(
            id="ap-5d0c2a", action_id=row.id, agent=row.agent, digest=wanted.digest, lines=plan.lines,
            needs=[need_view(need, catalog, False) for need in plan.needs],
            undo_class=plan.undo_class, undo_text=plan.undo_text, risk=plan.risk.word, presence=decision.presence,
            widths=offered, reason=decision.reason, deadline=(NOW + timedelta(minutes=5)).isoformat(), state="pending",
            source=_SOURCE, arguments=grant_issue.freeable(plan), choices=widths(view, offered, catalog),
            kind=row.kind, question=question(row, plan, offered, catalog, standing),
        )
    )  # fmt: skip


def row_of(case: Case) -> ActionRow:
    """The action that asks."""
    return ActionRow(
        id="a-2f6c11d0", number=2, agent=case.agent, session="s-1", kind=case.plan.action.kind, state=State.ASKING,
        created="", updated="", intent="", request="", plan="", digest="d" * 64, outcome="", problem="", target="",
        source=_SOURCE, detached=False,
    )  # fmt: skip


def percentile(values: list[int], part: float) -> int:
    """The smallest value that at least `part` of all are at most."""
    return sorted(values)[min(max(-(-int(part * 100) * len(values) // 100) - 1, 0), len(values) - 1)]


def main() -> None:
    catalog = Catalog.bundled()
    sizes = [size(case, catalog) for case in corpus()]
    if "--json" in sys.argv:
        print(json.dumps([vars(one) if hasattr(one, "__dict__") else _as_dict(one) for one in sizes]))
        return
    print(f"{len(sizes)} questions at {COLUMNS} columns")
    print(f"{'':24}{'p50':>6}{'p95':>6}{'worst':>7}")
    for label, field in (
        ("words, short", "words"),
        ("lines, short", "lines"),
        ("words, whole (?)", "words_whole"),
        ("lines, whole (?)", "lines_whole"),
    ):
        values = [getattr(one, field) for one in sizes]
        print(f"{label:24}{percentile(values, 0.5):>6}{percentile(values, 0.95):>6}{max(values):>7}")
    over = [one for one in sizes if one.words > WORDS or one.lines > LINES]
    print(f"over {WORDS} words or {LINES} lines: {len(over)}")
    for one in sorted(over, key=lambda one: -one.words)[:12]:
        print(f"  {one.words:>4} words {one.lines:>4} lines  {one.name}")
    if len(sys.argv) > 1:  # show those whose name holds a word
        for case in corpus():
            if sys.argv[1] in case.name:
                print()
                approval = asked(case, catalog)
                print("\n".join(line.text for line in short(approval, COLUMNS, NOW)))
                print(answers_line(approval, NOW))


def _as_dict(one: Size) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Size.__slots__}


def _methods(catalog: Catalog, *names: str) -> Iterator[Case]:
    """One for each method of these services, or of all."""
    for service in [catalog.services[name] for name in names or catalog.services]:
        account = Account(
            service=service.name,
            name="work",
            origins=(Origin.parse(service.base_url or "https://matrix.example.org"),),
            base_url=service.base_url or "https://matrix.example.org",
        )
        for method in service.methods.values():
            if method.unsupported or not method.scopes:
                continue
            plan = _planned(catalog, account, service.name, method.name, method.parameters)
            if plan is not None:
                yield Case(f"{service.name}.{method.name}", plan)


def _planned(catalog: Catalog, account: Account, service: str, method: str, schema: Any) -> Plan | None:
    """A plan with the first made-up arguments that the method takes."""
    for seed in range(60):
        call = Call(service=service, method=method, arguments=example(schema, random.Random(seed)), account="work")
        try:
            return assess_calls(ApiCalls(calls=(call,)), context(account), catalog, Profile(image="rest"), "sha256:0")
        except GoexError:
            continue
    return None


def context(*accounts: Account) -> Context:
    class NoRecords:
        def put(self, name: str, data: bytes) -> None: ...
        def get(self, name: str) -> bytes | None: ...

    return Context(
        action_id="a-2f6c11d0", agent=AGENT, accounts={(one.service, one.name): one for one in accounts},
        granted=frozenset(), leases=(), records=NoRecords(), note=lambda kind, facts: None,
        progress=lambda text: None, output=lambda stream, data: None,
    )  # fmt: skip


_SHELL = (
    "rm *.tmp",
    "mkdir -p done\nmv *.pdf done/",
    'for file in *.jpeg; do\n  mv "$file" "${file%.jpeg}.jpg"\ndone',
    "sed -i 's/colour/color/g' *.md",
)
_PYTHON = (
    "from pathlib import Path\nfor path in Path().glob('*.csv'):\n    path.write_text(path.read_text().upper())",
    "import json\nfrom pathlib import Path\ndata = json.loads(Path('a.json').read_text())\n"
    "data['version'] += 1\nPath('a.json').write_text(json.dumps(data))",
)
_CODE = (
    "import requests\nrequests.post('https://slack.com/api/chat.postMessage', json={'channel': '#ops', 'text': 'hi'})",
    "import requests\nprint(requests.get('https://slack.com/api/conversations.list').json())",
    "import requests\nfor name in ('a', 'b'):\n"
    "    requests.post('https://slack.com/api/chat.postMessage', json={'channel': '#ops', 'text': name})",
)


def _programs(catalog: Catalog) -> Iterator[Case]:
    profile = Profile(image="files")
    folder = Folder(
        path="/home/me/notes", device=1, inode=2, uid=1000, gid=1000, mode=0o755, settles=True, mount="/", also=()
    )
    found = Manifest(entries={}, taken=0, settled=True)
    for number, program in enumerate((*_SHELL, *_PYTHON)):
        action = Files(folder=folder.path, language="shell" if program in _SHELL else "python", program=program)
        yield Case(
            f"files {number}",
            files_plans.plan(action, folder, found, profile, "sha256:0", Bounds(files=1000, bytes=10**9, depth=50), 30),
        )
    slack = Account(
        service="slack", name="work", origins=(Origin.parse("https://slack.com/api"),),
        base_url="https://slack.com/api",
    )  # fmt: skip
    here = context(slack)
    for number, program in enumerate(_CODE):
        code = Code(language="python", program=program, services=("slack/work",))
        looked = look(code, {("slack", "work"): slack}, catalog)
        plan = assess_code(code, looked, here, catalog, Profile(image="code"), "sha256:0")
        yield Case(f"code {number}", plan)


_SQL: tuple[tuple[str, Policy, tuple[Reached, ...]], ...] = (
    ("SELECT id, total FROM orders WHERE total > 100", "reversal", ()),
    ("UPDATE orders SET status = 'sent' WHERE id = 7", "reversal", (Reached(table="orders", verb="update", rows=1),)),
    (
        "UPDATE orders SET status = 'old' WHERE total < 5",
        "versioning",
        (Reached(table="orders", verb="update", rows=40),),
    ),
    ("DELETE FROM orders WHERE status = 'old'", "reversal", (Reached(table="orders", verb="delete", rows=12),)),
    ("DELETE FROM orders", "versioning", (Reached(table="orders", verb="delete", rows=4000),)),
    (
        "INSERT INTO orders (id, status, total) VALUES (8, 'new', 12.5), (9, 'new', 3)",
        "reversal",
        (Reached(table="orders", verb="insert", rows=2),),
    ),
)
_MONGO = (
    '{"find": "orders", "filter": {"total": {"$gt": 100}}}',
    '{"updateOne": "orders", "filter": {"_id": 7}, "update": {"$set": {"status": "sent"}}}',
    '{"insertOne": "orders", "document": {"_id": 8, "status": "new"}}',
    '{"deleteMany": "orders", "filter": {"status": "old"}}',
    '{"deleteMany": "orders", "filter": {}}',
)


def _statements() -> Iterator[Case]:
    columns = (("id", "integer"), ("status", "text"), ("total", "numeric(10,2)"))
    table = Table(
        name="orders",
        columns=tuple(Column(name=name, type=kind, nullable=name != "id") for name, kind in columns),
        key=("id",),
    )
    schema = Schema(dialect=Dialect.POSTGRESQL, version="15", hash="0" * 64, tables={table.name: table})
    place = Place(dialect=Dialect.POSTGRESQL, host="db.example.org", port=5432, database="shop", user="app")
    for number, (text, policy, reached) in enumerate(_SQL):
        named = tuple(replace(one, table="orders") for one in reached)
        program = check(text, schema, database="shop")
        action = Sql(database="shop", statements=text, policy=policy)
        yield Case(
            f"sql {number}",
            sql_plans.plan(
                action, place, schema, program, policy, Survey(reached=named), hold_hours=24, limits=Limits(), rows=()
            ),
        )
    account = Account(
        service=DATABASE, name="shop", origins=(), format="database", private=True,
        base_url=Address.parse("mongodb://127.0.0.1:27017/shop")[0].url,
    )  # fmt: skip
    for number, text in enumerate(_MONGO):
        mongo = Mongo(database="shop", operations=(text,))
        facts = Facts(transactions=True, version="7.0")
        yield Case(f"mongo {number}", mongo_plans.plan(mongo, account, mongo_program([text]), facts, {}, 12, Limits()))


def _reverts(catalog: Catalog) -> Iterator[Case]:
    """What the reverts of calls and of a folder's program look like to the person, and to an agent's owner."""
    folder = Folder(
        path="/home/me/notes", device=1, inode=2, uid=1000, gid=1000, mode=0o755, settles=True, mount="/", also=()
    )
    action = Files(folder=folder.path, language="shell", program="rm *.tmp")
    done = files_plans.plan(
        action, folder, Manifest(entries={}, taken=0, settled=True), Profile(image="files"), "sha256:0",
        Bounds(files=1000, bytes=10**9, depth=50),
    )  # fmt: skip
    undo = files_plans.revert_plan(
        Revert(verb="undo", target="a-81c2"), done, folder, ("created a.tmp", "created b.tmp")
    )
    said = "shell in /home/me/notes: rm *.tmp"
    yield Case("undo of one's own last", undo, agent="person", target=said, last=True)
    yield Case("undo of an older one", undo, agent="person", target=said)
    yield Case("undo by an agent", undo, target=said, last=True)
    redo = files_plans.revert_plan(Revert(verb="redo", target="a-81c2"), done, folder, ("deleted a.tmp",))
    yield Case("redo", redo, agent="person", target=said, last=True)
    yield Case(
        "commit", files_plans.commit_plan(Revert(verb="commit", target="a-81c2"), done), agent="person", target=said
    )
    slack = next(case for case in _methods(catalog, "slack") if case.name == "slack.chat.postMessage")
    dropped = assess_commit(Revert(verb="commit", target="a-81c2"), slack.plan)
    assert dropped.undo_class is UndoClass.IRREVERSIBLE
    yield Case("commit of calls", dropped, target="slack.chat.postMessage channel=#ops")


if __name__ == "__main__":
    main()
