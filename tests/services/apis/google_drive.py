"""Files that speak Google Drive's API: one parent each, a trash, permissions, comments; `fields` say what is shown."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tests.runtimes.rest.support import Hit
from tests.services.apis.common import NOTHING, Api, Said, merge

_F = "/files/([^/]+)"
_USUAL = "kind,id,name,mimeType"


class GoogleDrive(Api):
    base = "/drive/v3"
    routes: ClassVar = [
        ("GET", "/about", "about"),
        ("GET", "/files", "files"),
        ("POST", "/files", "create"),
        ("DELETE", "/files/trash", "empty"),
        ("GET", _F, "file"),
        ("PATCH", _F, "update"),
        ("DELETE", _F, "delete"),
        ("POST", f"{_F}/copy", "copy"),
        ("GET", f"{_F}/export", "export"),
        ("GET", f"{_F}/permissions", "permissions"),
        ("POST", f"{_F}/permissions", "share"),
        ("GET", f"{_F}/permissions/([^/]+)", "permission"),
        ("PATCH", f"{_F}/permissions/([^/]+)", "reshare"),
        ("DELETE", f"{_F}/permissions/([^/]+)", "unshare"),
        ("GET", f"{_F}/comments", "comments"),
        ("POST", f"{_F}/comments", "comment_on"),
        ("GET", f"{_F}/comments/([^/]+)", "comment"),
        ("PATCH", f"{_F}/comments/([^/]+)", "edit"),
        ("DELETE", f"{_F}/comments/([^/]+)", "erase"),
        ("POST", f"{_F}/comments/([^/]+)/replies", "answer_to"),
        ("GET", f"{_F}/comments/([^/]+)/replies/([^/]+)", "reply"),
        ("DELETE", f"{_F}/comments/([^/]+)/replies/([^/]+)", "drop_reply"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[str, str] = {}
        plain = {"mimeType": "application/vnd.google-apps.document", "starred": False, "trashed": False}
        folder = {**plain, "mimeType": "application/vnd.google-apps.folder"}
        self.kept = {
            "files": {
                "root0000": {**folder, "name": "My Drive"},
                "folderA1": {**folder, "name": "A", "starred": True, "parents": ["root0000"]},
                "document": {**plain, "name": "Plan", "parents": ["root0000"]},
                "trashed1": {**plain, "name": "Old", "parents": ["root0000"], "trashed": True},
            },
            "permissions": {
                "document": {"p1001": {"type": "user", "role": "reader", "emailAddress": "bo@example.org"}}
            },
            "comments": {"document": {"c1": {"content": "Nice", "replies": {}}}},
        }

    def state(self) -> Any:
        """Without what was made and is in the trash: a file is never taken back further than that."""
        kept = super().state()
        made = {id for id, file in kept["files"].items() if id.startswith("made") and file["trashed"]}
        kept["files"] = {id: file for id, file in kept["files"].items() if id not in made}
        return kept

    def error(self, status: int, message: str) -> Said:
        return status, {"error": {"code": status, "message": message, "errors": [{"reason": message}]}}

    def missing(self, id: str) -> Said:
        return self.error(404, f"File not found: {id}.")

    def shown(self, hit: Hit, id: str, value: dict[str, Any], usual: str = _USUAL) -> Said:
        wanted = re.sub(r"\([^)]*\)", "", hit.query.get("fields", usual)).split(",")
        whole = {
            "kind": "drive#thing",
            "id": id,
            "modifiedTime": self.times.get(id, "2026-05-01T00:00:00.000Z"),
            **value,
        }
        return 200, {name: whole[name] for name in wanted if name in whole}

    def touch(self, id: str) -> None:
        self.times[id] = f"2026-05-02T00:00:{self.tick():02d}.000Z"

    # ---- files ----

    def about(self, hit: Hit) -> Said:
        if "fields" not in hit.query:
            return self.error(400, "The 'fields' parameter is required for this method.")
        return 200, {"user": {"emailAddress": "ann@example.org"}, "storageQuota": {"limit": "1"}}

    def files(self, hit: Hit) -> Said:
        return 200, {"files": [{"id": id, "name": file["name"]} for id, file in self.kept["files"].items()]}

    def file(self, hit: Hit, id: str) -> Said:
        return self.shown(hit, id, self.kept["files"][id]) if id in self.kept["files"] else self.missing(id)

    def create(self, hit: Hit) -> Said:
        id = f"made{self.tick():04d}"
        made = {"starred": False, "trashed": False, "parents": ["root0000"], "mimeType": "application/octet-stream"}
        self.kept["files"][id] = {**made, **hit.body}
        self.touch(id)
        return self.file(hit, id)

    def copy(self, hit: Hit, id: str) -> Said:
        if id not in self.kept["files"]:
            return self.missing(id)
        made = {**self.kept["files"][id], "name": f"Copy of {self.kept['files'][id]['name']}", **hit.body}
        hit.body.clear()
        hit.body.update(made)
        return self.create(hit)

    def update(self, hit: Hit, id: str) -> Said:
        if id not in self.kept["files"]:
            return self.missing(id)
        file = self.kept["files"][id]
        add, remove = hit.query.get("addParents"), hit.query.get("removeParents")
        add = "root0000" if add == "root" else add
        if add and add not in self.kept["files"]:
            return self.missing(add)
        if remove and remove not in file["parents"]:
            return self.error(400, "The specified parent isn't a parent of the file.")
        merge(file, hit.body)
        if add:
            file["parents"] = [add]  # a file has one parent
        self.touch(id)
        return self.file(hit, id)

    def delete(self, hit: Hit, id: str) -> Said:
        return (204, NOTHING) if self.kept["files"].pop(id, None) else self.missing(id)

    def empty(self, hit: Hit) -> Said:
        self.kept["files"] = {id: file for id, file in self.kept["files"].items() if not file["trashed"]}
        return 204, NOTHING

    def export(self, hit: Hit, id: str) -> Said:
        return 200, b"The plan is to rest."

    # ---- permissions ----

    def permissions(self, hit: Hit, id: str) -> Said:
        return 200, {"permissions": [{"id": key, **held} for key, held in self.kept["permissions"].get(id, {}).items()]}

    def permission(self, hit: Hit, id: str, permission: str) -> Said:
        found = self.kept["permissions"].get(id, {}).get(permission)
        return self.shown(hit, permission, found, "kind,id,type,role") if found else self.missing(permission)

    def share(self, hit: Hit, id: str) -> Said:
        given = {key: value for key, value in hit.body.items() if value is not None}
        if given["type"] in ("user", "group") and "emailAddress" not in given:
            return self.error(
                400, "The specified emailAddress is invalid or not applicable for the given permission type."
            )
        # Whoever it is for has one id, on every file.
        bo = "bo@" in given.get("emailAddress", "").lower()
        key = "anyoneWithLink" if given["type"] == "anyone" else "p1001" if bo else f"p{self.tick()}"
        self.kept["permissions"].setdefault(id, {})[key] = given
        return self.permission(hit, id, key)

    def reshare(self, hit: Hit, id: str, permission: str) -> Said:
        merge(self.kept["permissions"][id][permission], hit.body)
        return self.permission(hit, id, permission)

    def unshare(self, hit: Hit, id: str, permission: str) -> Said:
        gone = self.kept["permissions"].get(id, {}).pop(permission, None)
        return (204, NOTHING) if gone else self.missing(permission)

    # ---- comments ----

    def _needs_fields(self, hit: Hit) -> Said | None:
        if "fields" in hit.query:
            return None
        return self.error(400, "The 'fields' parameter is required for this method.")

    def comments(self, hit: Hit, id: str) -> Said:
        held = self.kept["comments"].get(id, {})
        return self._needs_fields(hit) or (200, {"comments": [{"id": key, **value} for key, value in held.items()]})

    def comment(self, hit: Hit, id: str, comment: str) -> Said:
        found = self.kept["comments"].get(id, {}).get(comment)
        return self._needs_fields(hit) or (self.shown(hit, comment, found) if found else self.missing(comment))

    def comment_on(self, hit: Hit, id: str) -> Said:
        key = f"c{10 + self.tick()}"
        self.kept["comments"].setdefault(id, {})[key] = {"content": hit.body["content"], "replies": {}}
        self.touch(key)
        return self.comment(hit, id, key)

    def edit(self, hit: Hit, id: str, comment: str) -> Said:
        self.kept["comments"][id][comment]["content"] = hit.body["content"]
        self.touch(comment)
        return self.comment(hit, id, comment)

    def erase(self, hit: Hit, id: str, comment: str) -> Said:
        gone = self.kept["comments"].get(id, {}).pop(comment, None)
        return (204, NOTHING) if gone else self.missing(comment)

    def answer_to(self, hit: Hit, id: str, comment: str) -> Said:
        key = f"r{self.tick()}"
        self.kept["comments"][id][comment]["replies"][key] = {"content": hit.body["content"]}
        self.touch(key)
        return self.reply(hit, id, comment, key)

    def reply(self, hit: Hit, id: str, comment: str, reply: str) -> Said:
        found = self.kept["comments"][id][comment]["replies"].get(reply)
        return self._needs_fields(hit) or (self.shown(hit, reply, found) if found else self.missing(reply))

    def drop_reply(self, hit: Hit, id: str, comment: str, reply: str) -> Said:
        gone = self.kept["comments"][id][comment]["replies"].pop(reply, None)
        return (204, NOTHING) if gone else self.missing(reply)
