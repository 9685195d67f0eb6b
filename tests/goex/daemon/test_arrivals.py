"""Requests that don't arrive: few lie here at a time, and whoever sends a whole one is answered."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from goex.daemon import arrivals
from goex.daemon.acceptor import Acceptor, Connection, Registry
from goex.daemon.grpc_server import LARGEST_OF_AGENTS, serve
from goex.daemon.rpc_context import PROBLEM_KEY, Behind, Callers, Unauthenticated
from goex.engine.peers import Sessions, look_up
from goex.rpc import goex_pb2 as pb
from goex.rpc import goex_pb2_grpc as rpc
from policies.errors import ExitStatus
from runtimes.turns import Counts
from tests.support.waiting import until_async

SECONDS = 30.0
EXECUTE, WHOAMI = "/goex.v1.Actions/Execute", "/goex.v1.Actions/Whoami"
HEALTH = "/grpc.health.v1.Health/Check"
INITIAL_WINDOW_SIZE = 4  # of HTTP/2's settings
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


class Actions(rpc.ActionsServicer):
    async def Whoami(self, request: Any, context: Any) -> pb.WhoamiReply:
        return pb.WhoamiReply(agent="whole")

    async def Execute(self, request: Any, context: Any) -> AsyncIterator[pb.Event]:
        for number in range(3):
            data = b"x" * request.ask_seconds
            yield pb.Event(action_id=f"{number} {len(request.proposal)}", output=pb.Output(data=data))

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[pb.Event]:
        yield pb.Event(action_id=request.id)
        await asyncio.sleep(SECONDS)


def check(context: Any) -> Behind:
    told = dict(context.invocation_metadata())
    if told.get("authorization") == "wrong":
        raise Unauthenticated("This agent token isn't known.")
    return str(told.get("authorization", "user 1")), str(told.get("process", "1 1")), context.peer()


@dataclass(slots=True)
class Place:
    """A server behind an acceptor, and connections to it."""

    address: str
    channels: list[grpc.aio.Channel] = field(default_factory=list)

    def connect(self) -> grpc.aio.Channel:
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
        self.channels.append(grpc.aio.insecure_channel(f"unix:{self.address}", options=options))
        return self.channels[-1]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    services = {"Actions": lambda server: rpc.add_ActionsServicer_to_server(Actions(), server)}
    registry = Registry(lambda _: None)
    server, address = await serve(tmp_path / "s", services, check, registry.hang_up)
    made, own = Place(str(tmp_path / "agent")), frozenset({os.geteuid()})
    acceptor = Acceptor(tmp_path / "agent", "agent", own, address, registry, lambda _: None)
    await acceptor.start()
    yield made
    for channel in made.channels:
        await channel.close()
    acceptor.stop_accepting()
    await server.stop(None)
    acceptor.hang_up()


async def begun(channel: grpc.aio.Channel, method: str = WHOAMI, metadata: Any = ()) -> Any:
    """A request of which nothing follows its head."""
    call = channel.stream_unary(method, request_serializer=bytes)(metadata=metadata, timeout=SECONDS)
    await call.wait_for_connection()
    return call


async def whole(channel: grpc.aio.Channel, metadata: Any = ()) -> str:
    call = channel.unary_unary(WHOAMI, response_deserializer=pb.WhoamiReply.FromString, request_serializer=bytes)
    return str((await call(b"", metadata=metadata, timeout=SECONDS)).agent)


def over(calls: list[Any]) -> list[int]:
    return [number for number, call in enumerate(calls) if call.done()]


@pytest.mark.sampled(2)
@pytest.mark.promise(16)
@pytest.mark.parametrize("methods", [(WHOAMI,), (EXECUTE,), (HEALTH,), (REFLECTION,), (WHOAMI, HEALTH, REFLECTION)])
async def test_few_requests_are_incomplete_at_a_time(
    place: Place, methods: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "FEW_WAITING", 10**9)  # of any kind
    channel = place.connect()
    calls = [await begun(channel, methods[number % len(methods)]) for number in range(arrivals.MOST + 5)]
    assert await whole(place.connect()) == "whole"  # though all places are taken, and five wait for one
    waiting = {asyncio.ensure_future(_ended(call)) for call in calls}
    async with asyncio.timeout(SECONDS / 2):  # before they would end by themselves
        while len(over(calls)) < 5:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    ended = over(calls)
    assert len(ended) <= 7  # the whole one took a place for a moment, too
    assert ended[-1] < arrivals.MOST  # those that came first; what different methods get isn't told in the exact order
    for call in ended:
        assert await calls[call].code() is grpc.StatusCode.ABORTED and "arriving" in await calls[call].details()
    for call in calls:
        call.cancel()


async def _ended(call: Any) -> None:
    await call.code()


async def test_control(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    channel, most = place.connect(), arrivals.MOST
    monkeypatch.setattr(arrivals, "MOST", 10**9)
    calls = [await begun(channel) for _ in range(most + 5)]
    assert await whole(place.connect()) == "whole"
    assert not over(calls)


@pytest.mark.promise(16)
async def test_the_connection_that_has_most_makes_room(place: Place) -> None:
    patient, flood = place.connect(), place.connect()
    first = await begun(patient)
    assert await whole(patient) == "whole"  # by now the first is being read
    calls = [await begun(flood) for _ in range(arrivals.MOST - 1)]
    assert await whole(flood) == "whole"
    last = await begun(place.connect())
    await asyncio.wait_for(_ended(calls[0]), SECONDS)
    assert not first.done() and not last.done()
    assert over(calls) == [0]


@pytest.mark.promise(16)
async def test_many_connections_keep_no_other_waiting(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has many that wait for longer, and none of them a second turn before the last to come had its first."""
    monkeypatch.setattr(arrivals, "MOST", 4)
    calls = [await begun(channel) for channel in [place.connect() for _ in range(4)] for _ in range(8)]
    assert await whole(place.connect()) == "whole"
    assert len(over(calls)) <= 8
    for call in calls:
        call.cancel()


