"""A mailbox that speaks Gmail's API: messages with labels, drafts, labels, filters, the vacation answer."""

from __future__ import annotations

import base64
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any, ClassVar

from tests.runtimes.rest.support import Hit
from tests.services.apis.common import NOTHING, Api, Said

_U = "/users/me"
_ID = "/([^/]+)"


class Gmail(Api):
    base = "/gmail/v1"
    routes: ClassVar = [
        ("GET", f"{_U}/profile", "profile"),
        ("GET", f"{_U}/messages", "messages"),
        ("POST", f"{_U}/messages/send", "send"),
        ("POST", f"{_U}/messages/batchModify", "batch"),
        ("GET", f"{_U}/messages{_ID}", "message"),
        ("DELETE", f"{_U}/messages{_ID}", "erase"),
        ("POST", f"{_U}/messages{_ID}/(modify|trash|untrash)", "change"),
        ("GET", f"{_U}/threads{_ID}", "thread"),
        ("POST", f"{_U}/threads{_ID}/(modify|trash|untrash)", "change_thread"),
        ("GET", f"{_U}/drafts", "drafts"),
        ("POST", f"{_U}/drafts", "draft"),
        ("POST", f"{_U}/drafts/send", "send_draft"),
        ("GET", f"{_U}/drafts{_ID}", "get_draft"),
        ("PUT", f"{_U}/drafts{_ID}", "put_draft"),
        ("DELETE", f"{_U}/drafts{_ID}", "drop_draft"),
        ("GET", f"{_U}/labels", "labels"),
        ("POST", f"{_U}/labels", "add_label"),
        ("GET", f"{_U}/labels{_ID}", "label"),
        ("PATCH", f"{_U}/labels{_ID}", "rename_label"),
        ("DELETE", f"{_U}/labels{_ID}", "drop_label"),
        ("GET", f"{_U}/settings/vacation", "vacation"),
        ("PUT", f"{_U}/settings/vacation", "set_vacation"),
        ("GET", f"{_U}/settings/filters", "filters"),
        ("POST", f"{_U}/settings/filters", "add_filter"),
        ("GET", f"{_U}/settings/filters{_ID}", "filter"),
        ("DELETE", f"{_U}/settings/filters{_ID}", "drop_filter"),
    ]

    def __init__(self) -> None:
        super().__init__()
        system = ("INBOX", "UNREAD", "STARRED", "TRASH", "SENT", "DRAFT")
        self.kept = {
            "messages": {
                "18a0000000000001": {"threadId": "18a0000000000001", "labelIds": ["INBOX", "UNREAD"]},
                "18a0000000000002": {"threadId": "18a0000000000001", "labelIds": ["INBOX"]},
                "18a0000000000003": {"threadId": "18a0000000000003", "labelIds": ["INBOX", "TRASH"]},
            },
            "labels": {name: {"name": name, "type": "system"} for name in system}
            | {"Label_1": {"name": "Work", "type": "user"}},
            "drafts": {},
            "filters": {},
            "vacation": {"enableAutoReply": True, "responseSubject": "Away", "responseBodyPlainText": "Back soon."},
            "sent": [],
        }

    def error(self, status: int, message: str) -> Said:
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 409: "ABORTED"}
        return status, {"error": {"code": status, "message": message, "status": names[status]}}

    def missing(self) -> Said:
        return self.error(404, "Requested entity was not found.")

    def profile(self, hit: Hit) -> Said:
        return 200, {"emailAddress": "ann@example.org", "messagesTotal": len(self.kept["messages"])}

    # ---- messages ----

    def messages(self, hit: Hit) -> Said:
        return 200, {"messages": [{"id": id} for id in self.kept["messages"]]}

    def shown(self, id: str) -> dict[str, Any]:
        kept = self.kept["messages"][id]
        made = {"id": id, "threadId": kept["threadId"], "snippet": "…"}
        return {**made, **({"labelIds": kept["labelIds"]} if kept["labelIds"] else {})}

    def message(self, hit: Hit, id: str) -> Said:
        return (200, self.shown(id)) if id in self.kept["messages"] else self.missing()

    def erase(self, hit: Hit, id: str) -> Said:
        return (204, NOTHING) if self.kept["messages"].pop(id, None) else self.missing()

    def change(self, hit: Hit, id: str, how: str) -> Said:
        if id not in self.kept["messages"]:
            return self.missing()
        refused = self.relabel([id], how, hit.body)
        return refused or (200, self.shown(id))

    def relabel(self, ids: list[str], how: str, body: Any) -> Said | None:
        add, remove = {"trash": (["TRASH"], []), "untrash": ([], ["TRASH"])}.get(
            how, (body.get("addLabelIds", []), body.get("removeLabelIds", []))
        )
        if not add and not remove:
            return self.error(400, "No label add or removes specified")
        if set(add) & set(remove):
            return self.error(400, "Cannot both add and remove the same label")
        unknown = [label for label in (*add, *remove) if label not in self.kept["labels"]]
        if unknown:
            return self.error(400, f"Invalid label: {unknown[0]}")
        for id in ids:
            labels = set(self.kept["messages"][id]["labelIds"])
            self.kept["messages"][id]["labelIds"] = sorted((labels | set(add)) - set(remove))
        return None

    def batch(self, hit: Hit) -> Said:
        return self.relabel(hit.body["ids"], "modify", hit.body) or (204, NOTHING)

    def _of_thread(self, id: str) -> list[str]:
        return [message for message, kept in self.kept["messages"].items() if kept["threadId"] == id]

    def thread(self, hit: Hit, id: str) -> Said:
        found = self._of_thread(id)
        return (200, {"id": id, "messages": [self.shown(message) for message in found]}) if found else self.missing()

    def change_thread(self, hit: Hit, id: str, how: str) -> Said:
        found = self._of_thread(id)
        return (self.relabel(found, how, hit.body) or self.thread(hit, id)) if found else self.missing()

    # ---- sending ----

    def letter(self, raw: Any) -> Message | None:
        try:
            return message_from_bytes(base64.urlsafe_b64decode(raw), policy=default)
        except (TypeError, ValueError):
            return None

    def send(self, hit: Hit) -> Said:
        letter = self.letter(hit.body.get("raw"))
        if letter is None or not any(letter[name] for name in ("To", "Cc", "Bcc")):
            return self.error(400, "Recipient address required")
        self.kept["sent"].append(letter)
        id = f"18b{self.tick():013x}"
        self.kept["messages"][id] = {"threadId": hit.body.get("threadId", id), "labelIds": ["SENT"]}
        return 200, self.shown(id)

    def drafts(self, hit: Hit) -> Said:
        return 200, {"drafts": [{"id": id} for id in self.kept["drafts"]]}

    def _draft(self, id: str, message: Any) -> Said:
        if self.letter(message.get("raw")) is None:
            return self.error(400, "Invalid value for ByteString")
        # Every change of a draft makes another message of it.
        self.kept["drafts"][id] = {"message": f"18c{self.tick():013x}", "raw": message["raw"]}
        return self.get_draft(None, id)

    def draft(self, hit: Hit) -> Said:
        return self._draft(f"r{self.tick()}", hit.body["message"])

    def get_draft(self, hit: Hit | None, id: str) -> Said:
        if id not in self.kept["drafts"]:
            return self.missing()
        message = self.kept["drafts"][id]["message"]
        return 200, {"id": id, "message": {"id": message, "threadId": message, "labelIds": ["DRAFT"]}}

    def put_draft(self, hit: Hit, id: str) -> Said:
        return self._draft(id, hit.body["message"]) if id in self.kept["drafts"] else self.missing()

    def drop_draft(self, hit: Hit, id: str) -> Said:
        return (204, NOTHING) if self.kept["drafts"].pop(id, None) else self.missing()

    def send_draft(self, hit: Hit) -> Said:
        draft = self.kept["drafts"].pop(hit.body["id"], None)
        if draft is None:
            return self.missing()
        hit.body["raw"] = draft["raw"]
        return self.send(hit)

    # ---- labels, filters, the vacation answer ----

    def labels(self, hit: Hit) -> Said:
        return 200, {"labels": [{"id": id, **label} for id, label in self.kept["labels"].items()]}

    def add_label(self, hit: Hit) -> Said:
        if any(label["name"] == hit.body["name"] for label in self.kept["labels"].values()):
            return self.error(409, "Label name exists or conflicts")
        id = f"Label_{100 + self.tick()}"
        self.kept["labels"][id] = {"name": hit.body["name"], "type": "user"}
        return self.label(hit, id)

    def label(self, hit: Hit, id: str) -> Said:
        found = self.kept["labels"].get(id)
        return (200, {"id": id, **found}) if found else self.missing()

    def rename_label(self, hit: Hit, id: str) -> Said:
        if self.kept["labels"].get(id, {"type": "system"})["type"] == "system":
            return self.error(400, "Invalid update request")
        self.kept["labels"][id]["name"] = hit.body["name"]
        return self.label(hit, id)

    def drop_label(self, hit: Hit, id: str) -> Said:
        if not self.kept["labels"].pop(id, None):
            return self.missing()
        for message in self.kept["messages"].values():
            message["labelIds"] = [label for label in message["labelIds"] if label != id]
        return 204, NOTHING

    def vacation(self, hit: Hit) -> Said:
        return 200, self.kept["vacation"]

    def set_vacation(self, hit: Hit) -> Said:
        self.kept["vacation"] = {name: value for name, value in hit.body.items() if value}  # what is unset isn't shown
        return 200, self.kept["vacation"]

    def filters(self, hit: Hit) -> Said:
        return 200, {"filter": [{"id": id, **kept} for id, kept in self.kept["filters"].items()]}

    def add_filter(self, hit: Hit) -> Said:
        id = f"ANe1B{self.tick()}"
        self.kept["filters"][id] = hit.body
        return self.filter(hit, id)

    def filter(self, hit: Hit, id: str) -> Said:
        found = self.kept["filters"].get(id)
        return (200, {"id": id, **found}) if found else self.missing()

    def drop_filter(self, hit: Hit, id: str) -> Said:
        return (204, NOTHING) if self.kept["filters"].pop(id, None) else self.missing()
