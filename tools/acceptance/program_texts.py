"""Programs as people write them, for `programs`: each uses one library or client as its documentation says.

ELEVEN are those that GoEx was improved with. TWELVE more were written before that and are only measured: nothing is
tuned to one of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """`file` is what it is called, `says` what it prints when all went well, `sent` the requests that the services get
    (method, host and path)."""

    name: str
    file: str
    services: tuple[str, ...]
    text: str
    says: str
    sent: tuple[str, ...]


ELEVEN = (
    Program(
        "slack_sdk",
        "announce.py",
        ("slack",),
        """
import os
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

client = WebClient(token=os.environ["SLACK_BOT_TOKEN"])
try:
    response = client.chat_postMessage(channel="C024BE91L", text="The build is green :tada:")
    print("posted", response["ts"])
except SlackApiError as e:
    print(f"Got an error: {e.response['error']}")
    raise SystemExit(1)
""",
        "posted 1700000000.000100",
        ("POST slack.com/api/chat.postMessage",),
    ),
    Program(
        "PyGithub",
        "issue.py",
        ("github",),
        """
import os
from github import Auth, Github

g = Github(auth=Auth.Token(os.environ["GITHUB_TOKEN"]))
repo = g.get_repo("octo/hello")
for issue in repo.get_issues(state="open"):
    print(issue.number, issue.title)
new = repo.create_issue(title="Flaky test", body="It fails on Mondays.")
print("created", new.number)
""",
        "7 Broken\n8 Slow\ncreated 9",
        ("GET api.github.com/repos/octo/hello", "GET api.github.com/repos/octo/hello/issues",
         "POST api.github.com/repos/octo/hello/issues"),
    ),
    Program(
        "requests",
        "stars.py",
        ("github",),
        """
import os
import requests

API = "https://api.github.com"
headers = {"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}

r = requests.get(f"{API}/repos/octo/hello/issues", headers=headers, params={"state": "open", "per_page": 50}, timeout=9)
r.raise_for_status()
for issue in r.json():
    print(f"#{issue['number']}: {issue['title']}")
r = requests.post(f"{API}/repos/octo/hello/issues/7/comments", headers=headers, json={"body": "Looking into it"})
r.raise_for_status()
print(r.status_code)
""",
        "#7: Broken\n#8: Slow\n201",
        ("GET api.github.com/repos/octo/hello/issues", "POST api.github.com/repos/octo/hello/issues/7/comments"),
    ),
    Program(
        "httpx",
        "notify.py",
        ("discord",),
        """
import os
import httpx

with httpx.Client(
    base_url="https://discord.com/api/v10",
    headers={"Authorization": f"Bot {os.environ['DISCORD_TOKEN']}"},
    timeout=10.0,
) as client:
    response = client.post("/channels/41771983423143937/messages", json={"content": "Deployed v1.2.3"})
    response.raise_for_status()
    print("message", response.json()["id"])
""",
        "message 334385199974967042",
        ("POST discord.com/api/v10/channels/41771983423143937/messages",),
    ),
    Program(
        "curl with jq",
        "open-issues.sh",
        ("github",),
        """
#!/usr/bin/env bash
set -euo pipefail
curl -fsSL -H "Authorization: Bearer $GITHUB_TOKEN" -H "Accept: application/vnd.github+json" \\
  "https://api.github.com/repos/octo/hello/issues?state=open&per_page=100" |
  jq -r '.[] | "\\(.number)\\t\\(.title)"'
""",
        "7\tBroken\n8\tSlow",
        ("GET api.github.com/repos/octo/hello/issues",),
    ),
    Program(
        "google-api-python-client",
        "agenda.py",
        ("google_calendar",),
        """
import os
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build

creds = Credentials(token=os.environ["GOOGLE_ACCESS_TOKEN"])
service = build("calendar", "v3", credentials=creds)
events_result = (
    service.events()
    .list(calendarId="primary", timeMin="2026-01-01T00:00:00Z", maxResults=10, singleEvents=True, orderBy="startTime")
    .execute()
)
for event in events_result.get("items", []):
    start = event["start"].get("dateTime", event["start"].get("date"))
    print(start, event["summary"])
event = {"summary": "Lunch", "start": {"date": "2026-02-01"}, "end": {"date": "2026-02-02"}}
created = service.events().insert(calendarId="primary", body=event).execute()
print("created", created["id"])
""",
        "2026-01-05 Standup\ncreated ev2",
        ("GET www.googleapis.com/calendar/v3/calendars/primary/events",
         "POST www.googleapis.com/calendar/v3/calendars/primary/events"),
    ),
    Program(
        "openai",
        "ask.py",
        ("openai",),
        """
from openai import OpenAI

client = OpenAI()
completion = client.chat.completions.create(
    model="gpt-4o-mini",
    messages=[
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is six times seven?"},
    ],
)
print(completion.choices[0].message.content)
""",
        "forty-two",
        ("POST api.openai.com/v1/chat/completions",),
    ),
    Program(
        "node fetch",
        "close-stale.mjs",
        ("github",),
        """
const token = process.env.GITHUB_TOKEN
const base = 'https://api.github.com/repos/octo/hello'
const headers = { Authorization: `Bearer ${token}`, Accept: 'application/vnd.github+json' }

const response = await fetch(`${base}/issues?state=open`, { headers })
if (!response.ok) throw new Error(`HTTP ${response.status}`)
const issues = await response.json()
for (const issue of issues.filter((one) => one.title === 'Slow')) {
  const closed = await fetch(`${base}/issues/${issue.number}`, {
    method: 'PATCH',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ state: 'closed' })
  })
  console.log('closed', issue.number, closed.status)
}
""",
        "closed 8 200",
        ("GET api.github.com/repos/octo/hello/issues", "PATCH api.github.com/repos/octo/hello/issues/8"),
    ),
    Program(
        "pandas",
        "report.py",
        ("github",),
        """
