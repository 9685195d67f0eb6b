"""The class of an ending follows from facts alone."""

from __future__ import annotations

import pytest

from policies.actions import Ended
from runtimes.sandbox.failure import Facts, classify


def facts(
    cause: Ended | None = None, code: int | None = 0, memory: bool = False, seconds: float = 1.0, allowed: float = 60.0
) -> Facts:
    return Facts(cause=cause, exit_code=code, memory_hit=memory, seconds=seconds, allowed=allowed)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (facts(), (Ended.EXITED, 0)),
        (facts(code=3), (Ended.EXITED, 3)),
        (facts(code=137), (Ended.EXITED, 137)),
        (facts(code=143), (Ended.EXITED, 143)),
        (facts(code=137, seconds=60.0), (Ended.TIMEOUT, None)),
        (facts(code=137, seconds=60.0, memory=True), (Ended.TIMEOUT, None)),
        (facts(code=0, seconds=60.2), (Ended.EXITED, 0)),
        (facts(code=124, seconds=1.0), (Ended.EXITED, 124)),
        (facts(code=137, memory=True), (Ended.OUT_OF_MEMORY, 137)),
        (facts(code=0, memory=True), (Ended.OUT_OF_MEMORY, 0)),
        (facts(code=1, memory=True), (Ended.OUT_OF_MEMORY, 1)),
        (facts(cause=Ended.OUTPUT_CAP, code=137), (Ended.OUTPUT_CAP, None)),
        (facts(cause=Ended.OUTPUT_CAP, code=0, memory=True), (Ended.OUTPUT_CAP, None)),
        (facts(cause=Ended.TIMEOUT, code=137, seconds=62.0), (Ended.TIMEOUT, None)),
        (facts(cause=Ended.KILLED, code=None), (Ended.KILLED, None)),
    ],
)
def test_classes(given: Facts, expected: tuple[Ended, int | None]) -> None:
    assert classify(given) == expected


def test_output_is_no_fact() -> None:
    assert not {name for name in Facts.__dataclass_fields__ if "out" in name or "err" in name}
