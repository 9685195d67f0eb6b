"""The message to the person's room: when there is one, what stands in it, and what no agent can bring into it."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from goex.config import BadConfig, Config, parse
from goex.daemon.app import App
from goex.daemon.away import LONGEST_PAUSE, Away, send_to_room, unlinked
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from policies.accounts import Account, Origin
from policies.actions import Action, ApiCalls, Call, Files, Revert
from policies.errors import Unavailable
from tests.goex.engine.conftest import APPROVAL, ASKER, VAULT, Desk
from tests.services.synapse import Synapse
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.page import add_shop, ask_for_update
from tests.support.passphrases import cheap_passphrases
from vault.lease import Lease
from vault.secret import Secret

ROOM, PAGE = "!room:goex.test", "https://goex.example.org"
HOME = "https://matrix.example"
SETTINGS = parse({"notify": {"matrix_room": ROOM, "matrix_after": 0}}).notify
SECONDS = 300.0
SAYS = Call(
    service="slack",
    method="chat.postMessage",
    account="work",
    arguments={"channel": "#ops", "text": "the root password is hunter2"},
)


class Room:
    """What was sent; while `down`, nothing gets there. `later` moves the clock."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.texts, self.down = desk, list[str](), False
        self.ids: list[str] = []  # also of what didn't get there
        self._later = timedelta()
        self.away = self.told_as()

    def told_as(self, **changes: object) -> Away:
        settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]  # the fields' own types
        vault = self.desk.app.vault_state
        clock = self.desk.core.clock
        return Away(
            settings, self.desk.core, lambda: vault.vault, PAGE, clock=lambda: clock() + self._later, send=self.send
        )

    @property
    def tried(self) -> int:
        return len(self.ids)

    def send(self, lease: Lease, room: str, text: str, id: str) -> None:
        self.ids.append(id)
        assert (room, lease.account.id) == (ROOM, "matrix/main")
        if self.down:
            raise Unavailable("The homeserver wasn't reached.")
        self.texts.append(text)

    async def look(self, later: timedelta = timedelta()) -> int:
        """How many messages there are after a look, so much later."""
        self._later += later
        await self.away.look()
        return len(self.texts)


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    with tempfile.TemporaryDirectory(prefix="goex-t-", dir="/tmp") as name:
        home = Path(name)
        paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
        paths.create()
        app = App(paths, Config(), lambda: None)
        with cheap_passphrases():
            await app.vault_state.init("passphrase", Secret(VAULT.encode()), Secret(APPROVAL.encode()))
        account = Account(service="matrix", name="main", origins=(Origin.parse(HOME),), base_url=HOME)
        app.vault_state.vault.put(account, Secret(b"a token"))
        yield Room(Desk(app))
        await app.close()


async def ask(room: Room, number: int = 0, agent: str = "bot") -> None:
    action = Files(folder=f"/x{number}", language="shell", program="cat /etc/the-payload")
    await room.desk.asked(action, replace(ASKER, agent=agent))


@pytest.mark.promise(93)
async def test_a_message_has_one_sentence_and_the_address_and_no_payload(room: Room) -> None:
    assert await room.look() == 0
    await ask(room)
    assert await room.look() == 1
    (question,) = room.desk.core.approvals.pending()
    sentence, link = room.texts[0].split("\n")
    assert sentence == "“bot” wants to run a shell program in ."
    assert link == f"{PAGE}/#waiting/{question.id}"
    assert not room.desk.app.vault_state.live_leases()
    room.away = room.told_as(matrix_sentence=False)
    await room.look(LONGEST_PAUSE)
    assert room.texts[1].split("\n")[0] == "A question waits for you."


@pytest.mark.promise(93)
@pytest.mark.parametrize(
    ("action", "named"),
    [
        (Files(folder="/x", language="shell", program="echo hunter2"), "a program in a folder"),
        (ApiCalls(calls=(SAYS, SAYS)), "slack[.]chat[.]postMessage"),
    ],
)
async def test_of_an_undo_only_the_kind_of_what_it_takes_back_is_told(room: Room, action: Action, named: str) -> None:
    runtimes = room.desk.core.runtimes
    room.desk.core.runtimes = {**runtimes, "calls": runtimes["files"]}
    slack = Account(service="slack", name="work", origins=(Origin.parse(HOME),), base_url=HOME)
    room.desk.app.vault_state.vault.put(slack, Secret(b"a token"))
    done = await room.desk.done(action)
    await room.desk.asked(Revert(verb="undo", target=done))
    assert await room.look() == 1
    assert room.texts[0].split("\n")[0] == f"“bot” wants to undo {done} (“{named}”)."
    assert "hunter2" not in room.texts[0]


