"""What would end a whole run doesn't, and an internal error is repeated at the run's end.

A lone surrogate in a log record, a warning or a failure's message can't be sent to the process that collects reports,
and pytest-xdist ends the worker: such texts are escaped.

Python 3.11 parses the lines of a traceback to underline a part of them. Where a destructor raises while something else
is being parsed (its object was found as garbage then), pytest formats that traceback then and there, and the parse that
was under way ends with "SystemError: AST constructor recursion depth mismatch" (CPython's issue 106905, pytest's issue
10763): nothing is underlined.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

_LAST_LINES = 40
_internal_errors: list[str] = []


def sendable(value: Any) -> Any:
    """The same value of JSON, with each character that UTF-8 doesn't have as its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {sendable(key): sendable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(sendable(one) for one in value)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[None]:
    return sendable((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: warnings.WarningMessage) -> None:
    message = warning_message.message
    if isinstance(message, Warning) and sendable(str(message)) != str(message):
        warning_message.message = UserWarning(sendable(f"{type(message).__name__}: {message}"))


def pytest_configure() -> None:
    if hasattr(traceback, "_extract_caret_anchors_from_line_segment"):
        traceback._extract_caret_anchors_from_line_segment = lambda _: None


def pytest_internalerror(excrepr: object) -> None:
    _internal_errors.append(str(excrepr))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _internal_errors:  # pytest-xdist would say that all went well where it was a worker's last test
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_unconfigure() -> None:
    if _internal_errors and "PYTEST_XDIST_WORKER" not in os.environ:
        lines = _internal_errors[0].splitlines()
        print("What ended the run:", *lines[-_LAST_LINES:], sep="\n", file=sys.stderr)
