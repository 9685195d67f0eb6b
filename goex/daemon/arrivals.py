"""How much of agents' requests may lie here before they have arrived whole, and of answers before they are taken.

A request takes memory from its first byte on, and gRPC reads it whole before it calls anybody. So each call is taken
as a stream, which is read by us: who asks is looked at before anything is read, and only `MOST` requests are read at a
time. Others wait unread; while some do, a request has `GRACE` seconds to arrive, and less the more connections wait. So
many at once are read one after the other, and whoever sends a request whole waits little for those who don't. A stream
of requests counts until it ends. How many wait has a bound, beyond which the newest of whoever has most is refused. So
have answers that aren't taken, by what they need of memory, beyond which a connection that has more than its share gets
no other. gRPC keeps one that it was given until the connection ends, whatever becomes of the call: so when there is no
room for another's, a connection of whoever has most of them is hung up on, if it didn't take one within `TAKEN_WITHIN`.
Calls that were read count, too: gRPC keeps some memory for each. No event goes before a refusal: whoever takes nothing
wouldn't take that one either, and the call would stay.

Calls come one after the other from all connections, each by several rounds of the loop. So what one asks for is begun
only when no other has come for some rounds, and in turns: else one agent's burst would be worked off, call by call,
before another's first is even seen.

Who has most is looked at by agent (by user, of those without a name), then by process, then by connection: connections
cost nothing, and whoever opens many makes only its own wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from goex.daemon.rpc_context import Behind, abort
from goex.rpc import goex_pb2 as pb
from policies.errors import ExitStatus, GoexError, Unavailable
from runtimes.turns import Counts, Turns

MOST = 16
GRACE = 1.0  # seconds
LEAST_GRACE = 0.2  # seconds: a request of the largest size takes a fraction of that
MOST_OPEN = 4096  # calls of all agents that wait to be read, and as many that were: some 20 KiB each
FEW_WAITING = 16  # of a connection, whatever others have; and the most of those that aren't ours
FEW_READ = 32  # of a connection, whatever others have
MOST_UNTAKEN = 128 * 2**20  # bytes of memory for all answers together
SHARE = 2**19  # bytes of it for a connection's, whatever others leave untaken
TAKEN_WITHIN = 5.0  # seconds, where others' need the room
COPIES = 3  # of an answer: as it was made, its bytes, and gRPC's own
CALL = 20 * 2**10  # bytes that a call takes besides
OURS = "/goex.v1."
FEW_BEGUN = 16  # open calls of an agent whose next is begun at once
PAUSE = 0.005  # seconds in which gRPC shows the next call, if there is one, where nothing else is done
LONGEST_PAUSE = 0.05  # seconds for all pauses before one call: whoever sends call after call delays others by that


class Crowded(Unavailable):
    """Too much is open here, hasn't arrived whole, or isn't taken. Where the request hadn't been read, nothing says
    whether its key was used before."""

    code = "crowded"


@dataclass(slots=True, eq=False)
class _Place:
    """One of those that a request is read in."""

    who: Behind
    since: float | None = None  # from when on it is read
    patience: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))


class Arrivals(grpc.aio.ServerInterceptor):
    """`behind` gets the context of each call, and raises for a caller that isn't let in. `hang_up` ends a connection,
    by `context.peer()`."""

    def __init__(self, behind: Callable[[Any], Behind], hang_up: Callable[[str], object]) -> None:
        self._behind = behind
        self._hang_up = hang_up
        self._places: list[_Place] = []  # oldest first
        self._arriving = Counts()  # those places
        # By connection, that which had its turn longest ago first; the turns of each, oldest first.
        self._waiting: dict[Behind, dict[asyncio.Future[_Place], None]] = {}
        self._unread = Counts()  # those turns
        self._looking: asyncio.TimerHandle | None = None
        # By connection, since when the answer of each call could be taken, oldest first.
        self._answers: dict[Behind, dict[Any, float]] = {}
        self._untaken = Counts()  # bytes of memory for those
        self._read = Counts()  # calls whose request was read, until they end
        self._foreign = Counts()  # calls that aren't ours
        self._came = 0  # calls that were let in, so far
        self._beginning = Turns(1)

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        ours, to_bytes = details.method.startswith(OURS), handler.response_serializer

        async def streamed(requests: Any, context: Any) -> None:
            try:
                await called(requests, context)
            except DecodeError:  # of a service that isn't ours: `Readable` reads for ours
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "These bytes aren't a request of this method.")

        async def called(requests: Any, context: Any) -> None:
            who = await self._let_in(context)
            self._came += 1
            with self._foreign.more(who, 0 if ours else 1):
                if not ours and self._foreign[who] > FEW_WAITING:
                    await abort(context, _many_open())
                if handler.request_streaming:
                    async with self._counted(context, who):
                        await self._answer(handler.stream_stream(requests, context), context, who, to_bytes)
                    return
                async with self._counted(context, who):
                    request = await context.read()
                if request is grpc.aio.EOF:
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "There is no request in this call.")
                if self._is_full_for(who):
                    await abort(context, _many_open())
                with self._read.more(who):
                    if self._read[who[:1]] > FEW_BEGUN:
                        async with self._beginning.turn(who):
                            await self._calm()
                    if handler.response_streaming:
                        await self._answer(handler.unary_stream(request, context), context, who, to_bytes)
                    else:
                        await self._send(await handler.unary_unary(request, context), context, who, to_bytes)

        return handler._replace(
            request_streaming=True,
            response_streaming=True,
            response_serializer=lambda made: made if isinstance(made, bytes) else to_bytes(made),
            unary_unary=None,
            unary_stream=None,
            stream_stream=streamed,
        )

    async def _let_in(self, context: Any) -> Behind:
        try:
            return self._behind(context)
        except GoexError as error:
            await abort(context, error)

    async def _calm(self) -> None:
        """Until no call came in a pause, and nothing made it longer."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_PAUSE
        while (began := loop.time()) < until:
            came = self._came
            await asyncio.sleep(PAUSE)
            if came == self._came and loop.time() < began + 2 * PAUSE:
                break

    def _is_full_for(self, who: Behind) -> bool:
        """Whether too many calls that were read are open, and both the agent and the connection have their share."""
        if self._read[()] < MOST_OPEN or self._read[who] < FEW_READ:
            return False
        agents = sum(len(each) == 1 for each in self._read)
        return self._read[who[:1]] >= MOST_OPEN // agents

    @asynccontextmanager
    async def _counted(self, context: Any, who: Behind) -> AsyncIterator[None]:
        """While a request arrives: until it takes too long and others wait."""
        try:
            place = await self._place(who)
        except Crowded as error:
            await abort(context, error)
        try:
            async with place.patience:
                place.since = asyncio.get_running_loop().time()
                yield
        except TimeoutError:
            said = f"{MOST} requests of agents were arriving, others waited, and this one took longest."
            await abort(context, Crowded(said, next_step="Send it again, at once."))
        finally:
            self._leave(place)

    async def _place(self, who: Behind) -> _Place:
        """A place, in its turn. Raises Crowded where too many wait for theirs."""
        if len(self._places) < MOST:
            return self._enter(who)
        self._make_room(who)
        turn: asyncio.Future[_Place] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, {})[turn] = None
        self._unread.add(who)
        if self._looking is None:
            self._end_late()
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            if not turn.done():
                self._wait_no_more(who, turn)
            elif turn.exception() is None:
                self._leave(turn.result())
            raise
        return turn.result()

    def _make_room(self, who: Behind) -> None:
        """Let one more wait: where too many do, instead of the newest of whoever has most. Raises Crowded where that
        is who asks, and has its share."""
        if self._unread[()] < MOST_OPEN:
            return
        most = max(self._waiting, key=self._unread.rank)
        if self._unread.has_more(most, who):
            turn = next(reversed(self._waiting[most]))
            self._wait_no_more(most, turn)
            turn.set_exception(_many_open())
        elif self._unread[who] >= FEW_WAITING:
            raise _many_open()

    def _wait_no_more(self, who: Behind, turn: asyncio.Future[_Place]) -> None:
        self._unread.add(who, -1)
        del self._waiting[who][turn]
        if not self._waiting[who]:
            del self._waiting[who]

    def _enter(self, who: Behind) -> _Place:
        self._places.append(_Place(who))
        self._arriving.add(who)
        return self._places[-1]

    def _leave(self, place: _Place) -> None:
        if place not in self._places:
            return
        self._places.remove(place)
        self._arriving.add(place.who, -1)
        if self._waiting:
            who = min(self._waiting, key=self._arriving.rank)
            turn = next(iter(self._waiting[who]))
            self._wait_no_more(who, turn)
            if who in self._waiting:  # its others stand behind those of whoever waits now
                self._waiting[who] = self._waiting.pop(who)
            turn.set_result(self._enter(who))

    def _end_late(self) -> None:
        """While others wait: end what had its time, always the oldest of whoever has most."""
        self._looking = None
        now = asyncio.get_running_loop().time()
        while self._waiting:
            most = max(self._places, key=lambda each: self._arriving.rank(each.who)).who
            oldest = next(each for each in self._places if each.who == most)
            grace = max(LEAST_GRACE, GRACE * MOST / max(MOST, len(self._waiting)))
            late = now - oldest.since - grace if oldest.since is not None else -grace
            if late < 0:  # by then more may wait
                self._looking = asyncio.get_running_loop().call_later(min(-late, LEAST_GRACE), self._end_late)
                return
            oldest.patience.reschedule(now)
            self._leave(oldest)

    async def _answer(self, made: Any, context: Any, who: Behind, to_bytes: Callable[[Any], bytes]) -> None:
        """Send what a method of many answers makes, which is a generator's, or written by itself."""
        if isawaitable(made):
            await made
            return
        async with aclosing(made) as answers:
            async for answer in answers:
                await self._send(answer, context, who, to_bytes)

    async def _send(self, answer: Any, context: Any, who: Behind, to_bytes: Callable[[Any], bytes]) -> None:
        size = CALL + COPIES * answer.ByteSize()
        if self._untaken[()] + size > MOST_UNTAKEN and not self._hung_up(who) and self._untaken[who] + size > SHARE:
            said = "Too many answers to agents aren't taken."
            crowded = Crowded(said, next_step="Take what was answered, or ask again in some seconds.")
            if isinstance(answer, pb.Event):  # it is begun: whoever asked must know what to look for
                crowded = Crowded(f"{said} See how {answer.action_id} stands.")
                crowded.exit_status = ExitStatus.UNKNOWN
            await abort(context, crowded)
        data = to_bytes(answer)
        del answer  # it may lie here for long
        self._answers.setdefault(who, {})[context] = asyncio.get_running_loop().time()
        try:
            with self._untaken.more(who, size):
                await context.write(data)
        finally:
            del self._answers[who][context]
            if not self._answers[who]:
                del self._answers[who]

    def _hung_up(self, who: Behind) -> bool:
        """Whether an agent has most answers untaken, and, for too long, a connection of it with more than who asks:
        that ends now, and with it gRPC lets go of them. It isn't spared where another connection or process of that
        agent has more and may take it still."""
        agent = max(self._answers, key=self._untaken.rank, default=who)[0]
        late = asyncio.get_running_loop().time() - TAKEN_WITHIN
        its = (one for one in self._answers if one[0] == agent)
        overdue = (one for one in its if next(iter(self._answers[one].values())) <= late)
        most = max(overdue, key=self._untaken.rank, default=who)
        if not self._untaken.has_more(most, who):
            return False
        self._hang_up(most[-1])
        return True


def _many_open() -> Crowded:
    return Crowded("Too many calls of agents are open, some of this connection.", next_step="End some, then ask again.")