import os

import pandas as pd
import requests

session = requests.Session()
session.headers["Authorization"] = "token " + os.environ["GITHUB_TOKEN"]
rows = session.get("https://api.github.com/repos/octo/hello/issues", params={"state": "all"}).json()
df = pd.DataFrame(rows)
summary = df.groupby("state")["number"].count()
print(summary.to_dict())
""",
        "{'open': 2}",
        ("GET api.github.com/repos/octo/hello/issues",),
    ),
    Program(
        "aiohttp",
        "many.py",
        ("github",),
        """
import asyncio
import os

import aiohttp


async def title(session, number):
    async with session.get(f"https://api.github.com/repos/octo/hello/issues/{number}") as response:
        response.raise_for_status()
        return (await response.json())["title"]


async def main():
    headers = {"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        print(await asyncio.gather(*(title(session, number) for number in (7, 8))))


asyncio.run(main())
""",
        "['Broken', 'Slow']",
        ("GET api.github.com/repos/octo/hello/issues/7", "GET api.github.com/repos/octo/hello/issues/8"),
    ),
    Program(
        "GraphQL",
        "viewer.py",
        ("github",),
        '''
import os
import requests

QUERY = """
query($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) {
    issues(first: 20, states: OPEN) { nodes { number title } }
  }
}
"""
response = requests.post(
    "https://api.github.com/graphql",
    json={"query": QUERY, "variables": {"owner": "octo", "name": "hello"}},
    headers={"Authorization": f"bearer {os.environ['GITHUB_TOKEN']}"},
)
response.raise_for_status()
for node in response.json()["data"]["repository"]["issues"]["nodes"]:
    print(node["number"], node["title"])
''',
        "7 Broken\n8 Slow",
        ("POST api.github.com/graphql",),
    ),
)  # fmt: skip

TWELVE = (
    Program(
        "octokit",
        "label.mjs",
        ("github",),
        """
import { Octokit } from '@octokit/rest'

