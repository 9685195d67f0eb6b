"""Programs that a shell program starts, of which parts are made while it runs: what is written in them is read."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.abstract_values import PUT_IN
from mapper.code.found_calls import Finding
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

INFO = "https://slack.com/api/users.info?user="
POST = "https://slack.com/api/chat.postMessage"
ID = "id=$(cat id.txt)\n"
INFOS = ["slack.users.info user=?"]


def _find(program: str) -> Finding:
    return find("shell", program, Catalog.bundled(), ("slack", "github"))


def _told(program: str) -> list[str]:
    return sorted({normal(told(call)) for call in _find(program).calls})


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (f"{ID}bash -c \"curl -s '{INFO}$id'\"", INFOS),
        (f"cat ids | xargs -I{{}} sh -c 'curl -s \"{INFO}{{}}\" | jq .ok'", INFOS),
        (f"{ID}node -e \"fetch('{INFO}$id').then(r => r.json()).then(console.log)\"", INFOS),
        (f"{ID}node -e \"fetch(\\`{INFO}$id\\`)\"", INFOS),
        (f"{ID}python3 -c \"import requests; requests.get('{INFO}$id')\"", INFOS),
        (f"{ID}python3 - <<EOF\nimport requests\nrequests.get(f'{INFO}{{\"$id\"}}')\nEOF", INFOS),
        (f"n=$(wc -l f)\npython3 -c \"import requests; n = $n; requests.get('{INFO}U1', timeout=n)\"",
         ["slack.users.info user=U1"]),
        (f"r=$(cat f)\nnode -e \"const d = $r; fetch('{INFO}' + d.user)\"", INFOS),
        (f"t=$(cat f)\nsh -c \"curl -d channel=C1 -d 'text=$t' {POST}\"", ["slack.chat.postMessage channel=C1 text=?"]),
        (f"cat ids | xargs -I% sh -c 'curl -s {INFO}%'", INFOS),
    ],
)  # fmt: skip
def test_the_written_parts_of_a_program_are_read(program: str, calls: list[str]) -> None:
    assert _told(program) == sorted(map(normal, calls)), _find(program)
    assert any("of which parts are made while it runs" in note for note in _find(program).notes)


@pytest.mark.parametrize(
    "program",
    [
        f'{ID}bash -c "$id {POST}"',
        f'{ID}bash -c "curl $id"',
        f'{ID}bash -c "curl https://$id/api/users.info"',
        f"{ID}node -e \"fetch('$id')\"",
        f"{ID}node -e \"$id('{INFO}U1')\"",
        f"{ID}python3 -c \"import requests; requests.get('https://' + '$id' + '/api/users.info')\"",
        f"{ID}python3 -c \"import requests; requests.$id('{INFO}U1')\"",
        f"{ID}python3 -c \"import $id; $id.get('{INFO}U1')\"",
        f"{ID}python3 -c \"import requests; requests.request('$id', '{INFO}U1')\"",
    ],
)
def test_what_is_made_while_it_runs_is_not_guessed(program: str) -> None:
    assert _find(program).calls == ()


def test_what_is_made_while_it_runs_decides_nothing() -> None:
    """Both ways are read, since it isn't known which is gone."""
    body = f"requests.get('{INFO}' + ('U1' if '$id' == 'U1' else 'U2'))"
    assert _told(f'{ID}python3 -c "import requests; {body}"') == sorted(
        map(normal, ["slack.users.info user=U1", "slack.users.info user=U2"])
    )


@pytest.mark.parametrize(
    "program",
    [
        f'{ID}bash -c "curl -d channel=\\${{x:-$id}} {POST}"',
        f"{ID}python3 -c \"import requests; requests.post('{POST}', data=dict(channel='C1', $id='a'))\"",
        f"{ID}python3 -c \"import requests; requests.post('{POST}', data=dict(channel='C1', a$id='a'))\"",
        f"{ID}python3 -c \"from slack_sdk import WebClient; WebClient().chat_$id(channel='C1')\"",
    ],
)
def test_what_is_put_in_is_no_text_of_its_own(program: str) -> None:
    assert PUT_IN not in repr(_find(program))


def test_a_field_whose_name_is_made_while_it_runs_is_open() -> None:
    program = f"{ID}python3 -c \"import requests; requests.post('{POST}', data=dict(channel='C1', $id='a'))\""
    assert _told(program) == [normal("slack.chat.postMessage channel=C1 ?")]


@pytest.mark.parametrize(
    "program",
    [
        f'x="${{c:-`curl {INFO}U1`}}"',
        f"echo ${{c:+`curl {INFO}U1`}}",
        f'echo "${{c:+a `curl {INFO}U1` b}}"',
        f"cat ${{c:+<(curl {INFO}U1)}}",
        'x="${c//`curl a`/}"',
    ],
)
def test_commands_that_the_grammar_takes_for_text_are_told(program: str) -> None:
    assert any("isn't read" in note for note in _find(program).notes)


def test_an_escaped_backtick_is_no_command() -> None:
    assert _find('x="${c:-\\`a}"').notes == ()


def test_what_is_not_known_is_told_by_its_line_in_the_whole() -> None:
    program = "date\npython3 - <<'EOF'\nfrom slack_sdk import WebClient\nWebClient().api_call(own())\nEOF\n"
    assert [one.line for one in _find(program).unknown] == [4]