@pytest.mark.promise(93)
async def test_nobody_is_told_before_the_time_or_twice(room: Room) -> None:
    room.away = room.told_as(matrix_after=60)
    await ask(room)
    assert await room.look(timedelta(seconds=50)) == 0
    assert await room.look(timedelta(seconds=11)) == 1
    assert await room.look(LONGEST_PAUSE) == 1
    await ask(room, 1)
    (_, other) = room.desk.core.approvals.pending()
    room.desk.answer(other, approve=False)
    assert await room.look(LONGEST_PAUSE) == 1, "it was answered in time"


@pytest.mark.promise(93)
async def test_a_flood_is_a_message_a_minute_and_fewer_while_nobody_answers(room: Room) -> None:
    for number in range(9):
        await ask(room, number)
    assert await room.look() == 1 and "8 more wait." in room.texts[0]
    sent = [0]
    for minute in range(1, 200):
        if minute % 5 == 0:
            for one in room.desk.core.approvals.pending()[1:3]:  # the agent takes its own back, and asks again
                await room.desk.engine.cancel(one.action_id, why="a test")
            await ask(room, 100 + minute)
        before = len(room.texts)
        if await room.look(timedelta(minutes=1)) > before:
            sent.append(minute)
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert gaps == sorted(gaps) and 3 < len(sent) <= 9, sent
    (first, *_) = room.desk.core.approvals.pending()
    room.desk.answer(first, approve=False)
    await ask(room, 999)
    assert await room.look() == len(sent) + 1, "who answers is told of the next at once"


@pytest.mark.promise(93)
async def test_an_answer_brings_no_second_message_within_a_minute(room: Room) -> None:
    for number in range(4):
        await ask(room, number)
        await room.look(timedelta(seconds=20))
        (question, *_) = room.desk.core.approvals.pending()
        room.desk.answer(question, approve=False)
    assert len(room.texts) == 2, room.texts


@pytest.mark.promise(93)
async def test_an_agent_that_withdraws_what_it_asks_does_not_silence_the_others(room: Room) -> None:
    for number in range(9):  # the pause of its own messages grows to an hour
        await ask(room, number, agent="loud")
        before = len(room.texts)
        while len(room.texts) == before:
            await room.look(timedelta(minutes=1))
        (question,) = room.desk.core.approvals.pending()
        await room.desk.engine.cancel(question.action_id, why="a test")
    await ask(room, 100, agent="loud")
    await ask(room, 101, agent="quiet")
    assert await room.look(timedelta(minutes=1)) == 10
    assert "“quiet” wants" in room.texts[-1] and "1 more waits." in room.texts[-1]
    assert await room.look(timedelta(minutes=30)) == 10, "it was told of together with that"


@pytest.mark.promise(93)
async def test_any_answer_of_a_person_ends_the_pauses(room: Room) -> None:
    room.away = room.told_as(matrix_after=10)
    for number in range(7):
        await ask(room, number, agent="one")
        await room.look(LONGEST_PAUSE)
    before = len(room.texts)
    await ask(room, 100, agent="two")
    await room.look(timedelta(seconds=5))
    room.desk.answer(room.desk.core.approvals.pending()[-1], approve=False)
    await ask(room, 101, agent="one")
    assert await room.look(timedelta(minutes=1)) == before + 1


@pytest.mark.promise(93)
async def test_what_cannot_be_sent_is_tried_as_rarely_and_nothing_is_sent_while_sealed(room: Room) -> None:
    room.down = True
    await ask(room)
    for _ in range(59):
        await room.look(timedelta(seconds=1))
    assert room.tried == 1
    room.down = False
    assert await room.look(timedelta(seconds=2)) == 1
    await ask(room, 1)
    await room.desk.app.seal()
    assert await room.look(LONGEST_PAUSE) == 1 and room.tried == 2


@pytest.mark.promise(93)
async def test_a_message_is_sent_again_as_the_same_one(room: Room) -> None:
    """What failed may have been taken; another question's message is another one, whatever is behind it."""
    room.down = True
    await ask(room)
    await room.look()
    room.down = False
    await ask(room, 1)
    await room.look(timedelta(minutes=2))
    await ask(room, 2)
    await room.look(LONGEST_PAUSE)
    first, again, other = room.ids
    assert first == again != other and "1 more waits." in room.texts[0]
    assert all(question.id not in "".join(room.ids) for question in room.desk.core.approvals.pending())


async def test_pauses_are_not_kept_for_ever(room: Room) -> None:
    for number in range(40):
        await ask(room, number, agent=f"bot-{number}")
        await room.look(timedelta(hours=12))
    assert len(room.texts) == 40 and len(room.away._pauses) <= 3


