"""What the tests of the bundled manifests do: calls, and what somebody else does before they are taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from policies.actions import ApiCalls
from policies.jsonvalue import JsonObject
from tests.runtimes.rest.support import calls
from tests.services.apis import discord as dc
from tests.services.apis import google_calendar as gc
from tests.services.apis import spotify as sp

# What somebody else does to the state that a service keeps, or a word for it.
Change = Callable[[Any], Any] | str | None

WHEN = {"start": {"date": "2026-05-08"}, "end": {"date": "2026-05-09"}}
LATER = {"start": {"dateTime": "2026-05-04T15:00:00+02:00"}, "end": {"dateTime": "2026-05-04T15:30:00+02:00"}}
HERE = {"guild_id": dc.GUILD}
ON = {"channel_id": dc.CHANNEL, "message_id": dc.MESSAGE}
KIM = {"guild_id": dc.GUILD, "user_id": dc.MEMBER}
FILE, MAIL, BO = {"fileId": "document"}, {"id": "18a0000000000001"}, "bo@example.org"

# What is done, and what somebody else does afterwards that its guard must notice (None: it has
# no guard; a word: whatever they do, the thing gets another version).
DONE: list[tuple[str, JsonObject, Change]] = [
    (
        "gmail.users.messages.modify",
        {**MAIL, "addLabelIds": ["STARRED"]},
        lambda s: s["messages"][MAIL["id"]].update(labelIds=["INBOX"]),
    ),
    (
        "gmail.users.messages.modify",
        {**MAIL, "removeLabelIds": ["INBOX", "UNREAD"]},
        lambda s: s["messages"][MAIL["id"]].update(labelIds=["INBOX"]),
    ),
    ("gmail.users.messages.trash", MAIL, lambda s: s["messages"].pop(MAIL["id"])),
    ("gmail.users.messages.untrash", {"id": "18a0000000000003"}, lambda s: s["messages"].pop("18a0000000000003")),
    ("gmail.users.threads.trash", MAIL, lambda s: s["messages"].clear()),
    ("gmail.users.threads.untrash", {"id": "18a0000000000003"}, lambda s: s["messages"].clear()),
    (
        "gmail.users.drafts.create",
        {"to": [BO], "subject": "Hi", "body": "later"},
        lambda s: [d.update(message="x") for d in s["drafts"].values()],
    ),
    ("gmail.users.labels.create", {"name": "Trips"}, lambda s: [v.update(name="Y") for v in s["labels"].values()]),
    ("gmail.users.labels.patch", {"id": "Label_1", "name": "Job"}, lambda s: s["labels"]["Label_1"].update(name="Y")),
    (
        "gmail.users.settings.updateVacation",
        {"enableAutoReply": False},
        lambda s: s["vacation"].update(responseSubject="Y"),
    ),
    (
        "gmail.users.settings.filters.create",
        {"criteria": {"from": BO}, "action": {"addLabelIds": ["STARRED"]}},
        lambda s: s["filters"].clear(),
    ),
    ("google_calendar.events.insert", {"summary": "Lunch", **WHEN, "sendUpdates": "none"}, "event"),
    ("google_calendar.events.quickAdd", {"text": "Lunch on Friday"}, "event"),
    ("google_calendar.events.patch", {"eventId": "standup0001", **LATER}, "event"),
    ("google_calendar.events.patch", {"eventId": "standup0001", "location": "Room 4", "description": "Short"}, "event"),
    (
        "google_calendar.events.delete",
        {"eventId": "standup0001"},
        lambda s: s["events"][gc.OWN]["standup0001"].update(status="tentative"),
    ),
    ("google_calendar.events.move", {"eventId": "standup0001", "destination": gc.TEAM}, "event"),
    ("google_calendar.calendarList.insert", {"id": "holidays@example.org"}, "calendarListEntry"),
    (
        "google_calendar.calendarList.patch",
        {"calendarId": gc.TEAM, "hidden": True, "colorId": "3"},
        "calendarListEntry",
    ),
    ("google_calendar.calendarList.delete", {"calendarId": gc.TEAM}, lambda s: s["list"].update({gc.TEAM: {}})),
    (
        "google_calendar.calendars.insert",
        {"summary": "Trips"},
        lambda s: [e.update(new0001=dict(gc.EVENT)) for e in s["events"].values()],
    ),
    ("google_calendar.calendars.patch", {"calendarId": gc.TEAM, "summary": "Crew", "location": "Berlin"}, "calendar"),
    (
        "google_calendar.acl.insert",
        {"role": "writer", "scope": {"type": "user", "value": "kim@example.org"}},
        "aclRule",
    ),
    ("google_calendar.acl.patch", {"ruleId": f"user:{BO}", "role": "writer"}, "aclRule"),
    (
        "google_calendar.acl.delete",
        {"ruleId": f"user:{BO}"},
        lambda s: s["acl"][gc.OWN].update({f"user:{BO}": {"role": "reader"}}),
    ),
    (
        "google_drive.files.create",
        {"name": "Trip", "mimeType": "application/vnd.google-apps.document"},
        lambda s: [f.update(trashed=True) for f in s["files"].values()],
    ),
    (
        "google_drive.files.copy",
        {**FILE, "name": "Plan B"},
        lambda s: [f.update(trashed=True) for f in s["files"].values()],
    ),
    (
        "google_drive.files.update",
        {**FILE, "name": "Plan C", "description": "third"},
        lambda s: s["files"]["document"].update(name="Y"),
    ),
    ("google_drive.files.update", {**FILE, "name": "Plan D"}, lambda s: s["files"]["document"].update(description="Y")),
    ("google_drive.files.star", FILE, lambda s: s["files"]["document"].update(starred=False)),
    ("google_drive.files.unstar", {"fileId": "folderA1"}, lambda s: s["files"]["folderA1"].update(starred=True)),
    (
        "google_drive.files.createFolder",
        {"name": "Trip"},
        lambda s: [f.update(trashed=True) for f in s["files"].values()],
    ),
    (
        "google_drive.files.move",
        {**FILE, "addParents": "folderA1"},
        lambda s: s["files"]["document"].update(parents=["Y"]),
    ),
    ("google_drive.files.trash", FILE, lambda s: s["files"]["document"].update(trashed=False)),
    ("google_drive.files.untrash", {"fileId": "trashed1"}, lambda s: s["files"]["trashed1"].update(trashed=True)),
    (
        "google_drive.permissions.create",
        {**FILE, "role": "reader", "type": "anyone"},
        lambda s: s["permissions"]["document"]["anyoneWithLink"].update(role="writer"),
    ),
    (
        "google_drive.permissions.update",
        {**FILE, "permissionId": "p1001", "role": "writer"},
        lambda s: s["permissions"]["document"]["p1001"].update(role="commenter"),
    ),
    (
        "google_drive.permissions.delete",
        {**FILE, "permissionId": "p1001"},
        lambda s: s["permissions"]["document"].update(p1001={"type": "user", "role": "writer"}),
    ),
    ("google_drive.comments.create", {**FILE, "content": "Hm"}, lambda s: s["comments"]["document"].clear()),
    (
        "google_drive.comments.update",
        {**FILE, "commentId": "c1", "content": "Nicer"},
        lambda s: s["comments"]["document"]["c1"].update(content="Y"),
    ),
    (
        "google_drive.replies.create",
        {**FILE, "commentId": "c1", "content": "Yes"},
        lambda s: s["comments"]["document"]["c1"]["replies"].clear(),
    ),
    (
        "discord.create_guild_channel",
        {**HERE, "name": "trips"},
        lambda s: [c.update(last_message_id="1") for c in s["channels"].values()],
    ),
    (
        "discord.update_channel",
        {"channel_id": dc.CHANNEL, "topic": "Calm"},
        lambda s: s["channels"][dc.CHANNEL].update(topic="Y"),
    ),
    (
        "discord.update_channel",
        {"channel_id": dc.THREAD, "name": "u"},
        lambda s: s["channels"][dc.THREAD].update(name="Y"),
    ),
    (
        "discord.create_message",
        {"channel_id": dc.CHANNEL, "content": "hi @everyone"},
        lambda s: [m.update(edited_timestamp="now") for m in s["messages"].values()],
    ),
    ("discord.update_message", {**ON, "content": "new"}, lambda s: s["messages"][dc.MESSAGE].update(content="Y")),
    ("discord.create_pin", ON, lambda s: s["messages"][dc.MESSAGE].update(pinned=False)),
    ("discord.add_my_message_reaction", {**ON, "emoji_name": "🎉"}, None),
    (
        "discord.create_thread",
        {"channel_id": dc.CHANNEL, "name": "t2"},
        lambda s: [c.update(message_count=9) for c in s["channels"].values()],
    ),
    (
        "discord.create_thread_from_message",
        {**ON, "name": "t2"},
        lambda s: [c.update(message_count=9) for c in s["channels"].values()],
    ),
    ("discord.join_thread", {"channel_id": dc.THREAD}, lambda s: s["channels"][dc.THREAD]["members"].clear()),
    ("discord.update_guild_member", {**KIM, "nick": "Kimmy"}, lambda s: s["members"][dc.MEMBER].update(nick="Y")),
    (
        "discord.add_guild_member_role",
        {**KIM, "role_id": dc.OTHER_ROLE},
        lambda s: s["members"][dc.MEMBER].update(roles=[]),
    ),
    (
        "discord.delete_guild_member_role",
        {**KIM, "role_id": dc.ROLE},
        lambda s: s["members"][dc.MEMBER].update(roles=[dc.ROLE]),
    ),
    (
        "discord.create_guild_role",
        {**HERE, "name": "helpers"},
        lambda s: [r.update(permissions="8") for r in s["roles"].values()],
    ),
    ("discord.ban_user_from_guild", KIM, lambda s: s["bans"].clear()),
    ("discord.unban_user_from_guild", {**HERE, "user_id": dc.BANNED}, lambda s: s["bans"].append(dc.BANNED)),
    ("discord.create_channel_invite", {"channel_id": dc.CHANNEL, "max_age": 3600}, lambda s: s["invites"].clear()),
    (
        "dropbox.files.create_folder_v2",
        {"path": "/B"},
        lambda s: s["entries"].update({"id:x": {"path": "/B/x", "rev": "1", "content_hash": "h"}}),
    ),
    (
        "dropbox.files.delete_v2",
        {"path": "/Plan.txt"},
        lambda s: s["entries"].update({"id:x": {"path": "/Plan.txt", "rev": "1", "content_hash": "h"}}),
    ),
    (
        "dropbox.files.move_v2",
        {"from_path": "/Plan.txt", "to_path": "/A/Plan 2.txt"},
        lambda s: s["entries"]["id:plan"].update(path="/C.txt"),
    ),
    (
        "dropbox.files.move_v2",
        {"from_path": "id:folderA", "to_path": "/Z"},
        lambda s: s["entries"]["id:folderA"].update(path="/Y"),
    ),
    (
        "dropbox.files.copy_v2",
        {"from_path": "/Plan.txt", "to_path": "/Plan 2.txt"},
        lambda s: [e.update(rev="9") for e in s["entries"].values()],
    ),
    (
        "dropbox.files.copy_v2",
        {"from_path": "/A", "to_path": "/B"},
        lambda s: [e.update(path="/Y") for e in s["entries"].values()],
    ),
    ("dropbox.files.tags.add", {"path": "/Plan.txt", "tag_text": "urgent"}, lambda s: s["tags"].clear()),
    ("dropbox.sharing.create_shared_link_with_settings", {"path": "/Plan.txt"}, lambda s: s["links"].clear()),
    (
        "dropbox.file_requests.create",
        {"title": "Photos", "destination": "/A"},
        lambda s: [r.update(file_count=1) for r in s["requests"].values()],
    ),
    (
        "dropbox.file_requests.update",
        {"id": "req1", "open": False, "title": "Old"},
        lambda s: s["requests"]["req1"].update(title="Y"),
    ),
    ("spotify.pause_a_users_playback", {}, lambda s: s["player"].update(playing=True)),
    ("spotify.set_volume_for_users_playback", {"volume_percent": 70}, lambda s: s["player"].update(volume=1)),
    ("spotify.set_repeat_mode_on_users_playback", {"state": "track"}, lambda s: s["player"].update(repeat="context")),
    ("spotify.toggle_shuffle_for_users_playback", {"state": True}, lambda s: s["player"].update(shuffle=False)),
    ("spotify.transfer_a_users_playback", {"device_ids": ["kitchen"]}, lambda s: s["player"].update(device="car")),
    ("spotify.create_playlist", {"name": "Rain"}, "snapshot"),
    (
        "spotify.change_playlist_details",
        {"playlist_id": sp.LIST, "name": "Evenings"},
        lambda s: s["playlists"][sp.LIST].update(name="Y"),
    ),
    (
        "spotify.change_playlist_details",
        {"playlist_id": sp.LIST, "public": False},
        lambda s: s["playlists"][sp.LIST].update(public=True),
    ),
    ("spotify.add_items_to_playlist", {"playlist_id": sp.LIST, "uris": [sp.SONG]}, None),
    ("spotify.save_library_items", {"uris": [sp.SONG, sp.OTHER]}, lambda s: s["library"].remove(sp.SONG)),
    (
        "spotify.remove_library_items",
        {"uris": [f"spotify:playlist:{sp.LIST}"]},
        lambda s: s["library"].append(f"spotify:playlist:{sp.LIST}"),
    ),
]

# Needs something to be there first: what is done before.
FIRST: dict[str, tuple[str, JsonObject]] = {
    "discord.delete_pin": ("discord.create_pin", ON),
    "discord.delete_my_message_reaction": ("discord.add_my_message_reaction", {**ON, "emoji_name": "🎉"}),
    "discord.leave_thread": ("discord.join_thread", {"channel_id": dc.THREAD}),
    "dropbox.files.tags.remove": ("dropbox.files.tags.add", {"path": "/Plan.txt", "tag_text": "urgent"}),
}
NOTICED: dict[str, Change] = {
    "discord.delete_pin": lambda s: s["messages"][dc.MESSAGE].update(pinned=True),
    "discord.leave_thread": lambda s: s["channels"][dc.THREAD]["members"].append(dc.BOT),
    "dropbox.files.tags.remove": lambda s: s["tags"].update({"/Plan.txt": ["urgent"]}),
}

CASES = [*DONE, *((name, first[1], NOTICED.get(name)) for name, first in FIRST.items())]

# One action a service, several calls on several things, all the way through a container and the gateway.
WHOLE: dict[str, ApiCalls] = {
    "gmail": calls(
        ("gmail.users.labels.create", {"name": "Trips"}),
        (
            "gmail.users.messages.modify",
            {**MAIL, "addLabelIds": [{"$from": 0, "path": "$.id"}], "removeLabelIds": ["UNREAD"]},
        ),
        ("gmail.users.messages.trash", {"id": "18a0000000000002"}),
        ("gmail.users.drafts.create", {"to": [BO], "subject": "Züge", "body": "I'm late."}),
        ("gmail.users.settings.updateVacation", {"enableAutoReply": True, "responseSubject": "Gone"}),
    ),
    "google_calendar": calls(
        ("google_calendar.calendars.insert", {"summary": "Trips"}),
        ("google_calendar.events.insert", {"summary": "Lunch", **WHEN, "attendees": [{"email": BO}]}),
        ("google_calendar.events.patch", {"eventId": "standup0001", **LATER, "location": "Room 4"}),
        ("google_calendar.acl.delete", {"ruleId": f"user:{BO}"}),
        ("google_calendar.calendarList.patch", {"calendarId": gc.TEAM, "hidden": True}),
    ),
    "google_drive": calls(
        ("google_drive.files.update", {"fileId": "folderA1", "name": "B", "description": "x"}),
        ("google_drive.files.move", {**FILE, "addParents": "folderA1"}),
        ("google_drive.files.untrash", {"fileId": "trashed1"}),
        ("google_drive.permissions.create", {**FILE, "role": "reader", "type": "anyone"}),
        ("google_drive.comments.create", {**FILE, "content": "Hm"}),
    ),
    "discord": calls(
        ("discord.create_message", {"channel_id": dc.CHANNEL, "content": "hi"}),
        ("discord.create_pin", ON),
        ("discord.add_my_message_reaction", {**ON, "emoji_name": "🎉"}),
        ("discord.add_guild_member_role", {**KIM, "role_id": dc.OTHER_ROLE}),
        ("discord.update_channel", {"channel_id": dc.CHANNEL, "topic": "Calm"}),
    ),
    "dropbox": calls(
        ("dropbox.files.create_folder_v2", {"path": "/B"}),
        ("dropbox.files.move_v2", {"from_path": "/A/Notes.txt", "to_path": "/Notes 2.txt"}),
        ("dropbox.files.delete_v2", {"path": "/Plan.txt"}),
        ("dropbox.sharing.create_shared_link_with_settings", {"path": "/A"}),
        ("dropbox.file_requests.create", {"title": "Photos", "destination": "/A"}),
    ),
    "spotify": calls(
        ("spotify.set_volume_for_users_playback", {"volume_percent": 70}),
        ("spotify.create_playlist", {"name": "Rain"}),
        ("spotify.add_items_to_playlist", {"playlist_id": sp.LIST, "uris": [sp.SONG]}),
        ("spotify.save_library_items", {"uris": [sp.SONG, sp.OTHER]}),
        ("spotify.toggle_shuffle_for_users_playback", {"state": True}),
    ),
}
