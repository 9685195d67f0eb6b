"""What models write: each form that is taken, and each that isn't, with its class."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog, tool_name
from mapper.proposals import MAX_PROPOSAL, parse_proposal, parse_tool_calls
from policies.actions import Call, Rejected

CATALOG = Catalog.bundled()
POST = Call(service="slack", method="chat.postMessage", arguments={"channel": "#ops", "text": "hi"})
ARGS = '{"channel": "#ops", "text": "hi"}'
NAME = "slack.chat.postMessage"

GOOD = [
    f'{{"service": "slack", "method": "chat.postMessage", "arguments": {ARGS}}}',
    f'{{"service": "slack", "method": "{NAME}", "arguments": {ARGS}}}',
    f'{{"name": "{NAME}", "arguments": {ARGS}}}',
    f'{{"name": "{tool_name(NAME)}", "arguments": {ARGS}}}',
    f'{{"name": "{NAME}", "arguments": {json.dumps(ARGS)}}}',
    f'[{{"name": "{NAME}", "parameters": {ARGS}}}]',
    f'{{"calls": [{{"name": "{NAME}", "arguments": {ARGS}}}]}}',
    f'{{"thought": "I will post", "calls": [{{"tool": "{NAME}", "args": {ARGS}}}]}}',
    f'{{"tool_calls": [{{"id": "c", "type": "function", "function": {{"name": "{NAME}", "arguments": {ARGS}}}}}]}}',
    f'{{"tool_calls": [{{"function": {{"name": "{NAME}", "arguments": {json.dumps(ARGS)}}}}}]}}',
    f'```json\n{{"name": "{NAME}", "arguments": {ARGS}}}\n```',
    f'Sure! Here it is:\n```\n[{{"name": "{NAME}", "arguments": {ARGS}}}]\n```\nShall I?',
    f'Of course. {{"name": "{NAME}", "arguments": {ARGS}}} is what I propose.',
    f'{NAME}(channel="#ops", text="hi")',
    f'```python\n{NAME}(channel="#ops", text="hi")\n```',
    f'result = await {NAME}(channel="#ops", text="hi")',
    f'print({NAME}(channel="#ops", text="hi"))',
    f'"""Posts."""\nmade: dict = {NAME}(channel="#ops", text="hi")',
]


@pytest.mark.parametrize("text", GOOD)
def test_forms_that_are_taken(text: str) -> None:
    assert parse_proposal(text, CATALOG) == (POST,)


@pytest.mark.parametrize("text", ["[]", '{"calls": []}', "```json\n[]\n```"])
def test_nothing_fits(text: str) -> None:
    assert parse_proposal(text, CATALOG) == ()


BAD = [
    ("", "format"),
    ("   \n", "format"),
    ("I can't do that.", "format"),
    ("null", "format"),
    ("3", "format"),
    ('"slack.chat.postMessage"', "format"),
    ("[[]]", "format"),
    ('[{"name": 3}]', "format"),
    ('{"arguments": {}}', "format"),
    ('{"name": "slack.chat.postMessage", "arguments": {"channel": "#ops", "channel": "#all", "text": "hi"}}', "format"),
    ('{"name": "slack.chat.postMessage", "arguments": {"channel": "#ops", "text": NaN}}', "format"),
    ('{"name": "slack.chat.postMessage", "arguments": {"channel": "#ops", "text": Infinity}}', "format"),
    (f'{{"name": "{NAME}", "arguments": {ARGS}, "url": "https://evil.example"}}', "format"),
    (f'{{"name": "{NAME}", "arguments": {ARGS}, "headers": {{"Authorization": "x"}}}}', "format"),
    (f'{{"calls": [{{"name": "{NAME}", "arguments": {ARGS}}}], "scopes": ["admin"]}}', "format"),
    (f'{{"name": "{NAME}", "arguments": [1]}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": 3}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "hi", "token": "x"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "a\\u0000b"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": {{"$from": 0, "path": "$.x"}}}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {ARGS}, "account": 3}}', "format"),
    ('{"name": "evil.anything", "arguments": {}}', "unknown tool"),
    ('{"name": "slack.chat.postMesage", "arguments": {}}', "unknown tool"),
    ('{"name": "postMessage", "arguments": {}}', "unknown tool"),
    ('{"service": "slack", "method": "../../admin", "arguments": {}}', "unknown tool"),
    (f"{NAME}('#ops', 'hi')", "format"),
    (f"{NAME}(**args)", "format"),
    (f'{NAME}(channel="#ops", channel="#all", text="hi")', "format"),
    (f'{NAME}(channel="#ops", text=open("/etc/passwd").read())', "format"),
    (f'{NAME}(channel="#ops", text=f"{{1}}")', "format"),
    (f'{NAME}(channel="#ops", text="a" + "b")', "format"),
    (f'{NAME}(channel="#ops", text=b"hi")', "format"),
    (f'{NAME}(channel="#ops", text=unknown)', "format"),
    (f'for x in range(9): {NAME}(channel="#ops", text="hi")', "format"),
    ("import os", "format"),
    ("postMessage(text='x')", "hallucination"),
    (f'(lambda: {NAME}(channel="#ops", text="hi"))()', "format"),
    (f'{NAME}(channel="#ops", text="hi"); import os', "format"),
    ("x" * (MAX_PROPOSAL + 1), "limits"),
    ("[" * 1000 + "]" * 1000, "limits"),
    ('{"a":' * 5000 + "1" + "}" * 5000, "limits"),
    ("a.b(x=" + "[" * 100 + "]" * 100 + ")", "limits"),
    (json.dumps([{"name": NAME, "arguments": {}}] * 60), "limits"),
    (json.dumps([json.loads(GOOD[0])] * 21), "arguments"),
    ("a\0b", "format"),
]


@pytest.mark.parametrize(("text", "klass"), BAD)
def test_forms_that_are_rejected(text: str, klass: str) -> None:
    made = parse_proposal(text, CATALOG, 7)
    assert isinstance(made, Rejected) and made.sample == 7
    assert made.klass == klass and made.reason and len(made.reason) < 2000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"a":' * 200_000,
        "(" * 1_000_000,
        "x." * 500_000,
        "-" * 190_000,
        '"' * 199_999,
        "```" * 60_000,
        "a" * 10_000_000,
        "lambda:" * 6_000,
        "a.b(x=" + "-" * 40_000 + "1)",
        "not " * 12_000 + "a",
        "a" + ".b" * 24_000 + "()",
        "a.b()" + "['c']" * 9_000,
        '{"name": "' + "a" * 150_000 + '"}',
        '{"name": "slack.chat.postMessage", "arguments": {"channel": "#o", "text": ' + "9" * 100_000 + "}}",
        "&a " * 50_000,
        "{" + ",".join(f'"k{i}": {{}}' for i in range(15_000)) + "}",
    ],
)
def test_bombs_are_rejected_fast(text: str) -> None:
    began = time.process_time()
    assert isinstance(parse_proposal(text, CATALOG), Rejected)
    assert time.process_time() - began < 2.0


def test_python_values_and_references() -> None:
    made = parse_proposal(
        'room = matrix.rooms.resolve(alias="#a:b.org")\n'
        'sent = matrix.rooms.send(roomId=room["room_id"], body="hi")\n'
        "matrix.rooms.event(roomId=room.room_id, eventId=sent['event_id'])\n"
        "github.issues.create(owner='a', repo='b', title='t', labels=['x', 'y'])",
        CATALOG,
    )
    assert not isinstance(made, Rejected)
    assert made[1].arguments["roomId"] == {"$from": 0, "path": "$.room_id"}
    assert made[2].arguments == {
        "roomId": {"$from": 0, "path": "$.room_id"},
        "eventId": {"$from": 1, "path": "$.event_id"},
    }
    assert made[3].arguments["labels"] == ["x", "y"]


def test_every_problem_is_named_at_once() -> None:
    made = parse_proposal(
        json.dumps([{"name": "slack.nope"}, {"name": "other.thing"}, {"name": NAME, "arguments": 3}]), CATALOG
    )
    assert isinstance(made, Rejected)
    assert "slack.nope" in made.reason or "'nope'" in made.reason
    assert "'other'" in made.reason and "must be an object" in made.reason


def test_native_tool_calls() -> None:
    assert parse_tool_calls([(tool_name(NAME), ARGS)], CATALOG) == (POST,)
    two = parse_tool_calls([(tool_name(NAME), ARGS), (NAME, ARGS)], CATALOG)
    assert two == (POST, POST)
    for bad in ("{", "[]", "[" * 100_000, '{"channel": "#ops", "text": "hi"'):
        assert isinstance(parse_tool_calls([(NAME, bad)], CATALOG), Rejected)
    many = parse_tool_calls([(NAME, ARGS)] * 5000, CATALOG)
    assert isinstance(many, Rejected) and many.klass == "limits"


def test_code_is_never_run(tmp_path: Path) -> None:
    """Control: the same code, run, does leave its mark."""
    mark = tmp_path / "mark"
    code = f"__import__('pathlib').Path({str(mark)!r}).write_text('x')"
    hostile = [
        code,
        f"slack.chat.postMessage(channel='#ops', text={code})",
        f"@{code}\nclass A: pass",
        f"slack.chat.postMessage(channel='#ops', text=[x for x in [{code}]])",
        f'{{"name": {json.dumps(code)}, "arguments": {{}}}}',
        f"{code}.a.b(x=1)",
    ]
    for text in hostile:
        assert isinstance(parse_proposal(text, CATALOG), Rejected)
    assert not mark.exists()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert mark.exists()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_calls_or_a_rejection(text: str) -> None:
    parse_proposal(text, CATALOG)


_KEYS = ["name", "calls", "arguments", "function", "service", "method", "$from", "path", "text"]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(_JSON)
def test_any_json_is_calls_or_a_rejection(value: object) -> None:
    text = json.dumps(value)
    made = parse_proposal(text, CATALOG)
    assert isinstance(made, Rejected | tuple)
    if isinstance(made, tuple):
        assert all(CATALOG.validate(call) == call for call in made)
