"""Requests as people phrase them to Gmail, Google Calendar, Google Drive, Discord, Dropbox and Spotify.

As in `phrasings`: `TRAINING_MORE` may be tuned on, `HELD_OUT_MORE` measures, to `UNANSWERABLE_MORE` a sure answer is a
mistake. Dates are written out, so that what is meant doesn't depend on the day of the test.
"""

from __future__ import annotations

from typing import Any

from tests.mapper.phrasings import Phrasing

CHANNEL, MESSAGE, GUILD, USER, ROLE = (str(10**17 + 7919 * n) for n in range(1, 6))
ON = {"channel_id": CHANNEL, "message_id": MESSAGE}
DOC, FOLDER = "1aBcD_efGhIjKlMnOpQrStUvWxYz-0123456789AB", "0Bz9yX8wV7uT6sR5qP4oN3mL2kJ1iH0gF"
LIST, SONG, ALBUM = (
    "37i9dQZF1DXcBWIGoYBM5M",
    "spotify:track:4iV5W9uYEdYUVa79Axb7Rh",
    "spotify:album:1DFixLWuPkv3KT3TnV35m3",
)


def at(start: str, end: str) -> dict[str, Any]:
    return {"start": {"dateTime": start}, "end": {"dateTime": end}}


TRAINING_MORE: list[Phrasing] = [
    (
        'send an email to bo@example.org with subject "Late" saying "I will be late"',
        "gmail.users.messages.send",
        {"to": ["bo@example.org"], "subject": "Late", "body": "I will be late"},
    ),
    ("list my gmail labels", "gmail.users.labels.list", {}),
    ('create a gmail label called "Trips"', "gmail.users.labels.create", {"name": "Trips"}),
    ("trash the email 18c2f0a1b2c3d4e5", "gmail.users.messages.trash", {"id": "18c2f0a1b2c3d4e5"}),
    ("which drafts do I have in gmail?", "gmail.users.drafts.list", {}),
    (
        'draft a mail to kim@example.org saying "see you on Monday"',
        "gmail.users.drafts.create",
        {"to": ["kim@example.org"], "body": "see you on Monday"},
    ),
    ("list the calendars that I have", "google_calendar.calendarList.list", {}),
    (
        'schedule "Review" in my calendar from 2026-05-04T15:00:00Z to 2026-05-04T16:00:00Z',
        "google_calendar.events.insert",
        {"summary": "Review", **at("2026-05-04T15:00:00Z", "2026-05-04T16:00:00Z")},
    ),
    ("cancel the meeting 4n8r0t2q6v1ab on my calendar", "google_calendar.events.delete", {"eventId": "4n8r0t2q6v1ab"}),
    ("who can see my calendar?", "google_calendar.acl.list", {}),
    ('create a google calendar called "Holidays"', "google_calendar.calendars.insert", {"summary": "Holidays"}),
    (f"show me the google drive file {DOC}", "google_drive.files.get", {"fileId": DOC}),
    (f"move the document {DOC} to the trash on google drive", "google_drive.files.trash", {"fileId": DOC}),
    (f'rename the drive file {DOC} to "Plan B"', "google_drive.files.update", {"fileId": DOC, "name": "Plan B"}),
    (f"who has access to the document {DOC}?", "google_drive.permissions.list", {"fileId": DOC}),
    ("empty the trash of my google drive", "google_drive.files.emptyTrash", {}),
    (
        f'post "the server restarts at noon" in the discord channel {CHANNEL}',
        "discord.create_message",
        {"channel_id": CHANNEL, "content": "the server restarts at noon"},
    ),
    ("which discord servers is the bot in?", "discord.list_my_guilds", {}),
    (f"pin message {MESSAGE} in discord channel {CHANNEL}", "discord.create_pin", ON),
    (f"read the last 20 messages of discord channel {CHANNEL}", "discord.list_messages",
     {"channel_id": CHANNEL, "limit": 20}),
    (f"ban user {USER} from discord server {GUILD}", "discord.ban_user_from_guild",
     {"guild_id": GUILD, "user_id": USER}),
    ("create a dropbox folder /Trips/2026", "dropbox.files.create_folder_v2", {"path": "/Trips/2026"}),
    ("delete /Old/report.pdf from dropbox", "dropbox.files.delete_v2", {"path": "/Old/report.pdf"}),
    ("how full is my dropbox?", "dropbox.users.get_space_usage", {}),
    ("make a dropbox link to /Plans/may.pdf", "dropbox.sharing.create_shared_link_with_settings",
     {"path": "/Plans/may.pdf"}),
    ("what song is playing?", "spotify.get_the_users_currently_playing_track", {}),
    ("pause spotify", "spotify.pause_a_users_playback", {}),
    ("skip this track on spotify", "spotify.skip_users_playback_to_next_track", {}),
    ('create a spotify playlist called "Rainy days"', "spotify.create_playlist", {"name": "Rainy days"}),
    (f"save {SONG} to my spotify library", "spotify.save_library_items", {"uris": [SONG]}),
]  # fmt: skip

