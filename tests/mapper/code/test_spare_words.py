"""`${name:+words}`: words of a command that are there only where a variable has a value."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

LIST = "https://slack.com/api/users.list"
POST = "https://slack.com/api/chat.postMessage"
C = "c=$(cat c)\n"
BOTH = ["slack.users.list limit=5", "slack.users.list cursor=? limit=5"]


def _find(program: str) -> Finding:
    return find("shell", program, Catalog.bundled(), ("slack",))


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (f'{C}curl -G {LIST} -d limit=5 ${{c:+--data-urlencode "cursor=$c"}}', BOTH),
        (f"{C}curl {LIST}?limit=5 ${{c:+-G -d cursor=$c}}", BOTH),
        (f'{C}curl -G {LIST} -d limit=5 ${{c:+-d}} ${{c:+"cursor=$c"}}', BOTH),
        (f'{C}curl "{LIST}?limit=5${{c:+&cursor=$c}}"', BOTH),
        (f'{C}u="{LIST}?limit=5${{c:+&cursor=$c}}"\ncurl "$u"', BOTH),
        (f"{C}curl {LIST}?limit=5 ${{VERBOSE:+-v}} ${{c:+-s -S}}", BOTH[:1]),
        (f"{C}curl {LIST}?limit=5 ${{t:+-H 'a: b c'}}", BOTH[:1]),
        (f"c=\ncurl -G {LIST} -d limit=5 ${{c:+-d cursor=$c}}", BOTH[:1]),
        (f"c=x\ncurl -G {LIST} -d limit=5 ${{c:+-d cursor=$c}}", ["slack.users.list cursor=x limit=5"]),
        (f"c=\ncurl -G {LIST} -d limit=5 ${{c+-d cursor=y}}", ["slack.users.list cursor=y limit=5"]),
        (f"{C}curl -d channel=C1 ${{c:+-d thread_ts=5}} {POST}",
         ["slack.chat.postMessage channel=C1", "slack.chat.postMessage channel=C1 thread_ts=5"]),
    ],
)  # fmt: skip
def test_a_command_is_read_with_them_and_without(program: str, calls: list[str]) -> None:
    found = _find(program)
    shown = {normal(told(call)) for call in found.calls}
    # `-d` and its value stand or fall together in the program, and one by one here.
    assert set(map(normal, calls)) <= shown, found
    if program.count("c:+") < 2:
        assert shown == set(map(normal, calls))
        assert found.unknown == ()


@pytest.mark.parametrize(
    "program",
    [
        f"{C}curl {LIST} ${{c:+$(cat more)}}",
        f"{C}curl {LIST} ${{c:+$c}}",
        f"{C}curl ${{c:+$X}} {LIST}",
    ],
)
def test_words_that_are_not_written_stay_unknown(program: str) -> None:
    assert _find(program).unknown != ()


def test_many_of_them_are_not_gone_through_one_by_one() -> None:
    found = _find(f"curl {LIST} " + " ".join(f"${{V{at}:+-d a{at}=b}}" for at in range(40)))
    assert len(found.calls) <= 1
    assert found.unknown != ()
