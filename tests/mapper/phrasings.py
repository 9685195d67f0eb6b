"""Requests as people phrase them, with the calls that they mean.

`TRAINING` is what the embedded proposer was tuned on; `HELD_OUT` was written beside it and never tuned on: it measures.
`UNANSWERABLE` fit nothing in the catalog, or lack something that can't be guessed: a sure answer to them is a mistake.
"""

from __future__ import annotations

from typing import Any

Phrasing = tuple[str, str, dict[str, Any]]  # words, last call's method, its arguments without defaults

ROOM = "!kitchen:example.org"
ALIAS = {"$from": 0, "path": "$.room_id"}
SITE = {"owner": "acme", "repo": "site"}
TOOLS = {"owner": "blue-sky", "repo": "tools.py"}

TRAINING: list[Phrasing] = [
    (
        'send a slack message to #ops saying "deploy is done"',
        "slack.chat.postMessage",
        {"channel": "#ops", "text": "deploy is done"},
    ),
    (
        "post 'lunch at noon' in #general on slack",
        "slack.chat.postMessage",
        {"channel": "#general", "text": "lunch at noon"},
    ),
    (
        "tell #team-red that the build is green again",
        "slack.chat.postMessage",
        {"channel": "#team-red", "text": "the build is green again"},
    ),
    (
        "slack #support: the queue is empty",
        "slack.chat.postMessage",
        {"channel": "#support", "text": "the queue is empty"},
    ),
    ("announce the release to #news", "slack.chat.postMessage", {"channel": "#news", "text": "the release"}),
    ("say good morning in #random", "slack.chat.postMessage", {"channel": "#random", "text": "good morning"}),
    (
        "could you please message #sales saying we signed the contract",
        "slack.chat.postMessage",
        {"channel": "#sales", "text": "we signed the contract"},
    ),
    ("list the slack channels", "slack.conversations.list", {}),
    ("what channels do we have in slack?", "slack.conversations.list", {}),
    ("show me all channels of the workspace", "slack.conversations.list", {}),
    (
        "read the last 20 messages in channel C0ABCDEF12",
        "slack.conversations.history",
        {"channel": "C0ABCDEF12", "limit": 20},
    ),
    ("what was said lately in C0ABCDEF12 on slack", "slack.conversations.history", {"channel": "C0ABCDEF12"}),
    ("who is in the slack channel C0ABCDEF12", "slack.conversations.members", {"channel": "C0ABCDEF12"}),
    ("create a slack channel called project-falcon", "slack.conversations.create", {"name": "project-falcon"}),
    ("archive slack channel C0ABCDEF12", "slack.conversations.archive", {"channel": "C0ABCDEF12"}),
    (
        'set the topic of C0ABCDEF12 to "Release week"',
        "slack.conversations.setTopic",
        {"channel": "C0ABCDEF12", "topic": "Release week"},
    ),
    ("invite U0HIJKLM34 to C0ABCDEF12", "slack.conversations.invite", {"channel": "C0ABCDEF12", "users": "U0HIJKLM34"}),
    ("find the slack user with the email kim@example.com", "slack.users.lookupByEmail", {"email": "kim@example.com"}),
    ("who is U0HIJKLM34?", "slack.users.info", {"user": "U0HIJKLM34"}),
    ("list everyone in the slack workspace", "slack.users.list", {}),
    (
        "react with :tada: to message 1700000000.123456 in C0ABCDEF12",
        "slack.reactions.add",
        {"channel": "C0ABCDEF12", "timestamp": "1700000000.123456", "name": "tada"},
    ),
    (
        "delete the slack message 1700000000.123456 in C0ABCDEF12",
        "slack.chat.delete",
        {"channel": "C0ABCDEF12", "ts": "1700000000.123456"},
    ),
    (
        "pin message 1700000000.123456 in C0ABCDEF12",
        "slack.pins.add",
        {"channel": "C0ABCDEF12", "timestamp": "1700000000.123456"},
    ),
    ("what is pinned in C0ABCDEF12?", "slack.pins.list", {"channel": "C0ABCDEF12"}),
    (f'send "dinner is ready" to {ROOM}', "matrix.rooms.send", {"roomId": ROOM, "body": "dinner is ready"}),
    (f"write 'hello all' to the matrix room {ROOM}", "matrix.rooms.send", {"roomId": ROOM, "body": "hello all"}),
    (f"tell {ROOM} that the soup is cold", "matrix.rooms.send", {"roomId": ROOM, "body": "the soup is cold"}),
    ('post "standup in five" to #team:example.org', "matrix.rooms.send", {"roomId": ALIAS, "body": "standup in five"}),
    (f"send a message to {ROOM} saying we are late", "matrix.rooms.send", {"roomId": ROOM, "body": "we are late"}),
    ("which matrix rooms am I in?", "matrix.rooms.list", {}),
    ("list my rooms on matrix", "matrix.rooms.list", {}),
    (f"show the last 10 messages of {ROOM}", "matrix.rooms.messages", {"roomId": ROOM, "limit": 10}),
    (f"who is in {ROOM}?", "matrix.rooms.members", {"roomId": ROOM}),
    (f"invite @kim:example.org to {ROOM}", "matrix.rooms.invite", {"roomId": ROOM, "user_id": "@kim:example.org"}),
    (f"kick @kim:example.org out of {ROOM}", "matrix.rooms.kick", {"roomId": ROOM, "user_id": "@kim:example.org"}),
    (f'rename {ROOM} to "The Kitchen"', "matrix.rooms.setName", {"roomId": ROOM, "name": "The Kitchen"}),
    (
        f"change the topic of room {ROOM} to cooking tonight",
        "matrix.rooms.setTopic",
        {"roomId": ROOM, "topic": "cooking tonight"},
    ),
    ("join the room !garden:example.org", "matrix.rooms.join", {"roomId": "!garden:example.org"}),
    (f"leave {ROOM}", "matrix.rooms.leave", {"roomId": ROOM}),
    ('create a matrix room called "Holiday plans"', "matrix.rooms.create", {"name": "Holiday plans"}),
    ("what is the room id of #team:example.org", "matrix.rooms.resolve", {"alias": "#team:example.org"}),
    ("who am I on matrix?", "matrix.account.whoami", {}),
    ('open an issue in acme/site titled "Broken link"', "github.issues.create", {**SITE, "title": "Broken link"}),
    (
        "file a bug in blue-sky/tools.py called crash on start",
        "github.issues.create",
        {**TOOLS, "title": "crash on start"},
    ),
    (
        'create a github issue in acme/site titled "Slow search" with body "It takes ten seconds."',
        "github.issues.create",
        {**SITE, "title": "Slow search", "body": "It takes ten seconds."},
    ),
    ("close issue 12 in acme/site", "github.issues.close", {**SITE, "issue_number": 12}),
    ("close acme/site#31", "github.issues.close", {**SITE, "issue_number": 31}),
    ("reopen issue #7 of acme/site", "github.issues.reopen", {**SITE, "issue_number": 7}),
    ("show the open issues of acme/site", "github.issues.list", {**SITE, "state": "open"}),
    ("which issues are there in blue-sky/tools.py?", "github.issues.list", TOOLS),
    ("list the 5 latest issues in acme/site", "github.issues.list", {**SITE, "per_page": 5}),
    (
        'comment "fixed in main" on issue 12 in acme/site',
        "github.comments.create",
        {**SITE, "issue_number": 12, "body": "fixed in main"},
    ),
    ("show the comments on issue 4 of acme/site", "github.comments.list", {**SITE, "issue_number": 4}),
    ("star acme/site", "github.stars.add", SITE),
    ("remove my star from acme/site", "github.stars.remove", SITE),
    ("list my github repositories", "github.repos.list", {}),
    ("show pull request 9 of acme/site", "github.pulls.get", {**SITE, "pull_number": 9}),
    ("merge PR 9 in acme/site", "github.pulls.merge", {**SITE, "pull_number": 9}),
    ("list pull requests in acme/site", "github.pulls.list", SITE),
    ("show me the readme of acme/site", "github.repos.readme", SITE),
    ("lock issue 3 in acme/site", "github.issues.lock", {**SITE, "issue_number": 3}),
    ("delete the repository acme/site", "github.repos.delete", SITE),
    (
        "add the label urgent to issue 3 in acme/site",
        "github.issues.addLabels",
        {**SITE, "issue_number": 3, "labels": ["urgent"]},
    ),
]

