"""`make agent-tasks`: eight tasks as an agent does them, by MCP and by goex-client, and what they cost it.

A trip is one request and its answer; tokens are what a model reads of the answers, at 3.5 bytes each. The daemon, the
containers, the homeserver and the database are real; the person is a thread that answers what is asked. Prints a table
and the text of each kind of end; ends with status 1 when an answer is over its bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import grpc

from goex.rpc import goex_pb2 as pb
from tests.services.synapse import Synapse, find_python
from tests.support import mcp
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import decide

CLIENT = Path(__file__).resolve().parents[1] / "clients" / "python"
BYTES_A_TOKEN = 3.5
MOST_TOKENS = 2000
ROOMS = 25


@dataclass
class Person:
    """Answers each question as `answers` says, by the action's kind; else with yes."""

    daemon: Daemon
    reason: str = ""  # the next one is denied with it
    ignores: bool = False

    def begin(self) -> None:
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        with contextlib.suppress(grpc.RpcError):  # the daemon ends at last
            for question in self.daemon.person("WatchApprovals", pb.ApprovalsRequest(), seconds=3600):
                if question.state != "pending" or self.ignores:
                    continue
                reason, self.reason = self.reason, ""
                with contextlib.suppress(grpc.RpcError):  # it was withdrawn before this was read
                    decide(self.daemon, question, approve=not reason, **({"reason": reason} if reason else {}))


@dataclass
class Door:
    """A way in. `send` performs one request and returns the action's facts and the text that a model reads."""

    name: str
    send: Callable[[str, dict[str, Any]], Awaitable[tuple[dict[str, Any], str]]]
    sizes: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        facts, text = await self.send(tool, arguments)
        self.sizes.append(round(len(text.encode()) / BYTES_A_TOKEN))
        self.texts.append(text)
        return facts


@dataclass
class Scene:
    door: Door
    person: Person
    folder: Path
    room: str

    async def discover(self) -> None:
        found = await self.door("goex_find", query="send a message to a room")
        sending = next(each for each in found["methods"] if each["method"] == "matrix.rooms.send")
        assert sending["arguments"] and found["services"] and found["databases"] == ["shop"]

    async def read_a_long_list(self) -> None:
        read = await self.door("goex_read", calls=[{"method": "matrix.rooms.list", "arguments": {}}])
        assert len(json.dumps(read["data"])) > ROOMS

    async def post_and_undo(self) -> None:
        posted = await self._send("deploy is done")
        assert posted["status"] == "done", posted
        assert (await self.door("goex_undo", action=posted["action"]))["status"] == "done"

    async def follow_a_denial(self) -> None:
        self.person.reason = "say which deploy"
        denied = await self._send("done")
        assert (denied["status"], denied["retry"]) == ("denied", "changed")
        assert (await self._send("deploy 17 is done"))["status"] == "done"

    async def change_a_folder(self) -> None:
        made = await self._run("echo made > file; mkdir -p a; echo b > a/b")
        assert (made["status"], made["undo"]) == ("done", "exact")
        assert (await self.door("goex_undo", action=made["action"]))["status"] == "done"
        assert not (self.folder / "file").exists()

    async def run_a_chatty_program(self) -> None:
        ran = await self._run("seq 1 300000")
        assert ran["next_offset"]
        await self.door("goex_result", action=ran["action"], offset=500_000, limit=100)

    async def change_rows(self) -> None:
        read = await self.door("goex_read", database="shop", sql="SELECT * FROM orders")
        assert "new" in json.dumps(read["data"])
        sql = "UPDATE orders SET status = 'paid' WHERE id = 1"
        changed = await self.door("goex_sql", database="shop", statements=sql)
        assert changed["status"] == "done", changed
        assert (await self.door("goex_undo", action=changed["action"]))["status"] == "done"

    async def look_back(self) -> None:
        listed = (await self.door("goex_actions"))["actions"]
        await self.door("goex_result", action=listed[-1]["action"], fields=["status"])

    async def ends(self) -> dict[str, str]:
        """The text of each kind of end, by when it is read."""
        made: dict[str, str] = {}

        async def read(when: str, tool: str, **arguments: Any) -> dict[str, Any]:
            facts = await self.door(tool, **arguments)
            made[when] = "\n".join(self.door.texts[-1].splitlines()[:2])
            return facts

        send = {"method": "matrix.rooms.send", "arguments": {"roomId": self.room, "body": "x"}}
        self.person.ignores = True
        waits = await read("waiting", "goex_call", calls=[send], wait_seconds=1)
        await read("withdrawn", "goex_cancel", action=waits["action"])
        self.person.ignores = False
        self.person.reason = "use #random"
        await read("denied, with a reason", "goex_call", calls=[send])
        await read("not connected", "goex_call", calls=[{"method": "slack.users.list", "arguments": {}}])
        wrong = {"method": "matrix.rooms.send", "arguments": {"roomId": "ops", "body": "x"}}
        await read("arguments", "goex_call", calls=[wrong])
        await read("partial", "goex_program", language="shell", program="date > x; exit 1", folders=[str(self.folder)])
        sent = await self._send("a message")
        removed = {"roomId": self.room, "eventId": sent["data"]["event_id"], "reason": "wrong"}
        await read("no undo", "goex_call", calls=[{"method": "matrix.rooms.redact", "arguments": removed}])
        first = await self._run("echo one > changed")
        (self.folder / "changed").write_text("theirs")
        await read("conflict", "goex_undo", action=first["action"])
        nowhere = {"method": "matrix.rooms.send", "arguments": {"roomId": "!none:localhost", "body": "x"}}
        await read("refused by the service", "goex_call", calls=[nowhere])
        return made

    async def _send(self, text: str) -> dict[str, Any]:
        call = {"method": "matrix.rooms.send", "arguments": {"roomId": self.room, "body": text}}
        return await self.door("goex_call", calls=[call])

    async def _run(self, program: str) -> dict[str, Any]:
        return await self.door("goex_program", language="shell", program=program, folders=[str(self.folder)])


