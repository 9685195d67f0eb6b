"""Calendars that speak Google's API: events that stay as cancelled, etags that every change renews, sharing rules."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from tests.runtimes.rest.support import Hit
from tests.services.apis.common import NOTHING, Api, Said, merge

_C = "/calendars/([^/]+)"
_L = "/users/me/calendarList"
OWN, BO = "ann@example.org", "bo@example.org"
TEAM = "team@group.calendar.google.com"
EVENT = {
    "status": "confirmed",
    "summary": "Standup",
    "start": {"dateTime": "2026-05-04T09:00:00+02:00", "timeZone": "Europe/Berlin"},
    "end": {"dateTime": "2026-05-04T09:15:00+02:00", "timeZone": "Europe/Berlin"},
    "attendees": [{"email": "bo@example.org", "responseStatus": "accepted"}],
}


class GoogleCalendar(Api):
    base = "/calendar/v3"
    routes: ClassVar = [
        ("GET", f"{_C}/events", "events"),
        ("POST", f"{_C}/events", "insert"),
        ("POST", f"{_C}/events/quickAdd", "quick_add"),
        ("GET", f"{_C}/events/([^/]+)", "event"),
        ("PATCH", f"{_C}/events/([^/]+)", "patch"),
        ("DELETE", f"{_C}/events/([^/]+)", "delete"),
        ("POST", f"{_C}/events/([^/]+)/move", "move"),
        ("POST", "/freeBusy", "free_busy"),
        ("GET", _L, "list"),
        ("POST", _L, "subscribe"),
        ("GET", f"{_L}/([^/]+)", "entry"),
        ("PATCH", f"{_L}/([^/]+)", "patch_entry"),
        ("DELETE", f"{_L}/([^/]+)", "unsubscribe"),
        ("POST", "/calendars", "create"),
        ("GET", _C, "calendar"),
        ("PATCH", _C, "patch_calendar"),
        ("DELETE", _C, "erase"),
        ("GET", f"{_C}/acl", "rules"),
        ("POST", f"{_C}/acl", "add_rule"),
        ("GET", f"{_C}/acl/([^/]+)", "rule"),
        ("PATCH", f"{_C}/acl/([^/]+)", "patch_rule"),
        ("DELETE", f"{_C}/acl/([^/]+)", "drop_rule"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.etags: dict[tuple[str, ...], int] = {}
        self.kept = {
            "calendars": {
                OWN: {"summary": "Ann", "timeZone": "Europe/Berlin"},
                TEAM: {"summary": "Team", "description": "All of us", "timeZone": "Europe/Berlin"},
            },
            "events": {OWN: {"standup0001": copy.deepcopy(EVENT)}, TEAM: {}},
            "list": {TEAM: {"colorId": "7", "selected": True}},
            "acl": {OWN: {f"user:{BO}": {"role": "reader", "scope": {"type": "user", "value": BO}}}, TEAM: {}},
        }

    def state(self) -> Any:
        """Without cancelled events, which nobody sees."""
        kept = copy.deepcopy(self.kept)
        for calendar, events in kept["events"].items():
            kept["events"][calendar] = {id: event for id, event in events.items() if event["status"] != "cancelled"}
        return kept

    def renew(self) -> None:
        self.etags = {key: self.tick() for key in self.etags}

    def error(self, status: int, message: str) -> Said:
        return status, {"error": {"code": status, "message": message, "errors": [{"reason": message}]}}

    def _id(self, calendar: str) -> str:
        return OWN if calendar == "primary" else calendar

    def _tagged(self, kind: str, where: tuple[str, ...], value: dict[str, Any], changed: bool = False) -> Said:
        key = (kind, *where)
        if changed or key not in self.etags:
            self.etags[key] = self.tick()
        return 200, {"kind": f"calendar#{kind}", "etag": f'"{self.etags[key]}"', "id": where[-1], **value}

    def _found(self, kind: str, table: str, *where: str) -> Said:
        held = self.kept[table]
        for key in where:
            if key not in held:
                return self.error(404, "notFound")
            held = held[key]
        return self._tagged(kind, where, held)

    # ---- events ----

    def events(self, hit: Hit, calendar: str) -> Said:
        if self._id(calendar) not in self.kept["events"]:
            return self.error(404, "notFound")
        events = self.kept["events"][self._id(calendar)]
        return 200, {
            "items": [self.event(hit, calendar, id)[1] for id in events if events[id]["status"] != "cancelled"]
        }

    def event(self, hit: Hit, calendar: str, id: str) -> Said:
        status, shown = self._found("event", "events", self._id(calendar), id)
        return status, {**shown, "organizer": {"email": self._id(calendar)}} if status == 200 else shown

    def _put(self, calendar: str, id: str, event: dict[str, Any]) -> Said:
        if "start" not in event or "end" not in event:
            return self.error(400, "required")
        if any({"date", "dateTime"} <= set(event[end]) for end in ("start", "end")):
            return self.error(400, "Invalid start time.")
        self.kept["events"][calendar][id] = event
        self._tagged("event", (calendar, id), event, changed=True)
        return self.event(None, calendar, id)  # type: ignore[arg-type]

    def insert(self, hit: Hit, calendar: str) -> Said:
        given = {key: value for key, value in hit.body.items() if value is not None}
        return self._put(self._id(calendar), f"event{self.tick():06d}", {"status": "confirmed", **given})

    def quick_add(self, hit: Hit, calendar: str) -> Said:
        hit.body.update(summary=hit.query["text"], start={"date": "2026-05-08"}, end={"date": "2026-05-09"})
        return self.insert(hit, calendar)

    def patch(self, hit: Hit, calendar: str, id: str) -> Said:
        held = self.kept["events"].get(self._id(calendar), {}).get(id)
        if held is None:
            return self.error(404, "notFound")
        changed = copy.deepcopy(held)
        merge(changed, hit.body)
        return self._put(self._id(calendar), id, changed)

    def delete(self, hit: Hit, calendar: str, id: str) -> Said:
        held = self.kept["events"].get(self._id(calendar), {}).get(id)
        if held is None:
            return self.error(404, "notFound")
        if held["status"] == "cancelled":
            return self.error(410, "deleted")
        held["status"] = "cancelled"
        self._tagged("event", (self._id(calendar), id), held, changed=True)
        return 204, NOTHING

    def move(self, hit: Hit, calendar: str, id: str) -> Said:
        held = self.kept["events"].get(self._id(calendar), {}).get(id)
        target = hit.query["destination"]
        if held is None or target not in self.kept["events"]:
            return self.error(404, "notFound")
        self._put(target, id, copy.deepcopy(held))
        held["status"] = "cancelled"  # the calendar that it left keeps a cancelled one
        return self.event(hit, target, id)

    def free_busy(self, hit: Hit) -> Said:
        return 200, {"calendars": {item["id"]: {"busy": []} for item in hit.body["items"]}}

    # ---- which calendars are shown ----

    def list(self, hit: Hit) -> Said:
        return 200, {"items": [self.entry(hit, id)[1] for id in self.kept["list"]]}

    def entry(self, hit: Hit, id: str) -> Said:
        return self._found("calendarListEntry", "list", id)

    def subscribe(self, hit: Hit) -> Said:
        id = hit.body.pop("id")
        self.kept["list"][id] = {"colorId": "1"}
        merge(self.kept["list"][id], hit.body)
        return self._tagged("calendarListEntry", (id,), self.kept["list"][id], changed=True)

    def patch_entry(self, hit: Hit, id: str) -> Said:
        merge(self.kept["list"][id], hit.body)
        return self._tagged("calendarListEntry", (id,), self.kept["list"][id], changed=True)

    def unsubscribe(self, hit: Hit, id: str) -> Said:
        return (204, NOTHING) if self.kept["list"].pop(id, None) else self.error(404, "notFound")

    # ---- calendars and their rules ----

    def calendar(self, hit: Hit, id: str) -> Said:
        return self._found("calendar", "calendars", self._id(id))

    def create(self, hit: Hit) -> Said:
        id = f"c{self.tick()}@group.calendar.google.com"
        self.kept["calendars"][id], self.kept["events"][id], self.kept["acl"][id] = dict(hit.body), {}, {}
        return self.calendar(hit, id)

    def patch_calendar(self, hit: Hit, id: str) -> Said:
        merge(self.kept["calendars"][id], hit.body)
        return self._tagged("calendar", (id,), self.kept["calendars"][id], changed=True)

    def erase(self, hit: Hit, id: str) -> Said:
        for table in ("calendars", "events", "acl"):
            if self.kept[table].pop(id, None) is None:
                return self.error(404, "notFound")
        return 204, NOTHING

    def rules(self, hit: Hit, id: str) -> Said:
        return 200, {"items": [self.rule(hit, id, rule)[1] for rule in self.kept["acl"][self._id(id)]]}

    def rule(self, hit: Hit, id: str, rule: str) -> Said:
        return self._found("aclRule", "acl", self._id(id), rule)

    def add_rule(self, hit: Hit, id: str) -> Said:
        scope = hit.body["scope"]
        if "value" in scope:
            scope["value"] = scope["value"].lower()
        rule = scope["type"] if scope["type"] == "default" else f"{scope['type']}:{scope['value']}"
        self.kept["acl"][self._id(id)][rule] = hit.body
        return self._tagged("aclRule", (self._id(id), rule), hit.body, changed=True)

    def patch_rule(self, hit: Hit, id: str, rule: str) -> Said:
        merge(self.kept["acl"][self._id(id)][rule], hit.body)
        return self._tagged("aclRule", (self._id(id), rule), self.kept["acl"][self._id(id)][rule], changed=True)

    def drop_rule(self, hit: Hit, id: str, rule: str) -> Said:
        gone = self.kept["acl"][self._id(id)].pop(rule, None)
        return (204, NOTHING) if gone else self.error(404, "notFound")
