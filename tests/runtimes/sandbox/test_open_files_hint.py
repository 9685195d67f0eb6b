"""A program that failed for want of open files is told how many there are."""

from __future__ import annotations

import pytest

from policies.actions import Ended
from runtimes.code import outcomes
from runtimes.code.record import Record
from runtimes.code.run import Report
from runtimes.files import plans
from runtimes.files.tree import Manifest
from runtimes.sandbox.contract import OPEN_FILES, Result
from runtimes.sandbox.open_files_hint import told
from tests.runtimes.code.support import CATALOG

NODE = b"Error: EMFILE: too many open files, open '626.md'\nNode.js v18.20.4\n"
PYTHON = b"OSError: [Errno 24] Too many open files: 'x'\n"
NOTHING = Manifest(entries={}, taken=0, settled=True)


def failed(stderr: bytes = b"", stdout: bytes = b"", code: int | None = 1) -> Result:
    return Result(ended=Ended.EXITED, exit_code=code, stdout=stdout, stderr=stderr, cut=0, seconds=1.0)


@pytest.mark.parametrize("result", [failed(NODE), failed(PYTHON), failed(stdout=NODE), failed(PYTHON, code=None)])
def test_the_limit_is_said(result: Result) -> None:
    assert str(OPEN_FILES) in told(result)


@pytest.mark.parametrize("result", [failed(), failed(NODE, code=0), failed(PYTHON + b"x" * 20_000)])
def test_nothing_else_is(result: Result) -> None:
    assert told(result) == ""


def test_every_program_s_outcome_has_it() -> None:
    result = failed(NODE)
    for outcome in (
        plans.outcome(result, NOTHING, NOTHING, ()),
        plans.read_outcome(result),
        outcomes.outcome(Report(result=result), Record(), {}, CATALOG),
    ):
        assert outcome.summary.count(told(result)) == 1 and ".." not in outcome.summary
