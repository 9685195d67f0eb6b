"""What a program's run amounts to, in one `Outcome`. Pure.

Rules: it went well when the program ended by itself with 0, whatever it printed; what left and how it was answered is
the gateway's word. Nothing was touched only when no request that can change something ever left.
"""

from __future__ import annotations

from collections.abc import Iterable

from mapper.catalog import Catalog
from policies.actions import Ended, Outcome
from policies.display_text import escape
from runtimes.code import missing
from runtimes.code.permits import Accounts
from runtimes.code.record import Record
from runtimes.code.refused import proposal
from runtimes.code.run import Report
from runtimes.sandbox import open_files_hint


def outcome(report: Report, kept: Record, accounts: Accounts, catalog: Catalog) -> Outcome:
    """The outcome of a run."""
    result = report.result
    ended = result.ended if result is not None else Ended.KILLED
    code = result.exit_code if result is not None else None
    told = report.refusals.told(accounts, catalog)
    said = [_ending(report, ended, code)]
    if result is not None and code and (lacked := missing.told(result.stderr)):
        said.append(lacked)
    if result is not None and (hint := open_files_hint.told(result)):
        said.append(hint)
    if not report.counted:
        said.append("No request left.")
    if report.refusals.count:
        said.append(f"{_times(report.refusals.count)} refused.")
    if proposal(told):
        said.append(f"Not allowed: {', '.join(proposal(told))}.")
    if report.unkept:
        said.append(escape(f"It can't be taken back here: {report.unkept}."))
    return Outcome(
        ok=ended is Ended.EXITED and code == 0 and report.error is None and not report.unkept,
        summary=" ".join(said),
        ended=ended,
        exit_code=code,
        stdout=_shown(result.stdout if result is not None else b"", report.placeholders),
        stderr=_shown(result.stderr if result is not None else b"", report.placeholders),
        cut=result.cut if result is not None else 0,
        changes=tuple(_requests(report, id) for id in report.counted),
        refused=told,
        touched=bool(kept.sent),
    )


def _ending(report: Report, ended: Ended, code: int | None) -> str:
    if report.error is not None:
        return escape(f"The program was broken off: {report.error.message}")
    if ended is not Ended.EXITED:
        return f"The program was ended: {ended.value}."
    return "The program ended with 0." if code == 0 else f"The program ended with {code}."


def _requests(report: Report, id: str) -> str:
    failed = report.failed.get(id, 0)
    count = report.counted[id]
    return f"{id}: {count} request{'s' if count != 1 else ''}{f', {failed} not answered well' if failed else ''}"


def _times(count: int) -> str:
    return "1 request was" if count == 1 else f"{count} requests were"


def _shown(data: bytes, placeholders: Iterable[str]) -> str:
    """What it printed. A placeholder is worth nothing any more, and isn't kept."""
    text = data.decode("utf-8", "replace")
    for one in placeholders:
        text = text.replace(one, "‹placeholder›")
    return text
