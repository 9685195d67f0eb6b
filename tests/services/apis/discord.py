"""A server that speaks Discord's API v10, as a bot sees it: channels, messages, members, roles, bans, invites."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.runtimes.rest.support import TOKEN, Hit
from tests.services.apis.common import NOTHING, Api, Said

_CH = r"/channels/(\d+)"
_ME = r"/channels/(\d+)/messages/(\d+)"
_GU = r"/guilds/(\d+)"
GUILD, CHANNEL, THREAD, MESSAGE, MEMBER, ROLE, OTHER_ROLE, BANNED = (str(10**17 + n) for n in range(1, 9))
BOT = str(10**17 + 99)


class Discord(Api):
    base = "/api/v10"
    credential = f"Bot {TOKEN}"
    routes: ClassVar = [
        ("GET", "/users/@me", "me"),
        ("GET", _GU + "/channels", "channels"),
        ("POST", _GU + "/channels", "add_channel"),
        ("GET", _CH, "channel"),
        ("PATCH", _CH, "change_channel"),
        ("DELETE", _CH, "drop_channel"),
        ("GET", _CH + "/messages", "messages"),
        ("POST", _CH + "/messages", "post"),
        ("POST", _CH + "/messages/bulk-delete", "purge"),
        ("GET", _CH + "/messages/pins", "pins"),
        ("PUT", _CH + r"/messages/pins/(\d+)", "pin"),
        ("DELETE", _CH + r"/messages/pins/(\d+)", "unpin"),
        ("GET", _ME, "message"),
        ("PATCH", _ME, "edit"),
        ("DELETE", _ME, "erase"),
        ("GET", _ME + "/reactions/([^/]+)", "reactions"),
        ("PUT", _ME + "/reactions/([^/]+)/@me", "react"),
        ("DELETE", _ME + "/reactions/([^/]+)/@me", "unreact"),
        ("POST", _CH + "/threads", "thread"),
        ("POST", _ME + "/threads", "thread_of"),
        ("PUT", _CH + "/thread-members/@me", "join"),
        ("DELETE", _CH + "/thread-members/@me", "leave"),
        ("GET", _GU + r"/members/(\d+)", "member"),
        ("PATCH", _GU + r"/members/(\d+)", "change_member"),
        ("DELETE", _GU + r"/members/(\d+)", "kick"),
        ("PUT", _GU + r"/members/(\d+)/roles/(\d+)", "give_role"),
        ("DELETE", _GU + r"/members/(\d+)/roles/(\d+)", "take_role"),
        ("POST", _GU + "/roles", "add_role"),
        ("GET", _GU + r"/roles/(\d+)", "role"),
        ("DELETE", _GU + r"/roles/(\d+)", "drop_role"),
        ("GET", _GU + r"/bans/(\d+)", "ban"),
        ("PUT", _GU + r"/bans/(\d+)", "add_ban"),
        ("DELETE", _GU + r"/bans/(\d+)", "drop_ban"),
        ("POST", _CH + "/invites", "invite"),
        ("GET", "/invites/([^/]+)", "resolve"),
        ("DELETE", "/invites/([^/]+)", "revoke"),
    ]

    def __init__(self) -> None:
        super().__init__()
        text = {"type": 0, "name": "ops", "topic": None, "last_message_id": MESSAGE}
        self.kept = {
            "channels": {CHANNEL: text, THREAD: {"type": 11, "name": "t", "message_count": 3, "members": []}},
            "messages": {MESSAGE: {"channel": CHANNEL, "content": "old", "pinned": False, "edited_timestamp": None}},
            "reactions": {},
            "members": {MEMBER: {"nick": None, "roles": [ROLE]}},
            "roles": {ROLE: {"name": "mods", "permissions": "8"}, OTHER_ROLE: {"name": "fans", "permissions": "0"}},
            "bans": [BANNED],
            "invites": {},
        }

    def error(self, status: int, message: str) -> Said:
        code = {401: 0, 404: 10008, 400: 50035, 403: 50013}[status]
        return status, {"message": message, "code": code}

    def answer(self, hit: Hit) -> Said | None:
        if not hit.headers.get("user-agent", "").startswith("DiscordBot ("):
            return 403, {"message": "internal network error", "code": 40333}
        return super().answer(hit)

    def id(self) -> str:
        return str(2 * 10**17 + self.tick())

    def one(self, table: str, id: str, what: str) -> Said:
        found = self.kept[table].get(id)
        return (200, {"id": id, **found}) if found is not None else self.error(404, f"Unknown {what}")

    def me(self, hit: Hit) -> Said:
        return 200, {"id": BOT, "username": "goex", "bot": True}

    # ---- channels, threads, invites ----

    def channels(self, hit: Hit, guild: str) -> Said:
        return 200, [{"id": id, **channel} for id, channel in self.kept["channels"].items()]

    def channel(self, hit: Hit, id: str) -> Said:
        status, shown = self.one("channels", id, "Channel")
        members = shown.pop("members", ()) if status == 200 else ()
        return status, {**shown, **({"member": {"id": id, "user_id": BOT}} if BOT in members else {})}

    def add_channel(self, hit: Hit, guild: str) -> Said:
        id = self.id()
        self.kept["channels"][id] = {"topic": None, "last_message_id": None, **hit.body}
        return 201, self.channel(hit, id)[1]

    def change_channel(self, hit: Hit, id: str) -> Said:
        thread = self.kept["channels"][id]["type"] == 11  # it has no topic, and none is set
        self.kept["channels"][id].update({k: v for k, v in hit.body.items() if not (thread and k == "topic")})
        return self.channel(hit, id)

    def drop_channel(self, hit: Hit, id: str) -> Said:
        found = self.kept["channels"].pop(id, None)
        return (200, {"id": id, **found}) if found else self.error(404, "Unknown Channel")

    def thread(self, hit: Hit, channel: str) -> Said:
        id = self.id()
        self.kept["channels"][id] = {"type": 11, "name": hit.body["name"], "message_count": 0, "members": [BOT]}
        return 201, self.channel(hit, id)[1]

    def thread_of(self, hit: Hit, channel: str, message: str) -> Said:
        return self.thread(hit, channel) if message in self.kept["messages"] else self.error(404, "Unknown Message")

    def join(self, hit: Hit, thread: str) -> Said:
        self.kept["channels"][thread]["members"] = sorted({*self.kept["channels"][thread]["members"], BOT})
        return 204, NOTHING

    def leave(self, hit: Hit, thread: str) -> Said:
        self.kept["channels"][thread]["members"].remove(BOT)
        return 204, NOTHING

    def invite(self, hit: Hit, channel: str) -> Said:
        code = f"goex{self.tick()}"
        self.kept["invites"][code] = channel
        return self.resolve(hit, code)

    def resolve(self, hit: Hit, code: str) -> Said:
        return (200, {"code": code}) if code in self.kept["invites"] else self.error(404, "Unknown Invite")

    def revoke(self, hit: Hit, code: str) -> Said:
        return (200, {"code": code}) if self.kept["invites"].pop(code, None) else self.error(404, "Unknown Invite")

    # ---- messages ----

    def messages(self, hit: Hit, channel: str) -> Said:
        return 200, [{"id": id, **m} for id, m in self.kept["messages"].items() if m["channel"] == channel]

    def message(self, hit: Hit, channel: str, id: str) -> Said:
        return self.one("messages", id, "Message")

    def post(self, hit: Hit, channel: str) -> Said:
        if channel not in self.kept["channels"]:
            return self.error(404, "Unknown Channel")
        id = self.id()
        made = {"channel": channel, "content": hit.body["content"], "pinned": False, "edited_timestamp": None}
        self.kept["messages"][id] = made
        return self.message(hit, channel, id)

    def edit(self, hit: Hit, channel: str, id: str) -> Said:
        if id not in self.kept["messages"]:
            return self.error(404, "Unknown Message")
        self.kept["messages"][id]["content"] = hit.body["content"]
        return self.message(hit, channel, id)

    def erase(self, hit: Hit, channel: str, id: str) -> Said:
        return (204, NOTHING) if self.kept["messages"].pop(id, None) else self.error(404, "Unknown Message")

    def purge(self, hit: Hit, channel: str) -> Said:
        for id in hit.body["messages"]:
            self.kept["messages"].pop(id, None)
        return 204, NOTHING

    def pins(self, hit: Hit, channel: str) -> Said:
        return 200, {"items": [], "has_more": False}

    def pin(self, hit: Hit, channel: str, id: str, pinned: bool = True) -> Said:
        if id not in self.kept["messages"]:
            return self.error(404, "Unknown Message")
        self.kept["messages"][id]["pinned"] = pinned
        return 204, NOTHING

    def unpin(self, hit: Hit, channel: str, id: str) -> Said:
        return self.pin(hit, channel, id, pinned=False)

    def reactions(self, hit: Hit, channel: str, message: str, emoji: str) -> Said:
        return 200, [{"id": user} for user in self.kept["reactions"].get(f"{message} {emoji}", [])]

    def react(self, hit: Hit, channel: str, message: str, emoji: str) -> Said:
        self.kept["reactions"][f"{message} {emoji}"] = [BOT]
        return 204, NOTHING

    def unreact(self, hit: Hit, channel: str, message: str, emoji: str) -> Said:
        gone = self.kept["reactions"].pop(f"{message} {emoji}", None)
        return (204, NOTHING) if gone else self.error(404, "Unknown Emoji")

    # ---- people ----

    def member(self, hit: Hit, guild: str, id: str) -> Said:
        found: Any = self.kept["members"].get(id)
        return (200, {"user": {"id": id}, **found}) if found else self.error(404, "Unknown Member")

    def change_member(self, hit: Hit, guild: str, id: str) -> Said:
        self.kept["members"][id].update(hit.body)
        return self.member(hit, guild, id)

    def kick(self, hit: Hit, guild: str, id: str) -> Said:
        return (204, NOTHING) if self.kept["members"].pop(id, None) else self.error(404, "Unknown Member")

    def give_role(self, hit: Hit, guild: str, id: str, role: str) -> Said:
        self.kept["members"][id]["roles"] = sorted({*self.kept["members"][id]["roles"], role})
        return 204, NOTHING

    def take_role(self, hit: Hit, guild: str, id: str, role: str) -> Said:
        self.kept["members"][id]["roles"] = sorted({*self.kept["members"][id]["roles"]} - {role})
        return 204, NOTHING

    def add_role(self, hit: Hit, guild: str) -> Said:
        id = self.id()
        self.kept["roles"][id] = hit.body
        return self.role(hit, guild, id)

    def role(self, hit: Hit, guild: str, id: str) -> Said:
        return self.one("roles", id, "Role")

    def drop_role(self, hit: Hit, guild: str, id: str) -> Said:
        return (204, NOTHING) if self.kept["roles"].pop(id, None) else self.error(404, "Unknown Role")

    def ban(self, hit: Hit, guild: str, id: str) -> Said:
        return (
            (200, {"user": {"id": id}, "reason": None}) if id in self.kept["bans"] else self.error(404, "Unknown Ban")
        )

    def add_ban(self, hit: Hit, guild: str, id: str) -> Said:
        self.kept["bans"].append(id)
        return 204, NOTHING

    def drop_ban(self, hit: Hit, guild: str, id: str) -> Said:
        if id not in self.kept["bans"]:
            return self.error(404, "Unknown Ban")
        self.kept["bans"].remove(id)
        return 204, NOTHING
