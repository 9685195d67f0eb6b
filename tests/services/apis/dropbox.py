"""Files that speak Dropbox's API v2: every endpoint a POST, failures with status 409, old versions by their rev."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.runtimes.rest.support import Hit
from tests.services.apis.common import Api, Said


def _tagged(*tags: str) -> dict[str, Any]:
    made: dict[str, Any] = {".tag": tags[0]}
    return {**made, tags[0]: _tagged(*tags[1:])} if len(tags) > 1 else made


class Dropbox(Api):
    base = "/2"
    routes: ClassVar = [("POST", "/(.+)", "call")]

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, dict[str, Any]] = {}
        self.kept = {"entries": {}, "tags": {}, "links": {}, "requests": {}}
        self._add("id:folderA", "/A", None)
        self._add("id:plan", "/Plan.txt", "hash-of-plan")
        self._add("id:inA", "/A/Notes.txt", "hash-of-notes")
        self.kept["requests"]["req1"] = {"title": "Slides", "destination": "/A", "is_open": True, "file_count": 0}

    def _add(self, id: str, path: str, content: str | None) -> None:
        entry = {"path": path, "content_hash": content, "rev": f"{self.tick():09x}" if content else None}
        self.kept["entries"][id] = entry
        if content:
            self.history[str(entry["rev"])] = dict(entry)

    def state(self) -> Any:
        """Without ids and revs, which a restored file has anew."""
        kept = super().state()
        kept["entries"] = {entry["path"]: entry["content_hash"] for entry in kept["entries"].values()}
        return kept

    def error(self, status: int, message: str) -> Said:
        return status, {"error_summary": f"{message}/..", "error": _tagged(*message.split("/"))}

    def call(self, hit: Hit, name: str) -> Said:
        if hit.headers.get("content-type", "").split(";")[0] not in ("application/json", ""):
            return 400, b'Error in call to API function: Bad HTTP "Content-Type" header.'
        handler = getattr(self, "do_" + name.replace("/", "_"), None)
        said: Said = handler(hit.body) if handler else self.error(404, "no such function")
        return said

    # ---- files ----

    def _find(self, path: str) -> str | None:
        entries: dict[str, dict[str, Any]] = self.kept["entries"]
        return next((id for id, e in entries.items() if path in (id,) or e["path"].lower() == path.lower()), None)

    def _shown(self, id: str) -> dict[str, Any]:
        entry = self.kept["entries"][id]
        path = entry["path"]
        made = {"id": id, "name": path.rpartition("/")[2], "path_lower": path.lower(), "path_display": path}
        if entry["rev"] is None:
            return {".tag": "folder", **made}
        return {".tag": "file", **made, "rev": entry["rev"], "content_hash": entry["content_hash"]}

    def _below(self, path: str) -> list[str]:
        return [
            id for id, entry in self.kept["entries"].items() if entry["path"].lower().startswith(path.lower() + "/")
        ]

    def do_files_get_metadata(self, body: Any) -> Said:
        id = self._find(body["path"])
        return (200, self._shown(id)) if id else self.error(409, "path/not_found")

    def do_files_list_folder(self, body: Any) -> Said:
        id = self._find(body["path"])
        if body["path"] and id is None:
            return self.error(409, "path/not_found")
        path = self.kept["entries"][id]["path"] if id else ""
        found = [self._shown(each) for each in self._below(path)]
        return 200, {"entries": found[: body.get("limit", 1000)], "cursor": "c", "has_more": False}

    def do_files_create_folder_v2(self, body: Any) -> Said:
        if self._find(body["path"]):
            return self.error(409, "path/conflict/folder")
        id = f"id:made{self.tick()}"
        self._add(id, body["path"], None)
        shown = self._shown(id)
        del shown[".tag"]
        return 200, {"metadata": shown}

    def do_files_delete_v2(self, body: Any) -> Said:
        id = self._find(body["path"])
        if id is None:
            return self.error(409, "path_lookup/not_found")
        shown = self._shown(id)
        for each in (*self._below(shown["path_display"]), id):
            del self.kept["entries"][each]
        return 200, {"metadata": shown}

    def do_files_restore(self, body: Any) -> Said:
        if body["rev"] not in self.history:
            return self.error(409, "invalid_revision")
        self._add(f"id:made{self.tick()}", self.history[body["rev"]]["path"], self.history[body["rev"]]["content_hash"])
        id = self._find(body["path"])
        assert id is not None
        return 200, self._shown(id)

    def do_files_move_v2(self, body: Any) -> Said:
        id = self._find(body["from_path"])
        if id is None:
            return self.error(409, "from_lookup/not_found")
        if self._find(body["to_path"]):
            return self.error(409, "to/conflict/file")
        old = self.kept["entries"][id]["path"]
        for each in (id, *self._below(old)):
            entry = self.kept["entries"][each]
            entry["path"] = body["to_path"] + entry["path"][len(old) :]
        return 200, {"metadata": self._shown(id)}

    def do_files_copy_v2(self, body: Any) -> Said:
        id = self._find(body["from_path"])
        if id is None:
            return self.error(409, "from_lookup/not_found")
        old = self.kept["entries"][id]["path"]
        for each in (id, *self._below(old)):
            entry = self.kept["entries"][each]
            path = body["to_path"] + entry["path"][len(old) :]
            self._add(f"id:made{self.tick()}", path, entry["content_hash"])
        made = self._find(body["to_path"])
        assert made is not None
        return 200, {"metadata": self._shown(made)}

    def do_files_tags_get(self, body: Any) -> Said:
        tags = [{".tag": "user_generated_tag", "tag_text": tag} for tag in self.kept["tags"].get(body["paths"][0], [])]
        return 200, {"paths_to_tags": [{"path": body["paths"][0], "tags": tags}]}

    def do_files_tags_add(self, body: Any) -> Said:
        self.kept["tags"][body["path"]] = [*self.kept["tags"].get(body["path"], []), body["tag_text"]]
        return 200, None

    def do_files_tags_remove(self, body: Any) -> Said:
        if body["tag_text"] not in self.kept["tags"].get(body["path"], []):
            return self.error(409, "tag_not_present")
        left = [tag for tag in self.kept["tags"].pop(body["path"]) if tag != body["tag_text"]]
        self.kept["tags"].update({body["path"]: left} if left else {})
        return 200, None

    # ---- sharing, file requests, the account ----

    def do_sharing_create_shared_link_with_settings(self, body: Any) -> Said:
        id = self._find(body["path"])
        if id is None:
            return self.error(409, "path/not_found")
        if id in self.kept["links"].values():
            return self.error(409, "shared_link_already_exists")
        url = f"https://www.dropbox.com/scl/fi/{self.tick()}/x?rlkey=abc&dl=0"
        self.kept["links"][url] = id
        return 200, {"url": url, "id": id}

    def do_sharing_get_shared_link_metadata(self, body: Any) -> Said:
        found = body["url"] in self.kept["links"]
        return (200, {"url": body["url"]}) if found else self.error(409, "shared_link_not_found")

    def do_sharing_revoke_shared_link(self, body: Any) -> Said:
        gone = self.kept["links"].pop(body["url"], None)
        return (200, None) if gone else self.error(409, "shared_link_not_found")

    def do_file_requests_create(self, body: Any) -> Said:
        id = f"req{10 + self.tick()}"
        made = {"title": body["title"], "destination": body["destination"], "is_open": body["open"]}
        self.kept["requests"][id] = {**made, "file_count": 0}
        return self.do_file_requests_get({"id": id})

    def do_file_requests_get(self, body: Any) -> Said:
        found = self.kept["requests"].get(body["id"])
        return (200, {"id": body["id"], **found}) if found else self.error(409, "not_found")

    def do_file_requests_update(self, body: Any) -> Said:
        request = self.kept["requests"][body["id"]]
        request["title"] = body.get("title", request["title"])
        request["is_open"] = body.get("open", request["is_open"])
        return self.do_file_requests_get(body)

    def do_file_requests_delete(self, body: Any) -> Said:
        if any(self.kept["requests"][id]["is_open"] for id in body["ids"]):
            return self.error(409, "file_request_open")
        for id in body["ids"]:
            del self.kept["requests"][id]
        return 200, {"file_requests": [{"id": id} for id in body["ids"]]}

    def do_users_get_current_account(self, body: Any) -> Said:
        return 200, {"account_id": "dbid:1", "email": "ann@example.org"}
