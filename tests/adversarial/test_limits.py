"""Attacks on limits: what an agent may take of time, disk, threads and money. Each has its control.

The daemon is real; TIGHT has small limits, and LOOSE, the control, has them taken away by config.toml.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from goex.daemon import request_parser
from goex.daemon.person_threads import in_thread
from goex.engine import breaker, quota
from goex.engine.breaker import Counts
from goex.engine.core import Principal
from goex.engine.intents import Mappings, _beside
from goex.engine.quota import Exhausted, Quotas
from goex.journal import actions as journal_actions
from goex.journal.chain import Journal
from goex.rpc import goex_pb2 as pb
from mapper.code.languages import read
from mapper.code.sent_requests import MAX_WORK, Seen
from policies.errors import InvalidInput
from policies.grants import ANONYMOUS, PERSON
from policies.limits import Breaker, Quota
from runtimes.code import reader
from runtimes.code.reader import Reader
from runtimes.sql.checking import usage
from runtimes.sql.checking.check import check
from runtimes.sql.contract import Dialect
from tests.runtimes.sql.checking.schemas import shop
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon

TIGHT = "[limits]\nrequests = 10\nmegabytes = 1\n"
# Without the breaker: here it would end a flood of requests that can't be assessed before any quota does.
LOOSE = "[limits]\nrequests = 100000\nmegabytes = 100000\n[breaker]\ndenials = 0\n"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
MARK = "the-end-of-it"
LONGER = 60.0  # seconds; nobody waits for them


def _daemon(config: str) -> Iterator[Daemon]:
    with Daemon(config=config) as running:
        running.person(
            "VaultPut",
            pb.VaultPutRequest(
                service="slack", account="work", secret=b"x", format="string", passphrase=APPROVAL_PASSPHRASE
            ),
        )
        yield running


@pytest.fixture(scope="module")
def tight() -> Iterator[Daemon]:
    yield from _daemon(TIGHT)


@pytest.fixture(scope="module")
def loose() -> Iterator[Daemon]:
    yield from _daemon(LOOSE)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "state.db", tmp_path / "journal.head", lambda: NOW)
    made.unlock(b"k" * 32)
    return made


def request(size: int = 10) -> pb.ExecuteRequest:
    arguments = json.dumps({"channel": "#ops", "nonsense": "x" * size + MARK})
    return pb.ExecuteRequest(
        calls=pb.Calls(calls=[pb.Call(service="slack", method="chat.postMessage", arguments_json=arguments)])
    )


def execute(daemon: Daemon, token: str, size: int = 10) -> Any:
    return list(daemon.actions("Execute", request(size), token=token))


def times(ask: Callable[[], object], most: int) -> tuple[int, grpc.RpcError | None]:
    """How often something was taken, and what refused the next."""
    for number in range(most):
        try:
            ask()
        except grpc.RpcError as error:
            return number, error
    return most, None


def rows(daemon: Daemon) -> int:
    with sqlite3.connect(f"file:{daemon.state_dir / 'state.db'}?mode=ro", uri=True) as connection:
        return int(connection.execute("select count(*) from journal").fetchone()[0])


def refused(error: grpc.RpcError | None) -> bool:
    return error is not None and error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.promise(16)
def test_requests(tight: Daemon) -> None:
    token = tight.add_agent("flood")
    taken, error = times(lambda: execute(tight, token), 60)
    assert refused(error)
    assert taken < 20
    before = rows(tight)
    for _ in range(50):
        times(lambda: execute(tight, token), 1)
    assert rows(tight) - before < 50  # a refusal leaves no row: those are of the few that were taken again meanwhile
    assert tight.person("Approvals", pb.ApprovalsRequest()) is not None  # the person has no quota


def test_control_requests(loose: Daemon) -> None:
    token = loose.add_agent("flood")
    before = rows(loose)
    assert times(lambda: execute(loose, token), 60) == (60, None)
    assert rows(loose) - before >= 120


def _connections(quotas: Quotas, number: int) -> int:
    """How many of so many connections without a name are answered, each asking ten times."""
    answered = 0
    for place in range(number):
        for _ in range(10):
            try:
                quotas.take(ANONYMOUS, f"conn-{place}-{ANONYMOUS}-1", 10)
                answered += 1
            except Exhausted:
                break
    return answered


@pytest.mark.promise(16)
def test_reconnecting(journal: Journal) -> None:
    quotas = Quotas(journal, lambda: NOW, Quota(requests=10))
    assert _connections(quotas, 3000) == 40
    assert len(quotas._buckets) <= 2001


def test_control_reconnecting(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "_lines", lambda agent, session: ((session, 1),))
    assert _connections(Quotas(journal, lambda: NOW, Quota(requests=10)), 300) == 3000


@pytest.mark.promise(16)
def test_bytes(tight: Daemon) -> None:
    token = tight.add_agent("heavy")
    taken, error = times(lambda: execute(tight, token, 300_000), 8)
    assert refused(error)
    assert taken <= 4


def test_control_bytes(loose: Daemon) -> None:
    token = loose.add_agent("heavy")
    assert times(lambda: execute(loose, token, 300_000), 8) == (8, None)


def _map(daemon: Daemon, token: str) -> object:
    return daemon.actions("Map", pb.MapRequest(intent="post hi to #ops on slack"), token=token)


@pytest.mark.promise(16)
def test_maps(tight: Daemon) -> None:
    token = tight.add_agent("asks")
    taken, error = times(lambda: _map(tight, token), 40)
    assert refused(error)
    assert taken < 40


def test_control_maps(loose: Daemon) -> None:
    token = loose.add_agent("asks")
    assert times(lambda: _map(loose, token), 40) == (40, None)


def _list(daemon: Daemon, token: str) -> object:
    daemon.actions("List", pb.ListRequest(limit=1000), token=token)
    return daemon.actions("WayBack", pb.WayBackRequest(verb="undo", moment="2026-01-01T00:00:00Z"), token=token)


@pytest.mark.promise(16)
def test_lists(tight: Daemon) -> None:
    token = tight.add_agent("lists")
    taken, error = times(lambda: _list(tight, token), 40)
    assert refused(error)
    assert taken < 20


def test_control_lists(loose: Daemon) -> None:
    token = loose.add_agent("lists")
    assert times(lambda: _list(loose, token), 40) == (40, None)


def _looks(daemon: Daemon, token: str, most: int) -> tuple[int, grpc.RpcError | None]:
    first = next(iter(daemon.actions("Execute", request(), token=token)))
    id = pb.ActionId(id=first.action_id)
    asks = [
        lambda: daemon.actions("Get", id, token=token),
        lambda: daemon.actions("Whoami", pb.WhoamiRequest(), token=token),
        lambda: list(daemon.actions("Watch", id, token=token)),
        lambda: daemon.actions("Cancel", id, token=token),
    ]
    places = iter(range(most * 2))
    return times(lambda: asks[next(places) % 4](), most)


@pytest.mark.promise(16)
def test_looks(tight: Daemon) -> None:
    taken, error = _looks(tight, tight.add_agent("looks"), 400)
    assert refused(error)
    assert taken < 400
    assert tight.person("Status", pb.StatusRequest()).vault == "unsealed"  # the person has no quota


@pytest.mark.thorough
def test_control_looks(loose: Daemon) -> None:
    assert _looks(loose, loose.add_agent("looks"), 400) == (400, None)


def test_a_look_at_a_long_action_counts_as_several(journal: Journal) -> None:
    quotas = Quotas(journal, lambda: NOW, Quota(requests=10))
    quotas.read("scout", "conn-1", 1_000_000)
    with pytest.raises(Exhausted):
        quotas.read("scout", "conn-1", 1_000_000)
    with pytest.raises(Exhausted):  # it was read all the same, so that it's paid off first
        quotas.look("scout", "conn-1", 0)


def _followed(journal: Journal) -> int:
    quotas = Quotas(journal, lambda: NOW, Quota())
    with ExitStack() as following:
        for number in range(1000):
            try:
                following.enter_context(quotas.watching("scout", "conn-1"))
            except Exhausted:
                return number
    with quotas.watching("scout", "conn-1"):  # it counts those that are open
        return 1000


@pytest.mark.promise(16)
def test_followed(journal: Journal) -> None:
    assert _followed(journal) < 300


def test_control_followed(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota, "MOST_WATCHED", 10**9)
    assert _followed(journal) == 1000


async def _mappings(journal: Journal, number: int) -> tuple[int, int, int]:
    """So many mappings that an agent asks for at once: how many were done, how many at a time at most, refused."""
    quotas, under_way, done, refused, most = Quotas(journal, lambda: NOW, Quota()), 0, 0, 0, 0

    async def one() -> None:
        nonlocal under_way, done, refused, most
        try:
            async with quotas.doing("scout", "conn-1"):
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1
                done += 1
        except Exhausted as over:
            assert over.next_step == "Ask again when some of them have ended."  # no setting raises that
            refused += 1

    await asyncio.gather(*(one() for _ in range(number)))
    return done, most, refused


async def test_tools_that_are_called_at_once_wait_for_their_turn(journal: Journal) -> None:
    assert await _mappings(journal, 100) == (100, 8, 0)


@pytest.mark.promise(16)
async def test_not_any_number_waits(journal: Journal) -> None:
    done, most, refused = await _mappings(journal, 1000)
    assert most == 8 and done < 200 and done + refused == 1000


async def test_who_leaves_while_waiting_takes_no_turn(journal: Journal) -> None:
    quotas = Quotas(journal, lambda: NOW, Quota(at_once=1))
    async with quotas.doing("scout", "conn-1"):
        waiting = asyncio.ensure_future(quotas.doing("scout", "conn-1").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(300), quotas.doing("scout", "conn-1"):
        pass
    assert not quotas._doing


def _parsed(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether arguments of very many values are parsed at all."""
    seen = []

    def parse(text: str, **_: Any) -> dict[str, Any]:
        seen.append(text)
        return {}

    monkeypatch.setattr(request_parser, "parse", parse)
    many = json.dumps({"text": 'a "quoted", [long] one', **{f"k{number}": 1 for number in range(60_000)}})
    calls = pb.Calls(calls=[pb.Call(service="slack", method="chat.postMessage", arguments_json=many)])
    try:
        request_parser.parse_execute(pb.ExecuteRequest(calls=calls))
    except InvalidInput:
        assert not seen
    return bool(seen)