HELD_OUT_MORE: list[Phrasing] = [
    (
        'mail lee@example.net: "the contract is signed"',
        "gmail.users.messages.send",
        {"to": ["lee@example.net"], "body": "the contract is signed"},
    ),
    ("show the vacation responder of my mailbox", "gmail.users.settings.getVacation", {}),
    ("throw away the mail with id 18d9e8f7a6b5c4d3", "gmail.users.messages.trash", {"id": "18d9e8f7a6b5c4d3"}),
    ("which mail rules are set up in gmail", "gmail.users.settings.filters.list", {}),
    (
        'put "Dentist" on my calendar, 2026-06-01T08:30:00Z to 2026-06-01T09:00:00Z',
        "google_calendar.events.insert",
        {"summary": "Dentist", **at("2026-06-01T08:30:00Z", "2026-06-01T09:00:00Z")},
    ),
    ("what's on my agenda", "google_calendar.events.list", {}),
    ("take 7c1g5k9o3s7u2d4 off my calendar", "google_calendar.events.delete", {"eventId": "7c1g5k9o3s7u2d4"}),
    ("which colours can calendar events have", "google_calendar.colors.get", {}),
    (f"give the google doc {DOC} a star", "google_drive.files.star", {"fileId": DOC}),
    (
        f"put the file {DOC} into the drive folder {FOLDER}",
        "google_drive.files.move",
        {"fileId": DOC, "addParents": FOLDER},
    ),
    ("how much space is left in my google drive", "google_drive.about.get", {}),
    ('make a new google drive folder named "Receipts"', "google_drive.files.createFolder",
     {"name": "Receipts"}),
    (
        f'tell the discord channel {CHANNEL} "pizza is here"',
        "discord.create_message",
        {"channel_id": CHANNEL, "content": "pizza is here"},
    ),
    (f"take the pin off message {MESSAGE} in discord channel {CHANNEL}", "discord.delete_pin", ON),
    (f"which channels are on discord server {GUILD}?", "discord.list_guild_channels", {"guild_id": GUILD}),
    (
        f"give the role {ROLE} to discord user {USER} on server {GUILD}",
        "discord.add_guild_member_role",
        {"guild_id": GUILD, "user_id": USER, "role_id": ROLE},
    ),
    ("rename /Drafts/a.txt to /Drafts/b.txt in dropbox", "dropbox.files.move_v2",
     {"from_path": "/Drafts/a.txt", "to_path": "/Drafts/b.txt"}),
    ("what is in the dropbox folder /Photos?", "dropbox.files.list_folder", {"path": "/Photos"}),
    ("list my shared dropbox folders", "dropbox.sharing.list_folders", {}),
    ("show the earlier versions of /Plans/may.pdf in dropbox", "dropbox.files.list_revisions",
     {"path": "/Plans/may.pdf"}),
    ("which playlists do I have on spotify", "spotify.get_a_list_of_current_users_playlists", {}),
    (f"queue {SONG}", "spotify.add_to_queue", {"uri": SONG}),
    (f"add {SONG} to the spotify playlist {LIST}", "spotify.add_items_to_playlist",
     {"playlist_id": LIST, "uris": [SONG]}),
    (f"unfollow {ALBUM} in my library", "spotify.remove_library_items", {"uris": [ALBUM]}),
]  # fmt: skip

UNANSWERABLE_MORE: list[str] = [
    "send an email",
    "email bo",
    'send a mail saying "hello"',
    "forward it",
    "schedule a meeting",
    "move the meeting",
    "share the document",
    "share it with kim@example.org",
    "delete the file",
    "ban him",
    "give her the role",
    "make a link",
    "move it to the archive",
    "turn it up",
    "add this to my playlist",
    "follow them",
    "put on some music for a rainy sunday",
    "how many calories has an apple",
]