@pytest.mark.promise(93)
@pytest.mark.parametrize(
    "name", ["http://evil.example/#waiting/q-1", "evil.example", "@room", "#ops:evil.example", "evil。example"]
)
async def test_a_name_is_no_link_and_calls_nobody(room: Room, name: str) -> None:
    assert name not in unlinked(name)
    await ask(room, agent=f"{name}\u202e<b>\n")
    await room.look()
    (text,) = room.texts
    sentence, _ = text.split("\n")
    assert name not in sentence and "\u202e" not in text
    assert unlinked(name) in sentence and "[" in unlinked(name)


@pytest.mark.parametrize("wrong", ["#ops:example.org", "ops", "!a b", "!\u202e"])
def test_a_room_is_named_by_its_id(wrong: str) -> None:
    with pytest.raises(BadConfig, match="room's id"):
        parse({"notify": {"matrix_room": wrong}})


@pytest.mark.promise(93)
async def test_the_end_does_not_wait_for_a_homeserver_that_is_silent(room: Room) -> None:
    asked: asyncio.Queue[bool] = asyncio.Queue()
    go, loop = threading.Event(), asyncio.get_running_loop()

    def silent(*_: object) -> None:
        loop.call_soon_threadsafe(asked.put_nowait, threading.current_thread().daemon)
        go.wait(SECONDS)

    vault, core = room.desk.app.vault_state, room.desk.core
    away = Away(SETTINGS, core, lambda: vault.vault, PAGE, clock=core.clock, send=silent)
    await ask(room)
    away.start()
    assert await asked.get(), "the interpreter waits for every other thread"
    began = time.monotonic()
    await away.close()
    assert time.monotonic() - began < SECONDS / 2 and not vault.live_leases()
    go.set()


@pytest.fixture(scope="module")
def homeserver_room(synapse: Synapse) -> tuple[str, str]:
    token = synapse.register("away-from-the-desk")
    return token, synapse.create_room(token, "Mine")


@pytest.fixture(scope="module")
def daemon(synapse: Synapse, homeserver_room: tuple[str, str]) -> Iterator[Daemon]:
    token, room = homeserver_room
    config = f'[notify]\nmatrix_room = "{room}"\nmatrix_after = 0\n[web]\npublic_url = "{PAGE}"\n'
    with Daemon(config=config) as running:
        running.person("VaultPut", pb.VaultPutRequest(
            service="matrix", account="mine", secret=token.encode(), base_url=synapse.url, private=True,
            passphrase=APPROVAL_PASSPHRASE,
        ))  # fmt: skip
        yield running


@pytest.mark.promise(93)
@pytest.mark.synapse
def test_a_real_room_gets_one_plain_message_and_answers_nothing(
    daemon: Daemon, synapse: Synapse, homeserver_room: tuple[str, str]
) -> None:
    token, room = homeserver_room
    add_shop(daemon)
    bot = daemon.add_agent("bot")
    first = ask_for_update(daemon, bot, "the payload")
    until = time.monotonic() + SECONDS
    while not (messages := synapse.messages(token, room)):
        assert time.monotonic() < until, daemon.tail()
        time.sleep(0.2)
    (question,) = daemon.person("Approvals", pb.ApprovalsRequest()).approvals
    (message,) = messages
    assert message["content"] == {
        "msgtype": "m.text",
        "m.mentions": {},
        "body": f"“bot” wants to change orders in the database shop.\n{PAGE}/#waiting/{question.id}",
    }
    for answer in ("yes", "y", question.id, f"/approve {question.id}"):
        synapse.send(token, room, answer)
    for value in range(20):
        ask_for_update(daemon, bot, f"v{value}")
    assert daemon.person_action(first) == "asking"
    bodies = json.dumps([one["content"] for one in synapse.messages(token, room)])
    assert bodies.count("m.mentions") == 1 and "payload" not in bodies
    assert token not in daemon.tail(1_000_000)


@pytest.mark.synapse
def test_a_real_room_shows_what_is_sent_again_once(synapse: Synapse) -> None:
    token = synapse.register("sent-again")
    room = synapse.create_room(token, "Again")
    account = Account(
        service="matrix", name="main", origins=(Origin.parse(synapse.url),), base_url=synapse.url, private=True
    )
    lease = SimpleNamespace(account=account, secret=Secret(token.encode()))
    for id in ("one", "one", "two"):
        send_to_room(lease, room, f"It is {id}.", id)  # type: ignore[arg-type]  # what is read of a lease
    assert len(synapse.messages(token, room)) == 2
