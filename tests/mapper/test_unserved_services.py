"""A request that says by which service something is done is never executed surely on another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from mapper.evaluation.recorded import Completion, Recorded
from mapper.evaluation.request_sets import Request
from mapper.mapper import Mapper
from mapper.techniques import Technique
from policies.actions import Intent

# Services that exist, none of which comes with GoEx; about a half of them stand in no list of it.
NAMES = {
    "mail": """fastmail protonmail tutanota posteo mailbox.org gmx web.de hotmail outlook icloud aol zoho yandex yahoo
        runbox startmail mailfence hushmail migadu superhuman missive mailspring airmail roundcube zimbra thunderbird
        sendgrid mailgun mailchimp postmark brevo mailjet resend sparkpost mandrill kolab disroot riseup infomaniak
        soverin t-online freenet libero mail.ru rediffmail qq.com laposte comcast exchange""",
    "calendar": "fantastical calendly outlook icloud nextcloud teamup fruux morgen savvycal zoho doodle woven busycal",
    "files": """onedrive box pcloud mega sync.com tresorit sharepoint nextcloud owncloud seafile icloud egnyte idrive
        icedrive filen internxt koofr backblaze wetransfer s3 minio storj spideroak sugarsync mediafire hightail""",
    "chat": """mattermost telegram whatsapp zulip rocketchat teams webex signal element.io threema keybase skype viber
        chanty pumble ryver guilded revolt gitter wickr snapchat""",
    "music": "deezer tidal soundcloud qobuz napster bandcamp pandora anghami audiomack mixcloud jiosaavn boomplay",
    "code": """gitlab bitbucket codeberg gitea forgejo sourcehut sourceforge launchpad gogs gerrit pagure notabug
        radicle gitee phabricator savannah""",
}
ASKED = {
    "mail": (
        "send an email from {} to ann@example.org saying hi",
        "send an email to ann@example.org saying hi via {}",
        "use {} to email ann@example.org saying hi",
        "email ann@example.org saying hi with my {} account",
        "send a mail using {} to ann@example.org saying hi",
        "{}: send an email to ann@example.org saying hi",
        "send ann@example.org a mail through {} saying hi",
        "list the latest mails in my {} inbox",
        "delete the mail 18f7aa0233bc91de on {}",
    ),
    "calendar": (
        "add a meeting to my {} calendar tomorrow at 10 called Lunch",
        "create an event called Lunch in {} tomorrow at 10",
        "via {}, schedule a meeting tomorrow at 10 called Lunch",
        "delete the event abc123 on {}",
        "use {} to list my events",
        "list my calendar events from {}",
        "{}: list my events",
    ),
    "files": (
        "upload notes.txt to {}",
        "delete the file report.pdf from {}",
        "list my files in {}",
        "share the file budget.xlsx on {} with ann@example.org",
        "use {} to make a folder called Invoices",
        "list files using my {} account",
        "{}: list my files",
    ),
    "chat": (
        "post 'hi' to #general on {}",
        "send 'hi' to #general via {}",
        "use {} to post 'hi' in #general",
        "list the channels in {}",
        "send a message 'hi' to #general from my {} account",
        "{}: post 'hi' to #general",
    ),
    "music": (
        "play daft punk on {}",
        "create a playlist called gym in {}",
        "use {} to skip the track",
        "pause the music via {}",
        "list my playlists from {}",
        "{}: list my playlists",
    ),
    "code": (
        "open an issue titled x in acme/app on {}",
        "star the repo acme/app on {}",
        "fork acme/app via {}",
        "use {} to list issues of acme/app",
        "comment 'ok' on acme/app#3 using {}",
        "{}: list issues of acme/app",
    ),
}
DATA = (
    ("send an email to bob@example.org saying 'we move to {}'", "gmail.users.messages.send"),
    ("email bob@example.org saying {} is down", "gmail.users.messages.send"),
    ("delete the gmail message 18f7aa0233bc91de about {}", "gmail.users.messages.delete"),
    ("post 'is {} down?' to #general on slack", "slack.chat.postMessage"),
    ("create a github issue titled '{} login fails' in acme/app", "github.issues.create"),
    ("send an email to support@{}.example saying hi", "gmail.users.messages.send"),
)
READ_AS_MAIL = (
    "email bob@example.org about {}", "list emails from {}", "search my mail for {}",
    "email bob@example.org the {} invoice", "find mails that mention {} in gmail",
)  # fmt: skip


def named(kind: str) -> list[str]:
    return NAMES[kind].split()


@cache
def proposer() -> EmbeddedProposer:
    return EmbeddedProposer(Catalog.bundled())


def requests() -> Iterator[str]:
    for kind, asked in ASKED.items():
        for name in named(kind):
            yield from (words.format(name) for words in asked)


def test_there_are_enough_of_them() -> None:
    assert len({name for kind in NAMES for name in named(kind)}) >= 100
    assert all(len(asked) >= 6 for asked in ASKED.values())
    assert not {name for kind in NAMES for name in named(kind)} & set(Catalog.bundled().services)


def test_none_is_executed_surely_on_another_service() -> None:
    wrong = [words for words in requests() if proposer().propose(words).sure]
    assert wrong == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("words", "method"), DATA)
def test_the_same_name_in_what_is_said_changes_nothing(words: str, method: str) -> None:
    for name in named("mail"):
        proposed = proposer().propose(words.format(name))
        assert proposed.sure or name == "mail.ru", words.format(name)  # a host that speaks of mail, of another word
        assert proposed.readings[0].method.id == method
        assert "no service of the catalog" not in " ".join(proposed.notes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", READ_AS_MAIL)
def test_what_a_mail_is_about_or_came_from_names_no_service(words: str) -> None:
    for name in named("mail"):
        proposed = proposer().propose(words.format(name))
        assert proposed.readings, words.format(name)
        assert "not in the catalog" not in " ".join(proposed.notes)


@pytest.mark.parametrize(
    "words",
    [
        "send an email to ann@example.org saying hi via email",
        "send a gmail message to ann@example.org saying hi",
        "using gmail, send an email to ann@example.org saying hi",
        "send an email from my gmail account to ann@example.org saying hi",
        "post 'see you on Thursday' to #general on slack",
        "slack: post 'hi' to #general",
        "use github to list issues of acme/app",
    ],
)
def test_what_is_here_stays_sure(words: str) -> None:
    assert proposer().propose(words).sure


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("send an email from fastmail to ann@example.org saying hi", True),
        ("via Nimbusmail, send ann@example.org an email saying hi", True),
        ("email ann@example.org saying hi with my mail.example.net account", True),
        ("email ann@example.org about fastmail", False),
        ("send an email to ann@example.org saying hi", False),
    ],
)
def test_a_model_cannot_answer_for_another_service_either(words: str, asks: bool) -> None:
    call = {
        "name": "gmail.users.messages.send",
        "arguments": {"to": ["ann@example.org"], "subject": "hi", "body": "hi"},
    }
    technique = Technique.fixed(1)
    completion = Completion(json.dumps([call]))
    model = Recorded(technique, {"r": (completion,)}, "plain")
    model.request = Request("r", words, (), (), (), False, {})
    mapping = asyncio.run(Mapper(Catalog.bundled(), proposer(), model).map(Intent(text=words)))
    assert [call.id for call in mapping.alternatives[0].calls] == ["gmail.users.messages.send"]
    assert mapping.sure is not asks
    assert any("no service of the catalog" in note for note in mapping.notes) is asks