async def test_one_that_leaves_while_it_waits_has_no_turn(place: Place) -> None:
    channel = place.connect()
    calls = [await begun(channel) for _ in range(arrivals.MOST + 5)]
    for call in reversed(calls):
        call.cancel()
    assert await whole(channel) == "whole"
    calls = [await begun(channel) for _ in range(arrivals.MOST - 1)]
    assert await whole(channel) == "whole"
    assert not over(calls)


async def _untaken(place: Place) -> list[bool]:
    """Whether each of several long answers on one connection, which nobody takes, was refused."""
    ask = place.connect().unary_stream(
        EXECUTE, request_serializer=pb.ExecuteRequest.SerializeToString, response_deserializer=pb.Event.FromString
    )
    calls = [ask(pb.ExecuteRequest(ask_seconds=3 * 2**20), timeout=SECONDS) for _ in range(5)]
    assert await whole(place.connect()) == "whole"
    refused = [await _is_refused(call) for call in reversed(calls)]  # the last first: none takes another's place
    for call in calls:
        call.cancel()
    return refused


async def _is_refused(call: Any) -> bool:
    try:
        assert (await call.read()).HasField("output")
        return False
    except grpc.aio.AioRpcError as error:
        return "taken" in (error.details() or "")


@pytest.mark.promise(16)
async def test_few_answers_lie_untaken(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 20 * 2**20)
    assert (await _untaken(place)).count(False) == 2
    ask = place.connect().unary_stream(
        EXECUTE, request_serializer=pb.ExecuteRequest.SerializeToString, response_deserializer=pb.Event.FromString
    )
    asked = ask(pb.ExecuteRequest(ask_seconds=3 * 2**20), timeout=SECONDS)
    assert len([event async for event in asked]) == 3  # whoever takes them gets them
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 0)  # others have left as much as there is room for
    several = [ask(pb.ExecuteRequest(ask_seconds=1000), timeout=SECONDS) for _ in range(20)]
    taken = await asyncio.gather(*map(_taken, several))
    assert taken == [3] * 20  # several at once, too, whatever others leave


async def test_what_was_begun_is_told_though_its_answer_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = place.connect()
    ask = channel.unary_stream(
        EXECUTE, request_serializer=pb.ExecuteRequest.SerializeToString, response_deserializer=pb.Event.FromString
    )
    untaken = ask(pb.ExecuteRequest(ask_seconds=3 * 2**20), timeout=SECONDS)
    assert await whole(channel) == "whole"
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 0)
    refused = ask(pb.ExecuteRequest(ask_seconds=2**20), timeout=SECONDS)
    assert await refused.code() is grpc.StatusCode.ABORTED and "taken" in await refused.details()
    problem = pb.Problem.FromString(dict(await refused.trailing_metadata())[PROBLEM_KEY])
    assert (problem.code, problem.exit_status) == ("crowded", ExitStatus.UNKNOWN)
    assert problem.message.endswith("See how 0 0 stands.")
    untaken.cancel()


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body


