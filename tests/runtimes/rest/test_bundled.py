"""The bundled manifests against services that speak their protocols: each undo takes back what was done.

Each undoable method is planned as the runtime plans it and sent over TLS by a few lines here, so that every step can be
looked at: the guard holds, and no more once somebody else changed the thing; the read-back can fail; afterwards the
service's state is what it was. One action a service then goes the whole way, through a container and the gateway.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pytest

from mapper.catalog import Catalog
from policies.actions import Plan, Revert, UndoClass
from policies.errors import InvalidInput, Unsupported
from policies.jsonvalue import JsonObject
from policies.services import Risk
from runtimes.gateway.plan import Exchange
from runtimes.rest.plans import assess_calls
from runtimes.rest.records import Answer, CallRecord
from runtimes.rest.requests import bind
from runtimes.rest.runtime import RestRuntime
from runtimes.rest.steps import Step
from runtimes.rest.undo import planned_steps, undo_steps
from runtimes.rest.verdicts import holds
from runtimes.sandbox.contract import Profile
from tests.runtimes.rest.bundled_cases import BO, CASES, FILE, FIRST, HERE, KIM, MAIL, ON, WHOLE
from tests.runtimes.rest.support import TOKEN, Bench, account, calls, serving
from tests.services.apis import discord as dc
from tests.services.apis import google_calendar as gc
from tests.services.apis import spotify as sp
from tests.services.apis.common import Api
from tests.services.apis.discord import Discord
from tests.services.apis.dropbox import Dropbox
from tests.services.apis.gmail import Gmail
from tests.services.apis.google_calendar import GoogleCalendar
from tests.services.apis.google_drive import GoogleDrive
from tests.services.apis.spotify import Spotify

CATALOG = Catalog.bundled()
APIS: dict[str, type[Api]] = {
    "gmail": Gmail,
    "google_calendar": GoogleCalendar,
    "google_drive": GoogleDrive,
    "discord": Discord,
    "dropbox": Dropbox,
    "spotify": Spotify,
}


class Sender:
    """Plans as the runtime does, and sends each step itself."""

    def __init__(self, server: Api, folder: Path) -> None:
        self.server = server
        name = next(name for name, kind in APIS.items() if isinstance(server, kind))
        self.account = account(name, server.url, ca_pem=server.ca_pem, private=True)
        self.bench = Bench(folder / "records", (self.account,))
        self.trust = ssl.create_default_context(cadata=server.ca_pem)

    def send(self, step: Step) -> Answer:
        asked = step.request
        path = "/".join(quote(str(part), safe="@") for part in (*asked.base_path, *asked.path))
        query = urlencode(asked.query, doseq=True, quote_via=quote)
        headers = {**asked.headers, asked.credential_name: asked.credential_format.replace("{secret}", TOKEN)}
        data = None
        if asked.body is not None:
            headers["Content-Type"], data = "application/json", json.dumps(asked.body).encode()
        url = f"{asked.origin}/{path}{'?' + query if query else ''}"
        request = Request(url, method=asked.method, data=data, headers=headers)
        try:
            with urlopen(request, timeout=300, context=self.trust) as answer:
                status, text = answer.status, answer.read()
        except HTTPError as error:
            status, text = error.code, error.read()
        body = json.loads(text) if text else None
        own = any(expect.op == "status" for expect in asked.expect)
        well = (own or status < 300) and all(holds(expect, status, body) for expect in asked.expect)
        return Answer.of(
            Exchange(request=step.id, status=status, well=well, body=body, failed="" if well else "no"), ()
        )

    def plan(self, method: str, arguments: JsonObject) -> Plan:
        return assess_calls(
            calls((method, arguments)), self.bench.context("a1", leased=False), CATALOG, Profile(), "image"
        )

    def act(self, method: str, arguments: JsonObject) -> tuple[Plan, CallRecord]:
        plan, call_record = self.plan(method, arguments), CallRecord()
        for step in planned_steps(plan):
            answer = self.send(bind(step, call_record.answers, CATALOG, self.account))
            assert answer.well, (step.id, answer)
            call_record.answers[step.id] = answer
        return plan, call_record

    def undo(self, plan: Plan, call_record: CallRecord) -> dict[str, Step]:
        accounts = {(self.account.service, self.account.name): self.account}
        return {step.id: step for step in undo_steps(plan, call_record, CATALOG, accounts)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("services")


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[dict[str, Api]]:
    """One server of each kind for all tests here; `fresh` sets its state back."""
    with ExitStack() as stack:
        made = {}
        for name, kind in APIS.items():
            (folder / name).mkdir()
            made[name] = kind()
            stack.enter_context(serving(made[name], folder / name, base=kind.base))
        yield made


def fresh(server: Api) -> Api:
    new = type(server)()
    for name in ("url", "ca_pem"):
        setattr(new, name, getattr(server, name))
    server.__dict__.update(new.__dict__)
    return server


def case_id(case: Any) -> str:
    return str(case) if isinstance(case, str) else ""


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("method", "arguments", "change"), CASES, ids=case_id)
def test_what_was_done_is_taken_back(
    servers: dict[str, Api], tmp_path: Path, method: str, arguments: JsonObject, change: Any
) -> None:
    server = fresh(servers[method.partition(".")[0]])
    sender = Sender(server, tmp_path)
    if method in FIRST:
        sender.act(*FIRST[method])
    before = server.state()
    plan, call_record = sender.act(method, arguments)
    assert plan.undo_class is UndoClass.COMPENSATING, plan.undo_text
    assert server.state() != before
    for probe in planned_steps(plan, "probes"):
        assert sender.send(bind(probe, call_record.answers, CATALOG, sender.account)).well, "the probe doesn't see it"
    steps = sender.undo(plan, call_record)
    guard, verify = steps.get("guard-0"), steps.get("verify-0")
    assert (guard is None) == (change is None) and (guard is None or sender.send(guard).well)
    if verify is not None:
        assert not sender.send(verify).well, "the read-back holds before anything was taken back"
    for step in steps.values():
        if step.role == "undo":
            answer = sender.send(step)
            assert answer.well, answer
    assert server.state() == before
    if verify is not None:
        answer = sender.send(verify)
        assert answer.well, answer


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("method", "arguments", "change"), [case for case in CASES if case[2] is not None], ids=case_id
)
def test_a_guard_notices_what_somebody_else_did(
    servers: dict[str, Api], tmp_path: Path, method: str, arguments: JsonObject, change: Any
) -> None:
    server = fresh(servers[method.partition(".")[0]])
    sender = Sender(server, tmp_path)
    if method in FIRST:
        sender.act(*FIRST[method])
    plan, call_record = sender.act(method, arguments)
    guard = sender.undo(plan, call_record)["guard-0"]
    if isinstance(change, str):  # every change gives another version
        server.renew()
    else:
        change(server.kept)
    assert not sender.send(guard).well


def test_every_undoable_method_is_tried() -> None:
    """But for those of services that have tests of their own: against a real server, or a fuller one."""
    elsewhere = {"slack", "github", "matrix"}
    undoable = {m.id for m in CATALOG.methods() if m.service not in elsewhere and m.undo is not None}
    assert undoable == {case[0] for case in CASES}


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("gmail.users.messages.modify", {**MAIL, "addLabelIds": ["INBOX"]}),
        ("gmail.users.messages.modify", {**MAIL, "removeLabelIds": ["STARRED"]}),
        ("gmail.users.messages.untrash", MAIL),
        ("google_drive.files.trash", {"fileId": "trashed1"}),
        ("google_drive.files.untrash", FILE),
        ("google_calendar.calendarList.insert", {"id": gc.TEAM}),
        ("google_calendar.acl.insert", {"role": "writer", "scope": {"type": "user", "value": BO}}),
        (
            "google_drive.permissions.create",
            {**FILE, "role": "writer", "type": "user", "emailAddress": BO, "domain": None},
        ),
        ("discord.add_guild_member_role", {**KIM, "role_id": dc.ROLE}),
        ("discord.delete_pin", ON),
        ("discord.leave_thread", {"channel_id": dc.THREAD}),
        ("discord.ban_user_from_guild", {**HERE, "user_id": dc.BANNED}),
        ("spotify.save_library_items", {"uris": [sp.SONG, f"spotify:playlist:{sp.LIST}"]}),
        ("spotify.remove_library_items", {"uris": [sp.SONG]}),
    ],
)
def test_what_is_so_already_is_not_done(
    servers: dict[str, Api], tmp_path: Path, method: str, arguments: JsonObject
) -> None:
    """Else undo would take back what was there before."""
    server = fresh(servers[method.partition(".")[0]])
    before = server.state()
    with pytest.raises(AssertionError, match="pre-0"):
        Sender(server, tmp_path).act(method, arguments)
    assert server.state() == before


@pytest.mark.parametrize(
    ("first", "method", "arguments"),
    [
        ("discord.join_thread", "discord.join_thread", {"channel_id": dc.THREAD}),
        (
            "google_drive.permissions.create",
            "google_drive.permissions.create",
            {**FILE, "role": "reader", "type": "anyone"},
        ),
        ("google_calendar.acl.insert", "google_calendar.acl.insert", {"role": "reader", "scope": {"type": "default"}}),
    ],
)
def test_what_was_done_before_is_not_done_again(
    servers: dict[str, Api], tmp_path: Path, first: str, method: str, arguments: JsonObject
) -> None:
    server = fresh(servers[method.partition(".")[0]])
    sender = Sender(server, tmp_path)
    sender.act(first, arguments)
    before = server.state()
    with pytest.raises(AssertionError, match="pre-0"):
        sender.act(method, {**arguments, **({"role": "writer"} if "role" in arguments else {})})
    assert server.state() == before


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        (
            "google_calendar.acl.insert",
            {"role": "writer", "scope": {"type": "user", "value": BO.title()}},
        ),
        ("google_drive.permissions.create", {**FILE, "role": "writer", "type": "user", "emailAddress": BO.title()}),
    ],
)
def test_access_from_before_is_not_taken_away(
    servers: dict[str, Api], tmp_path: Path, method: str, arguments: JsonObject
) -> None:
    """Google knows an address by another spelling, too, and changes what its owner had."""
    server = fresh(servers[method.partition(".")[0]])
    sender = Sender(server, tmp_path)
    plan, call_record = sender.act(method, arguments)
    changed = server.state()
    with pytest.raises(Unsupported, match="nobody knows which one it made"):
        sender.undo(plan, call_record)
    assert server.state() == changed


def test_access_under_another_role_is_not_overwritten(servers: dict[str, Api], tmp_path: Path) -> None:
    """Somebody was given access anew after it was taken away, and more than they had."""
    server = fresh(servers["google_calendar"])
    sender = Sender(server, tmp_path)
    plan, call_record = sender.act("google_calendar.acl.delete", {"ruleId": f"user:{BO}"})
    guard = sender.undo(plan, call_record)["guard-0"]
    sender.act("google_calendar.acl.insert", {"role": "owner", "scope": {"type": "user", "value": BO}})
    assert not sender.send(guard).well


def test_mail_is_sent_as_it_was_shown(servers: dict[str, Api], tmp_path: Path) -> None:
    server = fresh(servers["gmail"])
    sender = Sender(server, tmp_path)
    plan, _ = sender.act(
        "gmail.users.messages.send",
        {"to": [BO], "bcc": ["kim@example.org"], "subject": "Späte Züge", "body": "I'm late.\n— Ann"},
    )
    (letter,) = server.kept["sent"]
    assert (letter["To"], letter["Bcc"], letter["Cc"]) == (BO, "kim@example.org", None)
    assert letter["Subject"] == "Späte Züge" and letter.get_content().replace("\r\n", "\n") == "I'm late.\n— Ann"
    said = "\n".join(plan.lines)
    assert BO in said and "kim@example.org" in said and "Späte Züge" in said and "I'm late." in said
    assert plan.undo_class is UndoClass.IRREVERSIBLE
    with pytest.raises(InvalidInput):
        sender.plan("gmail.users.messages.send", {"to": [f"{BO}\r\nBcc: eve@example.org"], "body": "x"})
    assert len(server.kept["sent"]) == 1


def test_reads_and_what_cannot_be_taken_back(servers: dict[str, Api], tmp_path: Path) -> None:
    tried: list[tuple[str, JsonObject]] = [
        ("gmail.users.getProfile", {}),
        ("gmail.users.messages.list", {"q": "is:unread", "labelIds": ["INBOX", "UNREAD"]}),
        ("gmail.users.messages.get", MAIL),
        ("gmail.users.labels.list", {}),
        ("gmail.users.settings.filters.list", {}),
        ("gmail.users.messages.delete", MAIL),
        ("google_calendar.events.list", {"timeMin": "2026-05-01T00:00:00Z", "maxResults": 5}),
        (
            "google_calendar.freebusy.query",
            {"timeMin": "2026-05-01T00:00:00Z", "timeMax": "2026-05-02T00:00:00Z", "items": [{"id": "primary"}]},
        ),
        ("google_calendar.calendarList.list", {}),
        ("google_drive.about.get", {}),
        ("google_drive.files.list", {"q": "name contains 'Plan'"}),
        ("google_drive.comments.list", FILE),
        ("google_drive.files.emptyTrash", {}),
        ("discord.get_my_user", {}),
        ("discord.list_messages", {"channel_id": dc.CHANNEL, "limit": 5}),
        ("discord.list_pins", {"channel_id": dc.CHANNEL}),
        ("discord.delete_message", ON),
        ("dropbox.files.list_folder", {"path": ""}),
        ("dropbox.users.get_current_account", {}),
        ("spotify.search", {"q": "rain", "type": ["track", "album"]}),
        ("spotify.get_a_list_of_current_users_playlists", {}),
        ("spotify.start_a_users_playback", {"context_uri": f"spotify:playlist:{sp.LIST}"}),
        ("spotify.remove_items_playlist", {"playlist_id": sp.LIST, "items": [{"uri": sp.OTHER}]}),
    ]
    for method, arguments in tried:
        sender = Sender(servers[method.partition(".")[0]], tmp_path)
        plan, call_record = sender.act(method, arguments)
        reads = CATALOG.method(method).risk is Risk.READ
        assert plan.undo_class is (UndoClass.NOTHING if reads else UndoClass.IRREVERSIBLE)
        assert call_record.answers["call-0"].status < 300


def test_a_discord_message_pings_nobody_by_itself(servers: dict[str, Api], tmp_path: Path) -> None:
    server = fresh(servers["discord"])
    Sender(server, tmp_path).act("discord.create_message", {"channel_id": dc.CHANNEL, "content": "hi @everyone"})
    assert server.hits[-1].body["allowed_mentions"] == {"parse": ["users", "roles"]}


@pytest.mark.sampled(4)
@pytest.mark.docker
@pytest.mark.parametrize("service", sorted(APIS))
async def test_through_the_gateway(runtime: RestRuntime, servers: dict[str, Api], tmp_path: Path, service: str) -> None:
    server = fresh(servers[service])
    bench = Bench(tmp_path / "records", (account(service, server.url, ca_pem=server.ca_pem, private=True),))
    before = server.state()
    context = bench.context("a1")
    plan = await runtime.assess(WHOLE[service], context)
    await runtime.prepare(plan, context)
    outcome = await runtime.execute(plan, context)
    assert outcome.ok, outcome.summary
    assert server.state() != before
    undo = Revert(verb="undo", target="a1")
    revert_plan = await runtime.assess_revert(undo, plan, context)
    undone = await runtime.execute_revert(undo, revert_plan, plan, context, bench.context("a2"))
    assert undone.ok, undone.summary
    assert server.state() == before


@pytest.mark.docker
@pytest.mark.parametrize(
    ("call", "left"),
    [
        (("google_calendar.acl.insert", {"role": "writer", "scope": {"type": "user", "value": BO}}), False),
        (("google_calendar.acl.insert", {"role": "writer", "scope": {"type": "user", "value": BO.title()}}), True),
        (
            (
                "google_drive.permissions.create",
                {**FILE, "role": "writer", "type": "user", "emailAddress": BO, "sendNotificationEmail": False},
            ),
            False,
        ),
    ],
)
async def test_access_from_before_through_the_gateway(
    runtime: RestRuntime, servers: dict[str, Api], tmp_path: Path, call: tuple[str, JsonObject], left: bool
) -> None:
    """It isn't given again where it is seen; where it was changed all the same, nothing takes it away."""
    service = call[0].partition(".")[0]
    server = fresh(servers[service])
    bench = Bench(tmp_path / "records", (account(service, server.url, ca_pem=server.ca_pem, private=True),))
    before, context = server.state(), bench.context("a1")
    plan = await runtime.assess(calls(call), context)
    await runtime.prepare(plan, context)
    outcome = await runtime.execute(plan, context)
    assert (outcome.ok, outcome.left, outcome.touched) == (left, left, left), outcome.summary
    changed = server.state()
    assert (changed != before) is left
    if left:
        assert "can't be taken back" in outcome.summary
        with pytest.raises(Unsupported, match="nobody knows which one it made"):
            await runtime.assess_revert(Revert(verb="undo", target="a1"), plan, context)
    else:
        assert "They have access already" in f"{outcome.summary} {outcome.details}"
    assert server.state() == changed
