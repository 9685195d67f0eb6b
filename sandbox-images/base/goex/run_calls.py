"""Makes planned requests in order, from within the container, through the action's gateway.

Rules: standard library only, and no secret: the gateway puts the credential in. What is sent must be the plan to the
letter, since the gateway refuses anything else; a request whose values come from earlier answers is asked for by its
name, and the gateway fills it. It stops at the first request that doesn't go well. The daemon trusts nothing that is
printed here: it is for a person who debugs.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import time
from urllib.parse import quote, urlsplit

JOB = "/goex/job"
SOCKET = "/goex/gateway/gw.sock"
MAX_ANSWER = 16_000_000


class Stop(Exception):
    """No further request makes sense."""


class Tunnel(http.client.HTTPConnection):
    """A connection to one origin through the gateway's socket: CONNECT and TLS for https, plain proxying for http."""

    def __init__(self, origin, context):
        parts = urlsplit(origin)
        self.secure = parts.scheme == "https"
        self.default_port = 443 if self.secure else 80
        super().__init__(parts.hostname, parts.port or self.default_port, timeout=120)
        self.origin = origin
        self.context = context

    def connect(self):
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        raw.settimeout(self.timeout)
        raw.connect(SOCKET)
        self.sock = self.context.wrap_socket(self._open(raw), server_hostname=self.host) if self.secure else raw

    def _open(self, raw):
        host = f"[{self.host}]" if ":" in self.host else self.host
        raw.sendall(f"CONNECT {host}:{self.port} HTTP/1.1\r\nHost: {host}:{self.port}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = raw.recv(1)
            if not part or len(answer) > 16_384:
                raise Stop("the gateway broke off")
            answer += part
        status = int(answer.split(b" ", 2)[1])
        if status != 200:
            raise Stop(f"the gateway refused the connection ({status})")
        return raw

    def target(self, path):
        return path if self.secure else self.origin + path


class Runner:
    """The state of one run: connections by origin."""

    def __init__(self, context):
        self.context = context
        self.connections = {}

    def run(self, requests):
        """Returns whether every request went well."""
        for request in requests:
            for attempt in range(request["attempts"]):
                if attempt:
                    time.sleep(min(0.2 * 2 ** (attempt - 1), 2.0))
                well = self.send(request)
                if well:
                    break
            if not well and not request["optional"]:
                return False
        return True

    def send(self, request):
        target, headers, body = written(request)
        connection = self.connections.get(request["origin"])
        if connection is None:
            connection = self.connections[request["origin"]] = Tunnel(request["origin"], self.context)
        connection.request(request["method"], connection.target(target), body, headers)
        answer = connection.getresponse()
        data = answer.read(MAX_ANSWER)
        if answer.will_close or len(data) >= MAX_ANSWER:
            connection.close()
        well = answer.getheader("x-goex-well")
        say(id=request["id"], status=answer.status, well=well == "1", bytes=len(data))
        if well is None:
            raise Stop(f"the gateway refused {request['id']}: {data.decode(errors='replace')[:500]}")
        return well == "1"


def written(request):
    """The target, headers and body of a request."""
    headers = {"Accept": "application/json"}
    if "written" not in request:
        return "/", {**headers, "X-GoEx-Request": request["id"]}, None
    plan = request["written"]
    query = pairs(plan["query"])
    target = "/" + "/".join(quote(text(part), safe="") for part in plan["path"]) + (f"?{query}" if query else "")
    if plan["body_format"] == "none" or plan["body"] is None:
        return target, headers, None
    if plan["body_format"] == "form":
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return target, headers, pairs(plan["body"]).encode()
    headers["Content-Type"] = "application/json"
    return target, headers, json.dumps(plan["body"], ensure_ascii=False).encode()


def pairs(mapping):
    made = []
    for name, value in mapping.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                made.append(f"{quote(name, safe='')}={quote(text(one), safe='')}")
    return "&".join(made)


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return value if isinstance(value, str) else json.dumps(value)
    raise Stop("the plan holds something else where a text or a number belongs")


def say(**facts):
    print(json.dumps(facts), flush=True)


def main():
    with open(f"{JOB}/requests.json", encoding="utf-8") as file:
        requests = json.load(file)["requests"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(f"{JOB}/ca.pem")
    try:
        return 0 if Runner(context).run(requests) else 1
    except Stop as stop:
        reason = str(stop)
    except (OSError, http.client.HTTPException, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
    print(reason[:1000], file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