async def _takes_nothing(
    place: Place, size: int, calls: int = 1, metadata: Any = ()
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection whose window is closed from the beginning, with calls that are answered at that length."""
    reader, writer = await asyncio.open_unix_connection(place.address)
    closed = _frame(4, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + closed + _frame(4, 1, 0, b""))
    heads = {":method": "POST", ":scheme": "http", ":path": EXECUTE, ":authority": "localhost"}
    heads |= {"content-type": "application/grpc", "te": "trailers", **dict(metadata)}
    head = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in heads.items()
    )
    asked = pb.ExecuteRequest(ask_seconds=size).SerializeToString()
    body = b"\0" + len(asked).to_bytes(4) + asked
    for stream in range(1, 2 * calls, 2):
        writer.write(_frame(1, 4, stream, head) + _frame(0, 1, stream, body))
    return reader, writer


@pytest.mark.promise(16)
async def test_an_answer_that_is_refused_isnt_kept_for_a_client_that_takes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its window is closed from the beginning, so that not even a word about the refusal is taken."""
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 10 * 2**20)
    doors = _let_in(monkeypatch)
    _, writer = await _takes_nothing(place, 3 * 2**20, 10)
    await until_async(lambda: len(doors) == 10)
    await asyncio.sleep(0.5)
    assert doors[0]._read[()] == 1  # the first, whose answer counts
    writer.close()


@pytest.mark.promise(16)
async def test_nor_is_the_first_of_each_connection(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 20 * 2**20)
    doors = _let_in(monkeypatch)
    writers = [(await _takes_nothing(place, 3 * 2**20))[1] for _ in range(10)]
    await until_async(lambda: len(doors) == 10)
    await asyncio.sleep(0.5)
    assert 2 * 9 * 2**20 < doors[0]._untaken[()] < 20 * 2**20  # two of them, at what they need of memory
    for writer in writers:
        writer.close()


@pytest.mark.promise(16)
async def test_whoever_takes_nothing_makes_room_for_others(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 20 * 2**20)
    doors = _let_in(monkeypatch)
    kept = [await _takes_nothing(place, 3 * 2**20) for _ in range(2)]
    await until_async(lambda: bool(doors) and doors[0]._untaken[()] > 18 * 2**20)
    other = place.connect()
    request = pb.ExecuteRequest(ask_seconds=3 * 2**20)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _taken(rpc.ActionsStub(other).Execute(request, timeout=SECONDS))
    assert "taken" in (caught.value.details() or "")  # they may take them still
    monkeypatch.setattr(arrivals, "TAKEN_WITHIN", 0.0)
    assert await _taken(rpc.ActionsStub(other).Execute(request, timeout=SECONDS)) == 3
    ends = [asyncio.ensure_future(reader.read()) for reader, _ in kept]
    ended, left = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=SECONDS)
    assert len(ended) == len(left) == 1  # no more than was needed
    for _, writer in kept:
        writer.close()
    await asyncio.wait(left)


PROCESS, THIRD_PROCESS = (("process", "2 2"),), (("process", "3 3"),)
BOT, THIRD = (("authorization", "bot"),), (("authorization", "third"),)
OTHERS = [(), PROCESS, BOT]


