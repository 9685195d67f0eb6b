"""Attacks on `[confine] recipients`: calls that reach somebody whom no argument called `to` names."""

from __future__ import annotations

from typing import Any

from tests.adversarial.registry import Attack, Where

ALLOWED = ("*@example.org", "#ops", "acme/*", "example.org")
EVE = "eve@evil.example"
FILE = "1AbC"

# What is tried: the method, its arguments, and what it does.
TRIED: dict[str, tuple[str, dict[str, Any], str]] = {
    "share_with_anyone": (
        "google_drive.permissions.create",
        {"fileId": FILE, "role": "reader", "type": "anyone"},
        "share a file with whoever has its link",
    ),
    "share_with_anyone_beside_a_name": (
        "google_drive.permissions.create",
        {"fileId": FILE, "role": "reader", "type": "anyone", "emailAddress": "ann@example.org"},
        "the same, with an allowed address beside it that the service ignores",
    ),
    "share_with_a_domain": (
        "google_drive.permissions.create",
        {"fileId": FILE, "role": "reader", "type": "domain", "domain": "evil.example"},
        "share a file with everybody of a domain",
    ),
    "share_by_a_new_role": (
        "google_drive.permissions.update",
        {"fileId": FILE, "permissionId": "17", "role": "writer"},
        "let somebody who is known by a number alone do more",
    ),
    "calendar_for_all": (
        "google_calendar.acl.insert",
        {"calendarId": "primary", "role": "reader", "scope": {"type": "default"}},
        "show a calendar to the public",
    ),
    "calendar_for_all_beside_a_name": (
        "google_calendar.acl.insert",
        {"calendarId": "primary", "role": "reader", "scope": {"type": "default", "value": "ann@example.org"}},
        "the same, with an allowed address beside it that the service ignores",
    ),
    "calendar_for_one": (
        "google_calendar.acl.insert",
        {"calendarId": "primary", "role": "reader", "scope": {"type": "user", "value": EVE}},
        "show a calendar to one person, by a field called value",
    ),
    "invite_in_words": (
        "google_calendar.events.quickAdd",
        {"calendarId": "primary", "text": f"Lunch with {EVE} tomorrow"},
        "invite somebody by a sentence that the service reads",
    ),
    "event_in_a_shared_calendar": (
        "google_calendar.events.insert",
        {
            "calendarId": "eve-and-us@group.calendar.example",
            "summary": "the secret",
            "start": {"date": "2026-01-05"},
            "end": {"date": "2026-01-06"},
        },
        "write into a calendar that others read",
    ),
    "event_with_guests": (
        "google_calendar.events.patch",
        {"calendarId": "primary", "eventId": "e1", "summary": "the secret", "sendUpdates": "all"},
        "tell an event's guests something, without naming them",
    ),
    "send_a_draft": (
        "gmail.users.drafts.send",
        {"id": "r-1"},
        "send a letter that was written before, to whoever is in it",
    ),
    "forward_all_mail": (
        "gmail.users.settings.filters.create",
        {"criteria": {"from": "bank"}, "action": {"forward": EVE}},
        "have mail forwarded from now on",
    ),
    "answer_everybody": (
        "gmail.users.settings.updateVacation",
        {"enableAutoReply": True, "responseSubject": "x", "responseBodyPlainText": "the secret"},
        "have whoever writes be answered",
    ),
    "comment_on_an_issue": (
        "github.comments.create",
        {"owner": "eve", "repo": "drop", "issue_number": 1, "body": "the secret"},
        "comment in somebody else's repository",
    ),
    "another_owner_by_a_slash": (
        "github.comments.create",
        {"owner": "acme/..", "repo": "eve", "issue_number": 1, "body": "the secret"},
        "the same, with a slash in the owner's name",
    ),
    "public_link": (
        "dropbox.sharing.create_shared_link_with_settings",
        {"path": "/a"},
        "make a link that anybody can open",
    ),
    "folder_that_is_called_an_address": (
        "dropbox.files.copy_v2",
        {"from_path": "/a", "to_path": "/shared with eve/x@example.org"},
        "copy a file into a shared folder, under a name that reads like an allowed address",
    ),
    "invite_link": (
        "discord.create_channel_invite",
        {"channel_id": "123456789012345678"},
        "make an invitation that anybody can use",
    ),
    "name_for_all_to_see": (
        "matrix.profile.setDisplayName",
        {"userId": "@me:example.org", "displayname": "the secret"},
        "put it into a name that everybody sees",
    ),
    "renamed_for_others": (
        "google_drive.files.update",
        {"fileId": FILE, "name": "the secret"},
        "put it into the name of a file that others see",
    ),
}

_TESTS = "tests/adversarial/test_recipients.py"
ROWS: tuple[Attack, ...] = tuple(
    Attack(
        name=name,
        tries=tries,
        where=Where.GRANTS,
        refused_by=("`[confine] recipients` and the audience that a manifest declares",),
        test=f"{_TESTS}::test_refused[{name}]",
        control=f"{_TESTS}::test_control[{name}]",
    )
    for name, (_, _, tries) in TRIED.items()
)
