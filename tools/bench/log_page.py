"""`log.first_page.p50_ms`: the newest 50 actions of a journal of 100,000 rows, as `goex log` gets and writes them: the
client's call, the daemon's answer, the lines for the terminal; without starting an interpreter. `log.rows_page.p50_ms`
is the same for the newest 50 rows (`goex log --rows`), `log.found_page.p50_ms` for actions of one agent, at least of
one risk, on one service, since a time (`goex log --agent … --risk … --service … --since …`).

The floor is the cheapest call that the daemon answers (`Whoami`), on the same connection.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

from goex.cli.action_text import show_actions
from goex.cli.journal_table import show_rows
from goex.cli.output import Output
from goex.client import Client
from goex.rpc import audit_pb2 as audit
from goex.rpc import goex_pb2 as pb
from tests.support.daemon import Daemon
from tools.bench import journals
from tools.bench.measure import Once, Row, in_turn, row

NAME = "log.first_page.p50_ms"
PAGE = 50


async def measure(rows: int = journals.ROWS, rounds: int = 100) -> tuple[Row, ...]:
    with Daemon() as daemon:
        with journals.behind(daemon) as journal:
            journals.fill(journal, rows)
        with Client(daemon.user_socket) as client:
            narrow = audit.Wanted(
                limit=PAGE, agent="agent-3", risk="write", service="slack", since="2020-01-01T00:00:00Z"
            )

            async def whoami() -> None:
                client.call("Actions/Whoami", pb.WhoamiRequest(), pb.WhoamiReply)

            found = []
            for name, once in (
                (NAME, _shown(client, audit.Wanted(limit=PAGE))),
                ("log.rows_page.p50_ms", _rows(client)),
                ("log.found_page.p50_ms", _shown(client, narrow)),
            ):
                timings = await in_turn(once, whoami, rounds=rounds, seconds=10)
                found.append(row(name, timings[0], "a call that asks for nothing", timings[1]))
    return tuple(found)


def _shown(client: Client, wanted: audit.Wanted) -> Once:
    async def once() -> None:
        page = client.call("Audit/Actions", wanted, audit.ActionsPage)
        assert len(page.actions) == PAGE
        _printed(lambda out: show_actions(out, page.actions))

    return once


def _rows(client: Client) -> Once:
    async def once() -> None:
        reply = client.call("Audit/Rows", audit.Wanted(limit=PAGE), pb.LogReply)
        assert len(reply.rows) == PAGE
        _printed(lambda out: show_rows(out, reply.rows))

    return once


def _printed(write: Callable[[Output], None]) -> None:
    with contextlib.redirect_stdout(_Screen()) as said:
        write(Output(as_json=False))
    assert said.getvalue().count("\n") >= PAGE


class _Screen(io.StringIO):
    """What is written is kept, and formatted as for a terminal."""

    def isatty(self) -> bool:
        return True