const octokit = new Octokit({ auth: process.env.GITHUB_TOKEN })
const { data: issues } = await octokit.rest.issues.listForRepo({ owner: 'octo', repo: 'hello', state: 'open' })
for (const issue of issues) console.log(issue.number, issue.title)
const { data } = await octokit.rest.issues.create({ owner: 'octo', repo: 'hello', title: 'From octokit' })
console.log('created', data.number)
""",
        "7 Broken\n8 Slow\ncreated 9",
        ("GET api.github.com/repos/octo/hello/issues", "POST api.github.com/repos/octo/hello/issues"),
    ),
    Program(
        "axios",
        "page.mjs",
        ("notion",),
        """
import axios from 'axios'

const api = axios.create({
  baseURL: 'https://api.notion.com/v1',
  headers: { Authorization: `Bearer ${process.env.NOTION_TOKEN}`, 'Notion-Version': '2022-06-28' }
})
const { data: page } = await api.get('/pages/b55c9c91384d452b81dbd1ef79372b75')
console.log(page.object, page.id)
""",
        "page b55c9c91384d452b81dbd1ef79372b75",
        ("GET api.notion.com/v1/pages/b55c9c91384d452b81dbd1ef79372b75",),
    ),
    Program(
        "stripe",
        "customer.py",
        ("stripe",),
        """
import os
import stripe

stripe.api_key = os.environ["STRIPE_API_KEY"]
customer = stripe.Customer.create(email="ada@example.org", name="Ada Lovelace")
print(customer.id)
for invoice in stripe.Invoice.list(customer=customer.id, limit=3).data:
    print(invoice.id)
""",
        "cus_1\nin_1",
        ("POST api.stripe.com/v1/customers", "GET api.stripe.com/v1/invoices"),
    ),
    Program(
        "notion-client",
        "blocks.py",
        ("notion",),
        """
import os
from notion_client import Client

notion = Client(auth=os.environ["NOTION_TOKEN"])
page = notion.pages.retrieve(page_id="b55c9c91384d452b81dbd1ef79372b75")
print(page["object"], page["id"])
""",
        "page b55c9c91384d452b81dbd1ef79372b75",
        ("GET api.notion.com/v1/pages/b55c9c91384d452b81dbd1ef79372b75",),
    ),
    Program(
        "python-gitlab",
        "pipelines.py",
        ("gitlab",),
        """
import os
import gitlab

gl = gitlab.Gitlab("https://gitlab.com", private_token=os.environ["GITLAB_TOKEN"])
project = gl.projects.get(13083)
print(project.name)
for branch in project.branches.list():
    print(branch.name)
""",
        "gitlab-ce\nmain",
        ("GET gitlab.com/api/v4/projects/13083", "GET gitlab.com/api/v4/projects/13083/repository/branches"),
    ),
    Program(
        "jira",
        "ticket.py",
        ("jira",),
        """
import os
from jira import JIRA

jira = JIRA(server="https://acme.atlassian.net", basic_auth=("ada@example.org", os.environ["JIRA_API_TOKEN"]))
issue = jira.issue("OPS-12")
print(issue.key, issue.fields.summary)
jira.add_comment("OPS-12", "Done in v1.2.3")
""",
        "OPS-12 Rotate the keys",
        ("GET acme.atlassian.net/rest/api/2/issue/OPS-12", "POST acme.atlassian.net/rest/api/2/issue/OPS-12/comment"),
    ),
    Program(
        "sendgrid",
        "mail.py",
        ("sendgrid",),
        """
import os
from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Mail

message = Mail(
    from_email="from@example.com", to_emails="to@example.com", subject="Report", html_content="<b>All is well</b>"
)
sg = SendGridAPIClient(os.environ["SENDGRID_API_KEY"])
response = sg.send(message)
print(response.status_code)
""",
        "202",
        ("POST api.sendgrid.com/v3/mail/send",),
    ),
    Program(
        "twilio",
        "sms.py",
        ("twilio",),
        """
import os
from twilio.rest import Client

