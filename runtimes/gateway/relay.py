"""The requests of code of one action, by its rules: each is admitted, answered here, or refused and reported."""

from __future__ import annotations

from runtimes.gateway.admission import AskedHead, Local, refusal_body
from runtimes.gateway.body_streams import Incoming, Reply
from runtimes.gateway.head import BadHead, Head
from runtimes.gateway.passage import JSON, Gone, Passage, Stop, Way, unframed
from runtimes.gateway.policy import No
from runtimes.gateway.tls_streams import Messages


class Relay:
    """The way out of one action whose code runs by rules. Holds its leases."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def request(self, messages: Messages, head: Head, asked: AskedHead) -> bool:
        """One request from its head to its answer. Returns whether the connection goes on."""
        incoming, reply = Incoming(messages, head), Reply(messages)
        decision = self._way.policy.admit(asked)
        if isinstance(decision, No):
            return await self._refuse(asked, incoming, reply, decision)
        if isinstance(decision, Local):
            return await self._answer_here(asked, incoming, reply, decision)
        passage = Passage(self._way, decision, head, messages, incoming, reply)
        try:
            return await passage.run()
        except Stop as stop:
            return await self._refuse(asked, incoming, reply, stop.no)
        except Gone:
            return False
        finally:
            self._way.policy.settle(decision, passage.status)

    def close(self) -> None:
        self._way.leases.clear()
        self._way.wires.close()

    async def _answer_here(self, asked: AskedHead, incoming: Incoming, reply: Reply, local: Local) -> bool:
        try:
            body = await incoming.whole(local.limit)
        except BadHead as error:
            return await self._refuse(asked, incoming, reply, unframed(error))
        given = self._way.policy.answer(local, body)
        await reply.whole(given.status, given.headers, given.body, last=False)
        return True

    async def _refuse(self, asked: AskedHead, incoming: Incoming, reply: Reply, no: No) -> bool:
        where = f"{asked.origin}{asked.target.partition('?')[0]}"
        await self._way.report(asked.head.method, where, no)
        if reply.began:
            return False  # its answer is cut off, which is all that can be said by now
        await incoming.drain()
        last = not incoming.done
        await reply.whole(no.status, JSON, refusal_body(no, asked.head.method, where), last=last)
        return not last
