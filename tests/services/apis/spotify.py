"""A listener's account that speaks Spotify's Web API: a player, playlists with snapshots, one library of URIs."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.runtimes.rest.support import Hit
from tests.services.apis.common import NOTHING, Api, Said

_P = "/playlists/([^/]+)"
LIST, SONG, OTHER = (
    "37i9dQZF1DXcBWIGoYBM5M",
    "spotify:track:4iV5W9uYEdYUVa79Axb7Rh",
    "spotify:track:1301WleyT98MSxVHPZCA6M",
)


class Spotify(Api):
    base = "/v1"
    routes: ClassVar = [
        ("GET", "/me", "me"),
        ("GET", "/search", "search"),
        ("GET", "/me/player", "player"),
        ("PUT", "/me/player", "transfer"),
        ("PUT", "/me/player/(play|pause)", "play"),
        ("POST", "/me/player/(next|previous)", "skip"),
        ("PUT", "/me/player/(volume|repeat|shuffle|seek)", "set"),
        ("POST", "/me/player/queue", "queue"),
        ("GET", "/me/playlists", "playlists"),
        ("POST", "/me/playlists", "create"),
        ("GET", _P, "playlist"),
        ("PUT", _P, "change"),
        ("GET", f"{_P}/items", "items"),
        ("POST", f"{_P}/items", "add"),
        ("DELETE", f"{_P}/items", "remove"),
        ("GET", "/me/library/contains", "contains"),
        ("PUT", "/me/library", "save"),
        ("DELETE", "/me/library", "unsave"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: dict[str, str] = {LIST: "s0"}
        self.made: dict[str, dict[str, Any]] = {}
        self.kept = {
            "player": {"playing": True, "volume": 40, "repeat": "off", "shuffle": False, "device": "phone"},
            "playlists": {LIST: {"name": "Mornings", "public": True, "uris": [OTHER]}},
            "library": [f"spotify:playlist:{LIST}"],
        }

    def state(self) -> Any:
        """Without playlists that are in nobody's library any more: Spotify keeps them, unseen."""
        kept = super().state()
        shown = {uri.rpartition(":")[2] for uri in kept["library"]}
        kept["playlists"] = {id: playlist for id, playlist in kept["playlists"].items() if id in shown}
        return kept

    def renew(self) -> None:
        self.snapshots = {id: f"s{self.tick()}" for id in self.snapshots}

    def error(self, status: int, message: str) -> Said:
        return status, {"error": {"status": status, "message": message}}

    def me(self, hit: Hit) -> Said:
        return 200, {"id": "ann", "display_name": "Ann"}

    def search(self, hit: Hit) -> Said:
        return 200, {"tracks": {"items": [{"uri": SONG}]}}

    # ---- the player ----

    def player(self, hit: Hit) -> Said:
        kept = self.kept["player"]
        return 200, {
            "device": {"id": kept["device"], "is_active": True, "volume_percent": kept["volume"]},
            "repeat_state": kept["repeat"],
            "shuffle_state": kept["shuffle"],
            "is_playing": kept["playing"],
        }

    def transfer(self, hit: Hit) -> Said:
        self.kept["player"]["device"] = hit.body["device_ids"][0]
        return 204, NOTHING

    def play(self, hit: Hit, how: str) -> Said:
        if how == "pause" and not self.kept["player"]["playing"]:
            return self.error(403, "Player command failed: Restriction violated")
        self.kept["player"]["playing"] = how == "play"
        return 204, NOTHING

    def skip(self, hit: Hit, how: str) -> Said:
        return 204, NOTHING

    def set(self, hit: Hit, what: str) -> Said:
        if what == "volume":
            self.kept["player"]["volume"] = int(hit.query["volume_percent"])
        elif what == "repeat":
            self.kept["player"]["repeat"] = hit.query["state"]
        elif what == "shuffle":
            self.kept["player"]["shuffle"] = hit.query["state"] == "true"
        return 204, NOTHING

    def queue(self, hit: Hit) -> Said:
        return 204, NOTHING

    # ---- playlists ----

    def playlists(self, hit: Hit) -> Said:
        return 200, {"items": [self.playlist(hit, id)[1] for id in self.kept["playlists"]]}

    def playlist(self, hit: Hit, id: str) -> Said:
        found = self.kept["playlists"].get(id)
        if found is None:
            return self.error(404, "Resource not found")
        head = {"id": id, "uri": f"spotify:playlist:{id}", "snapshot_id": self.snapshots[id]}
        return 200, {**head, "name": found["name"], "public": found["public"], "items": {"total": len(found["uris"])}}

    def create(self, hit: Hit) -> Said:
        id = f"goex{self.tick():018d}"
        self.kept["playlists"][id] = {"name": hit.body["name"], "public": hit.body.get("public", True), "uris": []}
        self.kept["library"].append(f"spotify:playlist:{id}")
        self.snapshots[id] = f"s{self.tick()}"
        return 201, self.playlist(hit, id)[1]

    def change(self, hit: Hit, id: str) -> Said:
        self.kept["playlists"][id].update(hit.body)
        self.snapshots[id] = f"s{self.tick()}"
        return 200, NOTHING

    def items(self, hit: Hit, id: str) -> Said:
        uris = self.kept["playlists"][id]["uris"]
        shown = [{"item": {"uri": uri}} for uri in uris[: int(hit.query.get("limit", 20))]]
        return 200, {"items": shown, "total": len(uris)}

    def add(self, hit: Hit, id: str) -> Said:
        uris = self.kept["playlists"][id]["uris"]
        place = hit.body.get("position", len(uris))
        uris[place:place] = hit.body["uris"]
        self.snapshots[id] = f"s{self.tick()}"
        return 201, {"snapshot_id": self.snapshots[id]}

    def remove(self, hit: Hit, id: str) -> Said:
        gone = {item["uri"] for item in hit.body["items"]}
        playlist = self.kept["playlists"][id]
        playlist["uris"] = [uri for uri in playlist["uris"] if uri not in gone]  # all of a kind, wherever they are
        self.snapshots[id] = f"s{self.tick()}"
        return 200, {"snapshot_id": self.snapshots[id]}

    # ---- the library ----

    def contains(self, hit: Hit) -> Said:
        return 200, [uri in self.kept["library"] for uri in hit.query["uris"].split(",")]

    def save(self, hit: Hit) -> Said:
        new = [uri for uri in hit.query["uris"].split(",") if uri not in self.kept["library"]]
        self.kept["library"] += new
        return 200, NOTHING

    def unsave(self, hit: Hit) -> Said:
        gone = hit.query["uris"].split(",")
        self.kept["library"] = [uri for uri in self.kept["library"] if uri not in gone]
        return 200, NOTHING
