"""Starts an MCP server, or speaks to one at an address, asks for its tools, and makes the calls of one job. Standard
library only, and no secret.

The job says how the server is started, or where it is, the hash of the tools that were agreed on, and the calls. One
JSON object a line goes to standard output: `tools`, then for each call `begun` and `answer`; or `failed`. No call is
made of a server whose tools aren't the ones that were agreed on. Whatever a server sends is bounded, and the time is
the job's.
"""

import contextlib
import hashlib
import http.client
import json
import os
import selectors
import ssl
import subprocess
import sys
import time
import urllib.parse

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

    def agreed(self, version):
        """Nothing of it is said again here."""

    def close(self):
        """It ends with its container."""

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


class Http:
    """A server at an address, spoken to by POST through the gateway: it answers with JSON or a stream of events. Where
    it would lead to isn't followed."""

    def __init__(self, url, headers, ca, port, until):
        self.url, self.headers, self.ca, self.port, self.until = url, dict(headers), ca, port, until
        self.lines, self.streams, self.data, self.size = [], [], [], 0

    def agreed(self, version):
        self.headers["MCP-Protocol-Version"] = version

    def send(self, message):
        data = json.dumps(message).encode()
        line, answer = self.ask("POST", data)
        session = answer.headers.get("mcp-session-id")
        if session:
            self.headers.setdefault("Mcp-Session-Id", session)
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.status in (202, 204):
            return
        if answer.status != 200 or kind not in ("application/json", "text/event-stream"):
            said = self.read(line, answer, SAID).decode(errors="replace").strip()
            raise Failed(f"it answered with status {answer.status} ({kind or 'no type'}): {said[:500]}")
        if kind == "text/event-stream":
            self.streams.append((line, answer))
        else:
            self.lines.append(self.read(line, answer, LINE))

    def receive(self):
        while not self.lines:
            if not self.streams:
                raise Failed("it gave no answer")
            self.event(*self.streams[-1])
        return self.lines.pop(0)

    def close(self):
        """Let go of the session, where the server keeps one."""
        if "Mcp-Session-Id" in self.headers:
            with contextlib.suppress(Failed):
                self.ask("DELETE", None)

    def ask(self, method, data):
        parts = urllib.parse.urlsplit(self.url)
        place = parts.path or "/"
        headers = {**self.headers, "Accept": "application/json, text/event-stream"}
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context(cafile=self.ca)
                line = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=self.left(), context=context)
                line.set_tunnel(parts.hostname, parts.port or 443)
            else:
                line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.left())
                place = f"http://{parts.netloc}{place}"
            if data is not None:
                headers["Content-Type"] = "application/json"
            line.request(method, place, data, headers)
            line.sock.settimeout(self.left())
            return line.sock, line.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"it can't be reached: {type(error).__name__}: {str(error)[:200]}") from error

    def event(self, line, answer):
        """Read one line of a stream. An empty one ends an event."""
        text = self.piece(line, lambda: answer.readline(LINE + 1))
        if not text:
            self.streams.pop()
        elif text.startswith(b"data:"):
            self.data.append(text[5:].strip())
        if not text.strip() and self.data:
            self.lines.append(b"\n".join(self.data))
            self.data = []
        if sum(map(len, self.data)) > LINE:
            raise Failed("it sent more than is read")

    def read(self, line, answer, most):
        found = b""
        while len(found) <= most:
            piece = self.piece(line, lambda: answer.read1(65536))
            if not piece:
                return found
            found += piece
        if most < LINE:
            return found[:most]
        raise Failed("it sent more than is read")

    def piece(self, line, read):
        try:
            with contextlib.suppress(OSError):  # closed when all of it has come
                line.settimeout(self.left())
            data = read()
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Failed("it didn't answer in time, or broke off") from error
        self.size += len(data)
        if len(data) > LINE or self.size > ALL:
            raise Failed("it sent more than is read")
        return data

    def left(self):
        left = self.until - time.monotonic()
        if left <= 0:
            raise Failed("it didn't answer in time")
        return left


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
        said = self.result("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about})
        self.transport.agreed(str(said.get("protocolVersion")))
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
    client = None
    try:
        if told.get("url"):
            ca = "/goex/job/ca.pem"
            client = Client(Http(told["url"], told["headers"], ca, told["port"], until))
        else:
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
    finally:
        if client is not None:
            client.transport.close()
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
