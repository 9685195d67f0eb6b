"""Texts that an agent or a service may send, each made to be read in time that grows with its square.

`python -m tests.adversarial.long_texts SECONDS [--without] NAME…` reads each in a process of its own, with what mends
it taken away or not, and prints its name and how that process ended: it is killed after so many seconds of the
processor, which are counted from when what reads was loaded.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from jsonpath_rfc9535.function_extensions import Match

LENGTH = 400_000  # characters


@dataclass(frozen=True, slots=True)
class Long:
    """`read` takes the text that `piece` makes; `before` is what stood in the place of `mended` ("module.name")."""

    piece: str
    read: Callable[[str], Any]
    mended: str
    before: Any

    def text(self) -> str:
        return self.piece * (LENGTH // len(self.piece))


def _of(name: str) -> Any:
    module, _, own = name.rpartition(".")
    return getattr(import_module(module), own)


def _was(name: str, now: str, before: str) -> re.Pattern[str]:
    """The expression, as it was before a part of it was mended."""
    pattern: re.Pattern[str] = _of(name)
    assert now in pattern.pattern, name
    return re.compile(pattern.pattern.replace(now, before), pattern.flags)


def _filtered(text: str) -> bool:
    from policies import jsonpath

    try:
        jsonpath.value_at({"items": [{"t": f"{text}\n", "id": 1}]}, "$.items[?match(@.t,'.*abc.*')].id")
    except jsonpath.NoMatch:
        return False
    return True


def _slots(text: str) -> Any:
    return _of("mapper.slots.extract")(text)


LONG: dict[str, Long] = {
    "filtered_answer": Long("abc", _filtered, "policies.jsonpath._ENVIRONMENT.function_extensions.match", Match()),
    "fence_of_a_proposal": Long(
        "\t",
        lambda text: _of("mapper.proposals.unfenced")(f"```{text}"),
        "mapper.proposals._FENCE",
        re.compile(r"```[ \t]*([A-Za-z0-9_+-]*)[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL),
    ),
    "string_of_a_proposal": Long(
        '"\\',
        lambda text: _of("mapper.proposals.nesting")(text),
        "mapper.proposals._STRING",
        re.compile(r'("(?:[^"\\]|\\.)*")', re.DOTALL),
    ),
    "format_in_a_program": Long(
        "0",
        lambda text: _of("mapper.code.texts.formatted")("{" + text, [], _of("mapper.code.abstract_values.Fields")()),
        "mapper.code.texts._PIECE",
        re.compile(r"\{\{|\}\}|\{([A-Za-z_0-9]*)([^{}]*)\}"),
    ),
    "percent_in_a_program": Long(
        "%(",
        lambda text: list(_of("mapper.code.texts._PERCENT").finditer(text)),
        "mapper.code.texts._PERCENT",
        re.compile(r"%(?:\(([^)]*)\))?([sdr%])"),
    ),
    "module_of_a_program": Long(
        "\n",
        lambda text: _of("runtimes.code.environment._MODULE").search(text),
        "runtimes.code.environment._MODULE",
        re.compile(r"^\s*(?:import|export)\b", re.MULTILINE),
    ),
    "identifier_in_words": Long(
        "-",
        lambda text: _of("mapper.ranking.terms._IDENTIFIER").search(text),
        "mapper.ranking.terms._IDENTIFIER",
        re.compile(r"(?<![\w<])(?=[\w\-]*\d)(?=[\w\-]*[A-Za-z])[A-Za-z0-9][\w\-]{4,}(?![\w>])"),
    ),
    "second_wish_in_words": Long(
        "\n",
        lambda text: _of("mapper.ambiguity.goes_on")(text),
        "mapper.ambiguity._SECOND",
        _was("mapper.ambiguity._SECOND", r"(?<!\s)\s+(?:", r"(?:[,;.!?]\s+|\s+)(?:"),
    ),
    "dashes_in_words": Long(
        "-",
        lambda text: _of("mapper.broad_methods._ONE").search(text),
        "mapper.broad_methods._ONE",
        _was("mapper.broad_methods._ONE", r"(?<![\w.-])[\w-]+\.", r"(?<![\w.])[\w-]+\."),
    ),
    "quotes_in_words": Long(
        "“",
        _slots,
        "mapper.slots._QUOTES",
        _was("mapper.slots._QUOTES", "“([^“”]*)”", "“([^”]*)”"),
    ),
}


def _take_away(name: str) -> None:
    place, _, own = LONG[name].mended.rpartition(".")
    if place.endswith("function_extensions"):
        _of("policies.jsonpath._ENVIRONMENT").function_extensions[own] = LONG[name].before
    else:
        setattr(import_module(place), own, LONG[name].before)


def main(seconds: float, arguments: list[str]) -> None:
    without = arguments[:1] == ["--without"]
    for name in arguments[without:]:
        LONG[name].read(LONG[name].piece)
    for name in arguments[without:]:
        if (pid := os.fork()) == 0:
            _read(name, seconds, without)
        print(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _read(name: str, seconds: float, without: bool) -> NoReturn:
    status = 1
    try:
        if without:
            _take_away(name)
        text = LONG[name].text()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        LONG[name].read(text)
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