async def _old_and_fresh(
    place: Place, monkeypatch: pytest.MonkeyPatch, metadata: Any
) -> tuple[list[arrivals.Arrivals], list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Two that take nothing: one that has less, and for too long; and one that has more, and may take it still."""
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 20 * 2**20)
    monkeypatch.setattr(arrivals, "TAKEN_WITHIN", 10**6)
    doors = _let_in(monkeypatch)
    old = await _takes_nothing(place, 2 * 2**20, metadata=metadata)
    await until_async(lambda: bool(doors) and doors[0]._untaken[()] > 6 * 2**20)
    ((who, since),) = doors[0]._answers.items()
    doors[0]._answers[who] = dict.fromkeys(since, float("-inf"))
    fresh = await _takes_nothing(place, 3 * 2**20)
    await until_async(lambda: doors[0]._untaken[()] > 15 * 2**20)
    return doors, [old, fresh]


@pytest.mark.promise(16)
@pytest.mark.parametrize(
    ("process", "asker"), [((), ()), ((), PROCESS), ((), BOT), (PROCESS, THIRD_PROCESS), (PROCESS, BOT)]
)
async def test_a_fresh_connection_doesnt_hide_its_agents_old_ones(
    place: Place, process: Any, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kept = await _old_and_fresh(place, monkeypatch, process)
    request = pb.ExecuteRequest(ask_seconds=3 * 2**20)
    asked = rpc.ActionsStub(place.connect()).Execute(request, timeout=SECONDS, metadata=asker)
    assert await _taken(asked) == 3
    ends = [asyncio.ensure_future(reader.read()) for reader, _ in kept]
    ended, left = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=SECONDS)
    assert ended == {ends[0]}
    for _, writer in kept:
        writer.close()
    await asyncio.wait(left)


@pytest.mark.promise(16)
@pytest.mark.parametrize(("old", "asker"), [(BOT, THIRD), (PROCESS, ())])
async def test_whoever_has_less_is_not_hung_up_on(
    place: Place, old: Any, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than another agent; or, of its own, than the process that asks."""
    doors, kept = await _old_and_fresh(place, monkeypatch, old)
    request = pb.ExecuteRequest(ask_seconds=3 * 2**20)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await _taken(rpc.ActionsStub(place.connect()).Execute(request, timeout=SECONDS, metadata=asker))
    assert "taken" in (caught.value.details() or "")
    assert await whole(place.connect(), asker) == "whole"
    assert len(doors[0]._answers) == 2
    for _, writer in kept:
        writer.close()


@pytest.mark.promise(16)
async def test_many_answers_of_one_are_looked_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    doors = _let_in(monkeypatch)
    _, writer = await _takes_nothing(place, 1, 100)
    await until_async(lambda: bool(doors) and doors[0]._untaken[()] > 100 * arrivals.CALL)
    monkeypatch.setattr(arrivals, "MOST_UNTAKEN", 0)
    ranked: list[Behind] = []
    rank = Counts.rank

    def noted(self: Counts, who: Behind) -> tuple[int, ...]:
        ranked.append(who)
        return rank(self, who)

    monkeypatch.setattr(Counts, "rank", noted)
    assert await whole(place.connect()) == "whole"
    assert 0 < len(ranked) < 5
    writer.close()


def _let_in(monkeypatch: pytest.MonkeyPatch) -> list[arrivals.Arrivals]:
    """The door, as often as somebody comes to it."""
    doors: list[arrivals.Arrivals] = []
    made = arrivals.Arrivals._let_in

    def noted(self: arrivals.Arrivals, context: Any) -> Any:
        doors.append(self)
        return made(self, context)

    monkeypatch.setattr(arrivals.Arrivals, "_let_in", noted)
    return doors


async def _taken(call: Any) -> int:
    return len([event async for event in call])


async def test_control_untaken(place: Place) -> None:
    assert (await _untaken(place)).count(False) == 5


@pytest.mark.promise(16)
@pytest.mark.parametrize(
    ("count", "connections", "size"), [(300, 1, 0), (300, 10, 0), (100, 1, 300_000), (40, 20, 3_000_000)]
)
async def test_many_whole_ones_at_once_are_all_answered(place: Place, count: int, connections: int, size: int) -> None:
    channels = [place.connect() for _ in range(connections)]

    async def ask(channel: grpc.aio.Channel) -> int:
        events = rpc.ActionsStub(channel).Execute(pb.ExecuteRequest(proposal="x" * size), timeout=SECONDS)
        return len([event async for event in events])

    assert await asyncio.gather(*(ask(channels[number % connections]) for number in range(count))) == [3] * count


async def _waiting(place: Place, monkeypatch: pytest.MonkeyPatch, most: int) -> list[arrivals.Arrivals]:
    """The door, as often as somebody came to it: of its places there is one, which is taken."""
    for name, value in {"MOST": 1, "GRACE": 10**9, "MOST_OPEN": most, "FEW_WAITING": 4}.items():
        monkeypatch.setattr(arrivals, name, value)
    doors = _let_in(monkeypatch)
    await begun(place.connect())
    await until_async(lambda: len(doors) == 1)
    return doors


async def _more(doors: list[arrivals.Arrivals], count: int, channel: grpc.aio.Channel, metadata: Any = ()) -> list[Any]:
    """So many more calls, each of which waits, or was refused, before the next is begun."""
    calls = []
    for _ in range(count):
        came = len(doors)
        calls.append(await begun(channel, metadata=metadata))
        await until_async(lambda came=came: len(doors) > came)
    return calls


@pytest.mark.promise(16)
@pytest.mark.parametrize("metadata", OTHERS)
async def test_few_calls_wait_at_a_time(place: Place, metadata: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has fewest has its part of them, and no more wait for it: others' make room."""
    doors = await _waiting(place, monkeypatch, 30)
    floods = [place.connect() for _ in range(2)]
    calls = [call for flood in floods for call in await _more(doors, 15, flood)]
    assert doors[0]._unread[()] == 30
    other = place.connect()
    part = 15 if metadata else 10  # half where it is another's; and a third where it is a connection more
    own = await _more(doors, part, other, metadata)
    (refused,) = await _more(doors, 1, other, metadata)
    assert await asyncio.wait_for(refused.code(), SECONDS) is grpc.StatusCode.ABORTED
    assert "open" in await refused.details()
    await until_async(lambda: len(over(calls)) == part)
    assert not over(own) and doors[0]._unread[()] == 30
    await _more(doors, 3, floods[0])
    await until_async(lambda: len(over(calls)) >= part)
    assert not over(own) and doors[0]._unread[()] == 30


async def test_a_connection_has_few_whatever_others_have(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    doors = await _waiting(place, monkeypatch, 3)
    calls = [call for _ in range(3) for call in await _more(doors, 1, place.connect())]
    calls += await _more(doors, 4, place.connect())
    await asyncio.sleep(0.2)
    assert len(over(calls)) <= 1


async def test_control_waiting(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    doors = await _waiting(place, monkeypatch, 10**9)
    calls = await _more(doors, 40, place.connect())
    assert doors[0]._unread[()] == 40 and not over(calls)


@pytest.mark.promise(16)
@pytest.mark.parametrize("metadata", OTHERS[1:])
async def test_another_waits_for_none_of_ones_connections(
    place: Place, metadata: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST", 4)
    calls = [await begun(channel) for channel in [place.connect() for _ in range(24)]]
    assert await whole(place.connect(), metadata) == "whole"
    assert len(over(calls)) <= 8  # and not the twenty that came before it


@pytest.mark.promise(16)
async def test_the_more_wait_the_sooner_it_is_anothers_turn(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST", 4)
    for channel in [place.connect() for _ in range(60)]:
        for _ in range(2):
            await begun(channel)
    began = asyncio.get_running_loop().time()
    assert await whole(place.connect()) == "whole"
    assert asyncio.get_running_loop().time() - began < 8  # of 15 seconds, at GRACE for each


async def _followed(channel: grpc.aio.Channel, count: int, metadata: Any = ()) -> list[Any]:
    calls = [rpc.ActionsStub(channel).Watch(pb.ActionId(id="a"), metadata=metadata) for _ in range(count)]
    return [call for call in calls if await _is_followed(call)]


async def _is_followed(call: Any) -> bool:
    try:
        return bool((await call.read()).action_id == "a")
    except grpc.aio.AioRpcError as error:
        assert "open" in (error.details() or "")
        return False


@pytest.mark.promise(16)
async def test_what_one_follows_keeps_none_of_its_calls_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_OPEN", 170)
    channels = [place.connect() for _ in range(8)]
    kept = [call for channel in channels for call in await _followed(channel, 20)]
    assert len(kept) == 160
    for flood in [place.connect() for _ in range(20)]:
        for _ in range(10):
            await begun(flood)
    assert await asyncio.gather(*(whole(channel) for channel in channels * 2)) == ["whole"] * 16


@pytest.mark.promise(16)
async def test_few_calls_that_were_read_are_open(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each agent has its part of them, and each connection a few."""
    monkeypatch.setattr(arrivals, "MOST_OPEN", 30)
    monkeypatch.setattr(arrivals, "FEW_READ", 4)
    flood, other = place.connect(), place.connect()
    calls = await _followed(flood, 40)
    assert len(calls) == 30
    calls += await _followed(other, 6)
    assert len(calls) == 34
    calls += await _followed(other, 20, BOT)
    assert len(calls) == 49  # half of all is an agent's where there is one more


@pytest.mark.promise(16)
@pytest.mark.parametrize("method", [HEALTH, REFLECTION])
async def test_of_calls_that_arent_ours_a_connection_has_few(
    place: Place, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST", 10**9)
    channel = place.connect()
    calls = [await begun(channel, method) for _ in range(arrivals.FEW_WAITING)]
    more = await begun(channel, method)
    assert await asyncio.wait_for(more.code(), SECONDS) is grpc.StatusCode.ABORTED and "open" in await more.details()
    assert await whole(channel) == "whole" and not over(calls)
    calls.pop().cancel()
    assert await whole(channel) == "whole"
    again = await begun(channel, method)
    assert await whole(channel) == "whole" and not again.done()


@pytest.mark.promise(16)
async def test_little_is_sent_of_a_request_that_nobody_reads_yet(place: Place) -> None:
    """What a client may send of a call before its server reads it stands in the server's settings."""
    reader, writer = await asyncio.open_unix_connection(place.address)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))  # settings without any
    head = await reader.readexactly(9)
    settings = dict(struct.iter_unpack(">HI", await reader.readexactly(int.from_bytes(head[:3]))))
    writer.close()
    assert settings[INITIAL_WINDOW_SIZE] <= 4096


async def test_one_that_leaves_counts_no_more(place: Place) -> None:
    channel = place.connect()
    for _ in range(3 * arrivals.MOST):
        call = await begun(channel)
        call.cancel()
    calls = [await begun(channel) for _ in range(arrivals.MOST - 1)]
    assert await whole(channel) == "whole"
    assert not over(calls)


async def test_whoever_isnt_let_in_is_told_before_the_request_is_read(place: Place) -> None:
    for method in (WHOAMI, EXECUTE, HEALTH):
        call = await begun(place.connect(), method, (("authorization", "wrong"),))
        assert await asyncio.wait_for(call.code(), SECONDS) is grpc.StatusCode.UNAUTHENTICATED


def test_behind_a_call_is_its_agent_or_else_its_user() -> None:
    registry = Registry(lambda _: None)
    registry.add(Connection(look_up("agent", os.getpid(), 1000, 1000, "nonce")))
    known = SimpleNamespace(agent_of={"token": "bot"}.get, named_since=lambda _: "")
    sessions = Sessions(lambda: datetime.now(UTC), lambda _: None)
    callers = Callers(registry, sessions, cast("Any", known), cast("Any", None))

    def behind(*metadata: tuple[str, str]) -> Behind:
        context = SimpleNamespace(
            peer=lambda: "unix-abstract:goex-nonce", invocation_metadata=lambda: metadata, add_done_callback=id
        )
        return callers.behind(context)

    user, process, connection = behind()
    assert (user, connection) == ("user 1000", "unix-abstract:goex-nonce") and process.split()[0] == str(os.getpid())
    assert behind(("authorization", "Bearer token")) == ("bot", process, connection)
    with pytest.raises(Unauthenticated):
        behind(("authorization", "Bearer another"))


async def test_the_longest_proposal_fits(place: Place) -> None:
    """A million characters, each of them as long as one can be; what is longer is refused."""
    call = place.connect().unary_stream(
        EXECUTE, request_serializer=pb.ExecuteRequest.SerializeToString, response_deserializer=pb.Event.FromString
    )
    longest = pb.ExecuteRequest(proposal="\U0001f600" * 1_000_000, key="k" * 200)
    told = [event.action_id async for event in call(longest)]
    assert told == [f"{number} 1000000" for number in range(3)]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(pb.ExecuteRequest(proposal="x" * (LARGEST_OF_AGENTS + 1))).read()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_what_is_packed_is_refused(place: Place) -> None:
    call = place.connect().unary_unary(EXECUTE, request_serializer=pb.ExecuteRequest.SerializeToString)
    request = pb.ExecuteRequest(proposal="x" * (64 * 2**20))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(request, timeout=SECONDS, compression=grpc.Compression.Gzip)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_health_and_reflection_answer(place: Place) -> None:
    channel = place.connect()
    asked = channel.unary_unary(
        HEALTH,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    assert (await asked(health_pb2.HealthCheckRequest(), timeout=SECONDS)).status == 1
    watch = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )(health_pb2.HealthCheckRequest(), timeout=SECONDS)
    assert (await watch.read()).status == 1
    watch.cancel()
    listed = channel.stream_stream(
        REFLECTION,
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )([reflection_pb2.ServerReflectionRequest(list_services="")], timeout=SECONDS)
    services = {each.name for each in (await listed.read()).list_services_response.service}
    assert "goex.v1.Actions" in services
