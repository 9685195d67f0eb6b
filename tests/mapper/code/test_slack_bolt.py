"""What a Slack app's listeners are called with: the app's client, and a way to answer where something happened."""

from __future__ import annotations

import pytest

from mapper.catalog import Catalog
from mapper.code.method_finder import find
from tests.mapper.code.test_finding import normal, told

HEAD = """
import os
from slack_bolt import App
from slack_bolt.async_app import AsyncApp
app = App(token=os.environ["SLACK_BOT_TOKEN"])
later = AsyncApp(token=os.environ["SLACK_BOT_TOKEN"])
"""


def _told(program: str) -> list[str]:
    found = find("python", HEAD + program, Catalog.bundled(), ("slack",))
    return sorted({normal(told(call)) for call in found.calls})


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        ("@app.event('app_mention')\ndef f(event, client):\n    client.chat_postMessage(channel='C1', text='a')\n",
         ["slack.chat.postMessage channel=C1 text=a"]),
        ("@app.command('/x')\ndef f(ack, client, respond):\n    ack()\n    client.users_list(limit=3)\n",
         ["slack.users.list limit=3"]),
        ("def f(client):\n    client.users_list(limit=3)\napp.shortcut('x')(f)\n", ["slack.users.list limit=3"]),
        ("@later.event('x')\nasync def f(client, event):\n"
         "    await client.chat_postMessage(channel=event['channel'], text='a')\n",
         ["slack.chat.postMessage channel=? text=a"]),
        ("@app.message('hi')\ndef f(message, say):\n    say('a')\n    say(text='b', channel='C2')\n",
         ["slack.chat.postMessage channel=? text=a", "slack.chat.postMessage channel=C2 text=b"]),
        ("C = 'C1'\n@app.event('x')\ndef f(client):\n    client.chat_postMessage(channel=C, text='a')\nC = 'C2'\n",
         ["slack.chat.postMessage channel=C1 text=a", "slack.chat.postMessage channel=C2 text=a"]),
        ("@app.event('x')\ndef f(other):\n    other.users_list(limit=3)\n", []),
        ("@other.event('x')\ndef f(client):\n    client.users_list(limit=3)\n", []),
        ("@app.unheard_of('x')\ndef f(client):\n    client.users_list(limit=3)\n", []),
    ],
)  # fmt: skip
def test_a_listener_is_followed_with_what_it_is_called_with(program: str, calls: list[str]) -> None:
    assert _told(program) == sorted(map(normal, calls))
