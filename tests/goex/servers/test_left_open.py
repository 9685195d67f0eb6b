"""A call of a server that may have changed something isn't said to have changed nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from policies.actions import Ended
from policies.errors import GoexError
from runtimes.gateway.plan import Exchange
from runtimes.rest import run as rest_run
from runtimes.rest.outcomes import touched
from runtimes.rest.records import CallRecord
from runtimes.sandbox.contract import Result, SandboxFailed
from runtimes.servers import run, session
from runtimes.servers.way_out import WayOut


async def made(
    monkeypatch: pytest.MonkeyPatch, said: bytes | GoexError, *, changed: bool = False, read: bool = False
) -> CallRecord:
    """The record of a call in whose container that was said, or whose sandbox failed so."""

    def anything(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(**ways)

    async def runs(*_: Any) -> Result:
        if isinstance(said, GoexError):
            raise said
        return Result(ended=Ended.EXITED, exit_code=0, stdout=said, stderr=b"", cut=0, seconds=0.1)

    ways: dict[str, Any] = {
        "env": {}, "headers": {}, "ca_pem": "", "refused": [], "changed": changed,
        "opened": lambda _: nullcontext(""), "hidden": str,
    }  # fmt: skip
    monkeypatch.setattr(run, "WayOut", anything)
    monkeypatch.setattr(session, "told", anything)
    monkeypatch.setattr(session, "job", anything)
    monkeypatch.setattr(rest_run, "heading", anything)
    every: Any = SimpleNamespace(
        name="notes",
        base_url="x",
        agreed="",
        run=runs,
        service=anything,
        method=lambda _: SimpleNamespace(document=""),
        note=anything,
        note_seen=anything,
        progress=anything,
        put=anything,
        action_id="a",
        accounts={},
        limits=SimpleNamespace(seconds=1.0),
    )
    about = {"id": "call-0", "read": read, "arguments": {}, "method_id": "m", "method": "m", "service": "s"}
    step: Any = SimpleNamespace(**about, account="a", request=SimpleNamespace(expect=(), optional=False))
    record = CallRecord()
    runner = run.ServerRunner(server=every, servers=every, sandbox=every, gateway=every, catalog=every, profile=every)
    await runner.run([step], every, record, every)
    return record


@pytest.mark.promise(63)
async def test_a_call_whose_container_was_lost_on_the_way_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = SandboxFailed("Docker didn't answer in time.", began=True)
    assert (await made(monkeypatch, lost)).unsettled == ("call-0",)
    for never, read in ((SandboxFailed("Docker isn't there."), False), (lost, True)):
        with pytest.raises(SandboxFailed):
            await made(monkeypatch, never, read=read)


FAILED: Mapping[str, bytes] = {
    "it failed": b'{"begun": 0}\n{"answer": 0, "result": {"isError": true, "content": []}}\n',
    "it ended before the call": b'{"failed": "it ended"}\n',
    "its tools are others": b'{"tools": [{"name": "other"}]}\n',
}


@pytest.mark.promise(63)
@pytest.mark.parametrize("how", FAILED)
async def test_a_call_that_failed_once_its_server_had_sent_something_is_open(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    assert touched(await made(monkeypatch, FAILED[how], changed=True))
    assert not touched(await made(monkeypatch, FAILED[how]))


async def test_what_a_server_sent_counts_unless_it_was_refused() -> None:
    def anything(*_: Any) -> None:
        pass

    async def way(*sent: tuple[str, int | None], url: str = "") -> bool:
        server: Any = SimpleNamespace(name="notes", url=url, variable="")
        context: Any = SimpleNamespace(leases=(), note=anything, progress=anything)
        service: Any = None
        made = WayOut(server, service, service, context, "a")
        for number, (verb, status) in enumerate(sent):
            await made._sending(f"r-{number}", f"{verb} https://api.example.org/x", None)
            if status is not None:
                well = 200 <= status < 300
                await made._answered(Exchange(request=f"r-{number}", status=status, well=well, body=None))
        return made.changed

    assert not await way()
    assert not await way(("GET", 200), ("HEAD", None))
    assert not await way(("POST", 422), ("GET", 200))
    for status in (200, 302, 408, 500, 0, None):
        assert await way(("POST", 422), ("POST", status)), status
    assert not await way(("POST", 200), url="https://mcp.example.org/mcp")  # the protocol's own
