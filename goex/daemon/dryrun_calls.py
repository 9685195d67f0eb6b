"""The person's calls about dry runs: what would happen, before anything is decided.

Rules: a dry run runs a program on a copy of the person's folder and shows its output. At the public page, where no
passkey was asked for that, there is only the dry run of a question that waits, by its id and digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from goex.daemon.person_context import PersonCalls
from goex.daemon.preview_calls import dry_run_reply
from goex.daemon.request_parser import earlier_program, parse_execute, parse_revert
from goex.daemon.rpc_context import streaming
from goex.engine.dryrun import DryRuns
from goex.rpc import goex_pb2 as pb
from policies.errors import Denied, InvalidInput


class DryRunCalls(PersonCalls):
    """Dry runs of what waits, and of what isn't asked for yet."""

    @streaming
    async def DryRun(self, request: pb.DryRunRequest, context: Any) -> AsyncIterator[pb.DryRunEvent]:
        said: asyncio.Queue[str | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._dry_run(request, context, said.put_nowait))
        task.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (text := await said.get()) is not None:
                yield pb.DryRunEvent(progress=text)
            yield pb.DryRunEvent(done=await task)
        finally:  # whoever asked may have gone: then nobody wants the rest
            task.cancel()
            await asyncio.wait({task})

    async def _dry_run(self, request: pb.DryRunRequest, context: Any, progress: Any) -> pb.DryRunReply:
        peer, principal = self._person.callers.peer(context), self._person.callers.principal(context)
        runs, by = DryRuns(self._person.engine), peer.describe()
        what = request.WhichOneof("what")
        if peer.away and what != "question":
            raise Denied(
                "At the public page only a question that waits has a dry run.", next_step="Do it where GoEx runs."
            )
        match what:
            case "question":
                asked = request.question
                return dry_run_reply(await runs.of_question(asked.approval_id, asked.digest, by=by, progress=progress))
            case "request":
                earlier = earlier_program(self._person.engine, request.request, principal)
                plan, found = await runs.of_request(
                    parse_execute(request.request, earlier), principal, by=by, progress=progress, keep=request.keep
                )
            case "revert":
                plan, found = await runs.of_request(parse_revert(request.revert), principal, by=by, progress=progress)
            case _:
                raise InvalidInput("The request asks for nothing.", next_step="Set question, request or revert.")
        return dry_run_reply(found, plan.lines)
