"""A call of a server whose image isn't there, or goes while a container is being made of it, was never made."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from policies.errors import GoexError, Unavailable
from runtimes.rest import run as rest_run
from runtimes.rest.records import CallRecord
from runtimes.sandbox.contract import ImageGone, SandboxFailed
from runtimes.servers import run


@pytest.mark.parametrize(
    "why", [Unavailable("It isn't built."), ImageGone("It is being removed.")], ids=["gone", "goes"]
)
async def test_a_call_whose_image_is_gone_was_never_sent(why: GoexError, monkeypatch: pytest.MonkeyPatch) -> None:
    def anything(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(env={}, headers={}, ca_pem="", opened=lambda _: nullcontext(""), id="notes", accounts={})

    async def fails(*_: Any) -> None:
        raise why

    monkeypatch.setattr(run, "WayOut", anything)
    monkeypatch.setattr(run, "session", SimpleNamespace(call_of=anything, told=anything, job=anything))
    monkeypatch.setattr(rest_run, "heading", anything)
    none: Any = SimpleNamespace(
        base_url="x",
        agreed="",
        limits=None,
        run=fails,
        service=anything,
        note=anything,
        progress=anything,
        action_id="a",
    )
    step: Any = SimpleNamespace(
        id="call-0", read=False, arguments={}, method_id="m", method="m", service="s", account="a"
    )
    record = CallRecord()
    runner = run.ServerRunner(server=none, servers=none, sandbox=none, gateway=none, catalog=none, profile=none)
    none.limits, none.seconds, none.put = none, 1.0, anything
    with pytest.raises(SandboxFailed, match=why.message):
        await runner.run([step], none, record, none)
    assert not record.sent
