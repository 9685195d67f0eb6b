"""Starts an MCP server, asks for its tools, and makes the calls of one job. Standard library only, and no secret.

The job says how the server is started, the hash of the tools that were agreed on, and the calls. One JSON object a line
goes to standard output: `tools`, then for each call `begun` and `answer`; or `failed`. No call is made of a server
whose tools aren't the ones that were agreed on. Whatever a server sends is bounded, and the time is the job's.
"""

import hashlib
import json
import os
import selectors
import subprocess
import sys
import time

JOB = "/goex/job/mcp.json"
VERSION = "2025-06-18"
LINE = 4 * 2**20  # bytes of one message
ALL = 12 * 2**20  # bytes of everything that a server sends
PAGES = 50  # of its list of tools
SAID = 2000  # bytes of its standard error that are told when it fails


class Failed(Exception):
    """The server can't be spoken to (any more)."""


def digest(tools):
    """The hash of a list of tools, in whatever order."""
    ordered = sorted(tools, key=lambda tool: str(tool.get("name")))
    return hashlib.sha256(json.dumps(ordered, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def tell(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Stdio:
    """A server that is a process, spoken to by lines of JSON."""

    def __init__(self, argv, env, folder, until):
        self.until, self.left, self.lines, self.said, self.size = until, b"", [], b"", 0
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=folder)
        except OSError as error:
            raise Failed(f"it can't be started: {error.strerror}") from error
        self.poll = selectors.DefaultSelector()
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)
            self.poll.register(stream, selectors.EVENT_READ)
        os.set_blocking(self.process.stdin.fileno(), False)

    def send(self, message):
        data = memoryview(json.dumps(message).encode() + b"\n")
        self.poll.register(self.process.stdin, selectors.EVENT_WRITE)
        try:
            while data:
                for key, _ in self.wait():
                    if key.fileobj is self.process.stdin:
                        data = data[os.write(key.fd, data) :]
                    else:
                        self.read(key)
        except BrokenPipeError as error:
            raise Failed("it closed its input" + self.error()) from error
        finally:
            self.poll.unregister(self.process.stdin)

    def receive(self):
        while not self.lines:
            for key, _ in self.wait():
                self.read(key)
        return self.lines.pop(0)

    def wait(self):
        left = self.until - time.monotonic()
        found = self.poll.select(left) if left > 0 else []
        if not found:
            raise Failed("it didn't answer in time")
        return found

    def read(self, key):
        data = os.read(key.fd, 65536)
        if key.fileobj is self.process.stderr:
            self.said = (self.said + data)[-SAID:]
            if not data:
                self.poll.unregister(key.fileobj)
            return
        if not data:
            raise Failed("it ended" + self.error())
        self.size += len(data)
        *whole, self.left = (self.left + data).split(b"\n")
        self.lines += [line for line in whole if line.strip()]
        if self.size > ALL or len(self.left) > LINE or any(len(line) > LINE for line in whole):
            raise Failed("it sent more than is read")

    def error(self):
        text = self.said.decode(errors="replace").strip()
        return f": {text[-500:]}" if text else ""


class Client:
    """Requests and their answers, one after the other."""

    def __init__(self, transport):
        self.transport, self.number = transport, 0

    def request(self, method, params):
        self.number += 1
        self.transport.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            try:
                message = json.loads(self.transport.receive())
            except (ValueError, RecursionError):
                continue  # what isn't JSON is its log
            if not isinstance(message, dict):
                continue
            if "method" in message:
                self.refuse(message)
            elif message.get("id") == self.number:
                return message

    def refuse(self, message):
        """A server may ask its client for roots, words of a model or of the person: there are none here."""
        if "id" in message:
            pong = message["method"] == "ping"
            what = {"result": {}} if pong else {"error": {"code": -32601, "message": "not offered"}}
            self.transport.send({"jsonrpc": "2.0", "id": message["id"], **what})

    def result(self, method, params):
        answer = self.request(method, params)
        if not isinstance(answer.get("result"), dict):
            raise Failed(f"{method} was refused: {json.dumps(answer.get('error'))[:500]}")
        return answer["result"]

    def begin(self):
        about = {"name": "goex", "version": "1"}
        self.result("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about})
        self.transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self):
        found, params = [], {}
        for _ in range(PAGES):
            page = self.result("tools/list", params)
            found += [tool for tool in page.get("tools", ()) if isinstance(tool, dict)]
            if not page.get("nextCursor"):
                return found
            params = {"cursor": page["nextCursor"]}
        raise Failed("its list of tools has no end")


def run(told):
    """Do a job. Returns the exit code."""
    env = {**os.environ, **told["env"]}
    until = time.monotonic() + told["seconds"]
    try:
        client = Client(Stdio(told["argv"], env, told["folder"], until))
        client.begin()
        tools = client.tools()
        if told["tools"] != digest(tools):
            tell(tools=tools)
            return 0 if not told["tools"] else 3
        for number, call in enumerate(told["calls"]):
            tell(begun=number)
            answer = client.request("tools/call", {"name": call["name"], "arguments": call["arguments"]})
            tell(answer=number, result=answer.get("result"), error=answer.get("error"))
            if "result" not in answer or answer["result"].get("isError"):
                return 4
    except Failed as error:
        tell(failed=str(error))
        return 5
    return 0


def main():
    with open(JOB, encoding="utf-8") as file:
        told = json.load(file)
    if told.get("port"):
        sys.path.insert(0, "/goex/bin")
        import shim

        shim.start(told["port"], shim.SOCKET)
    sys.exit(run(told))


if __name__ == "__main__":
    main()
