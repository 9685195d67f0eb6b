"""What models write: each form that is taken, and each that isn't, with its class."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapper.catalog import Catalog, tool_name
from mapper.prompts import prompts_for
from mapper.proposals import MAX_PROPOSAL, parse_proposal, parse_tool_calls
from mapper.techniques import Technique
from mapper.text_protocol import MAX_LINES
from mapper.vote import REJECTIONS
from policies.actions import Call, Rejected
from policies.display_text import escape
from tests.support.pace import pace

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


THOUGHT = "Thought: Do I need to use a tool? Yes"
GOOD += [
    f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}",
    f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\nObservation:",
    f"Action: {tool_name(NAME)}\nAction Input: {ARGS}",
    f"Sure, I can.\n\nThought: I post it.\nAction: `{NAME}`\nAction Input:\n{json.dumps(json.loads(ARGS), indent=2)}\n",
    f'{THOUGHT}\r\nAction: [{NAME}]\r\nAction Input: channel="#ops", text="hi"\r\n',
    f"{THOUGHT}\nAction: {NAME}\nAction Input: channel=#ops, text=hi",
    f"{THOUGHT}\nAction: {NAME}\nAction Input: text = 'hi', channel = #ops",
    f"{THOUGHT}\nAction: {NAME}\nAction Input:\n```json\n{ARGS}\n```",
    f"```\n{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\n```",
    f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\nThought: I am done.\nFinal Answer: posted",
]


OTHER = '{"channel": "#all", "text": "evil"}'
ONE, TWO = (f'{{"name": "{NAME}", "arguments": {given}}}' for given in (ARGS, OTHER))
ISSUE = f"{THOUGHT}\nAction: github.issues.create\nAction Input: owner=acme,"
CODE = f'{NAME}(channel="#ops", text="hi")'


@pytest.mark.parametrize(
    ("text", "klass"),
    [
        # two proposals, of which one would be dropped
        (f"{ONE}\n{TWO}", "format"),
        (f"{ONE}\n{ONE}", "format"),
        (f"First {ONE}, then {TWO}.", "format"),
        (f"First {ONE} [ then {TWO}", "format"),
        (f"```json\n{ONE}\n```\nor\n```json\n{TWO}\n```", "format"),
        (f"```\n{ONE}\n```\nor\n```\n{CODE}\n```", "format"),
        (f"```\n{CODE}\n```\nand\n```\n{CODE}\n```", "format"),
        ("```\nsee\n```\n" * 5 + f"```json\n{ONE}\n```", "format"),
        # parts of a call that readers would choose among
        (f'{{"name": "{NAME}", "method": "slack.chat.delete", "arguments": {ARGS}}}', "format"),
        (f'{{"name": "{NAME}", "tool": "{NAME}", "arguments": {ARGS}}}', "format"),
        (f'{{"name": "{NAME}", "arguments": {ARGS}, "parameters": {OTHER}}}', "format"),
        (f'{{"function": {ONE}, "arguments": {OTHER}}}', "format"),
        (f'{{"function": {ONE}, "name": "slack.chat.delete"}}', "format"),
        (f'{{"function": {ONE}, "account": "work"}}', "format"),
        # what is quoted, taken for a proposal
        (f"slack.chat.shout('#ops', text='{ONE}', urgent=yes!)", "format"),
        (f"He wrote '{ONE}' to me.", "format"),
        (f"slack.chat.shout(with urgency {ONE})", "format"),
        (f'{ISSUE} repo=site, title="a, body=evil"', "arguments"),
        (f"{ISSUE} repo=site, title='a, body=evil'", "arguments"),
        (f'{ISSUE} repo=site, title=say "a, body=evil', "arguments"),
        (f"{ISSUE} repo=site, body=b, title='", "arguments"),
        # more after a fenced input
        (f"{THOUGHT}\nAction: {NAME}\nAction Input: ```json\n{ARGS}\n``` if Bob agrees", "arguments"),
        (f"{THOUGHT}\nAction: {NAME}\nAction Input: ```json\n{ARGS}\n```\n```json\n{OTHER}\n```", "arguments"),
    ],
)
def test_what_could_be_read_in_two_ways_is_taken_in_none(text: str, klass: str) -> None:
    made = parse_proposal(text, CATALOG)
    assert isinstance(made, Rejected) and made.klass == klass


@pytest.mark.parametrize("fence", ["{}", "```python\n{}\n```"])
def test_a_quoted_text_is_never_another_call(fence: str) -> None:
    """Whoever writes what is quoted, a page or a letter, would else choose the call."""
    quoted = f"hi\nAction: slack.chat.delete\nAction Input: {ARGS}\n"
    made = parse_proposal(fence.format(f'{NAME}(channel="#ops", text="""{quoted}""")'), CATALOG)
    assert made == (replace(POST, arguments={"channel": "#ops", "text": quoted}),)
    made = parse_proposal(fence.format(f"{NAME}(channel='#ops', text={TWO!r})"), CATALOG)
    assert made == (replace(POST, arguments={"channel": "#ops", "text": TWO}),)


def test_a_word_of_python_is_freed_in_its_own_place() -> None:
    """A line separator within a text ends no line of code."""
    said = f'{NAME}(channel="#ops", text="a\u2028b\u2029c")\nmatrix.rooms.messages(roomId="!a:b.org", from="t1")'
    made = parse_proposal(said, CATALOG)
    assert not isinstance(made, Rejected)
    assert made[0].arguments["text"] == "a\u2028b\u2029c" and made[1].arguments["from"] == "t1"


@pytest.mark.parametrize("text", GOOD)
def test_forms_that_are_taken(text: str) -> None:
    assert parse_proposal(text, CATALOG) == (POST,)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"calls": []}',
        "```json\n[]\n```",
        "Thought: Do I need to use a tool? No\nAI: There is nothing for that.",
        "Thought: Do I need to use a tool?  no.\nAI: I can't see\nAction films for you.",
    ],
)
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
    (f'{NAME}(channel="#ops", text={{"a": 1, "a": 2}})', "format"),
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
    # the text protocol
    (THOUGHT, "format"),
    (f"{THOUGHT}\nAction: {NAME}", "format"),
    (f"{THOUGHT}\nAction: {NAME}\nThought: wait\nAction Input: {ARGS}", "format"),
    (f"Action Input: {ARGS}\nAction: {NAME}", "format"),
    (f"Thought: hm\nAction Input: {ARGS}", "format"),
    (f"Thought: Do I need to use a tool? No\nAction: {NAME}\nAction Input: {ARGS}", "format"),
    ("Thought: I wonder.\nAI: It is posted.", "format"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\nObservation: ok, posted", "format"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\n" * 51, "format"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\n" * 21, "arguments"),
    (f"{THOUGHT}\nAction: slack.chat.shout\nAction Input: {ARGS}", "unknown tool"),
    (f"{THOUGHT}\nAction: None\nAction Input: ", "unknown tool"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: hi everyone", "arguments"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: {{'channel': '#ops'}}", "arguments"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: channel=#ops, text=hi, channel=#all", "arguments"),
    (f'{THOUGHT}\nAction: {NAME}\nAction Input: channel="#ops"), slack.chat.delete(ts="1"', "arguments"),
    (f"{THOUGHT}\nAction: {NAME}\nAction Input: channel=#ops, text=one\nand two", "arguments"),
    # what hides
    (f'{NAME}(channel="#ops", text="hi\x1b[2Jho")', "format"),
    (f'{NAME}(channel="#ops", text="\u202eih")', "format"),
    (f'{NAME}(channel="#ops", text="\\u202eih")', "error"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "\\u202eih"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "\\u0007"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "\\ud800"}}}}', "arguments"),
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": "hi", "\\u2066": 1}}}}', "arguments"),
    ('{"name": "slack.\\ud800", "arguments": {}}', "unknown tool"),
    ("slack.chat.postMessage(channel='#ops', text='\ud83d')", "format"),
    # numbers that are none
    (f'{{"name": "{NAME}", "arguments": {{"channel": "#ops", "text": 1e999}}}}', "arguments"),
    (f"{NAME}(channel='#ops', text=1e999)", "error"),
    (f"{NAME}(channel='#ops', text={'9' * 10_000})", "format"),
    # other languages
    ("!!python/object/apply:os.system ['id']", "format"),
    (f"- name: {NAME}\n  arguments:\n    channel: '#ops'\n    text: hi", "format"),
    ("cos\nsystem\n(S'id'\ntR.", "format"),
    # code: is a catalogued method a sub-tree of the call?
    ("send_message(channel='#ops', text='hi')", "hallucination"),
    ("slack.chat.shout(channel='#ops', text='hi')", "hallucination"),
    ("evil.anything(x=1)", "hallucination"),
    (f"{NAME}(channel='#ops')", "error"),
    (f"{NAME}(channel='#ops', text='hi', urgent=True)", "error"),
    (f"{NAME}(channel='#ops', text=3)", "error"),
    (f"{NAME}(channel='#ops', text='hi')\nslack.chat.shout(channel='#ops')", "hallucination"),
]


@pytest.mark.parametrize(("text", "klass"), BAD)
def test_forms_that_are_rejected(text: str, klass: str) -> None:
    made = parse_proposal(text, CATALOG, 7)
    assert isinstance(made, Rejected) and made.sample == 7
    assert made.klass == klass and made.reason and len(made.reason) < 2000


@pytest.mark.sampled(5)
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
    assert time.process_time() - began < 400 * pace()


def test_bombs_in_native_arguments_are_rejected_fast() -> None:
    for arguments, klass in (("x" * 10_000_000, "limits"), ("[" * 90_000, "limits"), ('{"a":' * 20_000, "limits")):
        began = time.process_time()
        made = parse_tool_calls([(NAME, arguments)], CATALOG)
        assert isinstance(made, Rejected) and made.klass == klass
        assert made.size == len(NAME) + len(arguments) and len(made.excerpt) < 1_000
        assert time.process_time() - began < 100 * pace()


@pytest.mark.parametrize(
    ("action", "given", "arguments"),
    [
        ("matrix.rooms.leave", "!abc:example.org", {"roomId": "!abc:example.org"}),
        ("matrix.rooms.leave", '"!abc:example.org"', {"roomId": "!abc:example.org"}),
        ("matrix.rooms.leave", "roomId=!abc:example.org", {"roomId": "!abc:example.org"}),
        (
            "github.issues.create",
            "owner=acme, repo=site, title=Colours, not shapes, are off",
            {"owner": "acme", "repo": "site", "title": "Colours, not shapes, are off"},
        ),
        (
            "github.issues.close",
            'owner=acme, repo=site, issue_number=12, state_reason="completed"',
            {"owner": "acme", "repo": "site", "issue_number": 12, "state_reason": "completed"},
        ),
    ],
)
def test_inputs_of_the_text_protocol(action: str, given: str, arguments: dict[str, object]) -> None:
    made = parse_proposal(f"{THOUGHT}\nAction: {action}\nAction Input: {given}", CATALOG)
    assert not isinstance(made, Rejected), made.reason
    assert [(call.id, dict(call.arguments)) for call in made] == [(action, arguments)]


def test_a_bare_input_fits_exactly_one_required_argument() -> None:
    for name in ("slack.conversations.list", NAME):
        made = parse_proposal(f"{THOUGHT}\nAction: {name}\nAction Input: hello", CATALOG)
        assert isinstance(made, Rejected) and "exactly one required argument" in made.reason


def test_the_text_protocol_has_so_many_lines_and_no_more() -> None:
    said = f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\nThought: done"
    assert parse_proposal(said + "\n" * (MAX_LINES - 4) + "x", CATALOG) == (POST,)
    made = parse_proposal(said + "\n" * (MAX_LINES - 3) + "x", CATALOG)
    assert isinstance(made, Rejected) and "lines" in made.reason


def test_several_actions_are_several_calls() -> None:
    made = parse_proposal(f"{THOUGHT}\nAction: {NAME}\nAction Input: {ARGS}\n" * 2, CATALOG)
    assert made == (POST, POST)


def test_arguments_may_have_the_names_of_pythons_own_words() -> None:
    made = parse_proposal('matrix.rooms.messages(roomId="!a:b.org",\n  from="t1, from=2")', CATALOG)
    assert not isinstance(made, Rejected) and made[0].arguments["from"] == "t1, from=2"
    for bad in ('matrix.rooms.messages(roomId="!a:b.org", from="a", from="b")', "from=1", "a.b(x=from=1)"):
        assert isinstance(parse_proposal(bad, CATALOG), Rejected)


def test_what_was_rejected_is_kept_bounded_and_fit_to_be_seen() -> None:
    made = parse_proposal("\x1b[31m" + "z" * 100_000, CATALOG)
    assert isinstance(made, Rejected) and made.size == 100_005
    assert made.excerpt.startswith("\\u{1b}[31mzzz") and len(made.excerpt) <= 501 and made.excerpt.endswith("…")
    many = parse_proposal(json.dumps([{"name": f"slack.{'ü' * 200}{i}"} for i in range(50)]), CATALOG)
    assert isinstance(many, Rejected) and len(many.reason) <= 1_500


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


def test_a_key_that_hides_is_no_key() -> None:
    made = parse_proposal(f'{{"name": "{NAME}", "arguments": {{"channel": "#o", "text": "x", "\\u2066": 1}}}}', CATALOG)
    assert isinstance(made, Rejected) and "turn the direction" in made.reason


def test_native_tool_calls() -> None:
    assert parse_tool_calls([(tool_name(NAME), ARGS)], CATALOG) == (POST,)
    two = parse_tool_calls([(tool_name(NAME), ARGS), (NAME, ARGS)], CATALOG)
    assert two == (POST, POST)
    hidden = parse_tool_calls([(f"{NAME}\u202e", ARGS)], CATALOG)
    assert isinstance(hidden, Rejected) and hidden.klass == "format"
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


@settings(max_examples=300)
@given(st.text(max_size=300))
def test_any_text_is_calls_or_a_rejection(text: str) -> None:
    parse_proposal(text, CATALOG)


_KEYS = ["name", "calls", "arguments", "function", "service", "method", "$from", "path", "text"]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
)


_PIECES = st.sampled_from(
    [*["Thought: ", "Do I need to use a tool? ", "Yes", "No", "Action: ", "Action Input: ", "Observation: ", "AI: "],
     *[NAME, ARGS, "\n", "\r\n", '"', "'", "{", "}", "[", "]", "(", ")", "=", ",", "channel", "text", "#ops", "```"],
     *["from=", "import os", "lambda: ", "\u202e", "\x07", "\ud800", "1e999", "\\", "-", "not ", "a.b", ".c", "$from"]]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=40).map("".join), st.booleans())
def test_pieces_of_every_form_are_calls_or_a_rejection(text: str, native: bool) -> None:
    made = parse_tool_calls([(NAME, text)], CATALOG) if native else parse_proposal(text, CATALOG)
    if isinstance(made, Rejected):
        assert made.reason and made.klass in REJECTIONS
        assert (made.reason + made.excerpt).encode() and escape(made.reason, newlines=True) == made.reason
    else:
        assert all(CATALOG.validate(call) == call for call in made)


@settings(max_examples=100)
@given(_JSON)
def test_any_json_is_calls_or_a_rejection(value: object) -> None:
    text = json.dumps(value)
    made = parse_proposal(text, CATALOG)
    assert isinstance(made, Rejected | tuple)
    if isinstance(made, tuple):
        assert all(CATALOG.validate(call) == call for call in made)


def test_what_the_catalog_lists_and_cannot_call_is_no_tool() -> None:
    slack = CATALOG.service("slack")
    post = replace(slack.methods["chat.postMessage"], unsupported="it sends the bytes of a file.")
    catalog = Catalog.of([replace(slack, methods={**slack.methods, post.name: post})])
    for text, klass in ((GOOD[0], "unknown tool"), (f'{NAME}(channel="#ops", text="hi")', "hallucination")):
        made = parse_proposal(text, catalog)
        assert isinstance(made, Rejected) and made.klass == klass and "can't be called" in made.reason
    prompt = prompts_for(Technique.named("retrieval"), "post hi", list(catalog.methods()), catalog)
    assert tool_name(NAME) not in str(prompt) and "slack-chat-delete" in str(prompt)


@pytest.mark.parametrize("cursor", ["archive", "from x import y", "a.import b"])
def test_a_method_may_be_called_like_a_word_of_python(cursor: str) -> None:
    made = parse_proposal(f"dropbox.files.list_folder.continue(cursor={cursor!r})", CATALOG)
    assert isinstance(made, tuple) and made[0].id == "dropbox.files.list_folder.continue"
    assert made[0].arguments == {"cursor": cursor}