HELD_OUT: list[Phrasing] = [
    (
        'drop a note in #design: "mockups are up"',
        "slack.chat.postMessage",
        {"channel": "#design", "text": "mockups are up"},
    ),
    ('let #oncall know "the pager works"', "slack.chat.postMessage", {"channel": "#oncall", "text": "the pager works"}),
    (
        "write we are back online to #status on slack",
        "slack.chat.postMessage",
        {"channel": "#status", "text": "we are back online"},
    ),
    (
        "notify #ops that disk 3 was replaced",
        "slack.chat.postMessage",
        {"channel": "#ops", "text": "disk 3 was replaced"},
    ),
    ("slack channels please", "slack.conversations.list", {}),
    (
        "fetch the latest 50 messages from C0ZZZZZZ99",
        "slack.conversations.history",
        {"channel": "C0ZZZZZZ99", "limit": 50},
    ),
    ("show the members of C0ZZZZZZ99 in slack", "slack.conversations.members", {"channel": "C0ZZZZZZ99"}),
    ('make a new slack channel named "lunch-club"', "slack.conversations.create", {"name": "lunch-club"}),
    (
        "update the topic of slack channel C0ZZZZZZ99 to Quiet hours",
        "slack.conversations.setTopic",
        {"channel": "C0ZZZZZZ99", "topic": "Quiet hours"},
    ),
    ("look up lee@example.net in slack by email", "slack.users.lookupByEmail", {"email": "lee@example.net"}),
    (
        "add a :rocket: reaction to 1712345678.000200 in C0ZZZZZZ99",
        "slack.reactions.add",
        {"channel": "C0ZZZZZZ99", "timestamp": "1712345678.000200", "name": "rocket"},
    ),
    (
        "unpin 1712345678.000200 from C0ZZZZZZ99",
        "slack.pins.remove",
        {"channel": "C0ZZZZZZ99", "timestamp": "1712345678.000200"},
    ),
    (
        'post "hello" in room !abc:example.org on matrix',
        "matrix.rooms.send",
        {"roomId": "!abc:example.org", "body": "hello"},
    ),
    (
        "say the train is late in !abc:example.org",
        "matrix.rooms.send",
        {"roomId": "!abc:example.org", "body": "the train is late"},
    ),
    (
        'send "who brings cake?" to #party:matrix.test',
        "matrix.rooms.send",
        {"roomId": ALIAS, "body": "who brings cake?"},
    ),
    (
        "message !abc:example.org: see you at eight",
        "matrix.rooms.send",
        {"roomId": "!abc:example.org", "body": "see you at eight"},
    ),
    ("show my matrix rooms", "matrix.rooms.list", {}),
    ("read recent messages in !abc:example.org", "matrix.rooms.messages", {"roomId": "!abc:example.org"}),
    ("list the people in !abc:example.org", "matrix.rooms.members", {"roomId": "!abc:example.org"}),
    (
        "add @pat:example.org to room !abc:example.org",
        "matrix.rooms.invite",
        {"roomId": "!abc:example.org", "user_id": "@pat:example.org"},
    ),
    (
        "throw @pat:example.org out of !abc:example.org",
        "matrix.rooms.kick",
        {"roomId": "!abc:example.org", "user_id": "@pat:example.org"},
    ),
    (
        "set the name of !abc:example.org to Book club",
        "matrix.rooms.setName",
        {"roomId": "!abc:example.org", "name": "Book club"},
    ),
    ("get out of the room !abc:example.org", "matrix.rooms.leave", {"roomId": "!abc:example.org"}),
    ("start a new matrix room named Garden crew", "matrix.rooms.create", {"name": "Garden crew"}),
    (
        "report a bug in acme/site: login page is blank",
        "github.issues.create",
        {**SITE, "title": "login page is blank"},
    ),
    (
        'raise an issue on acme/site called "Wrong time zone"',
        "github.issues.create",
        {**SITE, "title": "Wrong time zone"},
    ),
    ("please close ticket #44 in blue-sky/tools.py", "github.issues.close", {**TOOLS, "issue_number": 44}),
    ("mark https://github.com/acme/site/issues/8 as done", "github.issues.close", {**SITE, "issue_number": 8}),
    ("open issue 8 of acme/site again", "github.issues.reopen", {**SITE, "issue_number": 8}),
    ("what are the closed issues in acme/site?", "github.issues.list", {**SITE, "state": "closed"}),
    (
        'reply "thanks, merged" on acme/site#5',
        "github.comments.create",
        {**SITE, "issue_number": 5, "body": "thanks, merged"},
    ),
    ("give acme/site a star", "github.stars.add", SITE),
    ("unstar blue-sky/tools.py", "github.stars.remove", TOOLS),
    ("what repos do I have on github", "github.repos.list", {}),
    ("open prs of blue-sky/tools.py", "github.pulls.list", {**TOOLS, "state": "open"}),
    ("what does issue 21 in acme/site say?", "github.issues.get", {**SITE, "issue_number": 21}),
]

UNANSWERABLE: list[str] = [
    "what's the weather in Paris tomorrow?",
    "book a table for two at eight",
    "send money to my landlord",
    "translate this text into French",
    "play some jazz",
    "send a slack message",
    "post to #ops",
    "close the issue",
    "invite somebody to the room",
    "rename the room",
    "delete it",
    "hello",
    "open an issue titled broken",
    "remind me to water the plants",
    "turn off the lights in the kitchen",
    "what is 17 times 23",
    "email kim@example.com that I'm late",
    "create a calendar entry for the release on 3 May",
    "merge the branches",
    "how do I cook rice?",
    "buy 20 shares of acme",
    "join",
    "write a poem about rooms",
    "summarise my inbox",
]