TASKS: tuple[tuple[str, Callable[[Scene], Awaitable[None]]], ...] = (
    ("what can I do, and how is a message sent", Scene.discover),
    (f"the {ROOMS} rooms that I am in", Scene.read_a_long_list),
    ("a message, and take it back", Scene.post_and_undo),
    ("a message that is denied with a reason, then as it says", Scene.follow_a_denial),
    ("change a folder, and take it back", Scene.change_a_folder),
    ("a program that prints 2 MB, and a piece of that", Scene.run_a_chatty_program),
    ("read rows, change one, take it back", Scene.change_rows),
    ("what did I do, and how did it end", Scene.look_back),
)


def by_mcp(session: Any) -> Door:
    async def send(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        said = await session.call_tool(tool, arguments)
        return said.structured_content or {}, mcp.text_of(said)

    return Door("MCP", send)


def by_client(client: Any, module: Any) -> Door:
    """`goex-client`: its results as they print."""

    def call(tool: str, given: dict[str, Any]) -> Any:
        match tool:
            case "goex_find":
                return client.find(given["query"])
            case "goex_program":
                return client.run(given["program"], folders=given["folders"])
            case "goex_sql":
                return client.sql(given["database"], given["statements"])
            case "goex_read" if "sql" in given:
                return client.sql(given["database"], given["sql"])
            case "goex_undo":
                return client.undo(given["action"])
            case "goex_cancel":
                return client.cancel(given["action"])
            case "goex_result":
                return client.result(**given)
            case "goex_actions":
                return client.actions()
        calls = [module.Call(each["method"], each["arguments"]) for each in given["calls"]]
        return client.calls(calls)

    def answered(tool: str, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
        try:
            found = call(tool, given)
        except module.NotDone as stopped:
            found = stopped.result
        if tool == "goex_find":
            methods = [{"method": each.id, "arguments": each.parameters_json} for each in found.methods]
            return {"methods": methods, "services": found.services, "databases": list(found.databases)}, str(found)
        if tool == "goex_actions":
            listed = [asdict(each) for each in found]
            return {"actions": listed}, json.dumps(listed)
        return asdict(found), json.dumps(asdict(found), default=str)

    async def send(tool: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        return await asyncio.to_thread(answered, tool, arguments)

    return Door("goex-client", send)


def prepare(daemon: Daemon, server: Synapse) -> str:
    """Connect the homeserver and a database; return a room."""
    token = server.register("ada")
    rooms = [server.create_room(token, f"Room {number}") for number in range(ROOMS)]
    account = pb.VaultPutRequest(
        service="matrix",
        account="ada",
        base_url=server.url,
        private=True,
        secret=token.encode(),
        passphrase=APPROVAL_PASSPHRASE,
    )
    daemon.person("VaultPut", account)
    database = daemon.home / "shop.db"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")
        made.executemany("INSERT INTO orders VALUES (?, 'new')", [(number,) for number in range(1, 200)])
    with daemon.terminal("db", "add", "shop", str(database)) as terminal:
        terminal.expect("Approval passphrase: ")
        terminal.type(APPROVAL_PASSPHRASE)
        assert terminal.wait() == 0
    return rooms[0]


async def measured(scene: Scene) -> list[tuple[str, int, int, int]]:
    """Of each task: its name, trips, tokens, and the longest answer."""
    rows = []
    for name, task in TASKS:
        scene.door.sizes.clear()
        await task(scene)
        sizes = scene.door.sizes
        rows.append((name, len(sizes), sum(sizes), max(sizes)))
    return rows


async def main() -> int:
    python = find_python()
    if python is None:
        raise SystemExit("error: there is no homeserver; run make services.")
    sys.path.insert(0, str(CLIENT))
    goex_client: Any = importlib.import_module("goex_client")

    with Daemon() as daemon, Synapse(python) as server:
        room, token = prepare(daemon, server), daemon.add_agent("tasks")
        person = Person(daemon)
        person.begin()
        folder = daemon.home / "work"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(daemon.home, -1, -1)
            os.chown(folder, 65534, 65534)
        rows: dict[str, list[tuple[str, int, int, int]]] = {}
        async with mcp.stdio(daemon, token) as session:
            scene = Scene(by_mcp(session), person, folder, room)
            rows["MCP"] = await measured(scene)
            texts = await scene.ends()
        with goex_client.Client(token=token, socket=str(daemon.agent_socket)) as client:
            scene = Scene(by_client(client, goex_client), person, folder, room)
            rows["goex-client"] = await measured(scene)
    print("| task | MCP: trips | tokens | longest answer | goex-client: trips | tokens | longest answer |")
    print("|---|---|---|---|---|---|---|")
    for one, other in zip(rows["MCP"], rows["goex-client"], strict=True):
        print("| " + " | ".join(str(each) for each in (*one, *other[1:])) + " |")
    for when, text in texts.items():
        print(f"\n{when}:\n  " + text.replace("\n", "\n  "))
    measures = [row for each in rows.values() for row in each]
    over = [name for name, _, _, longest in measures if longest > MOST_TOKENS]
    if over or any(each[0][1] != 1 for each in rows.values()):
        print(f"error: over the bound: {', '.join(over) or 'discovery takes more than one trip'}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
