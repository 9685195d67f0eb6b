"""A program's dry run: it runs, in a container, and nothing leaves.

Rules: nothing is leased for it: the gateway gets a credential that is made up for this run, and the daemon refuses each
request when it is told of it. What the program does when it is answered, nobody knows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from mapper.catalog import Catalog
from policies.actions import Plan
from policies.display_text import counted, escape
from runtimes.base import Context, DryLine, DryRun
from runtimes.code.outcomes import outcome
from runtimes.code.permits import Accounts
from runtimes.code.record import Record, permits_of
from runtimes.code.run import Report
from vault.lease import Lease
from vault.secret import Secret

MOST = 200  # lines of what it printed, and requests


def pretended(plan: Plan, context: Context) -> tuple[Lease, ...]:
    """A lease of a text that was never a credential, for each account that the program may call."""
    expires = datetime.now(UTC) + timedelta(hours=1)
    return tuple(
        Lease(
            action_id=context.action_id,
            account=context.accounts[key],
            secret=Secret(secrets.token_urlsafe(32)),
            expires=expires,
        )
        for key in dict.fromkeys(permit.rule.account for permit in permits_of(plan))
    )


def dry_run_of(report: Report, accounts: Accounts, catalog: Catalog) -> DryRun:
    """What a dry run is told as."""
    made = outcome(report, Record(), accounts, catalog)
    files = tuple(_without_file(account.id) for account in accounts.values() if account.format == "file")
    return DryRun(ok=True, summary=_summary(report), lines=(*files, *_lines(report, made.stdout, made.stderr)))


def _without_file(account: str) -> DryLine:
    said = "is a file, whose stand-in only a real run has: what the program needs it for couldn't be tried."
    return DryLine("warning", f"The credential of {escape(account)} {said}")


def _lines(report: Report, stdout: str, stderr: str) -> Iterator[DryLine]:
    said = "; each was answered with a refusal. When it is answered otherwise, it may do something else."
    yield DryLine("note", f"It ran, and no request left{said if report.tried else '.'}")
    for line, sent in report.tried[:MOST]:
        yield DryLine("change", escape(line))
        if sent.body not in (None, {}):
            yield DryLine("same", escape(json.dumps(sent.body, ensure_ascii=False)))
    if len(report.tried) > MOST:
        yield DryLine("note", f"… and {counted(len(report.tried) - MOST, 'more request')}.")
    for stream, text in (("output", stdout), ("errors", stderr)):
        lines = text.splitlines()
        for line in lines[:MOST]:
            yield DryLine("output" if stream == "output" else "errors", escape(line))
        if len(lines) > MOST:
            yield DryLine("note", f"… and {counted(len(lines) - MOST, 'more line')}.")


def _summary(report: Report) -> str:
    count = len(report.tried)
    return f"It would send {count} request{'s' if count != 1 else ''}, as far as it came without an answer."