@pytest.mark.promise(16)
def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _parsed(monkeypatch)


def test_control_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_parser, "MOST_VALUES", 10**9)
    assert _parsed(monkeypatch)


def test_commas_in_a_text_are_no_values() -> None:
    text = json.dumps({"channel": "#ops", "text": '[{,"' * 45_000})
    calls = pb.Calls(calls=[pb.Call(service="slack", method="chat.postMessage", arguments_json=text)])
    assert request_parser.parse_execute(pb.ExecuteRequest(calls=calls)).action is not None


async def _others_are_answered(agent: str) -> bool:
    """Whether the loop goes on while words are read."""
    went_on = threading.Event()
    asker = Principal(agent=agent, session="conn-1", source="a test")
    reading = asyncio.ensure_future(_beside(lambda: went_on.wait(LONGER if agent != PERSON else 0.1), asker))
    await asyncio.sleep(0)
    went_on.set()
    return await reading


@pytest.mark.promise(16)
def test_words() -> None:
    assert asyncio.run(_others_are_answered("scout"))


def test_control_words() -> None:
    """The person's own words are read at once."""
    assert not asyncio.run(_others_are_answered(PERSON))


def _rests(journal: Journal) -> tuple[bool, bool]:
    """Whether a connection that was denied rests, and whether another does."""
    counts = Counts(journal, lambda: NOW, Breaker(denials=3))
    for _ in range(4):
        counts.denied(ANONYMOUS, "conn-a-anonymous-1")
    return tuple(counts.until(ANONYMOUS, f"conn-{one}-anonymous-1") is not None for one in "ab")  # type: ignore[return-value]