client = Client(os.environ["TWILIO_ACCOUNT_SID"], os.environ["TWILIO_AUTH_TOKEN"])
message = client.messages.create(body="The server is down", from_="+15017122661", to="+15558675310")
print(message.sid)
""",
        "SM1",
        ("POST api.twilio.com/2010-04-01/Accounts/AC1/Messages.json",),
    ),
    Program(
        "requests with retries, BeautifulSoup",
        "digest.py",
        ("github",),
        """
import os

import requests
from bs4 import BeautifulSoup
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

session = requests.Session()
session.mount("https://", HTTPAdapter(max_retries=Retry(total=5, backoff_factor=1, status_forcelist=[429, 502, 503])))
session.headers.update({
    "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
    "Accept": "application/vnd.github.html+json",
})
issue = session.get("https://api.github.com/repos/octo/hello/issues/7", timeout=(3.05, 27)).json()
soup = BeautifulSoup(issue["body_html"], "html.parser")
print(issue["title"], [a["href"] for a in soup.find_all("a")])
""",
        "Broken ['https://example.org/log']",
        ("GET api.github.com/repos/octo/hello/issues/7",),
    ),
    Program(
        "http.client",
        "pins.py",
        ("slack",),
        """
import http.client
import json
import os
from urllib.parse import urlencode

conn = http.client.HTTPSConnection("slack.com", timeout=20)
headers = {"Authorization": "Bearer " + os.environ["SLACK_TOKEN"]}
conn.request("GET", "/api/conversations.history?" + urlencode({"channel": "C024BE91L", "limit": 2}), headers=headers)
answer = json.loads(conn.getresponse().read())
for message in answer["messages"]:
    print(message["text"])
conn.close()
""",
        "hello\nworld",
        ("GET slack.com/api/conversations.history",),
    ),
    Program(
        "a shell script of several steps",
        "triage.sh",
        ("github", "slack"),
        """
#!/bin/bash
set -euo pipefail
REPO="octo/hello"
API="https://api.github.com/repos/$REPO"
auth=(-H "Authorization: Bearer ${GITHUB_TOKEN}" -H "X-GitHub-Api-Version: 2022-11-28")

numbers=$(curl -sf "${auth[@]}" "$API/issues?state=open" | jq -r '.[].number')
count=0
for n in $numbers; do
  title=$(curl -sf "${auth[@]}" "$API/issues/$n" | jq -r .title)
  echo "$n $title"
  count=$((count + 1))
done
payload=$(jq -n --arg text "$count open issues in $REPO" '{channel: "C024BE91L", text: $text}')
curl -sf -X POST https://slack.com/api/chat.postMessage \\
  -H "Authorization: Bearer $SLACK_BOT_TOKEN" -H 'Content-type: application/json; charset=utf-8' \\
  --data "$payload" | jq -r .ok
""",
        "7 Broken\n8 Slow\ntrue",
        ("GET api.github.com/repos/octo/hello/issues", "GET api.github.com/repos/octo/hello/issues/7",
         "GET api.github.com/repos/octo/hello/issues/8", "POST slack.com/api/chat.postMessage"),
    ),
    Program(
        "httpx, several at once",
        "fanout.py",
        ("slack",),
        """
import asyncio
import os

import httpx

CHANNELS = ["C024BE91L", "C024BE91M", "C024BE91N"]


async def post(client: httpx.AsyncClient, limit: asyncio.Semaphore, channel: str) -> bool:
    async with limit:
        r = await client.post("https://slack.com/api/chat.postMessage", json={"channel": channel, "text": "Lunch!"})
        r.raise_for_status()
        return r.json()["ok"]


async def main() -> None:
    limit = asyncio.Semaphore(2)
    headers = {"Authorization": f"Bearer {os.environ['SLACK_BOT_TOKEN']}"}
    async with httpx.AsyncClient(headers=headers, http2=False) as client:
        print(await asyncio.gather(*[post(client, limit, c) for c in CHANNELS]))


if __name__ == "__main__":
    asyncio.run(main())
""",
        "[True, True, True]",
        ("POST slack.com/api/chat.postMessage",) * 3,
    ),
)  # fmt: skip