@pytest.mark.promise(15)
def test_neighbours(journal: Journal) -> None:
    assert _rests(journal) == (True, False)


def test_control_neighbours(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "_TOGETHER", 1)
    assert _rests(journal) == (True, True)


def _kept(daemon: Daemon) -> bool:
    """Whether the end of a long request that was refused is in the state database."""
    with sqlite3.connect(f"file:{daemon.state_dir / 'state.db'}?mode=ro", uri=True) as connection:
        found = connection.execute("select request, intent from actions").fetchall()
    return any(MARK in request and len(request) > 10_000 for request, _ in found)


@pytest.mark.promise(16)
def test_kept(loose: Daemon) -> None:
    token = loose.add_agent("long")
    execute(loose, token, 100_000)
    assert not _kept(loose)
    done = loose.goex("log", "--verify")
    assert done.returncode == 0, done.stderr


def test_control_kept(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    from goex.journal.states import Event
    from policies.actions import ApiCalls, Call

    action = ApiCalls(calls=(Call(service="slack", method="x", arguments={"text": "x" * 100_000 + MARK}),))

    def rejected(id: str) -> str:
        made = journal_actions.Actions(journal)
        with journal.transaction() as transaction:
            row = made.create(
                transaction, id=id, agent="me", session="s", intent="", action=action, source="", detached=False
            )
            made.step(transaction, row, Event.REJECT)
        assert journal.verify().good
        return made.get(id).request

    assert MARK not in rejected("a-1")
    monkeypatch.setattr(journal_actions, "_beginnings", lambda row, noted: {})
    assert MARK in rejected("a-2")


async def _waits(work: Callable[[Callable[[], int]], Any]) -> bool:
    """Whether work of the person's waits while every thread that agents' work has is taken."""
    free = threading.Event()
    taken = [asyncio.create_task(asyncio.to_thread(free.wait)) for _ in range(64)]
    await asyncio.sleep(0)
    person = asyncio.ensure_future(work(lambda: 1))
    done, _ = await asyncio.wait({person}, timeout=2.0)
    free.set()
    await asyncio.gather(person, *taken)
    return not done


@pytest.mark.promise(16)
async def test_threads() -> None:
    assert not await _waits(in_thread)


async def test_control_threads() -> None:
    assert await _waits(asyncio.to_thread)


# 200 kB that took a minute to read when each branch copied every name.
BRANCHES = "import requests\n" + "".join(f"for a{i} in x:\n  b{i} = 1\n" for i in range(7100))


@pytest.mark.promise(16)
def test_the_person_answers_while_programs_are_read() -> None:
    """From the wire: eight such programs of an agent, and passphrases of the person that are checked meanwhile."""
    with contextmanager(_daemon)("") as daemon:
        token = daemon.add_agent("reads")
        long = pb.ExecuteRequest(code=pb.CodeProgram(language="python", program=BRANCHES, services=["slack"]))
        for _ in range(8):
            following = daemon.actions("Execute", long, token=token, seconds=300)
            threading.Thread(target=times, args=(partial(list, following), 1), daemon=True).start()
        for number in range(5):
            request = pb.VaultPutRequest(
                service="github", account=f"n{number}", secret=b"x", format="string", passphrase=APPROVAL_PASSPHRASE
            )
            daemon.person("VaultPut", request, seconds=300)  # raises where nobody answers
        assert len(daemon.actions("List", pb.ListRequest(limit=20), token=token).actions) == 8


ENTANGLED = "def f0(): pass\n" + "".join(f"def f{i}():\n" + f"  f{i - 1}()\n" * 40 for i in range(1, 6)) + "f5()\n" * 50


@pytest.mark.promise(16)
def test_work() -> None:
    seen = read("python", ENTANGLED * 4)
    assert seen.spent <= MAX_WORK + 1000
    assert any("--method" in note for note in seen.notes)


@pytest.mark.thorough
def test_control_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mapper.code.interpreter.MAX_STEPS", 10 * MAX_WORK)
    assert read("python", ENTANGLED * 4, Seen(budget=MAX_WORK + 20_000)).spent > MAX_WORK + 15_000


def _doubled(number: int) -> str:
    """Queries of which each has all columns of the one before it, twice."""
    parts = ["a0 AS (SELECT * FROM orders)"]
    parts += [f"a{i} AS (SELECT * FROM a{i - 1}, a{i - 1} AS b{i})" for i in range(1, number)]
    return f"WITH {', '.join(parts)} SELECT * FROM a{number - 1}"


@pytest.mark.promise(16)
def test_columns() -> None:
    for number in (12, 40):
        with pytest.raises(InvalidInput, match="more than 5000 columns"):
            check(_doubled(number), shop(Dialect.SQLITE), database="shop")


def test_control_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MOST_OUTPUTS", 10**6)
    assert check(_doubled(12), shop(Dialect.SQLITE), database="shop").statements


COMMAND = "rm -r old notes/a.txt\n" * 40


async def _parsed_here(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a command that a hook asks about reaches a parser in this process."""
    monkeypatch.setattr("tree_sitter.Parser", None)
    try:
        return not (await Reader().read_folder_shell(COMMAND, "/work", "scout")).changes
    except TypeError:
        return True


@pytest.mark.promise(16)
async def test_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not await _parsed_here(monkeypatch)


async def test_control_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LITTLE_SHELL", 10_000)
    assert await _parsed_here(monkeypatch)


def _mapped(quotas: Quotas) -> int:
    for number in range(100):
        try:
            quotas.model("scout", "s", 10)
        except Exhausted:
            return number
    return 100


@pytest.mark.promise(16)
def test_model(journal: Journal) -> None:
    assert _mapped(Quotas(journal, lambda: NOW, Quota(model_calls=50))) == 5


def test_control_model(journal: Journal) -> None:
    assert _mapped(Quotas(journal, lambda: NOW, Quota(model_calls=10**6))) == 100


async def _answered(quotas: Quotas) -> int:
    """How often the model is asked for words over what a reading that was chosen beforehand brought."""
    asked = 0

    async def answer(intent: object, outcome: str) -> str:
        nonlocal asked
        asked += 1
        return "there are two"

    mapper = SimpleNamespace(model="one", answer=answer)
    mapping: Any = SimpleNamespace(core=SimpleNamespace(quotas=quotas), mapper=lambda: mapper)
    row: Any = SimpleNamespace(agent="scout", session="s", intent="how many are there", outcome='{"ok": true}')
    for _ in range(100):
        with suppress(Exhausted):
            await Mappings.words(mapping, row)
    return asked


@pytest.mark.promise(16)
async def test_model_words(journal: Journal) -> None:
    assert await _answered(Quotas(journal, lambda: NOW, Quota(model_calls=50))) == 50


async def test_control_model_words(journal: Journal) -> None:
    assert await _answered(Quotas(journal, lambda: NOW, Quota(model_calls=10**6))) == 100
